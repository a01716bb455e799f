// SPDX-License-Identifier: GPL-2.0-only
/*
 * Error texts: built in a fixed buffer, cut off where they end.
 */
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "zcoll.h"

/* More ranks than this are not listed by number */
#define ZC_TEXT_RANKS 8

void zc_text_add(struct zc_text *text, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	text->len += vscnprintf(text->buf + text->len, sizeof(text->buf) - text->len,
				fmt, args);
	va_end(args);
}

/* "3 of 4 ranks", with several nodes "3 of 4 ranks of node 1" */
void zc_text_add_share(struct zc_text *text, const struct zc_comm *comm, u32 n)
{
	zc_text_add(text, "%u of %u ranks", n, comm->layout.nlocal);
	if (comm->layout.nodes > 1)
		zc_text_add(text, " of node %u", comm->layout.node);
}

/* "rank 3", or, where the endpoint is none, "the aggregator of node 4" */
void zc_text_add_who(struct zc_text *text, const struct zc_comm *comm, u32 rank)
{
	if (comm->layout.nlocal)
		zc_text_add(text, "rank %u", rank);
	else
		zc_text_add(text, "the aggregator of node %u", comm->layout.node);
}

/**
 * zc_text_add_ranks - list the local ranks that have not called an operation
 * @text: where to
 * @comm: communicator, locked
 * @seq: the operation, WAITING
 */
void zc_text_add_ranks(struct zc_text *text, struct zc_comm *comm, u64 seq)
{
	u32 missing = comm->layout.nlocal - zc_comm_op(comm, seq)->arrived, named = 0, i;

	for (i = 0; i < comm->layout.nlocal && named < ZC_TEXT_RANKS; i++) {
		struct zc_rank *rank = comm->ranks[i];

		if (rank && zc_rank_called(rank, seq))
			continue;
		zc_text_add(text, "%s%u", named++ ? ", " : "", comm->layout.locals[i]);
		if (!rank)
			zc_text_add(text, " (has not joined)");
		else if (rank->next_seq > seq + 1)
			zc_text_add(text, " (skipped it, and is at %llu)",
				    rank->next_seq - 1);
	}
	if (missing > ZC_TEXT_RANKS)
		zc_text_add(text, " and %u more", missing - ZC_TEXT_RANKS);
}

/* Give a caller as much of a text as its buffer holds, always terminated */
int zc_text_to_user(const char *text, u64 addr, u32 len)
{
	char __user *to = u64_to_user_ptr(addr);
	size_t n;

	if (!addr || !len)
		return 0;
	n = min_t(size_t, strlen(text), len - 1);
	if (copy_to_user(to, text, n) || put_user('\0', to + n))
		return -EFAULT;
	return 0;
}
