# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The variants of the fold loops, and the flags of each: for Kbuild and make.

fold-isas := ref
fold-isas-x86_64 := sse2 avx2 avx512

# The loops are vectors already: the vectoriser could only unroll their short
# loops over rests. A contracted multiplication and addition rounds differently.
fold-flags := -O2 -ffp-contract=off -fno-tree-vectorize -fno-tree-slp-vectorize
fold-flags-avx2 := -mavx -mavx2 -mf16c
fold-flags-avx512 := $(fold-flags-avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl

# Plans and the engine
engine-objs := plan plan_valid plan_check plan_place prog engine row link agree
