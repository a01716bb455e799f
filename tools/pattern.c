// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Test data and expected results; see pattern.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll.h>

#include "pattern.h"
#include "reference.h"

/* A well mixed number for each rank and index (the finalizer of MurmurHash3) */
static uint64_t mix(unsigned int rank, unsigned int index)
{
	uint64_t x = ((uint64_t)rank << 32 | index) + 0x9e3779b97f4a7c15;

	x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
	return x ^ x >> 33;
}

/*
 * A float of @bits bits with @mantissa bits of mantissa: random sign and mantissa,
 * and one of eight exponents around that of 1.
 */
static uint64_t random_float(uint64_t x, unsigned int bits, unsigned int mantissa)
{
	uint64_t bias = (1ULL << (bits - mantissa - 2)) - 1;
	uint64_t exponent = bias - 4 + (x >> 60 & 7);

	return (x >> 63) << (bits - 1) | exponent << mantissa | (x & ((1ULL << mantissa) - 1));
}

static uint64_t random_element(int dtype, uint64_t x)
{
	switch (dtype) {
	case ZCOLL_FP16:
		return random_float(x, 16, 10);
	case ZCOLL_BF16:
		return random_float(x, 16, 7);
	case ZCOLL_FP32:
		return random_float(x, 32, 23);
	case ZCOLL_FP64:
		return random_float(x, 64, 52);
	default:
		return x >> (64 - 8 * zcoll_dtype_size(dtype));
	}
}

/* The bits of a number that every float type has exactly */
static uint64_t float_element(int dtype, float value)
{
	double wide = value;
	uint64_t bits64;
	uint32_t bits;

	if (dtype == ZCOLL_FP64) {
		memcpy(&bits64, &wide, sizeof(bits64));
		return bits64;
	}
	if (dtype == ZCOLL_FP16)
		return reference_half(value);
	memcpy(&bits, &value, sizeof(bits));
	return dtype == ZCOLL_BF16 ? bits >> 16 : bits;
}

/*
 * Sums of at most EXACT_TERMS numbers from -8 to 7 are at most 256, which 8 bits of
 * mantissa hold; products of EXACT_FACTORS powers of two stay in the range of fp16. All
 * other ranks have what changes nothing.
 */
#define EXACT_TERMS	32
#define EXACT_FACTORS	8

static float exact_value(const struct pattern *p, unsigned int rank, unsigned int index)
{
	bool product = p->op == ZCOLL_PROD;
	unsigned int most = product ? EXACT_FACTORS : EXACT_TERMS;
	uint64_t x = mix(rank, index);

	if ((rank + index) % ((p->nranks + most - 1) / most))
		return product ? 1 : 0;
	if (product)
		return (x & 1 ? -1.0f : 1.0f) * (x & 2 ? 0.5f : 2.0f);
	return (float)(x % 16) - 8;
}

static uint64_t element(const struct pattern *p, unsigned int rank, unsigned int index)
{
	bool rounds = p->op == ZCOLL_SUM || p->op == ZCOLL_PROD || p->op == ZCOLL_AVG;

	if (p->exact && rounds && p->dtype >= ZCOLL_FP16)
		return float_element(p->dtype, exact_value(p, rank, index));
	return random_element(p->dtype, mix(rank, index));
}

static void store(char *block, unsigned int index, uint64_t bits, size_t size)
{
	uint8_t b = (uint8_t)bits;
	uint16_t h = (uint16_t)bits;
	uint32_t w = (uint32_t)bits;
	const void *from = size == 1 ? (void *)&b : size == 2 ? (void *)&h :
			   size == 4 ? (void *)&w : (void *)&bits;

	memcpy(block + index * size, from, size);
}

static void fill_period(const struct pattern *p, unsigned int rank, char *block)
{
	unsigned int i;

	for (i = 0; i < PATTERN_PERIOD; i++)
		store(block, i, element(p, rank, i), p->size);
}

static void reduce_period(const struct pattern *p, uint64_t *bits)
{
	unsigned int i, r;

	for (i = 0; i < PATTERN_PERIOD; i++) {
		for (r = 0; r < p->nranks; r++)
			bits[r] = element(p, r, i);
		store(p->result, i, reference_reduce(p->dtype, p->op, bits, p->nranks), p->size);
	}
}

int pattern_init(struct pattern *p, int dtype, int op, unsigned int rank, unsigned int nranks,
		 bool exact)
{
	uint64_t *bits = malloc(nranks * sizeof(*bits));

	*p = (struct pattern){ .size = zcoll_dtype_size(dtype), .dtype = dtype, .op = op,
			       .exact = exact, .nranks = nranks, .other_rank = rank };
	p->input = malloc(PATTERN_PERIOD * p->size);
	p->result = malloc(PATTERN_PERIOD * p->size);
	p->other = malloc(PATTERN_PERIOD * p->size);
	if (!bits || !p->input || !p->result || !p->other) {
		free(bits);
		pattern_free(p);
		return -ENOMEM;
	}
	fill_period(p, rank, p->input);
	fill_period(p, rank, p->other);
	if (op)
		reduce_period(p, bits);
	free(bits);
	return 0;
}

void pattern_free(struct pattern *p)
{
	free(p->input);
	free(p->result);
	free(p->other);
	p->input = NULL;
	p->result = NULL;
	p->other = NULL;
}

void pattern_fill(const struct pattern *p, void *to, size_t len, uint64_t shift)
{
	size_t at = shift % PATTERN_PERIOD * p->size, part;

	while (len) {
		part = PATTERN_PERIOD * p->size - at;
		part = part < len ? part : len;
		to = mempcpy(to, p->input + at, part);
		len -= part;
		at = 0;
	}
}

static uint64_t wrong(const char *block, size_t size, const char *data, uint64_t count,
		      uint64_t shift)
{
	uint64_t at = shift % PATTERN_PERIOD, bad = 0, part, i;

	for (; count; count -= part, data += part * size, at = 0) {
		part = PATTERN_PERIOD - at;
		part = part < count ? part : count;
		if (!memcmp(data, block + at * size, part * size))
			continue;
		for (i = 0; i < part; i++)
			bad += !!memcmp(data + i * size, block + (at + i) * size, size);
	}
	return bad;
}

uint64_t pattern_wrong_input(const struct pattern *p, const void *data, uint64_t count,
			     uint64_t shift)
{
	return wrong(p->input, p->size, data, count, shift);
}

uint64_t pattern_wrong_other(struct pattern *p, unsigned int rank, const void *data,
			     uint64_t count, uint64_t shift)
{
	if (p->other_rank != rank)
		fill_period(p, rank, p->other);
	p->other_rank = rank;
	return wrong(p->other, p->size, data, count, shift);
}

uint64_t pattern_wrong_result(const struct pattern *p, const void *data, uint64_t count,
			      uint64_t shift)
{
	return wrong(p->result, p->size, data, count, shift);
}
