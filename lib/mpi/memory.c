// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The memory of an operation: where zcoll reads and writes.
 *
 * That is the user's memory where its type is plain, else bounce memory of the same
 * size, filled before the operation starts and emptied after its end. Bounce memory
 * also serves where zcoll cannot pin the user's: constants in a read-only segment, a
 * mapped file.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

static void *after(const struct zm_data *data, MPI_Aint blocks)
{
	MPI_Aint low, extent;

	PMPI_Type_get_extent(data->type, &low, &extent);
	return (char *)data->buf + blocks * data->count * extent;
}

/* What the user's input and output are, in place or not */
static void find_data(struct zm_op *op, const struct zm_args *a)
{
	const struct zm_comm *c = op->comm;
	struct zm_data none = { 0 };

	op->in_place = a->send.buf == MPI_IN_PLACE;
	op->output = a->recv;
	op->input = op->in_place ? a->recv : a->send;
	switch (a->collective) {
	case ZCOLL_REDUCE:
		if (c->rank != a->root)
			op->output = none;
		break;
	case ZCOLL_REDUCE_SCATTER:
		op->input.count = a->recv.count * c->size;
		break;
	case ZCOLL_ALLGATHER:
		op->output.count = a->recv.count * c->size;
		if (op->in_place)
			op->input.buf = after(&a->recv, c->rank);
		break;
	case ZCOLL_BROADCAST:
		op->in_place = c->rank == a->root;
		op->input = op->in_place ? a->recv : none;
		if (op->in_place)
			op->output = none;
		break;
	case ZCOLL_BARRIER:
		op->input = op->output = none;
		break;
	}
	op->in_bytes = op->input.count ? op->input.count * zm_type_size(op->input.type) : 0;
	op->out_bytes = op->output.count ? op->output.count * zm_type_size(op->output.type) : 0;
}

static bool is_plain(const struct zm_data *data)
{
	return !data->count || zm_type_is_plain(data->type);
}

static int get_bounce(struct zm_op *op, bool in, bool out)
{
	if (in && op->in_bytes)
		op->in_bounce = malloc(op->in_bytes);
	if (out && op->out_bytes)
		op->out_bounce = malloc(op->out_bytes);
	if ((in && op->in_bytes && !op->in_bounce) || (out && op->out_bytes && !op->out_bounce)) {
		zm_memory_free(op);
		return -ENOMEM;
	}
	return 0;
}

/* In place, one of input and output lies in the other: ours, or the user's */
static void set_in_place(struct zm_op *op)
{
	size_t own = op->block * op->comm->rank;

	switch (op->call.collective) {
	case ZCOLL_ALLGATHER:
		op->call.send = (char *)op->call.recv + own;
		break;
	case ZCOLL_REDUCE_SCATTER:
		op->call.recv = (char *)op->call.send + own;
		break;
	case ZCOLL_BROADCAST:
		op->call.recv = (void *)op->call.send;
		break;
	default:
		op->call.send = op->call.recv;
	}
}

/* In which of the two does the other lie? */
static bool is_in_input(const struct zm_op *op)
{
	return op->call.collective == ZCOLL_REDUCE_SCATTER ||
	       op->call.collective == ZCOLL_BROADCAST;
}

static int set(struct zm_op *op, bool in, bool out)
{
	int ret;

	if (op->in_place) {
		in = out = in || out;
		ret = get_bounce(op, in && is_in_input(op), out && !is_in_input(op));
	} else {
		ret = get_bounce(op, in, out);
	}
	if (ret)
		return ret;
	op->call.send = op->in_bounce ? op->in_bounce : op->input.buf;
	op->call.recv = op->out_bounce ? op->out_bounce : op->output.buf;
	if (op->in_place)
		set_in_place(op);
	return 0;
}

/**
 * zm_memory_set - choose where an operation reads and writes
 * @op: with comm, block and call.collective
 * @a: the call's arguments
 *
 * Return: 0. -ENOMEM. -EMSGSIZE: this rank sends more or less than it gets of each.
 */
int zm_memory_set(struct zm_op *op, const struct zm_args *a)
{
	find_data(op, a);
	if (a->collective == ZCOLL_ALLGATHER && op->in_bytes != op->block)
		return -EMSGSIZE;
	return set(op, !is_plain(&op->input), !is_plain(&op->output));
}

/**
 * zm_memory_bounce - use bounce memory only, for user memory that cannot be pinned
 * @op: its data must be loaded again
 *
 * Return: 0. -EALREADY: it does so. -ENOMEM.
 */
int zm_memory_bounce(struct zm_op *op)
{
	bool has = op->in_place ? op->in_bounce || op->out_bounce :
		   (op->in_bounce || !op->in_bytes) && (op->out_bounce || !op->out_bytes);

	if (has)
		return -EALREADY;
	zm_memory_free(op);
	return set(op, true, true);
}

/* Bounce memory is filled from the user's */
int zm_memory_load(struct zm_op *op)
{
	if (!op->in_bytes || op->call.send == op->input.buf)
		return 0;
	return zm_data_load((void *)op->call.send, &op->input, op->in_bytes);
}

/*
 * And emptied. In place, MPI_Reduce_scatter() has its result at the beginning of the
 * buffer, and zcoll this rank's block.
 */
int zm_memory_store(struct zm_op *op)
{
	if (!op->out_bytes || op->call.recv == op->output.buf)
		return 0;
	return zm_data_store(&op->output, op->call.recv, op->out_bytes);
}

void zm_memory_free(struct zm_op *op)
{
	free(op->in_bounce);
	free(op->out_bounce);
	op->in_bounce = op->out_bounce = NULL;
}

/* ------------------------------------------------- types that outlive the call */

/* Of a plain one only its bytes matter from now on */
static void hold(struct zm_data *data)
{
	if (!data->count)
		return;
	if (zm_type_is_plain(data->type))
		data->type = MPI_BYTE;
	else
		PMPI_Type_dup(data->type, &data->type);
}

static void release(struct zm_data *data)
{
	if (data->count && data->type != MPI_BYTE)
		PMPI_Type_free(&data->type);
}

/**
 * zm_memory_hold - keep the types of an operation that goes on after the call
 * @op: the operation; zm_memory_release() gives them up
 */
void zm_memory_hold(struct zm_op *op)
{
	hold(&op->input);
	hold(&op->output);
}

void zm_memory_release(struct zm_op *op)
{
	release(&op->input);
	release(&op->output);
}
