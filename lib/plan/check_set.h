/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Sets of small numbers below a bound, kept once each, so that equal sets have
 * equal ids. Numbers are on a circle: a set can be taken turned by some places.
 */
#ifndef LIBZCOLL_CHECK_SET_H
#define LIBZCOLL_CHECK_SET_H

#include "../../kmod/engine/types.h"

#define ZC_SET_EMPTY	0
#define ZC_SET_NONE	U32_MAX	/* no memory; or no such number */

/**
 * struct zc_sets - a store of sets
 * @bits: the bound
 * @words: of one set
 * @count: sets
 * @room: sets there is room for
 * @pool: @words for each set
 * @index: hash of sets: id, or ZC_SET_NONE
 * @mask: size of @index less 1
 * @work: one set that is being made
 */
struct zc_sets {
	u32 bits;
	u32 words;
	u32 count;
	u32 room;
	u64 *pool;
	u32 *index;
	u32 mask;
	u64 *work;
};

int zc_sets_init(struct zc_sets *sets, u32 bits);
void zc_sets_free(struct zc_sets *sets);
u32 zc_sets_first(struct zc_sets *sets, u32 n);
u32 zc_sets_add(struct zc_sets *sets, u32 a, u32 number);
u32 zc_sets_union(struct zc_sets *sets, u32 a, u32 b, u32 turn);
u32 zc_sets_common(struct zc_sets *sets, u32 a, u32 b, u32 turn);
u32 zc_sets_lacks(const struct zc_sets *sets, u32 a, u32 b);
u32 zc_sets_least(struct zc_sets *sets, u32 a, u32 turn);

#endif /* LIBZCOLL_CHECK_SET_H */
