// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Fold loops for every x86-64 */
#define FOLD_ISA	zc_fold_sse2
#define FOLD_NAME	"sse2"
#define FOLD_VECTOR	16
#define FOLD_NT		"movntdq"

#include "fold_simd.h"
