// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * "aggregator": a tree whose leaves are the nodes with ranks, and whose other nodes
 * have none: they only add up and pass on, as switches do in R. Graham et al., Scalable
 * Hierarchical Aggregation Protocol (SHArP), COMHPC 2016. A node with ranks sends and
 * receives each element once.
 *
 * Level 0 are the members, above them are fewer and fewer nodes, up to one. The nodes of
 * a level have numbers in a row, from base on. Of m nodes, number i has the nodes i, i + m,
 * i + 2 m, ... of the level below as children, radix at most: so the children number j of
 * all m nodes are in a row, too.
 *
 * Aggregators have neither inputs nor outputs. Their values, partial or final, are in
 * the accumulation.
 */
#include "gen.h"

#define ZC_AGGREGATOR_RADIX	8

#define ZC_MAX_LEVELS	18

/**
 * struct zc_levels - the levels of a tree
 * @count: nodes of each
 * @base: the first one's number
 * @top: the highest level
 */
struct zc_levels {
	u32 count[ZC_MAX_LEVELS];
	u32 base[ZC_MAX_LEVELS];
	u32 top;
};

/**
 * struct zc_climb - the way up
 * @row: by level, the first of the rows in which it sends; the children number j do so in
 *	row 2 j from there, and the next one is the answer
 */
struct zc_climb {
	u32 row[ZC_MAX_LEVELS];
};

static struct zc_levels zc_aggregator_levels(u32 members, u32 radix)
{
	struct zc_levels levels = { .count[0] = members };

	while (levels.count[levels.top] > 1) {
		u32 i = levels.top++;

		levels.count[i + 1] = zc_div_up(levels.count[i], radix);
		levels.base[i + 1] = levels.base[i] + levels.count[i];
	}
	return levels;
}

/* Nodes without ranks that the tree has */
static u32 zc_aggregators(const struct zc_levels *levels)
{
	return levels->base[levels->top] + 1 - levels->count[0];
}

/* The children number @j of the nodes above @level send to them */
static struct zcoll_step zc_climb_row(const struct zc_build *build,
				      const struct zc_levels *levels, u32 level, u32 j)
{
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND);
	u32 from = levels->base[level] + j * levels->count[level + 1];
	u32 to = zc_min(from + levels->count[level + 1], levels->base[level + 1]);

	zc_between(&send, from, to - 1);
	zc_digits(&send, build->plan->nodes, from, to - 1);
	send.dist = levels->base[level + 1] - from;
	return send;
}

/* Children that a node of the level above has, at most; some may have one less */
static u32 zc_children(const struct zc_levels *levels, u32 level)
{
	return zc_div_up(levels->count[level], levels->count[level + 1]);
}

/* Up to the top. Return: what to wait for there. */
static struct zcoll_after zc_climb_up(struct zc_build *build, const struct zc_levels *levels,
				      struct zc_climb *climb)
{
	struct zcoll_after folded[2] = { { 0 } };

	for (u32 level = 0; level < levels->top; level++) {
		struct zcoll_after below[2] = { folded[0], folded[1] };

		climb->row[level] = build->rows;
		for (u32 j = 0; j < zc_children(levels, level); j++) {
			struct zcoll_step send = zc_climb_row(build, levels, level, j);
			struct zcoll_step fold = zc_answer(&send, ZCOLL_STEP_FOLD);

			zc_shift(&fold, send.dist);
			if (j)
				fold.after[0] = folded[1];
			else
				fold.flags = ZCOLL_STEP_STORE;
			if (level) {
				send.after[0] = below[0];
				send.after[1] = below[1];
			} else {
				send.flags = ZCOLL_STEP_FIRST;
			}
			folded[0] = j ? folded[1] : (struct zcoll_after){ 0 };
			folded[1] = zc_on_slice(zc_message(build, &send, &fold), 0);
		}
	}
	return folded[1];
}

/*
 * From the top to all members, or to all but node 0. @climb: what was sent up must
 * have been before values come; NULL: nothing was.
 */
static void zc_climb_down(struct zc_build *build, const struct zc_levels *levels,
			  const struct zc_climb *climb, struct zcoll_after ready, bool skip)
{
	struct zc_span spans[2][ZCOLL_PLAN_MAX_STEPS];
	struct zc_span *above = spans[0], *here = spans[1], *swap;
	u32 n = 1;

	above[0] = (struct zc_span){ levels->base[levels->top], levels->base[levels->top], ready };
	for (u32 level = levels->top; level-- > 0; n = zc_children(levels, level)) {
		for (u32 j = 0; j < zc_children(levels, level); j++) {
			struct zcoll_step send = zc_climb_row(build, levels, level, j), get;
			s32 up = send.dist;

			if (skip && !level && !j && send.lo++ == send.hi)
				continue;
			get = send;
			zc_shift(&send, up);
			send.dist = -up;
			get = zc_answer(&send, level ? ZCOLL_STEP_FOLD : ZCOLL_STEP_DELIVER);
			zc_shift(&get, -up);
			if (level)
				get.flags = ZCOLL_STEP_STORE;
			if (climb)
				get.after[0] = zc_on_slice(climb->row[level] + 2 * j, 0);
			send.match = zc_add(build, &get);
			zc_send_from(build, &send, above, n);
			/* Then the plan is too long, and so may here[] be too short */
			if (build->rows > ZCOLL_PLAN_MAX_STEPS)
				return;
			here[j] = (struct zc_span){ get.lo, get.hi, zc_on_slice(send.match, 0) };
		}
		swap = above;
		above = here;
		here = swap;
	}
}

/* ---- the plan ---- */

/* Node 0 has the value, final, and gives it to the top. Return: what to wait for there. */
static struct zcoll_after zc_give_top(struct zc_build *build, const struct zc_levels *levels)
{
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND), store;

	zc_between(&send, 0, 0);
	send.dist = levels->base[levels->top];
	send.after[0] = zc_root_result(build, 0);
	store = zc_answer(&send, ZCOLL_STEP_FOLD);
	zc_shift(&store, send.dist);
	store.flags = ZCOLL_STEP_STORE;
	return zc_on_slice(zc_message(build, &send, &store), 0);
}

/* The top gives the result to node 0, whose inputs were sent up in row @sent */
static void zc_get_top(struct zc_build *build, const struct zc_levels *levels,
		       struct zcoll_after ready, u32 sent)
{
	u32 top = levels->base[levels->top];
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND), deliver;

	zc_between(&send, top, top);
	send.dist = -(s32)top;
	send.after[0] = ready;
	deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
	zc_shift(&deliver, send.dist);
	deliver.after[0] = zc_on_slice(sent, 0);
	zc_message(build, &send, &deliver);
}

/* The smallest radix for which so many aggregators are enough, or the usual one */
static u32 zc_aggregator_radix(const struct zcoll_plan_spec *spec)
{
	struct zc_levels levels;
	u32 radix = 2;

	if (spec->radix)
		return spec->radix;
	if (!spec->aggregators)
		return ZC_AGGREGATOR_RADIX;
	do
		levels = zc_aggregator_levels(spec->nodes, radix++);
	while (zc_aggregators(&levels) > spec->aggregators);
	return radix - 1;
}

int zc_gen_aggregator(struct zc_build *build)
{
	const struct zcoll_plan_spec *spec = build->spec;
	struct zcoll_plan *plan = build->plan;
	u32 radix = zc_aggregator_radix(spec), need;
	struct zc_levels levels = zc_aggregator_levels(spec->nodes, radix);
	struct zc_climb climb = { { 0 } };
	struct zcoll_after ready;

	need = zc_aggregators(&levels);
	if (spec->aggregators && spec->aggregators < need)
		return zc_build_fail(build, -EINVAL,
				     "aggregator: %u nodes with radix %u need %u aggregators, and there are %u; a larger radix needs fewer",
				     spec->nodes, radix, need, spec->aggregators);
	if (zc_max(need, spec->aggregators) > ZCOLL_PLAN_MAX_NODES - spec->nodes)
		return zc_build_fail(build, -E2BIG,
				     "aggregator: %u nodes and %u aggregators are more than %u",
				     spec->nodes, zc_max(need, spec->aggregators),
				     ZCOLL_PLAN_MAX_NODES);
	plan->nodes = spec->nodes + zc_max(need, spec->aggregators);
	plan->acc = plan->collective != ZCOLL_BARRIER;
	if (plan->collective == ZCOLL_BROADCAST) {
		ready = zc_give_top(build, &levels);
		zc_climb_down(build, &levels, NULL, ready, true);
		return 0;
	}
	ready = zc_climb_up(build, &levels, &climb);
	if (plan->collective == ZCOLL_REDUCE)
		zc_get_top(build, &levels, ready, climb.row[0]);
	else
		zc_climb_down(build, &levels, &climb, ready, false);
	return 0;
}
