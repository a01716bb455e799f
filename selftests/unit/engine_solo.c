// SPDX-License-Identifier: GPL-2.0
/*
 * An engine alone, and what is said to it; see engine_solo.h.
 */
#include <stdlib.h>

#include "engine_solo.h"
#include "../lib/tap.h"

struct solo *solo_config(struct zcoll_plan *plan, const struct zc_engine_config *config)
{
	struct solo *s = calloc(1, sizeof(*s));

	s->config = *config;
	s->plan = plan;
	s->room = malloc(zc_engine_size(config));
	s->engine = zc_engine_init(s->room, config);
	s->prog_room = malloc(zc_prog_size(plan));
	zc_prog_init(&s->prog, plan, s->prog_room);
	s->desc = (struct zc_op_desc){
		.prog = &s->prog, .fingerprint = FINGERPRINT, .geo = { .count = 40 },
		.slice = 4, .eager = U64_MAX, .reserve = U64_MAX,
	};
	zc_engine_tick(s->engine, 1000);
	return s;
}

struct solo *solo_new(struct zcoll_plan *plan, u32 node)
{
	const struct zc_engine_config config = {
		.node = node, .nodes = plan->nodes, .window = 4, .steps = 24,
		.links = plan->nodes - 1, .slots = 4, .inflight = 4, .bits = 128, .patience = 100,
	};

	return solo_config(plan, &config);
}

void solo_free(struct solo *s)
{
	free(s->prog_room);
	free(s->room);
	free(s->plan);
	free(s);
}

int submit(struct solo *s, u64 seq)
{
	s->desc.seq = seq;
	return zc_engine_submit(s->engine, &s->desc);
}

u32 drain(struct solo *s)
{
	s->n = 0;
	while (s->n < MAX_ACTIONS && zc_engine_next(s->engine, &s->action[s->n]))
		s->n++;
	if (s->n == MAX_ACTIONS)
		ok(false, "the engine stops to ask");
	return s->n;
}

u32 count(const struct solo *s, u32 type)
{
	u32 n = 0, i;

	for (i = 0; i < s->n; i++)
		n += s->action[i].type == type;
	return n;
}

u32 told(const struct solo *s, u32 type, u32 node)
{
	u32 n = 0, i;

	for (i = 0; i < s->n; i++)
		n += s->action[i].type == ZC_DO_TELL && s->action[i].msg.type == type &&
		     s->action[i].peer == node;
	return n;
}

s32 verdict(const struct solo *s)
{
	u32 i;

	for (i = 0; i < s->n; i++)
		if (s->action[i].type == ZC_DO_COMPLETE)
			return s->action[i].status;
	return 1;
}

void answer(struct solo *s)
{
	u32 i;

	for (i = 0; i < s->n; i++)
		if (s->action[i].type < ZC_DO_TELL)
			zc_engine_done(s->engine, s->action[i].seq, s->action[i].step,
				       s->action[i].unit);
}

void hear(struct solo *s, u32 from, struct zc_msg msg)
{
	zc_engine_message(s->engine, from, &msg);
}

struct zc_msg data(u32 step, u64 unit)
{
	return (struct zc_msg){
		.type = ZC_MSG_DATA, .step = step, .unit = unit, .fingerprint = FINGERPRINT,
	};
}

struct zc_msg grant(u32 step, u64 unit)
{
	return (struct zc_msg){
		.type = ZC_MSG_GRANT, .step = step, .unit = unit, .fingerprint = FINGERPRINT,
	};
}

struct zc_msg opened(struct zc_msg msg, u32 open)
{
	msg.open = open;
	return msg;
}
