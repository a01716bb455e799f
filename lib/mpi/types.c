// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Datatypes and operators: what zcoll's name for them is, and how they lie in memory.
 *
 * An MPI type is an element type of ours by its kind (signed, unsigned, floating point) and
 * its size. A type is *plain* if its elements lie in memory as they would be sent: named
 * and without gaps, or such ones one after the other.
 */
#include "internal.h"

#define ARRAY_SIZE(x)	(sizeof(x) / sizeof((x)[0]))

/* The most frequent ones first. Characters and logicals are not to be reduced by our operators */
static const MPI_Datatype floats[] = {
	MPI_DOUBLE, MPI_FLOAT, MPI_DOUBLE_PRECISION, MPI_REAL, MPI_REAL4, MPI_REAL8,
	ZM_FLOAT16_TYPES
};

static const MPI_Datatype integers[] = {
	MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_INT32_T, MPI_INT64_T, MPI_INTEGER, MPI_SHORT,
	MPI_SIGNED_CHAR, MPI_INT8_T, MPI_INT16_T, MPI_AINT, MPI_OFFSET, MPI_COUNT,
	MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8,
};

static const MPI_Datatype naturals[] = {
	MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT32_T, MPI_UINT64_T,
	MPI_UNSIGNED_SHORT, MPI_UNSIGNED_CHAR, MPI_UINT8_T, MPI_UINT16_T,
};

#define SIZES	9	/* one more than the largest element's bytes */

/* Each kind's element types, by bytes */
static const int floats_by_size[SIZES] = { [2] = ZCOLL_FP16, [4] = ZCOLL_FP32, [8] = ZCOLL_FP64 };
static const int integers_by_size[SIZES] = {
	[1] = ZCOLL_INT8, [2] = ZCOLL_INT16, [4] = ZCOLL_INT32, [8] = ZCOLL_INT64,
};
static const int naturals_by_size[SIZES] = {
	[1] = ZCOLL_UINT8, [2] = ZCOLL_UINT16, [4] = ZCOLL_UINT32, [8] = ZCOLL_UINT64,
};

static const struct kind {
	const MPI_Datatype *types;
	size_t n;
	const int *by_size;
} kinds[] = {
	{ floats, ARRAY_SIZE(floats), floats_by_size },
	{ integers, ARRAY_SIZE(integers), integers_by_size },
	{ naturals, ARRAY_SIZE(naturals), naturals_by_size },
};

static const struct kind *kind_of(MPI_Datatype type)
{
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (size_t i = 0; i < kinds[k].n; i++)
			if (kinds[k].types[i] == type)
				return &kinds[k];
	return NULL;
}

/* How a type was made, and of which one if it was made of one; to be freed by free_made() */
static int made_of(MPI_Datatype type, MPI_Datatype *of)
{
	struct zm_envelope e;

	*of = MPI_DATATYPE_NULL;
	zm_envelope_get(type, &e);
	if (e.combiner == MPI_COMBINER_DUP || e.combiner == MPI_COMBINER_CONTIGUOUS)
		zm_envelope_type(type, &e, of);
	return e.combiner;
}

/*
 * Named types must not be freed, others that MPI_Type_get_contents() gave must be. Those of
 * MPI_Type_create_f90_real() and its like count as predefined, though they are not named.
 */
static void free_made(MPI_Datatype *type)
{
	struct zm_envelope e;

	zm_envelope_get(*type, &e);
	if (e.combiner != MPI_COMBINER_NAMED && e.combiner != MPI_COMBINER_F90_REAL &&
	    e.combiner != MPI_COMBINER_F90_COMPLEX && e.combiner != MPI_COMBINER_F90_INTEGER)
		PMPI_Type_free(type);
}

/**
 * zm_type_size - bytes of a type's signature
 * @type: type
 */
size_t zm_type_size(MPI_Datatype type)
{
	MPI_Count size;

	PMPI_Type_size_x(type, &size);
	return size < 0 ? 0 : size;
}

/**
 * zm_type_element - element type of a type, or of what it duplicates
 * @type: type
 *
 * Return: ZCOLL_INT8 ..., or 0: there is none.
 */
int zm_type_element(MPI_Datatype type)
{
	const struct kind *kind = kind_of(type);
	MPI_Datatype of;
	int element = 0;
	size_t size;

	if (kind) {
		size = zm_type_size(type);
		return size < SIZES ? kind->by_size[size] : 0;
	}
	if (made_of(type, &of) == MPI_COMBINER_DUP)
		element = zm_type_element(of);
	if (of != MPI_DATATYPE_NULL)
		free_made(&of);
	return element;
}

static bool has_no_gaps(MPI_Datatype type)
{
	MPI_Count low, extent;

	PMPI_Type_get_extent_x(type, &low, &extent);
	return low == 0 && extent == (MPI_Count)zm_type_size(type);
}

/**
 * zm_type_is_plain - do its elements lie in memory as they would be sent?
 * @type: type
 */
bool zm_type_is_plain(MPI_Datatype type)
{
	MPI_Datatype of;
	bool plain = false;
	int combiner;

	if (kind_of(type))
		return true;
	combiner = made_of(type, &of);
	if (combiner == MPI_COMBINER_NAMED)
		return has_no_gaps(type);
	if (of != MPI_DATATYPE_NULL) {
		plain = zm_type_is_plain(of);
		free_made(&of);
	}
	return plain;
}

/**
 * zm_op_number - zcoll's operator
 * @op: op
 *
 * Return: ZCOLL_SUM ..., or 0: there is none.
 */
int zm_op_number(MPI_Op op)
{
	if (op == MPI_SUM)
		return ZCOLL_SUM;
	if (op == MPI_MAX)
		return ZCOLL_MAX;
	if (op == MPI_MIN)
		return ZCOLL_MIN;
	return op == MPI_PROD ? ZCOLL_PROD : 0;
}
