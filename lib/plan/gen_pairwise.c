// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * "pairwise": every node sends every other one what that owns, directly, in one round;
 * node v sends to v+1, v+2, ..., so that no two send to the same node at once.
 *
 * What a node gets it keeps, one scratch place for each node, and folds in the fixed
 * order T(a,b) = T(a,m) + T(m,b), m = a + the largest power of two below b-a: the
 * result does not depend on the number of nodes that share a job's ranks.
 */
#include "gen.h"

/* Raw inputs of the segments of others go to them. Return: the SEND; the answer follows. */
static u32 zc_pairwise_exchange(struct zc_build *build)
{
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND), store;

	send.flags = ZCOLL_STEP_FIRST | ZCOLL_STEP_OPEN;
	send.repeat = build->plan->nodes - 1;
	send.dist = 1;
	send.dist_step = 1;
	send.of = ZCOLL_OF_PEER;
	store = zc_answer(&send, ZCOLL_STEP_FOLD);
	store.flags |= ZCOLL_STEP_STORE;
	store.dst = zc_scratch(ZCOLL_OF_PEER, 0, 0);
	return zc_message(build, &send, &store) - 1;
}

/* Scratch place i += scratch place i + d, for d = 1, 2, 4, ... and i = 0, 2 d, 4 d, ... */
static u32 zc_pairwise_fold(struct zc_build *build, u32 stored)
{
	struct zcoll_step row = zc_row(build, ZCOLL_STEP_GATHER);
	u32 nodes = build->plan->nodes, last = stored;

	row.of = ZCOLL_OF_SELF;
	row.dst = zc_scratch(ZCOLL_OF_SELF, 0, 0);
	row.after[0] = zc_on(zc_add(build, &row));
	row.kind = ZCOLL_STEP_FOLD;
	for (u32 d = 1; d < nodes; d *= 2) {
		row.after[1] = zc_on(last);
		row.repeat = zc_div_up(nodes - d, 2 * d);
		row.dst = zc_scratch(ZCOLL_OF_ZERO, 0, 2 * d);
		row.src = zc_scratch(ZCOLL_OF_ZERO, d, 2 * d);
		last = zc_add(build, &row);
	}
	return last;
}

/* Return: what to wait for to have the own segment, final */
static struct zcoll_after zc_pairwise_scatter(struct zc_build *build, u32 *sent)
{
	struct zcoll_step final = zc_row(build, ZCOLL_STEP_FINAL);

	*sent = zc_pairwise_exchange(build);
	final.of = ZCOLL_OF_SELF;
	final.src = zc_scratch(ZCOLL_OF_ZERO, 0, 0);
	final.after[0] = zc_on_slice(zc_pairwise_fold(build, *sent + 1), 0);
	return zc_on_slice(zc_add(build, &final), 0);
}

static void zc_pairwise_gather(struct zc_build *build)
{
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND), deliver;

	send.after[0] = zc_own_result(build);
	send.flags = ZCOLL_STEP_OPEN;
	send.repeat = build->plan->nodes - 1;
	send.dist = 1;
	send.dist_step = 1;
	send.of = ZCOLL_OF_SELF;
	deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
	zc_message(build, &send, &deliver);
}

int zc_gen_pairwise(struct zc_build *build)
{
	struct zcoll_plan *plan = build->plan;
	struct zc_skips skips = zc_circulant_skips(plan->nodes, 2);
	struct zc_waits ready = { .n = 0 };
	struct zcoll_step group;
	u32 sent;

	plan->segments = plan->nodes;
	if (plan->collective == ZCOLL_ALLGATHER) {
		zc_pairwise_gather(build);
		return 0;
	}
	plan->scratch = plan->nodes;
	plan->flags |= ZCOLL_PLAN_ORDERED;
	zc_wait(build, &ready, zc_pairwise_scatter(build, &sent));
	if (plan->collective == ZCOLL_REDUCE_SCATTER)
		return 0;
	group = zc_row(build, ZCOLL_STEP_SEND);
	zc_circulant_gather(build, &group, &skips, &ready, NULL, zc_on(sent));
	return 0;
}
