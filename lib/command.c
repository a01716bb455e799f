// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Commands: the arguments of a call, checked and put into a struct zcoll_cmd, and
 * that into an SQE. The 80 bytes lie in the SQE itself where the ring has SQEs of
 * 128 bytes, else beside it.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

/* Checks of one buffer of @len bytes */
static int check_buffer(struct zcoll_comm *comm, const char *what, const void *addr, uint64_t len)
{
	if (!addr && len)
		return zc_fail(comm, -EFAULT, "rank %u: %s is NULL and count is not 0", comm->rank,
			       what);
	if ((uintptr_t)addr + len < (uintptr_t)addr)
		return zc_fail(comm, -EOVERFLOW, "rank %u: %s %p and %llu bytes leave the address space",
			       comm->rank, what, addr, (unsigned long long)len);
	return 0;
}

static bool overlap(const void *a, const void *b, uint64_t len)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x != y && (x < y ? y - x : x - y) < len;
}

/**
 * zc_cmd_init - check the arguments of a call and make a command of them
 * @comm: the communicator
 * @cmd: output, all but its sequence number
 * @send: as in zcoll_allreduce(), like the rest
 * @recv: the result
 * @count: elements
 * @dtype: their type
 * @op: the operator
 *
 * All that the library can know to be wrong is found here, before a number is
 * drawn.
 */
int zc_cmd_init(struct zcoll_comm *comm, struct zcoll_cmd *cmd, const void *send,
		const void *recv, uint64_t count, int dtype, int op)
{
	uint64_t len;
	int ret;

	ret = zc_check_owner(comm);
	if (ret)
		return ret;
	if (!zcoll_dtype_size(dtype))
		return zc_fail(comm, -EINVAL, "rank %u: there is no element type %d", comm->rank,
			       dtype);
	if (!zcoll_op_name(op))
		return zc_fail(comm, -EINVAL, "rank %u: there is no operator %d", comm->rank, op);
	if (!(comm->types >> dtype & 1) || !(comm->ops >> op & 1))
		return zc_fail(comm, -EOPNOTSUPP, "rank %u: the module does not know %s of %s",
			       comm->rank, zcoll_op_name(op), zcoll_dtype_name(dtype));
	if (__builtin_mul_overflow(count, zcoll_dtype_size(dtype), &len) || len > SIZE_MAX)
		return zc_fail(comm, -EOVERFLOW, "rank %u: %llu elements of %s are too many bytes",
			       comm->rank, (unsigned long long)count, zcoll_dtype_name(dtype));
	ret = check_buffer(comm, "send", send, len);
	if (!ret)
		ret = check_buffer(comm, "recv", recv, len);
	if (ret)
		return ret;
	if (overlap(send, recv, len))
		return zc_fail(comm, -EINVAL, "rank %u: send %p and recv %p of %llu bytes overlap in part",
			       comm->rank, send, recv, (unsigned long long)len);

	memset(cmd, 0, sizeof(*cmd));
	cmd->version = ZCOLL_CMD_VERSION;
	cmd->dtype = dtype;
	cmd->op = op;
	cmd->count = count;
	cmd->plan = atomic_load(&comm->plan);
	zc_range_find(comm, send, len, &cmd->send_buf, &cmd->send);
	zc_range_find(comm, recv, len, &cmd->recv_buf, &cmd->recv);
	return 0;
}

/**
 * zc_cmd_to_sqe - fill an SQE
 * @sqe: overwritten, with the second 64 bytes if the ring has them
 * @ring_flags: flags the ring was made with
 * @fd: the endpoint
 * @at: where the command stays if it does not fit the SQE
 * @cmd: the command
 */
void zc_cmd_to_sqe(struct io_uring_sqe *sqe, unsigned int ring_flags, int fd,
		   struct zcoll_cmd *at, const struct zcoll_cmd *cmd)
{
	struct zcoll_cmd_ptr ptr = { .addr = (uintptr_t)at };
	const size_t payload = offsetof(struct io_uring_sqe, cmd);
	void *dst = (char *)sqe + payload;

	if (ring_flags & IORING_SETUP_SQE128) {
		memset(sqe, 0, 2 * sizeof(*sqe));
		memcpy(dst, cmd, sizeof(*cmd));
	} else {
		memset(sqe, 0, sizeof(*sqe));
		*at = *cmd;
		memcpy(dst, &ptr, sizeof(ptr));
	}
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = ZCOLL_IOC_ALLREDUCE;
}

static const struct zcoll_cmd *cmd_of_sqe(const struct io_uring_sqe *sqe, unsigned int ring_flags)
{
	const char *payload = (const char *)sqe + offsetof(struct io_uring_sqe, cmd);
	struct zcoll_cmd_ptr ptr;

	if (ring_flags & IORING_SETUP_SQE128)
		return (const void *)payload;
	memcpy(&ptr, payload, sizeof(ptr));
	return (const void *)(uintptr_t)ptr.addr;
}

int zcoll_prep_allreduce(struct io_uring_sqe *sqe, unsigned int ring_flags,
			 struct zcoll_comm *comm, struct zcoll_cmd *at,
			 const void *send, void *recv, uint64_t count, int dtype, int op)
{
	struct zcoll_cmd cmd;
	int ret;

	if (!at && !(ring_flags & IORING_SETUP_SQE128))
		return zc_fail(comm, -EINVAL, "rank %u: an SQE of 64 bytes needs cmd, and it is NULL",
			       comm->rank);
	ret = zc_cmd_init(comm, &cmd, send, recv, count, dtype, op);
	if (ret)
		return ret;
	cmd.seq = zc_seq_draw_now(comm);
	zc_cmd_to_sqe(sqe, ring_flags, comm->fd, at, &cmd);
	return 0;
}

uint64_t zcoll_sqe_seq(const struct io_uring_sqe *sqe, unsigned int ring_flags)
{
	return cmd_of_sqe(sqe, ring_flags)->seq;
}

int zcoll_unprep(struct zcoll_comm *comm, uint64_t seq)
{
	uint64_t next = atomic_load(&comm->next);
	int ret = zc_check_owner(comm);

	if (ret)
		return ret;
	if (seq >= next || zc_seq_accepted(comm, seq))
		return zc_fail(comm, -EINVAL, "rank %u: operation %llu %s", comm->rank,
			       (unsigned long long)seq,
			       seq >= next ? "was never prepared" : "has been submitted");
	if (!zc_seq_give_back(comm, seq))
		return zc_fail(comm, -EBUSY,
			       "rank %u: operation %llu cannot be taken back, later ones up to %llu have been prepared: take these back first, or submit it, or abort",
			       comm->rank, (unsigned long long)seq, (unsigned long long)next - 1);
	return 0;
}
