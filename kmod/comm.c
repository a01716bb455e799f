// SPDX-License-Identifier: GPL-2.0-only
/*
 * Communicators: who belongs together, and what happens when that ends.
 *
 * The first rank that joins with a key makes the communicator. It can be found as
 * long as ranks are in it, and is freed when the last endpoint lets go of it.
 *
 * zc_comms_lock protects the list of all, and who is in which. It is the same for
 * all users, so nothing is done under it that one of them can make slow: memory,
 * threads and notifiers are made before or after.
 *
 * A communicator is revoked once, by the first failure (zc_comm_fail()): from then
 * on no operation begins, and a work item ends those in flight. Who reports a
 * failure only sets a flag.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "zcoll.h"

static uint user_comms = 512;
module_param(user_comms, uint, 0644);
MODULE_PARM_DESC(user_comms, "communicators that a user without CAP_SYS_RESOURCE may have");

/* Workers for each CPU that a user's communicators have in all, beyond one each */
#define ZC_USER_WORKERS 4

static DEFINE_MUTEX(zc_comms_lock);
static LIST_HEAD(zc_comms);
static u32 zc_ncomms;

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
	zc_engine_abort(comm->engine, error);
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

/* Under zc_comms_lock, or by who alone knows the communicator */
static void zc_comm_memory(struct zc_comm *comm, ssize_t bytes)
{
	comm->kernel_bytes += bytes;
	atomic64_add(bytes, &zc_totals.kernel_bytes);
}

static void zc_comm_free(struct zc_comm *comm)
{
	u32 i;

	for (i = 0; i < ZC_WINDOW; i++)
		zc_plan_put(comm, comm->ops[i].plan);
	zc_plans_free(comm);
	zc_comm_memory(comm, -(ssize_t)comm->kernel_bytes);
	free_cpumask_var(comm->cpus);
	kvfree(comm->engine);
	kvfree(comm->addresses);
	kvfree(comm->ranks);
	kfree(comm);
	atomic_dec(&zc_totals.comms);
}

static struct zc_comm *zc_comm_alloc(const struct zcoll_join *args, u32 node)
{
	size_t n = array_size(args->nranks, 2 * ZC_WINDOW);
	struct zc_comm *comm;
	void *room;
	u32 i;

	comm = kzalloc(sizeof(*comm), GFP_KERNEL_ACCOUNT);
	if (!comm)
		return NULL;
	comm->ranks = kvcalloc(args->nranks, sizeof(*comm->ranks), GFP_KERNEL_ACCOUNT);
	comm->addresses = kvcalloc(n, sizeof(*comm->addresses), GFP_KERNEL_ACCOUNT);
	room = kvmalloc(zc_run_size(), GFP_KERNEL_ACCOUNT);
	if (!comm->ranks || !comm->addresses || !room ||
	    !zalloc_cpumask_var(&comm->cpus, GFP_KERNEL)) {
		kvfree(room);
		kvfree(comm->addresses);
		kvfree(comm->ranks);
		kfree(comm);
		return NULL;
	}
	comm->engine = zc_run_init(room);
	for (i = 0; i < ZC_WINDOW; i++) {
		comm->ops[i].src = (const void **)comm->addresses + 2 * i * args->nranks;
		comm->ops[i].dst = comm->addresses + (2 * i + 1) * args->nranks;
	}
	memcpy(comm->key, args->key, sizeof(comm->key));
	comm->uid = current_euid();
	comm->nranks = args->nranks;
	comm->node = node;
	refcount_set(&comm->ref, 1);
	spin_lock_init(&comm->lock);
	zc_plans_init(comm);
	init_waitqueue_head(&comm->waitq);
	init_waitqueue_head(&comm->workq);
	init_waitqueue_head(&comm->pollq);
	INIT_WORK(&comm->fail_work, zc_op_fail_fn);
	INIT_DELAYED_WORK(&comm->watch_work, zc_watch_fn);
	comm->watch_at = KTIME_MAX;
	atomic_inc(&zc_totals.comms);
	zc_comm_memory(comm, sizeof(*comm) + cpumask_size() + zc_run_size() +
		       args->nranks * (sizeof(*comm->ranks) +
				       2 * ZC_WINDOW * sizeof(*comm->addresses)));
	return comm;
}

/**
 * zc_comm_put - an endpoint lets go of its communicator
 * @comm: the communicator; the endpoint's worker has been stopped
 *
 * Context: may sleep, until the works of the communicator are done.
 */
void zc_comm_put(struct zc_comm *comm)
{
	if (!refcount_dec_and_test(&comm->ref))
		return;
	/* The watch may queue fail_work, so it goes first */
	cancel_delayed_work_sync(&comm->watch_work);
	cancel_work_sync(&comm->fail_work);
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
		zc_text_add(why, "rank %u: rank %u has left the communicator already",
			    args->rank, comm->first_left);
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

/* May the caller make one more? Under zc_comms_lock. */
static bool zc_comm_allowed(struct zc_text *why)
{
	struct zc_comm *comm;
	u32 own = 0;

	if (zc_ncomms >= ZC_MAX_COMMS) {
		zc_text_add(why, "there are %u communicators, the limit", ZC_MAX_COMMS);
		return false;
	}
	if (capable(CAP_SYS_RESOURCE))
		return true;
	list_for_each_entry(comm, &zc_comms, link)
		own += uid_eq(comm->uid, current_euid());
	if (own < READ_ONCE(user_comms))
		return true;
	zc_text_add(why, "this user has %u communicators, the limit (module parameter user_comms)",
		    own);
	return false;
}

/*
 * The communicator that @args name, with a reference, or @spare if there is none;
 * under zc_comms_lock. Return: NULL if there is neither.
 */
static struct zc_comm *zc_comm_get(const struct zcoll_join *args, u32 node,
				   struct zc_comm *spare, struct zc_text *why)
{
	struct zc_comm *comm = zc_comm_find(args->key);
	int err;

	if (comm) {
		err = zc_comm_admits(comm, args, node, why);
		if (err)
			return ERR_PTR(err);
		refcount_inc(&comm->ref);
		return comm;
	}
	if (!zc_comm_allowed(why))
		return ERR_PTR(-ENOSPC);
	if (spare) {
		list_add(&spare->link, &zc_comms);
		zc_ncomms++;
	}
	return spare;
}

/*
 * Does a communicator want a worker from the current process? One for each CPU its
 * ranks may use is enough; and a user with many communicators does not get them
 * all. Under zc_comms_lock.
 */
static bool zc_comm_wants_worker(struct zc_comm *comm)
{
	u32 mine = atomic_read(&comm->nworkers), user = 0;
	struct zc_comm *other;

	cpumask_or(comm->cpus, comm->cpus, current->cpus_ptr);
	if (mine >= cpumask_weight(comm->cpus))
		return false;
	list_for_each_entry(other, &zc_comms, link)
		if (uid_eq(other->uid, comm->uid))
			user += atomic_read(&other->nworkers);
	if (mine && user >= ZC_USER_WORKERS * num_online_cpus())
		return false;
	atomic_inc(&comm->nworkers);
	return true;
}

static void zc_comm_insert(struct zc_comm *comm, struct zc_rank *rank)
{
	rank->comm = comm;
	rank->worker_wanted = zc_comm_wants_worker(comm);
	comm->nmembers++;
	zc_comm_memory(comm, sizeof(*rank));
	spin_lock(&comm->lock);
	comm->ranks[array_index_nospec(rank->rank, comm->nranks)] = rank;
	comm->njoined++;
	spin_unlock(&comm->lock);
}

static void zc_comm_remove(struct zc_comm *comm, struct zc_rank *rank)
{
	spin_lock(&comm->lock);
	comm->ranks[rank->rank] = NULL;
	spin_unlock(&comm->lock);
	zc_comm_memory(comm, -(ssize_t)sizeof(*rank));
	if (!--comm->nmembers) {
		list_del(&comm->link);
		zc_ncomms--;
	}
}

/**
 * zc_comm_enter - put an endpoint into the communicator that @args name
 * @rank: the endpoint
 * @args: checked
 * @node: the node number of all ranks
 * @why: gets the text of a failure
 *
 * Other ranks see the endpoint from here on. Memory is allocated with the lock
 * dropped: it is charged to the caller, who may be slow to get it.
 *
 * Return: 0, or a negative errno.
 */
int zc_comm_enter(struct zc_rank *rank, const struct zcoll_join *args, u32 node,
		  struct zc_text *why)
{
	struct zc_comm *comm, *spare = NULL;

	mutex_lock(&zc_comms_lock);
	comm = zc_comm_get(args, node, NULL, why);
	if (!comm) {
		mutex_unlock(&zc_comms_lock);
		spare = zc_comm_alloc(args, node);
		if (!spare) {
			zc_text_add(why, "no kernel memory for a communicator of %u ranks",
				    args->nranks);
			return -ENOMEM;
		}
		mutex_lock(&zc_comms_lock);
		comm = zc_comm_get(args, node, spare, why);
	}
	if (!IS_ERR(comm))
		zc_comm_insert(comm, rank);
	mutex_unlock(&zc_comms_lock);
	if (spare && comm != spare)
		zc_comm_free(spare);
	if (IS_ERR(comm))
		return PTR_ERR(comm);
	wake_up_all(&comm->pollq);
	return 0;
}

/**
 * zc_comm_exit - take an endpoint out of its communicator
 * @rank: the endpoint; it has left, and no submission of it is in flight
 *
 * Nobody finds the endpoint any more. Its reference to the communicator stays.
 */
void zc_comm_exit(struct zc_rank *rank)
{
	mutex_lock(&zc_comms_lock);
	zc_comm_remove(rank->comm, rank);
	mutex_unlock(&zc_comms_lock);
}

/**
 * zc_comm_unenter - undo zc_comm_enter(), as if the rank had never joined
 * @rank: the endpoint; it has called no operation
 */
void zc_comm_unenter(struct zc_rank *rank)
{
	struct zc_comm *comm = rank->comm;

	mutex_lock(&zc_comms_lock);
	spin_lock(&comm->lock);
	comm->njoined--;
	spin_unlock(&comm->lock);
	zc_comm_remove(comm, rank);
	if (rank->worker_wanted)
		atomic_dec(&comm->nworkers);
	mutex_unlock(&zc_comms_lock);
	rank->comm = NULL;
	zc_comm_put(comm);
}
