// SPDX-License-Identifier: GPL-2.0
/*
 * Communicators over several nodes, with a mock of the device in each process: which
 * rank is on which node, what the kernel is told, and how failures are.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mock.h"
#include "party.h"
#include "tap.h"

/* A letter for each rank: the node that it says it is on */
static const char *layout;

static int create(struct zcoll_comm **comm, unsigned int process, struct zcoll_attr *attr)
{
	char node[2] = { process < attr->nranks ? layout[process] : '-' };

	setenv("ZCOLL_NODE_ID", node, 1);
	memset(&mock, 0, sizeof(mock));
	attr->rank = process < attr->nranks ? process : process - attr->nranks;
	return process < attr->nranks ? zcoll_comm_create(comm, attr) :
					zcoll_aggregator_create(comm, attr);
}

static int wrong(struct zcoll_attr *attr, const char *what)
{
	snprintf(attr->error, attr->error_len, "wrong: %s", what);
	return -EBADMSG;
}

/* Make it, and check all that this process can know */
static int check(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	const char *want = party->arg;		/* the number of each rank's node, a digit */
	unsigned int nodes = 0, node;
	struct zcoll_comm *comm;
	bool leader = true;
	char address[20];
	int ret = create(&comm, process, attr);

	if (ret)
		return ret;
	for (unsigned int r = 0; r < attr->nranks; r++) {
		if (zcoll_comm_node_of(comm, r) != want[r] - '0')
			return wrong(attr, "node of a rank");
		if (want[r] - '0' == (int)nodes)
			nodes++;
		if (process < attr->nranks && r < process && want[r] == want[process])
			leader = false;
	}
	node = process < attr->nranks ? (unsigned int)(want[process] - '0') : nodes + attr->rank;
	nodes += attr->aggregators;
	if (zcoll_comm_nodes(comm) != nodes || zcoll_comm_node(comm) != node)
		return wrong(attr, "number of nodes, or of ours");
	if (zcoll_comm_node_of(comm, attr->nranks) != -EINVAL)
		return wrong(attr, "node of no rank");
	if (nodes == 1)
		return mock.join.node_map || mock.join.nodes || mock.introduced ?
		       wrong(attr, "one node is joined as one") : 0;

	if (mock.join.nodes != nodes || memcmp((void *)(uintptr_t)mock.join.fabric, "loop", 4))
		return wrong(attr, "nodes or fabric at join");
	if (mock.join.flags != (process < attr->nranks ? 0 : ZCOLL_JOIN_AGGREGATE))
		return wrong(attr, "flags at join");
	if (mock.introduced != leader)
		return wrong(attr, "leaders introduce, once");
	for (unsigned int n = 0; leader && n < nodes; n++) {
		sprintf(address, "node %u", n);
		if (strcmp(mock.peers[n], address))
			return wrong(attr, "address of a node");
	}
	if (process >= attr->nranks)
		ret = zcoll_aggregator_serve(comm);
	return ret ? ret : zcoll_comm_free(comm);
}

static void setup(struct party *party, const char *ranks, unsigned int aggregators, void *arg,
		  int (*play)(struct party *, unsigned int, struct zcoll_attr *))
{
	layout = ranks;
	party_init(party, strlen(ranks), aggregators, play);
	party->attr.fabric = "loop";
	party->arg = arg;
}

static const struct {
	const char *ranks, *nodes;
	unsigned int aggregators;
	const char *name;
} layouts[] = {
	{ "aabb", "0011", 0, "two ranks on each of two nodes" },
	{ "abcd", "0123", 0, "one rank on each node" },
	{ "baab", "0110", 0, "nodes are numbered by their lowest ranks" },
	{ "cacbaa", "010211", 0, "uneven, and not in blocks" },
	{ "aaa", "000", 0, "all on one node, which is found out" },
	{ "aab", "001", 2, "two aggregators" },
	{ "aa", "00", 1, "one node, and an aggregator" },
};

static void test_layouts(void)
{
	struct party party;

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		setup(&party, layouts[i].ranks, layouts[i].aggregators, (void *)layouts[i].nodes,
		      check);
		party_run(&party);
		ok(party_all(&party, 0, ""), "%s", layouts[i].name);
	}
}

/* Rank 0 leaves, or is killed, and aggregators see it; the mock's kernel tells them nothing */
static int serve(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	struct zcoll_comm *comm;
	int ret = create(&comm, process, attr);

	if (ret)
		return ret;
	if (process >= attr->nranks) {
		usleep(100000);		/* loads plans */
		ret = zcoll_aggregator_serve(comm);
	} else if (!process) {
		usleep(100000);
	}
	if (!process && party->arg)
		kill(getpid(), SIGKILL);
	zcoll_comm_free(comm);
	return ret;
}

static int give_up(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	struct zcoll_comm *comm;
	int ret = create(&comm, process, attr);

	(void)party;
	return ret ? ret : zcoll_comm_free(comm);
}

static void test_aggregators(void)
{
	struct party party;

	setup(&party, "ab", 2, NULL, serve);
	party_run(&party);
	ok(party_all(&party, 0, "") && party.results[1].ns >= 100 * PARTY_MS &&
	   party.results[2].ns >= 200 * PARTY_MS,
	   "aggregators serve until rank 0 leaves");

	setup(&party, "ab", 2, &party, serve);
	party_run(&party);
	party.results[0].ret = 0;
	ok(party_all(&party, 0, "") && party.results[2].ns < 5000 * PARTY_MS,
	   "or is killed");

	setup(&party, "ab", 1, NULL, give_up);
	party_run(&party);
	party.results[2] = party.results[1];
	ok(party_all(&party, -ESHUTDOWN, "aggregator 0: has left before it served"),
	   "ranks do not begin without an aggregator");
}

/* Rank 2 is the leader of the second node of "aabb" */
static int refused(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	struct zcoll_comm *comm;
	char node[2] = { layout[process] };

	setenv("ZCOLL_NODE_ID", node, 1);
	memset(&mock, 0, sizeof(mock));
	attr->rank = process;
	if (process == 2)
		memcpy(&mock.refuse_address, party->arg, 2 * sizeof(int));
	return zcoll_comm_create(&comm, attr);
}

static int another_fabric(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	struct zcoll_comm *comm;
	static const char *const fabrics[] = { "rdma:a,b", "rdma", "rdma:c", "loop" };

	(void)party;
	attr->fabric = fabrics[process];
	return create(&comm, process, attr);
}

static int no_error_buffer(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	if (process == 2) {
		attr->error = NULL;
		attr->error_len = 0;
	}
	return refused(party, process, attr);
}

static void test_failures(void)
{
	int no_address[2] = { -ENODEV, 0 }, no_peers[2] = { 0, -EINVAL };
	struct party party;

	setup(&party, "aabb", 0, no_address, refused);
	party_run(&party);
	ok(party_all(&party, -ENODEV, "rank 2: node 1 has no address on fabric loop: No such device"),
	   "a node without a device is known to all ranks");

	setup(&party, "aabb", 0, no_peers, refused);
	party_run(&party);
	ok(party_all(&party, -EINVAL, "rank 2: node 1 refuses the addresses of the others: the kernel says: bad address"),
	   "a refusal of the addresses too");

	setup(&party, "aabb", 0, no_address, no_error_buffer);
	party_run(&party);
	snprintf(party.results[2].text, ZCOLL_TEXT_MAX, "rank 2: node 1");
	ok(party_all(&party, -ENODEV, "rank 2: node 1"),
	   "others get the text of a rank that does not want it");

	setup(&party, "abcd", 0, NULL, another_fabric);
	party_run(&party);
	ok(party_all(&party, -EPROTO, "rank 3 has fabric loop, and rank 0 fabric rdma"),
	   "all nodes must have one kind of fabric, but may have other rails");
}

static void test_attr(void)
{
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_comm *comm;
	struct zcoll_attr attr;

	zcoll_attr_init(&attr);
	attr.error = text;
	attr.error_len = sizeof(text);
	attr.exchange = 3;
	is(zcoll_comm_create(&comm, &attr), -EINVAL, "an unknown exchange is refused");
	attr.exchange = ZCOLL_EXCHANGE_STORE;
	attr.join_timeout_ns = 0;
	is(zcoll_comm_create(&comm, &attr), -EINVAL, "and no time to meet");
	has(text, "must be waited for", "with the reason");
	attr.join_timeout_ns = 1;
	is(zcoll_aggregator_create(&comm, &attr), -EINVAL, "and an aggregator that nobody knows of");
	attr.aggregators = 1;
	attr.exchange = ZCOLL_EXCHANGE_NONE;
	is(zcoll_comm_create(&comm, &attr), -EINVAL, "and aggregators without a store");
	has(text, "ZCOLL_STORE", "which names what is needed");
	attr.exchange = ZCOLL_EXCHANGE_STORE;
	attr.rank = 1;
	is(zcoll_aggregator_create(&comm, &attr), -EINVAL, "and an aggregator out of range");
	has(text, "aggregator 1 of 1", "by name");
}

int main(void)
{
	test_layouts();
	test_aggregators();
	test_failures();
	test_attr();
	return tap_end();
}
