// SPDX-License-Identifier: GPL-2.0
/*
 * Back end: the traffic of an all-reduce between nodes, without the reduction.
 *
 * Whatever the algorithm, each of M nodes has to send, and to get, 2 (M - 1) / M times
 * the array: all others' need its share of sums, and it theirs (Patarasuk and Yuan,
 * "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009).
 * One "all-reduce" here sends that many bytes, in equal parts to all neighbours
 * at once, while as many come in. It is the bound to compare with, since the
 * same machines, network and rounds are used.
 *
 * "latency" instead of "traffic": an empty message goes from rank 0 to rank 1 and back, and all
 * others are idle. "pairs": the same between ranks 2 and 3, 4 and 5, and so on, all at once, as
 * nodes of an all-reduce are busy at once.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wire.h"

static struct wire wire;
/* Ranks that have a part in the ping-pong; 0: it is traffic that is measured */
static unsigned int players;

unsigned int wire_peer(const struct wire *w, unsigned int i, bool back)
{
	return (w->rank + ((i == 0) != back ? 1 : w->nranks - 1)) % w->nranks;
}

unsigned int wire_welcome(const struct wire *w, const struct wire_hello *hello)
{
	if (hello->link >= w->links || hello->rank != wire_peer(w, hello->link, true))
		die("a stranger connects: link %u of rank %u", hello->link, hello->rank);
	return hello->link;
}

static unsigned int number(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		die("%s is not set", name);
	return strtoul(value, NULL, 10);
}

/* @arg: MODE:PORT */
static void start(struct back_end *be, struct arena *arena, const char *arg)
{
	const char *colon = arg ? strchr(arg, ':') : NULL;

	if (!colon)
		die("need traffic:PORT, latency:PORT or pairs:PORT");
	wire.port = colon + 1;
	be->rank = number("RANK");
	be->nranks = number("WORLD_SIZE");
	if (!strncmp(arg, "latency:", 8))
		players = 2;
	else if (!strncmp(arg, "pairs:", 6))
		players = be->nranks / 2 * 2;
	wire.rank = be->rank;
	wire.nranks = be->nranks;
	wire.links = players || be->nranks > 2 ? 2 : 1;
	wire.arena = *arena;
	wire_open(&wire);
}

/* Until a message has come by @link. Others who have work get the CPU */
static void await(unsigned int link)
{
	while (wire.came[link] == wire.taken[link]) {
		wire_progress(&wire);
		sched_yield();
	}
	wire.taken[link]++;
}

static void flush(void)
{
	while (!wire_progress(&wire))
		sched_yield();
}

/* Twice round the ring: who has the second message knows that all are here */
static void barrier(struct back_end *be)
{
	int round;

	for (round = 0; round < 2; round++) {
		if (be->rank)
			await(0);
		wire_send(&wire, 0, 0, 0);
		if (!be->rank)
			await(0);
	}
	flush();
}

/* The news alone: 8 bytes */
static void ping_pong(void)
{
	if (wire.rank >= players)
		return;
	if (wire.rank % 2 == 0) {
		wire_send(&wire, 0, 0, 0);
		await(1);
	} else {
		await(0);
		wire_send(&wire, 1, 0, 0);
	}
}

static void traffic(size_t offset, size_t bytes)
{
	size_t part = 2 * (wire.nranks - 1) * bytes / wire.nranks / wire.links, len;
	unsigned int i;

	/* Never more at once than the array itself: longer parts would leave it */
	for (; part; part -= len) {
		len = part < bytes ? part : bytes;
		for (i = 0; i < wire.links; i++)
			wire_send(&wire, i, offset, len);
		for (i = 0; i < wire.links; i++)
			await(i);
	}
	flush();
}

static void allreduce(struct back_end *be, const float *send, float *recv, size_t count)
{
	(void)be;
	(void)recv;
	if (players)
		ping_pong();
	else
		traffic((const char *)send - wire.arena.mem, count * sizeof(*send));
}

static void stop(struct back_end *be)
{
	barrier(be);
}

struct back_end back_end = {
	.mmap_flags = MAP_PRIVATE,
	.start = start,
	.barrier = barrier,
	.allreduce = allreduce,
	.stop = stop,
};
