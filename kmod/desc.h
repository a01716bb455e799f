/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is called: an operation as its caller describes it, in plain numbers, so that what reads
 * it from messages can be tested outside of a kernel.
 */
#ifndef ZCOLL_DESC_H
#define ZCOLL_DESC_H

#include "engine/types.h"

/* Steps of a plan that is carried out on several nodes, at most */
#define ZC_PLAN_STEPS	256

/* What all ranks of all nodes must call equally, and who called it here first */
struct zc_desc {
	u16 collective;
	u8 dtype;
	u8 op;
	u32 flags;
	u32 root;		/* a rank */
	u32 rank;
	u64 count;
	u64 plan;		/* id of the plan */
};

#endif /* ZCOLL_DESC_H */
