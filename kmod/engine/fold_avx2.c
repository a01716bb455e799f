// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Fold loops for AVX2 with F16C */
#define FOLD_ISA	zc_fold_avx2
#define FOLD_NAME	"avx2"
#define FOLD_VECTOR	32
#define FOLD_NT		"vmovntdq"
#define FOLD_CVTPH(h)	__builtin_ia32_vcvtph2ps256(h)
#define FOLD_CVTPS(f)	__builtin_ia32_vcvtps2ph256(f, 0)

#include "fold_simd.h"
