// SPDX-License-Identifier: GPL-2.0-only
/*
 * The endpoint's file: ioctls, poll and release.
 *
 * Each ioctl has a row in zc_endpoint_ioctls: its struct's sizes, and who may call
 * it. The struct is copied in once, with the extensible struct rules, and copied
 * back if the ioctl has outputs.
 */
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "ioctl.h"
#include "zcoll.h"

/* The caller's buffer is no longer in the table */
void zc_rank_forget_buffer(struct zc_rank *rank, struct zc_buf *buf)
{
	atomic_dec(&rank->nbufs);
	if (buf->vmapped)
		atomic_dec(&rank->nvmapped);
	atomic64_sub(buf->npages, &rank->pinned);
	zc_buf_put(buf);
}

/*
 * Allocating may drop the table's lock, so whether it is closed is looked at before
 * and after.
 */
static int zc_buffer_insert(struct zc_rank *rank, struct zc_buf *buf, u32 *handle)
{
	int err = -ESHUTDOWN;

	xa_lock(&rank->bufs);
	if (!rank->bufs_closed)
		err = __xa_alloc(&rank->bufs, handle, buf, XA_LIMIT(1, ZC_MAX_BUFFERS),
				 GFP_KERNEL);
	if (!err && rank->bufs_closed) {
		__xa_erase(&rank->bufs, *handle);
		err = -ESHUTDOWN;
	}
	xa_unlock(&rank->bufs);
	return err;
}

static int zc_buffer_add(struct zc_rank *rank, struct zcoll_buf *args, struct zc_text *why)
{
	struct zc_buf *buf;
	int err;

	zc_text_add(why, "rank %u: register: ", rank->rank);
	if (args->flags || !args->len) {
		zc_text_add(why, "unknown flags, or length 0");
		return -EINVAL;
	}
	buf = zc_buf_pin(args->addr, args->len, why);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	/* Counted first: once in the table, another thread may take it out */
	atomic_inc(&rank->nbufs);
	if (buf->vmapped)
		atomic_inc(&rank->nvmapped);
	atomic64_add(buf->npages, &rank->pinned);
	err = zc_buffer_insert(rank, buf, &args->handle);
	if (!err)
		return 0;
	zc_rank_forget_buffer(rank, buf);
	if (err == -EBUSY) {
		zc_text_add(why, "%d buffers are registered, the limit", ZC_MAX_BUFFERS);
		return -ENOSPC;
	}
	zc_text_add(why, err == -ESHUTDOWN ? "it has left the communicator" :
		    "no kernel memory");
	return err;
}

static int zc_ioctl_register(void *priv, void *arg)
{
	struct zcoll_buf *args = arg;
	struct zc_text why = {};
	int err;

	err = zc_buffer_add(priv, args, &why);
	if (err && zc_text_to_user(why.buf, args->text, args->text_len))
		return -EFAULT;
	return err;
}

static int zc_ioctl_unregister(void *priv, void *arg)
{
	struct zcoll_unbuf *args = arg;
	struct zc_rank *rank = priv;
	struct zc_buf *buf;

	buf = xa_erase(&rank->bufs, args->handle);
	if (!buf)
		return -ENOENT;
	zc_rank_forget_buffer(rank, buf);
	return 0;
}

/* The handle is one that nobody has been told */
static void zc_ioctl_register_undo(void *priv, void *arg)
{
	struct zcoll_buf *args = arg;
	struct zcoll_unbuf unbuf = { .handle = args->handle };

	zc_ioctl_unregister(priv, &unbuf);
}

static int zc_ioctl_plan_load(void *priv, void *arg)
{
	struct zcoll_plan_load *args = arg;
	struct zc_text why = {};
	int err;

	err = zc_plan_load(priv, args, &why);
	if (err && zc_text_to_user(why.buf, args->text, args->text_len))
		return -EFAULT;
	return err;
}

static int zc_ioctl_plan_unload(void *priv, void *arg)
{
	struct zcoll_plan_unload *args = arg;
	struct zc_rank *rank = priv;

	return zc_plan_unload(rank->comm, args->number);
}

/* The caller has not been told of this load; those that others made of the plan stay */
static void zc_ioctl_plan_load_undo(void *priv, void *arg)
{
	struct zcoll_plan_load *args = arg;
	struct zc_rank *rank = priv;

	zc_plan_unload(rank->comm, args->number);
}

static int zc_ioctl_leave(void *priv, void *arg)
{
	struct zcoll_flags *args = arg;

	if (args->flags)
		return -EINVAL;
	zc_rank_leave(priv);
	return zc_rank_settle(priv);
}

static int zc_ioctl_abort(void *priv, void *arg)
{
	struct zcoll_flags *args = arg;
	struct zc_rank *rank = priv;

	if (args->flags)
		return -EINVAL;
	spin_lock(&rank->comm->lock);
	zc_comm_failf(rank->comm, -ECANCELED, "aborted through the endpoint of rank %u",
		      rank->rank);
	spin_unlock(&rank->comm->lock);
	return 0;
}

static int zc_ioctl_cancel(void *priv, void *arg)
{
	struct zcoll_seq *args = arg;
	struct zc_rank *rank = priv;
	struct zc_sub *sub = zc_rank_sub(rank, args->seq);
	int err = 0;

	if (args->flags)
		return -EINVAL;
	spin_lock(&rank->comm->lock);
	if (zc_rank_called(rank, args->seq) && sub->state == ZC_SUB_PENDING)
		zc_comm_failf(rank->comm, -ECANCELED, "rank %u cancelled all-reduce %llu",
			      rank->rank, args->seq);
	else
		err = -ENOENT;
	spin_unlock(&rank->comm->lock);
	return err;
}

static int zc_ioctl_wait(void *priv, void *arg)
{
	struct zcoll_wait *args = arg;

	if (args->flags || args->__reserved)
		return -EINVAL;
	return zc_call_wait(priv, args->seq, &args->timeout_ns, &args->result);
}

static int zc_ioctl_allreduce(void *priv, void *arg)
{
	struct zc_call call = { .cmd = *(struct zcoll_cmd *)arg };

	return zc_call_blocking(priv, &call);
}

static int zc_ioctl_stats(void *priv, void *arg)
{
	struct zcoll_stats *args = arg;
	struct zc_rank *rank = priv;
	struct zc_comm *comm = rank->comm;

	if (args->flags)
		return -EINVAL;
	spin_lock(&comm->lock);
	args->ops_done = comm->ops_done;
	args->ops_failed = comm->ops_failed;
	args->ops_inline = comm->ops_inline;
	spin_unlock(&comm->lock);
	args->bytes_folded = atomic64_read(&comm->bytes_folded);
	args->work_pieces = atomic64_read(&comm->work_pieces);
	args->help_pieces = atomic64_read(&comm->help_pieces);
	args->call_pins = atomic64_read(&rank->call_pins);
	args->buffers = atomic_read(&rank->nbufs);
	args->vmapped = atomic_read(&rank->nvmapped);
	args->pinned_pages = atomic64_read(&rank->pinned);
	args->comm_kernel_bytes = READ_ONCE(comm->kernel_bytes) +
				  atomic64_read(&comm->plan_bytes);
	args->workers = atomic_read(&comm->nworkers);
	args->__reserved = 0;
	return 0;
}

static bool zc_state_missing(struct zc_comm *comm, const struct zcoll_status *args, u32 i)
{
	struct zc_rank *rank = comm->ranks[i];

	if (args->flags & ZCOLL_STATUS_COMM)
		return !rank;
	return !rank || !zc_rank_called(rank, args->seq);
}

/*
 * Rank by rank, with the lock dropped for each: what is written is what each rank
 * was when it was looked at.
 */
static int zc_status_missing(struct zc_comm *comm, const struct zcoll_status *args)
{
	u32 __user *to = u64_to_user_ptr(args->missing);
	u32 i, n = 0;

	if (!args->missing || args->state != ZCOLL_STATE_WAITING)
		return 0;
	for (i = 0; i < comm->nranks && n < args->missing_len; i++) {
		bool missing;

		spin_lock(&comm->lock);
		missing = zc_state_missing(comm, args, i);
		spin_unlock(&comm->lock);
		if (missing && put_user(i, to + n++))
			return -EFAULT;
	}
	return 0;
}

static void zc_status_comm(struct zc_comm *comm, struct zcoll_status *args,
			   struct zc_text *text)
{
	args->arrived = comm->njoined;
	if (comm->error) {
		args->state = ZCOLL_STATE_DONE;
		args->result = comm->error;
		zc_text_add(text, "%s", comm->text);
	} else if (comm->nleft) {
		args->state = ZCOLL_STATE_DONE;
		args->result = -ESHUTDOWN;
		zc_text_add(text, "rank %u has left the communicator", comm->first_left);
	} else if (comm->njoined < comm->nranks) {
		args->state = ZCOLL_STATE_WAITING;
		zc_text_add(text, "%u of %u ranks have joined", comm->njoined, comm->nranks);
	} else {
		args->state = ZCOLL_STATE_RUNNING;
	}
}

static const struct zc_reject *zc_status_reject(const struct zc_rank *rank, u64 seq)
{
	const struct zc_reject *reject;
	u32 i;

	/* The latest first */
	for (i = 1; i <= ZC_REJECTS; i++) {
		reject = &rank->rejects[(rank->reject_next - i) % ZC_REJECTS];
		if (reject->error && reject->seq == seq)
			return reject;
	}
	return NULL;
}

static void zc_status_op(struct zc_rank *rank, struct zcoll_status *args,
			 struct zc_text *text)
{
	static const u32 states[] = {
		[ZC_OP_FREE] = ZCOLL_STATE_NONE,
		[ZC_OP_WAITING] = ZCOLL_STATE_WAITING,
		[ZC_OP_RUNNING] = ZCOLL_STATE_RUNNING,
		[ZC_OP_DONE] = ZCOLL_STATE_DONE,
	};
	const struct zc_reject *reject = zc_status_reject(rank, args->seq);
	struct zc_comm *comm = rank->comm;
	const struct zc_op *op = zc_comm_op(comm, args->seq);
	bool known = op->state != ZC_OP_FREE && op->seq == args->seq;

	if (known) {
		args->state = states[op->state];
		args->result = op->result;
		args->arrived = op->arrived;
	}
	if (reject && !zc_rank_called(rank, args->seq)) {
		args->state = ZCOLL_STATE_REJECTED;
		args->result = reject->error;
		zc_text_add(text, "%s", reject->text);
	} else if (comm->error && !(known && op->state == ZC_OP_DONE && !op->result)) {
		args->result = comm->error;
		zc_text_add(text, "%s", comm->text);
	} else if (known && op->state == ZC_OP_WAITING) {
		zc_text_add(text, "all-reduce %llu: %u of %u ranks have called; missing: ",
			    op->seq, op->arrived, comm->nranks);
		zc_text_add_ranks(text, comm, op->seq);
	} else if (reject) {
		zc_text_add(text, "%s", reject->text);
	}
}

static int zc_ioctl_status(void *priv, void *arg)
{
	struct zcoll_status *args = arg;
	struct zc_rank *rank = priv;
	struct zc_comm *comm = rank->comm;
	struct zc_text text = {};

	if ((args->flags & ~ZCOLL_STATUS_COMM) || args->__reserved)
		return -EINVAL;
	if ((args->flags & ZCOLL_STATUS_COMM) && args->seq)
		return -EINVAL;
	args->state = ZCOLL_STATE_NONE;
	args->result = 0;
	args->rank = rank->rank;
	args->nranks = comm->nranks;
	args->arrived = 0;
	spin_lock(&comm->lock);
	args->oldest = comm->base;
	if (args->flags & ZCOLL_STATUS_COMM)
		zc_status_comm(comm, args, &text);
	else
		zc_status_op(rank, args, &text);
	spin_unlock(&comm->lock);
	if (zc_status_missing(comm, args))
		return -EFAULT;
	return zc_text_to_user(text.buf, args->text, args->text_len);
}

static const struct zc_ioctl zc_endpoint_ioctls[] = {
	ZC_IOCTL(ZCOLL_IOC_LEAVE, zc_ioctl_leave, zcoll_flags, flags, ZC_OWNER),
	ZC_IOCTL(ZCOLL_IOC_ABORT, zc_ioctl_abort, zcoll_flags, flags, 0),
	ZC_IOCTL_UNDO(ZCOLL_IOC_REGISTER, zc_ioctl_register, zc_ioctl_register_undo, zcoll_buf,
		      text, ZC_OWNER),
	ZC_IOCTL(ZCOLL_IOC_UNREGISTER, zc_ioctl_unregister, zcoll_unbuf, handle, ZC_OWNER),
	ZC_IOCTL_UNDO(ZCOLL_IOC_PLAN_LOAD, zc_ioctl_plan_load, zc_ioctl_plan_load_undo,
		      zcoll_plan_load, text, ZC_OWNER),
	ZC_IOCTL(ZCOLL_IOC_PLAN_UNLOAD, zc_ioctl_plan_unload, zcoll_plan_unload, number,
		 ZC_OWNER),
	ZC_IOCTL(ZCOLL_IOC_STATUS, zc_ioctl_status, zcoll_status, __reserved, 0),
	ZC_IOCTL(ZCOLL_IOC_WAIT, zc_ioctl_wait, zcoll_wait, __reserved, ZC_OWNER),
	ZC_IOCTL(ZCOLL_IOC_CANCEL, zc_ioctl_cancel, zcoll_seq, seq, ZC_OWNER),
	ZC_IOCTL(ZCOLL_IOC_STATS, zc_ioctl_stats, zcoll_stats, __reserved, 0),
	ZC_IOCTL_FIXED(ZCOLL_IOC_ALLREDUCE, zc_ioctl_allreduce, zcoll_cmd, ZC_OWNER),
};

static long zc_endpoint_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct zc_rank *rank = file->private_data;

	return zc_ioctl_dispatch(zc_endpoint_ioctls, ARRAY_SIZE(zc_endpoint_ioctls), cmd,
				 (void __user *)arg, rank, current->mm == rank->mm);
}

static __poll_t zc_endpoint_poll(struct file *file, struct poll_table_struct *wait)
{
	struct zc_rank *rank = file->private_data;
	struct zc_comm *comm = rank->comm;
	__poll_t events = 0;

	poll_wait(file, &comm->pollq, wait);
	if (READ_ONCE(comm->njoined) == comm->nranks)
		events |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(comm->error))
		events |= EPOLLERR | EPOLLHUP;
	return events;
}

static int zc_endpoint_release(struct inode *inode, struct file *file)
{
	zc_rank_release(file->private_data);
	return 0;
}

const struct file_operations zc_endpoint_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = zc_endpoint_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.uring_cmd = zc_uring_cmd,
	.poll = zc_endpoint_poll,
	.release = zc_endpoint_release,
	.llseek = noop_llseek,
};
