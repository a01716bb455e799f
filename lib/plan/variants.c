// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Which variants of the known algorithms are compared; see model.h.
 *
 * An aggregator tree is not among them: it needs nodes that the operation does not have.
 */
#include <string.h>

#include "model.h"

static const struct zc_model_variant variants[] = {
	{ "local", 0 },
	{ "ring", 0 },
	{ "pairwise", 0 },
	{ "recursive-doubling", 2 },
	{ "recursive-doubling", 3 },
	{ "recursive-doubling", 4 },
	{ "recursive-doubling", 5 },
	{ "recursive-doubling", 6 },
	{ "recursive-doubling", 8 },
	{ "recursive-doubling", 10 },
	{ "recursive-doubling", 16 },
	{ "halving-doubling", 0 },
	{ "circulant", 2 },
	{ "circulant", 3 },
	{ "circulant", 4 },
	{ "circulant", 5 },
	{ "circulant", 6 },
	{ "circulant", 8 },
	{ "circulant", 10 },
	{ "circulant", 16 },
	{ "binomial", 0 },
	{ "knomial", 4 },
	{ "knomial", 8 },
	{ "knomial", 16 },
	{ "double-tree", 0 },
	{ "bruck", 2 },
	{ "bruck", 3 },
	{ "bruck", 4 },
	{ "bruck", 5 },
	{ "bruck", 6 },
	{ "bruck", 8 },
	{ "hierarchical", 0 },
};

const struct zc_model_variant *zc_model_variant(unsigned int i)
{
	return i < sizeof(variants) / sizeof(variants[0]) ? &variants[i] : NULL;
}

bool zc_model_applies(const struct zc_model_variant *variant, struct zcoll_plan_spec *spec)
{
	if ((spec->nodes == 1) != !strcmp(variant->algo, "local"))
		return false;
	/* one radix that all nodes fit in is enough */
	if (variant->radix > 2 && variant->radix >= 2 * spec->nodes)
		return false;
	spec->radix = variant->radix;
	return true;
}

uint64_t zc_model_slice(const struct zcoll_plan_spec *spec, const struct zcoll_fabric *fabric,
			uint64_t bytes)
{
	uint64_t slice, best = ZCOLL_SLICE_DEFAULT;
	double ns, least = zcoll_plan_estimate(spec, fabric, bytes, best);

	for (slice = 4 << 10; slice <= 4 << 20; slice *= 4) {
		ns = zcoll_plan_estimate(spec, fabric, bytes, slice);
		/* a smaller slice has to earn its messages */
		if (ns < 0.98 * least) {
			least = ns;
			best = slice;
		}
	}
	return best;
}
