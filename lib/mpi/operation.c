// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operations: started, tried, waited for.
 *
 * zcoll goes on in the kernel whatever the process does, and so do the other ranks; but one
 * of them may be in the middle of a message to this one, which the MPI moves only when it
 * is called. So a rank that waits sleeps in zcoll, where it helps with the work and is
 * woken by the end, for a short time only, and then lets the MPI look around.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "internal.h"

/*
 * Let the MPI look around. Both MPIs do that when they are asked about a request that is not
 * complete, and setup.c has one that never is. (MPI_Iprobe() is no substitute: it only looks
 * where it was told to, or finds a message and looks no further.)
 */
void zm_progress(void)
{
	int flag;

	PMPI_Request_get_status(zm_never(), &flag, MPI_STATUS_IGNORE);
}

/* The others have begun or will, and would wait for this rank for ever */
static bool leaves_others_waiting(const struct zm_op *op, int err)
{
	if (atomic_load(&op->state) == ZM_FLYING)
		return false;
	switch (err) {
	case -ENOMEM:
	case -EDQUOT:
	case -EMFILE:
	case -ENFILE:
	case -EAGAIN:
	case -EOVERFLOW:
	case -EMSGSIZE:
	case -EIO:
		return true;
	default:
		return false;
	}
}

/**
 * zm_op_fail - an operation has failed, before or after it was submitted
 * @op: the operation
 * @err: negative errno
 * @why: what went wrong here; NULL: zcoll knows
 *
 * What this rank alone lacks ends the communicator on all ranks.
 */
void zm_op_fail(struct zm_op *op, int err, const char *why)
{
	op->error = err;
	if (why)
		snprintf(op->text, sizeof(op->text), "rank %d: %s: %s", op->comm->rank, why,
			 strerror(-err));
	else
		zcoll_comm_error(op->comm->zcoll, op->text, sizeof(op->text));
	if (leaves_others_waiting(op, err))
		zcoll_comm_abort(op->comm->zcoll);
	atomic_store(&op->state, ZM_OVER);
}

/**
 * zm_op_start - start an operation; does not wait
 * @op: IDLE or OVER, with its memory set. It may be OVER with an error at once
 */
void zm_op_start(struct zm_op *op)
{
	int ret;

	op->error = 0;
	ret = zm_memory_load(op);
	if (ret)
		zm_op_fail(op, ret, "the input cannot be packed");
	else
		zm_submit(op);
}

static void no_longer_flying(struct zm_op *op)
{
	struct zm_comm *c = op->comm;
	struct zm_op **at;

	pthread_mutex_lock(&c->lock);
	for (at = &c->flying; *at != op; at = &(*at)->next)
		;
	*at = op->next;
	pthread_mutex_unlock(&c->lock);
}

static void landed(struct zm_op *op, int ret)
{
	no_longer_flying(op);
	if (ret) {
		zm_op_fail(op, ret, NULL);
		return;
	}
	ret = zm_memory_store(op);
	if (ret)
		zm_op_fail(op, ret, "the output cannot be unpacked");
	else
		atomic_store(&op->state, ZM_OVER);
}

/**
 * zm_op_try - is an operation over?
 * @op: the operation, started
 * @ns: longest time to wait for it
 */
bool zm_op_try(struct zm_op *op, uint64_t ns)
{
	struct timespec pause = { .tv_nsec = ns };
	int ret;

	switch (atomic_load(&op->state)) {
	case ZM_QUEUED:
		if (ns)
			nanosleep(&pause, NULL);
		return false;
	case ZM_FLYING:
		ret = zcoll_wait(op->req, ns);
		if (ret == -EAGAIN)
			return false;
		landed(op, ret);
	}
	return true;
}

/**
 * zm_op_wait - wait until an operation is over, and keep MPI going meanwhile
 * @op: the operation, started
 */
void zm_op_wait(struct zm_op *op)
{
	uint64_t pause = ZM_PAUSE_MIN_NS;

	while (!zm_op_try(op, pause)) {
		zm_progress();
		if (pause < ZM_PAUSE_MAX_NS)
			pause *= 2;
	}
}

/**
 * zm_op_end - give up what an operation holds
 * @op: IDLE or OVER
 */
void zm_op_end(struct zm_op *op)
{
	zm_memory_free(op);
	zm_comm_put(op->comm);
}
