// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine's host: what the engine says is to be done, and what it is told.
 *
 * Every communicator has an engine (engine/engine.h). When all local ranks have called
 * an operation it is submitted there; from then on the engine says what comes next: units
 * to be carried out here, which become tasks (task.c), or sent (net/message.c), or the
 * verdict. The engine is under zc_comm.lock: a spinlock, as the engine never sleeps and each
 * call of it is short. Work is done with the lock dropped.
 *
 * Whoever has told the engine something calls zc_run() under the same hold of the lock, so
 * that it does what comes of it itself. While it has dropped the lock others may be in
 * there, too: each takes actions of its own.
 *
 * Who does the work: small units, who comes across them in zc_run(), for waking somebody
 * takes longer; so on a path from a message that has come to one that goes out nobody is woken.
 * On one node that is the last caller, for its own operation only. All else, workers and
 * callers that wait (work.c).
 */
#include <linux/minmax.h>

#include "net/net.h"
#include "place.h"
#include "zcoll.h"

/* Bytes of small units that one zc_run() carries out; after that it leaves them to others */
#define ZC_RUN_BYTES (4 * ZC_INLINE_BYTES)

/**
 * struct zc_runner - who is in zc_run()
 * @comm: the communicator
 * @own: see zc_run()
 * @helps: see zc_run()
 * @bytes: what it has carried out itself
 */
struct zc_runner {
	struct zc_comm *comm;
	u64 own;
	bool helps;
	u64 bytes;
};

/* Dimensions of a communicator's engine. On one node plans have one step, without a peer. */
struct zc_engine_config zc_run_config(const struct zc_comm *comm)
{
	if (comm->net)
		return zc_net_engine_config(comm);
	return (struct zc_engine_config) {
		.nodes = 1, .window = ZC_WINDOW, .steps = 1, .slots = 2, .inflight = 1,
	};
}

/* The engine has been revoked by what a node has said, or has not said */
static void zc_run_blame(struct zc_comm *comm, int error, u32 node)
{
	u64 seq = comm->base;

	switch (error) {
	case -EPROTO:
		zc_comm_failf(comm, error,
			      "node %u: what node %u sends does not fit the operations called here, from %llu on",
			      comm->layout.node, node, seq);
		break;
	case -EHOSTDOWN:
		zc_comm_failf(comm, error,
			      "node %u: operation %llu: node %u does not answer (time-out, module parameter heartbeat_ms: %llu ms)",
			      comm->layout.node, seq, node,
			      div_u64(comm->net->config.timeout_ns, NSEC_PER_MSEC));
		break;
	case -ESHUTDOWN:
		zc_comm_failf(comm, error, "node %u: operation %llu: node %u has left",
			      comm->layout.node, seq, node);
		break;
	case -ENOSPC:
		zc_comm_failf(comm, error,
			      "node %u: node %u is one more than this node may have to do with",
			      comm->layout.node, node);
		break;
	default:
		zc_comm_failf(comm, error, "node %u: node %u has given up, with error %d",
			      comm->layout.node, node, error);
	}
}

/**
 * zc_run_check - see whether the engine has been revoked by itself
 * @comm: the communicator, locked
 *
 * To be called when the engine has been told something; then the communicator is
 * revoked, too.
 */
void zc_run_check(struct zc_comm *comm)
{
	int error = zc_engine_error(comm->engine);
	u32 node;

	if (!error || comm->error)
		return;
	node = zc_engine_blame(comm->engine);
	if (node != ZC_NONE)
		zc_run_blame(comm, error, node);
	else
		zc_comm_failf(comm, error, "node %u: operation %llu does not fit what others call",
			      comm->layout.node, comm->base);
}

/* An action with a unit is carried out, or never will be. Under zc_comm.lock. */
void zc_run_done(struct zc_comm *comm, const struct zc_action *action)
{
	zc_engine_done(comm->engine, action->seq, action->step, action->unit);
	zc_run_check(comm);
}

/* Should who is in zc_run() carry out a task itself? */
static bool zc_run_itself(const struct zc_runner *runner, const struct zc_task *task)
{
	u64 bytes = task->elements * task->op->width;

	if (bytes > ZC_INLINE_BYTES)
		return false;
	if (!runner->comm->net)
		return task->action.seq == runner->own;
	return runner->bytes + bytes <= ZC_RUN_BYTES;
}

/*
 * A unit that comes in a message must be all there, one that is written has no message, and it
 * is the right node's: all that could not be known when the message came before the operation was
 * called here.
 */
static bool zc_run_has_message(struct zc_comm *comm, const struct zc_task *task)
{
	const struct zc_action *action = &task->action;
	const struct zc_inbox *box = task->box;
	struct zc_text text = {};
	u64 bytes = 0;

	if (action->type == ZC_DO_SEND || action->slot == ZC_NONE)
		return true;
	if (zc_place_small(task->op, action->step))
		bytes = task->elements * task->op->esize;
	if (box ? box->length == bytes && box->from == action->peer : !bytes)
		return true;
	zc_text_add(&text, "%s %llu: step %u, unit %llu: ",
		    zc_collective_name(task->op->desc.collective), action->seq, action->step,
		    action->unit);
	zc_text_add(&text, "node %u has sent %u bytes in its message instead of %llu",
		    box ? box->from : action->peer, box ? box->length : 0, bytes);
	zc_comm_fail(comm, -EPROTO, &text);
	return false;
}

/* A unit is to be carried out: by the caller at once, or by workers and helpers */
static void zc_run_unit(struct zc_runner *runner, const struct zc_action *action)
	__must_hold(&runner->comm->lock)
{
	struct zc_comm *comm = runner->comm;
	bool own = action->seq == runner->own;
	struct zc_task *task;
	u64 nchunks;

	if (zc_exec_is_void(comm, action)) {
		zc_run_done(comm, action);
		return;
	}
	task = zc_task_begin(comm, action);
	if (!zc_run_has_message(comm, task)) {
		zc_task_end(comm, task);
		return;
	}
	if (zc_run_itself(runner, task)) {
		runner->bytes += task->elements * task->op->width;
		comm->ops_inline += own;
		task->holders++;
		spin_unlock(&comm->lock);
		zc_exec(comm, task, 0, task->elements);
		spin_lock(&comm->lock);
		task->holders--;
		zc_task_end(comm, task);
		return;
	}
	zc_task_queue(comm, task);
	nchunks = task->nchunks;
	spin_unlock(&comm->lock);
	zc_work_kick(comm, nchunks, own && runner->helps);
	spin_lock(&comm->lock);
}

static void zc_run_send(struct zc_runner *runner, const struct zc_action *action)
	__must_hold(&runner->comm->lock)
{
	struct zc_comm *comm = runner->comm;
	struct zc_op *op = zc_comm_op(comm, action->seq);

	if (zc_place_staged(comm, op, action))
		zc_run_unit(runner, action);
	else
		zc_net_send(comm->net, op, action);
}

static void zc_run_complete(struct zc_comm *comm, const struct zc_action *action)
	__must_hold(&comm->lock)
{
	struct zc_op *op = zc_comm_op(comm, action->seq);
	int result = action->status ? comm->error ?: action->status : 0;

	zc_op_conclude(comm, op, result);
	zc_op_deliver(comm, action->seq, result);
}

static void zc_run_action(struct zc_runner *runner, const struct zc_action *action)
	__must_hold(&runner->comm->lock)
{
	struct zc_comm *comm = runner->comm;

	switch (action->type) {
	case ZC_DO_SEND:
		zc_run_send(runner, action);
		break;
	case ZC_DO_GATHER:
	case ZC_DO_FOLD:
	case ZC_DO_DELIVER:
	case ZC_DO_FINAL:
		zc_run_unit(runner, action);
		break;
	case ZC_DO_TELL:
		zc_net_tell(comm->net, action);
		break;
	case ZC_DO_CLOSE:
		/* On one node nobody else can reach its memory */
		if (comm->net)
			zc_net_shut(comm->net);
		else
			zc_engine_closed(comm->engine);
		break;
	case ZC_DO_COMPLETE:
		zc_run_complete(comm, action);
		break;
	case ZC_DO_AGAIN:
		cond_resched_lock(&comm->lock);
		break;
	}
}

/**
 * zc_run - do what the engine wants
 * @comm: the communicator, locked; it is unlocked in the end
 * @own: the operation that the caller has submitted to the engine, whose unit it carries
 *	out itself if it is small; ZC_NO_SEQ: none
 * @helps: the caller waits for @own, and helps with any chunk of it
 *
 * While no task is free the engine is not asked, but for a revoked one, which has no more
 * work: who ends a task comes here again.
 *
 * Context: process context, may sleep.
 */
void zc_run(struct zc_comm *comm, u64 own, bool helps)
	__releases(&comm->lock)
{
	struct zc_runner runner = { .comm = comm, .own = own, .helps = helps };
	struct zc_action action;

	lockdep_assert_held(&comm->lock);
	while ((!list_empty(&comm->free_tasks) || comm->error) &&
	       zc_engine_next(comm->engine, &action)) {
		zc_run_check(comm);
		zc_run_action(&runner, &action);
	}
	spin_unlock(&comm->lock);
}

/* Hand a prepared operation to the engine. Return: 0 or a negative errno. */
static int zc_run_submit(struct zc_comm *comm, struct zc_op *op, struct zc_text *why)
{
	struct zc_op_desc desc = {
		.seq = op->seq,
		.prog = &op->plan->prog,
		.root = zc_place_root(comm, op),
		.flags = op->desc.flags & ZCOLL_CMD_AGREED && comm->net ? ZC_OP_AGREED : 0,
		.fingerprint = zc_op_fingerprint(comm, op),
		.geo = op->geo,
		.slice = op->slice,
		.eager = op->eager,
		.reserve = op->eager,
	};
	int err;

	lockdep_assert_held(&comm->lock);
	if (comm->error)
		return comm->error;
	err = zc_engine_submit(comm->engine, &desc);
	zc_run_check(comm);
	if (comm->error)
		return comm->error;
	if (err)
		zc_text_add(why, "the engine refuses plan %s of %u steps, error %d",
			    op->plan->prog.plan->name, op->plan->prog.plan->nsteps, err);
	else
		op->state = ZC_OP_RUNNING;
	if (!err && comm->net)
		zc_net_call(comm->net, op);
	return err;
}

/**
 * zc_run_start - all local ranks have called an operation: have it carried out
 * @comm: the communicator
 * @op: STARTING
 * @blocking: the caller is about to wait for it
 *
 * It is RUNNING then. What it cannot be carried out without revokes the communicator, and
 * ends it.
 *
 * Context: process context, may sleep.
 */
void zc_run_start(struct zc_comm *comm, struct zc_op *op, bool blocking)
{
	struct zc_text why = {};
	u64 seq = op->seq;
	int err;

	err = zc_place_prepare(comm, op, &why);
	spin_lock(&comm->lock);
	if (!err)
		err = zc_run_submit(comm, op, &why);
	if (err) {
		zc_comm_fail(comm, err, &why);
		zc_op_conclude(comm, op, comm->error);
		zc_op_deliver(comm, seq, comm->error);
	}
	zc_run(comm, seq, blocking);
}
