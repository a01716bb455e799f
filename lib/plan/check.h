/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The checker of plans: what its files share.
 *
 *   check.c          zcoll_plan_check(): what is proved, in which order
 *   check_pairs.c    who sends what to whom
 *   check_order.c    what waits for what; that nothing waits forever
 *   check_run.c      the symbolic run: which value is where
 *   check_outputs.c  which value is in the outputs
 *   check_ends.c     when a node may end: barriers, and plans that agree
 *   check_expr.c     values: expressions over the nodes' contributions
 *   check_set.c      sets of nodes
 *
 * Vocabulary
 *
 *   turn        one of the times that one step is done at one node
 *   row         a node that is run. In a plan that looks the same from every node only
 *               node 0 is: what another node v does, has and sends is what node 0 does,
 *               has and sends, with all numbers of nodes and segments raised by v
 *   refusal     a counterexample in words; the functions return -EINVAL with it
 */
#ifndef LIBZCOLL_CHECK_H
#define LIBZCOLL_CHECK_H

#include <zcoll_plan.h>

#include "../../kmod/engine/engine.h"
#include "check_expr.h"

/**
 * struct zc_proof - a plan that is being proved
 * @plan: it has passed zc_plan_valid()
 * @prog: its steps' feeders
 * @facts: what has been found out
 * @rows: nodes that are run: all, or node 0
 * @base: [row * nsteps + step]: number of the step's first turn; ZC_NONE: not active
 * @turns: turns of all rows
 * @error: for the refusal
 * @error_len: its bytes
 */
struct zc_proof {
	const struct zcoll_plan *plan;
	struct zc_prog prog;
	struct zcoll_plan_facts *facts;
	u32 rows;
	u32 *base;
	u32 turns;
	char *error;
	size_t error_len;
};

/**
 * struct zc_at - a turn
 * @v: node, which is a row
 * @step: step
 * @t: which of the step's turns, from 0
 */
struct zc_at {
	u32 v;
	u32 step;
	u32 t;
};

/* The row that stands for a node */
static inline u32 zc_proof_row(const struct zc_proof *c, u32 v)
{
	return c->rows == 1 ? 0 : v;
}

/* Number of a turn; its step is active */
static inline u32 zc_proof_turn(const struct zc_proof *c, const struct zc_at *at)
{
	return c->base[(size_t)at->v * c->plan->nsteps + at->step] + at->t;
}

static inline bool zc_proof_active(const struct zc_proof *c, u32 v, u32 step)
{
	return c->base[(size_t)v * c->plan->nsteps + step] != ZC_NONE;
}

__attribute__((format(printf, 3, 4)))
int zc_proof_refuse(const struct zc_proof *c, const struct zc_at *at, const char *fmt, ...);
const char *zc_proof_kind(const struct zc_proof *c, u32 step);
u32 zc_proof_feeder(const struct zc_proof *c, u32 step, u32 peer, u32 skip);

/* check_pairs.c */
int zc_proof_pairs(struct zc_proof *c);

/* check_order.c */

/*
 * What a turn waits for. By SLICE, a slice waits for the same slice of another turn; by
 * TURN, for all of it; by ROOM, for a slice before the same one.
 */
enum zc_wait {
	ZC_WAIT_NONE,
	ZC_WAIT_SLICE,
	ZC_WAIT_TURN,
	ZC_WAIT_ROOM,
};

/* Waits have numbers: the node's own come first, then the message, then what it may send */
#define ZC_WAITS_OWN	(1 + ZCOLL_PLAN_AFTER)
#define ZC_WAITS_DATA	(ZC_WAITS_OWN + 1)
#define ZC_WAITS_GRANT	(ZC_WAITS_DATA + ZCOLL_PLAN_AFTER)
#define ZC_WAITS_ALL	(ZC_WAITS_GRANT + 2)

/* A turn whose turns waited for by data and grants have been visited */
typedef int (*zc_visit)(void *arg, const struct zc_at *at, u32 peer);

enum zc_wait zc_proof_wait(const struct zc_proof *c, const struct zc_at *at, u32 peer, u32 i,
			   struct zc_at *on);
int zc_proof_order(struct zc_proof *c, zc_visit visit, void *arg);
int zc_proof_room(struct zc_proof *c);

/* check_run.c */
int zc_proof_run(struct zc_proof *c);

/* check_outputs.c */
int zc_proof_outputs(struct zc_proof *c, struct zc_exprs *exprs, const struct zc_value *data);

/* check_ends.c */

struct zc_ends;

struct zc_ends *zc_ends_new(struct zc_proof *c);
void zc_ends_free(struct zc_ends *ends);
int zc_ends_visit(struct zc_ends *ends, const struct zc_at *at, u32 peer);
int zc_ends_check(struct zc_ends *ends);

#endif /* LIBZCOLL_CHECK_H */
