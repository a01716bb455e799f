// SPDX-License-Identifier: GPL-2.0
/*
 * The library on the device: operations that the ranks of a node do without the kernel, by mail
 * and by heap. Which way they go, that all ranks meet whichever way each goes, and that failures
 * are as those of the kernel, whether ranks wait in mailboxes, heaps or the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ranks.h"
#include "tap.h"

#define MAX_RANKS	4
#define SOON_MS		3000	/* "within a second", if CPUs are emulated */

static int sum(struct zcoll_comm *comm, int32_t *x, uint64_t count)
{
	return zcoll_allreduce(comm, x, x, count, ZCOLL_INT32, ZCOLL_SUM);
}

/* What has been done in which way */
static struct zcoll_stats ways(struct zcoll_comm *comm)
{
	struct zcoll_stats stats = { .size = sizeof(stats) };

	expect(zcoll_comm_stats(comm, &stats), 0);
	return stats;
}

/* ---------------------------------------------------------------------- which way */

static void by_mail(struct zcoll_comm *comm)
{
	struct zcoll_stats before, after;
	int32_t x[256] = { 0 };

	expect(zcoll_barrier(comm), 0);		/* all ranks' mailboxes are open now */
	before = ways(comm);
	for (int i = 0; i < 100; i++) {
		x[0] = 1;
		expect(sum(comm, x, i % 2 ? 1 : 256), 0);
		expect(x[0], zcoll_comm_size(comm));
	}
	expect(zcoll_barrier(comm), 0);
	after = ways(comm);
	expect(after.ops_mailbox - before.ops_mailbox, 101);
	expect(after.ops_heap, before.ops_heap);
	expect(after.ops_done, before.ops_done);
}

/* With $ZCOLL_MAIL_BYTES=512 */
static void larger_than_mail(struct zcoll_comm *comm)
{
	struct zcoll_stats before, after;
	int32_t x[129] = { 0 };

	expect(zcoll_barrier(comm), 0);
	before = ways(comm);
	for (int i = 0; i < 10; i++) {
		x[0] = 1;
		expect(sum(comm, x, 128), 0);
		x[0] = 1;
		expect(sum(comm, x, 129), 0);
		expect(x[0], zcoll_comm_size(comm));
	}
	after = ways(comm);
	expect(after.ops_mailbox - before.ops_mailbox, 10);
	expect(after.ops_done - before.ops_done, 10);
}

static void by_heap(struct zcoll_comm *comm)
{
	int32_t *x = zcoll_alloc(comm, 64 << 10);
	struct zcoll_stats before, after;

	expect(!!x, 1);
	expect(zcoll_barrier(comm), 0);
	before = ways(comm);
	for (int i = 0; i < 50; i++) {
		uint64_t count = (i % 2 ? 16 << 10 : 64 << 10) / sizeof(*x);

		fill(x, count, zcoll_comm_rank(comm));
		expect(sum(comm, x, count), 0);
		expect_sum(x, count, zcoll_comm_size(comm));
	}
	after = ways(comm);
	expect(after.ops_heap - before.ops_heap, 50);
	expect(after.ops_done, before.ops_done);
}

/* Where ranks take turns on CPUs, who has one is to do what is left, and only the kernel knows */
static void large_heap(struct zcoll_comm *comm)
{
	bool crowded = sysconf(_SC_NPROCESSORS_ONLN) < (long)zcoll_comm_size(comm);
	int32_t *x = zcoll_alloc(comm, 1 << 20);
	struct zcoll_stats before, after;

	expect(!!x, 1);
	expect(zcoll_barrier(comm), 0);
	before = ways(comm);
	x[0] = 1;
	expect(sum(comm, x, 1 << 18), 0);
	expect(x[0], zcoll_comm_size(comm));
	after = ways(comm);
	expect(after.ops_heap - before.ops_heap, !crowded);
	expect(after.ops_done - before.ops_done, crowded);
}

static void by_kernel(struct zcoll_comm *comm)
{
	int32_t *heap = zcoll_alloc(comm, 1 << 16), x;
	struct zcoll_stats stats;

	expect(!!heap, 1);
	for (int i = 0; i < 20; i++) {
		x = 1;
		expect(sum(comm, &x, 1), 0);
		expect(x, zcoll_comm_size(comm));
		expect(sum(comm, heap, 1 << 14), 0);
	}
	stats = ways(comm);
	expect(stats.ops_mailbox, 0);
	expect(stats.ops_heap, 0);
	expect(stats.ops_done >= 40, 1);
}

/* ------------------------------------------------------------------------- meeting */

static void requests_meet_calls(struct zcoll_comm *comm)
{
	int32_t *heap = zcoll_alloc(comm, 1 << 16);

	expect(!!heap, 1);
	expect(zcoll_barrier(comm), 0);
	for (unsigned int i = 0; i < 60; i++) {
		uint64_t count = i % 3 ? 2 : 1 << 13;
		struct zcoll_req *req;

		fill(heap, count, zcoll_comm_rank(comm));
		if (i % zcoll_comm_size(comm) == zcoll_comm_rank(comm)) {
			expect(zcoll_iallreduce(comm, heap, heap, count, ZCOLL_INT32, ZCOLL_SUM,
						&req), 0);
			expect(zcoll_wait(req, ZCOLL_WAIT_FOREVER), 0);
		} else {
			expect(sum(comm, heap, count), 0);
		}
		expect_sum(heap, count, zcoll_comm_size(comm));
	}
}

/* A rank that knows nothing of mailboxes */
static void raw_calls(const struct zcoll_attr *attr, int calls)
{
	struct zcoll_join join = { .size = sizeof(join), .rank = attr->rank,
				   .nranks = attr->nranks };
	int dev = open("/dev/zcoll", O_RDWR | O_CLOEXEC), ep;

	memcpy(join.key, attr->key, sizeof(join.key));
	ep = ioctl(dev, ZCOLL_IOC_JOIN, &join);
	expect(ep >= 0, 1);
	for (int i = 0; i < calls; i++) {
		int32_t x = 1;
		struct zcoll_cmd cmd = { .version = ZCOLL_CMD_VERSION, .dtype = ZCOLL_INT32,
					 .op = ZCOLL_SUM, .seq = i, .send = (uintptr_t)&x,
					 .recv = (uintptr_t)&x, .send_buf = ZCOLL_NO_BUF,
					 .recv_buf = ZCOLL_NO_BUF, .count = 1 };

		expect(ioctl(ep, ZCOLL_IOC_ALLREDUCE, &cmd), 0);
		expect(x, attr->nranks);
	}
	close(ep);
	close(dev);
}

static void without_mailbox(const struct zcoll_attr *attr)
{
	const int calls = 100;
	struct zcoll_comm *comm;

	if (attr->rank == 1) {
		raw_calls(attr, calls);
		return;
	}
	expect(zcoll_comm_create(&comm, attr), 0);
	for (int i = 0; i < calls; i++) {
		int32_t x = 1;

		expect(sum(comm, &x, 1), 0);
		expect(x, attr->nranks);
	}
	expect(ways(comm).ops_mailbox, 0);
	expect(zcoll_comm_free(comm), 0);
}

/* ------------------------------------------------------------------ windows and gaps */

#define REQUESTS	6

/* Operations in flight; each slot is waited for when it is needed again */
static struct flight {
	struct zcoll_req *req;
	int32_t x;
	int32_t want;
} flights[REQUESTS];

static void land(struct flight *f)
{
	if (!f->req)
		return;
	expect(zcoll_wait(f->req, ZCOLL_WAIT_FOREVER), 0);
	expect(f->x, f->want);
	f->req = NULL;
}

static void take_off(struct zcoll_comm *comm, struct flight *f, int32_t x)
{
	land(f);
	f->x = x;
	f->want = x * (int32_t)zcoll_comm_size(comm);
	expect(zcoll_iallreduce(comm, &f->x, &f->x, 1, ZCOLL_INT32, ZCOLL_SUM, &f->req), 0);
}

static void on_ring(struct zcoll_comm *comm, struct io_uring *ring, int32_t x)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	struct zcoll_cmd cmd;
	int32_t got = x;

	for (int i = 0; i < REQUESTS; i++)
		land(&flights[i]);
	expect(zcoll_prep_allreduce(sqe, ring->flags, comm, &cmd, &got, &got, 1, ZCOLL_INT32,
				    ZCOLL_SUM), 0);
	expect(io_uring_submit_and_wait(ring, 1), 1);
	if (io_uring_wait_cqe(ring, &cqe))
		return;
	expect(cqe->res, 0);
	io_uring_cqe_seen(ring, cqe);
	expect(got, x * (int32_t)zcoll_comm_size(comm));
}

/* All ranks draw the same; by which way a rank goes may differ */
static void thousands(struct zcoll_comm *comm)
{
	unsigned int rank = zcoll_comm_rank(comm), n = zcoll_comm_size(comm), state = 5;
	int32_t *heap = zcoll_alloc(comm, 4096);
	struct io_uring ring;

	expect(!!heap, 1);
	expect(io_uring_queue_init(4, &ring, 0), 0);
	for (int i = 0; i < 3000 && !rank_failed(); i++) {
		unsigned int dice = (state = state * 1103515245 + 12345) >> 16 & 63;
		int32_t x = i;

		if (dice < 4 || (dice < 8 && (rank + i) % 2)) {
			take_off(comm, &flights[i % REQUESTS], x);
		} else if (dice == 8) {
			on_ring(comm, &ring, x);
		} else if (dice > 8 && dice < 16) {
			fill(heap, 1024, rank);
			expect(sum(comm, heap, 1024), 0);
			expect_sum(heap, 1024, n);
		} else {
			expect(sum(comm, &x, 1), 0);
			expect(x, i * (int32_t)n);
		}
	}
	for (int i = 0; i < REQUESTS; i++)
		land(&flights[i]);
	io_uring_queue_exit(&ring);
}

/* The request stays in flight for the library, many windows long */
static void request_behind_many_calls(struct zcoll_comm *comm)
{
	int32_t x;

	for (int turn = 0; turn < 3; turn++) {
		take_off(comm, &flights[0], 7);
		for (int i = 0; i < 200; i++) {
			x = i;
			expect(sum(comm, &x, 1), 0);
			expect(x, i * (int32_t)zcoll_comm_size(comm));
		}
		land(&flights[0]);
	}
}

/* ------------------------------------------------------------- two communicators */

static struct zcoll_comm *another(const char *name)
{
	struct zcoll_attr attr = rank_attr;
	struct zcoll_comm *comm = NULL;

	zcoll_key_derive(attr.key, name);
	expect(zcoll_comm_create(&comm, &attr), 0);
	return comm;
}

static void in_turn(struct zcoll_comm *comm)
{
	struct zcoll_comm *comms[2] = { comm, another("second") };
	int32_t *heap = zcoll_alloc(comm, 1 << 14);

	expect(heap && comms[1], 1);
	for (int i = 0; i < 200 && comms[1]; i++) {
		uint64_t count = i % 4 < 2 ? 3 : 1 << 12;

		fill(heap, count, zcoll_comm_rank(comm));
		expect(sum(comms[i % 2], heap, count), 0);
		expect_sum(heap, count, zcoll_comm_size(comm));
	}
	expect(zcoll_comm_free(comms[1]), 0);
}

static void *calls_of_a_thread(void *arg)
{
	struct zcoll_comm *comm = arg;
	int32_t *heap = zcoll_alloc(comm, 1 << 14);

	for (int i = 0; i < 200 && heap; i++) {
		uint64_t count = i % 2 ? 3 : 1 << 12;

		fill(heap, count, zcoll_comm_rank(comm));
		expect(sum(comm, heap, count), 0);
		expect_sum(heap, count, zcoll_comm_size(comm));
	}
	return NULL;
}

static void threads(struct zcoll_comm *comm)
{
	struct zcoll_comm *second = another("second");
	pthread_t thread;

	expect(pthread_create(&thread, NULL, calls_of_a_thread, second), 0);
	calls_of_a_thread(comm);
	pthread_join(thread, NULL);
	expect(zcoll_comm_free(second), 0);
}

/* ------------------------------------------------------------------------ waiting */

/* Half of the time would still be far too much; but CPUs may be emulated, and taken away */
static void late_rank(struct zcoll_comm *comm)
{
	const unsigned int late_ms = 200;
	int32_t *heap = zcoll_alloc(comm, 1 << 14);

	expect(!!heap, 1);
	for (int i = 0; i < 2; i++) {
		uint64_t count = i ? 1 << 12 : 2, before;

		fill(heap, count, zcoll_comm_rank(comm));
		expect(zcoll_barrier(comm), 0);
		before = cpu_ms();
		if (zcoll_comm_rank(comm) == 1)
			sleep_ms(late_ms);
		expect(sum(comm, heap, count), 0);
		expect(cpu_ms() - before < late_ms / 2, 1);
		expect_sum(heap, count, zcoll_comm_size(comm));
	}
}

/* ----------------------------------------------------------------------- failures */

/* What a rank waits in: a small operation, or one in heaps */
static uint64_t waits_for_bytes;

static int32_t *ready(struct zcoll_comm *comm)
{
	int32_t *x = zcoll_alloc(comm, 1 << 18);

	expect(!!x, 1);
	expect(zcoll_barrier(comm), 0);
	expect(sum(comm, x, waits_for_bytes / sizeof(*x)), 0);
	return x;
}

static void expect_failure(struct zcoll_comm *comm, int32_t *x, int err, const char *part)
{
	uint64_t before = now_ms();

	expect(sum(comm, x, waits_for_bytes / sizeof(*x)), err);
	expect_text(error_of(comm), part);
	expect(sum(comm, x, 1), err);
	expect(zcoll_barrier(comm), err);
	expect(now_ms() - before < SOON_MS, 1);
}

static void deadline(struct zcoll_comm *comm)
{
	int32_t *x = ready(comm);
	uint64_t before = now_ms();

	if (zcoll_comm_rank(comm) == 2)
		sleep_ms(1000);
	expect_failure(comm, x, -ETIMEDOUT, "missing: 2");
	/* The deadline of who called first counts, which need not be this one */
	expect(now_ms() - before >= 200, 1);
}

/* Rank 0 waits for lines first, and then in the kernel, where rank 1's memory sends them all */
static void one_deadline(struct zcoll_comm *comm)
{
	const uint64_t deadline_ms = 2000, count = 1 << 16;
	unsigned int rank = zcoll_comm_rank(comm);
	static int32_t plain[1 << 16];
	int32_t *x = ready(comm);
	uint64_t before = now_ms();

	sleep_ms(rank * deadline_ms * 3 / 4);
	expect(sum(comm, rank == 1 ? plain : x, count), -ETIMEDOUT);
	expect_text(error_of(comm), "missing: 2");
	if (!rank)
		expect(now_ms() - before < deadline_ms * 3 / 2, 1);
}

static void dies(struct zcoll_comm *comm)
{
	int32_t *x = ready(comm);

	if (zcoll_comm_rank(comm) == 1) {
		sleep_ms(100);
		_exit(rank_failed());	/* and leaves not */
	}
	expect_failure(comm, x, -EOWNERDEAD, "rank 1");
}

static void aborts(struct zcoll_comm *comm)
{
	int32_t *x = ready(comm);

	if (zcoll_comm_rank(comm) == 1) {
		sleep_ms(100);
		expect(zcoll_comm_abort(comm), 0);
	}
	expect_failure(comm, x, -ECANCELED, "rank 1");
}

static void leaves(struct zcoll_comm *comm)
{
	int32_t *x = ready(comm);

	if (zcoll_comm_rank(comm) == 1)
		sleep_ms(100);
	else
		expect_failure(comm, x, -ESHUTDOWN, "rank 1");
}

/* What the ranks were told, for all of them to see */
static char (*told)[ZCOLL_TEXT_MAX];

static void sizes_differ(struct zcoll_comm *comm)
{
	unsigned int rank = zcoll_comm_rank(comm);
	int32_t *x = ready(comm), *large = zcoll_alloc(comm, 1 << 20);

	expect(!!large, 1);
	expect(rank == 1 ? sum(comm, large, 1 << 18) : sum(comm, x, 2), -EPROTO);
	snprintf(told[rank], ZCOLL_TEXT_MAX, "%s", error_of(comm));
	expect_text(told[rank], "rank 0");
	expect_text(told[rank], "rank 1");
	expect_text(told[rank], "count");
}

static void collectives_differ(struct zcoll_comm *comm)
{
	int32_t *x = ready(comm), all[MAX_RANKS];

	if (zcoll_comm_rank(comm))
		expect(sum(comm, x, 1), -EPROTO);
	else
		expect(zcoll_allgather(comm, x, all, 1, ZCOLL_INT32), -EPROTO);
	expect_text(error_of(comm), "collective");
}

/* Does a line of this rank have @payload? */
static bool line_has(struct zcoll_comm *comm, const int32_t *payload, size_t bytes)
{
	const char *box = mmap(NULL, ZCOLL_MAILBOX_BYTES, PROT_READ, MAP_SHARED,
			       zcoll_comm_fd(comm), ZCOLL_SPAN(zcoll_comm_rank(comm)));
	bool found = false;

	if (box == MAP_FAILED)
		return false;
	for (uint64_t i = 0; i < ZCOLL_LINES && !found; i++) {
		const struct zcoll_line *line = (const void *)(box + ZCOLL_LINE_AT(i));

		found = !memcmp(line->payload, payload, bytes);
	}
	munmap((void *)box, ZCOLL_MAILBOX_BYTES);
	return found;
}

/* Others may have seen the line of a call that failed, and read what it says later */
static void call_after_a_failure(struct zcoll_comm *comm)
{
	int32_t first[2] = { 0x5ca1ab1e, 0x0ddba11 }, second[2] = { 1, 2 };
	int32_t out[2];

	expect(zcoll_barrier(comm), 0);
	if (zcoll_comm_rank(comm) == 1) {
		sleep_ms(100);
		expect(zcoll_comm_abort(comm), 0);
		return;
	}
	expect(zcoll_allreduce(comm, first, out, 2, ZCOLL_INT32, ZCOLL_SUM), -ECANCELED);
	expect(line_has(comm, first, sizeof(first)), 1);
	expect(zcoll_allreduce(comm, second, out, 2, ZCOLL_INT32, ZCOLL_SUM), -ECANCELED);
	expect(line_has(comm, first, sizeof(first)), 1);
}

/* More than a span has: it lies in no heap, wherever it is, and is for the kernel to refuse */
static void larger_than_any_heap(struct zcoll_comm *comm)
{
	const uint64_t bytes = ZCOLL_SPAN_BYTES + (1 << 20);
	void *none = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			  -1, 0);
	int32_t *heap = zcoll_alloc(comm, 1 << 14);
	int err;

	expect(none != MAP_FAILED && heap, 1);
	memset(heap, 0, 1 << 14);
	expect(sum(comm, heap, 1 << 12), 0);
	err = zcoll_allreduce(comm, none, none, bytes, ZCOLL_UINT8, ZCOLL_SUM);
	expect(err == -EFAULT || err == -ENOMEM || err == -EDQUOT, 1);
	expect(sum(comm, heap, 1 << 12), 0);
}

/* --------------------------------------------------------------------------- main */

static void test_failures(const char *where)
{
	struct ranks soon = RANKS(3);

	soon.deadline_ns = 300 * MS;
	ok(run_ranks(&soon, deadline), "a deadline passes %s, and names the missing rank", where);
	ok(run_ranks(&RANKS(3), dies), "a rank dies while others wait %s", where);
	ok(run_ranks(&RANKS(3), aborts), "a rank aborts while others wait %s", where);
	ok(run_ranks(&RANKS(3), leaves), "a rank leaves while others wait %s", where);
}

int main(void)
{
	struct ranks late = RANKS(3);

	need_device();
	told = mmap(NULL, MAX_RANKS * sizeof(*told), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ok(run_ranks(&RANKS(1), by_mail), "alone: by mail");
	ok(run_ranks(&RANKS(3), by_mail), "small operations go by mail, all of them");
	ok(run_ranks(&RANKS(3), by_heap), "operations on allocated memory go by heap");
	ok(run_ranks(&RANKS(1), large_heap), "large ones, too");
	ok(run_ranks(&RANKS(4), large_heap), "but where there are more ranks than CPUs");
	setenv("ZCOLL_MAILBOX", "0", 1);
	ok(run_ranks(&RANKS(2), by_kernel), "without mailboxes, all go to the kernel");
	unsetenv("ZCOLL_MAILBOX");
	setenv("ZCOLL_MAIL_BYTES", "512", 1);
	ok(run_ranks(&RANKS(2), larger_than_mail), "what is larger than mail may be goes to the kernel");
	unsetenv("ZCOLL_MAIL_BYTES");
	ok(run_ranks(&RANKS(3), requests_meet_calls), "requests and blocking calls meet");
	ok(run_attrs(&RANKS(3), without_mailbox),
	   "a rank without mailbox meets those that have one");
	ok(run_ranks(&RANKS(3), thousands), "thousands of calls, in all ways");
	ok(run_ranks(&RANKS(2), request_behind_many_calls), "a request behind hundreds of calls");
	ok(run_ranks(&RANKS(3), in_turn), "two communicators in turn");
	ok(run_ranks(&RANKS(2), threads), "two threads of each rank, on two communicators");
	ok(run_ranks(&RANKS(3), late_rank), "who waits for a late rank sleeps");

	waits_for_bytes = 8;
	test_failures("for mail");
	waits_for_bytes = 1 << 15;
	test_failures("in heaps");
	late.deadline_ns = 2000 * MS;
	ok(run_ranks(&late, one_deadline), "one deadline holds for the wait for lines and the kernel's");
	ok(run_ranks(&RANKS(3), call_after_a_failure),
	   "a call after a failure changes no line that others may be reading");
	ok(run_ranks(&RANKS(2), larger_than_any_heap), "operands larger than any heap");
	waits_for_bytes = 8;
	ok(run_ranks(&RANKS(2), sizes_differ), "8 bytes and 1 MiB do not meet");
	ok(told[0][0] && !strcmp(told[0], told[1]), "and all ranks are told the same");
	ok(run_ranks(&RANKS(3), collectives_differ), "small operations that differ do not meet");
	return tap_end();
}
