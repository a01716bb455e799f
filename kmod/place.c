// SPDX-License-Identifier: GPL-2.0-only
/*
 * Places: where the elements of an operation are on this node; see place.h.
 *
 * They are found by arithmetic, without locks: what it goes by (prepare.c) does not change
 * while the operation runs.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "compat.h"
#include "place.h"

/* ---- stretches ---- */

/* Does a step read the inputs as they are? */
static bool zc_place_reads_inputs(const struct zcoll_step *step)
{
	return step->kind == ZCOLL_STEP_GATHER ||
	       step->flags & (ZCOLL_STEP_FIRST | ZCOLL_STEP_INPUT);
}

/*
 * Do stretches end where a rank's block does? They do where a buffer has but one block, and
 * where blocks that follow each other here do not in the users' buffers.
 */
static bool zc_place_by_block(const struct zc_comm *comm, const struct zc_op *op,
			      const struct zcoll_step *step)
{
	if (comm->layout.order)
		return true;
	if (op->desc.collective == ZCOLL_ALLGATHER)
		return zc_place_reads_inputs(step);
	return op->outputs || step->kind == ZCOLL_STEP_DELIVER ||
	       step->kind == ZCOLL_STEP_FINAL || step->flags & ZCOLL_STEP_RESULT;
}

static void zc_stretch_block(const struct zc_comm *comm, const struct zc_op *op,
			     struct zc_stretch *stretch)
{
	u64 count = op->desc.count, within;
	u32 block = div64_u64_rem(stretch->first, count, &within);
	u32 rank = comm->layout.order ? comm->layout.order[block] : block;

	/* Of another node's block it means nothing */
	stretch->local = block - comm->layout.begins[comm->layout.node];
	stretch->within = within;
	stretch->user = rank * count + within;
	stretch->count = min(stretch->count, count - within);
}

/* The segment that an element is in */
static u32 zc_place_segment(const struct zc_op *op, u64 element)
{
	u32 low = 0, high = op->plan->prog.plan->segments, mid;

	if (!op->geo.starts)
		return div64_u64((element + 1) * high - 1, op->geo.count);
	/* starts[low] <= element < starts[high] */
	while (high - low > 1) {
		mid = low + (high - low) / 2;
		if (op->geo.starts[mid] <= element)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static void zc_stretch_segment(const struct zc_op *op, struct zc_stretch *stretch)
{
	u32 segments = op->plan->prog.plan->segments;
	u64 end;

	stretch->segment = zc_place_segment(op, stretch->first);
	stretch->inside = stretch->first -
			  zc_geometry_at(&op->geo, segments, stretch->segment);
	end = zc_geometry_at(&op->geo, segments, stretch->segment + 1);
	stretch->count = min(stretch->count, end - stretch->first);
}

/**
 * zc_place_stretch - elements of a unit that are in one piece everywhere
 * @comm: the communicator
 * @op: STARTING or RUNNING operation
 * @action: the unit
 * @at: where in the unit, in elements
 * @most: at most so many elements
 * @stretch: to be filled
 *
 * Return: false: the unit has no more elements there.
 */
bool zc_place_stretch(const struct zc_comm *comm, const struct zc_op *op,
		      const struct zc_action *action, u64 at, u64 most,
		      struct zc_stretch *stretch)
{
	const struct zc_piece *piece = action->piece;
	u64 skip = at;

	if (action->npieces > 1 && skip >= piece->count) {
		skip -= piece->count;
		piece++;
	}
	if (!action->npieces || skip >= piece->count)
		return false;
	*stretch = (struct zc_stretch) {
		.first = piece->first + skip, .user = piece->first + skip, .at = at,
		.count = min(most, piece->count - skip), .within = piece->first + skip,
		.local = op->lead, .src = op->src, .dst = op->dst,
	};
	if (zc_place_blocks(op) && zc_place_by_block(comm, op, action->row))
		zc_stretch_block(comm, op, stretch);
	if (op->places && op->places->by_segment)
		zc_stretch_segment(op, stretch);
	return true;
}

/*
 * A buffer of which a stretch uses the elements from number @at on: end the stretch where the block
 * does. Elements do not lie across blocks: zc_call_prepare(). Return: as zc_stretch.src.
 */
static void *zc_stretch_in_block(const struct zc_op *op, const struct zc_buf *buf, u32 handle,
				 u64 where, u64 at, struct zc_stretch *stretch)
{
	u64 offset = zc_call_offset(buf, handle, where) + at * op->esize, bytes;
	void *address = zc_buf_in_block(buf, offset, &bytes);

	stretch->count = min(stretch->count, bytes / op->esize);
	return (void *)((uintptr_t)address - at * op->esize);
}

/**
 * zc_place_in_blocks - end a stretch where a block of a buffer does
 * @comm: the communicator, with one node and at most ZC_BLOCK_RANKS ranks
 * @op: RUNNING operation with buffers whose views are in blocks
 * @stretch: elements
 * @operands: gets their addresses
 */
void zc_place_in_blocks(const struct zc_comm *comm, const struct zc_op *op,
			struct zc_stretch *stretch, struct zc_operands *operands)
{
	bool gathers = op->desc.collective == ZCOLL_ALLGATHER, scatters = zc_place_scattered(op);
	u32 i;

	for (i = 0; i < comm->layout.nlocal; i++) {
		const struct zc_sub *sub = zc_rank_sub(comm->ranks[i], op->seq);
		const struct zcoll_cmd *cmd = &sub->cmd;

		operands->src[i] = op->src[i];
		operands->dst[i] = op->dst[i];
		/* Of buffers with a block each, one is used */
		if (sub->send && !op->src[i] && (!gathers || i == stretch->local))
			operands->src[i] =
				zc_stretch_in_block(op, sub->send, cmd->send_buf, cmd->send,
						    gathers ? stretch->within : stretch->user,
						    stretch);
		if (sub->recv && !op->dst[i] && (!scatters || i == stretch->local))
			operands->dst[i] =
				zc_stretch_in_block(op, sub->recv, cmd->recv_buf, cmd->recv,
						    scatters ? stretch->within : stretch->user,
						    stretch);
	}
	stretch->src = operands->src;
	stretch->dst = operands->dst;
}

/* ---- addresses ---- */

/* See place.h: @address is that of element number @element */
static void *zc_place_shift(const struct zc_op *op, const void *address, u64 element,
			    const struct zc_stretch *stretch)
{
	return (void *)((uintptr_t)address + (element - stretch->user) * op->esize);
}

/* The one input, where there is one only: zc_place_alone() */
const void *zc_place_input(const struct zc_op *op, const struct zc_stretch *stretch)
{
	if (op->desc.collective == ZCOLL_ALLGATHER)
		return zc_place_shift(op, stretch->src[stretch->local], stretch->within, stretch);
	return stretch->src[op->lead];
}

/* The output of the rank whose block it is */
void *zc_place_output(const struct zc_op *op, const struct zc_stretch *stretch)
{
	return zc_place_shift(op, stretch->dst[stretch->local], stretch->within, stretch);
}

/* Is there one input of an element at most, which need not be folded with others? */
bool zc_place_alone(const struct zc_comm *comm, const struct zc_op *op)
{
	return comm->layout.nlocal <= 1 || !zc_collective_reduces(op->desc.collective);
}

/* Where in the room a place is: @index as in struct zc_action */
static size_t zc_place_in_room(const struct zc_op *op, u32 index,
			       const struct zc_stretch *stretch)
{
	const struct zcoll_plan *plan = op->plan->prog.plan;
	const struct zc_places *places = op->places;
	u32 place;

	if (index != ZC_NONE)
		return places->scratch + index * places->pitch + stretch->inside * op->esize;
	place = (stretch->segment + plan->segments - places->sigma) % plan->segments % places->nacc;
	return places->acc + place * places->pitch + stretch->inside * op->esize;
}

/**
 * zc_place_at - the address of a scratch place, or the accumulation
 * @comm: the communicator
 * @op: RUNNING operation
 * @index: as in struct zc_action
 * @stretch: elements
 */
void *zc_place_at(const struct zc_comm *comm, const struct zc_op *op, u32 index,
		  const struct zc_stretch *stretch)
{
	if (index != ZC_NONE || !op->outputs)
		return zc_place_shift(op, op->room->base + zc_place_in_room(op, index, stretch),
				      0, stretch);
	return zc_place_scattered(op) ? zc_place_output(op, stretch) : stretch->dst[op->lead];
}

/* Does DATA stand for the input? */
static bool zc_place_is_input(const struct zc_comm *comm, const struct zc_op *op,
			      const struct zcoll_step *step, u32 index)
{
	return index == ZC_NONE && step->flags & ZCOLL_STEP_INPUT && zc_place_alone(comm, op);
}

/**
 * zc_place_source - what a step reads beside what it receives, where that is not several inputs
 * @comm: the communicator
 * @op: RUNNING operation
 * @action: SEND, FOLD or FINAL
 * @index: @action->src, or @action->dst of a FOLD that reads that, too
 * @stretch: elements
 */
const void *zc_place_source(const struct zc_comm *comm, const struct zc_op *op,
			    const struct zc_action *action, u32 index,
			    const struct zc_stretch *stretch)
{
	if (action->row->flags & ZCOLL_STEP_FIRST ||
	    zc_place_is_input(comm, op, action->row, index))
		return zc_place_input(op, stretch);
	return zc_place_at(comm, op, index, stretch);
}

/* ---- what others send ---- */

/* Do the units of a step go in messages? Those without elements, too. */
bool zc_place_small(const struct zc_op *op, u32 step)
{
	return op->places->steps[step].unit <= op->eager;
}

/* Where in the room a FOLD's slot, or the landing of a DELIVER, is */
static size_t zc_place_slot(const struct zc_op *op, u32 step, u32 slot)
{
	const struct zc_step_places *own = &op->places->steps[step];

	return own->slots + slot * own->pitch;
}

/**
 * zc_place_received - what has come from a peer
 * @op: RUNNING operation
 * @task: FOLD or DELIVER with a peer
 * @stretch: elements
 */
const void *zc_place_received(const struct zc_op *op, const struct zc_task *task,
			      const struct zc_stretch *stretch)
{
	const struct zc_action *action = &task->action;
	size_t at;

	if (task->box)
		return zc_place_shift(op, task->box->message + task->box->offset, stretch->at,
				      stretch);
	if (action->slot != ZC_NONE)
		at = zc_place_slot(op, action->step, action->slot);
	else if (zc_place_scattered(op))
		at = op->places->landing + action->offset * op->esize;
	else
		return stretch->dst[op->lead];
	return zc_place_shift(op, op->room->base + at, stretch->at, stretch);
}

/**
 * zc_place_landing - where the units of a GRANT are to be written
 * @comm: the communicator
 * @op: RUNNING operation
 * @action: TELL of a GRANT
 * @landing: to be filled, but for the operation
 * @region: gets what has to be exposed to the peer; NULL: they go in messages
 */
void zc_place_landing(const struct zc_comm *comm, const struct zc_op *op,
		      const struct zc_action *action, struct zc_landing *landing,
		      struct zc_region **region)
{
	const struct zcoll_step *step = action->row;
	const struct zc_step_places *own = &op->places->steps[action->step];
	struct zc_turn turn;

	*region = NULL;
	landing->step = action->msg.step;
	landing->unit = step->flags & ZCOLL_STEP_OPEN ? action->unit : 0;
	landing->stride = 0;
	landing->origin = 0;
	landing->mode = ZW_LINEAR;
	landing->region = 0;
	if (zc_place_small(op, action->step))
		return;
	/* Also where all goes to outputs, and the operation has no room of its own */
	*region = op->room;
	if (step->kind == ZCOLL_STEP_DELIVER && zc_place_scattered(op)) {
		landing->origin = op->places->landing;
	} else if (step->kind == ZCOLL_STEP_DELIVER) {
		landing->mode = ZW_USER;
		landing->origin = op->out[op->lead].offset;
		*region = op->out[op->lead].region;
	} else if (step->flags & ZCOLL_STEP_OPEN) {
		/* The plan has been checked: this does not fail */
		zc_step_turn(op->plan->prog.plan, step, op->v, action->unit, &turn);
		landing->origin = op->places->scratch + turn.dst * op->places->pitch;
	} else {
		landing->mode = ZW_SLOTS;
		landing->origin = own->slots;
		landing->stride = own->pitch;
	}
	landing->region = (*region)->id;
}

/* The message that brought a unit, or NULL; under zc_comm.lock */
struct zc_inbox *zc_place_inbox(const struct zc_op *op, u32 step, u64 unit)
{
	struct zc_inbox *box;

	hlist_for_each_entry(box, &op->inboxes[zc_op_hash(step, unit)], link)
		if (box->step == step && box->unit == unit)
			return box;
	return NULL;
}

/* A message has been folded or delivered; under zc_comm.lock */
void zc_place_consume(struct zc_inbox *box)
{
	hlist_del(&box->link);
	zc_inbox_free(box);
}

/* ---- what is sent ---- */

/* Must a SEND be put together before it can be sent, for no place has it in one piece? */
bool zc_place_staged(const struct zc_comm *comm, const struct zc_op *op,
		     const struct zc_action *action)
{
	return action->row->flags & ZCOLL_STEP_FIRST && action->npieces &&
	       !zc_place_alone(comm, op) && !zc_place_small(op, action->step);
}

/* Where in the room such a SEND is put together */
static size_t zc_place_stage(const struct zc_op *op, const struct zc_action *action)
{
	const struct zc_step_places *own = &op->places->steps[action->step];

	return own->staging + action->unit % op->places->inflight * own->pitch;
}

/* Likewise, the address */
void *zc_place_staging(const struct zc_op *op, const struct zc_action *action,
		       const struct zc_stretch *stretch)
{
	return zc_place_shift(op, op->room->base + zc_place_stage(op, action), stretch->at,
			      stretch);
}

/* See zc_place_input() */
static struct zc_memory zc_place_input_memory(const struct zc_op *op,
					      const struct zc_stretch *stretch)
{
	bool gathers = op->desc.collective == ZCOLL_ALLGATHER;
	struct zc_memory memory = op->in[gathers ? stretch->local : op->lead];

	memory.offset += (gathers ? stretch->within : stretch->user) * op->esize;
	return memory;
}

/* Where in a region the elements of a stretch are that a SEND reads */
static struct zc_memory zc_place_memory(const struct zc_comm *comm, const struct zc_op *op,
					const struct zc_action *action,
					const struct zc_stretch *stretch)
{
	struct zc_memory memory = { .region = op->room };

	if (zc_place_staged(comm, op, action)) {
		memory.offset = zc_place_stage(op, action) + stretch->at * op->esize;
	} else if (action->row->flags & ZCOLL_STEP_FIRST ||
		   zc_place_is_input(comm, op, action->row, action->src)) {
		memory = zc_place_input_memory(op, stretch);
	} else if (action->src != ZC_NONE || !op->outputs) {
		memory.offset = zc_place_in_room(op, action->src, stretch);
	} else if (zc_place_scattered(op)) {
		memory = op->out[stretch->local];
		memory.offset += stretch->within * op->esize;
	} else {
		memory = op->out[op->lead];
		memory.offset += stretch->user * op->esize;
	}
	return memory;
}

/**
 * zc_place_span - a row of bytes that a SEND reads
 * @comm: the communicator
 * @op: RUNNING operation
 * @action: SEND, not small; if it is staged, it has been put together
 * @at: where in the unit, in bytes; maybe within an element, for keys end anywhere
 * @span: to be filled
 *
 * Return: false: there is nothing from there on.
 */
bool zc_place_span(const struct zc_comm *comm, const struct zc_op *op,
		   const struct zc_action *action, u64 at, struct zc_span *span)
{
	struct zc_stretch stretch;
	struct zc_memory memory;
	u32 skip;

	if (!zc_place_stretch(comm, op, action, div_u64_rem(at, op->esize, &skip), U64_MAX,
			      &stretch))
		return false;
	memory = zc_place_memory(comm, op, action, &stretch);
	*span = (struct zc_span) {
		.region = memory.region, .offset = memory.offset + skip,
		.bytes = stretch.count * op->esize - skip, .at = at,
		.user = stretch.user * op->esize + skip,
	};
	return true;
}

/**
 * zc_place_copy_out - put what a SEND reads into a message
 * @comm: the communicator
 * @op: RUNNING operation
 * @action: SEND, small
 * @to: room in the message
 *
 * The inputs of several ranks are folded on the way.
 *
 * Return: the end of what has been written.
 */
void *zc_place_copy_out(struct zc_comm *comm, const struct zc_op *op,
			const struct zc_action *action, void *to)
{
	bool folds = action->row->flags & ZCOLL_STEP_FIRST && !zc_place_alone(comm, op);
	u64 folded = 0, copied = 0, at = 0, bytes;
	struct zc_stretch stretch;
	void *dst;

	while (zc_place_stretch(comm, op, action, at, op->piece, &stretch)) {
		bytes = stretch.count * op->esize;
		if (folds) {
			dst = zc_place_shift(op, to, 0, &stretch);
			zc_compat_simd_begin();
			op->partial(&dst, stretch.src, 1, comm->layout.nlocal, 1, stretch.user,
				    stretch.count, false);
			zc_compat_simd_end();
			folded += bytes * comm->layout.nlocal;
		} else {
			memcpy(to, zc_place_source(comm, op, action, action->src, &stretch) +
			       stretch.user * op->esize, bytes);
			copied += bytes;
		}
		to += bytes;
		at += stretch.count;
	}
	atomic64_add(folded, &comm->bytes_folded);
	atomic64_add(copied, &comm->bytes_copied);
	return to;
}
