/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The arguments of each collective call, the same for its three forms.
 */
#ifndef LIBZCOLL_MPI_ARGS_H
#define LIBZCOLL_MPI_ARGS_H

#include "internal.h"

static inline struct zm_data zm_data(const void *buf, MPI_Aint count, MPI_Datatype type)
{
	return (struct zm_data){ .buf = (void *)buf, .count = count, .type = type };
}

static inline struct zm_args zm_args_allreduce(const void *send, void *recv, int count,
					       MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return (struct zm_args){
		.collective = ZCOLL_ALLREDUCE, .send = zm_data(send, count, type),
		.recv = zm_data(recv, count, type), .op = op, .comm = comm,
	};
}

static inline struct zm_args zm_args_reduce(const void *send, void *recv, int count,
					    MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
	return (struct zm_args){
		.collective = ZCOLL_REDUCE, .send = zm_data(send, count, type),
		.recv = zm_data(recv, count, type), .op = op, .root = root, .comm = comm,
	};
}

static inline struct zm_args zm_args_reduce_scatter_block(const void *send, void *recv, int count,
							  MPI_Datatype type, MPI_Op op,
							  MPI_Comm comm)
{
	return (struct zm_args){
		.collective = ZCOLL_REDUCE_SCATTER, .send = zm_data(send, count, type),
		.recv = zm_data(recv, count, type), .op = op, .comm = comm,
	};
}

/* All ranks have the same @counts */
static inline struct zm_args zm_args_reduce_scatter(const void *send, void *recv,
						    const int counts[], MPI_Datatype type,
						    MPI_Op op, MPI_Comm comm)
{
	struct zm_args a = zm_args_reduce_scatter_block(send, recv, 0, type, op, comm);
	int n = 0;

	if (comm == MPI_COMM_NULL || !counts)
		return a;
	PMPI_Comm_size(comm, &n);
	a.recv.count = counts[0];
	for (int i = 1; i < n; i++)
		a.unequal |= counts[i] != counts[0];
	return a;
}

static inline struct zm_args zm_args_allgather(const void *send, int send_count,
					       MPI_Datatype send_type, void *recv, int recv_count,
					       MPI_Datatype recv_type, MPI_Comm comm)
{
	return (struct zm_args){
		.collective = ZCOLL_ALLGATHER, .send = zm_data(send, send_count, send_type),
		.recv = zm_data(recv, recv_count, recv_type), .comm = comm,
	};
}

static inline struct zm_args zm_args_bcast(void *buf, int count, MPI_Datatype type, int root,
					   MPI_Comm comm)
{
	return (struct zm_args){
		.collective = ZCOLL_BROADCAST, .recv = zm_data(buf, count, type), .root = root,
		.comm = comm,
	};
}

static inline struct zm_args zm_args_barrier(MPI_Comm comm)
{
	return (struct zm_args){ .collective = ZCOLL_BARRIER, .comm = comm };
}

#endif /* LIBZCOLL_MPI_ARGS_H */
