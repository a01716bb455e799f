// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * k-nomial trees, over all nodes or in each group of them that follow each other; k = 2:
 * binomial trees. Node 0 is the root of its group.
 *
 * In round (i, j), i = 0, 1, ... and j = 1 .. k-1, the distance is d = j k^i.
 *
 * Reduce: nodes whose number is a multiple of k^(i+1), plus d, send to the node d below.
 * What a node has when its turn comes is what all nodes from it up to the next one have,
 * so for k = 2 the order of the fold is the fixed tree's.
 *
 * Broadcast: the other way to number the same tree: the nodes below k^i, which have the
 * value, send to the nodes d above. So those that have got it in the same row are in a
 * row themselves, and a SEND can wait for what it needs (zc_send_from()).
 */
#include "gen.h"

/* Rounds of a tree; so many have room in a plan */
struct zc_rounds {
	u32 dist[ZCOLL_PLAN_MAX_STEPS];
	u32 every[ZCOLL_PLAN_MAX_STEPS];
	u32 step[ZCOLL_PLAN_MAX_STEPS];
	u32 n;
};

/* All distances below @group, shortest first */
static void zc_tree_rounds(struct zc_rounds *rounds, u32 radix, u32 group)
{
	rounds->n = 0;
	for (u64 power = 1; power < group; power *= radix) {
		for (u64 dist = power; dist < group && dist < power * radix; dist += power) {
			if (rounds->n == ZCOLL_PLAN_MAX_STEPS)
				return;
			rounds->dist[rounds->n] = dist;
			rounds->every[rounds->n] = power * radix;
			rounds->n++;
		}
	}
}

/* Rounds with distances of at most @most are below the number returned */
static u32 zc_rounds_within(const struct zc_rounds *rounds, u32 n, u32 most)
{
	while (n && rounds->dist[n - 1] > most)
		n--;
	return n;
}

/* ---- reduce ---- */

/* All segments */
static struct zcoll_step zc_tree_row(const struct zc_build *build, u32 kind, s32 dist)
{
	struct zcoll_step row = zc_row(build, kind);

	row.count = build->plan->segments;
	row.dist = dist;
	return row;
}

/*
 * Who sends in round @n has folded in all rounds of less than its power of the radix, but
 * for the last multiple of that power, which may have no nodes after it for that.
 */
static void zc_reduce_sends(struct zc_build *build, const struct zc_rounds *rounds, u32 n,
			    u32 power, u32 fold, struct zc_waits *sent)
{
	u32 end = build->plan->nodes - 1, dist = rounds->dist[n];
	u32 odd = end / power * power;
	struct zcoll_step send = zc_tree_row(build, ZCOLL_STEP_SEND, -(s32)dist);
	u32 before;

	zc_digits(&send, rounds->every[n], dist, dist);
	send.match = fold;
	for (u32 alone = 0; alone < 2; alone++) {
		u32 most = alone ? zc_min(end - odd, power - 1) : power - 1;

		if (odd % rounds->every[n] != dist)
			zc_between(&send, dist, end);
		else if (alone)
			zc_between(&send, odd, odd);
		else
			zc_between(&send, dist, odd - 1);
		if (send.first > send.last)
			continue;
		before = zc_rounds_within(rounds, n, most);
		send.flags = before ? 0 : ZCOLL_STEP_FIRST;
		send.after[0] = zc_on_slice(before ? rounds->step[before - 1] : ZC_NONE, 0);
		zc_wait(build, sent, zc_on(zc_add(build, &send)));
		if (send.last == end)
			return;
	}
}

/**
 * zc_tree_reduce - all segments of a group of nodes are reduced at its first one
 * @build: plan
 * @radix: k
 * @group: nodes of a group: all, or a power of k; the last group may have fewer
 * @result: the result is final
 * @folded: gets all folds, or NULL
 * @sent: gets all SENDs, or NULL
 *
 * Return: the last fold of full groups.
 */
u32 zc_tree_reduce(struct zc_build *build, u32 radix, u32 group, bool result,
		   struct zc_waits *folded, struct zc_waits *sent)
{
	u32 nodes = build->plan->nodes;
	struct zc_rounds rounds;

	zc_tree_rounds(&rounds, radix, group);
	for (u32 n = 0; n < rounds.n; n++) {
		struct zcoll_step fold = zc_tree_row(build, ZCOLL_STEP_FOLD, rounds.dist[n]);

		zc_digits(&fold, rounds.every[n], 0, 0);
		fold.last = nodes - 1 - rounds.dist[n];
		if (n)
			fold.after[0] = zc_on_slice(rounds.step[n - 1], 0);
		else
			fold.flags = ZCOLL_STEP_FIRST;
		if (result && n + 1 == rounds.n)
			fold.flags |= ZCOLL_STEP_RESULT;
		rounds.step[n] = zc_add(build, &fold);
		zc_reduce_sends(build, &rounds, n, rounds.every[n] / radix, rounds.step[n], sent);
		zc_wait(build, folded, zc_on(rounds.step[n]));
	}
	return rounds.step[rounds.n - 1];
}

/* ---- broadcast ---- */

/**
 * zc_send_from - append a SEND of nodes that got the value in different rows
 * @build: plan
 * @send: the SEND, of nodes lo .. hi modulo every
 * @spans: who got it where, one after the other
 * @n: number of @spans
 *
 * One SEND for each ZCOLL_PLAN_AFTER spans: they wait for all, as a node is in one only.
 */
void zc_send_from(struct zc_build *build, const struct zcoll_step *send,
		  const struct zc_span *spans, u32 n)
{
	struct zcoll_step row;
	u32 used;

	for (u32 i = 0; i < n; i += ZCOLL_PLAN_AFTER) {
		row = *send;
		for (used = 0; used < ZCOLL_PLAN_AFTER && i + used < n; used++)
			row.after[used] = spans[i + used].ready;
		row.lo = zc_max(send->lo, spans[i].lo);
		row.hi = zc_min(send->hi, spans[i + used - 1].hi);
		if (row.lo <= row.hi && row.lo <= row.last)
			zc_add(build, &row);
	}
}

/**
 * zc_tree_broadcast - all segments go from the first node of a group to all
 * @build: plan
 * @radix: k
 * @group: nodes of a group: all, or a power of k
 * @ready: when the first node has them, final
 * @quiet: what must be done before values may come
 */
void zc_tree_broadcast(struct zc_build *build, u32 radix, u32 group, struct zcoll_after ready,
		       struct zcoll_after quiet)
{
	u32 end = build->plan->nodes - 1;
	struct zc_span spans[ZCOLL_PLAN_MAX_STEPS + 1] = { { .ready = ready } };
	struct zc_rounds rounds;

	zc_tree_rounds(&rounds, radix, group);
	for (u32 n = 0; n < rounds.n; n++) {
		u32 dist = rounds.dist[n], power = rounds.every[n] / radix;
		u32 hi = zc_min(dist + power, group) - 1;
		struct zcoll_step deliver = zc_tree_row(build, ZCOLL_STEP_DELIVER, -(s32)dist);
		struct zcoll_step send = zc_tree_row(build, ZCOLL_STEP_SEND, dist);

		zc_digits(&deliver, group, dist, hi);
		deliver.after[0] = quiet;
		zc_digits(&send, group, 0, hi - dist);
		send.last = end - dist;
		send.match = zc_add(build, &deliver);
		zc_send_from(build, &send, spans, n + 1);
		spans[n + 1] = (struct zc_span){ dist, hi, zc_on_slice(send.match, 0) };
	}
}
