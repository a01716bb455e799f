// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The fold loops in plain C, an element at a time: what every other variant must
 * equal in every bit, and what runs on CPUs that have no other.
 *
 * A *num* is an element as it is reduced: integers as 64 bits (sums wrap in the
 * element's width when it is stored), fp16 and bf16 as fp32. Type and operator
 * are constants wherever the functions below are called.
 */
#include <linux/zcoll.h>
#include "fold.h"

union num {
	u64 u;
	long long s;
	float f;
	double d;
	u32 f_bits;
};

/* Elements in memory, at any address and of any declared type */
typedef signed char __attribute__((may_alias)) m_s8;
typedef u8 __attribute__((may_alias)) m_u8;
typedef short __attribute__((may_alias, aligned(1))) m_s16;
typedef u16 __attribute__((may_alias, aligned(1))) m_u16;
typedef int __attribute__((may_alias, aligned(1))) m_s32;
typedef u32 __attribute__((may_alias, aligned(1))) m_u32;
typedef u64 __attribute__((may_alias, aligned(1))) m_u64;

static u32 fp16_widen(u16 h)
{
	u32 sign = (u32)(h & 0x8000) << 16;
	u32 exponent = h >> 10 & 0x1f;
	u32 fraction = h & 0x3ff;

	if (exponent == 0x1f)
		return sign | 0x7f800000 | fraction << 13;
	if (!exponent) {
		if (!fraction)
			return sign;
		for (exponent = 1; !(fraction & 0x400); exponent--)
			fraction <<= 1;
	}
	return sign | (exponent + 112) << 23 | (fraction & 0x3ff) << 13;
}

/* @f is not NaN */
static u16 fp16_narrow(u32 f)
{
	u16 sign = f >> 16 & 0x8000;
	u32 mag = f & 0x7fffffff;
	u32 exponent = mag >> 23;
	u32 drop = 13;

	if (exponent > 142)
		return sign | 0x7c00;
	if (exponent < 102)
		return sign;
	if (exponent < 113) {
		drop = 126 - exponent;
		mag = 0x800000 | (mag & 0x7fffff);
	} else {
		mag -= 112 << 23;
	}
	return sign | (mag + (1u << (drop - 1)) - 1 + (mag >> drop & 1)) >> drop;
}

static u16 bf16_narrow(u32 f)
{
	return (f + 0x7fff + (f >> 16 & 1)) >> 16;
}

static __always_inline union num num_load(u32 type, const void *p)
{
	union num x = {};

	switch (type) {
	case ZCOLL_INT8:
		x.s = *(const m_s8 *)p;
		break;
	case ZCOLL_UINT8:
		x.u = *(const m_u8 *)p;
		break;
	case ZCOLL_INT16:
		x.s = *(const m_s16 *)p;
		break;
	case ZCOLL_UINT16:
		x.u = *(const m_u16 *)p;
		break;
	case ZCOLL_INT32:
		x.s = *(const m_s32 *)p;
		break;
	case ZCOLL_UINT32:
		x.u = *(const m_u32 *)p;
		break;
	case ZCOLL_FP16:
		x.f_bits = fp16_widen(*(const m_u16 *)p);
		break;
	case ZCOLL_BF16:
		x.f_bits = (u32)*(const m_u16 *)p << 16;
		break;
	case ZCOLL_FP32:
		x.f_bits = *(const m_u32 *)p;
		break;
	default:
		x.u = *(const m_u64 *)p;
	}
	return x;
}

static __always_inline void num_store(u32 type, void *p, union num x)
{
	bool nan = type == ZCOLL_FP64 ? x.d != x.d : x.f != x.f;

	switch (type) {
	case ZCOLL_INT8:
	case ZCOLL_UINT8:
		*(m_u8 *)p = x.u;
		break;
	case ZCOLL_INT16:
	case ZCOLL_UINT16:
		*(m_u16 *)p = x.u;
		break;
	case ZCOLL_INT32:
	case ZCOLL_UINT32:
		*(m_u32 *)p = x.u;
		break;
	case ZCOLL_INT64:
	case ZCOLL_UINT64:
		*(m_u64 *)p = x.u;
		break;
	case ZCOLL_FP16:
		*(m_u16 *)p = nan ? 0x7e00 : fp16_narrow(x.f_bits);
		break;
	case ZCOLL_BF16:
		*(m_u16 *)p = nan ? 0x7fc0 : bf16_narrow(x.f_bits);
		break;
	case ZCOLL_FP32:
		*(m_u32 *)p = nan ? 0x7fc00000 : x.f_bits;
		break;
	case ZCOLL_FP64:
		*(m_u64 *)p = nan ? 0x7ff8000000000000ull : x.u;
	}
}

/*
 * Is it @a in the minimum or maximum of IEEE 754-2019? @before: @a lies before @b
 * in that order; @first_zero: as a zero, @a has the sign that comes first.
 */
#define FP_CHOICE(a, b, before, first_zero)				\
	((a) != (a) || ((b) == (b) && ((before) || ((a) == (b) && (first_zero)))))

static __always_inline bool num_is_min(u32 type, union num a, union num b)
{
	switch (type) {
	case ZCOLL_INT8:
	case ZCOLL_INT16:
	case ZCOLL_INT32:
	case ZCOLL_INT64:
		return a.s < b.s;
	case ZCOLL_UINT8:
	case ZCOLL_UINT16:
	case ZCOLL_UINT32:
	case ZCOLL_UINT64:
		return a.u < b.u;
	case ZCOLL_FP64:
		return FP_CHOICE(a.d, b.d, a.d < b.d, a.s < 0);
	default:
		return FP_CHOICE(a.f, b.f, a.f < b.f, a.f_bits >> 31);
	}
}

static __always_inline bool num_is_max(u32 type, union num a, union num b)
{
	switch (type) {
	case ZCOLL_INT8:
	case ZCOLL_INT16:
	case ZCOLL_INT32:
	case ZCOLL_INT64:
		return a.s > b.s;
	case ZCOLL_UINT8:
	case ZCOLL_UINT16:
	case ZCOLL_UINT32:
	case ZCOLL_UINT64:
		return a.u > b.u;
	case ZCOLL_FP64:
		return FP_CHOICE(a.d, b.d, a.d > b.d, a.s >= 0);
	default:
		return FP_CHOICE(a.f, b.f, a.f > b.f, !(a.f_bits >> 31));
	}
}

static __always_inline union num num_combine(u32 type, u32 op, union num a, union num b)
{
	if (op == ZCOLL_MIN)
		return num_is_min(type, a, b) ? a : b;
	if (op == ZCOLL_MAX)
		return num_is_max(type, a, b) ? a : b;

	switch (type) {
	case ZCOLL_FP16:
	case ZCOLL_BF16:
	case ZCOLL_FP32:
		a.f = op == ZCOLL_PROD ? a.f * b.f : a.f + b.f;
		break;
	case ZCOLL_FP64:
		a.d = op == ZCOLL_PROD ? a.d * b.d : a.d + b.d;
		break;
	default:
		a.u = op == ZCOLL_PROD ? a.u * b.u : a.u + b.u;
	}
	return a;
}

static __always_inline union num num_average(u32 type, union num x, u32 n)
{
	switch (type) {
	case ZCOLL_INT8:
		x.s = (signed char)x.u / (int)n;
		break;
	case ZCOLL_UINT8:
		x.u = (u8)x.u / n;
		break;
	case ZCOLL_INT16:
		x.s = (short)x.u / (int)n;
		break;
	case ZCOLL_UINT16:
		x.u = (u16)x.u / n;
		break;
	case ZCOLL_INT32:
		x.s = (int)x.u / (int)n;
		break;
	case ZCOLL_UINT32:
		x.u = (u32)x.u / n;
		break;
	case ZCOLL_INT64:
		x.s = x.s / (long long)n;
		break;
	case ZCOLL_UINT64:
		x.u = x.u / n;
		break;
	case ZCOLL_FP64:
		x.d = x.d / (double)n;
		break;
	default:
		x.f = x.f / (float)n;
	}
	return x;
}

/*
 * The fixed tree over all inputs, at offset @off. Finished subtrees wait on a
 * stack as the set bits of a binary counter of inputs: input i is the right-hand
 * end of as many larger subtrees as i has low bits set.
 */
static __always_inline union num tree(u32 type, u32 op, const void *const *src,
				      u32 nsrc, u64 off)
{
	union num waiting[11], x;
	u32 i, k, depth = 0;

	for (i = 0; i < nsrc; i++) {
		x = num_load(type, (const u8 *)src[i] + off);
		for (k = i; k & 1; k >>= 1)
			x = num_combine(type, op, waiting[--depth], x);
		waiting[depth++] = x;
	}
	x = waiting[--depth];
	while (depth)
		x = num_combine(type, op, waiting[--depth], x);
	return x;
}

static __always_inline void fold(u32 type, u32 op, void *const *dst,
				 const void *const *src, u32 ndst, u32 nsrc,
				 u32 divisor, u64 first, u64 count)
{
	const u32 size = zc_dtype_size(type);
	u64 off, end = (first + count) * size;
	u32 d;

	for (off = first * size; off < end; off += size) {
		union num x = tree(type, op, src, nsrc, off);

		if (op == ZCOLL_AVG)
			x = num_average(type, x, divisor);
		for (d = 0; d < ndst; d++)
			num_store(type, (u8 *)dst[d] + off, x);
	}
}

/* Streaming stores are a matter of speed, which is not this file's */
#define FOLD(type, op)								\
static void fold_##type##_##op(void *const *dst, const void *const *src,	\
			       u32 ndst, u32 nsrc, u32 divisor, u64 first,	\
			       u64 count, bool stream __attribute__((unused)))	\
{										\
	fold(ZCOLL_##type, ZCOLL_##op, dst, src, ndst, nsrc, divisor, first,	\
	     count);								\
}

#define FOLD_ALL(type)								\
FOLD(type, SUM)									\
FOLD(type, PROD)								\
FOLD(type, MIN)									\
FOLD(type, MAX)									\
FOLD(type, AVG)

#define ROW(type)								\
	[ZCOLL_##type] = {							\
		[ZCOLL_SUM] = fold_##type##_SUM,				\
		[ZCOLL_PROD] = fold_##type##_PROD,				\
		[ZCOLL_MIN] = fold_##type##_MIN,				\
		[ZCOLL_MAX] = fold_##type##_MAX,				\
		[ZCOLL_AVG] = fold_##type##_AVG,				\
	}

FOLD_ALL(INT8)
FOLD_ALL(UINT8)
FOLD_ALL(INT16)
FOLD_ALL(UINT16)
FOLD_ALL(INT32)
FOLD_ALL(UINT32)
FOLD_ALL(INT64)
FOLD_ALL(UINT64)
FOLD_ALL(FP16)
FOLD_ALL(BF16)
FOLD_ALL(FP32)
FOLD_ALL(FP64)

const struct zc_fold_isa zc_fold_ref = {
	.name = "ref",
	.fn = {
		ROW(INT8),
		ROW(UINT8),
		ROW(INT16),
		ROW(UINT16),
		ROW(INT32),
		ROW(UINT32),
		ROW(INT64),
		ROW(UINT64),
		ROW(FP16),
		ROW(BF16),
		ROW(FP32),
		ROW(FP64),
	},
};
