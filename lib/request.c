// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Requests: operations that go on while the caller does something else.
 *
 * They are submitted as io_uring commands, on a ring that the communicator makes
 * at the first one. To wait, a caller enters the kernel by ZCOLL_IOC_WAIT, where
 * it helps with the work; the CQE of the operation may come later, when the thread
 * that submitted it next runs task work. So a request ends with whichever of the
 * two is seen first, and is freed when its result has been taken and its CQE has
 * been reaped.
 *
 * Any thread may submit, wait and reap; ring_lock has one at a time do so, and the
 * ring is made without the flags that bind it to a thread.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Longest sleep between looks at the ring, which another thread may have reaped */
#define LOOK_AGAIN_MS	10

struct zcoll_req {
	struct zcoll_comm *comm;
	struct zcoll_req *next;		/* in comm->reqs, ring_lock */
	unsigned int collective;
	struct zcoll_cmd cmd;
	bool reaped;			/* the CQE was seen, and gave result */
	bool taken;			/* the caller has the result */
	int result;
};

/* ------------------------------------------------------- the list, lock held */

static void list_del(struct zcoll_comm *comm, struct zcoll_req *req)
{
	struct zcoll_req **at = &comm->reqs;

	while (*at != req)
		at = &(*at)->next;
	*at = req->next;
}

static void put_if_over(struct zcoll_req *req)
{
	if (!req->reaped || !req->taken)
		return;
	list_del(req->comm, req);
	free(req);
}

/* ------------------------------------------------------- the ring, lock held */

static int ring_init(struct zcoll_comm *comm)
{
	static const unsigned int flags[] = {
		IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SQE128,
		0,
	};
	int ret = -EINVAL;

	for (size_t i = 0; ret == -EINVAL && i < ARRAY_SIZE(flags); i++)
		ret = io_uring_queue_init(comm->window, &comm->ring, flags[i]);
	if (ret)
		return zc_fail(comm, ret, "rank %u: no io_uring for non-blocking calls: %s (see the sysctl kernel.io_uring_disabled, and seccomp of the container)",
			       comm->rank, strerror(-ret));
	comm->has_ring = true;
	return 0;
}

static void reap(struct zcoll_comm *comm)
{
	struct io_uring_cqe *cqe;
	struct zcoll_req *req;

	while (!io_uring_peek_cqe(&comm->ring, &cqe)) {
		req = io_uring_cqe_get_data(cqe);
		if (req) {
			req->result = cqe->res;
			req->reaped = true;
			put_if_over(req);
		}
		io_uring_cqe_seen(&comm->ring, cqe);
	}
}

/* What io_uring_submit() left in the ring must do nothing when it is submitted */
static void make_nop(struct io_uring_sqe *sqe)
{
	sqe->opcode = IORING_OP_NOP;
	sqe->fd = -1;
	sqe->cmd_op = 0;
	sqe->user_data = 0;
}

static int submit(struct zcoll_comm *comm, struct zcoll_req *req)
{
	struct io_uring_sqe *sqe;
	int ret;

	reap(comm);
	sqe = io_uring_get_sqe(&comm->ring);
	if (!sqe)
		return -EBUSY;
	zc_cmd_to_sqe(sqe, comm->ring.flags, comm->fd, req->collective, &req->cmd, &req->cmd);
	io_uring_sqe_set_data(sqe, req);
	do {
		ret = io_uring_submit(&comm->ring);
	} while (ret == -EINTR);
	if (ret < 0) {
		make_nop(sqe);
		return ret;
	}

	req->next = comm->reqs;
	comm->reqs = req;
	return 0;
}

/* ------------------------------------------------------------------ starting */

/* If the operation has failed already: its error, and there is no request */
static int early_failure(struct zcoll_comm *comm, struct zcoll_req *req)
{
	int ret = 0;

	pthread_mutex_lock(&comm->ring_lock);
	reap(comm);
	if (req->reaped && req->result < 0) {
		ret = req->result;
		list_del(comm, req);
	}
	pthread_mutex_unlock(&comm->ring_lock);
	return ret;
}

/*
 * The kernel accepts or refuses while it is given the command. A refusal is an error
 * of this call, and its number is given back before another is drawn.
 */
static int start(struct zcoll_comm *comm, struct zcoll_req *req)
{
	const uint64_t seq = req->cmd.seq;
	int ret;

	pthread_mutex_lock(&comm->ring_lock);
	req->reaped = false;
	ret = submit(comm, req);
	pthread_mutex_unlock(&comm->ring_lock);
	if (!ret)
		ret = early_failure(comm, req);
	return ret ? zc_op_ended(comm, seq, ret) : 0;
}

/* Make the ring, if it is not there */
int zc_need_ring(struct zcoll_comm *comm)
{
	int ret = 0;

	pthread_mutex_lock(&comm->ring_lock);
	if (!comm->has_ring)
		ret = ring_init(comm);
	pthread_mutex_unlock(&comm->ring_lock);
	return ret;
}

int zcoll_icall(struct zcoll_comm *comm, const struct zcoll_call *call, struct zcoll_req **out)
{
	struct zcoll_req *req = calloc(1, sizeof(*req));
	uint64_t seq;
	int ret;

	if (!req)
		return zc_fail(comm, -ENOMEM, "rank %u: no memory for a request", comm->rank);
	req->comm = comm;
	req->collective = call->collective;
	ret = zc_cmd_init(comm, &req->cmd, call);
	if (!ret)
		ret = zc_need_ring(comm);
	if (!ret)
		ret = zc_seq_draw(comm, &seq);
	if (!ret) {
		zc_cmd_number(comm, &req->cmd, call, seq);
		ret = start(comm, req);
	}
	if (ret) {
		free(req);
		return ret;
	}
	*out = req;
	return 0;
}

/**
 * zc_request_do - do an operation, with naps while it is waited for
 * @comm: has a ring
 * @collective: what @cmd is of
 * @cmd: with its number
 *
 * Return: the result, of zc_op_ended().
 */
int zc_request_do(struct zcoll_comm *comm, unsigned int collective, const struct zcoll_cmd *cmd)
{
	struct zcoll_req *req = calloc(1, sizeof(*req));
	int ret;

	if (!req)
		return zc_op_ended(comm, cmd->seq, -ENOMEM);
	req->comm = comm;
	req->collective = collective;
	req->cmd = *cmd;
	ret = start(comm, req);
	if (!ret)
		return zcoll_wait(req, ZCOLL_WAIT_FOREVER);
	free(req);
	return ret;
}

/* ------------------------------------------------------------------- waiting */

/* If the CQE was seen: take the result, and the request is gone */
static bool take_cqe(struct zcoll_comm *comm, struct zcoll_req *req, int *result)
{
	bool ended;

	pthread_mutex_lock(&comm->ring_lock);
	reap(comm);
	ended = req->reaped;
	if (ended) {
		*result = req->result < 0 ? req->result : 0;
		req->taken = true;
		put_if_over(req);
	}
	pthread_mutex_unlock(&comm->ring_lock);
	return ended;
}

/* The kernel has given the result before the CQE: the CQE may find the rest */
static void take_early(struct zcoll_comm *comm, struct zcoll_req *req)
{
	pthread_mutex_lock(&comm->ring_lock);
	reap(comm);
	req->taken = true;
	put_if_over(req);
	pthread_mutex_unlock(&comm->ring_lock);
}

/*
 * The kernel does not know the operation: io_uring has not issued it yet, or has
 * been refused, or the result is long past. The CQE tells.
 */
static void wait_for_cqe(struct zcoll_comm *comm, uint64_t left)
{
	struct pollfd pfd = { .fd = comm->ring.ring_fd, .events = POLLIN };
	uint64_t ms = left / 1000000;

	poll(&pfd, 1, ms < LOOK_AGAIN_MS ? (int)ms : LOOK_AGAIN_MS);
}

int zcoll_wait(struct zcoll_req *req, uint64_t timeout_ns)
{
	struct zcoll_comm *comm = req->comm;
	const uint64_t seq = req->cmd.seq;
	const uint64_t end = zc_after(timeout_ns);
	struct zcoll_wait wait = { .size = sizeof(wait), .seq = seq };
	uint64_t nap = 0;
	int ret;

	ret = zc_check_owner(comm);
	if (ret)
		return ret;
	for (;;) {
		if (take_cqe(comm, req, &ret))
			return zc_op_ended(comm, seq, ret);

		wait.timeout_ns = zc_nap(comm, &nap, zc_left(end));
		ret = zc_ioctl(comm->fd, ZCOLL_IOC_WAIT, &wait);
		if (!ret) {
			take_early(comm, req);
			return zc_op_ended(comm, seq, wait.result);
		}
		if (!zc_left(end))
			break;
		if (ret != -EINTR && ret != -ETIMEDOUT)
			wait_for_cqe(comm, zc_nap(comm, &nap, zc_left(end)));
		zc_idle(comm);
	}
	return take_cqe(comm, req, &ret) ? zc_op_ended(comm, seq, ret) : -EAGAIN;
}

int zcoll_test(struct zcoll_req *req)
{
	return zcoll_wait(req, 0);
}

uint64_t zcoll_req_seq(const struct zcoll_req *req)
{
	return req->cmd.seq;
}

int zcoll_req_error(struct zcoll_req *req, char *buf, size_t len)
{
	char text[ZCOLL_TEXT_MAX] = "";
	struct zcoll_status st = { .text = (uintptr_t)text, .text_len = sizeof(text) };
	int ret = zcoll_comm_pending(req->comm, req->cmd.seq, &st);

	if (ret)
		return ret;
	if (buf && len)
		snprintf(buf, len, "%s", text);
	return strlen(text);
}

/* ------------------------------------------------------------------- the end */

/* Are there requests that the caller still has to wait for? */
bool zc_requests_busy(struct zcoll_comm *comm)
{
	const struct zcoll_req *req;

	pthread_mutex_lock(&comm->ring_lock);
	if (comm->has_ring)
		reap(comm);
	for (req = comm->reqs; req && req->taken; req = req->next)
		;
	pthread_mutex_unlock(&comm->ring_lock);
	return req;
}

/* Their operations have ended, or are another process' */
void zc_requests_free(struct zcoll_comm *comm)
{
	struct zcoll_req *req;

	if (comm->has_ring)
		io_uring_queue_exit(&comm->ring);
	while ((req = comm->reqs)) {
		comm->reqs = req->next;
		free(req);
	}
}
