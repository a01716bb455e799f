// SPDX-License-Identifier: GPL-2.0
/*
 * The simulator finds what it is there to find: plans with a wait taken out, and hosts
 * that break the rules, give wrong results, and it says so.
 */
#include <stdlib.h>
#include <string.h>

#include <zcoll_plan.h>

#include "../lib/tap.h"
#include "simcmd.h"

static struct zcoll_plan *make(const char *algo, u32 nodes)
{
	struct zcoll_plan_spec spec = {
		.size = sizeof(spec), .algo = algo, .collective = ZCOLL_ALLREDUCE,
		.nodes = nodes,
	};
	char error[ZCOLL_TEXT_MAX] = "";
	struct zcoll_plan *plan = NULL;

	if (zcoll_plan_make(&spec, &plan, error, sizeof(error)))
		printf("Bail out! %s\n", error);
	return plan;
}

/* Takes out all waits of steps of a kind for steps of another */
static u32 forget_waits(struct zcoll_plan *plan, u32 kind, u32 other)
{
	u32 s, i, count = 0;

	for (s = 0; s < plan->nsteps; s++)
		for (i = 0; i < ZCOLL_PLAN_AFTER; i++) {
			struct zcoll_after *after = &plan->steps[s].after[i];

			if (plan->steps[s].kind != kind || after->mode == ZCOLL_AFTER_NONE ||
			    plan->steps[after->step].kind != other)
				continue;
			memset(after, 0, sizeof(*after));
			count++;
		}
	plan->id = zc_plan_id(plan);
	return count;
}

/* Seeds of 50 for which something was wrong; the last sentence about it in @wrong */
static int wrongs(const struct zcoll_plan *plan, const struct sim_faults *faults,
		  char wrong[240])
{
	struct sim_job_spec spec = {
		.plan = plan, .bytes = 8 * 64, .element = 8, .slice = 8 * 4, .eager = U64_MAX,
	};
	struct sim_outcome outcome;
	struct sim_scene scene = {
		.model = {
			.latency = 1000 * SIM_PS, .overhead = 100 * SIM_PS,
			.per_byte = SIM_PS, .contention = SIM_CONTENTION_CPU,
		},
		.faults = *faults,
		.njobs = 1, .ops = 4, .window = 2, .slots = 4, .inflight = 64, .ranks = 1,
		.data = true, .most_events = 1000000,
	};
	struct sim_job job;
	int count = 0;

	job_init(&job, &spec);
	scene.jobs = &job;
	wrong[0] = 0;
	for (scene.seed = 1; scene.seed <= 50; scene.seed++) {
		if (sim_run(&scene, &outcome))
			puts("Bail out! out of memory");
		count += outcome.wrong[0] != 0;
		if (outcome.wrong[0])
			strcpy(wrong, outcome.wrong);
	}
	job_free(&job);
	return count;
}

static const struct sim_faults lossy = {
	.acked = true, .drop = 100000, .jitter = 2000 * SIM_PS, .retry = 5000 * SIM_PS,
	.rails = 1, .slowness = 1,
};

static const struct sim_faults calm = { .rails = 1, .slowness = 1 };

/* What is lost is sent again from memory: a fold into it must have waited */
static void test_quiet(void)
{
	struct zcoll_plan *plan = make("recursive-doubling", 16);
	char wrong[240];

	is(wrongs(plan, &lossy, wrong), 0, "lost messages are sent again, and all is right");
	ok(forget_waits(plan, ZCOLL_STEP_FOLD, ZCOLL_STEP_SEND) > 0,
	   "folds wait for the sends of what they change");
	ok(wrongs(plan, &lossy, wrong) > 0, "without that, messages change on their way");
	has(wrong, "changes before it is acknowledged", "and are said to");
	zcoll_plan_free(plan);
}

/* Sends of what is folded must wait for it */
static void test_order(void)
{
	struct zcoll_plan *plan = make("ring", 5);
	char wrong[240];

	is(wrongs(plan, &calm, wrong), 0, "a ring is right");
	ok(forget_waits(plan, ZCOLL_STEP_SEND, ZCOLL_STEP_FOLD) > 0, "its sends wait for folds");
	is(wrongs(plan, &calm, wrong), 50, "without that, results are wrong, or missing");
	has(wrong, "success, and a result is", "and said to be");
	zcoll_plan_free(plan);
}

/* Steps that wait for each other in a circle */
static void test_hang(void)
{
	struct zcoll_plan *plan = make("ring", 5);
	struct zcoll_step *step = &plan->steps[0];
	char wrong[240];

	step->after[0] = (struct zcoll_after){
		.step = plan->nsteps - 1, .mode = ZCOLL_AFTER_ALL };
	plan->id = zc_plan_id(plan);
	is(wrongs(plan, &lossy, wrong), 50, "a circle of waits never ends");
	has(wrong, "hangs: 0 of 4 operations have ended", "and that is said");
	zcoll_plan_free(plan);
}

int main(void)
{
	test_quiet();
	test_order();
	test_hang();
	return tap_end();
}
