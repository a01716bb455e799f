/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plans written by hand, for tests of the engine: one of each manner in which nodes
 * can talk. They use each kind of step and each flag at least once, and do not
 * depend on the generators of the library.
 *
 * All are to be freed by free().
 */
#ifndef ENGINE_PLANS_H
#define ENGINE_PLANS_H

#include "plan.h"

/* One node */
struct zcoll_plan *plan_local(void);

/* All-reduce of 3 nodes or more: reduce-scatter in a ring, then all-gather */
struct zcoll_plan *plan_ring(u32 nodes, bool agreed);

/* All-reduce of a power of two of nodes; partial results in scratch places */
struct zcoll_plan *plan_doubling(u32 nodes, bool agreed);

/* Broadcast from node to node, at once or in turns */
struct zcoll_plan *plan_chain(u32 nodes, bool agreed);
struct zcoll_plan *plan_turns(u32 nodes, bool agreed);

/* Reduce-scatter and all-gather of 3 nodes or more: each to each other one, OPEN */
struct zcoll_plan *plan_exchange(u32 nodes, bool agreed);
struct zcoll_plan *plan_spread(u32 nodes, bool agreed);

/* All-reduce of at most 3 members over one further node without ranks */
struct zcoll_plan *plan_star(u32 members, bool agreed);

/* Barrier by dissemination */
struct zcoll_plan *plan_barrier(u32 nodes);

#endif /* ENGINE_PLANS_H */
