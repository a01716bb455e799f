/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What differs between the MPIs, and nothing else does.
 *
 * Persistent collective operations are MPI 4's; Open MPI 4 has them as an extension, of
 * other names. Its Fortran layer calls the PMPI functions directly, so all of its names are
 * defined here. MPICH's calls the C functions, but for those of the module mpi_f08 that have
 * no buffer, MPI_Wait() and its like, which call PMPI: fortran_wait.c is for them, too.
 */
#ifndef LIBZCOLL_MPI_COMPAT_H
#define LIBZCOLL_MPI_COMPAT_H

#include <mpi.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>
#define ZM_MPI_NAME		"Open MPI"
#define ZM_OTHER_NAME		"MPICH"
#define ZM_OTHER_LIBS		"libmpich.so.12", "libmpi.so.12"
#define ZM_OTHER_FOLDER		"mpich"
#define ZM_F08(name)		ompi_##name##_f
#define ZM_F_STATUS_IGNORE	mpi_fortran_status_ignore_
#define ZM_F_STATUSES_IGNORE	mpi_fortran_statuses_ignore_
extern int mpi_fortran_bottom_, mpi_fortran_in_place_, mpi_fortran_status_ignore_,
	mpi_fortran_statuses_ignore_;

/* The other four names of ZM_F08(@name); @mpi is mpi or mpix */
#define ZM_ALIAS(of, name)	extern __typeof__(of) name __attribute__((alias(#of)))
#define ZM_FORTRAN(mpi, name, upper)				\
	ZM_ALIAS(o##mpi##_##name##_f, mpi##_##name);		\
	ZM_ALIAS(o##mpi##_##name##_f, mpi##_##name##_);		\
	ZM_ALIAS(o##mpi##_##name##_f, mpi##_##name##__);	\
	ZM_ALIAS(o##mpi##_##name##_f, upper)
#else
#define ZM_MPI_NAME		"MPICH"
#define ZM_OTHER_NAME		"Open MPI"
#define ZM_OTHER_LIBS		"libmpi.so.40"
#define ZM_OTHER_FOLDER		"openmpi"
#define ZM_F08(name)		mpi_##name##_f08_
#define ZM_F_STATUS_IGNORE	MPIR_F08_MPI_STATUS_IGNORE_OBJ
#define ZM_F_STATUSES_IGNORE	MPIR_F08_MPI_STATUSES_IGNORE_OBJ
#define ZM_FORTRAN(mpi, name, upper)	/* they call the C functions */
#endif

/* A persistent collective's function: ours, and the MPI's own */
#if MPI_VERSION >= 4
#define ZM_INIT(name)		MPI_##name##_init
#define ZM_PINIT(name)		PMPI_##name##_init
#else
#define ZM_INIT(name)		MPIX_##name##_init
#define ZM_PINIT(name)		PMPIX_##name##_init
#endif

/**
 * struct zm_envelope - how a type was made
 * @integers: numbers that went into it
 * @addresses: addresses
 * @larges: numbers of MPI_Count
 * @types: types
 * @combiner: MPI_COMBINER_*
 */
struct zm_envelope {
	MPI_Count integers, addresses, larges, types;
	int combiner;
};

#if MPI_VERSION >= 4
/* The functions of other versions refuse types that have numbers of MPI_Count */
static inline void zm_envelope_get(MPI_Datatype type, struct zm_envelope *e)
{
	PMPI_Type_get_envelope_c(type, &e->integers, &e->addresses, &e->larges, &e->types,
				 &e->combiner);
}

/* The one type that @type, of at most one number, was made of */
static inline void zm_envelope_type(MPI_Datatype type, const struct zm_envelope *e,
				    MPI_Datatype *of)
{
	MPI_Aint address;
	MPI_Count large;
	int number;

	PMPI_Type_get_contents_c(type, e->integers, e->addresses, e->larges, e->types, &number,
				 &address, &large, of);
}
#else
static inline void zm_envelope_get(MPI_Datatype type, struct zm_envelope *e)
{
	int integers, addresses, types;

	PMPI_Type_get_envelope(type, &integers, &addresses, &types, &e->combiner);
	e->integers = integers;
	e->addresses = addresses;
	e->larges = 0;
	e->types = types;
}

static inline void zm_envelope_type(MPI_Datatype type, const struct zm_envelope *e,
				    MPI_Datatype *of)
{
	MPI_Aint address;
	int number;

	PMPI_Type_get_contents(type, e->integers, e->addresses, e->types, &number, &address, of);
}
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
