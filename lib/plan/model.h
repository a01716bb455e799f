/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The cost model: closed forms for the known algorithms, and which variants of them
 * are worth comparing.
 */
#ifndef ZCOLL_PLAN_MODEL_H
#define ZCOLL_PLAN_MODEL_H

#include <stdbool.h>

#include <zcoll_plan.h>

/**
 * struct zc_model_variant - an algorithm with parameters
 * @algo: name
 * @radix: 0: it has none, or its own
 */
struct zc_model_variant {
	const char *algo;
	uint32_t radix;
};

const struct zc_model_variant *zc_model_variant(unsigned int i);	/* NULL after the last */

/* Is it worth comparing for so many nodes? Then @spec gets its parameters. */
bool zc_model_applies(const struct zc_model_variant *variant, struct zcoll_plan_spec *spec);

/* The slice with which it takes the least time */
uint64_t zc_model_slice(const struct zcoll_plan_spec *spec, const struct zcoll_fabric *fabric,
			uint64_t bytes);

#endif /* ZCOLL_PLAN_MODEL_H */
