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

static uint64_t element(int dtype, unsigned int rank, unsigned int index)
{
	uint64_t x = mix(rank, index);

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

static void store(char *block, unsigned int index, uint64_t bits, size_t size)
{
	uint8_t b = (uint8_t)bits;
	uint16_t h = (uint16_t)bits;
	uint32_t w = (uint32_t)bits;
	const void *from = size == 1 ? (void *)&b : size == 2 ? (void *)&h :
			   size == 4 ? (void *)&w : (void *)&bits;

	memcpy(block + index * size, from, size);
}

int pattern_init(struct pattern *p, int dtype, int op, unsigned int rank, unsigned int nranks)
{
	uint64_t *bits = malloc(nranks * sizeof(*bits));
	unsigned int i, r;

	p->size = zcoll_dtype_size(dtype);
	p->input = malloc(PATTERN_PERIOD * p->size);
	p->result = malloc(PATTERN_PERIOD * p->size);
	if (!bits || !p->input || !p->result) {
		free(bits);
		pattern_free(p);
		return -ENOMEM;
	}
	for (i = 0; i < PATTERN_PERIOD; i++) {
		for (r = 0; r < nranks; r++)
			bits[r] = element(dtype, r, i);
		store(p->input, i, bits[rank], p->size);
		store(p->result, i, reference_reduce(dtype, op, bits, nranks), p->size);
	}
	free(bits);
	return 0;
}

void pattern_free(struct pattern *p)
{
	free(p->input);
	free(p->result);
	p->input = NULL;
	p->result = NULL;
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

uint64_t pattern_wrong_result(const struct pattern *p, const void *data, uint64_t count,
			      uint64_t shift)
{
	return wrong(p->result, p->size, data, count, shift);
}
