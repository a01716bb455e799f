// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The arithmetic of plans: who takes part in a step, with whom, about what.
 */
#include "plan.h"

/**
 * zc_plan_id - the identity of a plan
 * @plan: plan; @plan->id does not matter
 *
 * Return: 64-bit FNV-1a hash over all its bytes, with the id taken as 0.
 */
u64 zc_plan_id(const struct zcoll_plan *plan)
{
	const size_t from = offsetof(struct zcoll_plan, id);
	const u8 *byte = (const u8 *)plan;
	u64 hash = 0xcbf29ce484222325ULL;
	size_t i;

	for (i = 0; i < plan->size; i++) {
		hash ^= i - from < sizeof(plan->id) ? 0 : byte[i];
		hash *= 0x100000001b3ULL;
	}
	return hash;
}

/* a mod m, for a that may be negative */
static u32 zc_mod(s64 a, u32 m)
{
	s64 rest = a % m;

	return rest < 0 ? rest + m : rest;
}

/**
 * zc_plan_number - the number in the plan of a node
 * @plan: plan
 * @root: root of the operation, below @plan->members
 * @node: node
 */
u32 zc_plan_number(const struct zcoll_plan *plan, u32 root, u32 node)
{
	if (node >= plan->members)
		return node;
	return node >= root ? node - root : node + (plan->members - root);
}

/* The inverse of zc_plan_number() */
u32 zc_plan_node(const struct zcoll_plan *plan, u32 root, u32 v)
{
	if (v >= plan->members)
		return v;
	return v < plan->members - root ? v + root : v - (plan->members - root);
}

/* sigma(v): the node's place among the owners of segments */
u32 zc_plan_sigma(const struct zcoll_plan *plan, u32 v)
{
	u32 sigma = 0, i;

	if (!plan->levels[0])
		return v;
	for (i = 0; i < ZCOLL_PLAN_LEVELS && plan->levels[i]; i++) {
		sigma = sigma * plan->levels[i] + v % plan->levels[i];
		v /= plan->levels[i];
	}
	return sigma;
}

/* Are there inputs of the local ranks for this segment? */
bool zc_plan_has_input(const struct zcoll_plan *plan, u32 v, u32 segment)
{
	if (v >= plan->members)
		return false;
	switch (plan->collective) {
	case ZCOLL_ALLREDUCE:
	case ZCOLL_REDUCE_SCATTER:
	case ZCOLL_REDUCE:
		return true;
	case ZCOLL_ALLGATHER:
		return segment == v;
	case ZCOLL_BROADCAST:
		return v == 0;
	}
	return false;
}

/* Must this node make this segment final? It has no room for others. */
bool zc_plan_has_output(const struct zcoll_plan *plan, u32 v, u32 segment)
{
	if (v >= plan->members)
		return false;
	switch (plan->collective) {
	case ZCOLL_ALLREDUCE:
	case ZCOLL_ALLGATHER:
	case ZCOLL_BROADCAST:
		return true;
	case ZCOLL_REDUCE_SCATTER:
		return segment == v;
	case ZCOLL_REDUCE:
		return v == 0;
	}
	return false;
}

/* u: the number of a node in a step; its own inverse but for origin */
static u32 zc_step_u(const struct zcoll_plan *plan, const struct zcoll_step *step, u32 v)
{
	u32 u = v >= step->origin ? v - step->origin : v + (plan->nodes - step->origin);

	return step->flags & ZCOLL_STEP_FLIP ? plan->nodes - 1 - u : u;
}

static u32 zc_step_v(const struct zcoll_plan *plan, const struct zcoll_step *step, u32 u)
{
	if (step->flags & ZCOLL_STEP_FLIP)
		u = plan->nodes - 1 - u;
	return u < plan->nodes - step->origin ? u + step->origin :
						u - (plan->nodes - step->origin);
}

/**
 * zc_step_active - does a node take part in a step?
 * @plan: plan
 * @step: step of it
 * @v: the node's number in the plan
 */
bool zc_step_active(const struct zcoll_plan *plan, const struct zcoll_step *step, u32 v)
{
	u32 u = zc_step_u(plan, step, v);
	u32 rest;

	if (u < step->first || u > step->last)
		return false;
	rest = step->every > 1 ? u % step->every : 0;
	return rest >= step->lo && rest <= step->hi;
}

/* The digit of the peer; false: there is none */
static bool zc_step_digit(const struct zcoll_step *step, u32 x, u32 t, u32 *digit)
{
	s64 dist = step->dist + (s64)step->dist_step * t;

	switch (step->peer) {
	case ZCOLL_PEER_ADD:
		*digit = zc_mod(x + dist, step->radix);
		return true;
	case ZCOLL_PEER_XOR:
		*digit = x ^ (u32)step->dist;
		return *digit < step->radix;
	case ZCOLL_PEER_TO:
		*digit = dist;
		return dist >= 0 && dist < step->radix;
	}
	return false;
}

static bool zc_place(const struct zcoll_plan *plan, const struct zcoll_place *place, u32 x,
		     u32 xp, u32 t, u32 *index)
{
	s64 at = place->index + (s64)place->index_step * t;

	*index = ZC_NONE;
	if (place->space == ZCOLL_PLACE_DATA)
		return true;
	if (place->of == ZCOLL_OF_SELF)
		at += x;
	if (place->of == ZCOLL_OF_PEER)
		at += xp;
	*index = at;
	return at >= 0 && at < plan->scratch;
}

static bool zc_step_range(const struct zcoll_plan *plan, const struct zcoll_step *step,
			  u32 v, u32 peer, u32 t, struct zc_range *range)
{
	u32 r = 0, g;

	if (step->of == ZCOLL_OF_SELF)
		r = zc_plan_sigma(plan, v) / step->width;
	else if (step->of == ZCOLL_OF_PEER)
		r = zc_plan_sigma(plan, peer) / step->width;
	g = r - r % step->blocks;
	r = zc_mod((s64)r - g + step->seg + (s64)step->seg_step * t, step->blocks);
	range->base = g * step->width;
	range->span = step->blocks * step->width;
	range->first = range->base + r * step->width;
	range->count = step->count;
	return !step->count || (u64)g * step->width + range->span <= plan->segments;
}

/**
 * zc_step_turn - one iteration of a step at one node
 * @plan: plan
 * @step: step of it, in which the node takes part
 * @v: the node's number in the plan
 * @t: iteration, below @step->repeat
 * @turn: peer, segments and places
 *
 * Return: 0, or, for a plan that has not passed zc_plan_check() at this node:
 * -EHOSTUNREACH: the peer is out of range or the node itself; -ERANGE: a segment
 * or scratch place is out of range.
 */
int zc_step_turn(const struct zcoll_plan *plan, const struct zcoll_step *step, u32 v,
		 u32 t, struct zc_turn *turn)
{
	u32 u = zc_step_u(plan, step, v);
	u32 x = u / step->stride % step->radix, xp = x;

	turn->peer = ZC_NONE;
	if (step->peer != ZCOLL_PEER_NONE) {
		s64 up;

		if (!zc_step_digit(step, x, t, &xp))
			return -EHOSTUNREACH;
		up = u + ((s64)xp - x) * step->stride;
		if (up < 0 || up >= plan->nodes || up == u)
			return -EHOSTUNREACH;
		turn->peer = zc_step_v(plan, step, up);
	}
	if (!zc_step_range(plan, step, v, turn->peer, t, &turn->range) ||
	    !zc_place(plan, &step->dst, x, xp, t, &turn->dst) ||
	    !zc_place(plan, &step->src, x, xp, t, &turn->src))
		return -ERANGE;
	return 0;
}
