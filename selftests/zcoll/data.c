// SPDX-License-Identifier: GPL-2.0
/*
 * Data through the device: every result bit for bit as reference.h says.
 *
 * There is a test for each element type with each operator. The other *factors*
 * of a case (ranks, count, alignments, in place or not, registered or not, way of
 * the call) are drawn so that, over all tests, every value of every factor meets
 * every value of every other one (a pairwise covering set, built the same way in
 * every run). All types with all operators and alignments, without the device,
 * are the loops' own tests.
 *
 * Around each buffer lie guard bytes, which must not change, nor may inputs that
 * are not outputs.
 */
#include "zcoll_test.h"
#include "ring.h"
#include "reference.h"
#include "kselftest_harness.h"

/* --- factors and the covering set ---------------------------------------- */

enum factor {
	DTYPE,
	OP,
	RANKS,
	COUNT,
	SEND_SHIFT,
	RECV_SHIFT,
	PLACE,
	SEND_REG,
	RECV_REG,
	WAY,
	FACTORS
};

enum { WAY_IOCTL, WAY_SQE128, WAY_SQE64 };

static const unsigned int ranks_of[] = { 1, 2, 3, 5, 8 };
/* none, one, few, more than a page, more than is done inline */
static const unsigned int count_of[] = { 0, 1, 37, 4096 + 5, 100003 };
/* bytes from an aligned address; the ranks differ in all but the first */
static const unsigned int shift_of[] = { 0, 1, 6, 61 };

static const unsigned int values[FACTORS] = {
	[DTYPE] = ZCOLL_NR_TYPES - 1,
	[OP] = ZCOLL_NR_OPS - 1,
	[RANKS] = ARRAY_SIZE(ranks_of),
	[COUNT] = ARRAY_SIZE(count_of),
	[SEND_SHIFT] = ARRAY_SIZE(shift_of),
	[RECV_SHIFT] = ARRAY_SIZE(shift_of),
	[PLACE] = 2,
	[SEND_REG] = 2,
	[RECV_REG] = 2,
	[WAY] = 3,
};

#define MAX_VALUES	16
#define MAX_CASES	150

struct set {
	unsigned int n;
	uint8_t row[MAX_CASES][FACTORS];
	bool covered[FACTORS][MAX_VALUES][FACTORS][MAX_VALUES];
};

#define UNSET	0xff

/* Pairs that row @row would newly cover if its factor @f had value @v */
static unsigned int gain(struct set *s, const uint8_t *row, int f, uint8_t v)
{
	unsigned int n = 0;

	for (int g = 0; g < FACTORS; g++) {
		if (g != f && row[g] != UNSET)
			n += !s->covered[f][v][g][row[g]];
	}
	return n;
}

/* Completes @row, factor by factor, with what covers most, and adds it */
static void add_row(struct set *s, uint8_t *row)
{
	for (int f = 0; f < FACTORS; f++) {
		unsigned int start = (s->n + f) % values[f], best = start;

		if (row[f] != UNSET)
			continue;
		for (unsigned int i = 1; i < values[f]; i++) {
			unsigned int v = (start + i) % values[f];

			if (gain(s, row, f, v) > gain(s, row, f, best))
				best = v;
		}
		row[f] = best;
	}
	for (int f = 0; f < FACTORS; f++) {
		for (int g = 0; g < FACTORS; g++)
			s->covered[f][row[f]][g][row[g]] = true;
	}
	memcpy(s->row[s->n++], row, FACTORS);
}

/* A pair that no row has yet goes into @row */
static bool find_open_pair(struct set *s, uint8_t *row)
{
	memset(row, UNSET, FACTORS);
	for (int f = 0; f < FACTORS; f++) {
		for (unsigned int v = 0; v < values[f]; v++) {
			for (int g = f + 1; g < FACTORS; g++) {
				for (unsigned int w = 0; w < values[g]; w++) {
					if (s->covered[f][v][g][w])
						continue;
					row[f] = v;
					row[g] = w;
					return true;
				}
			}
		}
	}
	return false;
}

static void make_set(struct set *s)
{
	uint8_t row[FACTORS];

	memset(s, 0, sizeof(*s));
	for (unsigned int t = 0; t < values[DTYPE]; t++) {
		for (unsigned int o = 0; o < values[OP]; o++) {
			memset(row, UNSET, sizeof(row));
			row[DTYPE] = t;
			row[OP] = o;
			add_row(s, row);
		}
	}
	while (s->n < MAX_CASES && find_open_pair(s, row))
		add_row(s, row);
}

/* --- buffers ------------------------------------------------------------- */

#define GUARD		64
#define GUARD_BYTE	0xa5

/* @len bytes at @p, @shift behind an aligned address, between guards */
struct area {
	uint8_t *base, *p;
	size_t len, room;
};

static void area_init(struct area *a, size_t len, unsigned int shift)
{
	a->len = len;
	a->room = GUARD + shift + len + GUARD;
	a->base = aligned_alloc(4096, (a->room + 4095) & ~4095UL);
	a->p = a->base + GUARD + shift;
	memset(a->base, GUARD_BYTE, a->room);
}

static bool guards_are_whole(const struct area *a)
{
	for (const uint8_t *q = a->base; q < a->base + a->room; q++) {
		if (q == a->p)
			q += a->len;
		if (q < a->base + a->room && *q != GUARD_BYTE)
			return false;
	}
	return true;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* An input: small numbers, any bits, and the values that are special */
static uint64_t input_bits(int dtype, unsigned int rank, uint64_t i)
{
	static const uint64_t special64[] = {
		0, 1ULL << 63, 0x7ff0000000000000, 0xfff0000000000000,
		0x7ff4000000000001, 0xfff8000000000123, 1, 0x7fefffffffffffff,
	};
	static const uint32_t special32[] = {
		0, 1U << 31, 0x7f800000, 0xff800000,
		0x7fa00001, 0xffc00123, 1, 0x7f7fffff,
	};
	static const uint16_t special_fp16[] = {
		0, 0x8000, 0x7c00, 0xfc00, 0x7d01, 0xfe12, 1, 0x7bff,
	};
	static const uint16_t special_bf16[] = {
		0, 0x8000, 0x7f80, 0xff80, 0x7fa1, 0xffc2, 1, 0x7f7f,
	};
	uint64_t h = mix(i * 1024 + rank + 0x9e3779b97f4a7c15ULL);
	unsigned int kind = h >> 60;
	int small = (int)(h >> 32 & 0xff) - 128;

	if (!ref_is_float(dtype) || kind < 4)
		return h;
	if (kind == 4) {
		switch (dtype) {
		case ZCOLL_FP64:	return special64[h & 7];
		case ZCOLL_FP32:	return special32[h & 7];
		case ZCOLL_FP16:	return special_fp16[h & 7];
		default:		return special_bf16[h & 7];
		}
	}
	switch (dtype) {
	case ZCOLL_FP64:	return ref_bits64(small / 7.0);
	case ZCOLL_FP32:	return ref_bits32(small / 7.0f);
	case ZCOLL_FP16:	return ref_to_fp16(small / 7.0f);
	default:		return ref_to_bf16(small / 7.0f);
	}
}

/* An operation that takes longer hangs, and says so before the harness ends it */
#define HANG_NS		(20000 * NS_PER_MS)

/* --- one case ------------------------------------------------------------ */

FIXTURE(data) {
	struct zt zt;
	struct set set;
};

FIXTURE_VARIANT(data) {
	int dtype;
};

FIXTURE_VARIANT_ADD(data, int8) { ZCOLL_INT8 };
FIXTURE_VARIANT_ADD(data, uint8) { ZCOLL_UINT8 };
FIXTURE_VARIANT_ADD(data, int16) { ZCOLL_INT16 };
FIXTURE_VARIANT_ADD(data, uint16) { ZCOLL_UINT16 };
FIXTURE_VARIANT_ADD(data, int32) { ZCOLL_INT32 };
FIXTURE_VARIANT_ADD(data, uint32) { ZCOLL_UINT32 };
FIXTURE_VARIANT_ADD(data, int64) { ZCOLL_INT64 };
FIXTURE_VARIANT_ADD(data, uint64) { ZCOLL_UINT64 };
FIXTURE_VARIANT_ADD(data, fp16) { ZCOLL_FP16 };
FIXTURE_VARIANT_ADD(data, bf16) { ZCOLL_BF16 };
FIXTURE_VARIANT_ADD(data, fp32) { ZCOLL_FP32 };
FIXTURE_VARIANT_ADD(data, fp64) { ZCOLL_FP64 };

FIXTURE_SETUP(data)
{
	ZT_SETUP(self);
	make_set(&self->set);
}

FIXTURE_TEARDOWN(data)
{
	ZT_TEARDOWN(self);
}

/* A case, with the memory of its ranks */
struct trial {
	int dtype, op;
	unsigned int size, ranks, count;
	bool in_place;
	int ep[8];
	struct area send[8], recv[8];
	struct zcoll_cmd cmd[8];
};

static unsigned int shift_of_rank(unsigned int shift, unsigned int rank)
{
	return shift ? (shift + 5 * rank) % 64 : 0;
}

static int prepare(struct zt *zt, struct trial *t, const uint8_t *row)
{
	size_t len;
	int ret;

	t->dtype = row[DTYPE] + 1;
	t->op = row[OP] + 1;
	t->size = ref_size(t->dtype);
	t->ranks = ranks_of[row[RANKS]];
	t->count = count_of[row[COUNT]];
	t->in_place = row[PLACE];
	len = (size_t)t->count * t->size;
	ret = zt_comm(zt, t->ranks, t->ep);
	for (unsigned int r = 0; r < t->ranks && !ret; r++) {
		struct area *in = &t->send[r], *out = &t->recv[r];
		struct zcoll_cmd *cmd = &t->cmd[r];

		area_init(in, len, shift_of_rank(shift_of[row[SEND_SHIFT]], r));
		if (t->in_place)
			*out = *in;
		else
			area_init(out, len, shift_of_rank(shift_of[row[RECV_SHIFT]], r));
		for (unsigned int i = 0; i < t->count; i++)
			ref_store(in->p + (size_t)i * t->size, t->size,
				  input_bits(t->dtype, r, i));
		*cmd = zt_cmd(0, t->dtype, t->op, in->p, out->p, t->count);
		cmd->deadline_ns = HANG_NS;
		if (row[SEND_REG]) {
			ret = zt_register(t->ep[r], in->base, in->room, &cmd->send_buf);
			cmd->send = in->p - in->base;
		}
		if (t->in_place) {
			cmd->recv = cmd->send;
			cmd->recv_buf = cmd->send_buf;
		} else if (row[RECV_REG] && !ret) {
			ret = zt_register(t->ep[r], out->base, out->room, &cmd->recv_buf);
			cmd->recv = out->p - out->base;
		}
	}
	return ret;
}

static int call(struct trial *t, int way)
{
	struct io_uring ring;
	int ret;

	if (way == WAY_IOCTL)
		return zt_all(t->ep, t->cmd, t->ranks);
	ret = ring_init(&ring, 8, way == WAY_SQE128 ? IORING_SETUP_SQE128 : 0);
	if (ret)
		return ret;
	for (unsigned int r = 0; r < t->ranks; r++)
		ring_op(&ring, t->ep[r], &t->cmd[r], r);
	ret = io_uring_submit(&ring) == (int)t->ranks ? 0 : -EIO;
	for (unsigned int r = 0; r < t->ranks && !ret; r++)
		ret = ring_next(&ring, ZT_LONG_MS, NULL);
	io_uring_queue_exit(&ring);
	return ret;
}

/* "" or what is wrong with the results */
static const char *flaw(struct trial *t)
{
	static char text[128];
	uint64_t x[8], want, got;

	for (unsigned int i = 0; i < t->count; i++) {
		size_t at = (size_t)i * t->size;

		for (unsigned int r = 0; r < t->ranks; r++)
			x[r] = input_bits(t->dtype, r, i);
		want = 0;
		ref_store(&want, t->size, ref_reduce(t->dtype, t->op, x, t->ranks));
		for (unsigned int r = 0; r < t->ranks; r++) {
			got = ref_load(t->recv[r].p + at, t->size);
			if (got != want) {
				snprintf(text, sizeof(text),
					 "rank %u element %u: %llx, not %llx", r, i,
					 (unsigned long long)got, (unsigned long long)want);
				return text;
			}
			got = 0;
			ref_store(&got, t->size, x[r]);
			if (!t->in_place && ref_load(t->send[r].p + at, t->size) != got)
				return "an input has changed";
		}
	}
	for (unsigned int r = 0; r < t->ranks; r++) {
		if (!guards_are_whole(&t->send[r]) || !guards_are_whole(&t->recv[r]))
			return "bytes beside a buffer have changed";
	}
	return "";
}

static void clean(struct zt *zt, struct trial *t)
{
	for (unsigned int r = 0; r < t->ranks; r++) {
		zt_close_ep(zt, t->ep[r]);
		free(t->send[r].base);
		if (!t->in_place)
			free(t->recv[r].base);
	}
}

static void describe(const uint8_t *row, char *text, size_t len)
{
	static const char * const way[] = { "ioctl", "sqe128", "sqe64" };

	snprintf(text, len, "%u ranks, %u elements, shifts %u and %u%s%s%s, by %s",
		 ranks_of[row[RANKS]], count_of[row[COUNT]],
		 shift_of[row[SEND_SHIFT]], shift_of[row[RECV_SHIFT]],
		 row[PLACE] ? ", in place" : "",
		 row[SEND_REG] ? ", input registered" : "",
		 row[RECV_REG] ? ", output registered" : "", way[row[WAY]]);
}

/* All cases of the set with this type and operator */
#define RUN_CASES(which) do {							\
	for (unsigned int __c = 0; __c < self->set.n; __c++) {			\
		const uint8_t *__row = self->set.row[__c];			\
		struct trial __t = {};						\
		char __text[160];						\
										\
		if (__row[DTYPE] + 1 != variant->dtype || __row[OP] + 1 != (which)) \
			continue;						\
		describe(__row, __text, sizeof(__text));			\
		ASSERT_EQ(0, prepare(&self->zt, &__t, __row)) TH_LOG("%s", __text); \
		ASSERT_EQ(0, call(&__t, __row[WAY])) TH_LOG("%s", __text);	\
		EXPECT_STREQ("", flaw(&__t)) TH_LOG("%s", __text);		\
		clean(&self->zt, &__t);						\
	}									\
} while (0)

TEST_F(data, sum)
{
	RUN_CASES(ZCOLL_SUM);
}

TEST_F(data, prod)
{
	RUN_CASES(ZCOLL_PROD);
}

TEST_F(data, min)
{
	RUN_CASES(ZCOLL_MIN);
}

TEST_F(data, max)
{
	RUN_CASES(ZCOLL_MAX);
}

TEST_F(data, avg)
{
	RUN_CASES(ZCOLL_AVG);
}

/* --- the set itself, and counts beyond 32 bits --------------------------- */

FIXTURE(extent) {
	struct zt zt;
};

FIXTURE_SETUP(extent)
{
	ZT_SETUP(self);
}

FIXTURE_TEARDOWN(extent)
{
	ZT_TEARDOWN(self);
}

TEST_F(extent, cases_cover_all_pairs)
{
	static struct set set;
	uint8_t row[FACTORS];

	make_set(&set);
	EXPECT_GT(MAX_CASES, set.n);
	EXPECT_FALSE(find_open_pair(&set, row));
}

#define PIECE	(8UL << 20)
#define BEYOND	((1ULL << 31) + 4096 + 3)	/* elements of one byte */

/* A range of more than 2 GiB that is a few MiB of memory, again and again */
static uint8_t *wide_range(int *fd)
{
	uint8_t *p = mmap(NULL, BEYOND + PIECE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*fd = memfd_create("piece", MFD_CLOEXEC);
	if (p == MAP_FAILED || *fd < 0 || ftruncate(*fd, PIECE))
		return NULL;
	for (size_t at = 0; at < BEYOND; at += PIECE) {
		if (mmap(p + at, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 *fd, 0) == MAP_FAILED)
			return NULL;
	}
	return p;
}

/*
 * The maximum does not mind that an output is an input again, many times over.
 * The last elements are beyond 2^31, in a piece of the range that nothing else
 * reaches.
 */
TEST_F_TIMEOUT(extent, count_beyond_two_to_the_31, 120)
{
	struct zcoll_cmd cmd[2];
	uint8_t *range[2], *tail[2];
	size_t last = BEYOND & ~(PIECE - 1);
	int ep[2], fd;

	/* the kernel maps no more pages than there are, even the same ones */
	if (sysconf(_SC_PHYS_PAGES) < (long)(BEYOND / 4096 + 1))
		SKIP(return, "needs a machine with more than 2 GiB of memory");
	for (int r = 0; r < 2; r++) {
		range[r] = wide_range(&fd);
		ASSERT_NE(NULL, range[r]);
		tail[r] = mmap(range[r] + last, PIECE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		ASSERT_NE(MAP_FAILED, tail[r]);
		memset(range[r], 10 + r, PIECE);
		memset(tail[r], 20 + r, PIECE);
		cmd[r] = zt_cmd(0, ZCOLL_UINT8, ZCOLL_MAX, range[r], range[r], BEYOND);
		cmd[r].deadline_ns = 5 * HANG_NS;
	}
	tail[0][BEYOND - last - 1] = 99;
	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_all(ep, cmd, 2));
	for (int r = 0; r < 2; r++) {
		EXPECT_EQ(11, range[r][0]);
		EXPECT_EQ(11, range[r][PIECE - 1]);
		EXPECT_EQ(21, tail[r][0]);
		EXPECT_EQ(99, tail[r][BEYOND - last - 1]);
		EXPECT_EQ(20 + r, tail[r][BEYOND - last]);
	}
}

/* Out of range in sight of a registered buffer, with numbers beyond 32 bits */
TEST_F(extent, count_beyond_two_to_the_32_is_checked)
{
	static int8_t buf[4096];
	struct zcoll_cmd cmd;
	uint32_t handle;
	int ep;

	ASSERT_EQ(0, zt_comm(&self->zt, 1, &ep));
	ASSERT_EQ(0, zt_register(ep, buf, sizeof(buf), &handle));
	cmd = zt_cmd(0, ZCOLL_INT8, ZCOLL_SUM, NULL, NULL, (1ULL << 32) + 1);
	cmd.send_buf = handle;
	cmd.recv_buf = handle;
	EXPECT_EQ(-ERANGE, zt_allreduce(ep, &cmd));
	cmd.count = 1;
	EXPECT_EQ(0, zt_allreduce(ep, &cmd));
}

ZT_MAIN
