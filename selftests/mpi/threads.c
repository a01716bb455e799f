// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that call at the same time, each on a communicator of its own, and one that sends
 * messages meanwhile.
 *
 * threads [few]: few rounds
 */
#include <pthread.h>
#include <stdint.h>

#include "check.h"

#define THREADS	3
#define ROUNDS	40
#define FEW	3
#define N	3000

static MPI_Comm comms[THREADS + 1];
static int rounds = ROUNDS;

static void *collectives(void *arg)
{
	int t = (intptr_t)arg, in[N], out[2][N];
	bool good = true;
	MPI_Request r;

	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < N; k++)
			in[k] = me + k + t + i;
		MPI_Iallreduce(in, out[0], N, MPI_INT, MPI_MAX, comms[t], &r);
		MPI_Allreduce(in, out[1], N, MPI_INT, MPI_MIN, comms[t]);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		for (int k = 0; k < N; k++)
			good = good && out[0][k] == ranks - 1 + k + t + i && out[1][k] == k + t + i;
		MPI_Barrier(comms[t]);
	}
	return (void *)(intptr_t)good;
}

static void *messages(void *arg)
{
	int out = me, in, right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
	bool good = true;

	(void)arg;
	for (int i = 0; i < rounds; i++) {
		MPI_Sendrecv(&out, 1, MPI_INT, right, 0, &in, 1, MPI_INT, left, 0, comms[THREADS],
			     MPI_STATUS_IGNORE);
		good = good && in == left;
	}
	return (void *)(intptr_t)good;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS + 1];
	bool good = true;
	void *one;
	int level;

	begin(&argc, &argv, MPI_THREAD_MULTIPLE);
	if (argc > 1 && !strcmp(argv[1], "few"))
		rounds = FEW;
	PMPI_Query_thread(&level);
	for (int t = 0; t <= THREADS; t++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
	if (level == MPI_THREAD_MULTIPLE) {
		for (int t = 0; t < THREADS; t++)
			pthread_create(&threads[t], NULL, collectives, (void *)(intptr_t)t);
		pthread_create(&threads[THREADS], NULL, messages, NULL);
		for (int t = 0; t <= THREADS; t++) {
			pthread_join(threads[t], &one);
			good = good && one;
		}
	}
	check(good, level == MPI_THREAD_MULTIPLE ? "threads, each with a communicator" :
	      "threads, each with a communicator # SKIP this MPI has no MPI_THREAD_MULTIPLE");
	for (int t = 0; t <= THREADS; t++)
		MPI_Comm_free(&comms[t]);
	return end();
}
