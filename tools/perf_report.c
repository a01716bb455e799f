// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll perf: the table, in the format of nccl-tests so that its tools can read it,
 * and the same as JSON, with its keys. See perf.h.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "msg.h"
#include "perf.h"
#include "session.h"

const char *perf_dtype_name(int dtype)
{
	switch (dtype) {
	case ZCOLL_FP16:
		return "half";
	case ZCOLL_BF16:
		return "bfloat16";
	case ZCOLL_FP32:
		return "float";
	case ZCOLL_FP64:
		return "double";
	default:
		return zcoll_dtype_name(dtype);
	}
}

/* ---- head ---- */

static void print_head(const struct perf_options *o)
{
	printf("# zcoll %s: all-reduce through /dev/zcoll, %s memory\n", zcoll_version(),
	       o->unregistered ? "unregistered" : "registered");
	printf("# nThread 1 nGpus 1 minBytes %llu maxBytes %llu step: %llu(%s) warmup iters: %llu iters: %llu agg iters: %llu validation: %llu graph: 0\n",
	       (unsigned long long)o->min_bytes, (unsigned long long)o->max_bytes,
	       (unsigned long long)(o->step_factor ? o->step_factor : o->step_bytes),
	       o->step_factor ? "factor" : "bytes", (unsigned long long)o->warmup,
	       (unsigned long long)o->iters, (unsigned long long)o->agg,
	       (unsigned long long)o->check);
	if (o->rotate_bytes)
		printf("# Rotating: operations take turns through %llu bytes of each buffer\n",
		       (unsigned long long)o->rotate_bytes);
	if (o->blocking)
		printf("# Blocking Enabled: wait for completion and barrier after each collective\n");
	printf("#\n");
}

static json_t *json_config(const struct perf_options *o, unsigned int nranks)
{
	return json_pack("{sI sI sI sI sI sI sI sI sb sI sb}",
			 "ranks", (json_int_t)nranks,
			 "minimum_bytes", (json_int_t)o->min_bytes,
			 "maximum_bytes", (json_int_t)o->max_bytes,
			 o->step_factor ? "step_factor" : "step_bytes",
			 (json_int_t)(o->step_factor ? o->step_factor : o->step_bytes),
			 "warmup_iters", (json_int_t)o->warmup,
			 "iterations", (json_int_t)o->iters,
			 "aggregated_iterations", (json_int_t)o->agg,
			 "validation", (json_int_t)o->check,
			 "blocking_collectives", (int)o->blocking,
			 "rotate_bytes", (json_int_t)o->rotate_bytes,
			 "registered", (int)!o->unregistered);
}

/* The file is opened first, so that a long run does not end without one */
int perf_report_open(struct perf_report *rep, const struct perf_options *opts,
		     struct zcoll_comm *comm)
{
	memset(rep, 0, sizeof(*rep));
	rep->on = zcoll_comm_rank(comm) == 0;
	if (!rep->on)
		return 0;
	if (opts->json) {
		rep->json_path = opts->json;
		rep->json_file = fopen(opts->json, "we");
		if (!rep->json_file)
			return failed("%s: %s", opts->json, strerror(errno));
		rep->rows = json_array();
		rep->json = json_pack("{ss so so}", "version", zcoll_version(),
				      "config", json_config(opts, zcoll_comm_size(comm)),
				      "results", rep->rows);
		if (!rep->json)
			return failed("out of memory");
	}
	print_head(opts);
	return 0;
}

static void print_columns(void)
{
	printf("#\n");
	printf("# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n",
	       "", "", "", "", "");
	printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s %6s  %7s  %6s  %6s %6s\n",
	       "size", "count", "type", "redop", "root",
	       "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
	printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %5s  %7s  %6s  %6s  %5s\n",
	       "(B)", "(elements)", "", "", "",
	       "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

int perf_report_devices(struct perf_report *rep, struct zcoll_comm *comm)
{
	unsigned int i, n = zcoll_comm_size(comm);
	uint64_t *pids = calloc(n, sizeof(*pids));
	char host[64] = "";
	int err;

	if (!pids)
		return failed("out of memory");
	err = session_gather(comm, (uint64_t)getpid(), pids);
	if (err) {
		free(pids);
		return session_failed(comm, "gathering process numbers", err);
	}
	if (rep->on) {
		gethostname(host, sizeof(host) - 1);
		printf("# Using devices\n");
		for (i = 0; i < n; i++)
			printf("#  Rank %2u Group %2d Pid %6d on %10s device %2d /dev/zcoll\n",
			       i, 0, (int)pids[i], host, 0);
		print_columns();
		fflush(stdout);
	}
	free(pids);
	return 0;
}

/* ---- rows ---- */

/* As many decimals as fit @width, so that columns stay columns */
static void print_fitting(double value, int width)
{
	double limit = 1;
	int digits = 0;

	for (; value >= limit; limit *= 10)
		digits++;
	if (digits < width - 2)
		printf("  %*.2f", width, value);
	else if (digits < width - 1)
		printf("  %*.1f", width, value);
	else if (digits <= width)
		printf("  %*.0f", width, value);
	else
		printf("  %*.1e", width, value);
}

static void print_result(const struct perf_result *r, bool checked)
{
	print_fitting(r->seconds * 1e6, 7);
	print_fitting(r->algbw, 6);
	print_fitting(r->busbw, 6);
	if (checked)
		printf("  %5llu", (unsigned long long)r->wrong);
	else
		printf("  %5s", "N/A");
}

static json_t *json_result(const struct perf_result *r, bool checked)
{
	return json_pack("{sf sf sf so}", "time", r->seconds * 1e6, "alg_bw", r->algbw,
			 "bus_bw", r->busbw, "nwrong",
			 checked ? json_integer((json_int_t)r->wrong) : json_null());
}

void perf_report_row(struct perf_report *rep, const struct perf_case *pc,
		     const struct perf_result *out, const struct perf_result *in)
{
	unsigned long long count = pc->count, bytes = count * pc->pattern->size;
	bool checked = pc->opts->check;

	rep->wrong += out->wrong + in->wrong;
	if (!rep->on)
		return;
	rep->busbw_sum += out->busbw + in->busbw;
	rep->results += 2;
	printf("%12llu  %12llu  %8s  %6s  %6d", bytes, count, perf_dtype_name(pc->dtype),
	       zcoll_op_name(pc->op), -1);
	print_result(out, checked);
	print_result(in, checked);
	putchar('\n');
	fflush(stdout);
	if (rep->rows)
		json_array_append_new(rep->rows,
			json_pack("{sI sI ss ss si so so}", "size", (json_int_t)bytes,
				  "count", (json_int_t)count,
				  "type", perf_dtype_name(pc->dtype),
				  "redop", zcoll_op_name(pc->op), "root", -1,
				  "out_of_place", json_result(out, checked),
				  "in_place", json_result(in, checked)));
}

/* ---- foot ---- */

static int write_json(struct perf_report *rep, double busbw)
{
	int err = 0;

	json_object_set_new(rep->json, "out_of_bounds",
			    json_pack("{sI sb}", "count", (json_int_t)rep->wrong,
				      "okay", (int)!rep->wrong));
	json_object_set_new(rep->json, "average_bus_bandwidth",
			    json_pack("{sf}", "bandwidth", busbw));
	if (json_dumpf(rep->json, rep->json_file, JSON_INDENT(2)) ||
	    fputc('\n', rep->json_file) == EOF)
		err = errno;
	if (fclose(rep->json_file) && !err)
		err = errno;
	json_decref(rep->json);
	return err ? failed("%s: %s", rep->json_path, strerror(err)) : 0;
}

int perf_report_close(struct perf_report *rep)
{
	double busbw = rep->results ? rep->busbw_sum / (double)rep->results : 0;
	int status = rep->wrong ? STATUS_FAILED : STATUS_OK;

	if (!rep->on)
		return status;
	printf("# %-20s : %llu %s\n", "Out of bounds values", (unsigned long long)rep->wrong,
	       rep->wrong ? "FAILED" : "OK");
	printf("# %-20s : %g\n#\n", "Avg bus bandwidth", busbw);
	fflush(stdout);
	if (rep->json && write_json(rep, busbw))
		status = STATUS_FAILED;
	return status;
}
