/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The queue of what is still to happen: a heap by time. Events of the same time
 * come out in the order in which they went in, so that every run is repeatable.
 */
#ifndef ZCOLL_SIM_QUEUE_H
#define ZCOLL_SIM_QUEUE_H

#include "types.h"

/**
 * struct sim_event - something that happens to a node
 * @time: when, ps
 * @order: of events of the same time
 * @kind: enum sim_event_kind
 * @node: to which node
 * @what: more about it
 */
struct sim_event {
	u64 time;
	u64 order;
	u32 kind;
	u32 node;
	void *what;
};

struct sim_queue {
	struct sim_event *heap;
	size_t count;
	size_t room;
	u64 order;
};

int queue_add(struct sim_queue *queue, u64 time, u32 kind, u32 node, void *what);
bool queue_take(struct sim_queue *queue, struct sim_event *event);
void queue_free(struct sim_queue *queue);

#endif /* ZCOLL_SIM_QUEUE_H */
