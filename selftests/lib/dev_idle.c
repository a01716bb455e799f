// SPDX-License-Identifier: GPL-2.0
/*
 * The library on the device: what a program does while it waits (zcoll_comm_set_idle()), be
 * it for mail, in heaps, or in the kernel. Rank 0 waits, the last rank is late.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "ranks.h"
#include "tap.h"

#define LATE_MS		200
#define SLOW_MS		2
#define SOON_MS		3000	/* "at once", if CPUs are emulated */
#define MAX_BYTES	(1UL << 20)
#define MAX_WINDOW	64

/* Where ranks wait, by what they call */
static const struct place {
	const char *name;
	uint64_t bytes;
	bool allocated;
} places[] = {
	{ "for mail", 8, false },
	{ "in heaps", 1 << 15, true },
	{ "in the kernel", MAX_BYTES, false },
};

static const struct place *place;

/* The function: it counts, and does what a test wants */
static struct {
	unsigned int calls;
	unsigned int elsewhere;	/* by another thread */
	pthread_t thread;
	unsigned int sleep_ms;
	struct zcoll_comm *abort;
} idle;

static void count(void *arg)
{
	expect(arg == &idle, 1);
	idle.calls++;
	idle.elsewhere += !pthread_equal(pthread_self(), idle.thread);
	if (idle.sleep_ms)
		sleep_ms(idle.sleep_ms);
	if (idle.abort)
		zcoll_comm_abort(idle.abort);
}

static int32_t *start(struct zcoll_comm *comm)
{
	int32_t *x = place->allocated ? zcoll_alloc(comm, MAX_BYTES) : malloc(MAX_BYTES);

	expect(!!x, 1);
	idle.thread = pthread_self();
	expect(zcoll_comm_set_idle(comm, count, &idle), 0);
	expect(zcoll_barrier(comm), 0);
	return x;
}

static int sum(struct zcoll_comm *comm, int32_t *x)
{
	return zcoll_allreduce(comm, x, x, place->bytes / sizeof(*x), ZCOLL_INT32, ZCOLL_SUM);
}

static bool is_late(struct zcoll_comm *comm)
{
	return zcoll_comm_rank(comm) == zcoll_comm_size(comm) - 1;
}

/* Operations of this rank in the way of the place, and no other */
static uint64_t done_there(struct zcoll_comm *comm)
{
	struct zcoll_stats stats;

	expect(zcoll_comm_stats(comm, &stats), 0);
	if (place->allocated)
		return stats.ops_heap;
	return place->bytes == MAX_BYTES ? stats.ops_done : stats.ops_mailbox;
}

/* ------------------------------------------------------------------------ calls */

/* Every millisecond at last; emulated CPUs are slower. In between the rank sleeps */
static void called_while_waiting(struct zcoll_comm *comm)
{
	unsigned int n = zcoll_comm_size(comm), calls;
	uint64_t done, before;
	int32_t *x = start(comm);

	done = done_there(comm);
	fill(x, place->bytes / sizeof(*x), zcoll_comm_rank(comm));
	expect(zcoll_barrier(comm), 0);
	done += place->bytes == 8;		/* the barrier, too */
	idle.calls = 0;
	before = cpu_ms();
	if (is_late(comm))
		sleep_ms(LATE_MS);
	expect(sum(comm, x), 0);
	calls = idle.calls;
	expect_sum(x, place->bytes / sizeof(*x), n);
	expect(done_there(comm), done + 1);
	if (!is_late(comm)) {
		expect(calls >= LATE_MS / 10, 1);
		expect(cpu_ms() - before < LATE_MS, 1);
	}
	sleep_ms(20);
	expect(idle.calls, calls);		/* never after the return */
	expect(idle.elsewhere, 0);
}

static void no_longer_called(struct zcoll_comm *comm)
{
	int32_t *x = start(comm);

	expect(zcoll_comm_set_idle(comm, NULL, NULL), 0);
	idle.calls = 0;
	if (is_late(comm))
		sleep_ms(LATE_MS / 4);
	expect(sum(comm, x), 0);
	expect(idle.calls, 0);
}

static void alone(struct zcoll_comm *comm)
{
	int32_t *x = start(comm);

	for (int i = 0; i < 20; i++)
		expect(sum(comm, x), 0);
	expect(idle.calls, 0);
}

/* --------------------------------------------------------------------- requests */

static void requests(struct zcoll_comm *comm)
{
	struct zcoll_req *req;
	int32_t *x = start(comm);
	int ret;

	for (int i = 0; i < 2; i++) {
		if (is_late(comm))
			sleep_ms(LATE_MS / 2);
		expect(zcoll_iallreduce(comm, x, x, 2, ZCOLL_INT32, ZCOLL_SUM, &req), 0);
		idle.calls = 0;
		ret = zcoll_test(req);
		expect(idle.calls, 0);
		if (ret == -EAGAIN && i) {
			expect(zcoll_wait(req, ZCOLL_WAIT_FOREVER), 0);
		} else if (ret == -EAGAIN) {
			while ((ret = zcoll_wait(req, 20 * MS)) == -EAGAIN)
				;
			expect(ret, 0);
		}
		if (!zcoll_comm_rank(comm))
			expect(idle.calls > 0, 1);
	}
}

/* The window is full, and the next request has to wait for room */
static void room(struct zcoll_comm *comm)
{
	struct zcoll_req *reqs[MAX_WINDOW + 1];
	static int32_t x[MAX_WINDOW + 1];
	struct zcoll_info info = { 0 };

	start(comm);
	expect(zcoll_info_get(NULL, &info), 0);
	expect(info.window <= MAX_WINDOW, 1);
	idle.calls = 0;
	if (is_late(comm))
		sleep_ms(LATE_MS);
	for (unsigned int i = 0; i <= info.window; i++)
		expect(zcoll_iallreduce(comm, &x[i], &x[i], 1, ZCOLL_INT32, ZCOLL_SUM, &reqs[i]),
		       0);
	if (!is_late(comm))
		expect(idle.calls > 0, 1);
	for (unsigned int i = 0; i <= info.window; i++)
		expect(zcoll_wait(reqs[i], ZCOLL_WAIT_FOREVER), 0);
}

/* Requests and calls keep their order, whichever way each rank's calls go */
static void order(struct zcoll_comm *comm)
{
	unsigned int rank = zcoll_comm_rank(comm), n = zcoll_comm_size(comm);
	int32_t *x = start(comm), y;
	struct zcoll_req *req;

	if (rank == 1)
		expect(zcoll_comm_set_idle(comm, NULL, NULL), 0);
	for (int i = 0; i < 60; i++) {
		y = i;
		expect(zcoll_iallreduce(comm, &y, &y, 1, ZCOLL_INT32, ZCOLL_SUM, &req), 0);
		fill(x, place->bytes / sizeof(*x), rank);
		expect(sum(comm, x), 0);
		expect_sum(x, place->bytes / sizeof(*x), n);
		expect(zcoll_wait(req, ZCOLL_WAIT_FOREVER), 0);
		expect(y, i * (int32_t)n);
	}
}

/* --------------------------------------------------------------------- failures */

/* Each wait begins with some looks, after each of which the function may be called */
static void slow_and_deadline(struct zcoll_comm *comm)
{
	int32_t *x = start(comm);
	uint64_t before;

	expect(sum(comm, x), 0);
	idle.sleep_ms = SLOW_MS;
	before = now_ms();
	if (is_late(comm))
		sleep_ms(5 * LATE_MS);
	expect(sum(comm, x), -ETIMEDOUT);
	expect_text(error_of(comm), "missing: 2");
	expect(now_ms() - before >= LATE_MS / 2, 1);
	if (!is_late(comm))
		expect(now_ms() - before < 4 * LATE_MS, 1);
}

static void death(struct zcoll_comm *comm)
{
	int32_t *x = start(comm);
	uint64_t before = now_ms();

	if (is_late(comm)) {
		sleep_ms(LATE_MS / 2);
		_exit(rank_failed());	/* and leaves not */
	}
	expect(sum(comm, x), -EOWNERDEAD);
	expect(now_ms() - before < SOON_MS, 1);
}

static void abort_meanwhile(struct zcoll_comm *comm)
{
	int32_t *x = start(comm);

	if (is_late(comm))
		sleep_ms(LATE_MS / 2);
	else
		idle.abort = comm;
	expect(sum(comm, x), -ECANCELED);
}

/* ------------------------------------------------------------------------- main */

static void test_place(void)
{
	struct ranks soon = RANKS(3);

	soon.deadline_ns = LATE_MS * MS;
	ok(run_ranks(&RANKS(2), called_while_waiting),
	   "who waits %s calls the function, and sleeps between", place->name);
	ok(run_ranks(&RANKS(2), no_longer_called), "taken back, it is not called %s",
	   place->name);
	ok(run_ranks(&RANKS(3), order), "calls %s among requests, on one rank without a function",
	   place->name);
	ok(run_ranks(&soon, slow_and_deadline), "a slow one, and a deadline that passes %s",
	   place->name);
	ok(run_ranks(&RANKS(2), death), "a rank dies while another waits %s", place->name);
	ok(run_ranks(&RANKS(2), abort_meanwhile), "the function aborts the wait %s", place->name);
}

int main(void)
{
	need_device();
	for (place = places; place < places + 3; place++)
		test_place();
	for (place = places; place < places + 2; place++)
		ok(run_ranks(&RANKS(1), alone), "who need not wait %s does not call it",
		   place->name);
	place = places;
	ok(run_ranks(&RANKS(2), requests), "a wait for a request calls it, a test does not");
	ok(run_ranks(&RANKS(2), room), "a request that waits for room calls it");
	return tap_end();
}
