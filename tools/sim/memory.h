/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What is in the nodes' buffers, so that results can be checked: each element of each
 * node's input is a random 64-bit number, and folding adds modulo 2^64.
 *
 * The places are those of <linux/zcoll_plan.h>. A node that has outputs for all
 * segments accumulates there, others in their own room (zcoll_plan.acc). With one
 * local rank, a gathered segment is not written anywhere: its place is the input.
 *
 * What must not be read holds poison, so that reading it shows as a wrong result. A
 * slot is full from when a message lands in it to when that is folded: landing
 * in a full slot is a violation.
 */
#ifndef ZCOLL_SIM_MEMORY_H
#define ZCOLL_SIM_MEMORY_H

#include "engine.h"

struct sim_scene;

/**
 * struct sim_buffers - one node's buffers of one operation
 * @seq: operation; buffers of the window are used in turn
 * @job: its job
 * @v: the node's number in its plan
 * @ended: nothing may land any more
 * @input: elements of the operation
 * @output: likewise; may be @input
 * @acc: accumulation; NULL: in the outputs
 * @scratch: scratch places
 * @slots: slots of all receiving steps
 * @full: by slot: 0, or one more than the unit that is in it
 * @final: by element: it is in the outputs
 * @room: all of the above
 */
struct sim_buffers {
	u64 seq;
	u32 job;
	u32 v;
	bool ended;
	u64 *input;
	u64 *output;
	u64 *acc;
	u64 *scratch;
	u64 *slots;
	u64 *full;
	u64 *final;
	u64 *room;
};

/**
 * struct sim_layout - what an operation of a job needs, the same on all nodes
 * @largest: elements of the largest segment
 * @segment: by element: its segment
 * @steps: by step: its slots
 * @nslots: slots of all steps
 * @slot_elements: elements of all slots
 * @room: 64-bit numbers that a node needs
 */
struct sim_layout {
	u64 largest;
	u32 *segment;
	struct sim_slots {
		u64 first;	/* number of the first one */
		u64 at;		/* its first element */
		u64 stride;	/* elements of each */
	} *steps;
	u64 nslots;
	u64 slot_elements;
	u64 room;
};

struct sim_memory {
	const struct sim_scene *scene;
	u32 nodes;
	struct sim_layout *layouts;	/* by job */
	struct sim_buffers *buffers;	/* by node and operation mod window */
	u64 **totals;			/* by operation: what a reduction gives */
};

u64 memory_needs(const struct sim_scene *scene);
int memory_init(struct sim_memory *memory, const struct sim_scene *scene, u32 nodes);
void memory_free(struct sim_memory *memory);

void memory_begin(struct sim_memory *memory, u32 node, u64 seq);
void memory_read(struct sim_memory *memory, u32 node, const struct zc_action *action,
		 u64 *payload);
bool memory_still(struct sim_memory *memory, u32 node, const struct zc_action *action,
		  const u64 *payload);
const char *memory_land(struct sim_memory *memory, u32 node, const struct zc_action *sent,
			const u64 *payload, bool whole);
void memory_apply(struct sim_memory *memory, u32 node, const struct zc_action *action);
void memory_used(struct sim_memory *memory, u32 node, const struct zc_action *action);
const char *memory_end(struct sim_memory *memory, u32 node, u64 seq, s32 status);

#endif /* ZCOLL_SIM_MEMORY_H */
