// SPDX-License-Identifier: GPL-2.0
/*
 * Mailboxes in the ABI: what can be mapped and written and by whom, the verdict, sleeping and
 * waking, and operations of which the kernel learns only that they have ended.
 *
 * The ranks write their lines by hand here, in no order that a library would, and garbage, too:
 * the kernel must not care.
 */
#include "zcoll_test.h"
#include "ring.h"
#include "kselftest_harness.h"

#define N		3
#define PAGE		4096UL
#define HEAP(rank)	(ZCOLL_SPAN(rank) + ZCOLL_MAILBOX_BYTES)
#define RO		PROT_READ
#define RW		(PROT_READ | PROT_WRITE)

FIXTURE(mailbox) {
	struct zt zt;
	int ep[N];
	struct zcoll_verdict *verdict;
	char *own[N];			/* each rank's mailbox, as it maps it itself */
	struct zt_call call[N];
	struct zcoll_park park[N];
	struct zcoll_status st;
	char text[ZCOLL_TEXT_MAX];
};

static void *map(int ep, uint64_t offset, size_t bytes, int prot)
{
	void *p = mmap(NULL, bytes, prot, MAP_SHARED, ep, offset);

	return p == MAP_FAILED ? NULL : p;
}

/* 0 or a negative errno; nothing stays mapped */
static int try_map(int ep, uint64_t offset, size_t bytes, int prot, int flags)
{
	void *p = mmap(NULL, bytes, prot, flags, ep, offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, bytes);
	return 0;
}

static int shared(int ep, uint64_t offset, size_t bytes, int prot)
{
	return try_map(ep, offset, bytes, prot, MAP_SHARED | MAP_NORESERVE);
}

FIXTURE_SETUP(mailbox)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, N, self->ep));
	self->verdict = map(self->ep[0], 0, PAGE, RO);
	ASSERT_NE(NULL, self->verdict);
	for (int r = 0; r < N; r++) {
		self->own[r] = map(self->ep[r], ZCOLL_SPAN(r), ZCOLL_MAILBOX_BYTES, RW);
		ASSERT_NE(NULL, self->own[r]);
		self->park[r] = (struct zcoll_park) {
			.size = sizeof(self->park[r]),
			.timeout_ns = ZCOLL_WAIT_FOREVER,
		};
	}
}

FIXTURE_TEARDOWN(mailbox)
{
	ZT_TEARDOWN(self);
	munmap(self->verdict, PAGE);
	for (int r = 0; r < N; r++)
		munmap(self->own[r], ZCOLL_MAILBOX_BYTES);
}

static int bell(int ep)
{
	struct zcoll_flags arg = { .size = sizeof(arg) };

	return zt_ioctl(ep, ZCOLL_IOC_BELL, &arg);
}

static int park(int ep, struct zcoll_park *arg)
{
	return zt_ioctl(ep, ZCOLL_IOC_PARK, arg);
}

static int start_park(struct zt_call *call, int ep, struct zcoll_park *arg)
{
	return zt_start(call, ep, ZCOLL_IOC_PARK, arg);
}

/* It sleeps, and goes on sleeping */
static bool sleeps(struct zt_call *call)
{
	return zt_until(ZT_LONG_MS, call->tid) && zt_finish(call, ZT_QUIET_MS) == -ETIME;
}

static void write_line(char *own, uint64_t seq, unsigned int form)
{
	struct zcoll_line *line = (struct zcoll_line *)(own + ZCOLL_LINE_AT(seq));

	__atomic_store_n(&line->stamp, ZCOLL_STAMP(seq, form), __ATOMIC_RELEASE);
}

static bool all_zero(const char *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (p[i])
			return false;
	}
	return true;
}

/* --- what can be mapped -------------------------------------------------- */

TEST_F(mailbox, private_mapping_is_refused)
{
	EXPECT_EQ(-EINVAL, try_map(self->ep[0], 0, PAGE, RO, MAP_PRIVATE));
	EXPECT_EQ(-EINVAL, try_map(self->ep[0], ZCOLL_SPAN(0), PAGE, RW, MAP_PRIVATE));
	EXPECT_EQ(-EINVAL, try_map(self->ep[0], ZCOLL_SPAN(1), PAGE, RO, MAP_PRIVATE));
	EXPECT_EQ(-EINVAL, try_map(self->ep[0], HEAP(1), PAGE, RW, MAP_PRIVATE));
}

TEST_F(mailbox, mapping_over_a_border_is_refused)
{
	EXPECT_EQ(-EINVAL, shared(self->ep[0], 0, 2 * PAGE, RO));
	EXPECT_EQ(-EINVAL, shared(self->ep[0], PAGE, PAGE, RO));
	EXPECT_EQ(-EINVAL, shared(self->ep[0], ZCOLL_SPAN(0) - PAGE, PAGE, RO));
	EXPECT_EQ(-EINVAL, shared(self->ep[0], ZCOLL_SPAN(0) - PAGE, 2 * PAGE, RO));
	EXPECT_EQ(-EINVAL, shared(self->ep[0], HEAP(0) - PAGE, 2 * PAGE, RW));
	EXPECT_EQ(-EINVAL, shared(self->ep[0], ZCOLL_SPAN(0), ZCOLL_MAILBOX_BYTES + PAGE, RW));
	EXPECT_EQ(-EINVAL, shared(self->ep[0], ZCOLL_SPAN(1) - PAGE, 2 * PAGE, RW));
	EXPECT_EQ(-EINVAL, shared(self->ep[0], HEAP(0), ZCOLL_SPAN_BYTES, RW));
}

TEST_F(mailbox, mapping_beyond_the_last_rank_is_refused)
{
	EXPECT_EQ(0, shared(self->ep[0], ZCOLL_SPAN(N) - PAGE, PAGE, RW));
	EXPECT_EQ(-EINVAL, shared(self->ep[0], ZCOLL_SPAN(N), PAGE, RO));
	EXPECT_EQ(-EINVAL, shared(self->ep[0], HEAP(N), PAGE, RW));
	EXPECT_EQ(-EINVAL, shared(self->ep[0], ZCOLL_SPAN(1ULL << 20), PAGE, RO));
	EXPECT_GT(0, shared(self->ep[0], 1ULL << 62, PAGE, RO));
	EXPECT_GT(0, shared(self->ep[0], -2 * PAGE, PAGE, RO));
}

TEST_F(mailbox, parts_can_be_mapped)
{
	EXPECT_EQ(0, shared(self->ep[0], ZCOLL_SPAN(0) + PAGE, PAGE, RW));
	EXPECT_EQ(0, shared(self->ep[0], ZCOLL_SPAN(2), ZCOLL_MAILBOX_BYTES, RO));
	EXPECT_EQ(0, shared(self->ep[0], HEAP(2) + 77 * PAGE, 9 * PAGE, RW));
	EXPECT_EQ(0, shared(self->ep[0], HEAP(0), ZCOLL_SPAN_BYTES - ZCOLL_MAILBOX_BYTES, RW));
}

TEST_F(mailbox, only_its_rank_can_map_it_to_write)
{
	void *p;

	for (int r = 0; r < N; r++) {
		EXPECT_EQ(-EACCES, shared(self->ep[r], 0, PAGE, RW));
		EXPECT_EQ(-EACCES, shared(self->ep[r], 0, PAGE, PROT_WRITE));
		for (int of = 0; of < N; of++) {
			EXPECT_EQ(r == of ? 0 : -EACCES,
				  shared(self->ep[r], ZCOLL_SPAN(of), PAGE, RW));
			EXPECT_EQ(0, shared(self->ep[r], HEAP(of), PAGE, RW));
		}
	}
	p = map(self->ep[0], ZCOLL_SPAN(1), PAGE, RO);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, mprotect(p, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	munmap(p, PAGE);
	EXPECT_EQ(-1, mprotect(self->verdict, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(mailbox, nothing_can_be_executed)
{
	void *p = map(self->ep[0], HEAP(0), PAGE, RW);

	/* -EACCES, or -EPERM where /dev is mounted noexec */
	EXPECT_GT(0, shared(self->ep[0], HEAP(0), PAGE, PROT_READ | PROT_EXEC));
	EXPECT_GT(0, shared(self->ep[0], ZCOLL_SPAN(0), PAGE, PROT_EXEC));
	EXPECT_GT(0, shared(self->ep[0], 0, PAGE, PROT_READ | PROT_EXEC));
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, mprotect(p, PAGE, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	munmap(p, PAGE);
}

/* A debugger's way writes through a protection, but not through a mapping of others' memory */
TEST_F(mailbox, proc_mem_does_not_write_what_is_not_ours)
{
	char *theirs = map(self->ep[0], ZCOLL_SPAN(1), PAGE, RO);
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint64_t x = ~0ULL;

	ASSERT_NE(NULL, theirs);
	ASSERT_LE(0, mem);
	EXPECT_GT(0, pwrite(mem, &x, sizeof(x), (uintptr_t)theirs));
	EXPECT_GT(0, pwrite(mem, &x, sizeof(x), (uintptr_t)self->verdict));
	EXPECT_EQ((ssize_t)sizeof(x), pwrite(mem, &x, sizeof(x), (uintptr_t)self->own[0] + 64));
	close(mem);
	EXPECT_TRUE(all_zero(theirs, PAGE));
	EXPECT_EQ(0, self->verdict->error);
	munmap(theirs, PAGE);
}

/* remap_file_pages() makes a mapping of another part of the file, and asks the file alone */
TEST_F(mailbox, remapping_does_not_reach_what_is_not_ours)
{
	uint64_t *p = map(self->ep[0], HEAP(0), PAGE, RW);
	const struct {
		const char *what;
		uint64_t offset;
	} others[] = {
		{ "the verdict", 0 },
		{ "a mailbox", ZCOLL_SPAN(1) },
	};

	ASSERT_NE(NULL, p);
	for (int i = 0; i < 2; i++) {
		if (syscall(SYS_remap_file_pages, p, PAGE, 0, others[i].offset / PAGE, 0))
			continue;
		EXPECT_TRUE(false)
			TH_LOG("remap_file_pages() has mapped %s to be written", others[i].what);
	}
	munmap(p, PAGE);
	p = (uint64_t *)self->own[0];
	EXPECT_NE(0, syscall(SYS_remap_file_pages, p, PAGE, 0, ZCOLL_SPAN(1) / PAGE, 0));
}

/* The kernel writes for a rank only what the rank may write */
TEST_F(mailbox, operations_do_not_write_what_is_not_ours)
{
	int32_t *theirs = map(self->ep[0], ZCOLL_SPAN(1), PAGE, RO), in = 7, out[N];
	struct zcoll_cmd cmd[N];
	uint32_t handle;

	ASSERT_NE(NULL, theirs);
	EXPECT_GT(0, zt_register(self->ep[0], theirs, PAGE, &handle));
	EXPECT_GT(0, zt_register(self->ep[0], self->verdict, PAGE, &handle));
	cmd[0] = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM, &in, theirs, 1);
	EXPECT_EQ(-EFAULT, zt_allreduce(self->ep[0], &cmd[0]));
	cmd[0].recv = (uintptr_t)self->verdict;
	EXPECT_EQ(-EFAULT, zt_allreduce(self->ep[0], &cmd[0]));
	for (int r = 0; r < N; r++)
		cmd[r] = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM, &in, &out[r], 1);
	EXPECT_EQ(0, zt_all(self->ep, cmd, N));
	EXPECT_EQ(N * 7, out[0]);
	EXPECT_TRUE(all_zero((char *)theirs, PAGE));
	munmap(theirs, PAGE);
}

TEST_F(mailbox, another_process_is_eperm)
{
	int bad = 0;
	pid_t pid = fork();

	if (!pid) {
		ZT_CHECK(bad, -EPERM, shared(self->ep[0], 0, PAGE, RO));
		ZT_CHECK(bad, -EPERM, shared(self->ep[0], ZCOLL_SPAN(0), PAGE, RO));
		ZT_CHECK(bad, -EPERM, shared(self->ep[0], HEAP(0), PAGE, RO));
		self->park[0].timeout_ns = 0;
		ZT_CHECK(bad, -EPERM, park(self->ep[0], &self->park[0]));
		ZT_CHECK(bad, -EPERM, bell(self->ep[0]));
		_exit(bad);
	}
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
}

static bool is_mapped(void *p)
{
	unsigned char in_core;

	return !mincore(p, PAGE, &in_core);
}

/* A child is no rank; but memory that its parent has allocated is its to look at */
TEST_F(mailbox, forked_child_has_the_heap_and_no_mailbox)
{
	char *heap = map(self->ep[0], HEAP(0), PAGE, RW);
	int bad = 0;
	pid_t pid;

	ASSERT_NE(NULL, heap);
	*heap = 42;
	pid = fork();
	if (!pid) {
		ZT_CHECK(bad, false, is_mapped(self->verdict));
		ZT_CHECK(bad, false, is_mapped(self->own[0]));
		ZT_CHECK(bad, true, is_mapped(heap));
		if (!bad)
			ZT_CHECK(bad, 42, *heap);
		_exit(bad);
	}
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	munmap(heap, PAGE);
}

TEST_F(mailbox, more_ranks_than_mailboxes)
{
	uint8_t key[16];
	int ep;

	zt_key(key);
	ep = zt_join(&self->zt, key, 0, ZCOLL_MAILBOX_RANKS + 1);
	ASSERT_LE(0, ep);
	EXPECT_EQ(-EOPNOTSUPP, shared(ep, 0, PAGE, RO));
	EXPECT_EQ(-EOPNOTSUPP, shared(ep, HEAP(0), PAGE, RW));
	EXPECT_EQ(-ENXIO, park(ep, &self->park[0]));
	EXPECT_EQ(-ENXIO, bell(ep));
	zt_key(key);
	ep = zt_join(&self->zt, key, ZCOLL_MAILBOX_RANKS - 1, ZCOLL_MAILBOX_RANKS);
	ASSERT_LE(0, ep);
	EXPECT_EQ(0, shared(ep, ZCOLL_SPAN(ZCOLL_MAILBOX_RANKS - 1), ZCOLL_MAILBOX_BYTES, RW));
	EXPECT_EQ(-EINVAL, shared(ep, ZCOLL_SPAN(ZCOLL_MAILBOX_RANKS), PAGE, RO));
}

TEST_F(mailbox, several_nodes_have_none)
{
	uint32_t nodes[2] = { 0, 1 };
	struct zcoll_join arg;
	uint8_t key[16];
	int ep;

	zt_key(key);
	arg = zt_join_arg(key, 0, 2);
	arg.node_map = (uintptr_t)nodes;
	arg.nodes = 2;
	arg.fabric = (uintptr_t)"loop";
	arg.fabric_len = 4;
	ep = zt_note(&self->zt, zt_ioctl(self->zt.dev, ZCOLL_IOC_JOIN, &arg));
	ASSERT_LE(0, ep);
	EXPECT_EQ(-EOPNOTSUPP, shared(ep, 0, PAGE, RO));
	EXPECT_EQ(-EOPNOTSUPP, shared(ep, ZCOLL_SPAN(0), PAGE, RW));
	EXPECT_EQ(-EOPNOTSUPP, shared(ep, HEAP(0), PAGE, RW));
	EXPECT_EQ(-ENXIO, park(ep, &self->park[0]));
	EXPECT_EQ(-ENXIO, bell(ep));
}

/* --- what is there ------------------------------------------------------- */

TEST_F(mailbox, memory_is_zero_at_first)
{
	char *heap = map(self->ep[0], HEAP(2), 16 * PAGE, RW);

	ASSERT_NE(NULL, heap);
	EXPECT_TRUE(all_zero((char *)self->verdict + sizeof(*self->verdict),
			     PAGE - sizeof(*self->verdict)));
	EXPECT_EQ(0, self->verdict->error);
	EXPECT_EQ(0, self->verdict->gone);
	for (int r = 0; r < N; r++)
		EXPECT_TRUE(all_zero(self->own[r], ZCOLL_MAILBOX_BYTES));
	EXPECT_TRUE(all_zero(heap, 16 * PAGE));
	munmap(heap, 16 * PAGE);
}

TEST_F(mailbox, what_a_rank_writes_others_see)
{
	char *seen = map(self->ep[2], ZCOLL_SPAN(1), ZCOLL_MAILBOX_BYTES, RO);

	ASSERT_NE(NULL, seen);
	strcpy(self->own[1], "first");
	strcpy(self->own[1] + ZCOLL_MAILBOX_BYTES - 8, "last");
	EXPECT_STREQ("first", seen);
	EXPECT_STREQ("last", seen + ZCOLL_MAILBOX_BYTES - 8);
	EXPECT_TRUE(all_zero(self->own[0], PAGE));
	munmap(seen, ZCOLL_MAILBOX_BYTES);
}

TEST_F(mailbox, heap_is_written_by_all)
{
	int32_t *heap[N];

	for (int r = 0; r < N; r++) {
		heap[r] = map(self->ep[r], HEAP(1), PAGE, RW);
		ASSERT_NE(NULL, heap[r]);
		heap[r][r] = 100 + r;
	}
	for (int r = 0; r < N; r++) {
		for (int of = 0; of < N; of++)
			EXPECT_EQ(100 + of, heap[r][of]);
		munmap(heap[r], PAGE);
	}
}

TEST_F(mailbox, operations_work_on_heaps)
{
	const size_t count = 3 * PAGE / sizeof(int32_t);
	struct zcoll_cmd cmd[N];
	int32_t *heap[N];
	uint32_t handle;

	for (int r = 0; r < N; r++) {
		heap[r] = map(self->ep[r], HEAP(r), 3 * PAGE, RW);
		ASSERT_NE(NULL, heap[r]);
		for (size_t i = 0; i < count; i++)
			heap[r][i] = r + 1;
		cmd[r] = zt_sum(0, heap[r], count);
		if (r == 2)
			continue;	/* pinned for the call */
		ASSERT_EQ(0, zt_register(self->ep[r], heap[r], 3 * PAGE, &handle));
		cmd[r].send = 0;
		cmd[r].recv = 0;
		cmd[r].send_buf = handle;
		cmd[r].recv_buf = handle;
	}
	ASSERT_EQ(0, zt_all(self->ep, cmd, N));
	for (int r = 0; r < N; r++) {
		EXPECT_EQ(6, heap[r][0]);
		EXPECT_EQ(6, heap[r][count - 1]);
		munmap(heap[r], 3 * PAGE);
	}
}

TEST_F(mailbox, mappings_outlive_endpoint_and_communicator)
{
	char *heap = map(self->ep[1], HEAP(1), PAGE, RW);

	ASSERT_NE(NULL, heap);
	*heap = 42;
	zt_close_ep(&self->zt, self->ep[1]);
	EXPECT_EQ(1 << 1, self->verdict->gone);
	for (int r = 0; r < N; r += 2)
		zt_close_ep(&self->zt, self->ep[r]);
	EXPECT_STREQ("", zt_above_text(self->zt.dev, &self->zt.base));
	EXPECT_EQ(42, *heap);
	heap[1] = 43;
	strcpy(self->own[0], "still");
	EXPECT_STREQ("still", self->own[0]);
	EXPECT_EQ((1 << N) - 1, self->verdict->gone);
	munmap(heap, PAGE);
}

TEST_F(mailbox, stats_tell_what_a_rank_says_it_has_done)
{
	struct zcoll_mailbox *own = (struct zcoll_mailbox *)self->own[1];
	struct zcoll_stats stats;

	own->mails = 1ULL << 40;
	own->heaps = 17;
	ASSERT_EQ(0, zt_stats(self->ep[1], &stats));
	EXPECT_EQ(1ULL << 40, stats.ops_mailbox);
	EXPECT_EQ(17, stats.ops_heap);
	ASSERT_EQ(0, zt_stats(self->ep[0], &stats));
	EXPECT_EQ(0, stats.ops_mailbox);
	EXPECT_EQ(0, stats.ops_heap);
}

/* --- the verdict --------------------------------------------------------- */

TEST_F(mailbox, verdict_tells_of_an_abort)
{
	uint32_t before = self->verdict->bell;
	struct zcoll_verdict *late;

	ASSERT_EQ(0, zt_abort(self->ep[1]));
	EXPECT_EQ(-ECANCELED, self->verdict->error);
	EXPECT_NE(before, self->verdict->bell);
	late = map(self->ep[2], 0, PAGE, RO);
	ASSERT_NE(NULL, late);
	EXPECT_EQ(-ECANCELED, late->error);
	munmap(late, PAGE);
}

TEST_F(mailbox, verdict_of_memory_that_is_made_after_an_abort)
{
	struct zcoll_verdict *verdict;
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_abort(ep[0]));
	verdict = map(ep[1], 0, PAGE, RO);
	ASSERT_NE(NULL, verdict);
	EXPECT_EQ(-ECANCELED, verdict->error);
	munmap(verdict, PAGE);
}

TEST_F(mailbox, verdict_tells_which_ranks_left)
{
	uint64_t gone = 0;

	for (int r = N - 1; r >= 0; r--) {
		uint32_t before = self->verdict->bell;

		gone |= 1ULL << r;
		ASSERT_EQ(0, zt_leave(self->ep[r]));
		EXPECT_EQ(gone, self->verdict->gone);
		EXPECT_NE(before, self->verdict->bell);
		EXPECT_EQ(0, zt_leave(self->ep[r]));
		EXPECT_EQ(gone, self->verdict->gone);
	}
	EXPECT_EQ(0, self->verdict->error);
}

TEST_F(mailbox, verdict_has_room_for_the_last_rank)
{
	struct zcoll_verdict *verdict;
	int ep[ZCOLL_MAILBOX_RANKS];

	ASSERT_EQ(0, zt_comm(&self->zt, ZCOLL_MAILBOX_RANKS, ep));
	verdict = map(ep[0], 0, PAGE, RO);
	ASSERT_NE(NULL, verdict);
	ASSERT_EQ(0, zt_leave(ep[ZCOLL_MAILBOX_RANKS - 1]));
	EXPECT_EQ(1ULL << (ZCOLL_MAILBOX_RANKS - 1), verdict->gone);
	munmap(verdict, PAGE);
}

TEST_F(mailbox, bell_is_counted)
{
	uint32_t before = self->verdict->bell;

	for (uint32_t i = 1; i <= 3; i++) {
		EXPECT_EQ(0, bell(self->ep[i % N]));
		EXPECT_EQ(before + i, self->verdict->bell);
	}
}

TEST_F(mailbox, bell_and_park_need_a_mapping)
{
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	EXPECT_EQ(-ENXIO, bell(ep[0]));
	EXPECT_EQ(-ENXIO, park(ep[0], &self->park[0]));
	ASSERT_EQ(0, shared(ep[1], HEAP(0), PAGE, RO));
	EXPECT_EQ(0, bell(ep[0]));
}

TEST_F(mailbox, bell_and_park_fields_are_checked)
{
	struct zcoll_flags flags = { .size = sizeof(flags), .flags = 1 };
	struct zcoll_park arg = self->park[0];

	EXPECT_EQ(-EINVAL, zt_ioctl(self->ep[0], ZCOLL_IOC_BELL, &flags));
	arg.timeout_ns = 0;
	arg.flags = ZCOLL_PARK_DEADLINE << 1;
	EXPECT_EQ(-EINVAL, park(self->ep[0], &arg));
	arg.flags = 1U << 31;
	EXPECT_EQ(-EINVAL, park(self->ep[0], &arg));
	arg.flags = 0;
	arg.__reserved = 1;
	EXPECT_EQ(-EINVAL, park(self->ep[0], &arg));
	arg.__reserved = 0;
	arg.size = 4;
	EXPECT_EQ(-EINVAL, park(self->ep[0], &arg));
	EXPECT_EQ(-EFAULT, park(self->ep[0], (void *)16));
	EXPECT_EQ(0, zt_revoked(self->ep[0]));
}

/* --- sleeping ------------------------------------------------------------ */

TEST_F(mailbox, bell_before_the_sleep_is_not_lost)
{
	self->park[0].bell = self->verdict->bell;
	ASSERT_EQ(0, bell(self->ep[1]));
	EXPECT_EQ(0, park(self->ep[0], &self->park[0]));
}

TEST_F(mailbox, bell_wakes_all_that_sleep)
{
	for (int r = 0; r < 2; r++) {
		self->park[r].bell = self->verdict->bell;
		self->park[r].seq = r;
		ASSERT_EQ(0, start_park(&self->call[r], self->ep[r], &self->park[r]));
	}
	for (int r = 0; r < 2; r++)
		ASSERT_TRUE(sleeps(&self->call[r]));
	ASSERT_EQ(0, bell(self->ep[2]));
	for (int r = 0; r < 2; r++)
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_SOON_MS));
}

TEST_F(mailbox, park_times_out_and_nothing_is_lost)
{
	uint64_t start = zt_now_ms();

	self->park[0].bell = self->verdict->bell;
	self->park[0].timeout_ns = 100 * NS_PER_MS;
	EXPECT_EQ(-ETIMEDOUT, park(self->ep[0], &self->park[0]));
	EXPECT_LE(start + 100, zt_now_ms());
	EXPECT_GE(start + 100 + ZT_SOON_MS, zt_now_ms());
	self->park[0].timeout_ns = 0;
	EXPECT_EQ(-ETIMEDOUT, park(self->ep[0], &self->park[0]));
	EXPECT_EQ(0, zt_revoked(self->ep[0]));
	EXPECT_EQ(0, self->verdict->error);
}

TEST_F(mailbox, park_of_three_centuries_and_more_ends_by_the_bell)
{
	static const uint64_t times[] = { INT64_MAX - 1, INT64_MAX, 1ULL << 63, ~0ULL - 1 };

	for (int i = 0; i < 4; i++) {
		self->park[0].bell = self->verdict->bell;
		self->park[0].timeout_ns = times[i];
		ASSERT_EQ(0, start_park(&self->call[0], self->ep[0], &self->park[0]));
		EXPECT_TRUE(sleeps(&self->call[0]))
			TH_LOG("a time-out of %llu", (unsigned long long)times[i]);
		ASSERT_EQ(0, bell(self->ep[1]));
		EXPECT_EQ(0, zt_finish(&self->call[0], ZT_SOON_MS));
	}
}

static void on_signal(int sig)
{
	(void)sig;
}

TEST_F(mailbox, signal_leaves_what_is_left_of_the_time)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGUSR1, &sa, NULL);
	self->park[0].bell = self->verdict->bell;
	self->park[0].timeout_ns = 60000 * NS_PER_MS;
	ASSERT_EQ(0, start_park(&self->call[0], self->ep[0], &self->park[0]));
	ASSERT_TRUE(sleeps(&self->call[0]));
	pthread_kill(self->call[0].thread, SIGUSR1);
	EXPECT_EQ(-EINTR, zt_finish(&self->call[0], ZT_SOON_MS));
	EXPECT_LT(0, self->park[0].timeout_ns);
	EXPECT_GE((60000 - ZT_QUIET_MS + 1) * NS_PER_MS, self->park[0].timeout_ns);
	EXPECT_EQ(0, zt_revoked(self->ep[0]));

	self->park[0].timeout_ns = ZCOLL_WAIT_FOREVER;
	ASSERT_EQ(0, start_park(&self->call[0], self->ep[0], &self->park[0]));
	ASSERT_TRUE(sleeps(&self->call[0]));
	pthread_kill(self->call[0].thread, SIGUSR1);
	EXPECT_EQ(-EINTR, zt_finish(&self->call[0], ZT_SOON_MS));
	EXPECT_EQ(ZCOLL_WAIT_FOREVER, self->park[0].timeout_ns);
}

/* Where the call is started again by itself, its time runs on */
TEST_F(mailbox, signals_do_not_renew_the_time)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	uint64_t start = zt_now_ms();

	sigaction(SIGUSR1, &sa, NULL);
	self->park[0].bell = self->verdict->bell;
	self->park[0].timeout_ns = 1000 * NS_PER_MS;
	ASSERT_EQ(0, start_park(&self->call[0], self->ep[0], &self->park[0]));
	for (int i = 0; i < 40 && !self->call[0].done; i++) {
		zt_sleep_ms(100);
		if (!self->call[0].done)
			pthread_kill(self->call[0].thread, SIGUSR1);
	}
	EXPECT_EQ(-ETIMEDOUT, zt_finish(&self->call[0], ZT_LONG_MS));
	EXPECT_LE(start + 1000, self->call[0].ended_ms);
	EXPECT_GE(start + 1000 + 1500, self->call[0].ended_ms);
}

TEST_F(mailbox, deadline_revokes_and_names_the_missing_rank)
{
	const uint64_t seq = 70;

	write_line(self->own[0], seq, ZCOLL_FORM_MAIL);
	write_line(self->own[1], seq - ZCOLL_LINES, ZCOLL_FORM_MAIL);
	write_line(self->own[2], seq, ZCOLL_FORM_HEAP);
	self->park[0].flags = ZCOLL_PARK_DEADLINE;
	self->park[0].bell = self->verdict->bell;
	self->park[0].timeout_ns = 100 * NS_PER_MS;
	self->park[0].seq = seq;
	self->park[2].bell = self->verdict->bell;
	ASSERT_EQ(0, start_park(&self->call[2], self->ep[2], &self->park[2]));
	EXPECT_EQ(-ETIMEDOUT, park(self->ep[0], &self->park[0]));
	EXPECT_EQ(0, zt_finish(&self->call[2], ZT_SOON_MS));
	EXPECT_EQ(-ETIMEDOUT, self->verdict->error);
	for (int r = 0; r < N; r++) {
		EXPECT_EQ(-ETIMEDOUT, zt_revoked(self->ep[r]));
		ASSERT_EQ(0, zt_comm_status(self->ep[r], &self->st, self->text));
		EXPECT_NE(NULL, strstr(self->text, "operation 70"));
		EXPECT_NE(NULL, strstr(self->text, "rank 0"));
		EXPECT_STREQ("missing: 1", strstr(self->text, "missing") ?: "")
			TH_LOG("%s", self->text);
	}
}

TEST_F(mailbox, abort_and_leave_wake_who_sleeps)
{
	for (int r = 0; r < 2; r++) {
		self->park[r].bell = self->verdict->bell;
		ASSERT_EQ(0, start_park(&self->call[r], self->ep[r], &self->park[r]));
		ASSERT_TRUE(sleeps(&self->call[r]));
		ASSERT_EQ(0, r ? zt_abort(self->ep[0]) : zt_leave(self->ep[2]));
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_SOON_MS));
	}
	/* And nobody falls asleep any more */
	self->park[0].bell = self->verdict->bell;
	EXPECT_EQ(0, park(self->ep[0], &self->park[0]));
}

TEST_F(mailbox, death_of_a_rank_wakes_who_sleeps)
{
	struct zcoll_verdict *verdict;
	uint8_t key[16];
	pid_t pid;
	int ep;

	zt_key(key);
	ep = zt_join(&self->zt, key, 0, 2);
	ASSERT_LE(0, ep);
	pid = zt_fork(&self->zt);
	if (!pid) {
		zt_join(&self->zt, key, 1, 2);
		pause();
	}
	ASSERT_EQ(POLLIN, zt_poll(ep, ZT_LONG_MS) & POLLIN);
	verdict = map(ep, 0, PAGE, RO);
	ASSERT_NE(NULL, verdict);
	self->park[0].bell = verdict->bell;
	ASSERT_EQ(0, start_park(&self->call[0], ep, &self->park[0]));
	ASSERT_TRUE(sleeps(&self->call[0]));
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
	EXPECT_EQ(0, zt_finish(&self->call[0], ZT_SOON_MS));
	EXPECT_EQ(-EOWNERDEAD, verdict->error);
	munmap(verdict, PAGE);
}

TEST_F(mailbox, killed_while_it_sleeps)
{
	struct zcoll_park arg = self->park[0];
	uint8_t key[16];
	pid_t pid;
	int ep;

	zt_key(key);
	pid = zt_fork(&self->zt);
	if (!pid) {
		ep = zt_join(&self->zt, key, 0, 1);
		shared(ep, 0, PAGE, RO);
		arg.bell = 1;
		_exit(park(ep, &arg) == 0 ? 3 : 4);
	}
	zt_sleep_ms(ZT_QUIET_MS);
	kill(pid, SIGKILL);
	EXPECT_NE(4, zt_reap(pid, ZT_SOON_MS));
}

/* --- operations that ended in mailboxes ---------------------------------- */

/* All ranks call @seq, and say that those below @ended have ended */
static int all_say(int *ep, uint64_t seq, uint64_t ended)
{
	struct zcoll_cmd cmd[N];

	for (int r = 0; r < N; r++) {
		cmd[r] = zt_barrier(seq);
		cmd[r].ended = ended;
	}
	return zt_all(ep, cmd, N);
}

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

/* --- status -------------------------------------------------------------- */

TEST_F(mailbox, status_of_an_operation_that_only_lines_know)
{
	uint32_t missing[N] = { 99, 99, 99 };

	write_line(self->own[0], 5, ZCOLL_FORM_MAIL);
	write_line(self->own[2], 5, ZCOLL_FORM_COMMAND);
	self->st = (struct zcoll_status) {
		.size = sizeof(self->st),
		.seq = 5,
		.missing = (uintptr_t)missing,
		.missing_len = N,
		.text = (uintptr_t)self->text,
		.text_len = sizeof(self->text),
	};
	ASSERT_EQ(0, zt_ioctl(self->ep[1], ZCOLL_IOC_STATUS, &self->st));
	EXPECT_EQ(ZCOLL_STATE_WAITING, self->st.state);
	EXPECT_EQ(2, self->st.arrived);
	EXPECT_EQ(1, missing[0]);
	EXPECT_EQ(99, missing[1]);
	EXPECT_STREQ("missing: 1", strstr(self->text, "missing") ?: "") TH_LOG("%s", self->text);
	EXPECT_EQ(ZCOLL_STATE_NONE, zt_state(self->ep[1], 6));
	EXPECT_EQ(ZCOLL_STATE_NONE, zt_state(self->ep[1], 5 + ZCOLL_LINES));
}

/* --- garbage ------------------------------------------------------------- */

static void scribble(char *own, uint64_t *state)
{
	uint64_t *p = (uint64_t *)own;

	for (size_t i = 0; i < ZCOLL_MAILBOX_BYTES / 64 / sizeof(*p); i++) {
		*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
		p[i] = *state;
	}
}

TEST_F(mailbox, garbage_does_no_harm)
{
	uint64_t state = 1;

	for (uint64_t seq = 0; seq < 40; seq++) {
		struct zcoll_stats stats;

		for (int r = 0; r < N; r++)
			scribble(self->own[r], &state);
		write_line(self->own[0], seq * 100, ZCOLL_FORM_MAIL);
		for (int r = 0; r < N; r++) {
			EXPECT_EQ(0, zt_stats(self->ep[r], &stats));
			EXPECT_EQ(0, zt_status(self->ep[r], seq * 100, &self->st, self->text));
			EXPECT_GE(N, self->st.arrived);
			EXPECT_GT(sizeof(self->text), strnlen(self->text, sizeof(self->text)));
			EXPECT_EQ(0, zt_status(self->ep[r], state, &self->st, self->text));
		}
		ASSERT_EQ(0, all_say(self->ep, seq, 0));
	}
	EXPECT_EQ(0, self->verdict->error);
	EXPECT_EQ(0, self->verdict->gone);
}

static void *scribbles(void *arg)
{
	uint64_t state = 2;
	char **own = arg;

	while (*(volatile char **)own) {
		scribble(*own, &state);
		sched_yield();
	}
	return NULL;
}

TEST_F(mailbox, garbage_that_changes_meanwhile_does_no_harm)
{
	char *own = self->own[1];
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, scribbles, &own));
	for (uint64_t seq = 0; seq < 20; seq++) {
		EXPECT_EQ(0, zt_status(self->ep[0], seq + 1, &self->st, self->text));
		ASSERT_EQ(0, all_say(self->ep, seq, 0));
	}
	self->park[0].flags = ZCOLL_PARK_DEADLINE;
	self->park[0].bell = self->verdict->bell;
	self->park[0].timeout_ns = NS_PER_MS;
	self->park[0].seq = 20;
	EXPECT_EQ(-ETIMEDOUT, park(self->ep[0], &self->park[0]));
	own = NULL;
	pthread_join(thread, NULL);
	ASSERT_EQ(0, zt_comm_status(self->ep[2], &self->st, self->text));
	EXPECT_NE(NULL, strstr(self->text, "missing: 0")) TH_LOG("%s", self->text);
}

ZT_MAIN
