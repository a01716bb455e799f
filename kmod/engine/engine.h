/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The engine: carries out plans, and does no I/O.
 *
 * An engine is one node's part of one communicator. Its *host* (the module, the
 * simulator, a test) tells it what has happened, by the event functions, and asks
 * it by zc_engine_next() what to do next, until there is nothing:
 *
 *	zc_engine_message(engine, from, &msg);
 *	while (zc_engine_next(engine, &action))
 *		carry out action;
 *
 * Vocabulary
 *
 *   operation   what all nodes do together, named by a sequence number
 *   window      so many operations, from the oldest that is not retired, may be in
 *               flight; an operation is retired when it and all before it have ended
 *   turn        an iteration of a step
 *   slice       about so many elements; a turn's segments, laid end to end, are cut into
 *               slices (zc_cut()), which is what is sent and folded at a time
 *   unit        a slice of a turn: number turn * slices + slice, of a step
 *   slot        landing place of a message that is to be folded, or is small. Each
 *               receiving step of each operation in the window has config.slots of its
 *               own (unit u lands in slot u mod slots); a step marked OPEN has one for
 *               each unit, if zc_op_desc.eager allows, or none
 *   reserve     slots that are there before the operation is submitted: those of steps
 *               whose units have at most zc_op_desc.reserve elements
 *   direct      a message that lands in its destination: outputs or scratch
 *   grant       leave to send: units below it may be sent. A step with slots in reserve
 *               has config.slots from the beginning; other steps with slots are given
 *               as many when the operation is submitted at the receiver; direct ones, none
 *   link        another node this one has to do with
 *
 * Actions with a unit (SEND, GATHER, FOLD, DELIVER, FINAL) are answered by
 * zc_engine_done() when they are done, in any order, and at any time: at once, or
 * later. A SEND is done when its source will not be read again. One that cannot be
 * carried out because its peer has closed is answered, too, and so that the cause is known, by
 * zc_engine_abort(engine, -ECONNRESET); because its peer is dead, by zc_engine_lost(). The
 * engine gives no action that touches a place another one may still be using, as
 * far as the plan orders them (zc_plan_check()).
 *
 * Operations in flight do not block each other: each owns all its slots from its submission
 * on, and what an older one waits for is never held by a younger one.
 *
 * Failure. The first cause of failure revokes the engine: a lost peer, a deadline, a
 * mismatch, zc_engine_abort(), another node's word of it. It tells all links,
 * begins nothing more, settles the verdicts of operations that asked for agreed ones
 * (agree.c), and asks the host to CLOSE: to make sure that no peer can write here
 * any more. When that is done (zc_engine_closed()) and all actions of an operation are
 * answered, the operation ends with the verdict. Control messages go on all the time.
 * A node that waits for one that has failed before it had any link hears of it by its own
 * heartbeat, so without heartbeats only if the host says so. zc_engine_blame() names the node
 * that revoked the engine, if one did.
 *
 * Leaving. A node that has ended all its operations may leave (zc_engine_left()): that is
 * no failure until another node wants an operation that it has not ended.
 *
 * Time is what the host says (zc_engine_tick()), and may leave out time in which the host did
 * not run, a machine that was suspended or a guest that was not scheduled: else all links
 * would seem silent for so long. Deadlines are on the same clock.
 *
 * Threads and locks. The engine has no locks, and never sleeps: the host calls all
 * functions of one engine under one lock, or from one thread. An action may be
 * carried out outside that lock: what it points to (plan, geometry) is the host's,
 * and must stay until the operation's COMPLETE; the action itself is a copy. No
 * event function returns actions, so that the host can carry them out
 * in whatever context suits it. Each call does a bounded amount of work: events and
 * zc_engine_next() O(1) for a step and the steps that wait for it (where there are many units
 * without elements, it says AGAIN); submitting, and a
 * window that grows, O(steps), with uneven geometry also O(segments), and until all nodes
 * are linked O(iterations) of OPEN steps; ticks, O(window) and O(links).
 *
 * Memory. All memory is given at the start, as much as zc_engine_size() says; the data
 * path allocates nothing.
 */
#ifndef ZCOLL_ENGINE_ENGINE_H
#define ZCOLL_ENGINE_ENGINE_H

#include "plan.h"

#define ZC_ENGINE_MAX_WINDOW	64
#define ZC_ENGINE_MAX_SLOTS	64

/* What is usual: the cost model assumes it, and hosts have it unless they are told otherwise */
#define ZC_ENGINE_SLOTS		8	/* struct zc_engine_config.slots */
#define ZC_ENGINE_INFLIGHT	64	/* struct zc_engine_config.inflight */
#define ZC_ENGINE_EAGER		8192	/* struct zc_op_desc.eager, but in bytes */

/**
 * struct zc_engine_config - dimensions of an engine
 * @node: this node
 * @nodes: nodes of the communicator
 * @window: operations in flight, a power of two, at most ZC_ENGINE_MAX_WINDOW;
 *	the same on all nodes
 * @steps: the most steps of a plan
 * @links: the most other nodes this one may have to do with, below nodes
 * @slots: slots of a receiving step, 2 .. ZC_ENGINE_MAX_SLOTS; the same on all nodes
 * @inflight: units of a step that may be begun and not done, 1 .. 64
 * @bits: for each operation, room for the units of its OPEN steps, those of each
 *	rounded up to 64
 * @silence: ns; say something to a link after so long. 0: no heartbeats
 * @timeout: ns; a link that has said nothing for so long is lost. More than
 *	2 silence and the time to a node and back: the other side of a link may learn of
 *	it by the first heartbeat
 * @patience: ns; nodes that live, but do not answer while verdicts are settled, are lost after so
 *	long (agree.c). More than the time-out, by which dead ones are found. 0: never
 */
struct zc_engine_config {
	u32 node;
	u32 nodes;
	u32 window;
	u32 steps;
	u32 links;
	u32 slots;
	u32 inflight;
	u32 bits;
	u64 silence;
	u64 timeout;
	u64 patience;
};

/**
 * struct zc_prog - a plan, ready to be carried out
 * @plan: the plan
 * @wake: wake[wake_start[s]] .. wake[wake_start[s + 1] - 1] wait for step s
 * @feed: likewise, the steps that send what step s receives
 * @wake_start: see @wake
 * @feed_start: see @feed
 */
struct zc_prog {
	const struct zcoll_plan *plan;
	u16 *wake;
	u16 *feed;
	u32 *wake_start;
	u32 *feed_start;
};

size_t zc_prog_size(const struct zcoll_plan *plan);
void zc_prog_init(struct zc_prog *prog, const struct zcoll_plan *plan, void *room);

/**
 * struct zc_geometry - how many elements each segment has
 * @count: elements of the operation; 0: the steps only notify
 * @starts: NULL: even; else segments + 1 offsets in elements, rising, from 0 to @count
 *
 * Even: segment s begins at element s count / segments, rounded down, so that any so many
 * segments in a row have the same number of elements, or one more.
 */
struct zc_geometry {
	u64 count;
	const u64 *starts;
};

/**
 * struct zc_cut - how the turns of a step are cut into slices
 * @unit: elements of a slice; a last one may have less
 * @slices: slices of a turn
 */
struct zc_cut {
	u64 unit;
	u64 slices;
};

#define ZC_OP_AGREED	1U	/* all survivors get the same verdict; the plan is AGREED */

/**
 * struct zc_op_desc - an operation, as the host submits it
 * @seq: sequence number
 * @prog: the plan
 * @root: root node, below members
 * @flags: ZC_OP_*
 * @fingerprint: hash of all that must be the same on all nodes
 * @geo: geometry
 * @slice: elements of a slice, at least 1; the same on all nodes. All slices of a step are
 *	made equally long, by which they can become an eighth longer than this: slots have
 *	room for @slice + @slice / 8 elements
 * @eager: units of at most so many elements land in slots also where they could land
 *	directly; the same on all nodes
 * @reserve: slots for units of at most so many elements are there before the operation is
 *	submitted, so that the first ones need no grant; the same on all nodes. U64_MAX: all
 * @deadline: time on the clock of zc_engine_tick(), 0: none
 * @priv: for the host
 */
struct zc_op_desc {
	u64 seq;
	const struct zc_prog *prog;
	u32 root;
	u32 flags;
	u64 fingerprint;
	struct zc_geometry geo;
	u64 slice;
	u64 eager;
	u64 reserve;
	u64 deadline;
	void *priv;
};

enum zc_msg_type {
	ZC_MSG_DATA = 1,	/* unit of step; elements follow */
	ZC_MSG_GRANT,		/* units below @unit of step, or if @open that unit */
	ZC_MSG_RETIRED,		/* nothing but @retired */
	ZC_MSG_ALIVE,		/* a heartbeat */
	ZC_MSG_ABORT,		/* @status: the communicator is revoked */
	ZC_MSG_ASK,		/* what is decided? from a coordinator */
	ZC_MSG_ANSWER,		/* operations that ended well: below @seq, and @unit */
	ZC_MSG_DECISION,	/* likewise, for all */
};

/**
 * struct zc_msg - what goes before the elements of a message, or alone
 * @type: enum zc_msg_type
 * @open: bits that the step needs, if it is OPEN, else 0
 * @step: the receiver's step
 * @status: cause of an ABORT, a negative errno
 * @seq: operation
 * @unit: see enum zc_msg_type
 * @fingerprint: the operation's
 * @retired: operations that have ended at the sender
 *
 * Numbers of the host, to be put on a wire as it likes.
 */
struct zc_msg {
	u32 type;
	u32 open;
	u32 step;
	s32 status;
	u64 seq;
	u64 unit;
	u64 fingerprint;
	u64 retired;
};

enum zc_action_type {
	ZC_DO_SEND = 1,		/* send @msg and the elements to @peer */
	ZC_DO_GATHER,		/* dst = local inputs */
	ZC_DO_FOLD,		/* as the step says */
	ZC_DO_DELIVER,		/* from the slot to the outputs, or spread what landed */
	ZC_DO_FINAL,		/* outputs = src */
	ZC_DO_TELL,		/* send @msg to @peer */
	ZC_DO_CLOSE,		/* cut the peers off; then zc_engine_closed() */
	ZC_DO_COMPLETE,		/* the operation has ended with @status */
	ZC_DO_AGAIN,		/* nothing: let others in, and call zc_engine_next() again */
};

/* Elements first .. first + count - 1 of the operation */
struct zc_piece {
	u64 first;
	u64 count;
};

/**
 * struct zc_action - what the host is to do
 * @type: enum zc_action_type
 * @step: index of the step
 * @seq: operation
 * @unit: for zc_engine_done()
 * @row: the step
 * @priv: of the operation
 * @peer: SEND, TELL: to; FOLD, DELIVER: from; ZC_NONE: local
 * @slot: SEND: of the receiver; FOLD, DELIVER: where it landed; ZC_NONE: direct, or none
 * @range: segments of the turn
 * @offset: first element of the unit, from the turn's first one on
 * @piece: the elements
 * @npieces: 0, 1, or 2 where the segments wrap
 * @dst: index of the scratch place, ZC_NONE: DATA
 * @src: likewise
 * @status: COMPLETE: 0 or a negative errno
 * @msg: SEND, TELL
 *
 * A TELL has @peer and @msg. One of a GRANT has @seq, @priv, @step and @row, too, which are of
 * this node's step that receives, and in @unit the unit that may be sent of an OPEN step, of
 * others the first one that may not: so the host can add where the elements are to land.
 */
struct zc_action {
	u32 type;
	u32 step;
	u64 seq;
	u64 unit;
	const struct zcoll_step *row;
	void *priv;
	u32 peer;
	u32 slot;
	struct zc_range range;
	u64 offset;
	struct zc_piece piece[2];
	u32 npieces;
	u32 dst;
	u32 src;
	s32 status;
	struct zc_msg msg;
};

struct zc_engine;

size_t zc_engine_size(const struct zc_engine_config *config);
struct zc_engine *zc_engine_init(void *room, const struct zc_engine_config *config);

int zc_engine_submit(struct zc_engine *engine, const struct zc_op_desc *desc);
void zc_engine_message(struct zc_engine *engine, u32 from, const struct zc_msg *msg);
void zc_engine_done(struct zc_engine *engine, u64 seq, u32 step, u64 unit);
void zc_engine_lost(struct zc_engine *engine, u32 node);
void zc_engine_left(struct zc_engine *engine, u32 node, u64 retired);
void zc_engine_skip(struct zc_engine *engine, u64 seq);
void zc_engine_abort(struct zc_engine *engine, s32 error);
void zc_engine_closed(struct zc_engine *engine);
u64 zc_engine_tick(struct zc_engine *engine, u64 now);
bool zc_engine_next(struct zc_engine *engine, struct zc_action *action);

u32 zc_engine_waits(const struct zc_engine *engine, u64 seq, u32 step, u64 *unit);
u64 zc_engine_retired(const struct zc_engine *engine);
s32 zc_engine_error(const struct zc_engine *engine);
u32 zc_engine_blame(const struct zc_engine *engine);
u64 zc_geometry_at(const struct zc_geometry *geo, u32 segments, u32 segment);
u64 zc_geometry_largest(const struct zc_geometry *geo, u32 segments);
struct zc_cut zc_cut(u64 longest, u64 slice);
struct zc_cut zc_step_cut(const struct zcoll_step *step, const struct zc_geometry *geo,
			  u64 largest, u64 slice);

#endif /* ZCOLL_ENGINE_ENGINE_H */
