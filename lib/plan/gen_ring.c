// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * "ring": all traffic is from node v to v+1. P. Patarasuk and X. Yuan, Bandwidth
 * Optimal All-reduce Algorithms for Clusters of Workstations, JPDC 69(2), 2009.
 *
 * Reduce-scatter: segment s starts at node s+1, and each node on its way adds its
 * inputs, until it has come to node s. All-gather: it goes round once more.
 * Broadcast and reduce are chains from node 0, or to it, through which the slices follow
 * each other: node N-1 to 0 is the link that is not used.
 */
#include "gen.h"

/* Accumulations that a node keeps in flight where its outputs have no room */
#define ZC_RING_ACC	4

/* Rows of the reduce-scatter: SENDs, and the last fold */
struct zc_ring {
	u32 first;
	u32 middle;
	u32 last;
	u32 final;
};

/* Segment v - @back goes on, and segment v - @back - 1 comes, is folded, and so on */
static struct zcoll_step zc_ring_send(const struct zc_build *build, u32 back, u32 repeat)
{
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND);

	send.dist = 1;
	send.of = ZCOLL_OF_SELF;
	send.seg = -(s32)back;
	send.repeat = repeat;
	send.seg_step = repeat > 1 ? -1 : 0;
	return send;
}

static struct zcoll_step zc_ring_answer(const struct zcoll_step *send, u32 kind)
{
	struct zcoll_step row = zc_answer(send, kind);

	row.of = ZCOLL_OF_SELF;
	row.seg = send->seg - 1;
	return row;
}

/*
 * The first segment is sent as it is, the others as they come, and the last one that
 * comes is final.
 */
static struct zc_ring zc_ring_scatter(struct zc_build *build)
{
	u32 nodes = build->plan->nodes, acc = build->plan->acc;
	struct zc_ring ring = { ZC_NONE, ZC_NONE, ZC_NONE, ZC_NONE };
	struct zcoll_step send = zc_ring_send(build, 1, 1);
	struct zcoll_step fold = zc_ring_answer(&send, ZCOLL_STEP_FOLD);
	u32 folded;

	send.flags = ZCOLL_STEP_FIRST;
	fold.flags = ZCOLL_STEP_FIRST | (nodes == 2 ? ZCOLL_STEP_RESULT : 0);
	folded = zc_message(build, &send, &fold);
	ring.first = folded - 1;
	ring.final = folded;
	if (nodes == 2)
		return ring;

	send = zc_ring_send(build, nodes - 1, 1);
	send.after[0] = zc_on_slice(folded, 0);
	if (nodes > 3) {
		struct zcoll_step middle = zc_ring_send(build, 2, nodes - 3);

		fold = zc_ring_answer(&middle, ZCOLL_STEP_FOLD);
		fold.flags = ZCOLL_STEP_FIRST;
		ring.middle = build->rows;
		middle.after[0] = zc_on(folded);
		middle.after[1] = zc_on_slice(ring.middle + 1, 1);
		if (acc)
			fold.after[0] = zc_on_turn(ring.middle, acc - 1);
		folded = zc_message(build, &middle, &fold);
		send.after[0] = zc_on_slice(folded, -(s32)(nodes - 4));
	}
	fold = zc_ring_answer(&send, ZCOLL_STEP_FOLD);
	fold.flags = ZCOLL_STEP_FIRST | ZCOLL_STEP_RESULT;
	ring.final = zc_message(build, &send, &fold);
	ring.last = ring.final - 1;
	return ring;
}

/* The own segment is final; what was sent before from where results come is in @ring */
static void zc_ring_gather(struct zc_build *build, const struct zc_ring *ring)
{
	u32 nodes = build->plan->nodes, delivered = build->rows + 1;
	struct zcoll_step send = zc_ring_send(build, 0, nodes - 1);
	struct zcoll_step deliver = zc_ring_answer(&send, ZCOLL_STEP_DELIVER);

	send.after[0] = zc_on(ring->final);
	send.after[1] = zc_on_slice(delivered, 1);
	deliver.after[0] = zc_on(ring->first);
	deliver.after[1] = zc_on_turn(ring->middle, 1);
	deliver.after[2] = zc_on_turn(ring->last, nodes - 2);
	zc_message(build, &send, &deliver);
}

/* From node 0 to 1, 2, ...; @ready: node 0 has the result */
static void zc_ring_broadcast(struct zc_build *build, struct zcoll_after ready)
{
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND), deliver;

	send.dist = 1;
	zc_between(&send, 0, build->plan->nodes - 2);
	deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
	zc_shift(&deliver, 1);
	send.after[0] = ready;
	send.after[1] = zc_on_slice(build->rows + 1, 0);
	zc_message(build, &send, &deliver);
}

/* From node N-1 to N-2, ..., 0. Return: the row in which node 0 has the result. */
static u32 zc_ring_reduce(struct zc_build *build)
{
	u32 last = build->plan->nodes - 1, folded = ZC_NONE;
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND), fold;

	/* The last node sends its inputs, those from 1 on what they have folded */
	send.dist = -1;
	zc_between(&send, last, last);
	send.flags = ZCOLL_STEP_FIRST;
	fold = zc_answer(&send, ZCOLL_STEP_FOLD);
	fold.flags = ZCOLL_STEP_FIRST;
	if (last > 1) {
		zc_between(&fold, 1, last - 1);
		folded = zc_message(build, &send, &fold);
		send.flags = 0;
		send.after[0] = zc_on_slice(folded, 0);
	}
	if (last > 2) {
		zc_between(&send, 2, last - 1);
		send.match = folded;
		zc_add(build, &send);
	}
	zc_between(&send, 1, 1);
	zc_between(&fold, 0, 0);
	fold.flags |= ZCOLL_STEP_RESULT;
	return zc_message(build, &send, &fold);
}

int zc_gen_ring(struct zc_build *build)
{
	struct zcoll_plan *plan = build->plan;
	struct zc_ring ring = { ZC_NONE, ZC_NONE, ZC_NONE, ZC_NONE };

	switch (plan->collective) {
	case ZCOLL_BROADCAST:
		zc_ring_broadcast(build, zc_root_result(build, 0));
		return 0;
	case ZCOLL_REDUCE:
		plan->acc = plan->nodes > 2;
		zc_ring_reduce(build);
		return 0;
	case ZCOLL_BARRIER:
		zc_ring_broadcast(build, zc_on(zc_ring_reduce(build)));
		return 0;
	}
	plan->segments = plan->nodes;
	if (plan->collective == ZCOLL_ALLGATHER) {
		ring.final = zc_own_result(build).step;
	} else {
		if (plan->collective == ZCOLL_REDUCE_SCATTER)
			plan->acc = zc_min(ZC_RING_ACC, plan->nodes - 2);
		ring = zc_ring_scatter(build);
	}
	if (plan->collective != ZCOLL_REDUCE_SCATTER)
		zc_ring_gather(build, &ring);
	return 0;
}
