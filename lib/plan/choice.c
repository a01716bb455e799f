// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Choices as text; see choice.h.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choice.h"

/* The library's own string of that name, NULL: there is no such algorithm */
const char *zc_choice_algorithm(const char *name, size_t len)
{
	const char *known;
	unsigned int i;

	for (i = 0; (known = zcoll_plan_algorithm(i)); i++)
		if (strlen(known) == len && !strncmp(known, name, len))
			return known;
	return NULL;
}

/* A number at @*at, which is moved behind it; false: there is none from @min to @max */
static int take_number(const char **at, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return 0;
	errno = 0;
	*value = strtoull(*at, &end, 10);
	*at = end;
	return !errno && *value >= min && *value <= max;
}

static int take_size(const char **at, uint64_t max, uint64_t *value)
{
	uint64_t unit = 1;

	if (!take_number(at, 1, max, value))
		return 0;
	if (**at == 'K')
		unit = 1 << 10;
	else if (**at == 'M')
		unit = 1 << 20;
	*at += unit > 1;
	*value *= unit;
	return *value <= max;
}

static int take_levels(const char **at, uint32_t *levels)
{
	uint64_t value;
	unsigned int i;

	for (i = 0; i < ZCOLL_PLAN_LEVELS; i++) {
		if (!take_number(at, 1, ZCOLL_PLAN_MAX_NODES, &value))
			return 0;
		levels[i] = value;
		if (**at != 'x')
			return 1;
		++*at;
	}
	return 0;
}

/* ---- settings ---- */

static int take_radix(const char **at, struct zc_choice *choice)
{
	uint64_t value = 0;
	int good = take_number(at, ZC_RADIX_MIN, ZCOLL_PLAN_MAX_NODES, &value);

	choice->radix = value;
	return good;
}

static int take_groups(const char **at, struct zc_choice *choice)
{
	return take_levels(at, choice->levels);
}

static int take_aggregators(const char **at, struct zc_choice *choice)
{
	uint64_t value = 0;
	int good = take_number(at, 1, ZCOLL_PLAN_MAX_NODES, &value);

	choice->aggregators = value;
	return good;
}

static int take_slice(const char **at, struct zc_choice *choice)
{
	return take_size(at, ZC_SLICE_MAX, &choice->slice);
}

static const struct {
	const char *key;	/* with the = */
	int (*take)(const char **at, struct zc_choice *choice);
	const char *form;	/* what it should be */
} settings[] = {
	{ "radix=", take_radix, "radix=N, from 2 to 65536" },
	{ "levels=", take_groups,
	  "levels=AxB..., such as levels=4x3, up to 4 numbers from 1 to 65536" },
	{ "aggregators=", take_aggregators, "aggregators=N, from 1 to 65536" },
	{ "slice=", take_slice, "slice=BYTES, from 1 to 1024M" },
};

/* One KEY=VALUE at @*at, which is moved behind it. Return: what it should be, NULL: it is. */
static const char *take_setting(const char **at, struct zc_choice *choice)
{
	size_t len;
	unsigned int i;

	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		len = strlen(settings[i].key);
		if (strncmp(*at, settings[i].key, len))
			continue;
		*at += len;
		return settings[i].take(at, choice) && (**at == ',' || **at == '\0') ?
		       NULL : settings[i].form;
	}
	return "radix=N, levels=AxB... (such as levels=4x3), aggregators=N or slice=BYTES";
}

static int unknown_algorithm(const char *text, size_t len, char *error, size_t error_len)
{
	size_t used;
	unsigned int i;

	snprintf(error, error_len, "no algorithm \"%.*s\"; there are:", len > 40 ? 40 : (int)len,
		 text);
	for (i = 0; zcoll_plan_algorithm(i); i++) {
		used = strlen(error);
		snprintf(error + used, error_len - used, " %s", zcoll_plan_algorithm(i));
	}
	return -EINVAL;
}

/**
 * zc_choice_parse - a choice from its text
 * @text: text
 * @choice: what it says
 * @error: text of an error
 * @error_len: its size, at least 1
 *
 * Return: 0 or -EINVAL, with a text.
 */
int zc_choice_parse(const char *text, struct zc_choice *choice, char *error, size_t error_len)
{
	size_t len = strcspn(text, ":");
	const char *at = text + len, *setting, *form;

	*choice = (struct zc_choice){ .algo = zc_choice_algorithm(text, len) };
	if (!choice->algo)
		return unknown_algorithm(text, len, error, error_len);
	while (*at) {
		setting = ++at;
		form = take_setting(&at, choice);
		if (!form)
			continue;
		snprintf(error, error_len, "\"%.40s\": should be %s", setting, form);
		return -EINVAL;
	}
	return 0;
}

/**
 * zcoll_plan_choice_text - a candidate as the text that asks for it
 * @candidate: candidate
 * @text: "ALGORITHM:radix=N,levels=AxB,slice=BYTES"
 * @len: its size; ZCOLL_TEXT_MAX always suffices
 *
 * Return: 0, or -ENOSPC if it did not fit.
 */
int zcoll_plan_choice_text(const struct zcoll_plan_candidate *candidate, char *text,
			   size_t len)
{
	const struct zcoll_plan_spec *spec = &candidate->spec;
	char all[ZCOLL_TEXT_MAX];
	int used = snprintf(all, sizeof(all), "%s", spec->algo);
	const char *sep = ":";
	unsigned int i;

	if (spec->radix) {
		used += snprintf(all + used, sizeof(all) - used, "%sradix=%u", sep, spec->radix);
		sep = ",";
	}
	for (i = 0; i < ZCOLL_PLAN_LEVELS && spec->levels[i]; i++)
		used += snprintf(all + used, sizeof(all) - used, "%s%s%u", i ? "x" : sep,
				 i ? "" : "levels=", spec->levels[i]);
	if (i)
		sep = ",";
	if (spec->aggregators) {
		used += snprintf(all + used, sizeof(all) - used, "%saggregators=%u", sep,
				 spec->aggregators);
		sep = ",";
	}
	if (candidate->slice)
		used += snprintf(all + used, sizeof(all) - used, "%sslice=%" PRIu64, sep,
				 candidate->slice);
	if ((size_t)used >= len)
		return -ENOSPC;
	memcpy(text, all, used + 1);
	return 0;
}
