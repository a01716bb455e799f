// SPDX-License-Identifier: GPL-2.0
/*
 * The engine on all nodes of a communicator: right results, or an end with an error.
 *
 * Each test is a scenario, run with many seeds: plans written by hand or made by the
 * library, and random dimensions, geometries, delays, orders, duplicates and moments of
 * failure. What must never happen is in engine_host.h; a failure names the scenario and
 * the seed.
 *
 *	engine_test [--seeds A B | --seconds N] [--trace] [SCENARIO]
 *
 * runs the seeds A .. B-1 of each scenario, or new ones for so long.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <zcoll_plan.h>

#include "engine_host.h"
#include "engine_plans.h"
#include "../lib/tap.h"

#define MAX_OPS	40

/* One run, while a scenario is putting it together */
struct run {
	u64 random;
	struct host_params params;
	struct host *host;
	struct zcoll_plan *plan[4];
	u32 nplans;
	u64 *starts[MAX_OPS];
	u32 nops;
};

static bool traced;

static u64 draw(struct run *run, u64 below)
{
	return host_random(&run->random, below);
}

/* ------------------------------------------------------------------ ingredients */

/* A plan; agreed or not as the run's first one */
static struct zcoll_plan *make_plan(struct run *run, u32 kind, u32 nodes, bool agreed)
{
	struct zcoll_plan *plan;

	switch (kind) {
	case 0:
		plan = plan_ring(nodes, agreed);
		break;
	case 1:
		plan = plan_chain(nodes, agreed);
		break;
	case 2:
		plan = plan_exchange(nodes, agreed);
		break;
	case 3:
		plan = plan_spread(nodes, agreed);
		break;
	case 4:
		plan = plan_barrier(nodes);
		break;
	case 5:
		plan = plan_turns(nodes, agreed);
		break;
	case 6:
		plan = plan_star(nodes > 4 ? 3 : nodes - 1, agreed);
		break;
	default:
		plan = plan_doubling(nodes > 3 ? 4 : 2, agreed);
		break;
	}
	run->plan[run->nplans++] = plan;
	return plan;
}

#define KINDS 8

/* Dimensions that work with all plans of this file */
static void draw_params(struct run *run, u32 nodes)
{
	run->params.nodes = nodes;
	run->params.window = 1 << draw(run, 7);
	run->params.slots = 2 + draw(run, 7);
	run->params.inflight = 1 + draw(run, draw(run, 2) ? 64 : 4);
	run->params.steps = 24;
	run->params.bits = 128;
	run->params.spread = draw(run, 4) ? 100 : 10;
	run->params.duplicates = draw(run, 2) ? 200 : 0;
	run->params.lazy = draw(run, 3) * 200;
	run->params.in_order = draw(run, 2);
}

/* Elements, maybe in segments of any size, many of them empty */
static struct zc_geometry draw_geometry(struct run *run, u32 segments)
{
	struct zc_geometry geo = { .count = draw(run, 4) ? draw(run, 70) : draw(run, 2) };
	u64 *starts, at = 0;
	u32 i;

	if (draw(run, 2))
		return geo;
	starts = calloc(segments + 1, sizeof(*starts));
	for (i = 1; i <= segments; i++)
		starts[i] = at += draw(run, 2) ? draw(run, 30) : 0;
	geo.count = at;
	geo.starts = run->starts[run->nops] = starts;
	return geo;
}

static void add_op(struct run *run, const struct zcoll_plan *plan, u32 flags, u64 deadline)
{
	struct host_op op = { .plan = plan, .root = draw(run, plan->members), .flags = flags };

	op.geo = draw_geometry(run, plan->segments);
	op.slice = 1 + op.geo.count / plan->segments / (1 + draw(run, 5));
	op.eager = draw(run, 3) ? draw(run, 2) * U64_MAX : draw(run, 20);
	op.reserve = draw(run, 3) ? U64_MAX : draw(run, 2) * draw(run, 12);
	op.deadline = deadline;
	host_add(run->host, &op);
	run->nops++;
}

/* A host for operations of one or several plans */
static void draw_ops(struct run *run, u32 nops, u32 flags)
{
	u32 i;

	run->host = host_new(&run->params, nops);
	if (traced)
		host_trace(run->host);
	for (i = 0; i < nops; i++)
		add_op(run, run->plan[draw(run, run->nplans)], flags, 0);
}

/* Some plans for the same nodes */
static void draw_plans(struct run *run, bool agreed)
{
	u32 kind = draw(run, KINDS), nodes = 3 + draw(run, 3);
	struct zcoll_plan *plan = make_plan(run, kind, nodes, agreed);

	nodes = plan->nodes;
	if (nodes > 2 && draw(run, 2))
		make_plan(run, draw(run, 6), nodes, agreed);
	if (nodes > 2 && draw(run, 2))
		make_plan(run, draw(run, 6), nodes, agreed);
	draw_params(run, nodes);
}

/* ------------------------------------------------------------------ scenarios */

static void right(struct run *run)
{
	draw_plans(run, draw(run, 2));
	draw_ops(run, 1 + draw(run, 30), 0);
}

static void right_agreed(struct run *run)
{
	draw_plans(run, true);
	draw_ops(run, 1 + draw(run, 20), ZC_OP_AGREED);
}

static void local(struct run *run)
{
	run->plan[run->nplans++] = plan_local();
	draw_params(run, 1);
	draw_ops(run, 20, 0);
}

static void heartbeats(struct run *run)
{
	draw_plans(run, draw(run, 2));
	run->params.silence = 1 + draw(run, 300);
	run->params.timeout = 2 * run->params.silence + 40 * run->params.spread + 4000;
	draw_ops(run, 1 + draw(run, 10), 0);
}

/* Any plan that the library makes */
static struct zcoll_plan *draw_made(struct run *run, bool agreed)
{
	struct zcoll_plan *plan = NULL;
	char error[ZCOLL_TEXT_MAX];
	u32 algorithms = 0;

	while (zcoll_plan_algorithm(algorithms))
		algorithms++;
	while (!plan) {
		struct zcoll_plan_spec spec = {
			.size = sizeof(spec),
			.algo = zcoll_plan_algorithm(draw(run, algorithms)),
			.collective = 1 + draw(run, ZCOLL_NR_COLLECTIVES - 1),
			.nodes = 2 + draw(run, 8),
			.radix = draw(run, 2) ? 0 : 2 + draw(run, 3),
			.flags = agreed ? ZCOLL_PLAN_AGREED : 0,
		};

		/* Not all can do all */
		zcoll_plan_make(&spec, &plan, error, sizeof(error));
	}
	return run->plan[run->nplans++] = plan;
}

static void draw_made_ops(struct run *run, u32 flags)
{
	const struct zcoll_plan *plan = draw_made(run, flags);
	u32 i;

	draw_params(run, plan->nodes);
	run->params.steps = plan->nsteps;
	for (i = 0, run->params.bits = 0; i < plan->nsteps; i++)
		if (plan->steps[i].flags & ZCOLL_STEP_OPEN)
			run->params.bits += (plan->steps[i].repeat + 63) / 64 * 64;
	draw_ops(run, 1 + draw(run, 8), flags);
}

static void made(struct run *run)
{
	draw_made_ops(run, draw(run, 2) ? ZC_OP_AGREED : 0);
}

/* Who has ended all leaves, while others have not */
static void leave(struct run *run)
{
	draw_plans(run, draw(run, 2));
	run->params.leave = true;
	run->params.silence = draw(run, 2) * (1 + draw(run, 300));
	run->params.timeout = 2 * run->params.silence + 40 * run->params.spread + 4000;
	draw_ops(run, 1 + draw(run, 12), 0);
}

/* Failures come at any step of a run; how many steps it has depends */
static u64 draw_when(struct run *run)
{
	return 1 + draw(run, 30ULL << draw(run, 9));
}

static void detection(struct run *run)
{
	run->params.silence = 20000;
	run->params.timeout = 60000;
	run->params.detect = draw(run, 2) ? 1 + draw(run, 8000) : 0;
}

static void lost(struct run *run)
{
	draw_plans(run, draw(run, 2));
	detection(run);
	draw_ops(run, 1 + draw(run, 12), 0);
	host_kill(run->host, draw(run, run->params.nodes), draw_when(run));
}

static void lost_agreed(struct run *run)
{
	u32 kills;

	draw_plans(run, true);
	detection(run);
	draw_ops(run, 1 + draw(run, 12), ZC_OP_AGREED);
	for (kills = 1 + draw(run, run->params.nodes - 1); kills; kills--)
		host_kill(run->host, draw(run, run->params.nodes), draw_when(run));
}

static void made_lost(struct run *run)
{
	u32 kills;

	detection(run);
	draw_made_ops(run, draw(run, 4) ? ZC_OP_AGREED : 0);
	for (kills = 1 + draw(run, 2); kills; kills--)
		host_kill(run->host, draw(run, run->params.nodes), draw_when(run));
}

/* Some leave, others are lost: those who do neither have equal verdicts */
static void left_and_lost(struct run *run)
{
	run->params.leave = true;
	lost_agreed(run);
}

/* The lowest node coordinates: this kills it, and the next ones soon after */
static void lost_coordinators(struct run *run)
{
	u64 when;
	u32 i;

	draw_plans(run, true);
	detection(run);
	draw_ops(run, 1 + draw(run, 12), ZC_OP_AGREED);
	when = draw_when(run);
	for (i = 0; i + 1 < run->params.nodes; i++) {
		host_kill(run->host, i, when);
		when += 1 + draw(run, 4ULL << draw(run, 6));
	}
}

static void aborted(struct run *run)
{
	bool agreed = draw(run, 2);

	draw_plans(run, agreed);
	detection(run);
	draw_ops(run, 1 + draw(run, 12), agreed ? ZC_OP_AGREED : 0);
	host_abort(run->host, draw(run, run->params.nodes), draw_when(run));
	if (draw(run, 2))
		host_abort(run->host, draw(run, run->params.nodes), draw_when(run));
}

static void late(struct run *run)
{
	bool agreed = draw(run, 2);
	u32 i;

	draw_plans(run, agreed);
	detection(run);
	run->host = host_new(&run->params, 10);
	for (i = 0; i < 10; i++)
		add_op(run, run->plan[draw(run, run->nplans)], agreed ? ZC_OP_AGREED : 0,
		       draw(run, 3) ? 0 : 1 + draw(run, 10000));
}

/* One way only, with no word back but what has been retired */
static void stream(struct run *run)
{
	struct zcoll_plan *plan = make_plan(run, 1, 3 + draw(run, 3), false);
	struct host_op op = { .plan = plan, .slice = 4, .eager = U64_MAX, .reserve = U64_MAX };

	draw_params(run, plan->nodes);
	run->host = host_new(&run->params, 1000);
	for (op.geo.count = 1; op.geo.count <= 1000; op.geo.count++) {
		struct host_op short_op = op;

		short_op.geo.count = op.geo.count % 7;
		host_add(run->host, &short_op);
	}
}

/* Nodes that have nothing to do with each other until many operations have passed */
static void strangers(struct run *run)
{
	struct zcoll_plan *ring = make_plan(run, 0, 5, false);
	struct zcoll_plan *other = make_plan(run, 2 + draw(run, 2), 5, false);
	u32 i;

	draw_params(run, 5);
	run->params.window = 1 << draw(run, 4);
	run->host = host_new(&run->params, MAX_OPS);
	for (i = 0; i < MAX_OPS; i++)
		add_op(run, i < 30 ? ring : other, 0, 0);
}

static const struct scenario {
	const char *name;
	const char *what;
	void (*draw)(struct run *run);
	u32 seeds;
} scenarios[] = {
	{ "right", "results are right in any order of messages and completions", right, 700 },
	{ "right-agreed", "nobody ends an agreed operation before all have it", right_agreed, 300 },
	{ "made", "plans that the library makes give right results", made, 300 },
	{ "local", "one node, no messages", local, 30 },
	{ "heartbeats", "heartbeats take no node that lives for lost", heartbeats, 200 },
	{ "leave", "nodes that have ended all leave, and nobody minds", leave, 400 },
	{ "stream", "a one-way stream of 1000 operations does not stop", stream, 8 },
	{ "strangers", "nodes that meet late tell each other where they are", strangers, 150 },
	{ "lost", "a node is lost at any step: all others end", lost, 700 },
	{ "lost-agreed", "any nodes are lost: survivors have equal verdicts", lost_agreed, 1200 },
	{ "made-lost", "plans that the library makes: survivors end", made_lost, 300 },
	{ "left-and-lost", "nodes leave, others are lost: equal verdicts of the rest",
	  left_and_lost, 800 },
	{ "lost-coordinators", "coordinators are lost one after the other: equal verdicts",
	  lost_coordinators, 1200 },
	{ "aborted", "nodes abort at any step: all end", aborted, 400 },
	{ "late", "deadlines: all end", late, 300 },
};

/* ------------------------------------------------------------------ the runs */

static bool run_one(const struct scenario *scenario, u64 seed)
{
	struct run run = { .random = seed * 1000003, .params.seed = seed };
	const char *fault;
	u64 steps;
	u32 i;

	scenario->draw(&run);
	fault = host_run(run.host);
	steps = host_steps(run.host);
	if (fault)
		printf("# %s, seed %llu, step %llu: %s\n", scenario->name,
		       (unsigned long long)seed, (unsigned long long)steps, fault);
	host_free(run.host);
	for (i = 0; i < run.nops; i++)
		free(run.starts[i]);
	for (i = 0; i < run.nplans; i++)
		free(run.plan[i]);
	return !fault;
}

static void run_seeds(const struct scenario *scenario, u64 from, u64 to)
{
	u64 seed, bad = 0;

	for (seed = from; seed < to && bad < 5; seed++)
		bad += !run_one(scenario, seed);
	ok(!bad, "%s (%llu seeds)", scenario->what, (unsigned long long)(seed - from));
}

static void run_seconds(const char *only, double seconds)
{
	const u32 n = sizeof(scenarios) / sizeof(scenarios[0]);
	u64 seed = time(NULL) * 1000000ULL, runs = 0, bad = 0;
	time_t end = time(NULL) + seconds;

	while (time(NULL) < end && bad < 5) {
		const struct scenario *scenario = &scenarios[seed % n];

		if (!only || !strcmp(only, scenario->name)) {
			bad += !run_one(scenario, seed);
			runs++;
		}
		seed++;
	}
	ok(!bad, "%llu runs with new seeds", (unsigned long long)runs);
}

int main(int argc, char **argv)
{
	u64 from = 0, to = 0;
	double seconds = 0;
	const char *only = NULL;
	size_t s;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seeds") && i + 2 < argc) {
			from = strtoull(argv[++i], NULL, 0);
			to = strtoull(argv[++i], NULL, 0);
		} else if (!strcmp(argv[i], "--seconds") && i + 1 < argc) {
			seconds = strtod(argv[++i], NULL);
		} else if (!strcmp(argv[i], "--trace")) {
			traced = true;
		} else {
			only = argv[i];
		}
	}
	if (seconds > 0)
		run_seconds(only, seconds);
	for (s = 0; !seconds && s < sizeof(scenarios) / sizeof(scenarios[0]); s++)
		if (!only || !strcmp(only, scenarios[s].name))
			run_seeds(&scenarios[s], from, to ? to : scenarios[s].seeds);
	return tap_end();
}
