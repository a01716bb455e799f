// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll perf: the table, in the format of nccl-tests so that its tools can read it,
 * and the same as JSON, with its keys; head and foot of --overlap's, too. See perf.h.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zcoll_plan.h>

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
	printf("# zcoll %s: %s through /dev/zcoll, %s memory%s%s\n", zcoll_version(),
	       zcoll_collective_name(o->collective),
	       o->unregistered ? "unregistered" : "registered",
	       o->flags & ZCOLL_CMD_REPRODUCIBLE ? ", reproducible" : "",
	       o->flags & ZCOLL_CMD_AGREED ? ", agreed" : "");
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

static json_t *json_config(const struct perf_options *o, const struct zcoll_comm *comm)
{
	return json_pack("{ss sI sI sb sb sI sI sI sI sI sI sI sb sI sb}",
			 "collective", zcoll_collective_name(o->collective),
			 "ranks", (json_int_t)zcoll_comm_size(comm),
			 "nodes", (json_int_t)zcoll_comm_nodes(comm),
			 "reproducible", (int)!!(o->flags & ZCOLL_CMD_REPRODUCIBLE),
			 "agreed", (int)!!(o->flags & ZCOLL_CMD_AGREED),
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

int perf_report_open(struct perf_report *rep, const struct perf_options *opts,
		     struct zcoll_comm *comm)
{
	int status = 0;

	memset(rep, 0, sizeof(*rep));
	rep->on = zcoll_comm_rank(comm) == 0;
	rep->mode = opts->mode;
	if (rep->on && opts->json)
		status = perf_json_open(&rep->json, opts->json, json_config(opts, comm));
	if (rep->on && !status)
		print_head(opts);
	return status;
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

struct device {
	char host[60];
	int32_t pid;
};

int perf_report_devices(struct perf_report *rep, struct zcoll_comm *comm)
{
	unsigned int i, n = zcoll_comm_size(comm);
	struct device *all = calloc(n, sizeof(*all)), *own;
	int err;

	if (!all)
		return failed("out of memory");
	own = &all[zcoll_comm_rank(comm)];
	own->pid = getpid();
	gethostname(own->host, sizeof(own->host) - 1);
	/* an all-gather, but there are plans for it whatever the nodes */
	err = zcoll_allreduce(comm, all, all, n * sizeof(*all), ZCOLL_UINT8, ZCOLL_SUM);
	if (!err && rep->on) {
		printf("# Using devices\n");
		for (i = 0; i < n; i++)
			printf("#  Rank %2u Group %2d Pid %6d on %10s device %2d /dev/zcoll\n", i,
			       0, (int)all[i].pid, all[i].host, zcoll_comm_node_of(comm, i));
		if (rep->mode == PERF_OVERLAP)
			perf_overlap_columns();
		else
			print_columns();
		fflush(stdout);
	}
	free(all);
	return err ? session_failed(comm, "gathering process numbers", err) : 0;
}

/* ---- rows ---- */

/* As many decimals as fit @width, so that columns stay columns */
void perf_print_fitting(double value, int width)
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
	if (!r->measured) {
		printf("  %7s  %6s  %6s  %5s", "N/A", "N/A", "N/A", "N/A");
		return;
	}
	perf_print_fitting(r->seconds * 1e6, 7);
	perf_print_fitting(r->algbw, 6);
	perf_print_fitting(r->busbw, 6);
	if (checked)
		printf("  %5llu", (unsigned long long)r->wrong);
	else
		printf("  %5s", "N/A");
}

/* @bytes: of the wholes of all @ops operations; where there are none, nothing is per byte */
static void print_counters(const char *what, const struct perf_counters *c, double bytes,
			   uint64_t ops)
{
	double per_byte = bytes ? 1 / bytes : 0;

	printf("# %-20s : copied %.3f, folded %.3f, RDMA %.3f, in messages %.3f B/B; %.1f messages\n",
	       what, (double)c->copied * per_byte, (double)c->folded * per_byte,
	       (double)c->written * per_byte, (double)c->inlined * per_byte,
	       ops ? (double)c->messages / (double)ops : 0);
}

static json_t *json_result(const struct perf_case *pc, const struct perf_result *r)
{
	const struct perf_counters *c = &r->counters;
	bool checked = pc->opts->check;

	if (!r->measured)
		return json_null();
	return json_pack("{sf sf sf so sI s{sI sI sI sI sI}}",
			 "time", r->seconds * 1e6, "alg_bw", r->algbw, "bus_bw", r->busbw,
			 "nwrong", checked ? json_integer((json_int_t)r->wrong) : json_null(),
			 "operations", (json_int_t)r->ops, "counters",
			 "bytes_copied", (json_int_t)c->copied,
			 "bytes_folded", (json_int_t)c->folded,
			 "bytes_written", (json_int_t)c->written,
			 "bytes_inline", (json_int_t)c->inlined,
			 "messages", (json_int_t)c->messages);
}

static void add_result(struct perf_report *rep, const struct perf_case *pc,
		       const struct perf_result *r)
{
	if (!r->measured)
		return;
	rep->busbw_sum += r->busbw;
	rep->results++;
	rep->bytes += (double)r->ops * (double)perf_whole(pc);
	rep->ops += r->ops;
	rep->counters.copied += r->counters.copied;
	rep->counters.folded += r->counters.folded;
	rep->counters.written += r->counters.written;
	rep->counters.inlined += r->counters.inlined;
	rep->counters.messages += r->counters.messages;
}

static void print_row_counters(const struct perf_case *pc, const char *what,
			       const struct perf_result *r)
{
	if (pc->opts->counters && r->measured)
		print_counters(what, &r->counters, (double)r->ops * (double)perf_whole(pc), r->ops);
}

void perf_report_row(struct perf_report *rep, const struct perf_case *pc,
		     const struct perf_result *out, const struct perf_result *in)
{
	unsigned long long count = pc->count, bytes = perf_whole(pc);
	int root = perf_rooted(pc->opts->collective) ? (int)pc->root : -1;
	const char *op = pc->op ? zcoll_op_name(pc->op) : "none";

	rep->wrong += out->wrong + in->wrong;
	if (!rep->on)
		return;
	add_result(rep, pc, out);
	add_result(rep, pc, in);
	printf("%12llu  %12llu  %8s  %6s  %6d", bytes, count, perf_dtype_name(pc->dtype), op, root);
	print_result(out, pc->opts->check);
	print_result(in, pc->opts->check);
	putchar('\n');
	print_row_counters(pc, "out of place", out);
	print_row_counters(pc, "in place", in);
	fflush(stdout);
	if (rep->json.file)
		json_array_append_new(rep->json.rows,
			json_pack("{sI sI ss ss si so so}", "size", (json_int_t)bytes,
				  "count", (json_int_t)count,
				  "type", perf_dtype_name(pc->dtype), "redop", op, "root", root,
				  "out_of_place", json_result(pc, out),
				  "in_place", json_result(pc, in)));
}

/* ---- foot ---- */

static void print_averages(const struct perf_report *rep, double busbw)
{
	printf("# %-20s : %g\n", "Avg bus bandwidth", busbw);
	print_counters("Counted", &rep->counters, rep->bytes, rep->ops);
}

static int close_json(struct perf_report *rep, double busbw)
{
	json_object_set_new(rep->json.root, "out_of_bounds",
			    json_pack("{sI sb}", "count", (json_int_t)rep->wrong,
				      "okay", (int)!rep->wrong));
	if (rep->mode == PERF_SWEEP)
		json_object_set_new(rep->json.root, "average_bus_bandwidth",
				    json_pack("{sf}", "bandwidth", busbw));
	return perf_json_close(&rep->json);
}

int perf_report_close(struct perf_report *rep)
{
	double busbw = rep->results ? rep->busbw_sum / (double)rep->results : 0;
	int status = rep->wrong ? STATUS_FAILED : STATUS_OK;

	if (!rep->on)
		return status;
	printf("# %-20s : %llu %s\n", "Out of bounds values", (unsigned long long)rep->wrong,
	       rep->wrong ? "FAILED" : "OK");
	if (rep->mode == PERF_SWEEP)
		print_averages(rep, busbw);
	printf("#\n");
	fflush(stdout);
	if (rep->json.file && close_json(rep, busbw))
		status = STATUS_FAILED;
	return status;
}

/*
 * The end, with this status, of all ranks: the launcher ends all when one fails, so that is
 * not before rank 0 has told why.
 */
int perf_end(struct zcoll_comm *comm, int status)
{
	int err = zcoll_barrier(comm);

	return err ? session_failed(comm, "end", err) : status;
}
