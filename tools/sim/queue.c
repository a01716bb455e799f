// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A heap in which each entry has four children: they share two cache lines, and
 * the heap is half as deep as one of pairs.
 */
#include <stdlib.h>

#include "queue.h"

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static int queue_grow(struct sim_queue *queue)
{
	size_t room = queue->room ? 2 * queue->room : 1024;
	struct sim_event *heap = realloc(queue->heap, room * sizeof(*heap));

	if (!heap)
		return -ENOMEM;
	queue->heap = heap;
	queue->room = room;
	return 0;
}

int queue_add(struct sim_queue *queue, u64 time, u32 kind, u32 node, void *what)
{
	struct sim_event event = { time, queue->order++, kind, node, what };
	size_t at = queue->count, parent;

	if (queue->count == queue->room && queue_grow(queue))
		return -ENOMEM;
	queue->count++;
	for (; at; at = parent) {
		parent = (at - 1) / 4;
		if (!before(&event, &queue->heap[parent]))
			break;
		queue->heap[at] = queue->heap[parent];
	}
	queue->heap[at] = event;
	return 0;
}

/* The earliest child of an entry, or queue->count */
static size_t first_child(const struct sim_queue *queue, size_t at)
{
	size_t child = 4 * at + 1, end = child + 4, best = child;

	if (child >= queue->count)
		return queue->count;
	if (end > queue->count)
		end = queue->count;
	while (++child < end)
		if (before(&queue->heap[child], &queue->heap[best]))
			best = child;
	return best;
}

/* Return: false: nothing will happen any more */
bool queue_take(struct sim_queue *queue, struct sim_event *event)
{
	struct sim_event last;
	size_t at = 0, child;

	if (!queue->count)
		return false;
	*event = queue->heap[0];
	last = queue->heap[--queue->count];
	while ((child = first_child(queue, at)) < queue->count &&
	       before(&queue->heap[child], &last)) {
		queue->heap[at] = queue->heap[child];
		at = child;
	}
	queue->heap[at] = last;
	return true;
}

void queue_free(struct sim_queue *queue)
{
	free(queue->heap);
	*queue = (struct sim_queue){ 0 };
}
