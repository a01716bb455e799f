// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endpoints: how a process becomes a rank, and how that ends.
 *
 *   make    notifier and file are made; nobody sees the endpoint
 *   enter   it is in its communicator (comm.c), and gives it a thread
 *   leave   by ioctl, by the end of its address space, or by release of the file:
 *           no new calls; if others count on it the communicator is revoked
 *   settle  no submission of it is in flight any more; its memory is given back,
 *           its thread ends
 *   free    after release of the file, in a work item, for it may have to wait
 *
 * The address space is watched by an mmu notifier, the one thing that tells of its
 * end in every case. It only sets flags: it is called while the address space is
 * torn down.
 */
#include <linux/anon_inodes.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "net/net.h"

static struct kmem_cache *zc_rank_cache;

static bool zc_rank_quiet(struct zc_rank *rank)
{
	bool quiet;

	spin_lock(&rank->comm->lock);
	quiet = !rank->inflight;
	spin_unlock(&rank->comm->lock);
	return quiet;
}

/* The table takes no more; what is in it is given back */
static void zc_rank_drop_buffers(struct zc_rank *rank)
{
	struct zc_buf *buf;
	unsigned long handle;

	xa_lock(&rank->bufs);
	rank->bufs_closed = true;
	xa_unlock(&rank->bufs);
	xa_for_each(&rank->bufs, handle, buf) {
		buf = xa_erase(&rank->bufs, handle);
		if (buf)
			zc_rank_forget_buffer(rank, buf);
	}
	zc_cache_close(&rank->cache);
}

/* The rank takes no further part; under zc_comm.lock */
static void zc_rank_leaves(struct zc_rank *rank)
{
	lockdep_assert_held(&rank->comm->lock);
	rank->left = true;
	if (!rank->comm->nleft++)
		rank->comm->first_left = rank->rank;
	if (rank->rank < ZCOLL_MAILBOX_RANKS)
		rank->comm->gone |= BIT_ULL(rank->rank);
	zc_mailbox_tell(rank->comm);
}

/*
 * After a rank has left, or its process has died: its memory and its worker go at
 * once, also if somebody still holds the file.
 */
static void zc_rank_left_fn(struct work_struct *work)
{
	struct zc_rank *rank = container_of(work, struct zc_rank, left_work);

	wait_event_idle(rank->comm->pollq, zc_rank_quiet(rank));
	zc_rank_drop_buffers(rank);
	zc_worker_stop(rank);
}

/* Is the task's process on its way out, or about to be replaced by exec? */
bool zc_process_ends(struct task_struct *task)
{
	struct signal_struct *signal = task->signal;

	return (READ_ONCE(signal->flags) & SIGNAL_GROUP_EXIT) ||
	       READ_ONCE(signal->group_exec_task);
}

/* The address space ends: exit, kill or exec; or mmu_notifier_unregister() */
static void zc_rank_died(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct zc_rank *rank = container_of(notifier, struct zc_rank, notifier);
	struct zc_comm *comm = rank->comm;
	struct zc_text text = {};

	if (!comm)
		return;
	spin_lock(&comm->lock);
	if (!rank->left) {
		zc_rank_leaves(rank);
		zc_text_add(&text, "the process of ");
		zc_text_add_who(&text, comm, rank->rank);
		zc_text_add(&text, " ended (exit, kill or exec) without leaving");
		zc_comm_fail(comm, -EOWNERDEAD, &text);
	}
	queue_work(zc_free_wq, &rank->left_work);
	spin_unlock(&comm->lock);
}

static const struct mmu_notifier_ops zc_rank_notifier_ops = {
	.release = zc_rank_died,
};

/* What is there of it, in reverse. No communicator any more, or not yet. */
static void zc_rank_destroy(struct zc_rank *rank)
{
	if (rank->mm)
		mmu_notifier_unregister(&rank->notifier, rank->mm);
	if (rank->comm)
		cancel_work_sync(&rank->left_work);
	zc_rank_drop_buffers(rank);
	zc_worker_stop(rank);
	if (rank->comm)
		zc_comm_put(rank->comm);
	zc_cache_destroy(&rank->cache);
	put_pid(rank->pid);
	kmem_cache_free(zc_rank_cache, rank);
	atomic_dec(&zc_totals.ranks);
}

static void zc_rank_free_fn(struct work_struct *work)
{
	struct zc_rank *rank = container_of(work, struct zc_rank, free_work);

	if (rank->comm && !rank->exited) {
		wait_event_idle(rank->comm->pollq, zc_rank_quiet(rank));
		zc_comm_exit(rank);
	}
	zc_rank_destroy(rank);
}

/**
 * zc_rank_release - the endpoint's file is gone
 * @rank: the endpoint; it may not have entered a communicator
 *
 * What needs no waiting is done here, so that its place and its memory are free
 * when close() returns: the rule, since who closes has seen its verdicts.
 */
void zc_rank_release(struct zc_rank *rank)
{
	if (rank->comm) {
		zc_rank_leave(rank);
		if (zc_rank_quiet(rank)) {
			zc_rank_drop_buffers(rank);
			zc_comm_exit(rank);
			rank->exited = true;
		}
	}
	queue_work(zc_free_wq, &rank->free_work);
}

/* Make an endpoint for the current process */
static struct zc_rank *zc_rank_make(const struct zc_joiner *joiner, struct zc_text *why)
{
	const struct zcoll_join *args = joiner->args;
	struct zc_rank *rank;
	int err;

	rank = kmem_cache_zalloc(zc_rank_cache, GFP_KERNEL_ACCOUNT);
	if (!rank) {
		zc_text_add(why, "rank %u: no kernel memory for an endpoint", args->rank);
		return ERR_PTR(-ENOMEM);
	}
	atomic_inc(&zc_totals.ranks);
	rank->rank = args->rank;
	rank->local = zc_layout_local(&joiner->layout, args->rank);
	rank->aggregates = !joiner->layout.nlocal;
	rank->deadline_ns = args->deadline_ns;
	rank->pid = get_pid(task_tgid(current));
	rank->notifier.ops = &zc_rank_notifier_ops;
	INIT_LIST_HEAD(&rank->waiters);
	INIT_WORK(&rank->left_work, zc_rank_left_fn);
	INIT_WORK(&rank->free_work, zc_rank_free_fn);
	xa_init_flags(&rank->bufs, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	zc_cache_init(&rank->cache, current->mm);

	err = mmu_notifier_register(&rank->notifier, current->mm);
	if (err) {
		zc_text_add(why, "rank %u: its address space cannot be watched", args->rank);
		zc_rank_destroy(rank);
		/* Interrupted: nothing has been done, so it can be done again */
		return ERR_PTR(err == -EINTR ? -ERESTARTNOINTR : err);
	}
	rank->mm = current->mm;
	return rank;
}

static int zc_join_check(const struct zcoll_join *args, struct zc_text *why)
{
	bool aggregates = args->flags & ZCOLL_JOIN_AGGREGATE;
	u32 most = args->nodes > 1 ? ZCOLL_MAX_SIZE : ZCOLL_MAX_RANKS;

	if ((args->flags & ~ZCOLL_JOIN_AGGREGATE) || args->__reserved || args->__reserved2) {
		zc_text_add(why, "unknown flags, or reserved field not zero");
		return -EINVAL;
	}
	if (args->nodes > ZCOLL_MAX_NODES || (args->nodes > 1 && !args->node_map)) {
		zc_text_add(why, "%u nodes, allowed are %u, and several need a node map",
			    args->nodes, ZCOLL_MAX_NODES);
		return -EINVAL;
	}
	if (!args->nranks || args->nranks > most) {
		zc_text_add(why, "%u ranks, allowed are 1 to %u on a node, %u in all",
			    args->nranks, ZCOLL_MAX_RANKS, ZCOLL_MAX_SIZE);
		return -EINVAL;
	}
	if (aggregates ? args->rank : args->rank >= args->nranks) {
		zc_text_add(why, "rank %u of %u, or of a node that has none", args->rank,
			    args->nranks);
		return -EINVAL;
	}
	if (args->node && !aggregates) {
		zc_text_add(why, "rank %u: its node is told by the map, not by field node",
			    args->rank);
		return -EINVAL;
	}
	if (args->deadline_ns > ZCOLL_MAX_DEADLINE_NS) {
		zc_text_add(why, "rank %u: deadline of %llu ns, allowed are %llu", args->rank,
			    args->deadline_ns, ZCOLL_MAX_DEADLINE_NS);
		return -EINVAL;
	}
	return 0;
}

/* What the nodes are to be connected by; RDMA if nothing is said */
static int zc_join_fabric(struct zc_joiner *joiner, struct zc_text *why)
{
	const struct zcoll_join *args = joiner->args;
	u32 i;

	if (!args->fabric && !args->fabric_len) {
		strscpy(joiner->fabric, "rdma", sizeof(joiner->fabric));
		return 0;
	}
	if (!args->fabric || !args->fabric_len || args->fabric_len >= sizeof(joiner->fabric)) {
		zc_text_add(why, "rank %u: a fabric has 1 to %zu bytes, not %u", args->rank,
			    sizeof(joiner->fabric) - 1, args->fabric_len);
		return -EINVAL;
	}
	if (copy_from_user(joiner->fabric, u64_to_user_ptr(args->fabric), args->fabric_len)) {
		zc_text_add(why, "rank %u: fabric cannot be read", args->rank);
		return -EFAULT;
	}
	for (i = 0; i < args->fabric_len; i++) {
		if (isascii(joiner->fabric[i]) && isgraph(joiner->fabric[i]))
			continue;
		zc_text_add(why, "rank %u: byte %u of the fabric is not printable", args->rank, i);
		return -EINVAL;
	}
	return 0;
}

/* Make an endpoint and its file, and let it enter; the file is the caller's */
static struct file *zc_rank_join(struct zc_joiner *joiner, struct zc_text *why)
{
	const u32 number = joiner->args->rank;
	struct zc_rank *rank;
	struct file *file;
	int err;

	rank = zc_rank_make(joiner, why);
	if (IS_ERR(rank))
		return ERR_CAST(rank);
	file = anon_inode_getfile("[zcoll]", &zc_endpoint_fops, rank, O_RDWR);
	if (IS_ERR(file)) {
		zc_text_add(why, "rank %u: no kernel memory for a file", number);
		zc_rank_destroy(rank);
		return file;
	}
	/* The file owns the endpoint from here on */
	err = zc_comm_enter(rank, joiner, why);
	if (err)
		goto out_file;
	err = rank->worker_wanted ? zc_worker_start(rank) : 0;
	if (err) {
		zc_text_add(why, "rank %u: no kernel thread for it", number);
		zc_comm_unenter(rank);
		goto out_file;
	}
	return file;

out_file:
	fput(file);
	return ERR_PTR(err);
}

/* With layout and fabric read. Return: as zc_join() */
static int zc_join_as(struct zc_joiner *joiner, struct zc_text *why)
{
	struct file *file;
	int fd;

	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		zc_text_add(why, "rank %u: no file descriptor left", joiner->args->rank);
		return fd;
	}
	file = zc_rank_join(joiner, why);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	fd_install(fd, file);
	return fd;
}

/**
 * zc_join - make the caller a rank
 * @args: copied from the caller
 * @why: gets the text of a failure
 *
 * Return: a new file descriptor, or a negative errno.
 */
int zc_join(const struct zcoll_join *args, struct zc_text *why)
{
	struct zc_joiner joiner = { .args = args };
	int ret;

	ret = zc_join_check(args, why);
	if (!ret)
		ret = zc_join_fabric(&joiner, why);
	if (!ret)
		ret = zc_layout_read(&joiner.layout, args, why);
	if (!ret)
		ret = zc_join_as(&joiner, why);
	/* What no new communicator has taken */
	zc_layout_free(&joiner.layout);
	return ret;
}

/**
 * zc_rank_admits - may the owner of an endpoint still set something up?
 * @rank: the endpoint
 * @why: gets the text of a failure
 *
 * Return: 0, or a negative errno.
 */
int zc_rank_admits(struct zc_rank *rank, struct zc_text *why)
{
	struct zc_comm *comm = rank->comm;
	int err = 0;

	spin_lock(&comm->lock);
	if (comm->error) {
		zc_text_add(why, "the communicator has been revoked: %s", comm->text);
		err = comm->error;
	} else if (rank->left) {
		zc_text_add(why, "it has left the communicator");
		err = -ESHUTDOWN;
	}
	spin_unlock(&comm->lock);
	return err;
}

/* An operation waits for this rank, or this rank waits for others */
static bool zc_rank_needed(struct zc_rank *rank)
{
	struct zc_comm *comm = rank->comm;
	u32 i;

	for (i = 0; i < ZC_WINDOW; i++)
		if (comm->ops[i].state == ZC_OP_WAITING ||
		    (rank->aggregates && zc_op_in_flight(&comm->ops[i])))
			return true;
	return rank->inflight;
}

/* Under zc_comm.lock */
static void zc_rank_leaves_early(struct zc_rank *rank)
{
	struct zc_comm *comm = rank->comm;
	struct zc_text text = {};

	zc_text_add_who(&text, comm, rank->rank);
	zc_text_add(&text, " left with operations in flight, the oldest %llu", comm->base);
	zc_comm_fail(comm, -ESHUTDOWN, &text);
}

/**
 * zc_rank_leave - a rank takes no further part
 * @rank: the endpoint
 *
 * If operations are in flight the communicator is revoked, so that they end
 * quickly: a holder looks between two pieces. If not, other nodes are told that this one
 * calls nothing more.
 */
void zc_rank_leave(struct zc_rank *rank)
{
	struct zc_comm *comm = rank->comm;
	bool last_call = false;

	spin_lock(&comm->lock);
	if (!rank->left) {
		last_call = comm->net && !comm->nleft && !comm->error;
		zc_rank_leaves(rank);
		if (zc_rank_needed(rank))
			zc_rank_leaves_early(rank);
	}
	/* Before other ranks of this node can fail, which would be told in its place */
	if (last_call && !comm->error)
		zc_net_leave(comm->net);
	spin_unlock(&comm->lock);
}

/**
 * zc_rank_settle - wait until no submission of a rank that has left is in flight
 * @rank: the endpoint
 *
 * Its buffers are given back then.
 *
 * Return: 0, or -ERESTARTSYS: call again.
 */
int zc_rank_settle(struct zc_rank *rank)
{
	int err;

	err = wait_event_interruptible(rank->comm->pollq, zc_rank_quiet(rank));
	if (err)
		return err;
	zc_rank_drop_buffers(rank);
	queue_work(zc_free_wq, &rank->left_work);
	return 0;
}

int __init zc_rank_init(void)
{
	zc_rank_cache = kmem_cache_create("zcoll_rank", sizeof(struct zc_rank), 0,
					  SLAB_ACCOUNT, NULL);
	return zc_rank_cache ? 0 : -ENOMEM;
}

void zc_rank_uninit(void)
{
	kmem_cache_destroy(zc_rank_cache);
}
