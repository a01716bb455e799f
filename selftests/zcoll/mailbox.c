// SPDX-License-Identifier: GPL-2.0
/*
 * Mailboxes in the ABI: what can be mapped and written and by whom, what the verdict and the
 * status say, and that garbage in them does no harm.
 */
#include "mailbox.h"

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
