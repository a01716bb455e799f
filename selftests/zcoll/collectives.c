// SPDX-License-Identifier: GPL-2.0
/*
 * Data of all collectives but all-reduce (data.c) on one node: every result bit for bit,
 * for each element type, out of place and in place, for odd counts, every root, and from
 * ioctls and rings.
 *
 * A *round* is one call of one collective on all ranks. Each rank has an area with its input
 * and one with its output; in place, the smaller one is where the ABI says in the larger.
 * What no rank should have written is looked at, too.
 */
#include "zcoll_test.h"
#include "ring.h"
#include "reference.h"
#include "kselftest_harness.h"

#define MAX_RANKS	5
#define GUARD		64
#define GUARD_BYTE	0xa5
#define HANG_NS		(20000 * NS_PER_MS)

static const unsigned int ranks_of[] = { 1, 2, 3, 5 };
/* one, an odd few, more than a page, more than is done inline */
static const unsigned int count_of[] = { 0, 1, 37, 4096 + 5, 30011 };

struct round {
	unsigned int collective, ranks, count, root, size;
	int dtype, op;
	bool in_place, ring;
	size_t send_len[MAX_RANKS], recv_len[MAX_RANKS];
	uint8_t *send_room[MAX_RANKS], *recv_room[MAX_RANKS];
	uint8_t *send[MAX_RANKS], *recv[MAX_RANKS];
	struct zcoll_cmd cmd[MAX_RANKS];
};

/* Element @i of a rank's input: small numbers, exact in every type */
static uint64_t input_bits(int dtype, unsigned int rank, uint64_t i)
{
	unsigned int small = (i * 7 + rank * 3) % 5 + 1;

	switch (dtype) {
	case ZCOLL_FP64:	return ref_bits64(small / 3.0);
	case ZCOLL_FP32:	return ref_bits32(small / 3.0f);
	case ZCOLL_FP16:	return ref_to_fp16(small / 3.0f);
	case ZCOLL_BF16:	return ref_to_bf16(small / 3.0f);
	default:		return small;
	}
}

/* Blocks of @count elements that a rank has as input, as output */
static unsigned int blocks_in(const struct round *c, unsigned int rank)
{
	switch (c->collective) {
	case ZCOLL_REDUCE_SCATTER:	return c->ranks;
	case ZCOLL_BROADCAST:		return rank == c->root;
	default:			return 1;
	}
}

static unsigned int blocks_out(const struct round *c, unsigned int rank)
{
	switch (c->collective) {
	case ZCOLL_ALLGATHER:		return c->ranks;
	case ZCOLL_REDUCE:		return rank == c->root;
	default:			return 1;
	}
}

/* The bits that element @i of a rank's output must have */
static uint64_t expected(const struct round *c, unsigned int rank, uint64_t i)
{
	uint64_t x[MAX_RANKS], want = 0;

	if (c->collective == ZCOLL_ALLGATHER) {
		want = input_bits(c->dtype, i / c->count, i % c->count);
	} else if (c->collective == ZCOLL_BROADCAST) {
		want = input_bits(c->dtype, c->root, i);
	} else {
		if (c->collective == ZCOLL_REDUCE_SCATTER)
			i += (uint64_t)rank * c->count;
		for (unsigned int r = 0; r < c->ranks; r++)
			x[r] = input_bits(c->dtype, r, i);
		want = ref_reduce(c->dtype, c->op, x, c->ranks);
	}
	if (c->size < 8)
		want &= (1ULL << 8 * c->size) - 1;
	return want;
}

static uint8_t *guarded(size_t len, unsigned int shift, uint8_t **p)
{
	uint8_t *room = malloc(2 * GUARD + shift + len);

	memset(room, GUARD_BYTE, 2 * GUARD + shift + len);
	*p = room + GUARD + shift;
	return room;
}

static bool guarded_is_whole(const uint8_t *room, const uint8_t *p, size_t len)
{
	for (const uint8_t *q = room; q < p; q++)
		if (*q != GUARD_BYTE)
			return false;
	for (int i = 0; i < GUARD; i++)
		if (p[len + i] != GUARD_BYTE)
			return false;
	return true;
}

/* The memory of one rank: both areas, or one in the other */
static void prepare_rank(struct round *c, unsigned int r)
{
	size_t block = (size_t)c->count * c->size;
	unsigned int shift = r * 13 % 7;

	c->send_len[r] = blocks_in(c, r) * block;
	c->recv_len[r] = blocks_out(c, r) * block;
	if (!c->in_place || !c->send_len[r] || !c->recv_len[r]) {
		c->send_room[r] = guarded(c->send_len[r], shift, &c->send[r]);
		c->recv_room[r] = guarded(c->recv_len[r], 2 * shift, &c->recv[r]);
	} else if (c->send_len[r] < c->recv_len[r]) {
		c->recv_room[r] = guarded(c->recv_len[r], shift, &c->recv[r]);
		c->send[r] = c->recv[r] + r * block;
	} else {
		c->send_room[r] = guarded(c->send_len[r], shift, &c->send[r]);
		c->recv[r] = c->send[r] + (c->send_len[r] > c->recv_len[r] ? r * block : 0);
	}
	for (size_t i = 0; i < c->send_len[r] / c->size; i++)
		ref_store(c->send[r] + i * c->size, c->size, input_bits(c->dtype, r, i));
	c->cmd[r] = zt_cmd(0, c->dtype, c->op, c->send[r], c->recv[r], c->count);
	c->cmd[r].root = c->root;
	c->cmd[r].deadline_ns = HANG_NS;
}

static int call(struct round *c, const int *ep)
{
	struct io_uring ring;
	int ret;

	if (!c->ring)
		return zt_all_of(ep, c->collective, c->cmd, c->ranks);
	ret = ring_init(&ring, 8, IORING_SETUP_SQE128);
	if (ret)
		return ret;
	for (unsigned int r = 0; r < c->ranks; r++)
		ring_op_of(&ring, ep[r], c->collective, &c->cmd[r], r);
	ret = io_uring_submit(&ring) == (int)c->ranks ? 0 : -EIO;
	for (unsigned int r = 0; r < c->ranks && !ret; r++)
		ret = ring_next(&ring, ZT_LONG_MS, NULL);
	io_uring_queue_exit(&ring);
	return ret;
}

/* Is element @i of a rank's input still what it was? Not if it is an output, too. */
static bool input_changed(const struct round *c, unsigned int r, size_t i)
{
	const uint8_t *p = c->send[r] + i * c->size;
	uint64_t want = 0;

	if (p >= c->recv[r] && p < c->recv[r] + c->recv_len[r])
		return false;
	ref_store(&want, c->size, input_bits(c->dtype, r, i));
	return ref_load(p, c->size) != want;
}

/* "" or what is wrong with a rank's memory */
static const char *flaw(const struct round *c, unsigned int r)
{
	static char text[96];

	for (size_t i = 0; i < c->recv_len[r] / c->size; i++) {
		uint64_t got = ref_load(c->recv[r] + i * c->size, c->size);
		uint64_t want = expected(c, r, i);

		if (got == want)
			continue;
		snprintf(text, sizeof(text), "rank %u element %zu: %llx, not %llx", r, i,
			 (unsigned long long)got, (unsigned long long)want);
		return text;
	}
	for (size_t i = 0; i < c->send_len[r] / c->size; i++)
		if (input_changed(c, r, i))
			return "an input has changed";
	if (c->send_room[r] && !guarded_is_whole(c->send_room[r], c->send[r], c->send_len[r]))
		return "bytes beside an input have changed";
	if (c->recv_room[r] && !guarded_is_whole(c->recv_room[r], c->recv[r], c->recv_len[r]))
		return "bytes beside an output have changed";
	return "";
}

/* One round on a communicator of its own: "" or what is wrong */
static const char *round_flaw(struct zt *zt, struct round *c)
{
	static char text[96];
	const char *what = "";
	int ep[MAX_RANKS], ret;

	c->size = ref_size(c->dtype);
	for (unsigned int r = 0; r < c->ranks; r++)
		prepare_rank(c, r);
	ret = zt_comm(zt, c->ranks, ep);
	if (!ret)
		ret = call(c, ep);
	if (ret) {
		snprintf(text, sizeof(text), "the call gives %d", ret);
		what = text;
	}
	for (unsigned int r = 0; r < c->ranks; r++) {
		if (!*what)
			what = flaw(c, r);
		zt_close_ep(zt, ep[r]);
		free(c->send_room[r]);
		free(c->recv_room[r]);
	}
	return what;
}

FIXTURE(coll) {
	struct zt zt;
	struct round round;
};

FIXTURE_VARIANT(coll) {
	unsigned int collective;
	int op;
};

FIXTURE_VARIANT_ADD(coll, reduce_scatter) { ZCOLL_REDUCE_SCATTER, ZCOLL_SUM };
FIXTURE_VARIANT_ADD(coll, reduce_scatter_avg) { ZCOLL_REDUCE_SCATTER, ZCOLL_AVG };
FIXTURE_VARIANT_ADD(coll, allgather) { ZCOLL_ALLGATHER, 0 };
FIXTURE_VARIANT_ADD(coll, broadcast) { ZCOLL_BROADCAST, 0 };
FIXTURE_VARIANT_ADD(coll, reduce) { ZCOLL_REDUCE, ZCOLL_PROD };
FIXTURE_VARIANT_ADD(coll, reduce_avg) { ZCOLL_REDUCE, ZCOLL_AVG };

FIXTURE_SETUP(coll)
{
	ZT_SETUP(self);
	self->round = (struct round) {
		.collective = variant->collective,
		.op = variant->op,
		.dtype = ZCOLL_FP32,
		.ranks = 3,
		.count = 37,
	};
}

FIXTURE_TEARDOWN(coll)
{
	ZT_TEARDOWN(self);
}

#define EXPECT_ROUND(...) do {							\
	struct round __c = self->round;						\
	const char *__flaw;							\
										\
	__VA_ARGS__;								\
	__flaw = round_flaw(&self->zt, &__c);					\
	EXPECT_STREQ("", __flaw) TH_LOG("type %d, %u ranks, root %u, %u elements%s%s", \
		     __c.dtype, __c.ranks, __c.root, __c.count,			\
		     __c.in_place ? ", in place" : "", __c.ring ? ", by ring" : ""); \
} while (0)

TEST_F(coll, of_every_type)
{
	for (int dtype = 1; dtype < ZCOLL_NR_TYPES; dtype++)
		EXPECT_ROUND(__c.dtype = dtype; __c.in_place = dtype % 2);
}

TEST_F(coll, of_every_count_and_number_of_ranks)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(ranks_of); i++) {
		for (unsigned int k = 0; k < ARRAY_SIZE(count_of); k++)
			EXPECT_ROUND(__c.ranks = ranks_of[i]; __c.count = count_of[k];
				     __c.in_place = (i + k) % 2);
	}
}

TEST_F(coll, in_place)
{
	for (unsigned int k = 0; k < ARRAY_SIZE(count_of); k++)
		EXPECT_ROUND(__c.count = count_of[k]; __c.in_place = true);
}

TEST_F(coll, of_every_root)
{
	if (variant->collective != ZCOLL_BROADCAST && variant->collective != ZCOLL_REDUCE)
		SKIP(return, "it has no root");
	for (unsigned int root = 0; root < MAX_RANKS; root++) {
		EXPECT_ROUND(__c.ranks = MAX_RANKS; __c.root = root);
		EXPECT_ROUND(__c.ranks = MAX_RANKS; __c.root = root; __c.in_place = true);
	}
}

TEST_F(coll, by_ring)
{
	for (unsigned int k = 0; k < ARRAY_SIZE(count_of); k++)
		EXPECT_ROUND(__c.count = count_of[k]; __c.ring = true; __c.in_place = k % 2);
}

/* --- barrier ------------------------------------------------------------- */

FIXTURE(barrier) {
	struct zt zt;
	int ep[3];
};

FIXTURE_SETUP(barrier)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, 3, self->ep));
}

FIXTURE_TEARDOWN(barrier)
{
	ZT_TEARDOWN(self);
}

static struct zcoll_cmd barrier_cmd(uint64_t seq)
{
	return zt_cmd(seq, 0, 0, NULL, NULL, 0);
}

TEST_F(barrier, ends_when_all_have_called)
{
	struct zcoll_cmd cmd = barrier_cmd(0);
	struct zt_call call[2];

	ASSERT_EQ(0, zt_start(&call[0], self->ep[0], ZCOLL_IOC_BARRIER, &cmd));
	ASSERT_EQ(0, zt_start(&call[1], self->ep[1], ZCOLL_IOC_BARRIER, &cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep[0], 0) == 2));
	zt_sleep_ms(ZT_QUIET_MS);
	EXPECT_FALSE(call[0].done || call[1].done);
	EXPECT_EQ(0, zt_collective(self->ep[2], ZCOLL_BARRIER, &cmd));
	EXPECT_EQ(0, zt_finish(&call[0], ZT_SOON_MS));
	EXPECT_EQ(0, zt_finish(&call[1], ZT_SOON_MS));
}

TEST_F(barrier, between_other_operations)
{
	int32_t sum[3][8];

	for (int seq = 0; seq < 60; seq++) {
		struct zcoll_cmd cmd[3];

		for (int r = 0; r < 3; r++) {
			for (int i = 0; i < 8; i++)
				sum[r][i] = seq + r;
			cmd[r] = seq % 2 ? zt_sum(seq, sum[r], 8) : barrier_cmd(seq);
		}
		ASSERT_EQ(0, zt_all_of(self->ep, seq % 2 ? ZCOLL_ALLREDUCE : ZCOLL_BARRIER, cmd,
				       3));
		EXPECT_EQ(seq % 2 ? 3 * seq + 3 : seq + 1, sum[1][7]);
	}
}

ZT_MAIN
