/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What the parts of zcoll perf share: cmd_perf.c (options, the sweep), perf_measure.c
 * (one line of the table: timing and checking), perf_report.c (table and JSON).
 *
 * Buffers are divided into *slots*. Each operation takes the next one, so that
 * operations in flight do not share memory, and that -R can keep data out of the
 * caches. Behind each slot lie guard bytes that no operation may touch.
 */
#ifndef ZCOLL_PERF_H
#define ZCOLL_PERF_H

#include <stdbool.h>
#include <stdio.h>
#include <zcoll.h>

#include "pattern.h"
#include "progress.h"

enum { AVERAGE_RANK0, AVERAGE_MEAN, AVERAGE_MIN, AVERAGE_MAX };

struct perf_options {
	uint64_t min_bytes;
	uint64_t max_bytes;
	const char *min_text;	/* both as the user has typed them */
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
	int op;			/* 0: all */
	int dtype;		/* 0: all */
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
	int op;
	uint64_t count;
};

struct perf_result {
	double seconds;		/* of one operation */
	double algbw, busbw;	/* GB/s */
	uint64_t wrong;		/* elements on all ranks */
};

/* ---- perf_measure.c; the functions return 0 or an exit status after a message ---- */

int perf_buffers_init(struct perf_buffers *bufs, struct zcoll_comm *comm,
		      const struct perf_options *opts);
void perf_buffers_free(struct perf_buffers *bufs, struct zcoll_comm *comm,
		       const struct perf_options *opts);
int perf_measure(const struct perf_case *pc, bool in_place, struct perf_result *result);

/* ---- perf_report.c ---- */

struct json_t;

/* Only rank 0 reports; on the others all calls do nothing */
struct perf_report {
	bool on;
	FILE *json_file;
	const char *json_path;
	struct json_t *json, *rows;
	double busbw_sum;
	uint64_t results;
	uint64_t wrong;
};

int perf_report_open(struct perf_report *rep, const struct perf_options *opts,
		     struct zcoll_comm *comm);
int perf_report_devices(struct perf_report *rep, struct zcoll_comm *comm);
void perf_report_row(struct perf_report *rep, const struct perf_case *pc,
		     const struct perf_result *out, const struct perf_result *in);
int perf_report_close(struct perf_report *rep);

/* The names of types in the table, those of nccl-tests */
const char *perf_dtype_name(int dtype);

#endif /* ZCOLL_PERF_H */
