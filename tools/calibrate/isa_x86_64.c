// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fold loops on x86-64: the best that this CPU can run, as the module chooses them.
 */
#include <cpuid.h>

#include "isa.h"

static bool has_f16c(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

const struct zc_fold_isa *isa_best(void)
{
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		return &zc_fold_avx512;
	if (__builtin_cpu_supports("avx2") && has_f16c())
		return &zc_fold_avx2;
	return &zc_fold_sse2;
}
