/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Documents: JSON files that people write or edit (fabrics, rules), and what is
 * wrong with them, said so that it can be found: "FILE:LINE:COLUMN: ..." where it is
 * not JSON, "FILE: /pointer/to/value: ..." (RFC 6901) where it is not what it should be.
 */
#ifndef ZCOLL_PLAN_DOC_H
#define ZCOLL_PLAN_DOC_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define ZC_DOC_AT 160	/* bytes of a pointer with its NUL */

/**
 * struct zc_doc - a document
 * @path: of the file, for messages
 * @root: its content
 * @error: where the text of an error goes
 * @error_len: its size
 */
struct zc_doc {
	const char *path;
	json_t *root;
	char *error;
	size_t error_len;
};

/**
 * struct zc_doc_key - a member that an object may have
 * @name: its name; NULL ends a list
 * @type: its JSON type
 * @needed: the object must have it
 */
struct zc_doc_key {
	const char *name;
	json_type type;
	int needed;
};

int zc_doc_load(struct zc_doc *doc, const char *path, char *error, size_t error_len);
void zc_doc_free(struct zc_doc *doc);
int zc_doc_bad(const struct zc_doc *doc, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int zc_doc_object(const struct zc_doc *doc, const char *at, json_t *object,
		  const struct zc_doc_key *keys);
int zc_doc_uint(const struct zc_doc *doc, const char *at, json_t *object, const char *key,
		uint64_t min, uint64_t max, uint64_t *value);

#endif /* ZCOLL_PLAN_DOC_H */
