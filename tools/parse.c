// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Numbers, sizes and times as people write them; see parse.h.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <linux/zcoll.h>

#include "parse.h"

/* strtoull() would skip blanks, and take "-1" as a huge number */
static int leading_uint(const char *text, const char **end, uint64_t *value)
{
	char *stop;

	if (!isdigit((unsigned char)text[0]))
		return -1;
	errno = 0;
	*value = strtoull(text, &stop, 10);
	*end = stop;
	return errno ? -1 : 0;
}

int parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *end;
	uint64_t v;

	if (leading_uint(text, &end, &v) || *end || v < min || v > max)
		return -1;
	*value = v;
	return 0;
}

int parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *end, *unit;
	uint64_t v;

	if (leading_uint(text, &end, &v))
		return -1;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit)
			return -1;
		if (__builtin_mul_overflow(v, 1ULL << 10 * (unit - units + 1), &v))
			return -1;
		if (end[1] && strcasecmp(end + 1, "iB") && strcasecmp(end + 1, "B"))
			return -1;
	}
	*bytes = v;
	return 0;
}

int parse_duration(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {
		{ "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 }, { "ns", 1 },
		{ "m", 60e9 }, { "h", 3600e9 },
	};
	char *end;
	double v;
	size_t i;

	/* not what strtod() also takes: signs, "inf", "nan", "0x10" */
	if (!isdigit((unsigned char)text[0]) || (text[0] == '0' && tolower(text[1]) == 'x'))
		return -1;
	v = strtod(text, &end);
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name))
			continue;
		v = rint(v * units[i].ns);
		if (v >= 0x1p63)
			return -1;
		*ns = (uint64_t)v;
		return 0;
	}
	return -1;
}

int parse_deadline(const char *text, uint64_t *ns)
{
	uint64_t v;

	if (parse_duration(text, &v) || v > ZCOLL_MAX_DEADLINE_NS)
		return -1;
	*ns = v;
	return 0;
}
