// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Caller: a participant that gets its records from the store of rank 0; see store.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caller.h"

#define ANSWER_NS	2000000000ULL	/* for the store to say who is missing, or heard */

/* The time is over: ask the store who is missing, which ends it for all */
static int expire(struct caller *c)
{
	struct frame frame;
	uint64_t end = zc_after(ANSWER_NS);

	frame.expired.timeout_ns = htole64(c->x.attr->join_timeout_ns);
	return zc_send_frame(c->fd, &frame, FRAME_EXPIRED, sizeof(frame.expired), end);
}

/* Head of the store's answer, though it may be the answer to "who is missing?" */
static int recv_head(struct caller *c, struct frame_head *head, uint64_t *end)
{
	int ret = zc_recv_all(c->fd, head, sizeof(*head), *end);

	if (ret != -ETIMEDOUT)
		return ret;
	*end = zc_after(ANSWER_NS);
	ret = expire(c);
	return ret ? ret : zc_recv_all(c->fd, head, sizeof(*head), *end);
}

/* FRAME_RESULT is in c->result, @len bytes of it: spread it */
static int spread(struct caller *c, size_t len, uint8_t *all, size_t size)
{
	size_t at = sizeof(uint32_t);
	uint32_t round;
	uint16_t one;

	memcpy(&round, c->result, at);
	if (le32toh(round) != c->x.round)
		return -EPROTO;
	for (unsigned int p = 0; p < c->x.n; p++, all += size) {
		if (len - at < sizeof(one))
			return -EPROTO;
		memcpy(&one, c->result + at, sizeof(one));
		one = le16toh(one);
		at += sizeof(one);
		if (one > size || one > len - at)
			return -EPROTO;
		memcpy(all, c->result + at, one);
		at += one;
	}
	return at == len ? 0 : -EPROTO;
}

static int lost(const struct caller *c, int err)
{
	char name[PLACE_NAME];

	zc_store_place_name(name, sizeof(name), &c->place);
	if (err == -ETIMEDOUT)
		return zc_exchange_error(&c->x, err, "rank 0's store at %s did not answer in %g s",
					 name, c->x.attr->join_timeout_ns / 1e9);
	if (err == -EPROTO)
		return zc_exchange_error(&c->x, err, "rank 0's store sent what it should not");
	return zc_exchange_error(&c->x, -EOWNERDEAD,
				 "rank 0 has gone, while the communicator was made");
}

static int recv_fail(struct caller *c, size_t len, uint64_t end)
{
	struct frame_fail fail;
	int ret = len > sizeof(fail) ? -EPROTO : zc_recv_all(c->fd, &fail, len, end);

	return ret ? lost(c, ret) : zc_read_fail(&c->x, &fail, len);
}

static int gather(struct zc_exchange *x, const void *record, size_t len, uint8_t *all,
		  size_t size)
{
	struct caller *c = (struct caller *)x;
	struct frame_head head;
	struct frame frame;
	uint64_t end = x->end;
	int ret;

	frame.record.round = htole32(x->round);
	memcpy(frame.record.record, record, len);
	/* A store that has failed may read no more, but its reason is there to be read */
	zc_send_frame(c->fd, &frame, FRAME_RECORD, sizeof(frame.record.round) + len, end);
	ret = recv_head(c, &head, &end);
	if (ret)
		return lost(c, ret);
	len = le32toh(head.len);
	if (head.type == htole32(FRAME_FAIL))
		return recv_fail(c, len, end);
	if (head.type != htole32(FRAME_RESULT) || len < sizeof(uint32_t) || len > RESULT_MAX(x->n))
		return lost(c, -EPROTO);
	ret = zc_recv_all(c->fd, c->result, len, end);
	if (!ret)
		ret = spread(c, len, all, size);
	return ret ? lost(c, ret) : 0;
}

static void tell_failure(struct zc_exchange *x, int err, const char *text)
{
	struct caller *c = (struct caller *)x;
	uint64_t end = zc_after(ANSWER_NS);
	struct frame frame;
	size_t len = zc_frame_fail(&frame, err, text);

	/* Then wait until it is heard: the store tells all, us too */
	if (!zc_send_all(c->fd, &frame, len, end))
		zc_recv_frame(c->fd, &frame, FRAME_FAIL, len - sizeof(frame.head), end);
}

static unsigned int keep(struct zc_exchange *x, int *fds)
{
	struct caller *c = (struct caller *)x;

	if (x->me < x->attr->nranks)
		return 0;
	fds[0] = c->fd;
	c->fd = -1;
	return 1;
}

static void hang_up(struct zc_exchange *x)
{
	struct caller *c = (struct caller *)x;

	if (c->fd >= 0)
		close(c->fd);
	free(c->result);
	free(c);
}

static const struct zc_exchange_kind caller = {
	.gather = gather, .fail = tell_failure, .keep = keep, .close = hang_up,
};

/**
 * zc_store_call - take part in the store of rank 0
 * @x: output
 * @attr: attr
 * @me: number of this participant, not 0
 */
int zc_store_call(struct zc_exchange **x, const struct zcoll_attr *attr, unsigned int me)
{
	struct caller *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return zc_text(attr->error, attr->error_len, -ENOMEM, "no memory for the store");
	c->x = (struct zc_exchange){
		.kind = &caller, .attr = attr, .me = me, .n = attr->nranks + attr->aggregators,
		.end = zc_after(attr->join_timeout_ns),
	};
	c->fd = -1;
	c->result = malloc(RESULT_MAX(c->x.n));
	ret = c->result ? zc_caller_meet(c) :
			  zc_exchange_error(&c->x, -ENOMEM, "no memory for the store");
	if (ret) {
		hang_up(&c->x);
		return ret;
	}
	*x = &c->x;
	return 0;
}
