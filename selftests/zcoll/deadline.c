// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlines: an operation that is not finished in the time that any of its ranks
 * gave it fails on all of them, and the text says who was missing.
 *
 * Bounds: never before the deadline, and soon after it.
 */
#include "zcoll_test.h"
#include "ring.h"
#include "kselftest_harness.h"

#define N		3
#define DEADLINE_MS	400

FIXTURE(deadline) {
	struct zt zt;
	struct io_uring ring;
	int ep[N];
	struct zcoll_cmd cmd[N];
	struct zt_call call[N];
	uint64_t start;
	struct zcoll_status st;
	char text[ZCOLL_TEXT_MAX];
};

FIXTURE_SETUP(deadline)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, N, self->ep));
	ASSERT_EQ(0, ring_init(&self->ring, 8, IORING_SETUP_SQE128));
	for (int r = 0; r < N; r++)
		self->cmd[r] = zt_barrier(0);
	self->start = zt_now_ms();
}

FIXTURE_TEARDOWN(deadline)
{
	const char *leaks = zt_leaks(&self->zt);

	io_uring_queue_exit(&self->ring);
	EXPECT_STREQ("", leaks);
}

#define EXPECT_IN_TIME(call) do {						\
	EXPECT_LE(self->start + DEADLINE_MS, (call)->ended_ms);			\
	EXPECT_GE(self->start + DEADLINE_MS + ZT_SOON_MS, (call)->ended_ms);	\
} while (0)

TEST_F(deadline, fails_all_ranks_that_called)
{
	self->cmd[0].deadline_ns = DEADLINE_MS * NS_PER_MS;
	for (int r = 0; r < 2; r++) {
		ASSERT_EQ(0, zt_start_op(&self->call[r], self->ep[r], &self->cmd[r]));
	}
	for (int r = 0; r < 2; r++) {
		EXPECT_EQ(-ETIMEDOUT, zt_finish(&self->call[r], ZT_LONG_MS));
		EXPECT_IN_TIME(&self->call[r]);
	}
}

TEST_F(deadline, text_names_operation_and_missing_rank)
{
	struct zcoll_cmd cmd[N] = { zt_barrier(0), zt_barrier(0), zt_barrier(0) };

	ASSERT_EQ(0, zt_all(self->ep, cmd, N));
	self->cmd[0].seq = 1;
	self->cmd[1].seq = 1;
	self->cmd[0].deadline_ns = DEADLINE_MS * NS_PER_MS;
	ASSERT_EQ(0, zt_start_op(&self->call[1], self->ep[1], &self->cmd[1]));
	EXPECT_EQ(-ETIMEDOUT, zt_allreduce(self->ep[0], &self->cmd[0]));
	EXPECT_EQ(-ETIMEDOUT, zt_finish(&self->call[1], ZT_SOON_MS));
	for (int r = 0; r < N; r++) {
		ASSERT_EQ(0, zt_status(self->ep[r], 1, &self->st, self->text));
		EXPECT_EQ(ZCOLL_STATE_DONE, self->st.state);
		EXPECT_EQ(-ETIMEDOUT, self->st.result);
		EXPECT_NE(NULL, strchr(self->text, '1')) TH_LOG("%s", self->text);
		EXPECT_NE(NULL, strchr(self->text, '2')) TH_LOG("%s", self->text);
	}
}

TEST_F(deadline, revokes_the_communicator)
{
	self->cmd[0].deadline_ns = DEADLINE_MS * NS_PER_MS;
	EXPECT_EQ(-ETIMEDOUT, zt_allreduce(self->ep[0], &self->cmd[0]));
	EXPECT_EQ(-ETIMEDOUT, zt_revoked(self->ep[2]));
	EXPECT_EQ(-ETIMEDOUT, zt_allreduce(self->ep[2], &self->cmd[2]));
	EXPECT_EQ(POLLERR | POLLHUP, zt_poll(self->ep[2], 0) & (POLLERR | POLLHUP));
}

TEST_F(deadline, of_the_endpoint_holds_where_the_call_gives_none)
{
	int ep[2];

	ASSERT_EQ(0, zt_comm_deadline(&self->zt, 2, ep, DEADLINE_MS * NS_PER_MS));
	self->start = zt_now_ms();
	ASSERT_EQ(0, zt_start_op(&self->call[0], ep[0], &self->cmd[0]));
	EXPECT_EQ(-ETIMEDOUT, zt_finish(&self->call[0], ZT_LONG_MS));
	EXPECT_IN_TIME(&self->call[0]);
}

TEST_F(deadline, of_the_call_is_before_that_of_the_endpoint)
{
	int ep[2];

	ASSERT_EQ(0, zt_comm_deadline(&self->zt, 2, ep, 3600 * 1000 * NS_PER_MS));
	self->cmd[0].deadline_ns = DEADLINE_MS * NS_PER_MS;
	self->start = zt_now_ms();
	ASSERT_EQ(0, zt_start_op(&self->call[0], ep[0], &self->cmd[0]));
	EXPECT_EQ(-ETIMEDOUT, zt_finish(&self->call[0], ZT_LONG_MS));
	EXPECT_IN_TIME(&self->call[0]);
}

TEST_F(deadline, of_the_call_may_be_longer_than_that_of_the_endpoint)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	int ep[2];

	ASSERT_EQ(0, zt_comm_deadline(&self->zt, 2, ep, DEADLINE_MS * NS_PER_MS));
	cmd.deadline_ns = 3600 * 1000 * NS_PER_MS;
	ASSERT_EQ(0, zt_start_op(&self->call[0], ep[0], &cmd));
	EXPECT_EQ(-ETIME, zt_finish(&self->call[0], 2 * DEADLINE_MS));
	cmd.deadline_ns = 0;
	EXPECT_EQ(0, zt_allreduce(ep[1], &cmd));
	EXPECT_EQ(0, zt_finish(&self->call[0], ZT_LONG_MS));
}

TEST_F(deadline, earliest_of_all_ranks_counts)
{
	self->cmd[0].deadline_ns = 3600 * 1000 * NS_PER_MS;
	self->cmd[1].deadline_ns = DEADLINE_MS * NS_PER_MS;
	for (int r = 0; r < 2; r++) {
		ASSERT_EQ(0, zt_start_op(&self->call[r], self->ep[r], &self->cmd[r]));
	}
	for (int r = 0; r < 2; r++) {
		EXPECT_EQ(-ETIMEDOUT, zt_finish(&self->call[r], ZT_LONG_MS));
		EXPECT_IN_TIME(&self->call[r]);
	}
}

/* An operation with a late deadline must not hide a younger one's early one */
TEST_F(deadline, earliest_of_all_operations_counts)
{
	self->cmd[0].deadline_ns = 3600 * 1000 * NS_PER_MS;
	self->cmd[1].seq = 1;
	self->cmd[1].deadline_ns = DEADLINE_MS * NS_PER_MS;
	ASSERT_EQ(0, zt_start_op(&self->call[0], self->ep[0], &self->cmd[0]));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep[0], 0) == 1));
	self->start = zt_now_ms();
	ASSERT_EQ(0, zt_start_op(&self->call[1], self->ep[1], &self->cmd[1]));
	for (int r = 0; r < 2; r++) {
		EXPECT_EQ(-ETIMEDOUT, zt_finish(&self->call[r], ZT_LONG_MS));
		EXPECT_IN_TIME(&self->call[r]);
	}
}

TEST_F(deadline, of_a_ring_command)
{
	self->cmd[0].deadline_ns = DEADLINE_MS * NS_PER_MS;
	EXPECT_EQ(-ETIMEDOUT, ring_do(&self->ring, self->ep[0], &self->cmd[0], ZT_LONG_MS));
	EXPECT_LE(self->start + DEADLINE_MS, zt_now_ms());
	EXPECT_GE(self->start + DEADLINE_MS + ZT_SOON_MS, zt_now_ms());
}

TEST_F(deadline, of_one_nanosecond)
{
	self->cmd[0].deadline_ns = 1;
	EXPECT_EQ(-ETIMEDOUT, zt_allreduce(self->ep[0], &self->cmd[0]));
	EXPECT_GE(self->start + ZT_SOON_MS, zt_now_ms());
}

TEST_F(deadline, of_a_day_is_accepted)
{
	for (int r = 0; r < N; r++)
		self->cmd[r].deadline_ns = ZCOLL_MAX_DEADLINE_NS;
	EXPECT_EQ(0, zt_all(self->ep, self->cmd, N));
}

TEST_F(deadline, not_reached_does_nothing_afterwards)
{
	for (int r = 0; r < N; r++)
		self->cmd[r].deadline_ns = DEADLINE_MS * NS_PER_MS;
	ASSERT_EQ(0, zt_all(self->ep, self->cmd, N));
	zt_sleep_ms(2 * DEADLINE_MS);
	EXPECT_EQ(0, zt_revoked(self->ep[0]));
	for (int r = 0; r < N; r++)
		self->cmd[r] = zt_barrier(1);
	EXPECT_EQ(0, zt_all(self->ep, self->cmd, N));
}

TEST_F(deadline, of_an_idle_communicator_does_nothing)
{
	struct zcoll_cmd cmd[2] = { zt_barrier(0), zt_barrier(0) };
	int ep[2];

	ASSERT_EQ(0, zt_comm_deadline(&self->zt, 2, ep, DEADLINE_MS * NS_PER_MS));
	zt_sleep_ms(2 * DEADLINE_MS);
	EXPECT_EQ(0, zt_all(ep, cmd, 2));
}

/* A rank that has not even joined is missing too */
TEST_F(deadline, with_a_rank_that_never_joins)
{
	uint8_t key[16];
	int ep;

	zt_key(key);
	ep = zt_join(&self->zt, key, 0, 2);
	ASSERT_LE(0, ep);
	self->cmd[0].deadline_ns = DEADLINE_MS * NS_PER_MS;
	EXPECT_EQ(-ETIMEDOUT, zt_allreduce(ep, &self->cmd[0]));
	ASSERT_EQ(0, zt_status(ep, 0, &self->st, self->text));
	EXPECT_NE(NULL, strchr(self->text, '1')) TH_LOG("%s", self->text);
}

/* The deadline runs on while a call is interrupted and picked up again */
static void on_signal(int sig)
{
	(void)sig;
}

TEST_F(deadline, is_not_renewed_by_picking_up)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGUSR1, &sa, NULL);
	self->cmd[0].deadline_ns = DEADLINE_MS * NS_PER_MS;
	ASSERT_EQ(0, zt_start_op(&self->call[0], self->ep[0], &self->cmd[0]));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep[0], 0) == 1));
	self->start = zt_now_ms();
	zt_sleep_ms(DEADLINE_MS / 2);
	pthread_kill(self->call[0].thread, SIGUSR1);
	if (zt_finish(&self->call[0], ZT_SOON_MS) == -EINTR) {
		ASSERT_EQ(0, zt_start_op(&self->call[0], self->ep[0], &self->cmd[0]));
	}
	EXPECT_EQ(-ETIMEDOUT, zt_finish(&self->call[0], ZT_LONG_MS));
	EXPECT_GE(self->start + DEADLINE_MS + ZT_SOON_MS, self->call[0].ended_ms);
}

ZT_MAIN
