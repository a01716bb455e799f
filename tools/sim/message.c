// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Messages, from the post to the receiver's engine:
 *
 *	post      the sender's CPU works for o
 *	TRANSMIT  the message goes out; here it may be lost, to be sent again
 *	HOP       its head is at a link, and waits until that is free
 *	SENT      its last byte has left the sender's memory
 *	ARRIVE    its last byte is in the receiver's memory, if that is still open
 *	RECEIVED  the receiver's CPU has worked for o, and its engine is told
 *	ACKED     with faults: the sender knows, also that the receiver is lost
 *
 * What carries no elements (grants and the like) is a message of one byte.
 */
#include <stdlib.h>

#include "trace.h"
#include "world.h"

static u64 message_elements(const struct zc_action *action)
{
	return (action->npieces > 0 ? action->piece[0].count : 0) +
	       (action->npieces > 1 ? action->piece[1].count : 0);
}

/* ---- order: over one rail, messages arrive in the order in which they were sent ---- */

static struct sim_last *last_find(struct sim_last *lasts, u64 mask, u64 key)
{
	u64 at = random_mix(key) & mask;

	while (lasts[at].key && lasts[at].key != key)
		at = (at + 1) & mask;
	return &lasts[at];
}

static bool lasts_grow(struct sim_world *world)
{
	u64 mask = world->lasts_mask ? 2 * world->lasts_mask + 1 : 255, i;
	struct sim_last *lasts = calloc(mask + 1, sizeof(*lasts));

	if (!lasts) {
		world->error = -ENOMEM;
		return false;
	}
	for (i = 0; world->lasts && i <= world->lasts_mask; i++)
		if (world->lasts[i].key)
			*last_find(lasts, mask, world->lasts[i].key) = world->lasts[i];
	free(world->lasts);
	world->lasts = lasts;
	world->lasts_mask = mask;
	return true;
}

/* When a message arrives that would arrive at @time if it were alone */
static u64 in_order(struct sim_world *world, u32 from, u32 to, u64 time)
{
	u64 key = (u64)from << 32 | (to + 1);
	struct sim_last *last;

	if (world->scene->faults.rails > 1 || !world->scene->faults.acked)
		return time;
	if (2 * world->lasts_used >= world->lasts_mask && !lasts_grow(world))
		return time;
	last = last_find(world->lasts, world->lasts_mask, key);
	world->lasts_used += !last->key;
	last->key = key;
	if (last->time > time)
		time = last->time;
	last->time = time;
	return time;
}

/* ---- on the way ---- */

/* The head has passed all links up to one, where it is at @head */
static void message_go_on(struct sim_world *world, struct sim_task *task, u64 head)
{
	struct sim_route *route = &task->route;

	while (net_next(&world->net, route, &head)) {
		if (head > world->now) {
			world_at(world, head, EVENT_HOP, route->to, task);
			return;
		}
		head = net_pass(&world->net, route, task->bytes, head);
	}
	head += net_length(task->bytes, route->slowest) + node_jitter(world);
	world_at(world, in_order(world, route->from, route->to, head), EVENT_ARRIVE, route->to,
		 task);
}

static void message_transmit(struct sim_world *world, struct sim_task *task, u64 at)
{
	const struct sim_model *model = &world->scene->model;

	net_depart(&world->net, &task->route, task->node, task->action.peer,
		   task->action.type != ZC_DO_SEND);
	if (model->contention == SIM_CONTENTION_NIC) {
		net_next(&world->net, &task->route, &at);
		at = net_pass(&world->net, &task->route, task->bytes, at);
	}
	if (task->action.type == ZC_DO_SEND)
		world_at(world, task->bytes <= model->inlined ? at :
			 at + net_length(task->bytes, model->per_byte), EVENT_SENT, task->node,
			 task);
	message_go_on(world, task, at);
}

/* Elements are now in the receiver's memory: all, or before the rest was lost, some */
static void message_land(struct sim_world *world, struct sim_task *task, bool whole)
{
	const struct zc_action *action = &task->action;
	const struct sim_node *to = &world->nodes[action->peer];
	const char *wrong;

	if (to->dead || to->closed || !task->payload)
		return;
	if (action->msg.seq >= zc_engine_retired(to->engine) + world->scene->window)
		wrong = "elements land where there is no room for them yet";
	else
		wrong = memory_land(&world->memory, action->peer, action, task->payload, whole);
	if (wrong)
		world_wrong(world, action->peer, "operation %llu, step %u, unit %llu: %s",
			    (unsigned long long)action->msg.seq, action->msg.step,
			    (unsigned long long)action->msg.unit, wrong);
}

/* Read what is sent from the sender's memory, as it is now */
static void message_read(struct sim_world *world, struct sim_task *task)
{
	u64 elements = message_elements(&task->action);

	if (!world->scene->data || task->action.type != ZC_DO_SEND || !elements)
		return;
	if (!task->payload)
		task->payload = malloc(elements * sizeof(*task->payload));
	if (task->payload)
		memory_read(&world->memory, task->node, &task->action, task->payload);
	else
		world->error = -ENOMEM;
}

/* Is the message lost on its way? Part of it may have landed. */
static bool message_is_lost(struct sim_world *world, struct sim_task *task)
{
	const struct sim_faults *faults = &world->scene->faults;

	if (!random_chance(&world->random, faults->drop))
		return false;
	world->outcome->resent++;
	world_at(world, world->now + faults->retry, EVENT_TRANSMIT, task->node, task);
	message_read(world, task);
	message_land(world, task, false);
	return true;
}

static void on_transmit(struct sim_world *world, struct sim_task *task)
{
	const struct sim_node *node = &world->nodes[task->node];

	if (node->dead)
		return;
	if (task->action.type == ZC_DO_SEND && node->closed) {
		/* flushed: it will not be sent again */
		world_at(world, world->now, EVENT_ACKED, task->node, task);
		return;
	}
	if (!message_is_lost(world, task))
		message_transmit(world, task, world->now);
}

void message_post(struct sim_world *world, u32 n, const struct zc_action *action)
{
	const struct sim_scene *scene = world->scene;
	struct sim_task *task = task_new(world, n, action);
	u64 begin, posted = node_cpu(world, n, scene->model.overhead, &begin);
	u64 bytes;

	if (!task)
		return;
	posted += node_jitter(world);
	if (action->type == ZC_DO_SEND) {
		bytes = message_elements(action) * world_job(world, action->seq)->element;
		task->bytes = bytes ? bytes : 1;
		world->outcome->messages++;
		world->outcome->bytes += bytes;
	} else {
		task->bytes = 1;
		world->outcome->controls++;
	}
	task->flow = world->flows++;
	if (scene->trace)
		trace_post(scene->trace, n, action, task->flow, begin, posted);
	if (scene->faults.acked || net_has_links(&world->net))
		world_at(world, posted, EVENT_TRANSMIT, n, task);
	else
		message_transmit(world, task, posted);
	task_put(world, task);
}

/* ---- at both ends ---- */

static void on_sent(struct sim_world *world, struct sim_task *task)
{
	if (world->nodes[task->node].dead) {
		task->failed = true;
		return;
	}
	message_read(world, task);
	if (world->scene->faults.acked)
		return;
	node_answer(world, task);
	node_run(world, task->node);
}

/* When the sender knows that a message has arrived. What says so may be lost, too. */
static u64 message_acked(struct sim_world *world)
{
	const struct sim_faults *faults = &world->scene->faults;
	u64 time = world->now + world->scene->model.latency + node_jitter(world);

	while (random_chance(&world->random, faults->drop)) {
		world->outcome->resent++;
		time += faults->retry;
	}
	return time;
}

static void on_arrive(struct sim_world *world, struct sim_task *task)
{
	const struct sim_scene *scene = world->scene;
	const struct sim_faults *faults = &scene->faults;
	u32 to = task->action.peer;
	bool send = task->action.type == ZC_DO_SEND, dead = world->nodes[to].dead;
	u64 begin, seen;

	if (task->failed)
		return;
	if (faults->acked && (send || dead))
		world_at(world, message_acked(world) + (dead ? 4 * faults->retry : 0),
			 EVENT_ACKED, task->node, task);
	if (dead || (send && world->nodes[to].closed))
		return;
	message_land(world, task, true);
	seen = node_cpu(world, to, scene->model.overhead, &begin) + node_jitter(world);
	if (scene->trace)
		trace_receive(scene->trace, to, &task->action, task->node, task->flow, begin,
			      seen);
	world_at(world, seen, EVENT_RECEIVED, to, task);
	if (random_chance(&world->random, faults->duplicate))
		world_at(world, seen + random_below(&world->random, 4 * faults->retry + 1),
			 EVENT_RECEIVED, to, task);
}

static void on_received(struct sim_world *world, struct sim_task *task)
{
	struct sim_node *node = &world->nodes[task->action.peer];

	if (node->dead || (node->closed && task->action.type == ZC_DO_SEND))
		return;
	if (task->action.type == ZC_DO_SEND)
		world->outcome->time = world->now;
	zc_engine_message(node->engine, task->node, &task->action.msg);
	node_run(world, task->action.peer);
}

static void on_acked(struct sim_world *world, struct sim_task *task)
{
	struct sim_node *node = &world->nodes[task->node];

	if (node->dead)
		return;
	if (task->payload && !memory_still(&world->memory, task->node, &task->action,
					   task->payload))
		world_wrong(world, task->node,
			    "operation %llu, step %u, unit %llu: what is sent changes before it "
			    "is acknowledged", (unsigned long long)task->action.seq,
			    task->action.step, (unsigned long long)task->action.unit);
	if (world->nodes[task->action.peer].dead)
		zc_engine_lost(node->engine, task->action.peer);
	else if (world->nodes[task->action.peer].closed)
		zc_engine_abort(node->engine, -ECONNRESET);
	if (task->action.type == ZC_DO_SEND)
		node_answer(world, task);
	node_run(world, task->node);
}

void message_event(struct sim_world *world, const struct sim_event *event)
{
	struct sim_task *task = event->what;

	switch (event->kind) {
	case EVENT_TRANSMIT:
		on_transmit(world, task);
		break;
	case EVENT_SENT:
		on_sent(world, task);
		break;
	case EVENT_HOP:
		message_go_on(world, task, net_pass(&world->net, &task->route, task->bytes,
						    world->now));
		break;
	case EVENT_ARRIVE:
		on_arrive(world, task);
		break;
	case EVENT_RECEIVED:
		on_received(world, task);
		break;
	case EVENT_ACKED:
		on_acked(world, task);
		break;
	}
}
