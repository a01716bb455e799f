/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TAP of MPI programs: a test passes if it does on all ranks, and rank 0 prints it. What
 * goes between the ranks for that is not what is tested: PMPI functions.
 */
#ifndef MPI_CHECK_H
#define MPI_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>
#define INIT(name)	MPIX_##name##_init
#define CONTIGUOUS	MPI_Type_contiguous
#define CHECKS_ARGUMENTS	true
#define REDUCES_IN_PLACE	true
#else
#define INIT(name)	MPI_##name##_init
#define CONTIGUOUS	MPI_Type_contiguous_c	/* others have their own form */
#define CHECKS_ARGUMENTS	false	/* MPICH 4.0.2 does not check all */
#define REDUCES_IN_PLACE	false	/* and its MPI_Reduce() crashes */
#endif

static int me, ranks, done, failed;
static bool with_zcoll;	/* some things the MPIs themselves cannot do */

static inline void begin(int *argc, char ***argv, int threads)
{
	int provided;

	PMPI_Init_thread(argc, argv, threads, &provided);
	PMPI_Comm_rank(MPI_COMM_WORLD, &me);
	PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
	with_zcoll = !access("/dev/zcoll", F_OK);
}

/* One test, called by all ranks of the world */
static inline void check(bool good, const char *name)
{
	int mine = good, all;

	PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (!good) {
		printf("# rank %d: wrong: %s\n", me, name);
		fflush(stdout);
	}
	PMPI_Barrier(MPI_COMM_WORLD);
	done++;
	failed += !all;
	if (!me)
		printf("%sok %d - %s\n", all ? "" : "not ", done, name);
	fflush(stdout);
}

static inline int end(void)
{
	if (!me)
		printf("1..%d\n", done);
	fflush(stdout);
	PMPI_Finalize();
	return failed != 0;
}

#endif /* MPI_CHECK_H */
