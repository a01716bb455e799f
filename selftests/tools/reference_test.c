// SPDX-License-Identifier: GPL-2.0
/*
 * What zcoll perf checks with: the reference gives what the documentation says, and
 * the comparison counts what is wrong.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll.h>

#include "../../tools/pattern.h"
#include "../../tools/reference.h"
#include "../lib/tap.h"

static void gives(const char *name, int dtype, int op, uint64_t want, unsigned int n,
		  const uint64_t *bits)
{
	uint64_t got = reference_reduce(dtype, op, bits, n);

	if (!ok(got == want, "%s %s: %s", zcoll_dtype_name(dtype), zcoll_op_name(op), name))
		printf("# 0x%" PRIx64 ", should be 0x%" PRIx64 "\n", got, want);
}

#define GIVES(name, dtype, op, want, ...) \
	gives(name, dtype, op, want, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8, \
	      (uint64_t[]){ __VA_ARGS__ })

static uint64_t f32(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return bits;
}

static uint64_t f64(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, 8);
	return bits;
}

static void test_integers(void)
{
	GIVES("wraps", ZCOLL_INT8, ZCOLL_SUM, 0x80, 0x7f, 1);
	GIVES("wraps", ZCOLL_UINT8, ZCOLL_SUM, 0x00, 0xff, 1);
	GIVES("wraps", ZCOLL_INT16, ZCOLL_PROD, 0x0001, 0xffff, 0xffff);
	GIVES("wraps", ZCOLL_UINT32, ZCOLL_PROD, 1, 0xffffffff, 0xffffffff);
	GIVES("wraps", ZCOLL_INT64, ZCOLL_SUM, 1ULL << 63, INT64_MAX, 1);
	GIVES("is signed", ZCOLL_INT8, ZCOLL_MIN, 0x80, 0x7f, 0x80, 0);
	GIVES("is unsigned", ZCOLL_UINT8, ZCOLL_MIN, 0, 0x7f, 0x80, 0);
	GIVES("is signed", ZCOLL_INT64, ZCOLL_MAX, 5, 5, ~0ULL);
	GIVES("is unsigned", ZCOLL_UINT64, ZCOLL_MAX, ~0ULL, 5, ~0ULL);
	GIVES("truncates towards 0", ZCOLL_INT32, ZCOLL_AVG, 0xfffffffe, 0xfffffffb, 0);
	GIVES("divides the wrapped sum", ZCOLL_INT8, ZCOLL_AVG, 0xc0, 0x7f, 0x01);
	GIVES("divides the wrapped sum", ZCOLL_UINT8, ZCOLL_AVG, 0, 0xff, 0x01);
}

/* Numbers of which one order of addition keeps another digit than others do */
static void test_order(void)
{
	float a = 1e8f, b = 3, c = -1e8f, d = 5, e = 1;

	GIVES("3 ranks: (a+b)+c", ZCOLL_FP32, ZCOLL_SUM, f32((a + b) + c), f32(a), f32(b), f32(c));
	GIVES("4 ranks: (a+b)+(c+d)", ZCOLL_FP32, ZCOLL_SUM, f32((a + b) + (c + d)),
	      f32(a), f32(b), f32(c), f32(d));
	GIVES("5 ranks: ((a+b)+(c+d))+e", ZCOLL_FP32, ZCOLL_SUM, f32(((a + b) + (c + d)) + e),
	      f32(a), f32(b), f32(c), f32(d), f32(e));
	GIVES("7 ranks: ((a+b)+(c+d))+((e+a)+b)", ZCOLL_FP32, ZCOLL_SUM,
	      f32(((a + b) + (c + d)) + ((e + a) + b)),
	      f32(a), f32(b), f32(c), f32(d), f32(e), f32(a), f32(b));
	GIVES("3 ranks: (a+b)+c", ZCOLL_FP64, ZCOLL_SUM, f64((1e17 + 3) + 5), f64(1e17), f64(3),
	      f64(5));
	GIVES("divides", ZCOLL_FP32, ZCOLL_AVG, f32((1.0f + 2 + 4) / 3), f32(1), f32(2), f32(4));
}

static void test_special_values(void)
{
	uint64_t nan32 = 0xffa00001, nan64 = 0xfff4000000000001, inf = 0x7f800000;

	GIVES("NaN wins, canonical", ZCOLL_FP32, ZCOLL_MIN, 0x7fc00000, f32(1), nan32);
	GIVES("NaN wins, canonical", ZCOLL_FP32, ZCOLL_MAX, 0x7fc00000, nan32, f32(1));
	GIVES("NaN wins, canonical", ZCOLL_FP64, ZCOLL_SUM, 0x7ff8000000000000, nan64, f64(1));
	GIVES("NaN alone is canonical", ZCOLL_FP16, ZCOLL_SUM, 0x7e00, 0xfd01);
	GIVES("NaN alone is canonical", ZCOLL_BF16, ZCOLL_MAX, 0x7fc0, 0xffa1);
	GIVES("inf - inf is NaN", ZCOLL_FP32, ZCOLL_SUM, 0x7fc00000, inf, inf | 1U << 31);
	GIVES("-0 is below +0", ZCOLL_FP32, ZCOLL_MIN, 1U << 31, 0, 1U << 31);
	GIVES("-0 is below +0", ZCOLL_FP32, ZCOLL_MIN, 1U << 31, 1U << 31, 0);
	GIVES("-0 is below +0", ZCOLL_FP64, ZCOLL_MAX, 0, 1ULL << 63, 0);
	GIVES("-0 is below +0", ZCOLL_FP16, ZCOLL_MAX, 0, 0, 0x8000);
}

static void test_half(void)
{
	unsigned int h, bad = 0;
	uint64_t bits;

	for (h = 0; h < 65536; h++) {
		bits = h;
		if ((h & 0x7fff) <= 0x7c00)
			bad += reference_reduce(ZCOLL_FP16, ZCOLL_SUM, &bits, 1) != h;
	}
	is(bad, 0, "each fp16 number is widened and rounded to itself");
	GIVES("a tie goes to even, down", ZCOLL_FP16, ZCOLL_SUM, 0x3c00, 0x3c00, 0x1000);
	GIVES("a tie goes to even, up", ZCOLL_FP16, ZCOLL_SUM, 0x3c02, 0x3c01, 0x1000);
	GIVES("the largest number stays", ZCOLL_FP16, ZCOLL_SUM, 0x7bff, 0x7bff, 0x4bff);
	GIVES("half a step more is infinite", ZCOLL_FP16, ZCOLL_SUM, 0x7c00, 0x7bff, 0x4c00);
	GIVES("carries into the exponent", ZCOLL_FP16, ZCOLL_SUM, 0x4000, 0x3fff, 0x1000);
	GIVES("half the least number is 0", ZCOLL_FP16, ZCOLL_AVG, 0, 1, 0);
	GIVES("a subnormal tie goes to even", ZCOLL_FP16, ZCOLL_AVG, 2, 1, 2);
	GIVES("the greatest subnormal may become normal", ZCOLL_FP16, ZCOLL_AVG, 0x400, 0x3ff, 0x400);
	GIVES("rounds once, at the end", ZCOLL_FP16, ZCOLL_SUM, 0x3c01, 0x3c00, 0x1000, 0x1000);
}

static void test_bfloat(void)
{
	unsigned int b, bad = 0;
	uint64_t bits;

	for (b = 0; b < 65536; b++) {
		bits = b;
		if ((b & 0x7fff) <= 0x7f80)
			bad += reference_reduce(ZCOLL_BF16, ZCOLL_SUM, &bits, 1) != b;
	}
	is(bad, 0, "each bf16 number is widened and rounded to itself");
	GIVES("a tie goes to even, down", ZCOLL_BF16, ZCOLL_SUM, 0x3f80, 0x3f80, 0x3b80);
	GIVES("a tie goes to even, up", ZCOLL_BF16, ZCOLL_SUM, 0x3f82, 0x3f81, 0x3b80);
	GIVES("overflows to infinity", ZCOLL_BF16, ZCOLL_SUM, 0x7f80, 0x7f7f, 0x7f7f);
	GIVES("rounds once, at the end", ZCOLL_BF16, ZCOLL_SUM, 0x3f81, 0x3f80, 0x3b80, 0x3b80);
}

/* Data of all types that is right, and then wrong in known places */
static void test_comparison(void)
{
	enum { COUNT = 3 * PATTERN_PERIOD + 5, SHIFT = 1000 };
	char *data = malloc(8 * COUNT + 4096);
	unsigned long long right, one, more, moved, shifted;
	struct pattern p;
	int dtype;

	for (dtype = 1; dtype < ZCOLL_NR_TYPES; dtype++) {
		if (pattern_init(&p, dtype, ZCOLL_SUM, 2, 3, false))
			abort();
		pattern_fill(&p, data, COUNT * p.size, SHIFT);
		right = pattern_wrong_input(&p, data, COUNT, SHIFT);
		shifted = pattern_wrong_input(&p, data, COUNT, SHIFT + 1);
		moved = pattern_wrong_input(&p, data + 4096, COUNT - 4096, SHIFT);
		data[PATTERN_PERIOD * p.size] ^= 1;
		one = pattern_wrong_input(&p, data, COUNT, SHIFT);
		data[0] ^= 1;
		data[COUNT * p.size - 1] ^= 1;
		more = pattern_wrong_input(&p, data, COUNT, SHIFT);
		ok(!right && one == 1 && more == 3 && shifted > COUNT / 2 && moved > COUNT / 4,
		   "%s: right data, one and three wrong elements, and misplaced data are counted",
		   zcoll_dtype_name(dtype));
		pattern_free(&p);
	}
	free(data);
}

/* The patterns would not tell orders apart if sums came out the same in all */
static void test_pattern_rounds(void)
{
	struct pattern a, b, c, sum;
	unsigned int i, differ = 0;
	float x, y, z, tree, other;

	if (pattern_init(&a, ZCOLL_FP32, ZCOLL_SUM, 0, 3, false) ||
	    pattern_init(&b, ZCOLL_FP32, ZCOLL_SUM, 1, 3, false) ||
	    pattern_init(&c, ZCOLL_FP32, ZCOLL_SUM, 2, 3, false))
		abort();
	sum = a;
	for (i = 0; i < PATTERN_PERIOD; i++) {
		memcpy(&x, a.input + 4 * i, 4);
		memcpy(&y, b.input + 4 * i, 4);
		memcpy(&z, c.input + 4 * i, 4);
		memcpy(&tree, sum.result + 4 * i, 4);
		other = x + (y + z);
		differ += other != tree;
	}
	ok(differ > PATTERN_PERIOD / 10, "the order of float sums shows in the result");
	pattern_free(&a);
	pattern_free(&b);
	pattern_free(&c);
}

static uint64_t load(const char *block, unsigned int i, size_t size)
{
	uint64_t bits = 0;

	memcpy(&bits, block + i * size, size);
	return bits;
}

/* Exact numbers of so many ranks, one after the other and rounded each time: the same */
static void exact(int dtype, int op, unsigned int nranks)
{
	uint64_t pair[2], acc[PATTERN_PERIOD];
	unsigned int r, i, differ = 0;
	struct pattern p;

	for (r = nranks; r--; ) {
		if (pattern_init(&p, dtype, op, r, nranks, true))
			abort();
		for (i = 0; i < PATTERN_PERIOD; i++) {
			pair[0] = load(p.input, i, p.size);
			pair[1] = acc[i];
			acc[i] = r == nranks - 1 ? pair[0] : reference_reduce(dtype, op, pair, 2);
			differ += !r && acc[i] != load(p.result, i, p.size);
		}
		pattern_free(&p);
	}
	ok(!differ, "%s %s of %u ranks: exact patterns do not round in any order",
	   zcoll_dtype_name(dtype), zcoll_op_name(op), nranks);
}

static void test_exact(void)
{
	int dtype;

	for (dtype = ZCOLL_FP16; dtype < ZCOLL_NR_TYPES; dtype++) {
		exact(dtype, ZCOLL_SUM, 3);
		exact(dtype, ZCOLL_SUM, 70);
		exact(dtype, ZCOLL_PROD, 21);
	}
}

int main(void)
{
	printf("TAP version 13\n");
	test_integers();
	test_order();
	test_special_values();
	test_half();
	test_bfloat();
	test_comparison();
	test_pattern_rounds();
	test_exact();
	return tap_end();
}
