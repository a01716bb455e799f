// SPDX-License-Identifier: GPL-2.0
/*
 * The host of engine_host.h: what happens to the nodes, and what they ask for.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine_host_priv.h"

#define MAX_BURST	100000	/* actions after one event */
#define PATIENCE	(1ULL << 24)	/* ns without progress: a hang */

void host_fault(struct host *h, const char *fmt, ...)
{
	va_list ap;

	if (h->fault[0])
		return;
	va_start(ap, fmt);
	vsnprintf(h->fault, sizeof(h->fault), fmt, ap);
	va_end(ap);
}

void host_log(const struct host *h, const char *fmt, ...)
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

struct node_op *host_op_at(struct host *h, u32 node, u64 seq)
{
	return &h->nodes[node].ops[seq];
}

/* A node's memory of an operation, from its first landing or its submission on */
struct mem *host_mem_at(struct host *h, u32 node, u64 seq)
{
	struct node_op *op = host_op_at(h, node, seq);

	if (!op->mem && !op->complete)
		op->mem = mem_new(&h->ops[seq], seq, node, h->params.slots);
	return op->mem;
}

/* ------------------------------------------------------------------ ends */

/* Where all nodes have to have all results before one ends, and a barrier */
static void check_others(struct host *h, u64 seq)
{
	const struct host_op *op = &h->ops[seq];
	u32 i;

	for (i = 0; i < h->params.nodes; i++) {
		const struct node_op *other = host_op_at(h, i, seq);

		if (op->plan->collective == ZCOLL_BARRIER && !other->submitted)
			host_fault(h, "barrier %llu ends before node %u has begun",
				   (unsigned long long)seq, i);
		if (op->flags & ZC_OP_AGREED && !other->complete &&
		    (!other->mem || !mem_right(other->mem, seq)))
			host_fault(h, "agreed operation %llu ends before node %u has its results",
				   (unsigned long long)seq, i);
	}
}

static void set_status(struct host *h, u32 node, u64 seq, int status)
{
	struct node_op *op = host_op_at(h, node, seq);

	op->status = status;
	h->open--;
	h->progress = h->now;
	if (status && !h->trouble)
		host_fault(h, "node %u: operation %llu: error %d for no reason", node,
			   (unsigned long long)seq, status);
}

/* It has ended all operations, and does nothing any more; its last messages still arrive */
static void leave(struct host *h, u32 node)
{
	u32 i;

	host_log(h, "node %u leaves\n", node);
	h->nodes[node].left = true;
	for (i = 0; i < h->params.nodes; i++)
		if (i != node)
			host_push(h, host_delay(h), EV_LEFT, i, node, NULL);
}

static void complete(struct host *h, u32 node, const struct zc_action *a)
{
	struct node_op *op = host_op_at(h, node, a->seq);

	if (a->seq >= h->nops || !op->submitted || op->complete)
		host_fault(h, "node %u: COMPLETE of operation %llu, which is not going on", node,
			   (unsigned long long)a->seq);
	else if (op->busy)
		host_fault(h, "node %u: COMPLETE of operation %llu with %u units with the host",
			   node, (unsigned long long)a->seq, op->busy);
	else if (a->status > 0 || (a->status && !h->nodes[node].closed))
		host_fault(h, "node %u: operation %llu ends with %d before CLOSE is done", node,
			   (unsigned long long)a->seq, a->status);
	else if (!a->status && !mem_right(op->mem, a->seq))
		host_fault(h, "node %u: operation %llu has a wrong result with success", node,
			   (unsigned long long)a->seq);
	else if (a->priv != op)
		host_fault(h, "node %u: COMPLETE with another priv", node);
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

static void tell(struct host *h, u32 from, const struct zc_action *action)
{
	struct unit *m = calloc(1, sizeof(*m));

	m->action = *action;
	m->node = action->peer;
	m->from = from;
	host_push(h, host_delay(h), EV_MESSAGE, m->node, from, m);
	if (host_chance(h, h->params.duplicates))
		host_push(h, host_delay(h), EV_MESSAGE, m->node, from, m);
}

static void submit_soon(struct host *h, u32 node)
{
	if (!h->nodes[node].submitting && h->nodes[node].next < h->nops) {
		h->nodes[node].submitting = true;
		host_push(h, host_delay(h), EV_SUBMIT, node, 0, NULL);
	}
}

static void carry_out(struct host *h, u32 node, const struct zc_action *a)
{
	struct node *n = &h->nodes[node];

	host_log(h, "node %u: action %u step %u seq %llu unit %llu peer %d slot %d status %d msg %u/%u/%llu retired %llu\n",
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
			host_fault(h, "node %u: a message to %u", node, a->peer);
		else if (n->gone >> a->peer & 1)
			host_fault(h, "node %u: a message to %u, which has left", node, a->peer);
		if (a->msg.type == ZC_MSG_GRANT)
			host_grant(h, node, a);
		if (!h->fault[0])
			tell(h, node, a);
		break;
	case ZC_DO_CLOSE:
		if (n->closing)
			host_fault(h, "node %u: CLOSE twice", node);
		n->closing = true;
		host_push(h, host_delay(h), EV_CLOSED, node, 0, NULL);
		break;
	case ZC_DO_COMPLETE:
		complete(h, node, a);
		submit_soon(h, node);
		break;
	case ZC_DO_AGAIN:
		break;
	default:
		host_fault(h, "node %u: action %u", node, a->type);
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

		if (host_chance(h, h->params.lazy)) {
			host_push(h, host_delay(h), EV_DRAIN, node, 0, NULL);
			return;
		}
		if (n->dead)
			return;
		memset(&action, 0x5a, sizeof(action));
		if (!zc_engine_next(n->engine, &action))
			return;
		carry_out(h, node, &action);
		if (++burst > MAX_BURST)
			host_fault(h, "node %u: no end of actions", node);
	}
}

/* ------------------------------------------------------------------ what happens */

static void tick(struct host *h, u32 node)
{
	struct node *n = &h->nodes[node];
	u64 next = zc_engine_tick(n->engine, h->now), after = 1;

	n->tick = next;
	if (next > h->now && next != U64_MAX)
		after = next - h->now + host_draw(h, 3);
	if (next != U64_MAX)
		host_push(h, after, EV_TICK, node, 0, NULL);
}

static void kill_node(struct host *h, u32 node)
{
	struct node *n = &h->nodes[node];
	u64 seq;
	u32 i;

	if (n->dead || n->left)
		return;
	host_log(h, "node %u dies\n", node);
	n->dead = true;
	n->drop = host_draw(h, 5);
	for (seq = 0; seq < h->nops; seq++)
		h->open -= n->ops[seq].status == HOST_PENDING;
	for (i = 0; i < h->params.nodes && h->params.detect; i++)
		if (i != node)
			host_push(h, 1 + host_draw(h, h->params.detect), EV_LOST, i, node, NULL);
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
			zc_engine_abort(n->engine, -ECANCELED);
			host_push(h, 1, EV_DRAIN, deed->node, 0, NULL);
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
	seq = n->next + host_draw(h, end - n->next);
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
	host_mem_at(h, node, seq);
	n->ops[seq].submitted = true;
	err = zc_engine_submit(n->engine, &desc);
	host_log(h, "node %u: submit %llu: %d\n", node, (unsigned long long)seq, err);
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
		if (h->nodes[event->peer].dead && host_draw(h, 4) < h->nodes[event->peer].drop)
			return;
		unit_land(h, unit);
		host_push(h, host_draw(h, 4) ? 1 : host_delay(h), EV_MESSAGE, unit->node,
			  unit->from, unit);
		if (host_chance(h, h->params.duplicates))
			host_push(h, host_delay(h), EV_MESSAGE, unit->node, unit->from, unit);
		return;
	case EV_MESSAGE:
		if (h->nodes[event->peer].dead && host_draw(h, 4) < h->nodes[event->peer].drop)
			return;
		host_log(h, "node %u: message %u from %u step %u seq %llu unit %llu retired %llu\n",
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
			host_fault(h, "operation %llu ended well at %u of %u survivors",
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
				host_fault(h, "hang: node %u has no verdict of operation %llu (%ssubmitted, error %d, retired %llu)",
					   i, (unsigned long long)seq,
					   h->nodes[i].ops[seq].submitted ? "" : "not ",
					   zc_engine_error(h->nodes[i].engine),
					   (unsigned long long)host_retired(h, i));
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
		struct event event = host_pop(h);

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
		host_fault(h, "zc_engine_size() does not like the dimensions");
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
		unit_put(host_pop(h).unit);
	for (i = 0; i < h->params.nodes; i++) {
		for (seq = 0; seq < h->nops; seq++) {
			struct node_op *op = host_op_at(h, i, seq);

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

static void deed(struct host *h, u32 node, u64 when, int what)
{
	h->deeds[h->ndeeds++] = (struct deed){ .when = when, .node = node, .what = what };
}

void host_kill(struct host *h, u32 node, u64 when)
{
	deed(h, node, when, DEED_KILL);
}

void host_abort(struct host *h, u32 node, u64 when)
{
	deed(h, node, when, DEED_ABORT);
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
