/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Fold: the typed reduction of several inputs, element by element, into one
 * result that is written to several outputs, in one pass.
 *
 * Portable: no kernel header but plain types, no allocation, no state, no sleep.
 * The same objects are linked into the module, the library and the tests. The
 * caller provides the context for SIMD registers (kernel_fpu_begin() in the
 * module) and keeps a call short.
 */
#ifndef ZCOLL_ENGINE_FOLD_H
#define ZCOLL_ENGINE_FOLD_H

#include "types.h"

/* Folds take at most this many inputs: a node's ZCOLL_MAX_RANKS, and one received */
#define ZC_FOLD_MAX_SRC		1025

/* Averages divide by at most this (ZCOLL_MAX_SIZE) */
#define ZC_FOLD_MAX_DIVISOR	262144

/**
 * typedef zc_fold_fn - fold one piece
 * @dst: @ndst output addresses, any alignment. An output may be the same as an
 *	input (same address); partial overlap is not allowed.
 * @src: @nsrc input addresses, any alignment, in rank order
 * @ndst: number of outputs, 1 or more
 * @nsrc: number of inputs, 1 .. ZC_FOLD_MAX_SRC
 * @divisor: what AVG divides the sum by, 1 .. ZC_FOLD_MAX_DIVISOR: the ranks that have
 *	gone into the sum in the end, of which the inputs may be partial sums. Others
 *	ignore it
 * @first: the piece begins at this element of every input and output
 * @count: elements of the piece
 * @stream: write with non-temporal stores: for results that will not fit a cache
 *
 * Order of reduction: T(a,b) = T(a,m) + T(m,b), m = a + the largest power of two
 * below b - a, over the inputs' numbers. fp16 and bf16 are widened to fp32, and
 * rounded once (to nearest even). min and max propagate NaN and order -0 below
 * +0. A NaN result is written as the canonical quiet NaN of its type. Average
 * divides the sum (integers: the wrapped sum, truncating as C does) by @divisor.
 * Integer sums and products wrap. The sum of one input of ZCOLL_UINT8 is a copy of its
 * bytes, whatever they stand for.
 */
typedef void (*zc_fold_fn)(void *const *dst, const void *const *src, u32 ndst, u32 nsrc,
			   u32 divisor, u64 first, u64 count, bool stream);

/* One variant of all loops, for one instruction set */
struct zc_fold_isa {
	const char *name;
	zc_fold_fn fn[13][6];	/* [ZCOLL_* type][ZCOLL_* operator], NULL: none */
};

extern const struct zc_fold_isa zc_fold_ref;	/* plain C, the reference */
#ifdef __x86_64__
extern const struct zc_fold_isa zc_fold_sse2;
extern const struct zc_fold_isa zc_fold_avx2;	/* needs AVX2 and F16C */
extern const struct zc_fold_isa zc_fold_avx512;	/* needs AVX-512 F, BW, DQ, VL */
#endif

/* Bytes of an element of @dtype, 0 if there is no such type */
static inline u32 zc_dtype_size(u32 dtype)
{
	static const u8 size[] = { 0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8 };

	return dtype < sizeof(size) ? size[dtype] : 0;
}

#endif /* ZCOLL_ENGINE_FOLD_H */
