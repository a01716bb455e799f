// SPDX-License-Identifier: GPL-2.0
/*
 * One rank of a contender: it obeys orders, so that contenders which are all
 * alive at once can be measured in turn, A B A B, within seconds of each other.
 *
 * A rank connects to the orderer, says "NAME RANK" and gets orders as lines; it
 * answers each with one line. A rank without an order sleeps in read() and takes
 * no time from the others, however eagerly its MPI spins.
 *
 *	run BYTES ITERS MODE LEAD	time a batch, after LEAD calls that are not timed;
 *			answer: nanoseconds for all of it
 *	check BYTES		one call on known data; answer: ok
 *	facts			answer: what the contender holds in the kernel
 *	quit			no answer
 *
 * MODE is "reuse" (the same two buffers in each call) or "rotate" (each call
 * takes the next two of the arena, so they come from memory and not from a
 * cache). Time is taken for a batch, because reading a clock can cost as much
 * as an operation (User-Mode Linux: 22 us). The calls before it bring the
 * machine into the state in which it stays with this contender: caches, and
 * which CPU runs what.
 */
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rank.h"

#define PAGE		4096UL
#define LINE		64UL	/* buffers do not all begin at the same cache set */

struct rank {
	struct back_end *be;
	struct arena arena;
	size_t next;		/* the next slot to take when rotating */
	FILE *orders, *answers;	/* one connection */
};

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "bench rank %u: ", back_end.rank);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* The buffers of slot @i for @bytes: the i-th pair that fits, counted round */
static void slot(const struct arena *arena, size_t bytes, size_t i, float **send, float **recv)
{
	size_t stride = (bytes + PAGE - 1) / PAGE * PAGE + LINE;
	size_t slots = arena->len / (2 * stride);

	if (!slots)
		die("%zu bytes need an arena of %zu, it has %zu", bytes, 2 * stride, arena->len);
	*send = (float *)(arena->mem + i % slots * 2 * stride);
	*recv = (float *)((char *)*send + stride);
}

static void answer(struct rank *rk, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(rk->answers, fmt, ap);
	va_end(ap);
	fputc('\n', rk->answers);
	if (fflush(rk->answers))
		die("cannot answer: %s", strerror(errno));
}

/* Nanoseconds of @iters calls, begun by all ranks at once */
static uint64_t batch(struct rank *rk, size_t bytes, unsigned long iters, int rotate)
{
	struct back_end *be = rk->be;
	float *send, *recv;
	unsigned long i;
	uint64_t start;

	be->barrier(be);
	start = now_ns();
	for (i = 0; i < iters; i++) {
		slot(&rk->arena, bytes, rotate ? rk->next++ : 0, &send, &recv);
		be->allreduce(be, send, recv, bytes / sizeof(float));
	}
	return now_ns() - start;
}

static void run(struct rank *rk, size_t bytes, unsigned long iters, int rotate,
		unsigned long lead)
{
	if (lead)
		batch(rk, bytes, lead, rotate);
	answer(rk, "%llu", (unsigned long long)batch(rk, bytes, iters, rotate));
}

/* Sums of small whole numbers are exact in any order of reduction */
static void check(struct rank *rk, size_t bytes)
{
	struct back_end *be = rk->be;
	size_t i, count = bytes / sizeof(float);
	float *send, *recv, factor = be->nranks * (be->nranks + 1) / 2;

	slot(&rk->arena, bytes, 0, &send, &recv);
	for (i = 0; i < count; i++)
		send[i] = (be->rank + 1) * (1 + i % 7);
	memset(recv, 0xff, bytes);
	be->allreduce(be, send, recv, count);
	for (i = 0; i < count; i++)
		if (recv[i] != factor * (1 + i % 7))
			die("wrong sum at element %zu of %zu: %g", i, count, recv[i]);
	memset(send, 0, bytes);
	answer(rk, "ok");
}

static void facts(struct rank *rk)
{
	char buf[400] = "";

	if (rk->be->facts)
		rk->be->facts(rk->be, buf, sizeof(buf));
	answer(rk, "%s", buf);
}

static void obey(struct rank *rk)
{
	char line[128], mode[16];
	unsigned long iters, lead;
	size_t bytes;

	while (fgets(line, sizeof(line), rk->orders)) {
		if (sscanf(line, "run %zu %lu %15s %lu", &bytes, &iters, mode, &lead) == 4)
			run(rk, bytes, iters, !strcmp(mode, "rotate"), lead);
		else if (sscanf(line, "check %zu", &bytes) == 1)
			check(rk, bytes);
		else if (!strcmp(line, "facts\n"))
			facts(rk);
		else if (!strcmp(line, "quit\n"))
			return;
		else
			die("unknown order: %s", line);
	}
}

/* @where is HOST:PORT */
static void take_orders(struct rank *rk, const char *where, const char *name)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *ai;
	char host[256], port[16];
	int fd;

	if (sscanf(where, "%255[^:]:%15s", host, port) != 2 || getaddrinfo(host, port, &hints, &ai))
		die("%s: no such host and port", where);
	fd = socket(ai->ai_family, ai->ai_socktype, 0);
	if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen))
		die("%s: %s", where, strerror(errno));
	freeaddrinfo(ai);
	rk->orders = fdopen(fd, "r");
	rk->answers = fdopen(dup(fd), "w");
	if (!rk->orders || !rk->answers)
		die("%s: %s", where, strerror(errno));
	answer(rk, "%s %u", name, rk->be->rank);
}

/* Touched whole, so that no batch pays for a first touch */
static void make_arena(struct arena *arena, const char *mib, int mmap_flags)
{
	arena->len = (strtoul(mib, NULL, 10) << 20) + 64 * PAGE;
	arena->mem = mmap(NULL, arena->len, PROT_READ | PROT_WRITE,
			  mmap_flags | MAP_ANONYMOUS, -1, 0);
	if (arena->mem == MAP_FAILED)
		die("no memory for an arena of %s MiB: %s", mib, strerror(errno));
	memset(arena->mem, 0, arena->len);
}

int main(int argc, char **argv)
{
	struct rank rk = { .be = &back_end };

	if (argc < 4)
		die("usage: %s HOST:PORT NAME ARENA_MIB [ARG]", argv[0]);
	make_arena(&rk.arena, argv[3], rk.be->mmap_flags);
	rk.be->start(rk.be, &rk.arena, argv[4]);
	take_orders(&rk, argv[1], argv[2]);
	obey(&rk);
	rk.be->stop(rk.be);
	return 0;
}
