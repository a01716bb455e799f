// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Nodes: what an engine's host does.
 *
 * Work costs the node's CPU time: folding gamma for each byte that was received, and
 * for each byte of each local input after the first. Copying costs nothing. With
 * contention, the CPU does one thing after another, in the order of the requests.
 */
#include "trace.h"
#include "world.h"

/* The CPU works for so long, from @begin on. Return: when it is through. */
u64 node_cpu(struct sim_world *world, u32 n, u64 time, u64 *begin)
{
	struct sim_node *node = &world->nodes[n];

	*begin = world->now;
	time *= node->slowness;
	if (world->scene->model.contention == SIM_CONTENTION_NONE)
		return *begin + time;
	if (node->cpu > *begin)
		*begin = node->cpu;
	node->cpu = *begin + time;
	return node->cpu;
}

/* How much longer something takes this time */
u64 node_jitter(struct sim_world *world)
{
	u64 jitter = world->scene->faults.jitter;

	return jitter ? random_below(&world->random, jitter + 1) : 0;
}

static u64 action_elements(const struct zc_action *action)
{
	return (action->npieces > 0 ? action->piece[0].count : 0) +
	       (action->npieces > 1 ? action->piece[1].count : 0);
}

static u64 work_time(const struct sim_world *world, const struct zc_action *action)
{
	u64 each = world->scene->model.per_byte_folded *
		   world_job(world, action->seq)->element * action_elements(action);
	u64 local = each * (world->scene->ranks - 1);

	if (action->type == ZC_DO_GATHER)
		return local;
	if (action->type != ZC_DO_FOLD)
		return action->row->flags & ZCOLL_STEP_FIRST ? local : 0;
	if (action->row->flags & ZCOLL_STEP_STORE)
		return 0;
	return each + (action->row->flags & ZCOLL_STEP_FIRST ? local : 0);
}

/* The engine learns that an action is done */
void node_answer(struct sim_world *world, struct sim_task *task)
{
	const struct zc_action *action = &task->action;

	if (world->nodes[task->node].dead)
		return;
	if (action->type != ZC_DO_SEND)
		world->outcome->time = world->now;
	zc_engine_done(world->nodes[task->node].engine, action->seq, action->step, action->unit);
}

/* Buffers change either when the work begins or when it ends: both must be right */
static void node_works(struct sim_world *world, u32 n, const struct zc_action *action)
{
	u64 begin, end = node_cpu(world, n, work_time(world, action), &begin);
	struct sim_task *task = task_new(world, n, action);

	if (!task)
		return;
	end += node_jitter(world);
	if (world->scene->trace && end > begin)
		trace_work(world->scene->trace, n, action, begin, end);
	task->late = world->scene->data && random_next(&world->random) & 1;
	if (world->scene->data && !task->late)
		memory_apply(&world->memory, n, action);
	if (end > world->now) {
		world_at(world, end, EVENT_DONE, n, task);
	} else {
		if (task->late)
			memory_apply(&world->memory, n, action);
		if (world->scene->data)
			memory_used(&world->memory, n, action);
		node_answer(world, task);
	}
	task_put(world, task);
}

/* ---- operations ---- */

static u8 *node_verdict(struct sim_world *world, u32 n, u64 seq)
{
	return &world->verdicts[seq * world->nnodes + n];
}

static void node_verdict_is(struct sim_world *world, u32 n, u64 seq, s32 status)
{
	struct sim_outcome *outcome = world->outcome;
	*node_verdict(world, n, seq) = status ? VERDICT_BAD : VERDICT_GOOD;
	world->outcome->complete = world->now;
	if (status) {
		outcome->bad++;
		if (!outcome->error) {
			outcome->error = status;
			outcome->error_node = n;
			outcome->error_seq = seq;
		}
	} else {
		outcome->good++;
	}
	if (++world->nodes[n].ended == world->scene->ops)
		world->running--;
}

static void node_complete(struct sim_world *world, u32 n, const struct zc_action *action)
{
	const char *wrong = NULL;

	if (*node_verdict(world, n, action->seq) != VERDICT_NONE)
		world_wrong(world, n, "operation %llu ends twice",
			    (unsigned long long)action->seq);
	node_verdict_is(world, n, action->seq, action->status);
	if (world->scene->data)
		wrong = memory_end(&world->memory, n, action->seq, action->status);
	if (wrong)
		world_wrong(world, n, "operation %llu: %s", (unsigned long long)action->seq,
			    wrong);
	if (world->scene->trace)
		trace_mark(world->scene->trace, n, action->status ? "failed" : "complete",
			   action->seq, world->now);
}

static void node_tick(struct sim_world *world, u32 n)
{
	struct sim_node *node = &world->nodes[n];
	u64 next = zc_engine_tick(node->engine, world->now / SIM_PS);

	if (next == U64_MAX)
		return;
	next *= SIM_PS;
	if (next <= world->now)
		next = world->now + SIM_PS;
	if (next < node->tick || node->tick <= world->now) {
		node->tick = next;
		world_at(world, next, EVENT_TICK, n, NULL);
	}
}

static bool node_is_watched(const struct sim_world *world)
{
	return world->scene->faults.silence || world->scene->faults.deadline;
}

static void node_submit(struct sim_world *world, u32 n)
{
	const struct sim_scene *scene = world->scene;
	struct sim_node *node = &world->nodes[n];
	u64 seq = node->submitted++;
	const struct sim_job *job = world_job(world, seq);
	struct zc_op_desc desc = {
		.seq = seq,
		.prog = &job->prog,
		.root = job->root,
		.flags = job->flags,
		.fingerprint = random_mix(seq + 1),
		.geo = job->geo,
		.slice = job->slice,
		.eager = job->eager,
		.reserve = job->reserve,
	};
	int err;

	if (job->turn_root)
		desc.root = (job->root + seq) % job->prog.plan->members;
	if (scene->faults.deadline)
		desc.deadline = world->now / SIM_PS + scene->faults.deadline;
	err = zc_engine_submit(node->engine, &desc);
	if (!err) {
		if (scene->data)
			memory_begin(&world->memory, n, seq);
		if (node_is_watched(world))
			node_tick(world, n);
		return;
	}
	if (err != zc_engine_error(node->engine))
		world_wrong(world, n, "operation %llu is refused with error %d",
			    (unsigned long long)seq, err);
	node_verdict_is(world, n, seq, err);
}

/* The next operation, as soon as the window has room for it */
static void node_may_submit(struct sim_world *world, u32 n)
{
	struct sim_node *node = &world->nodes[n];
	u64 skew = world->scene->faults.skew;

	if (node->submitting || node->submitted == world->scene->ops)
		return;
	if (node->submitted >= zc_engine_retired(node->engine) + world->scene->window &&
	    !zc_engine_error(node->engine))
		return;
	node->submitting = true;
	world_at(world, world->now + random_below(&world->random, skew + 1), EVENT_SUBMIT, n,
		 NULL);
}

/* ---- actions and events ---- */

static void node_carry_out(struct sim_world *world, u32 n, const struct zc_action *action)
{
	switch (action->type) {
	case ZC_DO_SEND:
	case ZC_DO_TELL:
		message_post(world, n, action);
		break;
	case ZC_DO_CLOSE:
		world_at(world, world->now + world->scene->model.latency + node_jitter(world),
			 EVENT_CLOSED, n, NULL);
		break;
	case ZC_DO_COMPLETE:
		node_complete(world, n, action);
		break;
	case ZC_DO_AGAIN:
		break;
	default:
		node_works(world, n, action);
	}
}

/* Something has happened to a node: do what its engine wants */
void node_run(struct sim_world *world, u32 n)
{
	struct sim_node *node = &world->nodes[n];
	struct zc_action action;

	if (node->dead)
		return;
	while (!world->error && zc_engine_next(node->engine, &action))
		node_carry_out(world, n, &action);
	node_may_submit(world, n);
}

void node_event(struct sim_world *world, const struct sim_event *event)
{
	struct sim_node *node = &world->nodes[event->node];
	struct sim_task *task = event->what;

	if (node->dead)
		return;
	switch (event->kind) {
	case EVENT_DONE:
		if (task->late)
			memory_apply(&world->memory, event->node, &task->action);
		if (world->scene->data)
			memory_used(&world->memory, event->node, &task->action);
		node_answer(world, task);
		break;
	case EVENT_SUBMIT:
		node->submitting = false;
		node_submit(world, event->node);
		break;
	case EVENT_TICK:
		if (event->time != node->tick)
			return;
		node_tick(world, event->node);
		break;
	case EVENT_CLOSED:
		node->closed = true;
		zc_engine_closed(node->engine);
		break;
	}
	node_run(world, event->node);
}

void node_blow(struct sim_world *world, const struct sim_blow *blow)
{
	struct sim_node *node = &world->nodes[blow->node];

	if (node->dead)
		return;
	if (world->scene->trace)
		trace_mark(world->scene->trace, blow->node,
			   blow->kind == SIM_KILL ? "dies" : "aborts", 0, world->now);
	if (blow->kind == SIM_KILL) {
		node->dead = true;
		world->outcome->dead++;
		world->running -= node->ended < world->scene->ops;
		return;
	}
	zc_engine_abort(node->engine, -ECANCELED);
	node_run(world, blow->node);
}
