/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Recipes: all plans that the library makes for a collective on the nodes of a team.
 */
#ifndef NODES_RECIPE_H
#define NODES_RECIPE_H

#include <zcoll_plan.h>

#include "team.h"

#define RECIPES	40

/**
 * struct recipe - a plan, and where it is from
 * @name: algorithm and radix
 * @plan: the plan
 */
struct recipe {
	char name[48];
	struct zcoll_plan *plan;
};

unsigned int recipes_make(struct recipe *list, const struct team *team, uint32_t collective,
			  uint32_t flags);
void recipes_free(struct recipe *list, unsigned int n);

#endif /* NODES_RECIPE_H */
