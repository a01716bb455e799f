// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll plan cost and select: what both share; see options.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"
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
	const char *where = getenv("ZCOLL_FABRIC");
	char error[ZCOLL_TEXT_MAX];

	zcoll_fabric_default(fabric);
	if (where && zcoll_fabric_get(where, fabric, error, sizeof(error)))
		return failed("ZCOLL_FABRIC: %s", error);
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
