// SPDX-License-Identifier: GPL-2.0
/*
 * The parser of NumPy headers: takes what NumPy writes, refuses all else with a
 * text, and reads no byte beyond its input, whatever that is.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zcoll.h>

#include "../../tools/npy.h"
#include "../lib/tap.h"

static char error[NPY_ERROR_MAX];

/* Builds a file's beginning of format @version around @dict; returns its length */
static size_t build(char *to, int version, const char *dict)
{
	size_t len = strlen(dict) + 1, before = version == 1 ? 10 : 12, i;

	memcpy(to, "\x93NUMPY", 6);
	to[6] = (char)version;
	to[7] = 0;
	for (i = 8; i < before; i++)
		to[i] = (char)(len >> 8 * (i - 8));
	memcpy(to + before, dict, len - 1);
	to[before + len - 1] = '\n';
	return before + len;
}

static int parse(struct npy *npy, int version, const char *dict)
{
	char file[1024];

	error[0] = 0;
	return npy_parse(npy, file, build(file, version, dict), error);
}

static void test_good(void)
{
	static const struct {
		const char *descr;
		int dtype;
		size_t size;
	} types[] = {
		{ "|i1", ZCOLL_INT8, 1 }, { "|u1", ZCOLL_UINT8, 1 }, { "<i1", ZCOLL_INT8, 1 },
		{ "<u1", ZCOLL_UINT8, 1 }, { "<i2", ZCOLL_INT16, 2 }, { "<u2", ZCOLL_UINT16, 2 },
		{ "<i4", ZCOLL_INT32, 4 }, { "<u4", ZCOLL_UINT32, 4 }, { "<i8", ZCOLL_INT64, 8 },
		{ "<u8", ZCOLL_UINT64, 8 }, { "<f2", ZCOLL_FP16, 2 }, { "<f4", ZCOLL_FP32, 4 },
		{ "<f8", ZCOLL_FP64, 8 }, { "<V2", 0, 2 }, { "|V2", 0, 2 },
	};
	char dict[128];
	struct npy npy;
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		snprintf(dict, sizeof(dict),
			 "{'descr': '%s', 'fortran_order': False, 'shape': (3, 4), }", types[i].descr);
		ok(!parse(&npy, 1 + (int)i % 3, dict) && npy.dtype == types[i].dtype &&
		   npy.itemsize == types[i].size && npy.count == 12 &&
		   npy.data_bytes == 12 * types[i].size, "type %s", types[i].descr);
	}
	ok(!parse(&npy, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (7,), }      ") &&
	   npy.fortran_order && npy.ndim == 1 && npy.shape[0] == 7 &&
	   npy.data_offset == 10 + 63, "Fortran order, one dimension, padding");
	ok(!parse(&npy, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }") &&
	   npy.ndim == 0 && npy.count == 1, "a single number");
	ok(!parse(&npy, 2, "{'shape':(0,5),'fortran_order':False,\"descr\":\"<f4\"}") &&
	   npy.count == 0 && npy.data_bytes == 0, "other order of keys, an empty array");
	ok(!parse(&npy, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 18446744073709551615, 9)}") &&
	   npy.count == 0, "an empty array with huge dimensions");
}

static void test_bad_dicts(void)
{
	static const struct {
		const char *dict, *text;
	} bad[] = {
		{ "", "'{' expected" },
		{ "{}", "is missing" },
		{ "{'descr': '<f4', 'fortran_order': False}", "is missing" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", "'}' expected" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "more text" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'extra': 1}", "unknown" },
		{ "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "twice" },
		{ "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", "',' or '}'" },
		{ "{'descr', 'fortran_order': False, 'shape': (1,)}", "':' expected" },
		{ "{'descr': <f4, 'fortran_order': False, 'shape': (1,)}", "a string expected" },
		{ "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}", "possible are" },
		{ "{'descr': '<f4", "without end" },
		{ "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (1,)}", "unknown string" },
		{ "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "astype('<f4')" },
		{ "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "Python objects" },
		{ "{'descr': '=f4', 'fortran_order': False, 'shape': (1,)}", "possible are" },
		{ "{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "possible are" },
		{ "{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "possible are" },
		{ "{'descr': '', 'fortran_order': False, 'shape': (1,)}", "possible are" },
		{ "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "structured" },
		{ "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "True or False" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': 1}", "'(' expected" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", "a tuple" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "a number from 0" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", "',' expected" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,2)}", "a number from 0" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (3L,)}", "',' expected" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}",
		  "beyond 64 bits" },
		{ "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
		  "more than 64 bits" },
		{ "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,)}",
		  "larger than any file" },
		{ "{'descr': '|i1', 'fortran_order': False, 'shape': (9223372036854775807,)}",
		  "larger than any file" },
	};
	struct npy npy;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ok(parse(&npy, 1, bad[i].dict) && strstr(error, bad[i].text), "refused: %s",
		   bad[i].dict);
		if (!strstr(error, bad[i].text))
			printf("# said \"%s\", not \"%s\"\n", error, bad[i].text);
	}
}

static void test_dimensions(void)
{
	char dict[512] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
	char *shape = dict + strlen(dict);
	struct npy npy;
	int i;

	for (i = 0; i < NPY_MAX_DIMS; i++)
		strcat(dict, "1,");
	strcat(dict, ")}");
	ok(!parse(&npy, 1, dict) && npy.ndim == NPY_MAX_DIMS, "%d dimensions", NPY_MAX_DIMS);
	memmove(shape + 2, shape, strlen(shape) + 1);
	ok(parse(&npy, 1, dict) && strstr(error, "more than"), "refused: one more");
}

static void test_bad_starts(void)
{
	static const char good[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
	char file[256];
	struct npy npy;
	size_t len, n;
	int taken = 0;

	len = build(file, 1, good);
	for (n = 0; n < len; n++)
		taken += !npy_parse(&npy, file, n, error);
	is(taken, 0, "a header cut off anywhere is refused");
	is(npy_parse(&npy, file, len, error), 0, "and taken when it is whole");

	build(file, 1, good);
	file[6] = 4;
	ok(npy_parse(&npy, file, len, error) && strstr(error, "format version 4.0"), "version 4");
	build(file, 1, good);
	file[7] = 1;
	ok(npy_parse(&npy, file, len, error) && strstr(error, "format version 1.1"), "version 1.1");
	build(file, 1, good);
	file[1] = 'n';
	ok(npy_parse(&npy, file, len, error) && strstr(error, "not a .npy"), "another magic");
	len = build(file, 2, good);
	memset(file + 8, 0xff, 4);
	ok(npy_parse(&npy, file, len, error) && strstr(error, "a header of 4294967295 bytes"),
	   "a header of 4 GiB");
}

static uint32_t random_state = 12345;

static uint32_t random_number(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)random_state * below >> 32);
}

/* Copies end at a page that cannot be read: one byte too far is a crash */
static void test_mutations(void)
{
	static const char good[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
	static const char alphabet[] = "{}()[],:' \"\\<>|fiuV0123456789TrueFalse\n";
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len, n;
	char file[256], *area, *copy;
	int i, j, consistent = 1;
	struct npy npy;

	area = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED || mprotect(area + page, page, PROT_NONE))
		abort();
	for (i = 0; i < 300000; i++) {
		len = build(file, 1 + i % 3, good);
		for (j = (int)random_number(4); j >= 0; j--)
			file[random_number((uint32_t)len)] = random_number(8) ?
				alphabet[random_number(sizeof(alphabet) - 1)] :
				(char)random_number(256);
		n = random_number(4) ? len : random_number((uint32_t)len + 1);
		copy = area + page - n;
		memcpy(copy, file, n);
		error[0] = 0;
		if (npy_parse(&npy, copy, n, error))
			consistent &= error[0] != 0;
		else
			consistent &= npy.data_offset <= n && npy.ndim <= NPY_MAX_DIMS &&
				      npy.data_bytes == npy.count * npy.itemsize && npy.itemsize;
	}
	ok(consistent, "300000 mutated headers: taken consistently, or refused with a text");
	munmap(area, 2 * page);
}

static void test_shape_text(void)
{
	static const uint64_t shape[] = { 3, 4, 1234567 };
	char text[64], small[8];

	npy_shape_text(shape, 0, text, sizeof(text));
	ok(!strcmp(text, "()"), "text of shape ()");
	npy_shape_text(shape, 1, text, sizeof(text));
	ok(!strcmp(text, "(3,)"), "text of shape (3,)");
	npy_shape_text(shape, 3, text, sizeof(text));
	ok(!strcmp(text, "(3, 4, 1234567)"), "text of shape (3, 4, 1234567)");
	npy_shape_text(shape, 3, small, sizeof(small));
	ok(!strcmp(small, "(3, 4, "), "a text too long is cut");
}

int main(void)
{
	printf("TAP version 13\n");
	test_good();
	test_bad_dicts();
	test_dimensions();
	test_bad_starts();
	test_mutations();
	test_shape_text();
	return tap_end();
}
