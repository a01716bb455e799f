// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What a program does while it waits: a function of its own, which the library calls again and
 * again in the thread that waits. So whoever has something else to keep going, as another
 * library whose messages move only when it is called, needs no loop around the calls.
 *
 * With such a function a wait is made of *naps*, the first ones short, for what is waited for
 * mostly comes soon, and the last ones as long as the function may be kept waiting. Without
 * one it is a single sleep.
 */
#include "internal.h"

#define NAP_MIN_NS	50000ULL
#define NAP_MAX_NS	1000000ULL

int zcoll_comm_set_idle(struct zcoll_comm *comm, void (*fn)(void *arg), void *arg)
{
	int ret = zc_check_owner(comm);

	/* A blocking ioctl has no naps, so a request is waited for instead */
	if (!ret && fn)
		ret = zc_need_ring(comm);
	if (ret)
		return ret;
	comm->idle_arg = arg;
	comm->idle = fn;
	return 0;
}

/* The caller waits: call its function, if it has one */
void zc_idle(struct zcoll_comm *comm)
{
	if (comm->idle)
		comm->idle(comm->idle_arg);
}

/**
 * zc_nap - how long to sleep before the next zc_idle()
 * @comm: the communicator
 * @nap: 0 when the wait begins; ours
 * @left: the whole time that there is, ns
 *
 * Return: at most @left.
 */
uint64_t zc_nap(const struct zcoll_comm *comm, uint64_t *nap, uint64_t left)
{
	if (!comm->idle)
		return left;
	*nap = *nap ? 2 * *nap : NAP_MIN_NS;
	if (*nap > NAP_MAX_NS)
		*nap = NAP_MAX_NS;
	return *nap < left ? *nap : left;
}
