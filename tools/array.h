/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Array files: an input that is read piece by piece, and an output that appears
 * under its name only when it is complete.
 *
 * An array is a NumPy file (see npy.h), known by its first bytes, or a *raw* file
 * of nothing but elements, whose type the user has to name.
 */
#ifndef ZCOLL_ARRAY_H
#define ZCOLL_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include "npy.h"

/**
 * struct array_in - an input
 * @path: as the user gave it
 * @fd: open for reading
 * @raw: no header; then @npy has only dtype, itemsize, count and data_bytes
 * @npy: what the header says
 */
struct array_in {
	const char *path;
	int fd;
	bool raw;
	struct npy npy;
};

/**
 * struct array_out - an output
 * @path: where it shall appear
 * @temp: where it is written, NULL: @path is a device or pipe, written at once
 * @fd: open for writing
 */
struct array_out {
	char *path;
	char *temp;
	int fd;
};

/* All return 0 or an exit status, after a message that names the file */

/* @dtype: the type the user named, 0: none */
int array_open(struct array_in *in, const char *path, int dtype);
int array_read(const struct array_in *in, uint64_t offset, void *buf, size_t len);
void array_close(struct array_in *in);

/* Copies the header of @in, so type, order and shape stay */
int array_create(struct array_out *out, const char *path, const struct array_in *in);
int array_write(const struct array_out *out, const void *buf, size_t len);
int array_commit(struct array_out *out);

/* Without array_commit() before, nothing stays. A signal that ends us does the same. */
void array_discard(struct array_out *out);

#endif /* ZCOLL_ARRAY_H */
