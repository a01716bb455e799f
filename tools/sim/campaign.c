// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll sim faults: many scenes with random plans, geometry and faults. A *case* is all
 * of it, drawn from one seed.
 *
 * What is looked for: an operation that never ends, a success with wrong elements, an
 * access to a buffer that is not open to it, verdicts that differ where they must not, a
 * failure without a cause; and plans that the kernel would not take.
 */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"
#include "../plan/options.h"
#include "../progress.h"
#include "memory.h"
#include "random.h"
#include "simcmd.h"
#include "trace.h"

static const char help[] =
"Usage: zcoll sim faults [--seeds A..B] [OPTION...]\n"
"\n"
"Simulates operations of random algorithms, on random numbers of nodes, with random\n"
"geometry, while messages are lost, come twice or overtake each other, and nodes are\n"
"slow, die or give up. Looks for operations that never end, results that are wrong in\n"
"spite of success, and verdicts that should agree and do not.\n"
"\n"
"      --seeds A..B        one case for each seed (1..1000)\n"
"      --algo ALGO         only this algorithm\n"
"      --coll C            only this collective\n"
"  -N, --nodes N           only so many nodes with ranks\n"
"      --trace FILE        what happened, to be opened at ui.perfetto.dev; one seed\n"
"      --list              print each case\n"
"      --json              one JSON object, instead of text\n"
"  -h, --help              show this text\n"
"\n"
"Exit status: 0 nothing was found, 1 something was, or failure, 2 wrong usage.\n";

#define CASE_JOBS	3
#define CASE_EVENTS	3000000		/* a case that needs more does not end */
#define CASES_TOLD	10

/**
 * struct campaign - what the command line asks for, and what was found
 * @from: first seed
 * @to: last seed
 * @algo: only this one, or NULL
 * @collective: only this one, or 0
 * @nodes: only so many, or 0
 * @trace: --trace, or NULL
 * @list: --list
 * @json: --json
 * @bad: cases with something wrong
 * @skipped: cases for which there is no plan
 * @dead: nodes that died
 * @events: of all cases
 * @good: operations that ended well, summed over nodes
 * @failed: others
 * @progress: of the seeds
 */
struct campaign {
	u64 from;
	u64 to;
	const char *algo;
	u32 collective;
	u32 nodes;
	const char *trace;
	bool list;
	bool json;
	u64 bad;
	u64 skipped;
	u64 dead;
	u64 events;
	u64 good;
	u64 failed;
	struct progress progress;
};

/**
 * struct sim_case - all that is drawn from a seed
 * @random: state of the draws
 * @scene: scene
 * @jobs: of @scene
 * @plans: of the jobs
 * @refused: why a plan would be refused, or empty
 */
struct sim_case {
	u64 random;
	struct sim_scene scene;
	struct sim_job jobs[CASE_JOBS];
	struct zcoll_plan *plans[CASE_JOBS];
	char refused[200];
};

/* ---- draws ---- */

static bool maybe(struct sim_case *c, u32 percent)
{
	return random_below(&c->random, 100) < percent;
}

static u64 from_to(struct sim_case *c, u64 least, u64 most)
{
	return random_range(&c->random, least, most);
}

/* Up to @most, small ones as likely as large ones */
static u64 some(struct sim_case *c, u64 most)
{
	u64 power = 1ULL << random_below(&c->random, 64 - __builtin_clzll(most));

	return from_to(c, 0, power < most ? power : most);
}

static u32 draw_nodes(struct sim_case *c)
{
	u32 class = random_below(&c->random, 20);

	return class < 14 ? from_to(c, 2, 9) : class < 19 ? from_to(c, 1, 20) :
							   from_to(c, 1, 40);
}

static const char *draw_algorithm(struct sim_case *c)
{
	unsigned int count = 0;

	while (zcoll_plan_algorithm(count))
		count++;
	return zcoll_plan_algorithm(random_below(&c->random, count));
}

/* A plan, if the algorithm drawn has it for the collective drawn */
static bool draw_plan(const struct campaign *campaign, struct sim_case *c, u32 nodes,
		      struct zcoll_plan **plan)
{
	struct zcoll_plan_spec spec = { .size = sizeof(spec), .nodes = nodes };
	char error[ZCOLL_TEXT_MAX];

	spec.algo = draw_algorithm(c);
	spec.collective = from_to(c, 1, ZCOLL_NR_COLLECTIVES - 1);
	spec.radix = maybe(c, 50) ? 0 : from_to(c, 2, 6);
	spec.flags = maybe(c, 50) ? ZCOLL_PLAN_AGREED : 0;
	if (campaign->algo)
		spec.algo = campaign->algo;
	if (campaign->collective)
		spec.collective = campaign->collective;
	*plan = NULL;
	return !zcoll_plan_make(&spec, plan, error, sizeof(error));
}

static void prove(struct sim_case *c, const struct zcoll_plan *plan)
{
	struct zc_plan_why why = { 0 };

	if (plan_prove(plan, &why))
		snprintf(c->refused, sizeof(c->refused), "%s of %u nodes: node %u, step %u: %s",
			 plan->name, plan->nodes, why.node, why.step, why.what);
}

static int draw_job(struct sim_case *c, const struct zcoll_plan *plan, struct sim_job *job)
{
	u64 count = maybe(c, 5) ? 0 : some(c, 3 * plan->segments + 40);
	struct sim_job_spec spec = {
		.plan = plan,
		.bytes = 8 * count,
		.element = 8,
		.slice = maybe(c, 30) ? 0 : 8 * from_to(c, 1, 12),
		.eager = maybe(c, 30) ? U64_MAX : 8 * some(c, 20),
		.root = random_below(&c->random, plan->members),
	};
	int err = job_init(job, &spec);

	if (maybe(c, 50))
		job->reserve = some(c, 8);
	if (plan->collective == ZCOLL_BARRIER)
		job->geo.count = 0;
	job->turn_root = maybe(c, 50);
	if (plan->flags & ZCOLL_PLAN_AGREED)
		job->flags = ZC_OP_AGREED;
	if (!err && job->geo.count && maybe(c, 40))
		err = job_uneven(job, &c->random);
	return err;
}

static void draw_model(struct sim_case *c, struct sim_model *model, u32 nodes)
{
	*model = (struct sim_model){
		.latency = from_to(c, 0, 3000) * SIM_PS,
		.overhead = from_to(c, 0, 500) * SIM_PS,
		.gap = from_to(c, 0, 500) * SIM_PS,
		.per_byte = from_to(c, 0, 10) * SIM_PS,
		.per_byte_folded = from_to(c, 0, 10) * SIM_PS,
		.inlined = maybe(c, 50) ? 64 : 0,
		.contention = from_to(c, SIM_CONTENTION_NONE, SIM_CONTENTION_NIC),
	};
	if (maybe(c, 80))
		return;
	model->hop = from_to(c, 0, 1000) * SIM_PS;
	if (maybe(c, 50)) {
		model->shape = SIM_TWO_LEVEL;
		model->rack = from_to(c, 1, 5);
		model->oversub = (double)from_to(c, 1, 4);
	} else {
		model->shape = SIM_TORUS;
		model->dims[0] = from_to(c, 1, 4);
		model->dims[1] = from_to(c, 1, 3);
		model->dims[2] = (nodes - 1) / (model->dims[0] * model->dims[1]) + 1;
	}
}

static void draw_blow(struct sim_case *c, struct sim_faults *faults, enum sim_blow_kind kind,
		      u32 nodes)
{
	if (faults->nblows < SIM_MAX_BLOWS)
		faults->blows[faults->nblows++] = (struct sim_blow){
			kind, random_below(&c->random, nodes), some(c, 8000) };
}

static void draw_failures(struct sim_case *c, struct sim_faults *faults, u32 nodes)
{
	u32 kills = maybe(c, 40) ? from_to(c, 1, 3) : 0, i;

	for (i = 0; i < kills; i++)
		draw_blow(c, faults, SIM_KILL, nodes);
	if (maybe(c, 15))
		draw_blow(c, faults, SIM_ABORT, nodes);
	if (maybe(c, 10))
		faults->deadline = 1 + some(c, 4000000);
	if (faults->nblows || maybe(c, 20)) {
		faults->silence = from_to(c, 500, 2000) * 1000;
		/* far more than any delay here: who lives must not be taken for lost */
		faults->timeout = 30 * faults->silence;
	}
}

static void draw_faults(struct sim_case *c, struct sim_faults *faults, u32 nodes)
{
	*faults = (struct sim_faults){
		.acked = true,
		.drop = maybe(c, 50) ? 0 : some(c, 200000),
		.duplicate = maybe(c, 60) ? 0 : some(c, 300000),
		.rails = maybe(c, 50) ? 1 : 2,
		.jitter = maybe(c, 40) ? 0 : some(c, 50000) * SIM_PS,
		.skew = maybe(c, 40) ? 0 : some(c, 100000) * SIM_PS,
		.retry = from_to(c, 5, 40) * 1000 * SIM_PS,
		.slow = maybe(c, 70) ? 0 : 300000,
		.slowness = from_to(c, 2, 8),
	};
	draw_failures(c, faults, nodes);
}

static int case_init(const struct campaign *campaign, struct sim_case *c, u64 seed)
{
	struct sim_scene *scene = &c->scene;
	u32 nodes, jobs, tries, n = 0;

	memset(c, 0, sizeof(*c));
	c->random = random_mix(seed + 0x5eed);
	nodes = draw_nodes(c);
	if (campaign->nodes)
		nodes = campaign->nodes;
	jobs = maybe(c, 60) ? 1 : from_to(c, 1, CASE_JOBS);
	for (tries = 0; tries < 100 && n < jobs; tries++) {
		if (!draw_plan(campaign, c, nodes, &c->plans[n]))
			continue;
		if (c->plans[n]->nodes != c->plans[0]->nodes) {
			zcoll_plan_free(c->plans[n]);
			continue;
		}
		c->scene.njobs = ++n;
		prove(c, c->plans[n - 1]);
		if (draw_job(c, c->plans[n - 1], &c->jobs[n - 1]))
			return -ENOMEM;
	}
	if (!n)
		return -ENOENT;
	nodes = c->plans[0]->nodes;
	*scene = (struct sim_scene){
		.jobs = c->jobs,
		.njobs = n,
		.ops = from_to(c, 1, 10),
		.window = 1U << random_below(&c->random, 5),
		.slots = from_to(c, 2, 8),
		.inflight = maybe(c, 50) ? 64 : from_to(c, 1, 8),
		.ranks = maybe(c, 70) ? 1 : 2,
		.in_place = maybe(c, 50),
		.data = true,
		.seed = seed,
		.most_events = CASE_EVENTS,
	};
	draw_model(c, &scene->model, nodes);
	draw_faults(c, &scene->faults, nodes);
	return 0;
}

static void case_free(struct sim_case *c)
{
	u32 i;

	for (i = 0; i < c->scene.njobs; i++) {
		job_free(&c->jobs[i]);
		zcoll_plan_free(c->plans[i]);
	}
}

static void case_print(const struct sim_case *c)
{
	const struct sim_scene *scene = &c->scene;
	const struct sim_faults *faults = &scene->faults;
	u32 i;

	printf("seed %" PRIu64 ": %u nodes, %u operations, window %u, slots %u, inflight %u",
	       scene->seed, c->plans[0]->nodes, scene->ops, scene->window, scene->slots,
	       scene->inflight);
	for (i = 0; i < scene->njobs; i++)
		printf("; %s %s%s, %" PRIu64 " elements%s", c->plans[i]->name,
		       zcoll_collective_name(c->plans[i]->collective),
		       c->jobs[i].flags & ZC_OP_AGREED ? " agreed" : "", c->jobs[i].geo.count,
		       c->jobs[i].geo.starts ? " uneven" : "");
	if (faults->drop || faults->duplicate || faults->rails > 1)
		printf("; drop %u, duplicate %u in a million, rails %u", faults->drop,
		       faults->duplicate, faults->rails);
	for (i = 0; i < faults->nblows; i++)
		printf("; %s node %u at event %" PRIu64,
		       faults->blows[i].kind == SIM_KILL ? "kill" : "abort at",
		       faults->blows[i].node, faults->blows[i].event);
	if (faults->deadline)
		printf("; deadline %" PRIu64 " ns", faults->deadline);
	putchar('\n');
}

/* ---- the campaign ---- */

static void tell_wrong(const struct campaign *campaign, const struct sim_case *c,
		       const char *wrong)
{
	if (!campaign->list)
		case_print(c);
	printf("  WRONG %s\n  replay: zcoll sim faults --seeds %" PRIu64 "..%" PRIu64,
	       wrong, c->scene.seed, c->scene.seed);
	if (campaign->algo)
		printf(" --algo %s", campaign->algo);
	if (campaign->collective)
		printf(" --coll %s", zcoll_collective_name(campaign->collective));
	if (campaign->nodes)
		printf(" -N %u", campaign->nodes);
	puts(" --trace trace.json");
}

static int case_run(struct campaign *campaign, struct sim_case *c, struct sim_outcome *outcome)
{
	struct sim_trace trace;
	int err;

	if (c->refused[0]) {
		memset(outcome, 0, sizeof(*outcome));
		snprintf(outcome->wrong, sizeof(outcome->wrong), "%s", c->refused);
		return 0;
	}
	if (!campaign->trace)
		return sim_run(&c->scene, outcome);
	err = trace_open(&trace, campaign->trace);
	if (err)
		return err;
	trace_nodes(&trace, c->plans[0]->nodes);
	c->scene.trace = &trace;
	err = sim_run(&c->scene, outcome);
	return trace_close(&trace) && !err ? -EIO : err;
}

static int campaign_case(struct campaign *campaign, u64 seed)
{
	struct sim_outcome outcome;
	struct sim_case c;
	int err = case_init(campaign, &c, seed);

	if (err == -ENOENT) {
		campaign->skipped++;
		return 0;
	}
	if (!err && campaign->list)
		case_print(&c);
	if (!err)
		err = case_run(campaign, &c, &outcome);
	if (!err) {
		campaign->dead += outcome.dead;
		campaign->events += outcome.events;
		campaign->good += outcome.good;
		campaign->failed += outcome.bad;
		if (outcome.wrong[0] && campaign->bad++ < CASES_TOLD && !campaign->json) {
			progress_end(&campaign->progress);
			tell_wrong(campaign, &c, outcome.wrong);
		}
	}
	case_free(&c);
	return err;
}

static int campaign_json(const struct campaign *c)
{
	json_t *root = json_pack("{sI sI sI sI sI sI sI}",
				 "cases", (json_int_t)(c->to - c->from + 1 - c->skipped),
				 "skipped", (json_int_t)c->skipped,
				 "events", (json_int_t)c->events,
				 "ended_well", (json_int_t)c->good,
				 "failed", (json_int_t)c->failed,
				 "dead_nodes", (json_int_t)c->dead,
				 "wrong", (json_int_t)c->bad);

	return plan_print_json(root);
}

static void campaign_print(const struct campaign *campaign)
{
	printf("%" PRIu64 " cases, %" PRIu64 " events: %" PRIu64 " operations ended well, %"
	       PRIu64 " failed, %" PRIu64 " nodes died\n",
	       campaign->to - campaign->from + 1 - campaign->skipped, campaign->events,
	       campaign->good, campaign->failed, campaign->dead);
	if (campaign->skipped)
		printf("%" PRIu64 " seeds skipped: there is no such plan\n", campaign->skipped);
}

static int campaign_run(struct campaign *campaign)
{
	u64 seed;
	int err = 0;

	progress_start(&campaign->progress, !campaign->list);
	for (seed = campaign->from; seed <= campaign->to; seed++) {
		err = campaign_case(campaign, seed);
		progress_update(&campaign->progress, "seeds", seed - campaign->from + 1,
				campaign->to - campaign->from + 1, false);
		if (err) {
			progress_end(&campaign->progress);
			return failed("seed %" PRIu64 ": %s", seed, strerror(-err));
		}
	}
	progress_end(&campaign->progress);
	if (campaign->json)
		err = campaign_json(campaign);
	else
		campaign_print(campaign);
	if (err)
		return err;
	if (campaign->bad)
		return failed("%" PRIu64 " cases went wrong", campaign->bad);
	return STATUS_OK;
}

/* ---- options ---- */

enum { OPT_SEEDS = 256, OPT_ALGO, OPT_COLL, OPT_TRACE, OPT_LIST, OPT_JSON };

static const struct option options[] = {
	{ "seeds", required_argument, NULL, OPT_SEEDS },
	{ "algo", required_argument, NULL, OPT_ALGO },
	{ "coll", required_argument, NULL, OPT_COLL },
	{ "nodes", required_argument, NULL, 'N' },
	{ "trace", required_argument, NULL, OPT_TRACE },
	{ "list", no_argument, NULL, OPT_LIST },
	{ "json", no_argument, NULL, OPT_JSON },
	{ NULL, 0, NULL, 0 },
};

/* "1..1000", or one seed */
static int set_seeds(struct campaign *campaign)
{
	const char *dots = strstr(optarg, "..");
	char from[32] = "";

	snprintf(from, sizeof(from), "%.*s", dots ? (int)(dots - optarg) : 31, optarg);
	if (!parse_uint(from, 0, INT64_MAX, &campaign->from) &&
	    !parse_uint(dots ? dots + 2 : from, campaign->from, INT64_MAX, &campaign->to))
		return STATUS_OK;
	return usage("--seeds %s: not A..B, such as 1..1000", optarg);
}

static int set_option(struct campaign *campaign, int opt)
{
	switch (opt) {
	case OPT_SEEDS:
		return set_seeds(campaign);
	case OPT_ALGO:
		return plan_set_algorithm(optarg, &campaign->algo);
	case OPT_COLL:
		return plan_set_collective(optarg, &campaign->collective);
	case 'N':
		return option_u32("-N", 1, 1024, &campaign->nodes);
	case OPT_TRACE:
		campaign->trace = optarg;
		return STATUS_OK;
	case OPT_LIST:
		campaign->list = true;
		return STATUS_OK;
	case OPT_JSON:
		campaign->json = true;
		return STATUS_OK;
	}
	return usage_option();
}

int sim_faults(int argc, char **argv)
{
	struct campaign campaign = { .from = 1, .to = 1000 };
	int opt, status;

	if (plan_wants_help(argc, argv, help))
		return STATUS_OK;
	while ((opt = getopt_long(argc, argv, "N:", options, NULL)) != -1) {
		status = set_option(&campaign, opt);
		if (status)
			return status;
	}
	if (optind < argc)
		return usage("unexpected argument '%s'", argv[optind]);
	if (campaign.trace && campaign.from != campaign.to)
		return usage("--trace is of one case: give one seed, --seeds A..A");
	if (campaign.list && campaign.json)
		return usage("--list and --json: which of them?");
	if (campaign.trace && !strcmp(campaign.trace, "-"))
		return usage("--trace -: standard output is for the report; name a file");
	return campaign_run(&campaign);
}
