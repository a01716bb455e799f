// SPDX-License-Identifier: GPL-2.0
/*
 * Operations as commands of io_uring: every kind of ring, both forms of the
 * payload, links, fixed files, and rings or descriptors that go away early.
 */
#include "zcoll_test.h"
#include "ring.h"
#include "kselftest_harness.h"

#define COUNT	1000

FIXTURE(uring) {
	struct zt zt;
	int ep[2];
	int32_t buf[2][COUNT];
	struct zcoll_cmd cmd[2];
	struct io_uring ring;		/* 128-byte SQEs, for the other rank */
};

FIXTURE_SETUP(uring)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, 2, self->ep));
	ASSERT_EQ(0, ring_init(&self->ring, 16, IORING_SETUP_SQE128));
	for (int r = 0; r < 2; r++) {
		for (int i = 0; i < COUNT; i++)
			self->buf[r][i] = (r + 1) * i;
		self->cmd[r] = zt_sum(0, self->buf[r], COUNT);
	}
}

FIXTURE_TEARDOWN(uring)
{
	const char *leaks;

	io_uring_queue_exit(&self->ring);
	leaks = zt_leaks(&self->zt);
	EXPECT_STREQ("", leaks);
}

static unsigned int wrong_sums(const int32_t *buf)
{
	unsigned int wrong = 0;

	for (int i = 0; i < COUNT; i++)
		wrong += buf[i] != 3 * i;
	return wrong;
}

/* --- kinds of rings ------------------------------------------------------ */

FIXTURE(kind) {
	struct zt zt;
	int ep[2];
	int32_t buf[2][COUNT];
	struct zcoll_cmd cmd[2];
	struct io_uring ring;
	int made;
};

FIXTURE_VARIANT(kind) {
	unsigned int flags;
	unsigned char sqe_flags;
};

FIXTURE_VARIANT_ADD(kind, sqe64) { 0, 0 };
FIXTURE_VARIANT_ADD(kind, sqe128) { IORING_SETUP_SQE128, 0 };
FIXTURE_VARIANT_ADD(kind, sqe64_cqe32) { IORING_SETUP_CQE32, 0 };
FIXTURE_VARIANT_ADD(kind, sqe128_cqe32) { IORING_SETUP_SQE128 | IORING_SETUP_CQE32, 0 };
FIXTURE_VARIANT_ADD(kind, sqe64_async) { 0, IOSQE_ASYNC };
FIXTURE_VARIANT_ADD(kind, sqe128_async) { IORING_SETUP_SQE128, IOSQE_ASYNC };
FIXTURE_VARIANT_ADD(kind, sqe64_sqpoll) { IORING_SETUP_SQPOLL, 0 };
FIXTURE_VARIANT_ADD(kind, sqe128_sqpoll) { IORING_SETUP_SQPOLL | IORING_SETUP_SQE128, 0 };
FIXTURE_VARIANT_ADD(kind, sqe64_coop) { IORING_SETUP_COOP_TASKRUN, 0 };
FIXTURE_VARIANT_ADD(kind, sqe128_single_issuer) {
	IORING_SETUP_SQE128 | IORING_SETUP_SINGLE_ISSUER, 0
};
FIXTURE_VARIANT_ADD(kind, sqe64_defer_taskrun) {
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0
};
FIXTURE_VARIANT_ADD(kind, sqe128_defer_taskrun) {
	IORING_SETUP_SQE128 | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0
};

FIXTURE_SETUP(kind)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, 2, self->ep));
	self->made = ring_init(&self->ring, 64, variant->flags);
	for (int r = 0; r < 2; r++) {
		for (int i = 0; i < COUNT; i++)
			self->buf[r][i] = (r + 1) * i;
		self->cmd[r] = zt_sum(0, self->buf[r], COUNT);
	}
}

FIXTURE_TEARDOWN(kind)
{
	if (!self->made)
		io_uring_queue_exit(&self->ring);
	ZT_TEARDOWN(self);
}

#define NEED_RING() do {							\
	if (self->made == -EINVAL)						\
		SKIP(return, "this kernel has no such ring");			\
	ASSERT_EQ(0, self->made);						\
} while (0)

TEST_F(kind, both_ranks_on_one_ring)
{
	NEED_RING();
	for (int r = 0; r < 2; r++)
		ring_op(&self->ring, self->ep[r], &self->cmd[r], r)->flags |=
			variant->sqe_flags;
	ASSERT_LE(0, io_uring_submit(&self->ring));
	for (int r = 0; r < 2; r++) {
		EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	EXPECT_EQ(0, wrong_sums(self->buf[0]));
	EXPECT_EQ(0, wrong_sums(self->buf[1]));
}

TEST_F(kind, several_in_flight)
{
	static int32_t val[2][16];
	static struct zcoll_cmd cmd[2][16];
	unsigned int wrong = 0;

	NEED_RING();
	for (int r = 0; r < 2; r++) {
		for (int seq = 0; seq < 16; seq++) {
			val[r][seq] = (r + 1) * seq;
			cmd[r][seq] = zt_sum(seq, &val[r][seq], 1);
			ring_op(&self->ring, self->ep[r], &cmd[r][seq], seq)->flags |=
				variant->sqe_flags;
		}
	}
	ASSERT_LE(0, io_uring_submit(&self->ring));
	for (int i = 0; i < 32; i++) {
		ASSERT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	for (int seq = 0; seq < 16; seq++)
		wrong += val[0][seq] != 3 * seq || val[1][seq] != 3 * seq;
	EXPECT_EQ(0, wrong);
}

/* The owner sleeps in io_uring_enter() when the other rank completes it */
TEST_F(kind, completion_wakes_the_sleeping_owner)
{
	struct zt_call call;

	NEED_RING();
	ring_op(&self->ring, self->ep[0], &self->cmd[0], 0)->flags |= variant->sqe_flags;
	ASSERT_LE(0, io_uring_submit(&self->ring));
	EXPECT_EQ(-ETIME, ring_next(&self->ring, ZT_QUIET_MS, NULL));
	ASSERT_EQ(0, zt_start_op(&call, self->ep[1], &self->cmd[1]));
	EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	EXPECT_EQ(0, zt_finish(&call, ZT_LONG_MS));
	EXPECT_EQ(0, wrong_sums(self->buf[0]));
}

TEST_F(kind, refusal_is_the_completions_result)
{
	NEED_RING();
	self->cmd[0].root = 1;
	ring_op(&self->ring, self->ep[0], &self->cmd[0], 0)->flags |= variant->sqe_flags;
	ASSERT_LE(0, io_uring_submit(&self->ring));
	EXPECT_EQ(-EINVAL, ring_next(&self->ring, ZT_LONG_MS, NULL));
}

/* Work too large for the last caller is done by the driver's workers */
TEST_F(kind, large_operation)
{
	size_t count = 300000, len = count * sizeof(int32_t);
	int32_t *big[2] = { zt_pages(len), zt_pages(len) };
	unsigned int wrong = 0;

	NEED_RING();
	for (int r = 0; r < 2; r++) {
		for (size_t i = 0; i < count; i++)
			big[r][i] = (r + 1) * i;
		self->cmd[r] = zt_sum(0, big[r], count);
		ring_op(&self->ring, self->ep[r], &self->cmd[r], r)->flags |=
			variant->sqe_flags;
	}
	ASSERT_LE(0, io_uring_submit(&self->ring));
	for (int r = 0; r < 2; r++) {
		EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	for (int r = 0; r < 2; r++)
		for (size_t i = 0; i < count; i++)
			wrong += big[r][i] != (int32_t)(3 * i);
	EXPECT_EQ(0, wrong);
}

/* Kernels before 7 refuse, later ones do not poll for a command that cannot be polled */
TEST_F(uring, iopoll_ring_is_refused_or_not_polled)
{
	struct io_uring ring;
	int ret[2] = {};

	ASSERT_EQ(0, ring_init(&ring, 2, IORING_SETUP_IOPOLL));
	for (int r = 0; r < 2; r++) {
		self->cmd[r] = zt_barrier(0);
		ring_op(&ring, self->ep[r], &self->cmd[r], 0);
		ret[r] = io_uring_submit(&ring);
	}
	for (int r = 0; r < 2; r++)
		if (ret[r] == 1)
			ret[r] = ring_next(&ring, ZT_LONG_MS, NULL);
	io_uring_queue_exit(&ring);
	EXPECT_TRUE(ret[0] == -EOPNOTSUPP || ret[0] == -EINVAL || !ret[0]) TH_LOG("%d", ret[0]);
	EXPECT_EQ(ret[0], ret[1]);
}

/* --- the payload --------------------------------------------------------- */

TEST_F(uring, payload_is_not_read_after_submission)
{
	struct io_uring ring;
	struct zcoll_cmd cmd = self->cmd[0];
	struct io_uring_sqe *sqe;

	ASSERT_EQ(0, ring_init(&ring, 2, 0));
	ASSERT_EQ(0, ring_send(&ring, self->ep[0], &cmd, 0));
	memset(&cmd, 0xff, sizeof(cmd));
	sqe = ring_op(&self->ring, self->ep[1], &self->cmd[1], 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	memset(ring_payload(sqe), 0xff, sizeof(struct zcoll_cmd));
	EXPECT_EQ(0, ring_next(&ring, ZT_LONG_MS, NULL));
	EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	EXPECT_EQ(0, wrong_sums(self->buf[0]));
	EXPECT_EQ(0, wrong_sums(self->buf[1]));
	io_uring_queue_exit(&ring);
}

TEST_F(uring, in_place_payload_is_not_read_after_submission)
{
	struct io_uring_sqe *sqe;

	sqe = ring_op(&self->ring, self->ep[0], &self->cmd[0], 0);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	memset(ring_payload(sqe), 0xff, sizeof(struct zcoll_cmd));
	ASSERT_EQ(0, zt_allreduce(self->ep[1], &self->cmd[1]));
	EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	EXPECT_EQ(0, wrong_sums(self->buf[0]));
}

/* --- several rings ------------------------------------------------------- */

TEST_F(uring, one_rank_on_two_rings)
{
	struct zcoll_cmd second[2] = { zt_barrier(1), zt_barrier(1) };
	struct io_uring other;
	uint64_t data;

	ASSERT_EQ(0, ring_init(&other, 4, 0));
	ASSERT_EQ(0, ring_send(&other, self->ep[0], &second[0], 1));
	ASSERT_EQ(0, ring_send(&self->ring, self->ep[0], &self->cmd[0], 0));
	ASSERT_EQ(0, zt_allreduce(self->ep[1], &self->cmd[1]));
	EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, &data));
	EXPECT_EQ(0, data);
	ASSERT_EQ(0, zt_allreduce(self->ep[1], &second[1]));
	EXPECT_EQ(0, ring_next(&other, ZT_LONG_MS, &data));
	EXPECT_EQ(1, data);
	io_uring_queue_exit(&other);
}

TEST_F(uring, command_may_be_waited_for_by_ioctl)
{
	ASSERT_EQ(0, ring_send_in(&self->ring, self->ep[0], &self->cmd[0], 0));
	ASSERT_EQ(0, ring_send_in(&self->ring, self->ep[1], &self->cmd[1], 1));
	EXPECT_EQ(0, zt_wait(self->ep[0], 0, ZCOLL_WAIT_FOREVER));
	EXPECT_EQ(0, wrong_sums(self->buf[0]));
	EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
}

/* --- links --------------------------------------------------------------- */

TEST_F(uring, linked_read_allreduce_write)
{
	int in = memfd_create("in", MFD_CLOEXEC);
	int out = memfd_create("out", MFD_CLOEXEC);
	size_t len = sizeof(self->buf[0]);
	struct io_uring_sqe *sqe;
	int32_t *result;

	ASSERT_EQ(len, write(in, self->buf[0], len));
	memset(self->buf[0], 0, len);
	ASSERT_EQ(0, ring_send(&self->ring, self->ep[1], &self->cmd[1], 9));
	sqe = ring_sqe(&self->ring);
	io_uring_prep_read(sqe, in, self->buf[0], len, 0);
	sqe->flags |= IOSQE_IO_LINK;
	ring_op(&self->ring, self->ep[0], &self->cmd[0], 1)->flags |= IOSQE_IO_LINK;
	sqe = ring_sqe(&self->ring);
	io_uring_prep_write(sqe, out, self->buf[0], len, 0);
	ASSERT_EQ(3, io_uring_submit(&self->ring));
	for (int i = 0; i < 4; i++) {
		ASSERT_LE(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	result = mmap(NULL, len, PROT_READ, MAP_SHARED, out, 0);
	ASSERT_NE(MAP_FAILED, result);
	EXPECT_EQ(0, wrong_sums(result));
	close(in);
	close(out);
}

TEST_F(uring, failed_command_breaks_its_link)
{
	struct io_uring_sqe *sqe;
	uint64_t data;
	int ret;

	self->cmd[0].root = 1;
	ring_op(&self->ring, self->ep[0], &self->cmd[0], 1)->flags |= IOSQE_IO_LINK;
	sqe = ring_sqe(&self->ring);
	io_uring_prep_nop(sqe);
	sqe->user_data = 2;
	ASSERT_LE(1, io_uring_submit(&self->ring));
	for (int i = 0; i < 2; i++) {
		ret = ring_next(&self->ring, ZT_LONG_MS, &data);
		EXPECT_EQ(data == 1 ? -EINVAL : -ECANCELED, ret);
	}
}

/*
 * A linked timeout cannot end a command of a driver: it passes, and the command
 * goes on. Deadlines and ZCOLL_IOC_CANCEL are there for that.
 */
TEST_F(uring, linked_timeout_does_not_end_a_command)
{
	struct __kernel_timespec ts = { .tv_nsec = 50 * NS_PER_MS };
	struct io_uring_sqe *sqe;
	uint64_t data;
	int ret;

	ring_op(&self->ring, self->ep[0], &self->cmd[0], 1)->flags |= IOSQE_IO_LINK;
	sqe = ring_sqe(&self->ring);
	io_uring_prep_link_timeout(sqe, &ts, 0);
	sqe->user_data = 2;
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	ret = ring_next(&self->ring, ZT_LONG_MS, &data);
	EXPECT_EQ(2, data) TH_LOG("result %d", ret);
	EXPECT_EQ(-ETIME, ring_next(&self->ring, ZT_QUIET_MS, NULL));
	EXPECT_EQ(ZCOLL_STATE_WAITING, zt_state(self->ep[0], 0));
	ASSERT_EQ(0, zt_allreduce(self->ep[1], &self->cmd[1]));
	EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, &data));
	EXPECT_EQ(1, data);
	EXPECT_EQ(0, wrong_sums(self->buf[0]));
}

/* Nor can an asynchronous cancel; the operation stays whole */
TEST_F(uring, async_cancel_does_not_end_a_command)
{
	struct io_uring_sqe *sqe;
	uint64_t data;

	ASSERT_EQ(0, ring_send_in(&self->ring, self->ep[0], &self->cmd[0], 1));
	sqe = ring_sqe(&self->ring);
	io_uring_prep_cancel64(sqe, 1, 0);
	sqe->user_data = 2;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_GT(0, ring_next(&self->ring, ZT_LONG_MS, &data));
	EXPECT_EQ(2, data);
	ASSERT_EQ(0, zt_allreduce(self->ep[1], &self->cmd[1]));
	EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, &data));
	EXPECT_EQ(1, data);
}

TEST_F(uring, zcoll_cancel_ends_a_command)
{
	ASSERT_EQ(0, ring_send_in(&self->ring, self->ep[0], &self->cmd[0], 1));
	ASSERT_EQ(0, zt_cancel(self->ep[0], 0));
	EXPECT_EQ(-ECANCELED, ring_next(&self->ring, ZT_LONG_MS, NULL));
}

/* --- descriptors and rings that go away ---------------------------------- */

TEST_F(uring, fixed_file_outlives_its_descriptor)
{
	ASSERT_EQ(0, io_uring_register_files(&self->ring, self->ep, 2));
	zt_close_ep(&self->zt, self->ep[0]);
	zt_close_ep(&self->zt, self->ep[1]);
	for (int r = 0; r < 2; r++)
		ring_op(&self->ring, r, &self->cmd[r], r)->flags |= IOSQE_FIXED_FILE;
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	for (int r = 0; r < 2; r++) {
		EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	}
	EXPECT_EQ(0, wrong_sums(self->buf[0]));
}

/* The command in flight holds the endpoint */
TEST_F(uring, descriptor_closed_with_a_command_in_flight)
{
	ASSERT_EQ(0, ring_send_in(&self->ring, self->ep[0], &self->cmd[0], 0));
	zt_close_ep(&self->zt, self->ep[0]);
	EXPECT_EQ(-ETIME, ring_next(&self->ring, ZT_QUIET_MS, NULL));
	ASSERT_EQ(0, zt_allreduce(self->ep[1], &self->cmd[1]));
	EXPECT_EQ(0, ring_next(&self->ring, ZT_LONG_MS, NULL));
	EXPECT_EQ(0, wrong_sums(self->buf[0]));
}

/* Nobody is left to complete to, so the communicator is revoked */
TEST_F(uring, ring_closed_with_a_command_in_flight)
{
	struct io_uring ring;

	ASSERT_EQ(0, ring_init(&ring, 2, 0));
	ASSERT_EQ(0, ring_send_in(&ring, self->ep[0], &self->cmd[0], 0));
	io_uring_queue_exit(&ring);
	EXPECT_TRUE(zt_until(ZT_SOON_MS, zt_revoked(self->ep[1])));
	EXPECT_EQ(-ECANCELED, zt_allreduce(self->ep[1], &self->cmd[1]));
}

TEST_F(uring, ring_closed_after_its_commands_ended)
{
	struct zcoll_cmd later[2] = { zt_barrier(1), zt_barrier(1) };
	struct io_uring ring;
	struct zt_call call;

	ASSERT_EQ(0, ring_init(&ring, 2, 0));
	ASSERT_EQ(0, ring_send_in(&ring, self->ep[0], &self->cmd[0], 0));
	ASSERT_EQ(0, zt_allreduce(self->ep[1], &self->cmd[1]));
	ASSERT_EQ(0, ring_next(&ring, ZT_LONG_MS, NULL));
	ASSERT_EQ(0, zt_start_op(&call, self->ep[0], &later[0]));
	io_uring_queue_exit(&ring);
	EXPECT_EQ(-ETIME, zt_finish(&call, 3 * ZT_QUIET_MS));
	EXPECT_EQ(0, zt_allreduce(self->ep[1], &later[1]));
	EXPECT_EQ(0, zt_finish(&call, ZT_LONG_MS));
}

/* Everything a process has goes away at once, in the order of exit */
TEST_F(uring, process_exits_with_a_command_in_flight)
{
	uint8_t key[16];
	pid_t pid;
	int ep;

	zt_key(key);
	ep = zt_join(&self->zt, key, 1, 2);
	ASSERT_LE(0, ep);
	pid = zt_fork(&self->zt);
	if (!pid) {
		struct zcoll_cmd cmd = zt_barrier(0);
		struct io_uring ring;

		ep = zt_join(&self->zt, key, 0, 2);
		if (ep < 0 || ring_init(&ring, 2, 0))
			_exit(99);
		if (io_uring_register_files(&ring, &ep, 1))
			_exit(98);
		close(ep);
		ring_op(&ring, 0, &cmd, 0)->flags |= IOSQE_FIXED_FILE;
		_exit(io_uring_submit(&ring) == 1 ? 0 : 97);
	}
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	self->cmd[1] = zt_barrier(0);
	EXPECT_EQ(-EOWNERDEAD, zt_allreduce(ep, &self->cmd[1]));
}

ZT_MAIN
