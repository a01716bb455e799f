// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Planner: by which plan a call is done.
 *
 * On one node the module has a plan of its own, number 0. On several, who decides is what
 * zcoll_plan_select() knows: the environment, a rules file, or the least estimated time.
 * All ranks must come to the same end without a word to each other, so a decision
 * depends only on what all of them know: collective, bytes, flags, and numbers of nodes.
 *
 * Selecting takes about a millisecond, so decisions are kept, in a table by what they
 * depend on. Where the cost model decides, one decision is made for a *class* of sizes,
 * those up to the next power of two; where a rules file may have limits anywhere, each
 * size is a class.
 *
 * A decision names a plan that is loaded in the kernel. At most ZC_PLANS are; a further
 * one takes the place of the plan that was used least recently. That one has not been used
 * for ZC_PLANS - 1 calls at least, more than the window has, so an operation that names it has
 * got its number from the kernel already, which keeps the plan for it.
 *
 * planner_lock guards both tables. It is held while a plan is loaded, which waits for no
 * other rank.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll_plan.h>

#include "internal.h"

_Static_assert(ZC_PLANS > ZCOLL_MAX_WINDOW, "plans of operations in flight must stay");
_Static_assert(ZC_PLANS < ZCOLL_MAX_PLANS, "the user has plans, too");

/* ---------------------------------------------------------------- selecting */

static uint64_t class_of(uint64_t bytes)
{
	uint64_t class = 1;

	if (!bytes || zc_env("ZCOLL_RULES"))
		return bytes;
	while (class < bytes && class < 1ULL << 63)
		class *= 2;
	return class < bytes ? bytes : class;
}

static bool all_have_all(uint32_t collective)
{
	return collective != ZCOLL_REDUCE_SCATTER && collective != ZCOLL_REDUCE;
}

/*
 * The nodes that only aggregate are there for plans that know them, and these are chosen
 * where nobody else has decided. A plan for exactly these nodes it must be.
 */
static int with_aggregators(const struct zcoll_comm *comm, struct zcoll_plan_query *query,
			    struct zcoll_plan_choice *choice, char *error, size_t len)
{
	const unsigned int extra = comm->nodes - comm->members;
	struct zcoll_plan_spec *spec = &choice->best.spec;
	char text[64];

	if (choice->by == ZCOLL_BY_COST) {
		snprintf(text, sizeof(text), "aggregator:aggregators=%u", extra);
		query->choice = text;
		return zcoll_plan_select(query, choice, error, len);
	}
	if (!strcmp(spec->algo, "aggregator") &&
	    (!spec->aggregators || spec->aggregators == extra)) {
		spec->aggregators = extra;
		return 0;
	}
	snprintf(error, len, "%.100s: %s is not a plan for the %u nodes that only aggregate",
		 choice->why, spec->algo, extra);
	return -EOPNOTSUPP;
}

static int make(const struct zcoll_comm *comm, const struct zc_decision *for_what,
		struct zcoll_plan **plan, char *error, size_t len)
{
	struct zcoll_plan_choice *choice = malloc(sizeof(*choice));
	struct zcoll_plan_query query = {
		.size = sizeof(query),
		.collective = for_what->collective,
		.nodes = comm->members,
		.bytes = for_what->class,
		.element = 1,
		.output = all_have_all(for_what->collective),
	};
	int ret;

	if (!choice) {
		snprintf(error, len, "no memory");
		return -ENOMEM;
	}
	if (for_what->flags & ZCOLL_CMD_REPRODUCIBLE)
		query.flags |= ZCOLL_PLAN_ORDERED;
	if (for_what->flags & ZCOLL_CMD_AGREED)
		query.flags |= ZCOLL_PLAN_AGREED;
	ret = zcoll_plan_select(&query, choice, error, len);
	if (!ret && comm->nodes > comm->members)
		ret = with_aggregators(comm, &query, choice, error, len);
	if (!ret)
		ret = zcoll_plan_make(&choice->best.spec, plan, error, len);
	free(choice);
	return ret;
}

/* ------------------------------------------------- the tables, lock held */

static struct zc_decision *decision_at(struct zcoll_comm *comm, const struct zc_decision *want)
{
	uint64_t hash = (want->class * 8 + want->collective) * 4 + want->flags;

	hash *= 0x9e3779b97f4a7c15ULL;
	return &comm->decisions[hash >> 32 & (ARRAY_SIZE(comm->decisions) - 1)];
}

/* The place of a plan that is loaded, or else where one can be: empty, or the oldest */
static struct zc_loaded *place_for(struct zcoll_comm *comm, uint64_t id)
{
	struct zc_loaded *oldest = &comm->loaded[0], *at;

	for (at = comm->loaded; at < comm->loaded + ARRAY_SIZE(comm->loaded); at++) {
		if (at->number && at->id == id)
			return at;
		if (oldest->number && (!at->number || at->used < oldest->used))
			oldest = at;
	}
	return oldest;
}

static int load(struct zcoll_comm *comm, const struct zcoll_plan *plan, struct zc_loaded **out)
{
	struct zc_loaded *at = place_for(comm, plan->id);
	uint32_t number;
	int ret;

	*out = at;
	if (at->number && at->id == plan->id)
		return 0;
	ret = zcoll_plan_load(comm, plan, &number);
	if (ret)
		return ret;
	if (at->number)
		zcoll_plan_unload(comm, at->number);
	*at = (struct zc_loaded){ .number = number, .id = plan->id };
	return 0;
}

static int decide(struct zcoll_comm *comm, const struct zc_decision *want,
		  struct zc_loaded **loaded)
{
	char why[ZCOLL_TEXT_MAX] = "";
	struct zcoll_plan *plan;
	int ret = make(comm, want, &plan, why, sizeof(why));

	if (ret)
		return zc_fail(comm, ret, "rank %u: no plan for %s of %llu bytes on %u nodes: %s",
			       comm->rank, zcoll_collective_name(want->collective),
			       (unsigned long long)want->class, comm->nodes, why);
	ret = load(comm, plan, loaded);
	zcoll_plan_free(plan);
	return ret;
}

/**
 * zc_plan_for - the plan of a call
 * @comm: the communicator
 * @collective: its collective
 * @bytes: of the whole operation
 * @flags: ZCOLL_CMD_*
 * @number: output: what the command names
 *
 * Return: 0 or a negative errno, with a text.
 */
int zc_plan_for(struct zcoll_comm *comm, unsigned int collective, uint64_t bytes,
		uint32_t flags, uint32_t *number)
{
	struct zc_decision want = { .collective = collective, .flags = flags }, *at;
	struct zc_loaded *loaded;
	int ret = 0;

	*number = atomic_load(&comm->used_plans[collective]);
	if (*number || comm->nodes <= 1)
		return 0;

	pthread_mutex_lock(&comm->planner_lock);
	want.class = class_of(bytes);
	at = decision_at(comm, &want);
	loaded = at->loaded;
	if (!loaded || at->collective != collective || at->flags != flags ||
	    at->class != want.class || loaded->number != at->number)
		ret = decide(comm, &want, &loaded);
	if (!ret) {
		loaded->used = ++comm->planned;
		want.loaded = loaded;
		want.number = loaded->number;
		*at = want;
		*number = want.number;
	}
	pthread_mutex_unlock(&comm->planner_lock);
	return ret;
}
