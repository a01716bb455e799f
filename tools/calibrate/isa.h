/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Which fold loops this CPU gets. The build takes isa_x86_64.c, or isa_other.c.
 */
#ifndef ZCOLL_CALIBRATE_ISA_H
#define ZCOLL_CALIBRATE_ISA_H

#include "../../kmod/engine/fold.h"

const struct zc_fold_isa *isa_best(void);

#endif /* ZCOLL_CALIBRATE_ISA_H */
