/* SPDX-License-Identifier: GPL-2.0 */
/* The variants of the fold loops that this CPU can run, the reference first */
#ifndef ZCOLL_UNIT_FOLD_ISAS_H
#define ZCOLL_UNIT_FOLD_ISAS_H

#include <cpuid.h>
#include <linux/zcoll.h>
#include "fold.h"

#define MAX_ISAS 4

static inline bool cpu_has_f16c(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* Return: how many were put in @isas */
static inline unsigned int fold_isas(const struct zc_fold_isa *isas[MAX_ISAS])
{
	unsigned int n = 0;

	isas[n++] = &zc_fold_ref;
	isas[n++] = &zc_fold_sse2;
	if (__builtin_cpu_supports("avx2") && cpu_has_f16c())
		isas[n++] = &zc_fold_avx2;
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		isas[n++] = &zc_fold_avx512;
	return n;
}

static const char *const type_names[] = {
	"", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
	"fp16", "bf16", "fp32", "fp64",
};

static const char *const op_names[] = { "", "sum", "prod", "min", "max", "avg" };

#endif /* ZCOLL_UNIT_FOLD_ISAS_H */
