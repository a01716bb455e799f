// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which fold loops this CPU gets: chosen once, at load.
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

static const struct zc_fold_isa *zc_isa;

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
