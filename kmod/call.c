// SPDX-License-Identifier: GPL-2.0-only
/*
 * One rank's call: from the bytes of a command to a place in its operation, and
 * for blocking calls to the verdict.
 *
 *   zc_call_prepare()  checks every field and pins or finds the memory; nothing of
 *                      it is visible to others yet
 *   zc_call_submit()   enters it (op.c)
 *   zc_call_blocking() both, then waits, and helps
 *
 * A refused call leaves its text with the endpoint, by sequence number.
 *
 * A blocking call that a signal interrupts stays in its operation. Made again with
 * the same command it attaches to the submission that is there.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>

#include "zcoll.h"

static uint spin_us = 50;
module_param(spin_us, uint, 0644);
MODULE_PARM_DESC(spin_us, "how long a blocking call polls for its result before it sleeps, on a CPU that nobody else wants");

static void zc_call_rejected(struct zc_rank *rank, u64 seq, int error,
			     const struct zc_text *why)
{
	struct zc_comm *comm = rank->comm;
	struct zc_reject *reject;

	spin_lock(&comm->lock);
	reject = &rank->rejects[rank->reject_next++ % ZC_REJECTS];
	reject->seq = seq;
	reject->error = error;
	memcpy(reject->text, why->buf, sizeof(reject->text));
	spin_unlock(&comm->lock);
}

/* Which field is out of range? */
static const char *zc_call_bad_field(const struct zcoll_cmd *cmd)
{
	if (cmd->version != ZCOLL_CMD_VERSION)
		return "version";
	if (!zc_dtype_size(cmd->dtype))
		return "dtype";
	if (!cmd->op || cmd->op >= ZCOLL_NR_OPS)
		return "op";
	if (cmd->flags)
		return "flags";
	if (cmd->root)
		return "root";
	if (cmd->deadline_ns > ZCOLL_MAX_DEADLINE_NS)
		return "deadline_ns";
	if (cmd->extra)
		return "extra";
	if (cmd->__reserved)
		return "__reserved";
	return NULL;
}

static int zc_call_check(struct zc_rank *rank, const struct zcoll_cmd *cmd, u64 *bytes,
			 struct zc_text *why)
{
	const char *bad = zc_call_bad_field(cmd);

	if (bad) {
		zc_text_add(why, "rank %u: all-reduce %llu: field %s is out of range",
			    rank->rank, cmd->seq, bad);
		return -EINVAL;
	}
	if (cmd->plan) {
		zc_text_add(why, "rank %u: all-reduce %llu: no plan %u", rank->rank,
			    cmd->seq, cmd->plan);
		return -EOPNOTSUPP;
	}
	if (check_mul_overflow(cmd->count, (u64)zc_dtype_size(cmd->dtype), bytes)) {
		zc_text_add(why, "rank %u: all-reduce %llu: count %llu is too large",
			    rank->rank, cmd->seq, cmd->count);
		return -EOVERFLOW;
	}
	return 0;
}

/* The registered buffer, or the range pinned for this call; NULL: nothing needed */
static struct zc_buf *zc_call_buf(struct zc_rank *rank, u32 handle, u64 where, u64 bytes,
				  struct zc_text *why)
{
	struct zc_buf *buf;
	u64 end;

	if (handle == ZCOLL_NO_BUF) {
		if (!bytes)
			return NULL;
		atomic64_inc(&rank->call_pins);
		return zc_buf_pin(where, bytes, why);
	}
	xa_lock(&rank->bufs);
	buf = xa_load(&rank->bufs, handle);
	if (buf)
		kref_get(&buf->ref);
	xa_unlock(&rank->bufs);
	if (!buf) {
		zc_text_add(why, "no buffer has handle %u", handle);
		return ERR_PTR(-ENOENT);
	}
	if (check_add_overflow(where, bytes, &end)) {
		zc_text_add(why, "offset %llu and %llu bytes wrap", where, bytes);
		zc_buf_put(buf);
		return ERR_PTR(-EOVERFLOW);
	}
	if (end > buf->len) {
		zc_text_add(why, "bytes %llu to %llu are outside of buffer %u, which has %llu",
			    where, end, handle, buf->len);
		zc_buf_put(buf);
		return ERR_PTR(-ERANGE);
	}
	return buf;
}

/* Kernel address of a call's range in its buffer */
void *zc_call_address(const struct zc_buf *buf, u32 handle, u64 where)
{
	if (!buf)
		return NULL;
	return zc_buf_kaddr(buf, handle == ZCOLL_NO_BUF ? 0 : where);
}

/* The same range, or no common byte. User addresses tell, in either form. */
static bool zc_call_overlaps(const struct zc_call *call, u64 bytes)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	u64 send, recv;

	if (!bytes)
		return false;
	send = cmd->send + (cmd->send_buf == ZCOLL_NO_BUF ? 0 : call->send->addr);
	recv = cmd->recv + (cmd->recv_buf == ZCOLL_NO_BUF ? 0 : call->recv->addr);
	return send != recv && send < recv + bytes && recv < send + bytes;
}

static void zc_call_put(struct zc_call *call)
{
	zc_buf_put(call->send);
	zc_buf_put(call->recv);
	call->send = NULL;
	call->recv = NULL;
}

static int zc_call_bind(struct zc_rank *rank, struct zc_call *call, u64 bytes,
			struct zc_text *why)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	struct zc_buf *buf;

	zc_text_add(why, "rank %u: all-reduce %llu: ", rank->rank, cmd->seq);
	buf = zc_call_buf(rank, cmd->send_buf, cmd->send, bytes, why);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	call->send = buf;
	if (buf && cmd->send_buf == cmd->recv_buf && cmd->send == cmd->recv) {
		kref_get(&buf->ref);
		call->recv = buf;
		return 0;
	}
	buf = zc_call_buf(rank, cmd->recv_buf, cmd->recv, bytes, why);
	if (IS_ERR(buf)) {
		zc_call_put(call);
		return PTR_ERR(buf);
	}
	call->recv = buf;
	if (zc_call_overlaps(call, bytes)) {
		zc_text_add(why, "input and output overlap, and are not the same");
		zc_call_put(call);
		return -EINVAL;
	}
	return 0;
}

/**
 * zc_call_prepare - check a call and get hold of its memory
 * @rank: the endpoint
 * @call: @call->cmd is set; the rest is filled in
 *
 * Context: process context of the owner, may sleep.
 * Return: 0, or a negative errno whose text is kept.
 */
int zc_call_prepare(struct zc_rank *rank, struct zc_call *call)
{
	struct zc_text why = {};
	u64 bytes;
	int err;

	err = zc_call_check(rank, &call->cmd, &bytes, &why);
	if (!err)
		err = zc_call_bind(rank, call, bytes, &why);
	if (err)
		zc_call_rejected(rank, call->cmd.seq, err, &why);
	return err;
}

/**
 * zc_call_submit - enter a prepared call
 * @rank: the endpoint
 * @call: from zc_call_prepare(); its references are used up
 *
 * Return: 0, or a negative errno.
 */
int zc_call_submit(struct zc_rank *rank, struct zc_call *call)
{
	struct zc_text why = {};
	int err;

	err = zc_op_submit(rank, call, &why);
	if (err) {
		zc_call_put(call);
		if (why.len)
			zc_call_rejected(rank, call->cmd.seq, err, &why);
	}
	return err;
}

/* Is there something to do, or to return with? */
static bool zc_wait_over(struct zc_comm *comm, struct zc_sub *sub)
{
	return READ_ONCE(sub->state) == ZC_SUB_DONE || READ_ONCE(comm->runnable);
}

/*
 * Poll for a while before sleeping: a sleep and its wake-up cost more than a small
 * operation. Only where nobody else wants the CPU.
 */
static void zc_wait_spin(struct zc_comm *comm, struct zc_sub *sub)
{
	u64 until = local_clock() + (u64)READ_ONCE(spin_us) * NSEC_PER_USEC;

	while (!zc_wait_over(comm, sub) && single_task_running() && !need_resched() &&
	       !signal_pending(current) && local_clock() < until)
		cpu_relax();
}

/* Sleep until there is something to do, or it is time. Return: 0 or -ERESTARTSYS. */
static int zc_wait_sleep(struct zc_comm *comm, struct zc_sub *sub, ktime_t until)
{
	DEFINE_WAIT(wait);
	int err = 0;

	atomic_inc(&comm->waiters);
	prepare_to_wait_exclusive(&comm->waitq, &wait, TASK_INTERRUPTIBLE);
	if (!zc_wait_over(comm, sub)) {
		if (signal_pending(current))
			err = -ERESTARTSYS;
		else
			schedule_hrtimeout(until == KTIME_MAX ? NULL : &until,
					   HRTIMER_MODE_ABS);
	}
	finish_wait(&comm->waitq, &wait);
	atomic_dec(&comm->waiters);
	return err;
}

/*
 * Wait for the verdict of a submission of this rank, and help with the work. The
 * caller's reference to the file keeps the endpoint. The slot may get a new life
 * while we sleep, if another thread of the rank submits a window later: that is
 * -ENOENT.
 */
static int zc_wait_verdict(struct zc_rank *rank, u64 seq, ktime_t until, s32 *result)
{
	struct zc_sub *sub = zc_rank_sub(rank, seq);
	struct zc_comm *comm = rank->comm;
	struct zc_op *op;
	int err = 0;

	for (;;) {
		spin_lock(&comm->lock);
		if (!zc_rank_called(rank, seq)) {
			err = -ENOENT;
		} else if (sub->state == ZC_SUB_DONE) {
			*result = sub->result;
			spin_unlock(&comm->lock);
			return 0;
		}
		spin_unlock(&comm->lock);
		if (err)
			return err;
		if (until != KTIME_MAX && ktime_get() >= until)
			return -ETIMEDOUT;

		op = zc_work_get(comm);
		if (op) {
			zc_work_run(comm, op, &comm->help_pieces);
			zc_work_put(comm, op);
			if (fatal_signal_pending(current))
				return -EINTR;
			continue;
		}
		zc_wait_spin(comm, sub);
		err = zc_wait_sleep(comm, sub, until);
		if (err)
			return err;
	}
}

/* Is this call there already, made before by a blocking call and interrupted? */
static bool zc_call_attach(struct zc_rank *rank, const struct zcoll_cmd *cmd)
{
	struct zc_sub *sub = zc_rank_sub(rank, cmd->seq);
	bool found;

	spin_lock(&rank->comm->lock);
	found = zc_rank_called(rank, cmd->seq) && !sub->collected &&
		!memcmp(&sub->cmd, cmd, sizeof(*cmd));
	spin_unlock(&rank->comm->lock);
	return found;
}

/* Its verdict is being returned: the sequence number is used up now */
static void zc_call_collect(struct zc_rank *rank, u64 seq)
{
	spin_lock(&rank->comm->lock);
	if (zc_rank_called(rank, seq))
		zc_rank_sub(rank, seq)->collected = true;
	spin_unlock(&rank->comm->lock);
}

/**
 * zc_call_blocking - call an operation and wait for its verdict
 * @rank: the endpoint
 * @call: @call->cmd is set
 *
 * Return: the verdict, or a negative errno of the submission, or -ERESTARTSYS.
 */
int zc_call_blocking(struct zc_rank *rank, struct zc_call *call)
{
	u64 seq = call->cmd.seq;
	s32 result;
	int err;

	if (!zc_call_attach(rank, &call->cmd)) {
		err = zc_call_prepare(rank, call);
		if (!err)
			err = zc_call_submit(rank, call);
		if (err)
			return err;
	}
	err = zc_wait_verdict(rank, seq, KTIME_MAX, &result);
	if (err)
		return err;
	zc_call_collect(rank, seq);
	return result;
}

/**
 * zc_call_wait - wait for an operation that this rank has called
 * @rank: the endpoint
 * @seq: the operation
 * @timeout_ns: 0: only look; ZCOLL_WAIT_FOREVER
 * @result: gets the verdict
 *
 * Return: 0, -ENOENT, -ETIMEDOUT, -EINTR or -ERESTARTSYS.
 */
int zc_call_wait(struct zc_rank *rank, u64 seq, u64 timeout_ns, s32 *result)
{
	ktime_t until = KTIME_MAX;
	int err;

	if (timeout_ns != ZCOLL_WAIT_FOREVER)
		until = ktime_add_safe(ktime_get(), min_t(u64, timeout_ns, KTIME_MAX));
	err = zc_wait_verdict(rank, seq, until, result);
	/* Started again, a wait with an end would begin from the start */
	if (err == -ERESTARTSYS && timeout_ns != ZCOLL_WAIT_FOREVER)
		err = -EINTR;
	return err;
}
