/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an all-reduce must give, element by element, in scalar C that shares
 * nothing with the driver's loops.
 *
 * The inputs x[a] ... x[b - 1] of the ranks are reduced by a fixed tree:
 * T(a, b) = T(a, m) + T(m, b), m = a + the largest power of two below b - a.
 *
 * An element is handled in its *wide* form: 64-bit integers for integers, fp32
 * for fp16, bf16 and fp32, fp64 for fp64. Integers wrap, which a mask at the end
 * gives for sums and products; fp16 and bf16 are rounded once, at the end. min
 * and max give NaN if there is one, and hold -0 below +0. Any NaN result has the
 * canonical bits. avg divides the sum by the number of ranks; for integers that
 * is the wrapped sum, and the quotient is truncated.
 */
#ifndef ZCOLL_REFERENCE_H
#define ZCOLL_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <linux/zcoll.h>

static inline unsigned int ref_size(int dtype)
{
	static const uint8_t size[ZCOLL_NR_TYPES] = {
		[ZCOLL_INT8] = 1, [ZCOLL_UINT8] = 1,
		[ZCOLL_INT16] = 2, [ZCOLL_UINT16] = 2,
		[ZCOLL_INT32] = 4, [ZCOLL_UINT32] = 4,
		[ZCOLL_INT64] = 8, [ZCOLL_UINT64] = 8,
		[ZCOLL_FP16] = 2, [ZCOLL_BF16] = 2,
		[ZCOLL_FP32] = 4, [ZCOLL_FP64] = 8,
	};

	return size[dtype];
}

static inline bool ref_is_float(int dtype)
{
	return dtype >= ZCOLL_FP16;
}

static inline bool ref_is_signed(int dtype)
{
	return dtype == ZCOLL_INT8 || dtype == ZCOLL_INT16 ||
	       dtype == ZCOLL_INT32 || dtype == ZCOLL_INT64;
}

/* --- bits of elements in memory of any alignment ------------------------- */

static inline uint64_t ref_load(const void *p, unsigned int size)
{
	uint64_t bits = 0;

	memcpy(&bits, p, size);		/* little endian, as the machines of zcoll */
	return bits;
}

static inline void ref_store(void *p, unsigned int size, uint64_t bits)
{
	memcpy(p, &bits, size);
}

static inline float ref_f32(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline uint32_t ref_bits32(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline double ref_f64(uint64_t bits)
{
	double f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline uint64_t ref_bits64(double f)
{
	uint64_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* --- 16-bit formats ------------------------------------------------------ */

static inline float ref_from_fp16(uint16_t h)
{
	int exp = h >> 10 & 0x1f;
	int man = h & 0x3ff;
	float f;

	if (exp == 0x1f)
		f = man ? NAN : INFINITY;
	else if (exp)
		f = ldexpf(1024 + man, exp - 25);
	else
		f = ldexpf(man, -24);
	return h & 0x8000 ? -f : f;
}

/* Round to nearest, ties to even, by looking at what is left over */
static inline uint16_t ref_to_fp16(float f)
{
	uint16_t sign = signbit(f) ? 0x8000 : 0;
	float a = fabsf(f), scaled, whole;
	int exp;

	if (isnan(f))
		return 0x7e00;
	if (a >= 65520.0f)
		return sign | 0x7c00;
	frexpf(a, &exp);		/* a in [2^(exp-1), 2^exp) */
	if (a == 0 || exp < -13)
		exp = -13;		/* subnormals have the least exponent */
	scaled = ldexpf(a, 11 - exp);	/* exact; integers are the fp16 numbers */
	whole = floorf(scaled);
	if (scaled - whole > 0.5f || (scaled - whole == 0.5f && fmodf(whole, 2)))
		whole += 1;
	/* a carry into the next power of two carries into the exponent by itself */
	return sign | (uint16_t)(((exp + 13) << 10) + (int)whole);
}

static inline float ref_from_bf16(uint16_t h)
{
	return ref_f32((uint32_t)h << 16);
}

static inline uint16_t ref_to_bf16(float f)
{
	uint32_t bits = ref_bits32(f);
	uint32_t rest = bits & 0xffff;
	uint16_t top = bits >> 16;

	if (isnan(f))
		return 0x7fc0;
	return top + (rest > 0x8000 || (rest == 0x8000 && (top & 1)));
}

/* --- integers ------------------------------------------------------------ */

/* The value of @bits as type @dtype, in 64 bits */
static inline uint64_t ref_widen_int(int dtype, uint64_t bits)
{
	switch (dtype) {
	case ZCOLL_INT8:	return (uint64_t)(int64_t)(int8_t)bits;
	case ZCOLL_INT16:	return (uint64_t)(int64_t)(int16_t)bits;
	case ZCOLL_INT32:	return (uint64_t)(int64_t)(int32_t)bits;
	case ZCOLL_UINT8:	return (uint8_t)bits;
	case ZCOLL_UINT16:	return (uint16_t)bits;
	case ZCOLL_UINT32:	return (uint32_t)bits;
	default:		return bits;
	}
}

static inline uint64_t ref_int(int dtype, int op, uint64_t a, uint64_t b)
{
	bool less = ref_is_signed(dtype) ? (int64_t)a < (int64_t)b : a < b;

	switch (op) {
	case ZCOLL_PROD:	return a * b;
	case ZCOLL_MIN:		return less ? a : b;
	case ZCOLL_MAX:		return less ? b : a;
	default:		return a + b;
	}
}

static inline uint64_t ref_avg_int(int dtype, uint64_t sum, unsigned int n)
{
	sum = ref_widen_int(dtype, sum);
	return ref_is_signed(dtype) ? (uint64_t)((int64_t)sum / (int64_t)n) : sum / n;
}

/* --- floating point ------------------------------------------------------ */

static inline float ref_fp32(int op, float a, float b)
{
	switch (op) {
	case ZCOLL_PROD:
		return a * b;
	case ZCOLL_MIN:
	case ZCOLL_MAX:
		if (isnan(a) || isnan(b))
			return NAN;
		if (a == 0 && b == 0)
			return (op == ZCOLL_MIN) == !!signbit(a) ? a : b;
		return (op == ZCOLL_MIN) == (a < b) ? a : b;
	default:
		return a + b;
	}
}

static inline double ref_fp64(int op, double a, double b)
{
	switch (op) {
	case ZCOLL_PROD:
		return a * b;
	case ZCOLL_MIN:
	case ZCOLL_MAX:
		if (isnan(a) || isnan(b))
			return NAN;
		if (a == 0 && b == 0)
			return (op == ZCOLL_MIN) == !!signbit(a) ? a : b;
		return (op == ZCOLL_MIN) == (a < b) ? a : b;
	default:
		return a + b;
	}
}

static inline float ref_load_f32(int dtype, uint64_t bits)
{
	switch (dtype) {
	case ZCOLL_FP16:	return ref_from_fp16(bits);
	case ZCOLL_BF16:	return ref_from_bf16(bits);
	default:		return ref_f32(bits);
	}
}

static inline uint64_t ref_store_f32(int dtype, float f)
{
	switch (dtype) {
	case ZCOLL_FP16:	return ref_to_fp16(f);
	case ZCOLL_BF16:	return ref_to_bf16(f);
	default:		return isnan(f) ? 0x7fc00000 : ref_bits32(f);
	}
}

/* --- the tree ------------------------------------------------------------ */

static inline unsigned int ref_split(unsigned int a, unsigned int b)
{
	unsigned int half = 1;

	while (2 * half < b - a)
		half *= 2;
	return a + half;
}

static inline uint64_t ref_tree_int(int dtype, int op, const uint64_t *x,
				    unsigned int a, unsigned int b)
{
	unsigned int m;

	if (b - a == 1)
		return ref_widen_int(dtype, x[a]);
	m = ref_split(a, b);
	return ref_widen_int(dtype, ref_int(dtype, op, ref_tree_int(dtype, op, x, a, m),
					    ref_tree_int(dtype, op, x, m, b)));
}

static inline float ref_tree_fp32(int dtype, int op, const uint64_t *x,
				  unsigned int a, unsigned int b)
{
	unsigned int m;

	if (b - a == 1)
		return ref_load_f32(dtype, x[a]);
	m = ref_split(a, b);
	return ref_fp32(op, ref_tree_fp32(dtype, op, x, a, m),
			ref_tree_fp32(dtype, op, x, m, b));
}

static inline double ref_tree_fp64(int op, const uint64_t *x,
				   unsigned int a, unsigned int b)
{
	unsigned int m;

	if (b - a == 1)
		return ref_f64(x[a]);
	m = ref_split(a, b);
	return ref_fp64(op, ref_tree_fp64(op, x, a, m), ref_tree_fp64(op, x, m, b));
}

/* The bits of the result, from the bits of the elements of @n ranks */
static inline uint64_t ref_reduce(int dtype, int op, const uint64_t *x, unsigned int n)
{
	uint64_t whole;

	if (dtype == ZCOLL_FP64) {
		double d = ref_tree_fp64(op, x, 0, n);

		if (op == ZCOLL_AVG)
			d /= n;
		return isnan(d) ? 0x7ff8000000000000ULL : ref_bits64(d);
	}
	if (ref_is_float(dtype)) {
		float f = ref_tree_fp32(dtype, op, x, 0, n);

		if (op == ZCOLL_AVG)
			f /= n;
		return ref_store_f32(dtype, f);
	}
	whole = ref_tree_int(dtype, op, x, 0, n);
	return op == ZCOLL_AVG ? ref_avg_int(dtype, whole, n) : whole;
}

#endif /* ZCOLL_REFERENCE_H */
