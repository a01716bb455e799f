// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Lines: writing ours, looking at the others', and waiting for them.
 *
 * A line has one writer. Its stamp is written last, with release, and read first, with
 * acquire. A line that says that the call is for the kernel goes on saying it, also if the call is
 * refused and made again: another rank may have acted on it.
 *
 * Waiting: looks, then the kernel. A sleeper counts itself in its mailbox before it looks a last
 * time; a writer looks for sleepers after it has written; with a full barrier between the two on
 * both sides, one of them sees the other.
 *
 * Time is counted in looks, and no clock is read: where that is a system call it would take longer
 * than the operation. What the program does while it waits (../idle.c) takes time, too; then there
 * is a clock, if there is a deadline.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "compat.h"
#include "mail.h"

/* ------------------------------------------------------------------ sleepers */

static bool anybody_parked(const struct zc_mail *mail)
{
	bool parked = false;

	for (unsigned int i = 0; i < mail->nranks; i++)
		parked |= __atomic_load_n(&mail->boxes[i]->parked, __ATOMIC_RELAXED);
	return parked;
}

/* Something was written that others may sleep for */
static void wake_parked(struct zcoll_comm *comm)
{
	struct zcoll_flags flags = { .size = sizeof(flags) };

	atomic_thread_fence(memory_order_seq_cst);
	if (anybody_parked(comm->mail))
		zc_ioctl(comm->fd, ZCOLL_IOC_BELL, &flags);
}

/* ------------------------------------------------------------------- writing */

/*
 * Do all ranks write lines? One whose mailbox is not open yet, or that does not use this
 * library, does not, and a call must not wait for it: it has to say that it is for the kernel.
 */
bool zc_mail_all_open(struct zc_mail *mail)
{
	unsigned int open = atomic_load_explicit(&mail->open, memory_order_relaxed);

	while (open < mail->nranks &&
	       __atomic_load_n(&mail->boxes[open]->version, __ATOMIC_ACQUIRE) ==
	       ZCOLL_MAILBOX_VERSION)
		open++;
	atomic_store_explicit(&mail->open, open, memory_order_relaxed);
	return open == mail->nranks;
}

/**
 * zc_mail_write - say what this rank calls
 * @comm: has mailboxes
 * @letter: its form may become ZCOLL_FORM_COMMAND
 * @payload: of the line
 * @len: at most ZCOLL_LINE_PAYLOAD bytes
 */
void zc_mail_write(struct zcoll_comm *comm, struct zc_letter *letter, const void *payload,
		   size_t len)
{
	struct zcoll_line *line = (struct zcoll_line *)zc_mail_line(comm->mail, comm->rank,
								    letter->seq);

	/* Also if a later one has been there, and was taken back */
	if (line->stamp >= ZCOLL_STAMP(letter->seq, 0))
		letter->form = ZCOLL_FORM_COMMAND;
	/* For the kernel the stamp says all; and if the number was used before, others may be reading */
	if (letter->form != ZCOLL_FORM_COMMAND) {
		line->call = letter->packed;
		if (len)
			memcpy(line->payload, payload, len);
	}
	__atomic_store_n(&line->stamp, ZCOLL_STAMP(letter->seq, letter->form), __ATOMIC_RELEASE);
	wake_parked(comm);
}

/* ------------------------------------------------------------------- looking */

static enum zc_look look_at(const struct zc_mail *mail, const struct zc_letter *letter,
			    unsigned int rank)
{
	const struct zcoll_line *line = zc_mail_line(mail, rank, letter->seq);
	uint64_t stamp = __atomic_load_n(&line->stamp, __ATOMIC_ACQUIRE);

	if (stamp == ZCOLL_STAMP(letter->seq, letter->form))
		return line->call == letter->packed ? ZC_LOOK_SAME : ZC_LOOK_DIFFERS;
	return stamp < ZCOLL_STAMP(letter->seq, 0) ? ZC_LOOK_MISSING : ZC_LOOK_DIFFERS;
}

static enum zc_look look(const struct zc_mail *mail, struct zc_letter *letter)
{
	enum zc_look seen;

	for (; letter->seen < mail->nranks; letter->seen++) {
		seen = look_at(mail, letter, letter->seen);
		if (seen != ZC_LOOK_SAME)
			return seen;
	}
	return ZC_LOOK_SAME;
}

static bool is_done(const struct zc_mail *mail, unsigned int rank, uint64_t seq)
{
	const uint64_t *stamp = (const uint64_t *)zc_mail_at(mail, rank, ZC_MAIL_DONE_AT(seq));

	return __atomic_load_n(stamp, __ATOMIC_ACQUIRE) >= ZCOLL_STAMP(seq, 0);
}

static enum zc_look look_done(const struct zc_mail *mail, struct zc_letter *letter)
{
	uint64_t gone;

	for (; letter->seen < mail->nranks; letter->seen++) {
		if (is_done(mail, letter->seen, letter->seq))
			continue;
		gone = __atomic_load_n(&mail->verdict->gone, __ATOMIC_ACQUIRE);
		if (!(gone >> letter->seen & 1))
			return ZC_LOOK_MISSING;
		/* What it did before it went counts */
		if (!is_done(mail, letter->seen, letter->seq))
			return ZC_LOOK_DIFFERS;
	}
	return ZC_LOOK_SAME;
}

/* ------------------------------------------------------------------- waiting */

typedef enum zc_look (*look_fn)(const struct zc_mail *mail, struct zc_letter *letter);

/* Will there be nothing more to see? Who has gone writes no lines; look_done() knows itself. */
static bool over(const struct zc_mail *mail, look_fn fn)
{
	return __atomic_load_n(&mail->verdict->error, __ATOMIC_ACQUIRE) ||
	       (fn == look && __atomic_load_n(&mail->verdict->gone, __ATOMIC_ACQUIRE));
}

/* Looks between two calls of the program's function, which takes as long as some of them */
#define IDLE_LOOKS	32

/**
 * struct patience - how long this rank has waited for one thing
 * @looks: looks that were in vain
 * @nap: of zc_nap()
 */
struct patience {
	unsigned int looks;
	uint64_t nap;
};

/* Until the deadline, which is for all waits of an operation together */
static uint64_t time_left(struct zc_letter *letter)
{
	if (!letter->end)
		letter->end = letter->deadline_ns ? zc_after(letter->deadline_ns) :
						    ZCOLL_WAIT_FOREVER;
	return zc_left(letter->end);
}

/* What the kernel may take of the deadline after a wait here; 0: there was none worth a clock */
uint64_t zc_mail_left(struct zc_letter *letter)
{
	uint64_t left;

	if (!letter->deadline_ns || !letter->end)
		return 0;
	left = time_left(letter);
	return left ? left : 1;
}

/* Sleep until the bell rings, or it is time to call the program's function */
static void park(struct zcoll_comm *comm, struct zc_letter *letter, look_fn fn,
		 struct patience *waited)
{
	struct zc_mail *mail = comm->mail;
	uint64_t left = time_left(letter), nap = zc_nap(comm, &waited->nap, left);
	struct zcoll_park args = {
		.size = sizeof(args),
		.flags = letter->deadline_ns && nap == left ? ZCOLL_PARK_DEADLINE : 0,
		.seq = letter->seq,
		.timeout_ns = nap,
		.bell = __atomic_load_n(&mail->verdict->bell, __ATOMIC_ACQUIRE),
	};

	__atomic_fetch_add(&mail->own->parked, 1, __ATOMIC_SEQ_CST);
	atomic_thread_fence(memory_order_seq_cst);
	if (fn(mail, letter) == ZC_LOOK_MISSING && !over(mail, fn))
		zc_ioctl(comm->fd, ZCOLL_IOC_PARK, &args);
	__atomic_fetch_sub(&mail->own->parked, 1, __ATOMIC_RELAXED);
}

/* Call the program's function; if the time is over after it, the kernel is to be told at once */
static void idle(struct zcoll_comm *comm, struct zc_letter *letter, struct patience *waited)
{
	const struct zc_mail *mail = comm->mail;

	time_left(letter);
	zc_idle(comm);
	if (!time_left(letter))
		waited->looks = mail->spins + mail->yields;
}

/* Between two looks: a moment, or a turn of the others, or a sleep */
static void rest(struct zcoll_comm *comm, struct zc_letter *letter, look_fn fn,
		 struct patience *waited)
{
	const struct zc_mail *mail = comm->mail;
	unsigned int looks = waited->looks++;
	bool sleeps = looks >= mail->spins + mail->yields;

	if (sleeps)
		park(comm, letter, fn, waited);
	else if (looks < mail->spins)
		zc_compat_relax();
	else
		sched_yield();
	if (comm->idle && (sleeps || looks % IDLE_LOOKS == IDLE_LOOKS - 1))
		idle(comm, letter, waited);
}

static enum zc_look await(struct zcoll_comm *comm, struct zc_letter *letter, look_fn fn)
{
	const struct zc_mail *mail = comm->mail;
	struct patience waited = { 0 };
	enum zc_look seen;

	for (;;) {
		seen = fn(mail, letter);
		if (seen != ZC_LOOK_MISSING)
			return seen;
		if (over(mail, fn)) {
			/* What was written before that counts */
			seen = fn(mail, letter);
			return seen == ZC_LOOK_SAME ? seen : ZC_LOOK_DIFFERS;
		}
		rest(comm, letter, fn, &waited);
	}
}

/**
 * zc_mail_await - wait for all ranks' lines
 * @comm: has mailboxes
 * @letter: written
 *
 * Return: ZC_LOOK_SAME or ZC_LOOK_DIFFERS.
 */
enum zc_look zc_mail_await(struct zcoll_comm *comm, struct zc_letter *letter)
{
	letter->seen = 0;
	return await(comm, letter, look);
}

/* ------------------------------------------------------------ after the lines */

/* This rank has done its part of an operation in the heaps */
void zc_mail_done(struct zcoll_comm *comm, uint64_t seq)
{
	uint64_t *stamp = (uint64_t *)zc_mail_at(comm->mail, comm->rank, ZC_MAIL_DONE_AT(seq));

	__atomic_store_n(stamp, ZCOLL_STAMP(seq, 0), __ATOMIC_RELEASE);
	wake_parked(comm);
}

/* Wait until all ranks have done theirs. Return: they have; false: one never will */
bool zc_mail_await_done(struct zcoll_comm *comm, struct zc_letter *letter)
{
	letter->seen = 0;
	return await(comm, letter, look_done) == ZC_LOOK_SAME;
}

/* Have all ranks ended their operations below @seq? */
static bool all_ended(struct zc_mail *mail, uint64_t seq)
{
	uint64_t ended = atomic_load_explicit(&mail->ended, memory_order_acquire), theirs;

	if (seq <= ended)
		return true;
	ended = UINT64_MAX;
	for (unsigned int i = 0; i < mail->nranks; i++) {
		theirs = __atomic_load_n(&mail->boxes[i]->ended, __ATOMIC_ACQUIRE);
		if (theirs < ended)
			ended = theirs;
	}
	atomic_store_explicit(&mail->ended, ended, memory_order_release);
	return seq <= ended;
}

/* Does nobody read the slot for large inputs any more that operation @seq is to have? */
bool zc_mail_slot_free(struct zc_mail *mail, uint64_t seq)
{
	return seq < ZC_MAIL_SLOTS || all_ended(mail, seq - ZC_MAIL_SLOTS + 1);
}

/* Likewise its line; by the window that is so for operations that are submitted at once */
bool zc_mail_line_free(struct zcoll_comm *comm, uint64_t seq)
{
	return !comm->mail || seq < ZCOLL_LINES ||
	       all_ended(comm->mail, seq - ZCOLL_LINES + 1);
}
