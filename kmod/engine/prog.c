// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Plans made ready: who waits for whom, who feeds whom; and geometry.
 */
#include "engine_priv.h"

/* Bytes of room that zc_prog_init() needs */
size_t zc_prog_size(const struct zcoll_plan *plan)
{
	size_t n = plan->nsteps;

	return 2 * (n + 1) * sizeof(u32) + (ZCOLL_PLAN_AFTER + 1) * n * sizeof(u16);
}

/* The steps that stand in a row of the table after @start, for each step */
static void zc_prog_add(u32 *start, u16 *list, u32 step, u16 entry)
{
	list[start[step]++] = entry;
}

/* Counts have become ends by filling: make them beginnings again */
static void zc_prog_rewind(u32 *start, u32 n)
{
	for (; n; n--)
		start[n] = start[n - 1];
	start[0] = 0;
}

static void zc_prog_sum(u32 *start, u32 n)
{
	u32 sum = 0, i;

	for (i = 0; i <= n; i++) {
		u32 count = start[i];

		start[i] = sum;
		sum += count;
	}
}

/**
 * zc_prog_init - make a plan ready
 * @prog: to be filled
 * @plan: a plan that has passed zc_plan_valid(), to stay as long as @prog
 * @room: zc_prog_size() bytes, aligned for u32, to stay as long as @prog
 */
void zc_prog_init(struct zc_prog *prog, const struct zcoll_plan *plan, void *room)
{
	u32 n = plan->nsteps, s, i;

	prog->plan = plan;
	prog->wake_start = room;
	prog->feed_start = prog->wake_start + n + 1;
	prog->wake = (u16 *)(prog->feed_start + n + 1);
	prog->feed = prog->wake + ZCOLL_PLAN_AFTER * n;
	memset(room, 0, zc_prog_size(plan));
	for (s = 0; s < n; s++) {
		const struct zcoll_step *step = &plan->steps[s];

		for (i = 0; i < ZCOLL_PLAN_AFTER; i++)
			if (step->after[i].mode != ZCOLL_AFTER_NONE)
				prog->wake_start[step->after[i].step]++;
		if (step->kind == ZCOLL_STEP_SEND)
			prog->feed_start[step->match]++;
	}
	zc_prog_sum(prog->wake_start, n);
	zc_prog_sum(prog->feed_start, n);
	for (s = 0; s < n; s++) {
		const struct zcoll_step *step = &plan->steps[s];

		for (i = 0; i < ZCOLL_PLAN_AFTER; i++)
			if (step->after[i].mode != ZCOLL_AFTER_NONE)
				zc_prog_add(prog->wake_start, prog->wake, step->after[i].step, s);
		if (step->kind == ZCOLL_STEP_SEND)
			zc_prog_add(prog->feed_start, prog->feed, step->match, s);
	}
	zc_prog_rewind(prog->wake_start, n);
	zc_prog_rewind(prog->feed_start, n);
}

/* The step by which @peer sends what @step receives */
u32 zc_prog_feed(const struct zc_prog *prog, u32 step, u32 peer)
{
	u32 i;

	for (i = prog->feed_start[step]; i < prog->feed_start[step + 1]; i++)
		if (zc_step_active(prog->plan, &prog->plan->steps[prog->feed[i]], peer))
			return prog->feed[i];
	return ZC_NONE;
}

/**
 * zc_geometry_at - where a segment begins
 * @geo: geometry
 * @segments: number of segments
 * @segment: 0 .. @segments; the last stands for the end
 *
 * Return: offset in elements.
 */
u64 zc_geometry_at(const struct zc_geometry *geo, u32 segments, u32 segment)
{
	u64 rest = geo->count % segments;

	if (geo->starts)
		return geo->starts[segment];
	return geo->count / segments * segment + rest * segment / segments;
}

/* Elements of the largest segment */
u64 zc_geometry_largest(const struct zc_geometry *geo, u32 segments)
{
	u64 largest = 0;
	u32 i;

	if (!geo->starts)
		return geo->count / segments + !!(geo->count % segments);
	for (i = 0; i < segments; i++)
		if (geo->starts[i + 1] - geo->starts[i] > largest)
			largest = geo->starts[i + 1] - geo->starts[i];
	return largest;
}

/**
 * zc_cut - cut turns into slices
 * @longest: elements of the longest turn of a step
 * @slice: elements that a slice should have, at least 1
 *
 * All slices of a step are equally long, rounded up. Segments often differ by an element,
 * and what a few of them have beyond a multiple of @slice would make one more message, and
 * the nodes lose step with each other; so slices may be up to an eighth longer.
 *
 * Return: how many slices, at least 1, and how long.
 */
struct zc_cut zc_cut(u64 longest, u64 slice)
{
	struct zc_cut cut = { .slices = longest / slice };

	if (!cut.slices || longest - cut.slices * slice > cut.slices * (slice / 8))
		cut.slices++;
	cut.unit = longest / cut.slices + !!(longest % cut.slices);
	if (cut.unit)
		cut.slices = longest / cut.unit + !!(longest % cut.unit);
	return cut;
}

/**
 * zc_step_cut - cut the turns of a step into slices
 * @step: step; one that is OPEN is not cut
 * @geo: geometry
 * @largest: elements of the largest segment, zc_geometry_largest()
 * @slice: zc_op_desc.slice
 *
 * Return: how many slices, at least 1, and how long.
 */
struct zc_cut zc_step_cut(const struct zcoll_step *step, const struct zc_geometry *geo,
			  u64 largest, u64 slice)
{
	u64 longest = step->count * largest;

	if (longest > geo->count)
		longest = geo->count;
	return zc_cut(longest, step->flags & ZCOLL_STEP_OPEN ? U64_MAX : slice);
}

/* Cut elements from..to down to those from offset on, at most *most of them */
static u32 zc_piece(u64 from, u64 to, u64 *offset, u64 *most, struct zc_piece *piece)
{
	u64 skip = *offset < to - from ? *offset : to - from;

	*offset -= skip;
	piece->first = from + skip;
	piece->count = to - from - skip < *most ? to - from - skip : *most;
	*most -= piece->count;
	return !!piece->count;
}

/**
 * zc_geometry_pieces - the elements of a unit
 * @geo: geometry
 * @segments: number of segments
 * @range: segments of the turn
 * @offset: of the unit in them
 * @most: elements of a full unit
 * @piece: to be filled
 *
 * Return: number of pieces, 0 if the segments have no elements there.
 */
u32 zc_geometry_pieces(const struct zc_geometry *geo, u32 segments,
		       const struct zc_range *range, u64 offset, u64 most,
		       struct zc_piece piece[2])
{
	u32 end = range->base + range->span, n = end - range->first, got;

	if (n > range->count)
		n = range->count;
	got = zc_piece(zc_geometry_at(geo, segments, range->first),
		       zc_geometry_at(geo, segments, range->first + n), &offset, &most,
		       &piece[0]);
	if (n == range->count || !most)
		return got;
	return got + zc_piece(zc_geometry_at(geo, segments, range->base),
			      zc_geometry_at(geo, segments, range->base + range->count - n),
			      &offset, &most, &piece[got]);
}
