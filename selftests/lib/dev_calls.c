// SPDX-License-Identifier: GPL-2.0
/*
 * The library on the device: blocking and non-blocking calls, memory, threads.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"
#include "tap.h"

#define COUNT	3001
#define LARGE	(1 << 20)	/* elements, far more than a caller does inline */

static int sum(struct zcoll_comm *comm, int32_t *send, int32_t *recv, uint64_t count)
{
	return zcoll_allreduce(comm, send, recv, count, ZCOLL_INT32, ZCOLL_SUM);
}

static void reduce_and_check(struct zcoll_comm *comm, int32_t *in, int32_t *out, uint64_t count)
{
	unsigned int n = zcoll_comm_size(comm);

	fill(in, count, zcoll_comm_rank(comm));
	memset(out, 0xff, count * sizeof(*out));
	expect(sum(comm, in, out, count), 0);
	expect_sum(out, count, n);

	fill(in, count, zcoll_comm_rank(comm));
	expect(sum(comm, in, in, count), 0);
	expect_sum(in, count, n);
}

static void addresses(struct zcoll_comm *comm)
{
	static int32_t in[COUNT], out[COUNT];
	struct zcoll_stats st;

	reduce_and_check(comm, in, out, COUNT);
	expect(zcoll_comm_stats(comm, &st), 0);
	expect(st.call_pins + st.ops_mailbox > 0, 1);
	expect(st.buffers, 0);
}

static void registered(struct zcoll_comm *comm)
{
	static int32_t mem[2 * COUNT];
	struct zcoll_stats st;

	expect(zcoll_register(comm, mem, sizeof(mem)), 0);
	reduce_and_check(comm, mem, mem + COUNT, COUNT);
	expect(zcoll_comm_stats(comm, &st), 0);
	expect(st.call_pins, 0);
	expect(st.buffers, 1);
	expect(zcoll_unregister(comm, mem), 0);
	expect(zcoll_comm_stats(comm, &st), 0);
	expect(st.buffers, 0);
	reduce_and_check(comm, mem, mem + COUNT, COUNT);
}

static void allocated(struct zcoll_comm *comm)
{
	const size_t len = 2UL * LARGE * sizeof(int32_t);
	int32_t *mem = zcoll_alloc(comm, len);
	struct zcoll_stats st;

	expect(mem != NULL, 1);
	if (!mem)
		return;
	reduce_and_check(comm, mem, mem + LARGE, LARGE);
	expect(zcoll_comm_stats(comm, &st), 0);
	expect(st.call_pins, 0);
	expect(zcoll_free(comm, mem), 0);
	expect(zcoll_alloc(comm, 5) != NULL, 1);	/* freed with the communicator */
}

static void types_and_operators(struct zcoll_comm *comm)
{
	unsigned int n = zcoll_comm_size(comm), r = zcoll_comm_rank(comm);
	double d[3] = { r, -1.0 * r, 1 };
	uint8_t u[3] = { r, 7, 1 };
	float f[2] = { r + 1, 0.5f };

	expect(zcoll_allreduce(comm, d, d, 3, ZCOLL_FP64, ZCOLL_MAX), 0);
	expect(d[0], n - 1);
	expect(d[1], 0);
	expect(d[2], 1);
	expect(zcoll_allreduce(comm, u, u, 3, ZCOLL_UINT8, ZCOLL_MIN), 0);
	expect(u[0], 0);
	expect(u[1], 7);
	expect(u[2], 1);
	expect(zcoll_allreduce(comm, f, f, 2, ZCOLL_FP32, ZCOLL_AVG), 0);
	expect(f[0] == (n + 1) / 2.0f && f[1] == 0.5f, 1);
}

static void barriers(struct zcoll_comm *comm)
{
	uint64_t entered, left;

	if (zcoll_comm_rank(comm) == 0)
		sleep_ms(100);
	entered = now_ms();
	expect(zcoll_barrier(comm), 0);
	left = now_ms();
	/* All ranks have one clock */
	expect(zcoll_broadcast(comm, &entered, &entered, 1, ZCOLL_UINT64, 0), 0);
	expect(left >= entered, 1);
	for (int i = 0; i < 200; i++)
		expect(zcoll_barrier(comm), 0);
}

#define IN_FLIGHT	8

static void start_requests(struct zcoll_comm *comm, int32_t (*mem)[COUNT], int nr,
			   struct zcoll_req **reqs)
{
	for (int i = 0; i < nr; i++) {
		fill(mem[i], COUNT, zcoll_comm_rank(comm));
		expect(zcoll_iallreduce(comm, mem[i], mem[i], COUNT, ZCOLL_INT32, ZCOLL_SUM,
					&reqs[i]), 0);
		expect(zcoll_req_seq(reqs[i]), i);
	}
}

static void requests(struct zcoll_comm *comm)
{
	static int32_t mem[IN_FLIGHT][COUNT];
	struct zcoll_req *reqs[IN_FLIGHT];
	int ret;

	start_requests(comm, mem, IN_FLIGHT, reqs);
	for (int i = IN_FLIGHT - 1; i >= IN_FLIGHT / 2; i--)
		expect(zcoll_wait(reqs[i], ZCOLL_WAIT_FOREVER), 0);
	for (int i = 0; i < IN_FLIGHT / 2; i++) {
		while ((ret = zcoll_test(reqs[i])) == -EAGAIN)
			sleep_ms(1);
		expect(ret, 0);
	}
	for (int i = 0; i < IN_FLIGHT; i++)
		expect_sum(mem[i], COUNT, zcoll_comm_size(comm));
}

static void late_rank_is_named(struct zcoll_comm *comm)
{
	unsigned int n = zcoll_comm_size(comm), last = n - 1;
	struct zcoll_req *req;
	struct zcoll_status st = { 0 };
	uint32_t missing[4] = { 99, 99, 99, 99 };
	char text[ZCOLL_TEXT_MAX], name[16];
	int32_t x = 1;

	if (zcoll_comm_rank(comm) == last)
		sleep_ms(400);
	expect(zcoll_iallreduce(comm, &x, &x, 1, ZCOLL_INT32, ZCOLL_SUM, &req), 0);
	if (zcoll_comm_rank(comm) == 0) {
		sleep_ms(150);
		expect(zcoll_wait(req, 10 * MS), -EAGAIN);
		st.missing = (uintptr_t)missing;
		st.missing_len = 4;
		expect(zcoll_comm_pending(comm, zcoll_req_seq(req), &st), 0);
		expect(st.state, ZCOLL_STATE_WAITING);
		expect(st.arrived, n - 1);
		expect(missing[0], last);
		snprintf(name, sizeof(name), "%u", last);
		expect(zcoll_req_error(req, text, sizeof(text)) > 0, 1);
		expect_text(text, name);
	}
	expect(zcoll_wait(req, ZCOLL_WAIT_FOREVER), 0);
	expect(x, n);
}

#define MANY	100

static void window(struct zcoll_comm *comm)
{
	static struct zcoll_req *reqs[MANY];
	static int32_t x[MANY];
	struct zcoll_info info;

	expect(zcoll_info_get(NULL, &info), 0);
	expect(MANY > info.window, 1);
	if (zcoll_comm_rank(comm) == 0)
		sleep_ms(100);
	for (int i = 0; i < MANY; i++) {
		x[i] = i;
		expect(zcoll_iallreduce(comm, &x[i], &x[i], 1, ZCOLL_INT32, ZCOLL_SUM, &reqs[i]), 0);
	}
	for (int i = 0; i < MANY; i++) {
		expect(zcoll_wait(reqs[i], ZCOLL_WAIT_FOREVER), 0);
		expect(x[i], i * (int)zcoll_comm_size(comm));
	}
}

/* ---------------------------------------------------------------- threads */

static void *thread_barriers(void *arg)
{
	for (int i = 0; i < 50; i++)
		expect(zcoll_barrier(arg), 0);
	return NULL;
}

/* Barriers are all alike, so that their order does not matter */
static void threads_share(struct zcoll_comm *comm)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, thread_barriers, comm);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void *thread_of_its_own(void *arg)
{
	struct zcoll_attr attr = rank_attr;
	struct zcoll_comm *comm;
	int32_t x = 1;

	zcoll_key_derive(attr.key, arg);
	expect(zcoll_comm_create(&comm, &attr), 0);
	for (int i = 0; i < 50; i++) {
		x = i;
		expect(sum(comm, &x, &x, 1), 0);
		expect(x, i * (int)attr.nranks);
	}
	expect(zcoll_comm_free(comm), 0);
	return NULL;
}

static void threads_apart(const struct zcoll_attr *attr)
{
	static char names[3][2] = { "a", "b", "c" };
	pthread_t threads[3];

	(void)attr;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, thread_of_its_own, names[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

struct job {
	struct zcoll_comm *comm;
	int32_t *mem;
	struct zcoll_req *req;
};

static void *thread_starts(void *arg)
{
	struct job *job = arg;

	expect(zcoll_iallreduce(job->comm, job->mem, job->mem, LARGE, ZCOLL_INT32, ZCOLL_SUM,
				&job->req), 0);
	return NULL;
}

/* The thread that submitted is gone when another one waits */
static void starter_is_gone(struct zcoll_comm *comm)
{
	struct job job = { comm, zcoll_alloc(comm, LARGE * sizeof(int32_t)), NULL };
	pthread_t thread;

	fill(job.mem, LARGE, zcoll_comm_rank(comm));
	if (zcoll_comm_rank(comm) == 0)
		sleep_ms(100);
	pthread_create(&thread, NULL, thread_starts, &job);
	pthread_join(thread, NULL);
	expect(zcoll_wait(job.req, ZCOLL_WAIT_FOREVER), 0);
	expect_sum(job.mem, LARGE, zcoll_comm_size(comm));
}

/* ---------------------------------------------------------------- signals */

static volatile sig_atomic_t signals;
static atomic_bool stop;

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static void *thread_signals(void *arg)
{
	while (!atomic_load(&stop)) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		sleep_ms(2);
	}
	return NULL;
}

static void under_signals(struct zcoll_comm *comm)
{
	struct sigaction act = { .sa_handler = on_signal };	/* no SA_RESTART */
	pthread_t thread, self = pthread_self();
	struct zcoll_req *req;
	int32_t x = 1;

	sigaction(SIGUSR1, &act, NULL);
	pthread_create(&thread, NULL, thread_signals, &self);
	if (zcoll_comm_rank(comm) == 0)
		sleep_ms(100);
	expect(sum(comm, &x, &x, 1), 0);
	expect(x, zcoll_comm_size(comm));
	if (zcoll_comm_rank(comm) == 0)
		sleep_ms(100);
	expect(zcoll_iallreduce(comm, &x, &x, 1, ZCOLL_INT32, ZCOLL_MAX, &req), 0);
	expect(zcoll_wait(req, ZCOLL_WAIT_FOREVER), 0);
	expect(x, zcoll_comm_size(comm));
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	expect(signals > 0, 1);
}

int main(void)
{
	need_device();
	ok(run_ranks(&RANKS(4), addresses), "unregistered memory is pinned for the call");
	ok(run_ranks(&RANKS(4), registered), "registered memory is used by its handle");
	ok(run_ranks(&RANKS(3), allocated), "zcoll_alloc() gives registered memory");
	ok(run_ranks(&RANKS(3), types_and_operators), "types and operators mean what they say");
	ok(run_ranks(&RANKS(4), barriers), "a barrier waits for all");
	ok(run_ranks(&RANKS(1), addresses), "one rank alone");
	ok(run_ranks(&RANKS(4), requests), "requests end in any order");
	ok(run_ranks(&RANKS(4), late_rank_is_named), "a late rank is named");
	ok(run_ranks(&RANKS(2), window), "more requests than the window waits for the oldest");
	ok(run_ranks(&RANKS(2), threads_share), "threads may share a communicator");
	ok(run_attrs(&RANKS(2), threads_apart), "threads may have communicators of derived keys");
	ok(run_ranks(&RANKS(2), starter_is_gone), "a request outlives the thread that started it");
	ok(run_ranks(&RANKS(2), under_signals), "signals do not end calls");
	return tap_end();
}
