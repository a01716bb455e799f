// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Names of element types and operators, as people write them.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

static const struct {
	const char *name;
	size_t size;
} types[ZCOLL_NR_TYPES] = {
	[ZCOLL_INT8] = { "int8", 1 },
	[ZCOLL_UINT8] = { "uint8", 1 },
	[ZCOLL_INT16] = { "int16", 2 },
	[ZCOLL_UINT16] = { "uint16", 2 },
	[ZCOLL_INT32] = { "int32", 4 },
	[ZCOLL_UINT32] = { "uint32", 4 },
	[ZCOLL_INT64] = { "int64", 8 },
	[ZCOLL_UINT64] = { "uint64", 8 },
	[ZCOLL_FP16] = { "fp16", 2 },
	[ZCOLL_BF16] = { "bf16", 2 },
	[ZCOLL_FP32] = { "fp32", 4 },
	[ZCOLL_FP64] = { "fp64", 8 },
};

/* The names of NumPy, C and NCCL */
static const struct {
	const char *name;
	int dtype;
} aliases[] = {
	{ "float16", ZCOLL_FP16 },
	{ "half", ZCOLL_FP16 },
	{ "bfloat16", ZCOLL_BF16 },
	{ "float32", ZCOLL_FP32 },
	{ "float", ZCOLL_FP32 },
	{ "float64", ZCOLL_FP64 },
	{ "double", ZCOLL_FP64 },
};

static const char *const operators[ZCOLL_NR_OPS] = {
	[ZCOLL_SUM] = "sum",
	[ZCOLL_PROD] = "prod",
	[ZCOLL_MIN] = "min",
	[ZCOLL_MAX] = "max",
	[ZCOLL_AVG] = "avg",
};

static bool is_dtype(int dtype)
{
	return dtype > 0 && dtype < ZCOLL_NR_TYPES;
}

const char *zcoll_dtype_name(int dtype)
{
	return is_dtype(dtype) ? types[dtype].name : NULL;
}

size_t zcoll_dtype_size(int dtype)
{
	return is_dtype(dtype) ? types[dtype].size : 0;
}

int zcoll_dtype_parse(const char *name)
{
	for (int t = 1; t < ZCOLL_NR_TYPES; t++)
		if (!strcmp(name, types[t].name))
			return t;
	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
		if (!strcmp(name, aliases[i].name))
			return aliases[i].dtype;
	return -EINVAL;
}

const char *zcoll_op_name(int op)
{
	return op > 0 && op < ZCOLL_NR_OPS ? operators[op] : NULL;
}

int zcoll_op_parse(const char *name)
{
	for (int op = 1; op < ZCOLL_NR_OPS; op++)
		if (!strcmp(name, operators[op]))
			return op;
	return -EINVAL;
}

const char *zcoll_version(void)
{
	return ZC_VERSION;
}
