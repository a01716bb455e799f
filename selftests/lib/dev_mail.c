// SPDX-License-Identifier: GPL-2.0
/*
 * The library on the device: operations that the ranks of a node do without the kernel, by mail
 * and by heap. Results are compared with what the kernel makes of the same call, bit for bit: a
 * request (zcoll_icall()) always is for the kernel.
 *
 * Failures must be as those of the kernel, and whether ranks wait in mailboxes, heaps or the
 * kernel, they meet.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zcoll_plan.h>

#include "against.h"
#include "ranks.h"
#include "tap.h"

#define MAX_RANKS	4
#define MAX_BYTES	(1UL << 20)		/* of an input or output */
#define GUARD		64
#define BUF_BYTES	(2 * MAX_BYTES + GUARD)
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

/* ------------------------------------------------------------------------ results */

enum memory { PLAIN, ALLOCATED, MIXED, NR_MEMORIES };

struct buffers {
	char *in, *out;
};

/* Buffers of a rank; the first ones are the kernel's */
static struct buffers kernels, plain, allocated;

static bool get_buffers(struct zcoll_comm *comm)
{
	kernels = (struct buffers){ malloc(BUF_BYTES), malloc(BUF_BYTES) };
	plain = (struct buffers){ malloc(BUF_BYTES), malloc(BUF_BYTES) };
	allocated = (struct buffers){ zcoll_alloc(comm, BUF_BYTES), zcoll_alloc(comm, BUF_BYTES) };
	expect(allocated.in && allocated.out, 1);
	return kernels.in && kernels.out && plain.in && plain.out && allocated.in && allocated.out;
}

static unsigned int collective;

static bool in_blocks(void)
{
	return collective == ZCOLL_REDUCE_SCATTER || collective == ZCOLL_ALLGATHER;
}

/* Set a call up in @buffers; in place means what it does for its collective */
static void place(const struct zcoll_comm *comm, struct zcoll_call *call,
		  const struct buffers *buffers, size_t block, bool in_place)
{
	char *in = in_place ? buffers->out : buffers->in, *out = buffers->out;
	size_t whole = in_blocks() ? zcoll_comm_size(comm) * block : block;
	unsigned int rank = zcoll_comm_rank(comm);

	memset(buffers->in, 0xa5, whole + GUARD);
	memset(buffers->out, 0xa5, whole + GUARD);
	if (in_place && call->collective == ZCOLL_ALLGATHER)
		in += rank * block;
	if (in_place && call->collective == ZCOLL_REDUCE_SCATTER)
		out += rank * block;
	fill_bits(in, call->collective == ZCOLL_REDUCE_SCATTER ? whole : block, rank,
		  zcoll_dtype_size(call->dtype));
	call->send = in;
	call->recv = out;
}

static const struct buffers *mine(const struct zcoll_comm *comm, enum memory memory)
{
	bool heap = memory == ALLOCATED || (memory == MIXED && zcoll_comm_rank(comm) % 2);

	return heap ? &allocated : &plain;
}

/* The call is done twice, by a request and as it is, and leaves the same bytes everywhere */
static void same_as_kernel(struct zcoll_comm *comm, struct zcoll_call *call, enum memory memory,
			   bool in_place)
{
	size_t block = call->count * zcoll_dtype_size(call->dtype);
	size_t bytes = (in_blocks() ? zcoll_comm_size(comm) * block : block) + GUARD;
	const struct buffers *buffers = mine(comm, memory);
	struct zcoll_req *req;
	int ret;

	place(comm, call, &kernels, block, in_place);
	ret = zcoll_icall(comm, call, &req);
	expect(ret ? ret : zcoll_wait(req, ZCOLL_WAIT_FOREVER), 0);
	place(comm, call, buffers, block, in_place);
	expect(zcoll_call(comm, call), 0);
	if (!memcmp(kernels.in, buffers->in, bytes) && !memcmp(kernels.out, buffers->out, bytes))
		return;
	printf("# %llu of %s by %s, %s, memory %d: not what the kernel gives\n",
	       (unsigned long long)call->count, zcoll_dtype_name(call->dtype),
	       call->op ? zcoll_op_name(call->op) : "nothing",
	       in_place ? "in place" : "not in place", memory);
	expect(0, 1);
}

/* Types and operators by turns, so that each size sees some */
static void choose_type(struct zcoll_comm *comm, struct zcoll_call *call, unsigned int turn)
{
	call->dtype = 1 + turn % (ZCOLL_NR_TYPES - 1);
	call->op = call_reduces(collective) ? 1 + turn / 3 % (ZCOLL_NR_OPS - 1) : 0;
	call->root = call_rooted(collective) ? turn % zcoll_comm_size(comm) : 0;
}

/* So many elements that they are @bytes, or a few more; blocks share the largest size */
static uint64_t elements(struct zcoll_comm *comm, const struct zcoll_call *call, uint64_t bytes)
{
	size_t size = zcoll_dtype_size(call->dtype);

	if (bytes == MAX_BYTES && in_blocks())
		bytes /= zcoll_comm_size(comm);
	return (bytes + size - 1) / size;
}

static void sizes(struct zcoll_comm *comm)
{
	static const uint64_t bytes[] = { 0, 1, 48, 49, 340, 1024, 1025, 4096, 16 << 10,
					  64 << 10, (64 << 10) + 4, MAX_BYTES };
	struct zcoll_call call = { .size = sizeof(call), .collective = collective };
	unsigned int turn = 0;

	if (!get_buffers(comm))
		return;
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
		for (int memory = 0; memory < NR_MEMORIES; memory++) {
			choose_type(comm, &call, turn++);
			call.count = elements(comm, &call, bytes[i]);
			same_as_kernel(comm, &call, memory, (i + memory) % 2);
		}
}

static void types_and_operators(struct zcoll_comm *comm)
{
	struct zcoll_call call = { .size = sizeof(call), .collective = collective };

	if (!get_buffers(comm))
		return;
	for (call.dtype = 1; call.dtype < ZCOLL_NR_TYPES; call.dtype++)
		for (call.op = 1; call.op < ZCOLL_NR_OPS; call.op++) {
			call.count = 5;
			same_as_kernel(comm, &call, PLAIN, false);
			call.count = 101;
			same_as_kernel(comm, &call, PLAIN, true);
			call.count = 2049;
			same_as_kernel(comm, &call, ALLOCATED, false);
		}
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
	int32_t *x = zcoll_alloc(comm, 1 << 16);

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

/* ------------------------------------------------------------------------- memory */

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

static bool all_bytes_are(const char *p, size_t len, char byte)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != byte)
			return false;
	return true;
}

static void allocations(struct zcoll_comm *comm)
{
	static const size_t lens[] = { 1, 4095, 4096, 4097, 100000, (2 << 20) - 1, 2 << 20,
				       (2 << 20) + 1, 5 << 20 };
	enum { NR = sizeof(lens) / sizeof(*lens) };
	char *p[NR];

	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < NR; i++) {
			p[i] = zcoll_alloc(comm, lens[i]);
			expect(!!p[i], 1);
			if (!p[i])
				return;
			expect((uintptr_t)p[i] % (lens[i] < 2 << 20 ? 4096 : 2 << 20), 0);
			expect(all_bytes_are(p[i], lens[i], 0), 1);
			memset(p[i], i + 1, lens[i]);
		}
		for (int i = 0; i < NR; i++)
			expect(all_bytes_are(p[i], lens[i], i + 1), 1);
		/* In another order each time */
		for (int i = 0; i < NR; i++)
			expect(zcoll_free(comm, p[(i * (turn + 1) + turn) % NR]),
			       turn == 2 && i > 2 ? -ENOENT : 0);
		for (int i = 0; turn == 2 && i < NR; i++)
			zcoll_free(comm, p[i]);
	}
	expect(zcoll_free(comm, p[0]), -ENOENT);
}

static void addresses_are_used_again(struct zcoll_comm *comm)
{
	char *keep = zcoll_alloc(comm, 4096), *first = zcoll_alloc(comm, 1 << 16), *p;

	expect(keep && first, 1);
	expect(zcoll_free(comm, first), 0);
	for (int i = 0; i < 100; i++) {
		p = zcoll_alloc(comm, 1 << 16);
		expect(p == first, 1);
		expect(zcoll_free(comm, p), 0);
	}
}

static void freed_pages_are_given_back(struct zcoll_comm *comm)
{
	const size_t len = 1 << 20;
	unsigned char core[256];
	char *p = zcoll_alloc(comm, len);

	expect(!!p, 1);
	memset(p, 1, len);
	expect(mincore(p, len, core), 0);
	expect(core[0] & core[255] & 1, 1);
	expect(zcoll_free(comm, p), 0);
	if (!mincore(p, len, core))
		for (size_t i = 0; i < sizeof(core); i++)
			expect(core[i] & 1, 0);
}

/* Of the whole machine, kB */
static long shmem_kb(void)
{
	char line[128];
	long kb = -1;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "Shmem: %ld", &kb) != 1)
		;
	if (f)
		fclose(f);
	return kb;
}

static void memory_ends_with_the_communicator(const struct zcoll_attr *attr)
{
	const long kb = 32 << 10;
	long before = shmem_kb(), during;
	struct zcoll_comm *comm;
	char *p;

	expect(zcoll_comm_create(&comm, attr), 0);
	p = zcoll_alloc(comm, kb << 10);
	expect(!!p, 1);
	memset(p, 1, kb << 10);
	during = shmem_kb();
	expect(during - before >= kb / 2, 1);
	if (during - before < kb / 2)
		printf("# %ld kB of shared memory before, %ld kB when allocated\n", before, during);
	expect(zcoll_comm_free(comm), 0);
	for (int i = 0; i < 100 && shmem_kb() - before > kb / 4; i++)
		sleep_ms(20);
	expect(shmem_kb() - before <= kb / 4, 1);
}

static void child_reads(struct zcoll_comm *comm)
{
	int32_t *x = zcoll_alloc(comm, 1 << 14), small = 1;
	int status;
	pid_t pid;

	expect(!!x, 1);
	x[100] = 42;
	pid = fork();
	if (!pid)
		_exit(x[100] != 42 || sum(comm, &small, 1) != -EPERM || zcoll_comm_free(comm));
	waitpid(pid, &status, 0);
	expect(status, 0);
	expect(x[100], 42);
	expect(sum(comm, &small, 1), 0);
	expect(small, zcoll_comm_size(comm));
}

/* --------------------------------------------------------------------------- main */

static void test_results(void)
{
	for (unsigned int n = 1; n <= MAX_RANKS; n++)
		for (collective = ZCOLL_ALLREDUCE; collective < ZCOLL_BARRIER; collective++)
			ok(run_ranks(&RANKS(n), sizes),
			   "%s of %u ranks: as the kernel, at all sizes",
			   zcoll_collective_name(collective), n);
	for (collective = ZCOLL_ALLREDUCE; collective < ZCOLL_BARRIER; collective++)
		if (call_reduces(collective))
			ok(run_ranks(&RANKS(3), types_and_operators),
			   "%s: as the kernel, all types and operators",
			   zcoll_collective_name(collective));
}

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
	need_device();
	told = mmap(NULL, MAX_RANKS * sizeof(*told), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ok(run_ranks(&RANKS(1), by_mail), "alone: by mail");
	ok(run_ranks(&RANKS(3), by_mail), "small operations go by mail, all of them");
	ok(run_ranks(&RANKS(3), by_heap), "operations on allocated memory go by heap");
	setenv("ZCOLL_MAILBOX", "0", 1);
	ok(run_ranks(&RANKS(2), by_kernel), "without mailboxes, all go to the kernel");
	unsetenv("ZCOLL_MAILBOX");
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
	ok(run_ranks(&RANKS(3), call_after_a_failure),
	   "a call after a failure changes no line that others may be reading");
	ok(run_ranks(&RANKS(2), larger_than_any_heap), "operands larger than any heap");
	waits_for_bytes = 8;
	ok(run_ranks(&RANKS(2), sizes_differ), "8 bytes and 1 MiB do not meet");
	ok(told[0][0] && !strcmp(told[0], told[1]), "and all ranks are told the same");
	ok(run_ranks(&RANKS(3), collectives_differ), "small operations that differ do not meet");

	ok(run_ranks(&RANKS(1), allocations), "allocations: zeroes, alignment, no overlap");
	ok(run_ranks(&RANKS(2), addresses_are_used_again), "freed addresses are used again");
	ok(run_ranks(&RANKS(2), freed_pages_are_given_back), "freed pages are given back");
	ok(run_attrs(&RANKS(1), memory_ends_with_the_communicator),
	   "memory ends with the communicator");
	ok(run_ranks(&RANKS(2), child_reads), "a forked child may read allocated memory");
	test_results();
	return tap_end();
}
