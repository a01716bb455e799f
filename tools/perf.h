/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What the parts of zcoll perf share: cmd_perf.c (options, the sweep), perf_measure.c
 * (one line of the table: timing), perf_overlap.c (one line of --overlap), perf_cost.c (all of
 * --cost), perf_check.c (data and checking), perf_counters.c (what the kernel counts),
 * perf_report.c (table), perf_json.c (JSON), perf_percentile.c (many times of a thing).
 *
 * Buffers are divided into *slots*. Each operation takes the next one, so that
 * operations in flight do not share memory, and that -R can keep data out of the
 * caches. Behind each slot lie guard bytes that no operation may touch.
 *
 * The *whole* of an operation is the vector that is reduced, gathered or sent: of
 * reduce-scatter and all-gather, a block of pc->count elements for each rank.
 */
#ifndef ZCOLL_PERF_H
#define ZCOLL_PERF_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <zcoll.h>

#include "pattern.h"
#include "progress.h"

#define PERF_ALL_ROOTS	UINT64_MAX

enum { AVERAGE_RANK0, AVERAGE_MEAN, AVERAGE_MIN, AVERAGE_MAX };

/* What is measured: operations, calls while something is computed, or ways to call */
enum perf_mode { PERF_SWEEP, PERF_OVERLAP, PERF_COST };

#define PERF_COST_MAX_BYTES	1024	/* of -b; the other size of --cost is twice that */

struct perf_options {
	enum perf_mode mode;
	uint64_t min_bytes;
	uint64_t max_bytes;
	const char *min_text;	/* both as the user has typed them, or NULL */
	const char *max_text;
	uint64_t step_bytes;	/* if step_factor is 0 */
	uint64_t step_factor;
	uint64_t iters;
	uint64_t warmup;
	uint64_t agg;		/* operations in flight at once, an iteration */
	uint64_t check;		/* iterations that are checked */
	uint64_t average;	/* AVERAGE_* */
	uint64_t blocking;	/* 1: a barrier after each iteration */
	uint64_t rotate_bytes;	/* size of each buffer, 0: as small as possible */
	uint64_t ranks;		/* to be started by us, 0: none */
	uint64_t deadline_ns;
	unsigned int collective;
	int op;			/* 0: all */
	int dtype;		/* 0: all */
	uint64_t root;		/* PERF_ALL_ROOTS: all */
	unsigned int flags;	/* ZCOLL_CMD_* */
	bool in_place;		/* only */
	bool counters;		/* shown for each line */
	bool unregistered;
	const char *json;	/* path, NULL: none */
};

struct perf_buffers {
	char *send;
	char *recv;
	size_t len;		/* of each */
	size_t stride;		/* from slot to slot */
	uint64_t slots;
};

/* What is measured: one line of the table, and all that measuring it takes */
struct perf_case {
	const struct perf_options *opts;
	struct zcoll_comm *comm;
	struct perf_buffers *bufs;
	struct pattern *pattern;
	struct progress *progress;
	int dtype;
	int op;			/* 0: nothing is reduced */
	unsigned int root;	/* 0 where there is none */
	uint64_t count;		/* elements, of a block where there are blocks */
};

/* What the kernels of all nodes have counted, for all operations of a result */
struct perf_counters {
	uint64_t folded;	/* bytes */
	uint64_t copied;	/* bytes */
	uint64_t written;	/* bytes by RDMA */
	uint64_t inlined;	/* bytes in small messages */
	uint64_t messages;
};

struct perf_result {
	bool measured;
	double seconds;		/* of one operation */
	double algbw, busbw;	/* GB/s */
	uint64_t wrong;		/* elements on all ranks */
	uint64_t ops;		/* operations that were timed */
	struct perf_counters counters;	/* of these */
};

/* Has the collective of this case a root, blocks of ranks? */
static inline bool perf_rooted(unsigned int collective)
{
	return collective == ZCOLL_BROADCAST || collective == ZCOLL_REDUCE;
}

static inline bool perf_blocks(unsigned int collective)
{
	return collective == ZCOLL_REDUCE_SCATTER || collective == ZCOLL_ALLGATHER;
}

static inline bool perf_reduces(unsigned int collective)
{
	return collective == ZCOLL_ALLREDUCE || collective == ZCOLL_REDUCE_SCATTER ||
	       collective == ZCOLL_REDUCE;
}

/* Bytes of the whole of an operation */
static inline uint64_t perf_whole(const struct perf_case *pc)
{
	unsigned int blocks = perf_blocks(pc->opts->collective) ? zcoll_comm_size(pc->comm) : 1;

	return blocks * pc->count * pc->pattern->size;
}

/* ---- perf_measure.c; the functions return 0 or an exit status after a message ---- */

int perf_buffers_init(struct perf_buffers *bufs, struct zcoll_comm *comm,
		      const struct perf_options *opts);
void perf_buffers_free(struct perf_buffers *bufs, struct zcoll_comm *comm,
		       const struct perf_options *opts);
void perf_divide(const struct perf_case *pc);
int perf_measure(const struct perf_case *pc, bool in_place, struct perf_result *result);
int perf_op_failed(const struct perf_case *pc, int err);

/* Returns 0 or a negative errno */
int perf_average(const struct perf_case *pc, double *value);

/* ---- perf_check.c ---- */

#define PERF_GUARD_BYTES 64

struct zcoll_call perf_call(const struct perf_case *pc, uint64_t slot, bool in_place);
void perf_prepare(const struct perf_case *pc, uint64_t iter, bool in_place);
uint64_t perf_count_wrong(const struct perf_case *pc, uint64_t iter, bool in_place);

/* ---- perf_counters.c; they return 0 or a negative errno ---- */

int perf_counters_begin(struct zcoll_comm *comm, struct perf_counters *counters);
int perf_counters_end(struct zcoll_comm *comm, struct perf_counters *counters);

/* ---- perf_percentile.c ---- */

double perf_percentile(double *values, size_t count, unsigned int percent);

/* ---- perf_json.c ---- */

struct perf_json {
	FILE *file;		/* NULL: no JSON is written */
	const char *path;
	json_t *root, *rows;
};

int perf_json_open(struct perf_json *pj, const char *path, json_t *config);
int perf_json_close(struct perf_json *pj);

/* ---- perf_report.c ---- */

/* Only rank 0 reports; on the others all calls do nothing */
struct perf_report {
	bool on;
	enum perf_mode mode;
	struct perf_json json;
	double busbw_sum;
	uint64_t results;
	uint64_t wrong;
	double bytes;		/* of the wholes of all operations timed */
	uint64_t ops;
	struct perf_counters counters;
};

int perf_report_open(struct perf_report *rep, const struct perf_options *opts,
		     struct zcoll_comm *comm);
int perf_report_devices(struct perf_report *rep, struct zcoll_comm *comm);
void perf_report_row(struct perf_report *rep, const struct perf_case *pc,
		     const struct perf_result *out, const struct perf_result *in);
int perf_report_close(struct perf_report *rep);
int perf_end(struct zcoll_comm *comm, int status);
void perf_print_fitting(double value, int width);

/* ---- perf_overlap.c ---- */

void perf_overlap_columns(void);
int perf_overlap_row(const struct perf_case *pc, struct perf_report *rep);

/* ---- perf_cost.c ---- */

int perf_cost(const struct perf_options *opts, struct zcoll_comm *comm,
	      struct progress *progress);

/* The names of types in the table, those of nccl-tests */
const char *perf_dtype_name(int dtype);

#endif /* ZCOLL_PERF_H */
