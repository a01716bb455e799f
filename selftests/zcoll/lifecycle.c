// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that die, exit, exec, fork, stop or spin while others count on them.
 *
 * A *victim* is a child that joins as one rank and does something fatal; the
 * test itself is the *survivor*, whose operations must end with an error within
 * a second. The survivor joins first, so that it is there to be told.
 */
#include "zcoll_test.h"
#include "ring.h"
#include "kselftest_harness.h"

/* What children and test tell each other */
struct board {
	atomic_int step;		/* children count themselves in here */
	atomic_int go;
	atomic_int result[8];
};

FIXTURE(life) {
	struct zt zt;
	uint8_t key[16];
	struct board *board;
	int ep;				/* the survivor's */
	struct zcoll_cmd cmd;
	struct zt_call call;
	struct zcoll_status st;
	char text[ZCOLL_TEXT_MAX];
};

FIXTURE_SETUP(life)
{
	ZT_SETUP(self);
	zt_key(self->key);
	self->board = zt_shared(sizeof(*self->board));
	self->cmd = zt_barrier(0);
}

FIXTURE_TEARDOWN(life)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	ZT_TEARDOWN(self);
}

/* The survivor is rank 0 of @n */
#define JOIN_SURVIVOR(n) do {							\
	self->ep = zt_join(&self->zt, self->key, 0, n);				\
	ASSERT_LE(0, self->ep);							\
} while (0)

/* Death has a bound: from @since until the survivor's call has ended */
#define EXPECT_SOON(since) EXPECT_GE((since) + ZT_SOON_MS, self->call.ended_ms)

/* --- death --------------------------------------------------------------- */

TEST_F(life, killed_before_it_called)
{
	uint64_t since;
	pid_t pid;

	JOIN_SURVIVOR(2);
	pid = zt_fork(&self->zt);
	if (!pid) {
		self->board->result[0] = zt_join(&self->zt, self->key, 1, 2);
		self->board->step = 1;
		pause();
	}
	ASSERT_TRUE(zt_until(ZT_LONG_MS, self->board->step == 1));
	ASSERT_LE(0, self->board->result[0]);
	ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &self->cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep, 0) == 1));
	since = zt_now_ms();
	kill(pid, SIGKILL);
	EXPECT_EQ(-EOWNERDEAD, zt_finish(&self->call, ZT_LONG_MS));
	EXPECT_SOON(since);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
	ASSERT_EQ(0, zt_comm_status(self->ep, &self->st, self->text));
	EXPECT_NE(NULL, strchr(self->text, '1')) TH_LOG("%s", self->text);
	EXPECT_EQ(-EOWNERDEAD, zt_allreduce(self->ep, &self->cmd));
}

TEST_F(life, killed_while_it_waits_in_an_ioctl)
{
	uint64_t since;
	pid_t pid;

	JOIN_SURVIVOR(3);
	pid = zt_fork(&self->zt);
	if (!pid)
		_exit(zt_allreduce(zt_join(&self->zt, self->key, 1, 3), &self->cmd));
	ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &self->cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep, 0) == 2));
	since = zt_now_ms();
	kill(pid, SIGKILL);
	EXPECT_EQ(-EOWNERDEAD, zt_finish(&self->call, ZT_LONG_MS));
	EXPECT_SOON(since);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
}

/* A child that submits @cmd on a ring as @rank and never looks at it again */
static void submit_on(unsigned int ring_flags, struct zt *zt, const uint8_t key[16],
		      uint32_t rank, uint32_t nranks, struct zcoll_cmd *cmd,
		      struct io_uring *ring)
{
	int ep = zt_join(zt, key, rank, nranks);

	if (ep < 0 || ring_init(ring, 4, IORING_SETUP_SQE128 | ring_flags))
		_exit(99);
	if (ring_send(ring, ep, cmd, 0))
		_exit(98);
}

static void submit_and(struct zt *zt, const uint8_t key[16], uint32_t rank,
		       uint32_t nranks, struct zcoll_cmd *cmd, struct io_uring *ring)
{
	submit_on(0, zt, key, rank, nranks, cmd, ring);
}

#define KILL_WITH_A_COMMAND(ring_flags) do {					\
	uint64_t since;								\
	pid_t pid;								\
										\
	JOIN_SURVIVOR(3);							\
	pid = zt_fork(&self->zt);						\
	if (!pid) {								\
		struct io_uring ring;						\
										\
		submit_on(ring_flags, &self->zt, self->key, 1, 3, &self->cmd, &ring); \
		pause();							\
	}									\
	ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &self->cmd));		\
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep, 0) == 2));	\
	since = zt_now_ms();							\
	kill(pid, SIGKILL);							\
	EXPECT_EQ(-EOWNERDEAD, zt_finish(&self->call, ZT_LONG_MS));		\
	EXPECT_SOON(since);							\
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));			\
} while (0)

TEST_F(life, killed_with_a_ring_command_in_flight)
{
	KILL_WITH_A_COMMAND(0);
}

TEST_F(life, killed_with_a_command_on_a_polled_ring_in_flight)
{
	KILL_WITH_A_COMMAND(IORING_SETUP_SQPOLL);
}

TEST_F(life, exits_with_a_ring_command_in_flight)
{
	struct io_uring ring;
	uint64_t since = zt_now_ms();
	pid_t pid;

	JOIN_SURVIVOR(3);
	ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &self->cmd));
	pid = zt_fork(&self->zt);
	if (!pid) {
		submit_and(&self->zt, self->key, 1, 3, &self->cmd, &ring);
		_exit(0);
	}
	EXPECT_EQ(-EOWNERDEAD, zt_finish(&self->call, ZT_LONG_MS));
	EXPECT_SOON(since);
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
}

/* Each thread of the victim waits in a call of its own */
TEST_F(life, killed_with_many_threads_waiting)
{
	uint64_t since;
	pid_t pid;

	JOIN_SURVIVOR(2);
	pid = zt_fork(&self->zt);
	if (!pid) {
		int ep = zt_join(&self->zt, self->key, 1, 2);
		struct zcoll_cmd cmd[8];
		struct zt_call call[8];

		for (int i = 0; i < 8; i++) {
			cmd[i] = zt_barrier(i + 1);
			zt_start_op(&call[i], ep, &cmd[i]);
		}
		pause();
	}
	ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &self->cmd));
	for (int i = 0; i < 8; i++) {
		ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep, i + 1) == 1));
	}
	since = zt_now_ms();
	kill(pid, SIGKILL);
	EXPECT_EQ(-EOWNERDEAD, zt_finish(&self->call, ZT_LONG_MS));
	EXPECT_SOON(since);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
}

/*
 * The victim dies while its pages are being read and written. The survivor gets
 * an answer, success if the bytes were all moved before, and nobody crashes.
 */
TEST_F(life, killed_while_bytes_move)
{
	size_t len = 24 << 20;
	int32_t *buf;
	int ret;

	for (int delay_ms = 0; delay_ms <= 60; delay_ms += 20) {
		pid_t pid;

		zt_key(self->key);
		self->board->step = 0;
		JOIN_SURVIVOR(2);
		pid = zt_fork(&self->zt);
		if (!pid) {
			struct io_uring ring;
			int32_t *mine = zt_pages(len);

			self->cmd = zt_sum(0, mine, len / sizeof(*mine));
			memset(mine, 1, len);
			submit_and(&self->zt, self->key, 1, 2, &self->cmd, &ring);
			self->board->step = 1;
			pause();
		}
		buf = zt_pages(len);
		memset(buf, 1, len);
		ASSERT_TRUE(zt_until(ZT_LONG_MS, self->board->step == 1));
		self->cmd = zt_sum(0, buf, len / sizeof(*buf));
		ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &self->cmd));
		if (delay_ms)
			zt_sleep_ms(delay_ms);
		kill(pid, SIGKILL);
		ret = zt_finish(&self->call, ZT_LONG_MS);
		EXPECT_TRUE(ret == 0 || ret == -EOWNERDEAD) TH_LOG("%d", ret);
		EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
		zt_close_ep(&self->zt, self->ep);
		munmap(buf, len);
	}
}

/* --- exec ---------------------------------------------------------------- */

static void become_sleep(void)
{
	execl("/bin/sleep", "sleep", "100", (char *)NULL);
	_exit(97);
}

TEST_F(life, exec_is_death)
{
	uint64_t since;
	pid_t pid;

	JOIN_SURVIVOR(2);
	pid = zt_fork(&self->zt);
	if (!pid) {
		if (zt_join(&self->zt, self->key, 1, 2) < 0)
			_exit(99);
		while (!self->board->go)
			zt_sleep_ms(1);
		become_sleep();
	}
	ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &self->cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep, 0) == 1));
	since = zt_now_ms();
	self->board->go = 1;
	EXPECT_EQ(-EOWNERDEAD, zt_finish(&self->call, ZT_LONG_MS));
	EXPECT_SOON(since);
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
}

/* An endpoint without close-on-exec in the new program is still not its rank */
TEST_F(life, exec_that_keeps_the_descriptor_is_death)
{
	uint64_t since;
	pid_t pid;

	JOIN_SURVIVOR(2);
	pid = zt_fork(&self->zt);
	if (!pid) {
		int ep = zt_join(&self->zt, self->key, 1, 2);

		fcntl(ep, F_SETFD, 0);
		while (!self->board->go)
			zt_sleep_ms(1);
		become_sleep();
	}
	ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &self->cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep, 0) == 1));
	since = zt_now_ms();
	self->board->go = 1;
	EXPECT_EQ(-EOWNERDEAD, zt_finish(&self->call, ZT_LONG_MS));
	EXPECT_SOON(since);
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
}

/* The kernel may wait in exec for the command to end, so this must not wait for that */
#define EXEC_WITH_A_COMMAND(ring_flags) do {					\
	uint64_t since;								\
	pid_t pid;								\
										\
	JOIN_SURVIVOR(3);							\
	pid = zt_fork(&self->zt);						\
	if (!pid) {								\
		struct io_uring ring;						\
										\
		submit_on(ring_flags, &self->zt, self->key, 1, 3, &self->cmd, &ring); \
		while (!self->board->go)					\
			zt_sleep_ms(1);						\
		become_sleep();							\
	}									\
	ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &self->cmd));		\
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep, 0) == 2));	\
	since = zt_now_ms();							\
	self->board->go = 1;							\
	EXPECT_EQ(-EOWNERDEAD, zt_finish(&self->call, ZT_LONG_MS));		\
	EXPECT_SOON(since);							\
	kill(pid, SIGKILL);							\
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));			\
} while (0)

TEST_F(life, exec_with_a_ring_command_in_flight)
{
	EXEC_WITH_A_COMMAND(0);
}

TEST_F(life, exec_with_a_command_on_a_polled_ring_in_flight)
{
	EXEC_WITH_A_COMMAND(IORING_SETUP_SQPOLL);
}

/* --- fork ---------------------------------------------------------------- */

/* A child that keeps the inherited endpoint, as an unaware program does */
static pid_t plain_fork(void)
{
	pid_t pid = fork();

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

TEST_F(life, forked_child_may_not_use_the_endpoint)
{
	pid_t pid;

	JOIN_SURVIVOR(1);
	pid = plain_fork();
	if (!pid) {
		struct io_uring ring;
		int bad = 0;

		ZT_CHECK(bad, -EPERM, zt_allreduce(self->ep, &self->cmd));
		ZT_CHECK(bad, -EPERM, zt_leave(self->ep));
		if (ring_init(&ring, 2, 0))
			_exit(99);
		ZT_CHECK(bad, -EPERM, ring_do(&ring, self->ep, &self->cmd, ZT_LONG_MS));
		_exit(bad);
	}
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	EXPECT_EQ(0, zt_allreduce(self->ep, &self->cmd));
}

TEST_F(life, forked_child_that_exits_changes_nothing)
{
	struct zcoll_cmd second = zt_barrier(1);
	int other;
	pid_t pid;

	JOIN_SURVIVOR(2);
	other = zt_join(&self->zt, self->key, 1, 2);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &self->cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep, 0) == 1));
	pid = plain_fork();
	if (!pid) {
		close(self->ep);
		close(other);
		_exit(0);
	}
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	EXPECT_EQ(-ETIME, zt_finish(&self->call, ZT_QUIET_MS));
	EXPECT_EQ(0, zt_allreduce(other, &self->cmd));
	EXPECT_EQ(0, zt_finish(&self->call, ZT_LONG_MS));
	EXPECT_EQ(0, zt_revoked(self->ep));
	ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &second));
	EXPECT_EQ(0, zt_allreduce(other, &second));
	EXPECT_EQ(0, zt_finish(&self->call, ZT_LONG_MS));
}

/* The rank that joined is dead even while a child keeps the descriptor open */
TEST_F(life, death_is_seen_while_a_child_holds_the_endpoint)
{
	uint64_t since;
	pid_t pid;

	JOIN_SURVIVOR(2);
	pid = zt_fork(&self->zt);
	if (!pid) {
		zt_join(&self->zt, self->key, 1, 2);
		if (!plain_fork()) {
			prctl(PR_SET_PDEATHSIG, 0);
			self->board->step = 1;
			while (!self->board->go)
				zt_sleep_ms(1);
			_exit(0);
		}
		pause();
	}
	ASSERT_TRUE(zt_until(ZT_LONG_MS, self->board->step == 1));
	ASSERT_EQ(0, zt_start_op(&self->call, self->ep, &self->cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep, 0) == 1));
	since = zt_now_ms();
	kill(pid, SIGKILL);
	EXPECT_EQ(-EOWNERDEAD, zt_finish(&self->call, ZT_LONG_MS));
	EXPECT_SOON(since);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
	self->board->go = 1;
}

/* Buffers of the parent stay the parent's, whatever is copied by fork */
TEST_F(life, fork_does_not_move_a_registered_buffer)
{
	size_t len = 16 * sysconf(_SC_PAGESIZE);
	int32_t *buf = zt_pages(len);
	struct zcoll_cmd cmd;
	uint32_t handle;
	pid_t pid;

	JOIN_SURVIVOR(1);
	memset(buf, 0, len);
	ASSERT_EQ(0, zt_register(self->ep, buf, len, &handle));
	pid = plain_fork();
	if (!pid) {
		while (!self->board->go)
			zt_sleep_ms(1);
		_exit(buf[0] != 0);
	}
	buf[0] = 21;
	buf[1] = 7;
	cmd = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM, NULL, NULL, 1);
	cmd.send_buf = handle;
	cmd.recv_buf = handle;
	cmd.recv = sizeof(int32_t);
	EXPECT_EQ(0, zt_allreduce(self->ep, &cmd));
	EXPECT_EQ(21, buf[1]);
	self->board->go = 1;
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
}

/* --- nobody runs: the kernel finishes the work --------------------------- */

#define IDLE_RANKS	3
#define IDLE_COUNT	(1 << 19)	/* 2 MiB: more than is done inline */

/* Every rank submits from its own process, and then does @what for ever */
static void idle_rank(struct zt *zt, const uint8_t key[16], struct board *board,
		      uint32_t rank, int32_t *buf, bool spin)
{
	struct zcoll_cmd cmd = zt_sum(0, buf, IDLE_COUNT);
	struct io_uring ring;
	int ret;

	submit_and(zt, key, rank, IDLE_RANKS, &cmd, &ring);
	board->step++;
	if (spin) {
		while (!board->go)
			;
	} else {
		raise(SIGSTOP);
	}
	ret = ring_next(&ring, ZT_LONG_MS, NULL);
	_exit(-ret);
}

static bool sums_are_there(int32_t *buf)
{
	for (int i = 0; i < IDLE_COUNT; i++) {
		if (__atomic_load_n(&buf[i], __ATOMIC_RELAXED) != 6 * i)
			return false;
	}
	return true;
}

#define START_IDLE_RANKS(spin)							\
	for (int __r = 0; __r < IDLE_RANKS; __r++) {				\
		buf[__r] = zt_shared(IDLE_COUNT * sizeof(int32_t));		\
		for (int __i = 0; __i < IDLE_COUNT; __i++)			\
			buf[__r][__i] = (__r + 1) * __i;			\
	}									\
	for (int __r = 0; __r < IDLE_RANKS; __r++) {				\
		pid[__r] = zt_fork(&self->zt);					\
		if (!pid[__r])							\
			idle_rank(&self->zt, self->key, self->board, __r,	\
				  buf[__r], spin);				\
	}									\
	ASSERT_TRUE(zt_until(ZT_LONG_MS, self->board->step == IDLE_RANKS))

static bool is_stopped(pid_t pid)
{
	siginfo_t info = {};

	return !waitid(P_PID, pid, &info, WSTOPPED | WNOHANG | WNOWAIT) &&
	       info.si_pid == pid;
}

TEST_F(life, finishes_while_all_ranks_are_stopped)
{
	int32_t *buf[IDLE_RANKS];
	pid_t pid[IDLE_RANKS];

	START_IDLE_RANKS(false);
	for (int r = 0; r < IDLE_RANKS; r++) {
		EXPECT_TRUE(zt_until(ZT_LONG_MS, is_stopped(pid[r])));
	}
	for (int r = 0; r < IDLE_RANKS; r++) {
		EXPECT_TRUE(zt_until(ZT_LONG_MS, sums_are_there(buf[r])));
	}
	for (int r = 0; r < IDLE_RANKS; r++) {
		EXPECT_TRUE(is_stopped(pid[r]));
		kill(pid[r], SIGCONT);
		EXPECT_EQ(0, zt_reap(pid[r], ZT_LONG_MS));
	}
}

TEST_F(life, finishes_while_all_ranks_spin)
{
	int32_t *buf[IDLE_RANKS];
	pid_t pid[IDLE_RANKS];

	START_IDLE_RANKS(true);
	for (int r = 0; r < IDLE_RANKS; r++) {
		EXPECT_TRUE(zt_until(ZT_LONG_MS, sums_are_there(buf[r])));
	}
	self->board->go = 1;
	for (int r = 0; r < IDLE_RANKS; r++) {
		EXPECT_EQ(0, zt_reap(pid[r], ZT_LONG_MS));
	}
}

/* --- memory that goes away ----------------------------------------------- */

/* A memfd page seen twice: what is done to pages after their unmapping shows */
struct twice {
	int32_t *used, *seen;
	size_t len;
};

static bool map_twice(struct twice *t, size_t len)
{
	int fd = memfd_create("twice", MFD_CLOEXEC);

	t->len = len;
	if (ftruncate(fd, len))
		return false;
	t->used = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	t->seen = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return t->used != MAP_FAILED && t->seen != MAP_FAILED;
}

/* Puts other memory where the buffer was */
static void replace(struct twice *t)
{
	mmap(t->used, t->len, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

TEST_F(life, registered_buffer_unmapped_before_use)
{
	struct twice t;
	struct zcoll_cmd cmd;

	ASSERT_TRUE(map_twice(&t, sysconf(_SC_PAGESIZE)));
	JOIN_SURVIVOR(1);
	t.used[0] = 5;
	t.used[1] = 0;
	cmd = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM, NULL, NULL, 1);
	ASSERT_EQ(0, zt_register(self->ep, t.used, t.len, &cmd.send_buf));
	cmd.recv_buf = cmd.send_buf;
	cmd.recv = sizeof(int32_t);
	replace(&t);
	EXPECT_EQ(0, zt_allreduce(self->ep, &cmd));
	EXPECT_EQ(5, t.seen[1]);
	EXPECT_EQ(0, t.used[0]);
	EXPECT_EQ(0, t.used[1]);
}

TEST_F(life, buffers_unmapped_in_flight)
{
	struct twice t[2];
	struct zcoll_cmd cmd[2];
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(map_twice(&t[i], 4 * sysconf(_SC_PAGESIZE)));
		t[i].used[0] = 10 + i;
		cmd[i] = zt_sum(0, t[i].used, 1);
	}
	/* rank 0 by a handle */
	ASSERT_EQ(0, zt_register(ep[0], t[0].used, t[0].len, &cmd[0].send_buf));
	cmd[0].recv_buf = cmd[0].send_buf;
	cmd[0].send = 0;
	cmd[0].recv = 0;
	ASSERT_EQ(0, zt_start_op(&self->call, ep[0], &cmd[0]));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(ep[0], 0) == 1));
	replace(&t[0]);
	EXPECT_EQ(0, zt_allreduce(ep[1], &cmd[1]));
	EXPECT_EQ(0, zt_finish(&self->call, ZT_LONG_MS));
	EXPECT_EQ(21, t[0].seen[0]);
	EXPECT_EQ(0, t[0].used[0]);
	EXPECT_EQ(21, t[1].seen[0]);
	/* and rank 1 by an address, pinned for the call */
	cmd[0].seq = 1;
	cmd[1].seq = 1;
	ASSERT_EQ(0, zt_start_op(&self->call, ep[1], &cmd[1]));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(ep[0], 1) == 1));
	replace(&t[1]);
	EXPECT_EQ(0, zt_allreduce(ep[0], &cmd[0]));
	EXPECT_EQ(0, zt_finish(&self->call, ZT_LONG_MS));
	EXPECT_EQ(42, t[1].seen[0]);
	EXPECT_EQ(0, t[1].used[0]);
}

TEST_F(life, unregistered_in_flight)
{
	int32_t *buf = zt_pages(sysconf(_SC_PAGESIZE));
	struct zcoll_info before, during, after;
	struct zcoll_cmd cmd[2] = { zt_sum(0, NULL, 1), zt_barrier(0) };
	int32_t other = 4;
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_info(self->zt.dev, &before));
	buf[0] = 3;
	cmd[1] = zt_sum(0, &other, 1);
	ASSERT_EQ(0, zt_register(ep[0], buf, 4096, &cmd[0].send_buf));
	cmd[0].recv_buf = cmd[0].send_buf;
	ASSERT_EQ(0, zt_start_op(&self->call, ep[0], &cmd[0]));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(ep[0], 0) == 1));
	ASSERT_EQ(0, zt_unregister(ep[0], cmd[0].send_buf));
	EXPECT_EQ(-ENOENT, zt_unregister(ep[0], cmd[0].send_buf));
	ASSERT_EQ(0, zt_info(self->zt.dev, &during));
	EXPECT_EQ(before.pinned_pages + 1, during.pinned_pages);
	EXPECT_EQ(0, zt_allreduce(ep[1], &cmd[1]));
	EXPECT_EQ(0, zt_finish(&self->call, ZT_LONG_MS));
	EXPECT_EQ(7, buf[0]);
	EXPECT_TRUE(zt_until(ZT_SOON_MS, !zt_info(self->zt.dev, &after) &&
			     zt_pages_in_use(&after) == before.pinned_pages));
}

/* --- what the dead had is given back ------------------------------------- */

TEST_F(life, exit_gives_pins_back)
{
	struct zcoll_info before, during;
	pid_t pid;

	ASSERT_EQ(0, zt_info(self->zt.dev, &before));
	pid = zt_fork(&self->zt);
	if (!pid) {
		size_t len = 64 * sysconf(_SC_PAGESIZE);
		int ep = zt_join(&self->zt, self->key, 0, 2);
		uint32_t handle;

		self->board->result[0] = zt_register(ep, zt_pages(len), len, &handle);
		self->board->step = 1;
		while (!self->board->go)
			zt_sleep_ms(1);
		_exit(0);
	}
	ASSERT_TRUE(zt_until(ZT_LONG_MS, self->board->step == 1));
	ASSERT_EQ(0, self->board->result[0]);
	ASSERT_EQ(0, zt_info(self->zt.dev, &during));
	EXPECT_EQ(before.pinned_pages + 64, during.pinned_pages);
	self->board->go = 1;
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	EXPECT_STREQ("", zt_above_text(self->zt.dev, &before));
}

/* Even while another process holds the dead rank's endpoint */
TEST_F(life, death_gives_pins_back_while_the_endpoint_is_held)
{
	struct zcoll_info before, now;
	int sock[2], ep;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	ASSERT_EQ(0, zt_info(self->zt.dev, &before));
	pid = zt_fork(&self->zt);
	if (!pid) {
		size_t len = 64 * sysconf(_SC_PAGESIZE);
		uint32_t handle;

		ep = zt_join(&self->zt, self->key, 0, 2);
		if (zt_register(ep, zt_pages(len), len, &handle))
			_exit(99);
		_exit(-zt_send_fd(sock[1], ep));
	}
	ep = zt_note(&self->zt, zt_recv_fd(sock[0]));
	ASSERT_LE(0, ep);
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	EXPECT_TRUE(zt_until(ZT_SOON_MS, !zt_info(self->zt.dev, &now) &&
			     now.pinned_pages == before.pinned_pages));
	EXPECT_EQ(-EOWNERDEAD, zt_revoked(ep));
}

/* One communicator's death is nothing to another's */
TEST_F(life, other_communicators_go_on)
{
	struct zcoll_cmd cmd[2] = { zt_barrier(0), zt_barrier(0) };
	int ep[2];
	pid_t pid;

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	JOIN_SURVIVOR(2);
	pid = zt_fork(&self->zt);
	if (!pid) {
		zt_join(&self->zt, self->key, 1, 2);
		_exit(0);
	}
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	EXPECT_TRUE(zt_until(ZT_SOON_MS, zt_revoked(self->ep) == -EOWNERDEAD));
	EXPECT_EQ(0, zt_all(ep, cmd, 2));
}

ZT_MAIN
