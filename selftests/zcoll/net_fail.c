// SPDX-License-Identifier: GPL-2.0
/*
 * Failure between nodes, by fabric "loop": the verdict is given on all nodes, soon, with one text;
 * nothing is written after it; and nothing is left behind.
 */

#include <sys/wait.h>

#include "net.h"
#include "kselftest_harness.h"

#define NODES	3
#define LONG	1000003
#define SHORT	100
#define FLIGHT	6

FIXTURE(fail) {
	struct zt zt;
	struct zn zn;
	struct zcoll_cmd cmd[ZN_MAX_RANKS];
	struct zt_call call[ZN_MAX_RANKS];
	int32_t *buf[ZN_MAX_RANKS];
};

/* Three nodes, of which the second one has two ranks: 0, 1 and 2, 3 */
FIXTURE_SETUP(fail)
{
	const unsigned int ranks[NODES] = { 1, 2, 1 };

	ZT_SETUP(self);
	zn_init(&self->zn, &self->zt, NODES, ranks);
	for (unsigned int r = 0; r < self->zn.nranks; r++)
		self->buf[r] = calloc(LONG, sizeof(int32_t));
}

FIXTURE_TEARDOWN(fail)
{
	for (unsigned int r = 0; r < self->zn.nranks; r++)
		free(self->buf[r]);
	ZT_TEARDOWN(self);
}

#define OPEN(algo, flags) do {							\
	ASSERT_EQ(0, zn_open(&self->zn)) TH_LOG("%s", self->zn.text);		\
	ASSERT_EQ(0, zn_plan(&self->zn, algo, ZCOLL_ALLREDUCE, flags))		\
		TH_LOG("%s", self->zn.text);					\
} while (0)

/* Rank @r calls, in a thread */
#define START(r, seq, elements) do {						\
	self->cmd[r] = zn_cmd(&self->zn, r, seq, ZCOLL_INT32, ZCOLL_SUM, self->buf[r], \
			      self->buf[r], elements);				\
	zt_start_op(&self->call[r], self->zn.ep[r], &self->cmd[r]);		\
} while (0)

/* All ranks from @first on have got @err, and tell the same, in which is @word */
#define EXPECT_FAILED(err, word, skip) do {					\
	char __text[ZCOLL_TEXT_MAX] = "";					\
										\
	for (unsigned int __r = 0; __r < self->zn.nranks; __r++) {		\
		if (__r == (skip))						\
			continue;						\
		EXPECT_EQ(err, zt_finish(&self->call[__r], ZT_SOON_MS))		\
			TH_LOG("rank %u: %s", __r,				\
			       zn_text(&self->zn, self->zn.ep[__r]));		\
		if (!*__text)							\
			strcpy(__text, zn_text(&self->zn, self->zn.ep[__r]));	\
		EXPECT_STREQ(__text, zn_text(&self->zn, self->zn.ep[__r]));	\
	}									\
	EXPECT_NE(NULL, strstr(__text, word)) TH_LOG("%s", __text);		\
} while (0)

#define NOBODY	99U

TEST_F(fail, abort_ends_operations_on_all_nodes)
{
	OPEN("ring", 0);
	for (unsigned int r = 1; r < 4; r++)
		START(r, 0, LONG);
	zt_sleep_ms(ZT_QUIET_MS);
	EXPECT_EQ(0, zt_abort(self->zn.ep[1]));
	EXPECT_FAILED(-ECANCELED, "rank 1", 0U);
	/* And what is called later */
	START(0, 0, LONG);
	EXPECT_EQ(-ECANCELED, zt_finish(&self->call[0], ZT_SOON_MS));
}

TEST_F(fail, abort_in_the_middle_of_bytes)
{
	OPEN("ring", 0);
	for (uint64_t seq = 0; ; seq++) {
		int ret[4];

		for (unsigned int r = 0; r < 4; r++)
			START(r, seq, LONG);
		if (seq == 2)
			EXPECT_EQ(0, zt_abort(self->zn.ep[3]));
		for (unsigned int r = 0; r < 4; r++)
			ret[r] = zt_finish(&self->call[r], ZT_LONG_MS);
		for (unsigned int r = 0; r < 4; r++) {
			EXPECT_TRUE(ret[r] == 0 || (seq >= 2 && ret[r] == -ECANCELED))
				TH_LOG("rank %u: %d", r, ret[r]);
		}
		if (seq > 2 || ret[3])
			break;
	}
	/* After its verdict a buffer is quiet */
	for (unsigned int r = 0; r < 4; r++)
		memset(self->buf[r], 0x77, LONG * sizeof(int32_t));
	zt_sleep_ms(ZT_QUIET_MS);
	for (unsigned int r = 0; r < 4; r++)
		for (unsigned int i = 0; i < LONG; i++)
			ASSERT_EQ(0x77777777, self->buf[r][i]);
}

/**
 * struct shared - between the test and its child
 * @addresses: of all nodes
 * @joined: the child has
 * @told: the test knows all addresses
 * @ready: the child does, too
 */
struct shared {
	uint8_t addresses[NODES][ZCOLL_ADDRESS_MAX];
	atomic_int joined;
	atomic_int told;
	atomic_int ready;
};

/* A child that is rank 3, alone on its node, and does nothing */
static void be_rank_3(struct zn *zn, struct shared *shared)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	zn->ep[3] = zn_join(zn, 3);
	if (zn->ep[3] < 0 || zn_address(zn->ep[3], shared->addresses[2]))
		_exit(1);
	shared->joined = 1;
	zt_until(ZT_LONG_MS, shared->told);
	if (zn_peers(zn, zn->ep[3], shared->addresses))
		_exit(1);
	shared->ready = 1;
	pause();
	_exit(0);
}

TEST_F(fail, death_of_a_process)
{
	struct shared *shared = zt_shared(sizeof(*shared));
	struct zcoll_plan_spec spec = {
		.size = sizeof(spec), .algo = "ring", .nodes = NODES,
		.collective = ZCOLL_ALLREDUCE,
	};
	struct zcoll_plan *plan;
	pid_t pid;

	ASSERT_NE(NULL, shared);
	ASSERT_EQ(0, zcoll_plan_make(&spec, &plan, self->zn.text, ZCOLL_TEXT_MAX));
	pid = fork();
	if (!pid)
		be_rank_3(&self->zn, shared);
	for (unsigned int i = 0; i < 3; i++) {
		self->zn.ep[i] = zn_join(&self->zn, i);
		ASSERT_LE(0, self->zn.ep[i]) TH_LOG("%s", self->zn.text);
	}
	for (unsigned int n = 0; n < 2; n++)
		ASSERT_EQ(0, zn_address(self->zn.ep[n], shared->addresses[n]));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, shared->joined));
	shared->told = 1;
	for (unsigned int n = 0; n < 2; n++) {
		ASSERT_EQ(0, zn_peers(&self->zn, self->zn.ep[n], shared->addresses));
		ASSERT_EQ(0, zn_load(&self->zn, self->zn.ep[n], plan, &self->zn.plan[n]));
	}
	ASSERT_TRUE(zt_until(ZT_LONG_MS, shared->ready));
	for (unsigned int r = 0; r < 3; r++)
		START(r, 0, SHORT);
	zt_sleep_ms(ZT_QUIET_MS);
	kill(pid, SIGKILL);
	for (unsigned int r = 0; r < 3; r++)
		EXPECT_EQ(-EOWNERDEAD, zt_finish(&self->call[r], ZT_SOON_MS));
	EXPECT_NE(NULL, strstr(zn_text(&self->zn, self->zn.ep[0]), "rank 3"))
		TH_LOG("%s", self->zn.text);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_SOON_MS));
	zcoll_plan_free(plan);
	munmap(shared, sizeof(*shared));
}

/* The status of operation @seq, RUNNING, as rank @r has it, tells of @word */
#define EXPECT_WAITS(r, op, word) do {						\
	struct zcoll_status __st = {};						\
	char __text[ZCOLL_TEXT_MAX] = "";					\
										\
	EXPECT_TRUE(zt_until(ZT_SOON_MS,					\
			     !zt_status(self->zn.ep[r], op, &__st, __text) &&	\
			     __st.state == ZCOLL_STATE_RUNNING && strstr(__text, word))) \
		TH_LOG("rank %u, state %u: %s", r, __st.state, __text);		\
} while (0)

/* Each node names the one that it waits for, and why */
TEST_F(fail, status_names_the_node_that_is_missing)
{
	OPEN("ring", 0);
	for (unsigned int r = 0; r < 3; r++)
		START(r, 0, SHORT);
	/* Elements come from node 2, which has connected with nobody */
	EXPECT_WAITS(0, 0, "all-reduce 0: waits for node 2 (not connected)");
	START(3, 0, SHORT);
	for (unsigned int r = 0; r < 4; r++)
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_LONG_MS));
	for (unsigned int r = 0; r < 3; r++)
		START(r, 1, SHORT);
	EXPECT_WAITS(0, 1, "all-reduce 1: waits for node 2 (nothing has come from it)");
	/* Node 0 has sent something, and waits itself */
	EXPECT_WAITS(1, 1, "all-reduce 1: waits for node 0 (more is to come from it)");
	START(3, 1, SHORT);
	for (unsigned int r = 0; r < 4; r++)
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_LONG_MS));
	/* Of long vectors, too, which wait for grants */
	for (unsigned int r = 0; r < 3; r++)
		START(r, 2, LONG);
	EXPECT_WAITS(0, 2, "node 2 (nothing has come from it)");
	EXPECT_WAITS(1, 2, "node 2 (nothing has come from it)");
	START(3, 2, LONG);
	for (unsigned int r = 0; r < 4; r++)
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_LONG_MS));
}

TEST_F(fail, deadline_names_the_node_that_is_missing)
{
	OPEN("ring", 0);
	for (unsigned int r = 0; r < 4; r++)
		START(r, 0, SHORT);
	for (unsigned int r = 0; r < 4; r++)
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_LONG_MS));
	self->cmd[0] = zn_cmd(&self->zn, 0, 1, ZCOLL_INT32, ZCOLL_SUM, self->buf[0], self->buf[0],
			      SHORT);
	self->cmd[0].deadline_ns = ZT_QUIET_MS * 1000000ULL;
	zt_start_op(&self->call[0], self->zn.ep[0], &self->cmd[0]);
	START(1, 1, SHORT);
	START(2, 1, SHORT);
	zt_sleep_ms(2 * ZT_QUIET_MS);
	START(3, 1, SHORT);
	EXPECT_FAILED(-ETIMEDOUT, "all-reduce 1: deadline of rank 0 passed, 200000 us after its submission; node 0 waits for node 2 (nothing has come from it)",
		      NOBODY);
}

/* Whoever finds it, and all the others */
TEST_F(fail, mismatch_of_two_nodes_has_one_text)
{
	const unsigned int ranks[] = { 1, 2 };

	zn_init(&self->zn, &self->zt, 2, ranks);
	OPEN("ring", 0);
	for (unsigned int r = 0; r < 3; r++)
		START(r, 0, r == 0 ? SHORT : SHORT + 1);
	EXPECT_FAILED(-EPROTO, "rank 0 on node 0 and rank", NOBODY);
	EXPECT_NE(NULL, strstr(self->zn.text, "differ in count (100 and 101)"));
}

TEST_F(fail, mismatch_of_long_vectors)
{
	OPEN("recursive-doubling", 0);
	for (unsigned int r = 0; r < 4; r++)
		START(r, 0, r == 0 ? LONG : LONG - 1);
	for (unsigned int r = 0; r < 4; r++)
		EXPECT_EQ(-EPROTO, zt_finish(&self->call[r], ZT_SOON_MS));
	EXPECT_NE(NULL, strstr(zn_text(&self->zn, self->zn.ep[0]),
			       "differ in count (1000003 and 1000002)"))
		TH_LOG("%s", self->zn.text);
}

/* A node that has left in good order is no failure until it is needed */
TEST_F(fail, leaving_is_no_failure_until_needed)
{
	OPEN("ring", 0);
	for (unsigned int r = 0; r < 4; r++)
		START(r, 0, LONG);
	for (unsigned int r = 0; r < 4; r++)
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_LONG_MS));
	EXPECT_EQ(0, zt_leave(self->zn.ep[3]));
	zt_close_ep(&self->zt, self->zn.ep[3]);
	zt_sleep_ms(2 * ZT_QUIET_MS);
	EXPECT_EQ(0, zt_revoked(self->zn.ep[0]));
	EXPECT_EQ(0, zt_revoked(self->zn.ep[1]));
	for (unsigned int r = 0; r < 3; r++)
		START(r, 1, SHORT);
	for (unsigned int r = 0; r < 3; r++)
		EXPECT_EQ(-ESHUTDOWN, zt_finish(&self->call[r], ZT_SOON_MS));
	EXPECT_NE(NULL, strstr(zn_text(&self->zn, self->zn.ep[0]), "node 2 has left"))
		TH_LOG("%s", self->zn.text);
}

/* What is pending fails when a node leaves that has not called it */
TEST_F(fail, leaving_while_others_wait)
{
	OPEN("ring", 0);
	for (unsigned int r = 0; r < 4; r++)
		START(r, 0, SHORT);
	for (unsigned int r = 0; r < 4; r++)
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_LONG_MS));
	for (unsigned int r = 0; r < 3; r++)
		START(r, 1, SHORT);
	zt_sleep_ms(ZT_QUIET_MS);
	EXPECT_EQ(0, zt_leave(self->zn.ep[3]));
	for (unsigned int r = 0; r < 3; r++)
		EXPECT_EQ(-ESHUTDOWN, zt_finish(&self->call[r], ZT_SOON_MS));
	EXPECT_NE(NULL, strstr(zn_text(&self->zn, self->zn.ep[0]), "node 2 has left"))
		TH_LOG("%s", self->zn.text);
}

TEST_F(fail, node_that_cannot_be_reached)
{
	static uint8_t addresses[NODES][ZCOLL_ADDRESS_MAX];

	for (unsigned int i = 0; i < 4; i++) {
		self->zn.ep[i] = zn_join(&self->zn, i);
		ASSERT_LE(0, self->zn.ep[i]) TH_LOG("%s", self->zn.text);
	}
	for (unsigned int n = 0; n < NODES; n++)
		ASSERT_EQ(0, zn_address(self->zn.ep[self->zn.first[n]], addresses[n]));
	memset(addresses[2], 0xee, 8);
	for (unsigned int n = 0; n < NODES; n++)
		ASSERT_EQ(0, zn_peers(&self->zn, self->zn.ep[self->zn.first[n]], addresses));
	ASSERT_EQ(0, zn_plan(&self->zn, "ring", ZCOLL_ALLREDUCE, 0)) TH_LOG("%s", self->zn.text);
	for (unsigned int r = 0; r < 4; r++)
		START(r, 0, SHORT);
	EXPECT_FAILED(-EHOSTUNREACH, "node 2 cannot be reached", 3U);
	/* Who cannot be reached cannot be told: it notices by itself */
	EXPECT_EQ(-EHOSTDOWN, zt_finish(&self->call[3], ZT_LONG_MS));
}

TEST_F(fail, other_key)
{
	const unsigned int ranks[] = { 1, 1 };
	static uint8_t addresses[2][ZCOLL_ADDRESS_MAX];
	struct zn *zn = &self->zn, other;

	zn_init(zn, &self->zt, 2, ranks);
	zn_init(&other, &self->zt, 2, ranks);
	zn->ep[0] = zn_join(zn, 0);
	zn->ep[1] = zn_join(&other, 1);
	ASSERT_LE(0, zn->ep[0]) TH_LOG("%s", zn->text);
	ASSERT_LE(0, zn->ep[1]) TH_LOG("%s", other.text);
	for (unsigned int n = 0; n < 2; n++)
		ASSERT_EQ(0, zn_address(zn->ep[n], addresses[n]));
	for (unsigned int n = 0; n < 2; n++)
		ASSERT_EQ(0, zn_peers(zn, zn->ep[n], addresses));
	ASSERT_EQ(0, zn_plan(zn, "ring", ZCOLL_ALLREDUCE, 0)) TH_LOG("%s", zn->text);
	START(0, 0, SHORT);
	EXPECT_EQ(-EKEYREJECTED, zt_finish(&self->call[0], ZT_SOON_MS));
	EXPECT_EQ(0, zt_revoked(zn->ep[1]));
}

/* What ends a communicator while operations are in flight: each once in turn */
static void end_somehow(struct zn *zn, unsigned int round)
{
	int ep = zn->ep[round / 3 % 3];

	switch (round % 3) {
	case 0:
		zt_abort(ep);
		break;
	case 1:
		zt_leave(ep);
		break;
	case 2:
		zt_cancel(ep, FLIGHT / 2);
		break;
	}
}

/* At any time: operations end, with success or that error, and nothing is left behind */
TEST_F_TIMEOUT(fail, the_end_comes_at_any_time, 120)
{
	static const char * const algos[] = { "ring", "recursive-doubling", "binomial" };
	const unsigned int ranks[] = { 1, 1, 1 };
	static struct zcoll_cmd cmd[FLIGHT][3];
	static struct zt_call call[FLIGHT][3];
	uint64_t end = zt_now_ms() + 10000;
	struct zn *zn = &self->zn;

	for (unsigned int round = 0; zt_now_ms() < end; round++) {
		zn_init(zn, &self->zt, 3, ranks);
		OPEN(algos[round % 3], 0);
		for (unsigned int i = 0; i < FLIGHT * 3; i++) {
			unsigned int seq = i / 3, r = i % 3;

			/* Results do not matter: all operations use the same memory */
			cmd[seq][r] = zn_cmd(zn, r, seq, ZCOLL_INT32, ZCOLL_SUM, self->buf[r],
					     self->buf[r], seq % 2 ? LONG / 4 : SHORT);
			zt_start_op(&call[seq][r], zn->ep[r], &cmd[seq][r]);
		}
		usleep(round * 7919 % 40000);
		end_somehow(zn, round);
		for (unsigned int i = 0; i < FLIGHT * 3; i++) {
			int ret = zt_finish(&call[i / 3][i % 3], ZT_LONG_MS);

			EXPECT_TRUE(!ret || ret == -ECANCELED || ret == -ESHUTDOWN)
				TH_LOG("round %u, operation %u, rank %u: %d, %s", round, i / 3,
				       i % 3, ret, zn_text(zn, zn->ep[i % 3]));
		}
		for (unsigned int r = 0; r < 3; r++)
			zt_close_ep(&self->zt, zn->ep[r]);
	}
}

/* A node that leaves is connected to afterwards: that is told, and nobody waits for silence */
TEST_F(fail, node_that_has_left_before_it_was_spoken_to)
{
	OPEN("ring", 0);
	EXPECT_EQ(0, zt_leave(self->zn.ep[3]));
	for (unsigned int r = 0; r < 3; r++)
		START(r, 0, LONG);
	for (unsigned int r = 0; r < 3; r++)
		EXPECT_EQ(-ESHUTDOWN, zt_finish(&self->call[r], ZT_SOON_MS));
	EXPECT_NE(NULL, strstr(zn_text(&self->zn, self->zn.ep[0]), "node 2 has left"))
		TH_LOG("%s", self->zn.text);
}

/* Survivors have one verdict, whenever it is that a node aborts */
TEST_F_TIMEOUT(fail, agreed_verdicts_are_the_same, 120)
{
	for (unsigned int i = 0; i < 8; i++) {
		const unsigned int ranks[] = { 1, 1, 1 };
		int ret[3];

		zn_init(&self->zn, &self->zt, 3, ranks);
		OPEN("recursive-doubling", ZCOLL_PLAN_AGREED);
		for (unsigned int r = 0; r < 3; r++) {
			self->cmd[r] = zn_cmd(&self->zn, r, 0, ZCOLL_INT32, ZCOLL_SUM,
					      self->buf[r], self->buf[r], SHORT);
			self->cmd[r].flags = ZCOLL_CMD_AGREED;
			zt_start_op(&self->call[r], self->zn.ep[r], &self->cmd[r]);
		}
		usleep(i * 300);
		zt_abort(self->zn.ep[i % 3]);
		for (unsigned int r = 0; r < 3; r++)
			ret[r] = zt_finish(&self->call[r], ZT_LONG_MS);
		/* A rank whose call comes after the abort has not taken part */
		for (unsigned int r = 0; r < 3; r++) {
			EXPECT_TRUE(ret[r] == 0 || ret[r] == -ECANCELED) TH_LOG("%d", ret[r]);
			EXPECT_EQ(ret[0], ret[r]);
		}
		for (unsigned int r = 0; r < 3; r++)
			zt_close_ep(&self->zt, self->zn.ep[r]);
	}
}

/* Three nodes of a user with little memory for networks. Return: 0, or what is not right. */
static int poor(FIXTURE_DATA(fail) *self)
{
	const unsigned int ranks[NODES] = { 1, 1, 1 };

	if (setreuid(65534, 65534))
		return 1;
	zn_init(&self->zn, &self->zt, NODES, ranks);
	if (zn_open(&self->zn) || zn_plan(&self->zn, "ring", ZCOLL_ALLREDUCE, 0))
		return 2;
	for (unsigned int r = 0; r < NODES; r++)
		START(r, 0, 1 << 17);
	for (unsigned int r = 0; r < NODES; r++)
		if (zt_finish(&self->call[r], ZT_LONG_MS) != -ENOBUFS)
			return 3;
	return strstr(zn_text(&self->zn, self->zn.ep[0]), "user_net_mib") ? 0 : 4;
}

/* Each net's own limit allows what they need, but not a mebibyte for all of the user's */
TEST_F(fail, memory_of_all_nets_of_a_user)
{
	unsigned int was = zt_parameter("user_net_mib", 1);
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(poor(self));
	waitpid(pid, &status, 0);
	zt_parameter("user_net_mib", was);
	EXPECT_EQ(0, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

ZT_MAIN
