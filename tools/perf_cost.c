// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll perf --cost: what an operation costs by each of the ways to call it; see perf.h.
 *
 * A *way* is how all ranks, on one node, call the same all-reduce; a *row* of the table is a
 * way and a size. All ways are timed at the same two sizes, but for the fold in user mode, which
 * the library does of the larger only. The calls are timed in *batches*, as reading the clock can
 * cost more than one. In each *round* all rows have their turn, so that what disturbs the machine
 * disturbs all of them; the table has the median, the least and the most of the rounds, at rank 0.
 *
 * The library says how many operations it has done in mailboxes and heaps, and the kernel
 * how many it has. A way counts as measured only if these figures say that all of its
 * operations went that way.
 */
#include <errno.h>
#include <jansson.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd.h"
#include "msg.h"
#include "perf.h"
#include "session.h"

#define ROUNDS		5
#define BATCH		ZCOLL_MAX_WINDOW
#define LARGE_BYTES	(2 * PERF_COST_MAX_BYTES)	/* enough for the fold in user mode */
#define LOOKS		(1 << 20)	/* at a ring, before sleeping on it */

struct cost {
	struct perf_case pc;
	struct perf_buffers unregistered, registered;
	struct io_uring ring;
	unsigned int sqe_flags;
};

enum { NO_RING, PLAIN, FIXED_FILE, POLLED };

struct way {
	const char *name;
	const char *text;
	const char *path;	/* what the operations must have been done by */
	int (*batch)(struct cost *cost);
	unsigned int ring;	/* NO_RING ... */
	bool unregistered;	/* memory */
	bool only_large;
};

struct row {
	const struct way *way;
	uint64_t bytes;
	const char *note;	/* why there is no result; NULL: there is one */
	double ns[ROUNDS];	/* of an operation */
	double median;
	uint64_t wrong;
};

/* ---- the ways: BATCH operations, each in its own slot; 0 or a negative errno ---- */

static int by_call(struct cost *cost)
{
	struct zcoll_call call;
	unsigned int i;
	int err = 0;

	for (i = 0; i < BATCH && !err; i++) {
		call = perf_call(&cost->pc, i, false);
		err = zcoll_call(cost->pc.comm, &call);
	}
	return err;
}

/* The command of an SQE, given to the ioctl of the same number */
static int by_ioctl(struct cost *cost)
{
	int fd = zcoll_comm_fd(cost->pc.comm), err = 0;
	struct io_uring_sqe sqe;
	struct zcoll_call call;
	struct zcoll_cmd cmd;
	unsigned int i;

	for (i = 0; i < BATCH && !err; i++) {
		call = perf_call(&cost->pc, i, false);
		err = zcoll_prep_call(&sqe, 0, cost->pc.comm, &cmd, &call);
		while (!err && ioctl(fd, sqe.cmd_op, &cmd))
			err = errno == EINTR ? 0 : -errno;
	}
	return err;
}

static int prepare(struct cost *cost, unsigned int slot)
{
	struct zcoll_call call = perf_call(&cost->pc, slot, false);
	struct io_uring_sqe *sqe = io_uring_get_sqe(&cost->ring);
	int err;

	if (!sqe)
		return -EBUSY;
	err = zcoll_prep_call(sqe, cost->ring.flags, cost->pc.comm, NULL, &call);
	if (err)
		return err;
	sqe->flags = cost->sqe_flags;
	if (cost->sqe_flags & IOSQE_FIXED_FILE)
		sqe->fd = 0;
	return 0;
}

static int reap(struct cost *cost, unsigned int count)
{
	struct io_uring_cqe *cqe;
	int err = 0, ret;

	while (count--) {
		ret = io_uring_wait_cqe(&cost->ring, &cqe);
		if (ret)
			return ret;
		err = err ? err : cqe->res;
		io_uring_cqe_seen(&cost->ring, cqe);
	}
	return err;
}

static int submit_and_reap(struct cost *cost, unsigned int count)
{
	int ret;

	do {
		ret = io_uring_submit_and_wait(&cost->ring, count);
	} while (ret == -EINTR);
	return ret < 0 ? ret : reap(cost, count);
}

static int by_ring(struct cost *cost)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < BATCH && !err; i++) {
		err = prepare(cost, i);
		if (!err)
			err = submit_and_reap(cost, 1);
	}
	return err;
}

static int all_at_once(struct cost *cost)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < BATCH && !err; i++)
		err = prepare(cost, i);
	return err ? err : submit_and_reap(cost, BATCH);
}

/* The kernel's thread submits, and posts the result, while this one looks at the ring */
static int by_polling(struct cost *cost)
{
	struct io_uring_cqe *cqe;
	unsigned int i, looks;
	int err = 0;

	for (i = 0; i < BATCH && !err; i++) {
		err = prepare(cost, i);
		if (err)
			break;
		err = io_uring_submit(&cost->ring);
		for (looks = 0; looks < LOOKS && io_uring_peek_cqe(&cost->ring, &cqe); looks++)
			;
		err = err < 0 ? err : reap(cost, 1);
	}
	return err;
}

static const struct way ways[] = {
	{ "mailbox", "blocking call, mailbox", "mailbox", by_call, NO_RING, true, false },
	{ "fold", "blocking call, user-mode fold", "heap", by_call, NO_RING, false, true },
	{ "ioctl", "blocking ioctl", "kernel", by_ioctl, NO_RING, false, false },
	{ "uring", "io_uring command and wait", "kernel", by_ring, PLAIN, false, false },
	{ "batch", "io_uring, batch of 32", "kernel", all_at_once, PLAIN, false, false },
	{ "fixed_file", "io_uring, registered file", "kernel", by_ring, FIXED_FILE, false, false },
	{ "sqpoll", "io_uring, SQPOLL", "kernel", by_polling, POLLED, false, false },
};

#define WAYS	(sizeof(ways) / sizeof(ways[0]))
#define ROWS	(2 * WAYS)

/* Return: how many */
static unsigned int make_rows(struct row *rows, const struct perf_options *o)
{
	unsigned int i, nr_rows = 0;

	for (i = 0; i < WAYS; i++) {
		if (!ways[i].only_large)
			rows[nr_rows++] = (struct row){ .way = &ways[i], .bytes = o->min_bytes };
		rows[nr_rows++] = (struct row){ .way = &ways[i], .bytes = LARGE_BYTES };
	}
	return nr_rows;
}

/* ---- rings ---- */

/* Each rank's thread of the kernel wants a CPU that no rank needs */
static int ring_init(struct cost *cost, unsigned int kind)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQE128 };
	int fd = zcoll_comm_fd(cost->pc.comm), err;

	cost->sqe_flags = kind == FIXED_FILE ? IOSQE_FIXED_FILE : 0;
	if (kind == POLLED) {
		params.flags |= IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF;
		params.sq_thread_cpu = zcoll_comm_size(cost->pc.comm) +
				       zcoll_comm_rank(cost->pc.comm);
	}
	err = io_uring_queue_init_params(BATCH, &cost->ring, &params);
	if (err || kind != FIXED_FILE)
		return err;
	err = io_uring_register_files(&cost->ring, &fd, 1);
	if (err)
		io_uring_queue_exit(&cost->ring);
	return err;
}

/* The ranks use rings if all have got one. *@note: why they do not */
static int rings_open(struct cost *cost, unsigned int kind, const char **note)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int32_t got, worst;
	int err;

	*note = NULL;
	if (kind == NO_RING)
		return 0;
	if (kind == POLLED && cpus < 2 * (long)zcoll_comm_size(cost->pc.comm)) {
		*note = "needs two CPUs for each rank, one for the kernel's thread";
		return 0;
	}
	got = ring_init(cost, kind);
	err = zcoll_allreduce(cost->pc.comm, &got, &worst, 1, ZCOLL_INT32, ZCOLL_MIN);
	if ((err || worst) && !got)
		io_uring_queue_exit(&cost->ring);
	if (!err && worst)
		*note = strerror(-worst);
	return err;
}

/* ---- a row's turn ---- */

static const char *path_of(const struct zcoll_stats *before, const struct zcoll_stats *after,
			   uint64_t ops)
{
	if (after->ops_mailbox - before->ops_mailbox == ops)
		return "mailbox";
	if (after->ops_heap - before->ops_heap == ops)
		return "heap";
	if (after->ops_mailbox == before->ops_mailbox && after->ops_heap == before->ops_heap)
		return "kernel";
	return "several ways";
}

/* Why the figure of an operation that went another path than its way's is none */
static const char *note_of(const char *path)
{
	if (!strcmp(path, "mailbox"))
		return "done in mailboxes";
	if (!strcmp(path, "heap"))
		return "done in heaps";
	if (!strcmp(path, "kernel"))
		return "done by the kernel";
	return "done in several ways";
}

static int batches(struct cost *cost, const struct way *way, uint64_t count)
{
	int err = 0;

	while (count-- && !err)
		err = way->batch(cost);
	return err;
}

static int time_batches(struct cost *cost, const struct way *way, double *ns, const char **path)
{
	const struct perf_options *o = cost->pc.opts;
	struct zcoll_stats before, after;
	uint64_t start;
	int err;

	err = batches(cost, way, o->warmup);
	if (!err)
		err = zcoll_barrier(cost->pc.comm);
	if (!err)
		err = zcoll_comm_stats(cost->pc.comm, &before);
	start = now_ns();
	if (!err)
		err = batches(cost, way, o->iters);
	*ns = (double)(now_ns() - start) / (double)(o->iters * BATCH);
	if (!err)
		err = zcoll_comm_stats(cost->pc.comm, &after);
	if (!err)
		*path = path_of(&before, &after, o->iters * BATCH);
	return err;
}

static int turn(struct cost *cost, unsigned int round, struct row *row)
{
	const struct way *way = row->way;
	const char *path = way->path, *none;
	int err;

	cost->pc.bufs = way->unregistered ? &cost->unregistered : &cost->registered;
	cost->pc.count = row->bytes / cost->pc.pattern->size;
	perf_divide(&cost->pc);
	err = rings_open(cost, way->ring, &none);
	if (none)
		row->note = none;
	if (err || none)
		return err;
	perf_prepare(&cost->pc, round, false);
	err = time_batches(cost, way, &row->ns[round], &path);
	if (!err)
		row->wrong += perf_count_wrong(&cost->pc, round, false);
	if (strcmp(path, way->path))
		row->note = note_of(path);
	if (way->ring != NO_RING)
		io_uring_queue_exit(&cost->ring);
	return err;
}

static int rounds(struct cost *cost, struct row *rows, unsigned int nr_rows)
{
	unsigned int round, i;
	int err = 0;

	for (round = 0; round < ROUNDS && !err; round++)
		for (i = 0; i < nr_rows && !err; i++) {
			err = turn(cost, round, &rows[i]);
			progress_update(cost->pc.progress, "round", round, ROUNDS, false);
		}
	for (i = 0; i < nr_rows && !err; i++) {
		rows[i].median = perf_percentile(rows[i].ns, ROUNDS, 50);
		err = zcoll_allreduce(cost->pc.comm, &rows[i].wrong, &rows[i].wrong, 1,
				      ZCOLL_UINT64, ZCOLL_SUM);
	}
	progress_end(cost->pc.progress);
	return err;
}

/* ---- report, at rank 0 ---- */

static json_t *json_config(const struct perf_options *o, const struct zcoll_comm *comm)
{
	return json_pack("{sI s[II] sI sI sI}", "ranks", (json_int_t)zcoll_comm_size(comm),
			 "bytes", (json_int_t)o->min_bytes, (json_int_t)LARGE_BYTES,
			 "rounds", (json_int_t)ROUNDS,
			 "operations", (json_int_t)(o->iters * BATCH),
			 "warmup", (json_int_t)(o->warmup * BATCH));
}

static json_t *json_row(const struct row *r)
{
	json_int_t bytes = r->bytes;

	if (r->note)
		return json_pack("{ss sI sn ss}", "way", r->way->name, "bytes", bytes,
				 "ns", "note", r->note);
	return json_pack("{ss sI sf sf sf ss sI}", "way", r->way->name, "bytes", bytes,
			 "ns", r->median, "least", r->ns[0], "most", r->ns[ROUNDS - 1],
			 "done_by", r->way->path, "nwrong", (json_int_t)r->wrong);
}

static void print_head(const struct perf_options *o, const struct zcoll_comm *comm)
{
	printf("# zcoll %s: cost of an all-reduce, %u rank%s on one node\n", zcoll_version(),
	       zcoll_comm_size(comm), zcoll_comm_size(comm) > 1 ? "s" : "");
	printf("# %u rounds of %llu operations each way and size, ns an operation\n#\n", ROUNDS,
	       (unsigned long long)(o->iters * BATCH));
	printf("# %-30s  %6s  %9s  %9s  %9s  %-8s %6s\n", "way", "bytes", "median", "least",
	       "most", "done by", "#wrong");
	fflush(stdout);
}

static void print_row(const struct row *r)
{
	printf("  %-30s  %6llu", r->way->text, (unsigned long long)r->bytes);
	if (r->note)
		printf("  %9s  (%s)\n", "N/A", r->note);
	else
		printf("  %9.0f  %9.0f  %9.0f  %-8s %6llu\n", r->median, r->ns[0],
		       r->ns[ROUNDS - 1], r->way->path, (unsigned long long)r->wrong);
}

static int report(const struct perf_case *pc, struct perf_json *json,
		  const struct row *rows, unsigned int nr_rows)
{
	uint64_t wrong = 0;
	unsigned int i;
	int status = 0;

	for (i = 0; i < nr_rows; i++) {
		wrong += rows[i].wrong;
		if (zcoll_comm_rank(pc->comm))
			continue;
		print_row(&rows[i]);
		if (json->file)
			json_array_append_new(json->rows, json_row(&rows[i]));
	}
	fflush(stdout);
	if (json->file)
		status = perf_json_close(json);
	return wrong ? STATUS_FAILED : status;
}

/* ---- all of it ---- */

static int measure(struct cost *cost, struct perf_json *json)
{
	struct row rows[ROWS];
	unsigned int nr_rows = make_rows(rows, cost->pc.opts);
	int err = rounds(cost, rows, nr_rows);

	if (err)
		return session_failed(cost->pc.comm, "all-reduce", err);
	return perf_end(cost->pc.comm, report(&cost->pc, json, rows, nr_rows));
}

static int measure_in_buffers(struct cost *cost, struct perf_json *json)
{
	const struct perf_options *o = cost->pc.opts;
	struct perf_options unregistered = *o;
	int status;

	unregistered.unregistered = true;
	status = perf_buffers_init(&cost->unregistered, cost->pc.comm, &unregistered);
	if (!status)
		status = perf_buffers_init(&cost->registered, cost->pc.comm, o);
	if (!status)
		status = measure(cost, json);
	perf_buffers_free(&cost->registered, cost->pc.comm, o);
	perf_buffers_free(&cost->unregistered, cost->pc.comm, &unregistered);
	return status;
}

int perf_cost(const struct perf_options *opts, struct zcoll_comm *comm, struct progress *progress)
{
	struct perf_options o = *opts;
	struct perf_json json = { 0 };
	struct pattern pattern;
	struct cost cost = { .pc = { .opts = &o, .comm = comm, .pattern = &pattern,
				     .progress = progress, .dtype = o.dtype, .op = o.op } };
	int status = 0;

	if (zcoll_comm_nodes(comm) > 1)
		return failed("--cost: all ranks must be on one node");
	o.agg = BATCH;
	o.max_bytes = LARGE_BYTES;
	if (pattern_init(&pattern, o.dtype, o.op, zcoll_comm_rank(comm), zcoll_comm_size(comm),
			 false))
		return failed("out of memory");
	if (!zcoll_comm_rank(comm)) {
		if (o.json)
			status = perf_json_open(&json, o.json, json_config(&o, comm));
		print_head(&o, comm);
	}
	if (!status)
		status = measure_in_buffers(&cost, &json);
	pattern_free(&pattern);
	return status;
}
