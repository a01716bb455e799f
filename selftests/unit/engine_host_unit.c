// SPDX-License-Identifier: GPL-2.0
/*
 * Units with the host of engine_host.h: what is carried out and sent, and where it may not be.
 *
 * The life of a unit: its action comes (unit_begin); what it reads and what it is going
 * to overwrite are noted; some time later they must be as they were, and it is carried
 * out (unit_end), and the engine is told. A SEND is put on the wire in between
 * (unit_transmit), maybe twice; its elements land at the peer only once (unit_land), as
 * transports see to, while the message that tells the engine so may come twice.
 */
#include <stdlib.h>

#include "engine_host_priv.h"

void unit_put(struct unit *unit)
{
	if (!unit || --unit->refs)
		return;
	free(unit->was);
	free(unit->elements);
	free(unit);
}

/* ------------------------------------------------------------------ leave to send */

static struct leave *leave_at(struct host *h, u32 node, u64 seq, u32 step)
{
	struct node_op *op = host_op_at(h, node, seq);
	const struct zcoll_plan *plan = h->ops[seq].plan;

	if (step >= plan->nsteps)
		return NULL;
	if (!op->leave)
		op->leave = calloc(plan->nsteps, sizeof(*op->leave));
	if (!op->leave[step].open)
		op->leave[step].open = calloc(plan->steps[step].repeat, 1);
	return &op->leave[step];
}

void host_grant(struct host *h, u32 node, const struct zc_action *action)
{
	const struct zc_msg *msg = &action->msg;
	const struct zcoll_plan *plan;
	struct leave *leave;

	if (action->peer >= h->params.nodes || msg->seq >= h->nops) {
		host_fault(h, "a GRANT to node %u for operation %llu", action->peer,
			   (unsigned long long)msg->seq);
		return;
	}
	plan = h->ops[msg->seq].plan;
	if (action->seq != msg->seq || action->priv != host_op_at(h, node, msg->seq) ||
	    action->step >= plan->nsteps || action->row != &plan->steps[action->step] ||
	    action->unit != msg->unit || msg->step >= plan->nsteps ||
	    plan->steps[msg->step].match != action->step)
		host_fault(h, "node %u: a GRANT that does not say what for", node);
	leave = leave_at(h, action->peer, msg->seq, msg->step);
	if (!leave || (msg->open && msg->unit >= msg->open))
		host_fault(h, "a GRANT for step %u, unit %llu", msg->step,
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

/* ------------------------------------------------------------------ landing */

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

void unit_land(struct host *h, struct unit *m)
{
	struct mem_place place = landing(h, m);
	struct zc_action unit = m->action;
	struct mem *mem;

	if (h->nodes[m->node].dead || h->nodes[m->node].closed)
		return;
	mem = host_mem_at(h, m->node, unit.seq);
	unit.step = unit.msg.step;
	if (!mem) {
		host_fault(h, "unit %llu of step %u of operation %llu lands at node %u after the end",
			   (unsigned long long)unit.unit, unit.step, (unsigned long long)unit.seq,
			   m->node);
	} else if (!mem_has(mem, &unit, place)) {
		host_fault(h, "unit %llu of step %u lands outside", (unsigned long long)unit.unit,
			   unit.step);
	} else if (place.space == MEM_SLOT && mem->steps[unit.step].full[place.index]++) {
		host_fault(h, "unit %llu of step %u lands at node %u in slot %u, which is in use",
			   (unsigned long long)unit.unit, unit.step, m->node, place.index);
	} else {
		mem_write(mem, &unit, place, m->elements);
	}
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
	const struct mem *mem = host_mem_at(h, unit->node, unit->action.seq);

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
		host_fault(h, "node %u: a place of unit %llu of step %u of operation %llu was written to, while it was under way",
			   unit->node, (unsigned long long)unit->action.unit, unit->action.step,
			   (unsigned long long)unit->action.seq);
	free(look);
	return same;
}

static const char *unit_wrong(struct host *h, u32 node, const struct zc_action *a)
{
	struct node_op *op = host_op_at(h, node, a->seq);
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

void unit_begin(struct host *h, u32 node, const struct zc_action *action)
{
	const char *wrong = unit_wrong(h, node, action);
	struct mem *mem = host_op_at(h, node, action->seq)->mem;
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
		host_fault(h, "node %u: unit %llu of step %u of operation %llu: %s", node,
			   (unsigned long long)action->unit, action->step,
			   (unsigned long long)action->seq, wrong);
		free(unit);
		return;
	}
	host_op_at(h, node, action->seq)->busy++;
	unit->was = unit_look(h, unit);
	host_push(h, host_delay(h), action->type == ZC_DO_SEND ? EV_TRANSMIT : EV_END, node, 0,
		  unit);
}

/* The elements of a SEND leave; a lost packet makes them leave again */
void unit_transmit(struct host *h, struct unit *unit)
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
	host_push(h, host_delay(h), n ? EV_LAND : EV_MESSAGE, m->node, m->from, m);
	host_push(h, host_delay(h), EV_END, unit->node, 0, unit);
}

void unit_end(struct host *h, struct unit *unit)
{
	const struct zc_action *a = &unit->action;
	struct mem *mem = host_op_at(h, unit->node, a->seq)->mem;
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
	host_op_at(h, unit->node, a->seq)->busy--;
	zc_engine_done(h->nodes[unit->node].engine, a->seq, a->step, a->unit);
}
