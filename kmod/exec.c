// SPDX-License-Identifier: GPL-2.0-only
/*
 * Carrying out: folds and copies.
 *
 * A task's unit is walked in pieces, and in these stretch by stretch (place.h). A piece is
 * one SIMD section: preemption is off in it, and between pieces there is room to schedule
 * and to notice that the communicator has been revoked.
 *
 * The order of operands is that of the plan, source (+) received, and of local inputs the
 * fixed tree over them. Results of averages are divided where they become final; until
 * then they are sums. What becomes final is folded, even if it has one operand only, for
 * that rounds and divides; all else that has one operand is copied, bit for bit.
 *
 * All inputs of a piece are read before an output of it is written: operations may be in
 * place.
 */
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/numa.h>
#include <linux/sched.h>

#include "compat.h"
#include "place.h"

/* So many inputs and what has been received are folded in one pass */
#define ZC_EXEC_INPUTS 16

/**
 * struct zc_exec - a stretch being carried out
 * @comm: the communicator
 * @op: the operation
 * @task: the task
 * @action: its action
 * @stretch: elements
 * @ndst: outputs
 * @dst: their addresses; biased, as all addresses here (place.h)
 * @one: room for one of them
 * @operands: room for the addresses of the stretch
 * @folded: bytes read by folds until now
 * @copied: bytes written by copies until now
 */
struct zc_exec {
	struct zc_comm *comm;
	const struct zc_op *op;
	const struct zc_task *task;
	const struct zc_action *action;
	struct zc_stretch stretch;
	u32 ndst;
	void **dst;
	void *one;
	struct zc_operands *operands;
	u64 folded;
	u64 copied;
};

static void zc_exec_fold(struct zc_exec *x, zc_fold_fn loop, const void *const *src, u32 nsrc)
{
	loop(x->dst, src, x->ndst, nsrc, x->comm->layout.nranks, x->stretch.user, x->stretch.count,
	     x->op->stream);
	x->folded += x->stretch.count * x->op->esize * nsrc;
}

static void zc_exec_copy_to(struct zc_exec *x, void **dst, u32 ndst, const void *src)
{
	u32 esize = x->op->esize;

	if (!ndst)
		return;
	x->op->copy(dst, &src, ndst, 1, 1, x->stretch.user * esize, x->stretch.count * esize,
		    x->op->stream);
	x->copied += x->stretch.count * esize * ndst;
}

/* To all outputs but @own, if that is where it comes from */
static void zc_exec_copy(struct zc_exec *x, const void *src, u32 own)
{
	if (own >= x->ndst || x->dst[own] != src) {
		zc_exec_copy_to(x, x->dst, x->ndst, src);
		return;
	}
	zc_exec_copy_to(x, x->dst, own, src);
	zc_exec_copy_to(x, x->dst + own + 1, x->ndst - own - 1, src);
}

static void zc_exec_to(struct zc_exec *x, void *dst)
{
	x->one = dst;
	x->dst = &x->one;
	x->ndst = 1;
}

/* What becomes final goes to the outputs */
static void zc_exec_to_outputs(struct zc_exec *x)
{
	switch (x->op->desc.collective) {
	case ZCOLL_REDUCE:
		zc_exec_to(x, x->stretch.dst[x->op->lead]);
		break;
	case ZCOLL_REDUCE_SCATTER:
		zc_exec_to(x, zc_place_output(x->op, &x->stretch));
		break;
	default:
		x->dst = x->stretch.dst;
		x->ndst = x->comm->layout.nlocal;
	}
}

static const void *zc_exec_source(const struct zc_exec *x, u32 index)
{
	return zc_place_source(x->comm, x->op, x->action, index, &x->stretch);
}

static bool zc_exec_reduces(const struct zc_exec *x)
{
	return x->op->fold;
}

/* The local inputs become a partial result */
static void zc_exec_gather(struct zc_exec *x)
{
	if (zc_place_alone(x->comm, x->op))
		zc_exec_copy(x, zc_place_input(x->op, &x->stretch), 0);
	else
		zc_exec_fold(x, x->op->partial, x->stretch.src, x->comm->layout.nlocal);
}

/*
 * Local inputs (+) @received. The tree over a power of two of inputs and one more is the
 * tree over the inputs, and that one: one pass. Else the inputs are folded into the
 * destination before, which stays in the cache.
 */
static void zc_exec_first(struct zc_exec *x, zc_fold_fn loop, const void *received)
{
	u32 n = x->comm->layout.nlocal, ndst = x->ndst;
	const void *src[ZC_EXEC_INPUTS + 1];

	if (n <= ZC_EXEC_INPUTS && is_power_of_2(n)) {
		memcpy(src, x->stretch.src, n * sizeof(*src));
		src[n] = received;
		zc_exec_fold(x, loop, src, n + 1);
		return;
	}
	x->ndst = 1;
	zc_exec_fold(x, x->op->partial, x->stretch.src, n);
	x->ndst = ndst;
	src[0] = x->dst[0];
	src[1] = received;
	zc_exec_fold(x, loop, src, 2);
}

static void zc_exec_fold_received(struct zc_exec *x)
{
	const void *received = zc_place_received(x->op, x->task, &x->stretch);
	u32 flags = x->action->row->flags;
	zc_fold_fn loop = x->op->partial;

	if (flags & ZCOLL_STEP_RESULT) {
		zc_exec_to_outputs(x);
		loop = x->op->fold;
	} else {
		zc_exec_to(x, zc_place_at(x->comm, x->op, x->action->dst, &x->stretch));
	}
	if (flags & ZCOLL_STEP_FIRST) {
		zc_exec_first(x, loop, received);
	} else if (flags & ZCOLL_STEP_STORE) {
		zc_exec_copy(x, received, 0);
	} else {
		const void *src[] = { zc_exec_source(x, x->action->src), received };

		zc_exec_fold(x, loop, src, 2);
	}
}

static void zc_exec_fold_local(struct zc_exec *x)
{
	const void *src[] = { zc_exec_source(x, x->action->dst),
			      zc_exec_source(x, x->action->src) };

	zc_exec_to(x, zc_place_at(x->comm, x->op, x->action->dst, &x->stretch));
	if (x->action->row->flags & ZCOLL_STEP_STORE)
		zc_exec_copy(x, src[1], 0);
	else
		zc_exec_fold(x, x->op->partial, src, 2);
}

/*
 * Has what an action delivers still to become final here? It has where the sender has no
 * outputs for it: then it is an accumulation of all. That differs from a result in averages
 * only, and where it is the one input there is.
 */
static bool zc_exec_finishes(const struct zc_comm *comm, const struct zc_op *op,
			     const struct zc_action *action)
{
	if (!op->fold || (op->fold == op->partial && comm->layout.members > 1))
		return false;
	return op->desc.collective != ZCOLL_ALLREDUCE || action->peer >= comm->layout.members;
}

static void zc_exec_deliver(struct zc_exec *x)
{
	const void *received = zc_place_received(x->op, x->task, &x->stretch);

	zc_exec_to_outputs(x);
	if (zc_exec_finishes(x->comm, x->op, x->action))
		zc_exec_fold(x, x->op->fold, &received, 1);
	else
		zc_exec_copy(x, received, x->op->lead);
}

static void zc_exec_final(struct zc_exec *x)
{
	const void *src;

	zc_exec_to_outputs(x);
	if (x->action->row->flags & ZCOLL_STEP_FIRST && zc_exec_reduces(x)) {
		zc_exec_fold(x, x->op->fold, x->stretch.src, x->comm->layout.nlocal);
		return;
	}
	src = zc_exec_source(x, x->action->src);
	if (zc_exec_reduces(x))
		zc_exec_fold(x, x->op->fold, &src, 1);
	else
		zc_exec_copy(x, src, x->stretch.local);
}

static void zc_exec_stretch(struct zc_exec *x)
{
	switch (x->action->type) {
	case ZC_DO_SEND:
		zc_exec_to(x, zc_place_staging(x->op, x->action, &x->stretch));
		zc_exec_gather(x);
		break;
	case ZC_DO_GATHER:
		zc_exec_to(x, zc_place_at(x->comm, x->op, x->action->dst, &x->stretch));
		zc_exec_gather(x);
		break;
	case ZC_DO_FOLD:
		if (x->action->peer != ZC_NONE)
			zc_exec_fold_received(x);
		else
			zc_exec_fold_local(x);
		break;
	case ZC_DO_DELIVER:
		zc_exec_deliver(x);
		break;
	case ZC_DO_FINAL:
		zc_exec_final(x);
		break;
	}
}

/* At most @most elements from number @first of the unit on. Return: whether there are any. */
static bool zc_exec_find(struct zc_exec *x, u64 first, u64 most)
{
	if (!zc_place_stretch(x->comm, x->op, x->action, first, most, &x->stretch))
		return false;
	if (x->op->in_blocks)
		zc_place_in_blocks(x->comm, x->op, &x->stretch, x->operands);
	return true;
}

/* Elements @first .. @first + @count - 1 of the unit: one SIMD section */
static void zc_exec_piece(struct zc_exec *x, u64 first, u64 count)
{
	u64 end = first + count;

	zc_compat_simd_begin();
	while (first < end && zc_exec_find(x, first, end - first)) {
		zc_exec_stretch(x);
		first += x->stretch.count;
	}
	zc_compat_simd_end();
}

/**
 * zc_exec - carry out a part of a task
 * @comm: the communicator
 * @task: a task that the caller holds
 * @first: number of the first element, in the unit
 * @count: elements
 *
 * It is cut short when the communicator is revoked.
 *
 * Context: process context, may sleep.
 */
void zc_exec(struct zc_comm *comm, struct zc_task *task, u64 first, u64 count)
{
	struct zc_operands operands;
	struct zc_exec x = {
		.comm = comm, .op = task->op, .task = task, .action = &task->action,
		.operands = &operands,
	};
	u64 end = first + count, piece;

	while (first < end && !READ_ONCE(comm->error)) {
		piece = min(task->op->piece, end - first);
		zc_exec_piece(&x, first, piece);
		first += piece;
		cond_resched();
	}
	if (x.folded)
		atomic64_add(x.folded, &comm->bytes_folded);
	if (x.copied)
		atomic64_add(x.copied, &comm->bytes_copied);
}

/**
 * zc_exec_node - where in memory an element goes
 * @comm: the communicator
 * @task: FINAL of an operation on one node
 * @element: number of the element, in the unit
 *
 * Return: the NUMA node of the first output for it.
 */
int zc_exec_node(struct zc_comm *comm, const struct zc_task *task, u64 element)
{
	struct zc_operands operands;
	struct zc_exec x = {
		.comm = comm, .op = task->op, .task = task, .action = &task->action,
		.operands = &operands,
	};

	if (!zc_exec_find(&x, element, 1))
		return NUMA_NO_NODE;
	zc_exec_to_outputs(&x);
	return page_to_nid(zc_page_at(x.dst[0] + x.stretch.user * x.op->esize));
}

/**
 * zc_exec_is_void - is there nothing to do for a unit?
 * @comm: the communicator
 * @action: GATHER, FOLD, DELIVER, FINAL, or SEND
 *
 * So it is where the unit has landed in its place, or DATA stands for the input.
 */
bool zc_exec_is_void(struct zc_comm *comm, const struct zc_action *action)
{
	const struct zc_op *op = zc_comm_op(comm, action->seq);

	switch (action->type) {
	case ZC_DO_GATHER:
		return action->dst == ZC_NONE && zc_place_alone(comm, op);
	case ZC_DO_FOLD:
		return action->peer != ZC_NONE && action->slot == ZC_NONE;
	case ZC_DO_DELIVER:
		/* Into the only output there is */
		return action->slot == ZC_NONE && !zc_exec_finishes(comm, op, action) &&
		       (op->desc.collective == ZCOLL_REDUCE ||
			(op->outputs && comm->layout.nlocal == 1 &&
			 op->desc.collective != ZCOLL_REDUCE_SCATTER));
	default:
		return false;
	}
}
