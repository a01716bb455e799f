// SPDX-License-Identifier: GPL-2.0
/*
 * The clock of engine_host.h: chance, and the events to come in their order, a binary heap.
 */
#include <stdlib.h>

#include "engine_host_priv.h"

/* ------------------------------------------------------------------ randomness */

u64 host_draw(struct host *h, u64 below)
{
	return host_random(&h->random, below);
}

bool host_chance(struct host *h, u32 of_1024)
{
	return host_draw(h, 1024) < of_1024;
}

u64 host_delay(struct host *h)
{
	u64 ns = 1 + host_draw(h, h->params.spread);

	return host_draw(h, 16) ? ns : 20 * ns;
}

/* ------------------------------------------------------------------ events */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void host_push(struct host *h, u64 after, enum event_type type, u32 node, u32 peer,
	       struct unit *unit)
{
	struct event event = { h->now + after, h->order++, type, node, peer, unit };
	size_t at;

	if (h->events == h->room) {
		h->room = h->room ? 2 * h->room : 1024;
		h->heap = realloc(h->heap, h->room * sizeof(*h->heap));
	}
	if (unit)
		unit->refs++;
	for (at = h->events++; at && earlier(&event, &h->heap[(at - 1) / 2]); at = (at - 1) / 2)
		h->heap[at] = h->heap[(at - 1) / 2];
	h->heap[at] = event;
}

struct event host_pop(struct host *h)
{
	struct event first = h->heap[0], last = h->heap[--h->events];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < h->events) {
		if (child + 1 < h->events && earlier(&h->heap[child + 1], &h->heap[child]))
			child++;
		if (!earlier(&h->heap[child], &last))
			break;
		h->heap[at] = h->heap[child];
		at = child;
	}
	h->heap[at] = last;
	return first;
}
