// SPDX-License-Identifier: GPL-2.0
/*
 * The oracle of oracle.h: a host for the engines of all nodes, that does all at once and in
 * order.
 *
 * A node has its elements in the order of the plan: block collectives number them node by
 * node. Everything lands in slots (struct zc_op_desc.eager is unlimited), and a unit is a
 * whole turn, so that a slot holds the payload of one message.
 */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "fold.h"
#include "oracle.h"

#define SLOTS	ZC_ENGINE_SLOTS
#define INPUTS	16	/* that are folded in one pass with what they meet first */

struct message {
	struct message *next;
	u32 from, to, slot;
	struct zc_msg msg;
	u8 payload[];
};

struct node {
	struct run *run;
	void *room;
	struct zc_engine *engine;
	u32 *rank;		/* its ranks */
	u32 nlocal;
	u32 v;
	const void **src;	/* inputs, elements in the order of the plan */
	u32 nsrc;
	u8 *out;		/* outputs */
	u8 *data;		/* accumulation: @out, if that has room for all */
	u8 *scratch;
	struct message ***slot;	/* by step and slot */
	bool complete;
	s32 status;
};

struct run {
	const struct oracle *o;
	const void *const *in;
	struct zc_geometry geo;
	u64 *starts;
	u64 largest;		/* elements of a segment */
	u32 *order;		/* ranks, node by node */
	u32 *begins;		/* nodes + 1 numbers: ranks of the nodes before */
	u32 size;		/* bytes of an element */
	struct zc_prog prog;
	void *prog_room;
	struct node *nodes;
	struct message *first, **last;
	const char *wrong;
};

static bool in_blocks(const struct oracle *o)
{
	return o->plan->collective == ZCOLL_REDUCE_SCATTER ||
	       o->plan->collective == ZCOLL_ALLGATHER;
}

static u32 node_of(const struct oracle *o, u32 rank)
{
	return o->map ? o->map[rank] : 0;
}

/* ------------------------------------------------------------------- folding */

/* All nodes but the last use of a value add up; only what becomes final is an average */
static void fold(const struct run *run, bool finish, void *dst, const void *const *src, u32 n,
		 u64 count)
{
	u32 op = run->o->op == ZCOLL_AVG && !finish ? ZCOLL_SUM : run->o->op;

	zc_fold_ref.fn[run->o->dtype][op](&dst, src, 1, n, run->o->nranks, 0, count, false);
}

/* One operand: a copy, but a fold where a reduction becomes final, which rounds or divides */
static void move(const struct run *run, bool finish, void *dst, const void *src, u64 count)
{
	if (finish && run->o->op)
		fold(run, true, dst, &src, 1, count);
	else
		memmove(dst, src, count * run->size);
}

/* The local inputs from element @first on, and @received unless that is NULL */
static void fold_inputs(const struct node *n, bool finish, void *dst, u64 first, u64 count,
			const void *received)
{
	const struct run *run = n->run;
	const void *src[n->nsrc + 2];
	u32 i;

	for (i = 0; i < n->nsrc; i++)
		src[i] = (const u8 *)n->src[i] + first * run->size;
	if (!received && n->nsrc == 1) {
		move(run, finish, dst, src[0], count);
	} else if (!received) {
		fold(run, finish, dst, src, n->nsrc, count);
	} else if (n->nsrc <= INPUTS && !(n->nsrc & (n->nsrc - 1))) {
		src[n->nsrc] = received;
		fold(run, finish, dst, src, n->nsrc + 1, count);
	} else {
		fold(run, false, dst, src, n->nsrc, count);
		src[0] = dst;
		src[1] = received;
		fold(run, finish, dst, src, 2, count);
	}
}

/* --------------------------------------------------------------------- units */

/* A piece of a unit: elements of the operation, and which of the unit's they are */
struct part {
	u64 first, count, at;
};

static u8 *place_at(const struct node *n, const struct zc_action *a, u32 scratch,
		    const struct part *part)
{
	const struct run *run = n->run;

	if (scratch == ZC_NONE)
		return n->data + part->first * run->size;
	return n->scratch + (scratch * run->largest + a->offset + part->at) * run->size;
}

static void unit_fold(const struct node *n, const struct zc_action *a, const struct part *part,
		      const u8 *received)
{
	const struct run *run = n->run;
	bool finish = a->row->flags & ZCOLL_STEP_RESULT;
	u8 *dst = finish ? n->out + part->first * run->size : place_at(n, a, a->dst, part);
	const void *src[2];

	if (a->peer == ZC_NONE) {
		src[0] = dst;
		src[1] = place_at(n, a, a->src, part);
		if (a->row->flags & ZCOLL_STEP_STORE)
			move(run, false, dst, src[1], part->count);
		else
			fold(run, false, dst, src, 2, part->count);
	} else if (a->row->flags & ZCOLL_STEP_FIRST) {
		fold_inputs(n, finish, dst, part->first, part->count, received);
	} else if (a->row->flags & ZCOLL_STEP_STORE) {
		move(run, false, dst, received, part->count);
	} else {
		src[0] = place_at(n, a, a->src, part);
		src[1] = received;
		fold(run, finish, dst, src, 2, part->count);
	}
}

/*
 * Has what is delivered still to become final? In a reduction, where the sender has no output for
 * the segment: in an all-reduce none but aggregators have none, else none but the receiver has one.
 */
static bool delivers_sum(const struct node *n, const struct zc_action *a)
{
	const struct zcoll_plan *plan = n->run->o->plan;

	return plan->collective != ZCOLL_ALLREDUCE || a->peer >= plan->members;
}

static void unit_part(const struct node *n, const struct zc_action *a, const struct part *part,
		      const u8 *received, u8 *sent)
{
	const struct run *run = n->run;
	bool first = a->row->flags & ZCOLL_STEP_FIRST;
	u8 *out = n->out + part->first * run->size;

	switch (a->type) {
	case ZC_DO_SEND:
		if (first)
			fold_inputs(n, false, sent, part->first, part->count, NULL);
		else
			move(run, false, sent, place_at(n, a, a->src, part), part->count);
		break;
	case ZC_DO_GATHER:
		fold_inputs(n, false, place_at(n, a, a->dst, part), part->first, part->count,
			    NULL);
		break;
	case ZC_DO_FOLD:
		unit_fold(n, a, part, received);
		break;
	case ZC_DO_DELIVER:
		move(run, delivers_sum(n, a), out, received, part->count);
		break;
	case ZC_DO_FINAL:
		if (first)
			fold_inputs(n, true, out, part->first, part->count, NULL);
		else
			move(run, true, out, place_at(n, a, a->src, part), part->count);
		break;
	}
}

static void unit(const struct node *n, const struct zc_action *a, const u8 *received, u8 *sent)
{
	u32 size = n->run->size, i;
	struct part part = { 0 };

	for (i = 0; i < a->npieces; i++) {
		part.first = a->piece[i].first;
		part.count = a->piece[i].count;
		unit_part(n, a, &part, received ? received + part.at * size : NULL,
			  sent ? sent + part.at * size : NULL);
		part.at += part.count;
	}
}

static u64 unit_bytes(const struct run *run, const struct zc_action *a)
{
	u64 count = 0;
	u32 i;

	for (i = 0; i < a->npieces; i++)
		count += a->piece[i].count;
	return count * run->size;
}

/* ------------------------------------------------------------------- actions */

static void send_message(struct node *n, const struct zc_action *a)
{
	struct run *run = n->run;
	u64 bytes = a->type == ZC_DO_SEND ? unit_bytes(run, a) : 0;
	struct message *m = calloc(1, sizeof(*m) + bytes);

	m->from = n - run->nodes;
	m->to = a->peer;
	m->slot = a->slot;
	m->msg = a->msg;
	if (bytes)
		unit(n, a, NULL, m->payload);
	*run->last = m;
	run->last = &m->next;
	if (a->type == ZC_DO_SEND)
		zc_engine_done(n->engine, a->seq, a->step, a->unit);
}

/* What the action uses up, if it comes from a peer */
static struct message **slot_of(struct node *n, const struct zc_action *a)
{
	return a->peer == ZC_NONE ? NULL : &n->slot[a->step][a->slot];
}

static void carry_out(struct node *n, const struct zc_action *a)
{
	struct message **slot = slot_of(n, a);

	if (slot && !*slot) {
		n->run->wrong = "a unit is begun that has not landed";
		return;
	}
	unit(n, a, slot ? (*slot)->payload : NULL, NULL);
	if (slot) {
		free(*slot);
		*slot = NULL;
	}
	zc_engine_done(n->engine, a->seq, a->step, a->unit);
}

static void drain(struct node *n)
{
	struct zc_action a;

	while (!n->run->wrong && zc_engine_next(n->engine, &a)) {
		switch (a.type) {
		case ZC_DO_SEND:
		case ZC_DO_TELL:
			send_message(n, &a);
			break;
		case ZC_DO_CLOSE:
			zc_engine_closed(n->engine);
			break;
		case ZC_DO_COMPLETE:
			n->complete = true;
			n->status = a.status;
			break;
		case ZC_DO_AGAIN:
			break;
		default:
			carry_out(n, &a);
		}
	}
}

/* Only what has elements is ever asked for, and a slot is free before it is used again */
static void deliver(struct run *run, struct message *m)
{
	struct node *n = &run->nodes[m->to];
	struct message **slot = NULL;

	if (m->msg.type == ZC_MSG_DATA && m->slot != ZC_NONE)
		slot = &n->slot[m->msg.step][m->slot];
	if (slot && *slot)
		run->wrong = "a message lands in a slot that is in use";
	if (slot)
		*slot = m;
	zc_engine_message(n->engine, m->from, &m->msg);
	if (!slot)
		free(m);
	drain(n);
}

/* -------------------------------------------------------------------- making */

static u32 open_bits(const struct zcoll_plan *plan)
{
	u32 bits = 0, i;

	for (i = 0; i < plan->nsteps; i++)
		if (plan->steps[i].flags & ZCOLL_STEP_OPEN)
			bits += (plan->steps[i].repeat + 63) / 64 * 64;
	return bits;
}

static void number_ranks(struct run *run)
{
	const struct oracle *o = run->o;
	u32 node, rank, at = 0;

	run->order = calloc(o->nranks, sizeof(u32));
	run->begins = calloc(o->plan->nodes + 1, sizeof(u32));
	for (node = 0; node < o->plan->nodes; node++) {
		run->begins[node] = at;
		for (rank = 0; rank < o->nranks; rank++)
			if (node_of(o, rank) == node)
				run->order[at++] = rank;
	}
	run->begins[node] = at;
}

static void geometry(struct run *run)
{
	const struct oracle *o = run->o;
	u32 i;

	run->geo.count = in_blocks(o) ? o->count * o->nranks : o->count;
	if (in_blocks(o) && o->count) {
		run->starts = calloc(o->plan->segments + 1, sizeof(u64));
		for (i = 0; i <= o->plan->segments; i++)
			run->starts[i] = run->begins[i] * o->count;
		run->geo.starts = run->starts;
	}
	run->largest = zc_geometry_largest(&run->geo, o->plan->segments);
}

/* Block b of @to, in the order of the plan, is that of rank order[b] in @from; or back */
static void reorder(const struct run *run, u8 *to, const u8 *from, bool back)
{
	u64 bytes = run->o->count * run->size;
	u32 b;

	for (b = 0; b < run->o->nranks; b++)
		memcpy(to + (back ? run->order[b] : b) * bytes,
		       from + (back ? b : run->order[b]) * bytes, bytes);
}

/* The inputs of a node in the order of the plan */
static void inputs(struct node *n)
{
	const struct run *run = n->run;
	const struct oracle *o = run->o;
	u64 bytes = o->count * run->size;
	u8 *copy;
	u32 i;

	n->src = calloc(n->nlocal + 1, sizeof(*n->src));
	if (o->plan->collective == ZCOLL_ALLGATHER) {
		copy = calloc(run->geo.count + 1, run->size);
		for (i = 0; i < n->nlocal && bytes; i++)
			memcpy(copy + (run->begins[n - run->nodes] + i) * bytes,
			       run->in[n->rank[i]], bytes);
		n->src[n->nsrc++] = copy;
		return;
	}
	for (i = 0; i < n->nlocal; i++) {
		if (o->plan->collective == ZCOLL_BROADCAST && n->rank[i] != o->root)
			continue;
		copy = calloc(run->geo.count + 1, run->size);
		if (in_blocks(o))
			reorder(run, copy, run->in[n->rank[i]], false);
		else if (bytes)
			memcpy(copy, run->in[n->rank[i]], bytes);
		n->src[n->nsrc++] = copy;
	}
}

static void node_make(struct run *run, u32 node)
{
	const struct zcoll_plan *plan = run->o->plan;
	const struct zc_engine_config config = {
		.node = node, .nodes = plan->nodes, .window = 1, .steps = plan->nsteps,
		.links = plan->nodes - 1, .slots = SLOTS, .inflight = ZC_ENGINE_INFLIGHT,
		.bits = open_bits(plan),
	};
	struct node *n = &run->nodes[node];
	u32 i, slots;

	n->run = run;
	n->rank = run->order + run->begins[node];
	n->nlocal = run->begins[node + 1] - run->begins[node];
	n->v = zc_plan_number(plan, node_of(run->o, run->o->root), node);
	n->room = calloc(1, zc_engine_size(&config));
	n->engine = zc_engine_init(n->room, &config);
	n->out = calloc(run->geo.count + 1, run->size);
	n->data = zc_plan_has_outputs(plan, n->v) ? n->out : calloc(run->geo.count + 1, run->size);
	n->scratch = calloc(plan->scratch * run->largest + 1, run->size);
	n->slot = calloc(plan->nsteps, sizeof(*n->slot));
	for (i = 0; i < plan->nsteps; i++) {
		slots = plan->steps[i].repeat > SLOTS ? plan->steps[i].repeat : SLOTS;
		n->slot[i] = calloc(slots, sizeof(**n->slot));
	}
	inputs(n);
}

static void node_free(struct node *n)
{
	u32 i;

	for (i = 0; i < n->run->o->plan->nsteps; i++)
		free(n->slot[i]);
	for (i = 0; i < n->nsrc; i++)
		free((void *)n->src[i]);
	if (n->data != n->out)
		free(n->data);
	free(n->out);
	free(n->scratch);
	free(n->slot);
	free(n->src);
	free(n->room);
}

/* -------------------------------------------------------------------- running */

static void submit(struct node *n)
{
	const struct run *run = n->run;
	const struct zc_op_desc desc = {
		.prog = &run->prog, .root = node_of(run->o, run->o->root), .geo = run->geo,
		.slice = run->geo.count + 1, .eager = U64_MAX, .reserve = U64_MAX,
	};

	if (zc_engine_submit(n->engine, &desc))
		n->run->wrong = "an engine refuses the operation";
	drain(n);
}

static void run_all(struct run *run)
{
	struct message *m;
	u32 node;

	for (node = 0; node < run->o->plan->nodes && !run->wrong; node++)
		submit(&run->nodes[node]);
	while ((m = run->first) && !run->wrong) {
		run->first = m->next;
		if (!run->first)
			run->last = &run->first;
		deliver(run, m);
	}
	while ((m = run->first)) {
		run->first = m->next;
		free(m);
	}
	for (node = 0; node < run->o->plan->nodes && !run->wrong; node++)
		if (!run->nodes[node].complete || run->nodes[node].status)
			run->wrong = "a node does not end, or with an error";
}

/* From the nodes' outputs to those of the ranks */
static void results(const struct run *run, void *const *out)
{
	const struct oracle *o = run->o;
	u64 bytes = o->count * run->size;
	const u8 *from;
	u32 b, rank;

	for (b = 0; b < o->nranks && bytes; b++) {
		rank = run->order[b];
		from = run->nodes[node_of(o, rank)].out;
		if (!out[rank] || (o->plan->collective == ZCOLL_REDUCE && rank != o->root))
			continue;
		if (o->plan->collective == ZCOLL_ALLGATHER)
			reorder(run, out[rank], from, true);
		else if (o->plan->collective == ZCOLL_REDUCE_SCATTER)
			memcpy(out[rank], from + b * bytes, bytes);
		else
			memcpy(out[rank], from, bytes);
	}
}

const char *oracle_run(const struct oracle *oracle, const void *const *in, void *const *out)
{
	const struct zcoll_plan *plan = oracle->plan;
	struct run run = { .o = oracle, .in = in, .last = &run.first };
	u32 node;

	run.size = oracle->dtype ? zc_dtype_size(oracle->dtype) : 1;
	run.prog_room = calloc(1, zc_prog_size(plan));
	zc_prog_init(&run.prog, plan, run.prog_room);
	number_ranks(&run);
	geometry(&run);
	run.nodes = calloc(plan->nodes, sizeof(*run.nodes));
	for (node = 0; node < plan->nodes; node++)
		node_make(&run, node);
	run_all(&run);
	if (!run.wrong)
		results(&run, out);
	for (node = 0; node < plan->nodes; node++)
		node_free(&run.nodes[node]);
	free(run.nodes);
	free(run.starts);
	free(run.begins);
	free(run.order);
	free(run.prog_room);
	return run.wrong;
}
