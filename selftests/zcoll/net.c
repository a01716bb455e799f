// SPDX-License-Identifier: GPL-2.0
/*
 * The network between nodes, by fabric "loop": data of every algorithm, small and large, and
 * operations in flight.
 *
 * Elements are int32 or int64, so that the order of reduction does not matter; that has its
 * tests in data.c and in the plans'.
 */
#include "net.h"
#include "kselftest_harness.h"

FIXTURE(net) {
	struct zt zt;
	struct zn zn;
};

FIXTURE_SETUP(net)
{
	ZT_SETUP(self);
}

FIXTURE_TEARDOWN(net)
{
	ZT_TEARDOWN(self);
}

/* Element @i of rank @r in operation @seq; sums of all ranks stay small */
static int32_t value(unsigned int r, uint64_t seq, uint64_t i)
{
	return (int32_t)((i * 2654435761U + r * 40503U + seq * 97) % 100003);
}

static int32_t value_sum(unsigned int nranks, uint64_t seq, uint64_t i)
{
	int32_t sum = 0;

	for (unsigned int r = 0; r < nranks; r++)
		sum += value(r, seq, i);
	return sum;
}

/* One all-reduce of all ranks, not in place. Return: 0, an error, or 1: wrong data. */
static int allreduce(struct zn *zn, uint64_t seq, uint64_t count)
{
	struct zcoll_cmd cmd[ZN_MAX_RANKS];
	size_t bytes = (count + 1) * sizeof(int32_t);
	int32_t *in = malloc(zn->nranks * bytes), *out = calloc(zn->nranks, bytes);
	int ret;

	for (unsigned int r = 0; r < zn->nranks; r++) {
		for (uint64_t i = 0; i <= count; i++)
			in[r * (count + 1) + i] = value(r, seq, i);
		cmd[r] = zn_cmd(zn, r, seq, ZCOLL_INT32, ZCOLL_SUM, in + r * (count + 1),
				out + r * (count + 1), count);
	}
	ret = zt_all_of(zn->ep, ZCOLL_ALLREDUCE, cmd, zn->nranks);
	for (unsigned int r = 0; r < zn->nranks && !ret; r++) {
		for (uint64_t i = 0; i < count && !ret; i++)
			ret = out[r * (count + 1) + i] != value_sum(zn->nranks, seq, i);
		ret = ret ?: out[r * (count + 1) + count] != 0;
	}
	free(in);
	free(out);
	return ret;
}

static const uint64_t counts[] = { 0, 1, 7, 960, 961, 16384 + 1, 100003 };

/* Every algorithm, on so many nodes with so many ranks each */
static int all_algorithms(struct zn *zn, struct zt *zt, unsigned int nodes,
			  const unsigned int *ranks, char *what, size_t len)
{
	unsigned int made = 0;
	const char *algo;
	int ret;

	for (unsigned int a = 0; (algo = zcoll_plan_algorithm(a)); a++) {
		uint64_t seq = 0;

		zn_init(zn, zt, nodes, ranks);
		ret = zn_open(zn);
		snprintf(what, len, "%s on %u nodes", algo, nodes);
		if (ret)
			return ret;
		ret = zn_plan(zn, algo, ZCOLL_ALLREDUCE, 0);
		if (ret < 0)
			return ret;
		/* There may be none such for so many nodes */
		for (unsigned int c = 0; c < ARRAY_SIZE(counts) && !ret; c++) {
			snprintf(what, len, "%s on %u nodes, count %llu", algo, nodes,
				 (unsigned long long)counts[c]);
			ret = allreduce(zn, seq++, counts[c]);
			if (ret)
				return ret;
			made++;
		}
		for (unsigned int i = 0; i < zn->neps; i++)
			zt_close_ep(zt, zn->ep[i]);
	}
	return made ? 0 : -ENOENT;
}

#define EXPECT_ALL_ALGORITHMS(...) do {						\
	const unsigned int __ranks[] = { __VA_ARGS__ };				\
	char __what[80];							\
	int __ret = all_algorithms(&self->zn, &self->zt, ARRAY_SIZE(__ranks), __ranks, \
				   __what, sizeof(__what));			\
										\
	EXPECT_EQ(0, __ret)							\
		TH_LOG("%s: %s", __what, zn_text(&self->zn, self->zn.ep[0]));	\
} while (0)

TEST_F(net, two_nodes_say_something)
{
	const unsigned int ranks[] = { 1, 1 };

	zn_init(&self->zn, &self->zt, 2, ranks);
	ASSERT_EQ(0, zn_open(&self->zn)) TH_LOG("%s", self->zn.text);
	ASSERT_EQ(0, zn_plan(&self->zn, "ring", ZCOLL_ALLREDUCE, 0)) TH_LOG("%s", self->zn.text);
	EXPECT_EQ(0, allreduce(&self->zn, 0, 10))
		TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
	EXPECT_EQ(1, zn_stats(self->zn.ep[0]).connected);
	EXPECT_LT(0, zn_stats(self->zn.ep[0]).bytes_inline);
	EXPECT_EQ(0, zn_stats(self->zn.ep[0]).bytes_written);
}

TEST_F(net, long_vectors_are_written)
{
	const unsigned int ranks[] = { 1, 1 };

	zn_init(&self->zn, &self->zt, 2, ranks);
	ASSERT_EQ(0, zn_open(&self->zn)) TH_LOG("%s", self->zn.text);
	ASSERT_EQ(0, zn_plan(&self->zn, "ring", ZCOLL_ALLREDUCE, 0)) TH_LOG("%s", self->zn.text);
	EXPECT_EQ(0, allreduce(&self->zn, 0, 1000003))
		TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
	/* A ring of two sends each element once to be folded or as a result */
	EXPECT_EQ(1000003U * 4, zn_stats(self->zn.ep[0]).bytes_written);
	EXPECT_EQ(0, zn_stats(self->zn.ep[0]).bytes_inline);
	EXPECT_EQ(0, zn_stats(self->zn.ep[0]).bytes_copied);
}

TEST_F_TIMEOUT(net, algorithms_on_two_nodes, 120)
{
	EXPECT_ALL_ALGORITHMS(1, 1);
}

TEST_F_TIMEOUT(net, algorithms_on_three_nodes, 120)
{
	EXPECT_ALL_ALGORITHMS(1, 3, 2);
}

TEST_F_TIMEOUT(net, algorithms_on_eight_nodes, 240)
{
	EXPECT_ALL_ALGORITHMS(1, 1, 1, 1, 1, 1, 1, 1);
}

#define FLIGHT	24

/* Called in another order on each node, of very different lengths */
TEST_F_TIMEOUT(net, operations_in_flight, 120)
{
	static const uint64_t lengths[] = { 100003, 5, 2000, 40001 };
	const unsigned int ranks[] = { 1, 1, 1 };
	static struct zt_call call[3][FLIGHT];
	static struct zcoll_cmd cmd[3][FLIGHT];
	static int32_t *buf[3][FLIGHT];
	struct zn *zn = &self->zn;

	zn_init(zn, &self->zt, 3, ranks);
	ASSERT_EQ(0, zn_open(zn)) TH_LOG("%s", zn->text);
	ASSERT_EQ(0, zn_plan(zn, "ring", ZCOLL_ALLREDUCE, 0)) TH_LOG("%s", zn->text);
	for (unsigned int i = 0; i < FLIGHT; i++) {
		for (unsigned int r = 0; r < 3; r++) {
			unsigned int seq = r == 0 ? i : r == 1 ? FLIGHT - 1 - i : i ^ 1;
			uint64_t count = lengths[seq % 4];
			int32_t *b = malloc(count * sizeof(*b));

			buf[r][seq] = b;
			for (uint64_t e = 0; e < count; e++)
				b[e] = value(r, seq, e);
			cmd[r][seq] = zn_cmd(zn, r, seq, ZCOLL_INT32, ZCOLL_SUM, b, b, count);
			zt_start_op(&call[r][seq], zn->ep[r], &cmd[r][seq]);
		}
	}
	for (unsigned int seq = 0; seq < FLIGHT; seq++) {
		for (unsigned int r = 0; r < 3; r++) {
			bool right = true;

			EXPECT_EQ(0, zt_finish(&call[r][seq], ZT_LONG_MS))
				TH_LOG("%s", zn_text(zn, zn->ep[r]));
			for (uint64_t e = 0; e < lengths[seq % 4]; e++)
				right &= buf[r][seq][e] == value_sum(3, seq, e);
			EXPECT_TRUE(right) TH_LOG("operation %u", seq);
			free(buf[r][seq]);
		}
	}
}

/* Many more messages than there are credits at a time, in both directions, and in one */
TEST_F_TIMEOUT(net, more_operations_than_credits, 120)
{
	const unsigned int ranks[] = { 1, 1 };
	struct zn *zn = &self->zn;

	zn_init(zn, &self->zt, 2, ranks);
	ASSERT_EQ(0, zn_open(zn)) TH_LOG("%s", zn->text);
	ASSERT_EQ(0, zn_plan(zn, "ring", ZCOLL_ALLREDUCE, 0)) TH_LOG("%s", zn->text);
	for (unsigned int seq = 0; seq < 300; seq++)
		ASSERT_EQ(0, allreduce(zn, seq, 3)) TH_LOG("%s", zn_text(zn, zn->ep[0]));
	ASSERT_EQ(0, zn_plan(zn, "binomial", ZCOLL_BROADCAST, 0)) TH_LOG("%s", zn->text);
	for (unsigned int seq = 300; seq < 600; seq++) {
		int32_t in = seq, out[2] = {};
		struct zcoll_cmd cmd[2] = {
			zn_cmd(zn, 0, seq, ZCOLL_INT32, 0, &in, &out[0], 1),
			zn_cmd(zn, 1, seq, ZCOLL_INT32, 0, NULL, &out[1], 1),
		};

		ASSERT_EQ(0, zt_all_of(zn->ep, ZCOLL_BROADCAST, cmd, 2))
			TH_LOG("%s", zn_text(zn, zn->ep[0]));
		ASSERT_EQ((int)seq, out[1]);
	}
}

/* Two ranks of two nodes, in place: the sums of @n numbers, and the last of them at rank 0 */
static int sum_of_two(struct zn *zn, uint64_t seq, int32_t *mem[2], uint64_t n, int32_t *last)
{
	struct zcoll_cmd cmd[2];
	int ret;

	for (unsigned int r = 0; r < 2; r++)
		cmd[r] = zn_cmd(zn, r, seq, ZCOLL_INT32, ZCOLL_SUM, mem[r], mem[r], n);
	ret = zt_all(zn->ep, cmd, 2);
	*last = mem[0][n - 1];
	for (uint64_t i = 0; i < n && !ret; i++)
		ret = mem[0][i] != *last || mem[1][i] != *last;
	return ret;
}

/* Others had its keys: so what is not registered does not stay pinned, and may be changed */
TEST_F(net, memory_that_is_not_registered_does_not_stay_pinned)
{
	enum { COUNT = 100000, BYTES = 4 * COUNT };
	const unsigned int ranks[] = { 1, 1 };
	struct zn *zn = &self->zn;
	int32_t *mem[2], last;

	zn_init(zn, &self->zt, 2, ranks);
	ASSERT_EQ(0, zn_open(zn)) TH_LOG("%s", zn->text);
	ASSERT_EQ(0, zn_plan(zn, "ring", ZCOLL_ALLREDUCE, 0)) TH_LOG("%s", zn->text);
	for (unsigned int r = 0; r < 2; r++) {
		mem[r] = zt_pages(BYTES);
		for (int i = 0; i < COUNT; i++)
			mem[r][i] = 1;
	}
	for (int seq = 0; seq < 3; seq++) {
		ASSERT_EQ(0, sum_of_two(zn, seq, mem, COUNT, &last));
		EXPECT_EQ(2 << seq, last);
	}
	EXPECT_EQ(0, zn_stats(zn->ep[0]).cache_hits);
	EXPECT_EQ(0, zn_stats(zn->ep[0]).cache_pages);
	ASSERT_EQ(0, madvise(mem[0], BYTES, MADV_DONTNEED));
	ASSERT_EQ(0, sum_of_two(zn, 3, mem, COUNT, &last));
	EXPECT_EQ(8, last);
	ASSERT_EQ(mem[1], mmap(mem[1], BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	ASSERT_EQ(0, sum_of_two(zn, 4, mem, COUNT, &last));
	EXPECT_EQ(8, last);
	EXPECT_EQ(0, zn_stats(zn->ep[1]).cache_pages);
}

/* Grants wait for memory to be opened and for credits, and keys go before them all the same */
TEST_F_TIMEOUT(net, long_vectors_with_the_fewest_credits, 120)
{
	const unsigned int ranks[] = { 2, 1, 1, 1 };
	unsigned int was = zt_parameter("depth", 6);
	char what[64] = "";

	EXPECT_EQ(0, all_algorithms(&self->zn, &self->zt, 4, ranks, what, sizeof(what)))
		TH_LOG("%s: %s", what, self->zn.text);
	zt_parameter("depth", was);
}

ZT_MAIN
