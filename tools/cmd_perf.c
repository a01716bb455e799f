// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll perf: measure collectives, and check their results; see perf.h. Options
 * and output are those of nccl-tests where there is a like.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <zcoll_plan.h>

#include "cmd.h"
#include "launch.h"
#include "msg.h"
#include "parse.h"
#include "perf.h"
#include "session.h"

static const char help[] =
"Usage: zcoll run -n N -- zcoll perf [--overlap|--cost] [OPTION...]\n"
"       zcoll perf -g N [--overlap|--cost] [OPTION...]\n"
"\n"
"Measures a collective over a range of sizes, out of place and in place, and checks\n"
"every element of the results, bit for bit. The options are those of nccl-tests.\n"
"\n"
"      --coll C            allreduce (the default), reduce-scatter, allgather, broadcast,\n"
"                          reduce or barrier\n"
"  -g, --ngpus N           start N ranks on this node\n"
"  -b, --minbytes SIZE     smallest size (32M); K, M and G are powers of 1024\n"
"  -e, --maxbytes SIZE     largest size (32M)\n"
"  -i, --stepbytes SIZE    from size to size, add this (1M)\n"
"  -f, --stepfactor N      from size to size, multiply by this, instead of -i\n"
"  -n, --iters N           timed iterations (20)\n"
"  -w, --warmup_iters N    iterations before, not timed (5)\n"
"  -m, --agg_iters N       operations in flight at once in each iteration (1)\n"
"  -c, --check N           iterations that are checked, 0: none (1)\n"
"  -o, --op OP             sum, prod, min, max, avg or all (sum)\n"
"  -d, --datatype T        element type by its name in `zcoll allreduce`, or all (float)\n"
"  -r, --root R            root of broadcast and reduce, or all (0)\n"
"      --in-place          only in place\n"
"      --reproducible      the same bits on any number of nodes\n"
"      --agreed            the same verdict on all ranks\n"
"  -z, --blocking 0|1      a barrier after each iteration, timed as well (0)\n"
"  -a, --average 0|1|2|3   time of rank 0, or mean, least or most of all ranks (1)\n"
"  -R, --rotate SIZE       rotate through buffers of this size, to defeat caches\n"
"      --unregistered      plain memory, which is not registered\n"
"      --deadline T        give up when an operation, or joining, takes longer (10m;\n"
"                          0: never)\n"
"      --fabric F          what connects nodes: rdma, rdma:RAIL,... or loop\n"
"      --counters          show what the kernels have counted for each line\n"
"      --json FILE         write the results as JSON too\n"
"  -h, --help              show this text\n"
"\n"
"Instead of the time of operations, and without the options that would change nothing:\n"
"      --overlap           what is left of a non-blocking operation, and what becomes of\n"
"                          computing, when twice its time is computed meanwhile\n"
"      --cost              ns of an all-reduce of -b bytes (8 to 1K), and of 2K, on\n"
"                          one node, by each way to call it; -n counts batches of 32\n"
"\n"
"Times are a number and ns, us, ms, s, m or h; without a unit in seconds.\n"
"All ranks must join within ZCOLL_JOIN_TIMEOUT of the environment (60s), or within\n"
"--deadline if that is less. The buffers of all ranks must fit the free memory.\n"
"\n"
"Columns: size in bytes, elements (of a block, where each rank has one), type,\n"
"operator, root (none: -1), and for out of place and in place the time of an operation,\n"
"size by time (algbw), the same times 2(n-1)/n, or (n-1)/n where ranks have blocks, or 1\n"
"(busbw), and wrong elements, guard bytes included.\n"
"\n"
"Below, and with --counters for each line: bytes that the kernels of all nodes have\n"
"copied, read to reduce, written by RDMA, and sent in small messages, for each byte of\n"
"size; and messages for each operation.\n"
"\n"
"Columns of --overlap: the operation alone (pure), computing alone, computing with the\n"
"operation in flight, and how much slower that is; the time to start the operation; what\n"
"is left to wait for afterwards, in percent of pure, median and 95th percentile; and the\n"
"overlap by the formula of the OSU Micro-Benchmarks. All are medians.\n"
"\n"
"On several nodes sums and products of floats are checked with numbers that do not round,\n"
"as their order is the plan's; with --reproducible, and on one node, they do.\n"
"\n"
"Exit status: 0 success, 1 failure or wrong results, 2 wrong usage.\n";

/* ---- the sweep ---- */

static uint64_t next_size(const struct perf_options *o, uint64_t bytes)
{
	uint64_t next;

	if (o->step_factor) {
		if (__builtin_mul_overflow(bytes ? bytes : 1, o->step_factor, &next))
			return UINT64_MAX;
	} else if (__builtin_add_overflow(bytes, o->step_bytes, &next)) {
		return UINT64_MAX;
	}
	return next;
}

static int measure_row(struct perf_case *pc, struct perf_report *rep)
{
	struct perf_result out = { 0 }, in = { 0 };
	int status = 0;

	if (pc->opts->mode == PERF_OVERLAP)
		return perf_overlap_row(pc, rep);
	if (!pc->opts->in_place)
		status = perf_measure(pc, false, &out);
	if (!status)
		status = perf_measure(pc, true, &in);
	if (!status)
		perf_report_row(rep, pc, &out, &in);
	return status;
}

static int sweep_roots(struct perf_case *pc, struct perf_report *rep)
{
	bool all = perf_rooted(pc->opts->collective) && pc->opts->root == PERF_ALL_ROOTS;
	unsigned int end = zcoll_comm_size(pc->comm);
	int status = 0;

	pc->root = all || !perf_rooted(pc->opts->collective) ? 0 : (unsigned int)pc->opts->root;
	do {
		status = measure_row(pc, rep);
	} while (!status && all && ++pc->root < end);
	return status;
}

/* On several nodes the order of reduction is the plan's, unless it is to be the fixed one */
static bool order_unknown(const struct perf_case *pc)
{
	return zcoll_comm_nodes(pc->comm) > 1 && !(pc->opts->flags & ZCOLL_CMD_REPRODUCIBLE);
}

static int sweep_sizes(struct perf_case *pc, struct perf_report *rep)
{
	const struct perf_options *o = pc->opts;
	unsigned int n = zcoll_comm_size(pc->comm);
	struct pattern *pattern = pc->pattern;
	uint64_t bytes;
	int status = 0;

	if (pattern_init(pattern, pc->dtype, pc->op, zcoll_comm_rank(pc->comm), n,
			 order_unknown(pc)))
		return failed("out of memory");
	for (bytes = o->min_bytes; bytes <= o->max_bytes && !status; bytes = next_size(o, bytes)) {
		pc->count = bytes / pattern->size / (perf_blocks(o->collective) ? n : 1);
		status = sweep_roots(pc, rep);
	}
	pattern_free(pattern);
	return status;
}

static int sweep_operators(struct perf_case *pc, struct perf_report *rep)
{
	const struct perf_options *o = pc->opts;
	int end = o->op ? o->op + 1 : ZCOLL_NR_OPS;
	int status = 0;

	if (!perf_reduces(o->collective)) {
		pc->op = 0;
		return sweep_sizes(pc, rep);
	}
	for (pc->op = o->op ? o->op : 1; pc->op < end && !status; pc->op++)
		status = sweep_sizes(pc, rep);
	return status;
}

static int sweep(struct perf_case *pc, struct perf_report *rep)
{
	const struct perf_options *o = pc->opts;
	int end = o->dtype ? o->dtype + 1 : ZCOLL_NR_TYPES;
	int status = 0;

	for (pc->dtype = o->dtype ? o->dtype : 1; pc->dtype < end && !status; pc->dtype++)
		status = sweep_operators(pc, rep);
	return status;
}

/* ---- one rank ---- */

static int check_limits(const struct perf_options *o, const struct zcoll_comm *comm)
{
	struct zcoll_info info;
	int err = zcoll_info_get(NULL, &info);

	if (err)
		return device_failed(err);
	if (o->agg > info.window)
		return failed("-m %llu: the module takes at most %u operations in flight",
			      (unsigned long long)o->agg, info.window);
	if (perf_rooted(o->collective) && o->root != PERF_ALL_ROOTS &&
	    o->root >= zcoll_comm_size(comm))
		return failed("-r %llu: there are %u ranks", (unsigned long long)o->root,
			      zcoll_comm_size(comm));
	return 0;
}

static int measure_operations(const struct perf_options *o, struct zcoll_comm *comm,
			      struct progress *progress)
{
	struct perf_buffers bufs = { 0 };
	struct perf_report rep;
	struct pattern pattern;
	struct perf_case pc = { .opts = o, .comm = comm, .bufs = &bufs, .pattern = &pattern,
				.progress = progress };
	int status;

	status = perf_report_open(&rep, o, comm);
	if (!status)
		status = perf_buffers_init(&bufs, comm, o);
	if (!status)
		status = perf_report_devices(&rep, comm);
	if (!status)
		status = sweep(&pc, &rep);
	if (!status)
		status = perf_end(comm, perf_report_close(&rep));
	perf_buffers_free(&bufs, comm, o);
	return status;
}

static int measure(const struct perf_options *o, struct zcoll_comm *comm)
{
	struct progress progress;

	progress_start(&progress, zcoll_comm_rank(comm) == 0);
	zcoll_comm_set_flags(comm, o->flags);
	return o->mode == PERF_COST ? perf_cost(o, comm, &progress) :
				      measure_operations(o, comm, &progress);
}

static int perf_rank(void *arg)
{
	const struct perf_options *o = arg;
	struct zcoll_comm *comm;
	int status;

	status = session_open(&comm, o->deadline_ns);
	if (status)
		return status;
	status = check_limits(o, comm);
	if (!status)
		status = measure(o, comm);
	if (status)
		zcoll_comm_abort(comm);
	zcoll_comm_free(comm);
	return status;
}

/* ---- options ---- */

enum {
	OPT_UNREGISTERED = 256, OPT_DEADLINE, OPT_JSON, OPT_COLL, OPT_IN_PLACE,
	OPT_REPRODUCIBLE, OPT_AGREED, OPT_FABRIC, OPT_COUNTERS, OPT_OVERLAP, OPT_COST,
	OPT_END
};

static const struct option options[] = {
	{ "ngpus", required_argument, NULL, 'g' },
	{ "minbytes", required_argument, NULL, 'b' },
	{ "maxbytes", required_argument, NULL, 'e' },
	{ "stepbytes", required_argument, NULL, 'i' },
	{ "stepfactor", required_argument, NULL, 'f' },
	{ "iters", required_argument, NULL, 'n' },
	{ "warmup_iters", required_argument, NULL, 'w' },
	{ "agg_iters", required_argument, NULL, 'm' },
	{ "check", required_argument, NULL, 'c' },
	{ "op", required_argument, NULL, 'o' },
	{ "datatype", required_argument, NULL, 'd' },
	{ "coll", required_argument, NULL, OPT_COLL },
	{ "root", required_argument, NULL, 'r' },
	{ "in-place", no_argument, NULL, OPT_IN_PLACE },
	{ "reproducible", no_argument, NULL, OPT_REPRODUCIBLE },
	{ "agreed", no_argument, NULL, OPT_AGREED },
	{ "blocking", required_argument, NULL, 'z' },
	{ "average", required_argument, NULL, 'a' },
	{ "rotate", required_argument, NULL, 'R' },
	{ "unregistered", no_argument, NULL, OPT_UNREGISTERED },
	{ "deadline", required_argument, NULL, OPT_DEADLINE },
	{ "fabric", required_argument, NULL, OPT_FABRIC },
	{ "counters", no_argument, NULL, OPT_COUNTERS },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "overlap", no_argument, NULL, OPT_OVERLAP },
	{ "cost", no_argument, NULL, OPT_COST },
	{ NULL, 0, NULL, 0 },
};

/* Options that are whole numbers, with their ranges */
static int set_number(struct perf_options *o, int opt, const char *text)
{
	const struct {
		int opt;
		uint64_t min, max, *to;
	} numbers[] = {
		{ 'g', 1, ZCOLL_MAX_RANKS, &o->ranks },
		{ 'f', 2, UINT32_MAX, &o->step_factor },
		{ 'n', 1, UINT32_MAX, &o->iters },
		{ 'w', 0, UINT32_MAX, &o->warmup },
		{ 'm', 1, ZCOLL_MAX_WINDOW, &o->agg },
		{ 'c', 0, UINT32_MAX, &o->check },
		{ 'z', 0, 1, &o->blocking },
		{ 'a', 0, 3, &o->average },
	};
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i].opt != opt)
			continue;
		if (!parse_uint(text, numbers[i].min, numbers[i].max, numbers[i].to))
			return 0;
		return usage("-%c %s: not a number from %llu to %llu", opt, text,
			     (unsigned long long)numbers[i].min,
			     (unsigned long long)numbers[i].max);
	}
	return usage_option();
}

static int set_size(int opt, const char *text, uint64_t *to)
{
	/* two such buffers, and their slots, must be within an address space */
	if (!parse_size(text, to) && *to <= 1ULL << 40)
		return 0;
	return usage("-%c %s: not a size up to 1T", opt, text);
}

static int set_op(const char *text, int *op)
{
	*op = strcmp(text, "all") ? zcoll_op_parse(text) : 0;
	return *op < 0 ? usage_name("-o", text, zcoll_op_name, ZCOLL_NR_OPS, "all") : 0;
}

static int set_dtype(const char *text, int *dtype)
{
	*dtype = strcmp(text, "all") ? zcoll_dtype_parse(text) : 0;
	return *dtype < 0 ? usage_name("-d", text, zcoll_dtype_name, ZCOLL_NR_TYPES, "all") : 0;
}

static int set_collective(const char *text, unsigned int *collective)
{
	if (!zcoll_collective_parse(text, collective))
		return 0;
	return usage("--coll %s: not allreduce, reduce-scatter, allgather, broadcast, reduce or barrier",
		     text);
}

static int set_root(const char *text, uint64_t *root)
{
	if (!strcmp(text, "all")) {
		*root = PERF_ALL_ROOTS;
		return 0;
	}
	if (!parse_uint(text, 0, ZCOLL_MAX_SIZE - 1, root))
		return 0;
	return usage("-r %s: neither a rank nor all", text);
}

static int set_mode(struct perf_options *o, enum perf_mode mode)
{
	if (o->mode != PERF_SWEEP && o->mode != mode)
		return usage("--overlap and --cost: one of them at a time");
	o->mode = mode;
	return 0;
}

/* Options that say how, and take no value */
static int set_flag(struct perf_options *o, int opt)
{
	switch (opt) {
	case OPT_IN_PLACE:
		o->in_place = true;
		return 0;
	case OPT_REPRODUCIBLE:
		o->flags |= ZCOLL_CMD_REPRODUCIBLE;
		return 0;
	case OPT_AGREED:
		o->flags |= ZCOLL_CMD_AGREED;
		return 0;
	case OPT_COUNTERS:
		o->counters = true;
		return 0;
	case OPT_UNREGISTERED:
		o->unregistered = true;
		return 0;
	case OPT_OVERLAP:
		return set_mode(o, PERF_OVERLAP);
	case OPT_COST:
		return set_mode(o, PERF_COST);
	default:
		return set_number(o, opt, optarg);
	}
}

static int set_option(struct perf_options *o, int opt)
{
	switch (opt) {
	case OPT_COLL:
		return set_collective(optarg, &o->collective);
	case OPT_FABRIC:
		setenv("ZCOLL_FABRIC", optarg, 1);
		return 0;
	case 'r':
		return set_root(optarg, &o->root);
	case 'b':
		o->min_text = optarg;
		return set_size(opt, optarg, &o->min_bytes);
	case 'e':
		o->max_text = optarg;
		return set_size(opt, optarg, &o->max_bytes);
	case 'i':
		return set_size(opt, optarg, &o->step_bytes);
	case 'R':
		return set_size(opt, optarg, &o->rotate_bytes);
	case 'o':
		return set_op(optarg, &o->op);
	case 'd':
		return set_dtype(optarg, &o->dtype);
	case OPT_DEADLINE:
		if (parse_deadline(optarg, &o->deadline_ns))
			return usage("--deadline %s: not a time up to one day", optarg);
		return 0;
	case OPT_JSON:
		o->json = optarg;
		return 0;
	default:
		return set_flag(o, opt);
	}
}

/* Options that would change nothing in a mode */
static const struct {
	const char *name;
	int without_effect[16];	/* ended by 0 */
} modes[] = {
	[PERF_SWEEP] = { 0 },
	[PERF_OVERLAP] = { "--overlap", { 'm', 'z', OPT_COUNTERS } },
	[PERF_COST] = { "--cost", { 'e', 'i', 'f', 'm', 'c', 'r', 'z', 'a', 'R', OPT_IN_PLACE,
				    OPT_UNREGISTERED, OPT_COUNTERS, OPT_FABRIC } },
};

static int refuse(const char *mode, const struct option *option)
{
	if (option->val < OPT_UNREGISTERED)
		return usage("%s does not take -%c, --%s", mode, option->val, option->name);
	return usage("%s does not take --%s", mode, option->name);
}

/* @given: by what getopt returns for it, was the option typed? */
static int check_given(enum perf_mode mode, const bool *given)
{
	const struct option *option;
	const int *opt;

	for (opt = modes[mode].without_effect; *opt; opt++)
		for (option = options; option->name; option++)
			if (given[*opt] && option->val == *opt)
				return refuse(modes[mode].name, option);
	return 0;
}

static int check_cost(const struct perf_options *o)
{
	size_t element = zcoll_dtype_size(o->dtype);

	if (o->collective != ZCOLL_ALLREDUCE || !o->op || !o->dtype)
		return usage("--cost takes one all-reduce, of one type, with one operator");
	if (o->min_bytes < element || o->min_bytes > PERF_COST_MAX_BYTES || o->min_bytes % element)
		return usage("--cost -b %s: must be a multiple of %zu, the bytes of %s, up to %u",
			     o->min_text, element, zcoll_dtype_name(o->dtype),
			     PERF_COST_MAX_BYTES);
	return 0;
}

/* What depends on other options */
static void set_defaults(struct perf_options *o)
{
	uint64_t bytes = o->mode == PERF_COST ? 8 : 32 << 20;

	if (o->collective == ZCOLL_BARRIER) {
		o->min_bytes = 0;
		o->max_bytes = 0;
		o->dtype = ZCOLL_INT8;
		return;
	}
	if (!o->min_text)
		o->min_bytes = bytes;
	if (!o->max_text)
		o->max_bytes = o->mode == PERF_COST ? o->min_bytes : bytes;
}

static const char *typed(const char *text)
{
	return text ? text : "32M (the default)";
}

static int check_options(const struct perf_options *o, const bool *given)
{
	int status = check_given(o->mode, given);

	if (status)
		return status;
	if (o->ranks && (getenv("ZCOLL_RANK") || getenv("ZCOLL_SIZE")))
		return usage("-g starts ranks, and this is one already; leave -g out");
	if (o->mode == PERF_COST)
		return check_cost(o);
	if (o->mode == PERF_OVERLAP && o->collective == ZCOLL_BARRIER)
		return usage("--overlap takes no barrier");
	if (o->mode == PERF_OVERLAP && !o->min_bytes)
		return usage("--overlap -b %s: there must be something to wait for",
			     typed(o->min_text));
	if (o->min_bytes > o->max_bytes)
		return usage("-b %s is more than -e %s", typed(o->min_text),
			     typed(o->max_text));
	if (!o->step_factor && !o->step_bytes)
		return usage("-i 0: sizes would not grow");
	return 0;
}

static int perf(int argc, char **argv)
{
	struct perf_options o = {
		.step_bytes = 1 << 20, .iters = 20, .warmup = 5, .agg = 1, .check = 1,
		.average = AVERAGE_MEAN, .collective = ZCOLL_ALLREDUCE,
		.op = ZCOLL_SUM, .dtype = ZCOLL_FP32,
		.deadline_ns = SESSION_DEFAULT,
	};
	struct launch job = { .child = perf_rank, .arg = &o, .grace_ns = LAUNCH_GRACE_NS };
	bool given[OPT_END] = { false };
	int opt, status;

	while ((opt = getopt_long(argc, argv, "g:b:e:i:f:n:w:m:c:o:d:r:z:a:R:", options,
				  NULL)) != -1) {
		given[opt] = true;
		status = set_option(&o, opt);
		if (status)
			return status;
	}
	if (optind < argc)
		return usage("unexpected argument '%s'", argv[optind]);
	set_defaults(&o);
	status = check_options(&o, given);
	if (status)
		return status;
	if (!o.ranks)
		return perf_rank(&o);
	job.nranks = (unsigned int)o.ranks;
	return launch_run(&job);
}

const struct command cmd_perf = {
	.name = "perf",
	.summary = "measure collectives, and check their results",
	.help = help,
	.run = perf,
};
