// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The calls that make persistent requests.
 */
#include "args.h"

int ZM_INIT(Allreduce)(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		       MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct zm_args a = zm_args_allreduce(send, recv, count, type, op, comm);
	int ret;

	if (zm_persistent(&a, request, &ret))
		return ret;
	return ZM_PINIT(Allreduce)(send, recv, count, type, op, comm, info, request);
}

int ZM_INIT(Reduce)(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		    int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct zm_args a = zm_args_reduce(send, recv, count, type, op, root, comm);
	int ret;

	if (zm_persistent(&a, request, &ret))
		return ret;
	return ZM_PINIT(Reduce)(send, recv, count, type, op, root, comm, info, request);
}

int ZM_INIT(Reduce_scatter)(const void *send, void *recv, const int counts[], MPI_Datatype type,
			    MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct zm_args a = zm_args_reduce_scatter(send, recv, counts, type, op, comm);
	int ret;

	if (zm_persistent(&a, request, &ret))
		return ret;
	return ZM_PINIT(Reduce_scatter)(send, recv, counts, type, op, comm, info, request);
}

int ZM_INIT(Reduce_scatter_block)(const void *send, void *recv, int count, MPI_Datatype type,
				  MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct zm_args a = zm_args_reduce_scatter_block(send, recv, count, type, op, comm);
	int ret;

	if (zm_persistent(&a, request, &ret))
		return ret;
	return ZM_PINIT(Reduce_scatter_block)(send, recv, count, type, op, comm, info, request);
}

int ZM_INIT(Allgather)(const void *send, int send_count, MPI_Datatype send_type, void *recv,
		       int recv_count, MPI_Datatype recv_type, MPI_Comm comm, MPI_Info info,
		       MPI_Request *request)
{
	struct zm_args a = zm_args_allgather(send, send_count, send_type, recv, recv_count,
					     recv_type, comm);
	int ret;

	if (zm_persistent(&a, request, &ret))
		return ret;
	return ZM_PINIT(Allgather)(send, send_count, send_type, recv, recv_count, recv_type, comm,
				   info, request);
}

int ZM_INIT(Bcast)(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
		   MPI_Request *request)
{
	struct zm_args a = zm_args_bcast(buf, count, type, root, comm);
	int ret;

	if (zm_persistent(&a, request, &ret))
		return ret;
	return ZM_PINIT(Bcast)(buf, count, type, root, comm, info, request);
}

int ZM_INIT(Barrier)(MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct zm_args a = zm_args_barrier(comm);
	int ret;

	if (zm_persistent(&a, request, &ret))
		return ret;
	return ZM_PINIT(Barrier)(comm, info, request);
}
