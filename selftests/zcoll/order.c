// SPDX-License-Identifier: GPL-2.0
/*
 * Sequence numbers: the n-th call of every rank meets in operation n, however
 * and in whatever order the calls arrive, inside the window.
 *
 * Calls are submitted on rings, because a ring returns at once.
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "zcoll_test.h"
#include "ring.h"
#include "kselftest_harness.h"

FIXTURE(order) {
	struct zt zt;
	struct io_uring ring;
	unsigned int window;
	int ep[2];
	int32_t buf[2][ZCOLL_MAX_WINDOW + 1];
	struct zcoll_cmd cmd[2][ZCOLL_MAX_WINDOW + 1];
};

FIXTURE_SETUP(order)
{
	ZT_SETUP(self);
	self->window = self->zt.base.window;
	ASSERT_EQ(0, zt_comm(&self->zt, 2, self->ep));
	ASSERT_EQ(0, ring_init(&self->ring, 2 * ZCOLL_MAX_WINDOW + 2, 0));
	for (int r = 0; r < 2; r++) {
		for (unsigned int seq = 0; seq <= ZCOLL_MAX_WINDOW; seq++) {
			self->buf[r][seq] = (r + 1) * (100 + seq);
			self->cmd[r][seq] = zt_sum(seq, &self->buf[r][seq], 1);
		}
	}
}

FIXTURE_TEARDOWN(order)
{
	const char *leaks;

	leaks = zt_leaks(&self->zt);
	io_uring_queue_exit(&self->ring);
	EXPECT_STREQ("", leaks);
}

#define SEND(rank, seq) \
	ASSERT_EQ(0, ring_send(&self->ring, self->ep[rank], &self->cmd[rank][seq], seq))

static unsigned int wrong_results(const int32_t *buf, unsigned int n)
{
	unsigned int wrong = 0;

	for (unsigned int seq = 0; seq < n; seq++)
		wrong += buf[seq] != (int32_t)(3 * (100 + seq));
	return wrong;
}

TEST_F(order, calls_arrive_in_any_order)
{
	static const unsigned int first[] = { 5, 3, 4, 0, 2, 1 };
	static const unsigned int second[] = { 1, 5, 0, 3, 2, 4 };

	for (int i = 0; i < 6; i++)
		SEND(0, first[i]);
	for (int i = 0; i < 6; i++)
		SEND(1, second[i]);
	for (int i = 0; i < 12; i++) {
		ASSERT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	EXPECT_EQ(0, wrong_results(self->buf[0], 6));
	EXPECT_EQ(0, wrong_results(self->buf[1], 6));
}

TEST_F(order, an_operation_ends_before_older_ones)
{
	uint64_t seq;

	SEND(0, 1);
	SEND(1, 1);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, &seq));
		EXPECT_EQ(1, seq);
	}
	EXPECT_EQ(ZCOLL_STATE_DONE, zt_state(self->ep[0], 1));
	EXPECT_EQ(ZCOLL_STATE_NONE, zt_state(self->ep[0], 0));
	SEND(0, 0);
	SEND(1, 0);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	EXPECT_EQ(0, wrong_results(self->buf[0], 2));
}

TEST_F(order, a_whole_window_in_flight)
{
	for (unsigned int seq = 0; seq < self->window; seq++)
		SEND(0, self->window - 1 - seq);
	EXPECT_EQ(-ETIME, ring_next(&self->ring, ZT_QUIET_MS, NULL));
	for (unsigned int seq = 0; seq < self->window; seq++)
		SEND(1, seq);
	for (unsigned int i = 0; i < 2 * self->window; i++) {
		ASSERT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	EXPECT_EQ(0, wrong_results(self->buf[0], self->window));
	EXPECT_EQ(0, wrong_results(self->buf[1], self->window));
}

TEST_F(order, beyond_the_window_is_enobufs_until_it_moves)
{
	struct zcoll_status st;
	char text[ZCOLL_TEXT_MAX];

	self->cmd[0][self->window] = zt_sum(self->window, &self->buf[0][self->window], 1);
	SEND(0, 0);
	SEND(0, self->window);
	ASSERT_EQ(-ENOBUFS, ring_next(&self->ring, ZT_LONG_MS, NULL));
	ASSERT_EQ(0, zt_status(self->ep[0], self->window, &st, text));
	EXPECT_EQ(ZCOLL_STATE_REJECTED, st.state);
	EXPECT_EQ(0, st.oldest);
	SEND(1, 0);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	ASSERT_EQ(0, zt_status(self->ep[0], 0, &st, text));
	EXPECT_EQ(1, st.oldest);
	SEND(0, self->window);
	EXPECT_EQ(-ETIME, ring_next(&self->ring, ZT_QUIET_MS, NULL));
	EXPECT_EQ(ZCOLL_STATE_WAITING, zt_state(self->ep[0], self->window));
}

TEST_F(order, a_second_call_in_flight_is_eexist)
{
	SEND(0, 0);
	SEND(0, 0);
	EXPECT_EQ(-EEXIST, ring_next(&self->ring, ZT_LONG_MS, NULL));
	SEND(1, 0);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	EXPECT_EQ(0, wrong_results(self->buf[0], 1));
}

TEST_F(order, a_second_call_after_the_end_is_eexist)
{
	SEND(0, 0);
	SEND(1, 0);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	SEND(0, 0);
	EXPECT_EQ(-EEXIST, ring_next(&self->ring, ZT_LONG_MS, NULL));
	EXPECT_EQ(0, wrong_results(self->buf[0], 1));
}

TEST_F(order, another_call_by_ioctl_is_eexist)
{
	struct zcoll_cmd other = self->cmd[0][0];

	other.count = 0;
	SEND(0, 0);
	EXPECT_EQ(-EEXIST, zt_allreduce(self->ep[0], &other));
	SEND(1, 0);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
}

TEST_F(order, a_number_long_past_is_eexist)
{
	for (unsigned int seq = 0; seq < 2 * self->window + 2; seq++) {
		struct zcoll_cmd cmd[2] = { zt_barrier(seq), zt_barrier(seq) };

		ASSERT_EQ(0, zt_all(self->ep, cmd, 2));
	}
	SEND(0, 0);
	EXPECT_EQ(-EEXIST, ring_next(&self->ring, ZT_LONG_MS, NULL));
}

/* The numbers of one communicator are nothing to another */
TEST_F(order, two_communicators_interleaved)
{
	struct zcoll_cmd other[2] = { zt_barrier(0), zt_barrier(0) };
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	SEND(0, 0);
	ASSERT_EQ(0, ring_send(&self->ring, ep[1], &other[1], 100));
	ASSERT_EQ(0, ring_send(&self->ring, ep[0], &other[0], 100));
	SEND(1, 0);
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	EXPECT_EQ(0, wrong_results(self->buf[0], 1));
}

TEST_F(order, a_thousand_operations)
{
	unsigned int in_flight = 0;
	struct zcoll_info info;

	for (unsigned int seq = 0; seq < 1000; seq++) {
		for (int r = 0; r < 2; r++) {
			struct zcoll_cmd cmd = zt_barrier(seq);

			ASSERT_EQ(0, ring_send(&self->ring, self->ep[r], &cmd, seq));
			in_flight++;
		}
		for (; in_flight > 16; in_flight--) {
			ASSERT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
		}
	}
	for (; in_flight; in_flight--) {
		ASSERT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	ASSERT_EQ(0, zt_info(self->zt.dev, &info));
	EXPECT_EQ(self->zt.base.ops_done + 1000, info.ops_done);
}

/*
 * One rank's side of many pairs of operations: the first is called blocking by rank 1
 * and on a ring by rank 0, the second on rings by both, by rank 0 last. What ends the
 * first must not take the work of the second and leave it.
 */
struct side {
	int ep;
	unsigned int rank;
	atomic_uint *meet;
	int ret;
	pthread_t thread;
};

#define PAIRS 10000

/* Both sides of round @n are here; false: the other one has given up */
static bool meet(struct side *side, unsigned int n)
{
	atomic_fetch_add(side->meet, 1);
	while (atomic_load(side->meet) < 2 * n)
		sched_yield();
	return atomic_load(side->meet) < UINT_MAX / 2;
}

static int one_pair(struct side *side, struct io_uring *ring, unsigned int n, int32_t *buf)
{
	struct zcoll_cmd first = zt_barrier(2 * n), second = zt_sum(2 * n + 1, buf, 1000);
	unsigned int ends = side->rank ? 1 : 2;
	int ret;

	ret = ring_send(ring, side->ep, side->rank ? &second : &first, 0);
	if (ret || !meet(side, 2 * n + 1))
		return ret ?: -ECANCELED;
	/* A different moment each time */
	for (volatile unsigned int spin = (n * 7919u + side->rank * 104729u) % 3000; spin; spin--)
		;
	ret = side->rank ? zt_allreduce(side->ep, &first) :
			   ring_send(ring, side->ep, &second, 0);
	while (!ret && ends--)
		ret = ring_next(ring, ZT_LONG_MS, NULL);
	if (ret || !meet(side, 2 * n + 2))
		return ret ?: -ECANCELED;
	return 0;
}

static void *side_main(void *p)
{
	struct side *side = p;
	struct io_uring ring;
	int32_t buf[1000] = { 0 };
	unsigned int n;

	side->ret = ring_init(&ring, 4, 0);
	for (n = 0; n < PAIRS && !side->ret; n++)
		side->ret = one_pair(side, &ring, n, buf);
	if (side->ret) {
		atomic_store(side->meet, UINT_MAX / 2);
		zt_abort(side->ep);
	}
	io_uring_queue_exit(&ring);
	return NULL;
}

TEST_F_TIMEOUT(order, a_blocking_call_takes_no_work_that_it_leaves, 120)
{
	atomic_uint meetings = 0;
	struct side side[2];

	for (unsigned int r = 0; r < 2; r++) {
		side[r] = (struct side){ .ep = self->ep[r], .rank = r, .meet = &meetings };
		ASSERT_EQ(0, pthread_create(&side[r].thread, NULL, side_main, &side[r]));
	}
	for (unsigned int r = 0; r < 2; r++)
		pthread_join(side[r].thread, NULL);
	EXPECT_EQ(0, side[0].ret);
	EXPECT_EQ(0, side[1].ret);
}

ZT_MAIN
