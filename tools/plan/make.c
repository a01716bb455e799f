// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll plan make: a plan of an algorithm, to standard output.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cmd.h"
#include "../msg.h"
#include "options.h"
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

static int set_option(struct zcoll_plan_spec *spec, int opt, bool *binary)
{
	switch (opt) {
	case 'N':
		return plan_number("-N", 1, ZCOLL_PLAN_MAX_NODES, &spec->nodes);
	case OPT_COLL:
		return plan_set_collective(optarg, &spec->collective);
	case OPT_RADIX:
		return plan_number("--radix", 2, ZCOLL_PLAN_MAX_NODES, &spec->radix);
	case OPT_LEVELS:
		return plan_set_levels(optarg, spec->levels);
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

static int check_spec(struct zcoll_plan_spec *spec, int argc, char **argv, bool binary)
{
	if (optind >= argc)
		return usage("which algorithm?");
	if (optind + 1 < argc)
		return usage("unexpected argument '%s'", argv[optind + 1]);
	if (plan_set_algorithm(argv[optind], &spec->algo))
		return STATUS_USAGE;
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
