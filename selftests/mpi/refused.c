// SPDX-License-Identifier: GPL-2.0
/*
 * An MPI that refuses, on one rank, an attribute that the library wants to keep: then no rank's
 * calls are taken on that communicator, and all results are right.
 */
#include <dlfcn.h>

#include "check.h"

#define N	100

static int refusals;	/* to come, on this rank */

/* The program's own comes before the MPI's, also for libraries */
int PMPI_Comm_set_attr(MPI_Comm comm, int keyval, void *value)
{
	int (*real)(MPI_Comm, int, void *) = dlsym(RTLD_NEXT, "PMPI_Comm_set_attr");

	if (refusals && refusals--)
		return MPI_ERR_OTHER;
	return real(comm, keyval, value);
}

static bool sums(MPI_Comm comm)
{
	int in[N], out[N];
	bool good = true;

	for (int i = 0; i < N; i++)
		in[i] = me + i;
	MPI_Allreduce(in, out, N, MPI_INT, MPI_MAX, comm);
	for (int i = 0; i < N; i++)
		good = good && out[i] == ranks - 1 + i;
	return good;
}

int main(int argc, char **argv)
{
	MPI_Comm second;

	begin(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Barrier(MPI_COMM_WORLD);	/* is taken */
	check(sums(MPI_COMM_WORLD), "before");

	MPI_Comm_dup(MPI_COMM_WORLD, &second);
	refusals = with_zcoll && me == 1;
	check(sums(second), "one rank is refused an attribute");
	check(!refusals, "which the library had asked for");
	check(sums(second), "and again, by the MPI");
	MPI_Comm_free(&second);

	check(sums(MPI_COMM_WORLD), "another communicator is not concerned");
	return end();
}
