// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The heap: memory of a rank that all ranks of its node have mapped, so that they reduce it
 * themselves, without calls. zcoll_alloc() takes memory from it; which parts are taken, the
 * table of ranges knows (buffers.c). Pages are there when they are touched, and go when
 * they are given back.
 */
#include <sys/mman.h>

#include "mail.h"

static char *heap_of(struct zcoll_comm *comm)
{
	char *span = comm->mail ? zc_mail_span(comm, comm->rank) : NULL;

	return span ? span + ZCOLL_MAILBOX_BYTES : NULL;
}

/**
 * zc_mail_heap - this rank's heap, to allocate from
 * @comm: the communicator
 * @len: output, bytes
 *
 * Return: its address; NULL: there is none, or a failure has ended the communicator: then a
 * rank may still be writing what it had begun.
 */
char *zc_mail_heap(struct zcoll_comm *comm, size_t *len)
{
	*len = ZCOLL_SPAN_BYTES - ZCOLL_MAILBOX_BYTES;
	return comm->mail && !zc_mail_revoked(comm->mail) ? heap_of(comm) : NULL;
}

/* Is @addr in this rank's heap? */
bool zc_mail_in_heap(struct zcoll_comm *comm, uintptr_t addr)
{
	char *heap = heap_of(comm);

	return heap && addr - (uintptr_t)heap < ZCOLL_SPAN_BYTES - ZCOLL_MAILBOX_BYTES;
}
