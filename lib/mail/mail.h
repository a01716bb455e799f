/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Mailboxes: operations of ranks on one node that need no system call.
 *
 * How ranks agree, and what the kernel has to do with it, is told in <linux/zcoll.h>,
 * "DOC: Mailboxes". In short: each call of each rank is a line in its own mailbox; when all
 * ranks' lines say the same call and the same form, the call is done from them; else all
 * submit it to the kernel. Non-blocking calls always are for the kernel, which goes on with
 * them while their callers compute.
 *
 *   area.c    the shared memory
 *   line.c    lines: writing, comparing, waiting for them
 *   pull.c    a rank's result from all ranks' inputs
 *   call.c    a call, by mail or by heap
 *   heap.c    memory that all ranks can reach
 *
 * Threads. A mailbox has many writers if its rank has many threads: each writes lines of its
 * own operations only.
 */
#ifndef LIBZCOLL_MAIL_H
#define LIBZCOLL_MAIL_H

#include "../internal.h"
#include "../../kmod/engine/fold.h"

/* Of a mailbox: inputs that do not fit a line, by operation */
#define ZC_MAIL_SLOTS		8
#define ZC_MAIL_SLOT_AT(seq)	((uint64_t)ZC_MAIL_BYTES * (1 + (seq) % ZC_MAIL_SLOTS))

/* Of a mailbox: what a rank has done of an operation in the heaps, as a stamp */
#define ZC_MAIL_DONE_AT(seq)	(8192 + (seq) % ZCOLL_LINES * 64)

/* Payload of a line of ZCOLL_FORM_HEAP: offsets in the rank's span */
struct zc_operands {
	uint64_t send;
	uint64_t recv;
};

/**
 * struct zc_mail - a rank's view of the shared memory
 * @nranks: ranks
 * @rank: ours
 * @loops: fold loops of this CPU
 * @verdict: what the kernel says
 * @own: our mailbox
 * @boxes: all ranks' mailboxes
 * @spans: all ranks' spans, of which the heaps are mapped; NULL: not yet
 * @open: ranks, of numbers below, that are known to write lines
 * @crowded: the node has fewer CPUs than ranks; the same for all of them
 * @spins: looks at a line before anything else is done
 * @yields: looks with a sched_yield() before each, before sleeping
 * @ended: all ranks have ended their operations below; a lower bound
 */
struct zc_mail {
	unsigned int nranks;
	unsigned int rank;
	const struct zc_fold_isa *loops;
	const struct zcoll_verdict *verdict;
	struct zcoll_mailbox *own;
	const struct zcoll_mailbox *boxes[ZCOLL_MAILBOX_RANKS];
	_Atomic(char *) spans[ZCOLL_MAILBOX_RANKS];
	_Atomic unsigned int open;
	bool crowded;
	unsigned int spins;
	unsigned int yields;
	_Atomic uint64_t ended;
};

/* What the lines say */
enum zc_look {
	ZC_LOOK_MISSING,	/* a line is not there yet */
	ZC_LOOK_SAME,		/* all there, and the same */
	ZC_LOOK_DIFFERS,	/* the kernel has to do it */
};

/**
 * struct zc_letter - a call on its way
 * @seq: its operation
 * @form: ZCOLL_FORM_*
 * @packed: the call, as lines have it
 * @seen: ranks whose lines, of numbers below, have been seen and are the same
 * @deadline_ns: 0: none
 * @end: of the deadline; 0: no wait has been so long that it would matter
 */
struct zc_letter {
	uint64_t seq;
	unsigned int form;
	uint64_t packed;
	unsigned int seen;
	uint64_t deadline_ns;
	uint64_t end;
};

static inline const char *zc_mail_at(const struct zc_mail *mail, unsigned int rank, size_t offset)
{
	return (const char *)mail->boxes[rank] + offset;
}

static inline const struct zcoll_line *zc_mail_line(const struct zc_mail *mail,
						    unsigned int rank, uint64_t seq)
{
	return (const struct zcoll_line *)zc_mail_at(mail, rank, ZCOLL_LINE_AT(seq));
}

/* The error that revoked the communicator, or 0 */
static inline int zc_mail_revoked(const struct zc_mail *mail)
{
	return __atomic_load_n(&mail->verdict->error, __ATOMIC_ACQUIRE);
}

/* area.c */
char *zc_mail_span(struct zcoll_comm *comm, unsigned int rank);

/* line.c */
bool zc_mail_all_open(struct zc_mail *mail);
void zc_mail_write(struct zcoll_comm *comm, struct zc_letter *letter, const void *payload,
		   size_t len);
enum zc_look zc_mail_await(struct zcoll_comm *comm, struct zc_letter *letter);
uint64_t zc_mail_left(struct zc_letter *letter);
bool zc_mail_slot_free(struct zc_mail *mail, uint64_t seq);
void zc_mail_done(struct zcoll_comm *comm, uint64_t seq);
bool zc_mail_await_done(struct zcoll_comm *comm, struct zc_letter *letter);

/* pull.c */
void zc_mail_copy(const struct zc_mail *mail, void *to, const void *from, uint64_t bytes);
void zc_mail_pull(const struct zcoll_comm *comm, const struct zc_sides *sides,
		  const void *const *inputs);
void zc_mail_fold(const struct zcoll_comm *comm, const struct zcoll_call *call,
		  void *const *outputs, unsigned int noutputs, const void *const *inputs,
		  uint64_t first, uint64_t count, bool stream);

#endif /* LIBZCOLL_MAIL_H */
