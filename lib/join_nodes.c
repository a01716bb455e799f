// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Joining, on several nodes, in three rounds of an exchange (boot/exchange.h):
 *
 *	greeting	node id, ABI version and fabric of all participants
 *		Who is on which node is known now: join. The first rank of each node, its
 *		*leader*, asks how the node is reached.
 *	address		of each node, from its leader; all have joined
 *		The leaders tell their kernels the addresses.
 *	done		all nodes know each other, and aggregators have loaded their plans
 *
 * If all turn out to be on one node, it is joined as one.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/exchange.h"

#define FAIL(attr, err, ...)	zc_text((attr)->error, (attr)->error_len, err, __VA_ARGS__)

/* First record of each participant */
struct greeting {
	uint8_t node[16];
	char fabric[8];		/* what it begins with: rails may differ */
	uint32_t abi;
	uint32_t reserved;
};

/* A communicator in the making: at an aggregator, until it serves */
struct zc_meeting {
	struct zcoll_attr own;	/* of which the strings are the caller's */
	char text[ZCOLL_TEXT_MAX];
	const struct zcoll_attr *attr;	/* @own */
	struct zc_exchange *x;
	struct zcoll_comm *comm;
	int dev;
	bool aggregate;
	const char *fabric;
};

static int no_memory(const struct zc_meeting *m)
{
	return zc_exchange_error(m->x, -ENOMEM, "no memory for a communicator");
}

/* All must speak alike */
static int check_greetings(const struct zc_meeting *m, const struct greeting *all)
{
	char name[ZC_PARTICIPANT_NAME];

	for (unsigned int p = 1; p < m->x->n; p++) {
		zc_participant_name(name, sizeof(name), m->attr, p);
		if (all[p].abi != all[0].abi)
			return FAIL(m->attr, -EPROTONOSUPPORT,
				    "%s speaks ABI version %u, and rank 0 version %u", name,
				    le32toh(all[p].abi), le32toh(all[0].abi));
		if (memcmp(all[p].fabric, all[0].fabric, sizeof(all->fabric)))
			return FAIL(m->attr, -EPROTO,
				    "%s has fabric %.8s, and rank 0 fabric %.8s: set the same ZCOLL_FABRIC",
				    name, all[p].fabric, all[0].fabric);
	}
	return 0;
}

/* Number the nodes, and find ours */
static int find_nodes(const struct zc_meeting *m, const struct greeting *all)
{
	struct zcoll_comm *comm = m->comm;

	comm->node_map = malloc(m->attr->nranks * sizeof(*comm->node_map));
	if (!comm->node_map ||
	    zc_node_map(comm->node_map, &comm->members, all, sizeof(*all), m->attr->nranks))
		return no_memory(m);
	comm->nodes = comm->members + m->attr->aggregators;
	comm->node = m->aggregate ? comm->members + m->attr->rank : comm->node_map[m->attr->rank];
	if (comm->nodes > ZCOLL_MAX_NODES)
		return FAIL(m->attr, -EINVAL, "%u nodes: at most %u", comm->nodes, ZCOLL_MAX_NODES);
	return 0;
}

static int greet(const struct zc_meeting *m)
{
	struct greeting mine = { .abi = htole32(ZCOLL_ABI_VERSION) }, *all;
	size_t kind = strcspn(m->fabric, ":");
	int ret = zc_node_id(mine.node);

	if (ret)
		return zc_exchange_error(m->x, ret, "cannot read %s, which tells nodes apart: is /proc mounted?",
					 ZC_BOOT_ID);
	memcpy(mine.fabric, m->fabric, kind < sizeof(mine.fabric) ? kind : sizeof(mine.fabric));
	all = malloc(m->x->n * sizeof(*all));
	if (!all)
		return no_memory(m);
	ret = zc_exchange_gather(m->x, &mine, sizeof(mine), all, sizeof(*all));
	if (!ret)
		ret = check_greetings(m, all);
	if (!ret)
		ret = find_nodes(m, all);
	free(all);
	return ret;
}

/* One node, after all: to the kernel and to all who ask there is no map */
static void forget_map(struct zcoll_comm *comm)
{
	free(comm->node_map);
	comm->node_map = NULL;
}

static int join_node(const struct zc_meeting *m)
{
	struct zcoll_join args = { .rank = m->aggregate ? 0 : m->attr->rank };

	if (m->comm->nodes == 1) {
		forget_map(m->comm);
		return zc_join_by(m->comm, m->dev, m->attr, &args);
	}
	if (m->aggregate) {
		args.flags = ZCOLL_JOIN_AGGREGATE;
		args.node = m->comm->node;
	}
	args.nodes = m->comm->nodes;
	args.node_map = (uintptr_t)m->comm->node_map;
	args.fabric = (uintptr_t)m->fabric;
	args.fabric_len = strlen(m->fabric);
	return zc_join_by(m->comm, m->dev, m->attr, &args);
}

/* The lowest rank of a node speaks for it, or its aggregator */
static bool is_leader(const struct zcoll_comm *comm, unsigned int p)
{
	unsigned int r;

	if (p >= comm->nranks)
		return true;
	for (r = 0; comm->node_map[r] != comm->node_map[p]; r++)
		;
	return r == p;
}

static int get_address(const struct zc_meeting *m, uint8_t *address, size_t *len)
{
	struct zcoll_address args = { .size = sizeof(args), .address = (uintptr_t)address };
	int ret = zc_ioctl(m->comm->fd, ZCOLL_IOC_ADDRESS, &args);

	if (ret)
		return zc_exchange_error(m->x, ret, "node %u has no address on fabric %s: %s",
					 m->comm->node, m->fabric, strerror(-ret));
	*len = args.address_len;
	return 0;
}

/* Of the records of all participants keep those of leaders, in the order of nodes */
static void sort_by_node(const struct zcoll_comm *comm, uint8_t *all, unsigned int n)
{
	unsigned int seen = 0, node;

	for (unsigned int p = 0; p < n; p++) {
		node = p < comm->nranks ? comm->node_map[p] : seen;
		if (node != seen)
			continue;	/* nodes are numbered by their first ranks */
		memmove(all + (size_t)seen * ZCOLL_ADDRESS_MAX, all + (size_t)p * ZCOLL_ADDRESS_MAX,
			ZCOLL_ADDRESS_MAX);
		seen++;
	}
}

static int set_peers(const struct zc_meeting *m, const uint8_t *addresses)
{
	char text[ZCOLL_TEXT_MAX] = "";
	struct zcoll_peers args = {
		.size = sizeof(args),
		.addresses = (uintptr_t)addresses,
		.nodes = m->comm->nodes,
		.text = (uintptr_t)text,
		.text_len = sizeof(text),
	};
	int ret = zc_ioctl(m->comm->fd, ZCOLL_IOC_PEERS, &args);

	if (ret)
		return zc_exchange_error(m->x, ret, "node %u refuses the addresses of the others: %s",
					 m->comm->node, text[0] ? text : strerror(-ret));
	return 0;
}

/* Round two: addresses, if there is somebody to connect to */
static int introduce(const struct zc_meeting *m)
{
	bool leader = m->comm->nodes > 1 && is_leader(m->comm, m->x->me);
	uint8_t mine[ZCOLL_ADDRESS_MAX], *all;
	size_t len = 0;
	int ret = 0;

	if (leader)
		ret = get_address(m, mine, &len);
	if (ret)
		return ret;
	all = malloc((size_t)m->x->n * ZCOLL_ADDRESS_MAX);
	if (!all)
		return no_memory(m);
	ret = zc_exchange_gather(m->x, mine, len, all, ZCOLL_ADDRESS_MAX);
	if (!ret && leader) {
		sort_by_node(m->comm, all, m->x->n);
		ret = set_peers(m, all);
	}
	free(all);
	return ret ? ret : zc_wait_for_ranks(m->comm, m->attr);
}

/* See aggregator.c */
static int keep_lifelines(const struct zc_meeting *m)
{
	struct zcoll_comm *comm = m->comm;

	if (!m->attr->aggregators)
		return 0;
	comm->lifelines = calloc(m->attr->aggregators, sizeof(*comm->lifelines));
	if (!comm->lifelines)
		return no_memory(m);
	comm->nr_lifelines = zc_exchange_keep(m->x, comm->lifelines);
	return 0;
}

static int meet(struct zc_meeting *m)
{
	int ret = zc_comm_new(&m->comm, &m->dev, m->attr);
	char text[ZCOLL_TEXT_MAX];

	if (ret) {
		memcpy(text, m->text, sizeof(text));
		return zc_exchange_error(m->x, ret, "%s", text);
	}
	ret = greet(m);
	if (!ret)
		ret = join_node(m);
	close(m->dev);
	return ret ? ret : introduce(m);
}

/* Round three */
static int conclude(struct zc_meeting *m)
{
	uint8_t nothing;
	int ret = zc_exchange_gather(m->x, "", 0, &nothing, 0);

	return ret ? ret : keep_lifelines(m);
}

/* It is over; with an error, the others are told if they do not know */
static void end(struct zc_meeting *m, int err)
{
	if (err)
		zc_exchange_fail(m->x, err);
	zc_exchange_close(m->x);
	free(m);
}

/**
 * zc_meeting_conclude - go through the last round, as an aggregator that will serve
 * @comm: the communicator
 */
int zc_meeting_conclude(struct zcoll_comm *comm)
{
	struct zc_meeting *m = comm->meeting;
	int ret;

	if (!m)
		return 0;
	comm->meeting = NULL;
	ret = conclude(m);
	if (ret)
		zc_fail(comm, ret, "%s", m->text);
	end(m, ret);
	return ret;
}

/**
 * zc_meeting_abandon - an aggregator is freed before it served, which fails for all
 * @comm: the communicator
 */
void zc_meeting_abandon(struct zcoll_comm *comm)
{
	struct zc_meeting *m = comm->meeting;

	if (!m)
		return;
	comm->meeting = NULL;
	end(m, zc_exchange_error(m->x, -ESHUTDOWN, "has left before it served"));
}

static struct zc_meeting *meeting_new(const struct zcoll_attr *user, bool aggregate)
{
	struct zc_meeting *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->own = *user;
	/* The others are told the text, if the caller wants it or not */
	m->own.error = m->text;
	m->own.error_len = sizeof(m->text);
	m->attr = &m->own;
	m->aggregate = aggregate;
	m->fabric = zc_fabric(user->fabric);
	return m;
}

/**
 * zc_join_nodes - make a communicator with ranks on several nodes
 * @comm: output
 * @user: attr, checked
 * @aggregate: as aggregator @user->rank; then zc_meeting_conclude() is still to be called
 */
int zc_join_nodes(struct zcoll_comm **comm, const struct zcoll_attr *user, bool aggregate)
{
	struct zc_meeting *m = meeting_new(user, aggregate);
	int ret;

	if (!m)
		return FAIL(user, -ENOMEM, "no memory for a communicator");
	ret = zc_exchange_open(&m->x, m->attr, aggregate ? user->nranks + user->rank : user->rank);
	if (ret) {
		FAIL(user, ret, "%s", m->text);
		free(m);
		return ret;
	}
	ret = meet(m);
	if (!ret && !aggregate)
		ret = conclude(m);
	if (ret) {
		FAIL(user, ret, "%s", m->text);
		if (m->comm)
			zc_comm_destroy(m->comm);
		end(m, ret);
		return ret;
	}
	*comm = m->comm;
	if (aggregate)
		m->comm->meeting = m;
	else
		end(m, 0);
	return 0;
}
