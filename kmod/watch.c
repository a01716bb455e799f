// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watch of a communicator: what has to be noticed when time passes.
 *
 * Deadlines: an operation that has not ended at the earliest deadline any of its
 * ranks gave revokes the communicator.
 *
 * exec: before 6.7, io_uring lets no driver cancel a command, and exec waits for
 * the commands in flight of the caller before anything else tells of it. So while
 * such commands wait for other ranks, the watch looks whether who submitted them
 * sleeps inside exec; seen twice in a row, it is.
 *
 * One delayed work for each communicator, armed only when there is something to
 * watch; zc_comm.watch_at, under zc_comm.lock, tells for when.
 */
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "compat.h"
#include "zcoll.h"

#define ZC_EXEC_TICK_NS (100 * NSEC_PER_MSEC)

/* Under zc_comm.lock */
void zc_watch_arm(struct zc_comm *comm, ktime_t at)
{
	s64 delay;

	lockdep_assert_held(&comm->lock);
	if (at >= comm->watch_at)
		return;
	comm->watch_at = at;
	delay = max_t(s64, ktime_to_ns(ktime_sub(at, ktime_get())), 0);
	mod_delayed_work(zc_wq, &comm->watch_work, nsecs_to_jiffies64(delay) + 1);
}

/* A uring command enters its operation; under zc_comm.lock */
void zc_watch_submitter(struct zc_comm *comm, struct zc_sub *sub)
{
	if (zc_uring_cancel_known())
		return;
	/* An io_uring worker submits for a thread of this process */
	sub->task = get_task_struct(current->flags & PF_IO_WORKER ? current->group_leader :
				    current);
	sub->execs = 0;
	zc_watch_arm(comm, ktime_add_ns(ktime_get(), ZC_EXEC_TICK_NS));
}

static bool zc_watch_exec(struct zc_sub *sub)
{
	if (zc_compat_in_exec(sub->task))
		sub->execs++;
	else
		sub->execs = 0;
	return sub->execs >= 2;
}

/* Look for submitters in exec. Return: when to look again. */
static ktime_t zc_watch_execs(struct zc_comm *comm, const struct zc_op *op, ktime_t now)
{
	ktime_t again = KTIME_MAX;
	u32 i;

	for (i = 0; i < comm->nranks; i++) {
		struct zc_rank *rank = comm->ranks[i];
		struct zc_sub *sub;

		if (!rank || !zc_rank_called(rank, op->seq))
			continue;
		sub = zc_rank_sub(rank, op->seq);
		if (!sub->task)
			continue;
		if (zc_watch_exec(sub)) {
			zc_comm_failf(comm, -EOWNERDEAD,
				      "rank %u called exec with all-reduce %llu in flight",
				      i, op->seq);
			return KTIME_MAX;
		}
		again = ktime_add_ns(now, ZC_EXEC_TICK_NS);
	}
	return again;
}

static void zc_watch_expired(struct zc_comm *comm, const struct zc_op *op)
{
	struct zc_text text = {};

	zc_text_add(&text, "all-reduce %llu: deadline of rank %u (%llu us) passed; ",
		    op->seq, op->deadline_rank, div_u64(op->deadline_ns, NSEC_PER_USEC));
	if (op->state == ZC_OP_WAITING) {
		zc_text_add(&text, "%u of %u ranks have called; missing: ", op->arrived,
			    comm->nranks);
		zc_text_add_ranks(&text, comm, op->seq);
	} else {
		zc_text_add(&text, "all ranks have called, the work is not done");
	}
	zc_comm_fail(comm, -ETIMEDOUT, &text);
}

void zc_watch_fn(struct work_struct *work)
{
	struct zc_comm *comm = container_of(to_delayed_work(work), struct zc_comm, watch_work);
	ktime_t now = ktime_get(), again = KTIME_MAX;
	u64 seq;

	spin_lock(&comm->lock);
	comm->watch_at = KTIME_MAX;
	for (seq = comm->base; seq < comm->base + ZC_WINDOW && !comm->error; seq++) {
		struct zc_op *op = zc_comm_op(comm, seq);

		if (op->seq != seq || (op->state != ZC_OP_WAITING && op->state != ZC_OP_RUNNING))
			continue;
		if (op->deadline <= now) {
			zc_watch_expired(comm, op);
			break;
		}
		again = min(again, op->deadline);
		if (op->state == ZC_OP_WAITING)
			again = min(again, zc_watch_execs(comm, op, now));
	}
	if (again != KTIME_MAX && !comm->error)
		zc_watch_arm(comm, again);
	spin_unlock(&comm->lock);
}
