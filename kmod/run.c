// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine's host: what the engine says is to be done, and what it is told.
 *
 * Every communicator has an engine (engine/engine.h). When all local ranks have called
 * an operation it is submitted there; from then on the engine says what comes next: a
 * unit to be folded, which becomes the operation's chunks (work.c), or the verdict. The
 * engine is under zc_comm.lock: a spinlock, as the engine never sleeps and, for plans of one
 * node, each call of it is short. What an action asks for is done with the lock dropped.
 *
 * Whoever has told the engine something calls zc_run() under the same hold of the lock, so
 * that it does what comes of it itself. While it has dropped the lock others may be in
 * there, too: each takes actions of its own.
 *
 * On one node plans have one step (plan.c), without a peer: there is a unit of an
 * operation at a time, and there is nobody to talk to.
 */
#include <linux/minmax.h>

#include "zcoll.h"

/* Dimensions of a communicator's engine on one node */
static struct zc_engine_config zc_run_config(void)
{
	return (struct zc_engine_config) {
		.nodes = 1, .window = ZC_WINDOW, .steps = 1, .slots = 2, .inflight = 1,
	};
}

/* Bytes that zc_run_init() needs */
size_t zc_run_size(void)
{
	struct zc_engine_config config = zc_run_config();

	return zc_engine_size(&config);
}

struct zc_engine *zc_run_init(void *room)
{
	struct zc_engine_config config = zc_run_config();

	return zc_engine_init(room, &config);
}

/**
 * zc_run_submit - hand an operation to the engine
 * @comm: the communicator, locked
 * @op: WAITING, and all ranks have called it
 *
 * It is RUNNING then. If the engine should refuse it, the communicator is revoked, and
 * what ends operations that wait ends this one.
 */
void zc_run_submit(struct zc_comm *comm, struct zc_op *op)
{
	struct zc_op_desc desc = {
		.seq = op->seq,
		.prog = &op->plan->prog,
		.geo.count = op->desc.count,
		.slice = max(op->desc.count, 1ULL),
	};
	int err;

	lockdep_assert_held(&comm->lock);
	err = zc_engine_submit(comm->engine, &desc);
	if (!err)
		op->state = ZC_OP_RUNNING;
	/* The window is the engine's, too, and its plan has been checked */
	else if (WARN_ON_ONCE(!comm->error))
		zc_comm_failf(comm, err, "all-reduce %llu: the engine refuses it", op->seq);
}

/**
 * zc_run_unit_done - the unit of an operation is folded, or will never be
 * @comm: the communicator, locked, and revoked in the latter case
 * @op: RUNNING operation without holders
 */
void zc_run_unit_done(struct zc_comm *comm, struct zc_op *op)
{
	lockdep_assert_held(&comm->lock);
	zc_op_not_runnable(comm, op);
	if (!op->unit_open)
		return;
	op->unit_open = false;
	zc_engine_done(comm->engine, op->seq, 0, op->unit);
}

/* A unit becomes the operation's chunks */
static void zc_run_unit(struct zc_comm *comm, struct zc_op *op, const struct zc_action *action)
{
	op->unit_open = true;
	op->unit = action->unit;
	op->from = action->piece[0].first;
	op->to = op->from + action->piece[0].count;
	op->nchunks = DIV_ROUND_UP_ULL(action->piece[0].count, op->chunk);
	atomic64_set(&op->next, 0);
	op->runnable = true;
	WRITE_ONCE(comm->runnable, comm->runnable + 1);
}

/*
 * Somebody is to fold a unit: the caller at once, if the operation is its own and small,
 * or else workers and helpers. Return: the caller.
 */
static bool zc_run_fold(struct zc_comm *comm, const struct zc_action *action, bool own,
			bool helps)
	__must_hold(&comm->lock)
{
	struct zc_op *op = zc_comm_op(comm, action->seq);
	u64 nchunks;

	zc_run_unit(comm, op, action);
	nchunks = op->nchunks;
	if (own && zc_op_is_small(comm, op)) {
		op->holders++;
		comm->ops_inline++;
		return true;
	}
	spin_unlock(&comm->lock);
	zc_work_kick(comm, nchunks, own && helps);
	spin_lock(&comm->lock);
	return false;
}

static void zc_run_complete(struct zc_comm *comm, const struct zc_action *action)
	__must_hold(&comm->lock)
{
	struct zc_op *op = zc_comm_op(comm, action->seq);
	int result = action->status ? comm->error ?: action->status : 0;

	zc_op_conclude(comm, op, result);
	zc_op_deliver(comm, action->seq, result);
}

/**
 * zc_run - do what the engine wants
 * @comm: the communicator, locked; it is unlocked in the end
 * @own: the operation that the caller has submitted to the engine, whose unit it folds
 *	itself if it is small; ZC_NO_SEQ: none
 * @helps: the caller waits for @own, and helps with any chunk of it
 *
 * Context: process context, may sleep.
 * Return: the caller is a holder of @own, and must fold.
 */
bool zc_run(struct zc_comm *comm, u64 own, bool helps)
	__releases(&comm->lock)
{
	struct zc_action action;
	bool mine = false;

	lockdep_assert_held(&comm->lock);
	while (!mine && zc_engine_next(comm->engine, &action)) {
		switch (action.type) {
		case ZC_DO_FINAL:
			mine = zc_run_fold(comm, &action, action.seq == own, helps);
			break;
		case ZC_DO_CLOSE:
			/* Nobody else can reach this node's memory */
			zc_engine_closed(comm->engine);
			break;
		case ZC_DO_COMPLETE:
			zc_run_complete(comm, &action);
			break;
		case ZC_DO_AGAIN:
			spin_unlock(&comm->lock);
			cond_resched();
			spin_lock(&comm->lock);
			break;
		default:
			WARN_ONCE(1, "zcoll: action %u on one node\n", action.type);
		}
	}
	spin_unlock(&comm->lock);
	return mine;
}
