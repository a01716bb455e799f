/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Reference: what a reduction must give, bit for bit.
 *
 * Written from the documented numerics and apart from the loops of the module, one
 * element at a time, so that the two can check each other. Elements are passed as
 * their bits, in the low bytes of a uint64_t.
 *
 * Order of reduction: T(a,b) = T(a,m) + T(m,b) with m = a + the largest power of
 * two below b - a, over the ranks. fp16 and bf16 are widened to fp32, and rounded
 * once at the end, to nearest even. min and max propagate NaN and order -0 below
 * +0; a NaN result is the canonical quiet one. Integers wrap; their average is the
 * wrapped sum, divided as C divides.
 */
#ifndef ZCOLL_REFERENCE_H
#define ZCOLL_REFERENCE_H

#include <stdint.h>

/* @bits: one element of each of @n ranks, @n from 1 on */
uint64_t reference_reduce(int dtype, int op, const uint64_t *bits, unsigned int n);

/* The bits of the fp16 that is nearest to @value */
uint64_t reference_half(float value);

#endif /* ZCOLL_REFERENCE_H */
