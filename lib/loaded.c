// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Plans in the kernel: loaded, named by number, and used by a communicator's calls.
 */
#include <errno.h>

#include <zcoll_plan.h>

#include "internal.h"

int zcoll_plan_load(struct zcoll_comm *comm, const struct zcoll_plan *plan, uint32_t *number)
{
	char why[ZCOLL_TEXT_MAX] = "";
	struct zcoll_plan_load args = {
		.size = sizeof(args),
		.plan = (uintptr_t)plan,
		.bytes = plan->size,
		.text = (uintptr_t)why,
		.text_len = sizeof(why),
	};
	int ret = zc_check_owner(comm);

	if (ret)
		return ret;
	ret = zc_ioctl(comm->fd, ZCOLL_IOC_PLAN_LOAD, &args);
	if (ret)
		return *why ? zc_fail(comm, ret, "%s", why) :
			      zc_fail(comm, ret, "rank %u: plan %s: the module refuses it",
				      comm->rank, plan->name);
	*number = args.number;
	return 0;
}

int zcoll_plan_unload(struct zcoll_comm *comm, uint32_t number)
{
	struct zcoll_plan_unload args = { .size = sizeof(args), .number = number };
	int ret = zc_check_owner(comm);

	if (ret)
		return ret;
	ret = zc_ioctl(comm->fd, ZCOLL_IOC_PLAN_UNLOAD, &args);
	if (ret)
		return zc_fail(comm, ret, "rank %u: no plan has number %u", comm->rank, number);
	return 0;
}

int zcoll_plan_use(struct zcoll_comm *comm, unsigned int collective, uint32_t number)
{
	int ret = zc_check_owner(comm);

	if (ret)
		return ret;
	if (!collective || collective >= ZCOLL_NR_COLLECTIVES)
		return zc_fail(comm, -EINVAL, "rank %u: there is no collective %u", comm->rank,
			       collective);
	atomic_store(&comm->used_plans[collective], number);
	return 0;
}
