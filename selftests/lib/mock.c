// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <liburing.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mock.h"

struct mock mock;

int __wrap_open(const char *path, int flags, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_io_uring_submit(struct io_uring *ring);
int __real_io_uring_submit(struct io_uring *ring);

/* A communicator of a fresh mock: rank 0 of 2 */
struct zcoll_comm *mock_comm(uint64_t deadline_ns)
{
	static char text[ZCOLL_TEXT_MAX];
	struct zcoll_comm *comm;
	struct zcoll_attr attr;

	memset(&mock, 0, sizeof(mock));
	zcoll_attr_init(&attr);
	attr.nranks = 2;
	attr.deadline_ns = deadline_ns;
	attr.error = text;
	attr.error_len = sizeof(text);
	if (zcoll_comm_create(&comm, &attr)) {
		printf("Bail out! %s\n", text);
		exit(1);
	}
	return comm;
}

const char *mock_text(struct zcoll_comm *comm)
{
	static char text[ZCOLL_TEXT_MAX];

	zcoll_comm_error(comm, text, sizeof(text));
	return text;
}

void mock_end(uint64_t seq, int result)
{
	mock.ops[seq].ended = true;
	mock.ops[seq].result = result;
}

static uint64_t oldest(void)
{
	uint64_t seq = 0;

	while (mock.ops[seq].ended)
		seq++;
	return seq;
}

static int submit(unsigned long number, const struct zcoll_cmd *cmd)
{
	struct mock_op *op = &mock.ops[cmd->seq];
	int refuse = mock.refuse;

	mock.calls++;
	mock.last = *cmd;
	mock.number = number;
	if (mock.on_submit)
		mock.on_submit();
	mock.refuse = 0;
	if (refuse)
		return refuse;
	if (cmd->seq >= oldest() + MOCK_WINDOW)
		return -ENOBUFS;
	if (op->submitted && !mock.interrupt)
		return op->ended ? op->result : -EEXIST;
	op->submitted = true;
	if (!(mock.hold >> cmd->seq & 1)) {
		mock_end(cmd->seq, mock.fail);
		mock.fail = 0;
	}
	return op->result;
}

static int blocking(unsigned long number, const struct zcoll_cmd *cmd)
{
	if (mock.interrupt) {
		mock.interrupt--;
		mock.calls++;
		mock.last = *cmd;
		return -EINTR;
	}
	return submit(number, cmd);
}

/* The same plan has one number; a number is never given again */
static int plan_load(struct zcoll_plan_load *load)
{
	const struct zcoll_plan *plan = (const void *)(uintptr_t)load->plan;
	uint32_t number = 1;

	mock.loads++;
	if (mock.refuse) {
		snprintf((char *)(uintptr_t)load->text, load->text_len,
			 "the kernel says: no such plan");
		return mock.refuse;
	}
	while (number < MOCK_PLANS && mock.plans[number] && mock.plans[number] != plan->id)
		number++;
	if (number == MOCK_PLANS)
		return -ENOSPC;
	mock.loaded += !mock.plans[number];
	mock.plans[number] = plan->id;
	load->number = number;
	return 0;
}

static int plan_unload(const struct zcoll_plan_unload *unload)
{
	if (unload->number >= MOCK_PLANS || !mock.plans[unload->number])
		return -ENOENT;
	mock.plans[unload->number] = ~0ULL;
	mock.loaded--;
	return 0;
}

static int wait_op(struct zcoll_wait *wait)
{
	struct mock_op *op = &mock.ops[wait->seq];

	mock.looks++;
	if (mock.on_wait)
		mock.on_wait(wait->seq);
	if (!op->submitted)
		return -ENOENT;
	if (!op->ended) {
		if (wait->timeout_ns != ZCOLL_WAIT_FOREVER)
			usleep(wait->timeout_ns / 1000);
		return -ETIMEDOUT;
	}
	wait->result = op->result;
	return 0;
}

static void put_text(uint64_t at, uint32_t len, const char *text)
{
	if (at && len)
		snprintf((char *)(uintptr_t)at, len, "%s", text);
}

static int status(struct zcoll_status *st)
{
	const struct mock_op *op = &mock.ops[st->seq];

	mock.looks++;
	st->nranks = 2;
	st->oldest = oldest();
	st->arrived = mock.absent ? 1 : 2;
	if (st->flags & ZCOLL_STATUS_COMM) {
		st->state = mock.aborted ? ZCOLL_STATE_DONE : ZCOLL_STATE_RUNNING;
		if (mock.aborted)
			st->result = -ECANCELED;
		if (mock.absent && st->missing_len)
			*(uint32_t *)(uintptr_t)st->missing = 1;
		return 0;
	}
	st->state = op->ended ? ZCOLL_STATE_DONE : op->submitted ? ZCOLL_STATE_RUNNING :
		    ZCOLL_STATE_REJECTED;
	put_text(st->text, st->text_len, op->ended ? "the kernel says: failed" :
		 op->submitted ? "the kernel says: waits for rank 1" : "the kernel says: refused");
	return 0;
}

static int join(const struct zcoll_join *join)
{
	mock.join = *join;
	if (join->node_map)
		memcpy(mock.node_map, (void *)(uintptr_t)join->node_map,
		       join->nranks * sizeof(uint32_t));
	return eventfd(mock.absent ? 0 : 1, EFD_CLOEXEC);
}

/* "node 3", and no NUL */
static int address(struct zcoll_address *address)
{
	unsigned int node = mock.join.flags & ZCOLL_JOIN_AGGREGATE ? mock.join.node :
			    mock.node_map[mock.join.rank];
	char text[20];

	address->address_len = sprintf(text, "node %u", node);
	memcpy((void *)(uintptr_t)address->address, text, address->address_len);
	return mock.refuse_address;
}

static int peers(const struct zcoll_peers *peers)
{
	mock.introduced++;
	if (mock.refuse_peers) {
		put_text(peers->text, peers->text_len, "the kernel says: bad address");
		return mock.refuse_peers;
	}
	memcpy(mock.peers, (void *)(uintptr_t)peers->addresses,
	       peers->nodes * sizeof(mock.peers[0]));
	return 0;
}

static void info(struct zcoll_info *info)
{
	info->abi_version = ZCOLL_ABI_VERSION;
	info->types = (1 << ZCOLL_NR_TYPES) - 2;
	info->ops = (1 << ZCOLL_NR_OPS) - 2;
	info->window = MOCK_WINDOW;
}

static int call(unsigned long request, void *arg)
{
	switch (request) {
	case ZCOLL_IOC_INFO:
		info(arg);
		return 0;
	case ZCOLL_IOC_JOIN:
		return join(arg);
	case ZCOLL_IOC_ADDRESS:
		return address(arg);
	case ZCOLL_IOC_PEERS:
		return peers(arg);
	case ZCOLL_IOC_REGISTER:
		mock.buf = *(struct zcoll_buf *)arg;
		if (mock.refuse) {
			put_text(mock.buf.text, mock.buf.text_len, "the kernel says: limit");
			return mock.refuse;
		}
		((struct zcoll_buf *)arg)->handle = ++mock.handles;
		return 0;
	case ZCOLL_IOC_ALLREDUCE:
	case ZCOLL_IOC_REDUCE_SCATTER:
	case ZCOLL_IOC_ALLGATHER:
	case ZCOLL_IOC_BROADCAST:
	case ZCOLL_IOC_REDUCE:
	case ZCOLL_IOC_BARRIER:
		return blocking(request, arg);
	case ZCOLL_IOC_PLAN_LOAD:
		return plan_load(arg);
	case ZCOLL_IOC_PLAN_UNLOAD:
		return plan_unload(arg);
	case ZCOLL_IOC_WAIT:
		return wait_op(arg);
	case ZCOLL_IOC_STATUS:
		return status(arg);
	case ZCOLL_IOC_ABORT:
		mock.aborted = true;
		return 0;
	case ZCOLL_IOC_LEAVE:
		mock.leaves++;
		return 0;
	case ZCOLL_IOC_UNREGISTER:
	case ZCOLL_IOC_STATS:
		return 0;
	default:
		return -ENOTTY;
	}
}

int __wrap_open(const char *path, int flags, ...)
{
	(void)path;
	if (mock.refuse_open) {
		errno = mock.refuse_open;
		return -1;
	}
	return eventfd(0, flags & O_CLOEXEC ? EFD_CLOEXEC : 0);
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;
	int ret;

	(void)fd;
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	ret = call(request, arg);
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/*
 * A command in the real ring becomes something real that ends as it should: at
 * once with 0, at once with an error, or not before the ring does.
 */
int __wrap_io_uring_submit(struct io_uring *ring)
{
	unsigned int last = (ring->sq.sqe_tail - 1) & *ring->sq.kring_mask;
	struct io_uring_sqe *sqe = &ring->sq.sqes[last << !!(ring->flags & IORING_SETUP_SQE128)];
	static struct __kernel_timespec soon = { .tv_nsec = 2000000 };
	struct zcoll_cmd cmd;
	__u64 user_data = sqe->user_data;
	int ret;

	memcpy(&cmd, (char *)sqe + offsetof(struct io_uring_sqe, cmd), sizeof(cmd));
	ret = submit(sqe->cmd_op, &cmd);
	memset(sqe, 0, sizeof(*sqe));
	if (ret) {
		sqe->opcode = IORING_OP_CLOSE;	/* of no file: -EBADF */
		sqe->fd = 1000000;
	} else if (mock.hold >> cmd.seq & 1 && mock.expire) {
		sqe->opcode = IORING_OP_TIMEOUT;
		sqe->addr = (uintptr_t)&soon;
		sqe->len = 1;
	} else if (mock.hold >> cmd.seq & 1) {
		sqe->opcode = IORING_OP_POLL_ADD;	/* of an event that does not come */
		sqe->fd = eventfd(0, EFD_CLOEXEC);
		sqe->poll32_events = 1;
	}
	sqe->user_data = user_data;
	return __real_io_uring_submit(ring);
}
