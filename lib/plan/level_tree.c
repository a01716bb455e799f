// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Broadcast and reduce with levels: a binomial tree among the nodes of each group of a
 * *tier*. A group's node with digit 0 is its leader, and has one of the digits in the tier
 * further out. As in N. T. Karonis et al., Exploiting Hierarchy in Parallel Computer
 * Networks to Optimize Collective Operation Performance, IPDPS 2000, and the "han"
 * component of Open MPI.
 *
 * Broadcast begins with the outermost tier. In the rounds d = 1, 2, 4, ... the digits
 * below d, which have the value, send to those d above. Reduce is the same backwards.
 *
 * A row tells nodes apart by a range of their numbers, and by one of these modulo something.
 * That can say which digits take part where there is one group, or where the nodes of a group
 * follow each other. In tiers between these, each digit has rows of its own.
 */
#include "gen.h"

static bool zc_tier_one_group(const struct zc_tier *tier)
{
	return tier->last - tier->first < tier->stride * tier->size;
}

/* From digit @lo on, the last one up to @hi that can be in the same row */
static u32 zc_tier_alike(const struct zc_tier *tier, u32 lo, u32 hi)
{
	return tier->stride == 1 || zc_tier_one_group(tier) ? hi : lo;
}

/* Only nodes with digits @lo to @hi take part; @hi as zc_tier_alike() says */
static void zc_tier_digits(struct zcoll_step *row, const struct zc_tier *tier, u32 lo, u32 hi)
{
	if (zc_tier_one_group(tier)) {
		zc_between(row, tier->first + lo * tier->stride, tier->first + hi * tier->stride);
		zc_digits(row, tier->stride, 0, 0);
		return;
	}
	zc_between(row, tier->first, tier->last);
	zc_digits(row, tier->stride * tier->size, lo * tier->stride, hi * tier->stride);
}

/* ---- broadcast ---- */

/**
 * struct zc_holders - who has the value
 * @span: digits in the tier, and what they wait for to have it
 * @n: spans
 * @outer: of these, so many are leaders, from tiers further out
 */
struct zc_holders {
	struct zc_span span[ZCOLL_PLAN_MAX_STEPS];
	u32 n;
	u32 outer;
};

static void zc_hold(struct zc_holders *holders, u32 lo, u32 hi, struct zcoll_after ready)
{
	if (holders->n < ZCOLL_PLAN_MAX_STEPS)
		holders->span[holders->n++] = (struct zc_span){ lo, hi, ready };
}

/* Leaders: the nodes of the row in which they got the value, as far as in this tier */
static void zc_leaders_send(struct zc_build *build, const struct zc_tier *tier,
			    struct zcoll_step *send, struct zcoll_after ready)
{
	const struct zcoll_step *got = &build->plan->steps[ready.step];

	zc_between(send, zc_max(got->first, tier->first), zc_min(got->last, tier->last));
	zc_digits(send, got->every, got->lo, got->hi);
	send->after[0] = ready;
	if (send->first <= send->last)
		zc_add(build, send);
}

/* Digits @lo to @hi send to those @dist above */
static void zc_tier_sends(struct zc_build *build, const struct zc_tier *tier,
			  const struct zc_holders *holders, u32 lo, u32 hi, u32 dist)
{
	struct zcoll_step deliver = zc_row(build, ZCOLL_STEP_DELIVER);
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND);

	deliver.dist = -(s32)(dist * tier->stride);
	zc_tier_digits(&deliver, tier, lo + dist, hi + dist);
	send.dist = dist * tier->stride;
	send.match = zc_add(build, &deliver);
	for (u32 i = 0; i < holders->n; i++) {
		const struct zc_span *span = &holders->span[i];

		if (span->lo > hi || span->hi < lo)
			continue;
		if (i < holders->outer) {
			zc_leaders_send(build, tier, &send, span->ready);
			continue;
		}
		zc_tier_digits(&send, tier, zc_max(lo, span->lo), zc_min(hi, span->hi));
		send.after[0] = span->ready;
		zc_add(build, &send);
	}
}

static void zc_tier_broadcast(struct zc_build *build, const struct zc_tier *tier,
			      struct zc_holders *holders)
{
	holders->outer = holders->n;
	for (u32 dist = 1; dist < tier->size; dist *= 2) {
		u32 end = zc_min(dist, tier->size - dist) - 1;

		for (u32 lo = 0, hi; lo <= end; lo = hi + 1) {
			u32 delivered = zc_min(build->rows, ZCOLL_PLAN_MAX_STEPS - 1);

			hi = zc_tier_alike(tier, lo, end);
			zc_tier_sends(build, tier, holders, lo, hi, dist);
			zc_hold(holders, lo + dist, hi + dist, zc_on_slice(delivered, 0));
		}
	}
	/* To the tiers further in they are leaders */
	for (u32 i = holders->outer; i < holders->n; i++)
		holders->span[i].lo = holders->span[i].hi = 0;
}

/**
 * zc_tiers_broadcast - all segments go from node 0 to all
 * @build: plan
 * @tiers: tiers, innermost first
 * @n: how many
 */
void zc_tiers_broadcast(struct zc_build *build, const struct zc_tier *tiers, u32 n)
{
	struct zc_holders holders = { .n = 0 };

	zc_hold(&holders, 0, 0, zc_root_result(build, 0));
	while (n--)
		zc_tier_broadcast(build, &tiers[n], &holders);
}

/* ---- reduce ---- */

/* Where digits have folded: in the round before, or, leaders, in tiers further in */
struct zc_folds {
	struct zc_span span[ZCOLL_PLAN_MAX_STEPS];
	u32 n;
};

static void zc_after_folds(struct zcoll_step *row, const struct zc_folds *before,
			   const struct zc_waits *inner, u32 lo, u32 hi)
{
	u32 used = inner->n;

	zc_set_after(row, inner);
	for (u32 i = 0; i < before->n && used < ZCOLL_PLAN_AFTER; i++)
		if (before->span[i].lo <= hi && before->span[i].hi >= lo)
			row->after[used++] = before->span[i].ready;
}

/*
 * In the innermost tier, digits that have not folded have their inputs only. Before the round
 * @dist, those have that have another one 2 @dist above.
 */
static bool zc_tier_raw(const struct zc_tier *tier, u32 digit, u32 dist)
{
	return tier->stride == 1 && digit + 2 * dist >= tier->size;
}

/* From digit @lo on, up to where either who folds or who sends becomes raw */
static u32 zc_tier_cut(const struct zc_tier *tier, u32 lo, u32 end, u32 dist)
{
	if (tier->stride == 1 && !zc_tier_raw(tier, lo + dist, dist))
		end = zc_min(end, tier->size - 3 * dist - 1);
	else if (tier->stride == 1 && !zc_tier_raw(tier, lo, dist))
		end = zc_min(end, tier->size - 2 * dist - 1);
	return zc_tier_alike(tier, lo, end);
}

/* Digits @lo to @hi fold what those @dist above send. Return: the row that folds. */
static u32 zc_tier_fold(struct zc_build *build, const struct zc_tier *tier,
			const struct zc_folds *before, const struct zc_waits *inner,
			u32 lo, u32 hi, u32 dist, bool result)
{
	struct zcoll_step send = zc_row(build, ZCOLL_STEP_SEND), fold;

	send.dist = -(s32)(dist * tier->stride);
	fold = zc_answer(&send, ZCOLL_STEP_FOLD);
	zc_tier_digits(&send, tier, lo + dist, hi + dist);
	zc_tier_digits(&fold, tier, lo, hi);
	zc_after_folds(&send, before, inner, lo + dist, hi + dist);
	zc_after_folds(&fold, before, inner, lo, hi);
	if (zc_tier_raw(tier, lo + dist, dist))
		send.flags = ZCOLL_STEP_FIRST;
	if (zc_tier_raw(tier, lo, dist))
		fold.flags = ZCOLL_STEP_FIRST;
	if (result)
		fold.flags |= ZCOLL_STEP_RESULT;
	return zc_message(build, &send, &fold);
}

/* @inner: where leaders have folded last. Return: the same, for the tier further out. */
static u32 zc_tier_reduce(struct zc_build *build, const struct zc_tier *tier,
			  const struct zc_waits *inner, bool result)
{
	struct zc_folds before = { .n = 0 }, now;
	u32 folded = ZC_NONE;

	for (u32 dist = zc_power_below(2, tier->size - 1); dist; dist /= 2) {
		u32 end = zc_min(dist, tier->size - dist) - 1;

		now.n = 0;
		for (u32 lo = 0, hi; lo <= end && now.n < ZCOLL_PLAN_MAX_STEPS; lo = hi + 1) {
			hi = zc_tier_cut(tier, lo, end, dist);
			folded = zc_tier_fold(build, tier, &before, inner, lo, hi, dist,
					      result && dist == 1);
			now.span[now.n++] = (struct zc_span){ lo, hi, zc_on_slice(folded, 0) };
		}
		before = now;
	}
	return folded;
}

/**
 * zc_tiers_reduce - all segments of all nodes are reduced at node 0
 * @build: plan
 * @tiers: tiers, innermost first; two may be innermost, for different nodes
 * @n: how many
 */
void zc_tiers_reduce(struct zc_build *build, const struct zc_tier *tiers, u32 n)
{
	struct zc_waits inner = { .n = 0 }, next = { .n = 0 };
	static const struct zc_waits none;

	for (u32 i = 0; i < n; i++) {
		bool innermost = tiers[i].stride == 1;
		u32 folded;

		if (!innermost) {
			inner = next;
			next.n = 0;
		}
		folded = zc_tier_reduce(build, &tiers[i], innermost ? &none : &inner, i + 1 == n);
		zc_wait(build, &next, zc_on_slice(folded, 0));
	}
}
