// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll sim: simulate plans; see sim.h.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"
#include "../plan/options.h"
#include "../plan/plan.h"
#include "../progress.h"
#include "../suggest.h"
#include "memory.h"
#include "report.h"
#include "simcmd.h"
#include "trace.h"

static const char help[] =
"Usage: zcoll sim --algo ALGO -N NODES [OPTION...]\n"
"       zcoll sim --plan FILE [OPTION...]\n"
"       zcoll sim faults [OPTION...]\n"
"       zcoll sim sweep [OPTION...]\n"
"\n"
"Simulates a collective operation of many nodes: the engine that the module runs, on a\n"
"clock that jumps from event to event, with a model of networks, processors and failures.\n"
"Elements are really folded where memory allows, and results checked.\n"
"\n"
"What is done:\n"
"      --algo ALGO         algorithm, as for zcoll plan make\n"
"      --plan FILE         a plan from a file, -: standard input\n"
"      --coll C            collective (allreduce)\n"
"  -N, --nodes N           nodes with ranks\n"
"      --radix N           of algorithms that have one\n"
"      --levels A,B        group sizes of hierarchical, innermost first\n"
"      --aggregators N     nodes without ranks, of aggregator\n"
"      --agreed            all survivors get the same verdict\n"
"      --root N            root node (0)\n"
"  -b, --bytes SIZE        all segments together (8); K, M and G are powers of 1024\n"
"      --dtype N           bytes of an element (the most of 8, 4, 2, 1 that divide SIZE)\n"
"      --sizes A,B,...     elements of each segment, instead of --bytes\n"
"      --uneven SEED       segments of random sizes\n"
"      --slice SIZE        what is sent and folded at a time (0: all of a segment)\n"
"      --eager SIZE        up to this, final values need no grant; inf: all (8K)\n"
"      --ops N             operations, one after the other (1)\n"
"      --window N          operations in flight, a power of two (1)\n"
"      --slots N           landing places of a receiving step (8)\n"
"      --inflight N        units of a step that are begun and not done (64)\n"
"      --ranks N           local ranks of each node (1)\n"
"      --inplace           outputs are inputs, where a node has one rank\n"
"\n"
"What it costs ($ZCOLL_COSTS, or a built-in fabric):\n"
"      --fabric L,o,g,G    ns; a fifth number is --gamma; or a fabric's file, as\n"
"                          zcoll calibrate writes it; --loggp is the same\n"
"      --gamma NS          to fold a byte\n"
"      --inline SIZE       messages up to this are copied when they are posted (64)\n"
"      --contention C      none: each message as if alone; cpu: a node does one o or fold\n"
"                          at a time (cpu); nic: also a message at a time per NIC\n"
"      --topology T        flat, two-level:RACK,OVERSUBSCRIPTION, or torus:XxYxZ (flat)\n"
"      --hop T             more for each link of a torus after the first, or through\n"
"                          the core (0)\n"
"\n"
"What goes wrong, if any of these is given (times have a unit, ns, us, ms or s: 5us):\n"
"      --seed N            of all that is random (1)\n"
"      --runs N            with as many seeds from there on (1)\n"
"      --jitter T          messages and work take up to this longer\n"
"      --skew T            operations are submitted up to this late\n"
"      --slow P            a node is slow with this probability\n"
"      --slowness N        all that slow nodes do takes so many times as long (4)\n"
"      --drop P            transmissions are lost, and sent again from what is then in\n"
"                          memory\n"
"      --retry T           after this (20us)\n"
"      --duplicate P       messages come twice\n"
"      --rails N           more than one: messages may overtake each other (1)\n"
"      --kill NODE@EVENT   the node dies after so many events\n"
"      --abort NODE@EVENT  it revokes the communicator\n"
"      --deadline T        of each operation\n"
"      --silence T         heartbeats (50us with --kill, else none)\n"
"      --timeout T         who says nothing for so long is lost (1ms)\n"
"\n"
"Output:\n"
"      --checked 0|1       whether to fold elements really (if 64M suffice)\n"
"      --trace FILE        what happened, to be opened at ui.perfetto.dev; -: standard\n"
"                          output, and no report\n"
"      --json              one JSON object\n"
"      --stats             how fast the simulator was\n"
"  -h, --help              show this text\n"
"\n"
"zcoll plan cost and select mean --slice 64K --contention nic.\n"
"\n"
"time_ns is when the last node has all its results, complete_ns when the last operation\n"
"has ended, acknowledgements included.\n"
"\n"
"Exit status: 0 success, 1 failure or wrong results, 2 wrong usage.\n";

enum {
	OPT_ALGO = 256, OPT_PLAN, OPT_COLL, OPT_RADIX, OPT_LEVELS, OPT_AGGREGATORS, OPT_AGREED,
	OPT_ROOT, OPT_DTYPE, OPT_SIZES, OPT_UNEVEN, OPT_SLICE, OPT_EAGER, OPT_OPS, OPT_WINDOW,
	OPT_SLOTS, OPT_INFLIGHT, OPT_RANKS, OPT_INPLACE, OPT_FABRIC, OPT_LOGGP, OPT_GAMMA,
	OPT_INLINE, OPT_CONTENTION, OPT_TOPOLOGY, OPT_HOP, OPT_SEED, OPT_RUNS, OPT_JITTER, OPT_SKEW,
	OPT_SLOW, OPT_SLOWNESS, OPT_DROP, OPT_RETRY, OPT_DUPLICATE, OPT_RAILS, OPT_KILL,
	OPT_ABORT, OPT_DEADLINE, OPT_SILENCE, OPT_TIMEOUT, OPT_CHECKED, OPT_TRACE, OPT_JSON,
	OPT_STATS,
};

static const struct option options[] = {
	{ "algo", required_argument, NULL, OPT_ALGO },
	{ "plan", required_argument, NULL, OPT_PLAN },
	{ "coll", required_argument, NULL, OPT_COLL },
	{ "nodes", required_argument, NULL, 'N' },
	{ "radix", required_argument, NULL, OPT_RADIX },
	{ "levels", required_argument, NULL, OPT_LEVELS },
	{ "aggregators", required_argument, NULL, OPT_AGGREGATORS },
	{ "agreed", no_argument, NULL, OPT_AGREED },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "bytes", required_argument, NULL, 'b' },
	{ "dtype", required_argument, NULL, OPT_DTYPE },
	{ "sizes", required_argument, NULL, OPT_SIZES },
	{ "uneven", required_argument, NULL, OPT_UNEVEN },
	{ "slice", required_argument, NULL, OPT_SLICE },
	{ "eager", required_argument, NULL, OPT_EAGER },
	{ "ops", required_argument, NULL, OPT_OPS },
	{ "window", required_argument, NULL, OPT_WINDOW },
	{ "slots", required_argument, NULL, OPT_SLOTS },
	{ "inflight", required_argument, NULL, OPT_INFLIGHT },
	{ "ranks", required_argument, NULL, OPT_RANKS },
	{ "inplace", no_argument, NULL, OPT_INPLACE },
	{ "fabric", required_argument, NULL, OPT_FABRIC },
	{ "loggp", required_argument, NULL, OPT_LOGGP },
	{ "gamma", required_argument, NULL, OPT_GAMMA },
	{ "inline", required_argument, NULL, OPT_INLINE },
	{ "contention", required_argument, NULL, OPT_CONTENTION },
	{ "topology", required_argument, NULL, OPT_TOPOLOGY },
	{ "hop", required_argument, NULL, OPT_HOP },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "runs", required_argument, NULL, OPT_RUNS },
	{ "jitter", required_argument, NULL, OPT_JITTER },
	{ "skew", required_argument, NULL, OPT_SKEW },
	{ "slow", required_argument, NULL, OPT_SLOW },
	{ "slowness", required_argument, NULL, OPT_SLOWNESS },
	{ "drop", required_argument, NULL, OPT_DROP },
	{ "retry", required_argument, NULL, OPT_RETRY },
	{ "duplicate", required_argument, NULL, OPT_DUPLICATE },
	{ "rails", required_argument, NULL, OPT_RAILS },
	{ "kill", required_argument, NULL, OPT_KILL },
	{ "abort", required_argument, NULL, OPT_ABORT },
	{ "deadline", required_argument, NULL, OPT_DEADLINE },
	{ "silence", required_argument, NULL, OPT_SILENCE },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "checked", required_argument, NULL, OPT_CHECKED },
	{ "trace", required_argument, NULL, OPT_TRACE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "stats", no_argument, NULL, OPT_STATS },
	{ NULL, 0, NULL, 0 },
};

#define UNCHECKED_FROM	(64ULL << 20)	/* bytes of simulated memory */
#define MOST_MEMORY	(2ULL << 30)

/**
 * struct request - what the command line asks for
 * @spec: plan to be made
 * @path: plan to be read, or NULL
 * @job: what to make of it
 * @sized: --bytes is given
 * @sizes: --sizes, or NULL
 * @uneven: --uneven, or 0
 * @checked: --checked, or -1
 * @runs: seeds
 * @trace: --trace, or NULL
 * @json: --json
 * @stats: --stats
 * @scene: scene, all but the job
 * @progress: of the runs, or if there is but one, of its events
 * @done: runs that have ended
 */
struct request {
	struct zcoll_plan_spec spec;
	const char *path;
	struct sim_job_spec job;
	bool sized;
	const char *sizes;
	u64 uneven;
	u64 checked;
	u64 runs;
	const char *trace;
	bool json;
	bool stats;
	struct sim_scene scene;
	struct progress progress;
	u64 done;
};

/* ---- options ---- */

/* Times are given in ns; the simulator counts in ps */
static int set_ps(const char *name, u64 *ps)
{
	u64 ns = 0;
	int status = option_time(name, &ns);

	if (!status)
		*ps = ns * SIM_PS;
	return status;
}

static int set_what(struct request *r, int opt)
{
	switch (opt) {
	case OPT_ALGO:
		return plan_set_algorithm(optarg, &r->spec.algo);
	case OPT_PLAN:
		r->path = optarg;
		return STATUS_OK;
	case OPT_COLL:
		return plan_set_collective(optarg, &r->spec.collective);
	case 'N':
		return option_u32("-N", 1, ZCOLL_PLAN_MAX_NODES, &r->spec.nodes);
	case OPT_RADIX:
		return option_u32("--radix", 2, ZCOLL_PLAN_MAX_NODES, &r->spec.radix);
	case OPT_LEVELS:
		return plan_set_levels(optarg, r->spec.levels);
	case OPT_AGGREGATORS:
		return option_u32("--aggregators", 1, ZCOLL_PLAN_MAX_NODES,
				  &r->spec.aggregators);
	case OPT_AGREED:
		r->spec.flags |= ZCOLL_PLAN_AGREED;
		return STATUS_OK;
	case OPT_ROOT:
		return option_u32("--root", 0, ZCOLL_PLAN_MAX_NODES - 1, &r->job.root);
	case 'b':
		r->sized = true;
		return option_size("--bytes", &r->job.bytes);
	case OPT_DTYPE:
		return option_u32("--dtype", 1, 64, &r->job.element);
	case OPT_SIZES:
		r->sizes = optarg;
		return STATUS_OK;
	case OPT_UNEVEN:
		return option_uint("--uneven", 1, INT64_MAX, &r->uneven);
	case OPT_SLICE:
		return option_size("--slice", &r->job.slice);
	case OPT_EAGER:
		if (strcmp(optarg, "inf"))
			return option_size("--eager", &r->job.eager);
		r->job.eager = U64_MAX;
		return STATUS_OK;
	}
	return -1;
}

static int set_engine(struct request *r, int opt)
{
	struct sim_scene *scene = &r->scene;

	switch (opt) {
	case OPT_OPS:
		return option_u32("--ops", 1, 1000000, &scene->ops);
	case OPT_WINDOW:
		return option_u32("--window", 1, ZC_ENGINE_MAX_WINDOW, &scene->window);
	case OPT_SLOTS:
		return option_u32("--slots", 2, ZC_ENGINE_MAX_SLOTS, &scene->slots);
	case OPT_INFLIGHT:
		return option_u32("--inflight", 1, 64, &scene->inflight);
	case OPT_RANKS:
		return option_u32("--ranks", 1, 1024, &scene->ranks);
	case OPT_INPLACE:
		scene->in_place = true;
		return STATUS_OK;
	case OPT_SEED:
		return option_uint("--seed", 0, INT64_MAX, &scene->seed);
	case OPT_RUNS:
		return option_uint("--runs", 1, 1000000, &r->runs);
	case OPT_CHECKED:
		return option_uint("--checked", 0, 1, &r->checked);
	case OPT_TRACE:
		r->trace = optarg;
		return STATUS_OK;
	case OPT_JSON:
		r->json = true;
		return STATUS_OK;
	case OPT_STATS:
		r->stats = true;
		return STATUS_OK;
	}
	return -1;
}

static int set_model(struct sim_model *model, int opt)
{
	switch (opt) {
	case OPT_FABRIC:
		return option_fabric("--fabric", model);
	case OPT_LOGGP:
		return option_fabric("--loggp", model);
	case OPT_GAMMA:
		return option_gamma(model);
	case OPT_INLINE:
		return option_size("--inline", &model->inlined);
	case OPT_CONTENTION:
		return option_contention(model);
	case OPT_TOPOLOGY:
		return option_topology(model);
	case OPT_HOP:
		return set_ps("--hop", &model->hop);
	}
	return -1;
}

static int set_faults(struct sim_faults *faults, int opt)
{
	switch (opt) {
	case OPT_JITTER:
		return set_ps("--jitter", &faults->jitter);
	case OPT_SKEW:
		return set_ps("--skew", &faults->skew);
	case OPT_SLOW:
		return option_chance("--slow", &faults->slow);
	case OPT_SLOWNESS:
		return option_u32("--slowness", 1, 1000, &faults->slowness);
	case OPT_DROP:
		return option_chance("--drop", &faults->drop);
	case OPT_RETRY:
		return set_ps("--retry", &faults->retry);
	case OPT_DUPLICATE:
		return option_chance("--duplicate", &faults->duplicate);
	case OPT_RAILS:
		return option_u32("--rails", 1, 64, &faults->rails);
	case OPT_KILL:
		return option_blow("--kill", SIM_KILL, faults);
	case OPT_ABORT:
		return option_blow("--abort", SIM_ABORT, faults);
	case OPT_DEADLINE:
		return option_time("--deadline", &faults->deadline);
	case OPT_SILENCE:
		return option_time("--silence", &faults->silence);
	case OPT_TIMEOUT:
		return option_time("--timeout", &faults->timeout);
	}
	return -1;
}

static int set_option(struct request *r, int opt)
{
	int status = set_what(r, opt);

	if (status < 0)
		status = set_engine(r, opt);
	if (status < 0)
		status = set_model(&r->scene.model, opt);
	if (status < 0)
		status = set_faults(&r->scene.faults, opt);
	return status < 0 ? usage_option() : status;
}

/* ---- what makes no sense ---- */

static int check_what(const struct request *r, int argc, char **argv)
{
	if (optind < argc)
		return usage("unexpected argument '%s'", argv[optind]);
	if (!r->path == !r->spec.algo)
		return usage(r->path ? "--algo and --plan: which of them?" :
				       "which algorithm? Give --algo ALGO, or --plan FILE");
	if (r->path && (r->spec.nodes || r->spec.radix || r->spec.levels[0] ||
			r->spec.aggregators || r->spec.collective))
		return usage("--plan says all of -N, --coll, --radix, --levels and --aggregators");
	if (!r->path && !r->spec.nodes)
		return usage("-N is missing: how many nodes?");
	if (r->sizes && r->uneven)
		return usage("--sizes and --uneven: which of them?");
	if (r->sizes && r->sized)
		return usage("--sizes and --bytes: which of them?");
	if (r->scene.in_place && r->scene.ranks > 1)
		return usage("--inplace: only where a node has one rank, not %u", r->scene.ranks);
	if (r->scene.window & (r->scene.window - 1))
		return usage("--window %u: not a power of two", r->scene.window);
	if (r->trace && r->runs > 1)
		return usage("--trace is of one run; leave --runs out");
	return STATUS_OK;
}

/* What options mean that depend on others */
static void settle_faults(struct sim_faults *faults)
{
	u32 i;
	bool kills = false;

	for (i = 0; i < faults->nblows; i++)
		kills |= faults->blows[i].kind == SIM_KILL;
	faults->acked = faults->drop || faults->duplicate || faults->nblows ||
			faults->deadline || faults->silence;
	if (kills && !faults->silence)
		faults->silence = 50000;
}

static int settle_element(struct request *r)
{
	u32 element = 8;

	while (r->job.bytes % element)
		element /= 2;
	if (!r->job.element)
		r->job.element = element;
	if (r->job.bytes % r->job.element)
		return usage("--bytes %" PRIu64 " is not a multiple of --dtype %u",
			     r->job.bytes, r->job.element);
	return STATUS_OK;
}

static int check_plan(const struct request *r, const struct zcoll_plan *plan)
{
	const struct sim_model *model = &r->scene.model;
	u32 places = model->dims[0] * model->dims[1] * model->dims[2], i;

	if (r->job.root >= plan->members)
		return usage("--root %u: there are nodes 0 to %u", r->job.root,
			     plan->members - 1);
	if (r->spec.flags & ZCOLL_PLAN_AGREED && !(plan->flags & ZCOLL_PLAN_AGREED))
		return usage("--agreed: this plan is not made for it");
	if (model->shape == SIM_TORUS && places < plan->nodes)
		return usage("--topology: the torus has %u places, and there are %u nodes",
			     places, plan->nodes);
	for (i = 0; i < r->scene.faults.nblows; i++)
		if (r->scene.faults.blows[i].node >= plan->nodes)
			return usage("--kill, --abort: there are nodes 0 to %u",
				     plan->nodes - 1);
	return STATUS_OK;
}

/* What is allowed, but perhaps not what was meant */
static void hint_topology(const struct sim_model *model, u32 nodes)
{
	u32 places = model->dims[0] * model->dims[1] * model->dims[2];
	enum sim_contention least = model->shape == SIM_TORUS ? SIM_CONTENTION_NIC :
							       SIM_CONTENTION_CPU;

	if (model->shape == SIM_FLAT)
		return;
	if (!model->hop && model->contention < least)
		msg("--topology changes nothing without --hop or --contention %s",
		    contention_name(least));
	if (model->shape == SIM_TORUS && places > nodes)
		msg("--topology: %u places of the torus stay empty", places - nodes);
}

/* A plan from a file is not to be trusted */
static int prove(const struct request *r, const struct zcoll_plan *plan)
{
	struct zc_plan_why why = { 0 };
	int err = plan_prove(plan, &why);

	if (err == -ENOMEM)
		return failed("out of memory");
	if (err)
		return failed("%s: node %u, step %u: %s; zcoll plan check says more", r->path,
			      why.node, why.step, why.what);
	return STATUS_OK;
}

static int get_plan(struct request *r, struct zcoll_plan **plan)
{
	char error[ZCOLL_TEXT_MAX] = "";
	int status;

	*plan = NULL;
	if (!r->path) {
		if (!r->spec.collective)
			r->spec.collective = ZCOLL_ALLREDUCE;
		if (zcoll_plan_make(&r->spec, plan, error, sizeof(error)))
			return failed("%s", error);
		return STATUS_OK;
	}
	status = plan_read(r->path, plan);
	return status ? status : prove(r, *plan);
}

/* "3,0,5": elements of each segment */
static int set_sizes(struct request *r, u32 segments, u64 **to)
{
	u64 *starts = calloc(segments + 1, sizeof(*starts)), size;
	char *copy = strdup(r->sizes), *rest = copy, *item;
	int status = STATUS_OK;
	u32 i = 0;

	if (!starts || !copy)
		status = failed("out of memory");
	for (i = 0; !status && (item = strsep(&rest, ",")); i++) {
		if (i == segments || parse_uint(item, 0, 1ULL << 36, &size))
			break;
		starts[i + 1] = starts[i] + size;
	}
	if (!status && (i < segments || item))
		status = usage("--sizes %s: not %u numbers of elements, one for each segment",
			       r->sizes, segments);
	free(copy);
	*to = starts;
	if (r->job.element == 0)
		r->job.element = 8;
	if (!status)
		r->job.bytes = starts[segments] * r->job.element;
	return status;
}

static int make_job(struct request *r, const struct zcoll_plan *plan, struct sim_job *job)
{
	u64 random = r->uneven, *starts = NULL;
	int status;

	r->job.plan = plan;
	status = r->sizes ? set_sizes(r, plan->segments, &starts) : settle_element(r);
	if (!status && job_init(job, &r->job))
		status = failed("out of memory");
	if (status) {
		free(starts);
		return status;
	}
	job->starts = starts;
	job->geo.starts = starts;
	if (r->spec.flags & ZCOLL_PLAN_AGREED)
		job->flags |= ZC_OP_AGREED;
	if (r->uneven && job_uneven(job, &random))
		return failed("out of memory");
	return STATUS_OK;
}

static int settle_memory(struct request *r, struct sim_report *report)
{
	u64 needs = memory_needs(&r->scene);

	report->needs = r->checked <= 1 ? 0 : needs;
	report->room = UNCHECKED_FROM;
	report->most_room = MOST_MEMORY;
	r->scene.data = r->checked <= 1 ? r->checked : needs <= UNCHECKED_FROM;
	if (r->scene.data && needs > MOST_MEMORY)
		return usage("--checked 1: elements of all nodes take %" PRIu64
			     " MiB, more than %llu; take fewer bytes or nodes", needs >> 20,
			     MOST_MEMORY >> 20);
	return STATUS_OK;
}

/* ---- run ---- */

static void tell_progress(void *told, u64 events)
{
	struct request *r = told;

	if (r->runs > 1)
		progress_update(&r->progress, "runs", r->done, r->runs, false);
	else
		progress_update(&r->progress, "events", events, 0, false);
}

static int run_once(struct request *r, struct sim_report *report)
{
	struct sim_trace trace;
	int err;

	if (r->trace) {
		err = trace_open(&trace, r->trace);
		if (err)
			return failed("%s: %s", r->trace, strerror(-err));
		trace_nodes(&trace, r->scene.jobs[0].prog.plan->nodes);
		r->scene.trace = &trace;
	}
	err = report_run(report, &r->scene);
	if (err || report->outcome.wrong[0])
		progress_end(&r->progress);
	if (r->trace && trace_close(&trace) && !err)
		return failed("%s: cannot be written", r->trace);
	if (err == -ENOMEM)
		return failed("out of memory");
	if (err)
		return failed("the engine refuses such a plan: error %d", err);
	if (report->outcome.wrong[0])
		return failed("seed %" PRIu64 ": %s", r->scene.seed, report->outcome.wrong);
	return STATUS_OK;
}

static int run_all(struct request *r, struct sim_report *report)
{
	int status = STATUS_OK;

	progress_start(&r->progress, true);
	r->scene.tell = tell_progress;
	r->scene.told = r;
	for (; r->done < r->runs && !status; r->done++, r->scene.seed++) {
		status = run_once(r, report);
		if (r->runs > 1)
			tell_progress(r, 0);
	}
	progress_end(&r->progress);
	if (status || (r->trace && !strcmp(r->trace, "-")))
		return status;
	if (r->json)
		return report_json(report, r->stats);
	report_print(report, r->stats);
	return STATUS_OK;
}

static int simulate(struct request *r)
{
	struct sim_report report = { .scene = &r->scene, .job = &r->job };
	struct sim_job job = { 0 };
	struct zcoll_plan *plan;
	int status = get_plan(r, &plan);

	if (!status)
		status = check_plan(r, plan);
	if (!status)
		status = make_job(r, plan, &job);
	r->scene.jobs = &job;
	r->scene.njobs = 1;
	report.plan = plan;
	if (!status)
		status = settle_memory(r, &report);
	if (!status) {
		hint_topology(&r->scene.model, plan->nodes);
		status = run_all(r, &report);
	}
	job_free(&job);
	zcoll_plan_free(plan);
	return status;
}

static int sim_once(int argc, char **argv)
{
	struct zcoll_fabric fabric;
	struct request r = {
		.spec.size = sizeof(r.spec),
		.job = { .bytes = 8, .eager = ZC_ENGINE_EAGER },
		.checked = U64_MAX,
		.runs = 1,
		.scene = {
			.model = { .inlined = 64, .contention = SIM_CONTENTION_CPU },
			.faults = { .rails = 1, .retry = 20000 * SIM_PS, .slowness = 4,
				    .timeout = 1000000 },
			.ops = 1, .window = 1, .slots = ZC_ENGINE_SLOTS,
			.inflight = ZC_ENGINE_INFLIGHT, .ranks = 1, .seed = 1,
		},
	};
	int opt, status;

	status = plan_default_fabric(&fabric);
	if (status)
		return status;
	model_from_fabric(&r.scene.model, &fabric);
	while ((opt = getopt_long(argc, argv, "N:b:", options, NULL)) != -1) {
		status = set_option(&r, opt);
		if (status)
			return status;
	}
	status = check_what(&r, argc, argv);
	if (status)
		return status;
	settle_faults(&r.scene.faults);
	return simulate(&r);
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} subcommands[] = {
	{ "faults", sim_faults },
	{ "sweep", sim_sweep },
};

#define NSUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static const char *subcommand_name(unsigned int i)
{
	return i < NSUBCOMMANDS ? subcommands[i].name : NULL;
}

static int run_subcommand(unsigned int i, int argc, char **argv)
{
	static char name[32];

	snprintf(name, sizeof(name), "zcoll sim %s", subcommands[i].name);
	msg_command(name + strlen("zcoll "));
	argv[0] = name;
	return subcommands[i].run(argc, argv);
}

static int sim(int argc, char **argv)
{
	const char *near;
	unsigned int i;

	if (argc < 2 || argv[1][0] == '-')
		return sim_once(argc, argv);
	for (i = 0; i < NSUBCOMMANDS; i++)
		if (!strcmp(argv[1], subcommands[i].name))
			return run_subcommand(i, argc - 1, argv + 1);
	near = suggest(argv[1], subcommand_name);
	if (near)
		return usage("no '%s'; did you mean '%s'?", argv[1], near);
	return usage("no '%s'; there are faults and sweep, or --algo and --plan", argv[1]);
}

const struct command cmd_sim = {
	.name = "sim",
	.summary = "simulate plans on many nodes, with costs and faults",
	.help = help,
	.run = sim,
	.nested = true,
};
