// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Taking: is a call done by zcoll, or passed on?
 *
 * The answer must be the same on all ranks, so it is made of what MPI requires to be the
 * same there. Wrong arguments are passed on, too: the program is in error then, and the
 * MPI knows how to say so.
 */
#include <limits.h>

#include "internal.h"

static bool reduces(unsigned int collective)
{
	return collective == ZCOLL_ALLREDUCE || collective == ZCOLL_REDUCE ||
	       collective == ZCOLL_REDUCE_SCATTER;
}

static bool has_root(unsigned int collective)
{
	return collective == ZCOLL_REDUCE || collective == ZCOLL_BROADCAST;
}

static bool arguments_are_wrong(const struct zm_args *a)
{
	return a->comm == MPI_COMM_NULL ||
	       (a->collective != ZCOLL_BARRIER &&
		(a->recv.count < 0 || a->recv.type == MPI_DATATYPE_NULL)) ||
	       (reduces(a->collective) && a->op == MPI_OP_NULL);
}

/* Element type and operator, as zcoll names them. Where nothing is reduced: bytes */
static enum zm_reason translate(struct zcoll_call *call, const struct zm_args *a)
{
	if (a->collective == ZCOLL_BARRIER)
		return ZM_TAKEN;
	if (!reduces(a->collective)) {
		call->dtype = ZCOLL_UINT8;
		return ZM_TAKEN;
	}
	call->op = zm_op_number(a->op);
	if (!call->op)
		return ZM_OPERATOR;
	call->dtype = zm_type_element(a->recv.type);
	return call->dtype ? ZM_TAKEN : ZM_TYPE;
}

/* Bytes that the rank with most to pin does pin */
static uint64_t pinned(const struct zm_op *op)
{
	uint64_t n = op->comm->size;

	switch (op->call.collective) {
	case ZCOLL_ALLGATHER:
	case ZCOLL_REDUCE_SCATTER:
		return (n + 1) * op->block;
	default:
		return 2 * op->block;
	}
}

static enum zm_reason is_possible(const struct zm_op *op)
{
	const struct zm_comm *c = op->comm;

	if (c->pass)
		return c->pass;
	if (op->call.collective == ZCOLL_BARRIER)
		return ZM_TAKEN;
	if (!(c->types >> op->call.dtype & 1))
		return ZM_TYPE;
	if (op->call.op && !(c->ops >> op->call.op & 1))
		return ZM_OPERATOR;
	if (!reduces(op->call.collective) && op->block > INT_MAX)
		return ZM_HUGE;		/* on some ranks one element may be that large */
	return pinned(op) > c->most ? ZM_LARGE : ZM_TAKEN;
}

/* What the rank itself can see to be wrong, once the ranks are known */
static bool root_is_wrong(const struct zm_op *op, const struct zm_args *a)
{
	return has_root(a->collective) &&
	       (a->root < 0 || a->root >= op->comm->size ||
		(a->send.buf == MPI_IN_PLACE && op->comm->rank != a->root));
}

/**
 * zm_take - decide, and prepare an operation if it is to be
 * @op: output: zeroes but for what is known then: its communicator, held, and its call
 *	without buffers
 * @a: the call's arguments
 * @form: blocking calls, and those that make persistent requests, may wait for the other
 *	ranks, and so make the communicator
 *
 * Return: ZM_TAKEN, or why not.
 */
enum zm_reason zm_take(struct zm_op *op, const struct zm_args *a, enum zm_form form)
{
	enum zm_reason reason;

	if (!zm_in_world())
		return ZM_SESSION;
	if (arguments_are_wrong(a))
		return ZM_ARGUMENTS;
	if (a->unequal)
		return ZM_UNEQUAL;
	op->call.size = sizeof(op->call);
	op->call.collective = a->collective;
	reason = translate(&op->call, a);
	if (reason)
		return reason;
	if (a->collective != ZCOLL_BARRIER) {
		op->block = a->recv.count * zm_type_size(a->recv.type);
		if (!op->block)
			return ZM_EMPTY;
		op->call.count = reduces(a->collective) ? (uint64_t)a->recv.count : op->block;
	}

	/* A persistent request has a communicator to itself: starts need no order */
	if (form == ZM_PERSISTENT)
		op->comm = zm_comm_make(a->comm);
	else
		op->comm = zm_comm_of(a->comm, form == ZM_BLOCKING);
	if (!op->comm)
		return form == ZM_NONBLOCKING ? ZM_NOT_YET : ZM_NO_COMM;
	if (form != ZM_PERSISTENT)
		zm_comm_get(op->comm);
	reason = is_possible(op);
	if (!reason && root_is_wrong(op, a))
		reason = ZM_ARGUMENTS;
	if (reason)
		zm_comm_put(op->comm);
	else if (has_root(a->collective))
		op->call.root = a->root;
	return reason;
}
