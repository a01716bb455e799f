/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The simulator: the engine that the module runs, for all nodes of a cluster, on a
 * clock that jumps from event to event. Networks, processors and failures are a model;
 * who sends what to whom, and when it may, is the engine's doing.
 *
 * A *scene* is what is simulated; it says everything, so that the same scene always
 * gives the same run. A *job* is a kind of operation; the operations of a scene take
 * turns at its jobs. An *outcome* is what a run has found.
 *
 * Two models of when a SEND is done. Without faults it is when the last byte has left
 * the node, as in LogGP, and for a message that is copied when it is posted
 * (sim_model.inlined), at once. With faults (sim_faults.acked) it is when the
 * receiver's acknowledgement is there; until then what was lost is sent again, from
 * what is then in memory.
 */
#ifndef ZCOLL_SIM_H
#define ZCOLL_SIM_H

#include <stdio.h>

#include "engine.h"
#include "net.h"

#define SIM_NEVER U64_MAX

/**
 * struct sim_job - a kind of operation
 * @prog: its plan, ready
 * @geo: how many elements each segment has
 * @element: bytes of an element
 * @slice: elements of a slice
 * @eager: see struct zc_op_desc
 * @reserve: likewise
 * @root: of the first operation; later ones go round if @turn_root
 * @flags: ZC_OP_*
 * @turn_root: each operation has the next member as its root
 * @room: of @prog
 * @starts: of @geo, if the job owns them
 */
struct sim_job {
	struct zc_prog prog;
	struct zc_geometry geo;
	u32 element;
	u64 slice;
	u64 eager;
	u64 reserve;
	u32 root;
	u32 flags;
	bool turn_root;
	void *room;
	u64 *starts;
};

#define SIM_MAX_BLOWS 4

enum sim_blow_kind {
	SIM_KILL,	/* the node dies */
	SIM_ABORT,	/* somebody at the node aborts the communicator */
};

/**
 * struct sim_blow - what befalls a node
 * @kind: enum sim_blow_kind
 * @node: whom
 * @event: after so many events
 */
struct sim_blow {
	enum sim_blow_kind kind;
	u32 node;
	u64 event;
};

/**
 * struct sim_faults - what goes wrong
 * @acked: a SEND is done when it is acknowledged
 * @drop: of a million transmissions, so many are lost
 * @duplicate: of a million messages, so many come twice
 * @rails: more than 1: messages of a link may overtake each other
 * @jitter: ps, the most that a message or a node's work takes longer
 * @skew: ps, the most that an operation is submitted later than it could be
 * @retry: ps, what is not acknowledged then is sent again
 * @slow: of a million nodes, so many are slow
 * @slowness: all that a slow node does takes so many times as long
 * @silence: see struct zc_engine_config, ns
 * @timeout: likewise
 * @deadline: of each operation, ns after its submission; 0: none
 * @blows: what befalls nodes
 * @nblows: their number
 */
struct sim_faults {
	bool acked;
	u32 drop;
	u32 duplicate;
	u32 rails;
	u64 jitter;
	u64 skew;
	u64 retry;
	u32 slow;
	u32 slowness;
	u64 silence;
	u64 timeout;
	u64 deadline;
	struct sim_blow blows[SIM_MAX_BLOWS];
	u32 nblows;
};

struct sim_trace;

/**
 * struct sim_scene - what is simulated
 * @model: costs
 * @faults: what goes wrong
 * @jobs: kinds of operations; all plans have the same number of nodes
 * @njobs: their number
 * @ops: operations
 * @window: operations in flight
 * @slots: of a receiving step
 * @inflight: units of a step that are begun and not done
 * @ranks: local ranks of each node: with more than one, a gathered segment is written,
 *	with one it is the input
 * @in_place: with one local rank, its output is its input where it has all segments
 * @data: elements are really folded, and results checked
 * @seed: of all that is random
 * @most_events: give up after so many
 * @trace: where to write what happens, or NULL
 * @tell: called from time to time with @told and the number of events so far, or NULL
 * @told: for @tell
 */
struct sim_scene {
	struct sim_model model;
	struct sim_faults faults;
	const struct sim_job *jobs;
	u32 njobs;
	u32 ops;
	u32 window;
	u32 slots;
	u32 inflight;
	u32 ranks;
	bool in_place;
	bool data;
	u64 seed;
	u64 most_events;
	struct sim_trace *trace;
	void (*tell)(void *told, u64 events);
	void *told;
};

/**
 * struct sim_outcome - what a run has found
 * @time: when the last result was there, ps
 * @complete: when the last operation had ended, ps
 * @events: events
 * @messages: messages with elements, or that notify
 * @controls: others: grants and the like
 * @bytes: of elements that were sent, the first time
 * @resent: messages that were lost and sent again
 * @good: operations that ended with success, summed over nodes
 * @bad: operations that ended with an error, or were refused after one
 * @dead: nodes that died
 * @error: the first error that an operation of a node ended with, 0: none
 * @error_node: at which node
 * @error_seq: which operation
 * @wrong: what must never happen and did; empty: nothing
 */
struct sim_outcome {
	u64 time;
	u64 complete;
	u64 events;
	u64 messages;
	u64 controls;
	u64 bytes;
	u64 resent;
	u64 good;
	u64 bad;
	u32 dead;
	s32 error;
	u32 error_node;
	u64 error_seq;
	char wrong[240];
};

int sim_run(const struct sim_scene *scene, struct sim_outcome *outcome);

#endif /* ZCOLL_SIM_H */
