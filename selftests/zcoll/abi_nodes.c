// SPDX-License-Identifier: GPL-2.0
/*
 * Several nodes in the ABI, one error at a time: who may join as what, addresses and peers,
 * and what operations may ask for.
 *
 * All nodes are in this kernel, by fabric "loop": each is a communicator of its own there.
 * No operation is carried out here.
 */
#include "zcoll_test.h"
#include "../lib/plans.h"
#include "kselftest_harness.h"

#define NODES	4

FIXTURE(nodes) {
	struct zt zt;
	uint8_t key[16];
	uint32_t map[8];
	struct zcoll_join join;		/* rank 0 of four, each on a node of its own */
	char text[ZCOLL_TEXT_MAX];
};

FIXTURE_SETUP(nodes)
{
	ZT_SETUP(self);
	zt_key(self->key);
	for (int i = 0; i < NODES; i++)
		self->map[i] = i;
	self->join = zt_join_arg(self->key, 0, NODES);
	self->join.node_map = (uintptr_t)self->map;
	self->join.nodes = NODES;
	self->join.fabric = (uintptr_t)"loop";
	self->join.fabric_len = 4;
	self->join.text = (uintptr_t)self->text;
	self->join.text_len = sizeof(self->text);
}

FIXTURE_TEARDOWN(nodes)
{
	ZT_TEARDOWN(self);
}

static int join(struct zt *zt, const struct zcoll_join *arg, char *text)
{
	struct zcoll_join copy = *arg;

	*text = '\0';
	return zt_note(zt, zt_ioctl(zt->dev, ZCOLL_IOC_JOIN, &copy));
}

/* Joining as self->join, spoiled, is refused; unspoiled it works */
#define EXPECT_REFUSED(err, word, ...) do {					\
	struct zcoll_join __bad = self->join;					\
										\
	__VA_ARGS__;								\
	EXPECT_EQ(err, join(&self->zt, &__bad, self->text));			\
	EXPECT_NE(NULL, strstr(self->text, word)) TH_LOG("%s", self->text);	\
} while (0)

#define EXPECT_JOINS() \
	EXPECT_LE(0, join(&self->zt, &self->join, self->text)) TH_LOG("%s", self->text)

/* --- who is where -------------------------------------------------------- */

TEST_F(nodes, node_beyond_the_last)
{
	self->map[2] = NODES;
	EXPECT_REFUSED(-EINVAL, "rank 2 is on node 4");
	self->map[2] = UINT32_MAX;
	EXPECT_REFUSED(-EINVAL, "rank 2 is on node 4294967295");
	self->map[2] = 2;
	EXPECT_JOINS();
}

TEST_F(nodes, node_without_ranks_before_one_that_has)
{
	self->map[2] = 3;
	EXPECT_REFUSED(-EINVAL, "node 2 has no ranks");
	self->map[2] = 2;
	EXPECT_JOINS();
}

TEST_F(nodes, too_many_ranks_on_a_node)
{
	static uint32_t map[ZCOLL_MAX_RANKS + 2];

	map[ZCOLL_MAX_RANKS + 1] = 1;
	self->join.node_map = (uintptr_t)map;
	self->join.nodes = 2;
	self->join.nranks = ZCOLL_MAX_RANKS + 2;
	EXPECT_REFUSED(-EINVAL, "node 0 has 1025 ranks");
	map[ZCOLL_MAX_RANKS] = 1;
	EXPECT_JOINS();
}

TEST_F(nodes, too_many_ranks_in_all)
{
	EXPECT_REFUSED(-EINVAL, "262145 ranks", __bad.nranks = ZCOLL_MAX_SIZE + 1);
	EXPECT_JOINS();
}

TEST_F(nodes, number_that_the_map_tells)
{
	EXPECT_REFUSED(-EINVAL, "field node", __bad.node = 1);
	EXPECT_JOINS();
}

TEST_F(nodes, map_that_cannot_be_read)
{
	EXPECT_REFUSED(-EFAULT, "map", __bad.node_map = 4096);
	EXPECT_JOINS();
}

TEST_F(nodes, one_node_needs_no_network)
{
	struct zcoll_stats stats;
	uint32_t map[2] = { 0, 0 };
	int ep;

	self->join.nodes = 1;
	self->join.nranks = 2;
	self->join.node_map = (uintptr_t)map;
	self->join.fabric = 0;
	self->join.fabric_len = 0;
	ep = join(&self->zt, &self->join, self->text);
	ASSERT_LE(0, ep) TH_LOG("%s", self->text);
	ASSERT_EQ(0, zt_stats(ep, &stats));
	EXPECT_EQ(1, stats.nodes);
	EXPECT_EQ(0, stats.rails);
}

TEST_F(nodes, stats_tell_which_node)
{
	struct zcoll_stats stats;
	int ep;

	self->join.rank = 2;
	ep = join(&self->zt, &self->join, self->text);
	ASSERT_LE(0, ep) TH_LOG("%s", self->text);
	ASSERT_EQ(0, zt_stats(ep, &stats));
	EXPECT_EQ(NODES, stats.nodes);
	EXPECT_EQ(2, stats.node);
	EXPECT_EQ(0, stats.connected);
	EXPECT_EQ(0, stats.messages);
}

/* Ranks 0 and 2 on one node, 1 and 3 on the other */
TEST_F(nodes, ranks_of_a_node_share_a_communicator)
{
	uint32_t missing[4] = { 99, 99, 99, 99 };
	struct zcoll_status st = {
		.size = sizeof(st),
		.flags = ZCOLL_STATUS_COMM,
		.missing = (uintptr_t)missing,
		.missing_len = 4,
		.text = (uintptr_t)self->text,
		.text_len = sizeof(self->text),
	};
	int ep[2];

	for (int i = 0; i < 4; i++)
		self->map[i] = i % 2;
	self->join.nodes = 2;
	self->join.rank = 1;
	ep[0] = join(&self->zt, &self->join, self->text);
	ASSERT_LE(0, ep[0]) TH_LOG("%s", self->text);
	EXPECT_EQ(-EBUSY, join(&self->zt, &self->join, self->text));
	ASSERT_EQ(0, zt_ioctl(ep[0], ZCOLL_IOC_STATUS, &st));
	EXPECT_EQ(ZCOLL_STATE_WAITING, st.state);
	EXPECT_EQ(4, st.nranks);
	EXPECT_EQ(1, st.rank);
	EXPECT_EQ(3, missing[0]);
	EXPECT_EQ(99, missing[1]);
	EXPECT_STREQ("1 of 2 ranks of node 1 have joined", self->text);
	EXPECT_EQ(0, zt_poll(ep[0], 0) & POLLIN);
	self->join.rank = 3;
	ep[1] = join(&self->zt, &self->join, self->text);
	ASSERT_LE(0, ep[1]) TH_LOG("%s", self->text);
	EXPECT_EQ(POLLIN, zt_poll(ep[0], ZT_SOON_MS) & POLLIN);
}

TEST_F(nodes, other_map_on_another_node)
{
	EXPECT_JOINS();
	self->join.rank = 3;
	self->map[1] = 2;
	self->map[2] = 1;
	EXPECT_REFUSED(-EPROTO, "rank 1 on node 2");
	self->map[1] = 1;
	self->map[2] = 2;
	EXPECT_JOINS();
}

TEST_F(nodes, other_number_of_nodes)
{
	EXPECT_JOINS();
	EXPECT_REFUSED(-EPROTO, "4 ranks on 5 nodes", __bad.nodes = 5; __bad.rank = 3);
	self->join.rank = 3;
	EXPECT_JOINS();
}

/* --- fabrics ------------------------------------------------------------- */

/* Ranks of one node share a fabric; another node may have other devices */
TEST_F(nodes, other_fabric_on_the_same_node)
{
	for (int i = 0; i < 4; i++)
		self->map[i] = i / 2;
	self->join.nodes = 2;
	EXPECT_JOINS();
	self->join.rank = 1;
	EXPECT_REFUSED(-EPROTO, "rank 1: names fabric loop:2, others on node 0 name loop",
		       __bad.fabric = (uintptr_t)"loop:2"; __bad.fabric_len = 6);
	EXPECT_JOINS();
	self->join.rank = 2;
	self->join.fabric = (uintptr_t)"loop:2";
	self->join.fabric_len = 6;
	EXPECT_JOINS();
}

TEST_F(nodes, fabric_that_is_not_there)
{
	EXPECT_REFUSED(-ENODEV, "pigeon", __bad.fabric = (uintptr_t)"pigeon";
		       __bad.fabric_len = 6);
	EXPECT_JOINS();
}

TEST_F(nodes, fabric_that_is_no_string)
{
	char name[256];

	memset(name, 'x', sizeof(name));
	EXPECT_REFUSED(-EINVAL, "256", __bad.fabric = (uintptr_t)name; __bad.fabric_len = 256);
	EXPECT_REFUSED(-EINVAL, "byte 4", __bad.fabric = (uintptr_t)"loop"; __bad.fabric_len = 5);
	EXPECT_REFUSED(-EINVAL, "byte 2", __bad.fabric = (uintptr_t)"lo p");
	EXPECT_REFUSED(-EFAULT, "fabric", __bad.fabric = 4096);
	EXPECT_JOINS();
}

/* --- nodes that only aggregate ------------------------------------------- */

/* Node 3 has no ranks; rank 3 is on node 2 */
static void make_aggregator(struct zcoll_join *arg, uint32_t *map)
{
	map[3] = 2;
	arg->flags = ZCOLL_JOIN_AGGREGATE;
	arg->node = 3;
}

TEST_F(nodes, aggregator_of_a_node_with_ranks)
{
	make_aggregator(&self->join, self->map);
	EXPECT_REFUSED(-EINVAL, "node 2 of 4", __bad.node = 2);
	EXPECT_REFUSED(-EINVAL, "node 4 of 4", __bad.node = 4);
	EXPECT_REFUSED(-EINVAL, "rank 1", __bad.rank = 1);
	EXPECT_JOINS();
	EXPECT_REFUSED(-EBUSY, "the aggregator of node 3 has joined already");
}

TEST_F(nodes, aggregator_calls_nothing)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	struct zcoll_status st;
	int ep;

	make_aggregator(&self->join, self->map);
	ep = join(&self->zt, &self->join, self->text);
	ASSERT_LE(0, ep) TH_LOG("%s", self->text);
	EXPECT_EQ(-EINVAL, zt_allreduce(ep, &cmd));
	ASSERT_EQ(0, zt_status(ep, 0, &st, self->text));
	EXPECT_NE(NULL, strstr(self->text, "node 3 only aggregates")) TH_LOG("%s", self->text);
	EXPECT_EQ(-ENOENT, zt_wait(ep, 0, 0));
	EXPECT_EQ(POLLIN, zt_poll(ep, 0));
	EXPECT_EQ(0, zt_leave(ep));
}

TEST_F(nodes, aggregator_that_dies_revokes)
{
	int ep, sock[2];
	pid_t pid;

	make_aggregator(&self->join, self->map);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = zt_fork(&self->zt);
	if (!pid) {
		ep = join(&self->zt, &self->join, self->text);
		if (ep < 0 || zt_send_fd(sock[1], ep))
			_exit(1);
		pause();
	}
	ep = zt_note(&self->zt, zt_recv_fd(sock[0]));
	ASSERT_LE(0, ep);
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
	EXPECT_TRUE(zt_until(ZT_SOON_MS, zt_revoked(ep) == -EOWNERDEAD));
	close(sock[0]);
	close(sock[1]);
}

/* --- addresses and peers ------------------------------------------------- */

static struct zcoll_address address_arg(void *buf)
{
	return (struct zcoll_address) {
		.size = sizeof(struct zcoll_address), .address = (uintptr_t)buf,
	};
}

static struct zcoll_peers peers_arg(void *addresses, char *text)
{
	return (struct zcoll_peers) {
		.size = sizeof(struct zcoll_peers),
		.addresses = (uintptr_t)addresses,
		.nodes = NODES,
		.text = (uintptr_t)text,
		.text_len = ZCOLL_TEXT_MAX,
	};
}

TEST_F(nodes, address_and_peers_of_one_node_are_enotconn)
{
	uint8_t buf[NODES * ZCOLL_ADDRESS_MAX];
	struct zcoll_address address = address_arg(buf);
	struct zcoll_peers peers = peers_arg(buf, self->text);
	int ep;

	ASSERT_EQ(0, zt_comm(&self->zt, 1, &ep));
	EXPECT_EQ(-ENOTCONN, zt_ioctl(ep, ZCOLL_IOC_ADDRESS, &address));
	EXPECT_EQ(-ENOTCONN, zt_ioctl(ep, ZCOLL_IOC_PEERS, &peers));
	EXPECT_NE(NULL, strstr(self->text, "one node")) TH_LOG("%s", self->text);
}

FIXTURE(peers) {
	struct zt zt;
	int ep[NODES];			/* each a node */
	uint8_t address[NODES][ZCOLL_ADDRESS_MAX];
	struct image image;
	char text[ZCOLL_TEXT_MAX];
};

FIXTURE_SETUP(peers)
{
	uint32_t map[NODES] = { 0, 1, 2, 3 };
	uint8_t key[16];

	ZT_SETUP(self);
	zt_key(key);
	self->image = image_new();
	plan_ring(&self->image);
	image_seal(&self->image);
	for (int i = 0; i < NODES; i++) {
		struct zcoll_address arg = address_arg(self->address[i]);
		struct zcoll_join join = zt_join_arg(key, i, NODES);

		join.nodes = NODES;
		join.node_map = (uintptr_t)map;
		join.fabric = (uintptr_t)"loop";
		join.fabric_len = 4;
		self->ep[i] = zt_note(&self->zt, zt_ioctl(self->zt.dev, ZCOLL_IOC_JOIN, &join));
		ASSERT_LE(0, self->ep[i]);
		ASSERT_EQ(0, zt_ioctl(self->ep[i], ZCOLL_IOC_ADDRESS, &arg));
	}
}

FIXTURE_TEARDOWN(peers)
{
	image_free(&self->image);
	ZT_TEARDOWN(self);
}

static int set_peers(int ep, uint8_t (*address)[ZCOLL_ADDRESS_MAX], char *text)
{
	struct zcoll_peers arg = peers_arg(address, text);

	*text = '\0';
	return zt_ioctl(ep, ZCOLL_IOC_PEERS, &arg);
}

static int load(int ep, const struct image *image, uint32_t *number, char *text)
{
	struct zcoll_plan_load arg = {
		.size = sizeof(arg),
		.plan = (uintptr_t)image->plan,
		.bytes = image->bytes,
		.text = (uintptr_t)text,
		.text_len = ZCOLL_TEXT_MAX,
	};
	int ret = zt_ioctl(ep, ZCOLL_IOC_PLAN_LOAD, &arg);

	*number = arg.number;
	return ret;
}

TEST_F(peers, address_is_the_same_again)
{
	uint8_t again[ZCOLL_ADDRESS_MAX];
	struct zcoll_address arg = address_arg(again);

	memset(again, 0xff, sizeof(again));
	ASSERT_EQ(0, zt_ioctl(self->ep[0], ZCOLL_IOC_ADDRESS, &arg));
	EXPECT_LT(0, arg.address_len);
	EXPECT_GE(ZCOLL_ADDRESS_MAX, arg.address_len);
	EXPECT_EQ(0, memcmp(again, self->address[0], sizeof(again)));
	EXPECT_NE(0, memcmp(again, self->address[1], sizeof(again)));
}

TEST_F(peers, address_fields_are_checked)
{
	uint8_t buf[ZCOLL_ADDRESS_MAX];
	struct zcoll_address arg = address_arg(buf);

	arg.flags = 1;
	EXPECT_EQ(-EINVAL, zt_ioctl(self->ep[0], ZCOLL_IOC_ADDRESS, &arg));
	arg = address_arg(buf);
	arg.__reserved = 1;
	EXPECT_EQ(-EINVAL, zt_ioctl(self->ep[0], ZCOLL_IOC_ADDRESS, &arg));
	arg = address_arg((void *)4096);
	EXPECT_EQ(-EFAULT, zt_ioctl(self->ep[0], ZCOLL_IOC_ADDRESS, &arg));
	arg = address_arg(buf);
	arg.size = sizeof(arg) - 1;
	EXPECT_EQ(-EINVAL, zt_ioctl(self->ep[0], ZCOLL_IOC_ADDRESS, &arg));
}

TEST_F(peers, peers_fields_are_checked)
{
	struct zcoll_peers arg = peers_arg(self->address, self->text);

	arg.flags = 1;
	EXPECT_EQ(-EINVAL, zt_ioctl(self->ep[0], ZCOLL_IOC_PEERS, &arg));
	arg = peers_arg(self->address, self->text);
	arg.nodes = NODES - 1;
	EXPECT_EQ(-EINVAL, zt_ioctl(self->ep[0], ZCOLL_IOC_PEERS, &arg));
	EXPECT_NE(NULL, strstr(self->text, "3 nodes")) TH_LOG("%s", self->text);
	arg = peers_arg((void *)4096, self->text);
	EXPECT_EQ(-EFAULT, zt_ioctl(self->ep[0], ZCOLL_IOC_PEERS, &arg));
	arg = peers_arg(self->address, self->text);
	arg.size = sizeof(arg) - 1;
	EXPECT_EQ(-EINVAL, zt_ioctl(self->ep[0], ZCOLL_IOC_PEERS, &arg));
	EXPECT_EQ(0, set_peers(self->ep[0], self->address, self->text));
}

TEST_F(peers, given_twice_changes_nothing)
{
	EXPECT_EQ(0, set_peers(self->ep[0], self->address, self->text));
	EXPECT_EQ(0, set_peers(self->ep[0], self->address, self->text));
}

TEST_F(peers, given_after_leaving_is_eshutdown)
{
	ASSERT_EQ(0, zt_leave(self->ep[0]));
	EXPECT_EQ(-ESHUTDOWN, set_peers(self->ep[0], self->address, self->text));
}

/* A call that is refused with @err and a text that has @word */
#define EXPECT_CALL(err, word, cmd) do {					\
	struct zcoll_status __st;						\
										\
	EXPECT_EQ(err, zt_allreduce(self->ep[0], &(cmd)));			\
	ASSERT_EQ(0, zt_status(self->ep[0], (cmd).seq, &__st, self->text));	\
	EXPECT_NE(NULL, strstr(self->text, word)) TH_LOG("%s", self->text);	\
} while (0)

TEST_F(peers, calls_before_them_are_enotconn)
{
	struct zcoll_cmd cmd = zt_barrier(0);

	ASSERT_EQ(0, load(self->ep[0], &self->image, &cmd.plan, self->text));
	EXPECT_CALL(-ENOTCONN, "ZCOLL_IOC_PEERS has not been called on node 0", cmd);
}

TEST_F(peers, calls_must_name_a_plan)
{
	struct zcoll_cmd cmd = zt_barrier(0);

	ASSERT_EQ(0, set_peers(self->ep[0], self->address, self->text));
	EXPECT_CALL(-EINVAL, "on 4 nodes a plan must be named", cmd);
}

TEST_F(peers, nothing_has_ended_in_mailboxes)
{
	struct zcoll_cmd cmd = zt_barrier(1);

	ASSERT_EQ(0, set_peers(self->ep[0], self->address, self->text));
	ASSERT_EQ(0, load(self->ep[0], &self->image, &cmd.plan, self->text));
	cmd.ended = 1;
	EXPECT_CALL(-EINVAL, "field ended", cmd);
}

TEST_F(peers, plan_must_be_for_the_nodes)
{
	uint32_t number;

	plan_ring_of(&self->image, NODES + 1);
	image_seal(&self->image);
	EXPECT_EQ(-ENXIO, load(self->ep[0], &self->image, &number, self->text));
	EXPECT_NE(NULL, strstr(self->text, "5 nodes")) TH_LOG("%s", self->text);
	plan_local(&self->image);
	image_seal(&self->image);
	EXPECT_EQ(-ENXIO, load(self->ep[0], &self->image, &number, self->text));
}

TEST_F(peers, flags_must_be_the_plans)
{
	struct zcoll_cmd cmd = zt_barrier(0);

	ASSERT_EQ(0, set_peers(self->ep[0], self->address, self->text));
	ASSERT_EQ(0, load(self->ep[0], &self->image, &cmd.plan, self->text));
	cmd.flags = ZCOLL_CMD_AGREED;
	EXPECT_CALL(-EOPNOTSUPP, "an agreed verdict needs another plan", cmd);
	cmd.flags = ZCOLL_CMD_REPRODUCIBLE;
	EXPECT_CALL(-EOPNOTSUPP, "another order than the fixed tree", cmd);
	self->image.plan->flags = ZCOLL_PLAN_ORDERED;
	image_seal(&self->image);
	ASSERT_EQ(0, load(self->ep[0], &self->image, &cmd.plan, self->text));
	cmd.dtype = ZCOLL_FP16;
	EXPECT_CALL(-EOPNOTSUPP, "16-bit types", cmd);
}

TEST_F(peers, plan_for_another_collective_is_eopnotsupp)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	struct zcoll_status st;

	ASSERT_EQ(0, set_peers(self->ep[0], self->address, self->text));
	ASSERT_EQ(0, load(self->ep[0], &self->image, &cmd.plan, self->text));
	EXPECT_EQ(-EOPNOTSUPP, zt_collective(self->ep[0], ZCOLL_REDUCE_SCATTER, &cmd));
	ASSERT_EQ(0, zt_status(self->ep[0], 0, &st, self->text));
	EXPECT_NE(NULL, strstr(self->text, "for another collective, all-reduce"))
		TH_LOG("%s", self->text);
}

ZT_MAIN
