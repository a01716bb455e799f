// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Results from inputs that all ranks can read, by the module's own loops: the order of
 * reduction, and so each bit of a result, is the same as when the kernel does it.
 *
 * By *pulling*, a rank makes its own result, all of it, and writes nowhere else. That is least
 * work for little data, and for collectives in which what a rank gets is its own anyway.
 */
#include <string.h>

#include "mail.h"

/*
 * Up to so many bytes memcpy() is the faster copy. It changes over to string instructions at
 * some KiB, which a translated machine carries out byte by byte; the loops move vectors always.
 */
#define MEMCPY_BYTES	8192

/**
 * zc_mail_fold - reduce a part of the elements
 * @comm: the communicator
 * @call: what is called
 * @outputs: where the result goes, everywhere
 * @noutputs: so many places
 * @inputs: of all ranks
 * @first: first element, in each of them
 * @count: elements
 * @stream: past the caches
 */
void zc_mail_fold(const struct zcoll_comm *comm, const struct zcoll_call *call,
		  void *const *outputs, unsigned int noutputs, const void *const *inputs,
		  uint64_t first, uint64_t count, bool stream)
{
	if (count)
		comm->mail->loops->fn[call->dtype][call->op](outputs, inputs, noutputs,
							     comm->nranks, comm->nranks, first,
							     count, stream);
}

/* This rank's block of a reduction */
static void pull_block(const struct zcoll_comm *comm, const struct zc_sides *sides,
		       const void *const *inputs)
{
	const void *blocks[ZCOLL_MAILBOX_RANKS];
	void *out = sides->call->recv;

	for (unsigned int i = 0; i < comm->nranks; i++)
		blocks[i] = (const char *)inputs[i] + comm->rank * sides->block;
	zc_mail_fold(comm, sides->call, &out, 1, blocks, 0, sides->call->count, false);
}

/**
 * zc_mail_copy - copy bytes
 * @mail: the shared memory
 * @to: where to, which is @from or elsewhere altogether
 * @from: where from
 * @bytes: how many
 */
void zc_mail_copy(const struct zc_mail *mail, void *to, const void *from, uint64_t bytes)
{
	if (to == from || !bytes)
		return;
	if (bytes <= MEMCPY_BYTES)
		memcpy(to, from, bytes);
	else
		mail->loops->fn[ZCOLL_UINT8][ZCOLL_SUM](&to, &from, 1, 1, 1, 0, bytes, false);
}

/**
 * zc_mail_pull - make this rank's result
 * @comm: the communicator
 * @sides: the call
 * @inputs: of all ranks; where a rank has none it is not looked at
 */
void zc_mail_pull(const struct zcoll_comm *comm, const struct zc_sides *sides,
		  const void *const *inputs)
{
	const struct zcoll_call *call = sides->call;
	char *out = call->recv;
	void *whole = out;

	switch (call->collective) {
	case ZCOLL_REDUCE:
		if (comm->rank != call->root)
			break;
		__attribute__((fallthrough));
	case ZCOLL_ALLREDUCE:
		zc_mail_fold(comm, call, &whole, 1, inputs, 0, call->count, false);
		break;
	case ZCOLL_REDUCE_SCATTER:
		pull_block(comm, sides, inputs);
		break;
	case ZCOLL_ALLGATHER:
		for (unsigned int i = 0; i < comm->nranks; i++)
			zc_mail_copy(comm->mail, out + i * sides->block,
				     i == comm->rank ? call->send : inputs[i], sides->block);
		break;
	case ZCOLL_BROADCAST:
		zc_mail_copy(comm->mail, out,
			     comm->rank == call->root ? call->send : inputs[call->root],
			     sides->block);
		break;
	}
}
