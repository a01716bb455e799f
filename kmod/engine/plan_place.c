// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The check of a plan: what its turns read and write, as they are gone through.
 *
 * A *place* is a segment, the accumulation of one apart from the outputs, or a scratch
 * place. Two things are asked:
 *
 *   order   is every earlier access to the places of this turn known to be done when
 *           it begins? Only two reads need no order.
 *   state   what is in the segments (empty, raw, ... final), and in the places? As
 *           accesses are ordered, it is the same in every run.
 */
#include "plan_check.h"

/* ---- the order of accesses ---- */

static int zc_ordered(struct zc_check *check, u32 step, u32 t, u32 segment)
{
	if (step == check->step && t == check->t)
		return zc_refuse(check, -EXFULL, "needs two values in one accumulation place",
				 segment);
	if (check->now[check->tracks[step].column] > t)
		return 0;
	zc_refuse(check, -EILSEQ, "not ordered after an earlier access to the same place",
		  segment);
	check->why->other_step = step;
	check->why->other_turn = t;
	return -EILSEQ;
}

static int zc_read_spot(struct zc_check *check, struct zc_spot *spot, u32 segment)
{
	struct zc_read *read;
	u32 i = spot->reads;

	if (spot->writer != ZC_NONE) {
		int err = zc_ordered(check, spot->writer, spot->turn, segment);

		if (err)
			return err;
	}
	/* A later turn of the same step stands for the earlier one */
	if (i == ZC_NONE || check->reads[i].step != check->step) {
		i = check->spare;
		read = &check->reads[i];
		check->spare = read->next;
		read->next = spot->reads;
		read->step = check->step;
		spot->reads = i;
	}
	check->reads[i].turn = check->t;
	return 0;
}

/* Reads come first: as they come after the writer, they are what is to be waited for */
static int zc_write_spot(struct zc_check *check, struct zc_spot *spot, u32 segment)
{
	int err = 0;

	while (!err && spot->reads != ZC_NONE) {
		u32 i = spot->reads;
		struct zc_read *read = &check->reads[i];

		err = zc_ordered(check, read->step, read->turn, segment);
		spot->reads = read->next;
		read->next = check->spare;
		check->spare = i;
	}
	if (!err && spot->writer != ZC_NONE)
		err = zc_ordered(check, spot->writer, spot->turn, segment);
	spot->writer = check->step;
	spot->turn = check->t;
	return err;
}

static int zc_touch(struct zc_check *check, struct zc_spot *spot, u32 segment, bool write)
{
	return write ? zc_write_spot(check, spot, segment) : zc_read_spot(check, spot, segment);
}

/* ---- what is there ---- */

/* What is read must have been put there, and be this segment's */
static int zc_holds(struct zc_check *check, const struct zc_spot *spot, u32 segment)
{
	if (spot->holds == segment)
		return 0;
	if (spot->holds == ZC_NONE)
		return zc_refuse(check, -ENODATA, "reads a place that nothing was put into",
				 segment);
	return zc_refuse(check, -EXFULL, "reads a place that holds another segment by now",
			 segment);
}

/*
 * Where a node keeps the accumulation of a segment, if not in the outputs. ZC_NONE in
 * @at: in the outputs.
 */
static int zc_acc_spot(struct zc_check *check, u32 segment, u32 *at)
{
	const struct zcoll_plan *plan = check->plan;
	u32 from;

	*at = ZC_NONE;
	if (zc_plan_has_outputs(plan, check->v))
		return 0;
	if (!plan->acc)
		return zc_refuse(check, -EXFULL,
				 "accumulates without outputs, and the plan says acc 0", segment);
	from = zc_plan_sigma(plan, check->v) % plan->segments;
	from = segment >= from ? segment - from : segment + (plan->segments - from);
	*at = plan->segments + from % plan->acc;
	return 0;
}

/* How a turn deals with the DATA of its segments */
struct zc_use {
	bool first;		/* takes the local inputs */
	bool reads;		/* reads the accumulation, or the outputs */
	bool input;		/* which are as GATHER left them */
	bool writes;		/* writes the accumulation */
	bool result;		/* writes the outputs */
	enum zc_state next;	/* state of the segments then, if one of the above */
};

static struct zc_use zc_use_of(const struct zcoll_step *row)
{
	bool data_dst = row->dst.space == ZCOLL_PLACE_DATA;
	bool data_src = row->src.space == ZCOLL_PLACE_DATA;
	struct zc_use use = {
		.first = row->flags & ZCOLL_STEP_FIRST,
		.input = row->flags & ZCOLL_STEP_INPUT,
		.reads = data_src && zc_step_reads(row),
		.next = ZC_SPENT,
	};

	switch (row->kind) {
	case ZCOLL_STEP_GATHER:
		use.first = true;
		use.writes = data_dst;
		use.next = data_dst ? ZC_GATHERED : ZC_SPENT;
		break;
	case ZCOLL_STEP_FOLD:
		use.result = row->flags & ZCOLL_STEP_RESULT;
		use.writes = data_dst && !use.result;
		if (row->peer == ZCOLL_PEER_NONE && !(row->flags & ZCOLL_STEP_STORE))
			use.reads |= data_dst;
		if (data_dst)
			use.next = use.result ? ZC_FINAL : ZC_ACCUMULATED;
		break;
	case ZCOLL_STEP_DELIVER:
	case ZCOLL_STEP_FINAL:
		use.result = true;
		use.next = ZC_FINAL;
		break;
	}
	return use;
}

static int zc_check_state(struct zc_check *check, const struct zc_use *use, u32 segment)
{
	u8 state = check->state[segment];

	if (use->first && state != ZC_RAW)
		return zc_plan_has_input(check->plan, check->v, segment) ?
			zc_refuse(check, -EALREADY, "the local inputs have been used before",
				  segment) :
			zc_refuse(check, -ENODATA, "there are no local inputs", segment);
	if (use->reads && use->input && state != ZC_GATHERED)
		return zc_refuse(check, -ENODATA, "INPUT, but the segment is not gathered",
				 segment);
	if (use->reads && !use->input && state != ZC_ACCUMULATED && state != ZC_FINAL)
		return zc_refuse(check, -ENODATA, "the segment is not accumulated", segment);
	if (!use->writes && !use->result)
		return 0;
	if (state == ZC_FINAL)
		return zc_refuse(check, -EROFS, "writes a segment that is final", segment);
	if (state == ZC_RAW && !use->first)
		return zc_refuse(check, -ENODATA, "overwrites local inputs that nothing has read",
				 segment);
	if (use->result && !zc_plan_has_output(check->plan, check->v, segment))
		return zc_refuse(check, -EMEDIUMTYPE, "makes final what has no output here",
				 segment);
	return 0;
}

/* The accumulation place, where it is apart from the outputs */
static int zc_check_acc(struct zc_check *check, const struct zc_use *use, u32 segment)
{
	bool reads = use->reads && check->state[segment] != ZC_FINAL;
	u32 at;
	int err;

	if (!reads && !use->writes)
		return 0;
	err = zc_acc_spot(check, segment, &at);
	if (err || at == ZC_NONE)
		return err;
	if (reads) {
		err = zc_holds(check, &check->spots[at], segment);
		if (err)
			return err;
	}
	err = zc_touch(check, &check->spots[at], segment, use->writes);
	if (use->writes)
		check->spots[at].holds = segment;
	return err;
}

static int zc_check_segment(struct zc_check *check, const struct zc_use *use, u32 segment)
{
	bool writes = use->writes || use->result;
	int err = 0;

	if (use->first || use->reads || writes)
		err = zc_touch(check, &check->spots[segment], segment, writes);
	if (!err)
		err = zc_check_state(check, use, segment);
	if (!err)
		err = zc_check_acc(check, use, segment);
	if (use->first || writes)
		check->state[segment] = use->next;
	return err;
}

static int zc_check_scratch(struct zc_check *check)
{
	const struct zcoll_step *row = check->row;
	const struct zc_turn *turn = &check->turn;
	struct zc_spot *spots = check->spots + check->plan->segments + check->plan->acc;
	bool local = row->kind == ZCOLL_STEP_FOLD && row->peer == ZCOLL_PEER_NONE;
	u32 segment = turn->range.first;
	int err = 0;

	if (local && turn->dst == turn->src)
		return zc_refuse(check, -EALREADY, "folds a place with itself", turn->dst);
	if (turn->src != ZC_NONE) {
		err = zc_holds(check, &spots[turn->src], segment);
		if (!err && turn->src != turn->dst)
			err = zc_touch(check, &spots[turn->src], turn->src, false);
	}
	if (err || turn->dst == ZC_NONE)
		return err;
	if (local && !(row->flags & ZCOLL_STEP_STORE))
		err = zc_holds(check, &spots[turn->dst], segment);
	if (!err)
		err = zc_touch(check, &spots[turn->dst], turn->dst, true);
	spots[turn->dst].holds = segment;
	return err;
}

/**
 * zc_check_places - may a turn read and write what it does?
 * @check: check under way; it is known what the turn knows
 *
 * Return: 0, or why the plan is refused.
 */
int zc_check_places(struct zc_check *check)
{
	struct zc_use use = zc_use_of(check->row);
	int err = zc_check_scratch(check);
	u32 i;

	for (i = 0; i < check->turn.range.count && !err; i++)
		err = zc_check_segment(check, &use, zc_range_at(&check->turn.range, i));
	return err;
}
