// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Reduce-scatter and all-gather on circulant graphs: any number of nodes, few rounds,
 * each block sent once. J. L. Träff, Optimal, Non-pipelined Reduce-scatter and Allreduce
 * Algorithms, arXiv 2410.14234, 2024.
 *
 * Blocks are counted from the node's own, block 0. At first a node is concerned with
 * all n blocks. In a round the extent shrinks from m' to m: what is of no more
 * concern, blocks m .. m'-1, goes to the node m further on, to which they are
 * blocks 0 .. m'-m-1; so they must be m at most. With a radix above 2 they may be more,
 * and go to the nodes m, 2 m, ... further on. All-gather is the same backwards.
 *
 * Träff's skips are n, ceil(n/2), ..., 1, or with a radix k, n, ceil(n/k), ..., 1.
 *
 * Blocks from some number on have not been folded yet, are *raw*: then a message is
 * cut where that begins, as a step sends either inputs or accumulations. For one block,
 * which is what Träff's skips leave for odd n, a copy is cheaper than a message.
 */
#include "gen.h"

/*
 * @count blocks from @first on: in one message, or if those of the group are not in a row
 * but seg_step segments apart, each in its own
 */
static void zc_blocks(struct zcoll_step *row, u32 first, u32 count)
{
	row->seg = row->seg_step ? first * row->seg_step : first;
	row->repeat = row->seg_step ? count : 1;
	row->count = row->seg_step ? row->width : count * row->width;
}

/* The skips of Träff: n, ceil(n / radix), ..., 1 */
struct zc_skips zc_circulant_skips(u32 size, u32 radix)
{
	struct zc_skips skips = { .extent[0] = size };

	while (size > 1) {
		size = zc_div_up(size, radix);
		skips.extent[++skips.rounds] = size;
	}
	return skips;
}

/* ---- reduce-scatter ---- */

/**
 * struct zc_scatter - a reduce-scatter under way
 * @build: plan
 * @group: the group
 * @sent: gets the rows that send, or NULL
 * @raw: blocks from here on are raw
 * @ready: when all blocks that are not raw can be sent
 * @fold: the last row that folds, ZC_NONE: none
 * @fold_row: that row
 * @round: number of the round
 */
struct zc_scatter {
	struct zc_build *build;
	const struct zcoll_step *group;
	struct zc_sent *sent;
	u32 raw;
	struct zcoll_after ready;
	u32 fold;
	struct zcoll_step fold_row;
	u32 round;
};

/* Wait for the last fold, by slices if it was of the same blocks */
static struct zcoll_after zc_after_fold(const struct zc_scatter *scatter,
					const struct zcoll_step *row)
{
	if (scatter->fold == ZC_NONE)
		return scatter->ready;
	if (scatter->fold_row.seg == row->seg && scatter->fold_row.count == row->count &&
	    scatter->fold_row.repeat == row->repeat)
		return zc_on_slice(scatter->fold, 0);
	return zc_on(scatter->fold);
}

/* A node that has outputs for its own block only keeps accumulations of @blocks apart */
static void zc_scatter_keeps(struct zc_scatter *scatter, u32 blocks)
{
	struct zcoll_plan *plan = scatter->build->plan;

	if (plan->collective == ZCOLL_REDUCE_SCATTER)
		plan->acc = zc_max(plan->acc, blocks);
}

/*
 * Blocks from @hop + @from to @hop + @to - 1 go @hop nodes further on, where they are
 * @from to @to - 1. @raw: of them, at the receiver, this and the rest are raw.
 */
static void zc_scatter_piece(struct zc_scatter *scatter, u32 hop, u32 from, u32 to, u32 raw,
			     bool result)
{
	struct zcoll_step send = *scatter->group, fold;

	send.dist = hop;
	send.of = ZCOLL_OF_SELF;
	zc_blocks(&send, hop + from, to - from);
	fold = zc_answer(&send, ZCOLL_STEP_FOLD);
	fold.of = ZCOLL_OF_SELF;
	zc_blocks(&fold, from, to - from);
	if (from >= raw)
		fold.flags |= ZCOLL_STEP_FIRST;
	if (result)
		fold.flags |= ZCOLL_STEP_RESULT;
	fold.after[0] = zc_after_fold(scatter, &fold);
	if (hop + from >= scatter->raw)
		send.flags |= ZCOLL_STEP_FIRST;
	else
		send.after[0] = scatter->ready;
	scatter->fold = zc_message(scatter->build, &send, &fold);
	scatter->fold_row = fold;
	if (!result)
		zc_scatter_keeps(scatter, to);
	if (scatter->sent && scatter->sent->n < ZCOLL_PLAN_MAX_STEPS) {
		u32 n = scatter->sent->n++;

		scatter->sent->step[n].step = scatter->fold - 1;
		scatter->sent->step[n].round = scatter->round;
		scatter->sent->step[n].hop = hop;
	}
}

/* One message, cut where blocks are raw at one of both ends only */
static void zc_scatter_hop(struct zc_scatter *scatter, u32 hop, u32 blocks, u32 raw, bool result)
{
	u32 here = zc_min(raw, blocks);
	u32 there = scatter->raw > hop ? zc_min(scatter->raw - hop, blocks) : 0;
	const u32 cut[] = { 0, zc_min(here, there), zc_max(here, there), blocks };

	for (u32 i = 0; i < 3; i++)
		if (cut[i] < cut[i + 1])
			zc_scatter_piece(scatter, hop, cut[i], cut[i + 1], raw, result);
}

/* Put raw block @block into its accumulation, by way of a scratch place */
static void zc_scatter_stage(struct zc_scatter *scatter, u32 block)
{
	struct zcoll_step gather = *scatter->group, copy;

	gather.kind = ZCOLL_STEP_GATHER;
	gather.peer = ZCOLL_PEER_NONE;
	gather.of = ZCOLL_OF_SELF;
	gather.seg = block;
	gather.count = 1;
	gather.dst = zc_scratch(ZCOLL_OF_ZERO, 0, 0);
	copy = gather;
	copy.kind = ZCOLL_STEP_FOLD;
	copy.flags = ZCOLL_STEP_STORE | (gather.flags & ZCOLL_STEP_FLIP);
	copy.src = gather.dst;
	copy.dst = (struct zcoll_place){ 0 };
	copy.after[0] = zc_on_slice(zc_add(scatter->build, &gather), 0);
	copy.after[1] = zc_on(scatter->fold);
	scatter->fold = zc_add(scatter->build, &copy);
	scatter->fold_row = copy;
	zc_scatter_keeps(scatter, block + 1);
	scatter->build->plan->scratch = zc_max(scatter->build->plan->scratch, 1);
}

/* The extent shrinks from @all to @kept */
static void zc_scatter_round(struct zc_scatter *scatter, u32 all, u32 kept, bool result)
{
	u32 first = zc_min(kept, all - kept), raw = scatter->raw;
	bool stage = scatter->group->width == 1 && raw < all && kept == first + 1 &&
		     raw <= first;

	if (stage)
		zc_scatter_stage(scatter, first);
	for (u32 hop = kept; hop < all; hop += kept) {
		u32 blocks = zc_min(kept, all - hop);

		zc_scatter_hop(scatter, hop, blocks, raw, result && hop + blocks == all);
		raw = zc_max(raw, blocks);
	}
	scatter->raw = stage ? kept : raw;
	scatter->ready = zc_on(scatter->fold);
	scatter->round++;
}

/**
 * zc_circulant_scatter - reduce-scatter in a group
 * @build: plan
 * @group: the group: radix nodes, among which as many blocks are scattered: in a row, or
 *	if seg_step is not 0, so far apart, and accumulated
 * @skips: extents
 * @ready: when all blocks are accumulated; AFTER_NONE: they are raw
 * @result: the node's own block is to be made final
 * @sent: gets what was sent, or NULL
 *
 * Return: what to wait for to have the node's own block.
 */
struct zcoll_after zc_circulant_scatter(struct zc_build *build, const struct zcoll_step *group,
					const struct zc_skips *skips, struct zcoll_after ready,
					bool result, struct zc_sent *sent)
{
	struct zc_scatter scatter = {
		.build = build,
		.group = group,
		.sent = sent,
		.raw = ready.mode == ZCOLL_AFTER_NONE ? 0 : group->radix,
		.ready = ready,
		.fold = ZC_NONE,
	};

	for (u32 i = 0; i < skips->rounds; i++)
		zc_scatter_round(&scatter, skips->extent[i], skips->extent[i + 1],
				 result && i + 1 == skips->rounds);
	return zc_on_slice(scatter.fold, 0);
}

/* ---- all-gather ---- */

/* Values may come only when what was sent from there has been */
static void zc_after_sent(struct zcoll_step *row, const struct zc_sent *sent, u32 round, u32 hop)
{
	u32 first = 0, n = 0;

	while (first < sent->n &&
	       (sent->step[first].round != round || sent->step[first].hop != hop))
		first++;
	while (first + n < sent->n && n < ZCOLL_PLAN_AFTER &&
	       sent->step[first + n].round == round && sent->step[first + n].hop == hop) {
		row->after[n] = zc_on(sent->step[first + n].step);
		n++;
	}
	if (n == 1)
		row->after[0] = zc_on_slice(sent->step[first].step, 0);
}

/**
 * zc_circulant_gather - all-gather in a group
 * @build: plan
 * @group: the group, as for zc_circulant_scatter()
 * @skips: extents
 * @ready: when the node's own block is final; then, when all are
 * @sent: what the reduce-scatter with the same @skips sent, or NULL
 * @quiet: else, what must be done before values may come
 */
void zc_circulant_gather(struct zc_build *build, const struct zcoll_step *group,
			 const struct zc_skips *skips, struct zc_waits *ready,
			 const struct zc_sent *sent, struct zcoll_after quiet)
{
	for (u32 i = skips->rounds; i-- > 0;) {
		u32 known = skips->extent[i + 1], all = skips->extent[i];
		struct zc_waits now = *ready;

		for (u32 hop = known; hop < all; hop += known) {
			struct zcoll_step send = *group, deliver;

			send.dist = -(s32)hop;
			send.of = ZCOLL_OF_SELF;
			zc_blocks(&send, 0, zc_min(known, all - hop));
			deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
			zc_set_after(&send, &now);
			if (sent)
				zc_after_sent(&deliver, sent, i, hop);
			else
				deliver.after[0] = quiet;
			zc_wait_all(ready);
			zc_wait(build, ready, zc_on(zc_message(build, &send, &deliver)));
		}
	}
}
