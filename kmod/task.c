// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks: units of running operations that are to be carried out on this node.
 *
 * A task is made of an action of the engine (zc_task_begin()), waits in a queue for who
 * carries it out (work.c), and ends when all its chunks are done (zc_task_end()): then the
 * engine is told, or what it has put together is sent. Its operation stays until then.
 *
 * A task is a row of chunks. On a machine with several NUMA nodes the row is cut into parts, and
 * who looks for a chunk begins with the parts whose output is on the node of its CPU; else there
 * is one part. Each part has a cursor: chunks are taken with an atomic increment. Which chunk is
 * done by whom does not change a result.
 *
 * All tasks of a communicator are made with it. While none is free the engine is not asked
 * for more work (run.c), so beginning one does not fail.
 */
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/numa.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "net/net.h"
#include "place.h"
#include "zcoll.h"

/* Tasks with several nodes: enough for a few steps with all units they may have begun */
#define ZC_TASKS 256

/* On one node an operation has one unit at a time (zc_run_config()) */
static u32 zc_tasks_count(const struct zc_comm *comm)
{
	return comm->layout.nodes > 1 ? ZC_TASKS : ZC_WINDOW;
}

/* Bytes of a communicator's tasks */
size_t zc_tasks_size(const struct zc_comm *comm)
{
	return zc_tasks_count(comm) * sizeof(struct zc_task);
}

/**
 * zc_tasks_init - make a communicator's tasks
 * @comm: being made; @comm->layout.nodes is set
 *
 * Return: 0 or -ENOMEM. zc_tasks_free() is allowed in both cases.
 */
int zc_tasks_init(struct zc_comm *comm)
{
	u32 i;

	INIT_LIST_HEAD(&comm->tasks);
	INIT_LIST_HEAD(&comm->free_tasks);
	comm->task_room = kvzalloc(zc_tasks_size(comm), GFP_KERNEL_ACCOUNT);
	if (!comm->task_room)
		return -ENOMEM;
	for (i = 0; i < zc_tasks_count(comm); i++)
		list_add_tail(&comm->task_room[i].link, &comm->free_tasks);
	return 0;
}

void zc_tasks_free(struct zc_comm *comm)
{
	kvfree(comm->task_room);
}

/* Are there parts? With several nodes units are a slice each, and most of them small. */
static bool zc_task_has_parts(const struct zc_comm *comm, const struct zc_task *task)
{
	return num_online_nodes() > 1 && !comm->net && task->action.type == ZC_DO_FINAL;
}

static void zc_task_divide(struct zc_comm *comm, struct zc_task *task)
{
	u64 first = 0;
	u32 i;

	task->nparts = 1;
	if (zc_task_has_parts(comm, task))
		task->nparts = clamp(task->nchunks, 1ULL, (u64)ZC_PARTS);
	for (i = 0; i < task->nparts; i++) {
		struct zc_part *part = &task->parts[i];

		atomic64_set(&part->next, first);
		part->node = NUMA_NO_NODE;
		if (task->nparts > 1)
			part->node = zc_exec_node(comm, task, first * task->op->chunk);
		first = task->nchunks * (i + 1) / task->nparts;
		part->end = first;
	}
}

/**
 * zc_task_begin - make a task of an action
 * @comm: the communicator, locked; it has a free task
 * @action: GATHER, FOLD, DELIVER, FINAL, or a SEND that is staged; copied
 *
 * Return: the task, which nobody holds and nobody finds.
 */
struct zc_task *zc_task_begin(struct zc_comm *comm, const struct zc_action *action)
{
	struct zc_task *task = list_first_entry(&comm->free_tasks, struct zc_task, link);
	u32 i;

	lockdep_assert_held(&comm->lock);
	list_del_init(&task->link);
	task->op = zc_comm_op(comm, action->seq);
	task->action = *action;
	task->box = NULL;
	if (action->type != ZC_DO_SEND && action->slot != ZC_NONE)
		task->box = zc_place_inbox(task->op, action->step, action->unit);
	task->elements = 0;
	for (i = 0; i < action->npieces; i++)
		task->elements += action->piece[i].count;
	task->nchunks = DIV64_U64_ROUND_UP(task->elements, task->op->chunk);
	zc_task_divide(comm, task);
	return task;
}

static u64 zc_part_take(struct zc_part *part)
{
	u64 chunk;

	/* Parts that are used up are looked at again and again */
	if (atomic64_read(&part->next) >= part->end)
		return ZC_NO_CHUNK;
	chunk = atomic64_fetch_inc(&part->next);
	return chunk < part->end ? chunk : ZC_NO_CHUNK;
}

/**
 * zc_task_take - take a chunk to carry it out
 * @task: a task that the caller holds
 * @local: set to whether its output is on the node of this CPU, where that matters
 *
 * Return: its number, or ZC_NO_CHUNK: there are none left.
 */
u64 zc_task_take(struct zc_task *task, bool *local)
{
	int pass, node = numa_node_id();
	struct zc_part *part;
	u64 chunk;

	for (pass = 0; pass < 2; pass++) {
		*local = !pass;
		for (part = task->parts; part < task->parts + task->nparts; part++) {
			bool near = part->node == node;

			if (near != *local)
				continue;
			chunk = zc_part_take(part);
			if (chunk != ZC_NO_CHUNK)
				return chunk;
		}
	}
	return ZC_NO_CHUNK;
}

/* Chunks of a task that nobody has taken */
u64 zc_task_left(const struct zc_task *task)
{
	u64 left = 0;
	u32 i;

	for (i = 0; i < task->nparts; i++)
		left += task->parts[i].end -
			min_t(u64, atomic64_read(&task->parts[i].next), task->parts[i].end);
	return left;
}

/* Holders may come. Under zc_comm.lock. */
void zc_task_queue(struct zc_comm *comm, struct zc_task *task)
{
	lockdep_assert_held(&comm->lock);
	list_add_tail(&task->link, &comm->tasks);
	task->queued = true;
	WRITE_ONCE(comm->ntasks, comm->ntasks + 1);
}

/* Its last chunk has been taken, or will never be. Under zc_comm.lock. */
void zc_task_unqueue(struct zc_comm *comm, struct zc_task *task)
{
	lockdep_assert_held(&comm->lock);
	if (!task->queued)
		return;
	list_del_init(&task->link);
	task->queued = false;
	WRITE_ONCE(comm->ntasks, comm->ntasks - 1);
}

/**
 * zc_task_end - a task is carried out, or will never be
 * @comm: the communicator, locked, and revoked in the latter case
 * @task: a task without holders
 */
void zc_task_end(struct zc_comm *comm, struct zc_task *task)
{
	lockdep_assert_held(&comm->lock);
	zc_task_unqueue(comm, task);
	list_add(&task->link, &comm->free_tasks);
	if (task->action.type == ZC_DO_SEND && !comm->error) {
		zc_net_send(comm->net, task->op, &task->action);
		return;
	}
	if (task->box)
		zc_place_consume(task->box);
	zc_run_done(comm, &task->action);
}

/* The communicator has been revoked: tasks that wait will not be carried out */
void zc_tasks_drop(struct zc_comm *comm)
{
	struct zc_task *task, *next;

	lockdep_assert_held(&comm->lock);
	list_for_each_entry_safe(task, next, &comm->tasks, link) {
		zc_task_unqueue(comm, task);
		/* The last holder of others ends them */
		if (!task->holders)
			zc_task_end(comm, task);
	}
}
