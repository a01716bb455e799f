// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * "halving-doubling": reduce-scatter by halving: a node and the one at distance d, for
 * d = P/2 ... 1, exchange halves of what they have, and each folds its own; then all-gather
 * by doubling. R. Rabenseifner, Optimization of Collective Reduction Operations, ICCS 2004.
 *
 * P, the *core*, is the largest power of two. A node v + P gives all its inputs to node
 * v first, and gets the result at the end. So in the first round some nodes send
 * accumulations, those below N - P, and others inputs: they are *heavy* and *light*.
 */
#include "gen.h"

/**
 * struct zc_halving - a reduce-scatter by halving
 * @build: plan
 * @core: P
 * @given: row by which node v + P gives its inputs, ZC_NONE: none
 * @taken: row by which node v takes them
 * @sent: by log2 d, what has sent at distance d
 * @folded: when the node's own half is folded, all of it
 * @own: likewise, slice by slice if that can be
 */
struct zc_halving {
	struct zc_build *build;
	u32 core;
	u32 given;
	u32 taken;
	struct zcoll_after sent[ZC_MAX_ROUNDS];
	struct zcoll_after folded;
	struct zcoll_after own;
};

/* Nodes of the core send the half of the node at distance @d, and get their own */
static struct zcoll_step zc_half_send(const struct zc_halving *halving, u32 d)
{
	struct zcoll_step send = zc_row(halving->build, ZCOLL_STEP_SEND);

	send.peer = ZCOLL_PEER_XOR;
	send.radix = halving->core;
	send.last = halving->core - 1;
	send.dist = d;
	send.width = d;
	send.blocks = halving->core / d;
	send.count = d;
	send.of = ZCOLL_OF_PEER;
	return send;
}

/* All inputs of the nodes beyond the core */
static void zc_half_take(struct zc_halving *halving)
{
	struct zcoll_step send = zc_row(halving->build, ZCOLL_STEP_SEND), fold;

	send.first = halving->core;
	send.dist = -(s32)halving->core;
	send.flags = ZCOLL_STEP_FIRST;
	send.count = halving->core;
	fold = zc_answer(&send, ZCOLL_STEP_FOLD);
	zc_shift(&fold, send.dist);
	fold.flags = ZCOLL_STEP_FIRST;
	halving->taken = zc_message(halving->build, &send, &fold);
	halving->given = halving->taken - 1;
}

/* First round, of nodes @first to @last and those @by further on. Return: the fold. */
static u32 zc_half_first(struct zc_halving *halving, u32 first, u32 last, s32 by, bool heavy,
			 bool to_heavy, u32 result)
{
	struct zcoll_step send = zc_half_send(halving, halving->core / 2), fold;

	zc_between(&send, first, last);
	fold = zc_answer(&send, ZCOLL_STEP_FOLD);
	zc_shift(&fold, by);
	fold.flags = result;
	if (heavy)
		send.after[0] = zc_on(halving->taken);
	else
		send.flags = ZCOLL_STEP_FIRST;
	if (to_heavy)
		fold.after[0] = zc_on(halving->taken);
	else
		fold.flags |= ZCOLL_STEP_FIRST;
	return zc_message(halving->build, &send, &fold);
}

/* First round, where some nodes are heavy. Up to four rows do the same elsewhere. */
static void zc_half_mixed(struct zc_halving *halving, u32 heavy, u32 result)
{
	u32 half = halving->core / 2, cut = heavy < half ? heavy : heavy - half;
	const u32 from[] = { 0, cut, half };
	struct zc_waits sent = { .n = 0 }, folded = { .n = 0 };

	for (u32 i = 0; i < 2; i++) {
		u32 first = from[i], last = from[i + 1] - 1;
		bool low = first < heavy, high = first + half < heavy;
		u32 up, down;

		if (first == from[i + 1])
			continue;
		up = zc_half_first(halving, first, last, half, low, high, result);
		down = zc_half_first(halving, first + half, last + half, -(s32)half, high, low,
				     result);
		zc_wait(halving->build, &sent, zc_on(up - 1));
		zc_wait(halving->build, &sent, zc_on(down - 1));
		zc_wait(halving->build, &folded, zc_on(up));
		zc_wait(halving->build, &folded, zc_on(down));
	}
	halving->folded = zc_join(halving->build, &folded);
	halving->own = halving->folded;
	halving->sent[__builtin_ctz(half)] = zc_join(halving->build, &sent);
}

/* At distance @d, all nodes have sent and folded in the same rows */
static void zc_half_done(struct zc_halving *halving, u32 d, u32 fold)
{
	halving->sent[__builtin_ctz(d)] = zc_on_slice(fold - 1, 0);
	halving->folded = zc_on(fold);
	halving->own = zc_on_slice(fold, 0);
}

/* Reduce-scatter; @result: the last fold makes the own segment final */
static void zc_halve(struct zc_halving *halving, bool result)
{
	u32 heavy = halving->build->plan->nodes - halving->core, d = halving->core / 2;
	u32 last = result ? ZCOLL_STEP_RESULT : 0;
	u32 flags = d == 1 ? last : 0;

	if (heavy) {
		zc_half_take(halving);
		zc_half_mixed(halving, heavy, flags);
	} else {
		zc_half_done(halving, d, zc_half_first(halving, 0, halving->core - 1, 0, false,
						       false, flags));
	}
	while (d /= 2) {
		struct zcoll_step send = zc_half_send(halving, d), row;

		row = zc_answer(&send, ZCOLL_STEP_FOLD);
		row.flags = d == 1 ? last : 0;
		send.after[0] = halving->folded;
		row.after[0] = halving->folded;
		zc_half_done(halving, d, zc_message(halving->build, &send, &row));
	}
}

/* The nodes beyond the core get the result */
static void zc_half_give(struct zc_halving *halving, const struct zc_waits *ready)
{
	struct zcoll_step send = zc_row(halving->build, ZCOLL_STEP_SEND), deliver;

	send.last -= halving->core;
	send.dist = halving->core;
	send.count = halving->core;
	zc_set_after(&send, ready);
	deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
	zc_shift(&deliver, send.dist);
	deliver.after[0] = zc_on_slice(halving->given, 0);
	zc_message(halving->build, &send, &deliver);
}

/* At distance @d, nodes of the core send what they have down; only node 0 has outputs */
static void zc_half_collect(struct zc_halving *halving, u32 d, struct zcoll_after sent,
			    struct zc_waits *have)
{
	struct zcoll_step send = zc_row(halving->build, ZCOLL_STEP_SEND), row;
	struct zc_waits now = *have;

	zc_digits(&send, 2 * d, d, d);
	send.dist = -(s32)d;
	send.width = d;
	send.blocks = halving->core / d;
	send.count = d;
	send.of = ZCOLL_OF_SELF;
	zc_set_after(&send, &now);
	zc_between(&send, d, d);
	row = zc_answer(&send, ZCOLL_STEP_DELIVER);
	zc_shift(&row, send.dist);
	row.after[0] = sent;
	zc_message(halving->build, &send, &row);
	if (4 * d > halving->core)
		return;
	zc_between(&send, 3 * d, halving->core - 1);
	row = zc_answer(&send, ZCOLL_STEP_FOLD);
	zc_shift(&row, send.dist);
	row.flags = ZCOLL_STEP_STORE;
	row.after[0] = sent;
	zc_wait(halving->build, have, zc_on(zc_message(halving->build, &send, &row)));
}

static void zc_half_reduce(struct zc_halving *halving)
{
	struct zcoll_plan *plan = halving->build->plan;
	struct zc_waits have = { .n = 0 };
	struct zcoll_step final;

	/* Heavy nodes have all, but node 0 has outputs for that */
	plan->acc = plan->nodes - halving->core > 1 ? halving->core : halving->core / 2;
	zc_halve(halving, false);
	final = zc_row(halving->build, ZCOLL_STEP_FINAL);
	zc_between(&final, 0, 0);
	final.after[0] = halving->folded;
	zc_add(halving->build, &final);
	zc_wait(halving->build, &have, halving->folded);
	for (u32 d = 1, i = 0; d < halving->core; d *= 2, i++)
		zc_half_collect(halving, d, halving->sent[i], &have);
}

static int zc_half_scatter(struct zc_halving *halving)
{
	struct zcoll_plan *plan = halving->build->plan;

	if (halving->core < plan->nodes)
		return zc_build_fail(halving->build, -EOPNOTSUPP,
				     "halving-doubling: reduce-scatter needs a power of two nodes, and %u is none; circulant does with any",
				     plan->nodes);
	if (plan->nodes > 2)
		plan->acc = plan->nodes / 2;
	zc_halve(halving, true);
	return 0;
}

int zc_gen_halving_doubling(struct zc_build *build)
{
	struct zcoll_plan *plan = build->plan;
	struct zc_halving halving = {
		.build = build,
		.core = zc_power_below(2, plan->nodes),
		.given = ZC_NONE,
		.taken = ZC_NONE,
	};
	struct zc_waits ready = { .n = 0 };

	plan->segments = halving.core;
	switch (plan->collective) {
	case ZCOLL_ALLGATHER:
		zc_doubling_allgather(build);
		return 0;
	case ZCOLL_REDUCE_SCATTER:
		return zc_half_scatter(&halving);
	case ZCOLL_REDUCE:
		zc_half_reduce(&halving);
		return 0;
	}
	zc_halve(&halving, true);
	zc_wait(build, &ready, halving.own);
	zc_doubling_gather(build, halving.core, &ready, halving.sent);
	if (halving.core < plan->nodes)
		zc_half_give(&halving, &ready);
	return 0;
}
