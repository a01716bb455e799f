// SPDX-License-Identifier: GPL-2.0
/*
 * Ranges that stay pinned, and fork: a child has the memory as it was, the parent has the sums,
 * whoever writes first, and whether or not a call is being made.
 */
#include "cache.h"

/* What parent and child tell each other */
struct board {
	atomic_int child;		/* the child has written */
	atomic_int parent;		/* the parent has operated */
};

/* The child of a test: writes if @value, and may see neither writes nor results of the parent */
static int child(struct board *board, int32_t *mem, int32_t was, int32_t value)
{
	int bad = 0;

	ZT_CHECK(bad, true, all(mem, N, was));
	if (value)
		fill(mem, N, value);
	board->child = 1;
	if (!zt_until(ZT_LONG_MS, board->parent))
		return 99;
	ZT_CHECK(bad, true, all(mem, N, value ?: was));
	fill(mem, N, 66);
	board->child = 2;
	if (!zt_until(ZT_LONG_MS, board->parent == 2))
		return 98;
	ZT_CHECK(bad, true, all(mem, N, 66));
	return bad;
}

/* All numbers are @was when the child begins, which writes @value if it is not 0 */
#define FORK(was, value) do {							\
	fill(self->mem, N, was);						\
	board = zt_shared(sizeof(*board));					\
	pid = zt_fork(&self->p.zt);						\
	if (!pid)								\
		_exit(child(board, self->mem, was, value));			\
} while (0)

/* The parent has operated; the child looks, writes, and looks again after another operation */
#define EXPECT_APART(was) do {							\
	board->parent = 1;							\
	ASSERT_TRUE(zt_until(ZT_LONG_MS, board->child == 2));			\
	EXPECT_TRUE(sums(&self->p, self->mem, 0, N, was));			\
	EXPECT_USED(self->mem, 31);						\
	board->parent = 2;							\
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));					\
	EXPECT_USED(self->mem, 32);						\
	EXPECT_USED(self->mem, 33);						\
} while (0)

TEST_F(cache, fork_and_the_parent_writes_first)
{
	struct board *board;
	pid_t pid;

	KEEP(self->mem);
	FORK(2, 0);
	fill(self->mem, N, 3);
	ASSERT_TRUE(zt_until(ZT_LONG_MS, board->child));
	EXPECT_CURRENT(self->mem, 3);
	EXPECT_USED(self->mem, 4);
	EXPECT_APART(4);
}

TEST_F(cache, fork_and_the_child_writes_first)
{
	struct board *board;
	pid_t pid;

	KEEP(self->mem);
	FORK(2, 77);
	ASSERT_TRUE(zt_until(ZT_LONG_MS, board->child));
	EXPECT_CURRENT(self->mem, 2);
	EXPECT_APART(2);
}

/* The operation is the first to write */
TEST_F(cache, fork_and_nobody_writes)
{
	struct board *board;
	pid_t pid;

	KEEP(self->mem);
	FORK(2, 0);
	EXPECT_CURRENT(self->mem, 2);
	EXPECT_APART(2);
}

/* The first call on the memory comes when it is the child's, too */
TEST_F(cache, fork_before_the_first_call)
{
	struct board *board;
	pid_t pid;

	FORK(2, 0);
	ASSERT_TRUE(zt_until(ZT_LONG_MS, board->child));
	EXPECT_CURRENT(self->mem, 2);
	EXPECT_APART(2);
}

TEST_F(cache, fork_and_the_child_exits)
{
	pid_t pid;

	KEEP(self->mem);
	fill(self->mem, N, 2);
	for (int i = 2; i < 6; i++) {
		pid = zt_fork(&self->p.zt);
		if (!pid)
			_exit(!all(self->mem, N, i));
		EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
		EXPECT_CURRENT(self->mem, i);
		EXPECT_USED(self->mem, 50 + i);
		fill(self->mem, N, i + 1);
	}
}

TEST_F(cache, shared_memory_that_a_child_writes)
{
	int32_t *mem = zt_shared(self->len);
	pid_t pid;

	KEEP(mem);
	for (int i = 2; i < 4; i++) {
		pid = zt_fork(&self->p.zt);
		if (!pid) {
			fill(mem, N, i);
			_exit(0);
		}
		EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
		EXPECT_CURRENT(mem, i);
	}
}

TEST_F(cache, fork_in_flight)
{
	struct board *board;
	pid_t pid;

	KEEP(self->mem);
	ASSERT_EQ(0, begin(&self->p, self->mem, N));
	FORK(2, 0);
	ASSERT_TRUE(zt_until(ZT_LONG_MS, board->child));
	EXPECT_EQ(0, end(&self->p, N));
	EXPECT_TRUE(sums(&self->p, self->mem, 0, N, 2));
	EXPECT_APART(2);
}

#define FORK_MS	2000

struct forker {
	atomic_bool stop;
	unsigned int forks;
	pthread_t thread;
};

static void *forker_main(void *p)
{
	struct forker *f = p;
	pid_t pid;

	for (; !f->stop; f->forks++) {
		pid = fork();
		if (!pid)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			abort();
	}
	return NULL;
}

/* No sum goes to a page that is the child's by then */
TEST_F(cache, forks_of_another_thread_all_the_time)
{
	uint64_t until = zt_now_ms() + FORK_MS;
	struct forker f = {};
	int i;

	ASSERT_EQ(0, -pthread_create(&f.thread, NULL, forker_main, &f));
	for (i = 0; zt_now_ms() < until; i++) {
		fill(self->mem, N, i);
		ASSERT_EQ(0, add(&self->p, self->mem, self->mem, N));
		ASSERT_TRUE(sums(&self->p, self->mem, 0, N, i)) TH_LOG("operation %d", i);
	}
	f.stop = true;
	pthread_join(f.thread, NULL);
	TH_LOG("%d operations, %u forks", i, f.forks);
	EXPECT_LT(0, f.forks);
}

ZT_MAIN
