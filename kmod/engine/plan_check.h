/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The check of a plan at one node: what its two files share.
 *
 *   plan_check.c  turns in an order that is possible, and what each knows to be done
 *   plan_place.c  what turns read and write: the order of accesses, and what is there
 */
#ifndef ZCOLL_ENGINE_PLAN_CHECK_H
#define ZCOLL_ENGINE_PLAN_CHECK_H

#include "plan_priv.h"

enum zc_state {
	ZC_EMPTY,
	ZC_RAW,
	ZC_GATHERED,
	ZC_ACCUMULATED,
	ZC_SPENT,
	ZC_FINAL,
};

/**
 * struct zc_read - a read of a place since it was last written
 * @step: by which step
 * @turn: the last of its turns
 * @next: another one, ZC_NONE: no more
 */
struct zc_read {
	u32 step;
	u32 turn;
	u32 next;
};

/**
 * struct zc_spot - a place: segment, accumulation or scratch place
 * @writer: step that last wrote it, ZC_NONE: none
 * @turn: of @writer
 * @reads: since then
 * @holds: segment whose value is there, ZC_NONE: none; not used for segments, which
 *	hold themselves
 */
struct zc_spot {
	u32 writer;
	u32 turn;
	u32 reads;
	u32 holds;
};

/**
 * struct zc_track - how far the check has come in a step
 * @column: in the vectors of knowledge; ZC_NONE: the node takes no part
 * @row: vector of turn 0
 * @next: turns gone through
 * @stop: turns there are
 * @need: it waits until so many turns of another step have been gone through
 * @link: another one that waits for the same step
 * @waiters: those that wait for this one
 * @sender: a SEND that names this step as its match
 * @sibling: another SEND with the same match
 */
struct zc_track {
	u32 column;
	u32 row;
	u32 next;
	u32 stop;
	u32 need;
	u32 link;
	u32 waiters;
	u32 sender;
	u32 sibling;
};

/**
 * struct zc_check - a check under way
 * @plan: the plan
 * @v: the node
 * @why: gets the reason of a refusal
 * @columns: steps the node takes part in
 * @known: of each turn, what it knows when it begins; one row for all of an OPEN step
 * @last: of each step, what all its turns so far knew
 * @tracks: by step
 * @spots: segments, then accumulations, then scratch places
 * @reads: unused ones are in the list @spare
 * @spare: see @reads
 * @state: by segment, enum zc_state
 * @step: index of the step that is being looked at
 * @row: that step
 * @t: its turn
 * @turn: of @t
 * @now: what it knows
 */
struct zc_check {
	const struct zcoll_plan *plan;
	u32 v;
	struct zc_plan_why *why;
	u32 columns;
	u32 *known;
	u32 *last;
	struct zc_track *tracks;
	struct zc_spot *spots;
	struct zc_read *reads;
	u32 spare;
	u8 *state;
	u32 step;
	const struct zcoll_step *row;
	u32 t;
	struct zc_turn turn;
	u32 *now;
};

int zc_refuse(struct zc_check *check, int err, const char *what, u32 segment);
int zc_check_places(struct zc_check *check);

#endif /* ZCOLL_ENGINE_PLAN_CHECK_H */
