// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Making plans: which algorithms there are, and what each can be asked for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "choice.h"
#include "gen.h"

#define ZC_COLL(name)	(1U << ZCOLL_##name)
#define ZC_ALL_REDUCING	(ZC_COLL(ALLREDUCE) | ZC_COLL(REDUCE_SCATTER))
#define ZC_SCATTERING	(ZC_ALL_REDUCING | ZC_COLL(ALLGATHER))
#define ZC_ROOTED	(ZC_COLL(BROADCAST) | ZC_COLL(REDUCE))
#define ZC_TREE		(ZC_COLL(ALLREDUCE) | ZC_ROOTED | ZC_COLL(BARRIER))
#define ZC_EVERY	(ZC_SCATTERING | ZC_TREE)

/* What of struct zcoll_plan_spec an algorithm looks at */
#define ZC_RADIX	1U
#define ZC_AGGREGATORS	2U
#define ZC_LEVELS	4U

static const struct zc_algorithm {
	const char *name;
	u32 collectives;
	u32 looks_at;
	int (*make)(struct zc_build *build);
} algorithms[] = {
	{ "ring", ZC_EVERY, 0, zc_gen_ring },
	{ "pairwise", ZC_SCATTERING, 0, zc_gen_pairwise },
	{ "recursive-doubling", ZC_COLL(ALLREDUCE) | ZC_COLL(ALLGATHER) | ZC_COLL(BARRIER),
	  ZC_RADIX, zc_gen_recursive_doubling },
	{ "halving-doubling", ZC_SCATTERING | ZC_COLL(REDUCE), 0, zc_gen_halving_doubling },
	{ "circulant", ZC_SCATTERING | ZC_COLL(BARRIER), ZC_RADIX, zc_gen_circulant },
	{ "binomial", ZC_TREE, 0, zc_gen_binomial },
	{ "knomial", ZC_TREE, ZC_RADIX, zc_gen_knomial },
	{ "double-tree", ZC_TREE, 0, zc_gen_double_tree },
	{ "bruck", ZC_SCATTERING | ZC_COLL(BARRIER), ZC_RADIX, zc_gen_bruck },
	{ "hierarchical", ZC_EVERY, ZC_LEVELS, zc_gen_hierarchical },
	{ "aggregator", ZC_TREE, ZC_RADIX | ZC_AGGREGATORS, zc_gen_aggregator },
	{ "local", ZC_EVERY, 0, NULL },
};

#define ZC_ALGORITHMS	(sizeof(algorithms) / sizeof(algorithms[0]))

static const char *const collectives[ZCOLL_NR_COLLECTIVES] = {
	[ZCOLL_ALLREDUCE] = "allreduce",
	[ZCOLL_REDUCE_SCATTER] = "reduce-scatter",
	[ZCOLL_ALLGATHER] = "allgather",
	[ZCOLL_BROADCAST] = "broadcast",
	[ZCOLL_REDUCE] = "reduce",
	[ZCOLL_BARRIER] = "barrier",
};

/**
 * zcoll_plan_algorithm - names of algorithms
 * @i: 0, 1, ...
 *
 * Return: a name for zcoll_plan_spec.algo, NULL past the last one.
 */
const char *zcoll_plan_algorithm(unsigned int i)
{
	return i < ZC_ALGORITHMS ? algorithms[i].name : NULL;
}

/* The name of a collective, NULL if there is none of that number */
const char *zcoll_collective_name(unsigned int collective)
{
	return collective < ZCOLL_NR_COLLECTIVES ? collectives[collective] : NULL;
}

/* The number of a collective. Return: 0, or -EINVAL. */
int zcoll_collective_parse(const char *name, unsigned int *collective)
{
	for (unsigned int i = 1; i < ZCOLL_NR_COLLECTIVES; i++) {
		if (strcmp(name, collectives[i]))
			continue;
		*collective = i;
		return 0;
	}
	return -EINVAL;
}

void zcoll_plan_free(struct zcoll_plan *plan)
{
	free(plan);
}

/* ---- what is wanted ---- */

/* Names of @n things, as far as they have room in @text */
static const char *zc_list(char *text, size_t len, const char *(*name)(unsigned int i),
			   unsigned int from, unsigned int n, u32 mask)
{
	size_t at = 0;

	text[0] = '\0';
	for (unsigned int i = from; i < n; i++)
		if (mask >> i & 1 && at < len)
			at += snprintf(text + at, len - at, "%s%s", at ? ", " : "", name(i));
	return text;
}

static int zc_wants_algorithm(struct zc_build *build, const struct zc_algorithm **algo)
{
	const char *name = build->spec->algo ? build->spec->algo : "";
	char text[ZCOLL_TEXT_MAX];

	for (u32 i = 0; i < ZC_ALGORITHMS; i++) {
		*algo = &algorithms[i];
		if (!strcmp(name, algorithms[i].name))
			return 0;
	}
	return zc_build_fail(build, -EINVAL, "no algorithm \"%.32s\"; there are %s", name,
			     zc_list(text, sizeof(text), zcoll_plan_algorithm, 0,
				     ZC_ALGORITHMS, ~0U));
}

static int zc_wants_collective(struct zc_build *build, const struct zc_algorithm *algo)
{
	const char *name = zcoll_collective_name(build->spec->collective);
	char text[ZCOLL_TEXT_MAX];

	if (!name)
		return zc_build_fail(build, -EINVAL, "no collective %u; there are 1 to %u",
				     build->spec->collective, ZCOLL_NR_COLLECTIVES - 1);
	if (algo->collectives >> build->spec->collective & 1)
		return 0;
	return zc_build_fail(build, -EOPNOTSUPP, "%s has no %s; it has %s", algo->name, name,
			     zc_list(text, sizeof(text), zcoll_collective_name, 1,
				     ZCOLL_NR_COLLECTIVES, algo->collectives));
}

static int zc_wants_levels(struct zc_build *build, const struct zc_algorithm *algo)
{
	const u32 *levels = build->spec->levels;

	for (u32 i = 0; i < ZCOLL_PLAN_LEVELS; i++) {
		if (!levels[i])
			continue;
		if (!(algo->looks_at & ZC_LEVELS))
			return zc_build_fail(build, -EINVAL, "%s has no levels", algo->name);
		if (i && !levels[i - 1])
			return zc_build_fail(build, -EINVAL,
					     "%s: level %u comes after a 0, which ends the list",
					     algo->name, levels[i]);
	}
	return 0;
}

/* Are the parameters in range, and are there none that the algorithm would not look at? */
static int zc_wants_parameters(struct zc_build *build, const struct zc_algorithm *algo)
{
	const struct zcoll_plan_spec *spec = build->spec;

	if (spec->radix && !(algo->looks_at & ZC_RADIX))
		return zc_build_fail(build, -EINVAL, "%s has no radix", algo->name);
	if (spec->radix == 1)
		return zc_build_fail(build, -EINVAL, "%s: radix 1: must be 2 or more",
				     algo->name);
	if (spec->aggregators && !(algo->looks_at & ZC_AGGREGATORS))
		return zc_build_fail(build, -EINVAL, "%s has no aggregators", algo->name);
	return zc_wants_levels(build, algo);
}

static int zc_wants_nodes(struct zc_build *build, const struct zc_algorithm *algo)
{
	const struct zcoll_plan_spec *spec = build->spec;

	if (!spec->nodes || spec->nodes > ZCOLL_PLAN_MAX_NODES)
		return zc_build_fail(build, -EINVAL, "%u nodes: there may be 1 to %u",
				     spec->nodes, ZCOLL_PLAN_MAX_NODES);
	if (spec->flags & ~ZCOLL_PLAN_AGREED)
		return zc_build_fail(build, -EINVAL,
				     "unknown flags %#x: only ZCOLL_PLAN_AGREED can be wanted",
				     spec->flags & ~ZCOLL_PLAN_AGREED);
	if (spec->aggregators && spec->nodes == 1)
		return zc_build_fail(build, -EINVAL, "%s: one node needs no aggregators",
				     algo->name);
	if (!algo->make && spec->nodes > 1)
		return zc_build_fail(build, -EINVAL, "%s is for one node, not for %u",
				     algo->name, spec->nodes);
	return 0;
}

/* All that does not depend on the number of nodes */
static int zc_wants(struct zc_build *build, const struct zc_algorithm **algo)
{
	int err = zc_wants_algorithm(build, algo);

	if (!err)
		err = zc_wants_collective(build, *algo);
	return err ? err : zc_wants_parameters(build, *algo);
}

/**
 * zc_plan_wants - can there be such a plan, for any number of nodes?
 * @spec: which one; its nodes do not matter
 * @error: text of an error
 * @error_len: its size
 *
 * Return: 0, or a negative errno with a text.
 */
int zc_plan_wants(const struct zcoll_plan_spec *spec, char *error, size_t error_len)
{
	struct zc_build build = { .spec = spec, .error = error, .error_len = error_len };
	const struct zc_algorithm *algo;

	return zc_wants(&build, &algo);
}

/* ---- the plan ---- */

/* One node: its inputs are the result */
static void zc_gen_local(struct zc_build *build)
{
	struct zcoll_step row = zc_row(build, ZCOLL_STEP_FINAL);

	row.flags = ZCOLL_STEP_FIRST;
	zc_add(build, &row);
}

static int zc_generate(struct zc_build *build, const struct zc_algorithm *algo)
{
	int err = 0;

	if (build->spec->nodes == 1)
		zc_gen_local(build);
	else
		err = algo->make(build);
	if (err)
		return err;
	if (build->spec->flags & ZCOLL_PLAN_AGREED)
		zc_agree(build);
	if (build->rows <= ZCOLL_PLAN_MAX_STEPS)
		return 0;
	return zc_build_fail(build, -E2BIG,
			     "%s: %u nodes take more than %u steps, the most a plan may have%s",
			     algo->name, build->spec->nodes, ZCOLL_PLAN_MAX_STEPS,
			     build->spec->radix ? "; a smaller radix takes fewer" : "");
}

/* Is it within the limits? All else is as it should be. */
static int zc_seal(struct zc_build *build)
{
	struct zcoll_plan *plan = build->plan;
	struct zc_plan_why why;
	int err;

	plan->nsteps = build->rows;
	plan->size = sizeof(*plan) + plan->nsteps * sizeof(plan->steps[0]);
	plan->id = zc_plan_id(plan);
	err = zc_plan_valid(plan, plan->size, &why);
	if (err)
		return zc_build_fail(build, err, "%s of %u nodes: %s", plan->name,
				     build->spec->nodes, why.what);
	return 0;
}

static int zc_make(struct zc_build *build)
{
	const struct zc_algorithm *algo;
	struct zcoll_plan *plan = build->plan;
	int err;

	err = zc_wants(build, &algo);
	if (!err)
		err = zc_wants_nodes(build, algo);
	if (err)
		return err;
	plan->version = ZCOLL_PLAN_VERSION;
	plan->collective = build->spec->collective;
	plan->nodes = build->spec->nodes;
	plan->members = build->spec->nodes;
	plan->segments = 1;
	snprintf(plan->name, sizeof(plan->name), "%s", algo->name);
	err = zc_generate(build, algo);
	return err ? err : zc_seal(build);
}

/**
 * zcoll_plan_make - make a plan
 * @spec: which one
 * @plan: gets the plan, to be freed by zcoll_plan_free()
 * @error: gets the text of an error, or NULL
 * @error_len: its size
 *
 * Return: 0; -EOPNOTSUPP: the algorithm does not have this collective, for so many nodes;
 * -EINVAL: a value is out of range; -E2BIG: the plan would be above a limit; -ENOMEM.
 */
int zcoll_plan_make(const struct zcoll_plan_spec *spec, struct zcoll_plan **plan,
		    char *error, size_t error_len)
{
	struct zcoll_plan_spec wanted = *spec;
	struct zc_build build = { .spec = &wanted, .error = error, .error_len = error_len };
	int err;

	*plan = NULL;
	if (spec->size != sizeof(*spec))
		return zc_build_fail(&build, -EINVAL, "size of zcoll_plan_spec is %zu, not %zu",
				     spec->size, sizeof(*spec));
	/* More than all nodes at once are not to be had */
	if (wanted.radix > wanted.nodes && wanted.nodes > 1)
		wanted.radix = wanted.nodes;
	build.plan = calloc(1, sizeof(**plan) + ZCOLL_PLAN_MAX_STEPS * sizeof((*plan)->steps[0]));
	if (!build.plan)
		return zc_build_fail(&build, -ENOMEM, "no memory for a plan");
	err = zc_make(&build);
	if (err) {
		free(build.plan);
		return err;
	}
	*plan = realloc(build.plan, build.plan->size);
	if (!*plan)
		*plan = build.plan;
	return 0;
}
