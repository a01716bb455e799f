// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The agenda of a timing: a binary heap; see agenda.h.
 */
#include <stdlib.h>

#include "agenda.h"

static bool earlier(const struct zc_event *a, const struct zc_event *b)
{
	return a->at < b->at || (a->at == b->at && a->number < b->number);
}

static int make_room(struct zc_agenda *agenda)
{
	size_t room = agenda->room ? 2 * agenda->room : 1024;
	struct zc_event *heap;

	if (agenda->count < agenda->room)
		return 0;
	heap = realloc(agenda->heap, room * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	agenda->heap = heap;
	agenda->room = room;
	return 0;
}

int zc_agenda_add(struct zc_agenda *agenda, struct zc_event event)
{
	size_t i, up;

	if (make_room(agenda))
		return -ENOMEM;
	event.number = agenda->added++;
	for (i = agenda->count++; i; i = up) {
		up = (i - 1) / 2;
		if (!earlier(&event, &agenda->heap[up]))
			break;
		agenda->heap[i] = agenda->heap[up];
	}
	agenda->heap[i] = event;
	return 0;
}

struct zc_event zc_agenda_next(struct zc_agenda *agenda)
{
	struct zc_event *heap = agenda->heap;
	struct zc_event first = heap[0], last = heap[--agenda->count];
	size_t i = 0, down;

	while ((down = 2 * i + 1) < agenda->count) {
		if (down + 1 < agenda->count && earlier(&heap[down + 1], &heap[down]))
			down++;
		if (!earlier(&heap[down], &last))
			break;
		heap[i] = heap[down];
		i = down;
	}
	heap[i] = last;
	return first;
}

void zc_agenda_free(struct zc_agenda *agenda)
{
	free(agenda->heap);
}
