/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of one operation at one node, for engine_host.c: where a unit reads and
 * writes, and what must come out.
 */
#ifndef ENGINE_MEM_H
#define ENGINE_MEM_H

#include "engine_host.h"

/* Where a unit's elements are */
enum mem_space {
	MEM_NONE,
	MEM_IN,
	MEM_OUT,
	MEM_DATA,
	MEM_SCRATCH,
	MEM_SLOT,
};

struct mem_place {
	enum mem_space space;
	u32 index;	/* of the scratch place, or the slot */
};

/**
 * struct mem_step - what a step has of its own
 * @units: units, at most
 * @slots: slots
 * @room: elements of a slot
 * @slot: the slots
 * @full: by slot: something has landed, and is not used up
 * @begun: by unit: the engine has begun it
 * @inflight: units begun and not done
 */
struct mem_step {
	u64 units;
	u32 slots;
	u64 room;
	u64 *slot;
	u8 *full;
	u8 *begun;
	u32 inflight;
};

/**
 * struct mem - memory of an operation at a node
 * @op: the operation
 * @v: the node's number in the plan
 * @largest: elements of the largest segment
 * @in: inputs
 * @out: outputs, also the accumulations where the node has outputs for all segments
 * @acc: accumulations elsewhere
 * @scratch: scratch places
 * @steps: by step
 */
struct mem {
	const struct host_op *op;
	u32 v;
	u64 largest;
	u64 *in;
	u64 *out;
	u64 *acc;
	u64 *scratch;
	struct mem_step *steps;
};

struct mem *mem_new(const struct host_op *op, u64 seq, u32 node, u32 slots);
void mem_free(struct mem *mem);

/* The elements of a unit in a place, out of it and into it */
u64 mem_count(const struct zc_action *unit);
void mem_read(const struct mem *mem, const struct zc_action *unit, struct mem_place place,
	      u64 *data);
void mem_write(struct mem *mem, const struct zc_action *unit, struct mem_place place,
	       const u64 *data);

/* Is there such a place, large enough for the unit? */
bool mem_has(const struct mem *mem, const struct zc_action *unit, struct mem_place place);

/* Are all results there, and right? */
bool mem_right(const struct mem *mem, u64 seq);

#endif /* ENGINE_MEM_H */
