// SPDX-License-Identifier: GPL-2.0
/*
 * The fold loops against the oracle, bit for bit, on every variant this CPU has.
 *
 * Groups, each a line of TAP per variant:
 *  - random data of each type: operators x numbers of inputs x counts around the
 *    widths of vectors and blocks x alignments x in place or not x streaming;
 *    bytes around the outputs must stay, inputs must not change
 *  - all pairs of special values
 *  - all 65536 values of fp16 and bf16
 *  - averages of integers near multiples of divisors, up to the largest
 *  - copies, which are sums of one input of bytes: any bits stay as they are
 *  - inputs and outputs that end or begin at unmapped pages
 *
 * Deterministic. An argument makes it smaller: `quick`, for sanitizers.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fold_isas.h"
#include "fold_oracle.h"
#include "../lib/tap.h"

#define MAX_BYTES	4736	/* of one input or output: past the loops' LEAD_WORTH */
#define GUARD		64
#define SLOT		(GUARD + 64 + MAX_BYTES + GUARD)

static const struct zc_fold_isa *isas[MAX_ISAS];
static unsigned int nisas;
static bool quick;

/* Failures since the last line of TAP, by variant */
static unsigned int failures[MAX_ISAS];

/* What is running, for messages */
static struct {
	const char *isa, *mode;
	int type, op;
	unsigned int n, divisor;
	uint64_t first, count;
} now;

static uint64_t random64(void)
{
	static uint64_t state = 0x853c49e6748fea9b;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * UINT64_C(0x2545f4914f6cdd1d);
}

static void report_lines(const char *what)
{
	unsigned int i;

	for (i = 0; i < nisas; i++) {
		ok(!failures[i], "%s: %s", isas[i]->name, what);
		failures[i] = 0;
	}
}

static void print_now(void)
{
	printf("# %s %s %s, %u inputs, divisor %u, elements %llu + %llu, %s", now.isa,
	       type_names[now.type], op_names[now.op], now.n, now.divisor,
	       (unsigned long long)now.first, (unsigned long long)now.count, now.mode);
}

static void on_fault(int sig)
{
	print_now();
	printf("\nBail out! signal %d\n", sig);
	fflush(stdout);
	_exit(1);
}

static void fail(unsigned int isa, const char *why)
{
	if (failures[isa]++ < 3) {
		print_now();
		printf(": %s\n", why);
	}
}

/* Compare one output's piece; name the first element that differs */
static void check_bytes(unsigned int isa, const uint8_t *got, const uint8_t *want, uint64_t bytes)
{
	unsigned int size = oracle_size(now.type);
	char why[96];
	uint64_t at, g = 0, w = 0;

	if (!memcmp(got, want, bytes))
		return;
	for (at = 0; !memcmp(got + at, want + at, size); at += size)
		;
	memcpy(&g, got + at, size);
	memcpy(&w, want + at, size);
	snprintf(why, sizeof(why), "element %llu is 0x%llx, want 0x%llx",
		 (unsigned long long)(at / size), (unsigned long long)g, (unsigned long long)w);
	fail(isa, why);
}

static void fold(unsigned int isa, void *const *dst, unsigned int ndst,
		 const void *const *src, bool stream)
{
	now.isa = isas[isa]->name;
	isas[isa]->fn[now.type][now.op](dst, src, ndst, now.n, now.divisor, now.first,
					now.count, stream);
}

/* -------- special and random values -------- */

static const uint16_t special16[2][18] = {
	{ /* fp16 */
		0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x3c00, 0xbc00, 0x3c01,
		0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0xfdff, 0x7fff,
	},
	{ /* bf16 */
		0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x3f80, 0xbf80, 0x3f81,
		0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 0xffbf, 0x7fff,
	},
};

static const uint32_t special32[18] = {
	0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000,
	0x3f800000, 0xbf800000, 0x3f800001, 0x7f7fffff, 0xff7fffff, 0x7f800000,
	0xff800000, 0x7fc00000, 0xffc00123, 0x7f800001, 0xffbfffff, 0x7fffffff,
};

static const uint64_t special64[18] = {
	0, 0x8000000000000000, 1, 0x8000000000000001, 0x000fffffffffffff,
	0x0010000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x3ff0000000000001,
	0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
	0x7ff8000000000000, 0xfff8000000000123, 0x7ff0000000000001, 0xfff7ffffffffffff,
	0x7fffffffffffffff,
};

/* Integers: near 0, near the ends of each signedness, and bit patterns */
static uint64_t special_integer(unsigned int i, unsigned int size)
{
	uint64_t top = UINT64_C(1) << (8 * size - 1);
	const uint64_t values[18] = {
		0, 1, 2, 3, 7, -1, -2, -3, -7, top, top + 1, top + 2, top - 1, top - 2,
		top / 2, top / 2 + top, UINT64_C(0x5555555555555555), UINT64_C(0xaaaaaaaaaaaaaaaa),
	};

	return values[i];
}

static void put_special(int type, void *p, unsigned int i)
{
	uint64_t x;

	if (type == ZCOLL_FP16 || type == ZCOLL_BF16) {
		memcpy(p, &special16[type - ZCOLL_FP16][i], 2);
	} else if (type == ZCOLL_FP32) {
		memcpy(p, &special32[i], 4);
	} else if (type == ZCOLL_FP64) {
		memcpy(p, &special64[i], 8);
	} else {
		x = special_integer(i, oracle_size(type));
		memcpy(p, &x, oracle_size(type));
	}
}

/* Mostly numbers that stay finite in sums and products of many, and all others */
static void put_random(int type, void *p)
{
	uint64_t r = random64();
	unsigned int size = oracle_size(type), kind = r >> 60;
	float f = (r & 0x800000 ? -1.0f : 1.0f) * (0.75f + (float)(r & 0x7fffff) / (1 << 24));
	double d = (r & 1 ? -1.0 : 1.0) * (0.75 + (double)(r << 4 >> 12) / 0x1p53);
	uint16_t h = oracle_encode16(f, type == ZCOLL_FP16 ? 10 : 7);

	if (kind == 0)
		put_special(type, p, (r >> 8) % 18);
	else if (kind == 1 || !oracle_is_float(type))
		memcpy(p, &r, size);
	else if (type == ZCOLL_FP64)
		memcpy(p, &d, size);
	else if (type == ZCOLL_FP32)
		memcpy(p, &f, size);
	else
		memcpy(p, &h, size);
}

/*
 * A column of random elements over all inputs. Special values are kept out of most
 * columns of many inputs: NaN and infinity would win everywhere.
 */
static void put_random_column(int type, uint8_t (*in)[MAX_BYTES], unsigned int n, uint64_t e)
{
	unsigned int size = oracle_size(type), i;
	bool tame = n > 4 && e % 4;
	struct value v;

	for (i = 0; i < n; i++) {
		do {
			put_random(type, &in[i][e * size]);
			v = oracle_load(type, &in[i][e * size]);
		} while (tame && (!isfinite(v.f) || !isfinite(v.d) || fabs(v.d) > 2 ||
				  fabsf(v.f) > 2));
	}
}

/* -------- random data -------- */

static uint8_t in[ZC_FOLD_MAX_SRC][MAX_BYTES];
static uint8_t want[MAX_BYTES];
static uint8_t src_arena[ZC_FOLD_MAX_SRC * SLOT], dst_arena[ZC_FOLD_MAX_SRC * SLOT];

/* Offset of rank @i's array in its slot: 0 all aligned, 1 whole elements, 2 any */
static unsigned int misalign(unsigned int align, unsigned int i, unsigned int size)
{
	switch (align) {
	case 0:
		return 0;
	case 1:
		return (3 + 5 * i) * size % 64;
	default:
		return (1 + 7 * i) % 64;
	}
}

static uint8_t *slot(uint8_t *arena, unsigned int align, unsigned int i)
{
	return arena + i * SLOT + GUARD + misalign(align, i, oracle_size(now.type));
}

static void lay_out_sources(unsigned int align, uint64_t bytes)
{
	unsigned int i;

	memset(src_arena, 0xa5, now.n * SLOT);
	for (i = 0; i < now.n; i++)
		memcpy(slot(src_arena, align, i), in[i], bytes);
}

static bool is_guard(const uint8_t *p, unsigned int bytes)
{
	while (bytes--)
		if (*p++ != 0xa5)
			return false;
	return true;
}

static void run_one(unsigned int isa, unsigned int align, unsigned int ndst, bool in_place,
		    bool stream)
{
	unsigned int size = oracle_size(now.type), i;
	uint64_t begin = now.first * size, bytes = now.count * size;
	static const void *src[ZC_FOLD_MAX_SRC];
	static void *dst[ZC_FOLD_MAX_SRC];

	for (i = 0; i < now.n; i++)
		src[i] = slot(src_arena, align, i);
	for (i = 0; i < ndst; i++) {
		dst[i] = in_place ? slot(src_arena, align, i) : slot(dst_arena, align, i);
		if (!in_place)
			memset((uint8_t *)dst[i] + begin - GUARD, 0xa5, bytes + 2 * GUARD);
	}
	fold(isa, dst, ndst, src, stream);
	for (i = 0; i < ndst; i++) {
		uint8_t *p = (uint8_t *)dst[i] + begin;

		check_bytes(isa, p, want + begin, bytes);
		if (!in_place && (!is_guard(p - GUARD, GUARD) || !is_guard(p + bytes, GUARD)))
			fail(isa, "bytes outside an output were written");
		if (in_place)
			memcpy(p, in[i] + begin, bytes);
	}
}

static void run_count(unsigned int isa, unsigned int align, unsigned int modes)
{
	static const char *const names[] = {
		"out of place", "streaming", "in place", "in place, streaming"
	};
	unsigned int mode;

	for (mode = 0; mode < 4; mode++) {
		if (!(modes >> mode & 1))
			continue;
		now.mode = names[mode];
		if (mode & 2)
			run_one(isa, align, now.n, true, mode & 1);
		else
			run_one(isa, align, 1 + now.count % 3, false, mode & 1);
	}
}

/* All inputs, and the bytes around them, are what they were laid out as */
static void check_sources(unsigned int isa, unsigned int align, uint64_t bytes)
{
	unsigned int i;

	for (i = 0; i < now.n; i++) {
		uint8_t *p = slot(src_arena, align, i);

		if (memcmp(p, in[i], bytes) || !is_guard(p - GUARD, GUARD) ||
		    !is_guard(p + bytes, GUARD)) {
			fail(isa, "an input, or bytes beside it, were written");
			lay_out_sources(align, bytes);
			return;
		}
	}
}

static void run_counts(unsigned int isa, unsigned int align, uint64_t elements)
{
	unsigned int width = 128 / oracle_size(now.type);	/* a block of the widest variant */
	uint64_t count;

	for (count = 0; count <= 2 * width + 1; count++) {
		bool edge = count <= 1 || (count + 1) % (width / 8 ? width / 8 : 1) <= 2;

		if ((now.n > 9 || quick) && !edge)
			continue;
		if (now.n > 64 && count > 1 && count % width > 1)
			continue;
		now.count = count;
		now.first = count % 3 * 3;
		run_count(isa, align, now.n <= 4 ? 0xf : 1 << (count + now.n) % 4);
	}
	now.first = 0;
	now.count = elements;
	run_count(isa, align, now.n <= 16 ? 0xf : 5);
	now.count = elements - width / 2 - 1;
	now.first = 1;
	run_count(isa, align, now.n <= 16 ? 0xa : 2);
}

static void test_random(int type)
{
	static const unsigned int inputs[] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 33, 64, 100, 1023, 1024,
		ZC_FOLD_MAX_SRC
	};
	unsigned int size = oracle_size(type), i, isa, align;
	uint64_t e, elements;
	const void *src[ZC_FOLD_MAX_SRC];

	now.type = type;
	for (i = 0; i < sizeof(inputs) / sizeof(*inputs); i++) {
		now.n = inputs[i];
		/* Of all ranks; or of more than are here, as where inputs are partial sums */
		now.divisor = i % 2 ? now.n : 1 + random64() % ZC_FOLD_MAX_DIVISOR;
		if (quick && now.n > 100)
			continue;
		elements = (now.n > 64 ? 640 : MAX_BYTES) / size;
		for (e = 0; e < elements; e++)
			put_random_column(type, in, now.n, e);
		for (e = 0; e < now.n; e++)
			src[e] = in[e];
		for (now.op = ZCOLL_SUM; now.op <= ZCOLL_AVG; now.op++) {
			for (e = 0; e < elements; e++)
				oracle_fold(type, now.op, want + e * size, src, now.n, now.divisor,
					    e);
			for (align = 0; align < 3; align++) {
				lay_out_sources(align, elements * size);
				for (isa = 0; isa < nisas; isa++) {
					run_counts(isa, align, elements);
					check_sources(isa, align, elements * size);
				}
			}
		}
	}
	report_lines(type_names[type]);
}

/* -------- given values: arrays of one element per combination -------- */

#define MANY 65536

static uint64_t given[3][MANY], given_want[MANY], given_got[MANY];
static const uint64_t zeros[MANY];

/* Fold @count elements of given[0 .. m-1] and zeros, n inputs, by all variants */
static void run_divided(int type, int op, unsigned int m, unsigned int n, unsigned int divisor,
			uint64_t count)
{
	unsigned int size = oracle_size(type), isa, i;
	const void *src[ZC_FOLD_MAX_SRC];
	void *dst[1] = { given_got };
	uint64_t e;

	now.type = type;
	now.op = op;
	now.n = n;
	now.divisor = divisor;
	now.first = 0;
	now.count = count;
	now.mode = "given values";
	for (i = 0; i < n; i++)
		src[i] = i < m ? given[i] : zeros;
	for (e = 0; e < count; e++)
		oracle_fold(type, op, (uint8_t *)given_want + e * size, src, n, divisor, e);
	for (isa = 0; isa < nisas; isa++) {
		memset(given_got, 0xa5, count * size);
		fold(isa, dst, 1, src, false);
		check_bytes(isa, (uint8_t *)given_got, (uint8_t *)given_want, count * size);
	}
}

static void run_given(int type, int op, unsigned int m, unsigned int n, uint64_t count)
{
	run_divided(type, op, m, n, n, count);
}

static void test_special_values(void)
{
	unsigned int i, j, size;
	int type, op;

	for (type = ZCOLL_INT8; type <= ZCOLL_FP64; type++) {
		size = oracle_size(type);
		for (i = 0; i < 18 * 18 * 18; i++) {
			unsigned int v[3] = { i % 18, i / 18 % 18, i / 18 / 18 };

			for (j = 0; j < 3; j++)
				put_special(type, (uint8_t *)given[j] + i * size, v[j]);
		}
		for (op = ZCOLL_SUM; op <= ZCOLL_AVG; op++) {
			run_given(type, op, 1, 1, 18);
			run_given(type, op, 2, 2, 18 * 18);
			run_given(type, op, 3, 3, 18 * 18 * 18);
			run_given(type, op, 3, 4, 18 * 18 * 18);
		}
	}
	report_lines("all pairs and triples of special values");
}

/* Every value alone, and with a second one that makes all kinds of roundings */
static void test_all_halves(int type)
{
	uint16_t *a = (uint16_t *)given[0], *b = (uint16_t *)given[1];
	unsigned int i, round, rounds = quick ? 2 : 8;

	for (i = 0; i < 65536; i++)
		a[i] = i;
	run_given(type, ZCOLL_SUM, 1, 1, 65536);
	run_given(type, ZCOLL_MIN, 1, 1, 65536);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < 65536; i++)
			b[i] = round % 2 ? random64() : special16[type - ZCOLL_FP16][6 + round / 2];
		run_given(type, ZCOLL_SUM, 2, 2, 65536);
		run_given(type, ZCOLL_PROD, 2, 2, 65536);
		run_given(type, ZCOLL_AVG, 2, 2, 65536);
		run_given(type, ZCOLL_MAX, 2, 2, 65536);
	}
	run_given(type, ZCOLL_AVG, 1, 3, 65536);
	run_given(type, ZCOLL_AVG, 1, 49, 65536);
	run_divided(type, ZCOLL_AVG, 1, 1, ZC_FOLD_MAX_DIVISOR - 1, 65536);
	run_divided(type, ZCOLL_AVG, 2, 2, ZC_FOLD_MAX_DIVISOR, 65536);
	report_lines(type == ZCOLL_FP16 ? "all values of fp16" : "all values of bf16");
}

/*
 * Numbers around the multiples of the divisor, where quotients step; some of the
 * quotients are large in their lower half, where 1/n times it is least exact
 */
static unsigned int put_near_multiples(int type, unsigned int n)
{
	unsigned int size = oracle_size(type), e = 0, k;

	for (k = 0; k < 18; k++)
		put_special(type, (uint8_t *)given[0] + e++ * size, k);
	for (k = 0; k < 60; k++) {
		uint64_t q = (random64() >> k % 60) / n, x, end;

		if (k >= 40)
			q |= UINT64_C(0xffffffff) >> (k % 5);
		x = q * n - 1;
		for (end = x + 3; x != end; x++)
			memcpy((uint8_t *)given[0] + e++ * size, &x, size);
	}
	return e;
}

static void run_divisor(unsigned int n)
{
	int type;

	for (type = ZCOLL_INT8; type <= ZCOLL_UINT64; type++)
		run_divided(type, ZCOLL_AVG, 1, 1, n, put_near_multiples(type, n));
}

static void test_large_divisors(void)
{
	unsigned int n, i;

	for (n = 1; n <= ZC_FOLD_MAX_DIVISOR; n += n > 1100 || quick ? 509 : 1)
		run_divisor(n);
	for (n = 1024; n <= ZC_FOLD_MAX_DIVISOR; n *= 2) {
		run_divisor(n - 1);
		run_divisor(n);
	}
	for (i = 0; i < 65536; i++)
		((uint16_t *)given[0])[i] = i;
	for (n = 17; n <= ZC_FOLD_MAX_DIVISOR; n += n / (quick ? 1 : 7)) {
		run_divided(ZCOLL_INT16, ZCOLL_AVG, 1, 1, n, 65536);
		run_divided(ZCOLL_UINT16, ZCOLL_AVG, 1, 1, n, 65536);
	}
	report_lines("integers divided by more than there are inputs");
}

/* Any bits, NaNs with payloads among them, arrive as they are; a divisor changes nothing */
static void test_copies(void)
{
	unsigned int i;

	for (i = 0; i < MANY; i++)
		given[0][i] = i % 3 ? random64() : 0x7ff0000000000000 | random64() >> 12;
	for (i = 0; i < 40; i++) {
		run_divided(ZCOLL_UINT8, ZCOLL_SUM, 1, 1, 1 + 977 * i, sizeof(given[0]) - i);
		/* All variants gave what the oracle did */
		check_bytes(nisas - 1, (uint8_t *)given_got, (uint8_t *)given[0], now.count);
	}
	report_lines("the sum of one input of bytes is a copy");
}

static void test_integer_averages(void)
{
	unsigned int n, i;
	int type;

	for (i = 0; i < 65536; i++)
		((uint16_t *)given[0])[i] = i;
	for (n = 1; n <= 16; n += quick ? 5 : 1) {
		run_given(ZCOLL_INT16, ZCOLL_AVG, 1, n, 65536);
		run_given(ZCOLL_UINT16, ZCOLL_AVG, 1, n, 65536);
	}
	for (i = 0; i < 256; i++)
		((uint8_t *)given[0])[i] = i;
	for (n = 1; n <= ZC_FOLD_MAX_SRC; n += quick ? 37 : n < 260 ? 1 : 109) {
		run_given(ZCOLL_INT8, ZCOLL_AVG, 1, n, 256);
		run_given(ZCOLL_UINT8, ZCOLL_AVG, 1, n, 256);
	}
	for (type = ZCOLL_INT16; type <= ZCOLL_UINT64; type++)
		for (n = 1; n <= ZC_FOLD_MAX_SRC; n += quick ? 61 : n < 130 ? 1 : 41)
			run_given(type, ZCOLL_AVG, 1, n, put_near_multiples(type, n));
	n = ZC_FOLD_MAX_SRC;
	run_given(ZCOLL_INT64, ZCOLL_AVG, 1, n, put_near_multiples(ZCOLL_INT64, n));
	report_lines("integer averages");
}

/* -------- unmapped neighbours -------- */

#define NEAR 9	/* inputs, and outputs */

/* One page of memory between two that fault */
static uint8_t *lonely_page(void)
{
	long page = sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + page, page, PROT_READ | PROT_WRITE)) {
		puts("Bail out! no memory");
		exit(1);
	}
	return p + page;
}

/* All variants on arrays that begin (or end) where their pages do */
static void run_at_edge(uint8_t *const *pages, bool at_end)
{
	uint64_t bytes = now.count * oracle_size(now.type);
	uint64_t at = at_end ? sysconf(_SC_PAGESIZE) - bytes : 0;
	const void *src[NEAR];
	void *dst[NEAR];
	unsigned int isa, i;

	for (i = 0; i < now.n; i++) {
		src[i] = pages[i] + at;
		dst[i] = pages[NEAR + i] + at;
	}
	for (isa = 0; isa < nisas; isa++)
		fold(isa, dst, now.n, src, at_end);
}

static void run_at_edges(uint8_t *const *pages)
{
	for (now.n = 1; now.n <= NEAR; now.n++) {
		for (now.count = 0; now.count < 300; now.count += 1 + now.count / 9) {
			run_at_edge(pages, false);
			run_at_edge(pages, true);
		}
	}
}

static void test_unmapped_neighbours(void)
{
	uint8_t *pages[2 * NEAR];
	unsigned int i;

	for (i = 0; i < 2 * NEAR; i++)
		pages[i] = lonely_page();
	now.mode = "at the edge of mapped memory";
	now.first = 0;
	for (now.type = ZCOLL_INT8; now.type <= ZCOLL_FP64; now.type++)
		for (now.op = ZCOLL_SUM; now.op <= ZCOLL_AVG; now.op++)
			run_at_edges(pages);
	report_lines("nothing beyond the inputs and outputs is touched");
}

int main(int argc, char **argv)
{
	int type;

	quick = argc > 1 && !strcmp(argv[1], "quick");
	signal(SIGSEGV, on_fault);
	signal(SIGBUS, on_fault);
	signal(SIGILL, on_fault);
	signal(SIGFPE, on_fault);
	nisas = fold_isas(isas);
	puts("TAP version 13");
	for (type = ZCOLL_INT8; type <= ZCOLL_FP64; type++)
		test_random(type);
	test_special_values();
	test_all_halves(ZCOLL_FP16);
	test_all_halves(ZCOLL_BF16);
	test_integer_averages();
	test_large_divisors();
	test_copies();
	test_unmapped_neighbours();
	return tap_end();
}
