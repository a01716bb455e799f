// SPDX-License-Identifier: GPL-2.0
/*
 * Names, sizes and keys: what other programs and other versions rely on.
 */
#include <errno.h>
#include <string.h>

#include <zcoll.h>

#include "tap.h"

static void test_types(void)
{
	static const struct {
		const char *name;
		int dtype;
		size_t size;
	} types[] = {
		{ "int8", ZCOLL_INT8, 1 }, { "uint8", ZCOLL_UINT8, 1 },
		{ "int16", ZCOLL_INT16, 2 }, { "uint16", ZCOLL_UINT16, 2 },
		{ "int32", ZCOLL_INT32, 4 }, { "uint32", ZCOLL_UINT32, 4 },
		{ "int64", ZCOLL_INT64, 8 }, { "uint64", ZCOLL_UINT64, 8 },
		{ "fp16", ZCOLL_FP16, 2 }, { "bf16", ZCOLL_BF16, 2 },
		{ "fp32", ZCOLL_FP32, 4 }, { "fp64", ZCOLL_FP64, 8 },
	};

	is(sizeof(types) / sizeof(types[0]), ZCOLL_NR_TYPES - 1, "all types are in this test");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const char *name = zcoll_dtype_name(types[i].dtype);

		ok(name && !strcmp(name, types[i].name) &&
		   zcoll_dtype_parse(types[i].name) == types[i].dtype &&
		   zcoll_dtype_size(types[i].dtype) == types[i].size, "type %s", types[i].name);
	}
	is(zcoll_dtype_parse("float"), ZCOLL_FP32, "alias float");
	is(zcoll_dtype_parse("float16"), ZCOLL_FP16, "alias float16");
	is(zcoll_dtype_parse("bfloat16"), ZCOLL_BF16, "alias bfloat16");
	is(zcoll_dtype_parse("double"), ZCOLL_FP64, "alias double");
	is(zcoll_dtype_parse("fp3"), -EINVAL, "part of a name is no name");
	is(zcoll_dtype_parse(""), -EINVAL, "nothing is no name");
	ok(!zcoll_dtype_name(0) && !zcoll_dtype_name(-1) && !zcoll_dtype_name(ZCOLL_NR_TYPES),
	   "numbers outside have no name");
	ok(!zcoll_dtype_size(0) && !zcoll_dtype_size(-1) && !zcoll_dtype_size(ZCOLL_NR_TYPES),
	   "numbers outside have no size");
}

static void test_operators(void)
{
	static const char *const names[] = { "sum", "prod", "min", "max", "avg" };

	is(sizeof(names) / sizeof(names[0]), ZCOLL_NR_OPS - 1, "all operators are in this test");
	for (int op = ZCOLL_SUM; op < ZCOLL_NR_OPS; op++)
		ok(!strcmp(zcoll_op_name(op), names[op - 1]) && zcoll_op_parse(names[op - 1]) == op,
		   "operator %s", names[op - 1]);
	is(zcoll_op_parse("SUM"), -EINVAL, "names have one spelling");
	ok(!zcoll_op_name(0) && !zcoll_op_name(ZCOLL_NR_OPS), "numbers outside have no name");
}

static bool key_is(const char *name, const char *hex)
{
	uint8_t key[16];
	char got[33];

	zcoll_key_from_string(key, name);
	for (int i = 0; i < 16; i++)
		sprintf(got + 2 * i, "%02x", key[i]);
	return !strcmp(got, hex);
}

static void test_keys(void)
{
	uint8_t a[16], b[16], c[16];

	/* Vectors of RFC 9923 */
	ok(key_is("", "6c62272e07bb014262b821756295c58d"), "FNV-1a of nothing");
	ok(key_is("a", "d228cb696f1a8caf78912b704e4a8964"), "FNV-1a of a");
	ok(key_is("foobar", "343e1662793c64bf6f0d3597ba446f18"), "FNV-1a of foobar");

	zcoll_key_from_string(a, "job");
	memcpy(b, a, 16);
	memcpy(c, a, 16);
	zcoll_key_derive(b, "1");
	zcoll_key_derive(c, "2");
	ok(memcmp(a, b, 16) && memcmp(a, c, 16) && memcmp(b, c, 16), "derived keys differ");
	memcpy(c, a, 16);
	zcoll_key_derive(c, "1");
	ok(!memcmp(b, c, 16), "derived keys are the same on all ranks");
}

int main(void)
{
	test_types();
	test_operators();
	test_keys();
	ok(zcoll_version()[0] == '0', "version %s", zcoll_version());
	return tap_end();
}
