/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Building plans: what the generators share. <linux/zcoll_plan.h> says what steps are.
 *
 * A generator starts from rows with plain defaults, changes what differs, and appends
 * them:
 *
 *	send = zc_row(build, ZCOLL_STEP_SEND);
 *	send.dist = 1;
 *	receive = zc_answer(&send, ZCOLL_STEP_DELIVER);
 *	delivered = zc_message(build, &send, &receive);
 *
 * Vocabulary
 *
 *   row       a step of the table
 *   answer    the row that receives what another one sends
 *   ready     what must be done before a value may be used: an entry of zcoll_step.after
 *   join      a row that moves nothing; who waits for it waits for all it waits for.
 *             Needed where more than ZCOLL_PLAN_AFTER rows are to be waited for
 *   group     nodes that differ in one digit only: a row that has their stride, radix,
 *             and the segments they share, and stands for rows like it
 *
 * A barrier is built like the all-reduce of the same algorithm: zc_add() turns
 * its rows into ones that move no elements.
 */
#ifndef LIBZCOLL_BUILDER_H
#define LIBZCOLL_BUILDER_H

#include <zcoll_plan.h>

#include "../../kmod/engine/plan.h"

/**
 * struct zc_build - a plan that is being built
 * @spec: what is wanted
 * @plan: the plan, with room for ZCOLL_PLAN_MAX_STEPS steps
 * @rows: rows that there should be, even if there is no room
 * @error: where the text of an error goes
 * @error_len: its size
 */
struct zc_build {
	const struct zcoll_plan_spec *spec;
	struct zcoll_plan *plan;
	u32 rows;
	char *error;
	size_t error_len;
};

/**
 * struct zc_waits - all of these must be done
 * @on: entries for zcoll_step.after
 * @n: how many
 */
struct zc_waits {
	struct zcoll_after on[ZCOLL_PLAN_AFTER];
	u32 n;
};

int zc_build_fail(struct zc_build *build, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

struct zcoll_step zc_row(const struct zc_build *build, u32 kind);
struct zcoll_step zc_answer(const struct zcoll_step *send, u32 kind);
void zc_shift(struct zcoll_step *row, s32 by);
void zc_between(struct zcoll_step *row, u32 first, u32 last);
void zc_digits(struct zcoll_step *row, u32 every, u32 lo, u32 hi);
struct zcoll_place zc_scratch(u32 of, s32 index, s32 index_step);

struct zcoll_after zc_on(u32 step);
struct zcoll_after zc_on_turn(u32 step, s32 shift);
struct zcoll_after zc_on_slice(u32 step, s32 shift);

u32 zc_add(struct zc_build *build, const struct zcoll_step *row);
u32 zc_message(struct zc_build *build, struct zcoll_step *send,
	       const struct zcoll_step *receive);

void zc_wait(struct zc_build *build, struct zc_waits *waits, struct zcoll_after after);
void zc_wait_all(struct zc_waits *waits);
struct zcoll_after zc_join(struct zc_build *build, const struct zc_waits *waits);
void zc_set_after(struct zcoll_step *row, const struct zc_waits *waits);

struct zcoll_after zc_own_result(struct zc_build *build);
struct zcoll_after zc_root_result(struct zc_build *build, u32 segment);

void zc_disseminate(struct zc_build *build, const struct zcoll_step *group, u32 radix,
		    struct zc_waits *ready);
void zc_agree(struct zc_build *build);

static inline u32 zc_min(u32 a, u32 b)
{
	return a < b ? a : b;
}

static inline u32 zc_max(u32 a, u32 b)
{
	return a > b ? a : b;
}

/* a / b, rounded up */
static inline u32 zc_div_up(u32 a, u32 b)
{
	return a / b + !!(a % b);
}

/* The largest power of @base that is at most @n */
static inline u32 zc_power_below(u32 base, u32 n)
{
	u32 power = 1;

	while (n / base >= power)
		power *= base;
	return power;
}

#endif /* LIBZCOLL_BUILDER_H */
