// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Operations: done, or started, tried and waited for.
 *
 * zcoll goes on in the kernel whatever the process does, and so do the other ranks; but one
 * of them may be in the middle of a message to this one, which the MPI moves only when it
 * is called. So zcoll is told to call it while a rank waits, see zcoll_comm_set_idle().
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#define NAP_NS	200000ULL

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

/* While zcoll waits. The thread that submits what is queued must not call the MPI */
void zm_idle(void *arg)
{
	(void)arg;
	if (!zm_is_feeder())
		zm_progress();
}

/* Sleep for up to @ns, for what zcoll does not know of yet */
void zm_nap(uint64_t ns)
{
	struct timespec nap = { .tv_nsec = ns < NAP_NS ? ns : NAP_NS };

	nanosleep(&nap, NULL);
	zm_idle(NULL);
}

/* @why: what went wrong here; NULL: zcoll knows */
static void note_error(struct zm_op *op, int err, const char *why)
{
	op->error = err;
	if (why)
		snprintf(op->text, sizeof(op->text), "rank %d: %s: %s", op->comm->rank, why,
			 strerror(-err));
	else
		zcoll_comm_error(op->comm->zcoll, op->text, sizeof(op->text));
}

/**
 * zm_op_fail - an operation has failed, before or after it was submitted
 * @op: the operation
 * @err: negative errno
 * @why: what went wrong here; NULL: zcoll knows
 *
 * The others have begun or will, and would wait for this rank for ever, or take its next call
 * for this one. So what only this rank cannot do ends the communicator on all; but a child of
 * fork() is no rank.
 */
void zm_op_fail(struct zm_op *op, int err, const char *why)
{
	note_error(op, err, why);
	if (err != -EPERM)
		zcoll_comm_abort(op->comm->zcoll);
	atomic_store(&op->state, ZM_OVER);
}

static bool load(struct zm_op *op)
{
	int ret = zm_memory_load(op);

	op->error = 0;
	if (ret)
		zm_op_fail(op, ret, "the input cannot be packed");
	return !ret;
}

/* zcoll has done the operation, or @ret. What is wrong with the output is this rank's matter */
static void finish(struct zm_op *op, int ret)
{
	if (ret) {
		zm_op_fail(op, ret, NULL);
		return;
	}
	ret = zm_memory_store(op);
	if (ret)
		note_error(op, ret, "the output cannot be unpacked");
	atomic_store(&op->state, ZM_OVER);
}

/**
 * zm_op_do - do an operation, and wait until it is over
 * @op: IDLE, with its memory set
 */
void zm_op_do(struct zm_op *op)
{
	if (load(op))
		finish(op, zm_call(op));
}

/**
 * zm_op_start - start an operation; does not wait
 * @op: IDLE or OVER, with its memory set. It may be OVER with an error at once
 */
void zm_op_start(struct zm_op *op)
{
	if (load(op))
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

/**
 * zm_op_try - is an operation over?
 * @op: the operation, started
 * @ns: longest time to wait for it
 */
bool zm_op_try(struct zm_op *op, uint64_t ns)
{
	int ret;

	switch (atomic_load(&op->state)) {
	case ZM_QUEUED:
		if (ns)
			zm_nap(ns);
		return false;
	case ZM_FLYING:
		ret = zcoll_wait(op->req, ns);
		if (ret == -EAGAIN)
			return false;
		no_longer_flying(op);
		finish(op, ret);
	}
	return true;
}

/**
 * zm_op_wait - wait until an operation is over
 * @op: the operation, started
 */
void zm_op_wait(struct zm_op *op)
{
	while (!zm_op_try(op, ZCOLL_WAIT_FOREVER))
		;
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
