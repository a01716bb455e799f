// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * "binomial" and "knomial": reduce to node 0 and broadcast from there along a k-nomial
 * tree (see tree.c), all-reduce and barrier by the one and then the other. R. Thakur, R.
 * Rabenseifner and W. Gropp, Optimization of Collective Communication Operations in
 * MPICH, IJHPCA 19(1), 2005; k: M. Wilkins et al., Generalized Collective Algorithms for
 * the Exascale Era, CLUSTER 2023.
 */
#include "gen.h"

static int zc_gen_tree(struct zc_build *build, u32 radix)
{
	struct zcoll_plan *plan = build->plan;
	struct zc_waits sent = { .n = 0 };
	struct zcoll_after ready, quiet = { 0 };

	switch (plan->collective) {
	case ZCOLL_REDUCE:
		/* Nodes other than the root have children, too */
		plan->acc = plan->nodes > radix + 1;
		zc_tree_reduce(build, radix, plan->nodes, true, NULL, NULL);
		return 0;
	case ZCOLL_BROADCAST:
		ready = zc_root_result(build, 0);
		break;
	default:
		if (plan->collective == ZCOLL_ALLREDUCE && radix == 2)
			plan->flags |= ZCOLL_PLAN_ORDERED;
		ready = zc_on_slice(zc_tree_reduce(build, radix, plan->nodes, true, NULL, &sent),
				    0);
		quiet = zc_join(build, &sent);
	}
	zc_tree_broadcast(build, radix, plan->nodes, ready, quiet);
	return 0;
}

int zc_gen_binomial(struct zc_build *build)
{
	return zc_gen_tree(build, 2);
}

int zc_gen_knomial(struct zc_build *build)
{
	return zc_gen_tree(build, build->spec->radix ? build->spec->radix : 4);
}
