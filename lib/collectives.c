// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The collectives by name: each makes a struct zcoll_call of its arguments, for one of the
 * three ways to call it.
 */
#include "internal.h"

/* ---- allreduce ---- */

static struct zcoll_call allreduce(const void *send, void *recv, uint64_t count, int dtype,
				   int op)
{
	return (struct zcoll_call){
		.size = sizeof(struct zcoll_call),
		.collective = ZCOLL_ALLREDUCE,
		.dtype = dtype,
		.op = op,
		.count = count,
		.send = send,
		.recv = recv,
	};
}

int zcoll_allreduce(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		    int dtype, int op)
{
	const struct zcoll_call call = allreduce(send, recv, count, dtype, op);

	return zcoll_call(comm, &call);
}

int zcoll_iallreduce(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		     int dtype, int op, struct zcoll_req **req)
{
	const struct zcoll_call call = allreduce(send, recv, count, dtype, op);

	return zcoll_icall(comm, &call, req);
}

int zcoll_prep_allreduce(struct io_uring_sqe *sqe, unsigned int ring_flags,
			 struct zcoll_comm *comm, struct zcoll_cmd *cmd, const void *send,
			 void *recv, uint64_t count, int dtype, int op)
{
	const struct zcoll_call call = allreduce(send, recv, count, dtype, op);

	return zcoll_prep_call(sqe, ring_flags, comm, cmd, &call);
}

/* ---- reduce-scatter ---- */

static struct zcoll_call reduce_scatter(const void *send, void *recv, uint64_t count,
					int dtype, int op)
{
	return (struct zcoll_call){
		.size = sizeof(struct zcoll_call),
		.collective = ZCOLL_REDUCE_SCATTER,
		.dtype = dtype,
		.op = op,
		.count = count,
		.send = send,
		.recv = recv,
	};
}

int zcoll_reduce_scatter(struct zcoll_comm *comm, const void *send, void *recv,
			 uint64_t count, int dtype, int op)
{
	const struct zcoll_call call = reduce_scatter(send, recv, count, dtype, op);

	return zcoll_call(comm, &call);
}

int zcoll_ireduce_scatter(struct zcoll_comm *comm, const void *send, void *recv,
			  uint64_t count, int dtype, int op, struct zcoll_req **req)
{
	const struct zcoll_call call = reduce_scatter(send, recv, count, dtype, op);

	return zcoll_icall(comm, &call, req);
}

int zcoll_prep_reduce_scatter(struct io_uring_sqe *sqe, unsigned int ring_flags,
			      struct zcoll_comm *comm, struct zcoll_cmd *cmd,
			      const void *send, void *recv, uint64_t count, int dtype,
			      int op)
{
	const struct zcoll_call call = reduce_scatter(send, recv, count, dtype, op);

	return zcoll_prep_call(sqe, ring_flags, comm, cmd, &call);
}

/* ---- allgather ---- */

static struct zcoll_call allgather(const void *send, void *recv, uint64_t count, int dtype)
{
	return (struct zcoll_call){
		.size = sizeof(struct zcoll_call),
		.collective = ZCOLL_ALLGATHER,
		.dtype = dtype,
		.count = count,
		.send = send,
		.recv = recv,
	};
}

int zcoll_allgather(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		    int dtype)
{
	const struct zcoll_call call = allgather(send, recv, count, dtype);

	return zcoll_call(comm, &call);
}

int zcoll_iallgather(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		     int dtype, struct zcoll_req **req)
{
	const struct zcoll_call call = allgather(send, recv, count, dtype);

	return zcoll_icall(comm, &call, req);
}

int zcoll_prep_allgather(struct io_uring_sqe *sqe, unsigned int ring_flags,
			 struct zcoll_comm *comm, struct zcoll_cmd *cmd, const void *send,
			 void *recv, uint64_t count, int dtype)
{
	const struct zcoll_call call = allgather(send, recv, count, dtype);

	return zcoll_prep_call(sqe, ring_flags, comm, cmd, &call);
}

/* ---- broadcast ---- */

static struct zcoll_call broadcast(const void *send, void *recv, uint64_t count, int dtype,
				   unsigned int root)
{
	return (struct zcoll_call){
		.size = sizeof(struct zcoll_call),
		.collective = ZCOLL_BROADCAST,
		.dtype = dtype,
		.root = root,
		.count = count,
		.send = send,
		.recv = recv,
	};
}

int zcoll_broadcast(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		    int dtype, unsigned int root)
{
	const struct zcoll_call call = broadcast(send, recv, count, dtype, root);

	return zcoll_call(comm, &call);
}

int zcoll_ibroadcast(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		     int dtype, unsigned int root, struct zcoll_req **req)
{
	const struct zcoll_call call = broadcast(send, recv, count, dtype, root);

	return zcoll_icall(comm, &call, req);
}

int zcoll_prep_broadcast(struct io_uring_sqe *sqe, unsigned int ring_flags,
			 struct zcoll_comm *comm, struct zcoll_cmd *cmd, const void *send,
			 void *recv, uint64_t count, int dtype, unsigned int root)
{
	const struct zcoll_call call = broadcast(send, recv, count, dtype, root);

	return zcoll_prep_call(sqe, ring_flags, comm, cmd, &call);
}

/* ---- reduce ---- */

static struct zcoll_call reduce(const void *send, void *recv, uint64_t count, int dtype,
				int op, unsigned int root)
{
	return (struct zcoll_call){
		.size = sizeof(struct zcoll_call),
		.collective = ZCOLL_REDUCE,
		.dtype = dtype,
		.op = op,
		.root = root,
		.count = count,
		.send = send,
		.recv = recv,
	};
}

int zcoll_reduce(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		 int dtype, int op, unsigned int root)
{
	const struct zcoll_call call = reduce(send, recv, count, dtype, op, root);

	return zcoll_call(comm, &call);
}

int zcoll_ireduce(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		  int dtype, int op, unsigned int root, struct zcoll_req **req)
{
	const struct zcoll_call call = reduce(send, recv, count, dtype, op, root);

	return zcoll_icall(comm, &call, req);
}

int zcoll_prep_reduce(struct io_uring_sqe *sqe, unsigned int ring_flags,
		      struct zcoll_comm *comm, struct zcoll_cmd *cmd, const void *send,
		      void *recv, uint64_t count, int dtype, int op, unsigned int root)
{
	const struct zcoll_call call = reduce(send, recv, count, dtype, op, root);

	return zcoll_prep_call(sqe, ring_flags, comm, cmd, &call);
}

/* ---- barrier ---- */

static struct zcoll_call barrier(void)
{
	return (struct zcoll_call){
		.size = sizeof(struct zcoll_call),
		.collective = ZCOLL_BARRIER,
	};
}

int zcoll_barrier(struct zcoll_comm *comm)
{
	const struct zcoll_call call = barrier();

	return zcoll_call(comm, &call);
}

int zcoll_ibarrier(struct zcoll_comm *comm, struct zcoll_req **req)
{
	const struct zcoll_call call = barrier();

	return zcoll_icall(comm, &call, req);
}

int zcoll_prep_barrier(struct io_uring_sqe *sqe, unsigned int ring_flags,
		       struct zcoll_comm *comm, struct zcoll_cmd *cmd)
{
	const struct zcoll_call call = barrier();

	return zcoll_prep_call(sqe, ring_flags, comm, cmd, &call);
}
