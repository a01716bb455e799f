/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Several nodes in one kernel: each is a communicator of its own there, and they are joined by
 * fabric "loop", or what ZCOLL_FABRIC says. All ranks are endpoints of the test's process.
 */
#ifndef ZCOLL_TEST_NET_H
#define ZCOLL_TEST_NET_H

#include <zcoll_plan.h>

#include "zcoll_test.h"

#define ZN_MAX_NODES	16
#define ZN_MAX_RANKS	48

/**
 * struct zn - nodes
 * @zt: the book
 * @key: of their communicator
 * @fabric: by default ZCOLL_FABRIC of the environment, or "loop"
 * @nodes: nodes
 * @nranks: ranks of all nodes
 * @map: node of each rank
 * @ep: endpoints of the ranks, and after them those of nodes without ranks
 * @neps: endpoints
 * @first: by node, the index of an endpoint of it
 * @plan: by node, the number of the plan that was loaded last
 * @text: of the last failure
 */
struct zn {
	struct zt *zt;
	uint8_t key[16];
	const char *fabric;
	unsigned int nodes;
	unsigned int nranks;
	uint32_t map[ZN_MAX_RANKS];
	int ep[ZN_MAX_RANKS + ZN_MAX_NODES];
	unsigned int neps;
	unsigned int first[ZN_MAX_NODES];
	uint32_t plan[ZN_MAX_NODES];
	char text[ZCOLL_TEXT_MAX];
};

/* The node of an endpoint */
static inline unsigned int zn_node(const struct zn *zn, unsigned int i)
{
	unsigned int node = 0;

	if (i < zn->nranks)
		return zn->map[i];
	for (unsigned int n = 0; n < zn->nodes; n++)
		if (zn->first[n] == i)
			node = n;
	return node;
}

/* Rank @i, or after the ranks the nodes without any, join. Return: the endpoint, or an error. */
static inline int zn_join(struct zn *zn, unsigned int i)
{
	struct zcoll_join arg = zt_join_arg(zn->key, i, zn->nranks);

	arg.nodes = zn->nodes;
	arg.node_map = (uintptr_t)zn->map;
	arg.fabric = (uintptr_t)zn->fabric;
	arg.fabric_len = strlen(zn->fabric);
	arg.text = (uintptr_t)zn->text;
	arg.text_len = sizeof(zn->text);
	if (i >= zn->nranks) {
		arg.flags = ZCOLL_JOIN_AGGREGATE;
		arg.node = zn_node(zn, i);
		arg.rank = 0;
	}
	return zt_note(zn->zt, zt_ioctl(zn->zt->dev, ZCOLL_IOC_JOIN, &arg));
}

static inline int zn_address(int ep, void *buf)
{
	struct zcoll_address arg = { .size = sizeof(arg), .address = (uintptr_t)buf };

	return zt_ioctl(ep, ZCOLL_IOC_ADDRESS, &arg);
}

/* Tell one node the addresses of all */
static inline int zn_peers(struct zn *zn, int ep, const void *addresses)
{
	struct zcoll_peers arg = {
		.size = sizeof(arg),
		.addresses = (uintptr_t)addresses,
		.nodes = zn->nodes,
		.text = (uintptr_t)zn->text,
		.text_len = sizeof(zn->text),
	};

	return zt_ioctl(ep, ZCOLL_IOC_PEERS, &arg);
}

/* Tell all nodes the addresses of all */
static inline int zn_connect(struct zn *zn)
{
	static uint8_t addresses[ZN_MAX_NODES][ZCOLL_ADDRESS_MAX];
	int ret = 0;

	for (unsigned int n = 0; n < zn->nodes && !ret; n++)
		ret = zn_address(zn->ep[zn->first[n]], addresses[n]);
	for (unsigned int n = 0; n < zn->nodes && !ret; n++)
		ret = zn_peers(zn, zn->ep[zn->first[n]], addresses);
	return ret;
}

/* Lay out @nodes nodes with @ranks[] ranks each; those with none must be the last ones */
static inline void zn_init(struct zn *zn, struct zt *zt, unsigned int nodes,
			   const unsigned int *ranks)
{
	*zn = (struct zn) {
		.zt = zt, .nodes = nodes, .fabric = getenv("ZCOLL_FABRIC") ?: "loop",
	};
	zt_key(zn->key);
	for (unsigned int n = 0; n < nodes; n++) {
		zn->first[n] = zn->nranks;
		for (unsigned int r = 0; r < ranks[n]; r++)
			zn->map[zn->nranks++] = n;
	}
	zn->neps = zn->nranks;
	for (unsigned int n = 0; n < nodes; n++)
		if (!ranks[n])
			zn->first[n] = zn->neps++;
}

/* All join, and learn of each other. Return: 0 or a negative errno. */
static inline int zn_open(struct zn *zn)
{
	for (unsigned int i = 0; i < zn->neps; i++) {
		zn->ep[i] = zn_join(zn, i);
		if (zn->ep[i] < 0)
			return zn->ep[i];
	}
	return zn_connect(zn);
}

static inline int zn_load(struct zn *zn, int ep, const struct zcoll_plan *plan,
			  uint32_t *number)
{
	struct zcoll_plan_load arg = {
		.size = sizeof(arg),
		.plan = (uintptr_t)plan,
		.bytes = plan->size,
		.text = (uintptr_t)zn->text,
		.text_len = sizeof(zn->text),
	};
	int ret = zt_ioctl(ep, ZCOLL_IOC_PLAN_LOAD, &arg);

	*number = arg.number;
	return ret;
}

/* Make a plan, and load it on all nodes. Return: 0, a negative errno; 1: there is none such. */
static inline int zn_plan(struct zn *zn, const char *algo, unsigned int collective,
			  unsigned int flags)
{
	struct zcoll_plan_spec spec = {
		.size = sizeof(spec), .algo = algo, .collective = collective, .flags = flags,
	};
	struct zcoll_plan *plan;
	int ret = 0;

	for (unsigned int i = 0; i < zn->nranks; i++)
		if (zn->map[i] >= spec.nodes)
			spec.nodes = zn->map[i] + 1;
	spec.aggregators = zn->nodes - spec.nodes;
	if (zcoll_plan_make(&spec, &plan, zn->text, sizeof(zn->text)))
		return 1;
	/* "aggregator" adds nodes, if it is not told how many */
	if (plan->nodes != zn->nodes)
		ret = 1;
	for (unsigned int n = 0; n < zn->nodes && !ret; n++)
		ret = zn_load(zn, zn->ep[zn->first[n]], plan, &zn->plan[n]);
	zcoll_plan_free(plan);
	return ret;
}

/* A call of rank @r, with the plan that was loaded last */
static inline struct zcoll_cmd zn_cmd(const struct zn *zn, unsigned int r, uint64_t seq,
				      int dtype, int op, const void *send, void *recv,
				      uint64_t count)
{
	struct zcoll_cmd cmd = zt_cmd(seq, dtype, op, send, recv, count);

	cmd.plan = zn->plan[zn->map[r]];
	return cmd;
}

/* The text of an operation, or of the communicator, as @ep tells it */
static inline const char *zn_text(struct zn *zn, int ep)
{
	struct zcoll_status st;

	zt_comm_status(ep, &st, zn->text);
	return zn->text;
}

static inline struct zcoll_stats zn_stats(int ep)
{
	struct zcoll_stats stats;

	zt_stats(ep, &stats);
	return stats;
}

#endif /* ZCOLL_TEST_NET_H */
