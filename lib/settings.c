// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Settings: what the environment asks of the library, whoever has started it. All are looked at
 * when a communicator is made, also those that will not be needed, as the plans on one node: a
 * wrong value is told at once, and on all ranks. But for what only other nodes need, the rails and
 * where to meet, which is looked at when there are some.
 *
 * A variable that is empty is as good as none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "plan/choice.h"

/* "0, 1 or all" */
static void list_words(char *list, size_t len, const char *const words[])
{
	size_t at = 0;

	for (unsigned int i = 0; words[i] && at < len; i++)
		at += snprintf(list + at, len - at, "%s%s",
			       !i ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

/**
 * zc_setting - a variable that is one of some words
 * @name: its name
 * @words: what it can be, ended by NULL
 * @otherwise: what it is if it is not set
 * @text: buffer for an error text, or NULL
 * @len: its size
 *
 * Return: the number of the word, or -EINVAL, with a text.
 */
int zc_setting(const char *name, const char *const words[], int otherwise, char *text, size_t len)
{
	const char *value = getenv(name);
	char list[80];

	if (!value || !*value)
		return otherwise;
	for (int i = 0; words[i]; i++)
		if (!strcmp(value, words[i]))
			return i;
	list_words(list, sizeof(list), words);
	return zc_text(text, len, -EINVAL, "%s=%.80s: must be %s", name, value, list);
}

const char *zc_fabric(const char *asked)
{
	const char *env = getenv("ZCOLL_FABRIC");

	if (asked)
		return asked;
	return env && *env ? env : "rdma";
}

/* Rails are the module's to know */
static int check_fabric(const char *asked, char *text, size_t len)
{
	static const char *const kinds[] = { "rdma", "loop" };
	const char *fabric = zc_fabric(asked);
	size_t n = strcspn(fabric, ":");

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i]) == n && !memcmp(kinds[i], fabric, n))
			return 0;
	return zc_text(text, len, -EINVAL, "%s%.80s: must be rdma, rdma:RAIL,... or loop",
		       asked ? "fabric " : "ZCOLL_FABRIC=", fabric);
}

/**
 * zc_settings_get - read the settings of a communicator
 * @settings: output
 * @fabric: the fabric that the caller asks for, or NULL
 * @text: buffer for an error text, or NULL
 * @len: its size
 *
 * Return: 0 or a negative errno, with a text.
 */
int zc_settings_get(struct zc_settings *settings, const char *fabric, char *text, size_t len)
{
	static const char *const bits[] = { "0", "1", NULL };
	char why[ZCOLL_TEXT_MAX];
	int ret = zc_setting("ZCOLL_MAILBOX", bits, 1, text, len);

	if (ret < 0)
		return ret;
	settings->mailbox = ret;
	ret = check_fabric(fabric, text, len);
	if (ret)
		return ret;
	ret = zc_plan_environment(why, sizeof(why));
	return ret ? zc_text(text, len, ret, "%s", why) : 0;
}
