// SPDX-License-Identifier: GPL-2.0
/*
 * Speed of the fold loops: GB/s of bytes read and written, beside memcpy() of the
 * same machine in the same run. Pieces are as large as the module's.
 *
 *   fold_bench [-t] [ISA [TYPE [OP]]]	-t: two threads, each on half of the elements
 *
 * A figure is the best of many rounds. First the time of a call with 8 bytes and 2
 * inputs; then speeds by number of inputs. "L2": all arrays together 512 KiB;
 * "memory": 16 MiB each, plain and non-temporal stores.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fold_isas.h"

#define PIECE	(64u << 10)	/* bytes of all inputs and outputs per call */
#define MANY	16		/* inputs at most */

static unsigned int nthreads = 1;
static uint8_t *memory[2 * MANY];	/* inputs, then outputs */

/* What is measured now */
static struct {
	zc_fold_fn fold;	/* NULL: memcpy() */
	unsigned int nsrc, ndst, size;
	uint64_t count, rounds;
	bool stream;
} job;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void *run_part(void *arg)
{
	uint64_t part = (uintptr_t)arg, round, e;
	uint64_t begin = job.count * part / nthreads, end = job.count * (part + 1) / nthreads;
	uint64_t piece = PIECE / (job.size * (job.nsrc + job.ndst)), n;

	for (round = 0; round < job.rounds; round++) {
		if (!job.fold) {
			memcpy(memory[MANY] + begin * job.size, memory[0] + begin * job.size,
			       (end - begin) * job.size);
			continue;
		}
		for (e = begin; e < end; e += n) {
			n = end - e < piece ? end - e : piece;
			job.fold((void *const *)memory + MANY, (const void *const *)memory,
				 job.ndst, job.nsrc, job.nsrc, e, n, job.stream);
		}
	}
	return NULL;
}

static double once(void)
{
	pthread_t thread;
	double begin;

	begin = now();
	if (nthreads > 1)
		pthread_create(&thread, NULL, run_part, (void *)1);
	run_part(NULL);
	if (nthreads > 1)
		pthread_join(thread, NULL);
	return now() - begin;
}

/* GB/s with arrays of @bytes */
static double measure(uint64_t bytes)
{
	double best = 1e9, t, total = (double)bytes * (job.nsrc + job.ndst);
	unsigned int i;

	job.count = bytes / job.size;
	job.rounds = 1 + (uint64_t)(8e6 * nthreads / total);
	for (i = 0; i < 15; i++) {
		t = once() / job.rounds;
		if (i && t < best)
			best = t;
	}
	return total / best / 1e9;
}

static void measure_line(const char *isa, int type, int op, zc_fold_fn fold)
{
	static const unsigned int inputs[] = { 2, 3, 4, 8, 16 };
	unsigned int i;

	printf("%-7s %-7s %-5s", isa, type_names[type], op_names[op]);
	job.fold = fold;
	job.size = fold ? zc_dtype_size(type) : 8;
	job.nsrc = 2;
	job.ndst = 2;
	job.stream = false;
	printf(" %6.1f", 8 * 4 / measure(8));
	for (i = 0; i < 5 && (fold || i < 1); i++) {
		job.nsrc = fold ? inputs[i] : 1;
		job.ndst = fold ? inputs[i] : 1;
		job.stream = false;
		printf(" %7.1f", measure((512 << 10) / (job.nsrc + job.ndst) / 4096 * 4096));
	}
	for (i = 0; i < 3 && (fold || i < 1); i++) {
		job.nsrc = fold ? inputs[i] : 1;
		job.ndst = fold ? inputs[i] : 1;
		job.stream = false;
		printf(" %7.1f", measure(16 << 20));
		job.stream = true;
		if (fold)
			printf(" %5.1f", measure(16 << 20));
	}
	puts("");
	fflush(stdout);
}

static bool is_asked(int argc, char **argv, int i, const char *name)
{
	return argc <= i || !strcmp(argv[i], name);
}

static void measure_isa(const struct zc_fold_isa *isa, int argc, char **argv)
{
	int type, op;

	if (!is_asked(argc, argv, 1, isa->name))
		return;
	for (type = ZCOLL_INT8; type <= ZCOLL_FP64; type++)
		for (op = ZCOLL_SUM; op <= ZCOLL_AVG; op++)
			if (is_asked(argc, argv, 2, type_names[type]) &&
			    is_asked(argc, argv, 3, op_names[op]))
				measure_line(isa->name, type, op, isa->fn[type][op]);
}

int main(int argc, char **argv)
{
	const struct zc_fold_isa *isas[MAX_ISAS];
	unsigned int n = fold_isas(isas), i;

	if (argc > 1 && !strcmp(argv[1], "-t")) {
		nthreads = 2;
		argc--;
		argv++;
	}
	for (i = 0; i < 2 * MANY; i++) {
		memory[i] = aligned_alloc(4096, 16 << 20);
		if (!memory[i])
			return 1;
		memset(memory[i], 0, 16 << 20);
	}
	printf("GB/s, %u thread%s, as many outputs as inputs\n", nthreads, nthreads > 1 ? "s" : "");
	puts("                    8 B, ns | L2: 2   3       4       8      16 | memory 2, nt ...");
	measure_line("memcpy", 0, 0, NULL);
	for (i = 0; i < n; i++)
		measure_isa(isas[i], argc, argv);
	return 0;
}
