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
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/string.h>

#include "zcoll.h"

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
	u32 dtype, op;

	if (bad) {
		zc_text_add(why, "rank %u: all-reduce %llu: field %s is out of range",
			    rank->rank, cmd->seq, bad);
		return -EINVAL;
	}
	dtype = array_index_nospec(cmd->dtype, ZCOLL_NR_TYPES);
	op = array_index_nospec(cmd->op, ZCOLL_NR_OPS);
	if (!zc_isa_fold(dtype, op)) {
		zc_text_add(why, "rank %u: all-reduce %llu: type %u has no operator %u",
			    rank->rank, cmd->seq, dtype, op);
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

/* Have they a common byte? User addresses tell, in either form. */
static bool zc_call_overlaps(const struct zc_call *call, u64 bytes)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	u64 send, recv;

	if (!bytes)
		return false;
	send = cmd->send + (cmd->send_buf == ZCOLL_NO_BUF ? 0 : call->send->addr);
	recv = cmd->recv + (cmd->recv_buf == ZCOLL_NO_BUF ? 0 : call->recv->addr);
	return send < recv + bytes && recv < send + bytes;
}

static void zc_call_put(struct zc_comm *comm, struct zc_call *call)
{
	zc_buf_put(call->send);
	zc_buf_put(call->recv);
	zc_plan_put(comm, call->plan);
	call->send = NULL;
	call->recv = NULL;
	call->plan = NULL;
}

static int zc_call_plan(struct zc_rank *rank, struct zc_call *call, struct zc_text *why)
{
	call->plan = zc_plan_get(rank->comm, call->cmd.plan);
	if (!call->plan) {
		zc_text_add(why, "rank %u: all-reduce %llu: no plan has number %u",
			    rank->rank, call->cmd.seq, call->cmd.plan);
		return -ENOENT;
	}
	if (call->plan->prog.plan->collective != ZCOLL_ALLREDUCE) {
		zc_text_add(why, "rank %u: all-reduce %llu: plan %u is for another collective",
			    rank->rank, call->cmd.seq, call->cmd.plan);
		zc_plan_put(rank->comm, call->plan);
		call->plan = NULL;
		return -EOPNOTSUPP;
	}
	return 0;
}

static int zc_call_bind(struct zc_rank *rank, struct zc_call *call, u64 bytes,
			struct zc_text *why)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	struct zc_buf *buf;

	zc_text_add(why, "rank %u: all-reduce %llu: ", rank->rank, cmd->seq);
	buf = zc_call_buf(rank, cmd->send_buf, cmd->send, bytes, why);
	if (IS_ERR(buf)) {
		zc_call_put(rank->comm, call);
		return PTR_ERR(buf);
	}
	call->send = buf;
	if (buf && cmd->send_buf == cmd->recv_buf && cmd->send == cmd->recv) {
		kref_get(&buf->ref);
		call->recv = buf;
		return 0;
	}
	buf = zc_call_buf(rank, cmd->recv_buf, cmd->recv, bytes, why);
	if (IS_ERR(buf)) {
		zc_call_put(rank->comm, call);
		return PTR_ERR(buf);
	}
	call->recv = buf;
	if (zc_call_overlaps(call, bytes)) {
		zc_text_add(why, "input and output overlap, and are not the same");
		zc_call_put(rank->comm, call);
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
		err = zc_call_plan(rank, call, &why);
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
	/* What the operation has not taken */
	zc_call_put(rank->comm, call);
	if (err && why.len)
		zc_call_rejected(rank, call->cmd.seq, err, &why);
	return err;
}

/* Is this call there already, made before by a blocking call and interrupted? */
static bool zc_call_attach(struct zc_rank *rank, const struct zcoll_cmd *cmd,
			   struct zc_waiter *waiter)
{
	struct zc_sub *sub = zc_rank_sub(rank, cmd->seq);
	bool found;

	spin_lock(&rank->comm->lock);
	found = zc_rank_called(rank, cmd->seq) && !sub->collected &&
		!memcmp(&sub->cmd, cmd, sizeof(*cmd));
	if (found)
		zc_waiter_add(rank, waiter);
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
	struct zc_waiter waiter;
	int err;

	zc_waiter_init(&waiter, call->cmd.seq, KTIME_MAX);
	if (!zc_call_attach(rank, &call->cmd, &waiter)) {
		call->waiter = &waiter;
		err = zc_call_prepare(rank, call);
		if (!err)
			err = zc_call_submit(rank, call);
		if (err)
			return err;
	}
	err = zc_waiter_wait(rank, &waiter);
	if (err)
		return err;
	zc_call_collect(rank, call->cmd.seq);
	return waiter.result;
}

/**
 * zc_call_wait - wait for an operation that this rank has called
 * @rank: the endpoint
 * @seq: the operation
 * @timeout_ns: 0: only look; ZCOLL_WAIT_FOREVER
 * @result: gets the verdict
 *
 * Return: 0, -ENOENT, -ETIMEDOUT, or -ERESTARTSYS; then @timeout_ns is what is left.
 */
int zc_call_wait(struct zc_rank *rank, u64 seq, u64 *timeout_ns, s32 *result)
{
	ktime_t until = KTIME_MAX;
	struct zc_waiter waiter;
	bool called;
	int err;

	if (*timeout_ns != ZCOLL_WAIT_FOREVER)
		until = ktime_add_safe(ktime_get(), min_t(u64, *timeout_ns, KTIME_MAX));
	zc_waiter_init(&waiter, seq, until);
	spin_lock(&rank->comm->lock);
	called = zc_rank_called(rank, seq);
	if (called)
		zc_waiter_add(rank, &waiter);
	spin_unlock(&rank->comm->lock);
	if (!called)
		return -ENOENT;

	err = zc_waiter_wait(rank, &waiter);
	if (err == -ERESTARTSYS && until != KTIME_MAX)
		*timeout_ns = max_t(s64, ktime_to_ns(ktime_sub(until, ktime_get())), 0);
	*result = waiter.result;
	return err;
}
