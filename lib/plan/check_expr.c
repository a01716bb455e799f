// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Expressions over the nodes' contributions; see check_expr.h.
 *
 * Why equal values have equal expressions and turns. In a value each node contributes
 * at most once, so a turn that changes nothing permutes the leaves without a fixed one, as an
 * automorphism of a binary tree: its order is a power of two. Hence a period is
 * the number of nodes divided by a power of two, and of two periods one divides the
 * other. The operand with the larger one is turned to 0, which fixes the pair's turn up to
 * what does not change that operand, nor then the other.
 */
#include <stdio.h>
#include <stdlib.h>

#include "check_expr.h"

static u32 expr_hash(const struct zc_expr *expr)
{
	u64 hash = ((u64)expr->a << 32 | expr->b) * 0x9e3779b97f4a7c15ULL;

	hash = (hash ^ hash >> 32 ^ expr->turn) * 0x9e3779b97f4a7c15ULL;
	return hash >> 32;
}

static int exprs_grow(struct zc_exprs *exprs)
{
	u32 room = exprs->room ? 2 * exprs->room : 64, i, at;
	struct zc_expr *list = realloc(exprs->list, room * sizeof(*list));
	u32 *index;

	if (!list)
		return -ENOMEM;
	exprs->list = list;
	index = calloc(2 * (size_t)room, sizeof(*index));
	if (!index)
		return -ENOMEM;
	free(exprs->index);
	exprs->index = index;
	exprs->room = room;
	exprs->mask = 2 * room - 1;
	for (i = 1; i < exprs->count; i++) {
		at = expr_hash(&list[i]) & exprs->mask;
		while (index[at])
			at = (at + 1) & exprs->mask;
		index[at] = i;
	}
	return 0;
}

/* Where in the index the expression is, or would be */
static u32 *expr_find(const struct zc_exprs *exprs, const struct zc_expr *expr)
{
	u32 at = expr_hash(expr) & exprs->mask, i;

	while ((i = exprs->index[at])) {
		const struct zc_expr *other = &exprs->list[i];

		if (other->a == expr->a && other->b == expr->b && other->turn == expr->turn)
			break;
		at = (at + 1) & exprs->mask;
	}
	return &exprs->index[at];
}

/**
 * zc_exprs_init - make a store of expressions
 * @exprs: store
 * @nodes: nodes on the circle
 *
 * Return: 0 or -ENOMEM; zc_exprs_free() may follow in any case.
 */
int zc_exprs_init(struct zc_exprs *exprs, u32 nodes)
{
	struct zc_expr *leaf;

	*exprs = (struct zc_exprs) { .count = 0 };
	if (zc_sets_init(&exprs->sets, nodes) || exprs_grow(exprs))
		return -ENOMEM;
	exprs->list[0] = (struct zc_expr) { .period = 1, .set = ZC_SET_EMPTY };
	leaf = &exprs->list[ZC_EXPR_LEAF];
	*leaf = (struct zc_expr) { .period = nodes, .set = zc_sets_first(&exprs->sets, 1) };
	exprs->count = 2;
	*expr_find(exprs, leaf) = ZC_EXPR_LEAF;
	return leaf->set == ZC_SET_NONE ? -ENOMEM : 0;
}

void zc_exprs_free(struct zc_exprs *exprs)
{
	zc_sets_free(&exprs->sets);
	free(exprs->list);
	free(exprs->index);
}

static u32 turn_between(u32 from, u32 to, u32 period)
{
	return (to % period + period - from % period) % period;
}

/* x (+) y, with the operands in the order of the store, but for its set */
static struct zc_expr expr_make(const struct zc_exprs *exprs, struct zc_value *x,
				struct zc_value *y)
{
	u32 px = exprs->list[x->expr].period, py = exprs->list[y->expr].period;
	struct zc_expr expr = { .period = px > py ? px : py };
	bool swap = py > px || (py == px && y->expr < x->expr);

	if (x->expr == y->expr) {
		u32 turn = turn_between(x->turn, y->turn, px);

		swap = turn > px - turn;
		if (2 * turn == px)
			expr.period = turn;
	}
	if (swap) {
		struct zc_value z = *x;

		*x = *y;
		*y = z;
	}
	expr.a = x->expr;
	expr.b = y->expr;
	expr.turn = turn_between(x->turn, y->turn, exprs->list[y->expr].period);
	return expr;
}

/**
 * zc_exprs_fold - x (+) y
 * @exprs: store
 * @x: value
 * @y: value
 * @sum: gets the sum
 * @twice: gets a node that contributes to both
 *
 * Return: 0, -ENOMEM, or -EEXIST: both have the contribution of the node @twice.
 */
int zc_exprs_fold(struct zc_exprs *exprs, struct zc_value x, struct zc_value y,
		  struct zc_value *sum, u32 *twice)
{
	struct zc_expr expr = expr_make(exprs, &x, &y);
	u32 *at = expr_find(exprs, &expr), i = *at, common;

	if (!i) {
		u32 a = exprs->list[expr.a].set, b = exprs->list[expr.b].set;

		common = zc_sets_common(&exprs->sets, a, b, expr.turn);
		if (common != ZC_SET_NONE) {
			*twice = (common + x.turn) % exprs->sets.bits;
			return -EEXIST;
		}
		expr.set = zc_sets_union(&exprs->sets, a, b, expr.turn);
		if (expr.set == ZC_SET_NONE ||
		    (exprs->count == exprs->room && exprs_grow(exprs)))
			return -ENOMEM;
		i = exprs->count++;
		exprs->list[i] = expr;
		*expr_find(exprs, &expr) = i;
	}
	*sum = (struct zc_value) { .expr = i, .turn = x.turn % exprs->list[i].period };
	return 0;
}

/**
 * zc_exprs_tree - the fixed tree over some nodes
 * @exprs: store
 * @first: first node
 * @end: one past the last; above @first
 * @sum: gets T(first, end): the node itself, or T(first, m) (+) T(m, end) with m = first
 *	+ the largest power of two below end - first
 *
 * Return: 0 or -ENOMEM.
 */
int zc_exprs_tree(struct zc_exprs *exprs, u32 first, u32 end, struct zc_value *sum)
{
	struct zc_value left, right;
	u32 half = 1, twice;

	if (end - first == 1) {
		*sum = zc_exprs_leaf(first);
		return 0;
	}
	while (2 * half < end - first)
		half *= 2;
	if (zc_exprs_tree(exprs, first, first + half, &left) ||
	    zc_exprs_tree(exprs, first + half, end, &right))
		return -ENOMEM;
	return zc_exprs_fold(exprs, left, right, sum, &twice);
}

/* The value with all nodes raised */
struct zc_value zc_exprs_raise(const struct zc_exprs *exprs, struct zc_value x, u32 turn)
{
	x.turn = (x.turn + turn) % exprs->list[x.expr].period;
	return x;
}

/* Who contributes to a value; ZC_SET_NONE: no memory */
u32 zc_exprs_set(struct zc_exprs *exprs, struct zc_value x)
{
	return zc_sets_union(&exprs->sets, ZC_SET_EMPTY, exprs->list[x.expr].set, x.turn);
}

struct text {
	char *at;
	size_t left;
};

static void put(struct text *text, const char *what)
{
	while (*what && text->left > 1) {
		*text->at++ = *what++;
		text->left--;
	}
}

/* Each call puts something before it calls itself: no deeper than the text is long */
static void print(struct zc_exprs *exprs, u32 i, u32 turn, struct text *text)
{
	const struct zc_expr *expr = &exprs->list[i];
	u32 nodes = exprs->sets.bits, other = (turn + expr->turn) % nodes;
	char number[16];
	bool swap;

	if (text->left <= 1)
		return;
	if (i == ZC_EXPR_LEAF) {
		snprintf(number, sizeof(number), "%u", turn % nodes);
		put(text, number);
		return;
	}
	swap = zc_sets_least(&exprs->sets, exprs->list[expr->b].set, other) <
	       zc_sets_least(&exprs->sets, exprs->list[expr->a].set, turn);
	put(text, "(");
	print(exprs, swap ? expr->b : expr->a, swap ? other : turn, text);
	put(text, "+");
	print(exprs, swap ? expr->a : expr->b, swap ? turn : other, text);
	put(text, ")");
}

/**
 * zc_exprs_print - a value as text, "((0+1)+(2+3))"
 * @exprs: store
 * @x: value
 * @text: buffer
 * @len: its bytes, at least 4; what is longer ends with "..."
 */
void zc_exprs_print(struct zc_exprs *exprs, struct zc_value x, char *text, size_t len)
{
	struct text out = { text, len };

	print(exprs, x.expr, x.turn, &out);
	*out.at = '\0';
	if (out.left <= 1)
		memcpy(text + len - 4, "...", 4);
}
