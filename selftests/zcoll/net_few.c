// SPDX-License-Identifier: GPL-2.0
/*
 * Operations with fewer elements than their plan has segments, or with none at all: turns without
 * elements are skipped, but for an operation that has no other ones. They end on every fabric.
 */
#include "net.h"
#include "kselftest_harness.h"

#define NODES	4

/* Nothing here takes so long; who waits in vain tells for whom then */
#define DEADLINE_NS	(ZT_LONG_MS * 1000000ULL)

FIXTURE(few) {
	struct zt zt;
	struct zn zn;
	struct zcoll_cmd cmd[NODES];
};

FIXTURE_VARIANT(few) {
	const char *fabric;
};

FIXTURE_VARIANT_ADD(few, loop) {
	.fabric = "loop",
};

FIXTURE_VARIANT_ADD(few, rdma) {
	.fabric = "rdma",
};

FIXTURE_SETUP(few)
{
	static const unsigned int ranks[NODES] = { 1, 1, 1, 1 };
	unsigned int heartbeat;
	int ret;

	ZT_SETUP(self);
	zn_init(&self->zn, &self->zt, NODES, ranks);
	self->zn.fabric = variant->fabric;
	/* Deadlines say more of what is missing, and are longer */
	heartbeat = zt_parameter("heartbeat_ms", 0);
	ret = zn_open(&self->zn);
	zt_parameter("heartbeat_ms", heartbeat);
	if (ret == -ENODEV)
		ZT_SETUP_SKIP("no RDMA device");
	ASSERT_EQ(0, ret) TH_LOG("%s", self->zn.text);
	ASSERT_EQ(0, zn_plan(&self->zn, "ring", ZCOLL_ALLREDUCE, 0)) TH_LOG("%s", self->zn.text);
}

FIXTURE_TEARDOWN(few)
{
	ZT_TEARDOWN(self);
}

static struct zcoll_cmd call(const struct zn *zn, int n, uint64_t seq, const void *in, void *out,
			     uint64_t count)
{
	struct zcoll_cmd cmd = zn_cmd(zn, n, seq, ZCOLL_INT32, ZCOLL_SUM, in, out, count);

	cmd.deadline_ns = DEADLINE_NS;
	return cmd;
}

/* All-reduce of @count elements, at each node its number + 1. Return: 0, an error; 1: wrong. */
static int allreduce(FIXTURE_DATA(few) *self, uint64_t seq, uint64_t count)
{
	int32_t in[NODES][NODES + 1], out[NODES][NODES + 1] = {};
	int ret;

	for (int n = 0; n < NODES; n++) {
		for (int i = 0; i <= NODES; i++)
			in[n][i] = n + 1;
		self->cmd[n] = call(&self->zn, n, seq, in[n], out[n], count);
	}
	ret = zt_all(self->zn.ep, self->cmd, NODES);
	for (int n = 0; n < NODES && !ret; n++)
		for (uint64_t i = 0; i <= NODES && !ret; i++)
			ret = out[n][i] != (i < count ? NODES * (NODES + 1) / 2 : 0);
	return ret;
}

TEST_F(few, none_is_the_first_operation)
{
	EXPECT_EQ(0, allreduce(self, 0, 0)) TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
	EXPECT_EQ(0, zt_revoked(self->zn.ep[0]));
}

TEST_F(few, none_without_buffers)
{
	for (int n = 0; n < NODES; n++)
		self->cmd[n] = call(&self->zn, n, 0, NULL, NULL, 0);
	EXPECT_EQ(0, zt_all(self->zn.ep, self->cmd, NODES))
		TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
}

/* From none to one for each node, and one more, and back */
TEST_F(few, fewer_than_segments)
{
	for (uint64_t seq = 0; seq < 2 * (NODES + 2); seq++) {
		uint64_t count = seq < NODES + 2 ? seq : 2 * (NODES + 2) - 1 - seq;

		ASSERT_EQ(0, allreduce(self, seq, count > NODES ? NODES : count))
			TH_LOG("%llu elements: %s", (unsigned long long)count,
			       zn_text(&self->zn, self->zn.ep[0]));
	}
}

/* Longer than the window of operations */
TEST_F(few, none_many_times)
{
	uint64_t seq;

	for (seq = 0; seq < 2 * ZCOLL_MAX_WINDOW; seq++)
		ASSERT_EQ(0, allreduce(self, seq, 0))
			TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
	EXPECT_EQ(0, allreduce(self, seq, 3)) TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
}

/* Without elements the messages of a plan still go: so nobody ends before all have called */
TEST_F(few, none_waits_for_who_is_late)
{
	struct zt_call late[NODES];

	for (int n = 0; n < NODES; n++)
		self->cmd[n] = call(&self->zn, n, 0, NULL, NULL, 0);
	for (int n = 1; n < NODES; n++)
		ASSERT_EQ(0, zt_start_op(&late[n], self->zn.ep[n], &self->cmd[n]));
	zt_sleep_ms(ZT_QUIET_MS);
	for (int n = 1; n < NODES; n++)
		EXPECT_FALSE(late[n].done);
	EXPECT_EQ(0, zt_allreduce(self->zn.ep[0], &self->cmd[0]));
	for (int n = 1; n < NODES; n++)
		EXPECT_EQ(0, zt_finish(&late[n], ZT_LONG_MS));
}

TEST_HARNESS_MAIN
