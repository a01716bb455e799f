// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Steps in words. v is the node that does the step, t the turn; where nodes are
 * counted from another one or from the end, u is defined first. Sums are in the
 * numbers of nodes and segments: beyond the last one comes the first.
 */
#include <inttypes.h>

#include "plan.h"

/* "v+1-t"; @name may be empty */
static void words_sum(FILE *out, const char *name, int64_t plus, int64_t each)
{
	bool empty = !*name;

	fputs(name, out);
	if (plus || (empty && !each))
		fprintf(out, plus >= 0 && !empty ? "+%" PRId64 : "%" PRId64, plus);
	empty = empty && !plus;
	if (each)
		fputs(each < 0 ? "-" : empty ? "" : "+", out);
	if (each > 1 || each < -1)
		fprintf(out, "%" PRId64, each < 0 ? -each : each);
	if (each)
		putc('t', out);
}

/* ---- who takes part ---- */

static bool is_plain(const struct zcoll_step *step)
{
	return !step->origin && !(step->flags & ZCOLL_STEP_FLIP);
}

static void words_u(FILE *out, const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	if (is_plain(step))
		return;
	fputs("with u = ", out);
	if (step->flags & ZCOLL_STEP_FLIP)
		words_sum(out, "", ((int64_t)plan->nodes - 1 + step->origin) % plan->nodes, 0);
	if (step->flags & ZCOLL_STEP_FLIP)
		fputs("-v: ", out);
	else
		fprintf(out, "v-%u: ", step->origin);
}

/* Who takes part, as far as that is a range of u */
struct range {
	u32 first;
	u32 last;
	bool some;	/* in it, only those with lo <= u mod every <= hi */
};

static struct range who_range(const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	struct range r = { .first = step->first, .last = step->last };

	if (r.last >= plan->nodes)
		r.last = plan->nodes - 1;
	if (step->every <= r.last) {
		r.some = step->lo || step->hi < step->every - 1;
		return r;
	}
	/* u mod every is u */
	if (r.first < step->lo)
		r.first = step->lo;
	if (r.last > step->hi)
		r.last = step->hi;
	return r;
}

static void words_who(FILE *out, const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	const char *name = is_plain(step) ? "v" : "u";
	struct range r = who_range(plan, step);
	bool all = !r.first && r.last == plan->nodes - 1;

	if (all && !r.some)
		return;
	fputs(r.first > r.last ? "nowhere" : "where ", out);
	if (r.first == r.last)
		fprintf(out, "%s = %u", name, r.last);
	else if (!all && r.first < r.last)
		fprintf(out, "%s = %u..%u", name, r.first, r.last);
	if (r.some)
		fputs(all ? "" : " and ", out);
	if (r.some && step->lo == step->hi)
		fprintf(out, "%s mod %u = %u", name, step->every, step->lo);
	else if (r.some)
		fprintf(out, "%s mod %u = %u..%u", name, step->every, step->lo, step->hi);
	fputs(": ", out);
}

/* ---- the peer ---- */

/* The digit is the whole number of the node */
static bool is_whole(const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	return step->stride == 1 && step->radix == plan->nodes;
}

static bool is_power(u32 n)
{
	return !(n & (n - 1));
}

static void words_digit(FILE *out, const struct zcoll_plan *plan,
			const struct zcoll_step *step)
{
	const char *name = is_plain(step) ? "v" : "u";

	if (step->stride > 1)
		fprintf(out, "(%s/%u)", name, step->stride);
	else
		fputs(name, out);
	if ((u64)step->stride * step->radix < plan->nodes)
		fprintf(out, " mod %u", step->radix);
}

/* A digit more is stride nodes on, and after the last one comes the first of the group */
static void words_add(FILE *out, const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	const int64_t sign = step->flags & ZCOLL_STEP_FLIP ? -1 : 1;
	const u64 group = (u64)step->stride * step->radix;

	fputs("node ", out);
	words_sum(out, "v", sign * step->dist * step->stride,
		  sign * step->dist_step * step->stride);
	if (group != plan->nodes)
		fprintf(out, " in its group of %" PRIu64, group);
}

/* Numbers of nodes, and their digits, that are not sums */
static void words_other(FILE *out, const struct zcoll_plan *plan,
			const struct zcoll_step *step)
{
	const char *name = is_plain(step) ? "v" : "u";

	fputs(is_plain(step) ? "node " : "the node where u = ", out);
	if (step->peer == ZCOLL_PEER_XOR && is_power(step->stride) && is_power(step->radix)) {
		fprintf(out, "%s xor %" PRIu64, name, (u64)step->dist * step->stride);
	} else if (step->peer == ZCOLL_PEER_TO && is_whole(plan, step)) {
		words_sum(out, "", step->dist, step->dist_step);
	} else {
		fprintf(out, "%s, but with ", name);
		words_digit(out, plan, step);
		fputs(step->peer == ZCOLL_PEER_XOR ? " xor " : " = ", out);
		words_sum(out, "", step->dist, step->dist_step);
	}
}

static void words_peer(FILE *out, const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	if (step->peer == ZCOLL_PEER_ADD)
		words_add(out, plan, step);
	else
		words_other(out, plan, step);
}

/* ---- segments ---- */

/* Whose block: "v", "sigma(v)/4", "p" */
static void block_name(const struct zcoll_plan *plan, const struct zcoll_step *step,
		       char name[32])
{
	const char *node = step->of == ZCOLL_OF_SELF ? "v" : "p";
	const char *sigma = plan->levels[0] ? "sigma(" : "";
	const char *end = plan->levels[0] ? ")" : "";

	*name = 0;
	if (step->of == ZCOLL_OF_ZERO)
		return;
	if (step->width > 1)
		snprintf(name, 32, "%s%s%s/%u", sigma, node, end, step->width);
	else
		snprintf(name, 32, "%s%s%s", sigma, node, end);
}

static void words_segments(FILE *out, const struct zcoll_plan *plan,
			   const struct zcoll_step *step)
{
	u64 span = (u64)step->width * step->blocks;
	char name[32];

	block_name(plan, step, name);
	if (!step->count) {
		fputs("a notice", out);
		return;
	}
	if (plan->segments == 1) {
		fputs("the segment", out);
		return;
	}
	if (step->count == plan->segments) {
		fputs("all segments", out);
		return;
	}
	if (step->count == 1)
		fputs("segment ", out);
	else
		fprintf(out, "%u segments from ", step->count);
	if (step->width > 1)
		fprintf(out, "%u*(", step->width);
	words_sum(out, name, step->seg % (int64_t)step->blocks, step->seg_step);
	if (step->width > 1)
		putc(')', out);
	if (span < plan->segments)
		fprintf(out, " in %s group of %" PRIu64, step->count == 1 ? "its" : "their",
			span);
}

static void words_place(FILE *out, const struct zcoll_place *place)
{
	static const char *const of[] = { "", "x", "x'" };

	if (place->space == ZCOLL_PLACE_DATA) {
		fputs("the accumulation", out);
		return;
	}
	fputs("scratch ", out);
	words_sum(out, of[place->of], place->index, place->index_step);
}

/* ---- what is done ---- */

const char *words_kind(const struct zcoll_step *step)
{
	static const char *const kinds[] = { "", "gather", "send", "fold", "deliver",
					     "make final" };

	if (!step->count && step->kind != ZCOLL_STEP_SEND)
		return step->peer == ZCOLL_PEER_NONE ? "wait" : "receive";
	if (step->kind == ZCOLL_STEP_FOLD && step->flags & ZCOLL_STEP_STORE)
		return "store";
	return kinds[step->kind];
}

/* What is sent, or folded with what is received */
static void words_source(FILE *out, const struct zcoll_step *step)
{
	if (step->flags & ZCOLL_STEP_FIRST)
		fputs("the local inputs", out);
	else if (step->flags & ZCOLL_STEP_INPUT)
		fputs("the gathered inputs", out);
	else
		words_place(out, &step->src);
}

static void words_received(FILE *out, const struct zcoll_plan *plan,
			   const struct zcoll_step *step)
{
	words_segments(out, plan, step);
	fputs(" from ", out);
	words_peer(out, plan, step);
	if (step->kind == ZCOLL_STEP_DELIVER || !step->count)
		return;
	if (!(step->flags & ZCOLL_STEP_STORE)) {
		fputs(" with ", out);
		words_source(out, step);
	}
	fputs(" into ", out);
	if (step->flags & ZCOLL_STEP_RESULT)
		fputs("the outputs", out);
	else
		words_place(out, &step->dst);
}

static void words_local(FILE *out, const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	words_segments(out, plan, step);
	fputs(step->kind == ZCOLL_STEP_GATHER ? " of the local inputs" : " of ", out);
	if (step->kind != ZCOLL_STEP_GATHER)
		words_source(out, step);
	if (step->kind == ZCOLL_STEP_FINAL)
		return;
	fputs(" into ", out);
	words_place(out, &step->dst);
}

static void words_what(FILE *out, const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	if (step->peer == ZCOLL_PEER_NONE) {
		if (step->count)
			words_local(out, plan, step);
	} else if (step->kind == ZCOLL_STEP_SEND) {
		words_segments(out, plan, step);
		if (step->count) {
			fputs(" of ", out);
			words_source(out, step);
		}
		fputs(" to ", out);
		words_peer(out, plan, step);
		fprintf(out, " step %u", step->match);
	} else {
		words_received(out, plan, step);
	}
}

/* "all of step 3", "step 3 turn t-1"; of what is done once, "step 3", by slices if both are */
static void words_wait(FILE *out, const struct zcoll_plan *plan, const struct zcoll_step *step,
		       const struct zcoll_after *after)
{
	bool once = step->repeat == 1 && plan->steps[after->step].repeat == 1 && !after->shift;

	if (after->mode == ZCOLL_AFTER_ALL) {
		fprintf(out, "all of step %u", after->step);
	} else if (once) {
		fprintf(out, after->mode == ZCOLL_AFTER_SLICE ? "step %u" : "all of step %u",
			after->step);
	} else {
		fprintf(out, "step %u %s ", after->step,
			after->mode == ZCOLL_AFTER_SLICE ? "slice" : "turn");
		words_sum(out, "t", -(int64_t)after->shift, 0);
	}
}

/* Does no turn wait by this entry, since it names one below 0? */
static bool is_idle(const struct zcoll_step *step, const struct zcoll_after *after)
{
	if (after->mode == ZCOLL_AFTER_NONE)
		return true;
	return after->shift > 0 && (u32)after->shift >= step->repeat;
}

static void words_after(FILE *out, const struct zcoll_plan *plan,
			const struct zcoll_step *step)
{
	const char *before = ", after ";
	u32 i;

	for (i = 0; i < ZCOLL_PLAN_AFTER; i++) {
		if (is_idle(step, &step->after[i]))
			continue;
		fputs(before, out);
		words_wait(out, plan, step, &step->after[i]);
		before = " and ";
	}
}

void words_step(FILE *out, const struct zcoll_plan *plan, unsigned int index)
{
	const struct zcoll_step *step = &plan->steps[index];

	fprintf(out, "step %u: ", index);
	words_u(out, plan, step);
	words_who(out, plan, step);
	fputs(words_kind(step), out);
	if (step->repeat > 1)
		fprintf(out, " %u times", step->repeat);
	if (step->flags & ZCOLL_STEP_OPEN)
		fputs(" in any order", out);
	if (step->count || step->peer != ZCOLL_PEER_NONE)
		fputs(step->repeat > 1 || step->flags & ZCOLL_STEP_OPEN ? ": " : " ", out);
	words_what(out, plan, step);
	words_after(out, plan, step);
}

const char *words_name(const struct zcoll_plan *plan)
{
	return *plan->name ? plan->name : "(no name)";
}

/* ---- numbers ---- */

static void words_run(FILE *out, u32 first, u32 count, const char *before)
{
	fprintf(out, count > 1 ? "%s%u-%u" : "%s%u", before, first, first + count - 1);
}

void words_range(FILE *out, const struct zc_range *range, bool bare)
{
	u32 room = range->base + range->span - range->first;
	u32 straight = range->count < room ? range->count : room;

	if (!range->count)
		return;
	if (!bare)
		fputs(range->count > 1 ? "segments " : "segment ", out);
	words_run(out, range->first, straight, "");
	if (straight < range->count)
		words_run(out, range->base, range->count - straight, ",");
}

void words_message(FILE *out, const struct event *event)
{
	fprintf(out, "%u>%u", event->node, event->turn.peer);
	if (!event->turn.range.count)
		return;
	putc('[', out);
	words_range(out, &event->turn.range, true);
	putc(']', out);
}
