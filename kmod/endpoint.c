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
#include "net/net.h"

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
	buf = zc_buf_pin(args->addr, args->len, rank->comm, why);
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

static int zc_ioctl_address(void *priv, void *arg)
{
	struct zcoll_address *args = arg;
	u8 address[ZCOLL_ADDRESS_MAX] = {};
	struct zc_rank *rank = priv;

	if (args->flags || args->__reserved)
		return -EINVAL;
	if (!rank->comm->net)
		return -ENOTCONN;
	args->address_len = zc_net_address(rank->comm->net, address);
	if (copy_to_user(u64_to_user_ptr(args->address), address, sizeof(address)))
		return -EFAULT;
	return 0;
}

/* The caller's bytes, once; the network takes them over */
static int zc_peers_set(struct zc_rank *rank, const struct zcoll_peers *args,
			struct zc_text *why)
{
	size_t bytes = array_size(args->nodes, ZCOLL_ADDRESS_MAX);
	struct zc_comm *comm = rank->comm;
	u8 *addresses;
	int err;

	zc_text_add(why, "rank %u: peers: ", rank->rank);
	if (!comm->net) {
		zc_text_add(why, "the communicator has one node");
		return -ENOTCONN;
	}
	if (args->flags || args->nodes != comm->layout.nodes) {
		zc_text_add(why, "unknown flags, or %u nodes, and the communicator has %u",
			    args->nodes, comm->layout.nodes);
		return -EINVAL;
	}
	err = zc_rank_admits(rank, why);
	if (err)
		return err;
	addresses = kvmalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!addresses) {
		zc_text_add(why, "no kernel memory for %u addresses", args->nodes);
		return -ENOMEM;
	}
	if (!copy_from_user(addresses, u64_to_user_ptr(args->addresses), bytes))
		return zc_net_peers(comm->net, addresses, why);
	kvfree(addresses);
	zc_text_add(why, "the addresses cannot be read");
	return -EFAULT;
}

static int zc_ioctl_peers(void *priv, void *arg)
{
	struct zcoll_peers *args = arg;
	struct zc_text why = {};
	int err;

	err = zc_peers_set(priv, args, &why);
	if (err && zc_text_to_user(why.buf, args->text, args->text_len))
		return -EFAULT;
	return err;
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
	struct zc_text text = {};

	if (args->flags)
		return -EINVAL;
	zc_text_add(&text, "aborted through the endpoint of ");
	zc_text_add_who(&text, rank->comm, rank->rank);
	spin_lock(&rank->comm->lock);
	zc_comm_fail(rank->comm, -ECANCELED, &text);
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
		zc_comm_failf(rank->comm, -ECANCELED, "rank %u cancelled %s %llu", rank->rank,
			      zc_collective_name(sub->collective), args->seq);
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

/* Under zc_comm.lock */
static void zc_stats_net(const struct zc_comm *comm, struct zcoll_stats *args)
{
	const struct zc_net *net = comm->net;

	args->nodes = comm->layout.nodes;
	args->node = comm->layout.number;
	args->bytes_written = net ? net->bytes_written : 0;
	args->bytes_inline = net ? net->bytes_inline : 0;
	args->messages = net ? net->messages : 0;
	args->connected = net ? zc_net_connected(net) : 0;
	args->rails = net ? net->rails : 0;
	args->comm_kernel_bytes += net ? net->region_bytes : 0;
}

static void zc_stats_cache(struct zc_rank *rank, struct zcoll_stats *args)
{
	struct zc_cache_counts counts;

	zc_cache_count(&rank->cache, &counts);
	args->call_pins = counts.misses;
	args->cache_hits = counts.hits;
	args->cache_dropped = counts.dropped;
	args->cache_pages = counts.pages;
	args->pin_ns = counts.pin_ns;
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
	args->comm_kernel_bytes = READ_ONCE(comm->kernel_bytes) +
				  atomic64_read(&comm->plan_bytes);
	zc_stats_net(comm, args);
	spin_unlock(&comm->lock);
	args->bytes_folded = atomic64_read(&comm->bytes_folded);
	args->work_pieces = atomic64_read(&comm->work_pieces);
	args->help_pieces = atomic64_read(&comm->help_pieces);
	zc_stats_cache(rank, args);
	args->buffers = atomic_read(&rank->nbufs);
	args->vmapped = atomic_read(&rank->nvmapped);
	args->pinned_pages = atomic64_read(&rank->pinned);
	args->workers = atomic_read(&comm->nworkers);
	args->__reserved = 0;
	args->bytes_copied = atomic64_read(&comm->bytes_copied);
	args->local_pieces = atomic64_read(&comm->local_pieces);
	zc_mailbox_count(rank, args);
	return 0;
}

static int zc_ioctl_status(void *priv, void *arg)
{
	return zc_status(priv, arg);
}

static int zc_ioctl_park(void *priv, void *arg)
{
	return zc_mailbox_park(priv, arg);
}

static int zc_ioctl_bell(void *priv, void *arg)
{
	struct zcoll_flags *args = arg;

	return args->flags ? -EINVAL : zc_mailbox_bell(priv);
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
	ZC_IOCTL(ZCOLL_IOC_ADDRESS, zc_ioctl_address, zcoll_address, __reserved, ZC_OWNER),
	ZC_IOCTL(ZCOLL_IOC_PEERS, zc_ioctl_peers, zcoll_peers, text, ZC_OWNER),
	ZC_IOCTL(ZCOLL_IOC_PARK, zc_ioctl_park, zcoll_park, __reserved, ZC_OWNER),
	ZC_IOCTL(ZCOLL_IOC_BELL, zc_ioctl_bell, zcoll_flags, flags, ZC_OWNER),
};

/* An operation's struct has one size, for rings carry it, and so its ioctl has no row */
static long zc_endpoint_call(struct zc_rank *rank, u32 collective, const void __user *arg)
{
	struct zc_call call = { .desc.collective = collective };

	if (current->mm != rank->mm)
		return -EPERM;
	if (copy_from_user(&call.cmd, arg, sizeof(call.cmd)))
		return -EFAULT;
	return zc_call_blocking(rank, &call);
}

static long zc_endpoint_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct zc_rank *rank = file->private_data;
	u32 collective = zc_collective_of(cmd);

	if (collective)
		return zc_endpoint_call(rank, collective, (void __user *)arg);
	return zc_ioctl_dispatch(zc_endpoint_ioctls, ARRAY_SIZE(zc_endpoint_ioctls), cmd,
				 (void __user *)arg, rank, current->mm == rank->mm);
}

static __poll_t zc_endpoint_poll(struct file *file, struct poll_table_struct *wait)
{
	struct zc_rank *rank = file->private_data;
	struct zc_comm *comm = rank->comm;
	__poll_t events = 0;

	poll_wait(file, &comm->pollq, wait);
	if (READ_ONCE(comm->njoined) == comm->layout.nlocal)
		events |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(comm->error))
		events |= EPOLLERR | EPOLLHUP;
	return events;
}

static int zc_endpoint_mmap(struct file *file, struct vm_area_struct *vma)
{
	return zc_mailbox_mmap(file->private_data, vma);
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
	.mmap = zc_endpoint_mmap,
	.release = zc_endpoint_release,
	.llseek = noop_llseek,
};
