// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Blocking operations: one ioctl each. A signal interrupts the wait and not the
 * operation; the same ioctl again picks it up by its sequence number.
 *
 * The kernel forgets a result when this rank is a whole window further. Where
 * threads share a communicator, that can happen to one that was slow to collect.
 */
#include <errno.h>

#include "internal.h"

int zcoll_call(struct zcoll_comm *comm, const struct zcoll_call *call)
{
	struct zcoll_cmd cmd;
	uint64_t seq;
	int ret;

	ret = zc_cmd_init(comm, &cmd, call);
	if (ret)
		return ret;
	ret = zc_seq_draw(comm, &seq);
	if (ret)
		return ret;

	cmd.seq = seq;
	do {
		ret = zc_ioctl(comm->fd, ZCOLL_IOC_OP(call->collective), &cmd);
	} while (ret == -EINTR);
	if ((ret == -EEXIST || ret == -ENOENT) && zc_seq_succeeded(comm, seq))
		ret = 0;
	return zc_op_ended(comm, seq, ret);
}

int zcoll_comm_set_flags(struct zcoll_comm *comm, unsigned int flags)
{
	int ret = zc_check_owner(comm);

	if (ret)
		return ret;
	if (flags & ~ZCOLL_CMD_FLAGS)
		return zc_fail(comm, -EINVAL, "rank %u: unknown flags 0x%x", comm->rank,
			       flags & ~ZCOLL_CMD_FLAGS);
	atomic_store(&comm->flags, flags);
	return 0;
}
