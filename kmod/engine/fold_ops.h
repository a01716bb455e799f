/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Operators of the fold loops on vectors of partial results: combining two,
 * and what is done once to the last one (average, canonical NaN).
 *
 * There are three operators here: SUM, PROD and MIN. An average is a sum with a
 * last step, a maximum is the minimum in the reverse order (order_flip()), and
 * signs of integers matter to these two only. So loops are needed for 8 types
 * and 3 operators; integer types stand for both signednesses by the unsigned one.
 *
 * @type and @op are constants wherever these are called, so each switch leaves
 * one case. Everything is exact or IEEE-rounded, hence equal to the reference
 * in every bit.
 */
#ifndef ZCOLL_ENGINE_FOLD_OPS_H
#define ZCOLL_ENGINE_FOLD_OPS_H

#include "fold_vec.h"

/*
 * Minimum of IEEE 754-2019. Equal numbers are joined bit by bit, which orders -0
 * below +0; a NaN in either makes all bits ones, a NaN.
 */
#define FP_MIN(lanes, a, b)							\
	(((a) & (vec)((lanes)(a) <= (lanes)(b))) |				\
	 ((b) & ~(vec)((lanes)(a) < (lanes)(b))) |				\
	 (vec)((lanes)(a) != (lanes)(a)))

#define FP_COMBINE(op, lanes, a, b)						\
	((op) == ZCOLL_SUM ? (vec)((lanes)(a) + (lanes)(b)) :			\
	 (op) == ZCOLL_PROD ? (vec)((lanes)(a) * (lanes)(b)) :			\
			      FP_MIN(lanes, a, b))

#define INT_COMBINE(op, lanes, ordered, a, b)					\
	((op) == ZCOLL_SUM ? (vec)((lanes)(a) + (lanes)(b)) :			\
	 (op) == ZCOLL_PROD ? (vec)((lanes)(a) * (lanes)(b)) :			\
			      v_select((vec)((ordered)(a) < (ordered)(b)), a, b))

static __always_inline vec v_combine(int type, int op, vec a, vec b)
{
	switch (type) {
	case ZCOLL_UINT8:
		return INT_COMBINE(op, v_u8, v_s8, a, b);
	case ZCOLL_UINT16:
		return INT_COMBINE(op, v_u16, v_s16, a, b);
	case ZCOLL_UINT32:
		return INT_COMBINE(op, v_u32, v_s32, a, b);
	case ZCOLL_UINT64:
		return INT_COMBINE(op, v_u64, v_s64, a, b);
	case ZCOLL_FP64:
		return FP_COMBINE(op, v_f64, a, b);
	default: /* fp32, and fp16 and bf16 widened to it */
		return FP_COMBINE(op, v_f32, a, b);
	}
}

static __always_inline struct pair pair_combine(int type, int op, struct pair x,
						struct pair y)
{
	return (struct pair){ v_combine(type, op, x.a, y.a),
			      v_combine(type, op, x.b, y.b) };
}

/*
 * What turns the order of a type into that of the vectors' minimum: of signed
 * integers, or of floating point. Applied to inputs and, once more, to the result.
 */
static __always_inline u64 order_flip(int type, bool is_signed, bool max)
{
	u64 top = type == ZCOLL_UINT8 ? 0x8080808080808080 :
		  type == ZCOLL_UINT16 ? 0x8000800080008000 :
		  type == ZCOLL_UINT64 || type == ZCOLL_FP64 ? 0x8000000000000000 :
							       0x8000000080000000;

	if (type >= ZCOLL_FP16)
		return max ? top : 0;
	return (is_signed ? 0 : top) ^ (max ? ~0ull : 0);
}

static __always_inline struct pair pair_flip(struct pair x, u64 flip)
{
	vec f = (vec)V_ALL(v_u64, flip);

	return (struct pair){ x.a ^ f, x.b ^ f };
}

/**
 * struct average - how the sum becomes an average, if it does
 * @on: it does
 * @sign: all ones for signed integers, else 0
 * @n: the divisor, 1 .. ZC_FOLD_MAX_DIVISOR
 * @inv32: a little more than 1 / n, see div_16()
 * @inv64: 1 / n, see div_50()
 */
struct average {
	bool on;
	u32 sign;
	u32 n;
	float inv32;
	double inv64;
};

static __always_inline struct average average_init(u32 n, bool on, bool is_signed)
{
	struct average avg = { .on = on, .n = n, .sign = is_signed ? ~0u : 0 };

	if (on) {
		avg.inv32 = 1.0f / (float)n * (1.0f + 1.0f / (1 << 22));
		avg.inv64 = 1.0 / (double)n;
	}
	return avg;
}

/*
 * Each 32-bit lane, below 2^16, divided by n. The product is not below the true
 * quotient, and above it by less than 1/n (2^16/n times 2^-21), so it has the
 * same integer part. That holds for all n that are exact in a float.
 */
static __always_inline vec div_16(vec x, const struct average *avg)
{
	v_f32 q = __builtin_convertvector((v_s32)x, v_f32) * avg->inv32;

	return (vec)__builtin_convertvector(q, v_s32);
}

/*
 * Each 64-bit lane, below n * 2^32, which is at most 2^50, divided by n. A number
 * below 2^52 becomes a double by being put below the exponent of 2^52. The product
 * of a quotient below 2^32 and two factors that are each off by 2^-53 at most is off
 * by 2^-20 at most. Adding 2^34 rounds it to 18 bits of fraction, by 2^-19 at most: a
 * multiple of n to the quotient itself; others, which are 1/n, or 2^-18, at least
 * below the next integer, to something that is still below it, by 2^-20.
 */
static __always_inline v_u64 div_50(v_u64 x, const struct average *avg)
{
	v_f64 d = (v_f64)(x | 0x4330000000000000ull) - 0x1p52;
	v_u64 q = (v_u64)(d * avg->inv64 + 0x1p34);

	return (q & 0xfffffffffffffull) >> 18;
}

static __always_inline vec div_u8(vec x, const struct average *avg)
{
	return div_16(x & 0xff, avg) | div_16(x >> 8 & 0xff, avg) << 8 |
	       div_16(x >> 16 & 0xff, avg) << 16 | div_16(x >> 24, avg) << 24;
}

static __always_inline vec div_u16(vec x, const struct average *avg)
{
	return div_16(x & 0xffff, avg) | div_16(x >> 16, avg) << 16;
}

static __always_inline vec div_u32(vec x, const struct average *avg)
{
	v_u64 w = (v_u64)x;

	return (vec)(div_50(w & 0xffffffff, avg) | div_50(w >> 32, avg) << 32);
}

/* Long division: the upper half, then its remainder with the lower half */
static __always_inline vec div_u64(vec x, const struct average *avg)
{
	v_u64 w = (v_u64)x;
	v_u64 high = div_50(w >> 32, avg);
	v_u64 rest = (w >> 32) - (v_u64)((vec)high * avg->n);

	return (vec)(div_50(rest << 32 | (w & 0xffffffff), avg) | high << 32);
}

/* C's division of signed integers divides the magnitudes */
#define SIGNED_DIV(divide, lanes, x, negative, avg) ({				\
	lanes sign_ = (lanes)((negative) & (avg)->sign);			\
	vec mag_ = (vec)(((lanes)(x) ^ sign_) - sign_);			\
	(vec)(((lanes)divide(mag_, avg) ^ sign_) - sign_);			\
})

static __always_inline vec v_average(int type, vec x, const struct average *avg)
{
	switch (type) {
	case ZCOLL_UINT8:
		return SIGNED_DIV(div_u8, v_u8, x, (vec)((v_s8)x < 0), avg);
	case ZCOLL_UINT16:
		return SIGNED_DIV(div_u16, v_u16, x, (vec)((v_s16)x < 0), avg);
	case ZCOLL_UINT32:
		return SIGNED_DIV(div_u32, v_u32, x, (vec)((v_s32)x < 0), avg);
	case ZCOLL_UINT64:
		return SIGNED_DIV(div_u64, v_u64, x, (vec)(0 - ((v_u64)x >> 63)), avg);
	case ZCOLL_FP64:
		return (vec)((v_f64)x / (double)avg->n);
	default:
		return (vec)((v_f32)x / (float)avg->n);
	}
}

/* Every NaN becomes the one quiet NaN */
static __always_inline vec v_canonical(int type, vec x)
{
	switch (type) {
	case ZCOLL_FP16:
	case ZCOLL_BF16:
	case ZCOLL_FP32:
		return v_select((vec)((v_f32)x != (v_f32)x), V_ALL(vec, 0x7fc00000), x);
	case ZCOLL_FP64:
		return v_select((vec)((v_f64)x != (v_f64)x),
				(vec)V_ALL(v_u64, 0x7ff8000000000000ull), x);
	default:
		return x;
	}
}

static __always_inline struct pair pair_average(int type, struct pair x,
						const struct average *avg)
{
	return (struct pair){ v_average(type, x.a, avg), v_average(type, x.b, avg) };
}

static __always_inline struct pair pair_canonical(int type, struct pair x)
{
	return (struct pair){ v_canonical(type, x.a), v_canonical(type, x.b) };
}

#endif /* ZCOLL_ENGINE_FOLD_OPS_H */
