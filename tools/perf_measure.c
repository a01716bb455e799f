// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll perf: buffers, and the time of an operation; see perf.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <zcoll_plan.h>

#include "cmd.h"
#include "msg.h"
#include "perf.h"
#include "session.h"

#define PAGE	4096

/* ---- buffers ---- */

/* Slots of pages begin on pages, small ones on cache lines */
static size_t stride_of(uint64_t bytes)
{
	size_t align = bytes < PAGE ? 64 : PAGE;

	return (bytes + PERF_GUARD_BYTES + align - 1) & ~(align - 1);
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

/* Divide the buffers into slots for the operations of this case */
void perf_divide(const struct perf_case *pc)
{
	struct perf_buffers *bufs = pc->bufs;

	bufs->stride = stride_of(perf_whole(pc));
	bufs->slots = pc->opts->rotate_bytes ? bufs->len / bufs->stride : pc->opts->agg;
}

/* ---- operations ---- */

/* Says which operation it was; returns STATUS_FAILED */
int perf_op_failed(const struct perf_case *pc, int err)
{
	char what[80];

	snprintf(what, sizeof(what), "%s%s%s of %llu elements of %s",
		 zcoll_collective_name(pc->opts->collective), pc->op ? " with " : "",
		 pc->op ? zcoll_op_name(pc->op) : "", (unsigned long long)pc->count,
		 zcoll_dtype_name(pc->dtype));
	return session_failed(pc->comm, what, err);
}

static int in_flight(const struct perf_case *pc, uint64_t first, bool in_place)
{
	struct zcoll_req *reqs[ZCOLL_MAX_WINDOW];
	struct zcoll_call call;
	uint64_t i, started = 0;
	int err = 0, ret;

	for (; started < pc->opts->agg; started++) {
		call = perf_call(pc, (first + started) % pc->bufs->slots, in_place);
		err = zcoll_icall(pc->comm, &call, &reqs[started]);
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
	uint64_t first = iter * pc->opts->agg;
	struct zcoll_call call;
	int err;

	if (pc->opts->agg > 1) {
		err = in_flight(pc, first, in_place);
	} else {
		call = perf_call(pc, first % pc->bufs->slots, in_place);
		err = zcoll_call(pc->comm, &call);
	}
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

/* Over ranks, as -a says */
int perf_average(const struct perf_case *pc, double *seconds)
{
	static const int ops[] = {
		[AVERAGE_MEAN] = ZCOLL_AVG, [AVERAGE_MIN] = ZCOLL_MIN, [AVERAGE_MAX] = ZCOLL_MAX,
	};

	if (pc->opts->average == AVERAGE_RANK0)
		return 0;
	return zcoll_allreduce(pc->comm, seconds, seconds, 1, ZCOLL_FP64,
			       ops[pc->opts->average]);
}

static int measure_time(const struct perf_case *pc, bool in_place, struct perf_result *result)
{
	uint64_t start;
	int err;

	pattern_fill(pc->pattern, in_place ? pc->bufs->recv : pc->bufs->send,
		     pc->bufs->slots * pc->bufs->stride, 0);
	result->ops = pc->opts->iters * pc->opts->agg;
	err = repeat(pc, pc->opts->warmup, in_place, "warm-up");
	if (!err)
		err = perf_counters_begin(pc->comm, &result->counters);
	if (!err)
		err = zcoll_barrier(pc->comm);
	start = now_ns();
	if (!err)
		err = repeat(pc, pc->opts->iters, in_place, "iteration");
	result->seconds = (double)(now_ns() - start) / 1e9 / (double)result->ops;
	if (!err)
		err = perf_counters_end(pc->comm, &result->counters);
	return err ? err : perf_average(pc, &result->seconds);
}

/* ---- results ---- */

static int check(const struct perf_case *pc, bool in_place, uint64_t *wrong)
{
	uint64_t iter;
	int err = 0;

	*wrong = 0;
	for (iter = 0; iter < pc->opts->check && !err; iter++) {
		perf_prepare(pc, iter, in_place);
		err = iteration(pc, 0, in_place);
		if (!err)
			*wrong += perf_count_wrong(pc, iter, in_place);
		progress_update(pc->progress, "check", iter + 1, pc->opts->check, false);
	}
	return err ? err : zcoll_allreduce(pc->comm, wrong, wrong, 1, ZCOLL_UINT64, ZCOLL_SUM);
}

/* What a bus carries of the whole, if each rank sends and receives its share once */
static double bus_share(unsigned int collective, double n)
{
	if (collective == ZCOLL_ALLREDUCE)
		return 2 * (n - 1) / n;
	return perf_blocks(collective) ? (n - 1) / n : 1;
}

/* Bandwidths as nccl-tests has them: algbw is size by time, busbw the bus' share of it */
int perf_measure(const struct perf_case *pc, bool in_place, struct perf_result *result)
{
	int err;

	perf_divide(pc);
	err = measure_time(pc, in_place, result);
	if (!err)
		err = check(pc, in_place, &result->wrong);
	progress_end(pc->progress);
	if (err)
		return perf_op_failed(pc, err);
	result->measured = true;
	result->algbw = (double)perf_whole(pc) / 1e9 / result->seconds;
	result->busbw = result->algbw * bus_share(pc->opts->collective, zcoll_comm_size(pc->comm));
	return 0;
}
