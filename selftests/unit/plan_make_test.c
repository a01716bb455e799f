// SPDX-License-Identifier: GPL-2.0
/*
 * What zcoll_plan_make() promises beside right plans, which plan_sweep_test proves: few
 * steps for many nodes, and errors that say what can be had.
 */
#include <errno.h>
#include <string.h>

#include <zcoll_plan.h>

#include "../../kmod/engine/plan.h"
#include "../lib/tap.h"

static char error[ZCOLL_TEXT_MAX];

static int make(const struct zcoll_plan_spec *spec, struct zcoll_plan **plan)
{
	struct zcoll_plan_spec sized = *spec;

	sized.size = sizeof(sized);
	error[0] = '\0';
	return zcoll_plan_make(&sized, plan, error, sizeof(error));
}

/* Steps of a plan of so many nodes, 0: there is none */
static unsigned int steps(const char *algo, unsigned int collective, unsigned int nodes)
{
	struct zcoll_plan_spec spec = { .algo = algo, .collective = collective, .nodes = nodes };
	struct zcoll_plan *plan;
	unsigned int n = make(&spec, &plan) ? 0 : plan->nsteps;

	zcoll_plan_free(plan);
	return n;
}

/* A table grows by some steps for each doubling of the nodes, or by none */
static void tables_are_short(void)
{
	for (unsigned int i = 0; zcoll_plan_algorithm(i); i++) {
		const char *algo = zcoll_plan_algorithm(i);
		unsigned int most = 0;

		for (unsigned int coll = 1; coll < ZCOLL_NR_COLLECTIVES; coll++) {
			unsigned int n = steps(algo, coll, 16381);

			most = n > most ? n : most;
		}
		ok(most <= 256, "%s: %u steps for 16381 nodes", algo, most);
	}
	is(steps("ring", ZCOLL_ALLREDUCE, 16384), steps("ring", ZCOLL_ALLREDUCE, 64),
	   "a ring has the same steps for any number of nodes");
}

static void all_have_one_node(void)
{
	for (unsigned int i = 0; zcoll_plan_algorithm(i); i++)
		is(steps(zcoll_plan_algorithm(i), ZCOLL_ALLREDUCE, 1), 1,
		   "%s: one node takes one step", zcoll_plan_algorithm(i));
}

static void names_go_both_ways(void)
{
	unsigned int parsed, right = 0;

	for (unsigned int coll = 1; coll < ZCOLL_NR_COLLECTIVES; coll++)
		right += !zcoll_collective_parse(zcoll_collective_name(coll), &parsed) &&
			 parsed == coll;
	is(right, ZCOLL_NR_COLLECTIVES - 1, "each collective's name stands for it");
	is(zcoll_collective_parse("alltoall", &parsed), -EINVAL, "another name does not");
	ok(!zcoll_collective_name(ZCOLL_NR_COLLECTIVES), "no name past the last collective");
}

static void errors_say_what_can_be_had(void)
{
	static const struct {
		struct zcoll_plan_spec spec;
		int err;
		const char *text;
	} tests[] = {
		{ { .algo = "rign", .collective = ZCOLL_ALLREDUCE, .nodes = 4 }, -EINVAL, "ring" },
		{ { .collective = ZCOLL_ALLREDUCE, .nodes = 4 }, -EINVAL, "ring" },
		{ { .algo = "ring", .collective = 99, .nodes = 4 }, -EINVAL, "1 to 6" },
		{ { .algo = "ring", .collective = ZCOLL_ALLREDUCE }, -EINVAL, "1 to 65536" },
		{ { .algo = "ring", .collective = ZCOLL_ALLREDUCE, .nodes = 65537 }, -EINVAL,
		  "1 to 65536" },
		{ { .algo = "ring", .collective = ZCOLL_ALLREDUCE, .nodes = 4,
		    .flags = ZCOLL_PLAN_ORDERED }, -EINVAL, "ZCOLL_PLAN_AGREED" },
		{ { .algo = "ring", .collective = ZCOLL_ALLREDUCE, .nodes = 4, .radix = 2 },
		  -EINVAL, "no radix" },
		{ { .algo = "knomial", .collective = ZCOLL_ALLREDUCE, .nodes = 4, .radix = 1 },
		  -EINVAL, "2 or more" },
		{ { .algo = "knomial", .collective = ZCOLL_ALLREDUCE, .nodes = 4096,
		    .radix = 4096 }, -E2BIG, "smaller radix" },
		{ { .algo = "aggregator", .collective = ZCOLL_ALLREDUCE, .nodes = 4096,
		    .radix = 4096 }, -E2BIG, "smaller radix" },
		{ { .algo = "pairwise", .collective = ZCOLL_BROADCAST, .nodes = 4 },
		  -EOPNOTSUPP, "it has allreduce, reduce-scatter, allgather" },
		{ { .algo = "halving-doubling", .collective = ZCOLL_REDUCE_SCATTER, .nodes = 6 },
		  -EOPNOTSUPP, "power of two" },
		{ { .algo = "recursive-doubling", .collective = ZCOLL_ALLGATHER, .nodes = 9,
		    .radix = 3 }, -EINVAL, "radix 2 only" },
		{ { .algo = "hierarchical", .collective = ZCOLL_ALLREDUCE, .nodes = 12,
		    .levels = { 4, 4 } }, -EINVAL, "4x4 are for 16 nodes, not for 12" },
		{ { .algo = "hierarchical", .collective = ZCOLL_ALLREDUCE, .nodes = 12,
		    .levels = { 0, 12 } }, -EINVAL, "after a 0" },
		{ { .algo = "ring", .collective = ZCOLL_ALLREDUCE, .nodes = 12,
		    .levels = { 3, 4 } }, -EINVAL, "no levels" },
		{ { .algo = "aggregator", .collective = ZCOLL_ALLREDUCE, .nodes = 64, .radix = 4,
		    .aggregators = 20 }, -EINVAL, "need 21 aggregators" },
		{ { .algo = "ring", .collective = ZCOLL_ALLREDUCE, .nodes = 64,
		    .aggregators = 1 }, -EINVAL, "no aggregators" },
		{ { .algo = "local", .collective = ZCOLL_ALLREDUCE, .nodes = 2 }, -EINVAL,
		  "one node" },
	};
	struct zcoll_plan_spec unsized = { .algo = "ring", .collective = ZCOLL_ALLREDUCE,
					   .nodes = 4 };
	struct zcoll_plan *plan;

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		is(make(&tests[i].spec, &plan), tests[i].err, "no plan: %s", tests[i].text);
		has(error, tests[i].text, "and the text says so");
		ok(!plan, "and there is none");
	}
	is(zcoll_plan_make(&unsized, &plan, NULL, 0), -EINVAL, "a spec of another version");
}

static void aggregators_are_as_wanted(void)
{
	struct zcoll_plan_spec spec = { .algo = "aggregator", .collective = ZCOLL_ALLREDUCE,
					.nodes = 64, .radix = 4 };
	struct zcoll_plan *plan;

	is(make(&spec, &plan), 0, "as many aggregators as the tree needs");
	is(plan ? plan->nodes - plan->members : 0, 16 + 4 + 1, "are 16, 4 and 1");
	zcoll_plan_free(plan);
	spec.radix = 0;
	spec.aggregators = 5;
	is(make(&spec, &plan), 0, "a tree of five aggregators");
	is(plan ? plan->nodes : 0, 69, "has all of them");
	zcoll_plan_free(plan);
}

static bool is_granted(const struct zcoll_plan *plan)
{
	return zc_plan_check_room(plan) <= ZC_PLAN_CHECK_BYTES &&
	       zc_plan_check_work(plan) <= ZC_PLAN_CHECK_WORK;
}

/* The driver checks what is made, however many nodes there are */
static void all_can_be_loaded(void)
{
	struct zcoll_plan_spec spec = { .nodes = ZCOLL_PLAN_MAX_NODES };
	unsigned int made = 0, granted = 0;

	for (unsigned int i = 0; (spec.algo = zcoll_plan_algorithm(i)); i++)
		for (int n = 0; n < 2 * ZCOLL_NR_COLLECTIVES; n++) {
			struct zcoll_plan *plan;

			spec.collective = n / 2;
			spec.flags = n % 2 ? ZCOLL_PLAN_AGREED : 0;
			if (make(&spec, &plan))
				continue;
			made++;
			granted += is_granted(plan);
			zcoll_plan_free(plan);
		}
	ok(made > 40, "%u plans are made for 65536 nodes", made);
	is(granted, made, "their checks take no more memory and time than the driver grants");
}

int main(void)
{
	tables_are_short();
	all_have_one_node();
	names_go_both_ways();
	errors_say_what_can_be_had();
	aggregators_are_as_wanted();
	all_can_be_loaded();
	return tap_end();
}
