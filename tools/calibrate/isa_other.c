// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fold loops where there are none but the portable ones.
 */
#include "isa.h"

const struct zc_fold_isa *isa_best(void)
{
	return &zc_fold_ref;
}
