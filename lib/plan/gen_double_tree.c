// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * "double-tree": two binary trees, each for half of the elements; a node that has
 * children in one is a leaf of the other, so all send and receive in both directions
 * all the time. P. Sanders, J. Speck and J. L. Träff, Two-tree Algorithms for Full
 * Bandwidth Broadcast, Reduction and Scan, Parallel Computing 35(12), 2009; the trees are
 * those of NCCL (src/graph/trees.cc).
 *
 * A tree has labels 0 .. M-1. Label u is at *level* b if 2^b is the lowest bit of u; its
 * children are u - 2^(b-1) and, if that is below M, u + 2^(b-1), else u + the next power
 * of two for which it is. Label 0, the root, has one child, the highest power of two.
 * So the edges of a level are of three classes: *left* (the parent is above), *right*
 * (below), and at most one *odd* edge from a label whose parent's distance is another one.
 *
 * For an all-reduce the second tree has the labels in the opposite order (N even), or
 * shifted by one (N odd). For a broadcast or a reduce node 0 is to have only one child in
 * each tree: it is the root of both, the second one of nodes N-1, N-2, ... (N odd), or
 * beside the second one (N even).
 */
#include "gen.h"

/* Levels of label 0, and of a node beside the tree that is its parent */
#define ZC_ROOT		17
#define ZC_BESIDE	18
#define ZC_EDGES	(3 * ZC_ROOT + 2)

/**
 * struct zc_edges - edges of one level and class
 * @up: row of the children as they send to their parents
 * @level: level of the children
 * @parent: of the parents
 * @sent: where in the table @up is, ZC_NONE: nowhere
 * @folded: the parents' answer, likewise
 * @delivered: where the children get the result, likewise
 */
struct zc_edges {
	struct zcoll_step up;
	u32 level;
	u32 parent;
	u32 sent;
	u32 folded;
	u32 delivered;
};

/**
 * struct zc_binary - a tree
 * @build: plan
 * @row: row for all its labels
 * @top: level of the node that reduces to and broadcasts from
 * @ready: where that has the result
 * @edges: by level of the parents
 * @n: how many
 */
struct zc_binary {
	struct zc_build *build;
	struct zcoll_step row;
	u32 top;
	u32 ready;
	struct zc_edges edges[ZC_EDGES];
	u32 n;
};

static struct zcoll_step *zc_edges_add(struct zc_binary *tree, u32 level, u32 parent, s32 dist)
{
	struct zc_edges *edges = &tree->edges[tree->n++];

	*edges = (struct zc_edges){
		.up = tree->row,
		.level = level,
		.parent = parent,
		.sent = ZC_NONE,
		.folded = ZC_NONE,
		.delivered = ZC_NONE,
	};
	edges->up.dist = dist;
	return &edges->up;
}

static void zc_edge_one(struct zc_binary *tree, u32 child, u32 level, u32 parent, s32 dist)
{
	zc_between(zc_edges_add(tree, level, parent, dist), child, child);
}

/* The last label of a level may have a right child at less than the usual distance */
static void zc_edge_odd(struct zc_binary *tree, u32 level)
{
	u32 bit = 1U << level, end = tree->row.last;
	u32 label = (end - bit) / (2 * bit) * 2 * bit + bit;

	if (label + bit / 2 <= end)
		return;
	while (level--) {
		if (label + (1U << level) > end)
			continue;
		zc_edge_one(tree, label + (1U << level), level, __builtin_ctz(bit),
			    -(1 << level));
		return;
	}
}

/* All edges, but for that to a node beside the tree */
static void zc_edges_all(struct zc_binary *tree)
{
	u32 end = tree->row.last, level;

	for (level = 1; 1U << level <= end; level++) {
		u32 near = 1U << (level - 1), bit = 1U << level;
		struct zcoll_step *up = zc_edges_add(tree, level - 1, level, near);

		zc_digits(up, 2 * bit, near, near);
		up->last = end - near;
		if (bit + near <= end) {
			up = zc_edges_add(tree, level - 1, level, -(s32)near);
			up->first = bit + near;
			zc_digits(up, 2 * bit, bit + near, bit + near);
		}
		zc_edge_odd(tree, level);
	}
	if (end)
		zc_edge_one(tree, 1U << (level - 1), level - 1, ZC_ROOT, -(1 << (level - 1)));
}

/* ---- up and down ---- */

/* A value goes up when all below has been folded, and is folded after the left one's */
static void zc_binary_up(struct zc_binary *tree)
{
	for (u32 i = 0; i < tree->n; i++) {
		struct zc_edges *edges = &tree->edges[i];
		struct zcoll_step send = edges->up, fold = zc_answer(&send, ZCOLL_STEP_FOLD);
		u32 left = ZC_NONE, n = 0;

		for (u32 j = i; j-- > 0;) {
			if (tree->edges[j].parent == edges->level)
				send.after[n++] = zc_on_slice(tree->edges[j].folded, 0);
			if (tree->edges[j].parent == edges->parent)
				left = tree->edges[j].folded;
		}
		if (!n)
			send.flags |= ZCOLL_STEP_FIRST;
		zc_shift(&fold, send.dist);
		fold.after[0] = zc_on_slice(left, 0);
		if (left == ZC_NONE)
			fold.flags |= ZCOLL_STEP_FIRST;
		if (edges->parent == tree->top)
			fold.flags |= ZCOLL_STEP_RESULT;
		edges->folded = zc_message(tree->build, &send, &fold);
		edges->sent = edges->folded - 1;
		tree->ready = edges->folded;
	}
}

static void zc_binary_down(struct zc_binary *tree)
{
	for (u32 i = tree->n; i-- > 0;) {
		struct zc_edges *edges = &tree->edges[i];
		struct zcoll_step send = edges->up, deliver;
		u32 n = 0;

		zc_shift(&send, edges->up.dist);
		send.dist = -edges->up.dist;
		if (edges->parent == tree->top)
			send.after[n++] = zc_on_slice(tree->ready, 0);
		for (u32 j = tree->n; j-- > 0;)
			if (tree->edges[j].level == edges->parent)
				send.after[n++] = zc_on_slice(tree->edges[j].delivered, 0);
		deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
		zc_shift(&deliver, send.dist);
		deliver.after[0] = zc_on_slice(edges->sent, 0);
		edges->delivered = zc_message(tree->build, &send, &deliver);
	}
}

/* ---- the plan ---- */

/* The tree that is the same in all collectives, for segment 0 */
static void zc_first_tree(struct zc_binary *tree)
{
	tree->row = zc_row(tree->build, ZCOLL_STEP_SEND);
	tree->top = ZC_ROOT;
	zc_edges_all(tree);
}

/* For segment 1; @rooted: node 0 is to have one child */
static void zc_second_tree(struct zc_binary *tree, bool rooted)
{
	bool even = tree->build->plan->nodes % 2 == 0;

	tree->row = zc_row(tree->build, ZCOLL_STEP_SEND);
	tree->row.seg = 1;
	tree->top = ZC_ROOT;
	if (even == rooted)
		tree->row.origin = 1;
	if (even != rooted) {
		tree->row.flags = ZCOLL_STEP_FLIP;
		tree->row.origin = rooted;
	}
	if (even && rooted) {
		tree->row.last--;
		tree->top = ZC_BESIDE;
	}
	zc_edges_all(tree);
	if (tree->top == ZC_BESIDE)
		zc_edge_one(tree, 0, ZC_ROOT, ZC_BESIDE, tree->build->plan->nodes - 1);
}

int zc_gen_double_tree(struct zc_build *build)
{
	struct zcoll_plan *plan = build->plan;
	bool barrier = plan->collective == ZCOLL_BARRIER;
	struct zc_binary trees[2] = { { .build = build }, { .build = build } };

	plan->segments = barrier ? 1 : 2;
	/* A node folds in one tree only */
	plan->acc = plan->collective == ZCOLL_REDUCE && plan->nodes > 2;
	zc_first_tree(&trees[0]);
	if (!barrier)
		zc_second_tree(&trees[1], plan->collective != ZCOLL_ALLREDUCE);
	for (u32 i = 0; i < plan->segments; i++) {
		if (plan->collective == ZCOLL_BROADCAST)
			trees[i].ready = zc_root_result(build, i).step;
		else
			zc_binary_up(&trees[i]);
		if (plan->collective != ZCOLL_REDUCE)
			zc_binary_down(&trees[i]);
	}
	return 0;
}
