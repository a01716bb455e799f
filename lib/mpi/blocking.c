// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The blocking calls.
 */
#include "args.h"

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		  MPI_Comm comm)
{
	struct zm_args a = zm_args_allreduce(send, recv, count, type, op, comm);
	int ret;

	if (zm_blocking(&a, &ret))
		return ret;
	return PMPI_Allreduce(send, recv, count, type, op, comm);
}

int MPI_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root,
	       MPI_Comm comm)
{
	struct zm_args a = zm_args_reduce(send, recv, count, type, op, root, comm);
	int ret;

	if (zm_blocking(&a, &ret))
		return ret;
	return PMPI_Reduce(send, recv, count, type, op, root, comm);
}

int MPI_Reduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type,
		       MPI_Op op, MPI_Comm comm)
{
	struct zm_args a = zm_args_reduce_scatter(send, recv, counts, type, op, comm);
	int ret;

	if (zm_blocking(&a, &ret))
		return ret;
	return PMPI_Reduce_scatter(send, recv, counts, type, op, comm);
}

int MPI_Reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			     MPI_Comm comm)
{
	struct zm_args a = zm_args_reduce_scatter_block(send, recv, count, type, op, comm);
	int ret;

	if (zm_blocking(&a, &ret))
		return ret;
	return PMPI_Reduce_scatter_block(send, recv, count, type, op, comm);
}

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv,
		  int recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
	struct zm_args a = zm_args_allgather(send, send_count, send_type, recv, recv_count,
					     recv_type, comm);
	int ret;

	if (zm_blocking(&a, &ret))
		return ret;
	return PMPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm);
}

int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	struct zm_args a = zm_args_bcast(buf, count, type, root, comm);
	int ret;

	if (zm_blocking(&a, &ret))
		return ret;
	return PMPI_Bcast(buf, count, type, root, comm);
}

int MPI_Barrier(MPI_Comm comm)
{
	struct zm_args a = zm_args_barrier(comm);
	int ret;

	if (zm_blocking(&a, &ret))
		return ret;
	return PMPI_Barrier(comm);
}
