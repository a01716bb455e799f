// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting for a verdict, and helping meanwhile.
 *
 * A waiter lives on the stack of who waits, in the list of its endpoint under
 * zc_comm.lock. It is told the verdict when that is delivered, and owns it: the
 * submission's slot may have a new life before the waiter runs again.
 *
 * Waiters sleep exclusively, so that as many can be called to help as there is
 * work for; a verdict wakes them all.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>

#include "net/net.h"
#include "zcoll.h"

/* Longer than a sleeper needs to wake up, or one rank's sleep makes the other sleep, too */
static uint spin_us = 500;
module_param(spin_us, uint, 0644);
MODULE_PARM_DESC(spin_us, "how long a blocking call polls for its result before it sleeps, on a CPU that nobody else wants");

void zc_waiter_init(struct zc_waiter *waiter, u64 seq, ktime_t until)
{
	INIT_LIST_HEAD(&waiter->link);
	waiter->seq = seq;
	waiter->until = until;
	waiter->result = 0;
	waiter->done = false;
}

/**
 * zc_waiter_add - wait for a submission; under zc_comm.lock
 * @rank: the endpoint; it has called @waiter->seq
 * @waiter: told at once if there is a verdict
 */
void zc_waiter_add(struct zc_rank *rank, struct zc_waiter *waiter)
{
	struct zc_sub *sub = zc_rank_sub(rank, waiter->seq);

	lockdep_assert_held(&rank->comm->lock);
	if (sub->state == ZC_SUB_DONE) {
		waiter->result = sub->result;
		waiter->done = true;
	} else {
		list_add_tail(&waiter->link, &rank->waiters);
	}
}

/* A submission has its verdict; under zc_comm.lock */
void zc_waiters_tell(struct zc_rank *rank, u64 seq, s32 result)
{
	struct zc_waiter *waiter, *tmp;

	lockdep_assert_held(&rank->comm->lock);
	list_for_each_entry_safe(waiter, tmp, &rank->waiters, link) {
		if (waiter->seq != seq)
			continue;
		list_del_init(&waiter->link);
		waiter->result = result;
		/* After @result, for zc_waiter_done(); it may be gone from its stack then */
		smp_store_release(&waiter->done, true);
	}
}

static bool zc_waiter_done(const struct zc_waiter *waiter)
{
	/* Pairs with zc_waiters_tell(): then @result is there, too */
	return smp_load_acquire(&waiter->done);
}

static bool zc_waiter_late(const struct zc_waiter *waiter)
{
	return waiter->until != KTIME_MAX && ktime_get() >= waiter->until;
}

/* Should a waiter that helps rather return? */
bool zc_waiter_stop(const struct zc_waiter *waiter)
{
	return zc_waiter_done(waiter) || signal_pending(current) || zc_waiter_late(waiter);
}

/* Is there something to return with, or to do? */
static bool zc_waiter_ready(const struct zc_comm *comm, const struct zc_waiter *waiter)
{
	return zc_waiter_done(waiter) || (READ_ONCE(comm->ntasks) && !READ_ONCE(comm->error));
}

/*
 * Poll for a while before sleeping: a sleep and its wake-up cost more than a small
 * operation. Only where nobody else wants the CPU. What other nodes send is taken in
 * meanwhile, so that it needs no interrupt and no other thread.
 */
static void zc_waiter_spin(struct zc_comm *comm, const struct zc_waiter *waiter)
{
	u64 until = local_clock() + (u64)READ_ONCE(spin_us) * NSEC_PER_USEC;

	while (!zc_waiter_ready(comm, waiter) && single_task_running() && !need_resched() &&
	       !signal_pending(current) && local_clock() < until && !zc_waiter_late(waiter)) {
		if (comm->net)
			zc_net_poll(comm->net);
		cpu_relax();
	}
}

static void zc_waiter_sleep(struct zc_comm *comm, struct zc_waiter *waiter)
{
	ktime_t *until = waiter->until == KTIME_MAX ? NULL : &waiter->until;
	DEFINE_WAIT(wait);

	prepare_to_wait_exclusive(&comm->waitq, &wait, TASK_INTERRUPTIBLE);
	if (!zc_waiter_ready(comm, waiter) && !signal_pending(current))
		schedule_hrtimeout(until, HRTIMER_MODE_ABS);
	finish_wait(&comm->waitq, &wait);
}

/* Stop waiting. Return: 0 if the verdict came all the same, else @err. */
static int zc_waiter_give_up(struct zc_comm *comm, struct zc_waiter *waiter, int err)
{
	spin_lock(&comm->lock);
	list_del_init(&waiter->link);
	if (waiter->done)
		err = 0;
	spin_unlock(&comm->lock);
	/* It may have been called to do work that it now leaves to others */
	if (READ_ONCE(comm->ntasks))
		wake_up(&comm->workq);
	return err;
}

/**
 * zc_waiter_wait - wait for the verdict, and help with the work
 * @rank: the endpoint; the caller's reference to its file keeps it
 * @waiter: added with zc_waiter_add()
 *
 * Return: 0 with @waiter->result, -ETIMEDOUT or -ERESTARTSYS.
 */
int zc_waiter_wait(struct zc_rank *rank, struct zc_waiter *waiter)
{
	struct zc_comm *comm = rank->comm;
	struct zc_task *task;

	while (!zc_waiter_done(waiter)) {
		if (zc_waiter_late(waiter))
			return zc_waiter_give_up(comm, waiter, -ETIMEDOUT);
		if (signal_pending(current))
			return zc_waiter_give_up(comm, waiter, -ERESTARTSYS);
		task = zc_work_get(comm);
		if (task) {
			zc_work_run(comm, task, waiter);
			zc_work_put(comm, task);
			continue;
		}
		atomic_inc(&comm->waiters);
		zc_waiter_spin(comm, waiter);
		zc_waiter_sleep(comm, waiter);
		atomic_dec(&comm->waiters);
	}
	return 0;
}
