/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a contender of the speed study provides: a way to do one all-reduce.
 *
 * A *contender* is a program under test: zcoll, an MPI, or a bound (what the
 * machine itself can do). rank.c does the measuring, the same for all of them;
 * a *back end* fills in the operations below.
 */
#ifndef ZCOLL_BENCH_RANK_H
#define ZCOLL_BENCH_RANK_H

#include <stddef.h>

/* A rank's memory: all its send and receive buffers lie in it */
struct arena {
	char *mem;
	size_t len;
};

struct back_end {
	unsigned int rank;	/* set by start() */
	unsigned int nranks;
	int mmap_flags;		/* how its arena is mapped: MAP_PRIVATE or MAP_SHARED */

	/* Begin; may take a part of @arena for other uses, by making it shorter */
	void (*start)(struct back_end *be, struct arena *arena, const char *arg);
	void (*barrier)(struct back_end *be);

	/* Sum @count floats over all ranks; returns when this rank has the result */
	void (*allreduce)(struct back_end *be, const float *send, float *recv, size_t count);

	/* Write "name=value" words on what the contender holds, or nothing */
	void (*facts)(struct back_end *be, char *buf, size_t len);
	void (*stop)(struct back_end *be);
};

extern struct back_end back_end;

void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif /* ZCOLL_BENCH_RANK_H */
