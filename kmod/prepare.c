// SPDX-License-Identifier: GPL-2.0-only
/*
 * Laying out: before the engine gets an operation, what is the same for all its units is
 * worked out, once, and what has no place in the users' buffers gets one in a region of kernel
 * memory, its room: slots, the accumulation, scratch places, the landing, and staging (place.h).
 * On one node there is nothing of the kind.
 *
 * Each slot and each place of the room begins at a cache line. Small tables are kept for the
 * next operation in the same place of the window.
 */
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "place.h"

static ulong stream_bytes;
module_param(stream_bytes, ulong, 0644);
MODULE_PARM_DESC(stream_bytes, "operations that read and write so many bytes in all or more, on one node and out of place, write past the caches; 0: the size of the largest cache");

static ulong chunk_bytes;
module_param(chunk_bytes, ulong, 0644);
MODULE_PARM_DESC(chunk_bytes, "bytes of all inputs and outputs that a thread takes on at a time; 0: up to half of the L2 cache");

/* Below this it takes longer to call another thread than to do it */
#define ZC_CHUNK_LEAST SZ_256K
/* Whatever is asked for: how long a failure waits for who carries one out */
#define ZC_CHUNK_MOST SZ_1G

/* The node that has the root; 0 where there is none */
u32 zc_place_root(const struct zc_comm *comm, const struct zc_op *op)
{
	return comm->layout.map && zc_collective_rooted(op->desc.collective) ?
	       comm->layout.map[op->desc.root] : 0;
}

/*
 * Bytes of a chunk: half of a CPU's own cache, so that taking it and getting into its stride cost
 * little; but not so many that a rank's thread finds less than two chunks. With several nodes a
 * unit is a slice, and small.
 */
static u64 zc_place_chunk_bytes(const struct zc_comm *comm, const struct zc_op *op)
{
	u64 most = comm->net ? 0 : zc_isa_own_cache() / 2;
	u64 share = op->elements * op->width / (2 * max(comm->layout.nlocal, 1U));

	return min_t(u64, READ_ONCE(chunk_bytes), ZC_CHUNK_MOST) ?:
	       max_t(u64, min(share, most), ZC_CHUNK_LEAST);
}

/* The loops, and how many elements one run of them takes */
static void zc_place_loops(const struct zc_comm *comm, struct zc_op *op)
{
	bool reduces = zc_collective_reduces(op->desc.collective);
	bool one_output = op->desc.collective == ZCOLL_REDUCE ||
			  op->desc.collective == ZCOLL_REDUCE_SCATTER;
	u32 nlocal = comm->layout.nlocal;
	u32 inputs = reduces ? nlocal : 1, outputs = one_output ? 1 : nlocal;
	u64 bytes, stream;

	op->copy = zc_isa_fold(ZCOLL_UINT8, ZCOLL_SUM);
	op->fold = reduces ? zc_isa_fold(op->desc.dtype, op->desc.op) : NULL;
	op->partial = op->fold;
	if (op->desc.op == ZCOLL_AVG)
		op->partial = zc_isa_fold(op->desc.dtype, ZCOLL_SUM);

	/* With several nodes also what has been received, and the accumulation */
	op->width = op->esize * (inputs + outputs + (comm->net ? 2 : 0));
	bytes = ZC_SECTION_BYTES / op->width * op->esize;
	/* Whole cache lines, so that pieces of aligned buffers share none */
	op->piece = max(round_down(bytes, bytes >= 64 ? 64 : 8) / op->esize, 1ULL);
	bytes = zc_place_chunk_bytes(comm, op);
	op->chunk = op->piece * max(bytes / (op->piece * op->width), 1ULL);
	stream = READ_ONCE(stream_bytes) ?: zc_isa_last_cache();
	op->stream = !comm->net && !op->inplace && op->elements >= stream / op->width;
}

/* Numbers of an operation on any node, also on one node alone */
static void zc_place_numbers(const struct zc_comm *comm, struct zc_op *op)
{
	const struct zcoll_plan *plan = op->plan->prog.plan;
	bool rooted = zc_collective_rooted(op->desc.collective);

	op->esize = max(zc_dtype_size(op->desc.dtype), 1U);
	op->elements = op->desc.count * (zc_place_blocks(op) ? comm->layout.nranks : 1);
	op->geo = (struct zc_geometry) { .count = op->elements };
	op->slice = max(op->elements, 1ULL);
	op->eager = 0;
	op->v = zc_plan_number(plan, zc_place_root(comm, op), comm->layout.node);
	op->outputs = zc_plan_has_outputs(plan, op->v);
	op->lead = rooted ? zc_layout_local(&comm->layout, op->desc.root) : 0;
	op->room = NULL;
	zc_place_loops(comm, op);
}

/* Have all nodes equally many ranks? Then segments are even. */
static bool zc_place_even(const struct zc_comm *comm)
{
	u32 i, each = comm->layout.begins[1];

	for (i = 1; i < comm->layout.members; i++)
		if (comm->layout.begins[i + 1] - comm->layout.begins[i] != each)
			return false;
	return true;
}

/* Segments are nodes' blocks, and not equally long. Return: 0 or -ENOMEM. */
static int zc_place_starts(const struct zc_comm *comm, struct zc_op *op, struct zc_text *why)
{
	u32 i;

	/* Kept for the next operation in this place of the window */
	if (!op->starts)
		op->starts = kvmalloc_array(comm->layout.members + 1, sizeof(*op->starts),
					    GFP_KERNEL_ACCOUNT);
	if (!op->starts) {
		zc_text_add(why, "no kernel memory for where the blocks of %u nodes begin",
			    comm->layout.members);
		return -ENOMEM;
	}
	for (i = 0; i <= comm->layout.members; i++)
		op->starts[i] = comm->layout.begins[i] * op->desc.count;
	op->geo.starts = op->starts;
	return 0;
}

/* Take @count places of @pitch bytes from the room. It saturates. */
static size_t zc_place_carve(size_t *room, u64 count, u64 pitch)
{
	size_t at = *room;

	*room = size_add(at, size_mul(count, pitch));
	return at;
}

static void zc_place_step(const struct zc_comm *comm, struct zc_op *op, u32 step,
			  u64 largest, size_t *room)
{
	const struct zcoll_step *s = &op->plan->prog.plan->steps[step];
	struct zc_cut cut = zc_step_cut(s, &op->geo, largest, op->slice);
	struct zc_step_places *own = &op->places->steps[step];
	u64 units = cut.slices * s->repeat;

	own->unit = cut.unit;
	own->pitch = round_up(cut.unit * op->esize, SMP_CACHE_BYTES);
	if (cut.unit <= op->eager || !zc_step_active(op->plan->prog.plan, s, op->v))
		return;
	if (s->kind == ZCOLL_STEP_FOLD && zc_step_receives(s) && !(s->flags & ZCOLL_STEP_OPEN))
		own->slots = zc_place_carve(room, op->places->slots, own->pitch);
	if (s->kind == ZCOLL_STEP_SEND && s->flags & ZCOLL_STEP_FIRST && s->count &&
	    !zc_place_alone(comm, op))
		own->staging = zc_place_carve(room, min_t(u64, units, op->places->inflight),
					      own->pitch);
}

/* Does a step read or write the accumulation? */
static bool zc_step_accumulates(const struct zc_comm *comm, const struct zc_op *op,
				const struct zcoll_step *s)
{
	bool alone = zc_place_alone(comm, op);

	if (s->kind == ZCOLL_STEP_DELIVER)
		return false;
	if (s->kind == ZCOLL_STEP_GATHER)
		return s->dst.space == ZCOLL_PLACE_DATA && !alone;
	if (s->kind == ZCOLL_STEP_FOLD && s->dst.space == ZCOLL_PLACE_DATA &&
	    !(s->flags & ZCOLL_STEP_RESULT))
		return true;
	return s->src.space == ZCOLL_PLACE_DATA && !(s->flags & ZCOLL_STEP_FIRST) &&
	       !(s->flags & ZCOLL_STEP_INPUT && alone);
}

/* What a step needs beside what is its own: places that all steps share */
static void zc_place_shared(const struct zc_comm *comm, const struct zc_op *op,
			    const struct zcoll_step *s, bool *acc, bool *scratch, bool *landing)
{
	if (!s->count || !zc_step_active(op->plan->prog.plan, s, op->v))
		return;
	*acc |= !op->outputs && zc_step_accumulates(comm, op, s);
	*scratch |= s->dst.space == ZCOLL_PLACE_SCRATCH || s->src.space == ZCOLL_PLACE_SCRATCH;
	*landing |= s->kind == ZCOLL_STEP_DELIVER && zc_place_scattered(op);
}

/* What has no place in the users' buffers gets one. Return: bytes, SIZE_MAX: too many. */
static size_t zc_place_lay(const struct zc_comm *comm, struct zc_op *op)
{
	const struct zcoll_plan *plan = op->plan->prog.plan;
	u64 largest = zc_geometry_largest(&op->geo, plan->segments);
	bool acc = false, scratch = false, landing = false;
	struct zc_places *places = op->places;
	size_t room = 0;
	u32 i;

	places->pitch = round_up(largest * op->esize, SMP_CACHE_BYTES);
	places->sigma = zc_plan_sigma(plan, op->v) % plan->segments;
	places->nacc = max(plan->acc, 1U);
	for (i = 0; i < plan->nsteps; i++) {
		zc_place_step(comm, op, i, largest, &room);
		zc_place_shared(comm, op, &plan->steps[i], &acc, &scratch, &landing);
	}
	places->by_segment = acc || scratch;
	if (acc)
		places->acc = zc_place_carve(&room, places->nacc, places->pitch);
	if (scratch)
		places->scratch = zc_place_carve(&room, plan->scratch, places->pitch);
	if (landing)
		places->landing = zc_place_carve(&room, 1, places->pitch);
	return room;
}

static int zc_place_room(const struct zc_comm *comm, struct zc_op *op, struct zc_text *why)
{
	size_t bytes = zc_place_lay(comm, op);
	struct zc_region *region;

	if (!bytes)
		return 0;
	if (bytes == SIZE_MAX) {
		zc_text_add(why, "plan %s needs more kernel memory than there can be",
			    op->plan->prog.plan->name);
		return -ENOMEM;
	}
	region = zc_region_get(comm->net, bytes, why);
	if (IS_ERR(region))
		return PTR_ERR(region);
	op->room = region;
	return 0;
}

/* Does the plan fold only where there is an operator? */
static int zc_place_check(const struct zc_op *op, struct zc_text *why)
{
	const struct zcoll_plan *plan = op->plan->prog.plan;
	u32 i;

	for (i = 0; i < plan->nsteps && !zc_collective_reduces(op->desc.collective); i++) {
		if (plan->steps[i].kind != ZCOLL_STEP_FOLD || !plan->steps[i].count ||
		    plan->steps[i].flags & ZCOLL_STEP_STORE)
			continue;
		zc_text_add(why, "plan %s folds in step %u, but there is no operator",
			    plan->name, i);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int zc_place_network(const struct zc_comm *comm, struct zc_op *op, struct zc_text *why)
{
	const struct zcoll_plan *plan = op->plan->prog.plan;
	const struct zc_net_config *config = &comm->net->config;
	u64 product;
	int err;

	op->slice = max(config->slice_bytes / op->esize, 1U);
	op->eager = config->eager_bytes / op->esize;
	err = zc_place_check(op, why);
	if (err)
		return err;
	/* For zc_place_segment() */
	if (check_mul_overflow(op->elements + 1, (u64)plan->segments, &product)) {
		zc_text_add(why, "%llu elements are too many for %u segments", op->elements,
			    plan->segments);
		return -EOVERFLOW;
	}
	if (zc_place_blocks(op) && !zc_place_even(comm)) {
		err = zc_place_starts(comm, op, why);
		if (err)
			return err;
	}
	/* Kept likewise */
	if (!op->places)
		op->places = kvmalloc(sizeof(*op->places), GFP_KERNEL_ACCOUNT);
	if (!op->places) {
		zc_text_add(why, "no kernel memory for where its elements are");
		return -ENOMEM;
	}
	op->places->slots = config->slots;
	op->places->inflight = zc_net_engine_config(comm).inflight;
	return zc_place_room(comm, op, why);
}

/**
 * zc_place_prepare - lay an operation out
 * @comm: the communicator
 * @op: STARTING; its plan, inputs and outputs are set
 * @why: gets the text of a failure
 *
 * Context: process context, may sleep.
 * Return: 0, or a negative errno; zc_place_release() is to be called in either case.
 */
int zc_place_prepare(struct zc_comm *comm, struct zc_op *op, struct zc_text *why)
{
	zc_text_add(why, "%s %llu: ", zc_collective_name(op->desc.collective), op->seq);
	zc_place_numbers(comm, op);
	return comm->net ? zc_place_network(comm, op, why) : 0;
}

/**
 * zc_place_release - an operation needs its places no more
 * @comm: the communicator
 * @op: ENDING: nobody can write into its places any more
 *
 * Context: under zc_comm.lock.
 */
void zc_place_release(struct zc_comm *comm, struct zc_op *op)
{
	struct hlist_node *next;
	struct zc_grant *grant;
	struct zc_inbox *box;
	u32 i;

	if (!comm->net)
		return;
	for (i = 0; i < ZC_OP_HASH; i++) {
		hlist_for_each_entry_safe(box, next, &op->inboxes[i], link)
			zc_place_consume(box);
		hlist_for_each_entry_safe(grant, next, &op->landings[i], link) {
			hlist_del(&grant->link);
			zc_grant_free(comm->net, grant);
		}
	}
	zc_region_put(op->room);
	op->room = NULL;
}

/* A communicator ends: what its operations have kept. Its net is closed after this. */
void zc_places_free(struct zc_comm *comm)
{
	u32 i;

	for (i = 0; i < ZC_WINDOW; i++) {
		/* Messages of an operation that was never called */
		spin_lock(&comm->lock);
		zc_place_release(comm, &comm->ops[i]);
		spin_unlock(&comm->lock);
		kvfree(comm->ops[i].places);
		kvfree(comm->ops[i].starts);
	}
}
