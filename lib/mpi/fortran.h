/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Fortran calls of Open MPI: names, and what C has for Fortran's arguments.
 *
 * A Fortran compiler calls one of four names; the module mpi_f08 calls a fifth. All
 * arguments are addresses, handles are numbers, and some buffers are told by the address
 * of a variable.
 */
#ifndef LIBZCOLL_MPI_FORTRAN_H
#define LIBZCOLL_MPI_FORTRAN_H

#include "internal.h"

/* The five names of a function, of which ompi_NAME_f is defined; @mpi is mpi or mpix */
#define ZM_ALIAS(of, name)	extern __typeof__(of) name __attribute__((alias(#of)))
#define ZM_FORTRAN(mpi, name, upper)				\
	ZM_ALIAS(o##mpi##_##name##_f, mpi##_##name);		\
	ZM_ALIAS(o##mpi##_##name##_f, mpi##_##name##_);		\
	ZM_ALIAS(o##mpi##_##name##_f, mpi##_##name##__);	\
	ZM_ALIAS(o##mpi##_##name##_f, upper)

extern int mpi_fortran_bottom_, mpi_fortran_in_place_, mpi_fortran_status_ignore_,
	mpi_fortran_statuses_ignore_;

static inline void *zm_f_buf(void *buf)
{
	if (buf == &mpi_fortran_in_place_)
		return MPI_IN_PLACE;
	return buf == &mpi_fortran_bottom_ ? MPI_BOTTOM : buf;
}

static inline void zm_f_return(MPI_Fint *ierr, int ret)
{
	if (ierr)
		*ierr = ret;
}

#define ZM_TYPE(f)	PMPI_Type_f2c(*(f))
#define ZM_OP(f)	PMPI_Op_f2c(*(f))
#define ZM_COMM(f)	PMPI_Comm_f2c(*(f))
#define ZM_INFO(f)	PMPI_Info_f2c(*(f))

#endif /* LIBZCOLL_MPI_FORTRAN_H */
