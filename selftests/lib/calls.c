// SPDX-License-Identifier: GPL-2.0
/*
 * Calls on a mock of the device: sequence numbers above all, because a number
 * that is drawn and not used lets the other ranks wait for ever.
 */
#include <errno.h>
#include <liburing.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mock.h"
#include "tap.h"

#define MS	1000000ULL

static float in[16], out[16];
static struct zcoll_comm *comm;

static int reduce(void)
{
	return zcoll_allreduce(comm, in, out, 16, ZCOLL_FP32, ZCOLL_SUM);
}

static void test_command(void)
{
	comm = mock_comm(0);
	is(reduce(), 0, "an all-reduce");
	ok(mock.last.version == ZCOLL_CMD_VERSION && mock.last.dtype == ZCOLL_FP32 &&
	   mock.last.op == ZCOLL_SUM && mock.last.count == 16 && mock.last.seq == 0 &&
	   mock.last.send == (uintptr_t)in && mock.last.recv == (uintptr_t)out &&
	   !mock.last.send_buf && !mock.last.recv_buf && !mock.last.deadline_ns,
	   "its command holds what was asked for");
	is(zcoll_allreduce(comm, out, out, 16, ZCOLL_FP64, ZCOLL_MAX) ||
	   mock.last.send != mock.last.recv, 0, "in place is the same address twice");
	is(zcoll_barrier(comm) || mock.last.count, 0, "a barrier has no elements");
	is(mock.last.seq, 2, "calls are numbered in order");
	is(mock.looks, 0, "calls in order need no more system calls");
	zcoll_comm_free(comm);
	is(mock.leaves, 1, "freeing leaves");
}

static void test_bad_arguments(void)
{
	const uint64_t huge = 1ULL << 62;
	float *high = (float *)(UINTPTR_MAX - 7);

	comm = mock_comm(0);
	is(zcoll_allreduce(comm, NULL, out, 1, ZCOLL_FP32, ZCOLL_SUM), -EFAULT, "send is NULL");
	is(zcoll_allreduce(comm, in, NULL, 1, ZCOLL_FP32, ZCOLL_SUM), -EFAULT, "recv is NULL");
	has(mock_text(comm), "recv", "its text names the argument");
	is(zcoll_allreduce(comm, in, out, 1, 0, ZCOLL_SUM), -EINVAL, "type 0");
	is(zcoll_allreduce(comm, in, out, 1, ZCOLL_NR_TYPES, ZCOLL_SUM), -EINVAL, "type too high");
	is(zcoll_allreduce(comm, in, out, 1, ZCOLL_FP32, 0), -EINVAL, "operator 0");
	is(zcoll_allreduce(comm, in, out, 1, ZCOLL_FP32, ZCOLL_NR_OPS), -EINVAL, "operator too high");
	is(zcoll_allreduce(comm, in, out, huge, ZCOLL_FP32, ZCOLL_SUM), -EOVERFLOW,
	   "count times size wraps");
	is(zcoll_allreduce(comm, high, out, 4, ZCOLL_FP32, ZCOLL_SUM), -EOVERFLOW,
	   "address plus length wraps");
	is(zcoll_allreduce(comm, in, in + 1, 4, ZCOLL_FP32, ZCOLL_SUM), -EINVAL, "recv inside send");
	is(zcoll_allreduce(comm, in + 3, in, 4, ZCOLL_FP32, ZCOLL_SUM), -EINVAL, "send inside recv");
	has(mock_text(comm), "overlap", "its text says so");
	is(mock.calls, 0, "none of these reached the kernel");
	is(zcoll_allreduce(comm, in, in + 4, 4, ZCOLL_FP32, ZCOLL_SUM), 0, "side by side is no overlap");
	is(mock.last.seq, 0, "none of these used a number");
	zcoll_comm_free(comm);
}

static void test_refused(void)
{
	comm = mock_comm(0);
	reduce();
	mock.refuse = -EDQUOT;
	is(reduce(), -EDQUOT, "the error of a refused call is returned");
	has(mock_text(comm), "kernel says: refused", "with the kernel's text");
	is(reduce() || mock.last.seq != 1, 0, "the number of a refused call is used by the next");
	ok(!mock.aborted, "and nothing is aborted");
	zcoll_comm_free(comm);
}

static void draw_another(void)
{
	struct io_uring_sqe sqe[2];

	mock.on_submit = NULL;
	zcoll_prep_allreduce(sqe, IORING_SETUP_SQE128, comm, NULL, in, out, 16, ZCOLL_FP32,
			     ZCOLL_SUM);
}

static void test_hole(void)
{
	comm = mock_comm(0);
	mock.refuse = -ENOMEM;
	mock.on_submit = draw_another;
	is(reduce(), -ENOMEM, "refused when a later number is drawn: the error is returned");
	ok(mock.aborted, "and the communicator aborted");
	has(mock_text(comm), "operation 0 was refused", "with a text that says why");
	zcoll_comm_free(comm);
}

static void test_failed(void)
{
	comm = mock_comm(0);
	mock.fail = -EOWNERDEAD;
	is(reduce(), -EOWNERDEAD, "the error of a failed operation is returned");
	has(mock_text(comm), "kernel says: failed", "with the kernel's text");
	is(reduce() || mock.last.seq != 1, 0, "the number of a failed operation is used up");
	zcoll_comm_free(comm);
}

static void test_interrupted(void)
{
	comm = mock_comm(0);
	mock.interrupt = 3;
	is(reduce(), 0, "a signal does not end a call");
	is(mock.calls, 4, "it is made again each time");
	is(mock.last.seq, 0, "with the same number");
	zcoll_comm_free(comm);
}

static void end_it(uint64_t seq)
{
	mock_end(seq, 0);
}

/* Start as many requests as the window takes; none ends */
static void fill_window(struct zcoll_req **reqs)
{
	mock.hold = ~0ULL;
	for (int i = 0; i < MOCK_WINDOW; i++)
		if (zcoll_iallreduce(comm, in, out, 16, ZCOLL_FP32, ZCOLL_SUM, &reqs[i]))
			printf("# request %d: %s\n", i, mock_text(comm));
}

static void test_window(void)
{
	struct zcoll_req *reqs[MOCK_WINDOW], *req;

	comm = mock_comm(0);
	fill_window(reqs);
	mock.on_wait = end_it;
	is(zcoll_iallreduce(comm, in, out, 16, ZCOLL_FP32, ZCOLL_SUM, &req), 0,
	   "beyond the window, the oldest is waited for");
	ok(mock.ops[0].ended && !mock.ops[1].ended && mock.last.seq == MOCK_WINDOW,
	   "and no other, then the call is made");
	is(zcoll_wait(req, ZCOLL_WAIT_FOREVER), 0, "the request ends");
	for (int i = 0; i < MOCK_WINDOW; i++)
		is(zcoll_wait(reqs[i], ZCOLL_WAIT_FOREVER), 0, "request %d ends", i);
	is(zcoll_comm_free(comm), 0, "then the communicator can be freed");
}

/* Numbers that wait for their submission elsewhere count too */
static void test_window_prepared(void)
{
	struct zcoll_req *reqs[MOCK_WINDOW];

	comm = mock_comm(0);
	fill_window(reqs);
	draw_another();
	draw_another();
	mock.on_wait = end_it;
	mock.hold = 0;
	is(reduce(), 0, "two further on, three are waited for");
	ok(mock.ops[2].ended && !mock.ops[3].ended && mock.last.seq == MOCK_WINDOW + 2,
	   "and no other, then the call is made");
	zcoll_comm_abort(comm);
	zcoll_comm_free(comm);
}

static void test_window_deadline(void)
{
	struct zcoll_req *reqs[MOCK_WINDOW];
	int calls;

	comm = mock_comm(5 * MS);
	fill_window(reqs);
	calls = mock.calls;
	is(reduce(), -ETIMEDOUT, "the wait for the window ends with the deadline");
	has(mock_text(comm), "operations are unfinished", "with a text that says so");
	is(mock.calls, calls, "and nothing is submitted");
	mock_end(0, 0);
	mock.hold = 0;
	is(reduce() || mock.last.seq != MOCK_WINDOW, 0, "and the number is not lost");
	zcoll_comm_abort(comm);
	zcoll_comm_free(comm);
}

static void test_requests(void)
{
	struct zcoll_req *req;
	char text[ZCOLL_TEXT_MAX];

	comm = mock_comm(0);
	is(zcoll_iallreduce(comm, in, out, 16, ZCOLL_FP32, ZCOLL_SUM, &req), 0, "a request");
	is(zcoll_test(req), 0, "that has ended is done at the first test");

	mock.hold = 2;
	is(zcoll_iallreduce(comm, in, out, 16, ZCOLL_FP32, ZCOLL_SUM, &req), 0, "one that does not end");
	is(zcoll_req_seq(req), 1, "has a number");
	is(zcoll_test(req), -EAGAIN, "and is not done");
	is(zcoll_wait(req, 2 * MS), -EAGAIN, "and waiting for it is bounded");
	zcoll_req_error(req, text, sizeof(text));
	has(text, "waits for rank 1", "and it says what it waits for");
	is(zcoll_comm_free(comm), -EBUSY, "and keeps the communicator from being freed");
	has(mock_text(comm), "in flight", "with a text that says so");
	is(mock.leaves, 0, "and from leaving");
	mock_end(1, -EPROTO);
	is(zcoll_wait(req, ZCOLL_WAIT_FOREVER), -EPROTO, "its error is the result, before any CQE");
	has(mock_text(comm), "kernel says: failed", "with the kernel's text");

	mock.refuse = -EDQUOT;
	is(zcoll_iallreduce(comm, in, out, 16, ZCOLL_FP32, ZCOLL_SUM, &req), -EBADF,
	   "a refused request is an error of the call");
	is(reduce() || mock.last.seq != 2, 0, "and its number is used by the next");

	mock.hold = 1 << 3;
	mock.expire = true;
	zcoll_iallreduce(comm, in, out, 16, ZCOLL_FP32, ZCOLL_SUM, &req);
	is(zcoll_wait(req, 50 * MS), -ETIME, "an error that comes by the CQE is the result");
	mock.expire = false;
	mock_end(3, -ETIME);

	mock.hold = 1 << 4;
	zcoll_iallreduce(comm, in, out, 16, ZCOLL_FP32, ZCOLL_SUM, &req);
	zcoll_comm_abort(comm);
	is(zcoll_comm_free(comm), 0, "an aborted communicator is freed with its requests");
}

static uint64_t prep(struct io_uring_sqe *sqe, unsigned int flags, struct zcoll_cmd *cmd)
{
	memset(sqe, 0xff, 2 * sizeof(*sqe));
	if (zcoll_prep_allreduce(sqe, flags, comm, cmd, in, out, 16, ZCOLL_FP32, ZCOLL_SUM))
		return ~0ULL;
	return zcoll_sqe_seq(sqe, flags);
}

static void test_prep(void)
{
	struct io_uring_sqe sqe[2];
	struct zcoll_cmd cmd, in_place;

	comm = mock_comm(0);
	is(prep(sqe, IORING_SETUP_SQE128, NULL), 0, "an SQE of 128 bytes is filled in place");
	memcpy(&in_place, sqe->cmd, sizeof(in_place));
	ok(sqe->opcode == IORING_OP_URING_CMD && sqe->cmd_op == ZCOLL_IOC_ALLREDUCE &&
	   sqe->fd == zcoll_comm_fd(comm) && !sqe->flags && !sqe->user_data &&
	   in_place.send == (uintptr_t)in && in_place.count == 16,
	   "with the operation, and the rest zero");
	is(prep(sqe, 0, &cmd), 1, "an SQE of 64 bytes points to the command");
	ok(*(__u64 *)sqe->cmd == (uintptr_t)&cmd && !((__u64 *)sqe->cmd)[1] && cmd.seq == 1,
	   "which is where the caller wants it");
	is(((unsigned char *)sqe)[64], 0xff, "and is not written past its end");
	is(zcoll_prep_allreduce(sqe, 0, comm, NULL, in, out, 16, ZCOLL_FP32, ZCOLL_SUM), -EINVAL,
	   "an SQE of 64 bytes needs a place for the command");

	is(zcoll_unprep(comm, 0), -EBUSY, "a number that is not the newest stays");
	is(zcoll_unprep(comm, 2), -EINVAL, "a number that was not drawn is refused");
	is(zcoll_unprep(comm, 1), 0, "the newest can be given back");
	is(zcoll_unprep(comm, 0), 0, "then the one before");
	is(reduce() || mock.last.seq, 0, "and both are drawn again");
	is(zcoll_unprep(comm, 0), -EINVAL, "a submitted operation cannot be taken back");
	zcoll_comm_free(comm);
}

static int in_child(void)
{
	struct zcoll_req *req = NULL;
	struct io_uring_sqe sqe[2];
	int calls = mock.calls;

	if (reduce() != -EPERM || !strstr(mock_text(comm), "fork"))
		return 1;
	if (zcoll_iallreduce(comm, in, out, 1, ZCOLL_FP32, ZCOLL_SUM, &req) != -EPERM)
		return 2;
	if (zcoll_register(comm, in, sizeof(in)) != -EPERM || zcoll_alloc(comm, 1))
		return 3;
	if (zcoll_prep_allreduce(sqe, IORING_SETUP_SQE128, comm, NULL, in, out, 1, ZCOLL_FP32,
				 ZCOLL_SUM) != -EPERM)
		return 4;
	if (zcoll_comm_rank(comm) || zcoll_comm_size(comm) != 2 || mock.calls != calls)
		return 5;
	if (zcoll_comm_free(comm) || mock.leaves)
		return 6;
	return 0;
}

static void test_fork(void)
{
	struct zcoll_req *req;
	int status;
	pid_t pid;

	comm = mock_comm(0);
	mock.hold = 1;
	zcoll_iallreduce(comm, in, out, 16, ZCOLL_FP32, ZCOLL_SUM, &req);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(in_child());
	waitpid(pid, &status, 0);
	is(status, 0, "a forked child may look and free, and do nothing else");
	mock_end(0, 0);
	is(zcoll_wait(req, ZCOLL_WAIT_FOREVER), 0, "and the parent goes on");
	is(reduce(), 0, "with more operations");
	zcoll_comm_free(comm);
}

/* Have the kernel refuse io_uring_setup() with -EPERM, as containers do */
static void forbid_io_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		printf("# seccomp: %s\n", strerror(errno));
}

/* The last test of the process: what is forbidden stays so */
static void test_no_io_uring(void)
{
	struct zcoll_req *req;

	comm = mock_comm(0);
	forbid_io_uring();
	is(zcoll_iallreduce(comm, in, out, 16, ZCOLL_FP32, ZCOLL_SUM, &req), -EPERM,
	   "where io_uring is forbidden, a request is an error");
	has(mock_text(comm), "seccomp", "with a text that says where to look");
	is(reduce() || mock.last.seq, 0, "and blocking calls work, and no number is lost");
	is(zcoll_comm_free(comm), 0, "and the communicator can be freed");
}

static void test_create(void)
{
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_attr attr;

	zcoll_attr_init(&attr);
	attr.error = text;
	attr.error_len = sizeof(text);
	attr.nranks = 2;
	attr.join_timeout_ns = MS;
	mock.absent = true;
	is(zcoll_comm_create(&comm, &attr), -ETIMEDOUT, "waiting for ranks to join is bounded");
	has(text, "missing: 1", "and the missing are named");
	attr.join_timeout_ns = 0;
	is(zcoll_comm_create(&comm, &attr), 0, "without a time-out they are not waited for");
	zcoll_comm_free(comm);

	mock.aborted = true;
	mock.absent = false;
	attr.rank = 2;
	is(zcoll_comm_create(&comm, &attr), -EINVAL, "a rank out of range is refused");
	has(text, "rank 2 of 2", "and named");
	attr.rank = 0;
	attr.nranks = 0;
	is(zcoll_comm_create(&comm, &attr), -EINVAL, "no ranks are refused");
	attr.nranks = ZCOLL_MAX_RANKS + 1;
	is(zcoll_comm_create(&comm, &attr), -EINVAL, "too many are refused");
	attr.nranks = 1;
	attr.deadline_ns = ZCOLL_MAX_DEADLINE_NS + 1;
	is(zcoll_comm_create(&comm, &attr), -EINVAL, "too late a deadline is refused");
	attr.deadline_ns = 0;
	attr.size--;
	is(zcoll_comm_create(&comm, &attr), -EINVAL, "an attr of another size is refused");
	is(zcoll_comm_free(NULL), 0, "freeing nothing is allowed");
}

int main(void)
{
	test_create();
	test_command();
	test_bad_arguments();
	test_refused();
	test_hole();
	test_failed();
	test_interrupted();
	test_window();
	test_window_prepared();
	test_window_deadline();
	test_requests();
	test_prep();
	test_fork();
	test_no_io_uring();
	return tap_end();
}
