// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Rows: one step of one operation.
 *
 * A row's units pass, in order, from *ready* (nothing to wait for) to *begun* (with
 * the host) to *done*. A unit of a SEND is begun when it is ready and granted. A unit of
 * a receiving step is begun when it is ready and has landed; if it lands directly, it
 * is granted when it is ready, so that it cannot land before.
 *
 * A row is looked at only when it has been woken: by a message, by a unit of its own
 * that is done, by a row it waits for that got on, or by a link that takes messages
 * again.
 */
#include "engine_priv.h"

static const struct zcoll_step *zc_row_step(const struct zc_eop *op, u32 step)
{
	return &op->desc.prog->plan->steps[step];
}

static struct zc_cut zc_row_cut(const struct zc_eop *op, const struct zcoll_step *step)
{
	return zc_step_cut(step, &op->desc.geo, op->largest, op->desc.slice);
}

/* Do what a step receives land in slots? Sender and receiver must agree. */
static bool zc_row_slotted(const struct zc_eop *op, const struct zcoll_step *step)
{
	if (!(step->flags & ZCOLL_STEP_OPEN) && step->kind != ZCOLL_STEP_DELIVER)
		return true;
	return zc_row_cut(op, step).unit <= op->desc.eager;
}

/* Nothing moves in this step: messages of it only notify */
static bool zc_row_notifies(const struct zc_eop *op, const struct zcoll_step *step)
{
	return !step->count || !op->desc.geo.count;
}

/* Room for the bits of an OPEN row, which may be there already */
static int zc_row_reserve(struct zc_engine *e, struct zc_eop *op, struct zc_row *row, u32 units)
{
	if (row->bits)
		return row->units == units ? 0 : -EPROTO;
	if (zc_words(units) > zc_words(e->config.bits) - op->nbits)
		return -ENOBUFS;
	row->bits = op->nbits + 1;
	row->units = units;
	op->nbits += zc_words(units);
	return 0;
}

static u64 *zc_row_bits(const struct zc_eop *op, const struct zc_row *row)
{
	return op->bits + row->bits - 1;
}

/* Units that may be sent without a grant: into slots that are there before the operation is */
static u64 zc_row_initial(const struct zc_engine *e, const struct zc_eop *op,
			  const struct zc_row *row)
{
	if (!row->slotted || row->stride > op->desc.reserve)
		return 0;
	return row->bits || row->units < e->config.slots ? row->units : e->config.slots;
}

static u32 zc_row_turn_peer(const struct zc_eop *op, const struct zcoll_step *s, u32 t)
{
	struct zc_turn turn;

	if (zc_step_turn(op->desc.prog->plan, s, op->v, t, &turn))
		return ZC_NONE;
	return zc_plan_node(op->desc.prog->plan, op->desc.root, turn.peer);
}

/* All a row is at first, but for its bits and what early messages have brought */
static void zc_row_init(const struct zc_eop *op, u32 step, struct zc_row *row)
{
	const struct zcoll_plan *plan = op->desc.prog->plan;
	const struct zcoll_step *s = zc_row_step(op, step);
	struct zc_cut cut = zc_row_cut(op, s);

	row->active = zc_step_active(plan, s, op->v);
	row->peer = ZC_NONE;
	row->feed = ZC_NONE;
	if (!row->active)
		return;
	row->stride = cut.unit;
	row->slices = cut.slices;
	row->units = (u64)row->slices * s->repeat;
	row->slotted = zc_row_slotted(op, s->kind == ZCOLL_STEP_SEND ? &plan->steps[s->match] : s);
	if (s->peer == ZCOLL_PEER_NONE || s->flags & ZCOLL_STEP_OPEN)
		return;
	row->peer = zc_row_turn_peer(op, s, 0);
	if (zc_step_receives(s))
		row->feed = zc_prog_feed(op->desc.prog, step,
					 zc_plan_number(plan, op->desc.root, row->peer));
}

/* Links to all nodes that a row has to do with, so that they are watched */
static int zc_row_link(struct zc_engine *e, const struct zc_eop *op, const struct zcoll_step *s)
{
	u32 turns = s->flags & ZCOLL_STEP_OPEN ? s->repeat : 1, t;

	for (t = 0; t < turns && e->nlinks < e->config.nodes - 1; t++)
		if (!zc_link(e, zc_row_turn_peer(op, s, t)))
			return -ENOSPC;
	return 0;
}

/*
 * What a message of an OPEN step says beside its unit: its kind, and who sent it. When it
 * comes early both can only be checked later, and are kept for all units of a row in one
 * word: the exclusive or of what this gives for each. (The mixing is that of SplitMix64:
 * Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.)
 */
static u64 zc_row_early(u32 type, u32 from, u32 unit)
{
	u64 x = (u64)from << 40 ^ (u64)type << 32 ^ unit;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* What there should be for the units that early messages have named */
static u64 zc_row_right(const struct zc_eop *op, const struct zcoll_step *s,
			const struct zc_row *early)
{
	u32 type = zc_step_receives(s) ? ZC_MSG_DATA : ZC_MSG_GRANT, t;
	u64 right = 0;

	for (t = 0; t < early->units; t++)
		if (zc_bit(zc_row_bits(op, early), t))
			right ^= zc_row_early(type, zc_row_turn_peer(op, s, t), t);
	return right;
}

/* Has no message of this step come yet? */
bool zc_row_untouched(const struct zc_row *row)
{
	return !row->landed && !row->granted && !row->bits;
}

/* Do messages that came before the operation was known fit what it turns out to be? */
static bool zc_row_fits(const struct zc_engine *e, const struct zc_eop *op,
			const struct zcoll_step *s, const struct zc_row *early,
			const struct zc_row *row)
{
	u64 initial = zc_row_initial(e, op, row);

	if (zc_row_untouched(early))
		return true;
	if (!row->active || s->peer == ZCOLL_PEER_NONE)
		return false;
	if (s->flags & ZCOLL_STEP_OPEN)
		return !early->landed && !early->granted && early->units == row->units &&
		       (initial || !zc_step_receives(s)) &&
		       early->early == zc_row_right(op, s, early);
	if (early->bits || early->peer != row->peer)
		return false;
	if (!zc_step_receives(s))
		return !early->landed && early->granted <= row->units;
	return !early->granted && (initial == ZC_AHEAD || !(early->landed >> initial));
}

/**
 * zc_row_check - see whether a step can be carried out
 * @e: engine
 * @op: operation that is being submitted; messages may have come already
 * @step: index of the step
 * @words: words of bits that are in use, with those of the steps before; added to
 *
 * Return: 0; -EINVAL: the plan has not been checked, or there are too many slices;
 * -ENOBUFS: it is OPEN, and there is no room for its bits; -ENOSPC: it has to do with
 * more nodes than there is room for; -EPROTO: messages came that do not fit.
 */
int zc_row_check(struct zc_engine *e, struct zc_eop *op, u32 step, u32 *words)
{
	const struct zcoll_step *s = zc_row_step(op, step);
	const struct zc_row *early = &op->rows[step];
	struct zc_row row = { 0 };
	struct zc_turn turn;

	if (zc_row_cut(op, s).slices > U32_MAX)
		return -EINVAL;
	if (zc_step_active(op->desc.prog->plan, s, op->v) &&
	    zc_step_turn(op->desc.prog->plan, s, op->v, 0, &turn))
		return -EINVAL;
	zc_row_init(op, step, &row);
	if (!zc_row_fits(e, op, s, early, &row))
		return -EPROTO;
	if (!row.active || s->peer == ZCOLL_PEER_NONE)
		return 0;
	if (row.peer != ZC_NONE && zc_step_receives(s) && row.feed == ZC_NONE)
		return -EINVAL;
	if (s->flags & ZCOLL_STEP_OPEN && !early->bits)
		*words += zc_words(s->repeat);
	if (*words > zc_words(e->config.bits))
		return -ENOBUFS;
	return zc_row_link(e, op, s);
}

/* Steps after which a result is in its place; those that only notify bring none */
static bool zc_row_results(const struct zcoll_step *s)
{
	return s->count && (s->kind == ZCOLL_STEP_DELIVER || s->kind == ZCOLL_STEP_FINAL ||
			    s->flags & ZCOLL_STEP_RESULT);
}

/**
 * zc_row_start - begin a row
 * @e: engine
 * @op: operation; zc_row_check() has accepted all its steps
 * @step: index of the step
 */
void zc_row_start(struct zc_engine *e, struct zc_eop *op, u32 step)
{
	const struct zcoll_step *s = zc_row_step(op, step);
	struct zc_row *row = &op->rows[step];
	u64 initial;

	zc_row_init(op, step, row);
	if (!row->active)
		return;
	if (s->flags & ZCOLL_STEP_OPEN)
		zc_row_reserve(e, op, row, s->repeat);
	initial = zc_row_initial(e, op, row);
	if (row->granted < initial)
		row->granted = initial;
	op->left++;
	op->results += zc_row_results(s);
	zc_row_wake(e, op, step);
}

/* What one wait of a unit asks of the other row */
static u64 zc_row_need(const struct zcoll_after *after, const struct zc_row *row, u64 unit,
		       const struct zc_row *other, u32 repeat)
{
	s64 t = (s64)(unit / row->slices) - after->shift;

	if (after->mode == ZCOLL_AFTER_ALL)
		return other->units;
	if (t < 0)
		return 0;
	if (t >= repeat)
		t = repeat - 1;
	/* An OPEN row has one slice, so it needs all of the others' */
	if (after->mode == ZCOLL_AFTER_SLICE && row->slices == other->slices)
		return t * other->slices + unit % row->slices + 1;
	return (t + 1) * other->slices;
}

/* Is there nothing left that this unit waits for? */
static bool zc_row_is_ready(const struct zc_eop *op, const struct zcoll_step *s,
			    const struct zc_row *row, u64 unit)
{
	u32 i;

	for (i = 0; i < ZCOLL_PLAN_AFTER; i++) {
		const struct zcoll_after *after = &s->after[i];
		const struct zc_row *other = &op->rows[after->step];

		if (after->mode == ZCOLL_AFTER_NONE || !other->active)
			continue;
		if (other->done < zc_row_need(after, row, unit, other,
					      zc_row_step(op, after->step)->repeat))
			return false;
	}
	return true;
}

/* Has a unit from @begun on landed, or of a SEND, may it be sent? */
static bool zc_row_let(const struct zc_eop *op, const struct zcoll_step *s,
		       const struct zc_row *row, u64 unit)
{
	if (!zc_step_receives(s) && unit < row->granted)
		return true;
	if (row->bits)
		return zc_bit(zc_row_bits(op, row), unit);
	return zc_step_receives(s) && row->landed >> (unit - row->begun) & 1;
}

/* The message that goes with a unit of this row */
static void zc_row_msg(const struct zc_eop *op, const struct zcoll_step *s, u32 type, u32 step,
		       u64 unit, struct zc_msg *msg)
{
	*msg = (struct zc_msg) {
		.type = type,
		.open = s->flags & ZCOLL_STEP_OPEN ? s->repeat : 0,
		.step = step,
		.seq = op->desc.seq,
		.unit = unit,
		.fingerprint = op->desc.fingerprint,
	};
}

/* Tell the peer that it may send. Return: there is an action. */
static bool zc_row_grant(struct zc_engine *e, struct zc_eop *op, u32 step,
			 struct zc_action *action)
{
	const struct zcoll_step *s = zc_row_step(op, step);
	const struct zcoll_plan *plan = op->desc.prog->plan;
	struct zc_row *row = &op->rows[step];
	u64 most = row->slotted ? row->done + e->config.slots : row->begun + ZC_AHEAD;
	u64 unit = row->slotted || row->bits ? row->units : row->ready;
	u32 peer = row->peer, feed = row->feed;

	if (row->bits) {
		/* One by one: each has another peer, and waits for nothing */
		if (row->granted == row->units)
			return false;
		unit = row->granted;
		peer = zc_row_turn_peer(op, s, unit);
		feed = zc_prog_feed(op->desc.prog, step,
				    zc_plan_number(plan, op->desc.root, peer));
	} else {
		if (unit > most)
			unit = most;
		/* Not each time a little */
		if (unit <= row->granted || (unit < row->units && row->granted > row->begun &&
					     unit - row->granted < e->config.slots / 2))
			return false;
	}
	if (!zc_link_takes(e, peer, op->desc.seq))
		return false;
	action->type = ZC_DO_TELL;
	action->step = step;
	action->seq = op->desc.seq;
	action->unit = unit;
	action->row = s;
	action->priv = op->desc.priv;
	zc_row_msg(op, s, ZC_MSG_GRANT, feed, unit, &action->msg);
	zc_link_say(e, peer, action);
	row->granted = row->bits ? unit + 1 : unit;
	return true;
}

/* A unit is done: the row, and who waits for it, may go on. Return: the row is done. */
static bool zc_row_mark(struct zc_engine *e, struct zc_eop *op, u32 step, u64 unit)
{
	const struct zc_prog *prog = op->desc.prog;
	struct zc_row *row = &op->rows[step];
	u32 i;

	row->later |= 1ULL << (unit - row->done);
	if (!(row->later & 1))
		return false;
	while (row->later & 1) {
		row->later >>= 1;
		row->done++;
	}
	for (i = prog->wake_start[step]; i < prog->wake_start[step + 1]; i++)
		zc_row_wake(e, op, prog->wake[i]);
	zc_row_wake(e, op, step);
	if (row->done < row->units)
		return false;
	op->left--;
	op->results -= zc_row_results(zc_row_step(op, step));
	if (!op->left && !e->error)
		zc_op_end(e, op, 0);
	return true;
}

/* What the host has to do for the next unit. Return: false: nothing. */
static bool zc_row_action(struct zc_engine *e, struct zc_eop *op, u32 step,
			  struct zc_action *action)
{
	static const u8 types[ZCOLL_NR_STEPS] = {
		[ZCOLL_STEP_GATHER] = ZC_DO_GATHER, [ZCOLL_STEP_SEND] = ZC_DO_SEND,
		[ZCOLL_STEP_FOLD] = ZC_DO_FOLD, [ZCOLL_STEP_DELIVER] = ZC_DO_DELIVER,
		[ZCOLL_STEP_FINAL] = ZC_DO_FINAL,
	};
	const struct zcoll_step *s = zc_row_step(op, step);
	const struct zcoll_plan *plan = op->desc.prog->plan;
	struct zc_row *row = &op->rows[step];
	u64 unit = row->begun, turn_no = unit / row->slices;
	struct zc_turn turn;

	/* The plan has been checked: this does not fail */
	zc_step_turn(plan, s, op->v, turn_no, &turn);
	action->offset = unit % row->slices * row->stride;
	action->npieces = 0;
	if (!zc_row_notifies(op, s))
		action->npieces = zc_geometry_pieces(&op->desc.geo, plan->segments, &turn.range,
						     action->offset, row->stride,
						     action->piece);
	if (!action->npieces && !(s->kind == ZCOLL_STEP_SEND && zc_row_notifies(op, s)))
		return false;
	action->type = types[s->kind];
	action->step = step;
	action->seq = op->desc.seq;
	action->unit = unit;
	action->row = s;
	action->priv = op->desc.priv;
	action->range = turn.range;
	action->dst = turn.dst;
	action->src = turn.src;
	action->status = 0;
	action->peer = turn.peer == ZC_NONE ? ZC_NONE :
					      zc_plan_node(plan, op->desc.root, turn.peer);
	action->slot = ZC_NONE;
	if (action->peer != ZC_NONE && row->slotted && action->npieces)
		action->slot = s->flags & ZCOLL_STEP_OPEN ? unit : unit % e->config.slots;
	if (s->kind == ZCOLL_STEP_SEND) {
		zc_row_msg(op, s, ZC_MSG_DATA, s->match, unit, &action->msg);
		zc_link_say(e, action->peer, action);
	}
	return true;
}

/* Has a unit elements, or is it one that only notifies? Else nobody sends it. */
static bool zc_row_moves(const struct zc_eop *op, const struct zcoll_step *s,
			 const struct zc_row *row, u64 unit)
{
	const struct zcoll_plan *plan = op->desc.prog->plan;
	struct zc_piece piece[2];
	struct zc_turn turn;

	if (zc_row_notifies(op, s))
		return true;
	zc_step_turn(plan, s, op->v, unit / row->slices, &turn);
	return zc_geometry_pieces(&op->desc.geo, plan->segments, &turn.range,
				  unit % row->slices * row->stride, row->stride, piece);
}

/* May the next unit begin, as far as the other node is concerned? */
static bool zc_row_may_begin(struct zc_engine *e, struct zc_eop *op, const struct zcoll_step *s,
			     struct zc_row *row)
{
	u32 peer = row->peer;

	if (s->peer == ZCOLL_PEER_NONE)
		return true;
	if (!zc_row_let(op, s, row, row->begun))
		return !zc_row_moves(op, s, row, row->begun);
	if (zc_step_receives(s))
		return true;
	if (row->bits)
		peer = zc_row_turn_peer(op, s, row->begun);
	return zc_link_takes(e, peer, op->desc.seq);
}

/**
 * zc_row_next - what a row has to do next
 * @e: engine, not revoked
 * @op: ACTIVE operation
 * @step: index of the step
 * @action: to be filled
 *
 * Return: false: nothing, until it is woken.
 */
bool zc_row_next(struct zc_engine *e, struct zc_eop *op, u32 step, struct zc_action *action)
{
	const struct zcoll_step *s = zc_row_step(op, step);
	struct zc_row *row = &op->rows[step];

	if (!row->active || row->done == row->units)
		return false;
	while (row->ready < row->units && row->ready < row->begun + ZC_AHEAD &&
	       zc_row_is_ready(op, s, row, row->ready))
		row->ready++;
	if (zc_step_receives(s) && zc_row_grant(e, op, step, action))
		return true;
	while (row->begun < row->ready && row->begun < row->done + e->config.inflight &&
	       zc_row_may_begin(e, op, s, row)) {
		bool host = zc_row_action(e, op, step, action);
		u64 unit = row->begun++;

		row->landed >>= 1;
		if (host) {
			op->busy++;
			return true;
		}
		if (zc_row_mark(e, op, step, unit))
			return false;
		if (++e->skipped >= ZC_SKIPS) {
			action->type = ZC_DO_AGAIN;
			return true;
		}
	}
	return false;
}

/**
 * zc_row_waits - for whose message does a row wait, and for nothing else?
 * @op: ACTIVE operation
 * @step: index of the step
 * @unit: first unit to look at; gets the one after the unit that waits
 *
 * Return: the node that is to send elements or a grant; ZC_NONE: none, from there on.
 */
u32 zc_row_waits(const struct zc_eop *op, u32 step, u64 *unit)
{
	const struct zcoll_step *s = zc_row_step(op, step);
	const struct zc_row *row = &op->rows[step];
	u64 at = *unit > row->begun ? *unit : row->begun;

	if (!row->active || s->peer == ZCOLL_PEER_NONE)
		return ZC_NONE;
	for (; at < row->ready && (row->bits || at == row->begun); at++) {
		if (zc_row_let(op, s, row, at) || !zc_row_moves(op, s, row, at))
			continue;
		*unit = at + 1;
		return row->bits ? zc_row_turn_peer(op, s, at) : row->peer;
	}
	return ZC_NONE;
}

/**
 * zc_row_done - the host is through with a unit
 * @e: engine
 * @op: operation
 * @step: index of the step
 * @unit: unit
 *
 * A unit that the host does not have changes nothing. One that it has when the engine is revoked
 * is not done: the host may have dropped it, or cut it short.
 */
void zc_row_done(struct zc_engine *e, struct zc_eop *op, u32 step, u64 unit)
{
	struct zc_row *row = &op->rows[step];

	if (unit < row->done || unit >= row->begun || row->later >> (unit - row->done) & 1)
		return;
	op->busy--;
	if (!e->error) {
		zc_row_mark(e, op, step, unit);
		return;
	}
	row->later |= 1ULL << (unit - row->done);
	zc_row_wake(e, op, step);
}

/* Does a message fit what this node knows of the operation? */
static bool zc_row_expects(const struct zc_eop *op, u32 from, const struct zc_msg *msg)
{
	const struct zc_row *row = &op->rows[msg->step];
	const struct zcoll_step *s;
	u64 last = msg->unit;

	if (op->phase == ZC_OP_EARLY)
		return msg->open || row->peer == ZC_NONE || row->peer == from;
	if (msg->step >= op->desc.prog->plan->nsteps || !row->active)
		return false;
	s = zc_row_step(op, msg->step);
	if (msg->type == ZC_MSG_DATA ? !zc_step_receives(s) : s->kind != ZCOLL_STEP_SEND)
		return false;
	if (msg->type == ZC_MSG_GRANT && !msg->open)
		last--;
	if (!msg->open != !row->bits || last >= row->units)
		return false;
	if (msg->type == ZC_MSG_DATA && last >= row->granted)
		return false;
	return from == (row->bits ? zc_row_turn_peer(op, s, last) : row->peer);
}

/**
 * zc_row_message - elements have landed, or may be sent
 * @e: engine
 * @op: EARLY or ACTIVE operation
 * @from: node
 * @msg: DATA or GRANT; msg->step is below config.steps
 *
 * What has come before, by a duplicate, changes nothing.
 * Return: 0, or -EPROTO: no node that keeps the rules sends this.
 */
int zc_row_message(struct zc_engine *e, struct zc_eop *op, u32 from, const struct zc_msg *msg)
{
	struct zc_row *row = &op->rows[msg->step];
	u64 unit = msg->unit;

	if (!zc_row_expects(op, from, msg))
		return -EPROTO;
	if (msg->open) {
		if (unit >= msg->open || zc_row_reserve(e, op, row, msg->open))
			return -EPROTO;
		if (op->phase == ZC_OP_EARLY && !zc_bit(zc_row_bits(op, row), unit))
			row->early ^= zc_row_early(msg->type, from, unit);
		zc_bit_set(zc_row_bits(op, row), unit);
	} else if (msg->type == ZC_MSG_GRANT) {
		row->peer = from;
		if (unit > row->granted)
			row->granted = unit;
	} else {
		row->peer = from;
		if (unit >= row->begun + ZC_AHEAD)
			return -EPROTO;
		if (unit >= row->begun)
			row->landed |= 1ULL << (unit - row->begun);
	}
	if (op->phase == ZC_OP_ACTIVE)
		zc_row_wake(e, op, msg->step);
	return 0;
}
