// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Failures of the store: the first is the one that counts, and all are told.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "guest.h"

/* The first failure is the one that all are told */
void zc_store_failed(struct server *s, int err, const char *text)
{
	if (s->err)
		return;
	s->err = err;
	snprintf(s->text, sizeof(s->text), "%s", text);
	s->failure_len = zc_frame_fail(&s->failure, err, s->text);
	for (struct guest *g = s->guests; g; g = g->next)
		if (g->state == IS_MEMBER && !g->gone)
			zc_guest_tell(s, g);
}

void zc_store_failf(struct server *s, int err, const char *fmt, ...)
{
	char text[ZCOLL_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	zc_store_failed(s, err, text);
}

/* The time is over: name the members that have given no record of this round */
void zc_store_expired(struct server *s, uint64_t timeout_ns)
{
	bool *there = calloc(s->x.n, sizeof(*there));
	char text[ZCOLL_TEXT_MAX], name[PLACE_NAME];

	if (!there) {
		zc_store_failed(s, -ENOMEM, "rank 0: no memory for the store");
		return;
	}
	there[0] = true;
	for (unsigned int p = 1; p < s->x.n; p++)
		there[p] = s->members[p] && s->members[p]->round == s->x.round;
	zc_missing_text(text, sizeof(text), &s->x, there, timeout_ns);
	free(there);
	zc_store_place_name(name, sizeof(name), &s->place);
	zc_store_failf(s, -ETIMEDOUT, "%s; they are met at %s", text, name);
}

/* A member has gone too early */
void zc_store_missed(struct server *s, unsigned int who)
{
	char name[ZC_PARTICIPANT_NAME];

	zc_participant_name(name, sizeof(name), s->x.attr, who);
	zc_store_failf(s, -EOWNERDEAD, "%s has gone, while the communicator was made", name);
}

int zc_store_no_memory(struct server *s)
{
	zc_store_failed(s, -ENOMEM, "rank 0: no memory for the store");
	return -ENOMEM;
}
