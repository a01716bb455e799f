// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Operations of an engine: from submission, or another node's first message, to
 * COMPLETE; and the events, which hand on to rows, links and agreement.
 *
 * An operation is EARLY when messages of it come before it is submitted here: they
 * are kept by step number (row.c), and fitted to the plan when it is. It stays ENDED,
 * remembered for messages that come late, until its place in the window is needed.
 */
#include "engine_priv.h"

/* One more than the largest power of two that fits twice: a sparse hash */
static u32 zc_index_size(u32 links)
{
	u32 size = 4;

	while (size < 2 * links)
		size *= 2;
	return size;
}

static size_t zc_align(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

/* Room for all operations' rows, pending bits and OPEN bits */
static size_t zc_op_size(const struct zc_engine_config *c)
{
	return sizeof(struct zc_eop) + c->steps * sizeof(struct zc_row) +
	       (zc_words(c->steps) + zc_words(c->bits)) * sizeof(u64);
}

/**
 * zc_engine_size - memory that an engine needs
 * @config: its dimensions
 *
 * Return: bytes, or 0: the dimensions make no sense.
 */
size_t zc_engine_size(const struct zc_engine_config *config)
{
	const struct zc_engine_config *c = config;

	if (!c->window || c->window > ZC_ENGINE_MAX_WINDOW || c->window & (c->window - 1))
		return 0;
	if (c->slots < 2 || c->slots > ZC_ENGINE_MAX_SLOTS || !c->inflight ||
	    c->inflight > ZC_AHEAD || c->node >= c->nodes || c->links >= c->nodes ||
	    c->nodes > ZCOLL_PLAN_MAX_NODES || !c->steps || c->steps > ZCOLL_PLAN_MAX_STEPS ||
	    c->bits > 64 * ZCOLL_PLAN_MAX_LENGTH)
		return 0;
	return zc_align(sizeof(struct zc_engine)) + c->window * zc_op_size(c) +
	       c->links * sizeof(struct zc_link) + 2 * zc_words(c->nodes) * sizeof(u64) +
	       zc_index_size(c->links) * sizeof(u32);
}

/**
 * zc_engine_init - make an engine
 * @room: zc_engine_size() bytes, aligned for u64; the engine lives in them, and has
 *	nothing that would have to be given back
 * @config: its dimensions, for which zc_engine_size() is not 0
 */
struct zc_engine *zc_engine_init(void *room, const struct zc_engine_config *config)
{
	struct zc_engine *e = room;
	u8 *at = (u8 *)room + zc_align(sizeof(*e));
	u32 i;

	memset(room, 0, zc_engine_size(config));
	e->config = *config;
	e->end = U64_MAX;
	e->blame = ZC_NONE;
	e->ops = (struct zc_eop *)at;
	at += config->window * sizeof(*e->ops);
	for (i = 0; i < config->window; i++) {
		e->ops[i].rows = (struct zc_row *)at;
		at += config->steps * sizeof(struct zc_row);
		e->ops[i].pending = (u64 *)at;
		at += zc_words(config->steps) * sizeof(u64);
		e->ops[i].bits = (u64 *)at;
		at += zc_words(config->bits) * sizeof(u64);
	}
	e->links = (struct zc_link *)at;
	at += config->links * sizeof(*e->links);
	e->agree.answered = (u64 *)at;
	at += zc_words(config->nodes) * sizeof(u64);
	e->agree.gone = (u64 *)at;
	at += zc_words(config->nodes) * sizeof(u64);
	e->index = (u32 *)at;
	e->index_mask = zc_index_size(config->links) - 1;
	return e;
}

/* All rows of an operation may have something to do */
void zc_op_wake(struct zc_engine *e, struct zc_eop *op)
{
	u32 i;

	for (i = 0; i < op->desc.prog->plan->nsteps; i++)
		zc_row_wake(e, op, i);
}

/*
 * The operation of that number, which is in the window; made if nobody knew of it. @from: who
 * speaks of it, ZC_NONE: this node
 */
static struct zc_eop *zc_op_find(struct zc_engine *e, u64 seq, u64 fingerprint, u32 from)
{
	struct zc_eop *op = zc_eop(e, seq);
	u32 i;

	if (op->phase != ZC_OP_UNKNOWN && op->desc.seq == seq)
		return op;
	memset(op->rows, 0, e->config.steps * sizeof(*op->rows));
	memset(op->pending, 0, zc_words(e->config.steps) * sizeof(u64));
	memset(op->bits, 0, op->nbits * sizeof(u64));
	for (i = 0; i < e->config.steps; i++)
		op->rows[i].peer = ZC_NONE;
	op->desc.seq = seq;
	op->desc.fingerprint = fingerprint;
	op->phase = ZC_OP_EARLY;
	op->from = from;
	op->due = false;
	op->nbits = 0;
	op->left = 0;
	op->results = 0;
	op->busy = 0;
	return op;
}

/* The verdict of an operation is known */
void zc_op_end(struct zc_engine *e, struct zc_eop *op, s32 status)
{
	op->phase = ZC_OP_ENDED;
	op->status = status;
	op->due = true;
	e->ready |= 1ULL << zc_place_of(e, op->desc.seq);
}

static int zc_submit_check(const struct zc_engine *e, const struct zc_op_desc *desc)
{
	const struct zcoll_plan *plan = desc->prog->plan;
	const struct zc_eop *op = zc_eop(e, desc->seq);

	if (e->error)
		return e->error;
	if (desc->seq < e->base)
		return -EEXIST;
	if (desc->seq >= e->base + e->config.window)
		return -ENOBUFS;
	if (op->desc.seq == desc->seq && (op->phase == ZC_OP_ACTIVE || op->phase == ZC_OP_ENDED))
		return -EEXIST;
	if (plan->nodes != e->config.nodes || desc->root >= plan->members || !desc->slice ||
	    desc->flags & ~ZC_OP_AGREED)
		return -EINVAL;
	if (desc->flags & ZC_OP_AGREED &&
	    (!(plan->flags & ZCOLL_PLAN_AGREED) || e->config.links < e->config.nodes - 1))
		return -EINVAL;
	if (plan->nsteps > e->config.steps)
		return -E2BIG;
	return 0;
}

/**
 * zc_engine_submit - begin this node's part of an operation
 * @e: engine
 * @desc: the operation; copied
 *
 * Operations may be submitted in any order within the window.
 *
 * Return: 0, then COMPLETE will come; or, and nothing has changed: -EEXIST: submitted
 * before; -ENOBUFS: beyond the window, or no room for the bits of its OPEN steps;
 * -EINVAL: it does not make sense, its plan has not been checked, or it asks for an
 * agreed verdict but its plan does not, or config.links are fewer than all; -E2BIG: more
 * steps than config.steps; -ENOSPC: it has to do with more nodes than config.links.
 * -EPROTO: another node has called something else, or -ESHUTDOWN: has left: this
 * revokes the engine. Or the error that has revoked the engine.
 */
int zc_engine_submit(struct zc_engine *e, const struct zc_op_desc *desc)
{
	const struct zcoll_plan *plan = desc->prog->plan;
	struct zc_eop *op = zc_eop(e, desc->seq);
	u32 words, i;
	bool early;
	int err;

	err = zc_submit_check(e, desc);
	if (err)
		return err;
	if (desc->seq >= e->end) {
		zc_revoke(e, -ESHUTDOWN, e->leaver);
		return -ESHUTDOWN;
	}
	early = op->phase == ZC_OP_EARLY && op->desc.seq == desc->seq;
	zc_op_find(e, desc->seq, desc->fingerprint, ZC_NONE);
	if (op->desc.fingerprint != desc->fingerprint) {
		zc_revoke(e, -EPROTO, op->from);
		return -EPROTO;
	}
	op->desc = *desc;
	op->largest = zc_geometry_largest(&desc->geo, plan->segments);
	op->v = zc_plan_number(plan, desc->root, e->config.node);
	words = op->nbits;
	for (i = 0; i < plan->nsteps && !err; i++)
		err = zc_row_check(e, op, i, &words);
	for (; i < e->config.steps && !err; i++)
		err = zc_row_untouched(&op->rows[i]) ? 0 : -EPROTO;
	/* Who sent what does not fit the last step; of OPEN ones that is not known */
	if (err == -EPROTO)
		zc_revoke(e, err, op->rows[i - 1].peer);
	if (err) {
		op->phase = early ? ZC_OP_EARLY : ZC_OP_UNKNOWN;
		return err;
	}
	op->phase = ZC_OP_ACTIVE;
	for (i = 0; i < plan->nsteps; i++)
		zc_row_start(e, op, i);
	if (!op->left)
		zc_op_end(e, op, 0);
	return 0;
}

static void zc_op_message(struct zc_engine *e, u32 from, const struct zc_msg *msg)
{
	struct zc_eop *op;

	if (e->error || msg->seq < e->base)
		return;
	if (msg->seq >= e->base + e->config.window || msg->step >= e->config.steps) {
		zc_revoke(e, -EPROTO, from);
		return;
	}
	op = zc_op_find(e, msg->seq, msg->fingerprint, from);
	if (op->desc.fingerprint != msg->fingerprint)
		zc_revoke(e, -EPROTO, from);
	else if (op->phase != ZC_OP_ENDED && zc_row_message(e, op, from, msg))
		zc_revoke(e, -EPROTO, from);
}

/**
 * zc_engine_message - a message has come
 * @e: engine
 * @from: node
 * @msg: message; its elements, if any, are in the slot, or where they belong
 *
 * Messages of one node may come in any order, and more than once. One that no node
 * that keeps the rules would send revokes the engine.
 */
void zc_engine_message(struct zc_engine *e, u32 from, const struct zc_msg *msg)
{
	struct zc_link *link = zc_link(e, from);

	if (!link) {
		if (from < e->config.nodes && from != e->config.node)
			zc_revoke(e, -ENOSPC, from);
		else
			zc_revoke(e, -EPROTO, ZC_NONE);
		return;
	}
	if (link->lost)
		return;
	zc_link_heard(e, link, msg->retired);
	switch (msg->type) {
	case ZC_MSG_DATA:
	case ZC_MSG_GRANT:
		zc_op_message(e, from, msg);
		break;
	case ZC_MSG_RETIRED:
	case ZC_MSG_ALIVE:
		break;
	case ZC_MSG_ABORT:
	case ZC_MSG_ASK:
	case ZC_MSG_ANSWER:
	case ZC_MSG_DECISION:
		zc_agree_message(e, from, msg);
		break;
	default:
		zc_revoke(e, -EPROTO, from);
	}
}

/**
 * zc_engine_done - the host is through with a unit
 * @e: engine
 * @seq: of the action
 * @step: of the action
 * @unit: of the action
 *
 * Each SEND, GATHER, FOLD, DELIVER and FINAL is answered by this once, also when
 * the engine has been revoked.
 */
void zc_engine_done(struct zc_engine *e, u64 seq, u32 step, u64 unit)
{
	struct zc_eop *op = zc_eop(e, seq);

	if (op->desc.seq == seq && op->phase == ZC_OP_ACTIVE && step < e->config.steps)
		zc_row_done(e, op, step, unit);
}

/* From now on a node is told nothing, and not waited for. Return: it was not so before. */
static bool zc_gone(struct zc_engine *e, u32 node)
{
	struct zc_link *link;

	if (node >= e->config.nodes || node == e->config.node || zc_bit(e->agree.gone, node))
		return false;
	zc_bit_set(e->agree.gone, node);
	link = zc_link(e, node);
	if (link) {
		link->gone = true;
		/* Nothing waits for it to retire operations */
		zc_link_heard(e, link, U64_MAX);
	}
	return true;
}

/**
 * zc_engine_lost - a node does not live any more, or cannot be reached
 * @e: engine
 * @node: another node
 *
 * What is said once is final. Heartbeats tell the engine by themselves.
 */
void zc_engine_lost(struct zc_engine *e, u32 node)
{
	struct zc_link *link;

	if (!zc_gone(e, node))
		return;
	link = zc_link(e, node);
	if (link)
		link->lost = true;
	zc_revoke(e, -EHOSTDOWN, node);
	zc_agree_gone(e, node);
}

/**
 * zc_engine_left - a node takes no further part, and has told so
 * @e: engine
 * @node: another node
 * @retired: operations it has retired, of which it has done and sent all its part
 *
 * It is not lost: nothing happens unless this node wants an operation that it has not
 * retired, which revokes the engine with -ESHUTDOWN. Messages of it may still come. None
 * are told to it; a SEND to it, if there should be one, is given to the host all the same,
 * which answers it. What is said once is final.
 */
void zc_engine_left(struct zc_engine *e, u32 node, u64 retired)
{
	u32 i;

	if (!zc_gone(e, node))
		return;
	if (retired < e->end) {
		e->end = retired;
		e->leaver = node;
	}
	for (i = 0; i < e->config.window; i++)
		if (e->ops[i].phase == ZC_OP_ACTIVE && e->ops[i].desc.seq >= e->end)
			zc_revoke(e, -ESHUTDOWN, node);
	zc_agree_gone(e, node);
}

/**
 * zc_engine_abort - revoke
 * @e: engine
 * @error: cause, a negative errno
 */
void zc_engine_abort(struct zc_engine *e, s32 error)
{
	zc_revoke(e, error, ZC_NONE);
}

/**
 * zc_engine_closed - CLOSE has been carried out
 * @e: engine
 *
 * From now on no peer can write into this node's buffers.
 */
void zc_engine_closed(struct zc_engine *e)
{
	if (e->stage != ZC_DRAINING)
		return;
	e->stage = ZC_CLOSED;
	e->ready = U64_MAX;
}

/**
 * zc_engine_tick - time passes
 * @e: engine
 * @now: ns of a clock that does not go back, and may leave out time in which the host did
 *	not run
 *
 * To be called once before anything else, so that no link seems silent since time 0.
 *
 * Return: when it should be called again at the latest, U64_MAX: no need.
 */
u64 zc_engine_tick(struct zc_engine *e, u64 now)
{
	u64 next;
	u32 i;

	e->now = now;
	next = zc_agree_tick(e);
	for (i = 0; i < e->config.window; i++) {
		struct zc_eop *op = &e->ops[i];

		if (op->phase != ZC_OP_ACTIVE || !op->desc.deadline)
			continue;
		if (op->desc.deadline <= now)
			zc_revoke(e, -ETIMEDOUT, ZC_NONE);
		else if (op->desc.deadline < next)
			next = op->desc.deadline;
	}
	if (!e->config.silence)
		return next;
	for (i = 0; i < e->nlinks; i++)
		if (!e->links[i].gone && now >= e->links[i].heard + e->config.timeout)
			zc_engine_lost(e, e->links[i].node);
	e->beat = e->nlinks;
	return next < now + e->config.silence ? next : now + e->config.silence;
}

/* Operations retire in order, when their COMPLETE has been given */
static void zc_retire(struct zc_engine *e)
{
	u32 half = e->config.window > 1 ? e->config.window / 2 : 1;
	struct zc_eop *op = zc_eop(e, e->base);

	while (op->phase == ZC_OP_ENDED && !op->due && op->desc.seq == e->base) {
		if (!(++e->base % half))
			e->sweep = e->nlinks;
		op = zc_eop(e, e->base);
	}
}

/**
 * zc_engine_skip - operations that nobody will submit
 * @e: engine of a plan's only node
 * @seq: all operations below have ended, or have never been submitted and never will be
 */
void zc_engine_skip(struct zc_engine *e, u64 seq)
{
	if (seq > e->base)
		e->base = seq;
	zc_retire(e);
}

static bool zc_op_complete(struct zc_engine *e, struct zc_eop *op, struct zc_action *action)
{
	action->type = ZC_DO_COMPLETE;
	action->seq = op->desc.seq;
	action->priv = op->desc.priv;
	action->status = op->status;
	op->due = false;
	zc_retire(e);
	return true;
}

/* What an operation has to do next. Return: false: nothing, until it is woken. */
static bool zc_op_next(struct zc_engine *e, struct zc_eop *op, struct zc_action *action)
{
	u32 words = zc_words(e->config.steps), w, step;
	s32 status;

	if (op->phase == ZC_OP_ENDED)
		return op->due && zc_op_complete(e, op, action);
	if (op->phase != ZC_OP_ACTIVE)
		return false;
	if (e->error) {
		if (!zc_agree_ends(e, op, &status))
			return false;
		zc_op_end(e, op, status);
		return zc_op_complete(e, op, action);
	}
	for (w = 0; w < words && !e->error; w++) {
		if (!op->pending[w])
			continue;
		step = w * 64 + __builtin_ctzll(op->pending[w]);
		op->pending[w] &= op->pending[w] - 1;
		if (zc_row_next(e, op, step, action)) {
			zc_row_wake(e, op, step);
			return true;
		}
		if (op->phase == ZC_OP_ENDED)
			return zc_op_complete(e, op, action);
		/* A unit without elements may have woken any other row */
		w = U32_MAX;
	}
	return false;
}

/**
 * zc_engine_next - what to do next
 * @e: engine
 * @action: filled if there is something
 *
 * To be called after each event until there is nothing, not necessarily at once.
 * Operations are served in the order of their numbers.
 *
 * Return: true: carry out @action; false: nothing, until the next event.
 */
bool zc_engine_next(struct zc_engine *e, struct zc_action *action)
{
	u32 first = zc_place_of(e, e->base);

	e->skipped = 0;
	if (e->error && zc_agree_next(e, action))
		return true;
	while (e->ready) {
		u64 later = e->ready >> first << first;
		u32 place = __builtin_ctzll(later ? later : e->ready);

		if (place < e->config.window && zc_op_next(e, &e->ops[place], action))
			return true;
		/* A row that failed has revoked the engine */
		if (e->error && e->stage == ZC_TELLING)
			return zc_agree_next(e, action);
		e->ready &= ~(1ULL << place);
	}
	return zc_link_next(e, action);
}

/**
 * zc_engine_waits - for whose message does a step of an operation wait, and for nothing else?
 * @e: engine
 * @seq: operation
 * @step: index of the step
 * @unit: 0; to be asked again it is left as it is
 *
 * When all that the host has to do is done, an operation waits for these nodes, and for no other.
 *
 * Return: a node, which an OPEN step may name for each of its units; ZC_NONE: no more.
 */
u32 zc_engine_waits(const struct zc_engine *e, u64 seq, u32 step, u64 *unit)
{
	const struct zc_eop *op = zc_eop(e, seq);

	if (op->phase != ZC_OP_ACTIVE || op->desc.seq != seq ||
	    step >= op->desc.prog->plan->nsteps)
		return ZC_NONE;
	return zc_row_waits(op, step, unit);
}

/* Operations retired: all below this have ended, and their COMPLETE has been given */
u64 zc_engine_retired(const struct zc_engine *e)
{
	return e->base;
}

/* 0, or why the engine is revoked */
s32 zc_engine_error(const struct zc_engine *e)
{
	return e->error;
}

/* The node whose silence, loss or message revoked the engine; ZC_NONE: none, or unknown */
u32 zc_engine_blame(const struct zc_engine *e)
{
	return e->blame;
}
