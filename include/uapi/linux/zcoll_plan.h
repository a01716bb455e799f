/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * zcoll plans: a collective algorithm as a table. Part of the ABI of /dev/zcoll;
 * include <linux/zcoll.h>.
 */
#ifndef _UAPI_LINUX_ZCOLL_PLAN_H
#define _UAPI_LINUX_ZCOLL_PLAN_H

#include <linux/types.h>

/**
 * DOC: Plans
 *
 * A *plan* says what the nodes of a communicator do to carry out a collective
 * operation: one table of *steps*, the same for all nodes. Steps are relative: a
 * node finds its peers and its segments in them by arithmetic on its own number,
 * so a ring of any size is a handful of steps. What a node sends are *segments*
 * of the operation's elements; how many elements each segment has is the
 * *geometry* and is not part of the plan.
 *
 * Numbers. Below, v is the number of a node in the plan: nodes are counted from
 * the operation's root (v = (node - root) mod members), so that one plan serves all
 * roots. Nodes from @members on have no ranks and only aggregate; they keep their
 * numbers. Segments are counted the same way in every plan.
 *
 * Iterations. A step is done @repeat times, with t = 0 .. repeat-1. Iterations
 * start in order, and count as done in order.
 *
 * Who takes part. With u = (v - origin) mod nodes, or with ZCOLL_STEP_FLIP
 * u = nodes-1 - (v - origin) mod nodes, node v takes part in a step if
 * first <= u <= last and lo <= u mod every <= hi. Everywhere else the step does
 * not exist, and counts as done.
 *
 * The peer. x = (u / stride) mod radix is the *digit* of a node in a step.
 * The peer is the node whose digit is x', all else equal: its u is
 * u + (x' - x) * stride, where x' is by @peer:
 *
 * ==================  ====================================================
 * ZCOLL_PEER_NONE     no peer; the step is local
 * ZCOLL_PEER_ADD      (x + dist + dist_step * t) mod radix
 * ZCOLL_PEER_XOR      x ^ dist, which must be below radix
 * ZCOLL_PEER_TO       dist + dist_step * t, which must be in 0 .. radix-1
 * ==================  ====================================================
 *
 * With stride 1 and radix = nodes, the digit is the node's number. A step between
 * nodes that has a dist_step, so another peer in each iteration, must be OPEN.
 *
 * The segments. A step concerns @count segments in a row. r is the number of a
 * block of @width segments, by @of: 0, or that of the node itself or of the peer,
 * which is sigma(v) / width. The first segment is
 * (g + (r - g + seg + seg_step * t) mod blocks) * width, with
 * g = r - r mod blocks; the row wraps from the end of those blocks, segment
 * (g + blocks) * width, to their begin, g * width.
 * sigma(v) is v, or if @levels[0] is not 0, v with its digits reversed: v =
 * x0 + l0 * (x1 + l1 * (x2 + ...)) gives ((x0 * l1 + x1) * l2 + x2) ...,
 * so that what the nodes of one group own is in one piece.
 * A step with count 0 moves no elements; between nodes it only notifies.
 *
 * The places. At each node a segment is in one of these states: empty; *raw* (there
 * are the inputs of the local ranks, read by nobody); *gathered* (the local
 * inputs are folded into the accumulation); *accumulated* (other nodes' values, too);
 * *spent* (sent on, and not kept); *final* (in the local ranks' outputs). The
 * accumulation of a segment is its place ZCOLL_PLACE_DATA. Beside it there are
 * @scratch places ZCOLL_PLACE_SCRATCH, each as large as the largest segment, for
 * partial results; a step that uses one has count 1. The index of a scratch place is
 * index + index_step * t, plus the node's own or the peer's digit by @of.
 *
 * The kinds.
 *
 * ==================  ====================================================
 * ZCOLL_STEP_GATHER   dst = the local inputs, folded. Costs nothing where
 *                     there is one local rank: dst DATA stands for its input
 * ZCOLL_STEP_SEND     send src to the peer; with FIRST the local inputs,
 *                     which are spent by that
 * ZCOLL_STEP_FOLD     from a peer: dst = src (+) received; with FIRST
 *                     dst = local inputs (+) received; with STORE
 *                     dst = received.
 *                     without peer: dst = dst (+) src; with STORE dst = src
 * ZCOLL_STEP_DELIVER  receive final values into the outputs; from a node that has no
 *                     output for the segment, in a reduction, an accumulation of
 *                     all, which becomes final here (average, rounding)
 * ZCOLL_STEP_FINAL    the outputs = src; with FIRST, = the local inputs
 * ==================  ====================================================
 *
 * The flags.
 *
 * ==================  ====================================================
 * ZCOLL_STEP_FIRST    the segments are raw. On SEND, FOLD (from a peer) and
 *                     FINAL; implied by GATHER
 * ZCOLL_STEP_INPUT    src is DATA as GATHER left it (gathered, not yet
 *                     accumulated)
 * ZCOLL_STEP_STORE    on FOLD: overwrite dst, which is empty or no more needed
 * ZCOLL_STEP_RESULT   on FOLD from a peer: and make it final, in one pass: dst
 *                     is the outputs
 * ZCOLL_STEP_OPEN     on SEND and on what receives it: each iteration has
 *                     another peer and another destination, which nothing
 *                     touches before, so that messages may arrive in any order.
 *                     The receiver is DELIVER, or FOLD with STORE into scratch,
 *                     and waits for nothing. Nobody waits for single iterations
 * ZCOLL_STEP_FLIP     count u from the other end
 * ==================  ====================================================
 *
 * Match. A SEND names in @match the step of the same table that receives at the peer.
 * There the same iteration's peer must be the sender, its segments the same, and
 * its @repeat the same. Each receiving step is the match of the one SEND step that is
 * active at its peer.
 *
 * Order. An iteration starts when what it waits for is done: up to three entries
 * @after, each a step and
 *
 * ==================  ====================================================
 * ZCOLL_AFTER_NONE    nothing
 * ZCOLL_AFTER_SLICE   the same slice of iteration t - shift, whose segments
 *                     must be the same; lets slices of a segment follow each
 *                     other in a pipeline
 * ZCOLL_AFTER_TURN    all of iteration t - shift
 * ZCOLL_AFTER_ALL     all iterations
 * ==================  ====================================================
 *
 * Iterations below 0 count as done; those from @repeat on stand for the last.
 * Two accesses to the same segment's place must be ordered by these (through any
 * number of steps), unless both only read. A SEND reads its place until it is done:
 * until nothing can be sent again. A DELIVER may write as soon as what it waits for
 * is done.
 */

#define ZCOLL_PLAN_VERSION	1

/* Limits; the length of a plan is the sum of repeat * max(count, 1) over its steps */
#define ZCOLL_PLAN_MAX_NODES	65536
#define ZCOLL_PLAN_MAX_SEGMENTS	65536
#define ZCOLL_PLAN_MAX_STEPS	1024
#define ZCOLL_PLAN_MAX_LENGTH	(1U << 20)
#define ZCOLL_PLAN_LEVELS	4
#define ZCOLL_PLAN_AFTER	3
#define ZCOLL_PLAN_NAME		32

/*
 * Collectives. What each node has at first, and must have made final at the end:
 * ALLREDUCE all raw -> all; REDUCE_SCATTER all raw -> segment v (segments = members);
 * ALLGATHER segment v raw (segments = members) -> all; BROADCAST all raw at v = 0 ->
 * all; REDUCE all raw -> all at v = 0; BARRIER nothing, and no node ends before
 * all have begun. Nodes that only aggregate have nothing at first and make
 * nothing final.
 */
#define ZCOLL_ALLREDUCE		1
#define ZCOLL_REDUCE_SCATTER	2
#define ZCOLL_ALLGATHER		3
#define ZCOLL_BROADCAST		4
#define ZCOLL_REDUCE		5
#define ZCOLL_BARRIER		6
#define ZCOLL_NR_COLLECTIVES	7	/* one past the last */

/* zcoll_plan.flags: promises of who made the plan, which lib/plan/check proves */
#define ZCOLL_PLAN_ORDERED	(1U << 0)	/* reduces in the fixed tree's order over nodes */
#define ZCOLL_PLAN_AGREED	(1U << 1)	/* no node ends before all have all results */
#define ZCOLL_PLAN_FLAGS	3U

/* zcoll_step.kind */
#define ZCOLL_STEP_GATHER	1
#define ZCOLL_STEP_SEND		2
#define ZCOLL_STEP_FOLD		3
#define ZCOLL_STEP_DELIVER	4
#define ZCOLL_STEP_FINAL	5
#define ZCOLL_NR_STEPS		6	/* one past the last */

/* zcoll_step.peer */
#define ZCOLL_PEER_NONE		0
#define ZCOLL_PEER_ADD		1
#define ZCOLL_PEER_XOR		2
#define ZCOLL_PEER_TO		3

/* zcoll_step.flags */
#define ZCOLL_STEP_FIRST	(1U << 0)
#define ZCOLL_STEP_INPUT	(1U << 1)
#define ZCOLL_STEP_STORE	(1U << 2)
#define ZCOLL_STEP_RESULT	(1U << 3)
#define ZCOLL_STEP_OPEN		(1U << 4)
#define ZCOLL_STEP_FLIP		(1U << 5)
#define ZCOLL_STEP_FLAGS	63U

/* zcoll_step.of and zcoll_place.of */
#define ZCOLL_OF_ZERO		0
#define ZCOLL_OF_SELF		1
#define ZCOLL_OF_PEER		2

/* zcoll_place.space */
#define ZCOLL_PLACE_DATA	0
#define ZCOLL_PLACE_SCRATCH	1

/* zcoll_after.mode */
#define ZCOLL_AFTER_NONE	0
#define ZCOLL_AFTER_SLICE	1
#define ZCOLL_AFTER_TURN	2
#define ZCOLL_AFTER_ALL		3

/**
 * struct zcoll_place - where a step finds or puts a partial result
 * @space: ZCOLL_PLACE_*; all else is 0 for ZCOLL_PLACE_DATA
 * @of: ZCOLL_OF_*: which digit counts
 * @__reserved: must be 0
 * @index: index of the scratch place
 * @index_step: added in each iteration
 */
struct zcoll_place {
	__u8 space;
	__u8 of;
	__u16 __reserved;
	__s32 index;
	__s32 index_step;
};

/**
 * struct zcoll_after - what an iteration of a step waits for
 * @step: index of a step
 * @mode: ZCOLL_AFTER_*; all else is 0 for ZCOLL_AFTER_NONE
 * @__reserved: must be 0
 * @shift: how many iterations earlier; may be negative
 */
struct zcoll_after {
	__u16 step;
	__u8 mode;
	__u8 __reserved;
	__s32 shift;
};

/**
 * struct zcoll_step - a row of the table
 * @kind: ZCOLL_STEP_GATHER ... ZCOLL_STEP_FINAL
 * @peer: ZCOLL_PEER_*
 * @flags: ZCOLL_STEP_FIRST ...
 * @repeat: iterations, at least 1
 * @origin: where u is counted from, below nodes
 * @first: least u that takes part
 * @last: largest u that takes part
 * @every: u is also taken modulo this, at least 1
 * @lo: least u mod every
 * @hi: largest u mod every
 * @stride: weight of the digit, at least 1
 * @radix: values of the digit, at least 1; stride * radix may be more than nodes
 * @dist: distance, or absolute digit
 * @dist_step: added in each iteration
 * @width: segments in a block, at least 1
 * @blocks: blocks among which @seg wraps, at least 1
 * @seg: first block, relative to @of
 * @seg_step: added in each iteration
 * @count: segments, at most blocks * width
 * @of: ZCOLL_OF_*: whose block
 * @__reserved: must be 0
 * @match: SEND: the step that receives; else 0
 * @dst: of GATHER and FOLD; else 0
 * @src: of SEND, FOLD and FINAL; else 0
 * @after: what it waits for
 * @__reserved2: must be 0
 */
struct zcoll_step {
	__u8 kind;
	__u8 peer;
	__u16 flags;
	__u32 repeat;
	__u32 origin;
	__u32 first;
	__u32 last;
	__u32 every;
	__u32 lo;
	__u32 hi;
	__u32 stride;
	__u32 radix;
	__s32 dist;
	__s32 dist_step;
	__u32 width;
	__u32 blocks;
	__s32 seg;
	__s32 seg_step;
	__u32 count;
	__u8 of;
	__u8 __reserved;
	__u16 match;
	struct zcoll_place dst;
	struct zcoll_place src;
	struct zcoll_after after[ZCOLL_PLAN_AFTER];
	__u32 __reserved2[2];
};

/**
 * struct zcoll_plan - a plan
 * @size: bytes of all, steps included
 * @version: ZCOLL_PLAN_VERSION
 * @collective: ZCOLL_ALLREDUCE ... ZCOLL_BARRIER
 * @id: 64-bit FNV-1a hash over all bytes, this field taken as 0
 * @nodes: nodes
 * @members: of these, the first so many have ranks
 * @segments: segments
 * @scratch: scratch places of each node
 * @acc: accumulations of a node whose outputs do not have room for all
 *	segments: segment s of node v is kept at place (s - sigma(v)) mod segments
 *	mod acc. 0 if no node needs it; at most segments.
 * @nsteps: rows of the table
 * @flags: ZCOLL_PLAN_*
 * @__reserved: must be 0
 * @levels: numbers of values of the node number's digits, lowest first; all 0: one
 *	level. Unused ones are 0; the product is nodes.
 * @name: the algorithm, for people; ends with NUL
 * @steps: the table
 */
struct zcoll_plan {
	__u32 size;
	__u16 version;
	__u16 collective;
	__aligned_u64 id;
	__u32 nodes;
	__u32 members;
	__u32 segments;
	__u32 scratch;
	__u32 acc;
	__u32 nsteps;
	__u32 flags;
	__u32 __reserved;
	__u32 levels[ZCOLL_PLAN_LEVELS];
	char name[ZCOLL_PLAN_NAME];
	struct zcoll_step steps[];
};

#endif /* _UAPI_LINUX_ZCOLL_PLAN_H */
