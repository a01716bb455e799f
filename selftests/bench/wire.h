/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bounds between nodes: what the network itself can do, without a collective.
 *
 * A *link* goes one way, from this node to the one @distance further in the ring
 * of all nodes: link 0 to the next, link 1 to the one before; the link with the same
 * number comes in from the node as far behind. A *message* is some bytes that
 * land in the peer's arena, and then the news of it. wire.c makes the traffic;
 * a *transport* (verbs or TCP) moves messages.
 */
#ifndef ZCOLL_BENCH_WIRE_H
#define ZCOLL_BENCH_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "rank.h"

#define WIRE_LINKS	2

struct wire {
	unsigned int rank;
	unsigned int nranks;
	unsigned int links;		/* each way: 1, or 2 if the neighbours differ */
	struct arena arena;		/* laid out alike in all ranks */
	const char *port;		/* where each node listens */
	volatile uint64_t came[WIRE_LINKS];	/* messages of which the news came */
	uint64_t taken[WIRE_LINKS];
};

/* Rank @rank + @i's distance, counted round; @back: the one whose link comes here */
unsigned int wire_peer(const struct wire *w, unsigned int i, bool back);

/* Connect all links, while the others do so; the host of rank r is "node<r>" */
void wire_open(struct wire *w);

/* What who connects says first: which link of which rank it is */
struct wire_hello {
	uint32_t rank;
	uint32_t link;
};

/* Check @hello, which came to @w: its link; no return if it is none of ours */
unsigned int wire_welcome(const struct wire *w, const struct wire_hello *hello);

/* Begin a message of @len bytes from @offset, to the same place in the peer's arena */
void wire_send(struct wire *w, unsigned int link, size_t offset, size_t len);

/* Move what can be moved, and count what came; true when all messages are out */
bool wire_progress(struct wire *w);

#endif /* ZCOLL_BENCH_WIRE_H */
