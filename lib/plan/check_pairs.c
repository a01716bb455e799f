// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Pairs: each SEND has the one step that receives it, and the other way round.
 *
 * Shown from both ends, for each turn: the step that a SEND names takes part at the
 * peer, faces back and means the same segments; and at the peer of a receiving step,
 * exactly one SEND names it, and faces back. So turns are paired one to one.
 *
 * All turns are seen here once; what is counted for the facts is counted here.
 */
#include <stdlib.h>

#include "check.h"

/**
 * struct pairs - the state of this file
 * @c: proof
 * @met: by node: the last one that had to do with it, plus 1
 * @peers: of this node
 * @sent: segments
 * @messages: sent
 * @folded: segments
 */
struct pairs {
	struct zc_proof *c;
	u32 *met;
	u32 peers;
	u64 sent;
	u64 messages;
	u64 folded;
};

static const struct zcoll_step *step_of(const struct zc_proof *c, u32 step)
{
	return &c->plan->steps[step];
}

/* The peer's side of the turn @at, by step @other. Return: 0 or a refusal. */
static int facing(const struct zc_proof *c, const struct zc_at *at, u32 peer, u32 other,
		  struct zc_turn *turn)
{
	const char *kind = zc_proof_kind(c, other);

	if (!zc_step_active(c->plan, step_of(c, other), peer))
		return zc_proof_refuse(c, at, "node %u does not take part in step %u (%s), which "
				       "is to receive this", peer, other, kind);
	if (zc_step_turn(c->plan, step_of(c, other), peer, at->t, turn))
		return zc_proof_refuse(c, at, "node %u has no peer or segment in step %u (%s), "
				       "the other side of this", peer, other, kind);
	if (turn->peer != at->v)
		return zc_proof_refuse(c, at, "node %u, the peer, has node %u as its peer in step "
				       "%u (%s), the other side of this", peer, turn->peer,
				       other, kind);
	return 0;
}

static int check_send(const struct zc_proof *c, const struct zc_at *at,
		      const struct zc_turn *turn)
{
	u32 match = step_of(c, at->step)->match;
	struct zc_turn other;
	int err = facing(c, at, turn->peer, match, &other);

	if (err)
		return err;
	if (!zc_range_same(&turn->range, &other.range))
		return zc_proof_refuse(c, at, "%u segments from %u on are sent, but node %u "
				       "expects %u from %u on in step %u (%s)",
				       turn->range.count, turn->range.first, turn->peer,
				       other.range.count, other.range.first, match,
				       zc_proof_kind(c, match));
	return 0;
}

static int check_receive(const struct zc_proof *c, const struct zc_at *at,
			 const struct zc_turn *turn)
{
	u32 feeder = zc_proof_feeder(c, at->step, turn->peer, 0);
	u32 second = zc_proof_feeder(c, at->step, turn->peer, 1);
	struct zc_turn other;

	if (feeder == ZC_NONE)
		return zc_proof_refuse(c, at, "nobody sends this: node %u takes part in no step "
				       "whose match is this one", turn->peer);
	if (second != ZC_NONE)
		return zc_proof_refuse(c, at, "steps %u and %u of node %u both name step %u as their "
				       "match: a step receives from one SEND of its peer, whomever "
				       "the other sends to; let each name a step of its own", feeder,
				       second, turn->peer, at->step);
	return facing(c, at, turn->peer, feeder, &other);
}

static void count(struct pairs *p, const struct zcoll_step *step, const struct zc_at *at,
		  const struct zc_turn *turn)
{
	struct zcoll_plan_facts *facts = p->c->facts;

	if (step->kind == ZCOLL_STEP_SEND) {
		p->messages++;
		p->sent += step->count;
	}
	if (step->kind == ZCOLL_STEP_FOLD && !(step->flags & ZCOLL_STEP_STORE))
		p->folded += step->count;
	if (turn->dst != ZC_NONE && turn->dst >= facts->scratch)
		facts->scratch = turn->dst + 1;
	if (turn->src != ZC_NONE && turn->src >= facts->scratch)
		facts->scratch = turn->src + 1;
	if (turn->peer != ZC_NONE && p->met[turn->peer] != at->v + 1) {
		p->met[turn->peer] = at->v + 1;
		p->peers++;
	}
}

static int check_step(struct pairs *p, struct zc_at *at)
{
	const struct zcoll_step *step = step_of(p->c, at->step);
	int err = 0;

	for (at->t = 0; at->t < step->repeat && !err; at->t++) {
		struct zc_turn turn;

		if (zc_step_turn(p->c->plan, step, at->v, at->t, &turn))
			return zc_proof_refuse(p->c, at, "its peer, segment or scratch place is "
					       "out of range");
		count(p, step, at, &turn);
		if (step->kind == ZCOLL_STEP_SEND)
			err = check_send(p->c, at, &turn);
		else if (zc_step_receives(step))
			err = check_receive(p->c, at, &turn);
	}
	return err;
}

static void most(u64 *so_far, u64 n)
{
	if (n > *so_far)
		*so_far = n;
}

/* What this node has done; a row stands for several nodes */
static void sum_up(struct pairs *p)
{
	struct zcoll_plan_facts *facts = p->c->facts;
	u32 stands_for = p->c->plan->nodes / p->c->rows;

	most(&facts->sent_max, p->sent);
	most(&facts->messages_max, p->messages);
	most(&facts->folded_max, p->folded);
	facts->sent_total += p->sent * stands_for;
	facts->messages_total += p->messages * stands_for;
	if (p->peers > facts->peers_max)
		facts->peers_max = p->peers;
	p->peers = 0;
	p->sent = p->messages = p->folded = 0;
}

/**
 * zc_proof_pairs - show that messages are paired
 * @c: proof
 *
 * Return: 0, -ENOMEM or a refusal.
 */
int zc_proof_pairs(struct zc_proof *c)
{
	struct pairs p = { .c = c, .met = calloc(c->plan->nodes, sizeof(u32)) };
	int err = p.met ? 0 : -ENOMEM;
	struct zc_at at;

	for (at.v = 0; at.v < c->rows && !err; at.v++) {
		for (at.step = 0; at.step < c->plan->nsteps && !err; at.step++)
			if (zc_proof_active(c, at.v, at.step))
				err = check_step(&p, &at);
		sum_up(&p);
	}
	free(p.met);
	return err;
}
