// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Blocking operations: by mailboxes (mail/), or one ioctl each. A signal interrupts the wait and
 * not the operation; the same ioctl again picks it up by its sequence number. Where the program
 * has something to do while it waits (idle.c), they are requests that are waited for at once.
 *
 * The kernel forgets a result when this rank is a whole window further. Where
 * threads share a communicator, that can happen to one that was slow to collect.
 */
#include <errno.h>

#include "internal.h"

/* By the kernel, with its number drawn */
static int submit(struct zcoll_comm *comm, const struct zcoll_call *call, struct zcoll_cmd *cmd,
		  uint64_t seq)
{
	bool again = false;
	int ret;

	zc_cmd_number(comm, cmd, call, seq);
	if (comm->idle)
		return zc_request_do(comm, call->collective, cmd);
	while ((ret = zc_ioctl(comm->fd, ZCOLL_IOC_OP(call->collective), cmd)) == -EINTR)
		again = true;
	/* Only of what it has accepted once can the kernel have forgotten the result */
	if (again && (ret == -EEXIST || ret == -ENOENT) && zc_seq_succeeded(comm, seq))
		ret = 0;
	return zc_op_ended(comm, seq, ret);
}

/* On one node there is nothing left to fail before a number is drawn */
static int call_here(struct zcoll_comm *comm, const struct zc_sides *sides)
{
	uint64_t seq, deadline_ns;
	struct zcoll_cmd cmd;
	int ret;

	ret = zc_seq_draw(comm, &seq);
	if (ret || zc_mail_call(comm, sides, seq, &ret, &deadline_ns))
		return ret;
	zc_cmd_make(comm, &cmd, sides);
	if (deadline_ns)
		cmd.deadline_ns = deadline_ns;
	return submit(comm, sides->call, &cmd, seq);
}

int zcoll_call(struct zcoll_comm *comm, const struct zcoll_call *call)
{
	struct zc_sides sides;
	struct zcoll_cmd cmd;
	uint64_t seq;
	int ret;

	ret = zc_call_check(comm, call, &sides);
	if (ret)
		return ret;
	if (comm->mail)
		return call_here(comm, &sides);
	ret = zc_cmd_make(comm, &cmd, &sides);
	if (!ret)
		ret = zc_seq_draw(comm, &seq);
	return ret ? ret : submit(comm, call, &cmd, seq);
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
