// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection: every allocation and every copy from or to user space, in
 * every call, fails once.
 *
 * A call is made again and again, with its first, second, third ... faultable
 * step made to fail (/proc/thread-self/fail-nth), until it has no more steps. A
 * call that fails must give a documented errno and leave nothing behind: the
 * counters of the driver are as before, and the same call without a fault
 * succeeds. Memory changes before each call, so that it is pinned anew. Debug
 * kernels only; the rest is for their sanitizers to see.
 */
#include "nth.h"
#include "ring.h"
#include "../lib/plans.h"
#include "kselftest_harness.h"

#define MOST_STEPS	600

/* --- sweeping ------------------------------------------------------------ */

FIXTURE(nth) {
	struct zt zt;
	int ep;				/* a communicator of one */
	int pair[2];			/* one of two */
	uint64_t seq, pair_seq;
	uint32_t handle;
	int32_t *mem;
	size_t len;
	struct io_uring ring[2];	/* [0]: 64-byte SQEs, [1]: 128-byte */
	struct zcoll_cmd cmd;
};

#define LARGE	(200000 * sizeof(int32_t))

FIXTURE_SETUP(nth)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, nth_init());
	self->len = LARGE;
	self->mem = zt_pages(self->len);
	memset(self->mem, 0, self->len);
	ASSERT_EQ(0, zt_comm(&self->zt, 1, &self->ep));
	ASSERT_EQ(0, zt_comm(&self->zt, 2, self->pair));
	ASSERT_EQ(0, ring_init(&self->ring[0], 4, 0));
	ASSERT_EQ(0, ring_init(&self->ring[1], 4, IORING_SETUP_SQE128));
}

FIXTURE_TEARDOWN(nth)
{
	io_uring_queue_exit(&self->ring[0]);
	io_uring_queue_exit(&self->ring[1]);
	ZT_TEARDOWN(self);
}

static bool documented(int err)
{
	return err == -ENOMEM || err == -EFAULT;
}

/* For calls that may be made again as they are */
#define NOTHING		(void)0

/* Nothing of @mem stays pinned only for calls to come */
static void change(void *mem, size_t len)
{
	mprotect(mem, len, PROT_READ);
	mprotect(mem, len, PROT_READ | PROT_WRITE);
}

/*
 * SWEEP(call, undo): @call is an expression that gives >= 0 or a negative errno,
 * @undo a statement that takes its success back, so that it can be made again.
 */
#define SWEEP(call, undo) do {							\
	int __n, __ret, __failed = 0;						\
	bool __fired = true;							\
										\
	for (__n = 1; __fired && __n < MOST_STEPS; __n++) {			\
		struct zcoll_info __before;					\
										\
		change(self->mem, self->len);					\
		ASSERT_EQ(0, zt_info(self->zt.dev, &__before));			\
		arm(__n);							\
		__ret = call;							\
		__fired = disarm();						\
		if (__ret < 0) {						\
			__failed++;						\
			change(self->mem, self->len);				\
			EXPECT_TRUE(__fired && documented(__ret)) {		\
				TH_LOG("step %d: %d", __n, __ret);		\
			}							\
			EXPECT_STREQ("", zt_above_text(self->zt.dev, &__before)) { \
				TH_LOG("after step %d: %d", __n, __ret);	\
			}							\
			__ret = call;						\
			ASSERT_LE(0, __ret) {					\
				TH_LOG("unharmed after step %d: %d", __n, __ret); \
			}							\
		}								\
		undo;								\
	}									\
	EXPECT_GT(MOST_STEPS, __n);						\
	TH_LOG("%d steps, %d of them fatal to the call", __n - 2, __failed);	\
} while (0)

/* --- calls of the device and an endpoint --------------------------------- */

TEST_F_TIMEOUT(nth, info, 120)
{
	struct zcoll_info info = { .size = sizeof(info) };

	SWEEP(zt_ioctl(self->zt.dev, ZCOLL_IOC_INFO, &info), NOTHING);
}

static int join_fresh(struct zt *zt, bool map)
{
	static const uint32_t nodes[2];
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_join arg;
	uint8_t key[16];

	zt_key(key);
	arg = zt_join_arg(key, 0, 2);
	if (map)
		arg.node_map = (uintptr_t)nodes;
	arg.text = (uintptr_t)text;
	arg.text_len = sizeof(text);
	return zt_ioctl(zt->dev, ZCOLL_IOC_JOIN, &arg);
}

TEST_F_TIMEOUT(nth, join, 120)
{
	SWEEP(join_fresh(&self->zt, false), close(__ret));
}

TEST_F_TIMEOUT(nth, join_with_a_map, 120)
{
	SWEEP(join_fresh(&self->zt, true), close(__ret));
}

TEST_F_TIMEOUT(nth, join_of_an_existing_communicator, 120)
{
	struct zcoll_join arg;
	uint8_t key[16];

	zt_key(key);
	ASSERT_LE(0, zt_join(&self->zt, key, 0, 2));
	arg = zt_join_arg(key, 1, 2);
	SWEEP(zt_ioctl(self->zt.dev, ZCOLL_IOC_JOIN, &arg), {
		struct zcoll_info now;

		close(__ret);
		zt_until(ZT_LONG_MS, !zt_info(self->zt.dev, &now) &&
			 now.ranks == __before.ranks);
		zt_close_ep(&self->zt, self->zt.ep[self->zt.nr - 1]);
		zt_key(key);
		ASSERT_LE(0, zt_join(&self->zt, key, 0, 2));
		memcpy(arg.key, key, sizeof(key));
	});
}

/* One of two nodes, the other of which never comes */
static int join_loop(struct zt *zt)
{
	static const uint32_t nodes[2] = { 0, 1 };
	struct zcoll_join arg;
	uint8_t key[16];

	zt_key(key);
	arg = zt_join_arg(key, 0, 2);
	arg.node_map = (uintptr_t)nodes;
	arg.nodes = 2;
	arg.fabric = (uintptr_t)"loop";
	arg.fabric_len = 4;
	return zt_ioctl(zt->dev, ZCOLL_IOC_JOIN, &arg);
}

TEST_F_TIMEOUT(nth, join_of_two_nodes, 120)
{
	SWEEP(join_loop(&self->zt), close(__ret));
}

TEST_F_TIMEOUT(nth, peers, 120)
{
	static uint8_t addresses[2][ZCOLL_ADDRESS_MAX];
	struct zcoll_peers arg = {
		.size = sizeof(arg), .addresses = (uintptr_t)addresses, .nodes = 2,
	};
	int ep = zt_note(&self->zt, join_loop(&self->zt));

	ASSERT_LE(0, ep);
	SWEEP(zt_ioctl(ep, ZCOLL_IOC_PEERS, &arg), NOTHING);
}

TEST_F_TIMEOUT(nth, register_with_two_nodes, 120)
{
	int ep = zt_note(&self->zt, join_loop(&self->zt));

	ASSERT_LE(0, ep);
	SWEEP(zt_register(ep, self->mem, self->len, &self->handle),
	      zt_unregister(ep, self->handle));
}

TEST_F_TIMEOUT(nth, register, 120)
{
	SWEEP(zt_register(self->ep, self->mem, self->len, &self->handle),
	      zt_unregister(self->ep, self->handle));
}

TEST_F_TIMEOUT(nth, unregister, 120)
{
	ASSERT_EQ(0, zt_register(self->ep, self->mem, self->len, &self->handle));
	SWEEP(zt_unregister(self->ep, self->handle),
	      ASSERT_EQ(0, zt_register(self->ep, self->mem, self->len, &self->handle)));
}

static int status_of(int ep, uint32_t flags)
{
	uint32_t missing[2];
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_status arg = {
		.size = sizeof(arg),
		.flags = flags,
		.missing = (uintptr_t)missing,
		.missing_len = 2,
		.text = (uintptr_t)text,
		.text_len = sizeof(text),
	};

	return zt_ioctl(ep, ZCOLL_IOC_STATUS, &arg);
}

TEST_F_TIMEOUT(nth, status_of_an_operation, 120)
{
	SWEEP(status_of(self->pair[0], 0), NOTHING);
}

TEST_F_TIMEOUT(nth, status_of_the_communicator, 120)
{
	SWEEP(status_of(self->pair[0], ZCOLL_STATUS_COMM), NOTHING);
}

TEST_F_TIMEOUT(nth, stats, 120)
{
	struct zcoll_stats st;

	SWEEP(zt_stats(self->ep, &st), NOTHING);
}

TEST_F_TIMEOUT(nth, wait, 120)
{
	self->cmd = zt_barrier(0);
	ASSERT_EQ(0, zt_allreduce(self->ep, &self->cmd));
	SWEEP(zt_wait(self->ep, 0, ZCOLL_WAIT_FOREVER), NOTHING);
}

/* A rank in flight, for calls that end communicators */
#define FRESH_PAIR() do {							\
	ASSERT_EQ(0, zt_comm(&self->zt, 2, self->pair));			\
	self->cmd = zt_barrier(0);						\
	ASSERT_EQ(0, ring_send(&self->ring[1], self->pair[0], &self->cmd, 0));	\
} while (0)

/* The command of the pair has ended; give the pair up */
#define GIVE_UP_PAIR() do {							\
	EXPECT_GT(0, ring_next(&self->ring[1], ZT_LONG_MS, NULL));		\
	zt_close_ep(&self->zt, self->pair[0]);					\
	zt_close_ep(&self->zt, self->pair[1]);					\
	FRESH_PAIR();								\
} while (0)

TEST_F_TIMEOUT(nth, cancel, 120)
{
	FRESH_PAIR();
	SWEEP(zt_cancel(self->pair[0], 0), GIVE_UP_PAIR());
}

TEST_F_TIMEOUT(nth, abort, 120)
{
	FRESH_PAIR();
	SWEEP(zt_abort(self->pair[0]), GIVE_UP_PAIR());
}

TEST_F_TIMEOUT(nth, leave, 120)
{
	FRESH_PAIR();
	SWEEP(zt_leave(self->pair[0]), GIVE_UP_PAIR());
}

static int load_local(int ep, uint32_t *number)
{
	struct image image = image_new();
	struct zcoll_plan_load arg = { .size = sizeof(arg) };
	int ret;

	plan_local(&image);
	image_seal(&image);
	arg.plan = (uintptr_t)image.plan;
	arg.bytes = image.bytes;
	ret = zt_ioctl(ep, ZCOLL_IOC_PLAN_LOAD, &arg);
	*number = arg.number;
	image_free(&image);
	return ret;
}

static int unload(int ep, uint32_t number)
{
	struct zcoll_plan_unload arg = { .size = sizeof(arg), .number = number };

	return zt_ioctl(ep, ZCOLL_IOC_PLAN_UNLOAD, &arg);
}

TEST_F_TIMEOUT(nth, plan_load, 120)
{
	uint32_t number;

	SWEEP(load_local(self->ep, &number), unload(self->ep, number));
}

TEST_F_TIMEOUT(nth, plan_unload, 120)
{
	uint32_t number;

	ASSERT_EQ(0, load_local(self->ep, &number));
	SWEEP(unload(self->ep, number), ASSERT_EQ(0, load_local(self->ep, &number)));
}

/* --- operations ---------------------------------------------------------- */

/* The completion is looked for in memory, because a call to wait could fail too */
static int op_by_ring(struct io_uring *ring, int ep, struct zcoll_cmd *cmd)
{
	struct io_uring_cqe *cqe;
	int ret;

	/* the SQE may be there already, from a submission that failed as a whole */
	if (!io_uring_sq_ready(ring))
		ring_op(ring, ep, cmd, 0);
	ret = io_uring_submit(ring);
	if (ret < 0)
		return ret;
	if (!zt_until(ZT_LONG_MS, !io_uring_peek_cqe(ring, &cqe)))
		return -ETIME;
	ret = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

#define SUM(bytes) (self->cmd = zt_sum(self->seq, self->mem, (bytes) / sizeof(int32_t)))

TEST_F_TIMEOUT(nth, small_operation_by_ioctl, 120)
{
	SWEEP((SUM(64), zt_allreduce(self->ep, &self->cmd)), self->seq++);
}

TEST_F_TIMEOUT(nth, large_operation_by_ioctl, 120)
{
	SWEEP((SUM(LARGE), zt_allreduce(self->ep, &self->cmd)), self->seq++);
}

/* What is set up at the first need of it */
TEST_F_TIMEOUT(nth, first_operation_of_a_communicator, 120)
{
	self->cmd = zt_sum(0, self->mem, LARGE / sizeof(int32_t));
	SWEEP(zt_allreduce(self->ep, &self->cmd), {
		zt_close_ep(&self->zt, self->ep);
		ASSERT_EQ(0, zt_comm(&self->zt, 1, &self->ep));
	});
}

TEST_F_TIMEOUT(nth, out_of_place_operation_by_ioctl, 120)
{
	SWEEP((self->cmd = zt_cmd(self->seq, ZCOLL_FP32, ZCOLL_SUM, self->mem,
				  self->mem + LARGE / 8, LARGE / 8),
	       zt_allreduce(self->ep, &self->cmd)), self->seq++);
}

TEST_F_TIMEOUT(nth, operation_on_a_registered_buffer, 120)
{
	ASSERT_EQ(0, zt_register(self->ep, self->mem, self->len, &self->handle));
	SWEEP((SUM(64), self->cmd.send = 0, self->cmd.recv = 0,
	       self->cmd.send_buf = self->handle, self->cmd.recv_buf = self->handle,
	       zt_allreduce(self->ep, &self->cmd)), self->seq++);
}

/*
 * On rings the faults reach io_uring's own steps too, whose errors are EAGAIN and
 * others, and which may be fatal to the submission as a whole.
 */
#define documented(err) (documented(err) || (err) == -EAGAIN || (err) == -ECANCELED)

TEST_F_TIMEOUT(nth, operation_by_sqe64, 120)
{
	SWEEP((SUM(64), op_by_ring(&self->ring[0], self->ep, &self->cmd)), self->seq++);
}

TEST_F_TIMEOUT(nth, operation_by_sqe128, 120)
{
	SWEEP((SUM(64), op_by_ring(&self->ring[1], self->ep, &self->cmd)), self->seq++);
}

TEST_F_TIMEOUT(nth, large_operation_by_sqe128, 120)
{
	SWEEP((SUM(LARGE), op_by_ring(&self->ring[1], self->ep, &self->cmd)), self->seq++);
}

#undef documented

/* The last rank's call fails; the first rank, which waits, must not notice */
TEST_F_TIMEOUT(nth, last_call_of_an_operation, 120)
{
	int32_t *other = zt_pages(LARGE);
	struct zcoll_cmd first;
	struct zt_call call;

	self->cmd = zt_sum(0, self->mem, LARGE / sizeof(int32_t));
	first = zt_sum(0, other, LARGE / sizeof(int32_t));
	ASSERT_EQ(0, zt_start_op(&call, self->pair[0], &first));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->pair[0], 0) == 1));
	SWEEP(zt_allreduce(self->pair[1], &self->cmd), {
		ASSERT_EQ(0, zt_finish(&call, ZT_LONG_MS));
		self->cmd.seq++;
		first.seq++;
		ASSERT_EQ(0, zt_start_op(&call, self->pair[0], &first));
		ASSERT_TRUE(zt_until(ZT_LONG_MS,
				     zt_arrived(self->pair[0], first.seq) == 1));
	});
	ASSERT_EQ(0, zt_abort(self->pair[0]));
	EXPECT_EQ(-ECANCELED, zt_finish(&call, ZT_LONG_MS));
}

NTH_MAIN
