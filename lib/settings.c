// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Settings: what the environment asks of the library, whoever has started it. All are looked at
 * when a communicator is made, also those that will not be needed, as the plans on one node: a
 * wrong value is told at once, and on all ranks. But for devices, rails and interfaces, which must
 * be there only where they are used; and for what zcoll_attr_from_env() reads, which checks it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/store.h"
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
	const char *value = zc_env(name);
	char list[80];

	if (!value)
		return otherwise;
	for (int i = 0; words[i]; i++)
		if (!strcmp(value, words[i]))
			return i;
	list_words(list, sizeof(list), words);
	return zc_text(text, len, -EINVAL, "%s=%.80s: must be %s", name, value, list);
}

const char *zc_fabric(const char *asked)
{
	return asked ?: zc_env("ZCOLL_FABRIC") ?: "rdma";
}

/* Rails are the module's to know */
static int check_fabric(const struct zcoll_attr *attr)
{
	static const char *const kinds[] = { "rdma", "loop" };
	const char *fabric = zc_fabric(attr->fabric);
	size_t n = strcspn(fabric, ":");

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i]) == n && !memcmp(kinds[i], fabric, n))
			return 0;
	return zc_text(attr->error, attr->error_len, -EINVAL,
		       "%s%.80s: must be rdma, rdma:RAIL,... or loop",
		       attr->fabric ? "fabric " : "ZCOLL_FABRIC=", fabric);
}

/* Where copies begin to be more work than a call of the kernel depends on the machine */
static int get_mail_bytes(struct zc_settings *settings, const struct zcoll_attr *attr)
{
	const char *value = zc_env("ZCOLL_MAIL_BYTES");
	unsigned long n = ZC_MAIL_BYTES;
	char *end = "";

	if (value)
		n = strtoul(value, &end, 10);
	if ((value && !isdigit((unsigned char)*value)) || *end || n > ZC_MAIL_BYTES)
		return zc_text(attr->error, attr->error_len, -EINVAL,
			       "ZCOLL_MAIL_BYTES=%.80s: must be 0 to %u", value, ZC_MAIL_BYTES);
	settings->mail_bytes = n;
	return 0;
}

/* Callers that let the ranks meet have no store */
static int check_store(const struct zcoll_attr *attr)
{
	return attr->exchange == ZCOLL_EXCHANGE_GATHER ? 0 : zc_store_check(attr);
}

static int check_plans(const struct zcoll_attr *attr)
{
	char why[ZCOLL_TEXT_MAX];
	int ret = zc_plan_environment(why, sizeof(why));

	return ret ? zc_text(attr->error, attr->error_len, ret, "%s", why) : 0;
}

/**
 * zc_settings_get - read the settings of a communicator
 * @settings: output
 * @attr: what the caller asks for, and where an error text goes
 *
 * Return: 0 or a negative errno, with a text.
 */
int zc_settings_get(struct zc_settings *settings, const struct zcoll_attr *attr)
{
	static const char *const bits[] = { "0", "1", NULL };
	int ret = zc_setting("ZCOLL_MAILBOX", bits, 1, attr->error, attr->error_len);

	if (ret < 0)
		return ret;
	settings->mailbox = ret;
	ret = get_mail_bytes(settings, attr);
	if (!ret)
		ret = check_fabric(attr);
	if (!ret)
		ret = check_store(attr);
	return ret ? ret : check_plans(attr);
}
