// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watch of a communicator: what has to be noticed when time passes.
 *
 * Deadlines: an operation that has not ended at the earliest deadline any of its
 * ranks gave revokes the communicator.
 *
 * Rings, before 6.7: io_uring does not tell when a ring is closed or a task calls
 * exec with commands in flight, and both then wait for the commands: exec before
 * anything else tells of it, a closed ring in a kernel worker for ever. So while
 * there are such commands the watch looks, ten times a second, whether their ring
 * is being closed, and whether their process sleeps inside exec.
 *
 * One delayed work for each communicator, armed only when there is something to
 * watch; zc_comm.watch_at, under zc_comm.lock, tells for when.
 */
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "compat.h"
#include "net/net.h"

#define ZC_RING_TICK_NS (100 * NSEC_PER_MSEC)
/* An exec that takes longer is taken to wait for us, not for its file */
#define ZC_EXEC_NS (400 * NSEC_PER_MSEC)

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
void zc_watch_ring(struct zc_comm *comm)
{
	if (!zc_uring_cancel_known())
		zc_watch_arm(comm, ktime_add_ns(ktime_get(), ZC_RING_TICK_NS));
}

/*
 * Is the rank's process ending, or has it been asleep inside exec for a while? A
 * polling thread of a ring keeps a killed process' address space until its commands
 * have completed, so that the end of that tells nothing.
 */
static bool zc_watch_ending(struct zc_rank *rank, ktime_t now)
{
	bool ending = false, in_exec = false;
	struct task_struct *leader;

	rcu_read_lock();
	leader = pid_task(rank->pid, PIDTYPE_TGID);
	if (leader) {
		ending = zc_process_ends(leader);
		/* The thread that called exec has become the leader by then */
		in_exec = zc_compat_in_exec(leader);
	}
	rcu_read_unlock();

	if (!in_exec)
		rank->exec_since = 0;
	else if (!rank->exec_since)
		rank->exec_since = now;
	return ending || (in_exec && ktime_sub(now, rank->exec_since) >= ZC_EXEC_NS);
}

static bool zc_watch_ring_dying(struct zc_rank *rank)
{
	u32 i;

	for (i = 0; i < ZC_WINDOW; i++)
		if (rank->subs[i].ucmd && zc_compat_ring_dying(rank->subs[i].ucmd))
			return true;
	return false;
}

/* Look after one rank's commands in flight. Return: when to look again. */
static ktime_t zc_watch_rank(struct zc_comm *comm, struct zc_rank *rank, ktime_t now)
{
	if (!rank || !rank->ring_inflight)
		return KTIME_MAX;
	if (zc_watch_ending(rank, now))
		zc_comm_failf(comm, -EOWNERDEAD,
			      "the process of rank %u ended (exit, kill or exec) with operations in flight",
			      rank->rank);
	else if (zc_watch_ring_dying(rank))
		zc_comm_failf(comm, -ECANCELED,
			      "the ring of rank %u was closed with operations in flight",
			      rank->rank);
	return ktime_add_ns(now, ZC_RING_TICK_NS);
}

/* The lock is dropped between ranks: there may be many */
static ktime_t zc_watch_rings(struct zc_comm *comm, ktime_t now)
{
	ktime_t again = KTIME_MAX;
	u32 i;

	if (zc_uring_cancel_known())
		return again;
	for (i = 0; i < comm->layout.nlocal && !comm->error; i++) {
		again = min(again, zc_watch_rank(comm, comm->ranks[i], now));
		spin_unlock(&comm->lock);
		cond_resched();
		spin_lock(&comm->lock);
	}
	return again;
}

static void zc_watch_expired(struct zc_comm *comm, const struct zc_op *op)
{
	struct zc_text text = {};

	zc_text_add(&text, "%s %llu: deadline of rank %u passed, %llu us after its submission; ",
		    zc_collective_name(op->desc.collective), op->seq, op->deadline_rank,
		    div_u64(op->deadline_ns, NSEC_PER_USEC));
	if (op->state == ZC_OP_WAITING) {
		zc_text_add_share(&text, comm, op->arrived);
		zc_text_add(&text, " have called; missing: ");
		zc_text_add_ranks(&text, comm, op->seq);
	} else if (comm->layout.nodes > 1 && op->state == ZC_OP_RUNNING) {
		zc_text_add(&text, "node %u ", comm->layout.node);
		zc_net_add_waits(&text, comm, op);
	} else {
		zc_text_add(&text, "all ranks have called, the work is not done");
	}
	zc_comm_fail(comm, -ETIMEDOUT, &text);
}

/* Return: the next deadline */
static ktime_t zc_watch_deadlines(struct zc_comm *comm, ktime_t now)
{
	ktime_t again = KTIME_MAX;
	u64 seq;

	for (seq = comm->base; seq < comm->base + ZC_WINDOW; seq++) {
		struct zc_op *op = zc_comm_op(comm, seq);

		if (op->seq != seq || !zc_op_in_flight(op))
			continue;
		if (op->deadline <= now) {
			zc_watch_expired(comm, op);
			break;
		}
		again = min(again, op->deadline);
	}
	return again;
}

void zc_watch_fn(struct work_struct *work)
{
	struct zc_comm *comm = container_of(to_delayed_work(work), struct zc_comm, watch_work);
	ktime_t now = ktime_get(), rings, again;

	spin_lock(&comm->lock);
	comm->watch_at = KTIME_MAX;
	/* This one drops the lock, and may see the watch armed again meanwhile */
	rings = zc_watch_rings(comm, now);
	again = min(rings, zc_watch_deadlines(comm, now));
	if (again != KTIME_MAX && !comm->error)
		zc_watch_arm(comm, again);
	spin_unlock(&comm->lock);
}
