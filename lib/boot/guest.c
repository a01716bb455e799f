// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Guests of the store: how they part, and what they are sent; see guest.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest.h"

bool zc_guest_counts(const struct server *s, const struct guest *g)
{
	return g->state == IS_MEMBER && !g->excused && s->members[g->of.who] == g;
}

/* Who has got the result of this round may leave, if it is the last */
static bool may_leave(const struct server *s, const struct guest *g)
{
	return s->made == s->x.round && g->result_at == s->result_len;
}

void zc_guest_part(struct server *s, struct guest *g)
{
	if (g->gone)
		return;
	g->gone = true;
	close(g->fd);
	if (g->state != IS_MEMBER)
		s->strangers--;
	else if (zc_guest_counts(s, g) && !may_leave(s, g))
		zc_store_missed(s, g->of.who);
}

void zc_guests_free(struct server *s)
{
	struct guest **at = &s->guests, *g;

	while ((g = *at)) {
		if (!g->gone) {
			at = &g->next;
			continue;
		}
		*at = g->next;
		if (zc_guest_counts(s, g))
			s->members[g->of.who] = NULL;
		free(g);
	}
}

static void watch(struct server *s, struct guest *g, bool out)
{
	struct epoll_event ev = { .events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = g };

	epoll_ctl(s->epoll, EPOLL_CTL_MOD, g->fd, &ev);
}

/* ---------------------------------------------------------------- what is sent */

/* Send from @buf + *@at to @buf + @len; true: all of it */
static bool send_part(struct server *s, struct guest *g, const uint8_t *buf, size_t *at, size_t len)
{
	ssize_t n;

	while (*at < len) {
		n = send(g->fd, buf + *at, len - *at, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			zc_guest_part(s, g);
		if (n < 0)
			return false;
		*at += n;
	}
	return true;
}

static bool send_result(struct server *s, struct guest *g)
{
	if (!zc_guest_counts(s, g) || g->result_at == s->result_len)
		return true;
	if (!send_part(s, g, s->result, &g->result_at, s->result_len))
		return false;
	s->sending--;
	return true;
}

void zc_guest_send(struct server *s, struct guest *g)
{
	bool all = true;

	if (g->result_at && g->result_at < s->result_len)
		all = send_result(s, g);
	all = all && send_part(s, g, g->out, &g->out_at, g->out_len) && send_result(s, g);
	if (g->gone)
		return;
	if (all) {
		g->out_len = 0;
		g->out_at = 0;
	}
	watch(s, g, !all);
}

bool zc_guest_queue(struct server *s, struct guest *g, const struct frame *frame, size_t len)
{
	if (len > sizeof(g->out) - g->out_len) {
		zc_guest_part(s, g);	/* does not read what it asked for */
		return false;
	}
	memcpy(g->out + g->out_len, frame, len);
	g->out_len += len;
	watch(s, g, true);
	return true;
}

/* Tell a member the failure */
void zc_guest_tell(struct server *s, struct guest *g)
{
	if (g->failure_told)
		return;
	g->failure_told = true;
	zc_guest_queue(s, g, &s->failure, s->failure_len);
}
