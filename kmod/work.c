// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who does the work.
 *
 * A task (task.c) is a row of chunks. Holders take chunks until there are none left; the last
 * holder out ends the task, and does what the engine wants then (run.c). Holders are the
 * communicator's kernel workers and callers that wait in the kernel; a user thread that is stopped
 * or computes is never needed.
 *
 * Workers: at most one per local rank, and no more than there are CPUs the ranks
 * may use. Each is made by the rank that joins, takes over its allowed CPUs and its
 * cgroup, so that the work is charged to who wants it, and ends with it: without
 * that rank there is no work.
 */
#include <linux/cgroup.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "zcoll.h"

/*
 * A worker goes before what its rank computes, by so much: whoever waits for the operation is not
 * to wait for a time slice's end first. What it takes is bounded by the work, and charged.
 */
#define WORKER_NICE	10

struct zc_worker {
	struct task_struct *task;
	struct zc_comm *comm;
	cpumask_var_t cpus;
};

/**
 * zc_work_get - become a holder of the oldest task that has chunks left
 * @comm: the communicator
 *
 * Return: the task, to be given to zc_work_put(), or NULL.
 */
struct zc_task *zc_work_get(struct zc_comm *comm)
{
	struct zc_task *task, *next, *found = NULL;

	if (!READ_ONCE(comm->ntasks))
		return NULL;
	spin_lock(&comm->lock);
	list_for_each_entry_safe(task, next, &comm->tasks, link) {
		/* Then fail_work, or the last holder, ends them all */
		if (comm->error)
			break;
		if (zc_task_left(task)) {
			task->holders++;
			found = task;
			break;
		}
		zc_task_unqueue(comm, task);
	}
	spin_unlock(&comm->lock);
	return found;
}

/**
 * zc_work_run - take and carry out chunks until there are none left
 * @comm: the communicator
 * @task: a task that the caller holds
 * @waiter: what the caller would rather return for, or NULL
 *
 * A caller that stops early leaves chunks behind; see zc_work_put().
 */
void zc_work_run(struct zc_comm *comm, struct zc_task *task, const struct zc_waiter *waiter)
{
	bool worker = current->flags & PF_KTHREAD;
	u64 chunk, first, done = 0, near = 0;
	bool local;

	while (!READ_ONCE(comm->error) &&
	       !(waiter ? zc_waiter_stop(waiter) : fatal_signal_pending(current))) {
		chunk = zc_task_take(task, &local);
		if (chunk == ZC_NO_CHUNK)
			break;
		first = chunk * task->op->chunk;
		zc_exec(comm, task, first, min(task->op->chunk, task->elements - first));
		done++;
		near += local;
	}
	atomic64_add(done, worker ? &comm->work_pieces : &comm->help_pieces);
	if (near)
		atomic64_add(near, &comm->local_pieces);
}

/**
 * zc_work_put - stop being a holder
 * @comm: the communicator
 * @task: a task that the caller holds
 *
 * The last holder of a task whose chunks are all done, or that must not go on, ends
 * it. One that leaves chunks behind calls workers.
 */
void zc_work_put(struct zc_comm *comm, struct zc_task *task)
{
	u64 left, wanted;

	spin_lock(&comm->lock);
	left = zc_task_left(task);
	if (!left || comm->error)
		zc_task_unqueue(comm, task);
	if (!--task->holders && (!left || comm->error)) {
		zc_task_end(comm, task);
		zc_run(comm, ZC_NO_SEQ, false);
		return;
	}
	/* In this one's place; or in that of all that should have been there */
	wanted = task->holders ? 1 : max(comm->layout.nlocal, 1U);
	spin_unlock(&comm->lock);
	if (left)
		wake_up_nr(&comm->workq, min(left, wanted));
}

/**
 * zc_work_kick - call holders for a task that has been queued
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
	u32 wanted = min_t(u64, nchunks, max(comm->layout.nlocal, 1U)) - caller_helps;
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
	struct zc_task *task;

	/* Here, for what made this thread may have set others */
	set_cpus_allowed_ptr(current, worker->cpus);
	while (!kthread_should_stop()) {
		task = NULL;
		wait_event_idle_exclusive(comm->workq, (task = zc_work_get(comm)) ||
					  kthread_should_stop());
		if (!task)
			continue;
		zc_work_run(comm, task, NULL);
		zc_work_put(comm, task);
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
	set_user_nice(worker->task, max(task_nice(current) - WORKER_NICE, MIN_NICE));
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
