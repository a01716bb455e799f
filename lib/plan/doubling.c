// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * All-gather by doubling: in the round of distance d, nodes whose numbers differ in the
 * bit d exchange the d segments that each has (Thakur, Rabenseifner and Gropp, see
 * gen_recursive_doubling.c).
 *
 * That is for a power of two, the *core*. Each node v + core beyond it first gives its
 * segment to node v, and at the end gets all others from there. In between, what a
 * group of d nodes has of such segments are v + core for its v: none, some or d,
 * in a row, too, and it goes along as a second message.
 */
#include "gen.h"

/* Nodes exchange with those at distance @d */
static struct zcoll_step zc_pair_row(const struct zc_build *build, u32 core, u32 d)
{
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND);

	send.peer = ZCOLL_PEER_XOR;
	send.radix = core;
	send.last = core - 1;
	send.dist = d;
	return send;
}

/**
 * zc_doubling_gather - all-gather among a power of two nodes
 * @build: plan
 * @nodes: the nodes, from 0 on; so many segments, too
 * @ready: when the node's own segment is final; then, when all are
 * @sent: by log2 d, what has sent from where values will come at distance d; or NULL
 */
void zc_doubling_gather(struct zc_build *build, u32 nodes, struct zc_waits *ready,
			const struct zcoll_after *sent)
{
	for (u32 d = 1, i = 0; d < nodes; d *= 2, i++) {
		struct zcoll_step send = zc_pair_row(build, nodes, d), deliver;

		send.width = d;
		send.blocks = nodes / d;
		send.count = d;
		send.of = ZCOLL_OF_SELF;
		zc_set_after(&send, ready);
		deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
		if (sent)
			deliver.after[0] = sent[i];
		zc_wait_all(ready);
		zc_wait(build, ready, zc_on(zc_message(build, &send, &deliver)));
	}
}

/* ---- any number of nodes ---- */

/* Nodes @first .. @first + d - 1 send segments @segment .. to the group beside them */
static void zc_group_sends(struct zc_build *build, u32 core, u32 d, u32 first, u32 segment,
			   u32 count, const struct zc_waits *now, struct zc_waits *ready)
{
	struct zcoll_step send = zc_pair_row(build, core, d), deliver;

	zc_between(&send, first, first + d - 1);
	send.seg = segment;
	send.count = count;
	zc_set_after(&send, now);
	deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
	zc_shift(&deliver, first / d % 2 ? -(s32)d : (s32)d);
	zc_wait(build, ready, zc_on(zc_message(build, &send, &deliver)));
}

/* At distance @d, the segments from beyond the core; there are @extras of them */
static void zc_extras_along(struct zc_build *build, u32 core, u32 d, u32 extras,
			    const struct zc_waits *now, struct zc_waits *ready)
{
	u32 full = extras / d, paired = full & ~1U;
	struct zcoll_step send = zc_pair_row(build, core, d), deliver;

	if (paired) {
		send.last = paired * d - 1;
		send.width = d;
		send.blocks = build->plan->nodes / d;
		send.seg = core / d;
		send.count = d;
		send.of = ZCOLL_OF_SELF;
		zc_set_after(&send, now);
		deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
		zc_wait(build, ready, zc_on(zc_message(build, &send, &deliver)));
	}
	if (full > paired)
		zc_group_sends(build, core, d, paired * d, core + paired * d, d, now, ready);
	if (extras % d)
		zc_group_sends(build, core, d, full * d, core + full * d, extras % d, now, ready);
}

/* Node v + core gives its segment to node v */
static void zc_extras_in(struct zc_build *build, u32 core, struct zc_waits *ready)
{
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND), deliver;

	send.first = core;
	send.dist = -(s32)core;
	send.of = ZCOLL_OF_SELF;
	zc_set_after(&send, ready);
	deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
	zc_shift(&deliver, send.dist);
	zc_wait_all(ready);
	zc_wait(build, ready, zc_on(zc_message(build, &send, &deliver)));
}

/* And gets all others from there */
static void zc_extras_out(struct zc_build *build, u32 core, const struct zc_waits *ready)
{
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND), deliver;

	send.last = send.last - core;
	send.dist = core;
	send.of = ZCOLL_OF_PEER;
	send.seg = 1;
	send.count = build->plan->nodes - 1;
	zc_set_after(&send, ready);
	deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
	zc_shift(&deliver, send.dist);
	zc_message(build, &send, &deliver);
}

/* The whole plan of an all-gather, for any number of nodes */
void zc_doubling_allgather(struct zc_build *build)
{
	struct zcoll_plan *plan = build->plan;
	u32 core = zc_power_below(2, plan->nodes), extras = plan->nodes - core;
	struct zc_waits ready = { .n = 0 };

	plan->segments = plan->nodes;
	zc_wait(build, &ready, zc_own_result(build));
	if (!extras) {
		zc_doubling_gather(build, core, &ready, NULL);
		return;
	}
	zc_extras_in(build, core, &ready);
	for (u32 d = 1; d < core; d *= 2) {
		struct zc_waits now = ready;
		struct zcoll_step send = zc_pair_row(build, core, d), deliver;

		send.width = d;
		send.blocks = core / d;
		send.count = d;
		send.of = ZCOLL_OF_SELF;
		zc_set_after(&send, &now);
		deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
		zc_wait(build, &ready, zc_on(zc_message(build, &send, &deliver)));
		zc_extras_along(build, core, d, extras, &now, &ready);
	}
	zc_extras_out(build, core, &ready);
}
