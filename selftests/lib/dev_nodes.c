// SPDX-License-Identifier: GPL-2.0
/*
 * Communicators over several nodes, of which this machine plays all, on the fabric
 * "loop": they are made, in any layout, they work, and what fails on one node is known
 * on all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "party.h"
#include "tap.h"

/* A letter for each rank: the node that it says it is on */
static const char *layout;

static int create(struct zcoll_comm **comm, unsigned int process, struct zcoll_attr *attr)
{
	char node[2] = { process < attr->nranks ? layout[process] : '-' };

	setenv("ZCOLL_NODE_ID", node, 1);
	attr->rank = process < attr->nranks ? process : process - attr->nranks;
	return process < attr->nranks ? zcoll_comm_create(comm, attr) :
					zcoll_aggregator_create(comm, attr);
}

/* Free the communicator, and keep the error that there was before */
static int done(struct zcoll_comm *comm, struct zcoll_attr *attr, int ret)
{
	if (ret)
		zcoll_comm_error(comm, attr->error, attr->error_len);
	zcoll_comm_free(comm);
	return ret;
}

static int make(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	struct zcoll_comm *comm;
	int ret = create(&comm, process, attr);

	(void)party;
	if (ret)
		return ret;
	if (zcoll_comm_node_of(comm, 0) || zcoll_comm_nodes(comm) < 2)
		ret = -EBADMSG;
	if (!ret && process >= attr->nranks)
		ret = zcoll_aggregator_serve(comm);
	return done(comm, attr, ret);
}

/* Ranks leave at once, and aggregators then */
static int leave(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	struct zcoll_comm *comm;
	int ret = create(&comm, process, attr);

	(void)party;
	alarm(15);
	if (ret)
		return ret;
	if (process >= attr->nranks)
		ret = zcoll_aggregator_serve(comm);
	return done(comm, attr, ret);
}

/* Sum of all ranks' numbers, with all ranks and by all */
static int sum(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	unsigned int n = attr->nranks;
	int64_t in = process + 1, out = 0;
	struct zcoll_comm *comm;
	int ret = create(&comm, process, attr);

	(void)party;
	if (ret)
		return ret;
	ret = zcoll_allreduce(comm, &in, &out, 1, ZCOLL_INT64, ZCOLL_SUM);
	if (!ret && out != (int64_t)n * (n + 1) / 2)
		ret = -EBADMSG;
	if (!ret)
		ret = zcoll_barrier(comm);
	return done(comm, attr, ret);
}

static void setup(struct party *party, const char *ranks, unsigned int aggregators,
		  int (*play)(struct party *, unsigned int, struct zcoll_attr *))
{
	layout = ranks;
	party_init(party, strlen(ranks), aggregators, play);
	party->attr.fabric = "loop";
	party->attr.deadline_ns = 10000 * PARTY_MS;
}

static const struct {
	const char *ranks;
	unsigned int aggregators;
	const char *name;
} layouts[] = {
	{ "aabb", 0, "two ranks on each of two nodes" },
	{ "abcd", 0, "one rank on each of four nodes" },
	{ "cacbaa", 0, "uneven, and not in blocks" },
	{ "aab", 2, "two nodes and two aggregators" },
	{ "aa", 1, "one node and an aggregator" },
};

static void test_layouts(void)
{
	struct party party;

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		setup(&party, layouts[i].ranks, layouts[i].aggregators, make);
		party_run(&party);
		ok(party_all(&party, 0, ""), "made: %s", layouts[i].name);
	}
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].aggregators)
			continue;
		setup(&party, layouts[i].ranks, 0, sum);
		party_run(&party);
		ok(party_all(&party, 0, ""), "a sum: %s", layouts[i].name);
	}
}

static void test_leaving(void)
{
	struct party party;

	setup(&party, "ab", 1, leave);
	party_run(&party);
	ok(party_all(&party, 0, ""), "an aggregator goes when the ranks have left");
}

static int no_fabric(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	attr->fabric = "loop:none";
	return make(party, process, attr);
}

static int no_device(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	if (process == 2)
		attr->device = "/dev/no-such-device";
	return make(party, process, attr);
}

static void test_failures(void)
{
	struct party party;

	setup(&party, "aabb", 0, no_device);
	party_run(&party);
	ok(party_all(&party, -ENOENT, "rank 2: cannot open /dev/no-such-device"),
	   "a node without the module is known to all ranks");

	setup(&party, "ab", 0, no_fabric);
	party_run(&party);
	ok(party.results[0].ret < 0 && party_all(&party, party.results[0].ret, "cannot join"),
	   "what is no fabric is refused, on all ranks");

	setup(&party, "aabb", 0, make);
	party.processes = 3;
	party.attr.join_timeout_ns = 500 * PARTY_MS;
	party_run(&party);
	ok(party_all(&party, -ETIMEDOUT, "missing: rank 3"), "a rank that does not come is named");
}

int main(void)
{
	test_layouts();
	test_leaving();
	test_failures();
	return tap_end();
}
