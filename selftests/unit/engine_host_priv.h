/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The host of engine_host.h, between its files: the run (engine_host.c), its clock
 * (engine_host_clock.c), and units (engine_host_unit.c).
 */
#ifndef ENGINE_HOST_PRIV_H
#define ENGINE_HOST_PRIV_H

#include "engine_mem.h"

#define MAX_DEEDS	32

enum event_type {
	EV_SUBMIT,		/* node submits what it may */
	EV_DRAIN,		/* node asks its engine again */
	EV_TICK,
	EV_TRANSMIT,		/* the elements of a SEND leave */
	EV_END,			/* a unit is done */
	EV_LAND,		/* elements land at a node */
	EV_MESSAGE,		/* the engine hears of a message */
	EV_CLOSED,
	EV_LOST,		/* node is told that peer is lost */
	EV_LEFT,		/* node is told that peer has left */
};

/* A unit with the host, or on the wire, or a message without elements */
struct unit {
	struct zc_action action;
	u32 node;		/* who carries it out; of a message: who gets it */
	u32 from;		/* of a message */
	u32 refs;		/* events that have it */
	struct mem_place src, recv, dst;
	u64 *was;		/* what was in src, recv and dst */
	u64 *elements;		/* of a message, as they left */
};

struct event {
	u64 at;
	u64 order;
	enum event_type type;
	u32 node;
	u32 peer;
	struct unit *unit;
};

/* What a test does to a node, at a step of the run */
struct deed {
	u64 when;
	u32 node;
	enum { DEED_KILL, DEED_ABORT } what;
};

/* Leave to send that a node has been given, for one step of one operation */
struct leave {
	u64 below;
	u8 *open;
};

#define HOST_PENDING	1	/* node_op.status: no verdict yet */

struct node_op {
	struct mem *mem;
	struct leave *leave;	/* by step, of those this node sends */
	int status;
	bool submitted;
	bool complete;
	u32 busy;
};

struct node {
	void *room;
	struct zc_engine *engine;
	struct node_op *ops;
	u64 tick;
	u32 next;		/* all operations below have been submitted */
	bool submitting;	/* an EV_SUBMIT is on its way */
	bool dead;
	bool closing;
	bool closed;
	bool left;
	u64 gone;		/* bit for each node of which it has been told that it has left */
	u64 ended;		/* operations that have ended well */
	u32 drop;		/* dead: so many of 4 of its last messages are lost */
};

struct host {
	struct host_params params;
	u64 random;
	u64 now;
	u64 progress;		/* when something last got on */
	u64 order;
	u64 steps;
	struct event *heap;
	size_t events, room;
	struct node *nodes;
	struct host_op *ops;
	struct zc_prog *progs;
	void **prog_rooms;
	u32 nops, max_ops;
	u64 open;		/* verdicts that are to come */
	struct deed deeds[MAX_DEEDS];
	u32 ndeeds;
	bool trouble;		/* a test has done something: errors are right */
	bool trace;
	char fault[400];
};

/* engine_host.c; the first fault ends the run */
__attribute__((format(printf, 2, 3)))
void host_fault(struct host *h, const char *fmt, ...);
__attribute__((format(printf, 2, 3)))
void host_log(const struct host *h, const char *fmt, ...);
struct node_op *host_op_at(struct host *h, u32 node, u64 seq);
struct mem *host_mem_at(struct host *h, u32 node, u64 seq);

/* engine_host_clock.c */
u64 host_draw(struct host *h, u64 below);
bool host_chance(struct host *h, u32 of_1024);
u64 host_delay(struct host *h);
void host_push(struct host *h, u64 after, enum event_type type, u32 node, u32 peer,
	       struct unit *unit);
struct event host_pop(struct host *h);

/* engine_host_unit.c */
void unit_put(struct unit *unit);
void host_grant(struct host *h, u32 node, const struct zc_action *action);
void unit_land(struct host *h, struct unit *m);
void unit_begin(struct host *h, u32 node, const struct zc_action *action);
void unit_transmit(struct host *h, struct unit *unit);
void unit_end(struct host *h, struct unit *unit);

#endif /* ENGINE_HOST_PRIV_H */
