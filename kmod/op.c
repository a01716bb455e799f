// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations: where the ranks' calls meet.
 *
 *   FREE -> WAITING   the first rank calls
 *   WAITING           each further call is compared with the first, before any
 *                     byte moves
 *   WAITING -> RUNNING  the last rank calls; the engine runs the plan (run.c)
 *   RUNNING -> DONE   the engine gives the verdict
 *   WAITING -> DONE   the communicator is revoked
 *
 * Who moves an operation to DONE (zc_op_conclude(), under zc_comm.lock) then
 * delivers the verdict to each submission, with the lock dropped. The window
 * moves on before the first verdict is given, so that who has one may go on.
 */
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/module.h>

#include "zcoll.h"

static ulong stream_bytes = SZ_32M;
module_param(stream_bytes, ulong, 0644);
MODULE_PARM_DESC(stream_bytes, "operations that read and write more than this many bytes in all, out of place, write past the caches");

/* Bytes of all inputs and outputs in a chunk */
#define ZC_CHUNK_BYTES SZ_256K

/* Bytes of one buffer in a piece, at least: what keeps the largest communicator in a section */
#define ZC_PIECE_MIN 32

static const char * const zc_dtype_names[ZCOLL_NR_TYPES] = {
	"?", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
	"fp16", "bf16", "fp32", "fp64",
};

static const char * const zc_op_names[ZCOLL_NR_OPS] = {
	"?", "sum", "prod", "min", "max", "avg",
};

/* Bytes that an operation reads and writes for each element */
static u64 zc_op_width(const struct zc_comm *comm, const struct zc_op *op)
{
	return 2ULL * comm->nranks * zc_dtype_size(op->desc.dtype);
}

/*
 * Compare a call with the first one. All fields that must be the same are here;
 * values out of the ABI's range have been refused before.
 */
static bool zc_op_differs(const struct zc_op *op, const struct zcoll_cmd *cmd)
{
	return op->desc.count != cmd->count || op->desc.dtype != cmd->dtype ||
	       op->desc.op != cmd->op || op->desc.plan != cmd->plan;
}

/* Revoke the communicator, and tell which ranks called what */
static void zc_op_mismatch(struct zc_comm *comm, const struct zc_op *op, u32 rank,
			   const struct zcoll_cmd *cmd)
{
	const struct zcoll_cmd *first = &op->desc;
	struct zc_text mismatch = {}, *text = &mismatch;

	zc_text_add(text, "all-reduce %llu: rank %u and rank %u differ in", op->seq,
		    op->first_rank, rank);
	if (first->count != cmd->count)
		zc_text_add(text, " count (%llu and %llu)", first->count, cmd->count);
	if (first->dtype != cmd->dtype)
		zc_text_add(text, " type (%s and %s)", zc_dtype_names[first->dtype],
			    zc_dtype_names[cmd->dtype]);
	if (first->op != cmd->op)
		zc_text_add(text, " operator (%s and %s)", zc_op_names[first->op],
			    zc_op_names[cmd->op]);
	if (first->plan != cmd->plan)
		zc_text_add(text, " plan (%u and %u)", first->plan, cmd->plan);
	zc_comm_fail(comm, -EPROTO, text);
}

/* Is this sequence number one that the rank may call now? */
static int zc_op_admit(struct zc_rank *rank, u64 seq, struct zc_text *why)
{
	struct zc_comm *comm = rank->comm;
	struct zc_sub *sub = zc_rank_sub(rank, seq);

	if (comm->error)
		return comm->error;
	if (rank->left) {
		zc_text_add(why, "rank %u has left the communicator", rank->rank);
		return -ESHUTDOWN;
	}
	if (comm->nleft) {
		zc_comm_failf(comm, -ESHUTDOWN, "all-reduce %llu: rank %u has left", seq,
			      comm->first_left);
		return -ESHUTDOWN;
	}
	if (zc_rank_called(rank, seq) || seq < comm->base) {
		zc_text_add(why, "rank %u has called all-reduce %llu already; ", rank->rank, seq);
		zc_text_add(why, "the oldest unfinished one is %llu", comm->base);
		return -EEXIST;
	}
	if (seq - comm->base >= ZC_WINDOW || sub->state == ZC_SUB_PENDING) {
		zc_text_add(why, "rank %u: all-reduce %llu is too far ahead: ", rank->rank, seq);
		zc_text_add(why, "the oldest unfinished one is %llu, the window %u", comm->base,
			    ZC_WINDOW);
		return -ENOBUFS;
	}
	return 0;
}

static void zc_op_open(struct zc_op *op, u32 rank, struct zc_call *call)
{
	op->seq = call->cmd.seq;
	op->state = ZC_OP_WAITING;
	op->result = 0;
	op->first_rank = rank;
	op->arrived = 0;
	op->inplace = 0;
	op->holders = 0;
	op->desc = call->cmd;
	op->deadline = KTIME_MAX;
	swap(op->plan, call->plan);
}

/* Are all its inputs and outputs little enough to be folded in the issue path? */
bool zc_op_is_small(const struct zc_comm *comm, const struct zc_op *op)
{
	return zc_op_width(comm, op) * op->desc.count <= ZC_INLINE_BYTES;
}

/* All have called: the engine takes over */
static void zc_op_start(struct zc_comm *comm, struct zc_op *op)
{
	u64 width = zc_op_width(comm, op);
	u32 esize = zc_dtype_size(op->desc.dtype);
	u64 bytes = ZC_SECTION_BYTES / width * esize;

	BUILD_BUG_ON(2 * ZCOLL_MAX_RANKS * ZC_PIECE_MIN > ZC_SECTION_BYTES);
	/* Whole cache lines, so that pieces of aligned buffers share none */
	op->piece = (bytes >= 64 ? round_down(bytes, 64) : ZC_PIECE_MIN) / esize;
	op->chunk = op->piece * max(ZC_CHUNK_BYTES / (op->piece * width), 1ULL);
	op->stream = !op->inplace && op->desc.count > stream_bytes / width;
	op->fold = zc_isa_fold(op->desc.dtype, op->desc.op);
	zc_run_submit(comm, op);
}

/* The last chunk of an operation has been taken, or will never be */
void zc_op_not_runnable(struct zc_comm *comm, struct zc_op *op)
{
	lockdep_assert_held(&comm->lock);
	if (op->runnable)
		WRITE_ONCE(comm->runnable, comm->runnable - 1);
	op->runnable = false;
}

/**
 * zc_op_conclude - fix the verdict of an operation
 * @comm: the communicator, locked
 * @op: WAITING, or the engine has completed it
 * @result: the verdict
 *
 * The caller must call zc_op_deliver().
 */
void zc_op_conclude(struct zc_comm *comm, struct zc_op *op, int result)
{
	lockdep_assert_held(&comm->lock);
	op->state = ZC_OP_DONE;
	op->result = result;
	if (result) {
		comm->ops_failed++;
		atomic64_inc(&zc_totals.ops_failed);
	} else {
		comm->ops_done++;
		atomic64_inc(&zc_totals.ops_done);
		atomic64_add(op->desc.count * comm->nranks * zc_dtype_size(op->desc.dtype),
			     &comm->bytes_folded);
	}
	for (op = zc_comm_op(comm, comm->base);
	     op->state == ZC_OP_DONE && op->seq == comm->base;
	     op = zc_comm_op(comm, comm->base))
		comm->base++;
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
	struct zc_plan *plan = NULL;
	u32 i;

	swap(plan, zc_comm_op(comm, seq)->plan);
	spin_unlock(&comm->lock);
	for (i = 0; i < comm->nranks; i++)
		zc_op_deliver_to(comm, i, seq, result);
	zc_plan_put(comm, plan);
	wake_up_all(&comm->waitq);
	/* Ranks that leave wait here */
	wake_up_all(&comm->pollq);
	spin_lock(&comm->lock);
}

/* Put a call into its operation's row. Return: all have called. */
static bool zc_op_enter(struct zc_rank *rank, struct zc_call *call, struct zc_op *op)
{
	const struct zcoll_cmd *cmd = &call->cmd;
	struct zc_comm *comm = rank->comm;
	struct zc_sub *sub = zc_rank_sub(rank, cmd->seq);
	u64 deadline_ns = cmd->deadline_ns ?: rank->deadline_ns;

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

	op->src[rank->rank] = zc_call_address(sub->send, cmd->send_buf, cmd->send);
	op->dst[rank->rank] = zc_call_address(sub->recv, cmd->recv_buf, cmd->recv);
	op->inplace += op->src[rank->rank] == op->dst[rank->rank];
	if (deadline_ns) {
		ktime_t at = ktime_add_ns(ktime_get(), deadline_ns);

		if (at < op->deadline) {
			op->deadline = at;
			op->deadline_ns = deadline_ns;
			op->deadline_rank = rank->rank;
			zc_watch_arm(comm, at);
		}
	}
	return ++op->arrived == comm->nranks;
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
	bool blocking = !call->ucmd;
	int err;

	spin_lock(&comm->lock);
	err = zc_op_admit(rank, seq, why);
	if (err)
		goto out_unlock;
	if (op->state == ZC_OP_FREE || op->seq != seq) {
		zc_op_open(op, rank->rank, call);
	} else if (zc_op_differs(op, &call->cmd)) {
		zc_op_mismatch(comm, op, rank->rank, &call->cmd);
		err = -EPROTO;
		goto out_unlock;
	}
	if (!zc_op_enter(rank, call, op))
		goto out_unlock;
	zc_op_start(comm, op);
	if (zc_run(comm, seq, blocking)) {
		zc_work_run(comm, op, NULL);
		zc_work_put(comm, op);
	}
	return 0;

out_unlock:
	spin_unlock(&comm->lock);
	return err;
}

/* End an operation that the engine does not know, or has waited for work in vain */
static void zc_op_fail_one(struct zc_comm *comm, struct zc_op *op)
	__must_hold(&comm->lock)
{
	u64 seq = op->seq;

	if (op->state == ZC_OP_WAITING) {
		zc_op_conclude(comm, op, comm->error);
		zc_op_deliver(comm, seq, comm->error);
	} else if (op->state == ZC_OP_RUNNING && !op->holders) {
		/* The last holder of others sees to it */
		zc_run_unit_done(comm, op);
	}
}

/* End the operations of a communicator that has been revoked */
void zc_op_fail_fn(struct work_struct *work)
{
	struct zc_comm *comm = container_of(work, struct zc_comm, fail_work);
	u32 i;

	spin_lock(&comm->lock);
	for (i = 0; i < ZC_WINDOW; i++)
		zc_op_fail_one(comm, &comm->ops[i]);
	zc_run(comm, ZC_NO_SEQ, false);
	wake_up_all(&comm->pollq);
}
