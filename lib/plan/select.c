// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Selection: which plan an operation should use, who says so, and why.
 *
 * Authorities, the greatest first: the call; the environment; the rules file; the cost
 * model. The first that says anything decides, and is not overruled when its plan
 * cannot be: that is an error, which names it. A *candidate* is an algorithm with
 * its parameters and its estimated time (model.c); all candidates are listed, whoever
 * decides, so that a choice can be explained.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../env.h"
#include "choice.h"
#include "model.h"

#define NAME_LEN 64	/* of an environment variable */
#define NEAR 0.02	/* relative difference of times that says nothing */

/* ---- one candidate ---- */

static int refuse(struct zcoll_plan_candidate *candidate, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(struct zcoll_plan_candidate *candidate, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(candidate->refused, sizeof(candidate->refused), fmt, ap);
	va_end(ap);
	return -EOPNOTSUPP;
}

/* Bytes of places that a node needs for a plan */
static uint64_t scratch_bytes(const struct zcoll_plan_query *query,
			      const struct zcoll_plan *plan)
{
	uint64_t elements = query->bytes / query->element;
	uint64_t segment = (elements + plan->segments - 1) / plan->segments * query->element;

	return segment * (plan->scratch + (query->output ? 0 : plan->acc));
}

/* May the plan be used? What is asked of it is written in the plan's head. */
static int judge(const struct zcoll_plan_query *query, const struct zcoll_plan *plan,
		 struct zcoll_plan_candidate *candidate)
{
	candidate->scratch = scratch_bytes(query, plan);
	if (query->flags & ~plan->flags & ZCOLL_PLAN_ORDERED)
		return refuse(candidate, "does not keep the fixed order of reduction");
	if (query->flags & ~plan->flags & ZCOLL_PLAN_AGREED)
		return refuse(candidate, "does not end with agreement");
	if (query->scratch && candidate->scratch > query->scratch)
		return refuse(candidate, "needs %llu bytes of scratch; the limit is %llu",
			      (unsigned long long)candidate->scratch,
			      (unsigned long long)query->scratch);
	return 0;
}

/* A generator's text begins with its name, which the candidate has */
static const char *without_name(const char *text, const char *algo)
{
	size_t len = strlen(algo);

	if (strncmp(text, algo, len) || !strchr(": ", text[len]))
		return text;
	text += len;
	return text + strspn(text, ": ");
}

/* Fill a candidate whose algorithm and parameters are set; the slice too unless 0 */
static int appraise(const struct zcoll_plan_query *query, const struct zcoll_fabric *fabric,
		    struct zcoll_plan_candidate *candidate)
{
	struct zcoll_plan *plan;
	char error[ZCOLL_TEXT_MAX];
	int err;

	candidate->spec.size = sizeof(candidate->spec);
	candidate->spec.collective = query->collective;
	candidate->spec.nodes = query->nodes;
	candidate->spec.flags = query->flags & ZCOLL_PLAN_AGREED;
	if (!candidate->slice)
		candidate->slice = zc_model_slice(&candidate->spec, fabric, query->bytes);
	candidate->slice -= candidate->slice % query->element;
	if (!candidate->slice)
		candidate->slice = query->element;
	candidate->ns = zcoll_plan_estimate(&candidate->spec, fabric, query->bytes,
					    candidate->slice);
	err = zcoll_plan_make(&candidate->spec, &plan, error, sizeof(error));
	if (err)
		return refuse(candidate, "%s", without_name(error, candidate->spec.algo));
	err = judge(query, plan, candidate);
	zcoll_plan_free(plan);
	return err;
}

/* ---- all candidates ---- */

static struct zcoll_plan_candidate *add(struct zcoll_plan_choice *choice, const char *algo)
{
	struct zcoll_plan_candidate *candidate = &choice->candidates[choice->ncandidates];

	if (choice->ncandidates == ZCOLL_PLAN_CANDIDATES)
		return NULL;
	*candidate = (struct zcoll_plan_candidate){ .spec.algo = algo };
	choice->ncandidates++;
	return candidate;
}

static void appraise_all(const struct zcoll_plan_query *query, struct zcoll_plan_choice *choice)
{
	const struct zc_model_variant *variant;
	struct zcoll_plan_candidate *candidate;
	unsigned int i;

	for (i = 0; (variant = zc_model_variant(i)); i++) {
		struct zcoll_plan_spec spec = { .nodes = query->nodes };

		if (!zc_model_applies(variant, &spec))
			continue;
		candidate = add(choice, zc_choice_algorithm(variant->algo, strlen(variant->algo)));
		if (!candidate)
			return;
		candidate->spec.radix = spec.radix;
		appraise(query, &choice->fabric, candidate);
	}
}

/* Those that can be first, by time; then by their place in the list, to be repeatable */
static int by_time(const void *a, const void *b)
{
	const struct zcoll_plan_candidate *x = a, *y = b;
	int refused = (*x->refused != 0) - (*y->refused != 0);

	return refused ? refused : (x->ns > y->ns) - (x->ns < y->ns);
}

static void sort(struct zcoll_plan_choice *choice)
{
	struct zcoll_plan_candidate *all = choice->candidates, one;
	unsigned int i, at;

	for (i = 1; i < choice->ncandidates; i++) {
		one = all[i];
		for (at = i; at && by_time(&all[at - 1], &one) > 0; at--)
			all[at] = all[at - 1];
		all[at] = one;
	}
}

/* ---- who decides ---- */

/* Somebody has chosen; @who is named in errors, and the algorithm where a rule has it */
static int take(const struct zcoll_plan_query *query, struct zcoll_plan_choice *choice,
		uint32_t by, const struct zc_choice *wanted, const char *who, char *error,
		size_t error_len)
{
	struct zcoll_plan_candidate *best = &choice->best;
	int err;

	*best = (struct zcoll_plan_candidate){ .spec.algo = wanted->algo,
					       .slice = wanted->slice };
	best->spec.radix = wanted->radix;
	best->spec.aggregators = wanted->aggregators;
	memcpy(best->spec.levels, wanted->levels, sizeof(wanted->levels));
	choice->by = by;
	snprintf(choice->why, sizeof(choice->why), "%s", who);
	err = appraise(query, &choice->fabric, best);
	if (err)
		snprintf(error, error_len, "%s: %s%s%s", who,
			 by == ZCOLL_BY_RULES ? wanted->algo : "",
			 by == ZCOLL_BY_RULES ? ": " : "", best->refused);
	return err;
}

static int parse(const char *text, struct zc_choice *wanted, const char *who, char *error,
		 size_t error_len)
{
	char why[ZCOLL_TEXT_MAX];

	if (!zc_choice_parse(text, wanted, why, sizeof(why)))
		return 0;
	snprintf(error, error_len, "%s: %s", who, why);
	return -EINVAL;
}

static int take_text(const struct zcoll_plan_query *query, struct zcoll_plan_choice *choice,
		     uint32_t by, const char *text, const char *who, char *error,
		     size_t error_len)
{
	struct zc_choice wanted;
	int err = parse(text, &wanted, who, error, error_len);

	return err ? err : take(query, choice, by, &wanted, who, error, error_len);
}

/*
 * ZCOLL_PLAN_REDUCE_SCATTER and the like, or ZCOLL_PLAN; NULL: neither is set. @who gets name and
 * value.
 */
static const char *from_environment(uint32_t collective, char who[ZCOLL_TEXT_MAX])
{
	char name[NAME_LEN];
	const char *value;
	size_t i;

	snprintf(name, sizeof(name), "ZCOLL_PLAN_%s", zcoll_collective_name(collective));
	for (i = 0; name[i]; i++)
		name[i] = name[i] == '-' ? '_' : toupper((unsigned char)name[i]);
	value = zc_env(name);
	if (!value) {
		snprintf(name, sizeof(name), "ZCOLL_PLAN");
		value = zc_env(name);
	}
	if (value)
		snprintf(who, ZCOLL_TEXT_MAX, "%s=%.100s", name, value);
	return value;
}

/* Return: 1: a rule has decided; 0: there is none; or a negative errno */
static int take_rule(const struct zcoll_plan_query *query, struct zcoll_plan_choice *choice,
		     char *error, size_t error_len)
{
	const struct zc_rule_query wanted = { query->collective, query->nodes, query->bytes };
	const char *path = query->rules ? query->rules : zc_env("ZCOLL_RULES");
	struct zc_choice rule;
	char at[ZCOLL_TEXT_MAX / 2], who[ZCOLL_TEXT_MAX];
	int err;

	if (!path)
		return 0;
	err = zc_rules_find(path, &wanted, &rule, at, sizeof(at), error, error_len);
	if (err <= 0)
		return err;
	snprintf(who, sizeof(who), "%s: %s", path, at);
	err = take(query, choice, ZCOLL_BY_RULES, &rule, who, error, error_len);
	return err ? err : 1;
}

/*
 * The candidate with the least time; of those that need hardly more, the one with the least
 * scratch: what is gathered there is a copy that the model, where the network is slower than
 * memory, sees no time in. Candidates are sorted, and the first one can be.
 */
static const struct zcoll_plan_candidate *best_of(const struct zcoll_plan_choice *choice)
{
	const struct zcoll_plan_candidate *all = choice->candidates, *best = all;
	unsigned int i;

	for (i = 1; i < choice->ncandidates; i++)
		if (!*all[i].refused && all[i].ns <= all->ns * (1 + NEAR) &&
		    all[i].scratch < best->scratch)
			best = &all[i];
	return best;
}

static int take_best(const struct zcoll_plan_query *query, struct zcoll_plan_choice *choice,
		     char *error, size_t error_len)
{
	if (!choice->ncandidates || *choice->candidates[0].refused) {
		snprintf(error, error_len, "no plan for %s of %u nodes fits: %s",
			 zcoll_collective_name(query->collective), query->nodes,
			 choice->ncandidates ? choice->candidates[0].refused :
					       "no algorithm does that");
		return -EOPNOTSUPP;
	}
	choice->best = *best_of(choice);
	choice->by = ZCOLL_BY_COST;
	snprintf(choice->why, sizeof(choice->why), "the least %s on fabric \"%s\"",
		 choice->best.ns > choice->candidates[0].ns ? "memory at about the least time" :
							      "estimated time",
		 choice->fabric.name);
	return 0;
}

static int decide(const struct zcoll_plan_query *query, struct zcoll_plan_choice *choice,
		  char *error, size_t error_len)
{
	char who[ZCOLL_TEXT_MAX];
	const char *text;
	int err;

	if (query->choice) {
		snprintf(who, sizeof(who), "choice %.100s", query->choice);
		return take_text(query, choice, ZCOLL_BY_CALL, query->choice, who, error,
				 error_len);
	}
	text = from_environment(query->collective, who);
	if (text)
		return take_text(query, choice, ZCOLL_BY_ENVIRONMENT, text, who, error,
				 error_len);
	err = take_rule(query, choice, error, error_len);
	if (err)
		return err < 0 ? err : 0;
	return take_best(query, choice, error, error_len);
}

/* ---- the query ---- */

static int get_fabric(const struct zcoll_plan_query *query, struct zcoll_fabric *fabric,
		      char *error, size_t error_len)
{
	const char *where = zc_env("ZCOLL_COSTS");
	char why[ZCOLL_TEXT_MAX];
	int err;

	if (query->fabric) {
		*fabric = *query->fabric;
		return 0;
	}
	if (!where) {
		zcoll_fabric_default(fabric);
		return 0;
	}
	err = zcoll_fabric_get(where, fabric, why, sizeof(why));
	if (err)
		snprintf(error, error_len, "ZCOLL_COSTS: %s", why);
	return err;
}

static int query_bad(const struct zcoll_plan_query *query, char *error, size_t error_len)
{
	const char *what = NULL;

	if (query->size != sizeof(*query) || query->reserved)
		what = "struct zcoll_plan_query is of another version";
	else if (!query->collective || query->collective >= ZCOLL_NR_COLLECTIVES)
		what = "no such collective";
	else if (!query->nodes || query->nodes > ZCOLL_PLAN_MAX_NODES)
		what = "nodes should be 1 to 65536";
	else if (!query->element)
		what = "an element has at least one byte";
	else if (query->flags & ~ZCOLL_PLAN_FLAGS || query->output > 1)
		what = "a flag that is not known";
	if (what)
		snprintf(error, error_len, "%s", what);
	else if (query->bytes % query->element)
		snprintf(error, error_len, "%llu bytes are not a multiple of an element's %u",
			 (unsigned long long)query->bytes, query->element);
	else
		return 0;
	return -EINVAL;
}

/**
 * zcoll_plan_select - choose a plan
 * @query: for what
 * @choice: what was chosen, by whom and why, and from which candidates
 * @error: text of an error
 * @error_len: its size, at least 1
 *
 * Return: 0 or a negative errno, with a text: -EINVAL: the query, a variable or the
 * rules file makes no sense; -EOPNOTSUPP: what was asked for cannot be.
 */
int zcoll_plan_select(const struct zcoll_plan_query *query, struct zcoll_plan_choice *choice,
		      char *error, size_t error_len)
{
	int err = query_bad(query, error, error_len);

	memset(choice, 0, sizeof(*choice));
	if (!err)
		err = get_fabric(query, &choice->fabric, error, error_len);
	if (err)
		return err;
	choice->bound_ns = zcoll_plan_bound(query->collective, query->nodes, &choice->fabric,
					    query->bytes);
	appraise_all(query, choice);
	sort(choice);
	return decide(query, choice, error, error_len);
}

/* Those that no rule or fabric would be asked for now are read, too */
int zc_plan_environment(char *error, size_t error_len)
{
	const struct zcoll_plan_query any = { .size = sizeof(any) };
	const struct zc_rule_query rule = { 0 };
	const char *text, *rules = zc_env("ZCOLL_RULES");
	char who[ZCOLL_TEXT_MAX], why[ZCOLL_TEXT_MAX];
	struct zcoll_fabric fabric;
	struct zc_choice wanted;
	uint32_t c;
	int err;

	for (c = 1; c < ZCOLL_NR_COLLECTIVES; c++) {
		text = from_environment(c, who);
		if (text && parse(text, &wanted, who, error, error_len))
			return -EINVAL;
	}
	err = rules ? zc_rules_find(rules, &rule, &wanted, who, sizeof(who), why, sizeof(why)) : 0;
	if (err < 0) {
		snprintf(error, error_len, "ZCOLL_RULES: %s", why);
		return err;
	}
	return get_fabric(&any, &fabric, error, error_len);
}
