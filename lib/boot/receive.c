// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What arrives at the store: frames of guests, each checked before its body is read.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "guest.h"

static void on_hello(struct server *s, struct guest *g)
{
	struct frame frame;

	if (zc_nonce(g->of.server_nonce)) {
		zc_guest_part(s, g);
		return;
	}
	memcpy(g->of.caller_nonce, g->in.hello.nonce, NONCE_BYTES);
	memcpy(frame.hello.nonce, g->of.server_nonce, NONCE_BYTES);
	zc_frame(&frame, FRAME_CHALLENGE, sizeof(frame.hello));
	if (zc_guest_queue(s, g, &frame, sizeof(frame.head) + sizeof(frame.hello)))
		g->state = SAYS_PROOF;
}

/* A number that somebody has already: only the second one fails, as at the kernel */
static void turn_away(struct server *s, struct guest *g)
{
	char name[ZC_PARTICIPANT_NAME], text[ZCOLL_TEXT_MAX];
	struct frame frame;

	g->excused = true;
	zc_participant_name(name, sizeof(name), s->x.attr, g->of.who);
	snprintf(text, sizeof(text), "%s is taken: another process has joined as %s", name, name);
	g->failure_told = true;
	zc_guest_queue(s, g, &frame, zc_frame_fail(&frame, -EBUSY, text));
}

static void become_member(struct server *s, struct guest *g)
{
	const struct zcoll_attr *attr = s->x.attr;

	g->state = IS_MEMBER;
	s->strangers--;
	if (g->of.nranks != attr->nranks || g->of.aggregators != attr->aggregators) {
		g->excused = true;
		zc_store_failf(s, -EPROTO,
			       "rank %u was told that there are %u ranks and %u aggregators, and rank 0 that there are %u and %u",
			       g->of.who, g->of.nranks, g->of.aggregators, attr->nranks,
			       attr->aggregators);
		zc_guest_tell(s, g);
	} else if (!g->of.who || g->of.who >= s->x.n || s->members[g->of.who]) {
		turn_away(s, g);
	} else {
		s->members[g->of.who] = g;
		g->result_at = s->result_len;
		s->here++;
		if (s->err)
			zc_guest_tell(s, g);
	}
}

static void on_proof(struct server *s, struct guest *g)
{
	struct frame frame;

	g->of.key = s->x.attr->key;
	g->of.who = le32toh(g->in.proof.who);
	g->of.nranks = le32toh(g->in.proof.nranks);
	g->of.aggregators = le32toh(g->in.proof.aggregators);
	if (!zc_is_proof(g->in.proof.proof, &g->of, SIDE_CALLER)) {
		g->of.who = 0;
		zc_guest_part(s, g);
		return;
	}
	zc_prove(frame.welcome.proof, &g->of, SIDE_SERVER);
	zc_frame(&frame, FRAME_WELCOME, sizeof(frame.welcome));
	if (zc_guest_queue(s, g, &frame, sizeof(frame.head) + sizeof(frame.welcome)))
		become_member(s, g);
}

/* The record of the next round may be early, as others still wait for this one's result */
static void on_record(struct server *s, struct guest *g, size_t len)
{
	if (len < sizeof(g->in.record.round) || le32toh(g->in.record.round) != g->round + 1 ||
	    g->round > s->x.round) {
		zc_guest_part(s, g);
		return;
	}
	g->round++;
	g->record_len = len - sizeof(g->in.record.round);
	memcpy(g->record, g->in.record.record, g->record_len);
	if (g->round == s->x.round)
		s->records++;
}

static void on_failure(struct server *s, const struct frame_fail *fail, size_t len)
{
	char text[ZCOLL_TEXT_MAX];
	int err = le32toh(fail->err);

	if (len < sizeof(fail->err) || err < 1 || err > 4095)
		err = EPROTO;
	snprintf(text, sizeof(text), "%.*s", (int)(len - sizeof(fail->err)), fail->text);
	zc_store_failed(s, -err, text);
}

static void on_frame(struct server *s, struct guest *g, size_t len)
{
	struct frame_fail fail;

	if (g->state == SAYS_HELLO) {
		on_hello(s, g);
	} else if (g->state == SAYS_PROOF) {
		on_proof(s, g);
	} else if (g->excused) {
		return;		/* it will read why */
	} else if (g->in.head.type == htole32(FRAME_RECORD)) {
		on_record(s, g, len);
	} else if (g->in.head.type == htole32(FRAME_EXPIRED)) {
		zc_store_expired(s, le64toh(g->in.expired.timeout_ns));
	} else {
		memcpy(&fail, &g->in.fail, sizeof(fail));
		on_failure(s, &fail, len);
	}
}

/* May this guest send a frame of this type and length now? */
static bool is_welcome(const struct guest *g)
{
	uint32_t type = le32toh(g->in.head.type), len = le32toh(g->in.head.len);

	switch (g->state) {
	case SAYS_HELLO:
		return type == FRAME_HELLO && len == sizeof(struct frame_hello);
	case SAYS_PROOF:
		return type == FRAME_PROOF && len == sizeof(struct frame_proof);
	default:
		return (type == FRAME_RECORD && len <= sizeof(struct frame_record)) ||
		       (type == FRAME_EXPIRED && len == sizeof(struct frame_expired)) ||
		       (type == FRAME_FAIL && len >= sizeof(int32_t) &&
			len <= sizeof(struct frame_fail));
	}
}

/* Read one frame, or what there is of it */
void zc_guest_receive(struct server *s, struct guest *g)
{
	size_t head = sizeof(g->in.head), want = head, body;
	ssize_t n;

	if (g->in_len >= head)
		want += le32toh(g->in.head.len);
	n = recv(g->fd, (uint8_t *)&g->in + g->in_len, want - g->in_len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		zc_guest_part(s, g);
		return;
	}
	g->in_len += n;
	if (g->in_len == head && !is_welcome(g)) {
		zc_guest_part(s, g);
		return;
	}
	body = le32toh(g->in.head.len);
	if (g->in_len < head || g->in_len < head + body)
		return;
	g->in_len = 0;
	on_frame(s, g, body);
}
