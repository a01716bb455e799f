// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is not registered stays pinned between calls: how much of it, what it is charged
 * to, and when it is given back.
 *
 * Ranks are alone in their communicators, so their operations end at once. That they use the
 * right memory, cache.c tests.
 */
#include "zcoll_test.h"
#include "kselftest_harness.h"

/* A rank alone, and what it uses in one operation after the other */
struct rank {
	int ep;
	uint64_t seq;
};

/* An operation on whole pages, in place */
static int use(struct rank *r, char *mem, size_t len)
{
	struct zcoll_cmd cmd = zt_sum(r->seq, (int32_t *)mem, len / sizeof(int32_t));
	int ret = zt_allreduce(r->ep, &cmd);

	if (!ret)
		r->seq++;
	return ret;
}

/* Had this range stayed pinned? An operation on it tells: 1, 0, or a negative errno. */
static int hits(struct rank *r, char *mem, size_t len)
{
	struct zcoll_stats before, after;
	int ret = zt_stats(r->ep, &before);

	ret = ret ?: use(r, mem, len);
	ret = ret ?: zt_stats(r->ep, &after);
	return ret ?: (int)(after.cache_hits - before.cache_hits);
}

static uint64_t kept_pages(const struct rank *r)
{
	struct zcoll_stats st;

	return zt_stats(r->ep, &st) ? UINT64_MAX : st.cache_pages;
}

/* --- the limit of a rank ------------------------------------------------- */

#define MIB	(1UL << 20)

FIXTURE(limit) {
	struct zt zt;
	struct rank rank;
	size_t page;
	unsigned int was;		/* cache_mib */
};

FIXTURE_SETUP(limit)
{
	if (access(ZT_PARAMETER("cache_mib"), W_OK))
		ZT_SETUP_SKIP("needs root to set the limit");
	ZT_SETUP(self);
	zt_keep_off_numa_balancing();
	self->page = sysconf(_SC_PAGESIZE);
	ASSERT_EQ(0, zt_comm(&self->zt, 1, &self->rank.ep));
	self->was = zt_parameter("cache_mib", 1);
}

FIXTURE_TEARDOWN(limit)
{
	zt_parameter("cache_mib", self->was);
	ZT_TEARDOWN(self);
}

/* Ranges of so much: two stay */
#define PART	(400 * 1024UL)

static char *touched(size_t len)
{
	return memset(zt_pages(len), 1, len);
}

TEST_F(limit, what_was_used_last_stays)
{
	char *mem = touched(4 * PART);

	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(0, use(&self->rank, mem + i * PART, PART));
	}
	EXPECT_EQ(2 * PART / self->page, kept_pages(&self->rank));
	EXPECT_EQ(1, hits(&self->rank, mem + 2 * PART, PART));
	EXPECT_EQ(1, hits(&self->rank, mem + 3 * PART, PART));
	EXPECT_EQ(0, hits(&self->rank, mem, PART));
	/* a hit is a use: the other of the two went */
	EXPECT_EQ(1, hits(&self->rank, mem + 3 * PART, PART));
	EXPECT_EQ(0, hits(&self->rank, mem + 2 * PART, PART));
}

/* It does not even make others go */
TEST_F(limit, range_above_it_does_not_stay)
{
	char *mem = touched(2 * MIB), *other = touched(PART);

	EXPECT_EQ(0, use(&self->rank, other, PART));
	EXPECT_EQ(0, use(&self->rank, mem, 2 * MIB));
	EXPECT_EQ(PART / self->page, kept_pages(&self->rank));
	EXPECT_EQ(0, hits(&self->rank, mem, 2 * MIB));
	EXPECT_EQ(1, hits(&self->rank, other, PART));
	EXPECT_EQ(0, use(&self->rank, mem, MIB));
	EXPECT_EQ(1, hits(&self->rank, mem, MIB));
}

TEST_F(limit, lowered_holds_at_once)
{
	char *mem = touched(4 * PART);

	zt_parameter("cache_mib", 8);
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(0, use(&self->rank, mem + i * PART, PART));
	}
	EXPECT_EQ(4 * PART / self->page, kept_pages(&self->rank));
	zt_parameter("cache_mib", 1);
	EXPECT_EQ(2 * PART / self->page, kept_pages(&self->rank));
	EXPECT_EQ(1, hits(&self->rank, mem + 2 * PART, PART));
	zt_parameter("cache_mib", 0);
	EXPECT_EQ(0, kept_pages(&self->rank));
	EXPECT_EQ(0, hits(&self->rank, mem + 2 * PART, PART));
}

TEST_F(limit, of_0_keeps_nothing)
{
	char *mem = touched(PART);
	struct zcoll_info now;

	zt_parameter("cache_mib", 0);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(0, hits(&self->rank, mem, PART));
		ASSERT_EQ(0, zt_info(self->zt.dev, &now));
		EXPECT_EQ(self->zt.base.pinned_pages, now.pinned_pages);
	}
	zt_parameter("cache_mib", 1);
	EXPECT_EQ(0, hits(&self->rank, mem, PART));
	EXPECT_EQ(1, hits(&self->rank, mem, PART));
}

/* The kernel takes back what it can: all that no operation uses */
TEST_F(limit, memory_that_is_short)
{
	static const char shrink[] = "/proc/sys/vm/drop_caches";
	char *mem = touched(2 * PART);
	struct zcoll_cmd cmd = zt_sum(0, (int32_t *)mem, PART / sizeof(int32_t));
	struct rank in_flight;
	struct zt_call call;
	int ep[2];

	if (access(shrink, W_OK))
		SKIP(return, "this kernel cannot be told to shrink its caches");
	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_start_op(&call, ep[0], &cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(ep[0], 0) == 1));
	EXPECT_EQ(0, use(&self->rank, mem + PART, PART));
	EXPECT_EQ(PART / self->page, kept_pages(&self->rank));
	EXPECT_TRUE(zt_until(ZT_SOON_MS, (zt_set(shrink, 2), !kept_pages(&self->rank))));
	in_flight.ep = ep[0];
	EXPECT_EQ(PART / self->page, kept_pages(&in_flight));
	EXPECT_EQ(0, hits(&self->rank, mem + PART, PART));
	EXPECT_EQ(1, hits(&self->rank, mem + PART, PART));
	ASSERT_EQ(0, zt_abort(ep[0]));
	EXPECT_EQ(-ECANCELED, zt_finish(&call, ZT_LONG_MS));
}

/* In number, too; a program that uses ever new places goes on */
TEST_F_TIMEOUT(limit, most_ranges_of_a_rank, 120)
{
	enum { MOST = 8192, MORE = MOST + 40 };
	char *mem = touched(MORE * self->page);

	zt_parameter("cache_mib", 64);
	for (int i = 0; i < MORE; i++) {
		ASSERT_EQ(0, use(&self->rank, mem + i * self->page, self->page));
	}
	EXPECT_EQ(MOST, kept_pages(&self->rank));
	EXPECT_EQ(1, hits(&self->rank, mem + (MORE - 1) * self->page, self->page));
	EXPECT_EQ(1, hits(&self->rank, mem + (MORE - MOST) * self->page, self->page));
	EXPECT_EQ(0, hits(&self->rank, mem, self->page));
}

/* --- RLIMIT_MEMLOCK ------------------------------------------------------ */

#define LIMIT_PAGES	16

FIXTURE(memlock) {
	struct zt zt;
	struct rank rank[2];		/* of two communicators */
	size_t page;
	char *mem;			/* as much as four times the limit */
};

FIXTURE_SETUP(memlock)
{
	ZT_SETUP(self);
	zt_keep_off_numa_balancing();
	self->page = sysconf(_SC_PAGESIZE);
	self->mem = touched(4 * LIMIT_PAGES * self->page);
	ASSERT_EQ(0, zt_limit_locked(LIMIT_PAGES * self->page));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, zt_comm(&self->zt, 1, &self->rank[i].ep));
	}
}

FIXTURE_TEARDOWN(memlock)
{
	ZT_TEARDOWN(self);
}

/* KiB that the kernel has charged to this process */
static long charged_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	long kib = -1;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmPin: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

TEST_F(memlock, what_stays_is_charged)
{
	EXPECT_EQ(0, use(&self->rank[0], self->mem, 5 * self->page));
	EXPECT_EQ(5 * (long)self->page / 1024, charged_kib());
	ASSERT_EQ(0, madvise(self->mem, 5 * self->page, MADV_DONTNEED));
	EXPECT_TRUE(zt_until(ZT_SOON_MS, !charged_kib()));
}

/* Sizes up to the limit, at ever new places */
TEST_F(memlock, calls_on_new_ranges_are_never_refused)
{
	for (size_t i = 0; i < 600; i++) {
		size_t pages = i * 7 % LIMIT_PAGES + 1;
		size_t place = i * 11 % (4 * LIMIT_PAGES - pages);

		ASSERT_EQ(0, use(&self->rank[i % 2], self->mem + place * self->page,
				 pages * self->page)) TH_LOG("call %zu, %zu pages", i, pages);
	}
}

TEST_F(memlock, no_more_than_half_stays)
{
	for (size_t i = 0; i < 50; i++) {
		size_t pages = i % 3 + 1;

		ASSERT_EQ(0, use(&self->rank[i % 2], self->mem + i * self->page,
				 pages * self->page));
		EXPECT_GE(LIMIT_PAGES / 2,
			  kept_pages(&self->rank[0]) + kept_pages(&self->rank[1]));
	}
	EXPECT_TRUE(zt_until(ZT_SOON_MS, charged_kib() <=
			     LIMIT_PAGES / 2 * (long)self->page / 1024));
	EXPECT_LT(0, kept_pages(&self->rank[1]));
}

TEST_F(memlock, all_of_it_can_be_registered_after_calls)
{
	uint32_t handle;

	for (size_t i = 0; i < 4; i++) {
		ASSERT_EQ(0, use(&self->rank[i % 2], self->mem + 2 * i * self->page,
				 2 * self->page));
	}
	EXPECT_EQ(0, zt_register(self->rank[0].ep, self->mem, LIMIT_PAGES * self->page, &handle));
	EXPECT_EQ(0, kept_pages(&self->rank[0]) + kept_pages(&self->rank[1]));
	EXPECT_EQ(-EDQUOT, use(&self->rank[1], self->mem, self->page));
	ASSERT_EQ(0, zt_unregister(self->rank[0].ep, handle));
	EXPECT_EQ(0, use(&self->rank[1], self->mem, self->page));
}

/* What is registered leaves less for what stays */
TEST_F(memlock, calls_beside_registered_memory)
{
	uint32_t handle;

	ASSERT_EQ(0, zt_register(self->rank[0].ep, self->mem, 10 * self->page, &handle));
	for (size_t i = 0; i < 50; i++) {
		ASSERT_EQ(0, use(&self->rank[i % 2], self->mem + i * self->page, 6 * self->page));
	}
	EXPECT_EQ(0, kept_pages(&self->rank[0]) + kept_pages(&self->rank[1]));
}

/* What an operation in flight uses is not given back, and the text says so */
TEST_F(memlock, what_is_in_flight_stays_charged)
{
	size_t pages = LIMIT_PAGES / 2, n = pages * self->page / sizeof(int32_t);
	struct zcoll_cmd cmd = zt_sum(0, (int32_t *)self->mem, n);
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_status st;
	struct zt_call call;
	uint32_t handle;
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	ASSERT_EQ(0, zt_start_op(&call, ep[0], &cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(ep[0], 0) == 1));
	EXPECT_EQ(-EDQUOT, use(&self->rank[0], self->mem + (pages + 1) * self->page,
			       (pages + 1) * self->page));
	ASSERT_EQ(0, zt_status(self->rank[0].ep, 0, &st, text));
	EXPECT_NE(NULL, strstr(text, "limit (RLIMIT_MEMLOCK) 64 KiB, in use 32 KiB")) {
		TH_LOG("%s", text);
	}
	EXPECT_EQ(0, use(&self->rank[0], self->mem + pages * self->page, pages * self->page));
	EXPECT_EQ(-EDQUOT, zt_register(ep[1], self->mem, (pages + 1) * self->page, &handle));
	ASSERT_EQ(0, zt_abort(ep[0]));
	EXPECT_EQ(-ECANCELED, zt_finish(&call, ZT_LONG_MS));
	EXPECT_EQ(0, use(&self->rank[0], self->mem, LIMIT_PAGES * self->page));
}

/* A part of a kept range is an input: what is around it is given back for the output's sake */
TEST_F(memlock, kept_pages_around_an_operand)
{
	size_t half = LIMIT_PAGES / 2 * self->page, len = 2 * self->page;
	char *to = self->mem + 3 * half;
	uint32_t handle;
	struct zcoll_cmd cmd;

	ASSERT_EQ(0, use(&self->rank[0], self->mem, half));
	EXPECT_EQ(half / self->page, kept_pages(&self->rank[0]));
	ASSERT_EQ(0, zt_register(self->rank[1].ep, self->mem + half, half, &handle));
	EXPECT_EQ(half / self->page, kept_pages(&self->rank[0]));
	memset(self->mem, 7, half);
	cmd = zt_cmd(self->rank[0].seq, ZCOLL_INT8, ZCOLL_SUM, self->mem + self->page, to, len);
	EXPECT_EQ(0, zt_allreduce(self->rank[0].ep, &cmd));
	EXPECT_EQ(0, memcmp(self->mem, to, len));
}

/* --- the end ------------------------------------------------------------- */

#define HELD	64		/* pages */

FIXTURE(end) {
	struct zt zt;
	size_t len;
	atomic_int *kept;		/* by a child */
	struct zcoll_info before, now;
};

FIXTURE_SETUP(end)
{
	ZT_SETUP(self);
	zt_keep_off_numa_balancing();
	self->len = HELD * sysconf(_SC_PAGESIZE);
	self->kept = zt_shared(sizeof(*self->kept));
	ASSERT_EQ(0, zt_info(self->zt.dev, &self->before));
}

FIXTURE_TEARDOWN(end)
{
	ZT_TEARDOWN(self);
}

/* So many pages more than before are pinned now, all of them kept */
#define EXPECT_KEPT(pages) do {							\
	ASSERT_EQ(0, zt_info(self->zt.dev, &self->now));			\
	EXPECT_EQ(self->before.cache_pages + (pages), self->now.cache_pages);	\
	EXPECT_EQ(self->before.pinned_pages + (pages), self->now.pinned_pages);	\
} while (0)

/* A rank that keeps a range: its endpoint, or a negative errno */
static int keep(struct zt *zt, size_t len)
{
	struct rank rank = {};
	int ret = zt_comm(zt, 1, &rank.ep);

	if (!ret)
		ret = use(&rank, touched(len), len);
	return ret ?: rank.ep;
}

TEST_F(end, leaving_gives_it_back)
{
	int ep = keep(&self->zt, self->len);

	ASSERT_LE(0, ep);
	EXPECT_KEPT(HELD);
	ASSERT_EQ(0, zt_leave(ep));
	EXPECT_KEPT(0);
}

TEST_F(end, closing_gives_it_back)
{
	int ep = keep(&self->zt, self->len);

	ASSERT_LE(0, ep);
	EXPECT_KEPT(HELD);
	zt_close_ep(&self->zt, ep);
	EXPECT_STREQ("", zt_above_text(self->zt.dev, &self->before));
}

/* Child that keeps a range, and then does @then */
#define KEEPER(then) ({								\
	pid_t __pid = zt_fork(&self->zt);					\
										\
	if (!__pid) {								\
		if (keep(&self->zt, self->len) < 0)				\
			_exit(99);						\
		*self->kept = 1;						\
		then;								\
		_exit(98);							\
	}									\
	__pid;									\
})

#define EXPECT_KEEPER_KEEPS() do {						\
	ASSERT_TRUE(zt_until(ZT_LONG_MS, *self->kept));				\
	EXPECT_KEPT(HELD);							\
} while (0)

TEST_F(end, exit_gives_it_back)
{
	pid_t pid = KEEPER({
		zt_until(ZT_LONG_MS, *self->kept == 2);
		_exit(0);
	});

	EXPECT_KEEPER_KEEPS();
	*self->kept = 2;
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	EXPECT_STREQ("", zt_above_text(self->zt.dev, &self->before));
}

TEST_F(end, kill_gives_it_back)
{
	pid_t pid = KEEPER(pause());

	EXPECT_KEEPER_KEEPS();
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
	EXPECT_STREQ("", zt_above_text(self->zt.dev, &self->before));
}

TEST_F(end, exec_gives_it_back)
{
	pid_t pid = KEEPER({
		zt_until(ZT_LONG_MS, *self->kept == 2);
		execl("/bin/sleep", "sleep", "100", (char *)NULL);
	});

	EXPECT_KEEPER_KEEPS();
	*self->kept = 2;
	EXPECT_STREQ("", zt_above_text(self->zt.dev, &self->before));
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
}

/* Even while another process holds the dead rank's endpoint */
TEST_F(end, death_gives_it_back_while_the_endpoint_is_held)
{
	int sock[2], ep;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock));
	pid = KEEPER({
		ep = self->zt.ep[self->zt.nr - 1];
		zt_until(ZT_LONG_MS, *self->kept == 2);
		_exit(-zt_send_fd(sock[1], ep));
	});
	EXPECT_KEEPER_KEEPS();
	*self->kept = 2;
	ep = zt_note(&self->zt, zt_recv_fd(sock[0]));
	ASSERT_LE(0, ep);
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	EXPECT_TRUE(zt_until(ZT_SOON_MS, !zt_info(self->zt.dev, &self->now) &&
			     self->now.pinned_pages == self->before.pinned_pages));
	EXPECT_EQ(self->before.cache_pages, self->now.cache_pages);
}

/* --- counters ------------------------------------------------------------ */

TEST_F(end, counters_of_info_and_stats_agree)
{
	struct zcoll_stats st[2];
	struct rank rank[2] = {};
	char *mem[2];

	for (int r = 0; r < 2; r++) {
		ASSERT_EQ(0, zt_comm(&self->zt, 1, &rank[r].ep));
		mem[r] = touched(self->len);
		for (int i = 0; i < 3 + r; i++) {
			ASSERT_EQ(0, use(&rank[r], mem[r], self->len));
		}
		ASSERT_EQ(0, madvise(mem[r], self->len, MADV_DONTNEED));
		ASSERT_EQ(0, use(&rank[r], mem[r], self->len));
		ASSERT_EQ(0, zt_stats(rank[r].ep, &st[r]));
		EXPECT_EQ(2 + r, st[r].cache_hits);
		EXPECT_EQ(2, st[r].call_pins);
		EXPECT_EQ(1, st[r].cache_dropped);
		EXPECT_EQ(HELD, st[r].cache_pages);
		EXPECT_LT(0, st[r].pin_ns);
		EXPECT_EQ(0, st[r].pinned_pages);
	}
	/* also when one of them is gone, but for what it keeps */
	for (int r = 0; r < 2; r++) {
		ASSERT_EQ(0, zt_info(self->zt.dev, &self->now));
		EXPECT_EQ(5, self->now.cache_hits - self->before.cache_hits);
		EXPECT_EQ(4, self->now.cache_misses - self->before.cache_misses);
		EXPECT_EQ(2, self->now.cache_dropped - self->before.cache_dropped);
		EXPECT_EQ(st[0].pin_ns + st[1].pin_ns, self->now.pin_ns - self->before.pin_ns);
		EXPECT_EQ((2 - r) * HELD, self->now.cache_pages - self->before.cache_pages);
		if (!r)
			zt_close_ep(&self->zt, rank[0].ep);
		ASSERT_TRUE(zt_until(ZT_SOON_MS, !zt_info(self->zt.dev, &self->now) &&
				     self->now.cache_pages == self->before.cache_pages + HELD));
	}
}

TEST_F(end, hits_and_refusals_pin_nothing)
{
	struct zcoll_stats first, st;
	struct rank rank = {};
	char *mem = touched(self->len);

	ASSERT_EQ(0, zt_comm(&self->zt, 1, &rank.ep));
	ASSERT_EQ(0, use(&rank, mem, self->len));
	ASSERT_EQ(0, zt_stats(rank.ep, &first));
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(0, use(&rank, mem, self->len));
	}
	ASSERT_EQ(0, zt_stats(rank.ep, &st));
	EXPECT_EQ(first.pin_ns, st.pin_ns);
	EXPECT_EQ(5, st.cache_hits);
	ASSERT_EQ(0, mprotect(mem, self->len, PROT_READ));
	EXPECT_EQ(-EFAULT, use(&rank, mem, self->len));
	ASSERT_EQ(0, zt_stats(rank.ep, &st));
	EXPECT_EQ(0, st.cache_pages);
	EXPECT_TRUE(zt_until(ZT_SOON_MS, !zt_info(self->zt.dev, &self->now) &&
			     self->now.pinned_pages == self->before.pinned_pages));
}

ZT_MAIN
