// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Ends: that no node ends a barrier before all have begun it, and none an operation of
 * a plan that is ZCOLL_PLAN_AGREED before all nodes have all their results.
 *
 * By causality: each turn *knows* of some nodes that they have their results, because all
 * turns that make them final come before it, by what turns wait for and by messages. A node
 * without results, as all are in a barrier, is known to have them from its first turn on,
 * which comes after it has begun. A node ends after all its turns, so it knows what
 * any of them knows.
 *
 * Only messages without elements carry knowledge: one that has a segment is not sent where
 * the geometry gives that segment no elements.
 */
#include <stdlib.h>

#include "check.h"
#include "check_set.h"

/**
 * struct zc_ends - who knows what
 * @c: proof
 * @nodes: sets of nodes
 * @steps: sets of steps
 * @all: by row: set of steps that make results final
 * @end: by row: set of nodes it knows of when it ends
 * @known: by turn: set of nodes it knows of
 * @final: by turn: set of steps of this node that make results final, and are done
 */
struct zc_ends {
	struct zc_proof *c;
	struct zc_sets nodes;
	struct zc_sets steps;
	u32 *all;
	u32 *end;
	u32 *known;
	u32 *final;
};

static bool makes_final(const struct zcoll_step *step)
{
	return step->count && (step->kind == ZCOLL_STEP_DELIVER ||
			       step->kind == ZCOLL_STEP_FINAL ||
			       step->flags & ZCOLL_STEP_RESULT);
}

/**
 * zc_ends_new - begin to find out who knows what
 * @c: proof
 *
 * Return: NULL: no memory.
 */
struct zc_ends *zc_ends_new(struct zc_proof *c)
{
	const struct zcoll_plan *plan = c->plan;
	struct zc_ends *ends = calloc(1, sizeof(*ends));
	u32 v, s;

	if (!ends)
		return NULL;
	ends->c = c;
	ends->all = calloc(c->rows, sizeof(u32));
	ends->end = calloc(c->rows, sizeof(u32));
	ends->known = calloc((size_t)c->turns + 1, sizeof(u32));
	ends->final = calloc((size_t)c->turns + 1, sizeof(u32));
	if (zc_sets_init(&ends->nodes, plan->nodes) ||
	    zc_sets_init(&ends->steps, plan->nsteps + 1) || !ends->all || !ends->end ||
	    !ends->known || !ends->final)
		goto no_memory;
	for (v = 0; v < c->rows; v++) {
		for (s = 0; s < plan->nsteps; s++) {
			if (!makes_final(&plan->steps[s]) || !zc_proof_active(c, v, s))
				continue;
			ends->all[v] = zc_sets_add(&ends->steps, ends->all[v], s);
			if (ends->all[v] == ZC_SET_NONE)
				goto no_memory;
		}
	}
	return ends;
no_memory:
	zc_ends_free(ends);
	return NULL;
}

void zc_ends_free(struct zc_ends *ends)
{
	if (!ends)
		return;
	zc_sets_free(&ends->nodes);
	zc_sets_free(&ends->steps);
	free(ends->all);
	free(ends->end);
	free(ends->known);
	free(ends->final);
	free(ends);
}

/**
 * zc_ends_visit - what a turn knows
 * @ends: what the turns it waits for know
 * @at: turn
 * @peer: its peer
 *
 * Return: 0 or -ENOMEM.
 */
int zc_ends_visit(struct zc_ends *ends, const struct zc_at *at, u32 peer)
{
	const struct zcoll_step *step = &ends->c->plan->steps[at->step];
	u32 known = ZC_SET_EMPTY, final = ZC_SET_EMPTY, i, turn;
	u32 waits = step->count ? ZC_WAITS_OWN : ZC_WAITS_DATA;
	struct zc_at on;

	for (i = 0; i < waits; i++) {
		u32 raise = i == ZC_WAITS_OWN && ends->c->rows == 1 ? peer : 0;

		if (zc_proof_wait(ends->c, at, peer, i, &on) == ZC_WAIT_NONE)
			continue;
		turn = zc_proof_turn(ends->c, &on);
		known = zc_sets_union(&ends->nodes, known, ends->known[turn], raise);
		if (i < ZC_WAITS_OWN)
			final = zc_sets_union(&ends->steps, final, ends->final[turn], 0);
		if (known == ZC_SET_NONE || final == ZC_SET_NONE)
			return -ENOMEM;
	}
	if (makes_final(step) && at->t == step->repeat - 1)
		final = zc_sets_add(&ends->steps, final, at->step);
	if (final == ends->all[at->v])
		known = zc_sets_add(&ends->nodes, known, at->v);
	if (known == ZC_SET_NONE || final == ZC_SET_NONE)
		return -ENOMEM;
	turn = zc_proof_turn(ends->c, at);
	ends->known[turn] = known;
	ends->final[turn] = final;
	ends->end[at->v] = zc_sets_union(&ends->nodes, ends->end[at->v], known, 0);
	return ends->end[at->v] == ZC_SET_NONE ? -ENOMEM : 0;
}

/* The set of nodes of which all must know */
static u32 ends_need(struct zc_ends *ends)
{
	const struct zcoll_plan *plan = ends->c->plan;

	if (plan->collective == ZCOLL_BARRIER)
		return zc_sets_first(&ends->nodes, plan->nodes);
	return zc_sets_first(&ends->nodes, plan->collective == ZCOLL_REDUCE ? 1 : plan->members);
}

/**
 * zc_ends_check - show that all nodes know what they must when they end
 * @ends: all turns have been visited
 *
 * Return: 0, -ENOMEM or a refusal.
 */
int zc_ends_check(struct zc_ends *ends)
{
	const char *what = ends->c->plan->collective == ZCOLL_BARRIER ?
		"begun" : "all its results";
	struct zc_at at = { ZC_NONE, ZC_NONE, ZC_NONE };
	u32 need = ends_need(ends), v, lacks, end;

	if (need == ZC_SET_NONE)
		return -ENOMEM;
	for (v = 0; v < ends->c->rows; v++) {
		/* Its own results it has when it ends */
		end = zc_sets_add(&ends->nodes, ends->end[v], v);
		if (end == ZC_SET_NONE)
			return -ENOMEM;
		at.v = v;
		lacks = zc_sets_lacks(&ends->nodes, end, need);
		if (lacks != ZC_SET_NONE)
			return zc_proof_refuse(ends->c, &at, "may end before node %u has %s",
					       lacks, what);
	}
	ends->c->facts->agreed = true;
	return 0;
}
