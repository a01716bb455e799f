/* SPDX-License-Identifier: GPL-2.0 */
/*
 * zcoll commands on an io_uring: the payload is the command itself in rings of
 * 128-byte SQEs, and the address of it (struct zcoll_cmd_ptr) in ordinary ones.
 */
#ifndef ZCOLL_RING_H
#define ZCOLL_RING_H

#include <liburing.h>
#include "zcoll_test.h"

static inline int ring_init(struct io_uring *ring, unsigned int entries,
			    unsigned int flags)
{
	return io_uring_queue_init(entries, ring, flags);
}

/* Where the payload begins; the field itself is declared without a length */
static inline void *ring_payload(struct io_uring_sqe *sqe)
{
	return (char *)sqe + offsetof(struct io_uring_sqe, cmd);
}

/* An empty SQE; a test never fills its ring */
static inline struct io_uring_sqe *ring_sqe(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		abort();
	memset(sqe, 0, ring->flags & IORING_SETUP_SQE128 ? 128 : 64);
	return sqe;
}

/* An empty uring command, its payload all zero */
static inline struct io_uring_sqe *ring_cmd(struct io_uring *ring, int fd,
					    uint32_t cmd_op, uint64_t user_data)
{
	struct io_uring_sqe *sqe = ring_sqe(ring);

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = cmd_op;
	sqe->user_data = user_data;
	return sqe;
}

/* An operation in the form that this ring has; *@cmd stays until submission */
static inline struct io_uring_sqe *ring_op_of(struct io_uring *ring, int fd,
					      unsigned int collective,
					      const struct zcoll_cmd *cmd, uint64_t user_data)
{
	struct io_uring_sqe *sqe = ring_cmd(ring, fd, ZCOLL_IOC_OP(collective), user_data);
	struct zcoll_cmd_ptr ptr = { .addr = (uintptr_t)cmd };

	if (ring->flags & IORING_SETUP_SQE128)
		memcpy(ring_payload(sqe), cmd, sizeof(*cmd));
	else
		memcpy(ring_payload(sqe), &ptr, sizeof(ptr));
	return sqe;
}

static inline struct io_uring_sqe *ring_op(struct io_uring *ring, int fd,
					   const struct zcoll_cmd *cmd, uint64_t user_data)
{
	return ring_op_of(ring, fd, ZCOLL_ALLREDUCE, cmd, user_data);
}

/* The next completion: its result, or -ETIME if there is none in @ms */
static inline int ring_next(struct io_uring *ring, unsigned int ms, uint64_t *user_data)
{
	struct __kernel_timespec ts = {
		.tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * 1000000LL,
	};
	struct io_uring_cqe *cqe;
	int ret;

	do {
		ret = io_uring_wait_cqe_timeout(ring, &cqe, &ts);
	} while (ret == -EINTR);
	if (ret < 0)
		return ret;
	ret = cqe->res;
	if (user_data)
		*user_data = cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

/* Submit one operation; its result if it ends within @ms, else -ETIME */
static inline int ring_do(struct io_uring *ring, int fd, const struct zcoll_cmd *cmd,
			  unsigned int ms)
{
	int ret;

	ring_op(ring, fd, cmd, 0);
	ret = io_uring_submit(ring);
	if (ret < 0)
		return ret;
	return ring_next(ring, ms, NULL);
}

/* Submit one operation and leave it in flight: 0, or the ring's own error */
static inline int ring_send(struct io_uring *ring, int fd, const struct zcoll_cmd *cmd,
			    uint64_t user_data)
{
	int ret;

	ring_op(ring, fd, cmd, user_data);
	ret = io_uring_submit(ring);
	return ret < 0 ? ret : 0;
}

/*
 * The same, and wait until the driver has it: io_uring may hand a command to a
 * thread of its own, from where it arrives some time after submission.
 */
static inline int ring_send_in(struct io_uring *ring, int ep, const struct zcoll_cmd *cmd,
			       uint64_t user_data)
{
	int ret = ring_send(ring, ep, cmd, user_data);

	if (ret)
		return ret;
	return zt_until(ZT_LONG_MS, zt_wait(ep, cmd->seq, 0) != -ENOENT || zt_revoked(ep)) ?
		0 : -ETIME;
}

#endif /* ZCOLL_RING_H */
