// SPDX-License-Identifier: GPL-2.0
/*
 * spoil - a library for LD_PRELOAD that makes results wrong
 *
 * One bit of the last element of each all-reduce of int32, so that tests can see
 * that `zcoll perf` sees it. The bookkeeping of the command uses other types.
 */
#include <dlfcn.h>
#include <stddef.h>

#include <zcoll.h>

typedef int allreduce_fn(struct zcoll_comm *, const void *, void *, uint64_t, int, int);

int zcoll_allreduce(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		    int dtype, int op)
{
	allreduce_fn *real = (allreduce_fn *)dlsym(RTLD_NEXT, "zcoll_allreduce");
	int err = real(comm, send, recv, count, dtype, op);

	if (!err && count && dtype == ZCOLL_INT32)
		((uint32_t *)recv)[count - 1] ^= 1;
	return err;
}
