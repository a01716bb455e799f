/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Values of the symbolic run: expressions over the nodes' contributions, up to
 * commutation, which changes no bits; not up to association, which does.
 *
 * Each expression is kept once, and only once for all expressions that are the same but
 * for the numbers of their nodes: a value is an expression whose nodes are raised by
 * some *turn*, on the circle of nodes. A ring needs N expressions so, and not N * N.
 * Equal values have equal expressions and turns: where an expression raised by some
 * number is itself again (the sum of nodes 0 and 2 of four), its *period* is less than
 * the nodes, and turns are below it.
 *
 * Each expression has the set of the nodes that contribute to it. A fold of two values
 * that have a node in common is refused, so that no node contributes twice.
 */
#ifndef LIBZCOLL_CHECK_EXPR_H
#define LIBZCOLL_CHECK_EXPR_H

#include "check_set.h"

#define ZC_EXPR_LEAF	1	/* the contribution of node 0; 0 is no expression */

/**
 * struct zc_value - a value
 * @expr: expression, 0: none
 * @turn: by which its nodes are raised
 */
struct zc_value {
	u32 expr;
	u32 turn;
};

/**
 * struct zc_expr - a (+) b
 * @a: the operand with the larger period, turned by 0
 * @b: the other
 * @turn: of @b
 * @period: least turn but 0 that changes nothing; the number of nodes if there is none
 * @set: who contributes
 */
struct zc_expr {
	u32 a;
	u32 b;
	u32 turn;
	u32 period;
	u32 set;
};

struct zc_exprs {
	struct zc_sets sets;
	struct zc_expr *list;
	u32 count;
	u32 room;
	u32 *index;
	u32 mask;
};

int zc_exprs_init(struct zc_exprs *exprs, u32 nodes);
void zc_exprs_free(struct zc_exprs *exprs);
int zc_exprs_fold(struct zc_exprs *exprs, struct zc_value x, struct zc_value y,
		  struct zc_value *sum, u32 *twice);
int zc_exprs_tree(struct zc_exprs *exprs, u32 first, u32 end, struct zc_value *sum);
struct zc_value zc_exprs_raise(const struct zc_exprs *exprs, struct zc_value x, u32 turn);
u32 zc_exprs_set(struct zc_exprs *exprs, struct zc_value x);
void zc_exprs_print(struct zc_exprs *exprs, struct zc_value x, char *text, size_t len);

static inline struct zc_value zc_exprs_leaf(u32 v)
{
	return (struct zc_value) { .expr = ZC_EXPR_LEAF, .turn = v };
}

static inline bool zc_value_same(struct zc_value x, struct zc_value y)
{
	return x.expr == y.expr && x.turn == y.turn;
}

#endif /* LIBZCOLL_CHECK_EXPR_H */
