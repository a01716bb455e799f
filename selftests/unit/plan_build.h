/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plans written by hand: steps with what is left out filled in.
 */
#ifndef PLAN_BUILD_H
#define PLAN_BUILD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll_plan.h>

#include "../../kmod/engine/plan.h"

#define SCRATCH(i)	{ .space = ZCOLL_PLACE_SCRATCH, .index = (i) }
#define SLICE(s, n)	{ .step = (s), .mode = ZCOLL_AFTER_SLICE, .shift = (n) }
#define TURN(s, n)	{ .step = (s), .mode = ZCOLL_AFTER_TURN, .shift = (n) }
#define ALL(s)		{ .step = (s), .mode = ZCOLL_AFTER_ALL }

/* To the node so far away, and from it */
#define NOTIFY(d)	.kind = ZCOLL_STEP_SEND, .peer = ZCOLL_PEER_ADD, .dist = (d)
#define NOTIFIED(d)	.kind = ZCOLL_STEP_DELIVER, .peer = ZCOLL_PEER_ADD, .dist = -(d)

/* The plan has been changed: give it its new id */
static inline void plan_seal(struct zcoll_plan *plan)
{
	plan->id = zc_plan_id(plan);
}

static inline struct zcoll_plan *plan_copy(const struct zcoll_plan *plan)
{
	return memcpy(malloc(plan->size), plan, plan->size);
}

/* Fields that are 0 and must not be, mean: once, everywhere, among all nodes and segments */
static inline void plan_fill(const struct zcoll_plan *plan, struct zcoll_step *step)
{
	step->repeat += !step->repeat;
	step->every += !step->every;
	step->stride += !step->stride;
	step->width += !step->width;
	if (!step->last)
		step->last = step->first ? step->first : ZCOLL_PLAN_MAX_NODES;
	if (!step->radix)
		step->radix = plan->nodes;
	if (!step->blocks)
		step->blocks = plan->segments;
}

static inline struct zcoll_plan *plan_build(unsigned int collective, unsigned int nodes,
					    unsigned int segments,
					    const struct zcoll_step *steps, unsigned int n)
{
	size_t size = sizeof(struct zcoll_plan) + n * sizeof(*steps);
	struct zcoll_plan *plan = calloc(1, size);
	unsigned int i;

	plan->size = size;
	plan->version = ZCOLL_PLAN_VERSION;
	plan->collective = collective;
	plan->nodes = plan->members = nodes;
	plan->segments = segments;
	plan->nsteps = n;
	strcpy(plan->name, "by-hand");
	memcpy(plan->steps, steps, n * sizeof(*steps));
	for (i = 0; i < n; i++)
		plan_fill(plan, &plan->steps[i]);
	plan_seal(plan);
	return plan;
}

#define PLAN(collective, nodes, segments, steps) \
	plan_build(collective, nodes, segments, steps, sizeof(steps) / sizeof(*(steps)))

/*
 * The ring of Patarasuk and Yuan (Bandwidth optimal all-reduce algorithms for clusters of
 * workstations, 2009), for three nodes: reduce-scatter, then all-gather.
 */
static inline struct zcoll_plan *plan_ring3(void)
{
	static const struct zcoll_step steps[] = {
		{ .kind = ZCOLL_STEP_SEND, .flags = ZCOLL_STEP_FIRST, .peer = ZCOLL_PEER_ADD,
		  .dist = 1, .count = 1, .of = ZCOLL_OF_SELF, .match = 1 },
		{ .kind = ZCOLL_STEP_FOLD, .flags = ZCOLL_STEP_FIRST, .peer = ZCOLL_PEER_ADD,
		  .dist = -1, .count = 1, .of = ZCOLL_OF_SELF, .seg = -1 },
		{ .kind = ZCOLL_STEP_SEND, .peer = ZCOLL_PEER_ADD, .dist = 1, .count = 1,
		  .of = ZCOLL_OF_SELF, .seg = -1, .match = 3, .after = { SLICE(1, 0) } },
		{ .kind = ZCOLL_STEP_FOLD, .flags = ZCOLL_STEP_FIRST | ZCOLL_STEP_RESULT,
		  .peer = ZCOLL_PEER_ADD, .dist = -1, .count = 1, .of = ZCOLL_OF_SELF,
		  .seg = -2 },
		{ .kind = ZCOLL_STEP_SEND, .peer = ZCOLL_PEER_ADD, .dist = 1, .count = 1,
		  .of = ZCOLL_OF_SELF, .seg = 1, .seg_step = -1, .repeat = 2, .match = 5,
		  .after = { TURN(3, 0), SLICE(5, 1) } },
		{ .kind = ZCOLL_STEP_DELIVER, .peer = ZCOLL_PEER_ADD, .dist = -1, .count = 1,
		  .of = ZCOLL_OF_SELF, .seg_step = -1, .repeat = 2,
		  .after = { ALL(0), ALL(2) } },
	};

	return PLAN(ZCOLL_ALLREDUCE, 3, 3, steps);
}

static inline struct zcoll_plan *plan_append(struct zcoll_plan *plan, struct zcoll_step step)
{
	plan = realloc(plan, plan->size + sizeof(step));
	plan->steps[plan->nsteps] = step;
	plan->size += sizeof(step);
	plan_fill(plan, &plan->steps[plan->nsteps++]);
	return plan;
}

/* The first half of the ring alone, whose segments end where they belong */
static inline struct zcoll_plan *plan_scatter3(void)
{
	static const struct zcoll_step steps[] = {
		{ .kind = ZCOLL_STEP_SEND, .flags = ZCOLL_STEP_FIRST, .peer = ZCOLL_PEER_ADD,
		  .dist = 1, .count = 1, .of = ZCOLL_OF_SELF, .seg = -1, .match = 1 },
		{ .kind = ZCOLL_STEP_FOLD, .flags = ZCOLL_STEP_FIRST, .peer = ZCOLL_PEER_ADD,
		  .dist = -1, .count = 1, .of = ZCOLL_OF_SELF, .seg = -2 },
		{ .kind = ZCOLL_STEP_SEND, .peer = ZCOLL_PEER_ADD, .dist = 1, .count = 1,
		  .of = ZCOLL_OF_SELF, .seg = -2, .match = 3, .after = { SLICE(1, 0) } },
		{ .kind = ZCOLL_STEP_FOLD, .flags = ZCOLL_STEP_FIRST | ZCOLL_STEP_RESULT,
		  .peer = ZCOLL_PEER_ADD, .dist = -1, .count = 1, .of = ZCOLL_OF_SELF },
	};
	struct zcoll_plan *plan = PLAN(ZCOLL_REDUCE_SCATTER, 3, 3, steps);

	plan->acc = 2;
	plan_seal(plan);
	return plan;
}

/* The ring of three, and then all tell each other that they have all results */
static inline struct zcoll_plan *plan_ring3_agreed(void)
{
	static const struct zcoll_step notices[] = {
		{ NOTIFY(1), .match = 7, .after = { ALL(3), ALL(5) } },
		{ NOTIFIED(1) },
		{ NOTIFY(2), .match = 9, .after = { ALL(3), ALL(5) } },
		{ NOTIFIED(2) },
	};
	struct zcoll_plan *plan = plan_ring3();
	unsigned int i;

	plan->flags = ZCOLL_PLAN_AGREED;
	for (i = 0; i < 4; i++)
		plan = plan_append(plan, notices[i]);
	plan_seal(plan);
	return plan;
}

/*
 * All-reduce of one segment among four nodes, by two exchanges; with PEER_ADD as in
 * a barrier by dissemination, with PEER_XOR by recursive doubling.
 */
static inline struct zcoll_plan *plan_exchanges(unsigned int peer, int dist, int back)
{
	const struct zcoll_step steps[] = {
		{ .kind = ZCOLL_STEP_GATHER, .count = 1 },
		{ .kind = ZCOLL_STEP_SEND, .flags = ZCOLL_STEP_INPUT, .peer = peer, .dist = 1,
		  .count = 1, .match = 2, .after = { SLICE(0, 0) } },
		{ .kind = ZCOLL_STEP_FOLD, .flags = ZCOLL_STEP_INPUT, .peer = peer,
		  .dist = peer == ZCOLL_PEER_XOR ? 1 : -1, .count = 1, .after = { SLICE(1, 0) } },
		{ .kind = ZCOLL_STEP_SEND, .peer = peer, .dist = dist, .count = 1, .match = 4,
		  .after = { SLICE(2, 0) } },
		{ .kind = ZCOLL_STEP_FOLD, .peer = peer, .dist = back, .count = 1,
		  .after = { SLICE(3, 0) } },
		{ .kind = ZCOLL_STEP_FINAL, .count = 1, .after = { SLICE(4, 0) } },
	};

	return PLAN(ZCOLL_ALLREDUCE, 4, 1, steps);
}

/* A barrier by dissemination: Hensgen, Finkel and Manber, Two algorithms for barriers, 1988 */
static inline struct zcoll_plan *plan_barrier4(void)
{
	static const struct zcoll_step steps[] = {
		{ NOTIFY(1), .match = 1 },
		{ NOTIFIED(1) },
		{ NOTIFY(2), .match = 3, .after = { ALL(1) } },
		{ NOTIFIED(2) },
	};

	return PLAN(ZCOLL_BARRIER, 4, 1, steps);
}

#endif /* PLAN_BUILD_H */
