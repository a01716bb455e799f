// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Failure, and verdicts that all survivors share.
 *
 * The first cause revokes the engine. It goes to all links as ABORT, and from there
 * on, so that every node hears of it that can be reached over the plan's links; nodes
 * beside a lost one find out by themselves.
 *
 * An operation with ZC_OP_AGREED ends well at a node only when all nodes have all its
 * results (its plan is AGREED). When failure comes between, some may have ended
 * it and others not, so survivors settle what has ended well before they give further
 * verdicts: the *coordinator*, the lowest node that lives, ASKs all; each answers
 * which operations have ended well there, and ends none by itself from then on; the
 * union is the DECISION. If any survivor has ended an operation well, it is in the
 * union, and the others can end it well, too: they have the results. If none has, none
 * will. A coordinator that is lost is followed by the next one, who asks again. Who
 * has answered a coordinator does not listen to lower ones any more: a decision
 * that the lost one sent just before may have been made without it.
 *
 * A node that has left in good order is not asked: it is no survivor.
 *
 * This needs what heartbeats give if config.timeout is well chosen: nodes that live are
 * not taken for lost, and lost ones are found out. A node that is told by another that it
 * is to coordinate takes all lower ones for lost.
 *
 * A node that keeps the rules answers at once, so nobody waits long for one that lives but says
 * nothing of the verdicts: after config.patience the coordinator takes who has not answered for
 * lost; followers give the coordinator twice that, so that it gets over others' silence. And after
 * a few times that in all a node takes all others for lost, however many have kept it waiting.
 */
#include "engine_priv.h"

/* All is settled after so many times config.patience */
#define ZC_PATIENCES 8

/* The operations in the window that have ended well here */
static struct zc_good zc_good_here(const struct zc_engine *e)
{
	struct zc_good good = { .below = e->base };
	u32 i;

	for (i = 0; i < e->config.window; i++) {
		const struct zc_eop *op = zc_eop(e, e->base + i);

		if (op->phase == ZC_OP_ENDED && !op->status && op->desc.seq == e->base + i)
			good.mask |= 1ULL << i;
	}
	return good;
}

static void zc_good_add(struct zc_good *good, u64 below, u64 mask)
{
	struct zc_good other = { .below = below, .mask = mask };
	u64 shift;

	if (other.below > good->below) {
		other = *good;
		*good = (struct zc_good){ .below = below, .mask = mask };
	}
	shift = good->below - other.below;
	good->mask |= shift < 64 ? other.mask >> shift : 0;
}

static bool zc_good_has(const struct zc_good *good, u64 seq)
{
	return seq < good->below ||
	       (seq - good->below < 64 && good->mask >> (seq - good->below) & 1);
}

/**
 * zc_revoke - revoke the engine
 * @e: engine
 * @error: cause, a negative errno; only the first one counts
 * @blame: the node whose silence, loss or message it is, ZC_NONE: none
 */
void zc_revoke(struct zc_engine *e, s32 error, u32 blame)
{
	if (e->error)
		return;
	e->error = error < 0 && error >= -ZC_MAX_ERRNO ? error : -EIO;
	e->blame = blame;
	e->stage = ZC_TELLING;
	e->cursor = 0;
	e->agree.begun = e->now;
	e->agree.good = zc_good_here(e);
}

static void zc_agree_decide(struct zc_engine *e)
{
	e->agree.role = ZC_DECIDES;
	e->agree.cursor = 0;
	e->agree.decided = true;
}

static void zc_agree_coordinate(struct zc_engine *e)
{
	struct zc_agree *a = &e->agree;
	u32 i;

	a->role = ZC_ASKS;
	a->since = e->now;
	a->coordinator = e->config.node;
	a->request = false;
	a->reply = false;
	a->cursor = 0;
	a->answers = 0;
	for (i = 0; i < zc_words(e->config.nodes); i++)
		a->answered[i] = a->gone[i];
	zc_bit_set(a->answered, e->config.node);
	for (i = 0; i < e->config.nodes; i++)
		a->answers += !zc_bit(a->answered, i);
	if (!a->answers)
		zc_agree_decide(e);
}

/* Find a coordinator: the lowest node that lives, and has not left */
static void zc_agree_begin(struct zc_engine *e)
{
	struct zc_agree *a = &e->agree;
	u32 lowest = 0;

	while (!~a->gone[lowest / 64])
		lowest += 64;
	while (zc_bit(a->gone, lowest))
		lowest++;
	if (lowest < a->coordinator && !zc_bit(a->gone, a->coordinator))
		return;
	if (lowest == e->config.node) {
		zc_agree_coordinate(e);
		return;
	}
	a->since = e->now;
	a->coordinator = lowest;
	a->request = true;
	a->reply = false;
}

static void zc_agree_answer(struct zc_engine *e, u32 from)
{
	struct zc_agree *a = &e->agree;

	if (a->role != ZC_ASKS || zc_bit(a->answered, from))
		return;
	zc_bit_set(a->answered, from);
	if (!--a->answers)
		zc_agree_decide(e);
}

/* A coordinator is the lowest node that lives: take all lower ones for lost */
static void zc_agree_lowest(struct zc_engine *e, u32 coordinator)
{
	u32 i;

	for (i = 0; i < coordinator; i++)
		zc_engine_lost(e, i);
}

/* This node is told to coordinate, by one that takes all lower ones for lost */
static void zc_agree_requested(struct zc_engine *e)
{
	if (e->agree.role != ZC_FOLLOWS || e->agree.coordinator > e->config.node)
		return;
	/* First, or each of them that is lost would have another one looked for */
	e->agree.coordinator = e->config.node;
	zc_agree_lowest(e, e->config.node);
	if (e->agree.role == ZC_FOLLOWS)
		zc_agree_coordinate(e);
}

/**
 * zc_agree_message - a message about failure
 * @e: engine
 * @from: node
 * @msg: ABORT, ASK, ANSWER or DECISION
 */
void zc_agree_message(struct zc_engine *e, u32 from, const struct zc_msg *msg)
{
	struct zc_agree *a = &e->agree;

	zc_revoke(e, msg->status, from);
	switch (msg->type) {
	case ZC_MSG_ABORT:
		if (msg->unit)
			zc_agree_requested(e);
		break;
	case ZC_MSG_ASK:
		if (from < a->coordinator)
			break;
		if (from > a->coordinator)
			a->since = e->now;
		a->coordinator = from;
		a->role = ZC_FOLLOWS;
		a->request = false;
		a->reply = true;
		zc_agree_lowest(e, from);
		break;
	case ZC_MSG_ANSWER:
		if (a->role != ZC_ASKS || zc_bit(a->answered, from))
			break;
		zc_good_add(&a->good, msg->seq, msg->unit);
		zc_agree_answer(e, from);
		break;
	case ZC_MSG_DECISION:
		if (from < a->coordinator)
			break;
		zc_good_add(&a->good, msg->seq, msg->unit);
		a->decided = true;
		break;
	}
}

/* A node is lost, or has left: it will not answer, and not coordinate */
void zc_agree_gone(struct zc_engine *e, u32 node)
{
	struct zc_agree *a = &e->agree;

	zc_agree_answer(e, node);
	if (e->stage == ZC_AGREEING && !a->decided && a->role == ZC_FOLLOWS &&
	    a->coordinator == node)
		zc_agree_begin(e);
}

/* How long this node waits for others, U64_MAX: it does not */
static u64 zc_agree_until(const struct zc_engine *e)
{
	const struct zc_agree *a = &e->agree;
	u64 patience = e->config.patience, end = a->begun + ZC_PATIENCES * patience, until;
	bool follows = e->stage == ZC_AGREEING && !a->decided;

	if (!patience || (a->role != ZC_ASKS && !follows))
		return U64_MAX;
	until = a->since + (a->role == ZC_ASKS ? patience : 2 * patience);
	return until < end ? until : end;
}

/**
 * zc_agree_tick - time passes
 * @e: engine
 *
 * Return: when this is to be called again at the latest, U64_MAX: no need.
 */
u64 zc_agree_tick(struct zc_engine *e)
{
	bool all = e->now >= e->agree.begun + ZC_PATIENCES * e->config.patience;
	bool asks = e->agree.role == ZC_ASKS;
	u32 coordinator = e->agree.coordinator, i;

	if (e->now < zc_agree_until(e))
		return zc_agree_until(e);
	for (i = 0; i < e->config.nodes; i++)
		if (all || (asks ? !zc_bit(e->agree.answered, i) : i == coordinator))
			zc_engine_lost(e, i);
	return zc_agree_until(e);
}

static bool zc_agree_tell(struct zc_engine *e, u32 node, u32 type, struct zc_action *action)
{
	action->type = ZC_DO_TELL;
	action->msg = (struct zc_msg) {
		.type = type, .status = e->error,
		.seq = e->agree.good.below, .unit = e->agree.good.mask,
	};
	zc_link_say(e, node, action);
	return true;
}

/* What coordinator and followers have to say */
static bool zc_agree_talk(struct zc_engine *e, struct zc_action *action)
{
	struct zc_agree *a = &e->agree;

	if (a->reply) {
		a->reply = false;
		return zc_agree_tell(e, a->coordinator, ZC_MSG_ANSWER, action);
	}
	if (a->request) {
		a->request = false;
		zc_agree_tell(e, a->coordinator, ZC_MSG_ABORT, action);
		action->msg.unit = 1;
		return true;
	}
	while (a->role != ZC_FOLLOWS && a->cursor < e->config.nodes) {
		u32 node = a->cursor++;

		if (node != e->config.node && !zc_bit(a->gone, node))
			return zc_agree_tell(e, node, a->role == ZC_ASKS ? ZC_MSG_ASK :
					     ZC_MSG_DECISION, action);
	}
	return false;
}

/* Does an operation wait for a verdict that all survivors share? */
static bool zc_agree_wanted(const struct zc_engine *e)
{
	u32 i;

	for (i = 0; i < e->config.window; i++)
		if (e->ops[i].phase == ZC_OP_ACTIVE && e->ops[i].desc.flags & ZC_OP_AGREED)
			return true;
	return false;
}

/**
 * zc_agree_next - what to do next on the way from failure to the last verdict
 * @e: engine, revoked
 * @action: to be filled
 *
 * Return: false: nothing, for now.
 */
bool zc_agree_next(struct zc_engine *e, struct zc_action *action)
{
	if (zc_agree_talk(e, action))
		return true;
	/* Links that appear later are told, too */
	while (e->cursor < e->nlinks) {
		if (e->links[e->cursor++].gone)
			continue;
		zc_agree_tell(e, e->links[e->cursor - 1].node, ZC_MSG_ABORT, action);
		action->msg.unit = 0;
		return true;
	}
	if (e->stage == ZC_TELLING) {
		e->stage = ZC_AGREEING;
		e->agree.since = e->now;
		if (zc_agree_wanted(e) && !e->agree.decided && e->agree.role == ZC_FOLLOWS)
			zc_agree_begin(e);
	}
	if (e->stage == ZC_AGREEING && (e->agree.decided || !zc_agree_wanted(e)))
		e->stage = ZC_CLOSING;
	if (e->stage == ZC_CLOSING) {
		e->stage = ZC_DRAINING;
		action->type = ZC_DO_CLOSE;
		return true;
	}
	return zc_agree_talk(e, action);
}

/**
 * zc_agree_ends - may an operation of a revoked engine end?
 * @e: engine
 * @op: ACTIVE operation
 * @status: its verdict, if so
 */
bool zc_agree_ends(const struct zc_engine *e, const struct zc_eop *op, s32 *status)
{
	if (e->stage != ZC_CLOSED || op->busy)
		return false;
	*status = e->error;
	if (op->desc.flags & ZC_OP_AGREED && e->agree.decided && !op->results &&
	    zc_good_has(&e->agree.good, op->desc.seq))
		*status = 0;
	return true;
}
