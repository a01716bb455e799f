// SPDX-License-Identifier: GPL-2.0
/*
 * Back end: what the machine can do, as the bound for everybody else.
 *
 * One process plays all ranks, with one thread for each CPU (and no more than
 * there are ranks). The kinds, named by the argument KIND:RANKS:
 *
 *	fold	read the inputs of all ranks once, write all outputs once: the
 *		one-pass all-reduce, without anything that makes it a service
 *	stream	the same with non-temporal stores, which win out of cache
 *	copy	memcpy() of as many bytes: the traffic without the arithmetic
 *
 * Any all-reduce moves at least this traffic, 2pS for p ranks and S bytes.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../unit/fold_isas.h"
#include "rank.h"

#define MAX_RANKS	16
#define SPINS		20000	/* then sleep: others are measured meanwhile */

/* One call, cut in equal shares */
struct job {
	const float *send;
	float *recv;
	size_t count;
};

static struct {
	zc_fold_fn fold;
	bool stream;
	unsigned int ranks;
	size_t rank_len;	/* distance from one rank's buffers to the next's */
	unsigned int threads;
	struct job job;
	atomic_ulong posted;	/* number of the job that is to be done */
	atomic_uint working;	/* threads that have not finished it */
	pthread_mutex_t lock;
	pthread_cond_t wake;
} bd = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

static void share(unsigned int thread)
{
	size_t lines = (bd.job.count + 15) / 16;
	size_t begin = lines * thread / bd.threads * 16;
	size_t end = lines * (thread + 1) / bd.threads * 16;
	const void *src[MAX_RANKS];
	void *dst[MAX_RANKS];
	unsigned int r;

	if (end > bd.job.count)
		end = bd.job.count;
	for (r = 0; r < bd.ranks; r++) {
		src[r] = (const char *)bd.job.send + r * bd.rank_len;
		dst[r] = (char *)bd.job.recv + r * bd.rank_len;
	}
	if (bd.fold)
		bd.fold(dst, src, bd.ranks, bd.ranks, begin, end - begin, bd.stream);
	for (r = 0; r < bd.ranks && !bd.fold; r++)
		memcpy((float *)dst[r] + begin, (const float *)src[r] + begin,
		       (end - begin) * sizeof(float));
}

/* Each thread on a CPU of its own: no call may wait for a scheduler's whim */
static void bind_to(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("cannot bind a thread to CPU %u", cpu);
}

static void *helper(void *arg)
{
	unsigned int thread = (unsigned long)arg;
	unsigned long seen = 0;
	int spins;

	bind_to(thread);
	for (;;) {
		for (spins = 0; spins < SPINS && bd.posted == seen; spins++)
			;
		pthread_mutex_lock(&bd.lock);
		while (bd.posted == seen)
			pthread_cond_wait(&bd.wake, &bd.lock);
		pthread_mutex_unlock(&bd.lock);
		seen++;
		share(thread);
		bd.working--;
	}
	return NULL;
}

static void bound_start(struct back_end *be, struct arena *arena, const char *arg)
{
	const struct zc_fold_isa *isas[MAX_ISAS];
	char kind[16] = "";
	unsigned long t;
	pthread_t id;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!arg || sscanf(arg, "%15[a-z]:%u", kind, &bd.ranks) != 2 ||
	    !bd.ranks || bd.ranks > MAX_RANKS)
		die("the argument is KIND:RANKS, ranks at most %d", MAX_RANKS);
	if (strcmp(kind, "copy"))
		bd.fold = isas[fold_isas(isas) - 1]->fn[ZCOLL_FP32][ZCOLL_SUM];
	bd.stream = !strcmp(kind, "stream");
	be->rank = 0;
	be->nranks = 1;
	arena->len = arena->len / bd.ranks / 4096 * 4096;
	bd.rank_len = arena->len;
	bd.threads = cpus < bd.ranks ? cpus : bd.ranks;
	bind_to(0);
	for (t = 1; t < bd.threads; t++)
		if (pthread_create(&id, NULL, helper, (void *)t))
			die("cannot make a thread");
}

static void bound_barrier(struct back_end *be)
{
	(void)be;
}

static void bound_call(struct back_end *be, const float *send, float *recv, size_t count)
{
	(void)be;
	bd.job = (struct job){ send, recv, count };
	bd.working = bd.threads - 1;
	pthread_mutex_lock(&bd.lock);
	bd.posted++;
	pthread_cond_broadcast(&bd.wake);
	pthread_mutex_unlock(&bd.lock);
	share(0);
	while (bd.working)
		;
}

static void bound_stop(struct back_end *be)
{
	(void)be;	/* the threads end with the process */
}

struct back_end back_end = {
	.start = bound_start,
	.barrier = bound_barrier,
	.allreduce = bound_call,
	.stop = bound_stop,
};
