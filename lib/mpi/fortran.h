/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Fortran calls: what C has for Fortran's arguments; for the names see compat.h.
 *
 * A Fortran compiler calls one of four names; the module mpi_f08 calls a fifth, by which the
 * functions are defined. All arguments are addresses, handles are numbers, and some buffers
 * are told by the address of a variable.
 */
#ifndef LIBZCOLL_MPI_FORTRAN_H
#define LIBZCOLL_MPI_FORTRAN_H

#include "internal.h"

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
