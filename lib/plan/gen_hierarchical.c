// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * "hierarchical": groups of nodes that are near each other, groups of groups, and so on;
 * most messages stay in the groups.
 *
 * All-reduce: all nodes are leaders for a part of the segments: reduce-scatter in the groups,
 * then of each part among the nodes that have it, and all-gather back in the opposite order.
 * M. Bayatpour et al., Scalable Reduction Collectives with Data Partitioning-based
 * Multi-Leader Design, SC 2017. In a level the algorithm is circulant. All-gather and
 * reduce-scatter: see level_stripe.c. Each node sends what it would in a ring; what goes
 * between groups is the least there can be.
 *
 * Broadcast and reduce: each group has one leader, which is in a tree with other leaders;
 * see level_tree.c. All segments go once into each group, or out of it. The root sends as
 * often as in a binomial tree or some times more, so in a network that is the same
 * everywhere there is nothing to be gained.
 *
 * Groups are nodes whose numbers follow each other, and these are counted from the root.
 * So they are groups of the communicator's nodes, too, if the root is a multiple of the
 * size of the groups; of the largest ones, where there are more than two levels.
 *
 * Levels need the number of nodes to be a product. For a prime one without given levels,
 * all-gather, reduce-scatter and barrier have one level. In the others the groups are powers
 * of two, the last one has another size, and each has one leader: in all-reduce, binomial
 * trees to the leaders and back. There the root has to be node 0 for groups to be the
 * communicator's.
 */
#include <stdio.h>
#include <string.h>

#include "gen.h"

/* Largest group of level_stripe.c's that is chosen, as its rows grow with it */
#define ZC_STRIPE_GROUP	16

/* The nodes that differ in digit @level, and the segments that they have in common */
static struct zcoll_step zc_level(const struct zc_build *build, const u32 *levels, u32 level)
{
	struct zcoll_step group = zc_row(build, ZCOLL_STEP_SEND);

	group.radix = levels[level];
	group.blocks = levels[level];
	for (u32 i = 0; i < level; i++)
		group.stride *= levels[i];
	group.width = build->plan->segments / (group.stride * group.blocks);
	return group;
}

static void zc_levels_allreduce(struct zc_build *build, const u32 *levels, u32 n)
{
	struct zcoll_plan *plan = build->plan;
	struct zc_sent sent[ZCOLL_PLAN_LEVELS] = { { .n = 0 } };
	struct zc_skips skips[ZCOLL_PLAN_LEVELS];
	struct zcoll_step group[ZCOLL_PLAN_LEVELS];
	struct zc_waits ready = { .n = 0 };
	struct zcoll_after own = { 0 };

	/* What the nodes of a group own is in one piece */
	memcpy(plan->levels, levels, n * sizeof(*levels));
	plan->segments = plan->nodes;
	for (u32 i = 0; i < n; i++) {
		group[i] = zc_level(build, levels, i);
		skips[i] = zc_circulant_skips(levels[i], 2);
		own = zc_circulant_scatter(build, &group[i], &skips[i],
					   i ? zc_on(own.step) : own, i + 1 == n, &sent[i]);
	}
	zc_wait(build, &ready, own);
	for (u32 i = n; i-- > 0;)
		zc_circulant_gather(build, &group[i], &skips[i], &ready, &sent[i],
				    (struct zcoll_after){ 0 });
}

static void zc_levels_barrier(struct zc_build *build, const u32 *levels, u32 n)
{
	struct zc_waits ready = { .n = 0 };

	for (u32 i = 0; i < n; i++) {
		struct zcoll_step group = zc_level(build, levels, i);

		zc_disseminate(build, &group, 2, &ready);
	}
}

/* ---- one leader ---- */

/* A last group of one node would be: it goes with the group before. */
static bool zc_lone(u32 nodes, u32 group)
{
	return nodes % group == 1;
}

static struct zcoll_step zc_lone_send(const struct zc_build *build, u32 group)
{
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND);

	send.first = send.last;
	send.dist = -(s32)group;
	send.count = build->plan->segments;
	return send;
}

static void zc_lone_gives(struct zc_build *build, u32 group, struct zc_waits *folded,
			  struct zc_waits *sent)
{
	struct zcoll_step send = zc_lone_send(build, group), fold;

	send.flags = ZCOLL_STEP_FIRST;
	fold = zc_answer(&send, ZCOLL_STEP_FOLD);
	zc_shift(&fold, send.dist);
	fold.after[0] = zc_join(build, folded);
	*folded = (struct zc_waits){ .n = 0 };
	zc_wait(build, folded, fold.after[0]);
	zc_wait(build, folded, zc_on(zc_message(build, &send, &fold)));
	zc_wait(build, sent, zc_on(build->rows - 2));
}

static void zc_lone_gets(struct zc_build *build, u32 group, struct zcoll_after ready,
			 struct zcoll_after quiet)
{
	struct zcoll_step send = zc_lone_send(build, group), deliver;

	zc_shift(&send, send.dist);
	send.dist = group;
	send.after[0] = ready;
	deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
	zc_shift(&deliver, send.dist);
	deliver.after[0] = quiet;
	zc_message(build, &send, &deliver);
}

/* All nodes in groups of @size, a power of two */
static void zc_leaders_allreduce(struct zc_build *build, u32 size)
{
	struct zcoll_plan *plan = build->plan;
	u32 nodes = plan->nodes, leaders = nodes / size + !zc_lone(nodes, size);
	struct zc_skips skips = zc_circulant_skips(leaders, 2);
	struct zc_waits folded = { .n = 0 }, given = { .n = 0 }, ready = { .n = 0 };
	struct zc_sent sent = { .n = 0 };
	struct zcoll_after none = { 0 }, quiet;
	struct zcoll_step group;

	/* Leader number i is node i size, so i is the number of a block of size segments */
	plan->segments = leaders * size;
	zc_tree_reduce(build, 2, size, false, &folded, &given);
	if (zc_lone(nodes, size))
		zc_lone_gives(build, size, &folded, &given);
	group = zc_row(build, ZCOLL_STEP_SEND);
	zc_digits(&group, size, 0, 0);
	group.last = (leaders - 1) * size;
	group.stride = size;
	group.radix = leaders;
	group.width = size;
	group.blocks = leaders;
	zc_wait(build, &ready,
		zc_circulant_scatter(build, &group, &skips, zc_join(build, &folded), true, &sent));
	zc_circulant_gather(build, &group, &skips, &ready, &sent, none);
	none = zc_join(build, &ready);
	quiet = zc_join(build, &given);
	zc_tree_broadcast(build, 2, size, none, quiet);
	if (zc_lone(nodes, size))
		zc_lone_gets(build, size, none, quiet);
}

/* ---- broadcast and reduce ---- */

/* Each level is a tier. Return: how many. */
static u32 zc_level_tiers(const struct zc_build *build, const u32 *levels, u32 n,
			  struct zc_tier *tiers)
{
	u32 stride = 1;

	for (u32 i = 0; i < n; i++) {
		tiers[i] = (struct zc_tier){ 0, build->plan->nodes - 1, stride, levels[i] };
		stride *= levels[i];
	}
	return n;
}

/* Groups of @size; the last one, which has fewer, or one more, is a tier of its own */
static u32 zc_leader_tiers(const struct zc_build *build, u32 size, struct zc_tier *tiers)
{
	u32 nodes = build->plan->nodes, leaders = nodes / size + !zc_lone(nodes, size);
	u32 last = (leaders - 1) * size;

	tiers[0] = (struct zc_tier){ 0, last - 1, 1, size };
	tiers[1] = (struct zc_tier){ last, nodes - 1, 1, nodes - last };
	tiers[2] = (struct zc_tier){ 0, last, size, leaders };
	return 3;
}

/* ---- levels ---- */

/* The largest divisor of @n that is at most @most and its root; 1 for a prime */
static u32 zc_divisor(u32 n, u32 most)
{
	u32 best = 1;

	for (u64 d = 2; d <= most && d * d <= n; d++)
		if (n % d == 0)
			best = d;
	return best;
}

/*
 * Two levels, the inner one as large as the outer one or smaller, and @most. Return: how
 * many.
 */
static u32 zc_choose_levels(u32 nodes, u32 most, u32 *levels)
{
	levels[0] = zc_divisor(nodes, most);
	if (levels[0] == 1) {
		levels[0] = nodes;
		return 1;
	}
	levels[1] = nodes / levels[0];
	return 2;
}

/* Return: how many levels, or a negative errno */
static int zc_given_levels(struct zc_build *build, u32 *levels)
{
	const u32 *given = build->spec->levels;
	u64 product = 1;
	char text[64];
	u32 n = 0, at = 0;

	for (u32 i = 0; i < ZCOLL_PLAN_LEVELS && given[i]; i++) {
		product = product * given[i] > U32_MAX ? U32_MAX : product * given[i];
		at += snprintf(text + at, sizeof(text) - at, "%s%u", i ? "x" : "", given[i]);
		/* A level of one is none */
		if (given[i] > 1)
			levels[n++] = given[i];
	}
	if (product != build->plan->nodes)
		return zc_build_fail(build, -EINVAL,
				     "hierarchical: levels %s are for %llu nodes, not for %u: their product must be the number of nodes",
				     text, (unsigned long long)product, build->plan->nodes);
	return n;
}

/* Of a prime number of nodes: how many are in a group */
static u32 zc_group_size(u32 nodes)
{
	u32 size = 2;

	while (4 * size * size <= nodes)
		size *= 2;
	return size;
}

/* @size: of groups that have one leader, 0: the levels are of all nodes */
static void zc_rooted(struct zc_build *build, const u32 *levels, u32 n, u32 size)
{
	struct zc_tier tiers[ZCOLL_PLAN_LEVELS];

	n = size ? zc_leader_tiers(build, size, tiers) : zc_level_tiers(build, levels, n, tiers);
	if (build->plan->collective == ZCOLL_BROADCAST) {
		zc_tiers_broadcast(build, tiers, n);
		return;
	}
	/* Nodes other than the root have children, too */
	build->plan->acc = build->plan->nodes > 3;
	zc_tiers_reduce(build, tiers, n);
}

int zc_gen_hierarchical(struct zc_build *build)
{
	struct zcoll_plan *plan = build->plan;
	u32 levels[ZCOLL_PLAN_LEVELS] = { 0 }, size = 0;
	bool given = build->spec->levels[0];
	bool striped = plan->collective == ZCOLL_ALLGATHER ||
		       plan->collective == ZCOLL_REDUCE_SCATTER;
	int n;

	n = given ? zc_given_levels(build, levels) :
		    (int)zc_choose_levels(plan->nodes, striped ? ZC_STRIPE_GROUP : plan->nodes,
					  levels);
	if (n < 0)
		return n;
	if (n == 1 && !given && plan->nodes > 4)
		size = zc_group_size(plan->nodes);
	switch (plan->collective) {
	case ZCOLL_BROADCAST:
	case ZCOLL_REDUCE:
		zc_rooted(build, levels, n, size);
		break;
	case ZCOLL_ALLGATHER:
		plan->segments = plan->nodes;
		zc_stripe_allgather(build, levels, n);
		break;
	case ZCOLL_REDUCE_SCATTER:
		plan->segments = plan->nodes;
		zc_stripe_reduce_scatter(build, levels, n);
		break;
	case ZCOLL_BARRIER:
		zc_levels_barrier(build, levels, n);
		break;
	default:
		if (size)
			zc_leaders_allreduce(build, size);
		else
			zc_levels_allreduce(build, levels, n);
	}
	return 0;
}
