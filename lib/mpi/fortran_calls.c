// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The collective calls of Fortran programs, for Open MPI.
 */
#include "fortran.h"

static void *zm_f_buf(void *buf)
{
	if (buf == &mpi_fortran_in_place_)
		return MPI_IN_PLACE;
	return buf == &mpi_fortran_bottom_ ? MPI_BOTTOM : buf;
}

/* ------------------------------------------------------------------ blocking */

void ompi_allreduce_f(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
		      MPI_Fint *comm, MPI_Fint *ierr)
{
	int ret = MPI_Allreduce(zm_f_buf(send), zm_f_buf(recv), *count, ZM_TYPE(type), ZM_OP(op),
				ZM_COMM(comm));

	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, allreduce, MPI_ALLREDUCE);

void ompi_reduce_f(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
		   MPI_Fint *root, MPI_Fint *comm, MPI_Fint *ierr)
{
	int ret = MPI_Reduce(zm_f_buf(send), zm_f_buf(recv), *count, ZM_TYPE(type), ZM_OP(op),
			     *root, ZM_COMM(comm));

	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, reduce, MPI_REDUCE);

void ompi_reduce_scatter_f(void *send, void *recv, MPI_Fint *counts, MPI_Fint *type, MPI_Fint *op,
			   MPI_Fint *comm, MPI_Fint *ierr)
{
	int ret = MPI_Reduce_scatter(zm_f_buf(send), zm_f_buf(recv), counts, ZM_TYPE(type),
				     ZM_OP(op), ZM_COMM(comm));

	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, reduce_scatter, MPI_REDUCE_SCATTER);

void ompi_reduce_scatter_block_f(void *send, void *recv, MPI_Fint *count, MPI_Fint *type,
				 MPI_Fint *op, MPI_Fint *comm, MPI_Fint *ierr)
{
	int ret = MPI_Reduce_scatter_block(zm_f_buf(send), zm_f_buf(recv), *count, ZM_TYPE(type),
					   ZM_OP(op), ZM_COMM(comm));

	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, reduce_scatter_block, MPI_REDUCE_SCATTER_BLOCK);

void ompi_allgather_f(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
		      MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *comm, MPI_Fint *ierr)
{
	int ret = MPI_Allgather(zm_f_buf(send), *send_count, ZM_TYPE(send_type), zm_f_buf(recv),
				*recv_count, ZM_TYPE(recv_type), ZM_COMM(comm));

	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, allgather, MPI_ALLGATHER);

void ompi_bcast_f(void *buf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root, MPI_Fint *comm,
		  MPI_Fint *ierr)
{
	int ret = MPI_Bcast(zm_f_buf(buf), *count, ZM_TYPE(type), *root, ZM_COMM(comm));

	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, bcast, MPI_BCAST);

void ompi_barrier_f(MPI_Fint *comm, MPI_Fint *ierr)
{
	int ret = MPI_Barrier(ZM_COMM(comm));

	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, barrier, MPI_BARRIER);

/* -------------------------------------------------------------- non-blocking */

void ompi_iallreduce_f(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
		       MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = MPI_Iallreduce(zm_f_buf(send), zm_f_buf(recv), *count, ZM_TYPE(type), ZM_OP(op),
				 ZM_COMM(comm), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, iallreduce, MPI_IALLREDUCE);

void ompi_ireduce_f(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
		    MPI_Fint *root, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = MPI_Ireduce(zm_f_buf(send), zm_f_buf(recv), *count, ZM_TYPE(type), ZM_OP(op),
			      *root, ZM_COMM(comm), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, ireduce, MPI_IREDUCE);

void ompi_ireduce_scatter_f(void *send, void *recv, MPI_Fint *counts, MPI_Fint *type, MPI_Fint *op,
			    MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = MPI_Ireduce_scatter(zm_f_buf(send), zm_f_buf(recv), counts, ZM_TYPE(type),
				      ZM_OP(op), ZM_COMM(comm), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, ireduce_scatter, MPI_IREDUCE_SCATTER);

void ompi_ireduce_scatter_block_f(void *send, void *recv, MPI_Fint *count, MPI_Fint *type,
				  MPI_Fint *op, MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = MPI_Ireduce_scatter_block(zm_f_buf(send), zm_f_buf(recv), *count, ZM_TYPE(type),
					    ZM_OP(op), ZM_COMM(comm), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, ireduce_scatter_block, MPI_IREDUCE_SCATTER_BLOCK);

void ompi_iallgather_f(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
		       MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *comm,
		       MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = MPI_Iallgather(zm_f_buf(send), *send_count, ZM_TYPE(send_type), zm_f_buf(recv),
				 *recv_count, ZM_TYPE(recv_type), ZM_COMM(comm), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, iallgather, MPI_IALLGATHER);

void ompi_ibcast_f(void *buf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root, MPI_Fint *comm,
		   MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = MPI_Ibcast(zm_f_buf(buf), *count, ZM_TYPE(type), *root, ZM_COMM(comm),
			     &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, ibcast, MPI_IBCAST);

void ompi_ibarrier_f(MPI_Fint *comm, MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = MPI_Ibarrier(ZM_COMM(comm), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpi, ibarrier, MPI_IBARRIER);

/* ---------------------------------------------------------------- persistent */

void ompix_allreduce_init_f(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
			    MPI_Fint *comm, MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = ZM_INIT(Allreduce)(zm_f_buf(send), zm_f_buf(recv), *count, ZM_TYPE(type),
				     ZM_OP(op), ZM_COMM(comm), ZM_INFO(info), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpix, allreduce_init, MPIX_ALLREDUCE_INIT);

void ompix_reduce_init_f(void *send, void *recv, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
			 MPI_Fint *root, MPI_Fint *comm, MPI_Fint *info, MPI_Fint *request,
			 MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = ZM_INIT(Reduce)(zm_f_buf(send), zm_f_buf(recv), *count, ZM_TYPE(type), ZM_OP(op),
				  *root, ZM_COMM(comm), ZM_INFO(info), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpix, reduce_init, MPIX_REDUCE_INIT);

void ompix_reduce_scatter_init_f(void *send, void *recv, MPI_Fint *counts, MPI_Fint *type,
				 MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info, MPI_Fint *request,
				 MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = ZM_INIT(Reduce_scatter)(zm_f_buf(send), zm_f_buf(recv), counts, ZM_TYPE(type),
					  ZM_OP(op), ZM_COMM(comm), ZM_INFO(info), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpix, reduce_scatter_init, MPIX_REDUCE_SCATTER_INIT);

void ompix_reduce_scatter_block_init_f(void *send, void *recv, MPI_Fint *count, MPI_Fint *type,
				       MPI_Fint *op, MPI_Fint *comm, MPI_Fint *info,
				       MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = ZM_INIT(Reduce_scatter_block)(zm_f_buf(send), zm_f_buf(recv), *count,
						ZM_TYPE(type), ZM_OP(op), ZM_COMM(comm),
						ZM_INFO(info), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpix, reduce_scatter_block_init, MPIX_REDUCE_SCATTER_BLOCK_INIT);

void ompix_allgather_init_f(void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *recv,
			    MPI_Fint *recv_count, MPI_Fint *recv_type, MPI_Fint *comm,
			    MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = ZM_INIT(Allgather)(zm_f_buf(send), *send_count, ZM_TYPE(send_type),
				     zm_f_buf(recv), *recv_count, ZM_TYPE(recv_type),
				     ZM_COMM(comm), ZM_INFO(info), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpix, allgather_init, MPIX_ALLGATHER_INIT);

void ompix_bcast_init_f(void *buf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root, MPI_Fint *comm,
			MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = ZM_INIT(Bcast)(zm_f_buf(buf), *count, ZM_TYPE(type), *root, ZM_COMM(comm),
				 ZM_INFO(info), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpix, bcast_init, MPIX_BCAST_INIT);

void ompix_barrier_init_f(MPI_Fint *comm, MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierr)
{
	MPI_Request c_request;
	int ret = ZM_INIT(Barrier)(ZM_COMM(comm), ZM_INFO(info), &c_request);

	if (ret == MPI_SUCCESS)
		*request = PMPI_Request_c2f(c_request);
	zm_f_return(ierr, ret);
}
ZM_FORTRAN(mpix, barrier_init, MPIX_BARRIER_INIT);
