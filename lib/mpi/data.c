// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Data: copies between the user's memory and bounce memory, where elements lie one after
 * the other in the order of the type's signature.
 *
 * MPI_Pack() counts bytes in an int, so that much data is packed in parts. MPICH's takes no
 * MPI_BOTTOM: then buffer and type are shifted, one against the other.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "internal.h"

#define PART_BYTES	(1 << 30)

static MPI_Aint part_of(size_t size, MPI_Aint left)
{
	MPI_Aint most = size < PART_BYTES ? PART_BYTES / size : 1;

	return left < most ? left : most;
}

/* Pack or unpack one part; MPI_Pack() must give no more than the data, or else it is of no use */
static int copy_part(void *packed, char *data, int count, MPI_Datatype type, size_t size, bool pack)
{
	int at = 0, ret, bytes;

	if (count * size > INT_MAX)
		return -EOVERFLOW;
	bytes = count * size;
	if (pack)
		ret = PMPI_Pack(data, count, type, packed, bytes, &at, MPI_COMM_SELF);
	else
		ret = PMPI_Unpack(packed, bytes, &at, data, count, type, MPI_COMM_SELF);
	return ret == MPI_SUCCESS && at == bytes ? 0 : -EIO;
}

#define SHIFT	4096

/* The same data, and no buffer that is NULL; the type is to be freed */
static int shifted(struct zm_data *to, const struct zm_data *data)
{
	MPI_Aint back = -SHIFT;

	*to = *data;
	to->buf = (char *)data->buf + SHIFT;
	if (PMPI_Type_create_hindexed_block(1, 1, &back, data->type, &to->type) != MPI_SUCCESS)
		return -ENOMEM;
	PMPI_Type_commit(&to->type);
	return 0;
}

static int copy(void *packed, const struct zm_data *data, bool pack)
{
	size_t size = zm_type_size(data->type);
	MPI_Aint low, extent, part;
	int ret;

	PMPI_Type_get_extent(data->type, &low, &extent);
	for (MPI_Aint done = 0; done < data->count; done += part) {
		part = part_of(size, data->count - done);
		ret = copy_part((char *)packed + done * size, (char *)data->buf + done * extent,
				part, data->type, size, pack);
		if (ret)
			return ret;
	}
	return 0;
}

static int copy_typed(void *packed, const struct zm_data *data, bool pack)
{
	struct zm_data moved;
	int ret;

	if (data->buf != MPI_BOTTOM)
		return copy(packed, data, pack);
	ret = shifted(&moved, data);
	if (ret)
		return ret;
	ret = copy(packed, &moved, pack);
	PMPI_Type_free(&moved.type);
	return ret;
}

/**
 * zm_data_load - copy the user's data into bounce memory
 * @to: to
 * @from: from
 * @bytes: of the data
 *
 * Return: 0. -EOVERFLOW: one element is beyond what MPI_Pack() can. -EIO: it failed.
 */
int zm_data_load(void *to, const struct zm_data *from, size_t bytes)
{
	if (!zm_type_is_plain(from->type))
		return copy_typed(to, from, true);
	memmove(to, from->buf, bytes);
	return 0;
}

/**
 * zm_data_store - copy from bounce memory to the user
 * @to: to
 * @from: from
 * @bytes: of the data
 *
 * Return: as zm_data_load().
 */
int zm_data_store(const struct zm_data *to, const void *from, size_t bytes)
{
	if (!zm_type_is_plain(to->type))
		return copy_typed((void *)from, to, false);
	memmove(to->buf, from, bytes);
	return 0;
}
