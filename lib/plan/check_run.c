// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The symbolic run: each node's places hold values (check_expr.h) instead of elements, and
 * turns are carried out whole, in an order that their waits allow. What the outputs are at
 * the end is looked at in check_outputs.c.
 *
 * Places. DATA of a segment holds its accumulation, and from when it is final the output.
 * That what is read is there, of the right segment, and not written before its time, are
 * local rules, and shown before.
 *
 * Messages. What a SEND reads is kept until the turn that receives it runs.
 *
 * Final values. An average is divided, and 16 bits are rounded, where a segment becomes final.
 * A DELIVER takes that as done if the sender has an output for the segment, so such a sender
 * must have made it final: else the receiver ends with the sum instead of the average.
 */
#include <stdlib.h>

#include "../../kmod/engine/plan.h"
#include "check.h"

/**
 * struct run - a symbolic run
 * @c: proof
 * @exprs: values
 * @data: [row * segments + segment]
 * @final: likewise: it is in the outputs
 * @scratch: [row * plan->scratch + place]
 * @sent: what has been sent
 * @nsent: values there
 * @sent_room: values there is room for
 * @message: by turn of a SEND: its first value in @sent
 * @depth: by turn: messages on the longest chain that ends there
 * @ends: NULL, or who knows what of whom
 */
struct run {
	struct zc_proof *c;
	struct zc_exprs exprs;
	struct zc_value *data;
	bool *final;
	struct zc_value *scratch;
	struct zc_value *sent;
	size_t nsent;
	size_t sent_room;
	u32 *message;
	u32 *depth;
	struct zc_ends *ends;
};

/* A turn that is being carried out, and one of its segments */
struct act {
	const struct zcoll_step *step;
	struct zc_at at;
	struct zc_turn turn;
	u32 segment;
	u32 message;	/* first value of the one that is received */
};

/* Where a node without outputs keeps the accumulation of a segment; see zcoll_plan.acc */
static void count_acc(struct run *run, const struct act *act)
{
	const struct zcoll_plan *plan = run->c->plan;
	u32 sigma = zc_plan_sigma(plan, act->at.v) % plan->segments, place;

	if (zc_plan_has_outputs(plan, act->at.v))
		return;
	place = (act->segment + plan->segments - sigma) % plan->segments % plan->acc;
	if (place >= run->c->facts->acc)
		run->c->facts->acc = place + 1;
}

static size_t segment_of(const struct run *run, const struct act *act)
{
	return (size_t)act->at.v * run->c->plan->segments + act->segment;
}

/* A place: DATA of the segment, or a scratch place */
static struct zc_value *place_of(const struct run *run, const struct act *act, u32 place)
{
	const struct zcoll_plan *plan = run->c->plan;

	if (place == ZC_NONE)
		return &run->data[segment_of(run, act)];
	return &run->scratch[(size_t)act->at.v * plan->scratch + place];
}

static struct zc_value source(const struct run *run, const struct act *act)
{
	if (act->step->flags & ZCOLL_STEP_FIRST || act->step->kind == ZCOLL_STEP_GATHER)
		return zc_exprs_leaf(act->at.v);
	return *place_of(run, act, act->turn.src);
}

/* The accumulation, or a scratch place */
static void put(struct run *run, const struct act *act, struct zc_value value)
{
	*place_of(run, act, act->turn.dst) = value;
	if (act->step->flags & ZCOLL_STEP_RESULT)
		run->final[segment_of(run, act)] = true;
	else if (act->turn.dst == ZC_NONE)
		count_acc(run, act);
}

/* Into the outputs */
static void put_final(struct run *run, const struct act *act, struct zc_value value)
{
	run->data[segment_of(run, act)] = value;
	run->final[segment_of(run, act)] = true;
}

static bool plan_reduces(const struct zcoll_plan *plan)
{
	return plan->collective == ZCOLL_ALLREDUCE || plan->collective == ZCOLL_REDUCE ||
	       plan->collective == ZCOLL_REDUCE_SCATTER;
}

/* Is what goes to a DELIVER a result, where the receiver takes it for one? */
static int check_delivered(const struct run *run, const struct act *act)
{
	const struct zcoll_plan *plan = run->c->plan;
	bool is_data = act->turn.src == ZC_NONE && !(act->step->flags & ZCOLL_STEP_FIRST);

	if (plan->steps[act->step->match].kind != ZCOLL_STEP_DELIVER || !plan_reduces(plan) ||
	    !zc_plan_has_output(plan, act->at.v, act->segment))
		return 0;
	if (is_data && run->final[segment_of(run, act)])
		return 0;
	return zc_proof_refuse(run->c, &act->at, "segment %u goes to a deliver before it is final "
			       "here: a final, or a fold with result, must come first",
			       act->segment);
}

static int fold(struct run *run, const struct act *act, struct zc_value a, struct zc_value b,
		struct zc_value *sum)
{
	u32 twice;
	int err = zc_exprs_fold(&run->exprs, a, b, sum, &twice);

	if (err == -EEXIST)
		return zc_proof_refuse(run->c, &act->at, "segment %u gets the contribution of "
				       "node %u a second time", act->segment, twice);
	return err;
}

static int send(struct run *run, const struct act *act)
{
	int err = check_delivered(run, act);

	if (err)
		return err;
	if (run->nsent == run->sent_room) {
		size_t room = run->sent_room ? 2 * run->sent_room : 1024;
		struct zc_value *more = realloc(run->sent, room * sizeof(*more));

		if (!more || room > U32_MAX)
			return -ENOMEM;
		run->sent = more;
		run->sent_room = room;
	}
	run->sent[run->nsent++] = source(run, act);
	return 0;
}

/* What comes with a message, in this node's numbers */
static struct zc_value received(const struct run *run, const struct act *act, u32 i)
{
	struct zc_value value = run->sent[act->message + i];

	if (run->c->rows == 1)
		return zc_exprs_raise(&run->exprs, value, act->turn.peer);
	return value;
}

/* Carry out a turn for the i-th of its segments */
static int run_segment(struct run *run, const struct act *act, u32 i)
{
	bool local = act->turn.peer == ZC_NONE;
	struct zc_value value = {}, other = {};
	int err = 0;

	switch (act->step->kind) {
	case ZCOLL_STEP_SEND:
		return send(run, act);
	case ZCOLL_STEP_FOLD:
		value = local ? source(run, act) : received(run, act, i);
		if (!(act->step->flags & ZCOLL_STEP_STORE)) {
			other = local ? *place_of(run, act, act->turn.dst) : source(run, act);
			err = fold(run, act, other, value, &value);
		}
		break;
	case ZCOLL_STEP_DELIVER:
		put_final(run, act, received(run, act, i));
		return 0;
	case ZCOLL_STEP_FINAL:
		put_final(run, act, source(run, act));
		return 0;
	default:
		value = source(run, act);
	}
	if (!err)
		put(run, act, value);
	return err;
}

/* Messages on the longest chain that ends with this turn */
static u32 depth_of(const struct run *run, const struct act *act)
{
	u32 most = 0, i;
	struct zc_at on;

	for (i = 0; i < ZC_WAITS_DATA; i++) {
		u32 depth;

		if (zc_proof_wait(run->c, &act->at, act->turn.peer, i, &on) == ZC_WAIT_NONE)
			continue;
		depth = run->depth[zc_proof_turn(run->c, &on)] + (i == ZC_WAITS_OWN);
		if (depth > most)
			most = depth;
	}
	return most;
}

static int run_turn(void *arg, const struct zc_at *at, u32 peer)
{
	struct run *run = arg;
	const struct zcoll_plan *plan = run->c->plan;
	struct act act = { .step = &plan->steps[at->step], .at = *at };
	u32 turn = zc_proof_turn(run->c, at), i;
	int err = zc_step_turn(plan, act.step, at->v, at->t, &act.turn);

	if (act.step->kind == ZCOLL_STEP_SEND)
		run->message[turn] = run->nsent;
	if (zc_step_receives(act.step)) {
		struct zc_at from;

		zc_proof_wait(run->c, at, peer, ZC_WAITS_OWN, &from);
		act.message = run->message[zc_proof_turn(run->c, &from)];
	}
	for (i = 0; i < act.step->count && !err; i++) {
		act.segment = zc_range_at(&act.turn.range, i);
		err = run_segment(run, &act, i);
	}
	run->depth[turn] = depth_of(run, &act);
	if (run->depth[turn] > run->c->facts->rounds)
		run->c->facts->rounds = run->depth[turn];
	if (!err && run->ends)
		err = zc_ends_visit(run->ends, at, peer);
	return err;
}

static int run_init(struct run *run)
{
	const struct zcoll_plan *plan = run->c->plan;
	const size_t rows = run->c->rows;

	if (zc_exprs_init(&run->exprs, plan->nodes))
		return -ENOMEM;
	run->data = calloc(rows * plan->segments, sizeof(*run->data));
	run->final = calloc(rows * plan->segments, sizeof(*run->final));
	run->scratch = calloc(rows * plan->scratch + 1, sizeof(*run->scratch));
	run->message = calloc((size_t)run->c->turns + 1, sizeof(*run->message));
	run->depth = calloc((size_t)run->c->turns + 1, sizeof(*run->depth));
	if (!run->data || !run->final || !run->scratch || !run->message || !run->depth)
		return -ENOMEM;
	if (plan->collective != ZCOLL_BARRIER && !(plan->flags & ZCOLL_PLAN_AGREED))
		return 0;
	run->ends = zc_ends_new(run->c);
	return run->ends ? 0 : -ENOMEM;
}

/**
 * zc_proof_run - run the plan, and show that its outputs are right
 * @c: proof; messages are paired
 *
 * Return: 0, -ENOMEM or a refusal.
 */
int zc_proof_run(struct zc_proof *c)
{
	struct run run = { .c = c };
	int err = run_init(&run);

	if (!err)
		err = zc_proof_order(c, run_turn, &run);
	if (!err)
		err = zc_proof_outputs(c, &run.exprs, run.data);
	if (!err && run.ends)
		err = zc_ends_check(run.ends);
	zc_ends_free(run.ends);
	zc_exprs_free(&run.exprs);
	free(run.data);
	free(run.final);
	free(run.scratch);
	free(run.sent);
	free(run.message);
	free(run.depth);
	return err;
}
