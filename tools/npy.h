/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * NumPy files (.npy, format versions 1 to 3): a header, then the elements.
 *
 * The header is the magic string, a version, its own length, and a Python literal
 * such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. The parser
 * takes exactly that: these three keys, little-endian numbers, nothing else. It
 * works on memory and reads no byte outside it, whatever the bytes are.
 */
#ifndef ZCOLL_NPY_H
#define ZCOLL_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPY_MAX_DIMS	64		/* of NumPy 2 */
#define NPY_MAX_HEADER	(64 * 1024)	/* of numbers; more is not an array of them */
#define NPY_DESCR_MAX	16
#define NPY_ERROR_MAX	256

/**
 * struct npy - what a header says
 * @descr: element type in NumPy's notation, for instance "<f4"
 * @dtype: the same as ZCOLL_*, 0: a two-byte type without a meaning of its own
 *	("<V2"), as programs write bf16
 * @itemsize: bytes of an element
 * @fortran_order: first index runs fastest
 * @ndim: number of dimensions, 0 for a single number
 * @shape: length of each
 * @count: elements in all
 * @data_offset: bytes before the first element
 * @data_bytes: bytes of all elements
 */
struct npy {
	char descr[NPY_DESCR_MAX];
	int dtype;
	size_t itemsize;
	bool fortran_order;
	unsigned int ndim;
	uint64_t shape[NPY_MAX_DIMS];
	uint64_t count;
	uint64_t data_offset;
	uint64_t data_bytes;
};

/* Does a file that begins so claim to be a .npy file? */
bool npy_magic(const void *start, size_t len);

/**
 * npy_parse - read a header
 * @npy: output
 * @start: the first bytes of a file, best NPY_MAX_HEADER of them
 * @len: how many there are
 * @error: gets a text when the header is refused
 *
 * Returns 0 or -1. Whether the file is as long as data_offset + data_bytes is left
 * to the caller.
 */
int npy_parse(struct npy *npy, const void *start, size_t len, char error[NPY_ERROR_MAX]);

/* The shape as Python writes it, "(3, 4)"; cut to @len */
void npy_shape_text(const uint64_t *shape, unsigned int ndim, char *text, size_t len);

#endif /* ZCOLL_NPY_H */
