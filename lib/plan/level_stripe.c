// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * All-gather and reduce-scatter with levels: the nodes of the outermost level exchange
 * what is their own, and then, level by level, each group what its nodes have got. So all
 * nodes are leaders, and between groups each segment goes once to each other group. J. L.
 * Träff, Decomposing Collectives for Exploiting Multi-lane Communication, arXiv 1910.13373,
 * 2019 (full-lane all-gather and reduce-scatter).
 *
 * Segment v is node v's, and the innermost digit is the low one. So what a node has
 * before it sends in a level is a *stripe*: segments v, v + S, v + 2 S, ..., where S is the
 * product of the levels up to this one. A row goes along it by iterations, of one segment
 * each. A node sends N - 1 messages, as in a ring, and more than in the circulant algorithm,
 * so for few bytes that one is faster; but other than in a ring, few of them wait for each
 * other. In the outermost level they are those of the circulant algorithm. Further in, what
 * the nodes of a group own does not wrap within the segments that it owns, so each node
 * sends to each other one directly, and a level of l nodes takes 2 (l - 1) rows.
 *
 * Reduce-scatter is the same backwards. A node needs places for what it has folded in the
 * innermost level, N / l segments.
 */
#include "gen.h"

/* The nodes that differ in digit @level */
static struct zcoll_step zc_stripe_group(const struct zc_build *build, const u32 *levels,
					 u32 level)
{
	struct zcoll_step group = zc_row(build, ZCOLL_STEP_SEND);

	group.radix = levels[level];
	for (u32 i = 0; i < level; i++)
		group.stride *= levels[i];
	return group;
}

/* Of the outermost level: the segments that its nodes own are a stride apart */
static struct zcoll_step zc_stripe_outermost(const struct zc_build *build, const u32 *levels,
					     u32 n)
{
	struct zcoll_step group = zc_stripe_group(build, levels, n - 1);

	group.seg_step = n > 1 ? group.stride : 0;
	return group;
}

/* Of another level: all of a node's stripe goes to, or comes from, each other node */
static struct zcoll_step zc_stripe_direct(const struct zc_build *build, const u32 *levels,
					  u32 level)
{
	struct zcoll_step send = zc_stripe_group(build, levels, level);

	send.seg_step = send.stride * send.radix;
	send.repeat = build->plan->nodes / send.seg_step;
	return send;
}

/* ---- all-gather ---- */

static void zc_direct_gather(struct zc_build *build, struct zcoll_step send,
			     struct zc_waits *ready, bool last)
{
	struct zcoll_step deliver;

	send.of = ZCOLL_OF_SELF;
	send.after[0] = zc_join(build, ready);
	for (u32 hop = 1; hop < send.radix; hop++) {
		send.dist = hop;
		deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
		zc_message(build, &send, &deliver);
		zc_wait(build, last ? NULL : ready, zc_on(send.match));
	}
}

/**
 * zc_stripe_allgather - all-gather with levels
 * @build: plan of as many segments as nodes
 * @levels: levels, innermost first
 * @n: how many
 */
void zc_stripe_allgather(struct zc_build *build, const u32 *levels, u32 n)
{
	struct zcoll_step group = zc_stripe_outermost(build, levels, n);
	struct zc_skips skips = zc_circulant_skips(group.radix, 2);
	struct zc_waits ready = { .n = 0 };

	zc_wait(build, &ready, zc_own_result(build));
	zc_circulant_gather(build, &group, &skips, &ready, NULL, (struct zcoll_after){ 0 });
	for (u32 i = n - 1; i-- > 0;)
		zc_direct_gather(build, zc_stripe_direct(build, levels, i), &ready, !i);
}

/* ---- reduce-scatter ---- */

/* Return: what to wait for to have the node's stripe. @ready: when it has that of before. */
static struct zcoll_after zc_direct_scatter(struct zc_build *build, struct zcoll_step send,
					    struct zcoll_after ready)
{
	bool raw = ready.mode == ZCOLL_AFTER_NONE;
	struct zcoll_after folded = ready;
	struct zcoll_step fold;

	send.of = ZCOLL_OF_PEER;
	send.flags = raw ? ZCOLL_STEP_FIRST : 0;
	send.after[0] = ready;
	for (u32 hop = 1; hop < send.radix; hop++) {
		send.dist = hop;
		fold = zc_answer(&send, ZCOLL_STEP_FOLD);
		if (raw && hop == 1)
			fold.flags = ZCOLL_STEP_FIRST;
		fold.after[0] = folded;
		folded = zc_on_slice(zc_message(build, &send, &fold), 0);
	}
	return zc_on(folded.step);
}

static u32 zc_common(u32 a, u32 b)
{
	return b ? zc_common(b, a % b) : a;
}

/* Does one of @n segments, @apart from each other, have the last of @places places? */
static bool zc_last_is_used(u32 places, u32 apart, u32 n)
{
	u32 place = 0;

	while (--n && place != places - 1)
		place = (place + apart) % places;
	return place == places - 1;
}

/* The fewest places in which a stripe of @n segments has room (zcoll_plan.acc) */
static u32 zc_stripe_places(u32 apart, u32 n)
{
	u32 places = n;

	while (zc_common(places, apart) > 1 || !zc_last_is_used(places, apart, n))
		places++;
	return places;
}

/**
 * zc_stripe_reduce_scatter - reduce-scatter with levels
 * @build: plan of as many segments as nodes
 * @levels: levels, innermost first
 * @n: how many
 */
void zc_stripe_reduce_scatter(struct zc_build *build, const u32 *levels, u32 n)
{
	struct zcoll_step group = zc_stripe_outermost(build, levels, n);
	struct zc_skips skips = zc_circulant_skips(group.radix, 2);
	struct zcoll_after ready = { 0 };

	if (n > 1)
		build->plan->acc = zc_stripe_places(levels[0], build->plan->nodes / levels[0]);
	for (u32 i = 0; i + 1 < n; i++)
		ready = zc_direct_scatter(build, zc_stripe_direct(build, levels, i), ready);
	zc_circulant_scatter(build, &group, &skips, ready, true, NULL);
}
