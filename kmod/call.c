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
#include <linux/overflow.h>
#include <linux/string.h>

#include "net/net.h"

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

/* Which field, of those that are each rank's own, is out of range? */
static const char *zc_call_bad_field(const struct zcoll_cmd *cmd)
{
	if (cmd->version != ZCOLL_CMD_VERSION)
		return "version";
	if (cmd->deadline_ns > ZCOLL_MAX_DEADLINE_NS)
		return "deadline_ns";
	if (cmd->extra)
		return "extra";
	if (cmd->ended > cmd->seq)
		return "ended";
	return NULL;
}

/* What of the command all ranks must call equally, but the plan */
static void zc_call_describe(struct zc_rank *rank, struct zc_call *call)
{
	const struct zcoll_cmd *cmd = &call->cmd;

	call->desc.dtype = cmd->dtype;
	call->desc.op = cmd->op;
	call->desc.flags = cmd->flags;
	call->desc.root = cmd->root;
	call->desc.rank = rank->rank;
	call->desc.count = cmd->count;
}

static int zc_call_check(struct zc_rank *rank, struct zc_call *call, struct zc_text *why)
{
	const char *bad = zc_call_bad_field(&call->cmd);
	int err;

	if (rank->aggregates) {
		zc_text_add(why, "node %u only aggregates: it calls nothing",
			    rank->comm->layout.node);
		return -EINVAL;
	}
	if (rank->comm->net && !READ_ONCE(rank->comm->net->addresses)) {
		zc_text_add(why, "ZCOLL_IOC_PEERS has not been called on node %u",
			    rank->comm->layout.node);
		return -ENOTCONN;
	}
	if (bad) {
		zc_text_add(why, "field %s is out of range", bad);
		return -EINVAL;
	}
	err = zc_desc_check(rank->comm, &call->desc, why);
	if (err)
		return err;
	call->send_bytes = zc_desc_inputs(rank->comm, &call->desc, rank->rank);
	call->recv_bytes = zc_desc_outputs(rank->comm, &call->desc, rank->rank);
	return 0;
}

/* The registered buffer, or one that has the range; NULL: nothing needed */
static struct zc_buf *zc_call_buf(struct zc_rank *rank, const struct zc_call *call, u32 handle,
				  u64 where, u64 bytes, struct zc_text *why)
{
	struct zc_buf *buf;
	u64 end;

	if (handle == ZCOLL_NO_BUF) {
		if (!bytes)
			return NULL;
		return zc_cache_pin(rank, where, bytes, call->exact, why);
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

/* Where a call's range begins in its buffer, in bytes */
u64 zc_call_offset(const struct zc_buf *buf, u32 handle, u64 where)
{
	return handle == ZCOLL_NO_BUF ? where - buf->addr : where;
}

/*
 * In place: input and output have the same place in the vector, where one of them is a block
 * of it and the other all blocks, or else in memory. Handles tell, not addresses.
 */
static bool zc_call_in_place(const struct zc_rank *rank, const struct zc_call *call)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	u64 send = cmd->send, recv = cmd->recv;

	if (!call->send_bytes || !call->recv_bytes || cmd->send_buf != cmd->recv_buf)
		return false;
	if (call->send_bytes < call->recv_bytes)
		recv += rank->rank * call->send_bytes;
	else if (call->recv_bytes < call->send_bytes)
		send += rank->rank * call->recv_bytes;
	return send == recv;
}

/* Have they a common byte? User addresses tell, in either form. */
static bool zc_call_overlaps(const struct zc_call *call)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	u64 send, recv;

	if (!call->send_bytes || !call->recv_bytes)
		return false;
	send = call->send->addr + zc_call_offset(call->send, cmd->send_buf, cmd->send);
	recv = call->recv->addr + zc_call_offset(call->recv, cmd->recv_buf, cmd->recv);
	return send < recv + call->recv_bytes && recv < send + call->send_bytes;
}

static void zc_call_unbind(struct zc_call *call)
{
	zc_buf_put(call->send);
	zc_buf_put(call->recv);
	call->send = NULL;
	call->recv = NULL;
}

static void zc_call_put(struct zc_comm *comm, struct zc_call *call)
{
	zc_call_unbind(call);
	zc_plan_put(comm, call->plan);
	call->plan = NULL;
}

static int zc_call_plan(struct zc_rank *rank, struct zc_call *call, struct zc_text *why)
{
	struct zc_comm *comm = rank->comm;
	u32 number = call->cmd.plan;
	struct zc_plan *plan;
	int err;

	plan = zc_plan_get(comm, number, call->desc.collective);
	if (IS_ERR(plan)) {
		if (number)
			zc_text_add(why, "no plan has number %u", number);
		else
			zc_text_add(why, "on %u nodes a plan must be named", comm->layout.nodes);
		return PTR_ERR(plan);
	}
	call->plan = plan;
	call->desc.plan = plan->prog.plan->id;
	err = zc_desc_fits_plan(comm, &call->desc, plan, why);
	return err ?: zc_plan_check_root(comm, plan, call->desc.root, why);
}

/* The memory of both, which are in the larger one */
static int zc_call_bind_one(struct zc_rank *rank, struct zc_call *call, struct zc_text *why)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	bool by_send = call->send_bytes > call->recv_bytes;
	struct zc_buf *buf;

	buf = zc_call_buf(rank, call, cmd->send_buf, by_send ? cmd->send : cmd->recv,
			  max(call->send_bytes, call->recv_bytes), why);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	kref_get(&buf->ref);
	call->send = buf;
	call->recv = buf;
	return 0;
}

static int zc_call_bind_two(struct zc_rank *rank, struct zc_call *call, struct zc_text *why)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	struct zc_buf *buf = NULL;

	if (call->send_bytes)
		buf = zc_call_buf(rank, call, cmd->send_buf, cmd->send, call->send_bytes, why);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	call->send = buf;
	buf = NULL;
	if (call->recv_bytes)
		buf = zc_call_buf(rank, call, cmd->recv_buf, cmd->recv, call->recv_bytes, why);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	call->recv = buf;
	if (zc_call_overlaps(call)) {
		zc_text_add(why, "input and output overlap, and are not in place");
		return -EINVAL;
	}
	return 0;
}

static int zc_call_bind(struct zc_rank *rank, struct zc_call *call, struct zc_text *why)
{
	int err;

	call->inplace = zc_call_in_place(rank, call);
	err = call->inplace ? zc_call_bind_one(rank, call, why) :
			      zc_call_bind_two(rank, call, why);
	if (err != -EDQUOT || call->exact)
		return err;
	/* It may be by what is kept around its own ranges: try without */
	zc_call_unbind(call);
	*why = (struct zc_text) {};
	call->exact = true;
	return zc_call_bind(rank, call, why);
}

/* A view in blocks does not do where elements lie across blocks, nor for many ranks */
static int zc_call_view(const struct zc_rank *rank, const struct zc_call *call,
			struct zc_buf *buf, u32 handle, u64 where, struct zc_text *why)
{
	u32 size = zc_dtype_size(call->desc.dtype);

	if (!buf || (rank->comm->layout.nlocal <= ZC_BLOCK_RANKS &&
		     (buf->addr + zc_call_offset(buf, handle, where)) % size == 0))
		return 0;
	return zc_buf_flatten(buf, why);
}

/* Who called what is put before the reason only here: calls that are right pay nothing */
static noinline void zc_call_refuse(struct zc_rank *rank, struct zc_call *call, int error,
				    const struct zc_text *reason)
{
	struct zc_text why = {};

	zc_text_add(&why, "rank %u: %s %llu: %s", rank->rank,
		    zc_collective_name(call->desc.collective), call->cmd.seq, reason->buf);
	zc_call_put(rank->comm, call);
	zc_call_rejected(rank, call->cmd.seq, error, &why);
}

/**
 * zc_call_prepare - check a call and get hold of its memory
 * @rank: the endpoint
 * @call: @call->cmd and the collective are set; the rest is filled in
 *
 * Context: process context of the owner, may sleep.
 * Return: 0, or a negative errno whose text is kept.
 */
int zc_call_prepare(struct zc_rank *rank, struct zc_call *call)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	struct zc_text why = {};
	int err;

	zc_call_describe(rank, call);
	err = zc_call_check(rank, call, &why);
	if (!err)
		err = zc_call_plan(rank, call, &why);
	if (!err)
		err = zc_call_bind(rank, call, &why);
	if (!err)
		err = zc_call_view(rank, call, call->send, cmd->send_buf, cmd->send, &why);
	if (!err)
		err = zc_call_view(rank, call, call->recv, cmd->recv_buf, cmd->recv, &why);
	if (err)
		zc_call_refuse(rank, call, err, &why);
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
static bool zc_call_attach(struct zc_rank *rank, const struct zc_call *call,
			   struct zc_waiter *waiter)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	struct zc_sub *sub = zc_rank_sub(rank, cmd->seq);
	bool found;

	spin_lock(&rank->comm->lock);
	found = zc_rank_called(rank, cmd->seq) && !sub->collected &&
		sub->collective == call->desc.collective &&
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
 * @call: @call->cmd and the collective are set
 *
 * Return: the verdict, or a negative errno of the submission, or -ERESTARTSYS.
 */
int zc_call_blocking(struct zc_rank *rank, struct zc_call *call)
{
	struct zc_waiter waiter;
	int err;

	zc_waiter_init(&waiter, call->cmd.seq, KTIME_MAX);
	if (!zc_call_attach(rank, call, &waiter)) {
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
