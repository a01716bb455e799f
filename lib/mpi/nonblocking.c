// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The non-blocking calls.
 */
#include "args.h"

int MPI_Iallreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		   MPI_Comm comm, MPI_Request *request)
{
	struct zm_args a = zm_args_allreduce(send, recv, count, type, op, comm);
	int ret;

	if (zm_nonblocking(&a, request, &ret))
		return ret;
	return PMPI_Iallreduce(send, recv, count, type, op, comm, request);
}

int MPI_Ireduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root,
		MPI_Comm comm, MPI_Request *request)
{
	struct zm_args a = zm_args_reduce(send, recv, count, type, op, root, comm);
	int ret;

	if (zm_nonblocking(&a, request, &ret))
		return ret;
	return PMPI_Ireduce(send, recv, count, type, op, root, comm, request);
}

int MPI_Ireduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type,
			MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	struct zm_args a = zm_args_reduce_scatter(send, recv, counts, type, op, comm);
	int ret;

	if (zm_nonblocking(&a, request, &ret))
		return ret;
	return PMPI_Ireduce_scatter(send, recv, counts, type, op, comm, request);
}

int MPI_Ireduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type,
			      MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	struct zm_args a = zm_args_reduce_scatter_block(send, recv, count, type, op, comm);
	int ret;

	if (zm_nonblocking(&a, request, &ret))
		return ret;
	return PMPI_Ireduce_scatter_block(send, recv, count, type, op, comm, request);
}

int MPI_Iallgather(const void *send, int send_count, MPI_Datatype send_type, void *recv,
		   int recv_count, MPI_Datatype recv_type, MPI_Comm comm, MPI_Request *request)
{
	struct zm_args a = zm_args_allgather(send, send_count, send_type, recv, recv_count,
					     recv_type, comm);
	int ret;

	if (zm_nonblocking(&a, request, &ret))
		return ret;
	return PMPI_Iallgather(send, send_count, send_type, recv, recv_count, recv_type, comm,
			       request);
}

int MPI_Ibcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm,
	       MPI_Request *request)
{
	struct zm_args a = zm_args_bcast(buf, count, type, root, comm);
	int ret;

	if (zm_nonblocking(&a, request, &ret))
		return ret;
	return PMPI_Ibcast(buf, count, type, root, comm, request);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	struct zm_args a = zm_args_barrier(comm);
	int ret;

	if (zm_nonblocking(&a, request, &ret))
		return ret;
	return PMPI_Ibarrier(comm, request);
}
