/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The agenda of a timing (cost.c): what will happen when, the earliest first.
 */
#ifndef ZCOLL_PLAN_AGENDA_H
#define ZCOLL_PLAN_AGENDA_H

#include "../../kmod/engine/plan.h"

enum zc_event_type {
	ZC_HEAD,	/* of a message is at the receiver's NIC */
	ZC_TAIL,	/* likewise */
	ZC_CAME,	/* the receiver's processor has looked at it */
	ZC_END,		/* of a unit */
};

/**
 * struct zc_event - what happens
 * @at: when, ns
 * @number: events at one time come in the order in which they were added
 * @unit: of the step; of a grant: the first that is not granted
 * @node: where
 * @step: the receiver's, or that of the unit; of a grant: the step that may send
 * @depth: messages on the chain to here
 * @bytes: of the message
 * @type: enum zc_event_type
 * @grant: the message is leave to send
 */
struct zc_event {
	double at;
	u64 number;
	u64 unit;
	u32 node;
	u32 step;
	u32 depth;
	double bytes;
	enum zc_event_type type;
	bool grant;
};

/* All 0: empty */
struct zc_agenda {
	struct zc_event *heap;
	size_t count;
	size_t room;
	u64 added;
};

int zc_agenda_add(struct zc_agenda *agenda, struct zc_event event);
struct zc_event zc_agenda_next(struct zc_agenda *agenda);	/* there must be one */
void zc_agenda_free(struct zc_agenda *agenda);

#endif /* ZCOLL_PLAN_AGENDA_H */
