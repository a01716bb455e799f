// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The queue: operations that zcoll has no room for yet.
 *
 * zcoll takes a window of operations, counted from the oldest unfinished one, and then waits
 * for that one; and memory for buffers may be pinned only up to a limit, which is that of the
 * process, whatever the communicators. A call of MPI_Iallreduce() must not
 * wait: what it waits for may need the caller. So what finds no room is queued, and
 * submitted in order by a thread, which calls no MPI function, and ends when the queue is
 * empty. While there is one, all operations of the communicator go through it.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "internal.h"

#define AGAIN_NS	1000000		/* before memory is pinned again */

/* Called with the lock */
static void fly(struct zm_op *op)
{
	struct zm_comm *c = op->comm;

	op->seq = c->newest = zcoll_req_seq(op->req);
	op->next = c->flying;
	c->flying = op;
	atomic_store(&op->state, ZM_FLYING);
}

/* Memory that cannot be pinned, but copied */
static bool cannot_pin(int err)
{
	return err == -EFAULT || err == -EOPNOTSUPP;
}

static int try_submit(struct zm_op *op)
{
	struct zcoll_comm *zcoll = op->comm->zcoll;
	int ret = zcoll_icall(zcoll, &op->call, &op->req);

	/* NULL is no memory */
	if (!cannot_pin(ret) || (op->in_bytes && !op->input.buf) ||
	    (op->out_bytes && !op->output.buf) || zm_memory_bounce(op))
		return ret;
	ret = zm_memory_load(op);
	return ret ? ret : zcoll_icall(zcoll, &op->call, &op->req);
}

/* Is one still on its way, whose pins will be gone in the end? */
static bool pins(struct zm_comm *c)
{
	struct zcoll_status st;
	bool found = false;

	pthread_mutex_lock(&c->lock);
	for (const struct zm_op *op = c->flying; op && !found; op = op->next) {
		st = (struct zcoll_status){ 0 };
		found = !zcoll_comm_pending(c->zcoll, op->seq, &st) && st.state != ZCOLL_STATE_DONE;
	}
	pthread_mutex_unlock(&c->lock);
	return found;
}

/* Submit, which may wait for room */
static int submit(struct zm_op *op)
{
	struct timespec pause = { .tv_nsec = AGAIN_NS };
	bool again;
	int ret;

	for (;;) {
		again = zm_comm_any(pins);	/* asked before: they may end meanwhile */
		ret = try_submit(op);
		if (ret != -EDQUOT || !again)
			return ret;
		nanosleep(&pause, NULL);
	}
}

static void *feed(void *arg)
{
	struct zm_comm *c = arg;
	struct zm_op *op;
	int ret;

	pthread_mutex_lock(&c->lock);
	while ((op = c->first)) {
		pthread_mutex_unlock(&c->lock);
		ret = submit(op);
		pthread_mutex_lock(&c->lock);
		c->first = op->next;
		if (ret)
			zm_op_fail(op, ret, NULL);
		else
			fly(op);
	}
	c->feeding = false;
	pthread_mutex_unlock(&c->lock);
	zm_comm_put(c);
	return NULL;
}

/* A thread that the program's signals do not go to */
static int start_feeding(struct zm_comm *c)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	zm_comm_get(c);
	ret = pthread_create(&thread, &attr, feed, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (ret)
		zm_comm_put(c);
	else
		c->feeding = true;
	return ret;
}

/* Called with the lock */
static void enqueue(struct zm_op *op)
{
	struct zm_comm *c = op->comm;

	atomic_store(&op->state, ZM_QUEUED);
	op->next = NULL;
	if (c->first)
		c->last->next = op;
	else
		c->first = op;
	c->last = op;
}

/* Would zcoll take one more without waiting? Called with the lock */
static bool has_room(const struct zm_comm *c)
{
	uint64_t next = c->newest + 1, oldest = next;

	for (const struct zm_op *op = c->flying; op; op = op->next)
		if (op->seq < oldest)
			oldest = op->seq;
	return next - oldest < c->window;
}

/**
 * zm_submit - submit an operation now, or when there is room
 * @op: loaded
 */
void zm_submit(struct zm_op *op)
{
	struct zm_comm *c = op->comm;
	int ret = -EDQUOT;

	pthread_mutex_lock(&c->lock);
	if (!c->feeding && has_room(c)) {
		ret = try_submit(op);
		if (!ret)
			fly(op);
	}
	if (ret == -EDQUOT) {
		enqueue(op);
		ret = 0;
		if (!c->feeding && start_feeding(c)) {
			c->first = NULL;
			zm_op_fail(op, -EAGAIN, "no thread for what zcoll has no room for");
		}
	}
	if (ret)
		zm_op_fail(op, ret, NULL);
	pthread_mutex_unlock(&c->lock);
}
