// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations: where the ranks' calls meet.
 *
 *   FREE -> WAITING       the first local rank calls
 *   WAITING               each further call is compared with the first, before any
 *                         byte moves
 *   WAITING -> STARTING   the last local rank calls; memory is found for it (place.c)
 *   STARTING -> RUNNING   the engine has it, and runs the plan (run.c)
 *   WAITING -> ENDING     the communicator is revoked
 *   STARTING -> ENDING    likewise, or there is no memory; who starts it sees to that
 *   RUNNING -> ENDING     the engine gives the verdict
 *   ENDING -> DONE        what it held is given back
 *
 * Other nodes say what their ranks call, too (zc_op_described()): that is compared with
 * what is called here, now or when somebody calls. On a node without ranks it is what
 * calls.
 *
 * Who moves an operation to ENDING (zc_op_conclude(), under zc_comm.lock) then
 * delivers the verdict to each submission, with the lock dropped. The window
 * moves on before the first verdict is given, so that who has one may go on.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/minmax.h>

#include "net/net.h"

/* Revoke the communicator: two ranks call different things. The lower one is named first. */
static void zc_op_mismatch(struct zc_comm *comm, u64 seq, const struct zc_desc *a, u32 a_node,
			   const struct zc_desc *b, u32 b_node)
{
	struct zc_text text = {};

	if (a->rank > b->rank) {
		swap(a, b);
		swap(a_node, b_node);
	}
	zc_text_add(&text, "%s %llu: ",
		    zc_collective_name(a->collective == b->collective ? a->collective : 0), seq);
	if (a_node == b_node)
		zc_text_add(&text, "rank %u and rank %u differ in", a->rank, b->rank);
	else
		zc_text_add(&text, "rank %u on node %u and rank %u on node %u differ in", a->rank,
			    a_node, b->rank, b_node);
	zc_desc_add_differences(&text, a, b);
	zc_comm_fail(comm, -EPROTO, &text);
}

/* The window begins at the oldest operation that is not done */
static void zc_op_advance(struct zc_comm *comm)
{
	struct zc_op *op = zc_comm_op(comm, comm->base);

	while (op->state == ZC_OP_DONE && op->seq == comm->base)
		op = zc_comm_op(comm, ++comm->base);
}

/* Numbers leave room for what counts on from them: the window, and stamps of lines */
#define ZC_MAX_ENDED	BIT_ULL(61)

/*
 * A rank says that its operations below @ended have ended. Nobody will call those of them that
 * are not known here: they have ended in mailboxes, for which all ranks' lines were needed.
 */
static int zc_op_skip(struct zc_comm *comm, u64 ended, struct zc_text *why)
{
	u64 seq, end = min(ended, comm->base + ZC_WINDOW);

	if (ended <= comm->base)
		return 0;
	if (comm->net) {
		zc_text_add(why, "field ended: %llu, but on several nodes there are no mailboxes",
			    ended);
		return -EINVAL;
	}
	if (ended > ZC_MAX_ENDED) {
		zc_text_add(why, "field ended: %llu, the limit is %llu", ended, ZC_MAX_ENDED);
		return -EINVAL;
	}
	for (seq = comm->base; seq < end; seq++) {
		const struct zc_op *op = zc_comm_op(comm, seq);

		if (op->seq != seq || op->state == ZC_OP_FREE || op->state == ZC_OP_DONE)
			continue;
		zc_text_add(why, "field ended: %llu, but %s %llu is in flight", ended,
			    zc_collective_name(op->desc.collective), seq);
		return -EINVAL;
	}
	zc_engine_skip(comm->engine, ended);
	comm->base = ended;
	zc_op_advance(comm);
	return 0;
}

/* Is this sequence number one that the rank may call now? */
static int zc_op_admit(struct zc_rank *rank, const struct zc_call *call, struct zc_text *why)
{
	const char *name = zc_collective_name(call->desc.collective);
	u64 seq = call->cmd.seq;
	struct zc_sub *sub = zc_rank_sub(rank, seq);
	struct zc_comm *comm = rank->comm;
	int err;

	if (comm->error)
		return comm->error;
	if (rank->left) {
		zc_text_add(why, "rank %u has left the communicator", rank->rank);
		return -ESHUTDOWN;
	}
	if (comm->nleft) {
		zc_comm_failf(comm, -ESHUTDOWN, "%s %llu: rank %u has left",
			      name, seq, comm->first_left);
		return -ESHUTDOWN;
	}
	err = zc_op_skip(comm, call->cmd.ended, why);
	if (err)
		return err;
	if (zc_rank_called(rank, seq) || seq < comm->base) {
		zc_text_add(why, "rank %u has called %s %llu already; ", rank->rank, name, seq);
		zc_text_add(why, "the oldest unfinished one is %llu", comm->base);
		return -EEXIST;
	}
	if (seq - comm->base >= ZC_WINDOW || sub->state == ZC_SUB_PENDING) {
		zc_text_add(why, "rank %u: %s %llu is too far ahead: ", rank->rank, name, seq);
		zc_text_add(why, "the oldest unfinished one is %llu, the window %u", comm->base,
			    ZC_WINDOW);
		return -ENOBUFS;
	}
	return 0;
}

/* Has it been called here? If not, the slot is still an older one's. */
static bool zc_op_called(const struct zc_op *op, u64 seq)
{
	return op->state != ZC_OP_FREE && op->seq == seq;
}

/* @plan's reference goes to the operation */
static void zc_op_open(struct zc_op *op, u64 seq, const struct zc_desc *desc,
		       struct zc_plan *plan)
{
	op->seq = seq;
	op->state = ZC_OP_WAITING;
	op->result = 0;
	op->arrived = 0;
	op->inplace = 0;
	op->in_blocks = false;
	op->desc = *desc;
	op->deadline = KTIME_MAX;
	op->plan = plan;
	op->heard = false;
}

/**
 * zc_op_fingerprint - what must be the same on all nodes, in one number
 * @comm: the communicator
 * @op: operation
 *
 * Return: 64-bit FNV-1a hash (G. Fowler, L. C. Noll, K.-P. Vo) over the descriptor but its
 * rank, and the network's settings; with one node, where nobody compares it, 0.
 */
u64 zc_op_fingerprint(const struct zc_comm *comm, const struct zc_op *op)
{
	struct {
		struct zw_desc desc;
		struct zw_settings settings;
	} all = {
		.desc.collective = cpu_to_le16(op->desc.collective),
		.desc.dtype = op->desc.dtype,
		.desc.op = op->desc.op,
		.desc.flags = cpu_to_le32(op->desc.flags),
		.desc.root = cpu_to_le32(op->desc.root),
		.desc.count = cpu_to_le64(op->desc.count),
		.desc.plan = cpu_to_le64(op->desc.plan),
	};
	u64 hash = 0xcbf29ce484222325ULL;
	size_t i;

	if (!comm->net)
		return 0;
	zc_net_settings(comm->net, &all.settings);
	for (i = 0; i < sizeof(all); i++)
		hash = (hash ^ ((const u8 *)&all)[i]) * 0x100000001b3ULL;
	return hash;
}

/**
 * zc_op_conclude - fix the verdict of an operation
 * @comm: the communicator, locked
 * @op: WAITING, STARTING by the caller, or the engine has completed it
 * @result: the verdict
 *
 * The caller must call zc_op_deliver().
 */
void zc_op_conclude(struct zc_comm *comm, struct zc_op *op, int result)
{
	lockdep_assert_held(&comm->lock);
	op->state = ZC_OP_ENDING;
	op->result = result;
	if (result) {
		comm->ops_failed++;
		atomic64_inc(&zc_totals.ops_failed);
	} else {
		comm->ops_done++;
		atomic64_inc(&zc_totals.ops_done);
	}
}

/* Give one rank its verdict, if it has called the operation */
static void zc_op_deliver_to(struct zc_comm *comm, u32 i, u64 seq, int result)
{
	struct io_uring_cmd *ucmd = NULL;
	struct zc_rank *rank;
	struct zc_sub *sub;

	cond_resched();
	spin_lock(&comm->lock);
	rank = comm->ranks[i];
	if (!rank || !zc_rank_called(rank, seq)) {
		spin_unlock(&comm->lock);
		return;
	}
	sub = zc_rank_sub(rank, seq);
	swap(ucmd, sub->ucmd);
	spin_unlock(&comm->lock);

	/*
	 * Pages are given back before the verdict, so that the next call finds them
	 * uncharged. The submission is in flight, which keeps the endpoint.
	 */
	zc_buf_put(sub->send);
	zc_buf_put(sub->recv);

	spin_lock(&comm->lock);
	sub->send = NULL;
	sub->recv = NULL;
	sub->result = result;
	sub->state = ZC_SUB_DONE;
	zc_waiters_tell(rank, seq, result);
	rank->inflight--;
	if (ucmd)
		rank->ring_inflight--;
	spin_unlock(&comm->lock);
	/* From here on the endpoint may be gone */
	if (ucmd)
		zc_uring_complete(ucmd, result);
}

/*
 * Give back what a concluded operation holds. Other nodes may speak of the next one in its slot
 * as soon as the engine has told them that this one has ended, so that is done before the
 * lock is dropped. Return: its plan, whose reference is the caller's.
 */
static struct zc_plan *zc_op_release(struct zc_comm *comm, struct zc_op *op)
{
	struct zc_plan *plan = NULL;

	lockdep_assert_held(&comm->lock);
	swap(plan, op->plan);
	zc_place_release(comm, op);
	op->state = ZC_OP_DONE;
	return plan;
}

/**
 * zc_op_deliver - give the verdict of an operation to those who called it
 * @comm: the communicator, locked; it is unlocked meanwhile
 * @seq: an operation that the caller has concluded, under the same hold of the lock
 * @result: its verdict
 *
 * Context: process context, may sleep.
 */
void zc_op_deliver(struct zc_comm *comm, u64 seq, int result)
	__must_hold(&comm->lock)
{
	struct zc_plan *plan = zc_op_release(comm, zc_comm_op(comm, seq));
	u32 i;

	zc_op_advance(comm);
	spin_unlock(&comm->lock);
	zc_plan_put(comm, plan);
	for (i = 0; i < comm->layout.nlocal; i++)
		zc_op_deliver_to(comm, i, seq, result);
	wake_up_all(&comm->waitq);
	/* Ranks that leave wait here */
	wake_up_all(&comm->pollq);
	spin_lock(&comm->lock);
}

/* The earliest deadline of all ranks counts */
static void zc_op_set_deadline(struct zc_rank *rank, struct zc_op *op, u64 deadline_ns)
{
	ktime_t at;

	if (!deadline_ns)
		return;
	at = ktime_add_ns(ktime_get(), deadline_ns);
	if (at >= op->deadline)
		return;
	op->deadline = at;
	op->deadline_ns = deadline_ns;
	op->deadline_rank = rank->rank;
	zc_watch_arm(rank->comm, at);
}

/* Where a rank's range of memory is, for folds and for the network */
static void *zc_op_place(struct zc_memory *memory, const struct zc_buf *buf, u32 handle,
			 u64 where)
{
	u64 offset = buf ? zc_call_offset(buf, handle, where) : 0;

	if (memory) {
		memory->region = buf ? buf->region : NULL;
		memory->offset = buf ? offset_in_page(buf->addr) + offset : 0;
	}
	return buf ? zc_buf_flat(buf, offset) : NULL;
}

/* Put a call into its operation's row. Return: all local ranks have called. */
static bool zc_op_enter(struct zc_rank *rank, struct zc_call *call, struct zc_op *op)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	struct zc_comm *comm = rank->comm;
	struct zc_sub *sub = zc_rank_sub(rank, cmd->seq);
	u32 i = rank->local;

	sub->collective = call->desc.collective;
	sub->cmd = *cmd;
	sub->state = ZC_SUB_PENDING;
	/* A verdict that goes to a ring is not there for a blocking call again */
	sub->collected = call->ucmd;
	swap(sub->send, call->send);
	swap(sub->recv, call->recv);
	sub->ucmd = call->ucmd;
	rank->inflight++;
	if (sub->ucmd) {
		rank->ring_inflight++;
		zc_watch_ring(comm);
	}
	if (call->waiter)
		zc_waiter_add(rank, call->waiter);
	zc_rejects_forget(rank, cmd->seq);
	rank->next_seq = max(rank->next_seq, cmd->seq + 1);

	op->src[i] = zc_op_place(op->in ? &op->in[i] : NULL, sub->send, cmd->send_buf, cmd->send);
	op->dst[i] = zc_op_place(op->out ? &op->out[i] : NULL, sub->recv, cmd->recv_buf,
				 cmd->recv);
	op->in_blocks |= (sub->send && !op->src[i]) || (sub->recv && !op->dst[i]);
	op->inplace += call->inplace;
	zc_op_set_deadline(rank, op, cmd->deadline_ns ?: rank->deadline_ns);
	return ++op->arrived == comm->layout.nlocal;
}

/* Compare a call with what others have called; the first one opens the operation */
static int zc_op_meet(struct zc_comm *comm, struct zc_op *op, struct zc_call *call)
{
	const struct zc_desc *desc = &call->desc;
	u64 seq = call->cmd.seq;

	if (zc_op_called(op, seq)) {
		if (!zc_desc_differs(&op->desc, desc))
			return 0;
		zc_op_mismatch(comm, seq, &op->desc, comm->layout.node, desc, comm->layout.node);
		return -EPROTO;
	}
	if (op->heard && zc_desc_differs(&op->theirs, desc)) {
		zc_op_mismatch(comm, seq, &op->theirs, op->heard_from, desc, comm->layout.node);
		return -EPROTO;
	}
	zc_op_open(op, seq, desc, call->plan);
	call->plan = NULL;
	return 0;
}

/**
 * zc_op_submit - enter one rank's call into its operation
 * @rank: the endpoint
 * @call: the call; the references it still has afterwards are the caller's
 * @why: gets the text of a failure, unless that revokes the communicator
 *
 * A small operation is done by the last caller at once, in here. The owner of a
 * uring command must not touch it after success.
 *
 * Context: process context, maybe under the ring's lock; may sleep.
 * Return: 0, or a negative errno; then nothing is left behind.
 */
int zc_op_submit(struct zc_rank *rank, struct zc_call *call, struct zc_text *why)
{
	struct zc_comm *comm = rank->comm;
	u64 seq = call->cmd.seq;
	struct zc_op *op = zc_comm_op(comm, seq);
	bool blocking = !call->ucmd, starts = false;
	int err;

	spin_lock(&comm->lock);
	err = zc_op_admit(rank, call, why);
	if (!err)
		err = zc_op_meet(comm, op, call);
	if (!err)
		starts = zc_op_enter(rank, call, op);
	if (starts)
		op->state = ZC_OP_STARTING;
	spin_unlock(&comm->lock);
	if (starts)
		zc_run_start(comm, op, blocking);
	return err;
}

/*
 * On a node without ranks: what another node calls is called here. Return: the plan it
 * names, or an ERR_PTR with a text.
 */
static struct zc_plan *zc_op_follow(struct zc_comm *comm, const struct zc_desc *desc,
				    struct zc_text *why)
{
	struct zc_plan *plan;
	int err;

	err = zc_desc_check(comm, desc, why);
	if (err)
		return ERR_PTR(err);
	plan = zc_plan_get_by_id(comm, desc->plan);
	if (!plan) {
		zc_text_add(why, "the aggregator of node %u has not loaded plan %016llx",
			    comm->layout.node, desc->plan);
		return ERR_PTR(-ENOENT);
	}
	err = zc_desc_fits_plan(comm, desc, plan, why);
	if (!err)
		return plan;
	zc_plan_put(comm, plan);
	return ERR_PTR(err);
}

/* Another node calls an operation that this node without ranks does not know yet */
static void zc_op_aggregate(struct zc_comm *comm, u64 seq, const struct zc_desc *desc)
{
	struct zc_op *op = zc_comm_op(comm, seq);
	struct zc_text why = {};
	struct zc_plan *plan;
	bool starts;

	zc_text_add(&why, "%s %llu: ", zc_collective_name(desc->collective), seq);
	plan = zc_op_follow(comm, desc, &why);
	spin_lock(&comm->lock);
	if (IS_ERR(plan))
		zc_comm_fail(comm, PTR_ERR(plan), &why);
	/* Meanwhile another node may have spoken of it, it may be over, or this node have left */
	starts = !comm->error && !comm->nleft && !zc_op_called(op, seq) && seq >= comm->base;
	if (starts) {
		zc_op_open(op, seq, desc, plan);
		op->state = ZC_OP_STARTING;
	}
	spin_unlock(&comm->lock);
	if (starts)
		zc_run_start(comm, op, false);
	else if (!IS_ERR(plan))
		zc_plan_put(comm, plan);
}

/**
 * zc_op_described - another node has said what it calls
 * @comm: the communicator
 * @node: the other node
 * @seq: the operation; one outside of the window is not looked at
 * @desc: what it calls; not trusted
 *
 * Context: process context, may sleep.
 */
void zc_op_described(struct zc_comm *comm, u32 node, u64 seq, const struct zc_desc *desc)
{
	struct zc_op *op = zc_comm_op(comm, seq);
	bool calls = false;

	spin_lock(&comm->lock);
	if (comm->error || seq - comm->base >= ZC_WINDOW) {
		/* Over already, or it never will be */
	} else if (zc_op_called(op, seq)) {
		if (zc_op_in_flight(op) && zc_desc_differs(&op->desc, desc))
			zc_op_mismatch(comm, seq, &op->desc, comm->layout.node, desc, node);
	} else if (!comm->layout.nlocal) {
		calls = !comm->nleft;
	} else if (!op->heard) {
		op->heard = true;
		op->heard_from = node;
		op->theirs = *desc;
	} else if (zc_desc_differs(&op->theirs, desc)) {
		zc_op_mismatch(comm, seq, &op->theirs, op->heard_from, desc, node);
	}
	spin_unlock(&comm->lock);
	if (calls)
		zc_op_aggregate(comm, seq, desc);
}

/* End the operations of a communicator that has been revoked */
void zc_op_fail_fn(struct work_struct *work)
{
	struct zc_comm *comm = container_of(work, struct zc_comm, fail_work);
	u32 i;

	spin_lock(&comm->lock);
	for (i = 0; i < ZC_WINDOW; i++) {
		struct zc_op *op = &comm->ops[i];

		/* Who starts one ends it; of those that run, the engine says when */
		if (op->state != ZC_OP_WAITING)
			continue;
		zc_op_conclude(comm, op, comm->error);
		zc_op_deliver(comm, op->seq, comm->error);
	}
	zc_tasks_drop(comm);
	zc_run(comm, ZC_NO_SEQ, false);
	wake_up_all(&comm->pollq);
}
