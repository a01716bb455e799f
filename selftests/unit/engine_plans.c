// SPDX-License-Identifier: GPL-2.0
/*
 * Plans written by hand, see engine_plans.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine_plans.h"

#define MAX_STEPS	64

static struct zcoll_plan *plan_new(const char *name, u32 collective, u32 nodes, u32 members,
				   u32 segments)
{
	struct zcoll_plan *plan = calloc(1, sizeof(*plan) + MAX_STEPS * sizeof(plan->steps[0]));

	plan->version = ZCOLL_PLAN_VERSION;
	plan->collective = collective;
	plan->nodes = nodes;
	plan->members = members;
	plan->segments = segments;
	snprintf(plan->name, sizeof(plan->name), "%s", name);
	return plan;
}

/* One more step: all nodes, one segment, whose number is counted from the node's own */
static struct zcoll_step *add(struct zcoll_plan *plan, u8 kind, u16 flags)
{
	struct zcoll_step *s = &plan->steps[plan->nsteps++];

	s->kind = kind;
	s->flags = flags;
	s->repeat = 1;
	s->last = plan->nodes - 1;
	s->every = 1;
	s->stride = 1;
	s->radix = plan->nodes;
	s->width = 1;
	s->blocks = plan->segments;
	s->count = 1;
	s->of = ZCOLL_OF_SELF;
	return s;
}

static void with(struct zcoll_step *s, u8 peer, s32 dist)
{
	s->peer = peer;
	s->dist = dist;
}

static void wait_for(struct zcoll_step *s, const struct zcoll_plan *plan,
		     const struct zcoll_step *other, u8 mode, s32 shift)
{
	struct zcoll_after *after = s->after;

	while (after->mode)
		after++;
	after->step = other - plan->steps;
	after->mode = mode;
	after->shift = shift;
}

static void to_scratch(struct zcoll_place *place, s32 index, s32 step)
{
	place->space = ZCOLL_PLACE_SCRATCH;
	place->index = index;
	place->index_step = step;
}

/*
 * Nobody ends before all have got as far as @results (NULL, or some and then NULL):
 * dissemination, notifications only. What a node says in a round is for itself and all
 * it has heard of.
 */
static void add_barrier(struct zcoll_plan *plan, const struct zcoll_step *results[3])
{
	const struct zcoll_step *before = NULL;
	u32 dist, i;

	for (dist = 1; dist < plan->nodes; dist *= 2) {
		struct zcoll_step *s = add(plan, ZCOLL_STEP_SEND, 0);
		struct zcoll_step *r = add(plan, ZCOLL_STEP_DELIVER, 0);

		with(s, ZCOLL_PEER_ADD, dist);
		with(r, ZCOLL_PEER_ADD, -(s32)dist);
		s->count = r->count = 0;
		s->match = r - plan->steps;
		if (before) {
			wait_for(s, plan, before, ZCOLL_AFTER_ALL, 0);
			wait_for(r, plan, before, ZCOLL_AFTER_ALL, 0);
		}
		for (i = 0; !before && i < 3 && results[i]; i++) {
			wait_for(s, plan, results[i], ZCOLL_AFTER_ALL, 0);
			wait_for(r, plan, results[i], ZCOLL_AFTER_ALL, 0);
		}
		before = r;
	}
	plan->flags |= ZCOLL_PLAN_AGREED;
}

static void expect(const struct zcoll_plan *plan, int err, const struct zc_plan_why *why)
{
	if (!err)
		return;
	printf("Bail out! plan %s, node %d, step %d: %s\n", plan->name, (int)why->node,
	       (int)why->step, why->what);
	exit(1);
}

static struct zcoll_plan *finish(struct zcoll_plan *plan)
{
	struct zc_plan_why why;
	void *room;
	u32 v;

	plan->size = sizeof(*plan) + plan->nsteps * sizeof(plan->steps[0]);
	plan = realloc(plan, plan->size);
	plan->id = zc_plan_id(plan);
	expect(plan, zc_plan_valid(plan, plan->size, &why), &why);
	room = malloc(zc_plan_check_room(plan));
	for (v = 0; v < plan->nodes; v++)
		expect(plan, zc_plan_check(plan, v, room, &why), &why);
	free(room);
	return plan;
}

struct zcoll_plan *plan_local(void)
{
	struct zcoll_plan *plan = plan_new("local", ZCOLL_ALLREDUCE, 1, 1, 1);

	add(plan, ZCOLL_STEP_FINAL, ZCOLL_STEP_FIRST);
	return finish(plan);
}

struct zcoll_plan *plan_ring(u32 nodes, bool agreed)
{
	struct zcoll_plan *plan = plan_new("ring", ZCOLL_ALLREDUCE, nodes, nodes, nodes);
	struct zcoll_step *s0, *r0, *s1, *r1, *final, *s2, *d0, *s3, *d1;

	s0 = add(plan, ZCOLL_STEP_SEND, ZCOLL_STEP_FIRST);
	r0 = add(plan, ZCOLL_STEP_FOLD, ZCOLL_STEP_FIRST);
	s1 = add(plan, ZCOLL_STEP_SEND, 0);
	r1 = add(plan, ZCOLL_STEP_FOLD, ZCOLL_STEP_FIRST);
	final = add(plan, ZCOLL_STEP_FINAL, 0);
	s2 = add(plan, ZCOLL_STEP_SEND, 0);
	d0 = add(plan, ZCOLL_STEP_DELIVER, 0);
	s3 = add(plan, ZCOLL_STEP_SEND, 0);
	d1 = add(plan, ZCOLL_STEP_DELIVER, 0);

	with(s0, ZCOLL_PEER_ADD, 1);
	s0->seg = -1;
	s0->match = r0 - plan->steps;
	with(r0, ZCOLL_PEER_ADD, -1);
	r0->seg = -2;

	with(s1, ZCOLL_PEER_ADD, 1);
	s1->seg = -2;
	s1->seg_step = -1;
	s1->repeat = nodes - 2;
	s1->match = r1 - plan->steps;
	wait_for(s1, plan, r0, ZCOLL_AFTER_TURN, 0);
	wait_for(s1, plan, r1, ZCOLL_AFTER_SLICE, 1);
	with(r1, ZCOLL_PEER_ADD, -1);
	r1->seg = -3;
	r1->seg_step = -1;
	r1->repeat = nodes - 2;

	wait_for(final, plan, r1, ZCOLL_AFTER_SLICE, -(s32)(nodes - 3));

	with(s2, ZCOLL_PEER_ADD, 1);
	s2->match = d0 - plan->steps;
	wait_for(s2, plan, final, ZCOLL_AFTER_SLICE, 0);
	with(d0, ZCOLL_PEER_ADD, -1);
	d0->seg = -1;
	wait_for(d0, plan, s0, ZCOLL_AFTER_SLICE, 0);

	with(s3, ZCOLL_PEER_ADD, 1);
	s3->seg = -1;
	s3->seg_step = -1;
	s3->repeat = nodes - 2;
	s3->match = d1 - plan->steps;
	wait_for(s3, plan, d0, ZCOLL_AFTER_TURN, 0);
	wait_for(s3, plan, d1, ZCOLL_AFTER_SLICE, 1);
	with(d1, ZCOLL_PEER_ADD, -1);
	d1->seg = -2;
	d1->seg_step = -1;
	d1->repeat = nodes - 2;
	wait_for(d1, plan, s1, ZCOLL_AFTER_SLICE, 0);
	if (agreed)
		add_barrier(plan, (const struct zcoll_step *[3]){ final, d0, d1 });
	return finish(plan);
}

struct zcoll_plan *plan_doubling(u32 nodes, bool agreed)
{
	struct zcoll_plan *plan = plan_new("doubling", ZCOLL_ALLREDUCE, nodes, nodes, 1);
	struct zcoll_step *before = add(plan, ZCOLL_STEP_GATHER, 0);
	u32 dist, round;

	before->of = ZCOLL_OF_ZERO;
	to_scratch(&before->dst, 0, 0);
	for (dist = 1, round = 0; dist < nodes; dist *= 2, round++) {
		struct zcoll_step *s = add(plan, ZCOLL_STEP_SEND, 0);
		struct zcoll_step *r = add(plan, ZCOLL_STEP_FOLD, 0);

		s->of = r->of = ZCOLL_OF_ZERO;
		with(s, ZCOLL_PEER_XOR, dist);
		with(r, ZCOLL_PEER_XOR, dist);
		s->match = r - plan->steps;
		to_scratch(&s->src, round, 0);
		to_scratch(&r->src, round, 0);
		wait_for(s, plan, before, ZCOLL_AFTER_SLICE, 0);
		wait_for(r, plan, before, ZCOLL_AFTER_SLICE, 0);
		if (dist * 2 < nodes)
			to_scratch(&r->dst, round + 1, 0);
		else
			r->flags |= ZCOLL_STEP_RESULT;
		plan->scratch = round + 1;
		before = r;
	}
	if (agreed)
		add_barrier(plan, (const struct zcoll_step *[3]){ before });
	return finish(plan);
}

/* A segment each turn; each delivery waits for the one before */
static struct zcoll_plan *chain(const char *name, u32 nodes, u32 segments, bool agreed)
{
	struct zcoll_plan *plan = plan_new(name, ZCOLL_BROADCAST, nodes, nodes, segments);
	struct zcoll_step *s0 = add(plan, ZCOLL_STEP_SEND, 0);
	struct zcoll_step *s1 = add(plan, ZCOLL_STEP_SEND, 0);
	struct zcoll_step *d = add(plan, ZCOLL_STEP_DELIVER, 0);
	struct zcoll_step *final = add(plan, ZCOLL_STEP_FINAL, ZCOLL_STEP_FIRST);

	s0->of = s1->of = d->of = final->of = ZCOLL_OF_ZERO;
	s0->repeat = s1->repeat = d->repeat = final->repeat = segments;
	s0->seg_step = s1->seg_step = d->seg_step = final->seg_step = 1;
	with(s0, ZCOLL_PEER_ADD, 1);
	s0->last = 0;
	s0->match = d - plan->steps;
	wait_for(s0, plan, final, ZCOLL_AFTER_SLICE, 0);
	with(s1, ZCOLL_PEER_ADD, 1);
	s1->first = 1;
	s1->last = nodes - 2;
	s1->match = d - plan->steps;
	wait_for(s1, plan, d, ZCOLL_AFTER_SLICE, 0);
	with(d, ZCOLL_PEER_ADD, -1);
	d->first = 1;
	wait_for(d, plan, d, ZCOLL_AFTER_TURN, 1);
	final->last = 0;
	if (agreed)
		add_barrier(plan, (const struct zcoll_step *[3]){ d, final });
	return finish(plan);
}

struct zcoll_plan *plan_chain(u32 nodes, bool agreed)
{
	return chain("chain", nodes, 1, agreed);
}

struct zcoll_plan *plan_turns(u32 nodes, bool agreed)
{
	return chain("turns", nodes, 4, agreed);
}

struct zcoll_plan *plan_exchange(u32 nodes, bool agreed)
{
	struct zcoll_plan *plan = plan_new("exchange", ZCOLL_REDUCE_SCATTER, nodes, nodes, nodes);
	struct zcoll_step *s = add(plan, ZCOLL_STEP_SEND, ZCOLL_STEP_FIRST | ZCOLL_STEP_OPEN);
	struct zcoll_step *r = add(plan, ZCOLL_STEP_FOLD, ZCOLL_STEP_STORE | ZCOLL_STEP_OPEN);
	struct zcoll_step *g = add(plan, ZCOLL_STEP_GATHER, 0);
	struct zcoll_step *fold0 = add(plan, ZCOLL_STEP_FOLD, ZCOLL_STEP_INPUT);
	struct zcoll_step *fold = add(plan, ZCOLL_STEP_FOLD, 0);
	struct zcoll_step *final = add(plan, ZCOLL_STEP_FINAL, 0);

	plan->scratch = nodes - 1;
	plan->acc = 1;
	with(s, ZCOLL_PEER_ADD, 1);
	s->dist_step = 1;
	s->repeat = nodes - 1;
	s->of = ZCOLL_OF_PEER;
	s->match = r - plan->steps;
	with(r, ZCOLL_PEER_ADD, -1);
	r->dist_step = -1;
	r->repeat = nodes - 1;
	to_scratch(&r->dst, 0, 1);
	to_scratch(&fold0->dst, 0, 0);
	wait_for(fold0, plan, r, ZCOLL_AFTER_ALL, 0);
	wait_for(fold0, plan, g, ZCOLL_AFTER_SLICE, 0);
	fold->repeat = nodes - 2;
	to_scratch(&fold->src, 1, 1);
	to_scratch(&fold->dst, 0, 0);
	to_scratch(&final->src, 0, 0);
	wait_for(fold, plan, fold0, ZCOLL_AFTER_SLICE, 0);
	wait_for(fold, plan, fold, ZCOLL_AFTER_SLICE, 1);
	wait_for(final, plan, fold, ZCOLL_AFTER_SLICE, -(s32)(nodes - 3));
	if (agreed)
		add_barrier(plan, (const struct zcoll_step *[3]){ final });
	return finish(plan);
}

struct zcoll_plan *plan_spread(u32 nodes, bool agreed)
{
	struct zcoll_plan *plan = plan_new("spread", ZCOLL_ALLGATHER, nodes, nodes, nodes);
	struct zcoll_step *s = add(plan, ZCOLL_STEP_SEND, ZCOLL_STEP_INPUT | ZCOLL_STEP_OPEN);
	struct zcoll_step *d = add(plan, ZCOLL_STEP_DELIVER, ZCOLL_STEP_OPEN);
	struct zcoll_step *g = add(plan, ZCOLL_STEP_GATHER, 0);
	struct zcoll_step *final = add(plan, ZCOLL_STEP_FINAL, ZCOLL_STEP_INPUT);

	with(s, ZCOLL_PEER_ADD, 1);
	s->dist_step = 1;
	s->repeat = nodes - 1;
	s->match = d - plan->steps;
	/* An OPEN step sends a segment in one piece, so it waits for all its slices */
	wait_for(s, plan, g, ZCOLL_AFTER_SLICE, 0);
	with(d, ZCOLL_PEER_ADD, -1);
	d->dist_step = -1;
	d->repeat = nodes - 1;
	d->of = ZCOLL_OF_PEER;
	wait_for(final, plan, g, ZCOLL_AFTER_SLICE, 0);
	wait_for(final, plan, s, ZCOLL_AFTER_ALL, 0);
	if (agreed)
		add_barrier(plan, (const struct zcoll_step *[3]){ final, d });
	return finish(plan);
}

struct zcoll_plan *plan_star(u32 members, bool agreed)
{
	struct zcoll_plan *plan = plan_new("star", ZCOLL_ALLREDUCE, members + 1, members, 1);
	const struct zcoll_step *folded = NULL, *delivered[3] = { NULL };
	u32 i;

	plan->acc = 1;
	for (i = 0; i < members; i++) {
		struct zcoll_step *s = add(plan, ZCOLL_STEP_SEND, ZCOLL_STEP_FIRST);
		struct zcoll_step *r = add(plan, ZCOLL_STEP_FOLD, i ? 0 : ZCOLL_STEP_STORE);

		s->of = r->of = ZCOLL_OF_ZERO;
		with(s, ZCOLL_PEER_TO, members);
		s->first = s->last = i;
		s->match = r - plan->steps;
		with(r, ZCOLL_PEER_TO, i);
		r->first = members;
		if (folded)
			wait_for(r, plan, folded, ZCOLL_AFTER_SLICE, 0);
		folded = r;
	}
	for (i = 0; i < members; i++) {
		struct zcoll_step *s = add(plan, ZCOLL_STEP_SEND, 0);
		struct zcoll_step *d = add(plan, ZCOLL_STEP_DELIVER, 0);

		s->of = d->of = ZCOLL_OF_ZERO;
		with(s, ZCOLL_PEER_TO, i);
		s->first = members;
		s->match = d - plan->steps;
		wait_for(s, plan, folded, ZCOLL_AFTER_SLICE, 0);
		with(d, ZCOLL_PEER_TO, members);
		d->first = d->last = i;
		/* The input may be where the output is */
		wait_for(d, plan, &plan->steps[2 * i], ZCOLL_AFTER_SLICE, 0);
		if (i < 3)
			delivered[i] = d;
	}
	if (agreed)
		add_barrier(plan, delivered);
	return finish(plan);
}

struct zcoll_plan *plan_barrier(u32 nodes)
{
	struct zcoll_plan *plan = plan_new("barrier", ZCOLL_BARRIER, nodes, nodes, 1);

	add_barrier(plan, (const struct zcoll_step *[3]){ NULL });
	return finish(plan);
}
