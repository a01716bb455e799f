// SPDX-License-Identifier: GPL-2.0
/*
 * Back end: MPI_Allreduce, built once with each MPI's compiler.
 */
#include <mpi.h>
#include <sys/mman.h>

#include "rank.h"

static void mpi_start(struct back_end *be, struct arena *arena, const char *arg)
{
	int rank, nranks;

	(void)arena;
	(void)arg;
	MPI_Init(NULL, NULL);	/* an error ends the job, as is MPI's default */
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	be->rank = rank;
	be->nranks = nranks;
}

static void mpi_barrier(struct back_end *be)
{
	(void)be;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void mpi_allreduce(struct back_end *be, const float *send, float *recv, size_t count)
{
	(void)be;
	MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void mpi_stop(struct back_end *be)
{
	(void)be;
	MPI_Finalize();
}

struct back_end back_end = {
	.mmap_flags = MAP_PRIVATE,
	.start = mpi_start,
	.barrier = mpi_barrier,
	.allreduce = mpi_allreduce,
	.stop = mpi_stop,
};
