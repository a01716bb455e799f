// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll plan make: a plan of an algorithm, to standard output.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"
#include "../suggest.h"
#include "plan.h"

enum { OPT_COLL = 256, OPT_RADIX, OPT_LEVELS, OPT_AGGREGATORS, OPT_AGREED, OPT_BINARY };

static const struct option options[] = {
	{ "nodes", required_argument, NULL, 'N' },
	{ "coll", required_argument, NULL, OPT_COLL },
	{ "radix", required_argument, NULL, OPT_RADIX },
	{ "levels", required_argument, NULL, OPT_LEVELS },
	{ "aggregators", required_argument, NULL, OPT_AGGREGATORS },
	{ "agreed", no_argument, NULL, OPT_AGREED },
	{ "binary", no_argument, NULL, OPT_BINARY },
	{ NULL, 0, NULL, 0 },
};

static const char *coll_name(unsigned int i)
{
	return i + 1 < ZCOLL_NR_COLLECTIVES ? zcoll_collective_name(i + 1) : NULL;
}

/* A name that is not one of a list */
static int unknown(const char *what, const char *word, const char *(*name)(unsigned int))
{
	const char *near = suggest(word, name), *each;
	char list[256] = "";
	unsigned int i;

	if (near)
		return usage("no %s '%s'; did you mean '%s'?", what, word, near);
	for (i = 0; (each = name(i)); i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			 i ? ", " : "", each);
	return usage("no %s '%s'; there are %s", what, word, list);
}

/* "4,8" or "4x8": group sizes, innermost first */
static int set_levels(struct zcoll_plan_spec *spec)
{
	char text[64], *rest = text, *item;
	uint64_t value;
	size_t i = 0;

	if (strlen(optarg) < sizeof(text)) {
		strcpy(text, optarg);
		memset(spec->levels, 0, sizeof(spec->levels));
		while ((item = strsep(&rest, ",x")) && i < ZCOLL_PLAN_LEVELS &&
		       !parse_uint(item, 1, ZCOLL_PLAN_MAX_NODES, &value))
			spec->levels[i++] = (uint32_t)value;
		if (!item)
			return STATUS_OK;
	}
	return usage("--levels %s: not up to %d group sizes such as 4,8", optarg,
		     ZCOLL_PLAN_LEVELS);
}

static int set_option(struct zcoll_plan_spec *spec, int opt, bool *binary)
{
	switch (opt) {
	case 'N':
		return plan_number("-N", 1, ZCOLL_PLAN_MAX_NODES, &spec->nodes);
	case OPT_COLL:
		if (zcoll_collective_parse(optarg, &spec->collective))
			return unknown("collective", optarg, coll_name);
		return STATUS_OK;
	case OPT_RADIX:
		return plan_number("--radix", 2, ZCOLL_PLAN_MAX_NODES, &spec->radix);
	case OPT_LEVELS:
		return set_levels(spec);
	case OPT_AGGREGATORS:
		return plan_number("--aggregators", 1, ZCOLL_PLAN_MAX_NODES, &spec->aggregators);
	case OPT_AGREED:
		spec->flags |= ZCOLL_PLAN_AGREED;
		return STATUS_OK;
	case OPT_BINARY:
		*binary = true;
		return STATUS_OK;
	}
	return usage_option();
}

static bool is_algorithm(const char *name)
{
	const char *algo;
	unsigned int i;

	for (i = 0; (algo = zcoll_plan_algorithm(i)); i++)
		if (!strcmp(algo, name))
			return true;
	return false;
}

static int check_spec(struct zcoll_plan_spec *spec, int argc, char **argv, bool binary)
{
	if (optind >= argc)
		return usage("which algorithm?");
	spec->algo = argv[optind];
	if (optind + 1 < argc)
		return usage("unexpected argument '%s'", argv[optind + 1]);
	if (!is_algorithm(spec->algo))
		return unknown("algorithm", spec->algo, zcoll_plan_algorithm);
	if (!spec->nodes)
		return usage("-N is missing: for how many nodes?");
	if (binary && isatty(STDOUT_FILENO))
		return usage("--binary would not be readable on a terminal; redirect it");
	return STATUS_OK;
}

int plan_write(const struct zcoll_plan *plan)
{
	char *text = zcoll_plan_format(plan);

	if (!text)
		return failed("out of memory");
	fputs(text, stdout);
	free(text);
	return STATUS_OK;
}

int plan_make(int argc, char **argv)
{
	struct zcoll_plan_spec spec = { .size = sizeof(spec), .collective = ZCOLL_ALLREDUCE };
	char error[ZCOLL_TEXT_MAX] = "";
	struct zcoll_plan *plan;
	bool binary = false;
	int opt, status;

	while ((opt = getopt_long(argc, argv, "N:", options, NULL)) != -1) {
		status = set_option(&spec, opt, &binary);
		if (status)
			return status;
	}
	status = check_spec(&spec, argc, argv, binary);
	if (status)
		return status;
	if (zcoll_plan_make(&spec, &plan, error, sizeof(error)))
		return failed("%s", error);
	if (binary)
		fwrite(plan, plan->size, 1, stdout);
	else
		status = plan_write(plan);
	zcoll_plan_free(plan);
	return status;
}
