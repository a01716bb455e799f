// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Exchange: which kind, and what they share; see exchange.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exchange.h"

#define LIST_AT_MOST	8	/* participants named in a text */

/**
 * zc_exchange_open - meet the other participants, or begin to
 * @out: output, for zc_exchange_close()
 * @attr: lives as long as the exchange; @attr->exchange says which kind
 * @me: number of this participant
 *
 * Return: 0 or a negative errno, with a text in @attr->error.
 */
int zc_exchange_open(struct zc_exchange **out, const struct zcoll_attr *attr, unsigned int me)
{
	struct zc_exchange *x;
	int ret;

	if (attr->exchange == ZCOLL_EXCHANGE_PMIX)
		ret = zc_pmix_open(&x, attr, me);
	else if (attr->exchange == ZCOLL_EXCHANGE_GATHER)
		ret = zc_gather_open(&x, attr, me);
	else if (me)
		ret = zc_store_call(&x, attr, me);
	else
		ret = zc_store_serve(&x, attr);
	if (!ret)
		*out = x;
	return ret;
}

/**
 * zc_exchange_gather - a round: give a record, get all
 * @x: the exchange
 * @record: this participant's
 * @len: its bytes, at most @size; participants may have different ones
 * @all: output: a place of @size bytes for each participant, filled up with zeroes
 * @size: the same for all participants, at most ZC_RECORD_MAX
 *
 * Return: 0, or the error of the participant that failed first, with its text, or
 * -ETIMEDOUT with the names of those that are missing.
 */
int zc_exchange_gather(struct zc_exchange *x, const void *record, size_t len, void *all,
		       size_t size)
{
	int ret;

	x->round++;
	memset(all, 0, x->n * size);
	ret = x->kind->gather(x, record, len, all, size);
	if (ret)
		x->failed = true;
	return ret;
}

/**
 * zc_exchange_fail - tell the others that this participant has failed
 * @x: the exchange; to be closed next
 * @err: negative errno; the text is in the attr's buffer. If it was the exchange that
 *	failed, they know
 */
void zc_exchange_fail(struct zc_exchange *x, int err)
{
	char text[ZCOLL_TEXT_MAX + 64], host[64] = "";

	if (x->failed)
		return;
	x->failed = true;
	gethostname(host, sizeof(host) - 1);
	snprintf(text, sizeof(text), "%s: %s", host, x->attr->error);
	x->kind->fail(x, err, text);
}

/**
 * zc_exchange_keep - keep the connections between rank 0 and aggregators
 * @x: the exchange, after its last round; to be closed next
 * @fds: output: as many as there are aggregators at rank 0, one at an aggregator
 *
 * Return: how many; 0 at other ranks, which have none.
 */
unsigned int zc_exchange_keep(struct zc_exchange *x, int *fds)
{
	return x->kind->keep ? x->kind->keep(x, fds) : 0;
}

void zc_exchange_close(struct zc_exchange *x)
{
	x->kind->close(x);
}

/* ------------------------------------------------------------------ in words */

/**
 * zc_exchange_error - put a text into the attr's buffer, after this participant's name
 * @x: the exchange
 * @err: what to return
 * @fmt: as printf()
 */
int zc_exchange_error(const struct zc_exchange *x, int err, const char *fmt, ...)
{
	char name[ZC_PARTICIPANT_NAME], text[ZCOLL_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	zc_participant_name(name, sizeof(name), x->attr, x->me);
	return zc_text(x->attr->error, x->attr->error_len, err, "%s: %s", name, text);
}

void zc_participant_name(char *name, size_t len, const struct zcoll_attr *attr, unsigned int p)
{
	if (p < attr->nranks)
		snprintf(name, len, "rank %u", p);
	else
		snprintf(name, len, "aggregator %u", p - attr->nranks);
}

/**
 * zc_missing_text - say who is missing when the time is over
 * @text: output
 * @len: its size in bytes
 * @x: the exchange
 * @there: of each participant: is it there?
 * @timeout_ns: the time that is over
 */
void zc_missing_text(char *text, size_t len, const struct zc_exchange *x, const bool *there,
		     uint64_t timeout_ns)
{
	char list[LIST_AT_MOST * (ZC_PARTICIPANT_NAME + 2)] = "", name[ZC_PARTICIPANT_NAME];
	unsigned int missing = 0;
	size_t at = 0;

	for (unsigned int p = 0; p < x->n; p++) {
		if (there[p] || missing++ >= LIST_AT_MOST)
			continue;
		zc_participant_name(name, sizeof(name), x->attr, p);
		at += snprintf(list + at, sizeof(list) - at, "%s%s", at ? ", " : "", name);
	}
	snprintf(text, len, "%u of %u %s joined in %g s, missing: %s", x->n - missing, x->n,
		 x->attr->aggregators ? "ranks and aggregators" : "ranks", timeout_ns / 1e9, list);
	if (missing > LIST_AT_MOST) {
		at = strlen(text);
		snprintf(text + at, len - at, ", ... (%u in all)", missing);
	}
}
