/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the two halves of the check of a plan share: of its fields (plan_valid.c), and of
 * what it does at a node (plan_check.c, plan_place.c).
 */
#ifndef ZCOLL_ENGINE_PLAN_PRIV_H
#define ZCOLL_ENGINE_PLAN_PRIV_H

#include "plan.h"

/*
 * In what takes long, where sleeping is allowed: let others have the processor. Return:
 * true: the caller has been killed, and nobody waits for the end any more.
 */
#ifdef __KERNEL__
#include <linux/sched/signal.h>
static inline bool zc_give_way(void)
{
	cond_resched();
	return fatal_signal_pending(current);
}
#else
static inline bool zc_give_way(void)
{
	return false;
}
#endif

/* Does the step read its src? */
static inline bool zc_step_reads(const struct zcoll_step *step)
{
	if (step->flags & ZCOLL_STEP_FIRST)
		return false;
	if (step->kind == ZCOLL_STEP_FOLD)
		return step->peer == ZCOLL_PEER_NONE || !(step->flags & ZCOLL_STEP_STORE);
	return step->kind == ZCOLL_STEP_SEND || step->kind == ZCOLL_STEP_FINAL;
}

#endif /* ZCOLL_ENGINE_PLAN_PRIV_H */
