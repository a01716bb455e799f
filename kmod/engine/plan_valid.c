// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Is this a plan at all? Every field taken alone, from a source that is not trusted:
 * what passes can be computed with (plan.c), whatever it then turns out to do.
 *
 * Each function returns what is wrong, a sentence for people, or NULL. That is
 * -EINVAL; the few rules with another errno are in zc_plan_valid() itself.
 */
#include "plan_priv.h"

static bool zc_name_good(const char *name)
{
	u32 i = 0;

	while (i < ZCOLL_PLAN_NAME && name[i] > ' ' && name[i] <= '~')
		i++;
	if (i == ZCOLL_PLAN_NAME)
		return false;
	while (i < ZCOLL_PLAN_NAME && !name[i])
		i++;
	return i == ZCOLL_PLAN_NAME;
}

/* Either no levels, or some whose product is nodes, and then none */
static bool zc_levels_good(const struct zcoll_plan *plan)
{
	u64 product = 1;
	u32 i;

	for (i = 0; i < ZCOLL_PLAN_LEVELS && plan->levels[i]; i++) {
		product *= plan->levels[i];
		if (product > plan->nodes)
			return false;
	}
	if (i && product != plan->nodes)
		return false;
	while (i < ZCOLL_PLAN_LEVELS && !plan->levels[i])
		i++;
	return i == ZCOLL_PLAN_LEVELS;
}

static const char *zc_bad_collective(const struct zcoll_plan *plan)
{
	switch (plan->collective) {
	case ZCOLL_ALLREDUCE:
	case ZCOLL_BROADCAST:
	case ZCOLL_REDUCE:
		return NULL;
	case ZCOLL_REDUCE_SCATTER:
	case ZCOLL_ALLGATHER:
		return plan->segments == plan->members ? NULL :
			"field segments must be members in this collective";
	case ZCOLL_BARRIER:
		return plan->segments == 1 && !plan->scratch && !plan->acc ? NULL :
			"a barrier has one segment, no scratch and no acc";
	}
	return "field collective is out of range";
}

static const char *zc_bad_header(const struct zcoll_plan *plan)
{
	if (plan->flags & ~ZCOLL_PLAN_FLAGS)
		return "field flags has unknown bits";
	if (plan->__reserved)
		return "field __reserved must be 0";
	if (!plan->nodes)
		return "field nodes must not be 0";
	if (!plan->members || plan->members > plan->nodes)
		return "field members must be 1 .. nodes";
	if (!plan->segments)
		return "field segments must not be 0";
	if (plan->acc > plan->segments)
		return "field acc must be at most segments";
	if (!zc_name_good(plan->name))
		return "field name must be printable, without spaces, and end with NUL";
	if (!zc_levels_good(plan))
		return "the product of levels must be nodes, and unused ones 0";
	return zc_bad_collective(plan);
}

/* What a kind of step may have, as the tables in <linux/zcoll_plan.h> say */
struct zc_kind {
	u32 flags;
	bool dst;
};

static const struct zc_kind zc_kinds[ZCOLL_NR_STEPS] = {
	[ZCOLL_STEP_GATHER] = { ZCOLL_STEP_FLIP, true },
	[ZCOLL_STEP_SEND] = { ZCOLL_STEP_FIRST | ZCOLL_STEP_INPUT | ZCOLL_STEP_OPEN |
			      ZCOLL_STEP_FLIP, false },
	[ZCOLL_STEP_FOLD] = { ZCOLL_STEP_FLAGS, true },
	[ZCOLL_STEP_DELIVER] = { ZCOLL_STEP_OPEN | ZCOLL_STEP_FLIP, false },
	[ZCOLL_STEP_FINAL] = { ZCOLL_STEP_FIRST | ZCOLL_STEP_INPUT | ZCOLL_STEP_FLIP,
			       false },
};

/* Only where there is a peer */
#define ZC_FOLD_FROM_PEER (ZCOLL_STEP_FIRST | ZCOLL_STEP_RESULT | ZCOLL_STEP_OPEN)

static const char *zc_bad_flags(const struct zcoll_step *step)
{
	const u32 source = step->flags & (ZCOLL_STEP_FIRST | ZCOLL_STEP_INPUT |
					  ZCOLL_STEP_STORE);
	u32 legal = zc_kinds[step->kind].flags;

	if (step->kind == ZCOLL_STEP_FOLD && step->peer == ZCOLL_PEER_NONE)
		legal &= ~ZC_FOLD_FROM_PEER;
	if (step->flags & ~legal)
		return "a flag is unknown, or not for this kind of step";
	if (step->flags & ZCOLL_STEP_FIRST && source != ZCOLL_STEP_FIRST)
		return "FIRST goes with neither INPUT nor STORE";
	if (step->peer != ZCOLL_PEER_NONE && source == (ZCOLL_STEP_INPUT | ZCOLL_STEP_STORE))
		return "a fold with STORE from a peer has no source for INPUT";
	if (step->flags & ZCOLL_STEP_RESULT && step->flags & ZCOLL_STEP_STORE)
		return "a fold with STORE and RESULT is a DELIVER";
	return NULL;
}

static bool zc_place_good(const struct zcoll_plan *plan, const struct zcoll_step *step,
			  const struct zcoll_place *place)
{
	if (place->__reserved || place->space > ZCOLL_PLACE_SCRATCH ||
	    place->of > ZCOLL_OF_PEER)
		return false;
	if (place->space == ZCOLL_PLACE_DATA)
		return !place->of && !place->index && !place->index_step;
	if (place->of == ZCOLL_OF_PEER && step->peer == ZCOLL_PEER_NONE)
		return false;
	return step->count == 1 && plan->scratch;
}

static bool zc_place_none(const struct zcoll_place *place)
{
	return !place->space && !place->of && !place->__reserved && !place->index &&
	       !place->index_step;
}

static bool zc_place_scratch(const struct zcoll_place *place)
{
	return place->space == ZCOLL_PLACE_SCRATCH;
}

static const char *zc_bad_places(const struct zcoll_plan *plan,
				 const struct zcoll_step *step)
{
	if (zc_kinds[step->kind].dst ? !zc_place_good(plan, step, &step->dst) :
				       !zc_place_none(&step->dst))
		return "dst is malformed, of a peer that is not there, or not used in this step";
	if (zc_step_reads(step) ? !zc_place_good(plan, step, &step->src) :
				  !zc_place_none(&step->src))
		return "src is malformed, of a peer that is not there, or not used in this step";
	if (step->flags & ZCOLL_STEP_RESULT && zc_place_scratch(&step->dst))
		return "with RESULT, dst must be DATA";
	if (step->flags & ZCOLL_STEP_INPUT && zc_place_scratch(&step->src))
		return "with INPUT, src must be DATA";
	if (step->kind == ZCOLL_STEP_FOLD && step->peer == ZCOLL_PEER_NONE &&
	    !zc_place_scratch(&step->dst) && !zc_place_scratch(&step->src))
		return "a local fold must not have DATA as dst and as src";
	return NULL;
}

static const char *zc_bad_peer(const struct zcoll_step *step)
{
	bool local = step->peer == ZCOLL_PEER_NONE;

	if (step->peer > ZCOLL_PEER_TO)
		return "field peer is out of range";
	if (local && (step->kind == ZCOLL_STEP_SEND || step->kind == ZCOLL_STEP_DELIVER))
		return "this kind of step needs a peer";
	if (!local && (step->kind == ZCOLL_STEP_GATHER || step->kind == ZCOLL_STEP_FINAL))
		return "this kind of step has no peer";
	if (!step->stride || step->stride > ZCOLL_PLAN_MAX_NODES)
		return "field stride must be 1 .. 65536";
	if (!step->radix || step->radix > ZCOLL_PLAN_MAX_NODES)
		return "field radix must be 1 .. 65536";
	if (local && (step->dist || step->dist_step))
		return "without a peer, dist and dist_step must be 0";
	if (step->peer == ZCOLL_PEER_XOR && (step->dist < 0 || step->dist_step))
		return "with PEER_XOR, dist must not be negative and dist_step must be 0";
	if (step->dist_step && !(step->flags & ZCOLL_STEP_OPEN))
		return "only in an OPEN step the peer changes: dist_step must be 0";
	return NULL;
}

static const char *zc_bad_segments(const struct zcoll_plan *plan,
				   const struct zcoll_step *step)
{
	u64 span = (u64)step->width * step->blocks;

	if (!span || span > plan->segments)
		return "width and blocks must not be 0, nor their product above segments";
	if (step->count > span)
		return "field count must be at most blocks * width";
	if (step->of > ZCOLL_OF_PEER ||
	    (step->of == ZCOLL_OF_PEER && step->peer == ZCOLL_PEER_NONE))
		return "field of is out of range, or names a peer that is not there";
	if (step->count && plan->collective == ZCOLL_BARRIER)
		return "a barrier moves no elements: count must be 0";
	return NULL;
}

static const char *zc_bad_match(const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	const struct zcoll_step *match;

	if (step->kind != ZCOLL_STEP_SEND)
		return step->match ? "only a SEND has a match" : NULL;
	if (step->match >= plan->nsteps)
		return "field match is not a step";
	match = &plan->steps[step->match];
	if (!zc_step_receives(match))
		return "field match is not a step that receives";
	if (match->repeat != step->repeat || match->count != step->count)
		return "repeat and count must be those of the match";
	if ((match->flags ^ step->flags) & ZCOLL_STEP_OPEN)
		return "either both or none of a SEND and its match must be OPEN";
	return NULL;
}

static const char *zc_bad_after(const struct zcoll_plan *plan, const struct zcoll_after *after)
{
	if (after->mode > ZCOLL_AFTER_ALL || after->__reserved)
		return "field after.mode is out of range, or __reserved not 0";
	if (after->mode == ZCOLL_AFTER_NONE)
		return after->step || after->shift ? "with AFTER_NONE, all else must be 0" : NULL;
	if (after->step >= plan->nsteps)
		return "field after.step is not a step";
	if (after->mode == ZCOLL_AFTER_ALL)
		return after->shift ? "with AFTER_ALL, shift must be 0" : NULL;
	if (plan->steps[after->step].flags & ZCOLL_STEP_OPEN)
		return "nothing waits for single turns of an OPEN step";
	return NULL;
}

static const char *zc_bad_open(const struct zcoll_step *step)
{
	u32 i;

	if (!(step->flags & ZCOLL_STEP_OPEN) || step->kind == ZCOLL_STEP_SEND)
		return NULL;
	if (step->kind == ZCOLL_STEP_FOLD &&
	    (!(step->flags & ZCOLL_STEP_STORE) || !zc_place_scratch(&step->dst)))
		return "an OPEN fold must STORE into scratch";
	for (i = 0; i < ZCOLL_PLAN_AFTER; i++)
		if (step->after[i].mode != ZCOLL_AFTER_NONE)
			return "an OPEN step that receives waits for nothing";
	return NULL;
}

static const char *zc_bad_step(const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	const char *bad;
	u32 i;

	if (!step->kind || step->kind >= ZCOLL_NR_STEPS)
		return "field kind is out of range";
	if (step->__reserved || step->__reserved2[0] || step->__reserved2[1])
		return "field __reserved must be 0";
	if (step->origin >= plan->nodes)
		return "field origin must be below nodes";
	if (!step->every)
		return "field every must not be 0";
	bad = zc_bad_peer(step);
	if (!bad)
		bad = zc_bad_segments(plan, step);
	if (!bad)
		bad = zc_bad_flags(step);
	if (!bad)
		bad = zc_bad_places(plan, step);
	if (!bad)
		bad = zc_bad_match(plan, step);
	if (!bad)
		bad = zc_bad_open(step);
	for (i = 0; i < ZCOLL_PLAN_AFTER && !bad; i++)
		bad = zc_bad_after(plan, &step->after[i]);
	return bad;
}

/* Are all turns within the limit? Where not, @why names the step. */
static const char *zc_bad_length(const struct zcoll_plan *plan, struct zc_plan_why *why,
				 int *err)
{
	u64 length = 0;
	u32 i;

	for (i = 0; i < plan->nsteps; i++) {
		const struct zcoll_step *step = &plan->steps[i];

		why->step = i;
		*err = -EINVAL;
		if (!step->repeat)
			return "field repeat must not be 0";
		*err = -E2BIG;
		length += (u64)step->repeat * (step->count ? step->count : 1);
		if (length > ZCOLL_PLAN_MAX_LENGTH)
			return "the sum of repeat * max(count, 1) is above 1048576";
	}
	why->step = ZC_NONE;
	return NULL;
}

static const char *zc_over_limit(const struct zcoll_plan *plan)
{
	if (plan->nodes > ZCOLL_PLAN_MAX_NODES)
		return "more than 65536 nodes";
	if (plan->segments > ZCOLL_PLAN_MAX_SEGMENTS)
		return "more than 65536 segments";
	/* One for each message that a node can get from the others */
	if (plan->scratch > ZCOLL_PLAN_MAX_NODES)
		return "more than 65536 scratch places";
	return NULL;
}

static int zc_bad_size(const struct zcoll_plan *plan, size_t bytes, struct zc_plan_why *why)
{
	why->what = "shorter than the header of a plan";
	if (bytes < sizeof(*plan))
		return -EINVAL;
	why->what = "field version is not 1";
	if (plan->version != ZCOLL_PLAN_VERSION)
		return -EOPNOTSUPP;
	why->what = "more than 1024 steps";
	if (plan->nsteps > ZCOLL_PLAN_MAX_STEPS)
		return -E2BIG;
	why->what = "field size is not the bytes there are, or not those of nsteps steps";
	if (plan->size != bytes ||
	    bytes != sizeof(*plan) + plan->nsteps * sizeof(plan->steps[0]))
		return -EINVAL;
	why->what = "field id is not the hash of the plan";
	if (plan->id != zc_plan_id(plan))
		return -EBADMSG;
	return 0;
}

/**
 * zc_plan_valid - are these bytes a plan?
 * @plan: the bytes, aligned as a struct is
 * @bytes: how many there are
 * @why: gets the reason of a refusal
 *
 * Return: 0, or a negative errno as <linux/zcoll.h> has it under "Errors of plans".
 */
int zc_plan_valid(const struct zcoll_plan *plan, size_t bytes, struct zc_plan_why *why)
{
	int err;
	u32 i;

	*why = (struct zc_plan_why){
		NULL, ZC_NONE, ZC_NONE, ZC_NONE, ZC_NONE, ZC_NONE, ZC_NONE,
	};
	err = zc_bad_size(plan, bytes, why);
	if (err)
		return err;
	why->what = zc_over_limit(plan);
	if (why->what)
		return -E2BIG;
	why->what = zc_bad_header(plan);
	if (why->what)
		return -EINVAL;
	why->what = zc_bad_length(plan, why, &err);
	if (why->what)
		return err;
	for (i = 0; i < plan->nsteps; i++) {
		why->what = zc_bad_step(plan, &plan->steps[i]);
		if (why->what) {
			why->step = i;
			return -EINVAL;
		}
	}
	return 0;
}
