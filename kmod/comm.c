// SPDX-License-Identifier: GPL-2.0-only
/*
 * Communicators: who belongs together, and what happens when that ends.
 *
 * The first rank that joins with a key makes the communicator, the last endpoint
 * to be closed frees it. zc_comms_lock protects the list of all, and joining and
 * leaving; zc_comm.lock what operations see of it.
 *
 * A communicator is revoked once, by the first failure (zc_comm_fail()): from then
 * on no operation begins, and a work item ends those in flight. Who reports a
 * failure may hold any lock but zc_comm.lock's superiors: only a flag is set.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>

#include "zcoll.h"

static DEFINE_MUTEX(zc_comms_lock);
static LIST_HEAD(zc_comms);

/**
 * zc_comm_fail - revoke a communicator; only the first time counts
 * @comm: the communicator, locked
 * @error: negative errno that its operations end with
 * @text: why
 */
void zc_comm_fail(struct zc_comm *comm, int error, const struct zc_text *text)
{
	lockdep_assert_held(&comm->lock);
	if (comm->error)
		return;
	memcpy(comm->text, text->buf, sizeof(comm->text));
	WRITE_ONCE(comm->error, error);
	queue_work(zc_wq, &comm->fail_work);
}

void zc_comm_failf(struct zc_comm *comm, int error, const char *fmt, ...)
{
	struct zc_text text = {};
	va_list args;

	va_start(args, fmt);
	vscnprintf(text.buf, sizeof(text.buf), fmt, args);
	va_end(args);
	zc_comm_fail(comm, error, &text);
}

/*
 * The address space ends: exit, kill or exec. Called while it is torn down, and by
 * mmu_notifier_unregister().
 */
static void zc_rank_died(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct zc_rank *rank = container_of(notifier, struct zc_rank, notifier);
	struct zc_comm *comm = rank->comm;

	spin_lock(&comm->lock);
	if (!rank->left) {
		rank->left = true;
		comm->nleft++;
		zc_comm_failf(comm, -EOWNERDEAD,
			      "the process of rank %u ended (exit, kill or exec) without leaving",
			      rank->rank);
	}
	spin_unlock(&comm->lock);
}

static const struct mmu_notifier_ops zc_rank_notifier_ops = {
	.release = zc_rank_died,
};

static void zc_comm_memory(struct zc_comm *comm, ssize_t bytes)
{
	comm->kernel_bytes += bytes;
	atomic64_add(bytes, &zc_totals.kernel_bytes);
}

static void zc_comm_free(struct zc_comm *comm)
{
	zc_comm_memory(comm, -(ssize_t)comm->kernel_bytes);
	free_cpumask_var(comm->cpus);
	kvfree(comm->addresses);
	kvfree(comm->ranks);
	kfree(comm);
	atomic_dec(&zc_totals.comms);
}

static struct zc_comm *zc_comm_alloc(const struct zcoll_join *args, u32 node)
{
	size_t n = array_size(args->nranks, 2 * ZC_WINDOW);
	struct zc_comm *comm;
	u32 i;

	comm = kzalloc(sizeof(*comm), GFP_KERNEL_ACCOUNT);
	if (!comm)
		return NULL;
	comm->ranks = kvcalloc(args->nranks, sizeof(*comm->ranks), GFP_KERNEL_ACCOUNT);
	comm->addresses = kvcalloc(n, sizeof(*comm->addresses), GFP_KERNEL_ACCOUNT);
	if (!comm->ranks || !comm->addresses || !zalloc_cpumask_var(&comm->cpus, GFP_KERNEL)) {
		kvfree(comm->addresses);
		kvfree(comm->ranks);
		kfree(comm);
		return NULL;
	}
	for (i = 0; i < ZC_WINDOW; i++) {
		comm->ops[i].src = (const void **)comm->addresses + 2 * i * args->nranks;
		comm->ops[i].dst = comm->addresses + (2 * i + 1) * args->nranks;
	}
	memcpy(comm->key, args->key, sizeof(comm->key));
	comm->uid = current_euid();
	comm->nranks = args->nranks;
	comm->node = node;
	spin_lock_init(&comm->lock);
	init_waitqueue_head(&comm->waitq);
	init_waitqueue_head(&comm->workq);
	INIT_LIST_HEAD(&comm->workers);
	INIT_WORK(&comm->fail_work, zc_op_fail_fn);
	INIT_DELAYED_WORK(&comm->watch_work, zc_watch_fn);
	comm->watch_at = KTIME_MAX;
	atomic_inc(&zc_totals.comms);
	zc_comm_memory(comm, sizeof(*comm) + cpumask_size() +
		       args->nranks * (sizeof(*comm->ranks) +
				       2 * ZC_WINDOW * sizeof(*comm->addresses)));
	return comm;
}

/* The last endpoint is gone; under zc_comms_lock */
static void zc_comm_destroy(struct zc_comm *comm)
{
	list_del(&comm->link);
	/* The watch may queue fail_work, so it goes first */
	cancel_delayed_work_sync(&comm->watch_work);
	cancel_work_sync(&comm->fail_work);
	zc_workers_stop(comm);
	zc_comm_free(comm);
}

/* May the caller join, as this rank? Under zc_comms_lock. */
static int zc_comm_admits(struct zc_comm *comm, const struct zcoll_join *args, u32 node,
			  struct zc_text *why)
{
	int err = 0;

	if (!uid_eq(comm->uid, current_euid()) && !capable(CAP_SYS_ADMIN)) {
		zc_text_add(why, "rank %u: the communicator belongs to another user",
			    args->rank);
		return -EPERM;
	}
	if (comm->nranks != args->nranks || comm->node != node) {
		zc_text_add(why, "rank %u: calls for %u ranks on node %u, others for %u on node %u",
			    args->rank, args->nranks, node, comm->nranks, comm->node);
		return -EPROTO;
	}
	spin_lock(&comm->lock);
	if (comm->error) {
		zc_text_add(why, "%s", comm->text);
		err = comm->error;
	} else if (comm->ranks[args->rank]) {
		zc_text_add(why, "rank %u has joined already", args->rank);
		err = -EBUSY;
	} else if (comm->nleft) {
		zc_text_add(why, "rank %u: %u ranks have left the communicator already",
			    args->rank, comm->nleft);
		err = -ESHUTDOWN;
	}
	spin_unlock(&comm->lock);
	return err;
}

static struct zc_comm *zc_comm_find(const u8 *key)
{
	struct zc_comm *comm;

	list_for_each_entry(comm, &zc_comms, link)
		if (!memcmp(comm->key, key, sizeof(comm->key)))
			return comm;
	return NULL;
}

/* The communicator that @args name, made if need be; under zc_comms_lock */
static struct zc_comm *zc_comm_get(const struct zcoll_join *args, u32 node,
				   struct zc_text *why)
{
	struct zc_comm *comm = zc_comm_find(args->key);
	int err;

	if (comm) {
		err = zc_comm_admits(comm, args, node, why);
		return err ? ERR_PTR(err) : comm;
	}
	if (atomic_read(&zc_totals.comms) >= ZC_MAX_COMMS) {
		zc_text_add(why, "there are %d communicators, the limit", ZC_MAX_COMMS);
		return ERR_PTR(-ENOSPC);
	}
	comm = zc_comm_alloc(args, node);
	if (!comm) {
		zc_text_add(why, "no kernel memory for a communicator of %u ranks",
			    args->nranks);
		return ERR_PTR(-ENOMEM);
	}
	list_add(&comm->link, &zc_comms);
	return comm;
}

static struct zc_rank *zc_rank_alloc(const struct zcoll_join *args)
{
	struct zc_rank *rank;

	rank = kvzalloc(sizeof(*rank), GFP_KERNEL_ACCOUNT);
	if (!rank)
		return NULL;
	rank->rank = args->rank;
	rank->deadline_ns = args->deadline_ns;
	rank->mm = current->mm;
	rank->notifier.ops = &zc_rank_notifier_ops;
	xa_init_flags(&rank->bufs, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	return rank;
}

static void zc_rank_publish(struct zc_comm *comm, struct zc_rank *rank)
{
	spin_lock(&comm->lock);
	comm->ranks[rank->rank] = rank;
	comm->njoined++;
	spin_unlock(&comm->lock);
	comm->nendpoints++;
	zc_comm_memory(comm, sizeof(*rank));
	atomic_inc(&zc_totals.ranks);
	wake_up_all(&comm->waitq);
}

/* Give an endpoint a communicator, a worker and a notifier; under zc_comms_lock */
static int zc_rank_join(struct zc_rank *rank, const struct zcoll_join *args, u32 node,
			struct zc_text *why)
{
	struct zc_comm *comm;
	int err;

	comm = zc_comm_get(args, node, why);
	if (IS_ERR(comm))
		return PTR_ERR(comm);
	err = zc_worker_add(comm);
	if (err) {
		zc_text_add(why, "rank %u: no kernel thread for it", rank->rank);
		goto out_comm;
	}
	rank->comm = comm;
	err = mmu_notifier_register(&rank->notifier, rank->mm);
	if (err) {
		rank->comm = NULL;
		zc_text_add(why, "rank %u: no kernel memory to watch its process", rank->rank);
		goto out_comm;
	}
	zc_rank_publish(comm, rank);
	return 0;

out_comm:
	/* A worker more than needed does no harm to a communicator that stays */
	if (!comm->nendpoints)
		zc_comm_destroy(comm);
	return err;
}

/* All ranks must be on one node. Return: 0, or a negative errno. */
static int zc_join_node(const struct zcoll_join *args, u32 *node, struct zc_text *why)
{
	u32 __user *map = u64_to_user_ptr(args->node_map);
	u32 i, other;

	*node = 0;
	if (!args->node_map)
		return 0;
	if (get_user(*node, map)) {
		zc_text_add(why, "rank %u: node map cannot be read", args->rank);
		return -EFAULT;
	}
	for (i = 1; i < args->nranks; i++) {
		if (get_user(other, map + i)) {
			zc_text_add(why, "rank %u: node map cannot be read", args->rank);
			return -EFAULT;
		}
		if (other != *node) {
			zc_text_add(why, "rank 0 is on node %u, rank %u on node %u: this module does one node only",
				    *node, i, other);
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

static int zc_join_check(const struct zcoll_join *args, struct zc_text *why)
{
	if (args->flags || args->__reserved) {
		zc_text_add(why, "unknown flags, or reserved field not zero");
		return -EINVAL;
	}
	if (!args->nranks || args->nranks > ZCOLL_MAX_RANKS) {
		zc_text_add(why, "%u ranks, allowed are 1 to %u", args->nranks, ZCOLL_MAX_RANKS);
		return -EINVAL;
	}
	if (args->rank >= args->nranks) {
		zc_text_add(why, "rank %u of %u", args->rank, args->nranks);
		return -EINVAL;
	}
	if (args->deadline_ns > ZCOLL_MAX_DEADLINE_NS) {
		zc_text_add(why, "rank %u: deadline of %llu ns, allowed are %llu", args->rank,
			    args->deadline_ns, ZCOLL_MAX_DEADLINE_NS);
		return -EINVAL;
	}
	return 0;
}

/**
 * zc_comm_join - make the caller a rank
 * @args: checked for size only
 * @why: gets the text of a failure
 *
 * Return: a new file descriptor, or a negative errno.
 */
int zc_comm_join(const struct zcoll_join *args, struct zc_text *why)
{
	struct zc_rank *rank;
	struct file *file;
	u32 node;
	int err, fd;

	err = zc_join_check(args, why);
	if (!err)
		err = zc_join_node(args, &node, why);
	if (err)
		return err;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		zc_text_add(why, "rank %u: no file descriptor left", args->rank);
		return fd;
	}
	err = -ENOMEM;
	rank = zc_rank_alloc(args);
	if (!rank) {
		zc_text_add(why, "rank %u: no kernel memory for an endpoint", args->rank);
		goto out_fd;
	}
	/* First the file, so that a rank that others can see is never taken back */
	file = anon_inode_getfile("[zcoll]", &zc_endpoint_fops, rank, O_RDWR);
	if (IS_ERR(file)) {
		zc_text_add(why, "rank %u: no kernel memory for a file", args->rank);
		err = PTR_ERR(file);
		zc_rank_free(rank);
		goto out_fd;
	}
	mutex_lock(&zc_comms_lock);
	err = zc_rank_join(rank, args, node, why);
	mutex_unlock(&zc_comms_lock);
	if (err) {
		fput(file);
		goto out_fd;
	}
	fd_install(fd, file);
	return fd;

out_fd:
	put_unused_fd(fd);
	return err;
}

static bool zc_rank_quiet(struct zc_rank *rank)
{
	bool quiet;

	spin_lock(&rank->comm->lock);
	quiet = !rank->inflight;
	spin_unlock(&rank->comm->lock);
	return quiet;
}

static void zc_rank_drop_buffers(struct zc_rank *rank)
{
	struct zc_buf *buf;
	unsigned long handle;

	xa_for_each(&rank->bufs, handle, buf)
		if (xa_erase(&rank->bufs, handle))
			zc_rank_forget_buffer(rank, buf);
}

/* An operation waits for this rank, or this rank waits for others */
static bool zc_rank_needed(struct zc_rank *rank)
{
	struct zc_comm *comm = rank->comm;
	u32 i;

	for (i = 0; i < ZC_WINDOW; i++)
		if (comm->ops[i].state == ZC_OP_WAITING)
			return true;
	return rank->inflight;
}

/**
 * zc_rank_leave - a rank takes no further part
 * @rank: the endpoint
 *
 * If operations are in flight the communicator is revoked, so that they end
 * quickly: a holder looks between two pieces.
 */
void zc_rank_leave(struct zc_rank *rank)
{
	struct zc_comm *comm = rank->comm;

	spin_lock(&comm->lock);
	if (!rank->left) {
		rank->left = true;
		comm->nleft++;
		if (zc_rank_needed(rank))
			zc_comm_failf(comm, -ESHUTDOWN,
				      "rank %u left with operations in flight, the oldest %llu",
				      rank->rank, comm->base);
	}
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

	err = wait_event_interruptible(rank->comm->waitq, zc_rank_quiet(rank));
	if (!err)
		zc_rank_drop_buffers(rank);
	return err;
}

/* The rank is in no communicator any more: nobody finds it */
static void zc_rank_unpublish(struct zc_rank *rank)
{
	struct zc_comm *comm = rank->comm;

	mutex_lock(&zc_comms_lock);
	spin_lock(&comm->lock);
	comm->ranks[rank->rank] = NULL;
	spin_unlock(&comm->lock);
	zc_comm_memory(comm, -(ssize_t)sizeof(*rank));
	atomic_dec(&zc_totals.ranks);
	if (!--comm->nendpoints)
		zc_comm_destroy(comm);
	mutex_unlock(&zc_comms_lock);
}

/**
 * zc_rank_free - end an endpoint whose file is gone
 * @rank: the endpoint; it may not have joined
 *
 * Waits for submissions in flight, without signals: they are about to end.
 */
void zc_rank_free(struct zc_rank *rank)
{
	if (rank->comm) {
		zc_rank_leave(rank);
		wait_event(rank->comm->waitq, zc_rank_quiet(rank));
		mmu_notifier_unregister(&rank->notifier, rank->mm);
		zc_rank_drop_buffers(rank);
		zc_rank_unpublish(rank);
	}
	xa_destroy(&rank->bufs);
	kvfree(rank);
}
