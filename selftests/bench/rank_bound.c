// SPDX-License-Identifier: GPL-2.0
/*
 * Back end: what the machine can do, as the bound for everybody else.
 *
 * One rank plays all, with one process for each CPU (and no more than there are
 * ranks); processes and not threads, because User-Mode Linux runs the threads of
 * a process one at a time. The kinds, named by the argument KIND:RANKS:
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
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../unit/fold_isas.h"
#include "rank.h"

#define MAX_RANKS	16
#define SPINS		20000	/* then sleep: others are measured meanwhile */

/* What the processes share, beside the arena: the call that is to be done */
struct job {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	atomic_ulong posted;	/* its number */
	atomic_uint working;	/* helpers that have not finished it */
	const float *send;
	float *recv;
	size_t count;
};

static struct {
	zc_fold_fn fold;	/* NULL: copy */
	bool stream;
	unsigned int ranks;
	size_t rank_len;	/* distance from one rank's buffers to the next's */
	unsigned int procs;
	struct job *job;
} bd;

/* The share of process @proc: equal parts of whole cache lines */
static void share(unsigned int proc)
{
	size_t count = bd.job->count;
	size_t lines = (count + 15) / 16;
	size_t begin = lines * proc / bd.procs * 16;
	size_t end = lines * (proc + 1) / bd.procs * 16;
	const void *src[MAX_RANKS];
	void *dst[MAX_RANKS];
	unsigned int r;

	if (end > count)
		end = count;
	for (r = 0; r < bd.ranks; r++) {
		src[r] = (const char *)bd.job->send + r * bd.rank_len;
		dst[r] = (char *)bd.job->recv + r * bd.rank_len;
	}
	if (bd.fold)
		bd.fold(dst, src, bd.ranks, bd.ranks, 1, begin, end - begin, bd.stream);
	for (r = 0; r < bd.ranks && !bd.fold; r++)
		memcpy((float *)dst[r] + begin, (const float *)src[r] + begin,
		       (end - begin) * sizeof(float));
}

/* A CPU of its own for each: no call may wait for a scheduler's whim */
static void bind_to(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("cannot bind a process to CPU %u", cpu);
}

/* Shared pages are mapped in each process at its first touch: not in a batch */
static void touch(const struct arena *arena)
{
	volatile char *mem = (volatile char *)arena->mem;
	size_t i;

	for (i = 0; i < bd.rank_len * bd.ranks; i += 4096)
		mem[i] = mem[i];
}

static void __attribute__((noreturn)) help(unsigned int proc, const struct arena *arena)
{
	struct job *job = bd.job;
	unsigned long seen = 0;
	int spins;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bind_to(proc);
	touch(arena);
	job->working--;
	for (;;) {
		for (spins = 0; spins < SPINS && job->posted == seen; spins++)
			;
		pthread_mutex_lock(&job->lock);
		while (job->posted == seen)
			pthread_cond_wait(&job->wake, &job->lock);
		pthread_mutex_unlock(&job->lock);
		seen++;
		share(proc);
		job->working--;
	}
}

static struct job *make_job(void)
{
	pthread_mutexattr_t lock_attr;
	pthread_condattr_t wake_attr;
	struct job *job;

	job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job == MAP_FAILED)
		die("no shared memory");
	pthread_mutexattr_init(&lock_attr);
	pthread_mutexattr_setpshared(&lock_attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&job->lock, &lock_attr);
	pthread_condattr_init(&wake_attr);
	pthread_condattr_setpshared(&wake_attr, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&job->wake, &wake_attr);
	return job;
}

static void bound_start(struct back_end *be, struct arena *arena, const char *arg)
{
	const struct zc_fold_isa *isas[MAX_ISAS];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char kind[16] = "";
	unsigned int p;

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
	bd.procs = cpus < bd.ranks ? cpus : bd.ranks;
	bd.job = make_job();
	bind_to(0);
	bd.job->working = bd.procs - 1;
	for (p = 1; p < bd.procs; p++) {
		switch (fork()) {
		case -1:
			die("cannot make a process");
		case 0:
			help(p, arena);
		}
	}
	while (bd.job->working)
		sched_yield();
}

static void bound_barrier(struct back_end *be)
{
	(void)be;
}

static void bound_call(struct back_end *be, const float *send, float *recv, size_t count)
{
	struct job *job = bd.job;

	(void)be;
	job->send = send;
	job->recv = recv;
	job->count = count;
	job->working = bd.procs - 1;
	pthread_mutex_lock(&job->lock);
	job->posted++;
	pthread_cond_broadcast(&job->wake);
	pthread_mutex_unlock(&job->lock);
	share(0);
	while (job->working)
		;
}

static void bound_stop(struct back_end *be)
{
	(void)be;	/* the helpers end with this process */
}

struct back_end back_end = {
	.mmap_flags = MAP_SHARED,
	.start = bound_start,
	.barrier = bound_barrier,
	.allreduce = bound_call,
	.stop = bound_stop,
};
