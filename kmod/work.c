// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who folds.
 *
 * A unit of a running operation is a row of chunks and a cursor. Holders take chunks
 * with an atomic increment until there are none left; the last holder out tells the
 * engine (run.c), which gives the verdict. Holders are the communicator's kernel
 * workers and callers that wait in the kernel; a user thread that is stopped or
 * computes is never needed.
 *
 * Workers: at most one per local rank, and no more than there are CPUs the ranks
 * may use. Each is made by the rank that joins, takes over its allowed CPUs and its
 * cgroup, so that the work is charged to who wants it, and ends with it: without
 * that rank there is no work.
 *
 * A chunk is folded piece by piece: a piece is one SIMD section (preemption is off
 * in it), and between pieces there is room to schedule and to notice that the
 * communicator has been revoked.
 */
#include <linux/cgroup.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "zcoll.h"

struct zc_worker {
	struct task_struct *task;
	struct zc_comm *comm;
	cpumask_var_t cpus;
};

/**
 * zc_work_get - become a holder of the oldest operation that has chunks left
 * @comm: the communicator
 *
 * Return: the operation, to be given to zc_work_put(), or NULL.
 */
struct zc_op *zc_work_get(struct zc_comm *comm)
{
	struct zc_op *found = NULL;
	u64 seq;

	if (!READ_ONCE(comm->runnable))
		return NULL;
	spin_lock(&comm->lock);
	for (seq = comm->base; seq < comm->base + ZC_WINDOW; seq++) {
		struct zc_op *op = zc_comm_op(comm, seq);

		if (op->state != ZC_OP_RUNNING || op->seq != seq)
			continue;
		if (comm->error || atomic64_read(&op->next) >= op->nchunks) {
			zc_op_not_runnable(comm, op);
			continue;
		}
		op->holders++;
		found = op;
		break;
	}
	spin_unlock(&comm->lock);
	return found;
}

/* Fold one chunk. Return: false when it was cut short. */
static bool zc_work_chunk(struct zc_comm *comm, struct zc_op *op, u64 first)
{
	u64 end = min(first + op->chunk, op->to);

	while (first < end) {
		u64 count = min(op->piece, end - first);

		if (READ_ONCE(comm->error))
			return false;
		zc_compat_simd_begin();
		op->fold(op->dst, op->src, comm->nranks, comm->nranks, first, count,
			 op->stream);
		zc_compat_simd_end();
		first += count;
		cond_resched();
	}
	return true;
}

/**
 * zc_work_run - take and fold chunks until there are none left
 * @comm: the communicator
 * @op: an operation that the caller holds
 * @waiter: what the caller would rather return for, or NULL
 *
 * A caller that stops early leaves chunks behind; see zc_work_put().
 */
void zc_work_run(struct zc_comm *comm, struct zc_op *op, const struct zc_waiter *waiter)
{
	bool worker = current->flags & PF_KTHREAD;
	u64 chunk, done = 0;

	while (!(waiter ? zc_waiter_stop(waiter) : fatal_signal_pending(current))) {
		chunk = atomic64_fetch_inc(&op->next);
		if (chunk >= op->nchunks)
			break;
		if (!zc_work_chunk(comm, op, op->from + chunk * op->chunk))
			break;
		done++;
	}
	atomic64_add(done, worker ? &comm->work_pieces : &comm->help_pieces);
}

/**
 * zc_work_put - stop being a holder
 * @comm: the communicator
 * @op: an operation that the caller holds
 *
 * The last holder of an operation whose chunks are all done, or that must not go
 * on, tells the engine. One that leaves chunks behind calls workers.
 */
void zc_work_put(struct zc_comm *comm, struct zc_op *op)
{
	bool ended;
	u64 left;

	spin_lock(&comm->lock);
	left = op->nchunks - min_t(u64, atomic64_read(&op->next), op->nchunks);
	if (!left)
		zc_op_not_runnable(comm, op);
	ended = !--op->holders && (!left || comm->error);
	if (ended) {
		zc_run_unit_done(comm, op);
		zc_run(comm, ZC_NO_SEQ, false);
		return;
	}
	spin_unlock(&comm->lock);
	if (left)
		wake_up_nr(&comm->workq, min_t(u64, left, comm->nranks));
}

/**
 * zc_work_kick - call holders for an operation that has become runnable
 * @comm: the communicator
 * @nchunks: chunks it has
 * @caller_helps: the caller is about to become one
 *
 * Callers that wait are called first: they have nothing else to do. If nobody is
 * about to do the work for sure, a kernel worker is called. A caller that was
 * counted on and gives up calls one, too (zc_waiter_wait()).
 */
void zc_work_kick(struct zc_comm *comm, u64 nchunks, bool caller_helps)
{
	u32 wanted = min_t(u64, nchunks, comm->nranks) - caller_helps;
	u32 helpers = min_t(u32, wanted, atomic_read(&comm->waiters));

	if (helpers)
		wake_up_nr(&comm->waitq, helpers);
	if (wanted > helpers || !caller_helps)
		wake_up_nr(&comm->workq, max_t(u32, 1, wanted - helpers));
}

static int zc_worker_fn(void *data)
{
	struct zc_worker *worker = data;
	struct zc_comm *comm = worker->comm;
	struct zc_op *op;

	/* Here, for what made this thread may have set others */
	set_cpus_allowed_ptr(current, worker->cpus);
	while (!kthread_should_stop()) {
		op = NULL;
		wait_event_idle_exclusive(comm->workq, (op = zc_work_get(comm)) ||
					  kthread_should_stop());
		if (!op)
			continue;
		zc_work_run(comm, op, NULL);
		zc_work_put(comm, op);
	}
	return 0;
}

/**
 * zc_worker_start - give a communicator a worker for the current process
 * @rank: the endpoint; it has entered, and the communicator wants a worker of it
 *
 * Return: 0, or a negative errno.
 */
int zc_worker_start(struct zc_rank *rank)
{
	struct zc_worker *worker;
	int err = -ENOMEM;

	worker = kzalloc(sizeof(*worker), GFP_KERNEL_ACCOUNT);
	if (!worker)
		return err;
	if (!zalloc_cpumask_var(&worker->cpus, GFP_KERNEL))
		goto out_free;
	cpumask_copy(worker->cpus, current->cpus_ptr);
	worker->comm = rank->comm;
	worker->task = kthread_create(zc_worker_fn, worker, "zcoll/%u", rank->rank);
	if (IS_ERR(worker->task)) {
		err = PTR_ERR(worker->task);
		goto out_cpus;
	}
	/* Not a must: elsewhere its time is charged to the root group */
	cgroup_attach_task_all(current, worker->task);
	atomic_inc(&zc_totals.workers);
	rank->worker = worker;
	wake_up_process(worker->task);
	return 0;

out_cpus:
	free_cpumask_var(worker->cpus);
out_free:
	kfree(worker);
	return err;
}

/**
 * zc_worker_stop - end a rank's worker, if it has one
 * @rank: the endpoint; no operation that needs it is running
 *
 * Context: may sleep for as long as the worker delivers verdicts.
 */
void zc_worker_stop(struct zc_rank *rank)
{
	struct zc_worker *worker = xchg(&rank->worker, NULL);

	if (!worker)
		return;
	kthread_stop(worker->task);
	atomic_dec(&worker->comm->nworkers);
	free_cpumask_var(worker->cpus);
	kfree(worker);
	atomic_dec(&zc_totals.workers);
}
