// SPDX-License-Identifier: GPL-2.0
/*
 * Looking at operations and giving them up: WAIT, STATUS, CANCEL, ABORT, and
 * calls that a signal interrupts.
 */
#include "zcoll_test.h"
#include "ring.h"
#include "kselftest_harness.h"

#define N	5

FIXTURE(wait) {
	struct zt zt;
	struct io_uring ring;
	int ep[N];
	struct zcoll_cmd cmd[N];
	int32_t buf[N];
	struct zcoll_status st;
	char text[ZCOLL_TEXT_MAX];
};

FIXTURE_SETUP(wait)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, N, self->ep));
	ASSERT_EQ(0, ring_init(&self->ring, 64, 0));
	for (int r = 0; r < N; r++) {
		self->buf[r] = r;
		self->cmd[r] = zt_sum(0, &self->buf[r], 1);
	}
}

FIXTURE_TEARDOWN(wait)
{
	const char *leaks = zt_leaks(&self->zt);

	io_uring_queue_exit(&self->ring);
	EXPECT_STREQ("", leaks);
}

#define SEND(rank) \
	ASSERT_EQ(0, ring_send_in(&self->ring, self->ep[rank], &self->cmd[rank], rank))

#define SEND_FROM(first) do {							\
	for (int __r = first; __r < N; __r++)					\
		SEND(__r);							\
} while (0)

#define EXPECT_COMPLETIONS(n, result) do {					\
	for (int __i = 0; __i < (n); __i++)					\
		EXPECT_EQ(result, ring_next(&self->ring, ZT_LONG_MS, NULL));	\
} while (0)

#define SUM	(N * (N - 1) / 2)

/* --- WAIT ---------------------------------------------------------------- */

TEST_F(wait, timeout_0_only_looks)
{
	SEND(0);
	EXPECT_EQ(-ETIMEDOUT, zt_wait(self->ep[0], 0, 0));
	SEND_FROM(1);
	EXPECT_COMPLETIONS(N, 0);
	EXPECT_EQ(0, zt_wait(self->ep[0], 0, 0));
}

TEST_F(wait, timeout_passes_and_nothing_is_lost)
{
	uint64_t start = zt_now_ms(), took;

	SEND(0);
	EXPECT_EQ(-ETIMEDOUT, zt_wait(self->ep[0], 0, 100 * NS_PER_MS));
	took = zt_now_ms() - start;
	EXPECT_LE(100, took);
	EXPECT_GE(100 + ZT_SOON_MS, took);
	SEND_FROM(1);
	EXPECT_EQ(0, zt_wait(self->ep[0], 0, ZCOLL_WAIT_FOREVER));
	EXPECT_EQ(SUM, self->buf[0]);
	EXPECT_COMPLETIONS(N, 0);
}

TEST_F(wait, forever_ends_with_the_operation)
{
	struct zcoll_wait arg = {
		.size = sizeof(arg),
		.timeout_ns = ZCOLL_WAIT_FOREVER,
	};
	struct zt_call call;

	SEND(0);
	arg.result = 77;
	ASSERT_EQ(0, zt_start(&call, self->ep[0], ZCOLL_IOC_WAIT, &arg));
	EXPECT_EQ(-ETIME, zt_finish(&call, ZT_QUIET_MS));
	SEND_FROM(1);
	EXPECT_EQ(0, zt_finish(&call, ZT_LONG_MS));
	EXPECT_EQ(0, arg.result);
	EXPECT_EQ(SUM, self->buf[0]);
}

TEST_F(wait, gives_the_error_of_a_failed_operation)
{
	struct zcoll_wait arg = {
		.size = sizeof(arg),
		.timeout_ns = ZCOLL_WAIT_FOREVER,
	};
	struct zt_call call;

	SEND(0);
	ASSERT_EQ(0, zt_start(&call, self->ep[0], ZCOLL_IOC_WAIT, &arg));
	EXPECT_EQ(-ETIME, zt_finish(&call, ZT_QUIET_MS));
	ASSERT_EQ(0, zt_abort(self->ep[1]));
	EXPECT_EQ(0, zt_finish(&call, ZT_SOON_MS));
	EXPECT_EQ(-ECANCELED, arg.result);
	EXPECT_COMPLETIONS(1, -ECANCELED);
}

TEST_F(wait, operation_that_only_others_submitted_is_enoent)
{
	SEND(1);
	EXPECT_EQ(-ENOENT, zt_wait(self->ep[0], 0, 0));
	EXPECT_EQ(-ENOENT, zt_wait(self->ep[0], 0, ZCOLL_WAIT_FOREVER));
}

TEST_F(wait, operation_nobody_submitted_is_enoent)
{
	EXPECT_EQ(-ENOENT, zt_wait(self->ep[0], 3, 0));
	EXPECT_EQ(-ENOENT, zt_wait(self->ep[0], 1ULL << 50, 0));
}

TEST_F(wait, refused_operation_is_enoent)
{
	self->cmd[0].root = 1;
	ASSERT_EQ(-EINVAL, zt_allreduce(self->ep[0], &self->cmd[0]));
	EXPECT_EQ(-ENOENT, zt_wait(self->ep[0], 0, 0));
}

TEST_F(wait, result_is_kept_for_a_window)
{
	unsigned int window = self->zt.base.window;
	struct zcoll_cmd cmd;
	int ep;

	ASSERT_EQ(0, zt_comm(&self->zt, 1, &ep));
	for (unsigned int seq = 0; seq < window; seq++) {
		cmd = zt_barrier(seq);
		ASSERT_EQ(0, zt_allreduce(ep, &cmd));
		ASSERT_EQ(0, zt_wait(ep, 0, 0));
	}
	for (unsigned int seq = window; seq < 2 * window; seq++) {
		cmd = zt_barrier(seq);
		ASSERT_EQ(0, zt_allreduce(ep, &cmd));
	}
	EXPECT_EQ(-ENOENT, zt_wait(ep, 0, 0));
	EXPECT_EQ(0, zt_wait(ep, 2 * window - 1, 0));
}

TEST_F(wait, many_threads_on_one_operation)
{
	struct zcoll_wait arg[8];
	struct zt_call call[8];

	SEND(0);
	for (int i = 0; i < 8; i++) {
		arg[i] = (struct zcoll_wait) {
			.size = sizeof(arg[i]),
			.timeout_ns = ZCOLL_WAIT_FOREVER,
		};
		ASSERT_EQ(0, zt_start(&call[i], self->ep[0], ZCOLL_IOC_WAIT, &arg[i]));
	}
	SEND_FROM(1);
	for (int i = 0; i < 8; i++) {
		EXPECT_EQ(0, zt_finish(&call[i], ZT_LONG_MS));
		EXPECT_EQ(0, arg[i].result);
	}
}

/* --- STATUS -------------------------------------------------------------- */

TEST_F(wait, status_of_an_operation_nobody_called)
{
	ASSERT_EQ(0, zt_status(self->ep[3], 2, &self->st, self->text));
	EXPECT_EQ(ZCOLL_STATE_NONE, self->st.state);
	EXPECT_EQ(0, self->st.result);
	EXPECT_EQ(3, self->st.rank);
	EXPECT_EQ(N, self->st.nranks);
	EXPECT_EQ(0, self->st.arrived);
	EXPECT_EQ(0, self->st.oldest);
}

TEST_F(wait, status_names_the_ranks_that_are_missing)
{
	uint32_t missing[N + 1];

	SEND(1);
	SEND(3);
	memset(missing, 0xff, sizeof(missing));
	self->st = (struct zcoll_status) {
		.size = sizeof(self->st),
		.missing = (uintptr_t)missing,
		.missing_len = N,
		.text = (uintptr_t)self->text,
		.text_len = sizeof(self->text),
	};
	ASSERT_EQ(0, zt_ioctl(self->ep[0], ZCOLL_IOC_STATUS, &self->st));
	EXPECT_EQ(ZCOLL_STATE_WAITING, self->st.state);
	EXPECT_EQ(2, self->st.arrived);
	EXPECT_EQ(0, missing[0]);
	EXPECT_EQ(2, missing[1]);
	EXPECT_EQ(4, missing[2]);
	EXPECT_EQ(UINT32_MAX, missing[3]);
	EXPECT_NE(NULL, strchr(self->text, '0')) TH_LOG("%s", self->text);
	EXPECT_NE(NULL, strchr(self->text, '2')) TH_LOG("%s", self->text);
	EXPECT_NE(NULL, strchr(self->text, '4')) TH_LOG("%s", self->text);
}

TEST_F(wait, status_fills_as_many_missing_ranks_as_fit)
{
	uint32_t missing[3];

	SEND(1);
	memset(missing, 0xff, sizeof(missing));
	self->st = (struct zcoll_status) {
		.size = sizeof(self->st),
		.missing = (uintptr_t)missing,
		.missing_len = 2,
	};
	ASSERT_EQ(0, zt_ioctl(self->ep[0], ZCOLL_IOC_STATUS, &self->st));
	EXPECT_EQ(1, self->st.arrived);
	EXPECT_EQ(0, missing[0]);
	EXPECT_EQ(2, missing[1]);
	EXPECT_EQ(UINT32_MAX, missing[2]);
}

/* From the last call until the bytes are moved; the call itself does not wait */
TEST_F(wait, status_of_a_running_operation)
{
	size_t len = 16 << 20;
	int state;

	for (int r = 0; r < N; r++) {
		int32_t *big = zt_pages(len);

		memset(big, 1, len);
		self->cmd[r] = zt_sum(0, big, len / sizeof(*big));
		ASSERT_EQ(0, ring_send(&self->ring, self->ep[r], &self->cmd[r], r));
	}
	state = zt_state(self->ep[0], 0);
	EXPECT_COMPLETIONS(N, 0);
	if (state == ZCOLL_STATE_DONE)
		SKIP(return, "the operation was too quick to be seen");
	EXPECT_EQ(ZCOLL_STATE_RUNNING, state);
	EXPECT_EQ(ZCOLL_STATE_DONE, zt_state(self->ep[0], 0));
}

TEST_F(wait, status_of_a_finished_operation)
{
	SEND_FROM(0);
	EXPECT_COMPLETIONS(N, 0);
	ASSERT_EQ(0, zt_status(self->ep[0], 0, &self->st, self->text));
	EXPECT_EQ(ZCOLL_STATE_DONE, self->st.state);
	EXPECT_EQ(0, self->st.result);
	EXPECT_EQ(N, self->st.arrived);
	EXPECT_EQ(1, self->st.oldest);
}

TEST_F(wait, status_of_a_refused_operation_is_the_ranks_own)
{
	self->cmd[0].dtype = 0;
	ASSERT_EQ(-EINVAL, zt_allreduce(self->ep[0], &self->cmd[0]));
	ASSERT_EQ(0, zt_status(self->ep[0], 0, &self->st, self->text));
	EXPECT_EQ(ZCOLL_STATE_REJECTED, self->st.state);
	EXPECT_EQ(-EINVAL, self->st.result);
	ASSERT_EQ(0, zt_status(self->ep[1], 0, &self->st, self->text));
	EXPECT_EQ(ZCOLL_STATE_NONE, self->st.state);
}

TEST_F(wait, status_after_a_corrected_call_is_no_longer_rejected)
{
	self->cmd[0].dtype = 0;
	ASSERT_EQ(-EINVAL, zt_allreduce(self->ep[0], &self->cmd[0]));
	self->cmd[0].dtype = ZCOLL_INT32;
	SEND(0);
	EXPECT_EQ(ZCOLL_STATE_WAITING, zt_state(self->ep[0], 0));
	SEND_FROM(1);
	EXPECT_COMPLETIONS(N, 0);
	EXPECT_EQ(ZCOLL_STATE_DONE, zt_state(self->ep[0], 0));
}

TEST_F(wait, status_of_the_communicator)
{
	uint32_t missing[3] = { 99, 99, 99 };
	uint8_t key[16];
	int ep;

	zt_key(key);
	ep = zt_join(&self->zt, key, 1, 3);
	ASSERT_LE(0, ep);
	self->st = (struct zcoll_status) {
		.size = sizeof(self->st),
		.flags = ZCOLL_STATUS_COMM,
		.missing = (uintptr_t)missing,
		.missing_len = 3,
	};
	ASSERT_EQ(0, zt_ioctl(ep, ZCOLL_IOC_STATUS, &self->st));
	EXPECT_EQ(ZCOLL_STATE_WAITING, self->st.state);
	EXPECT_EQ(1, self->st.rank);
	EXPECT_EQ(3, self->st.nranks);
	EXPECT_EQ(1, self->st.arrived);
	EXPECT_EQ(0, missing[0]);
	EXPECT_EQ(2, missing[1]);
	EXPECT_EQ(99, missing[2]);
	ASSERT_LE(0, zt_join(&self->zt, key, 0, 3));
	ASSERT_LE(0, zt_join(&self->zt, key, 2, 3));
	ASSERT_EQ(0, zt_comm_status(ep, &self->st, self->text));
	EXPECT_EQ(ZCOLL_STATE_RUNNING, self->st.state);
	EXPECT_EQ(0, self->st.result);
	EXPECT_EQ(3, self->st.arrived);
	ASSERT_EQ(0, zt_abort(ep));
	ASSERT_EQ(0, zt_comm_status(ep, &self->st, self->text));
	EXPECT_EQ(ZCOLL_STATE_DONE, self->st.state);
	EXPECT_EQ(-ECANCELED, self->st.result);
	EXPECT_NE('\0', self->text[0]);
}

/* --- CANCEL and ABORT ---------------------------------------------------- */

TEST_F(wait, cancel_revokes_for_all)
{
	SEND(0);
	SEND(1);
	ASSERT_EQ(0, zt_cancel(self->ep[0], 0));
	EXPECT_COMPLETIONS(2, -ECANCELED);
	EXPECT_EQ(-ECANCELED, zt_allreduce(self->ep[2], &self->cmd[2]));
	ASSERT_EQ(0, zt_comm_status(self->ep[2], &self->st, self->text));
	EXPECT_EQ(-ECANCELED, self->st.result);
	EXPECT_NE(NULL, strchr(self->text, '0')) TH_LOG("%s", self->text);
}

TEST_F(wait, cancel_of_another_ranks_operation_is_enoent)
{
	SEND(1);
	EXPECT_EQ(-ENOENT, zt_cancel(self->ep[0], 0));
	EXPECT_EQ(0, zt_revoked(self->ep[0]));
}

TEST_F(wait, cancel_of_a_finished_operation_is_enoent)
{
	SEND_FROM(0);
	EXPECT_COMPLETIONS(N, 0);
	EXPECT_EQ(-ENOENT, zt_cancel(self->ep[0], 0));
	EXPECT_EQ(0, zt_revoked(self->ep[0]));
}

TEST_F(wait, cancel_of_an_operation_nobody_called_is_enoent)
{
	EXPECT_EQ(-ENOENT, zt_cancel(self->ep[0], 0));
	EXPECT_EQ(-ENOENT, zt_cancel(self->ep[0], 1ULL << 40));
	EXPECT_EQ(0, zt_revoked(self->ep[0]));
}

TEST_F(wait, abort_ends_all_operations_of_all_ranks)
{
	struct zcoll_cmd later = zt_barrier(1);
	struct zt_call call;

	SEND(0);
	SEND(1);
	ASSERT_EQ(0, ring_send_in(&self->ring, self->ep[0], &later, 9));
	ASSERT_EQ(0, zt_start_op(&call, self->ep[2], &self->cmd[2]));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep[0], 0) == 3));
	ASSERT_EQ(0, zt_abort(self->ep[4]));
	EXPECT_COMPLETIONS(3, -ECANCELED);
	EXPECT_EQ(-ECANCELED, zt_finish(&call, ZT_SOON_MS));
	EXPECT_EQ(-ECANCELED, zt_allreduce(self->ep[3], &self->cmd[3]));
	for (int r = 0; r < N; r++) {
		EXPECT_EQ(r, self->buf[r]);
	}
}

TEST_F(wait, abort_twice_keeps_the_first_cause)
{
	char first[ZCOLL_TEXT_MAX];

	SEND(0);
	ASSERT_EQ(0, zt_cancel(self->ep[0], 0));
	ASSERT_EQ(0, zt_comm_status(self->ep[0], &self->st, first));
	zt_abort(self->ep[1]);
	ASSERT_EQ(0, zt_comm_status(self->ep[0], &self->st, self->text));
	EXPECT_STREQ(first, self->text);
	EXPECT_EQ(-ECANCELED, self->st.result);
	EXPECT_COMPLETIONS(1, -ECANCELED);
}

TEST_F(wait, operations_before_an_abort_keep_their_success)
{
	SEND_FROM(0);
	EXPECT_COMPLETIONS(N, 0);
	ASSERT_EQ(0, zt_abort(self->ep[0]));
	EXPECT_EQ(0, zt_wait(self->ep[1], 0, 0));
	EXPECT_EQ(SUM, self->buf[1]);
}

/* --- signals ------------------------------------------------------------- */

static void on_signal(int sig)
{
	(void)sig;
}

static void handle_usr1(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	sigaction(SIGUSR1, &sa, NULL);
}

/* Rank 0 blocks in its operation until the signal has surely met it there */
#define BLOCK_RANK_0(call)							\
	ASSERT_EQ(0, zt_start_op(call, self->ep[0], &self->cmd[0]));		\
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep[0], 0) == 1));	\
	zt_sleep_ms(ZT_QUIET_MS)

TEST_F(wait, interrupted_call_is_picked_up_by_the_same_call)
{
	struct zt_call call;

	handle_usr1(0);
	BLOCK_RANK_0(&call);
	pthread_kill(call.thread, SIGUSR1);
	EXPECT_EQ(-EINTR, zt_finish(&call, ZT_SOON_MS));
	EXPECT_EQ(ZCOLL_STATE_WAITING, zt_state(self->ep[0], 0));
	ASSERT_EQ(0, zt_start_op(&call, self->ep[0], &self->cmd[0]));
	EXPECT_EQ(-ETIME, zt_finish(&call, ZT_QUIET_MS));
	SEND_FROM(1);
	EXPECT_EQ(0, zt_finish(&call, ZT_LONG_MS));
	EXPECT_EQ(SUM, self->buf[0]);
}

TEST_F(wait, interrupted_call_is_picked_up_by_wait)
{
	struct zt_call call;

	handle_usr1(0);
	BLOCK_RANK_0(&call);
	pthread_kill(call.thread, SIGUSR1);
	EXPECT_EQ(-EINTR, zt_finish(&call, ZT_SOON_MS));
	SEND_FROM(1);
	EXPECT_EQ(0, zt_wait(self->ep[0], 0, ZCOLL_WAIT_FOREVER));
	EXPECT_EQ(SUM, self->buf[0]);
}

TEST_F(wait, interrupted_call_is_picked_up_after_the_end)
{
	struct zt_call call;

	handle_usr1(0);
	BLOCK_RANK_0(&call);
	pthread_kill(call.thread, SIGUSR1);
	EXPECT_EQ(-EINTR, zt_finish(&call, ZT_SOON_MS));
	SEND_FROM(1);
	EXPECT_COMPLETIONS(N - 1, 0);
	EXPECT_EQ(0, zt_allreduce(self->ep[0], &self->cmd[0]));
	EXPECT_EQ(SUM, self->buf[0]);
}

TEST_F(wait, call_restarts_by_itself_with_sa_restart)
{
	struct zt_call call;

	handle_usr1(SA_RESTART);
	BLOCK_RANK_0(&call);
	for (int i = 0; i < 5; i++) {
		pthread_kill(call.thread, SIGUSR1);
		EXPECT_EQ(-ETIME, zt_finish(&call, ZT_QUIET_MS / 2));
	}
	SEND_FROM(1);
	EXPECT_EQ(0, zt_finish(&call, ZT_LONG_MS));
	EXPECT_EQ(SUM, self->buf[0]);
}

TEST_F(wait, wait_is_interrupted_by_a_signal)
{
	struct zcoll_wait arg = {
		.size = sizeof(arg),
		.timeout_ns = ZCOLL_WAIT_FOREVER,
	};
	struct zt_call call;

	handle_usr1(0);
	SEND(0);
	ASSERT_EQ(0, zt_start(&call, self->ep[0], ZCOLL_IOC_WAIT, &arg));
	EXPECT_EQ(-ETIME, zt_finish(&call, ZT_QUIET_MS));
	pthread_kill(call.thread, SIGUSR1);
	EXPECT_EQ(-EINTR, zt_finish(&call, ZT_SOON_MS));
	SEND_FROM(1);
	EXPECT_COMPLETIONS(N, 0);
}

TEST_F(wait, interrupted_wait_tells_what_is_left)
{
	struct zcoll_wait arg = {
		.size = sizeof(arg),
		.timeout_ns = 3600 * 1000 * NS_PER_MS,
	};
	uint64_t most = arg.timeout_ns - ZT_QUIET_MS * NS_PER_MS;
	struct zt_call call;

	handle_usr1(0);
	SEND(0);
	ASSERT_EQ(0, zt_start(&call, self->ep[0], ZCOLL_IOC_WAIT, &arg));
	EXPECT_EQ(-ETIME, zt_finish(&call, ZT_QUIET_MS + 50));
	pthread_kill(call.thread, SIGUSR1);
	EXPECT_EQ(-EINTR, zt_finish(&call, ZT_SOON_MS));
	EXPECT_GE(most, arg.timeout_ns);
	EXPECT_LE(most - 2 * ZT_LONG_MS * NS_PER_MS, arg.timeout_ns);
	SEND_FROM(1);
	EXPECT_EQ(0, zt_ioctl(self->ep[0], ZCOLL_IOC_WAIT, &arg));
	EXPECT_EQ(0, arg.result);
	EXPECT_COMPLETIONS(N, 0);
}

/* A debugger or job control stops and continues a process: nothing is seen */
TEST_F(wait, stop_and_continue_is_not_seen)
{
	uint8_t key[16];
	pid_t pid;
	int ep;

	zt_key(key);
	pid = zt_fork(&self->zt);
	if (!pid) {
		struct zcoll_cmd cmd = zt_barrier(0);

		ep = zt_join(&self->zt, key, 0, 2);
		_exit(-zt_allreduce(ep, &cmd));
	}
	ep = zt_join(&self->zt, key, 1, 2);
	ASSERT_LE(0, ep);
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(ep, 0) == 1));
	kill(pid, SIGSTOP);
	zt_sleep_ms(ZT_QUIET_MS);
	kill(pid, SIGCONT);
	EXPECT_EQ(-ETIME, zt_reap(pid, ZT_QUIET_MS));
	self->cmd[0] = zt_barrier(0);
	EXPECT_EQ(0, zt_allreduce(ep, &self->cmd[0]));
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
}

ZT_MAIN
