// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What any plan costs: it is carried out on a LogGP fabric, on paper.
 *
 * This is an evaluation of the plan's own turns, and not a formula, because it has to
 * hold for plans that nobody has a formula for; it moves no data and runs no engine,
 * unlike `zcoll sim`. Formulas, for choosing among the known algorithms, are in model.c.
 *
 * Vocabulary: a turn's segments, laid end to end, are cut into *slices*; a *unit* is one
 * slice of one turn, number turn * slices + slice of its step; a *part* is one step at
 * one node. Units of a part begin and end in order.
 *
 * The machine. Each node has a processor, which serves one thing at a time in the order
 * in which they became possible: o for a message sent or received, and gamma for each
 * byte folded; and a NIC, which sends one message at a time, and receives one at a time: G
 * for each byte after the first, and at least g. Between NICs, the head of a message takes
 * L, and its tail follows. What local ranks cost is not counted.
 *
 * Two things make large plans cheap. Where all nodes take part in all steps, all do the
 * same at the same times, and one of them stands for all. And a pipeline that is
 * filled grows by the same time with each slice, so that beyond UNITS_MAX units the
 * time is extrapolated from two smaller operations.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll_plan.h>

#include "../../kmod/engine/engine.h"
#include "agenda.h"
#include "model.h"

#define UNITS_MAX	(4U << 20)	/* of all parts: about a second, and 64 MiB */

#define AHEAD		64	/* units that may be granted before they are begun */

/* A step, the same at all nodes */
struct row {
	double bytes;		/* of a turn */
	double slice;		/* bytes of a unit */
	u64 slices;
	u64 units;
	bool direct;		/* what it receives lands in its place, by leave only */
	u64 free;		/* units that may be sent without leave */
};

/* A step at one node; all counts are units */
struct part {
	u64 base;		/* of its units in timing.done and .came */
	u64 ready;
	u64 begun;
	u64 ended;
	u64 granted;		/* to the sender by this part, or to this part */
	bool active;
};

struct node {
	double cpu;		/* busy until then */
	double out;		/* likewise the NIC, sending, */
	double in;		/* and receiving */
	double sent;		/* bytes */
	double folded;
	u64 messages;
};

struct timing {
	const struct zcoll_plan *plan;
	const struct zcoll_fabric *fabric;
	u64 slice;		/* bytes */
	u32 nodes;		/* that are looked at: one may stand for all */
	struct row *rows;
	struct part *parts;
	struct node *node;
	u32 *done;		/* by unit: messages on the longest chain to its end */
	u32 *came;		/* by unit: likewise to its message, which has come; 0: not yet */
	struct zc_agenda agenda;
	double now;
	double end;		/* when the last unit ended that is no SEND */
};

/* ---- order ---- */

static struct part *part_of(const struct timing *tm, u32 v, u32 step)
{
	return &tm->parts[(size_t)v * tm->plan->nsteps + step];
}

/* How many units of @row must have ended before this one may begin */
static u64 units_before(const struct zcoll_after *after, const struct row *row, u32 repeat,
			u64 turn, u64 slice)
{
	s64 t = (s64)turn - after->shift;

	if (after->mode == ZCOLL_AFTER_ALL)
		return row->units;
	if (t < 0)
		return 0;
	if (t >= (s64)repeat)
		t = (s64)repeat - 1;
	if (after->mode == ZCOLL_AFTER_SLICE && slice < row->slices)
		return t * row->slices + slice + 1;
	return (t + 1) * row->slices;
}

/* May a unit begin? And how long is the chain of messages that it has waited for? */
static bool unit_ready(const struct timing *tm, u32 v, u32 step, u64 unit, u32 *depth)
{
	const struct zcoll_step *row = &tm->plan->steps[step];
	u64 slices = tm->rows[step].slices, need;
	const struct part *part;
	unsigned int i;

	*depth = 0;
	for (i = 0; i < ZCOLL_PLAN_AFTER; i++) {
		const struct zcoll_after *after = &row->after[i];

		if (after->mode == ZCOLL_AFTER_NONE)
			continue;
		part = part_of(tm, v, after->step);
		if (!part->active)
			continue;
		need = units_before(after, &tm->rows[after->step],
				    tm->plan->steps[after->step].repeat, unit / slices,
				    unit % slices);
		if (part->ended < need)
			return false;
		if (need && tm->done[part->base + need - 1] > *depth)
			*depth = tm->done[part->base + need - 1];
	}
	return true;
}

/* ---- messages ---- */

/*
 * A side of a NIC passes a message from @from on, or when it is free. A grant takes its
 * time, too, but does not queue: it is one packet of a queue pair of its own, and NICs pass
 * packets of several queue pairs in turn. Return: from when
 */
static double use_nic(const struct timing *tm, double *free, double from,
		      const struct zc_event *message)
{
	double start = fmax(from, *free);

	*free = start + fmax(fmax(message->bytes - 1, 0) * tm->fabric->per_byte,
			     tm->fabric->gap);
	return message->grant ? from : start;
}

/* The processor is busy for so long, from when it has time. Return: until when */
static double use_cpu(struct timing *tm, struct node *node, double ns)
{
	node->cpu = fmax(node->cpu, tm->now) + ns;
	return node->cpu;
}

/* Send a message from @v to @to->node. Return: when its last byte has left; < 0: errno */
static double post(struct timing *tm, u32 v, struct zc_event to)
{
	struct node *node = &tm->node[v];
	double from = use_cpu(tm, node, tm->fabric->overhead);
	int err;

	from = use_nic(tm, &node->out, from, &to);
	to.type = ZC_HEAD;
	to.at = from + tm->fabric->latency;
	if (tm->nodes == 1)
		to.node = 0;
	err = zc_agenda_add(&tm->agenda, to);
	return err ? err : from + fmax(to.bytes - 1, 0) * tm->fabric->per_byte;
}

/* The step whose messages @step gets from @peer */
static u32 feed_of(const struct zcoll_plan *plan, u32 step, u32 peer)
{
	u32 i;

	for (i = 0; i < plan->nsteps; i++)
		if (plan->steps[i].kind == ZCOLL_STEP_SEND && plan->steps[i].match == step &&
		    zc_step_active(plan, &plan->steps[i], peer))
			return i;
	return ZC_NONE;
}

static int grant(struct timing *tm, u32 v, u32 step, u64 turn_no, u64 until)
{
	const struct zcoll_plan *plan = tm->plan;
	struct zc_event leave = { .grant = true, .unit = until, .bytes = 1 };
	struct zc_turn turn;
	double end;
	int err = zc_step_turn(plan, &plan->steps[step], v, turn_no, &turn);

	if (err)
		return err;
	leave.node = turn.peer;
	leave.step = feed_of(plan, step, turn.peer);
	if (leave.step == ZC_NONE)
		return -EPROTO;
	end = post(tm, v, leave);
	return end < 0 ? (int)end : 0;
}

/* The sender may send units below this: there is a slot, or nothing else is in their place */
static u64 grantable(struct timing *tm, u32 v, u32 step)
{
	struct part *part = part_of(tm, v, step);
	u64 units = tm->rows[step].units;
	u32 depth;

	if (!tm->rows[step].direct)
		return units < part->ended + ZC_ENGINE_SLOTS ? units : part->ended + ZC_ENGINE_SLOTS;
	while (part->ready < units && part->ready < part->begun + AHEAD &&
	       unit_ready(tm, v, step, part->ready, &depth))
		part->ready++;
	return part->ready;
}

/* Tell the sender of a part what it may send, but not each time a little */
static int grant_more(struct timing *tm, u32 v, u32 step)
{
	struct part *part = part_of(tm, v, step);
	u64 until = grantable(tm, v, step);
	int err = 0;

	if (tm->plan->steps[step].flags & ZCOLL_STEP_OPEN) {
		for (; part->granted < until && !err; part->granted++)
			err = grant(tm, v, step, part->granted, part->granted + 1);
		return err;
	}
	if (until <= part->granted || (until < tm->rows[step].units &&
				       part->granted > part->begun &&
				       until - part->granted < ZC_ENGINE_SLOTS / 2))
		return 0;
	part->granted = until;
	return grant(tm, v, step, 0, until);
}

/* ---- units ---- */

/* Return: when it ends, < 0: errno */
static double send_unit(struct timing *tm, u32 v, u32 step, u64 unit, u32 depth)
{
	const struct zcoll_step *row = &tm->plan->steps[step];
	struct zc_event data = { .unit = unit, .step = row->match, .depth = depth + 1,
				 .bytes = tm->rows[step].slice };
	struct zc_turn turn;
	int err;

	err = zc_step_turn(tm->plan, row, v, unit / tm->rows[step].slices, &turn);
	if (err)
		return err;
	if (!zc_step_active(tm->plan, &tm->plan->steps[row->match], turn.peer) ||
	    unit >= tm->rows[row->match].units)
		return -EPROTO;
	data.node = turn.peer;
	tm->node[v].sent += data.bytes;
	tm->node[v].messages++;
	return post(tm, v, data);
}

static double local_unit(struct timing *tm, u32 v, u32 step)
{
	const struct zcoll_step *row = &tm->plan->steps[step];
	double bytes = tm->rows[step].slice;

	if (row->kind != ZCOLL_STEP_FOLD || row->flags & ZCOLL_STEP_STORE)
		return tm->now;
	if (zc_step_receives(row))
		tm->node[v].folded += bytes;
	return use_cpu(tm, &tm->node[v], bytes * tm->fabric->per_byte_folded);
}

/* May a part's next unit begin? @depth: the longest chain of messages it waited for */
static bool may_begin(const struct timing *tm, u32 v, u32 step, u32 *depth)
{
	const struct zcoll_step *row = &tm->plan->steps[step];
	const struct part *part = part_of(tm, v, step);
	u32 came = tm->came[part->base + part->begun];

	if (part->begun >= part->ended + ZC_ENGINE_INFLIGHT)
		return false;
	if (row->kind == ZCOLL_STEP_SEND && part->begun >= part->granted)
		return false;
	if ((zc_step_receives(row) && !came) ||
	    !unit_ready(tm, v, step, part->begun, depth))
		return false;
	if (came > *depth)
		*depth = came;
	return true;
}

/* Begin what may begin at a part */
static int part_advance(struct timing *tm, u32 v, u32 step)
{
	struct part *part = part_of(tm, v, step);
	struct zc_event end = { .type = ZC_END, .node = v, .step = step };
	int err = 0;

	if (part->active && zc_step_receives(&tm->plan->steps[step]))
		err = grant_more(tm, v, step);
	while (!err && part->active && part->begun < tm->rows[step].units &&
	       may_begin(tm, v, step, &end.depth)) {
		if (tm->plan->steps[step].kind == ZCOLL_STEP_SEND)
			end.at = send_unit(tm, v, step, part->begun, end.depth);
		else
			end.at = local_unit(tm, v, step);
		part->begun++;
		err = end.at < 0 ? (int)end.at : zc_agenda_add(&tm->agenda, end);
	}
	return err;
}

/* A unit has ended: begin what has waited for it */
static int unit_ended(struct timing *tm, const struct zc_event *event)
{
	struct part *part = part_of(tm, event->node, event->step);
	u32 *done = &tm->done[part->base + part->ended];
	u32 step, i;
	int err;

	*done = event->depth;
	if (part->ended && done[-1] > *done)
		*done = done[-1];
	part->ended++;
	if (tm->plan->steps[event->step].kind != ZCOLL_STEP_SEND)
		tm->end = tm->now;
	err = part_advance(tm, event->node, event->step);
	for (step = 0; step < tm->plan->nsteps; step++)
		for (i = 0; i < ZCOLL_PLAN_AFTER && !err; i++)
			if (tm->plan->steps[step].after[i].mode &&
			    tm->plan->steps[step].after[i].step == event->step)
				err = part_advance(tm, event->node, step);
	return err;
}

static int came(struct timing *tm, const struct zc_event *event)
{
	struct part *part = part_of(tm, event->node, event->step);

	if (!event->grant)
		tm->came[part->base + event->unit] = event->depth;
	else if (tm->plan->steps[event->step].flags & ZCOLL_STEP_OPEN)
		part->granted++;
	else
		part->granted = event->unit;
	return part_advance(tm, event->node, event->step);
}

static int handle(struct timing *tm, struct zc_event event)
{
	struct node *node = &tm->node[event.node];

	tm->now = event.at;
	switch (event.type) {
	case ZC_HEAD:
		event.at = use_nic(tm, &node->in, tm->now, &event) +
			   fmax(event.bytes - 1, 0) * tm->fabric->per_byte;
		event.type = ZC_TAIL;
		return zc_agenda_add(&tm->agenda, event);
	case ZC_TAIL:
		event.at = use_cpu(tm, node, tm->fabric->overhead);
		event.type = ZC_CAME;
		return zc_agenda_add(&tm->agenda, event);
	case ZC_CAME:
		return came(tm, &event);
	default:
		return unit_ended(tm, &event);
	}
}

/* ---- a run ---- */

/* Do all nodes take part in all steps? Then they all do the same at the same times. */
static bool all_alike(const struct zcoll_plan *plan)
{
	u32 v, step;

	for (step = 0; step < plan->nsteps; step++)
		for (v = 0; v < plan->nodes; v++)
			if (!zc_step_active(plan, &plan->steps[step], v))
				return false;
	return true;
}

/* Where does what a step receives land? As the engine decides it (kmod/engine/row.c) */
static bool is_direct(const struct timing *tm, u32 step)
{
	const struct zcoll_step *row = &tm->plan->steps[step];

	if (!zc_step_receives(row))
		return false;
	if (row->kind != ZCOLL_STEP_DELIVER && !(row->flags & ZCOLL_STEP_OPEN))
		return false;
	return tm->rows[step].slice > ZC_ENGINE_EAGER;
}

static void set_rows(struct timing *tm, double bytes)
{
	const struct zcoll_plan *plan = tm->plan;
	u32 step;

	for (step = 0; step < plan->nsteps; step++) {
		struct row *row = &tm->rows[step];

		row->bytes = bytes / plan->segments * plan->steps[step].count;
		row->slices = plan->steps[step].flags & ZCOLL_STEP_OPEN ? 1 :
			      zc_cut(ceil(row->bytes), tm->slice).slices;
		row->slice = row->bytes / row->slices;
		row->units = row->slices * plan->steps[step].repeat;
		row->direct = is_direct(tm, step);
		row->free = row->direct ? 0 : row->units;
		if (row->free > ZC_ENGINE_SLOTS && !(plan->steps[step].flags & ZCOLL_STEP_OPEN))
			row->free = ZC_ENGINE_SLOTS;
	}
}

/* The units of all parts of an operation of so many bytes */
static u64 set_parts(struct timing *tm, double bytes)
{
	const struct zcoll_plan *plan = tm->plan;
	u64 units = 0;
	u32 step, v;

	set_rows(tm, bytes);
	for (step = 0; step < plan->nsteps; step++) {
		bool sends = plan->steps[step].kind == ZCOLL_STEP_SEND;
		u64 granted = tm->rows[sends ? plan->steps[step].match : step].free;

		for (v = 0; v < tm->nodes; v++) {
			struct part *part = part_of(tm, v, step);

			*part = (struct part){ .base = units, .granted = granted };
			part->active = zc_step_active(plan, &plan->steps[step], v);
			units += part->active ? tm->rows[step].units : 0;
		}
	}
	return units;
}

static void sum_up(const struct timing *tm, struct zcoll_plan_cost *cost)
{
	u32 times = tm->nodes == 1 ? tm->plan->nodes : 1, v, step;
	const struct part *part;

	for (v = 0; v < tm->nodes; v++) {
		const struct node *node = &tm->node[v];

		cost->sent_max = fmax(cost->sent_max, node->sent);
		cost->sent_total += node->sent * times;
		cost->folded_max = fmax(cost->folded_max, node->folded);
		if (node->messages > cost->messages_max)
			cost->messages_max = node->messages;
		for (step = 0; step < tm->plan->nsteps; step++) {
			part = part_of(tm, v, step);
			if (part->ended && tm->done[part->base + part->ended - 1] > cost->rounds)
				cost->rounds = tm->done[part->base + part->ended - 1];
		}
	}
}

/* All units must have ended: one that has not waits for something that never comes */
static bool all_ended(const struct timing *tm)
{
	u32 v, step;

	for (v = 0; v < tm->nodes; v++)
		for (step = 0; step < tm->plan->nsteps; step++)
			if (part_of(tm, v, step)->active &&
			    part_of(tm, v, step)->ended < tm->rows[step].units)
				return false;
	return true;
}

static int run(struct timing *tm, double bytes, struct zcoll_plan_cost *cost)
{
	u64 units = set_parts(tm, bytes);
	int err = 0;
	u32 v, step;

	*cost = (struct zcoll_plan_cost){ 0 };
	tm->now = tm->end = 0;
	tm->done = calloc(units, sizeof(*tm->done));
	tm->came = calloc(units, sizeof(*tm->came));
	tm->node = calloc(tm->nodes, sizeof(*tm->node));
	if (!tm->done || !tm->came || !tm->node)
		err = -ENOMEM;
	for (v = 0; v < tm->nodes && !err; v++)
		for (step = 0; step < tm->plan->nsteps && !err; step++)
			err = part_advance(tm, v, step);
	while (tm->agenda.count && !err)
		err = handle(tm, zc_agenda_next(&tm->agenda));
	if (!err)
		err = all_ended(tm) ? 0 : -EDEADLK;
	if (!err)
		sum_up(tm, cost);
	cost->ns = tm->end;
	free(tm->done);
	free(tm->came);
	free(tm->node);
	return err;
}

/* Smaller operations stand for one of too many units: what grows, grows evenly */
static int run_scaled(struct timing *tm, double bytes, struct zcoll_plan_cost *cost)
{
	double large = bytes, small, more;
	struct zcoll_plan_cost half;
	int err;

	while (set_parts(tm, large) > UNITS_MAX) {
		large /= 2;
		if (large < tm->slice)
			return -E2BIG;
	}
	err = run(tm, large, cost);
	if (err || large == bytes)
		return err;
	small = large / 2;
	err = run(tm, small, &half);
	more = (bytes - large) / (large - small);
	cost->ns += (cost->ns - half.ns) * more;
	cost->messages_max += (cost->messages_max - half.messages_max) * more;
	cost->sent_max *= bytes / large;
	cost->sent_total *= bytes / large;
	cost->folded_max *= bytes / large;
	return err;
}

static int cost_failed(int err, const struct zcoll_plan *plan, char *error, size_t len)
{
	if (err == -ENOMEM)
		snprintf(error, len, "out of memory");
	else if (err == -E2BIG)
		snprintf(error, len, "too long to be timed: more than %u turns of all nodes",
			 UNITS_MAX);
	else if (err == -EDEADLK)
		snprintf(error, len, "the plan does not end: some step waits for ever");
	else if (err == -EPROTO)
		snprintf(error, len, "the plan sends a message that nobody receives");
	else
		snprintf(error, len, "a step of the plan has no such peer (of %u nodes) or segment",
			 plan->nodes);
	return err;
}

/**
 * zcoll_plan_time - what a plan costs
 * @plan: plan
 * @fabric: fabric
 * @bytes: of the operation: of all segments, which are even
 * @slice: bytes of a slice; 0: ZCOLL_SLICE_DEFAULT
 * @cost: its cost
 * @error: text of an error
 * @error_len: its size
 *
 * Return: 0 or a negative errno, with a text. -EINVAL, -EHOSTUNREACH, -ERANGE,
 * -EPROTO or -EDEADLK: zcoll_plan_check() would have refused the plan; -E2BIG: too long.
 */
int zcoll_plan_time(const struct zcoll_plan *plan, const struct zcoll_fabric *fabric,
		    uint64_t bytes, uint64_t slice, struct zcoll_plan_cost *cost,
		    char *error, size_t error_len)
{
	struct timing tm = { .plan = plan, .fabric = fabric };
	struct zc_plan_why why;
	int err;

	err = zc_plan_valid(plan, plan->size, &why);
	if (err) {
		snprintf(error, error_len, "%s", why.what);
		return err;
	}
	tm.slice = slice ? slice : ZCOLL_SLICE_DEFAULT;
	tm.nodes = all_alike(plan) ? 1 : plan->nodes;
	tm.rows = calloc(plan->nsteps, sizeof(*tm.rows));
	tm.parts = calloc((size_t)tm.nodes * plan->nsteps, sizeof(*tm.parts));
	err = tm.rows && tm.parts ? run_scaled(&tm, bytes, cost) : -ENOMEM;
	cost->bound_ns = zcoll_plan_bound(plan->collective, plan->members, fabric, bytes);
	free(tm.rows);
	free(tm.parts);
	zc_agenda_free(&tm.agenda);
	return err ? cost_failed(err, plan, error, error_len) : 0;
}
