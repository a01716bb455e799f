// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection between nodes: every allocation and every copy from or to user space of a rank
 * that sets a communicator of two nodes up, and calls its first operation, fails once.
 *
 * A call that fails by itself leaves nothing behind, and succeeds when it is made again. What
 * fails later revokes the communicator: both nodes get the same error and text. Whatever
 * it was, in the end nothing is left. Debug kernels only; the rest is for their sanitizers to see.
 */
#include "net.h"
#include "nth.h"
#include "kselftest_harness.h"

#define MOST_STEPS	600
#define LARGE		200000

FIXTURE(nth) {
	struct zt zt;
	struct zn zn;
	struct zcoll_info before;
	int32_t *mem[2];
	struct zcoll_cmd cmd[2];
	struct zt_call other;
};

FIXTURE_SETUP(nth)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, nth_init());
	for (unsigned int r = 0; r < 2; r++) {
		self->mem[r] = zt_pages(LARGE * sizeof(int32_t));
		memset(self->mem[r], 0, LARGE * sizeof(int32_t));
	}
}

FIXTURE_TEARDOWN(nth)
{
	ZT_TEARDOWN(self);
}

/* Two nodes, ready for an all-reduce of @elements; the other rank has called it */
#define BEGIN(algo, elements) do {						\
	const unsigned int __ranks[] = { 1, 1 };				\
										\
	zn_init(&self->zn, &self->zt, 2, __ranks);				\
	ASSERT_EQ(0, zt_info(self->zt.dev, &self->before));			\
	ASSERT_EQ(0, zn_open(&self->zn)) TH_LOG("%s", self->zn.text);		\
	ASSERT_EQ(0, zn_plan(&self->zn, algo, ZCOLL_ALLREDUCE, 0))		\
		TH_LOG("%s", self->zn.text);					\
	for (unsigned int __r = 0; __r < 2; __r++)				\
		self->cmd[__r] = zn_cmd(&self->zn, __r, 0, ZCOLL_INT32, ZCOLL_SUM,	\
					self->mem[__r], self->mem[__r], elements);	\
	ASSERT_EQ(0, zt_start_op(&self->other, self->zn.ep[1], &self->cmd[1]));	\
} while (0)

/* All endpoints are closed: is nothing left? */
#define END(n) do {								\
	for (unsigned int __r = 0; __r < 2; __r++)				\
		zt_close_ep(&self->zt, self->zn.ep[__r]);			\
	EXPECT_STREQ("", zt_above_text(self->zt.dev, &self->before))		\
		TH_LOG("after step %d", n);					\
} while (0)

/* The verdict of both, when rank 0's call, with its step @n failing, has given @ret */
#define EXPECT_VERDICT(n, ret, failed) do {					\
	int __ret = ret, __other;						\
	char __text[ZCOLL_TEXT_MAX];						\
										\
	if (__ret && !zt_revoked(self->zn.ep[0]))				\
		__ret = zt_allreduce(self->zn.ep[0], &self->cmd[0]);		\
	failed += !!__ret;							\
	__other = zt_finish(&self->other, ZT_LONG_MS);				\
	EXPECT_EQ(__ret, __other) TH_LOG("step %d", n);				\
	EXPECT_TRUE(!__ret || __ret == -ENOMEM) TH_LOG("step %d: %d", n, __ret); \
	strcpy(__text, zn_text(&self->zn, self->zn.ep[0]));			\
	EXPECT_STREQ(__text, zn_text(&self->zn, self->zn.ep[1]));		\
	EXPECT_TRUE(!__ret == !*__text) TH_LOG("step %d: %d, %s", n, __ret, __text); \
} while (0)

#define SWEEP(algo, elements) do {						\
	int __n, __failed = 0;							\
	bool __fired = true;							\
										\
	for (__n = 1; __fired && __n < MOST_STEPS; __n++) {			\
		int __called;							\
										\
		BEGIN(algo, elements);						\
		arm(__n);							\
		__called = zt_allreduce(self->zn.ep[0], &self->cmd[0]);		\
		__fired = disarm();						\
		EXPECT_VERDICT(__n, __called, __failed);			\
		END(__n);							\
	}									\
	EXPECT_GT(MOST_STEPS, __n);						\
	TH_LOG("%d steps, %d of them fatal to the communicator", __n - 2, __failed); \
} while (0)

TEST_F_TIMEOUT(nth, first_operation_small, 300)
{
	SWEEP("recursive-doubling", 16);
}

TEST_F_TIMEOUT(nth, first_operation_large, 300)
{
	SWEEP("ring", LARGE);
}

/* Both nodes are made, and told of each other, by a thread of which a step fails */
TEST_F_TIMEOUT(nth, setting_up, 300)
{
	const unsigned int ranks[] = { 1, 1 };
	bool fired = true;
	int n;

	for (n = 1; fired && n < MOST_STEPS; n++) {
		int ret;

		zn_init(&self->zn, &self->zt, 2, ranks);
		self->zn.ep[0] = -1;
		self->zn.ep[1] = -1;
		ASSERT_EQ(0, zt_info(self->zt.dev, &self->before));
		arm(n);
		ret = zn_open(&self->zn);
		fired = disarm();
		EXPECT_TRUE(ret == 0 || (fired && (ret == -ENOMEM || ret == -EFAULT)))
			TH_LOG("step %d: %d, %s", n, ret, self->zn.text);
		for (unsigned int r = 0; r < 2; r++)
			if (self->zn.ep[r] >= 0)
				zt_close_ep(&self->zt, self->zn.ep[r]);
		EXPECT_STREQ("", zt_above_text(self->zt.dev, &self->before))
			TH_LOG("after step %d", n);
	}
	EXPECT_GT(MOST_STEPS, n);
	TH_LOG("%d steps", n - 2);
}

NTH_MAIN
