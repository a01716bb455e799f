// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * "circulant" and "bruck": reduce-scatter and all-gather on circulant graphs, whose
 * skips are those of Träff (see circulant.c) or powers of the radix as in J. Bruck,
 * C.-T. Ho, S. Kipnis, E. Upfal and D. Weathersby, Efficient Algorithms for All-to-All
 * Communications in Multiport Message-Passing Systems, IEEE TPDS 8(11), 1997.
 *
 * All-reduce is the one and then the other; a barrier is dissemination.
 */
#include "gen.h"

/* n, the largest powers of the radix below n, 1 */
static struct zc_skips zc_bruck_skips(u32 size, u32 radix)
{
	struct zc_skips skips = { .extent[0] = size };

	while (size > 1) {
		size = zc_power_below(radix, size - 1);
		skips.extent[++skips.rounds] = size;
	}
	return skips;
}

static int zc_gen_skips(struct zc_build *build, const struct zc_skips *skips, u32 radix)
{
	struct zcoll_plan *plan = build->plan;
	struct zcoll_after none = { 0 };
	struct zc_sent sent = { .n = 0 };
	struct zc_waits ready = { .n = 0 };
	struct zcoll_step group;

	if (plan->collective != ZCOLL_BARRIER)
		plan->segments = plan->nodes;
	group = zc_row(build, ZCOLL_STEP_SEND);
	switch (plan->collective) {
	case ZCOLL_BARRIER:
		zc_disseminate(build, &group, radix, &ready);
		break;
	case ZCOLL_REDUCE_SCATTER:
		zc_circulant_scatter(build, &group, skips, none, true, NULL);
		break;
	case ZCOLL_ALLREDUCE:
		zc_wait(build, &ready,
			zc_circulant_scatter(build, &group, skips, none, true, &sent));
		zc_circulant_gather(build, &group, skips, &ready, &sent, none);
		break;
	case ZCOLL_ALLGATHER:
		zc_wait(build, &ready, zc_own_result(build));
		zc_circulant_gather(build, &group, skips, &ready, NULL, none);
		break;
	}
	return 0;
}

int zc_gen_circulant(struct zc_build *build)
{
	u32 radix = build->spec->radix ? build->spec->radix : 2;
	struct zc_skips skips = zc_circulant_skips(build->plan->nodes, radix);

	return zc_gen_skips(build, &skips, radix);
}

int zc_gen_bruck(struct zc_build *build)
{
	u32 radix = build->spec->radix ? build->spec->radix : 2;
	struct zc_skips skips = zc_bruck_skips(build->plan->nodes, radix);

	return zc_gen_skips(build, &skips, radix);
}
