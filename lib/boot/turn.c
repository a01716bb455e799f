// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The loop of the store: who comes in, who must go, and whose turn it is.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest.h"

#define LINGER_NS	3000000000ULL	/* for telling a failure to those that come late */
#define FLUSH_NS	1000000000ULL	/* for telling it to those that are there */

static void listen_to(struct server *s, bool more)
{
	struct epoll_event ev = { .events = more ? EPOLLIN : 0 };

	if (s->listener >= 0)
		epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->listener, &ev);
}

void zc_store_shut_door(struct server *s)
{
	if (s->listener >= 0)
		close(s->listener);
	s->listener = -1;
	for (struct guest *g = s->guests; g; g = g->next)
		if (g->state != IS_MEMBER)
			zc_guest_part(s, g);
}

static int welcome(struct server *s, int fd)
{
	struct guest *g = calloc(1, sizeof(*g));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = g };
	int on = 1;

	if (!g || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev)) {
		free(g);
		close(fd);
		return zc_store_no_memory(s);
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	g->fd = fd;
	g->end = zc_after(STRANGER_NS);
	g->next = s->guests;
	s->guests = g;
	s->strangers++;
	return 0;
}

static void accept_all(struct server *s)
{
	int fd;

	while (s->strangers < STRANGERS_MAX) {
		fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			       errno == ENOBUFS))
			zc_store_failf(s, -errno,
				       "rank 0: the store cannot take %u connections: %s",
				       s->x.n - 1, strerror(errno));
		if (fd < 0 || welcome(s, fd))
			return;
	}
	s->deaf = true;
	listen_to(s, false);	/* until some of them have proved themselves, or gone */
}

/* Strangers whose time is over go, sooner when others wait; returns when the next one's is */
static uint64_t drop_strangers(struct server *s)
{
	uint64_t next = ZCOLL_WAIT_FOREVER, early = s->deaf ? STRANGER_NS - CROWDED_NS : 0;

	for (struct guest *g = s->guests; s->strangers && g; g = g->next) {
		if (g->state == IS_MEMBER || g->gone)
			continue;
		if (!zc_left(g->end - early))
			zc_guest_part(s, g);
		else if (g->end - early < next)
			next = g->end - early;
	}
	return next;
}

static void hear_again(struct server *s)
{
	if (!s->deaf || s->strangers == STRANGERS_MAX)
		return;
	s->deaf = false;
	listen_to(s, true);
}

/* --------------------------------------------------------------------- the loop */

static void handle(struct server *s, const struct epoll_event *ev)
{
	struct guest *g = ev->data.ptr;

	if (!g) {
		accept_all(s);
		return;
	}
	if (!g->gone && ev->events & EPOLLOUT)
		zc_guest_send(s, g);
	if (!g->gone && ev->events & ~EPOLLOUT)
		zc_guest_receive(s, g);
}

/* One turn: wait for something to happen, but not after @end, and handle it */
void zc_store_turn(struct server *s, uint64_t end)
{
	struct epoll_event events[64];
	uint64_t left, stranger = drop_strangers(s);
	int n;

	left = zc_left(stranger < end ? stranger : end) / 1000000 + 1;
	hear_again(s);
	n = epoll_wait(s->epoll, events, ARRAY_SIZE(events), left < 60000 ? left : 60000);
	for (int i = 0; i < n; i++)
		handle(s, &events[i]);
	if (s->listener >= 0 && s->here == s->x.n)
		zc_store_shut_door(s);
	hear_again(s);
	zc_guests_free(s);
}

static bool has_to_send(const struct server *s)
{
	for (const struct guest *g = s->guests; g; g = g->next)
		if (g->state == IS_MEMBER && !g->gone && g->out_len)
			return true;
	return false;
}

/*
 * Tell the failure to those that are there, and for some time to those that will be. If
 * it is that they have not come in time, they are not waited for again.
 */
void zc_store_tell_all(struct server *s)
{
	uint64_t end = zc_after(FLUSH_NS), linger = zc_after(LINGER_NS);

	while (zc_left(end) && has_to_send(s))
		zc_store_turn(s, end);
	while (s->err != -ETIMEDOUT && zc_left(linger) && (s->listener >= 0 || has_to_send(s)))
		zc_store_turn(s, linger);
}
