// SPDX-License-Identifier: GPL-2.0
/*
 * spoil - a library for LD_PRELOAD that makes results wrong
 *
 * One bit of the last element of each result of int32, so that tests can see
 * that `zcoll perf` sees it. The bookkeeping of the command uses other types.
 */
#include <dlfcn.h>
#include <stddef.h>

#include <zcoll.h>

typedef int call_fn(struct zcoll_comm *, const struct zcoll_call *);

int zcoll_call(struct zcoll_comm *comm, const struct zcoll_call *call)
{
	call_fn *real = (call_fn *)dlsym(RTLD_NEXT, "zcoll_call");
	int err = real(comm, call);

	if (!err && call->count && call->dtype == ZCOLL_INT32)
		((uint32_t *)call->recv)[call->count - 1] ^= 1;
	return err;
}
