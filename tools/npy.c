// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The header of NumPy files; see npy.h.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <linux/zcoll.h>

#include "npy.h"

#define MAGIC		"\x93NUMPY"
#define MAGIC_LEN	6

/* The text that is left to parse, and where a complaint goes */
struct cursor {
	const char *at;
	const char *end;
	char *error;
};

static const struct {
	const char *descr;
	int dtype;
	size_t itemsize;
} types[] = {
	{ "|i1", ZCOLL_INT8, 1 },   { "|u1", ZCOLL_UINT8, 1 },
	{ "<i1", ZCOLL_INT8, 1 },   { "<u1", ZCOLL_UINT8, 1 },
	{ "<i2", ZCOLL_INT16, 2 },  { "<u2", ZCOLL_UINT16, 2 },
	{ "<i4", ZCOLL_INT32, 4 },  { "<u4", ZCOLL_UINT32, 4 },
	{ "<i8", ZCOLL_INT64, 8 },  { "<u8", ZCOLL_UINT64, 8 },
	{ "<f2", ZCOLL_FP16, 2 },   { "<f4", ZCOLL_FP32, 4 },
	{ "<f8", ZCOLL_FP64, 8 },   { "<V2", 0, 2 },
	{ "|V2", 0, 2 },
};

static int __attribute__((format(printf, 2, 3)))
refuse(const struct cursor *c, const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	vsnprintf(c->error, NPY_ERROR_MAX, fmt, ap);
	va_end(ap);
	/* what the file says may hold codes that a terminal obeys */
	for (p = c->error; *p; p++)
		if (!isprint((unsigned char)*p))
			*p = '?';
	return -1;
}

/* ---- pieces of a Python literal ---- */

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n'))
		c->at++;
}

static bool take(struct cursor *c, char ch)
{
	skip_blanks(c);
	if (c->at == c->end || *c->at != ch)
		return false;
	c->at++;
	return true;
}

static bool take_word(struct cursor *c, const char *word)
{
	size_t n = strlen(word);

	skip_blanks(c);
	if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n))
		return false;
	c->at += n;
	return true;
}

static int expect(struct cursor *c, char ch)
{
	return take(c, ch) ? 0 : refuse(c, "bad header: '%c' expected", ch);
}

/* A string without escapes, which no name or type of ours needs */
static int take_string(struct cursor *c, char *to, size_t size)
{
	const char *close;
	char quote;

	skip_blanks(c);
	if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
		return refuse(c, "bad header: a string expected");
	quote = *c->at++;
	close = memchr(c->at, quote, (size_t)(c->end - c->at));
	if (!close)
		return refuse(c, "bad header: a string without end");
	if ((size_t)(close - c->at) >= size || memchr(c->at, '\\', (size_t)(close - c->at)) ||
	    memchr(c->at, '\0', (size_t)(close - c->at)))
		return refuse(c, "bad header: an unknown string '%.*s'",
			      (int)(close - c->at < 32 ? close - c->at : 32), c->at);
	memcpy(to, c->at, (size_t)(close - c->at));
	to[close - c->at] = '\0';
	c->at = close + 1;
	return 0;
}

static int take_number(struct cursor *c, uint64_t *value)
{
	const char *start;

	skip_blanks(c);
	start = c->at;
	*value = 0;
	for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(*c->at - '0'), value))
			return refuse(c, "bad header: a dimension beyond 64 bits");
	if (c->at == start)
		return refuse(c, "bad header: a dimension must be a number from 0 on");
	return 0;
}

/* ---- the three values ---- */

static int parse_descr(struct npy *npy, struct cursor *c)
{
	size_t i;

	skip_blanks(c);
	if (c->at < c->end && *c->at == '[')
		return refuse(c, "a structured type; save each field as an array of its own");
	if (take_string(c, npy->descr, sizeof(npy->descr)))
		return -1;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(npy->descr, types[i].descr))
			continue;
		npy->dtype = types[i].dtype;
		npy->itemsize = types[i].itemsize;
		return 0;
	}
	if (npy->descr[0] == '>')
		return refuse(c, "big-endian type '%s'; convert with a.astype('<%s')",
			      npy->descr, npy->descr + 1);
	if (npy->descr[0] && npy->descr[1] == 'O')
		return refuse(c, "Python objects ('%s'), not numbers", npy->descr);
	return refuse(c, "type '%s'; possible are i1 i2 i4 i8, u1 u2 u4 u8, f2 f4 f8, and V2 with --dtype bf16",
		      npy->descr);
}

static int parse_order(struct npy *npy, struct cursor *c)
{
	if (take_word(c, "True"))
		npy->fortran_order = true;
	else if (take_word(c, "False"))
		npy->fortran_order = false;
	else
		return refuse(c, "bad header: fortran_order must be True or False");
	return 0;
}

/* "()", "(3,)", "(3, 4)"; not "(3)", which is a number in Python */
static int parse_shape(struct npy *npy, struct cursor *c)
{
	bool comma = true;

	if (expect(c, '('))
		return -1;
	while (!take(c, ')')) {
		if (!comma)
			return refuse(c, "bad header: ',' expected in shape");
		if (npy->ndim == NPY_MAX_DIMS)
			return refuse(c, "more than %d dimensions", NPY_MAX_DIMS);
		if (take_number(c, &npy->shape[npy->ndim++]))
			return -1;
		comma = take(c, ',');
	}
	if (npy->ndim == 1 && !comma)
		return refuse(c, "bad header: shape must be a tuple");
	return 0;
}

static int parse_dict(struct npy *npy, struct cursor *c)
{
	static const struct {
		const char *name;
		int (*parse)(struct npy *npy, struct cursor *c);
	} keys[] = {
		{ "descr", parse_descr },
		{ "fortran_order", parse_order },
		{ "shape", parse_shape },
	};
	unsigned int seen = 0, i;
	bool comma = true;
	char key[16];

	if (expect(c, '{'))
		return -1;
	while (!take(c, '}')) {
		if (!comma)
			return refuse(c, "bad header: ',' or '}' expected");
		if (take_string(c, key, sizeof(key)) || expect(c, ':'))
			return -1;
		for (i = 0; i < 3 && strcmp(key, keys[i].name); i++)
			;
		if (i == 3 || seen & (1U << i))
			return refuse(c, "bad header: key '%s' is %s", key,
				      i == 3 ? "unknown" : "there twice");
		seen |= 1U << i;
		if (keys[i].parse(npy, c))
			return -1;
		comma = take(c, ',');
	}
	if (seen != 7)
		return refuse(c, "bad header: descr, fortran_order or shape is missing");
	skip_blanks(c);
	if (c->at != c->end)
		return refuse(c, "bad header: more text after '}'");
	return 0;
}

/* ---- the whole ---- */

/* An array with a dimension of 0 is empty, however large the others are */
static int count_elements(struct npy *npy, const struct cursor *c)
{
	uint64_t end;
	unsigned int i;

	npy->count = 1;
	for (i = 0; i < npy->ndim; i++)
		if (!npy->shape[i])
			npy->count = 0;
	for (i = 0; i < npy->ndim && npy->count; i++)
		if (__builtin_mul_overflow(npy->count, npy->shape[i], &npy->count))
			return refuse(c, "the dimensions multiply to more than 64 bits");
	if (__builtin_mul_overflow(npy->count, npy->itemsize, &npy->data_bytes) ||
	    __builtin_add_overflow(npy->data_offset, npy->data_bytes, &end) ||
	    end > INT64_MAX)
		return refuse(c, "the array would be larger than any file");
	return 0;
}

bool npy_magic(const void *start, size_t len)
{
	return len >= MAGIC_LEN && !memcmp(start, MAGIC, MAGIC_LEN);
}

int npy_parse(struct npy *npy, const void *start, size_t len, char error[NPY_ERROR_MAX])
{
	struct cursor c = { .error = error };
	const uint8_t *bytes = start;
	uint32_t header_len;
	size_t before;

	memset(npy, 0, sizeof(*npy));
	if (!npy_magic(start, len))
		return refuse(&c, "not a .npy file");
	if (len < 10)
		return refuse(&c, "the header is cut off");
	if (bytes[6] < 1 || bytes[6] > 3 || bytes[7])
		return refuse(&c, "format version %u.%u; known are 1.0, 2.0 and 3.0",
			      bytes[6], bytes[7]);
	before = bytes[6] == 1 ? 10 : 12;
	if (len < before)
		return refuse(&c, "the header is cut off");
	header_len = bytes[8] | (uint32_t)bytes[9] << 8;
	if (before == 12)
		header_len |= (uint32_t)bytes[10] << 16 | (uint32_t)bytes[11] << 24;
	if (header_len > NPY_MAX_HEADER - before)
		return refuse(&c, "a header of %u bytes; at most %zu are taken", header_len,
			      NPY_MAX_HEADER - before);
	if (header_len > len - before)
		return refuse(&c, "the header is cut off");
	npy->data_offset = before + header_len;
	c.at = (const char *)start + before;
	c.end = c.at + header_len;
	if (parse_dict(npy, &c))
		return -1;
	return count_elements(npy, &c);
}

void npy_shape_text(const uint64_t *shape, unsigned int ndim, char *text, size_t len)
{
	size_t at;
	unsigned int i;

	at = (size_t)snprintf(text, len, "(");
	for (i = 0; i < ndim && at < len; i++)
		at += (size_t)snprintf(text + at, len - at, i ? ", %llu" : "%llu",
				       (unsigned long long)shape[i]);
	if (at < len)
		snprintf(text + at, len - at, ndim == 1 ? ",)" : ")");
}
