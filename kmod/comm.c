// SPDX-License-Identifier: GPL-2.0-only
/*
 * Communicators: who belongs together, and what happens when that ends.
 *
 * The first rank of a node that joins with a key makes the communicator. It can be found as
 * long as endpoints are in it, and is freed when the last one lets go of it. With a fabric
 * that reaches back into this kernel there may be others with the same key: other nodes.
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

#include "net/net.h"

static uint user_comms = 512;
module_param(user_comms, uint, 0644);
MODULE_PARM_DESC(user_comms, "communicators that a user without CAP_SYS_RESOURCE may have");

/* Workers for each CPU that a user's communicators have in all, beyond one each */
#define ZC_USER_WORKERS 4

static DEFINE_MUTEX(zc_comms_lock);
static LIST_HEAD(zc_comms);
static u32 zc_ncomms;

/* It has been revoked, and has an engine: let its operations end */
static void zc_comm_end(struct zc_comm *comm)
{
	zc_engine_abort(comm->engine, comm->error);
	queue_work(zc_wq, &comm->fail_work);
}

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
	zc_mailbox_tell(comm);
	if (comm->engine)
		zc_comm_end(comm);
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

	if (comm->net)
		zc_net_close(comm);
	for (i = 0; i < ZC_WINDOW; i++)
		zc_plan_put(comm, comm->ops[i].plan);
	zc_plans_free(comm);
	zc_mailbox_free(comm);
	zc_comm_memory(comm, -(ssize_t)comm->kernel_bytes);
	free_cpumask_var(comm->cpus);
	kvfree(comm->engine);
	zc_tasks_free(comm);
	kvfree(comm->addresses);
	kvfree(comm->memories);
	kvfree(comm->ranks);
	zc_layout_free(&comm->layout);
	kvfree(comm);
	atomic_dec(&zc_totals.comms);
}

/**
 * zc_comm_put - an endpoint, or who makes it, lets go of a communicator
 * @comm: the communicator; the endpoint's worker has been stopped
 *
 * Context: may sleep, until the works of the communicator are done.
 */
void zc_comm_put(struct zc_comm *comm)
{
	if (!refcount_dec_and_test(&comm->ref))
		return;
	/* What fails from now on concerns nobody, and queues no work */
	spin_lock(&comm->lock);
	if (!comm->error)
		comm->error = -ESHUTDOWN;
	spin_unlock(&comm->lock);
	cancel_delayed_work_sync(&comm->watch_work);
	/* Other nodes are to be told of a failure that has just been */
	flush_work(&comm->fail_work);
	zc_comm_free(comm);
}

/* Room for what goes by local index. Return: its bytes, 0: there is no memory. */
static size_t zc_comm_tables(struct zc_comm *comm)
{
	u32 n = max(comm->layout.nlocal, 1U);
	u32 i, places = n * 2 * ZC_WINDOW;
	size_t bytes;

	comm->ranks = kvcalloc(n, sizeof(*comm->ranks), GFP_KERNEL_ACCOUNT);
	comm->addresses = kvcalloc(places, sizeof(*comm->addresses), GFP_KERNEL_ACCOUNT);
	bytes = n * sizeof(*comm->ranks) + places * sizeof(*comm->addresses);
	if (comm->layout.nodes > 1) {
		comm->memories = kvcalloc(places, sizeof(*comm->memories), GFP_KERNEL_ACCOUNT);
		bytes += places * sizeof(*comm->memories);
	}
	if (!comm->ranks || !comm->addresses || (comm->layout.nodes > 1 && !comm->memories))
		return 0;
	for (i = 0; i < ZC_WINDOW; i++) {
		struct zc_op *op = &comm->ops[i];

		op->src = (const void **)comm->addresses + 2 * i * n;
		op->dst = comm->addresses + (2 * i + 1) * n;
		if (comm->layout.nodes > 1) {
			op->in = comm->memories + 2 * i * n;
			op->out = comm->memories + (2 * i + 1) * n;
		}
	}
	return bytes;
}

static void zc_comm_init(struct zc_comm *comm, struct zc_joiner *joiner)
{
	memcpy(comm->key, joiner->args->key, sizeof(comm->key));
	comm->uid = current_euid();
	swap(comm->layout, joiner->layout);
	strscpy(comm->fabric, joiner->fabric, sizeof(comm->fabric));
	refcount_set(&comm->ref, 1);
	spin_lock_init(&comm->lock);
	zc_plans_init(comm);
	init_waitqueue_head(&comm->waitq);
	init_waitqueue_head(&comm->workq);
	init_waitqueue_head(&comm->pollq);
	init_waitqueue_head(&comm->bellq);
	INIT_WORK(&comm->fail_work, zc_op_fail_fn);
	INIT_DELAYED_WORK(&comm->watch_work, zc_watch_fn);
	comm->watch_at = KTIME_MAX;
}

/* Its dimensions are those of the network. Return: its bytes, 0: there is no memory. */
static size_t zc_comm_engine(struct zc_comm *comm)
{
	struct zc_engine_config config = zc_run_config(comm);
	size_t bytes = zc_engine_size(&config);
	struct zc_engine *engine = kvmalloc(bytes, GFP_KERNEL_ACCOUNT);

	if (!engine)
		return 0;
	engine = zc_engine_init(engine, &config);
	spin_lock(&comm->lock);
	comm->engine = engine;
	/* The network may have lost its device already */
	if (comm->error)
		zc_comm_end(comm);
	spin_unlock(&comm->lock);
	return bytes;
}

/* Everything that a communicator has, but for the network's own */
static int zc_comm_fill(struct zc_comm *comm, struct zc_text *why)
{
	size_t tables = zc_comm_tables(comm), engine;
	int err;

	if (!tables || zc_tasks_init(comm))
		goto no_memory;
	if (comm->layout.nodes > 1) {
		err = zc_net_open(comm, comm->fabric, why);
		if (err)
			return err;
	}
	engine = zc_comm_engine(comm);
	if (!engine)
		goto no_memory;
	zc_comm_memory(comm, sizeof(*comm) + cpumask_size() + zc_layout_size(&comm->layout) +
		       tables + engine + zc_tasks_size(comm));
	return 0;

no_memory:
	zc_text_add(why, "no kernel memory for a communicator of %u ranks", comm->layout.nranks);
	return -ENOMEM;
}

/* Make a communicator, which takes over the joiner's layout, or an ERR_PTR */
static struct zc_comm *zc_comm_alloc(struct zc_joiner *joiner, struct zc_text *why)
{
	struct zc_comm *comm;
	int err;

	comm = kvzalloc(sizeof(*comm), GFP_KERNEL_ACCOUNT);
	if (!comm || !zalloc_cpumask_var(&comm->cpus, GFP_KERNEL)) {
		kvfree(comm);
		zc_text_add(why, "no kernel memory for a communicator of %u ranks",
			    joiner->args->nranks);
		return ERR_PTR(-ENOMEM);
	}
	atomic_inc(&zc_totals.comms);
	zc_comm_init(comm, joiner);
	err = zc_comm_fill(comm, why);
	if (!err)
		return comm;
	zc_comm_put(comm);
	return ERR_PTR(err);
}

/* The first rank that two maps have on different nodes; @n: none */
static u32 zc_map_difference(const u32 *a, const u32 *b, u32 n)
{
	u32 i = 0;

	if (!memcmp(a, b, n * sizeof(*a)))
		return n;
	while (a[i] == b[i])
		i++;
	return i;
}

/* Do they speak of the same communicator? Under zc_comms_lock. */
static int zc_comm_agrees(const struct zc_layout *ours, const struct zc_layout *theirs, u32 rank,
			  struct zc_text *why)
{
	u32 i;

	if (ours->nodes == 1 && theirs->nodes == 1) {
		if (ours->nranks == theirs->nranks && ours->number == theirs->number)
			return 0;
		zc_text_add(why, "rank %u: calls for %u ranks on node %u, others for %u on node %u",
			    rank, theirs->nranks, theirs->number, ours->nranks, ours->number);
		return -EPROTO;
	}
	if (ours->nranks != theirs->nranks || ours->nodes != theirs->nodes) {
		zc_text_add(why, "rank %u: calls for %u ranks on %u nodes, others for %u on %u",
			    rank, theirs->nranks, theirs->nodes, ours->nranks, ours->nodes);
		return -EPROTO;
	}
	i = zc_map_difference(ours->map, theirs->map, ours->nranks);
	if (i == ours->nranks)
		return 0;
	zc_text_add(why, "rank %u: has rank %u on node %u, others have it on node %u", rank, i,
		    theirs->map[i], ours->map[i]);
	return -EPROTO;
}

/* Other nodes may have other devices, but ranks of one share it. Under zc_comms_lock. */
static int zc_comm_connects(const struct zc_comm *comm, const struct zc_joiner *joiner,
			    struct zc_text *why)
{
	if (comm->layout.nodes == 1 || !strcmp(comm->fabric, joiner->fabric))
		return 0;
	zc_text_add(why, "rank %u: names fabric %.90s, others on node %u name %.90s",
		    joiner->args->rank, joiner->fabric, comm->layout.node, comm->fabric);
	return -EPROTO;
}

/* May the caller join, as this rank? Under zc_comms_lock. */
static int zc_comm_admits(struct zc_comm *comm, u32 rank, struct zc_text *why)
{
	u32 local = zc_layout_local(&comm->layout, rank);
	int err = 0;

	spin_lock(&comm->lock);
	if (comm->error) {
		zc_text_add(why, "%s", comm->text);
		err = comm->error;
	} else if (comm->layout.nlocal ? comm->ranks[local] : comm->aggregator) {
		zc_text_add_who(why, comm, rank);
		zc_text_add(why, " has joined already");
		err = -EBUSY;
	} else if (comm->nleft) {
		zc_text_add_who(why, comm, rank);
		zc_text_add(why, ": ");
		zc_text_add_who(why, comm, comm->first_left);
		zc_text_add(why, " has left the communicator already");
		err = -ESHUTDOWN;
	}
	spin_unlock(&comm->lock);
	return err;
}

/*
 * The communicator of the caller's node, NULL: there is none. Those of other nodes with the
 * same key must agree with the caller, too. Under zc_comms_lock.
 */
static struct zc_comm *zc_comm_find(const struct zcoll_join *args,
				    const struct zc_layout *layout, struct zc_text *why)
{
	struct zc_comm *comm, *found = NULL;
	int err;

	list_for_each_entry(comm, &zc_comms, link) {
		if (memcmp(comm->key, args->key, sizeof(comm->key)))
			continue;
		if (!uid_eq(comm->uid, current_euid()) && !capable(CAP_SYS_ADMIN)) {
			zc_text_add(why, "rank %u: the communicator belongs to another user",
				    args->rank);
			return ERR_PTR(-EPERM);
		}
		err = zc_comm_agrees(&comm->layout, layout, args->rank, why);
		if (err)
			return ERR_PTR(err);
		if (comm->layout.node == layout->node)
			found = comm;
	}
	return found;
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
 * The communicator that @joiner names, with a reference, or @spare, which has the layout,
 * if there is none; under zc_comms_lock. Return: NULL if there is neither.
 */
static struct zc_comm *zc_comm_get(const struct zc_joiner *joiner,
				   const struct zc_layout *layout, struct zc_comm *spare,
				   struct zc_text *why)
{
	struct zc_comm *comm;
	int err;

	comm = zc_comm_find(joiner->args, layout, why);
	if (IS_ERR(comm))
		return comm;
	if (comm) {
		err = zc_comm_connects(comm, joiner, why) ?:
		      zc_comm_admits(comm, joiner->args->rank, why);
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

/* The place of an endpoint in its communicator; under zc_comm.lock */
static struct zc_rank **zc_comm_place(struct zc_comm *comm, const struct zc_rank *rank)
{
	if (rank->aggregates)
		return &comm->aggregator;
	return &comm->ranks[array_index_nospec(rank->local, comm->layout.nlocal)];
}

static void zc_comm_insert(struct zc_comm *comm, struct zc_rank *rank)
{
	rank->comm = comm;
	rank->worker_wanted = zc_comm_wants_worker(comm);
	comm->nmembers++;
	zc_comm_memory(comm, sizeof(*rank));
	spin_lock(&comm->lock);
	*zc_comm_place(comm, rank) = rank;
	comm->njoined += !rank->aggregates;
	spin_unlock(&comm->lock);
}

static void zc_comm_remove(struct zc_comm *comm, struct zc_rank *rank)
{
	spin_lock(&comm->lock);
	*zc_comm_place(comm, rank) = NULL;
	spin_unlock(&comm->lock);
	zc_comm_memory(comm, -(ssize_t)sizeof(*rank));
	if (!--comm->nmembers) {
		list_del(&comm->link);
		zc_ncomms--;
	}
}

/**
 * zc_comm_enter - put an endpoint into the communicator that it names
 * @rank: the endpoint
 * @joiner: what it says; a new communicator takes over the layout
 * @why: gets the text of a failure
 *
 * Other ranks see the endpoint from here on. Memory is allocated and the network opened
 * with the lock dropped: the former is charged to the caller, who may be slow to get it.
 *
 * Return: 0, or a negative errno.
 */
int zc_comm_enter(struct zc_rank *rank, struct zc_joiner *joiner, struct zc_text *why)
{
	struct zc_comm *comm, *spare = NULL;

	mutex_lock(&zc_comms_lock);
	comm = zc_comm_get(joiner, &joiner->layout, NULL, why);
	if (!comm) {
		mutex_unlock(&zc_comms_lock);
		spare = zc_comm_alloc(joiner, why);
		if (IS_ERR(spare))
			return PTR_ERR(spare);
		mutex_lock(&zc_comms_lock);
		comm = zc_comm_get(joiner, &spare->layout, spare, why);
	}
	if (!IS_ERR(comm))
		zc_comm_insert(comm, rank);
	mutex_unlock(&zc_comms_lock);
	if (spare && comm != spare)
		zc_comm_put(spare);
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
	comm->njoined -= !rank->aggregates;
	spin_unlock(&comm->lock);
	zc_comm_remove(comm, rank);
	if (rank->worker_wanted)
		atomic_dec(&comm->nworkers);
	mutex_unlock(&zc_comms_lock);
	rank->comm = NULL;
	zc_comm_put(comm);
}
