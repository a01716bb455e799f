// SPDX-License-Identifier: GPL-2.0
/*
 * Ranks that call different things under one sequence number: all of them get
 * EPROTO and a text that names ranks and fields with both values, and no byte of
 * any output has changed.
 */
#include "zcoll_test.h"
#include "ring.h"
#include "kselftest_harness.h"

#define N	4
#define COUNT	300

FIXTURE(mismatch) {
	struct zt zt;
	int ep[N];
	uint8_t send[N][COUNT * 8];
	uint8_t recv[N][COUNT * 8];
	struct zcoll_cmd cmd[N];
	struct zt_call call[N];
};

FIXTURE_VARIANT(mismatch) {
	unsigned int odd;		/* the rank that calls something else */
	unsigned int last;		/* the rank that calls last */
	size_t offset;
	size_t len;
	uint64_t value;
	const char *field;		/* words that the text must have */
	const char *ours;
	const char *theirs;
};

#define FIELD(member) offsetof(struct zcoll_cmd, member), \
	sizeof(((struct zcoll_cmd *)0)->member)

/* All others sum 300 int32 */
FIXTURE_VARIANT_ADD(mismatch, dtype) {
	1, 3, FIELD(dtype), ZCOLL_FP32, "type", "int32", "fp32"
};
FIXTURE_VARIANT_ADD(mismatch, dtype_of_the_last) {
	3, 3, FIELD(dtype), ZCOLL_UINT64, "type", "int32", "uint64"
};
FIXTURE_VARIANT_ADD(mismatch, op) {
	2, 3, FIELD(op), ZCOLL_MAX, "op", "sum", "max"
};
FIXTURE_VARIANT_ADD(mismatch, op_of_the_first) {
	0, 3, FIELD(op), ZCOLL_AVG, "op", "sum", "avg"
};
FIXTURE_VARIANT_ADD(mismatch, count) {
	1, 0, FIELD(count), COUNT - 1, "count", "300", "299"
};
FIXTURE_VARIANT_ADD(mismatch, count_of_the_last) {
	3, 3, FIELD(count), COUNT + 1, "count", "300", "301"
};
FIXTURE_VARIANT_ADD(mismatch, count_0) {
	2, 1, FIELD(count), 0, "count", "300", "0"
};

FIXTURE_VARIANT_ADD(mismatch, flags) {
	1, 2, FIELD(flags), ZCOLL_CMD_REPRODUCIBLE, "flags", "0x0", "0x1"
};

FIXTURE_SETUP(mismatch)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, N, self->ep));
	memset(self->send, 1, sizeof(self->send));
	memset(self->recv, 0x5a, sizeof(self->recv));
	for (int r = 0; r < N; r++)
		self->cmd[r] = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM,
				      self->send[r], self->recv[r], COUNT);
	memcpy((char *)&self->cmd[variant->odd] + variant->offset,
	       &variant->value, variant->len);
}

FIXTURE_TEARDOWN(mismatch)
{
	ZT_TEARDOWN(self);
}

static bool untouched(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] != 0x5a)
			return false;
	}
	return true;
}

/* All ranks but @last block in their calls, then @last makes its own */
#define CALL_ALL()								\
	for (unsigned int __r = 0; __r < N; __r++) {				\
		if (__r != variant->last)					\
			ASSERT_EQ(0, zt_start_op(&self->call[__r],		\
						 self->ep[__r], &self->cmd[__r])); \
	}									\
	zt_until(ZT_QUIET_MS, zt_arrived(self->ep[0], 0) == N - 1);		\
	EXPECT_EQ(-EPROTO, zt_allreduce(self->ep[variant->last],		\
					&self->cmd[variant->last]));		\
	for (unsigned int __r = 0; __r < N; __r++) {				\
		if (__r != variant->last)					\
			EXPECT_EQ(-EPROTO, zt_finish(&self->call[__r], ZT_SOON_MS)); \
	}

TEST_F(mismatch, fails_on_all_ranks)
{
	CALL_ALL();
	for (int r = 0; r < N; r++) {
		EXPECT_EQ(-EPROTO, zt_revoked(self->ep[r]));
	}
}

TEST_F(mismatch, moves_no_byte)
{
	CALL_ALL();
	EXPECT_TRUE(untouched(self->recv[0], sizeof(self->recv)));
}

TEST_F(mismatch, text_names_ranks_field_and_values)
{
	char text[ZCOLL_TEXT_MAX], rank[4];
	struct zcoll_status st;

	snprintf(rank, sizeof(rank), "%u", variant->odd);
	CALL_ALL();
	for (int r = 0; r < N; r++) {
		ASSERT_EQ(0, zt_status(self->ep[r], 0, &st, text));
		EXPECT_EQ(ZCOLL_STATE_DONE, st.state);
		EXPECT_EQ(-EPROTO, st.result);
		EXPECT_NE(NULL, strstr(text, rank)) TH_LOG("%s", text);
		EXPECT_NE(NULL, strstr(text, variant->field)) TH_LOG("%s", text);
		EXPECT_NE(NULL, strstr(text, variant->ours)) TH_LOG("%s", text);
		EXPECT_NE(NULL, strstr(text, variant->theirs)) TH_LOG("%s", text);
	}
}

TEST_F(mismatch, later_calls_get_the_same_error)
{
	struct zcoll_cmd later = zt_barrier(1);

	CALL_ALL();
	for (int r = 0; r < N; r++) {
		EXPECT_EQ(-EPROTO, zt_allreduce(self->ep[r], &later));
	}
}

/* A younger operation that was in flight ends with the same error */
TEST_F(mismatch, takes_operations_in_flight_along)
{
	struct zcoll_cmd later = zt_barrier(1);
	struct zt_call call;

	ASSERT_EQ(0, zt_start_op(&call, self->ep[2], &later));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep[2], 1) == 1));
	CALL_ALL();
	EXPECT_EQ(-EPROTO, zt_finish(&call, ZT_SOON_MS));
}

TEST_F(mismatch, on_rings)
{
	struct io_uring ring;

	ASSERT_EQ(0, ring_init(&ring, 8, IORING_SETUP_SQE128));
	for (int r = 0; r < N; r++) {
		ASSERT_EQ(0, ring_send(&ring, self->ep[r], &self->cmd[r], r));
	}
	for (int r = 0; r < N; r++) {
		EXPECT_EQ(-EPROTO, ring_next(&ring, ZT_LONG_MS, NULL));
	}
	EXPECT_TRUE(untouched(self->recv[0], sizeof(self->recv)));
	io_uring_queue_exit(&ring);
}

/* Ranks that call different collectives under one number */
FIXTURE(collectives) {
	struct zt zt;
	int ep[2];
	int32_t buf[2][COUNT];
};

FIXTURE_VARIANT(collectives) {
	unsigned int call[2];
	int op[2];
	const char *names;
};

FIXTURE_VARIANT_ADD(collectives, reduce_and_allreduce) {
	{ ZCOLL_REDUCE, ZCOLL_ALLREDUCE }, { ZCOLL_SUM, ZCOLL_SUM }, "(reduce and all-reduce)"
};
FIXTURE_VARIANT_ADD(collectives, broadcast_and_allgather) {
	{ ZCOLL_BROADCAST, ZCOLL_ALLGATHER }, { 0, 0 }, "(broadcast and all-gather)"
};
FIXTURE_VARIANT_ADD(collectives, barrier_and_reduce_scatter) {
	{ ZCOLL_BARRIER, ZCOLL_REDUCE_SCATTER }, { 0, ZCOLL_SUM },
	"(barrier and reduce-scatter)"
};

FIXTURE_SETUP(collectives)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, 2, self->ep));
	memset(self->buf, 0x5a, sizeof(self->buf));
}

FIXTURE_TEARDOWN(collectives)
{
	ZT_TEARDOWN(self);
}

TEST_F(collectives, fail_and_are_named)
{
	struct zcoll_cmd cmd[2];
	struct zt_call call;
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_status st;

	for (int r = 0; r < 2; r++) {
		cmd[r] = zt_cmd(0, ZCOLL_INT32, variant->op[r], self->buf[r],
				self->buf[r] + COUNT / 2, 8);
		if (variant->call[r] == ZCOLL_BARRIER)
			cmd[r] = zt_cmd(0, 0, 0, NULL, NULL, 0);
	}
	/* The second rank is first: the lower one is named first all the same */
	ASSERT_EQ(0, zt_start(&call, self->ep[1], ZCOLL_IOC_OP(variant->call[1]), &cmd[1]));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep[0], 0) == 1));
	EXPECT_EQ(-EPROTO, zt_collective(self->ep[0], variant->call[0], &cmd[0]));
	EXPECT_EQ(-EPROTO, zt_finish(&call, ZT_SOON_MS));
	ASSERT_EQ(0, zt_status(self->ep[0], 0, &st, text));
	EXPECT_NE(NULL, strstr(text, "rank 0 and rank 1 differ in collective"))
		TH_LOG("%s", text);
	EXPECT_NE(NULL, strstr(text, variant->names)) TH_LOG("%s", text);
	EXPECT_TRUE(untouched((uint8_t *)self->buf, sizeof(self->buf)));
}

/* What each rank may choose for itself is no mismatch */
FIXTURE(match) {
	struct zt zt;
	int ep[2];
	int32_t buf[4][COUNT];
};

FIXTURE_SETUP(match)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, 2, self->ep));
	for (int b = 0; b < 4; b++) {
		for (int i = 0; i < COUNT; i++)
			self->buf[b][i] = i;
	}
}

FIXTURE_TEARDOWN(match)
{
	ZT_TEARDOWN(self);
}

TEST_F(match, ranks_may_differ_in_buffers_and_deadlines)
{
	struct zcoll_cmd cmd[2];
	int wrong = 0;

	cmd[0] = zt_sum(0, self->buf[0], COUNT);
	cmd[1] = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM, self->buf[1], self->buf[2], COUNT);
	ASSERT_EQ(0, zt_register(self->ep[1], self->buf[2], sizeof(self->buf[2]),
				 &cmd[1].recv_buf));
	cmd[1].recv = 0;
	cmd[1].deadline_ns = 3600 * 1000 * NS_PER_MS;
	ASSERT_EQ(0, zt_all(self->ep, cmd, 2));
	for (int i = 0; i < COUNT; i++)
		wrong += self->buf[0][i] != 2 * i || self->buf[2][i] != 2 * i;
	EXPECT_EQ(0, wrong);
}

TEST_F(match, ranks_must_name_the_same_root)
{
	struct zcoll_cmd cmd[2];
	struct zt_call call;
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_status st;
	int *ep = self->ep;

	for (int r = 0; r < 2; r++) {
		cmd[r] = zt_cmd(0, ZCOLL_INT32, 0, self->buf[r], self->buf[r] + 8, 8);
		cmd[r].root = r;
	}
	ASSERT_EQ(0, zt_start(&call, ep[0], ZCOLL_IOC_BROADCAST, &cmd[0]));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(ep[0], 0) == 1));
	EXPECT_EQ(-EPROTO, zt_collective(ep[1], ZCOLL_BROADCAST, &cmd[1]));
	EXPECT_EQ(-EPROTO, zt_finish(&call, ZT_SOON_MS));
	ASSERT_EQ(0, zt_status(ep[0], 0, &st, text));
	EXPECT_NE(NULL, strstr(text, "root (0 and 1)")) TH_LOG("%s", text);
}

ZT_MAIN
