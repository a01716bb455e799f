// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What zcoll plan reads: numbers of options, and plans.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"
#include "plan.h"

/* More than any plan has: that it is too long is then said by the library */
#define MAX_BYTES ((1 << 20) + 1)

static int parse(const char *path, const char *text, size_t len, struct zcoll_plan **plan)
{
	char error[ZCOLL_TEXT_MAX] = "";

	if (zcoll_plan_parse(text, len, plan, error, sizeof(error)))
		return failed("%s: %s", path, error);
	return STATUS_OK;
}

static int parse_file(const char *path, FILE *in, struct zcoll_plan **plan)
{
	char *text = malloc(MAX_BYTES);
	size_t len;
	int status;

	if (!text)
		return failed("out of memory");
	len = fread(text, 1, MAX_BYTES, in);
	if (ferror(in))
		status = failed("%s: %s", path, strerror(errno));
	else
		status = parse(path, text, len, plan);
	free(text);
	return status;
}

int plan_read(const char *path, struct zcoll_plan **plan)
{
	FILE *in;
	int status;

	if (!strcmp(path, "-"))
		return parse_file("standard input", stdin, plan);
	in = fopen(path, "r");
	if (!in)
		return failed("%s: %s", path, strerror(errno));
	status = parse_file(path, in, plan);
	fclose(in);
	return status;
}

int plan_number(const char *option, uint64_t min, uint64_t max, uint32_t *to)
{
	uint64_t value;

	if (parse_uint(optarg, min, max, &value))
		return usage("%s %s: not a number from %" PRIu64 " to %" PRIu64, option,
			     optarg, min, max);
	*to = (uint32_t)value;
	return STATUS_OK;
}

int plan_file_argument(int argc, char **argv, const char **path)
{
	if (optind >= argc)
		return usage("which plan? A file, or - for standard input");
	if (optind + 1 < argc)
		return usage("unexpected argument '%s'", argv[optind + 1]);
	*path = argv[optind];
	return STATUS_OK;
}
