// SPDX-License-Identifier: GPL-2.0
/*
 * The host of engine_host.h: clock, network, units, and what an engine must never do.
 *
 * The life of a unit: its action comes (unit_begin); what it reads and what it is going
 * to overwrite are noted; some time later they must be as they were, and it is carried
 * out (unit_end), and the engine is told. A SEND is put on the wire in between, maybe
 * twice; its elements land at the peer only once, as transports see to, while the
 * message that tells the engine so may come twice.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine_mem.h"

#define MAX_DEEDS	32
#define MAX_BURST	100000	/* actions after one event */
#define PATIENCE	(1ULL << 24)	/* ns without progress: a hang */

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
	enum { DEED_KILL, DEED_ABORT, DEED_INJECT } what;
	u32 from;
	struct zc_msg msg;
};

/* Leave to send that a node has been given, for one step of one operation */
struct leave {
	u64 below;
	u8 *open;
};

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

__attribute__((format(printf, 2, 3)))
static void fault(struct host *h, const char *fmt, ...)
{
	va_list ap;

	if (h->fault[0])
		return;
	va_start(ap, fmt);
	vsnprintf(h->fault, sizeof(h->fault), fmt, ap);
	va_end(ap);
}

__attribute__((format(printf, 2, 3)))
static void trace(const struct host *h, const char *fmt, ...)
{
	va_list ap;

	if (!h->trace)
		return;
	fprintf(stderr, "# %8llu %6llu ", (unsigned long long)h->now,
		(unsigned long long)h->steps);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
}

/* ------------------------------------------------------------------ randomness */

static u64 draw(struct host *h, u64 below)
{
	return host_random(&h->random, below);
}

static bool chance(struct host *h, u32 of_1024)
{
	return draw(h, 1024) < of_1024;
}

static u64 delay(struct host *h)
{
	u64 ns = 1 + draw(h, h->params.spread);

	return draw(h, 16) ? ns : 20 * ns;
}

/* ------------------------------------------------------------------ events */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void push(struct host *h, u64 after, enum event_type type, u32 node, u32 peer,
		 struct unit *unit)
{
	struct event event = { h->now + after, h->order++, type, node, peer, unit };
	size_t at;

	if (h->events == h->room) {
		h->room = h->room ? 2 * h->room : 1024;
		h->heap = realloc(h->heap, h->room * sizeof(*h->heap));
	}
	if (unit)
		unit->refs++;
	for (at = h->events++; at && earlier(&event, &h->heap[(at - 1) / 2]); at = (at - 1) / 2)
		h->heap[at] = h->heap[(at - 1) / 2];
	h->heap[at] = event;
}

static struct event pop(struct host *h)
{
	struct event first = h->heap[0], last = h->heap[--h->events];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < h->events) {
		if (child + 1 < h->events && earlier(&h->heap[child + 1], &h->heap[child]))
			child++;
		if (!earlier(&h->heap[child], &last))
			break;
		h->heap[at] = h->heap[child];
		at = child;
	}
	h->heap[at] = last;
	return first;
}

static void unit_put(struct unit *unit)
{
	if (!unit || --unit->refs)
		return;
	free(unit->was);
	free(unit->elements);
	free(unit);
}

/* ------------------------------------------------------------------ messages */

static struct node_op *op_at(struct host *h, u32 node, u64 seq)
{
	return &h->nodes[node].ops[seq];
}

/* A node's memory of an operation, from its first landing or its submission on */
static struct mem *mem_at(struct host *h, u32 node, u64 seq)
{
	struct node_op *op = op_at(h, node, seq);

	if (!op->mem && !op->complete)
		op->mem = mem_new(&h->ops[seq], seq, node, h->params.slots);
	return op->mem;
}

static void send_message(struct host *h, u32 from, const struct zc_action *action)
{
	struct unit *m = calloc(1, sizeof(*m));

	m->action = *action;
	m->node = action->peer;
	m->from = from;
	push(h, delay(h), EV_MESSAGE, m->node, from, m);
	if (chance(h, h->params.duplicates))
		push(h, delay(h), EV_MESSAGE, m->node, from, m);
}

/* Where the elements of a SEND land: the peer's step says that, and the slot */
static struct mem_place landing(struct host *h, const struct unit *m)
{
	const struct host_op *op = &h->ops[m->action.seq];
	const struct zcoll_step *s = &op->plan->steps[m->action.msg.step];
	struct zc_turn turn;

	if (m->action.slot != ZC_NONE)
		return (struct mem_place){ MEM_SLOT, m->action.slot };
	if (s->kind == ZCOLL_STEP_DELIVER)
		return (struct mem_place){ MEM_OUT, 0 };
	if (zc_step_turn(op->plan, s, zc_plan_number(op->plan, op->root, m->node),
			 m->action.unit, &turn))
		return (struct mem_place){ MEM_SCRATCH, ZC_NONE };
	return (struct mem_place){ MEM_SCRATCH, turn.dst };
}

static void land(struct host *h, struct unit *m)
{
	struct mem_place place = landing(h, m);
	struct zc_action unit = m->action;
	struct mem *mem;

	if (h->nodes[m->node].dead || h->nodes[m->node].closed)
		return;
	mem = mem_at(h, m->node, unit.seq);
	unit.step = unit.msg.step;
	if (!mem) {
		fault(h, "unit %llu of step %u of operation %llu lands at node %u after the end",
		      (unsigned long long)unit.unit, unit.step, (unsigned long long)unit.seq,
		      m->node);
	} else if (!mem_has(mem, &unit, place)) {
		fault(h, "unit %llu of step %u lands outside", (unsigned long long)unit.unit,
		      unit.step);
	} else if (place.space == MEM_SLOT && mem->steps[unit.step].full[place.index]++) {
		fault(h, "unit %llu of step %u lands at node %u in slot %u, which is in use",
		      (unsigned long long)unit.unit, unit.step, m->node, place.index);
	} else {
		mem_write(mem, &unit, place, m->elements);
	}
}

/* ------------------------------------------------------------------ leave to send */

static struct leave *leave_at(struct host *h, u32 node, u64 seq, u32 step)
{
	struct node_op *op = op_at(h, node, seq);
	const struct zcoll_plan *plan = h->ops[seq].plan;

	if (step >= plan->nsteps)
		return NULL;
	if (!op->leave)
		op->leave = calloc(plan->nsteps, sizeof(*op->leave));
	if (!op->leave[step].open)
		op->leave[step].open = calloc(plan->steps[step].repeat, 1);
	return &op->leave[step];
}

static void note_grant(struct host *h, u32 node, const struct zc_action *action)
{
	const struct zc_msg *msg = &action->msg;
	const struct zcoll_plan *plan;
	struct leave *leave;

	if (action->peer >= h->params.nodes || msg->seq >= h->nops) {
		fault(h, "a GRANT to node %u for operation %llu", action->peer,
		      (unsigned long long)msg->seq);
		return;
	}
	plan = h->ops[msg->seq].plan;
	if (action->seq != msg->seq || action->priv != op_at(h, node, msg->seq) ||
	    action->step >= plan->nsteps || action->row != &plan->steps[action->step] ||
	    action->unit != msg->unit || msg->step >= plan->nsteps ||
	    plan->steps[msg->step].match != action->step)
		fault(h, "node %u: a GRANT that does not say what for", node);
	leave = leave_at(h, action->peer, msg->seq, msg->step);
	if (!leave || (msg->open && msg->unit >= msg->open))
		fault(h, "a GRANT for step %u, unit %llu", msg->step,
		      (unsigned long long)msg->unit);
	else if (msg->open)
		leave->open[msg->unit] = 1;
	else if (msg->unit > leave->below)
		leave->below = msg->unit;
}

/* Has the peer granted this, or is it one of the slots it has from the beginning? */
static bool may_send(struct host *h, u32 node, const struct zc_action *action)
{
	struct leave *leave = leave_at(h, node, action->seq, action->step);
	const struct host_op *op = &h->ops[action->seq];
	u64 largest = zc_geometry_largest(&op->geo, op->plan->segments);
	bool open = action->row->flags & ZCOLL_STEP_OPEN;
	bool reserved = action->slot != ZC_NONE &&
		zc_step_cut(action->row, &op->geo, largest, op->slice).unit <= op->reserve;

	if ((reserved || !action->npieces) && (open || action->unit < h->params.slots))
		return true;
	return open ? leave->open[action->unit] : action->unit < leave->below;
}

/* ------------------------------------------------------------------ units */

static struct mem_place place_of(const struct zcoll_place *place, u32 index)
{
	if (place->space == ZCOLL_PLACE_DATA)
		return (struct mem_place){ MEM_DATA, 0 };
	return (struct mem_place){ MEM_SCRATCH, index };
}

/* What a unit reads and writes, as the tables in <linux/zcoll_plan.h> say */
static void unit_places(struct unit *unit)
{
	const struct zc_action *a = &unit->action;
	bool first = a->row->flags & ZCOLL_STEP_FIRST, store = a->row->flags & ZCOLL_STEP_STORE;
	const struct mem_place none = { MEM_NONE, 0 }, in = { MEM_IN, 0 }, out = { MEM_OUT, 0 };
	struct mem_place src = first ? in : place_of(&a->row->src, a->src);
	struct mem_place dst = place_of(&a->row->dst, a->dst);

	unit->src = unit->recv = unit->dst = none;
	switch (a->type) {
	case ZC_DO_SEND:
		unit->src = src;
		return;
	case ZC_DO_GATHER:
		unit->src = in;
		unit->dst = dst;
		return;
	case ZC_DO_FINAL:
		unit->src = src;
		unit->dst = out;
		return;
	case ZC_DO_DELIVER:
		unit->dst = out;
		break;
	case ZC_DO_FOLD:
		unit->dst = a->row->flags & ZCOLL_STEP_RESULT ? out : dst;
		if (a->peer == ZC_NONE) {
			unit->src = src;
			unit->recv = store ? none : dst;
			return;
		}
		unit->src = store ? none : src;
		break;
	}
	/* From a peer: in the slot, or there already */
	if (a->slot == ZC_NONE)
		unit->dst = none;
	else
		unit->recv = (struct mem_place){ MEM_SLOT, a->slot };
}

/* A unit's src, recv and dst, one after the other */
static u64 *unit_look(struct host *h, const struct unit *unit)
{
	u64 n = mem_count(&unit->action), *look = calloc(3 * n + 1, sizeof(u64));
	const struct mem *mem = mem_at(h, unit->node, unit->action.seq);

	mem_read(mem, &unit->action, unit->src, look);
	mem_read(mem, &unit->action, unit->recv, look + n);
	mem_read(mem, &unit->action, unit->dst, look + 2 * n);
	return look;
}

static bool unit_intact(struct host *h, const struct unit *unit)
{
	u64 *look = unit_look(h, unit);
	bool same = !memcmp(look, unit->was, 3 * mem_count(&unit->action) * sizeof(u64));

	if (!same)
		fault(h, "node %u: a place of unit %llu of step %u of operation %llu was written to, while it was under way",
		      unit->node, (unsigned long long)unit->action.unit, unit->action.step,
		      (unsigned long long)unit->action.seq);
	free(look);
	return same;
}

static const char *unit_wrong(struct host *h, u32 node, const struct zc_action *a)
{
	struct node_op *op = op_at(h, node, a->seq);
	struct mem_step *m;
	u64 n;
	u32 i;

	if (a->seq >= h->nops || !op->submitted)
		return "of an operation that was not submitted";
	if (op->complete)
		return "after COMPLETE";
	if (zc_engine_error(h->nodes[node].engine))
		return "begun by a revoked engine";
	m = &op->mem->steps[a->step];
	if (a->row != &h->ops[a->seq].plan->steps[a->step] || a->unit >= m->units)
		return "that is none";
	if (m->begun[a->unit]++)
		return "twice";
	if (m->inflight++ == h->params.inflight)
		return "more than config.inflight at a time";
	for (i = 0, n = h->ops[a->seq].geo.count; i < a->npieces; i++)
		if (!a->piece[i].count || a->piece[i].first >= n ||
		    a->piece[i].count > n - a->piece[i].first)
			return "outside the operation";
	if (!a->npieces && a->type != ZC_DO_SEND)
		return "without elements";
	if (a->type != ZC_DO_SEND)
		return NULL;
	if (a->peer >= h->params.nodes || a->peer == node)
		return "to a node that is none";
	if (a->seq >= zc_engine_retired(h->nodes[a->peer].engine) + h->params.window)
		return "beyond the peer's window";
	return may_send(h, node, a) ? NULL : "that was not granted";
}

static void unit_begin(struct host *h, u32 node, const struct zc_action *action)
{
	const char *wrong = unit_wrong(h, node, action);
	struct mem *mem = op_at(h, node, action->seq)->mem;
	struct unit *unit;

	unit = calloc(1, sizeof(*unit));
	unit->action = *action;
	unit->node = node;
	unit_places(unit);
	if (!wrong && (!mem_has(mem, action, unit->src) || !mem_has(mem, action, unit->recv) ||
		       !mem_has(mem, action, unit->dst)))
		wrong = "in a place that is none";
	if (!wrong && unit->recv.space == MEM_SLOT &&
	    !mem->steps[action->step].full[action->slot])
		wrong = "of a slot where nothing has landed";
	if (wrong) {
		fault(h, "node %u: unit %llu of step %u of operation %llu: %s", node,
		      (unsigned long long)action->unit, action->step,
		      (unsigned long long)action->seq, wrong);
		free(unit);
		return;
	}
	op_at(h, node, action->seq)->busy++;
	unit->was = unit_look(h, unit);
	push(h, delay(h), action->type == ZC_DO_SEND ? EV_TRANSMIT : EV_END, node, 0, unit);
}

/* The elements of a SEND leave; a lost packet makes them leave again */
static void unit_transmit(struct host *h, struct unit *unit)
{
	struct unit *m;
	u64 n = mem_count(&unit->action);

	if (!unit_intact(h, unit))
		return;
	m = calloc(1, sizeof(*m));
	m->action = unit->action;
	m->node = unit->action.peer;
	m->from = unit->node;
	m->elements = calloc(n + 1, sizeof(u64));
	memcpy(m->elements, unit->was, n * sizeof(u64));
	push(h, delay(h), n ? EV_LAND : EV_MESSAGE, m->node, m->from, m);
	push(h, delay(h), EV_END, unit->node, 0, unit);
}

static void unit_end(struct host *h, struct unit *unit)
{
	const struct zc_action *a = &unit->action;
	struct mem *mem = op_at(h, unit->node, a->seq)->mem;
	u64 n = mem_count(a), i, *result = unit->was + 2 * n;

	if (!unit_intact(h, unit))
		return;
	for (i = 0; i < n && unit->dst.space != MEM_NONE; i++)
		result[i] = (unit->src.space == MEM_NONE ? 0 : unit->was[i]) +
			    (unit->recv.space == MEM_NONE ? 0 : unit->was[n + i]);
	mem_write(mem, a, unit->dst, result);
	if (unit->recv.space == MEM_SLOT)
		mem->steps[a->step].full[a->slot] = 0;
	mem->steps[a->step].inflight--;
	op_at(h, unit->node, a->seq)->busy--;
	zc_engine_done(h->nodes[unit->node].engine, a->seq, a->step, a->unit);
}

/* ------------------------------------------------------------------ ends */

/* Where all nodes have to have all results before one ends, and a barrier */
static void check_others(struct host *h, u64 seq)
{
	const struct host_op *op = &h->ops[seq];
	u32 i;

	for (i = 0; i < h->params.nodes; i++) {
		const struct node_op *other = op_at(h, i, seq);

		if (op->plan->collective == ZCOLL_BARRIER && !other->submitted)
			fault(h, "barrier %llu ends before node %u has begun",
			      (unsigned long long)seq, i);
		if (op->flags & ZC_OP_AGREED && !other->complete &&
		    (!other->mem || !mem_right(other->mem, seq)))
			fault(h, "agreed operation %llu ends before node %u has its results",
			      (unsigned long long)seq, i);
	}
}

static void set_status(struct host *h, u32 node, u64 seq, int status)
{
	struct node_op *op = op_at(h, node, seq);

	op->status = status;
	h->open--;
	h->progress = h->now;
	if (status && !h->trouble)
		fault(h, "node %u: operation %llu: error %d for no reason", node,
		      (unsigned long long)seq, status);
}

/* It has ended all operations, and does nothing any more; its last messages still arrive */
static void leave(struct host *h, u32 node)
{
	u32 i;

	trace(h, "node %u leaves\n", node);
	h->nodes[node].left = true;
	for (i = 0; i < h->params.nodes; i++)
		if (i != node)
			push(h, delay(h), EV_LEFT, i, node, NULL);
}

static void complete(struct host *h, u32 node, const struct zc_action *a)
{
	struct node_op *op = op_at(h, node, a->seq);

	if (a->seq >= h->nops || !op->submitted || op->complete)
		fault(h, "node %u: COMPLETE of operation %llu, which is not going on", node,
		      (unsigned long long)a->seq);
	else if (op->busy)
		fault(h, "node %u: COMPLETE of operation %llu with %u units with the host",
		      node, (unsigned long long)a->seq, op->busy);
	else if (a->status > 0 || (a->status && !h->nodes[node].closed))
		fault(h, "node %u: operation %llu ends with %d before CLOSE is done", node,
		      (unsigned long long)a->seq, a->status);
	else if (!a->status && !mem_right(op->mem, a->seq))
		fault(h, "node %u: operation %llu has a wrong result with success", node,
		      (unsigned long long)a->seq);
	else if (a->priv != op)
		fault(h, "node %u: COMPLETE with another priv", node);
	if (h->fault[0])
		return;
	op->complete = true;
	set_status(h, node, a->seq, a->status);
	if (!a->status)
		check_others(h, a->seq);
	mem_free(op->mem);
	op->mem = NULL;
	h->nodes[node].ended += !a->status;
	if (h->params.leave && h->nodes[node].ended == h->nops)
		leave(h, node);
}

/* ------------------------------------------------------------------ actions */

static void submit_soon(struct host *h, u32 node)
{
	if (!h->nodes[node].submitting && h->nodes[node].next < h->nops) {
		h->nodes[node].submitting = true;
		push(h, delay(h), EV_SUBMIT, node, 0, NULL);
	}
}

static void carry_out(struct host *h, u32 node, const struct zc_action *a)
{
	struct node *n = &h->nodes[node];

	trace(h, "node %u: action %u step %u seq %llu unit %llu peer %d slot %d status %d msg %u/%u/%llu retired %llu\n",
	      node, a->type, a->step, (unsigned long long)a->seq, (unsigned long long)a->unit,
	      (int)a->peer, (int)a->slot, a->status, a->msg.type, a->msg.step,
	      (unsigned long long)a->msg.unit, (unsigned long long)a->msg.retired);
	switch (a->type) {
	case ZC_DO_SEND:
	case ZC_DO_GATHER:
	case ZC_DO_FOLD:
	case ZC_DO_DELIVER:
	case ZC_DO_FINAL:
		h->progress = h->now;
		unit_begin(h, node, a);
		break;
	case ZC_DO_TELL:
		if (a->peer >= h->params.nodes || a->peer == node)
			fault(h, "node %u: a message to %u", node, a->peer);
		else if (n->gone >> a->peer & 1)
			fault(h, "node %u: a message to %u, which has left", node, a->peer);
		if (a->msg.type == ZC_MSG_GRANT)
			note_grant(h, node, a);
		if (!h->fault[0])
			send_message(h, node, a);
		break;
	case ZC_DO_CLOSE:
		if (n->closing)
			fault(h, "node %u: CLOSE twice", node);
		n->closing = true;
		push(h, delay(h), EV_CLOSED, node, 0, NULL);
		break;
	case ZC_DO_COMPLETE:
		complete(h, node, a);
		submit_soon(h, node);
		break;
	case ZC_DO_AGAIN:
		break;
	default:
		fault(h, "node %u: action %u", node, a->type);
	}
}

static void deeds(struct host *h);

/* One more step of the run. Return: it may go on. */
static bool step(struct host *h)
{
	h->steps++;
	deeds(h);
	return !h->fault[0];
}

/* Ask a node's engine what to do, until there is nothing, or we are too lazy */
static void drain(struct host *h, u32 node)
{
	struct node *n = &h->nodes[node];
	u32 burst = 0;

	while (!n->dead && !n->left && step(h)) {
		struct zc_action action;

		if (chance(h, h->params.lazy)) {
			push(h, delay(h), EV_DRAIN, node, 0, NULL);
			return;
		}
		if (n->dead)
			return;
		memset(&action, 0x5a, sizeof(action));
		if (!zc_engine_next(n->engine, &action))
			return;
		carry_out(h, node, &action);
		if (++burst > MAX_BURST)
			fault(h, "node %u: no end of actions", node);
	}
}

/* ------------------------------------------------------------------ what happens */

static void tick(struct host *h, u32 node)
{
	struct node *n = &h->nodes[node];
	u64 next = zc_engine_tick(n->engine, h->now);

	n->tick = next;
	if (next != U64_MAX)
		push(h, next > h->now ? next - h->now + draw(h, 3) : 1, EV_TICK, node, 0, NULL);
}

static void kill_node(struct host *h, u32 node)
{
	struct node *n = &h->nodes[node];
	u64 seq;
	u32 i;

	if (n->dead || n->left)
		return;
	trace(h, "node %u dies\n", node);
	n->dead = true;
	n->drop = draw(h, 5);
	for (seq = 0; seq < h->nops; seq++)
		h->open -= n->ops[seq].status == HOST_PENDING;
	for (i = 0; i < h->params.nodes && h->params.detect; i++)
		if (i != node)
			push(h, 1 + draw(h, h->params.detect), EV_LOST, i, node, NULL);
	h->progress = h->now;
}

static void deeds(struct host *h)
{
	u32 i;

	for (i = 0; i < h->ndeeds; i++) {
		struct deed *deed = &h->deeds[i];
		struct node *n = &h->nodes[deed->node];

		if (deed->when != h->steps)
			continue;
		h->trouble = true;
		if (deed->what == DEED_KILL) {
			kill_node(h, deed->node);
		} else if (!n->dead && !n->left) {
			if (deed->what == DEED_ABORT)
				zc_engine_abort(n->engine, -ECANCELED);
			else
				zc_engine_message(n->engine, deed->from, &deed->msg);
			push(h, 1, EV_DRAIN, deed->node, 0, NULL);
		}
	}
}

/*
 * The operations a node may submit begin at n->next and end with its window. A revoked
 * engine is asked, too: it refuses.
 */
static u64 pick(struct host *h, struct node *n)
{
	u64 end = zc_engine_retired(n->engine) + h->params.window, seq;

	while (n->next < h->nops && n->ops[n->next].submitted)
		n->next++;
	if (end > h->nops || zc_engine_error(n->engine))
		end = h->nops;
	if (n->next >= end)
		return U64_MAX;
	if (h->params.in_order)
		return n->next;
	seq = n->next + draw(h, end - n->next);
	return n->ops[seq].submitted ? n->next : seq;
}

static void refuse_all(struct host *h, u32 node, int err)
{
	u64 seq;

	for (seq = 0; seq < h->nops; seq++)
		if (!h->nodes[node].ops[seq].submitted)
			set_status(h, node, seq, err);
	h->nodes[node].next = h->nops;
}

static void submit(struct host *h, u32 node)
{
	struct node *n = &h->nodes[node];
	u64 seq = pick(h, n);
	struct zc_op_desc desc = { .seq = seq };
	const struct host_op *op;
	int err;

	n->submitting = false;
	if (seq >= h->nops)
		return;
	op = &h->ops[seq];
	desc.prog = &h->progs[seq];
	desc.root = op->root;
	desc.flags = op->flags;
	desc.fingerprint = seq * 1000003 + op->geo.count;
	desc.geo = op->geo;
	desc.slice = op->slice;
	desc.eager = op->eager;
	desc.reserve = op->reserve;
	desc.deadline = op->deadline;
	desc.priv = &n->ops[seq];
	mem_at(h, node, seq);
	n->ops[seq].submitted = true;
	err = zc_engine_submit(n->engine, &desc);
	trace(h, "node %u: submit %llu: %d\n", node, (unsigned long long)seq, err);
	if (err) {
		n->ops[seq].submitted = false;
		refuse_all(h, node, err);
		return;
	}
	if (op->deadline) {
		h->trouble = true;
		tick(h, node);
	}
	submit_soon(h, node);
}

static void happen(struct host *h, const struct event *event)
{
	struct node *n = &h->nodes[event->node];
	struct unit *unit = event->unit;

	if (n->dead || n->left)
		return;
	switch (event->type) {
	case EV_SUBMIT:
		submit(h, event->node);
		break;
	case EV_DRAIN:
		break;
	case EV_TICK:
		if (h->now < n->tick)
			return;
		tick(h, event->node);
		break;
	case EV_TRANSMIT:
		unit_transmit(h, unit);
		return;
	case EV_END:
		unit_end(h, unit);
		break;
	case EV_LAND:
		if (h->nodes[event->peer].dead && draw(h, 4) < h->nodes[event->peer].drop)
			return;
		land(h, unit);
		push(h, draw(h, 4) ? 1 : delay(h), EV_MESSAGE, unit->node, unit->from, unit);
		if (chance(h, h->params.duplicates))
			push(h, delay(h), EV_MESSAGE, unit->node, unit->from, unit);
		return;
	case EV_MESSAGE:
		if (h->nodes[event->peer].dead && draw(h, 4) < h->nodes[event->peer].drop)
			return;
		trace(h, "node %u: message %u from %u step %u seq %llu unit %llu retired %llu\n",
		      event->node, unit->action.msg.type, unit->from, unit->action.msg.step,
		      (unsigned long long)unit->action.msg.seq,
		      (unsigned long long)unit->action.msg.unit,
		      (unsigned long long)unit->action.msg.retired);
		zc_engine_message(n->engine, unit->from, &unit->action.msg);
		break;
	case EV_CLOSED:
		n->closed = true;
		zc_engine_closed(n->engine);
		break;
	case EV_LOST:
		zc_engine_lost(n->engine, event->peer);
		break;
	case EV_LEFT:
		n->gone |= 1ULL << event->peer;
		zc_engine_left(n->engine, event->peer, h->nops);
		break;
	}
	drain(h, event->node);
	/* Nothing completes any more that would make it submit the rest */
	if (zc_engine_error(n->engine))
		submit_soon(h, event->node);
}

/* All has ended: survivors must agree where they have to */
static void check_verdicts(struct host *h)
{
	u64 seq;
	u32 i, good, living;

	for (seq = 0; seq < h->nops; seq++) {
		if (!(h->ops[seq].flags & ZC_OP_AGREED))
			continue;
		for (i = 0, good = 0, living = 0; i < h->params.nodes; i++) {
			if (h->nodes[i].dead || h->nodes[i].left)
				continue;
			living++;
			good += !h->nodes[i].ops[seq].status;
		}
		if (good && good < living)
			fault(h, "operation %llu ended well at %u of %u survivors",
			      (unsigned long long)seq, good, living);
	}
}

static void tell_hang(struct host *h)
{
	u64 seq;
	u32 i;

	for (i = 0; i < h->params.nodes; i++)
		for (seq = 0; seq < h->nops && !h->nodes[i].dead; seq++)
			if (h->nodes[i].ops[seq].status == HOST_PENDING)
				fault(h, "hang: node %u has no verdict of operation %llu (%ssubmitted, error %d, retired %llu)",
				      i, (unsigned long long)seq,
				      h->nodes[i].ops[seq].submitted ? "" : "not ",
				      zc_engine_error(h->nodes[i].engine),
				      (unsigned long long)zc_engine_retired(h->nodes[i].engine));
}

const char *host_run(struct host *h)
{
	u32 i;

	h->progress = h->now;
	for (i = 0; i < h->params.nodes; i++) {
		tick(h, i);
		submit_soon(h, i);
	}
	while (h->events && !h->fault[0]) {
		struct event event = pop(h);

		h->now = event.at;
		if (!h->open && event.type == EV_TICK)
			continue;
		if (h->now - h->progress > PATIENCE)
			break;
		if (step(h))
			happen(h, &event);
		unit_put(event.unit);
	}
	if (h->open)
		tell_hang(h);
	check_verdicts(h);
	return h->fault[0] ? h->fault : NULL;
}

/* ------------------------------------------------------------------ the interface */

static void node_init(struct host *h, u32 node)
{
	const struct host_params *p = &h->params;
	const struct zc_engine_config config = {
		.node = node, .nodes = p->nodes, .window = p->window, .steps = p->steps,
		.links = p->links ? p->links : p->nodes - 1, .slots = p->slots,
		.inflight = p->inflight, .bits = p->bits, .silence = p->silence,
		.timeout = p->timeout,
	};
	struct node *n = &h->nodes[node];
	size_t size = zc_engine_size(&config);

	if (!size) {
		fault(h, "zc_engine_size() does not like the dimensions");
		return;
	}
	n->room = malloc(size);
	memset(n->room, 0xa5, size);
	n->engine = zc_engine_init(n->room, &config);
	n->ops = calloc(h->max_ops + 1, sizeof(*n->ops));
}

struct host *host_new(const struct host_params *params, u32 max_ops)
{
	struct host *h = calloc(1, sizeof(*h));
	u32 i;

	h->params = *params;
	if (!h->params.spread)
		h->params.spread = 100;
	h->random = params->seed;
	h->max_ops = max_ops;
	h->now = 1000000000;
	h->ops = calloc(max_ops, sizeof(*h->ops));
	h->progs = calloc(max_ops, sizeof(*h->progs));
	h->prog_rooms = calloc(max_ops, sizeof(*h->prog_rooms));
	h->nodes = calloc(params->nodes, sizeof(*h->nodes));
	for (i = 0; i < params->nodes; i++)
		node_init(h, i);
	return h;
}

void host_free(struct host *h)
{
	u64 seq;
	u32 i, s;

	while (h->events)
		unit_put(pop(h).unit);
	for (i = 0; i < h->params.nodes; i++) {
		for (seq = 0; seq < h->nops; seq++) {
			struct node_op *op = op_at(h, i, seq);

			mem_free(op->mem);
			for (s = 0; op->leave && s < h->ops[seq].plan->nsteps; s++)
				free(op->leave[s].open);
			free(op->leave);
		}
		free(h->nodes[i].ops);
		free(h->nodes[i].room);
	}
	for (seq = 0; seq < h->nops; seq++)
		free(h->prog_rooms[seq]);
	free(h->prog_rooms);
	free(h->progs);
	free(h->nodes);
	free(h->ops);
	free(h->heap);
	free(h);
}

u64 host_add(struct host *h, const struct host_op *op)
{
	u64 seq = h->nops++;
	u32 i;

	h->ops[seq] = *op;
	if (op->deadline)
		h->ops[seq].deadline += h->now;
	if (seq && op->plan == h->ops[seq - 1].plan) {
		h->progs[seq] = h->progs[seq - 1];
	} else {
		h->prog_rooms[seq] = malloc(zc_prog_size(op->plan));
		zc_prog_init(&h->progs[seq], op->plan, h->prog_rooms[seq]);
	}
	for (i = 0; i < h->params.nodes; i++)
		h->nodes[i].ops[seq].status = HOST_PENDING;
	h->open += h->params.nodes;
	return seq;
}

static struct deed *deed(struct host *h, u32 node, u64 when, int what)
{
	struct deed *d = &h->deeds[h->ndeeds++];

	d->when = when;
	d->node = node;
	d->what = what;
	return d;
}

void host_kill(struct host *h, u32 node, u64 when)
{
	deed(h, node, when, DEED_KILL);
}

void host_abort(struct host *h, u32 node, u64 when)
{
	deed(h, node, when, DEED_ABORT);
}

void host_inject(struct host *h, u32 node, u32 from, const struct zc_msg *msg, u64 when)
{
	struct deed *d = deed(h, node, when, DEED_INJECT);

	d->from = from;
	d->msg = *msg;
}

int host_status(const struct host *h, u32 node, u64 seq)
{
	return h->nodes[node].ops[seq].status;
}

u64 host_steps(const struct host *h)
{
	return h->steps;
}

u64 host_retired(const struct host *h, u32 node)
{
	return zc_engine_retired(h->nodes[node].engine);
}

void host_trace(struct host *h)
{
	h->trace = true;
}
