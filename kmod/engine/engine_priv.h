/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The engine's own header: what its files share.
 *
 *   prog.c      plans made ready, and geometry
 *   engine.c    operations: from submission or the first message to COMPLETE
 *   row.c       rows: one step of one operation
 *   link.c      links: other nodes, what they have retired, whether they live
 *   agree.c     failure, and verdicts that all survivors share
 */
#ifndef ZCOLL_ENGINE_PRIV_H
#define ZCOLL_ENGINE_PRIV_H

#include "engine.h"

/* Units that a row's masks look ahead */
#define ZC_AHEAD 64

/* Units without elements that one zc_engine_next() passes over */
#define ZC_SKIPS 256

/* No error number is larger */
#define ZC_MAX_ERRNO 4095

/**
 * struct zc_row - one step of one operation
 * @units: units; 0: the node does not take part, or the operation is not known yet
 * @ready: units that wait for no other step any more
 * @begun: units given to the host, or done without it
 * @done: units done, all before them too
 * @later: bit i: unit @done + i is done
 * @landed: receiving: bit i: unit @begun + i has arrived. OPEN: in @bits
 * @granted: SEND: units that may be sent; receiving: what the peer has been told.
 *	SEND, OPEN and direct: in @bits
 * @stride: elements from one unit of a turn to the next
 * @slices: units of a turn
 * @peer: the other node, ZC_NONE: none, or another one each turn
 * @feed: receiving: the peer's step that sends
 * @bits: OPEN: one past the first word in the operation's bits
 * @early: OPEN: what early messages there were, zc_row_early()
 * @active: the node takes part
 * @slotted: what is sent or received lands in slots
 */
struct zc_row {
	u64 units;
	u64 ready;
	u64 begun;
	u64 done;
	u64 later;
	u64 landed;
	u64 granted;
	u64 stride;
	u64 early;
	u32 slices;
	u32 peer;
	u32 feed;
	u32 bits;
	bool active;
	bool slotted;
};

enum zc_op_phase {
	ZC_OP_UNKNOWN,		/* nothing heard of it */
	ZC_OP_EARLY,		/* another node is ahead */
	ZC_OP_ACTIVE,		/* submitted */
	ZC_OP_ENDED,		/* verdict known; COMPLETE may be due */
};

/**
 * struct zc_eop - an operation in the engine
 * @desc: as submitted
 * @phase: enum zc_op_phase
 * @from: who spoke of it before it was submitted, ZC_NONE: nobody
 * @status: verdict, when ENDED
 * @due: COMPLETE has not been given yet
 * @v: this node's number in the plan
 * @left: rows not done
 * @results: of these, rows that make results final
 * @busy: units the host has
 * @nbits: words of @bits in use
 * @largest: elements of the largest segment
 * @rows: by step
 * @pending: bit for each row that may have something to do
 * @bits: for OPEN rows
 */
struct zc_eop {
	struct zc_op_desc desc;
	enum zc_op_phase phase;
	u32 from;
	s32 status;
	bool due;
	u32 v;
	u32 left;
	u32 results;
	u32 busy;
	u32 nbits;
	u64 largest;
	struct zc_row *rows;
	u64 *pending;
	u64 *bits;
};

/**
 * struct zc_link - another node
 * @node: its number
 * @lost: it is, and not heard any more
 * @gone: it is lost, or has left: it is told nothing, and need not say anything
 * @blocked: operations with rows that wait for it to retire others, by place
 * @retired: operations it has retired, as far as it has said
 * @told: operations we have told it that we have
 * @heard: when it last said something, by the last tick
 * @said: when it was last told something
 */
struct zc_link {
	u32 node;
	bool lost;
	bool gone;
	u64 blocked;
	u64 retired;
	u64 told;
	u64 heard;
	u64 said;
};

enum zc_stage {
	ZC_FINE,
	ZC_TELLING,		/* ABORT goes to all links */
	ZC_AGREEING,		/* verdicts are being settled */
	ZC_CLOSING,		/* CLOSE is due */
	ZC_DRAINING,		/* CLOSE has been given */
	ZC_CLOSED,		/* operations end when the host has none of their units */
};

/**
 * struct zc_good - operations that have ended with success
 * @below: all of these
 * @mask: bit i: @below + i
 */
struct zc_good {
	u64 below;
	u64 mask;
};

enum zc_role {
	ZC_FOLLOWS,
	ZC_ASKS,		/* coordinator: ASK goes to all, ANSWERs come */
	ZC_DECIDES,		/* coordinator: DECISION goes to all */
};

/**
 * struct zc_agree - settling of verdicts
 * @good: what this node knows to have ended well
 * @role: enum zc_role
 * @cursor: coordinator: next node to be asked, or told the decision
 * @answers: coordinator: answers that have not come
 * @coordinator: whom this node follows, maybe itself
 * @decided: @good is the decision
 * @request: the coordinator has to be told that it is
 * @reply: an ANSWER to the coordinator is due
 * @begun: when the engine was revoked
 * @since: when this node began to wait for whom it waits for
 * @answered: coordinator: bit for each node that has answered, or is gone
 * @gone: bit for each node that is lost, or has left
 */
struct zc_agree {
	struct zc_good good;
	enum zc_role role;
	u32 cursor;
	u32 answers;
	u32 coordinator;
	bool decided;
	bool request;
	bool reply;
	u64 begun;
	u64 since;
	u64 *answered;
	u64 *gone;
};

/**
 * struct zc_engine - see engine.h
 * @config: dimensions
 * @base: operations retired
 * @end: operations from here on cannot be carried out: a node has left
 * @leaver: that node
 * @now: of the last tick
 * @ready: bit for each operation, by seq mod window, that may have something to do
 * @ops: operations, by seq mod window
 * @links: other nodes, in the order of their appearance
 * @nlinks: their number
 * @index: hash of links: one past the position in @links
 * @index_mask: size of @index less 1
 * @skipped: units without elements passed over by this zc_engine_next()
 * @sweep: links not yet looked at for what they have to be told, from the end
 * @beat: likewise for heartbeats
 * @error: 0, or why the engine is revoked
 * @blame: by which node, ZC_NONE: none
 * @stage: enum zc_stage
 * @cursor: links told of a failure
 * @agree: settling of verdicts
 */
struct zc_engine {
	struct zc_engine_config config;
	u64 base;
	u64 end;
	u32 leaver;
	u64 now;
	u64 ready;
	struct zc_eop *ops;
	struct zc_link *links;
	u32 nlinks;
	u32 *index;
	u32 index_mask;
	u32 skipped;
	u32 sweep;
	u32 beat;
	s32 error;
	u32 blame;
	enum zc_stage stage;
	u32 cursor;
	struct zc_agree agree;
};

static inline bool zc_bit(const u64 *bits, u64 i)
{
	return bits[i / 64] >> i % 64 & 1;
}

static inline void zc_bit_set(u64 *bits, u64 i)
{
	bits[i / 64] |= 1ULL << i % 64;
}

static inline u32 zc_words(u64 bits)
{
	return (bits + 63) / 64;
}

/* The operation's place in the window */
static inline u32 zc_place_of(const struct zc_engine *e, u64 seq)
{
	return seq & (e->config.window - 1);
}

static inline struct zc_eop *zc_eop(const struct zc_engine *e, u64 seq)
{
	return &e->ops[zc_place_of(e, seq)];
}

/* Have the engine look at a row again */
static inline void zc_row_wake(struct zc_engine *e, struct zc_eop *op, u32 step)
{
	zc_bit_set(op->pending, step);
	e->ready |= 1ULL << zc_place_of(e, op->desc.seq);
}

/* prog.c */
u32 zc_geometry_pieces(const struct zc_geometry *geo, u32 segments,
		       const struct zc_range *range, u64 offset, u64 most,
		       struct zc_piece piece[2]);
u32 zc_prog_feed(const struct zc_prog *prog, u32 step, u32 peer);

/* row.c */
bool zc_row_untouched(const struct zc_row *row);
int zc_row_check(struct zc_engine *e, struct zc_eop *op, u32 step, u32 *words);
void zc_row_start(struct zc_engine *e, struct zc_eop *op, u32 step);
bool zc_row_next(struct zc_engine *e, struct zc_eop *op, u32 step, struct zc_action *action);
u32 zc_row_waits(const struct zc_eop *op, u32 step, u64 *unit);
void zc_row_done(struct zc_engine *e, struct zc_eop *op, u32 step, u64 unit);
int zc_row_message(struct zc_engine *e, struct zc_eop *op, u32 from, const struct zc_msg *msg);

/* link.c */
struct zc_link *zc_link(struct zc_engine *e, u32 node);
void zc_link_heard(struct zc_engine *e, struct zc_link *link, u64 retired);
bool zc_link_takes(struct zc_engine *e, u32 node, u64 seq);
void zc_link_say(struct zc_engine *e, u32 node, struct zc_action *action);
bool zc_link_next(struct zc_engine *e, struct zc_action *action);

/* engine.c */
void zc_op_end(struct zc_engine *e, struct zc_eop *op, s32 status);
void zc_op_wake(struct zc_engine *e, struct zc_eop *op);

/* agree.c */
void zc_revoke(struct zc_engine *e, s32 error, u32 blame);
void zc_agree_message(struct zc_engine *e, u32 from, const struct zc_msg *msg);
void zc_agree_gone(struct zc_engine *e, u32 node);
u64 zc_agree_tick(struct zc_engine *e);
bool zc_agree_next(struct zc_engine *e, struct zc_action *action);
bool zc_agree_ends(const struct zc_engine *e, const struct zc_eop *op, s32 *status);

#endif /* ZCOLL_ENGINE_PRIV_H */
