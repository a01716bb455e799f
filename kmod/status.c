// SPDX-License-Identifier: GPL-2.0-only
/*
 * Status: how an operation or the communicator stands, and why.
 *
 * Whoever holds an endpoint may ask at any time, also while operations are in flight and
 * after a failure. Here are also the texts of calls that were refused: an endpoint keeps the
 * last few, until a call with the same sequence number is accepted.
 */
#include <linux/uaccess.h>

#include "net/net.h"

/*
 * Who has called an operation may have said so in its mailbox, and the kernel does not know more
 * of it. Return: so it is. Context: may sleep.
 */
static bool zc_status_mail(struct zc_comm *comm, struct zcoll_status *args, struct zc_text *text)
{
	u32 n;

	if (args->flags & ZCOLL_STATUS_COMM || args->state != ZCOLL_STATE_NONE || text->len)
		return false;
	n = zc_mailbox_callers(comm, args->seq);
	if (!n || n == comm->layout.nranks)
		return false;
	args->state = ZCOLL_STATE_WAITING;
	args->arrived = n;
	zc_text_add(text, "operation %llu: ", args->seq);
	zc_text_add_share(text, comm, n);
	zc_text_add(text, " have called; missing: ");
	zc_mailbox_add_missing(text, comm, args->seq);
	return true;
}

static bool zc_state_missing(struct zc_comm *comm, const struct zcoll_status *args, bool mail,
			     u32 i)
{
	struct zc_rank *rank;
	bool missing;

	if (mail)
		return !zc_mailbox_called(comm, i, args->seq);
	spin_lock(&comm->lock);
	rank = comm->ranks[i];
	missing = !rank || !(args->flags & ZCOLL_STATUS_COMM || zc_rank_called(rank, args->seq));
	spin_unlock(&comm->lock);
	return missing;
}

/*
 * Rank by rank, with the lock dropped for each: what is written is what each rank
 * was when it was looked at.
 */
static int zc_status_missing(struct zc_comm *comm, const struct zcoll_status *args, bool mail)
{
	u32 __user *to = u64_to_user_ptr(args->missing);
	u32 i, n = 0;

	if (!args->missing || args->state != ZCOLL_STATE_WAITING)
		return 0;
	for (i = 0; i < comm->layout.nlocal && n < args->missing_len; i++) {
		if (zc_state_missing(comm, args, mail, i) &&
		    put_user(comm->layout.locals[i], to + n++))
			return -EFAULT;
	}
	return 0;
}

static void zc_status_comm(struct zc_comm *comm, struct zcoll_status *args,
			   struct zc_text *text)
{
	args->arrived = comm->njoined;
	if (comm->error) {
		args->state = ZCOLL_STATE_DONE;
		args->result = comm->error;
		zc_text_add(text, "%s", comm->text);
	} else if (comm->nleft) {
		args->state = ZCOLL_STATE_DONE;
		args->result = -ESHUTDOWN;
		zc_text_add_who(text, comm, comm->first_left);
		zc_text_add(text, " has left the communicator");
	} else if (comm->njoined < comm->layout.nlocal) {
		args->state = ZCOLL_STATE_WAITING;
		zc_text_add_share(text, comm, comm->njoined);
		zc_text_add(text, " have joined");
	} else {
		args->state = ZCOLL_STATE_RUNNING;
	}
}

static const struct zc_reject *zc_status_reject(const struct zc_rank *rank, u64 seq)
{
	const struct zc_reject *reject;
	u32 i;

	/* The latest first */
	for (i = 1; i <= ZC_REJECTS; i++) {
		reject = &rank->rejects[(rank->reject_next - i) % ZC_REJECTS];
		if (reject->error && reject->seq == seq)
			return reject;
	}
	return NULL;
}

static void zc_status_op(struct zc_rank *rank, struct zcoll_status *args,
			 struct zc_text *text)
{
	static const u32 states[] = {
		[ZC_OP_FREE] = ZCOLL_STATE_NONE,
		[ZC_OP_WAITING] = ZCOLL_STATE_WAITING,
		[ZC_OP_STARTING] = ZCOLL_STATE_RUNNING,
		[ZC_OP_RUNNING] = ZCOLL_STATE_RUNNING,
		[ZC_OP_ENDING] = ZCOLL_STATE_DONE,
		[ZC_OP_DONE] = ZCOLL_STATE_DONE,
	};
	const struct zc_reject *reject = zc_status_reject(rank, args->seq);
	struct zc_comm *comm = rank->comm;
	const struct zc_op *op = zc_comm_op(comm, args->seq);
	bool known = op->state != ZC_OP_FREE && op->seq == args->seq;

	if (known) {
		args->state = states[op->state];
		args->result = op->result;
		args->arrived = op->arrived;
	}
	if (reject && !zc_rank_called(rank, args->seq)) {
		args->state = ZCOLL_STATE_REJECTED;
		args->result = reject->error;
		zc_text_add(text, "%s", reject->text);
	} else if (comm->error && !(args->state == ZCOLL_STATE_DONE && !args->result)) {
		args->result = comm->error;
		zc_text_add(text, "%s", comm->text);
	} else if (known && op->state == ZC_OP_WAITING) {
		zc_text_add(text, "%s %llu: ", zc_collective_name(op->desc.collective), op->seq);
		zc_text_add_share(text, comm, op->arrived);
		zc_text_add(text, " have called; missing: ");
		zc_text_add_ranks(text, comm, op->seq);
	} else if (known && op->state == ZC_OP_RUNNING && comm->net) {
		zc_text_add(text, "%s %llu: ", zc_collective_name(op->desc.collective), op->seq);
		zc_net_add_waits(text, comm, op);
	} else if (reject) {
		zc_text_add(text, "%s", reject->text);
	}
}

/**
 * zc_status - tell how an operation or the communicator stands
 * @rank: the endpoint that is asked; the caller may be another process
 * @args: as in the ABI; filled
 *
 * Return: 0, -EINVAL, -EFAULT.
 */
int zc_status(struct zc_rank *rank, struct zcoll_status *args)
{
	struct zc_comm *comm = rank->comm;
	struct zc_text text = {};
	bool mail;

	if ((args->flags & ~ZCOLL_STATUS_COMM) || args->__reserved)
		return -EINVAL;
	if ((args->flags & ZCOLL_STATUS_COMM) && args->seq)
		return -EINVAL;
	args->state = ZCOLL_STATE_NONE;
	args->result = 0;
	args->rank = rank->rank;
	args->nranks = comm->layout.nranks;
	args->arrived = 0;
	spin_lock(&comm->lock);
	args->oldest = comm->base;
	if (args->flags & ZCOLL_STATUS_COMM)
		zc_status_comm(comm, args, &text);
	else
		zc_status_op(rank, args, &text);
	spin_unlock(&comm->lock);
	mail = zc_status_mail(comm, args, &text);
	if (zc_status_missing(comm, args, mail))
		return -EFAULT;
	return zc_text_to_user(text.buf, args->text, args->text_len);
}
