// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What a reduction must give; see reference.h.
 */
#include <math.h>
#include <string.h>

#include <zcoll.h>

#include "reference.h"

/* Where the tree over n ranks splits: the largest power of two below n */
static unsigned int split(unsigned int n)
{
	unsigned int m = 1;

	while (2 * m < n)
		m *= 2;
	return m;
}

/* ---- integers: their order of reduction does not matter ---- */

static uint64_t truncate_bits(uint64_t v, size_t size)
{
	return size == 8 ? v : v & ((1ULL << 8 * size) - 1);
}

static int64_t sign_extend(uint64_t v, size_t size)
{
	return (int64_t)(v << (64 - 8 * size)) >> (64 - 8 * size);
}

static uint64_t int_combine(int op, uint64_t a, uint64_t b, int is_signed)
{
	switch (op) {
	case ZCOLL_PROD:
		return a * b;
	case ZCOLL_MIN:
		return (is_signed ? (int64_t)b < (int64_t)a : b < a) ? b : a;
	case ZCOLL_MAX:
		return (is_signed ? (int64_t)b > (int64_t)a : b > a) ? b : a;
	default:
		return a + b;
	}
}

static uint64_t int_reduce(int op, const uint64_t *bits, unsigned int n, size_t size,
			   int is_signed)
{
	uint64_t acc = 0, v;
	unsigned int i;

	for (i = 0; i < n; i++) {
		v = is_signed ? (uint64_t)sign_extend(bits[i], size) : bits[i];
		acc = i ? int_combine(op, acc, v, is_signed) : v;
	}
	acc = truncate_bits(acc, size);
	if (op == ZCOLL_AVG)
		acc = is_signed ? (uint64_t)(sign_extend(acc, size) / (int64_t)n) : acc / n;
	return truncate_bits(acc, size);
}

/* ---- 16-bit floats ---- */

static float bits_float(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint32_t float_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return isnan(f) ? 0x7fc00000 : bits;
}

static float half_float(uint32_t h)
{
	int exponent = (int)(h >> 10 & 31);
	float mantissa = (float)(h & 1023), f;

	if (exponent == 31)
		f = h & 1023 ? NAN : INFINITY;
	else if (exponent)
		f = ldexpf(mantissa + 1024, exponent - 25);
	else
		f = ldexpf(mantissa, -24);
	return h & 0x8000 ? -f : f;
}

static uint32_t float_half(float f)
{
	uint32_t sign = signbit(f) ? 0x8000 : 0;
	float a = fabsf(f);
	int exponent;

	if (isnan(f))
		return 0x7e00;
	if (a >= 65520)		/* half-way from the largest number to what would follow */
		return sign | 0x7c00;
	if (a < 0x1p-14f)	/* subnormal; may be rounded up to the least normal */
		return sign | (uint32_t)rintf(a * 0x1p24f);
	/* 1024 <= mantissa <= 2048; rounding up to 2048 carries into the exponent */
	a = rintf(frexpf(a, &exponent) * 2048);
	return sign | (((uint32_t)(exponent + 14) << 10) + (uint32_t)a - 1024);
}

static uint32_t float_bfloat(float f)
{
	uint32_t bits = float_bits(f);

	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* ---- floats ---- */

static double combine64(int op, double a, double b)
{
	switch (op) {
	case ZCOLL_PROD:
		return a * b;
	case ZCOLL_MIN:
	case ZCOLL_MAX:
		if (isnan(a) || isnan(b))
			return NAN;
		if (a == b)	/* perhaps zeros of both signs */
			return (op == ZCOLL_MIN) == !!signbit(a) ? a : b;
		return (op == ZCOLL_MIN) == (a < b) ? a : b;
	default:
		return a + b;
	}
}

static float combine32(int op, float a, float b)
{
	switch (op) {
	case ZCOLL_PROD:
		return a * b;
	case ZCOLL_MIN:
	case ZCOLL_MAX:
		return (float)combine64(op, a, b);
	default:
		return a + b;
	}
}

static float widen(int dtype, uint64_t bits)
{
	if (dtype == ZCOLL_FP16)
		return half_float((uint32_t)bits);
	return bits_float((uint32_t)(dtype == ZCOLL_BF16 ? bits << 16 : bits));
}

static uint64_t narrow(int dtype, float f)
{
	if (dtype == ZCOLL_FP16)
		return float_half(f);
	return dtype == ZCOLL_BF16 ? float_bfloat(f) : float_bits(f);
}

static float tree32(int dtype, int op, const uint64_t *bits, unsigned int n)
{
	unsigned int m = split(n);

	if (n == 1)
		return widen(dtype, bits[0]);
	return combine32(op, tree32(dtype, op, bits, m), tree32(dtype, op, bits + m, n - m));
}

static double tree64(int op, const uint64_t *bits, unsigned int n)
{
	unsigned int m = split(n);
	double d;

	if (n == 1) {
		memcpy(&d, bits, sizeof(d));
		return d;
	}
	return combine64(op, tree64(op, bits, m), tree64(op, bits + m, n - m));
}

static uint64_t reduce64(int op, const uint64_t *bits, unsigned int n)
{
	double d = tree64(op, bits, n);
	uint64_t result;

	if (op == ZCOLL_AVG)
		d /= n;
	memcpy(&result, &d, sizeof(result));
	return isnan(d) ? 0x7ff8000000000000 : result;
}

static uint64_t reduce32(int dtype, int op, const uint64_t *bits, unsigned int n)
{
	float f = tree32(dtype, op, bits, n);

	if (op == ZCOLL_AVG)
		f /= (float)n;
	return narrow(dtype, f);
}

uint64_t reference_reduce(int dtype, int op, const uint64_t *bits, unsigned int n)
{
	switch (dtype) {
	case ZCOLL_FP64:
		return reduce64(op, bits, n);
	case ZCOLL_FP32:
	case ZCOLL_FP16:
	case ZCOLL_BF16:
		return reduce32(dtype, op, bits, n);
	default:	/* signed and unsigned take turns */
		return int_reduce(op, bits, n, zcoll_dtype_size(dtype), dtype % 2);
	}
}

uint64_t reference_half(float value)
{
	return float_half(value);
}
