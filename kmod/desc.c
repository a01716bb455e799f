// SPDX-License-Identifier: GPL-2.0-only
/*
 * Descriptors: what an operation is, as a rank calls it.
 *
 * A descriptor has all that must be the same on all ranks of all nodes, and nothing else;
 * buffers and deadlines are each rank's own. Here it is checked, compared, and put into
 * words. Descriptors also come from other nodes, so that no function trusts a field that
 * zc_desc_check() has not seen.
 */
#include <linux/kernel.h>
#include <linux/nospec.h>
#include <linux/overflow.h>

#include "zcoll.h"

/**
 * struct zc_collective - what a collective is
 * @name: for people
 * @reduces: it has an operator
 * @rooted: it has a root
 * @input: who has an input, and of how many blocks of count elements
 * @output: likewise
 */
struct zc_collective {
	const char *name;
	bool reduces;
	bool rooted;
	enum zc_blocks { ZC_NOTHING, ZC_BLOCK, ZC_BLOCK_AT_ROOT, ZC_ALL_BLOCKS } input, output;
};

static const struct zc_collective zc_collectives[ZCOLL_NR_COLLECTIVES] = {
	{ "operation" },
	[ZCOLL_ALLREDUCE] = { "all-reduce", true, false, ZC_BLOCK, ZC_BLOCK },
	[ZCOLL_REDUCE_SCATTER] = { "reduce-scatter", true, false, ZC_ALL_BLOCKS, ZC_BLOCK },
	[ZCOLL_ALLGATHER] = { "all-gather", false, false, ZC_BLOCK, ZC_ALL_BLOCKS },
	[ZCOLL_BROADCAST] = { "broadcast", false, true, ZC_BLOCK_AT_ROOT, ZC_BLOCK },
	[ZCOLL_REDUCE] = { "reduce", true, true, ZC_BLOCK, ZC_BLOCK_AT_ROOT },
	[ZCOLL_BARRIER] = { "barrier", false, false, ZC_NOTHING, ZC_NOTHING },
};

static const char * const zc_dtype_names[ZCOLL_NR_TYPES] = {
	"none", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
	"fp16", "bf16", "fp32", "fp64",
};

static const char * const zc_op_names[ZCOLL_NR_OPS] = {
	"none", "sum", "prod", "min", "max", "avg",
};

static const char *zc_name(const char * const *names, u32 n, u32 i)
{
	return i < n ? names[array_index_nospec(i, n)] : "unknown";
}

static const struct zc_collective *zc_collective(u32 collective)
{
	if (collective >= ZCOLL_NR_COLLECTIVES)
		collective = 0;
	return &zc_collectives[array_index_nospec(collective, ZCOLL_NR_COLLECTIVES)];
}

const char *zc_collective_name(u32 collective)
{
	return zc_collective(collective)->name;
}

bool zc_collective_reduces(u32 collective)
{
	return zc_collective(collective)->reduces;
}

bool zc_collective_rooted(u32 collective)
{
	return zc_collective(collective)->rooted;
}

/* The collective that an ioctl, or uring command, calls; 0: none */
u32 zc_collective_of(u32 ioctl)
{
	u32 collective;

	for (collective = 1; collective < ZCOLL_NR_COLLECTIVES; collective++)
		if (ioctl == ZCOLL_IOC_OP(collective))
			return collective;
	return 0;
}

static u64 zc_desc_elements(const struct zc_comm *comm, const struct zc_desc *desc, u32 rank,
			    enum zc_blocks blocks)
{
	switch (blocks) {
	case ZC_BLOCK:
		return desc->count;
	case ZC_BLOCK_AT_ROOT:
		return rank == desc->root ? desc->count : 0;
	case ZC_ALL_BLOCKS:
		return comm->layout.nranks * desc->count;
	default:
		return 0;
	}
}

/* Bytes of a rank's input; @desc has passed zc_desc_check() */
u64 zc_desc_inputs(const struct zc_comm *comm, const struct zc_desc *desc, u32 rank)
{
	return zc_desc_elements(comm, desc, rank, zc_collective(desc->collective)->input) *
	       zc_dtype_size(desc->dtype);
}

/* Bytes of a rank's output; likewise */
u64 zc_desc_outputs(const struct zc_comm *comm, const struct zc_desc *desc, u32 rank)
{
	return zc_desc_elements(comm, desc, rank, zc_collective(desc->collective)->output) *
	       zc_dtype_size(desc->dtype);
}

/* Which field is out of range? */
static const char *zc_desc_bad_field(const struct zc_comm *comm, const struct zc_desc *desc)
{
	const struct zc_collective *coll = zc_collective(desc->collective);
	bool barrier = desc->collective == ZCOLL_BARRIER;

	if (!desc->collective || desc->collective >= ZCOLL_NR_COLLECTIVES)
		return "collective";
	if (barrier ? desc->dtype : !zc_dtype_size(desc->dtype))
		return "dtype";
	if (coll->reduces ? !desc->op || desc->op >= ZCOLL_NR_OPS : desc->op)
		return "op";
	if (desc->flags & ~ZCOLL_CMD_FLAGS)
		return "flags";
	if (coll->rooted ? desc->root >= comm->layout.nranks : desc->root)
		return "root";
	if (barrier && desc->count)
		return "count";
	return NULL;
}

/**
 * zc_desc_check - is this something that can be called?
 * @comm: the communicator
 * @desc: the descriptor; its plan does not matter
 * @why: gets the text of a failure
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP, -EOVERFLOW.
 */
int zc_desc_check(const struct zc_comm *comm, const struct zc_desc *desc, struct zc_text *why)
{
	const char *bad = zc_desc_bad_field(comm, desc);
	u64 elements, bytes;

	if (bad) {
		zc_text_add(why, "field %s is out of range", bad);
		return -EINVAL;
	}
	if (zc_collective_reduces(desc->collective) &&
	    !zc_isa_fold(array_index_nospec(desc->dtype, ZCOLL_NR_TYPES),
			 array_index_nospec(desc->op, ZCOLL_NR_OPS))) {
		zc_text_add(why, "type %s has no operator %s",
			    zc_name(zc_dtype_names, ZCOLL_NR_TYPES, desc->dtype),
			    zc_name(zc_op_names, ZCOLL_NR_OPS, desc->op));
		return -EOPNOTSUPP;
	}
	/*
	 * Also where this rank has less: positions are counted over all ranks' blocks. The top bit
	 * stays free, so that lengths can be rounded up.
	 */
	if (check_mul_overflow(desc->count, (u64)comm->layout.nranks, &elements) ||
	    check_mul_overflow(elements, (u64)max(zc_dtype_size(desc->dtype), 1U), &bytes) ||
	    bytes > S64_MAX) {
		zc_text_add(why, "count %llu is too large for %u ranks", desc->count,
			    comm->layout.nranks);
		return -EOVERFLOW;
	}
	return 0;
}

/* Can the result not depend on how ranks lie on nodes? Return: why not. */
static const char *zc_desc_irreproducible(const struct zc_comm *comm,
					  const struct zc_desc *desc,
					  const struct zcoll_plan *plan)
{
	if (comm->layout.nodes == 1 || !zc_collective_reduces(desc->collective))
		return NULL;
	if (!(plan->flags & ZCOLL_PLAN_ORDERED))
		return "it reduces in another order than the fixed tree";
	if (!comm->layout.blocks)
		return "ranks do not lie on nodes in blocks of one power of two";
	if (desc->dtype == ZCOLL_FP16 || desc->dtype == ZCOLL_BF16)
		return "16-bit types are rounded at each node";
	/* Plans count the nodes from the root's, and so goes their order */
	if (desc->collective == ZCOLL_REDUCE && comm->layout.map[desc->root])
		return "the root is not on node 0";
	return NULL;
}

/**
 * zc_desc_fits_plan - can this plan do what is called?
 * @comm: the communicator
 * @desc: the descriptor
 * @plan: the plan
 * @why: gets the text of a failure
 *
 * Return: 0, or -EOPNOTSUPP.
 */
int zc_desc_fits_plan(const struct zc_comm *comm, const struct zc_desc *desc,
		      const struct zc_plan *plan, struct zc_text *why)
{
	const struct zcoll_plan *table = plan->prog.plan;
	const char *not = NULL;

	if (table->collective != desc->collective) {
		zc_text_add(why, "plan %s is for another collective, %s", table->name,
			    zc_collective_name(table->collective));
		return -EOPNOTSUPP;
	}
	if (desc->flags & ZCOLL_CMD_REPRODUCIBLE)
		not = zc_desc_irreproducible(comm, desc, table);
	if (not) {
		zc_text_add(why, "not reproducible with plan %s: %s", table->name, not);
		return -EOPNOTSUPP;
	}
	if ((desc->flags & ZCOLL_CMD_AGREED) && comm->layout.nodes > 1 &&
	    !(table->flags & ZCOLL_PLAN_AGREED)) {
		zc_text_add(why, "an agreed verdict needs another plan: with %s, ",
			    table->name);
		zc_text_add(why, "nodes may end before all have all results");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* All fields that must be the same are here, and in zc_desc_add_differences() */
bool zc_desc_differs(const struct zc_desc *a, const struct zc_desc *b)
{
	return a->collective != b->collective || a->dtype != b->dtype || a->op != b->op ||
	       a->flags != b->flags || a->root != b->root || a->count != b->count ||
	       a->plan != b->plan;
}

/**
 * zc_desc_add_differences - say in what two descriptors differ
 * @text: where to
 * @a: one, whose values come first
 * @b: the other one
 *
 * Of different collectives only that is said: they have different fields.
 */
void zc_desc_add_differences(struct zc_text *text, const struct zc_desc *a,
			     const struct zc_desc *b)
{
	if (a->collective != b->collective) {
		zc_text_add(text, " collective (%s and %s)", zc_collective_name(a->collective),
			    zc_collective_name(b->collective));
		return;
	}
	if (a->count != b->count)
		zc_text_add(text, " count (%llu and %llu)", a->count, b->count);
	if (a->dtype != b->dtype)
		zc_text_add(text, " type (%s and %s)",
			    zc_name(zc_dtype_names, ZCOLL_NR_TYPES, a->dtype),
			    zc_name(zc_dtype_names, ZCOLL_NR_TYPES, b->dtype));
	if (a->op != b->op)
		zc_text_add(text, " operator (%s and %s)",
			    zc_name(zc_op_names, ZCOLL_NR_OPS, a->op),
			    zc_name(zc_op_names, ZCOLL_NR_OPS, b->op));
	if (a->root != b->root)
		zc_text_add(text, " root (%u and %u)", a->root, b->root);
	if (a->flags != b->flags)
		zc_text_add(text, " flags (0x%x and 0x%x)", a->flags, b->flags);
	if (a->plan != b->plan)
		zc_text_add(text, " plan (id %016llx and %016llx)", a->plan, b->plan);
}
