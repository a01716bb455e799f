// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The proof that a plan is right: zcoll_plan_check().
 *
 * What is proved, and by which argument:
 *
 *  1. Each SEND is received by the step that it names, at a node that expects it, and each
 *     receiving step gets each turn from exactly one SEND (check_pairs.c).
 *
 *  2. At each node, the local rules of <linux/zcoll_plan.h>: zc_plan_check(), the same as
 *     in the kernel. Above all, two accesses to a place of which one writes are
 *     ordered by what steps wait for, a SEND reading until it is done. So what a turn reads
 *     depends neither on timing nor on how turns are cut into slices, and one
 *     symbolic run, with whole turns, stands for all real ones.
 *
 *  3. Each output is the expression it has to be: each member's contribution exactly
 *     once, and made final once (check_run.c, check_outputs.c). This is exact: values are
 *     expressions, and their sets of nodes are kept as such (check_expr.c); nothing is hashed
 *     down or drawn at random. The order of reduction is read off the same expressions.
 *
 *  4. Nothing waits forever, for any number of slots and of slices (check_order.c).
 *     Everything in the engine waits for determinate events, none of which takes from
 *     another what it waits for; in such a marked graph (Commoner, Holt, Even and
 *     Pnueli, "Marked directed graphs", 1971) all timings end if one does. Any
 *     number of operations may be in flight: slots belong to one operation, which so
 *     depends on an earlier one only by the window; if each operation ends once all nodes
 *     have begun it, operation k + window can begin when k has ended everywhere, and all
 *     end, by induction.
 *
 *  5. A barrier does not end before all have begun, and a plan that promises it does not
 *     end before all have their results (check_ends.c).
 *
 * Symmetry. If all nodes take part in all steps, with peers at a fixed distance on the circle
 * of nodes, and segments are counted from a node's own on a circle as large, raising all
 * numbers of nodes and of segments by one maps the plan onto itself: turns, what they wait
 * for, and what they do with values. So what node v ever has is what node 0 has, raised
 * by v, and running node 0 proves all. A circle of waits at node 0, with the nodes left out,
 * is one in the whole as well: walked along again and again it comes back to the node it
 * began at.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

/* What may be run: about 3 GiB of turns, and 8 GiB of values */
#define MAX_TURNS	(1U << 28)
#define MAX_VALUES	(1U << 30)

/* The proof does not depend on the first two: any will do */
static const struct zcoll_plan_limits default_limits = { .window = 8, .slots = 2, .nodes = 1 };

const char *zc_proof_kind(const struct zc_proof *c, u32 step)
{
	static const char *const names[ZCOLL_NR_STEPS] = {
		[ZCOLL_STEP_GATHER] = "gather", [ZCOLL_STEP_SEND] = "send",
		[ZCOLL_STEP_FOLD] = "fold", [ZCOLL_STEP_DELIVER] = "deliver",
		[ZCOLL_STEP_FINAL] = "final",
	};
	u32 kind = c->plan->steps[step].kind;

	return kind < ZCOLL_NR_STEPS && names[kind] ? names[kind] : "?";
}

/**
 * zc_proof_refuse - refuse the plan
 * @c: proof
 * @at: where; its step and turn may be ZC_NONE
 * @fmt: why
 *
 * Return: -EINVAL.
 */
int zc_proof_refuse(const struct zc_proof *c, const struct zc_at *at, const char *fmt, ...)
{
	char what[ZCOLL_TEXT_MAX] = "", where[96] = "";
	int len = 0;
	va_list ap;

	if (at->v != ZC_NONE)
		len += snprintf(where + len, sizeof(where) - len, "node %u, ", at->v);
	if (at->step != ZC_NONE)
		len += snprintf(where + len, sizeof(where) - len, "step %u (%s), ", at->step,
				zc_proof_kind(c, at->step));
	if (at->t != ZC_NONE)
		len += snprintf(where + len, sizeof(where) - len, "turn %u, ", at->t);
	if (len)
		memcpy(where + len - 2, ": ", 2);
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (c->error && c->error_len)
		snprintf(c->error, c->error_len, "%s%s", where, what);
	return -EINVAL;
}

/* Refuse it for what the checks that the kernel makes have found */
static int refuse_why(const struct zc_proof *c, const struct zc_plan_why *why, int err)
{
	struct zc_at at = { why->node, why->step, why->turn };

	if (why->segment == ZC_NONE)
		zc_proof_refuse(c, &at, "%s", why->what);
	else if (why->other_step == ZC_NONE)
		zc_proof_refuse(c, &at, "segment %u: %s", why->segment, why->what);
	else
		zc_proof_refuse(c, &at, "segment %u: %s, by step %u (%s), turn %u: one of the two "
				"must wait for the other", why->segment, why->what, why->other_step,
				zc_proof_kind(c, why->other_step), why->other_turn);
	return err;
}

/**
 * zc_proof_feeder - who feeds a receiving step
 * @c: proof
 * @step: the step
 * @peer: its peer
 * @skip: how many feeders to leave out
 *
 * Return: the SEND step, or ZC_NONE: none is active at the peer.
 */
u32 zc_proof_feeder(const struct zc_proof *c, u32 step, u32 peer, u32 skip)
{
	const struct zc_prog *prog = &c->prog;
	u32 v = zc_proof_row(c, peer), i;

	for (i = prog->feed_start[step]; i < prog->feed_start[step + 1]; i++)
		if (zc_proof_active(c, v, prog->feed[i]) && !skip--)
			return prog->feed[i];
	return ZC_NONE;
}

static bool step_same_everywhere(const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	if (step->first || step->last < plan->nodes - 1 || step->lo ||
	    step->hi < step->every - 1)
		return false;
	if (step->peer != ZCOLL_PEER_NONE &&
	    (step->peer != ZCOLL_PEER_ADD || step->stride != 1 || step->radix != plan->nodes))
		return false;
	if (step->dst.of != ZCOLL_OF_ZERO || step->src.of != ZCOLL_OF_ZERO)
		return false;
	return !step->count || (step->of != ZCOLL_OF_ZERO && step->width == 1 &&
				step->blocks == plan->nodes);
}

/* Does the plan look the same from every node? */
static bool plan_same_everywhere(const struct zcoll_plan *plan)
{
	u32 i;

	if (plan->members != plan->nodes || (plan->levels[0] && plan->levels[1]))
		return false;
	switch (plan->collective) {
	case ZCOLL_ALLREDUCE:
	case ZCOLL_REDUCE_SCATTER:
	case ZCOLL_ALLGATHER:
		if (plan->segments != plan->nodes)
			return false;
		break;
	case ZCOLL_BARRIER:
		break;
	default:
		return false;
	}
	for (i = 0; i < plan->nsteps; i++)
		if (!step_same_everywhere(plan, &plan->steps[i]))
			return false;
	return true;
}

/* Give all turns numbers */
static int number_turns(struct zc_proof *c)
{
	const struct zcoll_plan *plan = c->plan;
	u64 turns = 0;
	u32 v, s;

	if ((u64)c->rows * plan->segments > MAX_VALUES)
		return -ENOMEM;
	c->base = malloc(((size_t)c->rows * plan->nsteps + 1) * sizeof(*c->base));
	if (!c->base)
		return -ENOMEM;
	for (v = 0; v < c->rows; v++) {
		for (s = 0; s < plan->nsteps; s++) {
			bool active = zc_step_active(plan, &plan->steps[s], v);

			c->base[(size_t)v * plan->nsteps + s] = active ? turns : ZC_NONE;
			turns += active ? plan->steps[s].repeat : 0;
			if (turns > MAX_TURNS)
				return -ENOMEM;
		}
	}
	c->turns = turns;
	return 0;
}

static int check_nodes(const struct zc_proof *c)
{
	void *room = malloc(zc_plan_check_room(c->plan) + 1);
	struct zc_plan_why why;
	int err = room ? 0 : -ENOMEM;
	u32 v;

	for (v = 0; v < c->rows && !err; v++) {
		err = zc_plan_check(c->plan, v, room, &why);
		if (err) {
			why.node = v;
			refuse_why(c, &why, err);
		}
	}
	free(room);
	return err;
}

static int check(struct zc_proof *c)
{
	void *room = malloc(zc_prog_size(c->plan));
	int err = room ? number_turns(c) : -ENOMEM;

	if (!err) {
		zc_prog_init(&c->prog, c->plan, room);
		err = zc_proof_pairs(c);
	}
	if (!err)
		err = check_nodes(c);
	if (!err)
		err = zc_proof_run(c);
	if (!err)
		err = zc_proof_room(c);
	free(c->base);
	free(room);
	return err;
}

/**
 * zcoll_plan_check - prove a plan, or find what is wrong with it
 * @plan: plan
 * @limits: NULL, or under which grants; a plan that looks the same from every node is run
 *	at one node if it has more than @limits->nodes of them, which is not 0
 * @facts: NULL, or gets what the proof has found
 * @error: gets a counterexample in words, or why there is no proof
 * @error_len: its bytes
 *
 * Return: 0; -EINVAL, or what zc_plan_valid() or zc_plan_check() says: it is wrong;
 * -ENOMEM: there is no proof.
 */
int zcoll_plan_check(const struct zcoll_plan *plan, const struct zcoll_plan_limits *limits,
		     struct zcoll_plan_facts *facts, char *error, size_t error_len)
{
	struct zcoll_plan_facts unwanted;
	struct zc_proof c = {
		.plan = plan,
		.facts = facts ? facts : &unwanted,
		.error = error,
		.error_len = error_len,
	};
	struct zc_at nowhere = { ZC_NONE, ZC_NONE, ZC_NONE };
	struct zc_plan_why why;
	int err;

	if (!limits)
		limits = &default_limits;
	if (!limits->window || !limits->slots)
		return zc_proof_refuse(&c, &nowhere, "window and slots must be at least 1");
	memset(c.facts, 0, sizeof(*c.facts));
	err = zc_plan_valid(plan, plan->size, &why);
	if (err)
		return refuse_why(&c, &why, err);
	c.rows = plan->nodes;
	if (limits->nodes && plan->nodes > limits->nodes && plan_same_everywhere(plan))
		c.rows = 1;
	c.facts->nodes_run = c.rows;
	err = check(&c);
	if (err == -ENOMEM)
		zc_proof_refuse(&c, &nowhere, "no memory for the proof: %u nodes of %u steps "
				"and %u segments", c.rows, plan->nsteps, plan->segments);
	return err;
}
