// SPDX-License-Identifier: GPL-2.0
/*
 * The collectives on a mock of the device: what a call becomes, and what is refused before
 * the kernel hears of it. The mock is rank 0 of 2; other ranks are made of it.
 */
#include <errno.h>
#include <liburing.h>
#include <string.h>

#include "internal.h"
#include "mock.h"
#include "tap.h"

#define N	16

static float a[8 * N], b[8 * N];
static struct zcoll_comm *comm;

/* A communicator in which this is @rank of @nranks */
static void be(unsigned int rank, unsigned int nranks)
{
	comm = mock_comm(0);
	comm->rank = rank;
	comm->nranks = nranks;
}

static bool sent(unsigned long number, const void *send, const void *recv, uint64_t count)
{
	return mock.number == number && mock.last.count == count &&
	       mock.last.send == (uintptr_t)send && mock.last.recv == (uintptr_t)recv;
}

static void test_what_is_sent(void)
{
	be(1, 4);
	is(zcoll_reduce_scatter(comm, a, b, N, ZCOLL_FP32, ZCOLL_MAX), 0, "reduce-scatter");
	ok(sent(ZCOLL_IOC_REDUCE_SCATTER, a, b, N) && mock.last.op == ZCOLL_MAX,
	   "is sent with the elements of a block");
	is(zcoll_allgather(comm, a, b, N, ZCOLL_FP32), 0, "all-gather");
	ok(sent(ZCOLL_IOC_ALLGATHER, a, b, N) && !mock.last.op, "is sent without an operator");
	is(zcoll_broadcast(comm, a, b, N, ZCOLL_FP32, 1), 0, "broadcast at the root");
	ok(sent(ZCOLL_IOC_BROADCAST, a, b, N) && mock.last.root == 1, "is sent with both buffers");
	is(zcoll_broadcast(comm, a, b, N, ZCOLL_FP32, 3), 0, "broadcast elsewhere");
	ok(sent(ZCOLL_IOC_BROADCAST, NULL, b, N) && mock.last.root == 3,
	   "is sent without an input");
	is(zcoll_reduce(comm, a, b, N, ZCOLL_FP32, ZCOLL_SUM, 1), 0, "reduce at the root");
	ok(sent(ZCOLL_IOC_REDUCE, a, b, N), "is sent with both buffers");
	is(zcoll_reduce(comm, a, NULL, N, ZCOLL_FP32, ZCOLL_SUM, 0), 0, "reduce elsewhere");
	ok(sent(ZCOLL_IOC_REDUCE, a, NULL, N), "is sent without an output");
	is(zcoll_barrier(comm), 0, "barrier");
	ok(sent(ZCOLL_IOC_BARRIER, NULL, NULL, 0) && !mock.last.dtype && !mock.last.op,
	   "is sent with nothing");
	zcoll_comm_free(comm);
}

static void test_in_place(void)
{
	be(2, 4);
	is(zcoll_allgather(comm, a + 2 * N, a, N, ZCOLL_FP32), 0,
	   "all-gather of the own block of the output");
	is(zcoll_allgather(comm, a + N, a, N, ZCOLL_FP32), -EINVAL, "but of no other block");
	has(mock_text(comm), "allgather", "which names the collective");
	is(zcoll_reduce_scatter(comm, a, a + 2 * N, N, ZCOLL_FP32, ZCOLL_SUM), 0,
	   "reduce-scatter into the own block of the input");
	is(zcoll_reduce_scatter(comm, a, a, N, ZCOLL_FP32, ZCOLL_SUM), -EINVAL,
	   "but into no other block");
	is(zcoll_reduce_scatter(comm, a, a + 4 * N, N, ZCOLL_FP32, ZCOLL_SUM), 0,
	   "or behind the input");
	is(zcoll_reduce_scatter(comm, a, a + 4 * N - 1, N, ZCOLL_FP32, ZCOLL_SUM), -EINVAL,
	   "but not on its last element");
	is(zcoll_broadcast(comm, a, a, N, ZCOLL_FP32, 2), 0, "broadcast of the output");
	is(zcoll_broadcast(comm, a + 1, a, N, ZCOLL_FP32, 2), -EINVAL, "but not of a part of it");
	is(zcoll_broadcast(comm, a + 1, a, N, ZCOLL_FP32, 0), 0,
	   "which does not matter where there is no input");
	zcoll_comm_free(comm);
}

/* Registered: only the larger side lies in the range as a whole */
static void test_in_place_registered(void)
{
	be(1, 4);
	is(zcoll_register(comm, a, 4 * N * sizeof(*a)), 0, "the output is registered");
	zcoll_allgather(comm, a + N, a, N, ZCOLL_FP32);
	ok(mock.last.send_buf && mock.last.send_buf == mock.last.recv_buf &&
	   mock.last.send == N * sizeof(*a) && !mock.last.recv,
	   "in place, both sides have its handle");
	zcoll_unregister(comm, a);
	zcoll_register(comm, a + N, N * sizeof(*a));
	zcoll_allgather(comm, a + N, a, N, ZCOLL_FP32);
	ok(!mock.last.send_buf && !mock.last.recv_buf && mock.last.send == (uintptr_t)(a + N) &&
	   mock.last.recv == (uintptr_t)a, "if only the input is registered, none has");
	zcoll_allgather(comm, a + N, b, N, ZCOLL_FP32);
	ok(mock.last.send_buf && !mock.last.recv_buf, "but out of place it has");
	zcoll_comm_free(comm);
}

static int call_with(struct zcoll_call call)
{
	call.size = sizeof(call);
	return zcoll_call(comm, &call);
}

#define CALL(...) call_with((struct zcoll_call){ __VA_ARGS__ })

static void test_refused(void)
{
	struct zcoll_call old = { .size = sizeof(old) - 1, .collective = ZCOLL_BARRIER };

	be(0, 4);
	is(zcoll_call(comm, &old), -EINVAL, "a struct of another size");
	is(CALL(.collective = 0), -EINVAL, "collective 0");
	is(CALL(.collective = ZCOLL_NR_COLLECTIVES), -EINVAL, "collective too high");
	is(CALL(.collective = ZCOLL_BARRIER, .count = 1), -EINVAL, "a barrier with elements");
	is(CALL(.collective = ZCOLL_BARRIER, .op = ZCOLL_SUM), -EINVAL, "a barrier that reduces");
	is(CALL(.collective = ZCOLL_BARRIER, .flags = 4), -EINVAL, "an unknown flag");
	is(CALL(.collective = ZCOLL_BARRIER, .reserved = 1), -EINVAL, "what is reserved");
	is(CALL(.collective = ZCOLL_BARRIER, .deadline_ns = ZCOLL_MAX_DEADLINE_NS + 1), -EINVAL,
	   "too late a deadline");
	is(CALL(.collective = ZCOLL_ALLREDUCE, .dtype = 1, .op = 1, .root = 1), -EINVAL,
	   "an all-reduce with a root");
	is(zcoll_reduce(comm, a, b, N, ZCOLL_FP32, ZCOLL_SUM, 4), -EINVAL, "a root that is no rank");
	has(mock_text(comm), "root 4", "which names it");
	is(zcoll_allgather(comm, a, b, 1ULL << 60, ZCOLL_FP32), -EOVERFLOW,
	   "blocks that are too many bytes together");
	is(zcoll_broadcast(comm, NULL, b, N, ZCOLL_FP32, 0), -EFAULT, "no input at the root");
	is(zcoll_comm_set_flags(comm, 4), -EINVAL, "an unknown flag of the communicator");
	is(mock.calls, 0, "none of these reached the kernel");
	zcoll_comm_free(comm);
}

static void test_flags(void)
{
	be(0, 2);
	is(CALL(.collective = ZCOLL_REDUCE, .dtype = 1, .op = 1, .flags = ZCOLL_CMD_REPRODUCIBLE,
		.deadline_ns = 77), 0, "a call with flag and deadline");
	ok(mock.last.flags == ZCOLL_CMD_REPRODUCIBLE && mock.last.deadline_ns == 77,
	   "which are sent");
	is(zcoll_comm_set_flags(comm, ZCOLL_CMD_FLAGS), 0, "flags of the communicator");
	zcoll_allreduce(comm, a, b, N, ZCOLL_FP32, ZCOLL_SUM);
	is(mock.last.flags, ZCOLL_CMD_FLAGS, "all calls have");
	zcoll_allgather(comm, a, b, N, ZCOLL_FP32);
	is(mock.last.flags, ZCOLL_CMD_AGREED, "but where nothing is reduced, none is reproducible");
	zcoll_comm_free(comm);
}

static bool prepared(const struct io_uring_sqe *sqe, unsigned int cmd_op)
{
	return sqe->opcode == IORING_OP_URING_CMD && sqe->cmd_op == cmd_op;
}

static void test_requests_and_sqes(void)
{
	static const unsigned long numbers[] = {
		ZCOLL_IOC_ALLREDUCE, ZCOLL_IOC_REDUCE_SCATTER, ZCOLL_IOC_ALLGATHER,
		ZCOLL_IOC_BROADCAST, ZCOLL_IOC_REDUCE, ZCOLL_IOC_BARRIER,
	};
	const unsigned int big = IORING_SETUP_SQE128;
	struct zcoll_req *req[6];
	struct io_uring_sqe sqe[6][2];
	int i;

	be(0, 2);
	mock.hold = ~0ULL;
	comm->window = 6;
	zcoll_iallreduce(comm, a, b, N, ZCOLL_FP32, ZCOLL_SUM, &req[0]);
	is(mock.number, numbers[0], "zcoll_iallreduce()");
	for (i = 1; i < 4; i++)
		mock_end(i - 1, 0);
	zcoll_ireduce_scatter(comm, a, b, N, ZCOLL_FP32, ZCOLL_SUM, &req[1]);
	is(mock.number, numbers[1], "zcoll_ireduce_scatter()");
	zcoll_iallgather(comm, a, b, N, ZCOLL_FP32, &req[2]);
	is(mock.number, numbers[2], "zcoll_iallgather()");
	zcoll_ibroadcast(comm, a, b, N, ZCOLL_FP32, 0, &req[3]);
	is(mock.number, numbers[3], "zcoll_ibroadcast()");
	zcoll_ireduce(comm, a, b, N, ZCOLL_FP32, ZCOLL_SUM, 1, &req[4]);
	is(mock.number, numbers[4], "zcoll_ireduce()");
	zcoll_ibarrier(comm, &req[5]);
	is(mock.number, numbers[5], "zcoll_ibarrier()");
	for (i = 0; i < 6; i++) {
		mock_end(i, 0);
		is(zcoll_wait(req[i], ZCOLL_WAIT_FOREVER), 0, "request %d ends", i);
	}

	zcoll_prep_allreduce(sqe[0], big, comm, NULL, a, b, N, ZCOLL_FP32, ZCOLL_SUM);
	zcoll_prep_reduce_scatter(sqe[1], big, comm, NULL, a, b, N, ZCOLL_FP32, ZCOLL_SUM);
	zcoll_prep_allgather(sqe[2], big, comm, NULL, a, b, N, ZCOLL_FP32);
	zcoll_prep_broadcast(sqe[3], big, comm, NULL, a, b, N, ZCOLL_FP32, 0);
	zcoll_prep_reduce(sqe[4], big, comm, NULL, a, b, N, ZCOLL_FP32, ZCOLL_SUM, 1);
	zcoll_prep_barrier(sqe[5], big, comm, NULL);
	for (i = 0; i < 6; i++)
		ok(prepared(sqe[i], numbers[i]) && (int)zcoll_sqe_seq(sqe[i], big) == 6 + i,
		   "SQE of operation %d", 6 + i);
	zcoll_comm_abort(comm);
	zcoll_comm_free(comm);
}

int main(void)
{
	test_what_is_sent();
	test_in_place();
	test_in_place_registered();
	test_refused();
	test_flags();
	test_requests_and_sqes();
	return tap_end();
}
