/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The simulator's own header: what its files share while a scene runs.
 *
 *   world.c     a run from begin to end
 *   node.c      nodes: what an engine's host does
 *   message.c   messages: from the post to the receiver's engine
 *   memory.c    what is in the nodes' buffers
 *   queue.c     what is still to happen
 *   net.c       what a message costs, and whom it waits for
 *   trace.c     what happened, for people
 */
#ifndef ZCOLL_SIM_WORLD_H
#define ZCOLL_SIM_WORLD_H

#include "memory.h"
#include "queue.h"
#include "random.h"
#include "sim.h"

enum sim_event_kind {
	EVENT_TRANSMIT,		/* a message goes out, or is sent again */
	EVENT_SENT,		/* its last byte has left */
	EVENT_HOP,		/* its head is at a link */
	EVENT_ARRIVE,		/* its last byte is in the receiver's memory */
	EVENT_RECEIVED,		/* the receiver's CPU has seen it */
	EVENT_ACKED,		/* the sender knows */
	EVENT_DONE,		/* local work is done */
	EVENT_SUBMIT,		/* an operation is submitted */
	EVENT_TICK,		/* the engine asked for it */
	EVENT_CLOSED,		/* no peer can write to this node any more */
};

/**
 * struct sim_task - work in progress: an action, and what becomes of it
 * @action: as the engine gave it
 * @node: whose it is
 * @refs: events that have it
 * @bytes: of the message, at least 1
 * @route: of the message
 * @failed: the message will not arrive: a node is dead or has closed
 * @late: buffers change when the work ends, not when it begins
 * @flow: the message's number in the trace
 * @payload: data: what was read from the sender's memory
 */
struct sim_task {
	struct zc_action action;
	u32 node;
	u32 refs;
	u64 bytes;
	struct sim_route route;
	bool failed;
	bool late;
	u64 flow;
	u64 *payload;
	struct sim_task *next;
};

/**
 * struct sim_node - a node, which hosts an engine
 * @engine: the engine
 * @cpu: when the CPU is free
 * @tick: when the engine wants to be told the time
 * @submitted: operations submitted
 * @ended: of these, ended; or refused
 * @submitting: an EVENT_SUBMIT is on its way
 * @dead: it died
 * @closed: no peer can write here any more
 * @slowness: its work takes so many times as long
 */
struct sim_node {
	struct zc_engine *engine;
	u64 cpu;
	u64 tick;
	u32 submitted;
	u32 ended;
	bool submitting;
	bool dead;
	bool closed;
	u32 slowness;
};

/* How an operation ended at a node */
enum sim_verdict {
	VERDICT_NONE,
	VERDICT_GOOD,
	VERDICT_BAD,
};

/* The latest arrival on a link, so that what comes later does not overtake it */
struct sim_last {
	u64 key;
	u64 time;
};

struct sim_world {
	const struct sim_scene *scene;
	struct sim_outcome *outcome;
	struct sim_queue queue;
	struct sim_net net;
	struct sim_node *nodes;
	u32 nnodes;
	u64 now;
	u64 random;
	u32 running;		/* live nodes with operations that have not ended */
	u8 *verdicts;		/* by operation and node */
	struct sim_memory memory;
	struct sim_task *spare;
	struct sim_last *lasts;
	u64 lasts_mask;
	u64 lasts_used;
	u64 flows;
	int error;		/* the simulation itself cannot go on */
};

/* world.c */
const struct sim_job *world_job(const struct sim_world *world, u64 seq);
void world_at(struct sim_world *world, u64 time, u32 kind, u32 node, struct sim_task *task);
struct sim_task *task_new(struct sim_world *world, u32 node, const struct zc_action *action);
void task_put(struct sim_world *world, struct sim_task *task);
void world_wrong(struct sim_world *world, u32 node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* node.c */
u64 node_cpu(struct sim_world *world, u32 node, u64 time, u64 *begin);
u64 node_jitter(struct sim_world *world);
void node_run(struct sim_world *world, u32 node);
void node_answer(struct sim_world *world, struct sim_task *task);
void node_event(struct sim_world *world, const struct sim_event *event);
void node_blow(struct sim_world *world, const struct sim_blow *blow);

/* message.c */
void message_post(struct sim_world *world, u32 node, const struct zc_action *action);
void message_event(struct sim_world *world, const struct sim_event *event);

#endif /* ZCOLL_SIM_WORLD_H */
