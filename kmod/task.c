// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks: units of running operations that are to be carried out on this node.
 *
 * A task is made of an action of the engine (zc_task_begin()), waits in a queue for who
 * carries it out (work.c), and ends when all its chunks are done (zc_task_end()): then the
 * engine is told, or what it has put together is sent. Its operation stays until then.
 *
 * All tasks of a communicator are made with it. While none is free the engine is not asked
 * for more work (run.c), so beginning one does not fail.
 */
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>

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
	task->nchunks = DIV_ROUND_UP_ULL(task->elements, task->op->chunk);
	atomic64_set(&task->next, 0);
	return task;
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
