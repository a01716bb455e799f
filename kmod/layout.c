// SPDX-License-Identifier: GPL-2.0-only
/*
 * Layouts: which rank is on which node.
 *
 * A rank that joins brings a map, the node of each rank. It is copied once, checked, and
 * turned into the tables that a communicator goes by (struct zc_layout): local ranks by
 * their index, how many ranks are on the nodes before one, and, unless the ranks lie node
 * by node anyway, their order by nodes. What a map takes is bounded, and charged to the
 * caller.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "zcoll.h"

/* Entries looked at between two chances for others to run */
#define ZC_LAYOUT_BATCH 4096

void zc_layout_free(struct zc_layout *layout)
{
	kvfree(layout->map);
	kvfree(layout->locals);
	kvfree(layout->order);
	kvfree(layout->begins);
}

/**
 * zc_layout_size - memory of a layout's tables
 * @layout: the layout
 *
 * Return: bytes.
 */
size_t zc_layout_size(const struct zc_layout *layout)
{
	size_t entries = max(layout->nlocal, 1U) + layout->nodes + 1;

	entries += layout->map ? layout->nranks : 0;
	entries += layout->order ? layout->nranks : 0;
	return entries * sizeof(u32);
}

/**
 * zc_layout_local - local index of a rank
 * @layout: the layout
 * @rank: the rank
 *
 * Return: its index, or 0 if it is not of this node.
 */
u32 zc_layout_local(const struct zc_layout *layout, u32 rank)
{
	u32 low = 0, high = layout->nlocal, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (layout->locals[mid] < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < layout->nlocal && layout->locals[low] == rank ? low : 0;
}

static void zc_layout_give_way(u32 i)
{
	if (!(i % ZC_LAYOUT_BATCH))
		cond_resched();
}

static u32 *zc_layout_table(u32 n, const struct zcoll_join *args, struct zc_text *why)
{
	u32 *table = kvcalloc(n, sizeof(*table), GFP_KERNEL_ACCOUNT);

	if (!table)
		zc_text_add(why, "rank %u: no kernel memory for a node map of %u ranks",
			    args->rank, args->nranks);
	return table;
}

static int zc_layout_copy(struct zc_layout *layout, const struct zcoll_join *args,
			  struct zc_text *why)
{
	layout->map = zc_layout_table(layout->nranks, args, why);
	if (!layout->map)
		return -ENOMEM;
	if (!args->node_map ||
	    !copy_from_user(layout->map, u64_to_user_ptr(args->node_map),
			    layout->nranks * sizeof(*layout->map)))
		return 0;
	zc_text_add(why, "rank %u: node map cannot be read", args->rank);
	return -EFAULT;
}

/* Count ranks by node: of node i in begins[i + 1] */
static int zc_layout_count(struct zc_layout *layout, struct zc_text *why)
{
	u32 i, node;

	for (i = 0; i < layout->nranks; i++) {
		node = layout->map[i];
		if (node >= layout->nodes) {
			zc_text_add(why, "rank %u is on node %u, but there are %u nodes", i, node,
				    layout->nodes);
			return -EINVAL;
		}
		layout->begins[array_index_nospec(node, layout->nodes) + 1]++;
		layout->members = max(layout->members, node + 1);
		zc_layout_give_way(i);
	}
	return 0;
}

/* Are nodes that have ranks the first ones, and none too full? Then add up. */
static int zc_layout_sum(struct zc_layout *layout, struct zc_text *why)
{
	u32 *begins = layout->begins;
	u32 i, block = begins[1];

	layout->blocks = is_power_of_2(block);
	for (i = 0; i < layout->nodes; i++) {
		u32 ranks = begins[i + 1];

		if (i < layout->members && !ranks) {
			zc_text_add(why, "node %u has no ranks, but node %u has: ", i,
				    layout->members - 1);
			zc_text_add(why, "nodes that only aggregate must be the last ones");
			return -EINVAL;
		}
		if (ranks > ZCOLL_MAX_RANKS) {
			zc_text_add(why, "node %u has %u ranks, allowed are %u", i, ranks,
				    ZCOLL_MAX_RANKS);
			return -EINVAL;
		}
		if (i + 1 < layout->members ? ranks != block : ranks > block)
			layout->blocks = false;
		begins[i + 1] += begins[i];
	}
	return 0;
}

/* Ranks by node, unless they are so by themselves */
static int zc_layout_sort(struct zc_layout *layout, const struct zcoll_join *args,
			  struct zc_text *why)
{
	u32 i, *begins = layout->begins;

	for (i = 1; i < layout->nranks && layout->map[i - 1] <= layout->map[i]; i++)
		zc_layout_give_way(i);
	if (i == layout->nranks)
		return 0;
	layout->blocks = false;
	layout->order = zc_layout_table(layout->nranks, args, why);
	if (!layout->order)
		return -ENOMEM;
	for (i = 0; i < layout->nranks; i++) {
		layout->order[begins[layout->map[i]]++] = i;
		zc_layout_give_way(i);
	}
	/* Beginnings have become ends by that */
	for (i = layout->nodes; i; i--)
		begins[i] = begins[i - 1];
	begins[0] = 0;
	return 0;
}

/* Which node is this, and who is on it? */
static int zc_layout_locate(struct zc_layout *layout, const struct zcoll_join *args,
			    struct zc_text *why)
{
	u32 begin, i;

	layout->node = args->node;
	if (!(args->flags & ZCOLL_JOIN_AGGREGATE)) {
		layout->node = layout->map[array_index_nospec(args->rank, layout->nranks)];
	} else if (args->node < layout->members || args->node >= layout->nodes) {
		zc_text_add(why, "node %u of %u is to aggregate only, ", args->node,
			    layout->nodes);
		zc_text_add(why, "but nodes 0 to %u have ranks", layout->members - 1);
		return -EINVAL;
	}
	begin = layout->begins[layout->node];
	layout->nlocal = layout->begins[layout->node + 1] - begin;
	layout->locals = zc_layout_table(max(layout->nlocal, 1U), args, why);
	if (!layout->locals)
		return -ENOMEM;
	for (i = 0; i < layout->nlocal; i++)
		layout->locals[i] = layout->order ? layout->order[begin + i] : begin + i;
	return 0;
}

/* All ranks must be on one node, which may have any number */
static int zc_layout_one_node(struct zc_layout *layout, struct zc_text *why)
{
	u32 i, number = layout->map[0];

	for (i = 0; i < layout->nranks; i++) {
		if (layout->map[i] != number) {
			zc_text_add(why, "rank 0 is on node %u, rank %u on node %u: ", number, i,
				    layout->map[i]);
			zc_text_add(why, "with several nodes, say how many (field nodes)");
			return -EINVAL;
		}
		layout->map[i] = 0;
	}
	return 0;
}

/**
 * zc_layout_read - read who is where
 * @layout: to be filled; all 0
 * @args: of the joining rank; what is no matter of layout has been checked
 * @why: gets the text of a failure
 *
 * Return: 0, or a negative errno; in either case zc_layout_free() frees what is there.
 */
int zc_layout_read(struct zc_layout *layout, const struct zcoll_join *args,
		   struct zc_text *why)
{
	u32 number;
	int err;

	layout->nranks = args->nranks;
	err = zc_layout_copy(layout, args, why);
	number = err ? 0 : layout->map[0];
	if (!err && !args->nodes)
		err = zc_layout_one_node(layout, why);
	if (err)
		return err;
	layout->nodes = max(args->nodes, 1U);
	layout->begins = zc_layout_table(layout->nodes + 1, args, why);
	if (!layout->begins)
		return -ENOMEM;
	err = zc_layout_count(layout, why);
	if (!err)
		err = zc_layout_sum(layout, why);
	if (!err)
		err = zc_layout_sort(layout, args, why);
	if (!err)
		err = zc_layout_locate(layout, args, why);
	layout->number = layout->node;
	if (layout->nodes > 1 || err)
		return err;
	/* One node needs no map */
	kvfree(layout->map);
	layout->map = NULL;
	layout->number = number;
	return 0;
}
