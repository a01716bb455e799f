// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A run from begin to end: the nodes are set up, events are taken one by one, and what
 * must be true at the end is looked at.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"
#include "world.h"

const struct sim_job *world_job(const struct sim_world *world, u64 seq)
{
	return &world->scene->jobs[seq % world->scene->njobs];
}

/* What must never happen has happened; only the first is told */
void world_wrong(struct sim_world *world, u32 node, const char *fmt, ...)
{
	char *to = world->outcome->wrong;
	size_t room = sizeof(world->outcome->wrong), len;
	va_list ap;

	if (*to)
		return;
	len = snprintf(to, room, "at %llu ns, event %llu, node %u: ",
		       (unsigned long long)(world->now / SIM_PS),
		       (unsigned long long)world->outcome->events, node);
	va_start(ap, fmt);
	vsnprintf(to + len, room - len, fmt, ap);
	va_end(ap);
}

void world_at(struct sim_world *world, u64 time, u32 kind, u32 node, struct sim_task *task)
{
	if (task)
		task->refs++;
	if (queue_add(&world->queue, time, kind, node, task))
		world->error = -ENOMEM;
}

struct sim_task *task_new(struct sim_world *world, u32 node, const struct zc_action *action)
{
	struct sim_task *task = world->spare;

	if (task) {
		world->spare = task->next;
	} else {
		task = malloc(sizeof(*task));
		if (!task) {
			world->error = -ENOMEM;
			return NULL;
		}
	}
	task->action = *action;
	task->node = node;
	task->refs = 1;
	task->failed = false;
	task->late = false;
	task->payload = NULL;
	return task;
}

void task_put(struct sim_world *world, struct sim_task *task)
{
	if (--task->refs)
		return;
	free(task->payload);
	task->next = world->spare;
	world->spare = task;
}

/* ---- the nodes ---- */

/* Other nodes that each node has to do with, the most in any of the plans */
struct peers {
	u32 *seen;
	u32 mark;
};

static u32 count_peers(struct peers *peers, const struct zcoll_plan *plan, u32 v)
{
	u32 count = 0, s, t;
	struct zc_turn turn;

	peers->mark++;
	for (s = 0; s < plan->nsteps; s++) {
		const struct zcoll_step *step = &plan->steps[s];

		if (step->peer == ZCOLL_PEER_NONE || !zc_step_active(plan, step, v))
			continue;
		for (t = 0; t < step->repeat; t++) {
			if (zc_step_turn(plan, step, v, t, &turn) || turn.peer == ZC_NONE)
				continue;
			count += peers->seen[turn.peer] != peers->mark;
			peers->seen[turn.peer] = peers->mark;
			if ((step->peer == ZCOLL_PEER_ADD || step->peer == ZCOLL_PEER_TO) &&
			    !step->dist_step)
				break;
		}
	}
	return count;
}

/* Every node takes every number as the root turns, and different plans have other peers */
static bool all_links(const struct sim_scene *scene)
{
	u32 i;

	for (i = 0; i < scene->njobs; i++)
		if (scene->jobs[i].turn_root || scene->jobs[i].flags & ZC_OP_AGREED)
			return true;
	return scene->njobs > 1;
}

static u32 open_bits(const struct zcoll_plan *plan)
{
	u32 bits = 0, s;

	for (s = 0; s < plan->nsteps; s++)
		if (plan->steps[s].flags & ZCOLL_STEP_OPEN)
			bits += (plan->steps[s].repeat + 63) / 64 * 64;
	return bits;
}

static void engine_dimensions(const struct sim_scene *scene, struct zc_engine_config *config)
{
	u32 i;

	*config = (struct zc_engine_config){
		.nodes = scene->jobs[0].prog.plan->nodes,
		.window = scene->window,
		.slots = scene->slots,
		.inflight = scene->inflight,
		.silence = scene->faults.silence,
		.timeout = scene->faults.timeout,
	};
	for (i = 0; i < scene->njobs; i++) {
		const struct zcoll_plan *plan = scene->jobs[i].prog.plan;
		u32 bits = open_bits(plan);

		if (plan->nsteps > config->steps)
			config->steps = plan->nsteps;
		if (bits > config->bits)
			config->bits = bits;
	}
}

static int node_init(struct sim_world *world, u32 n, const struct zc_engine_config *config)
{
	struct sim_node *node = &world->nodes[n];
	const struct sim_faults *faults = &world->scene->faults;
	size_t size = zc_engine_size(config);
	void *room;

	if (!size)
		return -EINVAL;
	room = malloc(size);
	if (!room)
		return -ENOMEM;
	node->engine = zc_engine_init(room, config);
	node->tick = SIM_NEVER;
	node->slowness = random_chance(&world->random, faults->slow) ? faults->slowness : 1;
	return 0;
}

static int nodes_init(struct sim_world *world)
{
	const struct sim_scene *scene = world->scene;
	const struct sim_job *job = &scene->jobs[0];
	struct zc_engine_config config;
	struct peers peers = { 0 };
	int err = 0;

	engine_dimensions(scene, &config);
	world->nodes = calloc(world->nnodes, sizeof(*world->nodes));
	peers.seen = calloc(world->nnodes, sizeof(*peers.seen));
	if (!world->nodes || !peers.seen)
		err = -ENOMEM;
	for (config.node = 0; !err && config.node < config.nodes; config.node++) {
		config.links = all_links(scene) ? config.nodes - 1 :
			count_peers(&peers, job->prog.plan,
				    zc_plan_number(job->prog.plan, job->root, config.node));
		err = node_init(world, config.node, &config);
	}
	free(peers.seen);
	return err;
}

/* ---- the run ---- */

static int world_init(struct sim_world *world)
{
	const struct sim_scene *scene = world->scene;
	int err;

	world->nnodes = scene->jobs[0].prog.plan->nodes;
	world->running = world->nnodes;
	world->random = random_mix(scene->seed + 1);
	world->verdicts = calloc((size_t)scene->ops * world->nnodes, 1);
	if (!world->verdicts)
		return -ENOMEM;
	err = net_init(&world->net, &scene->model, world->nnodes);
	if (!err)
		err = nodes_init(world);
	if (!err && scene->data)
		err = memory_init(&world->memory, scene, world->nnodes);
	return err;
}

static void world_free(struct sim_world *world)
{
	struct sim_event event;
	struct sim_task *task;
	u32 n;

	while (queue_take(&world->queue, &event))
		if (event.what)
			task_put(world, event.what);
	while ((task = world->spare)) {
		world->spare = task->next;
		free(task);
	}
	for (n = 0; world->nodes && n < world->nnodes; n++)
		free(world->nodes[n].engine);
	free(world->nodes);
	free(world->verdicts);
	free(world->lasts);
	queue_free(&world->queue);
	net_free(&world->net);
	if (world->scene->data)
		memory_free(&world->memory);
}

/* What comes after so many events */
static void world_blows(struct sim_world *world)
{
	const struct sim_faults *faults = &world->scene->faults;
	u32 i;

	for (i = 0; i < faults->nblows; i++)
		if (faults->blows[i].event == world->outcome->events &&
		    faults->blows[i].node < world->nnodes)
			node_blow(world, &faults->blows[i]);
}

static void world_handle(struct sim_world *world, const struct sim_event *event)
{
	switch (event->kind) {
	case EVENT_DONE:
	case EVENT_SUBMIT:
	case EVENT_TICK:
	case EVENT_CLOSED:
		node_event(world, event);
		break;
	default:
		message_event(world, event);
	}
	if (event->what)
		task_put(world, event->what);
}

static bool world_goes_on(const struct sim_world *world)
{
	/* a fault-free network is also watched until it is silent */
	return !world->error && !world->outcome->wrong[0] &&
	       (world->running || !world->scene->faults.silence);
}

#define TELL_EVERY	65536	/* events: some hundredths of a second */

static void world_tell(const struct sim_world *world)
{
	const struct sim_scene *scene = world->scene;

	if (scene->tell && world->outcome->events % TELL_EVERY == 0)
		scene->tell(scene->told, world->outcome->events);
}

static void world_loop(struct sim_world *world)
{
	struct sim_event event;
	u32 n;

	for (n = 0; n < world->nnodes; n++)
		world_at(world, random_below(&world->random, world->scene->faults.skew + 1),
			 EVENT_SUBMIT, n, NULL);
	for (n = 0; n < world->nnodes; n++)
		world->nodes[n].submitting = true;
	while (world_goes_on(world) && queue_take(&world->queue, &event)) {
		world->now = event.time;
		if (world->scene->faults.nblows)
			world_blows(world);
		world->outcome->events++;
		world_handle(world, &event);
		world_tell(world);
		if (world->outcome->events == world->scene->most_events) {
			world_wrong(world, event.node, "there is no end: so many events");
			break;
		}
	}
}

/* ---- what must be true at the end ---- */

static void check_ended(struct sim_world *world)
{
	u32 n;

	for (n = 0; n < world->nnodes; n++)
		if (!world->nodes[n].dead && world->nodes[n].ended < world->scene->ops)
			world_wrong(world, n,
				    "hangs: %u of %u operations have ended, %u submitted",
				    world->nodes[n].ended, world->scene->ops,
				    world->nodes[n].submitted);
}

/* All survivors have the same verdict of an operation that asked for it */
static void check_agreed(struct sim_world *world, u32 seq)
{
	const u8 *verdicts = world->verdicts + (size_t)seq * world->nnodes;
	u32 n, first = ZC_NONE;

	for (n = 0; n < world->nnodes; n++) {
		if (world->nodes[n].dead)
			continue;
		if (first == ZC_NONE)
			first = n;
		else if (verdicts[n] != verdicts[first])
			world_wrong(world, n, "operation %u ended %s here, %s at node %u", seq,
				    verdicts[n] == VERDICT_GOOD ? "well" : "with an error",
				    verdicts[first] == VERDICT_GOOD ? "well" : "with an error",
				    first);
	}
}

static void world_check(struct sim_world *world)
{
	const struct sim_faults *faults = &world->scene->faults;
	u32 seq;

	check_ended(world);
	for (seq = 0; seq < world->scene->ops; seq++)
		if (world_job(world, seq)->flags & ZC_OP_AGREED)
			check_agreed(world, seq);
	if (world->outcome->bad && !faults->nblows && !faults->deadline)
		world_wrong(world, 0, "an operation failed with error %d, and there was no cause",
			    world->outcome->error);
}

/**
 * sim_run - simulate
 * @scene: what
 * @outcome: what was found
 *
 * Return: 0, also if @outcome->wrong tells of something wrong; -ENOMEM; -EINVAL:
 * the scene makes no sense to the engine.
 */
int sim_run(const struct sim_scene *scene, struct sim_outcome *outcome)
{
	struct sim_world world = { .scene = scene, .outcome = outcome };
	int err;

	memset(outcome, 0, sizeof(*outcome));
	err = world_init(&world);
	if (!err) {
		world_loop(&world);
		err = world.error;
		if (!err && !outcome->wrong[0])
			world_check(&world);
	}
	world_free(&world);
	return err;
}
