// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * PMIx as the exchange.
 *
 * A round: each rank puts its record under a key that names communicator and round,
 * then all meet in a fence, and get the others' records. A record begins with an errno:
 * if it is not 0, the rank has failed, and the rest is its text.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "pmix.h"

#define ASK_NS	1000000000ULL	/* for ranks to answer whether they are there */

/* One call that asks for a rank's record */
struct question {
	struct calls *calls;
	unsigned int rank;
};

struct record {
	uint32_t err;		/* positive errno, little-endian */
	char data[ZC_RECORD_MAX];	/* or the text */
};

struct exchange {
	struct zc_exchange x;
	struct pmix pmix;
};

static void make_key(pmix_key_t key, const struct zc_exchange *x)
{
	uint8_t name[16];
	int at;

	zc_key_name(name, x->attr->key);	/* others may read it there */
	at = snprintf(key, sizeof(pmix_key_t), "zcoll.%u.", x->round);
	for (int i = 0; i < 16; i++)
		at += snprintf(key + at, sizeof(pmix_key_t) - at, "%02x", name[i]);
}

static int put(struct exchange *e, const struct record *record, size_t len)
{
	pmix_value_t value = { .type = PMIX_BYTE_OBJECT };
	pmix_status_t rc;
	pmix_key_t key;

	make_key(key, &e->x);
	value.data.bo.bytes = (char *)record;
	value.data.bo.size = sizeof(record->err) + len;
	rc = e->pmix.put(PMIX_GLOBAL, key, &value);
	if (rc == PMIX_SUCCESS)
		rc = e->pmix.commit();
	return rc == PMIX_SUCCESS ? 0 : zc_pmix_fail(e->x.attr, &e->pmix, "put", rc);
}

static void answered(pmix_status_t rc, pmix_value_t *value, void *arg)
{
	struct question *q = arg;

	(void)value;		/* is the library's */
	pthread_mutex_lock(&q->calls->lock);
	q->calls->there[q->rank] = rc == PMIX_SUCCESS;
	pthread_mutex_unlock(&q->calls->lock);
	zc_calls_back(q->calls, rc);
	free(q);
}

static bool ask(struct exchange *e, struct calls *calls, const char *key, unsigned int rank)
{
	struct question *q = malloc(sizeof(*q));
	pmix_proc_t proc = e->pmix.me;

	if (!q)
		return false;
	*q = (struct question){ .calls = calls, .rank = rank };
	proc.rank = rank;
	if (e->pmix.get_nb(&proc, key, NULL, 0, answered, q) == PMIX_SUCCESS)
		return true;
	free(q);
	return false;
}

/* The time is over: find out who has put a record */
static int expired(struct exchange *e)
{
	struct calls *calls = zc_calls_new(e->x.n - 1, e->x.n);
	pmix_key_t key;
	char text[ZCOLL_TEXT_MAX];

	if (!calls)
		return zc_exchange_error(&e->x, -ETIMEDOUT, "ranks are missing");
	make_key(key, &e->x);
	calls->there[e->x.me] = true;
	for (unsigned int r = 0; r < e->x.n; r++)
		if (r != e->x.me && !ask(e, calls, key, r))
			zc_calls_back(calls, PMIX_ERROR);
	zc_calls_wait(calls, zc_after(ASK_NS));
	zc_missing_text(text, sizeof(text), &e->x, calls->there, e->x.attr->join_timeout_ns);
	zc_calls_drop(calls);
	return zc_text(e->x.attr->error, e->x.attr->error_len, -ETIMEDOUT, "%s", text);
}

static void fenced(pmix_status_t rc, void *arg)
{
	zc_calls_back(arg, rc);
}

static int fence(struct exchange *e)
{
	pmix_info_t collect = { .key = PMIX_COLLECT_DATA };
	pmix_proc_t all = e->pmix.me;
	struct calls *calls = zc_calls_new(1, 0);
	pmix_status_t rc;
	bool back;

	if (!calls)
		return zc_exchange_error(&e->x, -ENOMEM, "no memory for the exchange");
	collect.value.type = PMIX_BOOL;
	collect.value.data.flag = true;
	all.rank = PMIX_RANK_WILDCARD;
	rc = e->pmix.fence_nb(&all, 1, &collect, 1, fenced, calls);
	if (rc != PMIX_SUCCESS)
		zc_calls_back(calls, rc);
	back = zc_calls_wait(calls, e->x.end);
	rc = calls->rc;
	zc_calls_drop(calls);
	if (!back)
		return expired(e);
	return rc == PMIX_SUCCESS ? 0 : zc_pmix_fail(e->x.attr, &e->pmix, "fence", rc);
}

/* Take the record of a rank from what the server gave */
static int take(struct exchange *e, const pmix_value_t *value, uint8_t *to, size_t size)
{
	size_t len = value->data.bo.size;
	struct record record = { 0 };

	if (value->type != PMIX_BYTE_OBJECT || len < sizeof(record.err) || len > sizeof(record))
		return zc_pmix_fail(e->x.attr, &e->pmix, "a rank's record", PMIX_ERR_TYPE_MISMATCH);
	memcpy(&record, value->data.bo.bytes, len);
	len -= sizeof(record.err);
	if (record.err)
		return zc_text(e->x.attr->error, e->x.attr->error_len, -(int)le32toh(record.err),
			       "%.*s", (int)len, record.data);
	if (len > size)
		return zc_pmix_fail(e->x.attr, &e->pmix, "a rank's record", PMIX_ERR_TYPE_MISMATCH);
	memcpy(to, record.data, len);
	return 0;
}

static int get_all(struct exchange *e, uint8_t *all, size_t size)
{
	pmix_proc_t proc = e->pmix.me;
	pmix_value_t *value;
	pmix_status_t rc;
	pmix_key_t key;
	int ret = 0;

	make_key(key, &e->x);
	for (proc.rank = 0; !ret && proc.rank < e->x.n; proc.rank++, all += size) {
		rc = e->pmix.get(&proc, key, NULL, 0, &value);
		if (rc != PMIX_SUCCESS)
			return zc_pmix_fail(e->x.attr, &e->pmix, "get", rc);
		ret = take(e, value, all, size);
		if (value->type == PMIX_BYTE_OBJECT)
			free(value->data.bo.bytes);
		free(value);
	}
	return ret;
}

static int gather(struct zc_exchange *x, const void *data, size_t len, uint8_t *all, size_t size)
{
	struct exchange *e = (struct exchange *)x;
	struct record record = { 0 };
	int ret;

	memcpy(record.data, data, len);
	ret = put(e, &record, len);
	if (!ret)
		ret = fence(e);
	return ret ? ret : get_all(e, all, size);
}

/* As the record of the round that the others are in, or come to */
static void tell_failure(struct zc_exchange *x, int err, const char *text)
{
	struct exchange *e = (struct exchange *)x;
	struct record record = { .err = htole32(-err) };
	char own[ZCOLL_TEXT_MAX];
	size_t len = strnlen(text, sizeof(record.data));

	snprintf(own, sizeof(own), "%s", x->attr->error);
	memcpy(record.data, text, len);
	x->round++;
	if (!put(e, &record, len))
		fence(e);
	snprintf(x->attr->error, x->attr->error_len, "%s", own);
}

static void end(struct zc_exchange *x)
{
	struct exchange *e = (struct exchange *)x;

	e->pmix.finalize(NULL, 0);
	free(e);
}

static const struct zc_exchange_kind pmix_server = {
	.gather = gather, .fail = tell_failure, .close = end,
};

/**
 * zc_pmix_open - exchange through the launcher's PMIx server
 * @x: output
 * @attr: attr: the ranks are all of the job
 * @me: number of this participant, a rank
 */
int zc_pmix_open(struct zc_exchange **x, const struct zcoll_attr *attr, unsigned int me)
{
	struct exchange *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return zc_text(attr->error, attr->error_len, -ENOMEM, "no memory for the exchange");
	e->x = (struct zc_exchange){
		.kind = &pmix_server, .attr = attr, .me = me, .n = attr->nranks,
		.end = zc_after(attr->join_timeout_ns),
	};
	ret = zc_pmix_begin(&e->pmix, attr);
	if (ret) {
		free(e);
		return ret;
	}
	*x = &e->x;
	return 0;
}
