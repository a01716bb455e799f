// SPDX-License-Identifier: GPL-2.0
/*
 * Mailboxes: operations that have ended in them, of which the kernel learns only that.
 */
#include "mailbox.h"
#include "ring.h"

static uint64_t oldest_of(int ep)
{
	struct zcoll_status st = { .size = sizeof(st), .flags = ZCOLL_STATUS_COMM };

	return zt_ioctl(ep, ZCOLL_IOC_STATUS, &st) ? ~0ULL : st.oldest;
}

TEST_F(mailbox, ended_moves_the_window)
{
	static const uint64_t jumps[] = { 1, 31, 32, 33, 64, 1000, 1ULL << 32, 1ULL << 40 };
	uint64_t seq = 0;

	for (int i = 0; i < 8; i++) {
		seq += jumps[i];
		ASSERT_EQ(0, all_say(self->ep, seq, seq))
			TH_LOG("a jump over %llu", (unsigned long long)jumps[i]);
		EXPECT_EQ(seq + 1, oldest_of(self->ep[1]));
		/* And it goes on as if there had been none */
		for (uint64_t end = seq + self->zt.base.window + 2; ++seq < end; )
			ASSERT_EQ(0, all_say(self->ep, seq, 0));
	}
}

TEST_F(mailbox, ended_with_data)
{
	struct zcoll_cmd cmd[N];
	int32_t x[N];

	for (uint64_t seq = 5; seq < 5000; seq = seq * 3 + 1) {
		for (int r = 0; r < N; r++) {
			x[r] = r + 1;
			cmd[r] = zt_sum(seq, &x[r], 1);
			cmd[r].ended = seq;
		}
		ASSERT_EQ(0, zt_all(self->ep, cmd, N));
		for (int r = 0; r < N; r++)
			EXPECT_EQ(6, x[r]);
	}
}

TEST_F(mailbox, without_ended_the_window_stays)
{
	const uint64_t window = self->zt.base.window;
	struct zcoll_cmd cmd = zt_barrier(window);

	EXPECT_EQ(-ENOBUFS, zt_allreduce(self->ep[0], &cmd));
	cmd.seq = window + 1;
	cmd.ended = 1;
	EXPECT_EQ(-ENOBUFS, zt_allreduce(self->ep[0], &cmd));
	EXPECT_EQ(0, all_say(self->ep, window, 1));
	EXPECT_EQ(1, oldest_of(self->ep[0]));
}

TEST_F(mailbox, number_that_was_jumped_is_used_up)
{
	struct zcoll_cmd cmd = zt_barrier(99);

	ASSERT_EQ(0, all_say(self->ep, 100, 100));
	EXPECT_EQ(-EEXIST, zt_allreduce(self->ep[0], &cmd));
	EXPECT_EQ(-ENOENT, zt_wait(self->ep[0], 99, 0));
	EXPECT_EQ(0, all_say(self->ep, 101, 50));
}

TEST_F(mailbox, ended_of_what_has_not_begun_is_refused)
{
	struct zcoll_cmd cmd = zt_barrier(7);

	cmd.ended = 8;
	EXPECT_EQ(-EINVAL, zt_allreduce(self->ep[0], &cmd));
	ASSERT_EQ(0, zt_status(self->ep[0], 7, &self->st, self->text));
	EXPECT_NE(NULL, strstr(self->text, "ended")) TH_LOG("%s", self->text);
	cmd.ended = ~0ULL;
	EXPECT_EQ(-EINVAL, zt_allreduce(self->ep[0], &cmd));
	EXPECT_EQ(0, oldest_of(self->ep[0]));
	EXPECT_EQ(0, all_say(self->ep, 7, 7));
}

TEST_F(mailbox, ended_of_what_is_in_flight_is_refused)
{
	struct zcoll_cmd first = zt_barrier(3), second = zt_barrier(4);
	struct io_uring ring;
	int ret;

	ASSERT_EQ(0, ring_init(&ring, 8, IORING_SETUP_SQE128));
	ASSERT_EQ(0, ring_send_in(&ring, self->ep[0], &first, 0));
	second.ended = 4;
	EXPECT_EQ(-EINVAL, zt_allreduce(self->ep[1], &second));
	ASSERT_EQ(0, zt_status(self->ep[1], 4, &self->st, self->text));
	EXPECT_NE(NULL, strstr(self->text, "in flight")) TH_LOG("%s", self->text);
	for (int r = 1; r < N; r++) {
		ASSERT_EQ(0, zt_start_op(&self->call[r], self->ep[r], &first));
	}
	for (int r = 1; r < N; r++)
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_LONG_MS));
	ret = ring_next(&ring, ZT_LONG_MS, NULL);
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, all_say(self->ep, 4, 4));
	io_uring_queue_exit(&ring);
}

TEST_F(mailbox, ranks_may_know_of_different_ends)
{
	struct zcoll_cmd cmd[N];

	for (int r = 0; r < N; r++) {
		cmd[r] = zt_barrier(20);
		cmd[r].ended = 20 - 10 * r;	/* 20, 10, 0 */
	}
	EXPECT_EQ(0, zt_all(self->ep, cmd, N));
	EXPECT_EQ(21, oldest_of(self->ep[0]));
	for (int r = 0; r < N; r++) {
		cmd[r] = zt_barrier(30);
		cmd[r].ended = 10 + 10 * r;	/* 10, 20, 30 */
	}
	EXPECT_EQ(0, zt_all(self->ep, cmd, N));
	EXPECT_EQ(31, oldest_of(self->ep[0]));
}

TEST_F(mailbox, ended_in_a_ring_command)
{
	struct zcoll_cmd cmd = zt_barrier(500);
	struct io_uring ring;

	ASSERT_EQ(0, ring_init(&ring, 8, 0));
	cmd.ended = 500;
	for (int r = 1; r < N; r++) {
		ASSERT_EQ(0, zt_start_op(&self->call[r], self->ep[r], &cmd));
	}
	EXPECT_EQ(0, ring_do(&ring, self->ep[0], &cmd, ZT_LONG_MS));
	for (int r = 1; r < N; r++)
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_LONG_MS));
	io_uring_queue_exit(&ring);
}

/* Numbers do not wrap: what waits, and what marks lines, counts on from them */
TEST_F(mailbox, ended_at_the_end_of_all_numbers_is_refused)
{
	struct zcoll_cmd cmd = zt_barrier(~0ULL);

	cmd.ended = ~0ULL;
	cmd.deadline_ns = 100 * NS_PER_MS;
	EXPECT_EQ(-EINVAL, zt_allreduce(self->ep[0], &cmd));
	cmd.seq = (1ULL << 62) - 1;
	cmd.ended = cmd.seq;
	EXPECT_EQ(-EINVAL, zt_allreduce(self->ep[0], &cmd));
	EXPECT_EQ(0, all_say(self->ep, 1ULL << 60, 1ULL << 60));
}

ZT_MAIN
