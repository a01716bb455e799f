// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll perf --overlap: how much of a non-blocking operation is hidden behind computing, and
 * what it costs the computing; see perf.h.
 *
 * Each iteration has three parts, each after a barrier: an operation that is started and
 * waited for (*pure*), as many units of *computing* as take twice that time and more, and the
 * same computing between start and wait (*in flight*). The three are taken in turn, so that
 * what disturbs the machine disturbs all of them, and medians are compared.
 *
 * The overlap is that of the OSU Micro-Benchmarks (osu_iallreduce.c and its like):
 * 100 * max(0, 1 - (total - computing in flight) / pure), in percent. It does not see what the
 * operation takes from the computing; that is the column "slower".
 */
#include <errno.h>
#include <stdlib.h>

#include "cmd.h"
#include "msg.h"
#include "perf.h"

#define FACTOR		2.2	/* computing for so many times the operation, at first */
#define LEAST_FACTOR	2.0
#define TRIES		8
#define LANES		16
#define UNIT_STEPS	64
#define SAMPLE_UNITS	20000	/* some 10 ms */

enum sample { PURE, COMPUTE, IN_FLIGHT, START, WAIT, TOTAL, SAMPLES };

struct overlap {
	const struct perf_case *pc;
	uint64_t units;
	double *times[SAMPLES];	/* of each iteration, in seconds */
};

struct overlap_result {
	double median[SAMPLES];
	double slower;		/* percent of computing alone */
	double wait, wait_95;	/* percent of the pure time: median, 95th percentile */
	double osu;		/* percent */
	uint64_t wrong;
};

/* ---- computing ---- */

/* Registers and the first cache only, so that memory is left to the operation */
static void compute(uint64_t units)
{
	float x[LANES];
	int step, i;

	for (i = 0; i < LANES; i++)
		x[i] = (float)i;
	while (units--)
		for (step = 0; step < UNIT_STEPS; step++)
			for (i = 0; i < LANES; i++)
				x[i] = x[i] * 0.5f + 1.0f;
	/* the compiler must believe that somebody reads them */
	__asm__ volatile("" : : "r"(x) : "memory");
}

static double seconds_since(uint64_t start)
{
	return (double)(now_ns() - start) / 1e9;
}

/* ---- the three parts; 0 or a negative errno ---- */

static int start_op(const struct perf_case *pc, uint64_t iter, struct zcoll_req **req)
{
	struct zcoll_call call = perf_call(pc, iter % pc->bufs->slots, pc->opts->in_place);

	return zcoll_icall(pc->comm, &call, req);
}

static int pure(const struct perf_case *pc, uint64_t iter, double *seconds)
{
	struct zcoll_req *req;
	int err = zcoll_barrier(pc->comm);
	uint64_t start = now_ns();

	if (!err)
		err = start_op(pc, iter, &req);
	if (!err)
		err = zcoll_wait(req, ZCOLL_WAIT_FOREVER);
	*seconds = seconds_since(start);
	return err;
}

static int alone(const struct perf_case *pc, uint64_t units, double *seconds)
{
	int err = zcoll_barrier(pc->comm);
	uint64_t start = now_ns();

	compute(units);
	*seconds = seconds_since(start);
	return err;
}

static int in_flight(const struct overlap *ov, uint64_t iter, double seconds[SAMPLES])
{
	uint64_t start, started, computed;
	struct zcoll_req *req;
	int err = zcoll_barrier(ov->pc->comm);

	start = now_ns();
	if (!err)
		err = start_op(ov->pc, iter, &req);
	if (err)
		return err;
	started = now_ns();
	compute(ov->units);
	computed = now_ns();
	err = zcoll_wait(req, ZCOLL_WAIT_FOREVER);
	seconds[TOTAL] = seconds_since(start);
	seconds[START] = (double)(started - start) / 1e9;
	seconds[IN_FLIGHT] = (double)(computed - started) / 1e9;
	seconds[WAIT] = seconds[TOTAL] - seconds[START] - seconds[IN_FLIGHT];
	return err;
}

/* ---- calibration ---- */

static int slowest(const struct perf_case *pc, double *seconds)
{
	return zcoll_allreduce(pc->comm, seconds, seconds, 1, ZCOLL_FP64, ZCOLL_MAX);
}

/* The median of the warm-up, at the slowest rank */
static int first_guess(const struct overlap *ov, double *seconds)
{
	uint64_t i, warmup = ov->pc->opts->warmup ? ov->pc->opts->warmup : 1;
	double *times = calloc(warmup, sizeof(*times));
	int err = times ? 0 : -ENOMEM;

	for (i = 0; i < warmup && !err; i++)
		err = pure(ov->pc, i, &times[i]);
	if (!err) {
		*seconds = perf_percentile(times, warmup, 50);
		err = slowest(ov->pc, seconds);
	}
	free(times);
	return err;
}

/* The same number of units on all ranks, and enough of them on the quickest */
static int calibrate(struct overlap *ov)
{
	double goal, seconds;
	int try, err;

	err = first_guess(ov, &goal);
	ov->units = SAMPLE_UNITS;
	for (try = 0; try < TRIES && !err; try++) {
		err = alone(ov->pc, ov->units, &seconds);
		if (!err)
			err = zcoll_allreduce(ov->pc->comm, &seconds, &seconds, 1, ZCOLL_FP64,
					      ZCOLL_MIN);
		if (try && seconds >= LEAST_FACTOR * goal)
			break;
		ov->units = (uint64_t)((double)ov->units * FACTOR * goal / seconds) + 1;
	}
	return err;
}

/* ---- an operation ---- */

static int repeat(const struct overlap *ov)
{
	const struct perf_case *pc = ov->pc;
	double seconds[SAMPLES];
	uint64_t i;
	int err = 0, s;

	for (i = 0; i < pc->opts->iters && !err; i++) {
		err = pure(pc, i, &seconds[PURE]);
		if (!err)
			err = alone(pc, ov->units, &seconds[COMPUTE]);
		if (!err)
			err = in_flight(ov, i, seconds);
		for (s = 0; s < SAMPLES && !err; s++)
			ov->times[s][i] = seconds[s];
		progress_update(pc->progress, "iteration", i + 1, pc->opts->iters, false);
	}
	return err;
}

static int check(const struct overlap *ov, uint64_t *wrong)
{
	const struct perf_case *pc = ov->pc;
	double seconds[SAMPLES];
	uint64_t iter;
	int err = 0;

	for (iter = 0; iter < pc->opts->check && !err; iter++) {
		perf_prepare(pc, iter, pc->opts->in_place);
		err = in_flight(ov, 0, seconds);
		if (!err)
			*wrong += perf_count_wrong(pc, iter, pc->opts->in_place);
	}
	return err ? err : zcoll_allreduce(pc->comm, wrong, wrong, 1, ZCOLL_UINT64, ZCOLL_SUM);
}

static int summarise(const struct overlap *ov, struct overlap_result *r)
{
	uint64_t iters = ov->pc->opts->iters;
	double *m = r->median, *figures[] = { &r->slower, &r->wait, &r->wait_95, &r->osu };
	int err = 0, s;
	size_t i;

	for (s = 0; s < SAMPLES; s++)
		m[s] = perf_percentile(ov->times[s], iters, 50);
	r->slower = 100 * (m[IN_FLIGHT] / m[COMPUTE] - 1);
	r->wait = 100 * m[WAIT] / m[PURE];
	r->wait_95 = 100 * perf_percentile(ov->times[WAIT], iters, 95) / m[PURE];
	r->osu = 100 * (1 - (m[TOTAL] - m[IN_FLIGHT]) / m[PURE]);
	if (r->osu < 0)
		r->osu = 0;
	for (s = 0; s < SAMPLES && !err; s++)
		err = perf_average(ov->pc, &m[s]);
	for (i = 0; i < sizeof(figures) / sizeof(figures[0]) && !err; i++)
		err = perf_average(ov->pc, figures[i]);
	return err;
}

static int measure(struct overlap *ov, struct overlap_result *r)
{
	int err;

	err = calibrate(ov);
	if (!err)
		err = repeat(ov);
	if (!err)
		err = summarise(ov, r);
	return err ? err : check(ov, &r->wrong);
}

/* ---- report ---- */

void perf_overlap_columns(void)
{
	printf("#\n");
	printf("# %10s  %8s  %6s  %9s  %9s  %9s  %7s  %7s  %7s  %7s  %7s  %6s\n", "size", "type",
	       "redop", "pure", "compute", "in flight", "slower", "start", "wait", "wait 95",
	       "overlap", "#wrong");
	printf("# %10s  %8s  %6s  %9s  %9s  %9s  %7s  %7s  %7s  %7s  %7s\n", "(B)", "", "",
	       "(us)", "(us)", "(us)", "(%)", "(us)", "(%)", "(%)", "(%)");
}

static json_t *json_row(const struct perf_case *pc, const struct overlap_result *r)
{
	return json_pack("{sI ss ss sf sf sf sf sf sf sf sf sf so}",
			 "size", (json_int_t)perf_whole(pc), "type", perf_dtype_name(pc->dtype),
			 "redop", pc->op ? zcoll_op_name(pc->op) : "none",
			 "pure", r->median[PURE] * 1e6, "compute", r->median[COMPUTE] * 1e6,
			 "in_flight", r->median[IN_FLIGHT] * 1e6,
			 "start", r->median[START] * 1e6, "total", r->median[TOTAL] * 1e6,
			 "slower_percent", r->slower, "wait_percent", r->wait,
			 "wait_percent_95", r->wait_95, "overlap_percent", r->osu, "nwrong",
			 pc->opts->check ? json_integer((json_int_t)r->wrong) : json_null());
}

static void report(const struct perf_case *pc, struct perf_report *rep,
		   const struct overlap_result *r)
{
	const enum sample times[] = { PURE, COMPUTE, IN_FLIGHT };
	const double figures[] = { r->slower, r->median[START] * 1e6, r->wait, r->wait_95, r->osu };
	size_t i;

	rep->wrong += r->wrong;
	if (!rep->on)
		return;
	printf("%12llu  %8s  %6s", (unsigned long long)perf_whole(pc), perf_dtype_name(pc->dtype),
	       pc->op ? zcoll_op_name(pc->op) : "none");
	for (i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		perf_print_fitting(r->median[times[i]] * 1e6, 9);
	for (i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		perf_print_fitting(figures[i], 7);
	if (pc->opts->check)
		printf("  %6llu\n", (unsigned long long)r->wrong);
	else
		printf("  %6s\n", "N/A");
	fflush(stdout);
	if (rep->json.file)
		json_array_append_new(rep->json.rows, json_row(pc, r));
}

/* A line of the table. Returns 0 or an exit status after a message */
int perf_overlap_row(const struct perf_case *pc, struct perf_report *rep)
{
	double *times = calloc(SAMPLES * pc->opts->iters, sizeof(*times));
	struct overlap ov = { .pc = pc };
	struct overlap_result result = { 0 };
	int err, s;

	if (!times)
		return failed("out of memory");
	for (s = 0; s < SAMPLES; s++)
		ov.times[s] = times + s * pc->opts->iters;
	perf_divide(pc);
	perf_prepare(pc, 0, pc->opts->in_place);
	err = measure(&ov, &result);
	free(times);
	progress_end(pc->progress);
	if (err)
		return perf_op_failed(pc, err);
	report(pc, rep, &result);
	return 0;
}
