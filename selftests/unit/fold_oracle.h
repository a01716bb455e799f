/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a fold must give, written from the text of the numerics rules alone and
 * sharing nothing with the loops: values, not bits; recursion; libm.
 *
 * Types int8 .. uint64, fp16, bf16, fp32, fp64. fp16 and bf16 are reduced in
 * fp32 and rounded once. T(a,b) = T(a,m) + T(m,b), m = a + the largest power of
 * two below b - a. min and max are IEEE 754-2019 minimum and maximum, -0 < +0.
 * NaN results are canonical. Integers wrap; their average truncates as C does.
 */
#ifndef ZCOLL_UNIT_FOLD_ORACLE_H
#define ZCOLL_UNIT_FOLD_ORACLE_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <linux/zcoll.h>

/* An element, as the oracle reduces it: one member by the type */
struct value {
	uint64_t i;	/* integers, modulo 2^64 */
	float f;	/* fp16, bf16, fp32 */
	double d;	/* fp64 */
};

static inline int oracle_is_float(int type)
{
	return type >= ZCOLL_FP16;
}

static inline int oracle_is_signed(int type)
{
	return type == ZCOLL_INT8 || type == ZCOLL_INT16 || type == ZCOLL_INT32 ||
	       type == ZCOLL_INT64;
}

static inline unsigned int oracle_size(int type)
{
	switch (type) {
	case ZCOLL_INT8:
	case ZCOLL_UINT8:
		return 1;
	case ZCOLL_INT16:
	case ZCOLL_UINT16:
	case ZCOLL_FP16:
	case ZCOLL_BF16:
		return 2;
	case ZCOLL_INT32:
	case ZCOLL_UINT32:
	case ZCOLL_FP32:
		return 4;
	default:
		return 8;
	}
}

/* A binary format of 16 bits with @bits of fraction, the value of its bits */
static inline float oracle_decode16(uint16_t h, int bits)
{
	int max = (1 << (15 - bits)) - 1, bias = max / 2;
	int exponent = (h & 0x7fff) >> bits, fraction = h & ((1 << bits) - 1);
	double x;

	if (exponent == max)
		x = fraction ? NAN : INFINITY;
	else if (exponent == 0)
		x = ldexp(fraction, 1 - bias - bits);
	else
		x = ldexp((1 << bits) + fraction, exponent - bias - bits);
	return h & 0x8000 ? -x : x;
}

/* The reverse: nearest, ties to even (rint() in the default rounding mode) */
static inline uint16_t oracle_encode16(float value, int bits)
{
	int max = (1 << (15 - bits)) - 1, bias = max / 2, exponent;
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	double steps, x = fabs((double)value);

	if (isnan(value))
		return max << bits | 1 << (bits - 1);
	if (isinf(value))
		return sign | max << bits;
	if (x == 0)
		return sign;
	exponent = ilogb(x);
	if (exponent < 1 - bias)
		exponent = 1 - bias;
	steps = rint(ldexp(x, bits - exponent));	/* 2^bits: the next exponent's first */
	if (exponent > bias || (exponent == bias && steps >= ldexp(2, bits)))
		return sign | max << bits;
	return sign + ((exponent + bias - 1) << bits) + (int)steps;
}

static inline struct value oracle_load(int type, const void *p)
{
	unsigned int size = oracle_size(type);
	struct value v = {};
	uint16_t h;

	memcpy(&h, p, sizeof(h) < size ? sizeof(h) : size);
	switch (type) {
	case ZCOLL_FP16:
		v.f = oracle_decode16(h, 10);
		break;
	case ZCOLL_BF16:
		v.f = oracle_decode16(h, 7);
		break;
	case ZCOLL_FP32:
		memcpy(&v.f, p, sizeof(v.f));
		break;
	case ZCOLL_FP64:
		memcpy(&v.d, p, sizeof(v.d));
		break;
	default:
		memcpy(&v.i, p, size);
		if (oracle_is_signed(type) && size < 8 && v.i >> (8 * size - 1))
			v.i -= UINT64_C(1) << 8 * size;
	}
	return v;
}

static inline void oracle_store(int type, void *p, struct value v)
{
	const uint64_t nan64 = UINT64_C(0x7ff8000000000000);
	const uint32_t nan32 = 0x7fc00000;
	uint16_t h;

	switch (type) {
	case ZCOLL_FP16:
		h = oracle_encode16(v.f, 10);
		memcpy(p, &h, sizeof(h));
		break;
	case ZCOLL_BF16:
		h = oracle_encode16(v.f, 7);
		memcpy(p, &h, sizeof(h));
		break;
	case ZCOLL_FP32:
		memcpy(p, isnan(v.f) ? (const void *)&nan32 : &v.f, sizeof(v.f));
		break;
	case ZCOLL_FP64:
		memcpy(p, isnan(v.d) ? (const void *)&nan64 : &v.d, sizeof(v.d));
		break;
	default:
		memcpy(p, &v.i, oracle_size(type));
	}
}

/* Does @a come before @b when numbers are sorted, -0 before +0? */
static inline int oracle_before(int type, struct value a, struct value b)
{
	double x = type == ZCOLL_FP64 ? a.d : a.f, y = type == ZCOLL_FP64 ? b.d : b.f;

	if (oracle_is_float(type))
		return x < y || (x == y && signbit(x) && !signbit(y));
	if (oracle_is_signed(type))
		return (int64_t)a.i < (int64_t)b.i;
	return a.i < b.i;
}

static inline struct value oracle_combine(int type, int op, struct value a, struct value b)
{
	struct value v = {};

	switch (op) {
	case ZCOLL_MIN:
	case ZCOLL_MAX:
		if (isnan(a.f) || isnan(a.d))
			return a;
		if (isnan(b.f) || isnan(b.d))
			return b;
		return oracle_before(type, a, b) == (op == ZCOLL_MIN) ? a : b;
	case ZCOLL_PROD:
		v.i = a.i * b.i;
		v.f = a.f * b.f;
		v.d = a.d * b.d;
		break;
	default:
		v.i = a.i + b.i;
		v.f = a.f + b.f;
		v.d = a.d + b.d;
	}
	return v;
}

static inline struct value oracle_tree(int type, int op, const void *const *src,
				       uint64_t at, unsigned int a, unsigned int b)
{
	unsigned int m = 1;

	if (b - a == 1)
		return oracle_load(type, (const char *)src[a] + at);
	while (2 * m < b - a)
		m *= 2;
	return oracle_combine(type, op, oracle_tree(type, op, src, at, a, a + m),
			      oracle_tree(type, op, src, at, a + m, b));
}

/* Element number @e of the result of @n inputs, averages divided by @divisor, to @dst */
static inline void oracle_fold(int type, int op, void *dst, const void *const *src,
			       unsigned int n, unsigned int divisor, uint64_t e)
{
	struct value v = oracle_tree(type, op, src, e * oracle_size(type), 0, n);

	if (op == ZCOLL_AVG) {
		char wrapped[8];

		if (oracle_is_float(type)) {
			v.f /= (float)divisor;
			v.d /= (double)divisor;
		} else {
			oracle_store(type, wrapped, v);
			v = oracle_load(type, wrapped);
			v.i = oracle_is_signed(type) ? (uint64_t)((int64_t)v.i / (int64_t)divisor) :
						       v.i / divisor;
		}
	}
	oracle_store(type, dst, v);
}

#endif /* ZCOLL_UNIT_FOLD_ORACLE_H */
