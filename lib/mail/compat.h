/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What differs between processors.
 */
#ifndef LIBZCOLL_MAIL_COMPAT_H
#define LIBZCOLL_MAIL_COMPAT_H

#include "../../kmod/engine/fold.h"

#if defined(__x86_64__)

/* Between two looks at memory that another CPU writes */
static inline void zc_compat_relax(void)
{
	__builtin_ia32_pause();
}

/* The best fold loops of this CPU */
static inline const struct zc_fold_isa *zc_compat_loops(void)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
		return &zc_fold_avx512;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
		return &zc_fold_avx2;
	return &zc_fold_sse2;
}

#else

static inline void zc_compat_relax(void)
{
	__asm__ volatile("" ::: "memory");
}

static inline const struct zc_fold_isa *zc_compat_loops(void)
{
	return &zc_fold_ref;
}

#endif

#endif /* LIBZCOLL_MAIL_COMPAT_H */
