/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Plans: the arithmetic of <linux/zcoll_plan.h>, and the check of a plan at one
 * node. No state, no allocation, no sleep but in zc_plan_check(), which may take long; a
 * plan that is being looked at must not change.
 *
 * All functions but zc_plan_valid() and zc_plan_check() expect a plan that has
 * passed zc_plan_valid(): no division by zero, no wrap, no step out of the table.
 */
#ifndef ZCOLL_ENGINE_PLAN_H
#define ZCOLL_ENGINE_PLAN_H

#include "types.h"
#include <linux/zcoll_plan.h>

/* Not a node, not a step */
#define ZC_NONE U32_MAX

/*
 * What the module grants to a check: memory, and work, some 100 ms of it. Both are enough
 * for what the library makes for the most nodes.
 */
#define ZC_PLAN_CHECK_BYTES	(64U << 20)
#define ZC_PLAN_CHECK_WORK	(32U << 20)

/**
 * struct zc_range - segments of a step
 * @first: the first one
 * @count: their number
 * @base: they wrap within @span segments from here
 * @span: see @base
 */
struct zc_range {
	u32 first;
	u32 count;
	u32 base;
	u32 span;
};

/**
 * struct zc_turn - one iteration of a step at one node
 * @peer: the peer's number v, ZC_NONE if there is none
 * @range: segments
 * @dst: index of the scratch place, ZC_NONE: DATA
 * @src: likewise
 */
struct zc_turn {
	u32 peer;
	struct zc_range range;
	u32 dst;
	u32 src;
};

/**
 * struct zc_plan_why - why a plan is refused
 * @what: a sentence, ZC_NONE in the others where they do not apply
 * @step: row of the table
 * @turn: of @step
 * @segment: segment, or scratch place
 * @node: node v
 * @other_step: of what it conflicts with
 * @other_turn: of @other_step
 */
struct zc_plan_why {
	const char *what;
	u32 step;
	u32 turn;
	u32 segment;
	u32 node;
	u32 other_step;
	u32 other_turn;
};

static inline u32 zc_range_at(const struct zc_range *range, u32 i)
{
	u32 at = range->first - range->base + i;

	return range->base + (at >= range->span ? at - range->span : at);
}

static inline bool zc_range_same(const struct zc_range *a, const struct zc_range *b)
{
	if (!a->count || !b->count)
		return a->count == b->count;
	return a->first == b->first && a->count == b->count &&
	       (a->first + a->count <= a->base + a->span ||
		(a->base == b->base && a->span == b->span));
}

/* Does this step get something from its peer? */
static inline bool zc_step_receives(const struct zcoll_step *step)
{
	return step->peer != ZCOLL_PEER_NONE && step->kind != ZCOLL_STEP_SEND;
}

u64 zc_plan_id(const struct zcoll_plan *plan);
u32 zc_plan_number(const struct zcoll_plan *plan, u32 root, u32 node);
u32 zc_plan_node(const struct zcoll_plan *plan, u32 root, u32 v);
u32 zc_plan_sigma(const struct zcoll_plan *plan, u32 v);
bool zc_plan_has_input(const struct zcoll_plan *plan, u32 v, u32 segment);
bool zc_plan_has_output(const struct zcoll_plan *plan, u32 v, u32 segment);
bool zc_step_active(const struct zcoll_plan *plan, const struct zcoll_step *step, u32 v);
int zc_step_turn(const struct zcoll_plan *plan, const struct zcoll_step *step, u32 v,
		 u32 t, struct zc_turn *turn);

/* Does the node have outputs for all segments, and so no need of other places? */
static inline bool zc_plan_has_outputs(const struct zcoll_plan *plan, u32 v)
{
	return zc_plan_has_output(plan, v, 0) &&
	       zc_plan_has_output(plan, v, plan->segments - 1);
}

int zc_plan_valid(const struct zcoll_plan *plan, size_t bytes, struct zc_plan_why *why);
size_t zc_plan_check_room(const struct zcoll_plan *plan);
u64 zc_plan_check_work(const struct zcoll_plan *plan);
int zc_plan_check(const struct zcoll_plan *plan, u32 v, void *room,
		  struct zc_plan_why *why);

#endif /* ZCOLL_ENGINE_PLAN_H */
