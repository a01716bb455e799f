// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll perf: time an operation, and check what it gives; see perf.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cmd.h"
#include "msg.h"
#include "perf.h"
#include "session.h"

#define GUARD_BYTES	64
#define POISON		0xa5
#define PAGE		4096

/* ---- buffers ---- */

/* Slots of pages begin on pages, small ones on cache lines */
static size_t stride_of(uint64_t bytes)
{
	size_t align = bytes < PAGE ? 64 : PAGE;

	return (bytes + GUARD_BYTES + align - 1) & ~(align - 1);
}

static char *buffer_alloc(struct zcoll_comm *comm, size_t len, bool unregistered)
{
	void *p;

	if (!unregistered)
		return zcoll_alloc(comm, len);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void buffer_free(struct zcoll_comm *comm, char *p, size_t len, bool unregistered)
{
	if (!p)
		return;
	if (unregistered)
		munmap(p, len);
	else
		zcoll_free(comm, p);
}

/* Of /proc/meminfo; without it nothing is known, and all is tried */
static uint64_t available_bytes(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib;
	uint64_t bytes = UINT64_MAX;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			bytes = kib << 10;
	if (f)
		fclose(f);
	return bytes;
}

/*
 * Memory that is not there would end in a process killed for it, perhaps another's.
 * No rank allocates before all have looked: none counts what another has taken.
 */
static int check_memory(struct zcoll_comm *comm, uint64_t len)
{
	uint64_t have = available_bytes(), need = 2 * len * zcoll_comm_size(comm);
	int err;

	err = zcoll_allreduce(comm, &have, &have, 1, ZCOLL_UINT64, ZCOLL_MIN);
	if (err)
		return session_failed(comm, "comparing the free memory", err);
	if (need <= have)
		return 0;
	if (zcoll_comm_rank(comm) == 0)
		msg("two buffers of %llu MiB for each of %u ranks are %llu MiB, and %llu MiB are available (MemAvailable); choose a smaller -e, -m or -R, or fewer ranks",
		    (unsigned long long)len >> 20, zcoll_comm_size(comm),
		    (unsigned long long)need >> 20, (unsigned long long)have >> 20);
	/* a rank that ends would end rank 0 before it has said that */
	zcoll_barrier(comm);
	return STATUS_FAILED;
}

int perf_buffers_init(struct perf_buffers *bufs, struct zcoll_comm *comm,
		      const struct perf_options *opts)
{
	size_t stride = stride_of(opts->max_bytes);
	int status;

	bufs->len = stride * opts->agg;
	if (opts->rotate_bytes > bufs->len)
		bufs->len = (opts->rotate_bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	status = check_memory(comm, bufs->len);
	if (status)
		return status;
	bufs->send = buffer_alloc(comm, bufs->len, opts->unregistered);
	bufs->recv = bufs->send ? buffer_alloc(comm, bufs->len, opts->unregistered) : NULL;
	if (bufs->recv)
		return 0;
	if (opts->unregistered)
		return failed("no memory for two buffers of %zu bytes: %s", bufs->len,
			      strerror(errno));
	return session_failed(comm, "memory for the buffers", -errno);
}

void perf_buffers_free(struct perf_buffers *bufs, struct zcoll_comm *comm,
		       const struct perf_options *opts)
{
	buffer_free(comm, bufs->send, bufs->len, opts->unregistered);
	buffer_free(comm, bufs->recv, bufs->len, opts->unregistered);
}

static void divide(const struct perf_case *pc)
{
	struct perf_buffers *bufs = pc->bufs;

	bufs->stride = stride_of(pc->count * pc->pattern->size);
	bufs->slots = pc->opts->rotate_bytes ? bufs->len / bufs->stride : pc->opts->agg;
}

/* ---- operations ---- */

static int op_failed(const struct perf_case *pc, int err)
{
	char what[80];

	snprintf(what, sizeof(what), "all-reduce (%s) of %llu elements of %s",
		 zcoll_op_name(pc->op), (unsigned long long)pc->count,
		 zcoll_dtype_name(pc->dtype));
	return session_failed(pc->comm, what, err);
}

static const char *source(const struct perf_case *pc, uint64_t slot, bool in_place)
{
	return (in_place ? pc->bufs->recv : pc->bufs->send) + slot * pc->bufs->stride;
}

static char *target(const struct perf_case *pc, uint64_t slot)
{
	return pc->bufs->recv + slot * pc->bufs->stride;
}

static int in_flight(const struct perf_case *pc, uint64_t first, bool in_place)
{
	struct zcoll_req *reqs[ZCOLL_MAX_WINDOW];
	uint64_t slot, i, started = 0;
	int err = 0, ret;

	for (; started < pc->opts->agg; started++) {
		slot = (first + started) % pc->bufs->slots;
		err = zcoll_iallreduce(pc->comm, source(pc, slot, in_place), target(pc, slot),
				       pc->count, pc->dtype, pc->op, &reqs[started]);
		if (err)
			break;
	}
	for (i = 0; i < started; i++) {
		ret = zcoll_wait(reqs[i], ZCOLL_WAIT_FOREVER);
		err = err ? err : ret;
	}
	return err;
}

/* All operations of iteration @iter, and the barrier of -z 1 */
static int iteration(const struct perf_case *pc, uint64_t iter, bool in_place)
{
	uint64_t first = iter * pc->opts->agg, slot = first % pc->bufs->slots;
	int err;

	if (pc->opts->agg > 1)
		err = in_flight(pc, first, in_place);
	else
		err = zcoll_allreduce(pc->comm, source(pc, slot, in_place), target(pc, slot),
				      pc->count, pc->dtype, pc->op);
	if (!err && pc->opts->blocking)
		err = zcoll_barrier(pc->comm);
	return err;
}

/* ---- time ---- */

static int repeat(const struct perf_case *pc, uint64_t iters, bool in_place, const char *what)
{
	uint64_t i;
	int err = 0;

	for (i = 0; i < iters && !err; i++) {
		err = iteration(pc, i, in_place);
		progress_update(pc->progress, what, i + 1, iters, false);
	}
	return err;
}

static int average(const struct perf_case *pc, double *seconds)
{
	static const int ops[] = {
		[AVERAGE_MEAN] = ZCOLL_AVG, [AVERAGE_MIN] = ZCOLL_MIN, [AVERAGE_MAX] = ZCOLL_MAX,
	};

	if (pc->opts->average == AVERAGE_RANK0)
		return 0;
	return zcoll_allreduce(pc->comm, seconds, seconds, 1, ZCOLL_FP64,
			       ops[pc->opts->average]);
}

static int measure_time(const struct perf_case *pc, bool in_place, double *seconds)
{
	uint64_t start;
	int err;

	pattern_fill(pc->pattern, in_place ? pc->bufs->recv : pc->bufs->send,
		     pc->bufs->slots * pc->bufs->stride, 0);
	err = repeat(pc, pc->opts->warmup, in_place, "warm-up");
	if (!err)
		err = zcoll_barrier(pc->comm);
	start = now_ns();
	if (!err)
		err = repeat(pc, pc->opts->iters, in_place, "iteration");
	*seconds = (double)(now_ns() - start) / 1e9 /
		   (double)(pc->opts->iters * pc->opts->agg);
	return err ? err : average(pc, seconds);
}

/* ---- results ---- */

/* Each operation has a shift of its own; any odd number of steps will do */
static uint64_t shift_of(uint64_t iter, uint64_t slot)
{
	return 97 * iter + 11 * slot;
}

static void prepare(const struct perf_case *pc, uint64_t iter, bool in_place)
{
	size_t len = pc->count * pc->pattern->size;
	uint64_t slot;

	for (slot = 0; slot < pc->opts->agg; slot++) {
		memset(target(pc, slot), POISON, len + GUARD_BYTES);
		pattern_fill(pc->pattern, (char *)source(pc, slot, in_place), len,
			     shift_of(iter, slot));
	}
}

static uint64_t wrong_guard(const char *guard)
{
	uint64_t bad = 0;
	int i;

	for (i = 0; i < GUARD_BYTES; i++)
		bad += (unsigned char)guard[i] != POISON;
	return bad;
}

/* Results, input that must not have changed, and bytes that were nobody's to write */
static uint64_t count_wrong(const struct perf_case *pc, uint64_t iter, bool in_place)
{
	size_t len = pc->count * pc->pattern->size;
	uint64_t slot, shift, bad = 0;

	for (slot = 0; slot < pc->opts->agg; slot++) {
		shift = shift_of(iter, slot);
		bad += pattern_wrong_result(pc->pattern, target(pc, slot), pc->count, shift);
		bad += wrong_guard(target(pc, slot) + len);
		if (!in_place)
			bad += pattern_wrong_input(pc->pattern, source(pc, slot, false),
						   pc->count, shift);
	}
	return bad;
}

static int check(const struct perf_case *pc, bool in_place, uint64_t *wrong)
{
	uint64_t iter;
	int err = 0;

	*wrong = 0;
	for (iter = 0; iter < pc->opts->check && !err; iter++) {
		prepare(pc, iter, in_place);
		err = iteration(pc, 0, in_place);
		if (!err)
			*wrong += count_wrong(pc, iter, in_place);
		progress_update(pc->progress, "check", iter + 1, pc->opts->check, false);
	}
	return err ? err : zcoll_allreduce(pc->comm, wrong, wrong, 1, ZCOLL_UINT64, ZCOLL_SUM);
}

/*
 * Bandwidths as nccl-tests has them: algbw is size by time, busbw what a bus would
 * carry if every rank sent and received its share once.
 */
int perf_measure(const struct perf_case *pc, bool in_place, struct perf_result *result)
{
	double n = zcoll_comm_size(pc->comm);
	double bytes = (double)(pc->count * pc->pattern->size);
	int err;

	divide(pc);
	err = measure_time(pc, in_place, &result->seconds);
	if (!err)
		err = check(pc, in_place, &result->wrong);
	progress_end(pc->progress);
	if (err)
		return op_failed(pc, err);
	result->algbw = bytes / 1e9 / result->seconds;
	result->busbw = result->algbw * 2 * (n - 1) / n;
	return 0;
}
