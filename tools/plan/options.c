// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll plan and sim: what their subcommands share; see options.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"
#include "../suggest.h"
#include "options.h"

#define BYTES_MAX (1ULL << 50)
#define SLICE_MAX (1ULL << 30)

bool plan_wants_help(int argc, char **argv, const char *help)
{
	if (argc < 2 || (strcmp(argv[1], "--help") && strcmp(argv[1], "-h")))
		return false;
	fputs(help, stdout);
	return true;
}

static const char *collective_name(unsigned int i)
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

int plan_set_collective(const char *text, uint32_t *collective)
{
	if (zcoll_collective_parse(text, collective))
		return unknown("collective", text, collective_name);
	return STATUS_OK;
}

int plan_set_algorithm(const char *text, const char **algo)
{
	const char *name;
	unsigned int i;

	for (i = 0; (name = zcoll_plan_algorithm(i)); i++)
		if (!strcmp(name, text))
			break;
	if (!name)
		return unknown("algorithm", text, zcoll_plan_algorithm);
	*algo = name;
	return STATUS_OK;
}

/* "4,8" or "4x8": group sizes, innermost first */
int plan_set_levels(const char *text, uint32_t levels[ZCOLL_PLAN_LEVELS])
{
	char copy[64], *rest = copy, *item;
	uint64_t value;
	size_t i = 0;

	memset(levels, 0, ZCOLL_PLAN_LEVELS * sizeof(*levels));
	if (strlen(text) < sizeof(copy)) {
		strcpy(copy, text);
		while ((item = strsep(&rest, ",x")) && i < ZCOLL_PLAN_LEVELS &&
		       !parse_uint(item, 1, ZCOLL_PLAN_MAX_NODES, &value))
			levels[i++] = (uint32_t)value;
		if (!item)
			return STATUS_OK;
	}
	return usage("--levels %s: not up to %d group sizes such as 4,8", text,
		     ZCOLL_PLAN_LEVELS);
}

int plan_set_bytes(const char *option, const char *text, uint64_t *bytes)
{
	if (!parse_size(text, bytes) && *bytes <= BYTES_MAX)
		return 0;
	return usage("%s %s: not a size up to 1024T", option, text);
}

int plan_set_slice(const char *text, uint64_t *bytes)
{
	if (!parse_size(text, bytes) && *bytes && *bytes <= SLICE_MAX)
		return 0;
	return usage("--slice %s: not a size from 1 to 1G", text);
}

int plan_set_fabric(const char *text, struct zcoll_fabric *fabric)
{
	char error[ZCOLL_TEXT_MAX];

	return zcoll_fabric_get(text, fabric, error, sizeof(error)) ?
	       failed("--fabric: %s", error) : 0;
}

int plan_default_fabric(struct zcoll_fabric *fabric)
{
	const char *where = getenv("ZCOLL_COSTS");
	char error[ZCOLL_TEXT_MAX];

	zcoll_fabric_default(fabric);
	if (where && *where && zcoll_fabric_get(where, fabric, error, sizeof(error)))
		return failed("ZCOLL_COSTS: %s", error);
	return 0;
}

const char *plan_time(char *text, size_t len, double ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	unsigned int i;

	for (i = 0; ns >= 1000 && i < 3; i++)
		ns /= 1000;
	snprintf(text, len, ns < 10 ? "%.2f %s" : ns < 100 ? "%.1f %s" : "%.0f %s", ns, units[i]);
	return text;
}

int plan_print_json(json_t *root)
{
	int bad = !root || json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));

	json_decref(root);
	if (bad)
		return failed("out of memory");
	putchar('\n');
	return 0;
}
