/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The generators of plans, one for each algorithm or family of them, and the phases
 * that several algorithms are made of.
 *
 * A generator sets segments, scratch and acc of the plan, and then appends rows. All
 * get at least two nodes, and a collective that they have. They return 0, or a
 * negative errno with the text set.
 */
#ifndef LIBZCOLL_GEN_H
#define LIBZCOLL_GEN_H

#include "builder.h"

int zc_gen_ring(struct zc_build *build);
int zc_gen_pairwise(struct zc_build *build);
int zc_gen_recursive_doubling(struct zc_build *build);
int zc_gen_halving_doubling(struct zc_build *build);
int zc_gen_circulant(struct zc_build *build);
int zc_gen_bruck(struct zc_build *build);
int zc_gen_binomial(struct zc_build *build);
int zc_gen_knomial(struct zc_build *build);
int zc_gen_double_tree(struct zc_build *build);
int zc_gen_hierarchical(struct zc_build *build);
int zc_gen_aggregator(struct zc_build *build);

/* ---- circulant.c ---- */

#define ZC_MAX_ROUNDS	17

/**
 * struct zc_skips - how far a node sends, round by round
 * @extent: blocks of a node's concern before round 0, 1, ...; the last one is 1
 * @rounds: rounds
 */
struct zc_skips {
	u32 extent[ZC_MAX_ROUNDS + 1];
	u32 rounds;
};

/**
 * struct zc_sent - what a reduce-scatter has sent, in the order of its messages
 * @step: rows, those of one message in a row
 * @n: rows
 */
struct zc_sent {
	struct {
		u32 step;
		u32 round;
		u32 hop;
	} step[ZCOLL_PLAN_MAX_STEPS];
	u32 n;
};

struct zc_skips zc_circulant_skips(u32 size, u32 radix);
struct zcoll_after zc_circulant_scatter(struct zc_build *build, const struct zcoll_step *group,
					const struct zc_skips *skips, struct zcoll_after ready,
					bool result, struct zc_sent *sent);
void zc_circulant_gather(struct zc_build *build, const struct zcoll_step *group,
			 const struct zc_skips *skips, struct zc_waits *ready,
			 const struct zc_sent *sent, struct zcoll_after quiet);

/* ---- doubling.c ---- */

void zc_doubling_gather(struct zc_build *build, u32 nodes, struct zc_waits *ready,
			const struct zcoll_after *sent);
void zc_doubling_allgather(struct zc_build *build);

/* ---- tree.c ---- */

/**
 * struct zc_span - nodes that get a value in the same row
 * @lo: least number in the group
 * @hi: largest
 * @ready: what they wait for to have it
 */
struct zc_span {
	u32 lo;
	u32 hi;
	struct zcoll_after ready;
};

void zc_send_from(struct zc_build *build, const struct zcoll_step *send,
		  const struct zc_span *spans, u32 n);
u32 zc_tree_reduce(struct zc_build *build, u32 radix, u32 group, bool result,
		   struct zc_waits *folded, struct zc_waits *sent);
void zc_tree_broadcast(struct zc_build *build, u32 radix, u32 group, struct zcoll_after ready,
		       struct zcoll_after quiet);

/* ---- level_tree.c ---- */

/**
 * struct zc_tier - nodes of a level, and the trees among them
 * @first: least number
 * @last: largest; those that are groups' leaders, or all, are a multiple of @stride
 * @stride: weight of the digit in which the nodes of a group differ
 * @size: nodes of a group
 */
struct zc_tier {
	u32 first;
	u32 last;
	u32 stride;
	u32 size;
};

void zc_tiers_broadcast(struct zc_build *build, const struct zc_tier *tiers, u32 n);
void zc_tiers_reduce(struct zc_build *build, const struct zc_tier *tiers, u32 n);

/* ---- level_stripe.c ---- */

void zc_stripe_allgather(struct zc_build *build, const u32 *levels, u32 n);
void zc_stripe_reduce_scatter(struct zc_build *build, const u32 *levels, u32 n);

#endif /* LIBZCOLL_GEN_H */
