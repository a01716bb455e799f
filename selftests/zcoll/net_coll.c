// SPDX-License-Identifier: GPL-2.0
/*
 * All collectives between nodes, by fabric "loop": every algorithm that there is for one, nodes
 * with equally and unequally many ranks, ranks that do not lie on nodes in a row, nodes that
 * only aggregate, every root, in place and not, registered memory and not.
 *
 * Elements are int32 and are summed, so that the order of reduction does not matter. Outputs
 * are a little longer than the result, to see that nothing else is written.
 */
#include "net.h"
#include "kselftest_harness.h"

#define GUARD	16
#define MARK	0x5a5a5a5a

FIXTURE(coll) {
	struct zt zt;
	struct zn zn;
	char what[160];
};

FIXTURE_SETUP(coll)
{
	ZT_SETUP(self);
}

FIXTURE_TEARDOWN(coll)
{
	ZT_TEARDOWN(self);
}

/**
 * struct round - one operation of all ranks
 * @zn: nodes
 * @collective: ZCOLL_ALLREDUCE ...
 * @root: rank
 * @seq: operation
 * @count: elements, as in struct zcoll_cmd
 * @in_place: where the ABI allows it
 * @registered: memory is registered before
 * @in: inputs
 * @out: outputs, with GUARD elements before and after
 */
struct round {
	struct zn *zn;
	unsigned int collective;
	unsigned int root;
	uint64_t seq;
	uint64_t count;
	bool in_place;
	bool registered;
	int32_t *in[ZN_MAX_RANKS];
	int32_t *out[ZN_MAX_RANKS];
};

/* Element @i of rank @r's input */
static int32_t value(const struct round *c, unsigned int r, uint64_t i)
{
	return (int32_t)((i * 2654435761U + r * 40503U + c->seq * 97) % 100003);
}

static uint64_t elements_in(const struct round *c, unsigned int r)
{
	switch (c->collective) {
	case ZCOLL_REDUCE_SCATTER:	return c->count * c->zn->nranks;
	case ZCOLL_BROADCAST:		return r == c->root ? c->count : 0;
	case ZCOLL_BARRIER:		return 0;
	default:			return c->count;
	}
}

static uint64_t elements_out(const struct round *c, unsigned int r)
{
	switch (c->collective) {
	case ZCOLL_ALLGATHER:		return c->count * c->zn->nranks;
	case ZCOLL_REDUCE:		return r == c->root ? c->count : 0;
	case ZCOLL_BARRIER:		return 0;
	default:			return c->count;
	}
}

static int32_t sum(const struct round *c, uint64_t i)
{
	int32_t sum = 0;

	for (unsigned int r = 0; r < c->zn->nranks; r++)
		sum += value(c, r, i);
	return sum;
}

/* Element @i of what rank @r must have */
static int32_t expected(const struct round *c, unsigned int r, uint64_t i)
{
	switch (c->collective) {
	case ZCOLL_REDUCE_SCATTER:	return sum(c, r * c->count + i);
	case ZCOLL_ALLGATHER:		return value(c, i / c->count, i % c->count);
	case ZCOLL_BROADCAST:		return value(c, c->root, i);
	default:			return sum(c, i);
	}
}

/* Memory of a rank; in place the smaller one lies in the larger, as block of the rank */
static void prepare_rank(struct round *c, unsigned int r)
{
	uint64_t in = elements_in(c, r), out = elements_out(c, r);
	uint64_t most = in > out ? in : out;
	int32_t *room = malloc((most + 2 * GUARD) * sizeof(*room));
	int32_t *block = room + GUARD + (in == out ? 0 : r * c->count);

	for (uint64_t i = 0; i < most + 2 * GUARD; i++)
		room[i] = MARK;
	c->out[r] = c->collective == ZCOLL_REDUCE_SCATTER && c->in_place ? block : room + GUARD;
	if (!c->in_place || !in || !out)
		c->in[r] = malloc((in + 1) * sizeof(*room));
	else
		c->in[r] = c->collective == ZCOLL_ALLGATHER ? block : room + GUARD;
	for (uint64_t i = 0; i < in; i++)
		c->in[r][i] = value(c, r, i);
}

static int32_t *room_of(const struct round *c, unsigned int r)
{
	bool inside = c->collective == ZCOLL_REDUCE_SCATTER && c->in_place;

	return c->out[r] - GUARD - (inside ? r * c->count : 0);
}

/* Return: 0, or 1: wrong */
static int check_rank(const struct round *c, unsigned int r)
{
	uint64_t out = elements_out(c, r), in = elements_in(c, r);
	uint64_t most = in > out ? in : out;
	int32_t *room = room_of(c, r);

	for (uint64_t i = 0; i < out; i++)
		if (c->out[r][i] != expected(c, r, i))
			return 1;
	for (uint64_t i = 0; i < GUARD; i++)
		if (room[i] != MARK || room[GUARD + most + i] != MARK)
			return 1;
	return 0;
}

static void free_rank(struct round *c, unsigned int r)
{
	if (!c->in_place || !elements_in(c, r) || !elements_out(c, r))
		free(c->in[r]);
	free(room_of(c, r));
}

static struct zcoll_cmd command(struct round *c, unsigned int r)
{
	bool barrier = c->collective == ZCOLL_BARRIER;
	bool reduces = c->collective == ZCOLL_ALLREDUCE || c->collective == ZCOLL_REDUCE ||
		       c->collective == ZCOLL_REDUCE_SCATTER;
	struct zcoll_cmd cmd = zn_cmd(c->zn, r, c->seq, barrier ? 0 : ZCOLL_INT32,
				      reduces ? ZCOLL_SUM : 0, c->in[r], c->out[r], c->count);

	if (c->collective == ZCOLL_BROADCAST || c->collective == ZCOLL_REDUCE)
		cmd.root = c->root;
	if (barrier) {
		cmd.send = 0;
		cmd.recv = 0;
	}
	return cmd;
}

/* Let the command speak of registered memory. Return: 0 or a negative errno. */
static int register_rank(struct round *c, unsigned int r, struct zcoll_cmd *cmd)
{
	uint64_t in = elements_in(c, r), out = elements_out(c, r);
	uint64_t most = in > out ? in : out;
	int ep = c->zn->ep[r], ret = 0;

	/* In place both are in one buffer: two handles of the same pages would do, too */
	if (in)
		ret = zt_register(ep, c->in[r], in * sizeof(int32_t), &cmd->send_buf);
	if (in)
		cmd->send = 0;
	if (c->in_place && in && out)
		return 0;
	if (!ret && out)
		ret = zt_register(ep, c->out[r], most * sizeof(int32_t), &cmd->recv_buf);
	if (out)
		cmd->recv = 0;
	return ret;
}

/* Carry a round out. Return: 0, a negative errno, or 1: wrong data. */
static int carry_out(struct round *c)
{
	struct zcoll_cmd cmd[ZN_MAX_RANKS];
	struct zn *zn = c->zn;
	int ret = 0;

	for (unsigned int r = 0; r < zn->nranks && !ret; r++) {
		prepare_rank(c, r);
		cmd[r] = command(c, r);
		if (c->registered && !c->in_place)
			ret = register_rank(c, r, &cmd[r]);
	}
	ret = ret ?: zt_all_of(zn->ep, c->collective, cmd, zn->nranks);
	for (unsigned int r = 0; r < zn->nranks; r++) {
		ret = ret ?: check_rank(c, r);
		if (cmd[r].send_buf)
			zt_unregister(zn->ep[r], cmd[r].send_buf);
		if (cmd[r].recv_buf)
			zt_unregister(zn->ep[r], cmd[r].recv_buf);
		free_rank(c, r);
	}
	return ret;
}

static const uint64_t counts[] = { 0, 1, 333, 4099, 50001 };

static unsigned int roots(const struct zn *zn, unsigned int collective)
{
	return collective == ZCOLL_BROADCAST || collective == ZCOLL_REDUCE ? zn->nranks : 1;
}

/* Rounds of one collective with the plan that is loaded */
static int rounds(struct zn *zn, unsigned int collective, uint64_t *seq, char *what)
{
	unsigned int ncounts = collective == ZCOLL_BARRIER ? 1 : ARRAY_SIZE(counts);
	int ret = 0;

	for (unsigned int i = 0; i < ncounts * roots(zn, collective) && !ret; i++) {
		struct round round = {
			.zn = zn, .collective = collective, .seq = (*seq)++,
			.count = counts[i % ncounts], .root = i / ncounts,
			.in_place = i % 2, .registered = i / 2 % 2,
		};

		ret = carry_out(&round);
		if (ret)
			sprintf(what + strlen(what), ": count %llu, root %u, in place %d: %d",
				(unsigned long long)round.count, round.root, round.in_place, ret);
	}
	return ret;
}

/* Every algorithm for every collective, on nodes that are open. Return: how many plans. */
static int all_plans(struct zn *zn, char *what)
{
	uint64_t seq = 0;
	int plans = 0, ret;
	const char *algo;

	for (unsigned int coll = ZCOLL_ALLREDUCE; coll < ZCOLL_NR_COLLECTIVES; coll++) {
		for (unsigned int a = 0; (algo = zcoll_plan_algorithm(a)); a++) {
			ret = zn_plan(zn, algo, coll, 0);
			if (ret > 0)
				continue;
			sprintf(what, "%s %s", algo, zcoll_collective_name(coll));
			if (!ret)
				ret = rounds(zn, coll, &seq, what);
			if (ret)
				return -1;
			plans++;
		}
	}
	return plans;
}

#define EXPECT_ALL_PLANS(least) do {						\
	int __plans;								\
										\
	*self->what = '\0';							\
	ASSERT_EQ(0, zn_open(&self->zn)) TH_LOG("%s", self->zn.text);		\
	__plans = all_plans(&self->zn, self->what);				\
	EXPECT_LE(least, __plans)						\
		TH_LOG("%s: %s", self->what, zn_text(&self->zn, self->zn.ep[0])); \
} while (0)

TEST_F_TIMEOUT(coll, one_rank_on_each_of_four_nodes, 300)
{
	const unsigned int ranks[] = { 1, 1, 1, 1 };

	zn_init(&self->zn, &self->zt, 4, ranks);
	EXPECT_ALL_PLANS(15);
}

TEST_F_TIMEOUT(coll, unequally_many_ranks, 300)
{
	const unsigned int ranks[] = { 2, 1, 3 };

	zn_init(&self->zn, &self->zt, 3, ranks);
	EXPECT_ALL_PLANS(10);
}

TEST_F_TIMEOUT(coll, ranks_that_do_not_lie_in_a_row, 300)
{
	const unsigned int ranks[] = { 2, 2 };

	zn_init(&self->zn, &self->zt, 2, ranks);
	for (unsigned int r = 0; r < 4; r++)
		self->zn.map[r] = r % 2;
	self->zn.first[1] = 1;
	EXPECT_ALL_PLANS(10);
}

TEST_F_TIMEOUT(coll, nodes_that_only_aggregate, 300)
{
	const unsigned int ranks[] = { 1, 2, 1, 0 };

	zn_init(&self->zn, &self->zt, 4, ranks);
	EXPECT_ALL_PLANS(1);
}

TEST_F_TIMEOUT(coll, several_rails, 300)
{
	const unsigned int ranks[] = { 1, 1, 1 };

	zn_init(&self->zn, &self->zt, 3, ranks);
	self->zn.fabric = "loop:3";
	EXPECT_ALL_PLANS(10);
	EXPECT_EQ(3, zn_stats(self->zn.ep[0]).rails);
}

ZT_MAIN
