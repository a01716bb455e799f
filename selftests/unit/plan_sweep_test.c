// SPDX-License-Identifier: GPL-2.0
/*
 * All plans that the library makes are right: each algorithm and collective, for each
 * number of nodes from 1 to 130, and for some larger ones. The plan has no more room than
 * it uses; and what is proved from one node is what is proved from all.
 *
 * Usage: plan_sweep_test [--long] [ALGORITHM]; --long adds the largest plans, which take
 * minutes and a gigabyte.
 */
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll_plan.h>

#include "../lib/tap.h"

#define SMALL	130	/* all numbers of nodes up to this */
#define TINY	33	/* and up to this in all variants */

/* Segments of all nodes that are run */
#define ANY		UINT64_MAX
#define MOST		(1ULL << 20)
#define MOST_LONG	(1ULL << 24)

/* What has become of some plans: the first failure is told */
struct tally {
	unsigned int right;
	unsigned int wrong;
	char first[ZCOLL_TEXT_MAX + 128];
};

static void fail(struct tally *tally, const struct zcoll_plan_spec *spec, const char *what)
{
	if (!tally->wrong++)
		snprintf(tally->first, sizeof(tally->first), "%u nodes, radix %u, flags %u: %s",
			 spec->nodes, spec->radix, spec->flags, what);
}

static const char *unused(const struct zcoll_plan *plan, const struct zcoll_plan_facts *facts)
{
	static char text[100];

	snprintf(text, sizeof(text), "scratch is %u and acc is %u, but only %u and %u are used",
		 plan->scratch, plan->acc, facts->scratch, facts->acc);
	return text;
}

/*
 * Prove a plan, run at one node if it looks the same from more than @run, unless it has
 * more than @most segments of all nodes. Return: whether it is proved.
 */
static bool prove(const struct zcoll_plan_spec *spec, unsigned int run, uint64_t most,
		  struct zcoll_plan_facts *facts, struct tally *tally)
{
	struct zcoll_plan_limits limits = { .window = 8, .slots = 2, .nodes = run };
	char error[ZCOLL_TEXT_MAX] = "";
	struct zcoll_plan *plan;
	int err = zcoll_plan_make(spec, &plan, error, sizeof(error));

	/* The algorithm has no such collective, no radix or levels, or is for one node */
	if (err == -EOPNOTSUPP ||
	    (err == -EINVAL && (spec->radix || spec->levels[0] || !strcmp(spec->algo, "local"))))
		return false;
	if (err) {
		fail(tally, spec, error);
		return false;
	}
	if ((uint64_t)plan->nodes * plan->segments > most) {
		zcoll_plan_free(plan);
		return false;
	}
	err = zcoll_plan_check(plan, &limits, facts, error, sizeof(error));
	if (err)
		fail(tally, spec, error);
	else if (facts->scratch != plan->scratch || facts->acc != plan->acc)
		fail(tally, spec, unused(plan, facts));
	else if (plan->flags & ZCOLL_PLAN_AGREED && !facts->agreed)
		fail(tally, spec, "no node is to end before all have their results");
	else
		tally->right++;
	zcoll_plan_free(plan);
	return !err;
}

/* Does the plan look the same from every node? Then also the facts. */
static void prove_twice(const struct zcoll_plan_spec *spec, struct tally *tally)
{
	struct zcoll_plan_facts one, all;

	if (!prove(spec, 1, ANY, &one, tally) || one.nodes_run == spec->nodes ||
	    !prove(spec, 0, ANY, &all, tally))
		return;
	all.nodes_run = one.nodes_run;
	if (memcmp(&one, &all, sizeof(one)))
		fail(tally, spec, "seen from one node, the facts are not those of all nodes");
}

static void tell(const struct tally *tally, const struct zcoll_plan_spec *spec, const char *what)
{
	if (!tally->right && !tally->wrong)
		return;
	if (!ok(!tally->wrong, "%s %s %s: %u plans are right", spec->algo,
		zcoll_collective_name(spec->collective), what, tally->right))
		printf("# %s\n", tally->first);
}

static void sweep_small(struct zcoll_plan_spec spec)
{
	struct zcoll_plan_facts facts;
	struct tally tally = {};

	for (spec.nodes = 1; spec.nodes <= SMALL; spec.nodes++)
		prove(&spec, 1, ANY, &facts, &tally);
	tell(&tally, &spec, "1 .. 130 nodes");
}

/* Two levels, of which the inner one is so large, and each three */
static void sweep_levels(struct zcoll_plan_spec spec, unsigned int group, struct tally *tally)
{
	unsigned int groups = spec.nodes / group;

	spec.levels[0] = group;
	spec.levels[1] = groups;
	prove_twice(&spec, tally);
	for (group = 2; group < groups; group++) {
		if (groups % group)
			continue;
		spec.levels[1] = group;
		spec.levels[2] = groups / group;
		prove_twice(&spec, tally);
	}
}

/* Each radix, each size of groups */
static void sweep_radix_levels(struct zcoll_plan_spec spec, struct tally *tally)
{
	unsigned int group;

	for (spec.radix = 0; spec.radix <= 5; spec.radix++)
		if (spec.radix != 1)
			prove_twice(&spec, tally);
	spec.radix = 0;
	for (group = 2; group < spec.nodes; group++)
		if (spec.nodes % group == 0)
			sweep_levels(spec, group, tally);
}

static void sweep_variants(struct zcoll_plan_spec spec)
{
	struct tally tally = {};

	for (spec.nodes = 1; spec.nodes <= TINY; spec.nodes++) {
		spec.flags = 0;
		sweep_radix_levels(spec, &tally);
		spec.flags = ZCOLL_PLAN_AGREED;
		sweep_radix_levels(spec, &tally);
	}
	tell(&tally, &spec, "1 .. 33 nodes, all variants");
}

static void sweep_large(struct zcoll_plan_spec spec, bool all)
{
	static const unsigned int sizes[] = { 255, 256, 257, 1000, 1023, 1024, 4096, 16384 };
	struct zcoll_plan_facts facts = {};
	struct tally tally = {}, ignored = {};
	bool symmetric;
	unsigned int i;

	spec.nodes = SMALL;
	symmetric = prove(&spec, 1, ANY, &facts, &ignored) && facts.nodes_run == 1;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		spec.nodes = sizes[i];
		prove(&spec, 1, symmetric ? ANY : all ? MOST_LONG : MOST, &facts, &tally);
	}
	tell(&tally, &spec, "255 nodes and more");
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "long", no_argument, NULL, 'l' }, {} };
	struct zcoll_plan_spec spec = { .size = sizeof(spec) };
	bool all = false;
	unsigned int i;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) == 'l')
		all = true;
	if (option != -1)
		return 2;
	for (i = 0; (spec.algo = zcoll_plan_algorithm(i)); i++) {
		if (optind < argc && strcmp(argv[optind], spec.algo))
			continue;
		for (spec.collective = 1; spec.collective < ZCOLL_NR_COLLECTIVES;
		     spec.collective++) {
			sweep_small(spec);
			sweep_variants(spec);
			sweep_large(spec, all);
		}
	}
	return tap_end();
}
