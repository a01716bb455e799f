// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Documents: JSON files, and what is wrong with them; see doc.h.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doc.h"

/* jansson would read "r" of a folder as an empty file */
static json_t *doc_read(const char *path, json_error_t *why, int *err)
{
	json_t *root;
	FILE *file = fopen(path, "re");

	if (!file) {
		*err = errno;
		return NULL;
	}
	errno = 0;
	root = json_loadf(file, JSON_REJECT_DUPLICATES, why);
	*err = root || !ferror(file) ? 0 : errno;
	fclose(file);
	return root;
}

/**
 * zc_doc_load - read a document
 * @doc: to be freed by zc_doc_free() if it could be read
 * @path: of its file
 * @error: where the text of an error goes, now and later
 * @error_len: its size
 *
 * Return: 0 or a negative errno, with a text.
 */
int zc_doc_load(struct zc_doc *doc, const char *path, char *error, size_t error_len)
{
	json_error_t why;
	int err;

	*doc = (struct zc_doc){ .path = path, .error = error, .error_len = error_len };
	doc->root = doc_read(path, &why, &err);
	if (doc->root)
		return 0;
	if (err) {
		snprintf(error, error_len, "%s: %s", path, strerror(err));
		return -err;
	}
	if (!why.position) {
		snprintf(error, error_len, "%s: is empty", path);
		return -EINVAL;
	}
	snprintf(error, error_len, "%s:%d:%d: %s", path, why.line, why.column, why.text);
	return -EINVAL;
}

void zc_doc_free(struct zc_doc *doc)
{
	json_decref(doc->root);
}

/**
 * zc_doc_bad - say what is wrong
 * @doc: document
 * @at: pointer to the value in question, "" for the whole
 * @fmt: as printf()
 *
 * Return: -EINVAL.
 */
int zc_doc_bad(const struct zc_doc *doc, const char *at, const char *fmt, ...)
{
	int used = snprintf(doc->error, doc->error_len, "%s: %s%s", doc->path, at,
			    *at ? ": " : "");
	va_list ap;

	if (used >= 0 && (size_t)used < doc->error_len) {
		va_start(ap, fmt);
		vsnprintf(doc->error + used, doc->error_len - used, fmt, ap);
		va_end(ap);
	}
	return -EINVAL;
}

static const char *type_name(json_type type)
{
	switch (type) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "a whole number";
	case JSON_REAL:
		return "a number";
	default:
		return "true, false or null";
	}
}

static int type_fits(const json_t *value, json_type type)
{
	return json_typeof(value) == type || (type == JSON_REAL && json_is_integer(value));
}

static int type_bad(const struct zc_doc *doc, const char *at, const char *name,
		    const json_t *value, json_type type)
{
	double real = json_number_value(value);

	/* jansson tells 5e3 from 5000, JSON does not */
	if (type == JSON_INTEGER && json_is_real(value) && fabs(real) < 1e15 && real == trunc(real))
		return zc_doc_bad(doc, at, "\"%s\" should be written as %lld", name,
				  (long long)real);
	return zc_doc_bad(doc, at, "\"%s\" is %s, and should be %s", name,
			  type_name(json_typeof(value)), type_name(type));
}

static const struct zc_doc_key *find_key(const struct zc_doc_key *keys, const char *name)
{
	for (; keys->name; keys++)
		if (!strcmp(keys->name, name))
			return keys;
	return NULL;
}

/**
 * zc_doc_object - is it an object with these members, and no others?
 * @doc: document
 * @at: pointer to it
 * @object: the value
 * @keys: members it may have
 *
 * Return: 0 or -EINVAL, with a text.
 */
int zc_doc_object(const struct zc_doc *doc, const char *at, json_t *object,
		  const struct zc_doc_key *keys)
{
	const struct zc_doc_key *key;
	const char *name;
	json_t *value;

	if (!json_is_object(object))
		return zc_doc_bad(doc, at, "is %s, and should be an object",
				  type_name(json_typeof(object)));
	json_object_foreach(object, name, value) {
		key = find_key(keys, name);
		if (!key)
			return zc_doc_bad(doc, at, "no member \"%.40s\" is known here", name);
		if (!type_fits(value, key->type))
			return type_bad(doc, at, name, value, key->type);
	}
	for (key = keys; key->name; key++)
		if (key->needed && !json_object_get(object, key->name))
			return zc_doc_bad(doc, at, "\"%s\" is missing", key->name);
	return 0;
}

/**
 * zc_doc_uint - a whole number of an object
 * @doc: document
 * @at: pointer to the object, which has passed zc_doc_object()
 * @object: the object
 * @key: name of the number; where there is none, @value stays
 * @min: least value
 * @max: greatest value
 * @value: the number
 *
 * Return: 0 or -EINVAL, with a text.
 */
int zc_doc_uint(const struct zc_doc *doc, const char *at, json_t *object, const char *key,
		uint64_t min, uint64_t max, uint64_t *value)
{
	json_t *number = json_object_get(object, key);
	json_int_t n = json_integer_value(number);

	if (!number)
		return 0;
	if (n < 0 || (uint64_t)n < min || (uint64_t)n > max)
		return zc_doc_bad(doc, at, "\"%s\" is %lld, and should be %llu to %llu", key,
				  (long long)n, (unsigned long long)min,
				  (unsigned long long)max);
	*value = n;
	return 0;
}
