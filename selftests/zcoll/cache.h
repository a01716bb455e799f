/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that is not registered stays pinned between calls. Is it always the memory that its
 * address means now? What the tests of that share.
 *
 * Two ranks are in this process. Rank 0 names the memory of the test by its address, and the
 * kernel keeps that pinned; rank 1 has a registered buffer. An operation adds the numbers of
 * rank 1, others at each index and in each operation, to those of rank 0. Each test keeps a
 * range, changes what its address means in one way, and looks at the next operations: a stale
 * translation would give sums of old numbers, or put them where the process does not see them.
 */
#ifndef ZCOLL_TEST_CACHE_H
#define ZCOLL_TEST_CACHE_H

#include "zcoll_test.h"
#include "ring.h"
#include "kselftest_harness.h"

#define PAGES	3		/* of the memory that most tests use, and */
#define N	3000		/* its numbers: not all of the last page */
#define MOST	6144		/* numbers that rank 1 has room for */

struct pair {
	struct zt zt;
	int ep[2];
	bool by_ring;			/* how rank 0 calls */
	struct io_uring ring[2];	/* one of each rank */
	int32_t *other;			/* numbers of rank 1 */
	uint32_t handle;
	uint64_t seq;			/* of the next operation; */
	bool called;			/* rank 1 has called it */
	struct zt_call call;		/* rank 0's call in flight */
	struct zcoll_cmd cmd;
	struct zcoll_stats last;	/* of rank 0, when they were looked at last */
};

/* Rank 1 gets room for so many numbers */
static inline int pair_room(struct pair *p, size_t n)
{
	p->other = zt_pages(n * sizeof(int32_t));
	return zt_register(p->ep[1], p->other, n * sizeof(int32_t), &p->handle);
}

static inline int pair_init(struct pair *p, bool by_ring)
{
	int ret = zt_comm(&p->zt, 2, p->ep);

	if (ret)
		return ret;
	p->by_ring = by_ring;
	ret = pair_room(p, MOST);
	for (int r = 0; r < 2 && !ret; r++)
		ret = ring_init(&p->ring[r], 4, IORING_SETUP_SQE128);
	return ret ?: zt_stats(p->ep[0], &p->last);
}

static inline void pair_exit(struct pair *p)
{
	for (int r = 0; r < 2; r++)
		io_uring_queue_exit(&p->ring[r]);
}

static inline int32_t addend(uint64_t seq, size_t i)
{
	return 10000 * (seq + 1) + i;
}

/* Rank 1 calls the next operation and goes on. One that rank 0 was refused, it has called. */
static inline int call_other(struct pair *p, size_t n)
{
	struct zcoll_cmd cmd = zt_sum(p->seq, NULL, n);

	if (p->called)
		return 0;
	cmd.send_buf = p->handle;
	cmd.recv_buf = p->handle;
	for (size_t i = 0; i < n; i++)
		p->other[i] = addend(p->seq, i);
	p->called = true;
	return ring_send(&p->ring[1], p->ep[1], &cmd, 0);
}

/* Its result */
static inline int end_other(struct pair *p)
{
	p->called = false;
	p->seq++;
	return ring_next(&p->ring[1], ZT_LONG_MS, NULL);
}

/* The next operation, of @n numbers: rank 0 has them at @from, and wants the sums at @to */
static inline int add(struct pair *p, const int32_t *from, int32_t *to, size_t n)
{
	int ret = call_other(p, n);

	if (ret)
		return ret;
	p->cmd = zt_cmd(p->seq, ZCOLL_INT32, ZCOLL_SUM, from, to, n);
	ret = p->by_ring ? ring_do(&p->ring[0], p->ep[0], &p->cmd, ZT_LONG_MS) :
			   zt_allreduce(p->ep[0], &p->cmd);
	return ret ?: end_other(p);
}

/* Rank 0 calls the next operation, in place; 0: it is in flight, for rank 1 is late */
static inline int begin(struct pair *p, int32_t *mem, size_t n)
{
	int ret;

	p->cmd = zt_sum(p->seq, mem, n);
	if (p->by_ring)
		return ring_send_in(&p->ring[0], p->ep[0], &p->cmd, 0);
	ret = zt_start_op(&p->call, p->ep[0], &p->cmd);
	if (ret)
		return ret;
	return zt_until(ZT_LONG_MS, zt_arrived(p->ep[0], p->seq) == 1) ? 0 : -ETIME;
}

/* Rank 1 comes: the results of both */
static inline int end(struct pair *p, size_t n)
{
	int ret = call_other(p, n);

	if (ret)
		return ret;
	ret = p->by_ring ? ring_next(&p->ring[0], ZT_LONG_MS, NULL) :
			   zt_finish(&p->call, ZT_LONG_MS);
	return ret ?: end_other(p);
}

static inline void fill(int32_t *mem, size_t n, int32_t value)
{
	for (size_t i = 0; i < n; i++)
		mem[i] = value;
}

static inline bool all(const int32_t *mem, size_t n, int32_t value)
{
	size_t i = 0;

	while (i < n && mem[i] == value)
		i++;
	return i == n;
}

/* Are indices @first to @end the sums of the last operation, where all numbers were @was? */
static inline bool sums(const struct pair *p, const int32_t *mem, size_t first, size_t end,
			int32_t was)
{
	size_t i = first;

	while (i < end && mem[i] == was + addend(p->seq - 1, i))
		i++;
	return i == end;
}

FIXTURE(cache) {
	struct pair p;
	size_t page;
	size_t len;
	int32_t *mem;
};

FIXTURE_VARIANT(cache) {
	bool by_ring;
};

FIXTURE_VARIANT_ADD(cache, ioctl) { false };
FIXTURE_VARIANT_ADD(cache, ring) { true };

FIXTURE_SETUP(cache)
{
	ZT_SETUP(&self->p);
	zt_keep_off_numa_balancing();
	self->page = sysconf(_SC_PAGESIZE);
	self->len = PAGES * self->page;
	self->mem = zt_pages(self->len);
	ASSERT_EQ(0, pair_init(&self->p, variant->by_ring));
}

FIXTURE_TEARDOWN(cache)
{
	pair_exit(&self->p);
	ZT_TEARDOWN(&self->p);
}

/* Since the last look, so many ranges were hits, misses, and dropped */
#define EXPECT_COUNTS(hits, misses, drops) do {					\
	struct zcoll_stats __now;						\
										\
	ASSERT_EQ(0, zt_stats(self->p.ep[0], &__now));				\
	EXPECT_EQ(hits, __now.cache_hits - self->p.last.cache_hits);		\
	EXPECT_EQ(misses, __now.call_pins - self->p.last.call_pins);		\
	EXPECT_EQ(drops, __now.cache_dropped - self->p.last.cache_dropped);	\
	self->p.last = __now;							\
} while (0)

/* The next operation reads what is at @mem, where all numbers are @was, and the sums are there */
#define EXPECT_CURRENT(mem, was) do {						\
	EXPECT_EQ(0, add(&self->p, mem, mem, N));				\
	EXPECT_TRUE(sums(&self->p, mem, 0, N, was));				\
} while (0)

/* Writes by the process, and then an operation */
#define EXPECT_USED(mem, value) do {						\
	fill(mem, N, value);							\
	EXPECT_CURRENT(mem, value);						\
} while (0)

/* @mem becomes a kept range */
#define KEEP(mem) do {								\
	EXPECT_USED(mem, 1);							\
	EXPECT_COUNTS(0, 1, 0);							\
} while (0)

/* The kept range has just been given up; what is there now, zeros, is used and kept */
#define EXPECT_RENEWED(mem) do {						\
	EXPECT_COUNTS(0, 0, 1);							\
	EXPECT_CURRENT(mem, 0);							\
	EXPECT_COUNTS(0, 1, 0);							\
	EXPECT_USED(mem, 2);							\
	EXPECT_COUNTS(1, 0, 0);							\
} while (0)

static inline void *map_at(void *addr, size_t len, int flags, int fd)
{
	return mmap(addr, len, PROT_READ | PROT_WRITE, MAP_FIXED | flags, fd, 0);
}

static inline void *map_new_at(void *addr, size_t len)
{
	return map_at(addr, len, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Shared memory of a file, all zero */
static inline int memfd(size_t len)
{
	int fd = memfd_create("numbers", MFD_CLOEXEC);

	return fd < 0 || ftruncate(fd, len) ? -1 : fd;
}

#endif /* ZCOLL_TEST_CACHE_H */
