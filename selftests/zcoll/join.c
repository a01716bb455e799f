// SPDX-License-Identifier: GPL-2.0
/*
 * Communicators: who may join, what join refuses, what an endpoint is good for
 * in the hands of others, and how ranks leave.
 */
#include "zcoll_test.h"
#include "ring.h"
#include "kselftest_harness.h"

#define NOBODY	65534

FIXTURE(join) {
	struct zt zt;
	uint8_t key[16];
	char text[ZCOLL_TEXT_MAX];
};

FIXTURE_SETUP(join)
{
	ZT_SETUP(self);
	zt_key(self->key);
}

FIXTURE_TEARDOWN(join)
{
	ZT_TEARDOWN(self);
}

/* Joins with the text of a failure in @text */
static int join_text(struct zt *zt, struct zcoll_join arg, char text[ZCOLL_TEXT_MAX])
{
	memset(text, 0, ZCOLL_TEXT_MAX);
	arg.text = (uintptr_t)text;
	arg.text_len = ZCOLL_TEXT_MAX;
	return zt_note(zt, zt_ioctl(zt->dev, ZCOLL_IOC_JOIN, &arg));
}

/* --- what join refuses --------------------------------------------------- */

TEST_F(join, rank_that_is_taken_is_ebusy)
{
	struct zcoll_join arg = zt_join_arg(self->key, 1, 2);

	ASSERT_LE(0, zt_join(&self->zt, self->key, 1, 2));
	EXPECT_EQ(-EBUSY, join_text(&self->zt, arg, self->text));
	EXPECT_NE(NULL, strstr(self->text, "1")) TH_LOG("%s", self->text);
	EXPECT_LE(0, zt_join(&self->zt, self->key, 0, 2));
}

TEST_F(join, other_number_of_ranks_is_eproto)
{
	struct zcoll_join arg = zt_join_arg(self->key, 1, 37);

	ASSERT_LE(0, zt_join(&self->zt, self->key, 0, 2));
	EXPECT_EQ(-EPROTO, join_text(&self->zt, arg, self->text));
	EXPECT_NE(NULL, strstr(self->text, "37")) TH_LOG("%s", self->text);
	EXPECT_NE(NULL, strstr(self->text, "2")) TH_LOG("%s", self->text);
	EXPECT_LE(0, zt_join(&self->zt, self->key, 1, 2));
}

TEST_F(join, refused_join_leaves_the_communicator_whole)
{
	struct zcoll_cmd cmd[2] = { zt_barrier(0), zt_barrier(0) };
	int ep[2];

	ep[0] = zt_join(&self->zt, self->key, 0, 2);
	ASSERT_LE(0, ep[0]);
	ASSERT_EQ(-EPROTO, zt_join(&self->zt, self->key, 1, 3));
	ASSERT_EQ(-EBUSY, zt_join(&self->zt, self->key, 0, 2));
	ep[1] = zt_join(&self->zt, self->key, 1, 2);
	ASSERT_LE(0, ep[1]);
	EXPECT_EQ(0, zt_all(ep, cmd, 2));
}

TEST_F(join, map_of_one_node_is_accepted)
{
	uint32_t map[3] = { 4, 4, 4 };
	struct zcoll_join arg;

	for (int r = 0; r < 3; r++) {
		arg = zt_join_arg(self->key, r, 3);
		arg.node_map = (uintptr_t)map;
		ASSERT_LE(0, join_text(&self->zt, arg, self->text))
			TH_LOG("%s", self->text);
	}
}

TEST_F(join, map_of_two_nodes_needs_their_number)
{
	uint32_t map[3] = { 0, 0, 1 };
	struct zcoll_join arg = zt_join_arg(self->key, 0, 3);

	arg.node_map = (uintptr_t)map;
	EXPECT_EQ(-EINVAL, join_text(&self->zt, arg, self->text));
	EXPECT_NE(NULL, strstr(self->text, "rank 2 on node 1")) TH_LOG("%s", self->text);
	map[2] = 0;
	EXPECT_LE(0, join_text(&self->zt, arg, self->text));
}

TEST_F(join, other_map_is_eproto)
{
	uint32_t map[2] = { 4, 4 };
	struct zcoll_join arg = zt_join_arg(self->key, 0, 2);

	arg.node_map = (uintptr_t)map;
	ASSERT_LE(0, join_text(&self->zt, arg, self->text));
	arg.rank = 1;
	map[0] = 5;
	map[1] = 5;
	EXPECT_EQ(-EPROTO, join_text(&self->zt, arg, self->text));
	EXPECT_NE('\0', self->text[0]);
	map[0] = 4;
	map[1] = 4;
	EXPECT_LE(0, join_text(&self->zt, arg, self->text));
}

/* The map is read only as far as nranks says */
TEST_F(join, map_that_ends_with_readable_memory_is_accepted)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *mem = zt_pages(2 * page);
	struct zcoll_join arg = zt_join_arg(self->key, 0, 2);

	mprotect(mem + page, page, PROT_NONE);
	arg.node_map = (uintptr_t)(mem + page - 2 * sizeof(uint32_t));
	EXPECT_LE(0, join_text(&self->zt, arg, self->text));
	arg.rank = 1;
	arg.node_map += sizeof(uint32_t);
	EXPECT_EQ(-EFAULT, join_text(&self->zt, arg, self->text));
}

/* --- users --------------------------------------------------------------- */

/* Joins in a child that is user @uid; the child stays until @sock is closed */
static pid_t join_as(struct zt *zt, uid_t uid, const uint8_t key[16],
		     uint32_t rank, int sock)
{
	pid_t pid = zt_fork(zt);
	int ret = 0;
	char c;

	if (pid)
		return pid;
	if (uid && setresuid(uid, uid, uid))
		_exit(99);
	ret = zt_join(zt, key, rank, 2);
	ret = ret < 0 ? ret : 0;
	if (write(sock, &ret, sizeof(ret)) != sizeof(ret))
		_exit(98);
	_exit(read(sock, &c, 1) ? 97 : 0);
}

TEST_F(join, other_user_is_eperm)
{
	int sock[2], ret = 1;
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs root to become another user");
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	ASSERT_LE(0, zt_join(&self->zt, self->key, 0, 2));
	pid = join_as(&self->zt, NOBODY, self->key, 1, sock[1]);
	ASSERT_EQ(sizeof(ret), read(sock[0], &ret, sizeof(ret)));
	EXPECT_EQ(-EPERM, ret);
	shutdown(sock[0], SHUT_RDWR);
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	EXPECT_LE(0, zt_join(&self->zt, self->key, 1, 2));
}

TEST_F(join, administrator_may_join_others)
{
	int sock[2], ret = 1;
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs root to become another user");
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = join_as(&self->zt, NOBODY, self->key, 0, sock[1]);
	ASSERT_EQ(sizeof(ret), read(sock[0], &ret, sizeof(ret)));
	ASSERT_EQ(0, ret);
	EXPECT_LE(0, zt_join(&self->zt, self->key, 1, 2));
	shutdown(sock[0], SHUT_RDWR);
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
}

TEST_F(join, same_user_in_two_processes)
{
	int sock[2], ret = 1;
	pid_t pid[2];

	if (geteuid())
		SKIP(return, "needs root to become another user");
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid[0] = join_as(&self->zt, NOBODY, self->key, 0, sock[1]);
	ASSERT_EQ(sizeof(ret), read(sock[0], &ret, sizeof(ret)));
	ASSERT_EQ(0, ret);
	pid[1] = join_as(&self->zt, NOBODY, self->key, 1, sock[1]);
	ASSERT_EQ(sizeof(ret), read(sock[0], &ret, sizeof(ret)));
	EXPECT_EQ(0, ret);
	shutdown(sock[0], SHUT_RDWR);
	EXPECT_EQ(0, zt_reap(pid[0], ZT_LONG_MS));
	EXPECT_EQ(0, zt_reap(pid[1], ZT_LONG_MS));
}

/* --- the endpoint -------------------------------------------------------- */

TEST_F(join, endpoint_is_close_on_exec)
{
	int ep = zt_join(&self->zt, self->key, 0, 1);

	ASSERT_LE(0, ep);
	EXPECT_EQ(FD_CLOEXEC, fcntl(ep, F_GETFD));
}

TEST_F(join, poll_tells_when_all_have_joined)
{
	int ep[2];

	ep[0] = zt_join(&self->zt, self->key, 0, 2);
	ASSERT_LE(0, ep[0]);
	EXPECT_EQ(0, zt_poll(ep[0], 0));
	ep[1] = zt_join(&self->zt, self->key, 1, 2);
	ASSERT_LE(0, ep[1]);
	EXPECT_EQ(POLLIN, zt_poll(ep[0], ZT_LONG_MS));
	EXPECT_EQ(POLLIN, zt_poll(ep[1], ZT_LONG_MS));
}

struct poller {
	int ep;
	atomic_int events;
};

static void *poll_main(void *p)
{
	struct poller *poller = p;

	poller->events = zt_poll(poller->ep, ZT_LONG_MS);
	return NULL;
}

TEST_F(join, poll_wakes_when_the_last_joins)
{
	struct poller poller = {};
	pthread_t thread;

	poller.ep = zt_join(&self->zt, self->key, 0, 2);
	ASSERT_LE(0, poller.ep);
	ASSERT_EQ(0, pthread_create(&thread, NULL, poll_main, &poller));
	zt_sleep_ms(ZT_QUIET_MS);
	EXPECT_EQ(0, poller.events);
	ASSERT_LE(0, zt_join(&self->zt, self->key, 1, 2));
	EXPECT_TRUE(zt_until(ZT_SOON_MS, poller.events));
	pthread_join(thread, NULL);
	EXPECT_EQ(POLLIN, poller.events);
}

TEST_F(join, poll_wakes_when_revoked)
{
	struct poller poller = {};
	pthread_t thread;

	poller.ep = zt_join(&self->zt, self->key, 0, 2);
	ASSERT_LE(0, poller.ep);
	ASSERT_EQ(0, pthread_create(&thread, NULL, poll_main, &poller));
	zt_sleep_ms(ZT_QUIET_MS);
	ASSERT_EQ(0, zt_abort(poller.ep));
	EXPECT_TRUE(zt_until(ZT_SOON_MS, poller.events));
	pthread_join(thread, NULL);
	EXPECT_EQ(POLLERR | POLLHUP, poller.events & (POLLERR | POLLHUP));
}

TEST_F(join, operation_waits_for_ranks_that_have_not_joined)
{
	struct zcoll_cmd cmd[2] = { zt_barrier(0), zt_barrier(0) };
	struct zt_call call;
	int ep;

	ep = zt_join(&self->zt, self->key, 0, 2);
	ASSERT_LE(0, ep);
	ASSERT_EQ(0, zt_start_op(&call, ep, &cmd[0]));
	EXPECT_EQ(-ETIME, zt_finish(&call, ZT_QUIET_MS));
	ep = zt_join(&self->zt, self->key, 1, 2);
	ASSERT_LE(0, ep);
	EXPECT_EQ(0, zt_allreduce(ep, &cmd[1]));
	EXPECT_EQ(0, zt_finish(&call, ZT_LONG_MS));
}

TEST_F(join, revoked_communicator_takes_no_new_rank)
{
	struct zcoll_join arg = zt_join_arg(self->key, 1, 2);
	int ep = zt_join(&self->zt, self->key, 0, 2);

	ASSERT_LE(0, ep);
	ASSERT_EQ(0, zt_abort(ep));
	EXPECT_EQ(-ECANCELED, join_text(&self->zt, arg, self->text));
	EXPECT_NE('\0', self->text[0]);
}

TEST_F(join, key_is_free_after_the_last_close)
{
	int ep = zt_join(&self->zt, self->key, 0, 2);

	ASSERT_LE(0, ep);
	zt_close_ep(&self->zt, ep);
	EXPECT_TRUE(zt_until(ZT_SOON_MS, zt_join(&self->zt, self->key, 0, 3) >= 0));
}

TEST_F(join, key_is_free_after_a_revoked_one_closed)
{
	int ep = zt_join(&self->zt, self->key, 0, 2);

	ASSERT_LE(0, ep);
	ASSERT_EQ(0, zt_abort(ep));
	zt_close_ep(&self->zt, ep);
	EXPECT_TRUE(zt_until(ZT_SOON_MS, zt_join(&self->zt, self->key, 0, 3) >= 0));
}

TEST_F(join, device_may_be_closed_after_joining)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	int dev = open(ZT_DEVICE, O_RDWR | O_CLOEXEC);
	struct zcoll_join arg = zt_join_arg(self->key, 0, 1);
	int ep = zt_note(&self->zt, zt_ioctl(dev, ZCOLL_IOC_JOIN, &arg));

	close(dev);
	ASSERT_LE(0, ep);
	EXPECT_EQ(0, zt_allreduce(ep, &cmd));
}

/* --- numbers ------------------------------------------------------------- */

/* All ranks of the largest communicator, each with a buffer and a command */
TEST_F(join, largest_communicator)
{
	struct rlimit files = { 2 * ZCOLL_MAX_RANKS, 2 * ZCOLL_MAX_RANKS };
	unsigned int n = self->zt.base.max_ranks;
	struct zcoll_cmd *cmd = calloc(n, sizeof(*cmd));
	int *ep = calloc(n, sizeof(*ep));
	int32_t (*buf)[8] = calloc(n, sizeof(*buf));
	unsigned int wrong = 0;
	struct io_uring ring;
	int ret = 0;

	if (setrlimit(RLIMIT_NOFILE, &files))
		SKIP(return, "needs %u open files", 2 * ZCOLL_MAX_RANKS);
	ASSERT_EQ(0, zt_comm(&self->zt, n, ep));
	ASSERT_EQ(0, ring_init(&ring, n, 0));
	for (unsigned int r = 0; r < n; r++) {
		for (int i = 0; i < 8; i++)
			buf[r][i] = r + i;
		cmd[r] = zt_sum(0, buf[r], 8);
		ring_op(&ring, ep[r], &cmd[r], r);
	}
	ASSERT_EQ(n, io_uring_submit(&ring));
	for (unsigned int r = 0; r < n && !ret; r++)
		ret = ring_next(&ring, ZT_LONG_MS, NULL);
	EXPECT_EQ(0, ret);
	for (unsigned int r = 0; r < n; r++) {
		for (unsigned int i = 0; i < 8; i++)
			wrong += buf[r][i] != (int32_t)(n * (n - 1) / 2 + n * i);
	}
	EXPECT_EQ(0, wrong);
	io_uring_queue_exit(&ring);
}

TEST_F(join, many_communicators_do_not_meet)
{
	enum { COMMS = 48 };
	static int ep[COMMS][2];
	int32_t a, b;

	for (int c = 0; c < COMMS; c++) {
		ASSERT_EQ(0, zt_comm(&self->zt, 2, ep[c]));
	}
	for (int c = 0; c < COMMS; c++) {
		struct zcoll_cmd cmd[2] = { zt_sum(0, &a, 1), zt_sum(0, &b, 1) };

		a = c;
		b = 1000 * c;
		ASSERT_EQ(0, zt_all(ep[c], cmd, 2));
		ASSERT_EQ(1001 * c, a);
		ASSERT_EQ(1001 * c, b);
	}
}

/* Communicators that a user without privilege may have: a module parameter */
static unsigned int user_limit(void)
{
	FILE *f = fopen("/sys/module/zcoll/parameters/user_comms", "re");
	unsigned int limit = 0;

	if (f) {
		if (fscanf(f, "%u", &limit) != 1)
			limit = 0;
		fclose(f);
	}
	return limit;
}

/* As user NOBODY: join until it is refused, and once more after one has gone */
static int fill_up(struct zt *zt, unsigned int limit)
{
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_join arg;
	uint8_t key[16];
	int bad = 0, ep = -1;

	if (setresuid(NOBODY, NOBODY, NOBODY))
		return 99;
	for (unsigned int c = 0; c < limit; c++) {
		zt_key(key);
		ep = zt_join(zt, key, 0, 1);
		if (ep < 0)
			break;
	}
	ZT_CHECK(bad, limit, zt->nr);
	zt_key(key);
	arg = zt_join_arg(key, 0, 1);
	ZT_CHECK(bad, -ENOSPC, join_text(zt, arg, text));
	ZT_CHECK(bad, true, text[0] != 0);
	zt_close_ep(zt, ep);
	ZT_CHECK(bad, true, zt_until(ZT_SOON_MS, zt_join(zt, key, 0, 1) >= 0));
	return bad;
}

TEST_F(join, too_many_communicators_of_a_user_are_enospc)
{
	struct rlimit files = { ZT_MAX_EP + 100, ZT_MAX_EP + 100 };
	unsigned int limit = user_limit();
	pid_t pid;

	if (geteuid() || !limit || limit >= ZT_MAX_EP || setrlimit(RLIMIT_NOFILE, &files))
		SKIP(return, "needs root, and a limit below %d (now %u)", ZT_MAX_EP, limit);
	pid = zt_fork(&self->zt);
	if (!pid)
		_exit(fill_up(&self->zt, limit));
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
}

TEST_F(join, no_descriptor_left_is_emfile)
{
	struct zcoll_join arg = zt_join_arg(self->key, 0, 1);
	struct rlimit none, before;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
	none = before;
	none.rlim_cur = self->zt.dev + 1;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-EMFILE, join_text(&self->zt, arg, self->text));
	EXPECT_NE('\0', self->text[0]);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
	EXPECT_STREQ("", zt_above_text(self->zt.dev, &self->zt.base));
	EXPECT_LE(0, join_text(&self->zt, arg, self->text));
}

/* --- leaving ------------------------------------------------------------- */

TEST_F(join, rank_that_left_gets_eshutdown)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	char page[64];
	uint32_t handle;
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_leave(ep[0]));
	EXPECT_EQ(-ESHUTDOWN, zt_allreduce(ep[0], &cmd));
	EXPECT_EQ(-ESHUTDOWN, zt_register(ep[0], page, sizeof(page), &handle));
	EXPECT_EQ(0, zt_leave(ep[0]));
}

TEST_F(join, communicator_that_ranks_have_left_is_done)
{
	struct zcoll_status st;
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_leave(ep[1]));
	ASSERT_EQ(0, zt_comm_status(ep[0], &st, self->text));
	EXPECT_EQ(ZCOLL_STATE_DONE, st.state);
	EXPECT_EQ(-ESHUTDOWN, st.result);
	EXPECT_NE(NULL, strstr(self->text, "1")) {
		TH_LOG("%s", self->text);
	}
}

TEST_F(join, leaving_before_an_operation_fails_it_for_the_others)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	struct zcoll_status st;
	int ep[3];

	ASSERT_EQ(0, zt_comm(&self->zt, 3, ep));
	ASSERT_EQ(0, zt_leave(ep[2]));
	EXPECT_EQ(-ESHUTDOWN, zt_allreduce(ep[0], &cmd));
	EXPECT_EQ(-ESHUTDOWN, zt_allreduce(ep[1], &cmd));
	ASSERT_EQ(0, zt_comm_status(ep[0], &st, self->text));
	EXPECT_NE(NULL, strstr(self->text, "2")) TH_LOG("%s", self->text);
}

TEST_F(join, leaving_ends_the_operations_that_wait_for_it)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	struct zt_call call;
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_start_op(&call, ep[0], &cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(ep[0], 0) == 1));
	ASSERT_EQ(0, zt_leave(ep[1]));
	EXPECT_EQ(-ESHUTDOWN, zt_finish(&call, ZT_SOON_MS));
}

TEST_F(join, leaving_with_an_operation_in_flight_revokes)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	struct zt_call call;
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_start_op(&call, ep[0], &cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(ep[0], 0) == 1));
	ASSERT_EQ(0, zt_leave(ep[0]));
	EXPECT_EQ(-ESHUTDOWN, zt_finish(&call, ZT_SOON_MS));
	EXPECT_EQ(-ESHUTDOWN, zt_revoked(ep[1]));
	EXPECT_EQ(-ESHUTDOWN, zt_allreduce(ep[1], &cmd));
}

TEST_F(join, leaving_unregisters)
{
	size_t len = 8 * sysconf(_SC_PAGESIZE);
	struct zcoll_info before, after;
	uint32_t handle;
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_info(self->zt.dev, &before));
	ASSERT_EQ(0, zt_register(ep[0], zt_pages(len), len, &handle));
	ASSERT_EQ(0, zt_leave(ep[0]));
	ASSERT_EQ(0, zt_info(self->zt.dev, &after));
	EXPECT_EQ(before.pinned_pages, after.pinned_pages);
}

/* The end of an ordinary program: nobody's finished operations fail by it */
TEST_F(join, all_leave_in_peace)
{
	struct zcoll_cmd cmd[3] = { zt_barrier(0), zt_barrier(0), zt_barrier(0) };
	struct zcoll_info info;
	int ep[3];

	ASSERT_EQ(0, zt_comm(&self->zt, 3, ep));
	ASSERT_EQ(0, zt_all(ep, cmd, 3));
	for (int r = 0; r < 3; r++) {
		EXPECT_EQ(0, zt_leave(ep[r]));
	}
	ASSERT_EQ(0, zt_info(self->zt.dev, &info));
	EXPECT_EQ(self->zt.base.ops_failed, info.ops_failed);
	EXPECT_EQ(self->zt.base.ops_done + 1, info.ops_done);
}

/* Closing the last reference is leaving */
TEST_F(join, closing_is_leaving)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	struct zt_call call;
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_start_op(&call, ep[0], &cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(ep[0], 0) == 1));
	zt_close_ep(&self->zt, ep[1]);
	EXPECT_EQ(-ESHUTDOWN, zt_finish(&call, ZT_SOON_MS));
}

TEST_F(join, closing_one_of_two_references_is_not_leaving)
{
	struct zcoll_cmd cmd[2] = { zt_barrier(0), zt_barrier(0) };
	int ep[2], copy;

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	copy = zt_note(&self->zt, dup(ep[1]));
	ASSERT_LE(0, copy);
	zt_close_ep(&self->zt, ep[1]);
	ep[1] = copy;
	EXPECT_EQ(0, zt_all(ep, cmd, 2));
}

/* --- endpoints in other hands -------------------------------------------- */

/* What a process that was handed an endpoint may do, and what not */
static int holder(int sock)
{
	char page[64], text[ZCOLL_TEXT_MAX];
	struct zcoll_cmd cmd = zt_barrier(0);
	struct zcoll_status st;
	struct zcoll_stats stats;
	struct io_uring ring;
	uint32_t handle;
	int bad = 0, ep;

	ep = zt_recv_fd(sock);
	if (ep < 0)
		return 99;
	ZT_CHECK(bad, POLLIN, zt_poll(ep, 0));
	ZT_CHECK(bad, 0, zt_status(ep, 0, &st, text));
	ZT_CHECK(bad, 0, st.rank);
	ZT_CHECK(bad, 0, zt_comm_status(ep, &st, text));
	ZT_CHECK(bad, 0, zt_stats(ep, &stats));
	ZT_CHECK(bad, -EPERM, zt_allreduce(ep, &cmd));
	ZT_CHECK(bad, -EPERM, zt_register(ep, page, sizeof(page), &handle));
	ZT_CHECK(bad, -EPERM, zt_unregister(ep, 1));
	ZT_CHECK(bad, -EPERM, zt_wait(ep, 0, 0));
	ZT_CHECK(bad, -EPERM, zt_cancel(ep, 0));
	ZT_CHECK(bad, -EPERM, zt_leave(ep));
	for (int i = 0; i < 2; i++) {
		if (ring_init(&ring, 2, i ? IORING_SETUP_SQE128 : 0))
			return 98;
		ZT_CHECK(bad, -EPERM, ring_do(&ring, ep, &cmd, ZT_LONG_MS));
		io_uring_queue_exit(&ring);
	}
	ZT_CHECK(bad, 0, zt_revoked(ep));
	ZT_CHECK(bad, 0, zt_abort(ep));
	ZT_CHECK(bad, -ECANCELED, zt_revoked(ep));
	return bad;
}

TEST_F(join, endpoint_passed_to_another_process)
{
	uint32_t handle;
	char *page;
	int sock[2], ep[2];
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = zt_fork(&self->zt);
	if (!pid)
		_exit(holder(sock[1]));
	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	page = zt_pages(sysconf(_SC_PAGESIZE));
	ASSERT_EQ(0, zt_register(ep[0], page, 64, &handle));
	ASSERT_EQ(0, zt_send_fd(sock[0], ep[0]));
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	EXPECT_EQ(-ECANCELED, zt_revoked(ep[1]));
	EXPECT_EQ(0, zt_unregister(ep[0], handle));
}

ZT_MAIN
