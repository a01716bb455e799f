// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sequence numbers: which of the communicator's operations a call is.
 *
 * A number is *drawn* when an operation is prepared and *used* when the kernel
 * accepts the submission. A number that is drawn and never used is a hole, at
 * which the other ranks would wait for ever. So what can be checked is checked
 * before a number is drawn, and a number that the kernel refuses is *given back*:
 * that works as long as it is the newest. Else a later operation is on its way
 * already, the hole stays, and the communicator is aborted.
 *
 * The kernel takes numbers below its oldest unfinished operation plus the window.
 * comm->oldest is a lower bound of that, moved by the results that pass by here;
 * the kernel is asked only when that is not enough. Of operations that ended in mailboxes the
 * kernel learns by the next command, so what it says may be behind.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

static int wait_op(struct zcoll_comm *comm, uint64_t seq, uint64_t timeout_ns)
{
	struct zcoll_wait wait = {
		.size = sizeof(wait),
		.seq = seq,
		.timeout_ns = timeout_ns,
	};

	return zc_ioctl(comm->fd, ZCOLL_IOC_WAIT, &wait);
}

/* ---- which have ended ---- */

static uint64_t bit_of(uint64_t seq)
{
	return 1ULL << seq % 64;
}

/* Move comm->oldest over what has ended. seq_lock held. */
static void roll(struct zcoll_comm *comm, uint64_t oldest)
{
	while (comm->seq_over & bit_of(oldest)) {
		comm->seq_over &= ~bit_of(oldest);
		oldest++;
	}
	atomic_store_explicit(&comm->oldest, oldest, memory_order_release);
	zc_mail_ended(comm, oldest);
}

/* Move comm->oldest up to @seq, but not over what a thread reads in mailboxes */
static void raise_oldest(struct zcoll_comm *comm, uint64_t seq)
{
	uint64_t oldest;

	pthread_mutex_lock(&comm->seq_lock);
	oldest = atomic_load(&comm->oldest);
	for (; oldest < seq && !(comm->seq_busy & bit_of(oldest)); oldest++)
		comm->seq_over &= ~bit_of(oldest);
	roll(comm, oldest);
	pthread_mutex_unlock(&comm->seq_lock);
}

/* Operation @seq has ended with success */
void zc_seq_done(struct zcoll_comm *comm, uint64_t seq)
{
	uint64_t oldest;

	pthread_mutex_lock(&comm->seq_lock);
	oldest = atomic_load_explicit(&comm->oldest, memory_order_relaxed);
	comm->seq_busy &= ~bit_of(seq);
	if (seq >= oldest) {
		comm->seq_over |= bit_of(seq);
		roll(comm, oldest);
	}
	pthread_mutex_unlock(&comm->seq_lock);
}

/* Operation @seq is being done from mailboxes, until zc_seq_done() */
void zc_seq_begin(struct zcoll_comm *comm, uint64_t seq)
{
	pthread_mutex_lock(&comm->seq_lock);
	comm->seq_busy |= bit_of(seq);
	pthread_mutex_unlock(&comm->seq_lock);
}

/* It is not: the kernel gets it */
void zc_seq_begin_undo(struct zcoll_comm *comm, uint64_t seq)
{
	pthread_mutex_lock(&comm->seq_lock);
	comm->seq_busy &= ~bit_of(seq);
	pthread_mutex_unlock(&comm->seq_lock);
}

/* ---- drawing ---- */

/*
 * The oldest operation that this rank knows no end of is looked after. Return: 0: look again;
 * -ENOENT: another thread does it, or is about to submit it; or as ZCOLL_IOC_WAIT.
 */
static int help_oldest(struct zcoll_comm *comm, uint64_t ended, uint64_t timeout_ns,
		       uint64_t *which)
{
	uint64_t oldest;
	int ret;

	raise_oldest(comm, ended);
	oldest = atomic_load(&comm->oldest);
	*which = oldest;
	ret = wait_op(comm, oldest, timeout_ns);
	if (!ret)
		raise_oldest(comm, oldest + 1);
	return ret;
}

/*
 * Wait until the window has room for @seq: all operations a window or more below
 * it have ended, and the last of them has given this rank its result, too. Helps
 * with what it waits for. A revoked communicator has room: its error comes with
 * the submission.
 */
static int wait_for_room(struct zcoll_comm *comm, uint64_t seq)
{
	uint64_t end = comm->deadline_ns ? zc_after(comm->deadline_ns) : ZCOLL_WAIT_FOREVER;
	const uint64_t last = seq - comm->window;
	uint64_t nap = 0;

	while (atomic_load(&comm->oldest) <= last) {
		struct zcoll_status st = { 0 };
		uint64_t which = last;
		int ret = zc_comm_status(comm, &st);

		if (ret)
			return zc_fail(comm, ret, "rank %u: status of the communicator: %s",
				       comm->rank, strerror(-ret));
		if (st.state == ZCOLL_STATE_DONE)
			return 0;

		if (st.oldest > last) {
			ret = wait_op(comm, last, zc_nap(comm, &nap, zc_left(end)));
			if (!ret || ret == -ENOENT)
				raise_oldest(comm, last + 1);
			ret = ret == -ENOENT ? 0 : ret;
		} else {
			ret = help_oldest(comm, st.oldest, zc_nap(comm, &nap, zc_left(end)),
					  &which);
		}
		if (ret && ret != -ENOENT && ret != -EINTR && ret != -ETIMEDOUT)
			return zc_fail_op(comm, which, ret);
		if (!zc_left(end) && atomic_load(&comm->oldest) <= last)
			return zc_fail(comm, -ETIMEDOUT,
				       "rank %u, operation %llu: not submitted: %u operations are unfinished, and the oldest, %llu, did not end in the deadline of %g s",
				       comm->rank, (unsigned long long)seq, comm->window,
				       (unsigned long long)which, comm->deadline_ns / 1e9);
		if (atomic_load(&comm->oldest) <= last && ret != -EINTR)
			zc_sleep(ZC_LOOK_AGAIN_NS);	/* another thread is at it */
		zc_idle(comm);
	}
	return 0;
}

/**
 * zc_seq_draw - draw a number for an operation that is submitted at once
 * @comm: the communicator
 * @seq: output
 *
 * Waits until the window has room.
 */
int zc_seq_draw(struct zcoll_comm *comm, uint64_t *seq)
{
	uint64_t next;
	int ret;

	do {
		next = atomic_load(&comm->next);
		if (next >= atomic_load(&comm->oldest) + comm->window) {
			ret = wait_for_room(comm, next);
			if (ret)
				return ret;
		}
	} while (!atomic_compare_exchange_strong(&comm->next, &next, next + 1));

	*seq = next;
	return 0;
}

/*
 * Of operations on the caller's own ring nobody tells us the end, and behind them stay those
 * that ended in mailboxes, which the next command is to tell the kernel of. So it is asked
 * when what is known here does not make room any more.
 */
static void learn_oldest(struct zcoll_comm *comm, uint64_t next)
{
	struct zcoll_status st = { 0 };

	if (comm->mail && next >= atomic_load(&comm->oldest) + comm->window &&
	    !zc_comm_status(comm, &st) && st.state != ZCOLL_STATE_DONE)
		raise_oldest(comm, st.oldest);
}

/* Draw a number for an operation that the caller submits later */
int zc_seq_draw_now(struct zcoll_comm *comm, uint64_t *seq)
{
	*seq = atomic_load(&comm->next);
	learn_oldest(comm, *seq);
	do {
		if (!zc_mail_line_free(comm, *seq))
			return zc_fail(comm, -ENOBUFS,
				       "rank %u: operation %llu cannot be prepared: a rank has not ended %llu, and at most %u may be prepared",
				       comm->rank, (unsigned long long)*seq,
				       (unsigned long long)*seq - ZCOLL_LINES, ZCOLL_LINES);
	} while (!atomic_compare_exchange_weak(&comm->next, seq, *seq + 1));
	return 0;
}

/* Return: whether @seq was the newest number, and now is to be drawn again */
bool zc_seq_give_back(struct zcoll_comm *comm, uint64_t seq)
{
	uint64_t next = seq + 1;

	return atomic_compare_exchange_strong(&comm->next, &next, seq);
}

/*
 * Is @seq past, which it cannot be without this rank, and nothing has failed? No
 * rank goes on after an operation that failed.
 */
bool zc_seq_succeeded(struct zcoll_comm *comm, uint64_t seq)
{
	struct zcoll_status st = { 0 };

	return !zc_comm_status(comm, &st) && st.state != ZCOLL_STATE_DONE && seq < st.oldest;
}

/* Has the kernel accepted this rank's submission of @seq? */
bool zc_seq_accepted(struct zcoll_comm *comm, uint64_t seq)
{
	return wait_op(comm, seq, 0) != -ENOENT;
}

/**
 * zc_op_ended - deal with the result of an operation
 * @comm: the communicator
 * @seq: its number, not used if it was refused
 * @result: 0 or a negative errno
 *
 * Return: @result, with a text in the communicator and no hole in the numbers.
 */
int zc_op_ended(struct zcoll_comm *comm, uint64_t seq, int result)
{
	char text[ZCOLL_TEXT_MAX];

	if (!result) {
		zc_seq_done(comm, seq);
		return 0;
	}
	zc_fail_op(comm, seq, result);
	if (zc_seq_accepted(comm, seq) || zc_seq_give_back(comm, seq) || zc_is_revoked(comm))
		return result;

	zcoll_comm_error(comm, text, sizeof(text));
	zcoll_comm_abort(comm);
	return zc_fail(comm, result,
		       "rank %u: operation %llu was refused when a later one had been drawn, so the communicator is aborted; it was refused because: %.120s",
		       comm->rank, (unsigned long long)seq, text);
}
