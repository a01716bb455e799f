/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Places: where the elements of an operation are on this node.
 *
 * The elements of an operation are numbered from 0: those of the vector, or of the ranks'
 * blocks in the order of zc_comm.order. A unit (engine/engine.h) is up to two rows of
 * them. Where an element of a unit is depends on what the step says:
 *
 *   inputs      the local ranks' buffers: of all ranks where something is reduced, of the
 *               rank whose block or whose broadcast it is otherwise
 *   outputs     likewise
 *   DATA        the accumulation: in the output of the rank zc_op.lead, or where this node
 *               has no outputs for all segments, in kernel memory
 *   scratch     in kernel memory
 *   slot        where a message has landed: in its inbox, or in kernel memory
 *   landing     segments that only this node has an output for, and that are delivered
 *               directly by others: in kernel memory
 *   staging     a folded input on its way out that has no other place
 *
 * A *stretch* is a row of elements of a unit that are in one piece in each of these places. On
 * one node, where views of buffers may be in blocks (buf.c), it ends where a block of a buffer that
 * is used does.
 */
#ifndef ZCOLL_PLACE_H
#define ZCOLL_PLACE_H

#include "net/net.h"

/* Where in the room a step has its own; offsets in bytes */
struct zc_step_places {
	u64 unit;	/* elements of a unit, at most */
	u64 pitch;	/* bytes from one slot, or place of staging, to the next */
	size_t slots;
	size_t staging;
};

/**
 * struct zc_places - where in the room of an operation is what
 * @pitch: bytes from one place of the accumulation, or scratch place, to the next
 * @acc: the accumulation
 * @scratch: scratch places
 * @landing: this node's segment of a reduce-scatter, delivered directly
 * @by_segment: @acc or @scratch are used
 * @nacc: places of @acc
 * @sigma: where this node's segments begin in @acc
 * @slots: slots of a step
 * @inflight: units of a step that may be begun
 * @steps: by step
 */
struct zc_places {
	u64 pitch;
	size_t acc;
	size_t scratch;
	size_t landing;
	bool by_segment;
	u32 nacc;
	u32 sigma;
	u32 slots;
	u32 inflight;
	struct zc_step_places steps[ZC_PLAN_STEPS];
};

/* Are the elements the ranks' blocks? */
static inline bool zc_place_blocks(const struct zc_op *op)
{
	return op->desc.collective == ZCOLL_ALLGATHER ||
	       op->desc.collective == ZCOLL_REDUCE_SCATTER;
}

/* Is the accumulation in the output of the rank whose block it is? Else in the lead's. */
static inline bool zc_place_scattered(const struct zc_op *op)
{
	return op->desc.collective == ZCOLL_REDUCE_SCATTER;
}

/**
 * struct zc_stretch - elements in one piece
 * @first: number of the first one in the operation
 * @user: of the first one in the users' buffers: differs where ranks do not lie in blocks
 * @at: of the first one in the unit
 * @count: elements
 * @within: of the first one in a buffer with nothing but its rank's block; else as @user
 * @inside: of the first one in its segment, where a place in kernel memory is used
 * @segment: that segment
 * @local: local index of the rank whose block it is, or zc_op.lead
 * @src: kernel addresses of element 0 of the inputs, by local index, good for the stretch
 * @dst: likewise of the outputs
 */
struct zc_stretch {
	u64 first;
	u64 user;
	u64 at;
	u64 count;
	u64 within;
	u64 inside;
	u32 segment;
	u32 local;
	const void **src;
	void **dst;
};

/* Room for zc_stretch.src and .dst, where they differ from stretch to stretch */
struct zc_operands {
	const void *src[ZC_BLOCK_RANKS];
	void *dst[ZC_BLOCK_RANKS];
};

bool zc_place_stretch(const struct zc_comm *comm, const struct zc_op *op,
		      const struct zc_action *action, u64 at, u64 most,
		      struct zc_stretch *stretch);
void zc_place_in_blocks(const struct zc_comm *comm, const struct zc_op *op,
			struct zc_stretch *stretch, struct zc_operands *operands);

/*
 * Addresses of a stretch. The first element of the stretch is element number
 * zc_stretch.user from such an address on, as it is in the users' buffers, so that
 * a fold loop can be given both.
 */
const void *zc_place_input(const struct zc_op *op, const struct zc_stretch *stretch);
void *zc_place_output(const struct zc_op *op, const struct zc_stretch *stretch);
void *zc_place_at(const struct zc_comm *comm, const struct zc_op *op, u32 index,
		  const struct zc_stretch *stretch);
const void *zc_place_source(const struct zc_comm *comm, const struct zc_op *op,
			    const struct zc_action *action, u32 index,
			    const struct zc_stretch *stretch);
const void *zc_place_received(const struct zc_op *op, const struct zc_task *task,
			      const struct zc_stretch *stretch);
void *zc_place_staging(const struct zc_op *op, const struct zc_action *action,
		       const struct zc_stretch *stretch);

u32 zc_place_root(const struct zc_comm *comm, const struct zc_op *op);
bool zc_place_alone(const struct zc_comm *comm, const struct zc_op *op);
bool zc_place_staged(const struct zc_comm *comm, const struct zc_op *op,
		     const struct zc_action *action);
bool zc_place_small(const struct zc_op *op, u32 step);
void zc_place_landing(const struct zc_comm *comm, const struct zc_op *op,
		      const struct zc_action *action, struct zc_landing *landing,
		      struct zc_region **region);
bool zc_place_span(const struct zc_comm *comm, const struct zc_op *op,
		   const struct zc_action *action, u64 at, struct zc_span *span);
void *zc_place_copy_out(struct zc_comm *comm, const struct zc_op *op,
			const struct zc_action *action, void *to);

struct zc_inbox *zc_place_inbox(const struct zc_op *op, u32 step, u64 unit);
void zc_place_consume(struct zc_inbox *box);

#endif /* ZCOLL_PLACE_H */
