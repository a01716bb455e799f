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

/* A number at @*at, which is moved behind it; false: there is none from 1 to @max */
static int take_number(const char **at, uint64_t max, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return 0;
	errno = 0;
	*value = strtoull(*at, &end, 10);
	*at = end;
	return !errno && *value >= 1 && *value <= max;
}

static int take_size(const char **at, uint64_t max, uint64_t *value)
{
	uint64_t unit = 1;

	if (!take_number(at, max, value))
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
		if (!take_number(at, ZCOLL_PLAN_MAX_NODES, &value))
			return 0;
		levels[i] = value;
		if (**at != 'x')
			return 1;
		++*at;
	}
	return 0;
}

/* One KEY=VALUE at @*at, which is moved behind it */
static int take_setting(const char **at, struct zc_choice *choice)
{
	size_t key = strcspn(*at, "=");
	const char *name = *at;
	uint64_t value = 0;
	int good = 0;

	*at += key + (name[key] == '=');
	if (key == 5 && !strncmp(name, "radix", key)) {
		good = take_number(at, ZCOLL_PLAN_MAX_NODES, &value);
		choice->radix = value;
	} else if (key == 11 && !strncmp(name, "aggregators", key)) {
		good = take_number(at, ZCOLL_PLAN_MAX_NODES, &value);
		choice->aggregators = value;
	} else if (key == 5 && !strncmp(name, "slice", key)) {
		good = take_size(at, ZC_SLICE_MAX, &choice->slice);
	} else if (key == 6 && !strncmp(name, "levels", key)) {
		good = take_levels(at, choice->levels);
	}
	return good && (**at == ',' || **at == '\0');
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
	const char *at = text + len, *setting;

	*choice = (struct zc_choice){ .algo = zc_choice_algorithm(text, len) };
	if (!choice->algo)
		return unknown_algorithm(text, len, error, error_len);
	while (*at) {
		setting = ++at;
		if (take_setting(&at, choice))
			continue;
		snprintf(error, error_len,
			 "\"%.40s\": should be radix=N, levels=AxB..., aggregators=N or slice=BYTES (at most %lluM)",
			 setting, ZC_SLICE_MAX >> 20);
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
