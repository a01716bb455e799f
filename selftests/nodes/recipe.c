// SPDX-License-Identifier: GPL-2.0
/*
 * Recipes of recipe.h: every algorithm with every small radix, what does not exist left out,
 * and what two names give only once.
 */
#include <stdio.h>
#include <string.h>

#include "recipe.h"

static bool is_new(const struct recipe *list, unsigned int n, const struct zcoll_plan *plan)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (list[i].plan->id == plan->id)
			return false;
	return true;
}

/* Plans for exactly these nodes */
static bool fits(const struct zcoll_plan *plan, const struct team *team)
{
	return plan->members == team->nodes && plan->nodes == team->nodes + team->aggregators;
}

unsigned int recipes_make(struct recipe *list, const struct team *team, uint32_t collective,
			  uint32_t flags)
{
	struct zcoll_plan_spec spec = {
		.size = sizeof(spec), .collective = collective, .nodes = team->nodes,
		.aggregators = team->aggregators, .flags = flags,
	};
	struct zcoll_plan *plan;
	unsigned int i, n = 0;

	for (i = 0; (spec.algo = zcoll_plan_algorithm(i)); i++)
		for (spec.radix = 0; spec.radix <= 4 && n < RECIPES; spec.radix++) {
			if (zcoll_plan_make(&spec, &plan, NULL, 0))
				continue;
			if (!fits(plan, team) || !is_new(list, n, plan)) {
				zcoll_plan_free(plan);
				continue;
			}
			list[n].plan = plan;
			if (spec.radix)
				snprintf(list[n].name, sizeof(list[n].name), "%s of radix %u",
					 spec.algo, spec.radix);
			else
				snprintf(list[n].name, sizeof(list[n].name), "%s", spec.algo);
			n++;
		}
	return n;
}

void recipes_free(struct recipe *list, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		zcoll_plan_free(list[i].plan);
}
