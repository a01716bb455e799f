// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Building plans: rows, messages, waits, and notification of all by all.
 */
#include <stdarg.h>
#include <stdio.h>

#include "builder.h"

/**
 * zc_build_fail - say why there is no such plan
 * @build: plan
 * @err: what to return
 * @fmt: as printf()
 */
int zc_build_fail(struct zc_build *build, int err, const char *fmt, ...)
{
	va_list ap;

	if (build->error && build->error_len) {
		va_start(ap, fmt);
		vsnprintf(build->error, build->error_len, fmt, ap);
		va_end(ap);
	}
	return err;
}

/**
 * zc_row - a row to start from
 * @build: plan; its number of segments is known
 * @kind: ZCOLL_STEP_*
 *
 * All nodes, once, the first segment, by number; where there is a peer, by ADD.
 */
struct zcoll_step zc_row(const struct zc_build *build, u32 kind)
{
	bool local = kind == ZCOLL_STEP_GATHER || kind == ZCOLL_STEP_FINAL;

	return (struct zcoll_step){
		.kind = kind,
		.peer = local ? ZCOLL_PEER_NONE : ZCOLL_PEER_ADD,
		.repeat = 1,
		.last = build->plan->nodes - 1,
		.every = 1,
		.stride = 1,
		.radix = build->plan->nodes,
		.width = 1,
		.blocks = build->plan->segments,
		.count = 1,
	};
}

/**
 * zc_answer - the row that receives what a row sends
 * @send: a SEND; with PEER_ADD or PEER_XOR
 * @kind: FOLD or DELIVER
 *
 * Same nodes: those of @send must be whole groups, or zc_shift() is to be called.
 */
struct zcoll_step zc_answer(const struct zcoll_step *send, u32 kind)
{
	static const u8 other[] = {
		[ZCOLL_OF_ZERO] = ZCOLL_OF_ZERO,
		[ZCOLL_OF_SELF] = ZCOLL_OF_PEER,
		[ZCOLL_OF_PEER] = ZCOLL_OF_SELF,
	};
	struct zcoll_step row = *send;

	row.kind = kind;
	row.flags &= ZCOLL_STEP_OPEN | ZCOLL_STEP_FLIP;
	row.of = other[send->of];
	row.match = 0;
	row.src = (struct zcoll_place){ 0 };
	for (u32 i = 0; i < ZCOLL_PLAN_AFTER; i++)
		row.after[i] = (struct zcoll_after){ 0 };
	if (send->peer == ZCOLL_PEER_ADD) {
		row.dist = -send->dist;
		row.dist_step = -send->dist_step;
	}
	return row;
}

/* Take part the nodes @by further on; none of them is past the end */
void zc_shift(struct zcoll_step *row, s32 by)
{
	row->first += by;
	row->last += by;
	if (row->every > 1) {
		row->lo += by;
		row->hi += by;
	}
}

/* Only nodes @first to @last take part */
void zc_between(struct zcoll_step *row, u32 first, u32 last)
{
	row->first = first;
	row->last = last;
}

/* Only nodes whose numbers modulo @every are @lo to @hi take part */
void zc_digits(struct zcoll_step *row, u32 every, u32 lo, u32 hi)
{
	row->every = every;
	row->lo = lo;
	row->hi = hi;
}

struct zcoll_place zc_scratch(u32 of, s32 index, s32 index_step)
{
	return (struct zcoll_place){
		.space = ZCOLL_PLACE_SCRATCH,
		.of = of,
		.index = index,
		.index_step = index_step,
	};
}

static struct zcoll_after zc_after_of(u32 step, u32 mode, s32 shift)
{
	if (step == ZC_NONE)
		return (struct zcoll_after){ 0 };
	return (struct zcoll_after){ .step = step, .mode = mode, .shift = shift };
}

/* Wait for all of a step; of ZC_NONE, for nothing */
struct zcoll_after zc_on(u32 step)
{
	return zc_after_of(step, ZCOLL_AFTER_ALL, 0);
}

struct zcoll_after zc_on_turn(u32 step, s32 shift)
{
	return zc_after_of(step, ZCOLL_AFTER_TURN, shift);
}

struct zcoll_after zc_on_slice(u32 step, s32 shift)
{
	return zc_after_of(step, ZCOLL_AFTER_SLICE, shift);
}

/*
 * The same row without elements. What receives is a FOLD, as DELIVER and FINAL would
 * count as results.
 */
static void zc_notify_only(struct zcoll_step *row)
{
	if (row->kind != ZCOLL_STEP_SEND)
		row->kind = row->peer == ZCOLL_PEER_NONE ? ZCOLL_STEP_GATHER :
							   ZCOLL_STEP_FOLD;
	row->flags &= ZCOLL_STEP_FLIP;
	row->width = 1;
	row->blocks = 1;
	row->count = 0;
	row->seg = 0;
	row->seg_step = 0;
	row->of = ZCOLL_OF_ZERO;
	row->dst = (struct zcoll_place){ 0 };
	row->src = (struct zcoll_place){ 0 };
}

/**
 * zc_add - append a row
 * @build: plan
 * @row: the row
 *
 * Return: its index. Where there is no room, all is in vain, but nothing breaks.
 */
u32 zc_add(struct zc_build *build, const struct zcoll_step *row)
{
	u32 i = build->rows++;

	if (i >= ZCOLL_PLAN_MAX_STEPS)
		return ZCOLL_PLAN_MAX_STEPS - 1;
	build->plan->steps[i] = *row;
	if (build->plan->collective == ZCOLL_BARRIER)
		zc_notify_only(&build->plan->steps[i]);
	return i;
}

/**
 * zc_message - append a SEND and what receives it
 * @build: plan
 * @send: a SEND; gets its match
 * @receive: the answer
 *
 * Return: index of the receiving row; the SEND is just before it.
 */
u32 zc_message(struct zc_build *build, struct zcoll_step *send,
	       const struct zcoll_step *receive)
{
	send->match = zc_min(build->rows + 1, ZCOLL_PLAN_MAX_STEPS - 1);
	zc_add(build, send);
	return zc_add(build, receive);
}

/* ---- waits ---- */

/* Wait for whole steps: what follows is about other segments */
void zc_wait_all(struct zc_waits *waits)
{
	for (u32 i = 0; i < waits->n; i++)
		waits->on[i] = zc_on(waits->on[i].step);
}

/**
 * zc_join - one wait for many
 * @build: plan
 * @waits: what is to be waited for
 *
 * Return: an entry for zcoll_step.after that waits for all of them.
 */
struct zcoll_after zc_join(struct zc_build *build, const struct zc_waits *waits)
{
	struct zcoll_step row = zc_row(build, ZCOLL_STEP_GATHER);
	struct zc_waits all = *waits;

	if (all.n == 1)
		return all.on[0];
	zc_wait_all(&all);
	row.count = 0;
	zc_set_after(&row, &all);
	return zc_on(zc_add(build, &row));
}

/* Wait for one more, which ends after the others as a rule; @waits may be NULL */
void zc_wait(struct zc_build *build, struct zc_waits *waits, struct zcoll_after after)
{
	if (!waits || after.mode == ZCOLL_AFTER_NONE)
		return;
	if (waits->n == ZCOLL_PLAN_AFTER) {
		waits->on[0] = zc_join(build, waits);
		waits->n = 1;
	}
	waits->on[waits->n++] = after;
}

void zc_set_after(struct zcoll_step *row, const struct zc_waits *waits)
{
	for (u32 i = 0; i < waits->n; i++)
		row->after[i] = waits->on[i];
}

/* ---- inputs that are results ---- */

/* Of an all-gather: each node's own segment. Return: what to wait for. */
struct zcoll_after zc_own_result(struct zc_build *build)
{
	struct zcoll_step row = zc_row(build, ZCOLL_STEP_FINAL);

	row.flags = ZCOLL_STEP_FIRST;
	row.of = ZCOLL_OF_SELF;
	return zc_on_slice(zc_add(build, &row), 0);
}

/* Of a broadcast: a segment of node 0. Return: what to wait for. */
struct zcoll_after zc_root_result(struct zc_build *build, u32 segment)
{
	struct zcoll_step row = zc_row(build, ZCOLL_STEP_FINAL);

	zc_between(&row, 0, 0);
	row.flags = ZCOLL_STEP_FIRST;
	row.seg = segment;
	return zc_on_slice(zc_add(build, &row), 0);
}

/* ---- notification ---- */

/**
 * zc_disseminate - nobody goes on before all of a group have come here
 * @build: plan
 * @group: the group
 * @radix: notify so many less one in a round
 * @ready: waited for at first; then what is to be waited for to know of all
 *
 * After a round, a node knows of all up to radix times as far behind it (Hensgen,
 * Finkel and Manber, Two Algorithms for Barrier Synchronization, 1988). To receive waits
 * for the round before, too: what is known then must be known of all rounds.
 */
void zc_disseminate(struct zc_build *build, const struct zcoll_step *group, u32 radix,
		    struct zc_waits *ready)
{
	struct zcoll_step send = *group, receive;
	u32 size = group->radix;

	send.kind = ZCOLL_STEP_SEND;
	send.peer = ZCOLL_PEER_ADD;
	zc_notify_only(&send);
	for (u64 known = 1; known < size; known *= radix) {
		struct zc_waits next = { .n = 0 };

		zc_set_after(&send, ready);
		for (u64 dist = known; dist < size && dist < known * radix; dist += known) {
			send.dist = dist;
			receive = zc_answer(&send, ZCOLL_STEP_FOLD);
			zc_set_after(&receive, ready);
			zc_wait(build, &next, zc_on(zc_message(build, &send, &receive)));
		}
		*ready = next;
		for (u32 i = 0; i < ZCOLL_PLAN_AFTER; i++)
			send.after[i] = (struct zcoll_after){ 0 };
	}
}

/* Does a row make results final? */
static bool zc_row_ends(const struct zcoll_step *row)
{
	return row->kind == ZCOLL_STEP_DELIVER || row->kind == ZCOLL_STEP_FINAL ||
	       row->flags & ZCOLL_STEP_RESULT;
}

/**
 * zc_agree - append what makes the plan ZCOLL_PLAN_AGREED
 * @build: plan, complete
 *
 * A node that has all its results says so to all.
 */
void zc_agree(struct zc_build *build)
{
	struct zcoll_step group = zc_row(build, ZCOLL_STEP_SEND);
	u32 rows = zc_min(build->rows, ZCOLL_PLAN_MAX_STEPS);
	struct zc_waits ready = { .n = 0 };

	for (u32 i = 0; i < rows; i++)
		if (zc_row_ends(&build->plan->steps[i]))
			zc_wait(build, &ready, zc_on(i));
	zc_disseminate(build, &group, 2, &ready);
	build->plan->flags |= ZCOLL_PLAN_AGREED;
}
