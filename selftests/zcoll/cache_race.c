// SPDX-License-Identifier: GPL-2.0
/*
 * Ranges that stay pinned, when their memory changes in the middle of an operation, or of the
 * call that pins it.
 */
#include "cache.h"

/* --- in flight ----------------------------------------------------------- */

/*
 * An operation that had the memory keeps it until its end, and what has come to the place of
 * the range is not touched.
 */
#define CHANGE_IN_FLIGHT(change) do {						\
	KEEP(self->mem);							\
	fill(self->mem, N, 2);							\
	ASSERT_EQ(0, begin(&self->p, self->mem, N));				\
	change;									\
	fill(self->mem, N, 40);							\
	EXPECT_EQ(0, end(&self->p, N));						\
	EXPECT_TRUE(all(self->mem, N, 40));					\
	EXPECT_CURRENT(self->mem, 40);						\
	EXPECT_USED(self->mem, 41);						\
} while (0)

TEST_F(cache, munmap_in_flight)
{
	CHANGE_IN_FLIGHT({
		ASSERT_EQ(0, munmap(self->mem, self->len));
		ASSERT_EQ(self->mem, map_new_at(self->mem, self->len));
	});
}

TEST_F(cache, mmap_over_it_in_flight)
{
	CHANGE_IN_FLIGHT(ASSERT_EQ(self->mem, map_new_at(self->mem, self->len)));
}

TEST_F(cache, madvise_dontneed_in_flight)
{
	CHANGE_IN_FLIGHT(ASSERT_EQ(0, madvise(self->mem, self->len, MADV_DONTNEED)));
}

/* The memory takes its operation along */
TEST_F(cache, mremap_in_flight)
{
	int32_t *place = zt_pages(self->len);

	KEEP(self->mem);
	fill(self->mem, N, 2);
	ASSERT_EQ(0, begin(&self->p, self->mem, N));
	ASSERT_EQ(place, mremap(self->mem, self->len, self->len,
				MREMAP_MAYMOVE | MREMAP_FIXED, place));
	ASSERT_EQ(self->mem, map_new_at(self->mem, self->len));
	fill(self->mem, N, 40);
	EXPECT_EQ(0, end(&self->p, N));
	EXPECT_TRUE(sums(&self->p, place, 0, N, 2));
	EXPECT_TRUE(all(self->mem, N, 40));
	EXPECT_CURRENT(self->mem, 40);
	EXPECT_USED(place, 41);
}

/* Another call on the place, when the old pages are in flight still, is on the new ones */
TEST_F(cache, next_call_before_the_last_has_ended)
{
	struct pair *p = &self->p;
	struct zcoll_cmd cmd;

	KEEP(self->mem);
	ASSERT_EQ(0, begin(p, self->mem, N));
	ASSERT_EQ(self->mem, map_new_at(self->mem, self->len));
	fill(self->mem, N, 50);
	cmd = zt_sum(p->seq + 1, self->mem, N);
	ASSERT_EQ(0, ring_send_in(&p->ring[0], p->ep[0], &cmd, 7));
	EXPECT_COUNTS(1, 1, 1);
	EXPECT_EQ(0, end(p, N));
	EXPECT_TRUE(all(self->mem, N, 50));
	EXPECT_EQ(0, call_other(p, N));
	EXPECT_EQ(0, ring_next(&p->ring[0], ZT_LONG_MS, NULL));
	EXPECT_EQ(0, end_other(p));
	EXPECT_TRUE(sums(p, self->mem, 0, N, 50));
}

/* A child has the numbers as they were, whenever the sums come */
/* --- changes by another thread ------------------------------------------- */

#define RACE_MS	2000

/*
 * A thread changes the memory of input and output again and again. It counts up before each
 * change and after it, so whoever reads the same even count before and after an operation knows
 * what the operation had to see.
 */
struct changer {
	atomic_uint count;
	atomic_bool stop;
	pthread_t thread;
	int fd[2];			/* numbers are all FIRST in one, FIRST + 1 in the other */
	size_t len;
	int32_t *in, *out;
};

#define FIRST	70
#define SEEN(count)	(FIRST + (int)((count) / 2 % 2))

static void change(struct changer *c, unsigned int turn)
{
	switch (turn % 4) {
	case 0:
		madvise(c->out, c->len, MADV_DONTNEED);
		munmap(c->in, c->len);
		break;
	case 1:
		map_new_at(c->out, c->len);
		madvise(c->in, c->len, MADV_DONTNEED);
		break;
	case 2:
		mprotect(c->out, c->len, PROT_READ);
		mprotect(c->out, c->len, PROT_READ | PROT_WRITE);
		mprotect(c->in, c->len, PROT_NONE);
		break;
	}
	map_at(c->in, c->len, MAP_SHARED, c->fd[(turn + 1) % 2]);
}

static void *changer_main(void *p)
{
	struct changer *c = p;
	unsigned int seed = 1;

	while (!c->stop) {
		unsigned int turn = c->count++ / 2;

		change(c, turn);
		c->count++;
		usleep(rand_r(&seed) % 2000);
	}
	return NULL;
}

static int changer_start(struct changer *c, size_t page)
{
	int32_t numbers[N];

	c->len = PAGES * page;
	c->in = zt_pages(c->len);
	c->out = zt_pages(c->len);
	for (int k = 0; k < 2; k++) {
		fill(numbers, N, FIRST + k);
		c->fd[k] = memfd(c->len);
		if (pwrite(c->fd[k], numbers, sizeof(numbers), 0) != sizeof(numbers))
			return -EIO;
	}
	map_at(c->in, c->len, MAP_SHARED, c->fd[0]);
	return -pthread_create(&c->thread, NULL, changer_main, c);
}

static void changer_stop(struct changer *c)
{
	c->stop = true;
	pthread_join(c->thread, NULL);
}

/* Rank 1 has got sums of what was at the input at some time, at each index */
static bool sums_of_either(const struct pair *p)
{
	size_t i = 0;

	while (i < N && (p->other[i] == FIRST + addend(p->seq - 1, i) ||
			 p->other[i] == FIRST + 1 + addend(p->seq - 1, i)))
		i++;
	return i == N;
}

/* The reason may be gone when the kernel looks for it, and then it is taken for another one */
static bool refusal(int ret)
{
	return ret == -EFAULT || ret == -EOPNOTSUPP;
}

TEST_F(cache, memory_that_a_thread_changes_all_the_time)
{
	struct changer c = {};
	uint64_t until = zt_now_ms() + RACE_MS;
	unsigned int before, steady = 0, refused = 0, rounds;
	bool right;
	int ret;

	ASSERT_EQ(0, changer_start(&c, self->page));
	for (rounds = 0; zt_now_ms() < until; rounds++) {
		before = c.count;
		ret = add(&self->p, c.in, c.out, N);
		right = !ret && sums(&self->p, c.out, 0, N, SEEN(before));
		if (before % 2 == 0 && before == c.count) {
			steady++;
			ASSERT_TRUE(right) TH_LOG("round %u: %d", rounds, ret);
		}
		if (refusal(ret)) {
			refused++;
			usleep(100);
		}
		ASSERT_TRUE(refusal(ret) || (!ret && sums_of_either(&self->p)))
			TH_LOG("round %u: %d", rounds, ret);
	}
	changer_stop(&c);
	TH_LOG("%u operations, %u between two of %u changes, %u refused", rounds, steady,
	       c.count / 2, refused);
	EXPECT_LT(0, steady);
	EXPECT_EQ(0, add(&self->p, c.in, c.out, N));
	EXPECT_TRUE(sums(&self->p, c.out, 0, N, SEEN(c.count)));
}

ZT_MAIN
