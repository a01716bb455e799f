/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Vectors of the fold loops: how elements get from memory into registers as
 * wide partial results, and back.
 *
 * A *vec* is one register of FOLD_VECTOR bytes; its lanes are named by a cast.
 * A *pair* is the unit all loops work on: two vecs of partial results. For most
 * types a pair is two vecs of memory; fp16 and bf16 are widened to fp32, so
 * there a pair is one vec of memory.
 *
 * GCC vector extensions only, no intrinsics header: that header needs the C
 * library's. The instruction set comes from the compiler flags of the object
 * that includes this; what the language cannot say comes from three macros:
 *
 *   FOLD_VECTOR	bytes of a register
 *   FOLD_NT		mnemonic of the non-temporal store
 *   FOLD_CVTPH(h)	fp16 to fp32, and FOLD_CVTPS(f) fp32 to fp16 rounding to
 *			nearest even; without them integer arithmetic does it
 */
#ifndef ZCOLL_ENGINE_FOLD_VEC_H
#define ZCOLL_ENGINE_FOLD_VEC_H

#include <linux/zcoll.h>
#include "fold.h"

#define FOLD_LANES(type, bytes) \
	typedef type __attribute__((vector_size(bytes)))

FOLD_LANES(u8, FOLD_VECTOR) v_u8;
FOLD_LANES(u16, FOLD_VECTOR) v_u16;
FOLD_LANES(u32, FOLD_VECTOR) v_u32;
FOLD_LANES(u64, FOLD_VECTOR) v_u64;
FOLD_LANES(signed char, FOLD_VECTOR) v_s8;
FOLD_LANES(short, FOLD_VECTOR) v_s16;
FOLD_LANES(int, FOLD_VECTOR) v_s32;
FOLD_LANES(long long, FOLD_VECTOR) v_s64;
FOLD_LANES(float, FOLD_VECTOR) v_f32;
FOLD_LANES(double, FOLD_VECTOR) v_f64;
FOLD_LANES(short, FOLD_VECTOR / 2) v_half;

typedef v_u32 vec;

/* The same in memory, at any address and of any declared type */
typedef vec __attribute__((aligned(1), may_alias)) m_vec;
typedef v_half __attribute__((aligned(1), may_alias)) m_half;

/* A vector of equal lanes */
#define V_ALL(lanes, x)		((lanes) { 0 } + (x))

struct pair {
	vec a, b;
};

/* Bytes of memory that one pair stands for */
#define PAIR_BYTES(type) \
	((type) == ZCOLL_FP16 || (type) == ZCOLL_BF16 ? FOLD_VECTOR : 2 * FOLD_VECTOR)

static __always_inline vec v_select(vec mask, vec yes, vec no)
{
	return (yes & mask) | (no & ~mask);
}

static __always_inline void v_store(void *p, vec v, bool nt)
{
	if (nt && (uintptr_t)p % FOLD_VECTOR == 0)
		asm volatile(FOLD_NT " %1, %0" : "=m" (*(m_vec *)p) : "v" (v));
	else
		*(m_vec *)p = v;
}

#ifdef FOLD_CVTPH

static __always_inline struct pair fp16_load(const void *p)
{
	const m_half *h = p;

	return (struct pair){ (vec)FOLD_CVTPH(h[0]), (vec)FOLD_CVTPH(h[1]) };
}

/* Stays wide: the store narrows */
static __always_inline struct pair fp16_narrow(struct pair x)
{
	return x;
}

static __always_inline void fp16_store(void *p, struct pair x, bool nt)
{
	v_half a = FOLD_CVTPS((v_f32)x.a), b = FOLD_CVTPS((v_f32)x.b);
	m_half *h = p;

	if (nt && (uintptr_t)p % FOLD_VECTOR == 0) {
		asm volatile(FOLD_NT " %1, %0" : "=m" (h[0]) : "v" (a));
		asm volatile(FOLD_NT " %1, %0" : "=m" (h[1]) : "v" (b));
	} else {
		h[0] = a;
		h[1] = b;
	}
}

#else /* fp16 by integer arithmetic */

/*
 * fp16 in the low half of each lane. The exponent's bias is mended by a
 * multiplication, which brings subnormals to their normal form on the way;
 * infinity and NaN become what they are by the largest exponent.
 */
static __always_inline vec fp16_widen_lanes(vec h)
{
	vec mag = (h & 0x7fff) << 13;
	vec wide = (vec)((v_f32)mag * 0x1p112f);

	wide |= (vec)((v_s32)mag >= 0x0f800000) & 0x7f800000;
	return wide | (h & 0x8000) << 16;
}

/*
 * The reverse, rounding to nearest even; NaN must be canonical. Subnormal
 * results are rounded by adding a number whose last place is theirs.
 */
static __always_inline vec fp16_narrow_lanes(vec f)
{
	vec mag = f & 0x7fffffff;
	vec normal = (mag - (112u << 23) + 0xfff + (mag >> 13 & 1)) >> 13;
	vec small = (vec)((v_f32)mag + 0.5f) - 0x3f000000;
	vec large = 0x7c00 | ((vec)((v_s32)mag > 0x7f800000) & 0x0200);
	vec h;

	h = v_select((vec)((v_s32)mag < (113 << 23)), small, normal);
	h = v_select((vec)((v_s32)mag >= (143 << 23)), large, h);
	return h | (f >> 16 & 0x8000);
}

static __always_inline struct pair fp16_load(const void *p)
{
	vec w = *(const m_vec *)p;

	return (struct pair){ fp16_widen_lanes(w & 0xffff), fp16_widen_lanes(w >> 16) };
}

static __always_inline struct pair fp16_narrow(struct pair x)
{
	x.a = fp16_narrow_lanes(x.a) | fp16_narrow_lanes(x.b) << 16;
	return x;
}

static __always_inline void fp16_store(void *p, struct pair x, bool nt)
{
	v_store(p, x.a, nt);
}

#endif /* FOLD_CVTPH */

/* bf16 is the upper half of fp32: even elements go to a, odd ones to b */
static __always_inline struct pair bf16_load(const void *p)
{
	vec w = *(const m_vec *)p;

	return (struct pair){ w << 16, w & 0xffff0000 };
}

static __always_inline struct pair bf16_narrow(struct pair x)
{
	x.a += 0x7fff + (x.a >> 16 & 1);
	x.b += 0x7fff + (x.b >> 16 & 1);
	x.a = (x.a >> 16) | (x.b & 0xffff0000);
	return x;
}

static __always_inline struct pair pair_load(int type, const void *p)
{
	const m_vec *v = p;

	switch (type) {
	case ZCOLL_FP16:
		return fp16_load(p);
	case ZCOLL_BF16:
		return bf16_load(p);
	default:
		return (struct pair){ v[0], v[1] };
	}
}

/* Rounds partial results to the type, ready for any number of pair_store() */
static __always_inline struct pair pair_narrow(int type, struct pair x)
{
	switch (type) {
	case ZCOLL_FP16:
		return fp16_narrow(x);
	case ZCOLL_BF16:
		return bf16_narrow(x);
	default:
		return x;
	}
}

static __always_inline void pair_store(int type, void *p, struct pair x, bool nt)
{
	switch (type) {
	case ZCOLL_FP16:
		fp16_store(p, x, nt);
		break;
	case ZCOLL_BF16:
		v_store(p, x.a, nt);
		break;
	default:
		v_store(p, x.a, nt);
		v_store((u8 *)p + FOLD_VECTOR, x.b, nt);
	}
}

#endif /* ZCOLL_ENGINE_FOLD_VEC_H */
