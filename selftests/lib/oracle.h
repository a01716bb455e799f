/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Oracle: the bits that a collective must give.
 *
 * Ranks lie on nodes, and the nodes follow a plan. So the result of a reduction is of an
 * order that the plan has, which differs from one algorithm to the next: the oracle
 * finds it by carrying the plan out, with one engine (kmod/engine) for each node in this
 * process, and the reference loops. It shares neither memory layout, nor network,
 * nor slices with the module: an element's order is that of its segment.
 *
 * The order, as the module has it. Local inputs are folded by the fixed tree over the
 * ranks of the node, rising; then what was received is folded: local (+) received.
 * Averages are sums until they become final, and divided there. Each fold rounds once. Local
 * inputs are one fold with what they meet first if they are a power of two of at most 16
 * (the tree over one more is the same); else they are a fold of their own before.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdint.h>
#include <linux/zcoll.h>

/**
 * struct oracle - an operation
 * @plan: what the nodes follow; its collective is that of the operation
 * @dtype: as in struct zcoll_cmd, like the following
 * @op: 0 where nothing is reduced
 * @root: a rank
 * @count: elements
 * @nranks: ranks
 * @map: node of each rank; NULL: all on one
 */
struct oracle {
	const struct zcoll_plan *plan;
	uint32_t dtype;
	uint32_t op;
	uint32_t root;
	uint32_t nranks;
	uint64_t count;
	const uint32_t *map;
};

/**
 * oracle_run - what comes out
 * @oracle: the operation
 * @in: inputs by rank, of as many elements as "Collectives" in <linux/zcoll.h> says; NULL
 *	where a rank has none
 * @out: likewise, the results, which are written; NULL where they do not matter
 *
 * Return: NULL, or what is wrong with the plan or the engine.
 */
const char *oracle_run(const struct oracle *oracle, const void *const *in, void *const *out);

#endif /* ORACLE_H */
