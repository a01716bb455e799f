/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What differs between the MPIs, and nothing else does.
 *
 * Persistent collective operations are MPI 4's; Open MPI 4 has them as an extension, of
 * other names. Its Fortran layer calls the PMPI functions directly, so fortran_*.c are
 * for it alone; MPICH's calls the C functions.
 */
#ifndef LIBZCOLL_MPI_COMPAT_H
#define LIBZCOLL_MPI_COMPAT_H

#include <mpi.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>
#define ZM_MPI_NAME		"Open MPI"
#define ZM_OTHER_NAME		"MPICH"
#define ZM_OTHER_LIB		"libmpich.so.12"
#define ZM_OTHER_FOLDER		"mpich"
#else
#define ZM_MPI_NAME		"MPICH"
#define ZM_OTHER_NAME		"Open MPI"
#define ZM_OTHER_LIB		"libmpi.so.40"
#define ZM_OTHER_FOLDER		"openmpi"
#endif

/* A persistent collective's function: ours, and the MPI's own */
#if MPI_VERSION >= 4
#define ZM_INIT(name)		MPI_##name##_init
#define ZM_PINIT(name)		PMPI_##name##_init
#else
#define ZM_INIT(name)		MPIX_##name##_init
#define ZM_PINIT(name)		PMPIX_##name##_init
#endif

/* Types of 16-bit floating point, with a comma each */
#ifdef MPIX_C_FLOAT16
#define ZM_FLOAT16_TYPES	MPIX_C_FLOAT16,
#elif defined(MPI_REAL2)
#define ZM_FLOAT16_TYPES	MPI_REAL2,
#else
#define ZM_FLOAT16_TYPES
#endif

#endif /* LIBZCOLL_MPI_COMPAT_H */
