// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plans: loaded by ranks, checked once, named by operations.
 *
 * The bytes are copied once, and only the copy is looked at. engine/plan_valid.c and
 * engine/plan_check.c decide; what has passed is never written again. Plans that are
 * equal byte by byte are one, which counts how often it was loaded. With the last
 * load its number goes, and with the last operation that follows it its memory.
 *
 * Where a collective has a root, that decides which number this node has in the plan. At load
 * a plan is checked for root 0, and for others when an operation first names them.
 *
 * Number 0 is the collective's built-in plan for one node. It is not counted, so that
 * operations of all communicators do not meet at its counter.
 */
#include <linux/bitmap.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "zcoll.h"

/* What takes more memory is checked one at a time, whoever calls */
#define ZC_PLAN_LARGE SZ_1M

static DEFINE_MUTEX(zc_plan_large);

#define ZC_PLAN_MAX_BYTES \
	(sizeof(struct zcoll_plan) + ZCOLL_PLAN_MAX_STEPS * sizeof(struct zcoll_step))

static struct zc_plan *zc_plans_local[ZCOLL_NR_COLLECTIVES] __ro_after_init;

static void zc_plan_reason(struct zc_text *text, const struct zc_plan_why *why)
{
	if (why->node != ZC_NONE)
		zc_text_add(text, "node %u: ", why->node);
	if (why->step != ZC_NONE)
		zc_text_add(text, "step %u: ", why->step);
	if (why->turn != ZC_NONE)
		zc_text_add(text, "turn %u: ", why->turn);
	if (why->segment != ZC_NONE)
		zc_text_add(text, "segment or place %u: ", why->segment);
	zc_text_add(text, "%s", why->what);
	if (why->other_step != ZC_NONE)
		zc_text_add(text, ", by step %u, turn %u", why->other_step, why->other_turn);
}

/* The caller's bytes, once */
static struct zcoll_plan *zc_plan_copy(const struct zcoll_plan_load *args,
				       struct zc_text *why)
{
	struct zcoll_plan *image;

	if (args->bytes < sizeof(*image)) {
		zc_text_add(why, "%u bytes are less than the header of a plan, %zu",
			    args->bytes, sizeof(*image));
		return ERR_PTR(-EINVAL);
	}
	if (args->bytes > ZC_PLAN_MAX_BYTES) {
		zc_text_add(why, "%u bytes are more than a plan has at most, %zu",
			    args->bytes, ZC_PLAN_MAX_BYTES);
		return ERR_PTR(-E2BIG);
	}
	image = kvmalloc(args->bytes, GFP_KERNEL_ACCOUNT);
	if (!image) {
		zc_text_add(why, "no kernel memory for a plan of %u bytes", args->bytes);
		return ERR_PTR(-ENOMEM);
	}
	if (copy_from_user(image, u64_to_user_ptr(args->plan), args->bytes)) {
		kvfree(image);
		zc_text_add(why, "the plan cannot be read");
		return ERR_PTR(-EFAULT);
	}
	return image;
}

static int zc_plan_check_in(const struct zcoll_plan *image, u32 node, size_t bytes,
			    struct zc_text *text)
{
	struct zc_plan_why why;
	void *room;
	int err;

	room = kvmalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!room) {
		zc_text_add(text, "no kernel memory to check it in, %zu bytes", bytes);
		return -ENOMEM;
	}
	err = zc_plan_check(image, node, room, &why);
	if (err)
		zc_plan_reason(text, &why);
	kvfree(room);
	return err;
}

static int zc_plan_check_at(const struct zcoll_plan *image, u32 node, struct zc_text *text)
{
	size_t bytes = zc_plan_check_room(image);
	u64 work = zc_plan_check_work(image);
	int err;

	if (bytes > ZC_PLAN_CHECK_BYTES)
		zc_text_add(text, "checking it takes %zu bytes, and the limit is %u: ", bytes,
			    ZC_PLAN_CHECK_BYTES);
	else if (work > ZC_PLAN_CHECK_WORK)
		zc_text_add(text, "turns times steps is %llu, and the limit is %u: ", work,
			    ZC_PLAN_CHECK_WORK);
	if (bytes > ZC_PLAN_CHECK_BYTES || work > ZC_PLAN_CHECK_WORK) {
		zc_text_add(text, "fewer steps, or fewer turns, with more segments each");
		return -E2BIG;
	}
	if (bytes <= ZC_PLAN_LARGE)
		return zc_plan_check_in(image, node, bytes, text);
	err = mutex_lock_killable(&zc_plan_large);
	if (err)
		return err;
	err = zc_plan_check_in(image, node, bytes, text);
	mutex_unlock(&zc_plan_large);
	return err;
}

/* Can this module carry it out, on the communicator's nodes? */
static int zc_plan_runs_here(const struct zc_comm *comm, const struct zcoll_plan *image,
			     struct zc_text *text)
{
	if (image->nodes != comm->layout.nodes) {
		zc_text_add(text, "it is for %u nodes, the communicator has %u", image->nodes,
			    comm->layout.nodes);
		return -ENXIO;
	}
	if (image->members != comm->layout.members) {
		zc_text_add(text, "it is for %u nodes with ranks, the communicator has %u",
			    image->members, comm->layout.members);
		return -ENXIO;
	}
	/* Such a plan has nothing but a FINAL of the local inputs */
	if (comm->layout.nodes == 1 && (image->nsteps > 1 || image->segments > 1)) {
		zc_text_add(text, "on one node, only plans of one step and one segment run");
		return -EOPNOTSUPP;
	}
	if (image->nsteps > ZC_PLAN_STEPS) {
		zc_text_add(text, "%u steps, plans to run have at most %u", image->nsteps,
			    ZC_PLAN_STEPS);
		return -E2BIG;
	}
	return 0;
}

static int zc_plan_check_image(const struct zc_comm *comm, const struct zcoll_plan *image,
			       const struct zcoll_plan_load *args, struct zc_text *text)
{
	bool runs = !(args->flags & ZCOLL_PLAN_CHECK);
	struct zc_plan_why why;
	int err;

	err = zc_plan_valid(image, args->bytes, &why);
	if (err) {
		zc_plan_reason(text, &why);
		return err;
	}
	zc_text_add(text, "%s: ", image->name);
	err = runs ? zc_plan_runs_here(comm, image, text) : 0;
	if (err)
		return err;
	if (args->node >= image->nodes) {
		zc_text_add(text, "there is no node %u, it is for %u nodes", args->node,
			    image->nodes);
		return -EINVAL;
	}
	return zc_plan_check_at(image, runs ? comm->layout.node : args->node, text);
}

/* Takes over @image, also if there is no memory */
static struct zc_plan *zc_plan_make(struct zcoll_plan *image)
{
	struct zc_plan *plan;

	plan = kvmalloc(sizeof(*plan) + zc_prog_size(image), GFP_KERNEL_ACCOUNT);
	if (!plan) {
		kvfree(image);
		return NULL;
	}
	refcount_set(&plan->ref, 1);
	plan->number = 0;
	plan->loads = 1;
	plan->checked = NULL;
	zc_prog_init(&plan->prog, image, plan->room);
	return plan;
}

/* Where the root matters: remember for which numbers of this node it has been checked */
static int zc_plan_track(const struct zc_comm *comm, struct zc_plan *plan)
{
	if (comm->layout.nodes == 1 || !zc_collective_rooted(plan->prog.plan->collective))
		return 0;
	plan->checked = bitmap_zalloc(comm->layout.nodes, GFP_KERNEL_ACCOUNT);
	if (!plan->checked)
		return -ENOMEM;
	set_bit(comm->layout.node, plan->checked);
	return 0;
}

static void zc_plan_free(struct zc_plan *plan)
{
	bitmap_free(plan->checked);
	kvfree(plan->prog.plan);
	kvfree(plan);
}

static void zc_plan_memory(struct zc_comm *comm, const struct zc_plan *plan, int sign)
{
	s64 bytes = sizeof(*plan) + zc_prog_size(plan->prog.plan) + plan->prog.plan->size;

	atomic64_add(sign * bytes, &comm->plan_bytes);
	atomic64_add(sign * bytes, &zc_totals.kernel_bytes);
}

/**
 * zc_plan_get - find a plan
 * @comm: communicator
 * @number: as in struct zcoll_cmd
 * @collective: which it is wanted for; the plan of a number may be for another
 *
 * Return: the plan, for zc_plan_put(), or an ERR_PTR: -EINVAL, -ENOENT.
 */
struct zc_plan *zc_plan_get(struct zc_comm *comm, u32 number, u32 collective)
{
	struct zc_plan *plan;

	if (!number)
		return comm->layout.nodes > 1 ? ERR_PTR(-EINVAL) : zc_plans_local[collective];
	xa_lock(&comm->plans);
	plan = xa_load(&comm->plans, number);
	if (plan)
		refcount_inc(&plan->ref);
	xa_unlock(&comm->plans);
	return plan ?: ERR_PTR(-ENOENT);
}

/* Likewise, by what other nodes call it, its id; NULL: it is not loaded here */
struct zc_plan *zc_plan_get_by_id(struct zc_comm *comm, u64 id)
{
	struct zc_plan *plan, *found = NULL;
	unsigned long number;

	xa_lock(&comm->plans);
	xa_for_each(&comm->plans, number, plan) {
		if (plan->prog.plan->id != id)
			continue;
		refcount_inc(&plan->ref);
		found = plan;
		break;
	}
	xa_unlock(&comm->plans);
	return found;
}

/**
 * zc_plan_check_root - has a plan been checked for operations of this root?
 * @comm: communicator
 * @plan: plan
 * @root: a rank
 * @why: gets the text of a failure
 *
 * If not, it is done now. Two callers may both do it, with one result.
 *
 * Context: may sleep.
 * Return: 0, or a negative errno, as for loading a plan.
 */
int zc_plan_check_root(struct zc_comm *comm, struct zc_plan *plan, u32 root,
		       struct zc_text *why)
{
	const struct zcoll_plan *image = plan->prog.plan;
	size_t len = why->len;
	int err;
	u32 v;

	if (!plan->checked)
		return 0;
	v = zc_plan_number(image, comm->layout.map[root], comm->layout.node);
	if (test_bit(v, plan->checked))
		return 0;
	zc_text_add(why, "plan %s with root %u: ", image->name, root);
	err = zc_plan_check_at(image, v, why);
	if (err)
		return err;
	set_bit(v, plan->checked);
	why->len = len;
	return 0;
}

/**
 * zc_plan_put - let go of a plan
 * @comm: communicator
 * @plan: from zc_plan_get(), or NULL
 *
 * Context: may sleep; takes no locks.
 */
void zc_plan_put(struct zc_comm *comm, struct zc_plan *plan)
{
	if (!plan || !plan->number || !refcount_dec_and_test(&plan->ref))
		return;
	zc_plan_memory(comm, plan, -1);
	zc_plan_free(plan);
}

/* Under zc_comm.plans_lock */
static struct zc_plan *zc_plan_find(struct zc_comm *comm, const struct zcoll_plan *image)
{
	struct zc_plan *plan;
	unsigned long number;

	xa_for_each(&comm->plans, number, plan)
		if (plan->prog.plan->size == image->size &&
		    !memcmp(plan->prog.plan, image, image->size))
			return plan;
	return NULL;
}

/* Under zc_comm.plans_lock */
static int zc_plan_publish(struct zc_comm *comm, struct zc_plan *plan, struct zc_text *why)
{
	int err;

	if (comm->nplans >= ZCOLL_MAX_PLANS) {
		zc_text_add(why, "%u plans are loaded, the limit", comm->nplans);
		return -ENOSPC;
	}
	/* Its number must be there when others find it */
	xa_lock(&comm->plans);
	err = __xa_alloc_cyclic(&comm->plans, &plan->number, NULL, XA_LIMIT(1, INT_MAX),
				&comm->next_plan, GFP_KERNEL_ACCOUNT);
	if (err >= 0)
		__xa_store(&comm->plans, plan->number, plan, 0);
	xa_unlock(&comm->plans);
	if (err < 0) {
		zc_text_add(why, "no kernel memory");
		return err;
	}
	comm->nplans++;
	zc_plan_memory(comm, plan, 1);
	return 0;
}

/* Takes over @image */
static int zc_plan_insert(struct zc_comm *comm, struct zcoll_plan *image, u32 *number,
			  struct zc_text *why)
{
	struct zc_plan *plan, *made = zc_plan_make(image);
	int err = made ? zc_plan_track(comm, made) : -ENOMEM;

	if (err) {
		zc_text_add(why, "no kernel memory");
		if (made)
			zc_plan_free(made);
		return err;
	}
	err = mutex_lock_killable(&comm->plans_lock);
	if (err) {
		zc_plan_free(made);
		return err;
	}
	plan = zc_plan_find(comm, image);
	if (plan) {
		plan->loads++;
	} else {
		err = zc_plan_publish(comm, made, why);
		plan = made;
	}
	if (!err)
		*number = plan->number;
	mutex_unlock(&comm->plans_lock);
	if (err || plan != made)
		zc_plan_free(made);
	return err;
}

/**
 * zc_plan_load - check a plan, and keep it
 * @rank: the endpoint
 * @args: as in the ABI; @args->number is filled in
 * @why: gets the text of a failure
 *
 * Return: 0, or a negative errno.
 */
int zc_plan_load(struct zc_rank *rank, struct zcoll_plan_load *args, struct zc_text *why)
{
	bool check = args->flags & ZCOLL_PLAN_CHECK;
	struct zcoll_plan *image;
	int err;

	zc_text_add(why, "rank %u: plan: ", rank->rank);
	args->number = 0;
	if ((args->flags & ~ZCOLL_PLAN_CHECK) || (!check && args->node)) {
		zc_text_add(why, "unknown flags, or a node without ZCOLL_PLAN_CHECK");
		return -EINVAL;
	}
	if (!check) {
		err = zc_rank_admits(rank, why);
		if (err)
			return err;
	}
	image = zc_plan_copy(args, why);
	if (IS_ERR(image))
		return PTR_ERR(image);
	err = zc_plan_check_image(rank->comm, image, args, why);
	if (!err && !check)
		return zc_plan_insert(rank->comm, image, &args->number, why);
	kvfree(image);
	return err;
}

/**
 * zc_plan_unload - take a load back
 * @comm: communicator
 * @number: the plan's
 *
 * Return: 0, -ENOENT, or -EINTR: the caller has been killed.
 */
int zc_plan_unload(struct zc_comm *comm, u32 number)
{
	struct zc_plan *plan;
	int err;

	err = mutex_lock_killable(&comm->plans_lock);
	if (err)
		return err;
	plan = number ? xa_load(&comm->plans, number) : NULL;
	if (!plan) {
		mutex_unlock(&comm->plans_lock);
		return -ENOENT;
	}
	if (--plan->loads) {
		plan = NULL;
	} else {
		xa_erase(&comm->plans, number);
		comm->nplans--;
	}
	mutex_unlock(&comm->plans_lock);
	zc_plan_put(comm, plan);
	return 0;
}

void zc_plans_init(struct zc_comm *comm)
{
	xa_init_flags(&comm->plans, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	mutex_init(&comm->plans_lock);
}

/* The communicator ends: nothing follows a plan any more */
void zc_plans_free(struct zc_comm *comm)
{
	struct zc_plan *plan;
	unsigned long number;

	xa_for_each(&comm->plans, number, plan)
		zc_plan_put(comm, plan);
	xa_destroy(&comm->plans);
}

/* One step: the outputs are the local inputs, folded, or copied */
static const struct zcoll_step zc_local_step = {
	.kind = ZCOLL_STEP_FINAL,
	.flags = ZCOLL_STEP_FIRST,
	.repeat = 1,
	.every = 1,
	.stride = 1,
	.radix = 1,
	.width = 1,
	.blocks = 1,
	.count = 1,
};

static struct zc_plan *__init zc_plan_make_local(u32 collective)
{
	struct zcoll_plan *image;

	image = kvzalloc(sizeof(*image) + sizeof(zc_local_step), GFP_KERNEL);
	if (!image)
		return NULL;
	image->size = sizeof(*image) + sizeof(zc_local_step);
	image->version = ZCOLL_PLAN_VERSION;
	image->collective = collective;
	image->nodes = 1;
	image->members = 1;
	image->segments = 1;
	image->nsteps = 1;
	strscpy(image->name, "local", sizeof(image->name));
	image->steps[0] = zc_local_step;
	if (collective == ZCOLL_BARRIER) {
		/* Nothing is final of nothing */
		image->steps[0].kind = ZCOLL_STEP_GATHER;
		image->steps[0].flags = 0;
		image->steps[0].count = 0;
	}
	image->id = zc_plan_id(image);
	return zc_plan_make(image);
}

void zc_plan_uninit(void)
{
	u32 i;

	for (i = 1; i < ZCOLL_NR_COLLECTIVES; i++)
		if (zc_plans_local[i])
			zc_plan_free(zc_plans_local[i]);
}

int __init zc_plan_init(void)
{
	u32 i;

	for (i = 1; i < ZCOLL_NR_COLLECTIVES; i++) {
		zc_plans_local[i] = zc_plan_make_local(i);
		if (!zc_plans_local[i]) {
			zc_plan_uninit();
			return -ENOMEM;
		}
	}
	return 0;
}
