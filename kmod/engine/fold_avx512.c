// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Fold loops for AVX-512 F, BW, DQ and VL */
#define FOLD_ISA	zc_fold_avx512
#define FOLD_NAME	"avx512"
#define FOLD_VECTOR	64
#define FOLD_NT		"vmovntdq"
#define FOLD_CVTPH(h)	__builtin_ia32_vcvtph2ps512_mask(h, (v_f32) { 0 }, 0xffff, 4)
#define FOLD_CVTPS(f)	__builtin_ia32_vcvtps2ph512_mask(f, 0, (v_half) { 0 }, 0xffff)

#include "fold_simd.h"
