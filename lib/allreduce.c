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

int zcoll_allreduce(struct zcoll_comm *comm, const void *send, void *recv,
		    uint64_t count, int dtype, int op)
{
	struct zcoll_cmd cmd;
	uint64_t seq;
	int ret;

	ret = zc_cmd_init(comm, &cmd, send, recv, count, dtype, op);
	if (ret)
		return ret;
	ret = zc_seq_draw(comm, &seq);
	if (ret)
		return ret;

	cmd.seq = seq;
	do {
		ret = zc_ioctl(comm->fd, ZCOLL_IOC_ALLREDUCE, &cmd);
	} while (ret == -EINTR);
	if ((ret == -EEXIST || ret == -ENOENT) && zc_seq_succeeded(comm, seq))
		ret = 0;
	return zc_op_ended(comm, seq, ret);
}

int zcoll_barrier(struct zcoll_comm *comm)
{
	return zcoll_allreduce(comm, NULL, NULL, 0, ZCOLL_INT8, ZCOLL_SUM);
}
