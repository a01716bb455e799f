// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Server: the store, in the thread of rank 0 that makes the communicator; see store.h.
 *
 * One loop, over epoll (turn.c), runs while rank 0 is in a round, until it has the
 * records that it waits for (receive.c), and then until all have been sent (guest.c).
 * What callers send meanwhile waits in the sockets.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "guest.h"

#define SPARE_FILES	64	/* that the rest of the program may open meanwhile */

static int has_failed(struct server *s)
{
	zc_store_tell_all(s);
	return zc_text(s->x.attr->error, s->x.attr->error_len, s->err, "%s", s->text);
}

static void put(struct server *s, const void *from, size_t len)
{
	memcpy(s->result + s->result_len, from, len);
	s->result_len += len;
}

static void put_record(struct server *s, const void *record, size_t len)
{
	uint16_t one = htole16(len);

	put(s, &one, sizeof(one));
	put(s, record, len);
}

/* Make FRAME_RESULT of the records of this round, of which ours is @record */
static int make_result(struct server *s, const void *record, size_t len)
{
	struct frame_head head = { .type = htole32(FRAME_RESULT) };
	size_t body = RESULT_MAX(0) + s->x.n * sizeof(uint16_t) + len;
	uint32_t round = htole32(s->x.round);

	for (unsigned int p = 1; p < s->x.n; p++)
		body += s->members[p]->record_len;
	free(s->result);
	s->result = malloc(sizeof(head) + body);
	s->result_len = 0;
	if (!s->result)
		return zc_store_no_memory(s);
	head.len = htole32(body);
	put(s, &head, sizeof(head));
	put(s, &round, sizeof(round));
	put_record(s, record, len);
	for (unsigned int p = 1; p < s->x.n; p++)
		put_record(s, s->members[p]->record, s->members[p]->record_len);
	return 0;
}

/* Send the result to all members; those that leave once they have it, may */
static void send_results(struct server *s)
{
	s->made = s->x.round;
	s->sending = s->x.n - 1;
	for (unsigned int p = 1; p < s->x.n; p++)
		s->members[p]->result_at = 0;
	for (unsigned int p = 1; p < s->x.n && !s->err; p++)
		zc_guest_send(s, s->members[p]);
	while (s->sending && !s->err && zc_left(s->x.end))
		zc_store_turn(s, s->x.end);
	if (s->sending && !s->err)
		zc_store_failed(s, -ETIMEDOUT, "rank 0: the time to join is over, and not all ranks have read the store");
}

static int gather(struct zc_exchange *x, const void *record, size_t len, uint8_t *all, size_t size)
{
	struct server *s = (struct server *)x;

	s->records = 1;
	for (unsigned int p = 1; p < x->n; p++) {
		s->records += s->members[p] && s->members[p]->round == x->round;
		if (!s->members[p] && s->listener < 0)
			zc_store_missed(s, p);
	}
	while (s->records < x->n && !s->err) {
		if (zc_left(x->end))
			zc_store_turn(s, x->end);
		else
			zc_store_expired(s, x->attr->join_timeout_ns);
	}
	if (!s->err && !make_result(s, record, len)) {
		memcpy(all, record, len);
		for (unsigned int p = 1; p < x->n; p++)
			if (s->members[p]->record_len <= size)
				memcpy(all + p * size, s->members[p]->record,
				       s->members[p]->record_len);
		send_results(s);
	}
	return s->err ? has_failed(s) : 0;
}

static void tell_failure(struct zc_exchange *x, int err, const char *text)
{
	struct server *s = (struct server *)x;

	zc_store_failed(s, err, text);
	zc_store_tell_all(s);
}

static unsigned int keep(struct zc_exchange *x, int *fds)
{
	struct server *s = (struct server *)x;
	unsigned int kept = 0;

	for (unsigned int p = x->attr->nranks; p < x->n; p++) {
		struct guest *g = s->members[p];

		if (!g || g->gone)
			continue;
		g->gone = true;		/* its connection is not ours any more */
		fds[kept++] = g->fd;
	}
	return kept;
}

static void shut(struct zc_exchange *x)
{
	struct server *s = (struct server *)x;

	zc_store_shut_door(s);
	for (struct guest *g = s->guests; g; g = g->next)
		if (!g->gone) {
			g->gone = true;
			close(g->fd);
		}
	zc_guests_free(s);
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->files.rlim_cur)
		setrlimit(RLIMIT_NOFILE, &s->files);
	free(s->result);
	free(s->members);
	free(s);
}

static const struct zc_exchange_kind server = {
	.gather = gather, .fail = tell_failure, .keep = keep, .close = shut,
};

/* ------------------------------------------------------------------- beginning */

/* A connection for each caller; the limit is as it was when the store is closed */
static int raise_file_limit(struct server *s)
{
	rlim_t need = s->x.n + STRANGERS_MAX + SPARE_FILES;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= need)
		return 0;
	if (limit.rlim_max < need)
		return zc_exchange_error(&s->x, -EMFILE, "the store needs %llu open files, and the hard limit is %llu: raise it (ulimit -Hn)",
					 (unsigned long long)need,
					 (unsigned long long)limit.rlim_max);
	s->files = limit;
	limit.rlim_cur = need;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

static int begin(struct server *s)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ret;

	ret = raise_file_limit(s);
	if (!ret)
		ret = zc_store_place(&s->place, s->x.attr);
	if (ret)
		return ret;
	s->members = calloc(s->x.n, sizeof(struct guest *));
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!s->members || s->epoll < 0)
		return zc_exchange_error(&s->x, -ENOMEM, "no memory for the store");
	s->listener = zc_store_listen(&s->place, s->x.attr);
	if (s->listener < 0)
		return s->listener;
	epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->listener, &ev);
	return 0;
}

/**
 * zc_store_serve - begin to serve the store, as rank 0
 * @x: output
 * @attr: attr
 */
int zc_store_serve(struct zc_exchange **x, const struct zcoll_attr *attr)
{
	struct server *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return zc_text(attr->error, attr->error_len, -ENOMEM, "rank 0: no memory for the store");
	s->x = (struct zc_exchange){
		.kind = &server, .attr = attr, .n = attr->nranks + attr->aggregators,
		.end = zc_after(attr->join_timeout_ns),
	};
	s->listener = -1;
	s->epoll = -1;
	s->here = 1;
	ret = begin(s);
	if (ret) {
		shut(&s->x);
		return ret;
	}
	*x = &s->x;
	return 0;
}
