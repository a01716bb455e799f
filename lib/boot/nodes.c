// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Nodes: which ranks are on one machine? Those whose kernel is the same boot of the
 * same machine, which /proc names by a random number. Containers share it, as they share
 * the kernel and what it knows of a communicator; virtual machines have their own.
 *
 * $ZCOLL_NODE_ID is added to the name: for virtual machines that were resumed from one
 * snapshot, and for one machine that is to stand for several nodes, in tests.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"

/**
 * zc_node_id - the name of this node, as 16 bytes
 * @id: output
 *
 * Return: 0 or a negative errno: is /proc not mounted?
 */
int zc_node_id(uint8_t id[16])
{
	const char *more = zc_env("ZCOLL_NODE_ID");
	FILE *file = fopen(ZC_BOOT_ID, "re");
	char boot[64] = "";
	bool good;

	if (!file)
		return -errno;
	good = fgets(boot, sizeof(boot), file);
	fclose(file);
	if (!good)
		return -EIO;
	zcoll_key_from_string(id, boot);
	if (more)
		zcoll_key_derive(id, more);
	return 0;
}

struct table {
	const uint8_t *ids;
	size_t stride;
};

static int by_id_and_rank(const void *left, const void *right, void *arg)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct table *t = arg;
	int order = memcmp(t->ids + a * t->stride, t->ids + b * t->stride, 16);

	return order ? order : (a > b) - (a < b);
}

/**
 * zc_node_map - number the nodes, by their lowest ranks
 * @map: output: the node of each rank
 * @nodes: output: how many
 * @ids: the first rank's node id
 * @stride: bytes from one rank's id to the next one's
 * @nranks: ranks
 */
int zc_node_map(uint32_t *map, unsigned int *nodes, const void *ids, size_t stride,
		unsigned int nranks)
{
	struct table t = { .ids = ids, .stride = stride };
	uint32_t *sorted = malloc(nranks * sizeof(*sorted)), first = 0;

	if (!sorted)
		return -ENOMEM;
	for (unsigned int r = 0; r < nranks; r++)
		sorted[r] = r;
	qsort_r(sorted, nranks, sizeof(*sorted), by_id_and_rank, &t);

	/* The first rank of each node, then, in the order of ranks, the node's number */
	for (unsigned int i = 0; i < nranks; i++) {
		if (!i || memcmp(t.ids + first * stride, t.ids + sorted[i] * stride, 16))
			first = sorted[i];
		map[sorted[i]] = first;
	}
	free(sorted);
	*nodes = 0;
	for (unsigned int r = 0; r < nranks; r++)
		map[r] = map[r] == r ? (*nodes)++ : map[map[r]];
	return 0;
}
