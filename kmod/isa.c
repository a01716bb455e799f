// SPDX-License-Identifier: GPL-2.0-only
/*
 * What operations need to know of this CPU: the fold loops it gets, and the sizes of its caches.
 * Found once, at load. CPUs that differ in it are taken for equal.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include "compat.h"
#include "zcoll.h"

static char *isa = "";
module_param(isa, charp, 0444);
MODULE_PARM_DESC(isa, "fold loops to use: ref, sse2, avx2 or avx512; default: the best this CPU has");

/* Where the CPU does not tell: what most servers have at least */
#define ZC_OWN_CACHE	SZ_512K
#define ZC_LAST_CACHE	SZ_32M

static const struct zc_fold_isa *zc_isa;
static u64 zc_own_cache;
static u64 zc_last_cache;

int zc_isa_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(zc_compat_isas); i++) {
		const struct zc_compat_isa *row = &zc_compat_isas[i];

		if (*isa && strcmp(isa, row->loops->name))
			continue;
		if (row->usable())
			zc_isa = row->loops;
	}
	if (!zc_isa) {
		pr_err("isa=%s: no such fold loops, or this CPU cannot run them\n", isa);
		return -EINVAL;
	}
	zc_own_cache = zc_compat_cache_bytes(2) ?: ZC_OWN_CACHE;
	zc_last_cache = zc_compat_cache_bytes(7) ?: ZC_LAST_CACHE;
	return 0;
}

const char *zc_isa_name(void)
{
	return zc_isa->name;
}

/* @dtype and @op are in range */
zc_fold_fn zc_isa_fold(u32 dtype, u32 op)
{
	return zc_isa->fn[dtype][op];
}

/* Bytes of the cache that a CPU has to itself, L2 */
u64 zc_isa_own_cache(void)
{
	return zc_own_cache;
}

/* Bytes of the largest cache, which CPUs share */
u64 zc_isa_last_cache(void)
{
	return zc_last_cache;
}
