// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The queue: operations that zcoll has no room for yet.
 *
 * zcoll takes a window of operations, counted from the oldest unfinished one, and then waits
 * for that one; and memory for buffers may be pinned only up to a limit, which is that of the
 * process, whatever the communicators. A call of MPI_Iallreduce() must not
 * wait: what it waits for may need the caller. So what finds no room is queued, and
 * submitted in order by a thread, which calls no MPI function, and ends when the queue is
 * empty. While there is one, all started operations of the communicator go through it, and
 * blocking calls wait for its end.
 */
#include <errno.h>
#include <signal.h>

#include "internal.h"

/* The kernel may still be giving memory back of operations that are over */
#define ALONE_NAPS	2000

static _Thread_local bool is_feeder;

bool zm_is_feeder(void)
{
	return is_feeder;
}

/* Called with the lock */
static void fly(struct zm_op *op)
{
	struct zm_comm *c = op->comm;

	op->seq = zcoll_req_seq(op->req);
	c->next_seq = op->seq + 1;
	op->next = c->flying;
	c->flying = op;
	atomic_store(&op->state, ZM_FLYING);
}

/* Memory that cannot be pinned, but copied */
static bool cannot_pin(int err)
{
	return err == -EFAULT || err == -EOPNOTSUPP;
}

/* Start it, or do it all if it @blocks */
static int give(struct zm_op *op, bool blocks)
{
	struct zm_comm *c = op->comm;
	int ret;

	if (!blocks)
		return zcoll_icall(c->zcoll, &op->call, &op->req);
	atomic_fetch_add(&c->calling, !zm_line_needs_little(op));
	ret = zcoll_call(c->zcoll, &op->call);
	atomic_fetch_sub(&c->calling, !zm_line_needs_little(op));
	return ret;
}

static int try_submit(struct zm_op *op, bool blocks)
{
	int ret = give(op, blocks);

	/* NULL is no memory */
	if (!cannot_pin(ret) || (op->in_bytes && !op->input.buf) ||
	    (op->out_bytes && !op->output.buf) || zm_memory_bounce(op))
		return ret;
	ret = zm_memory_load(op);
	return ret ? ret : give(op, blocks);
}

/* Is one still on its way, whose pins will be gone in the end? */
static bool pins(struct zm_comm *c)
{
	bool found = atomic_load(&c->calling);
	struct zcoll_status st;

	pthread_mutex_lock(&c->lock);
	for (const struct zm_op *op = c->flying; op && !found; op = op->next) {
		st = (struct zcoll_status){ 0 };
		found = !zcoll_comm_pending(c->zcoll, op->seq, &st) && st.state != ZCOLL_STATE_DONE;
	}
	pthread_mutex_unlock(&c->lock);
	return found;
}

/*
 * Submit, which may wait for room, and for memory that others have pinned until they are over.
 * The caller has it leave the line, not before pins() can know of it.
 */
static int submit(struct zm_op *op, bool blocks)
{
	unsigned int alone = 0;
	int ret = -EDQUOT;

	if (zm_line_is_turn(op))
		ret = try_submit(op, blocks);
	while (ret == -EDQUOT && alone < ALONE_NAPS) {
		zm_line_join(op);
		zm_nap(ZCOLL_WAIT_FOREVER);
		if (!zm_line_is_turn(op))
			continue;
		alone = zm_comm_any(pins) ? 0 : alone + 1;
		ret = try_submit(op, blocks);
	}
	return ret;
}

static void *feed(void *arg)
{
	struct zm_comm *c = arg;
	struct zm_op *op;
	int ret;

	is_feeder = true;
	pthread_mutex_lock(&c->lock);
	while ((op = c->first)) {
		pthread_mutex_unlock(&c->lock);
		ret = submit(op, false);
		pthread_mutex_lock(&c->lock);
		c->first = op->next;
		zm_line_leave(op);	/* whose turn it is now waits for the lock in pins() */
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
	uint64_t oldest = c->next_seq;

	for (const struct zm_op *op = c->flying; op; op = op->next)
		if (op->seq < oldest)
			oldest = op->seq;
	return c->next_seq - oldest < c->window;
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
	if (!c->feeding && has_room(c) && zm_line_is_turn(op)) {
		ret = try_submit(op, false);
		if (!ret)
			fly(op);
	}
	if (ret == -EDQUOT) {
		enqueue(op);
		zm_line_join(op);
		ret = 0;
		if (!c->feeding && start_feeding(c)) {
			c->first = NULL;
			zm_line_leave(op);
			zm_op_fail(op, -EAGAIN, "no thread for what zcoll has no room for");
		}
	}
	if (ret)
		zm_op_fail(op, ret, NULL);
	pthread_mutex_unlock(&c->lock);
}

/**
 * zm_call - do an operation, behind what is in the queue
 * @op: loaded
 *
 * Return: 0 or zcoll's error.
 */
int zm_call(struct zm_op *op)
{
	struct zm_comm *c = op->comm;
	int ret;

	/* Behind those, and before who calls later */
	if (atomic_load(&c->feeding))
		zm_line_join(op);
	while (atomic_load(&c->feeding))
		zm_nap(ZCOLL_WAIT_FOREVER);
	ret = submit(op, true);
	zm_line_leave(op);
	if (!ret)
		atomic_fetch_add(&c->next_seq, 1);
	return ret;
}
