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
typedef int icall_fn(struct zcoll_comm *, const struct zcoll_call *, struct zcoll_req **);
typedef int wait_fn(struct zcoll_req *, uint64_t);

static struct zcoll_call last;	/* non-blocking call */

static int spoil(const struct zcoll_call *call, int err)
{
	if (!err && call->count && call->dtype == ZCOLL_INT32)
		((uint32_t *)call->recv)[call->count - 1] ^= 1;
	return err;
}

int zcoll_call(struct zcoll_comm *comm, const struct zcoll_call *call)
{
	call_fn *real = (call_fn *)dlsym(RTLD_NEXT, "zcoll_call");

	return spoil(call, real(comm, call));
}

int zcoll_icall(struct zcoll_comm *comm, const struct zcoll_call *call, struct zcoll_req **req)
{
	icall_fn *real = (icall_fn *)dlsym(RTLD_NEXT, "zcoll_icall");

	last = *call;
	return real(comm, call, req);
}

int zcoll_wait(struct zcoll_req *req, uint64_t timeout_ns)
{
	wait_fn *real = (wait_fn *)dlsym(RTLD_NEXT, "zcoll_wait");

	return spoil(&last, real(req, timeout_ns));
}
