// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of one operation at one node.
 *
 * The input of node n for element e of operation seq is a hash of the three, and the
 * operator is the sum modulo 2^64: it does not depend on any order, but a contribution
 * that is missing, there twice or of another element shows.
 */
#include <stdlib.h>

#include "engine_mem.h"

static u64 input(u64 seq, u32 node, u64 element)
{
	u64 x = seq * 0x9e3779b97f4a7c15ULL + node * 0xbf58476d1ce4e5b9ULL + element + 1;

	x = (x ^ x >> 31) * 0x94d049bb133111ebULL;
	return x ^ x >> 29;
}

static u64 segment_start(const struct host_op *op, u32 segment)
{
	return zc_geometry_at(&op->geo, op->plan->segments, segment);
}

static u32 segment_of(const struct host_op *op, u64 element)
{
	u32 low = 0, high = op->plan->segments;

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (segment_start(op, middle) <= element)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Units and slots of a step: what <linux/zcoll_plan.h> and engine.h promise */
static void step_init(struct mem *mem, u32 step, u32 slots)
{
	const struct zcoll_step *s = &mem->op->plan->steps[step];
	struct zc_cut cut = zc_step_cut(s, &mem->op->geo, mem->largest, mem->op->slice);
	u64 most = mem->op->slice + mem->op->slice / 8;
	struct mem_step *m = &mem->steps[step];

	m->units = cut.slices * s->repeat;
	m->begun = calloc(m->units, 1);
	m->room = cut.unit < most || s->flags & ZCOLL_STEP_OPEN ? cut.unit : most;
	if (zc_step_receives(s))
		m->slots = s->flags & ZCOLL_STEP_OPEN ? s->repeat : slots;
	m->slot = calloc(m->slots * m->room + 1, sizeof(u64));
	m->full = calloc(m->slots + 1, 1);
}

static bool has_all_outputs(const struct zcoll_plan *plan, u32 v)
{
	u32 s = 0;

	while (s < plan->segments && zc_plan_has_output(plan, v, s))
		s++;
	return s == plan->segments;
}

struct mem *mem_new(const struct host_op *op, u64 seq, u32 node, u32 slots)
{
	const struct zcoll_plan *plan = op->plan;
	struct mem *mem = calloc(1, sizeof(*mem));
	u64 e, n = op->geo.count;
	u32 i;

	mem->op = op;
	mem->v = zc_plan_number(plan, op->root, node);
	for (i = 0; i < plan->segments; i++)
		if (segment_start(op, i + 1) - segment_start(op, i) > mem->largest)
			mem->largest = segment_start(op, i + 1) - segment_start(op, i);
	mem->in = malloc((n + 1) * sizeof(u64));
	mem->out = calloc(n + 1, sizeof(u64));
	if (!has_all_outputs(plan, mem->v))
		mem->acc = calloc(plan->acc * mem->largest + 1, sizeof(u64));
	mem->scratch = calloc(plan->scratch * mem->largest + 1, sizeof(u64));
	for (e = 0; e < n; e++)
		mem->in[e] = zc_plan_has_input(plan, mem->v, segment_of(op, e)) ?
				     input(seq, node, e) : 0xdeadULL << 48;
	mem->steps = calloc(plan->nsteps, sizeof(*mem->steps));
	for (i = 0; i < plan->nsteps; i++)
		step_init(mem, i, slots);
	return mem;
}

void mem_free(struct mem *mem)
{
	u32 i;

	if (!mem)
		return;
	for (i = 0; i < mem->op->plan->nsteps; i++) {
		free(mem->steps[i].begun);
		free(mem->steps[i].slot);
		free(mem->steps[i].full);
	}
	free(mem->steps);
	free(mem->scratch);
	free(mem->acc);
	free(mem->out);
	free(mem->in);
	free(mem);
}

u64 mem_count(const struct zc_action *unit)
{
	u64 count = 0;
	u32 i;

	for (i = 0; i < unit->npieces; i++)
		count += unit->piece[i].count;
	return count;
}

/* The i-th element of a unit in a segment's place DATA */
static u64 *data_at(const struct mem *mem, u64 element)
{
	const struct zcoll_plan *plan = mem->op->plan;
	u32 segment;

	if (!mem->acc)
		return &mem->out[element];
	segment = segment_of(mem->op, element);
	return &mem->acc[(segment + plan->segments - zc_plan_sigma(plan, mem->v)) %
			 plan->segments % plan->acc * mem->largest +
			 element - segment_start(mem->op, segment)];
}

static u64 *place_at(const struct mem *mem, const struct zc_action *unit,
		     struct mem_place place, u64 i)
{
	u64 element = i < unit->piece[0].count ? unit->piece[0].first + i :
						 unit->piece[1].first + i - unit->piece[0].count;

	switch (place.space) {
	case MEM_IN:
		return &mem->in[element];
	case MEM_OUT:
		return &mem->out[element];
	case MEM_DATA:
		return data_at(mem, element);
	case MEM_SCRATCH:
		return &mem->scratch[place.index * mem->largest + unit->offset + i];
	case MEM_SLOT:
		return &mem->steps[unit->step].slot[place.index * mem->steps[unit->step].room + i];
	default:
		return NULL;
	}
}

bool mem_has(const struct mem *mem, const struct zc_action *unit, struct mem_place place)
{
	if (!mem_count(unit))
		return true;
	switch (place.space) {
	case MEM_DATA:
		return !mem->acc || mem->op->plan->acc;
	case MEM_SCRATCH:
		return place.index < mem->op->plan->scratch &&
		       unit->offset + mem_count(unit) <= mem->largest;
	case MEM_SLOT:
		return place.index < mem->steps[unit->step].slots &&
		       mem_count(unit) <= mem->steps[unit->step].room;
	default:
		return true;
	}
}

void mem_read(const struct mem *mem, const struct zc_action *unit, struct mem_place place,
	      u64 *data)
{
	u64 i, n = place.space == MEM_NONE ? 0 : mem_count(unit);

	for (i = 0; i < n; i++)
		data[i] = *place_at(mem, unit, place, i);
}

void mem_write(struct mem *mem, const struct zc_action *unit, struct mem_place place,
	       const u64 *data)
{
	u64 i, n = place.space == MEM_NONE ? 0 : mem_count(unit);

	for (i = 0; i < n; i++)
		*place_at(mem, unit, place, i) = data[i];
}

/* What all nodes together make of an element */
static u64 expected(const struct host_op *op, u64 seq, u64 element, u32 segment)
{
	const struct zcoll_plan *plan = op->plan;
	u64 sum = 0;
	u32 v;

	for (v = 0; v < plan->members; v++)
		if (zc_plan_has_input(plan, v, segment))
			sum += input(seq, zc_plan_node(plan, op->root, v), element);
	return sum;
}

bool mem_right(const struct mem *mem, u64 seq)
{
	u64 e;
	u32 s;

	for (s = 0; s < mem->op->plan->segments; s++) {
		if (!zc_plan_has_output(mem->op->plan, mem->v, s))
			continue;
		for (e = segment_start(mem->op, s); e < segment_start(mem->op, s + 1); e++)
			if (mem->out[e] != expected(mem->op, seq, e, s))
				return false;
	}
	return true;
}
