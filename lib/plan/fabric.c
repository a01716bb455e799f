// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Fabrics: what a network costs, in the LogGP model, from a file that
 * `zcoll calibrate` has written, from five numbers, or a stated default.
 *
 * LogGP: Alexandrov, Ionescu, Schauser, Scheiman: "LogGP: Incorporating Long
 * Messages into the LogP Model", SPAA 1995. To L, o, g and G comes gamma, the time to
 * fold a byte that was received.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll_plan.h>

#include "doc.h"

#define FABRIC_VERSION 1

/* No time of a fabric is more than this: ten seconds in ns */
#define FABRIC_MAX 1e10

/**
 * zcoll_fabric_default - the fabric that is assumed where none was measured
 * @fabric: fabric
 *
 * An RDMA network of 100 Gbit/s: 1 us for a small message, 12.5 GB/s on the wire, and a
 * processor that folds 25 GB/s.
 */
void zcoll_fabric_default(struct zcoll_fabric *fabric)
{
	*fabric = (struct zcoll_fabric){
		.latency = 700, .overhead = 150, .gap = 50, .per_byte = 0.08,
		.per_byte_folded = 0.04, .name = "built-in: RDMA, 100 Gbit/s",
	};
}

/* The numbers of a fabric, as its file names them; in the order of "L,o,g,G,gamma" */
static double *fabric_number(struct zcoll_fabric *fabric, unsigned int i, const char **name)
{
	static const char *const names[] = {
		"latency_ns", "overhead_ns", "gap_ns", "ns_per_byte", "ns_per_byte_folded",
	};
	double *numbers[] = {
		&fabric->latency, &fabric->overhead, &fabric->gap, &fabric->per_byte,
		&fabric->per_byte_folded,
	};

	if (i >= sizeof(numbers) / sizeof(numbers[0]))
		return NULL;
	*name = names[i];
	return numbers[i];
}

/* "2500,1500,1000,6" or with gamma as the fifth number; as LogGOPSim's options */
static int fabric_from_numbers(const char *text, struct zcoll_fabric *fabric, char *error,
			       size_t error_len)
{
	const char *at = text, *name;
	unsigned int i;
	double *number;
	char *end;

	memset(fabric, 0, sizeof(*fabric));
	snprintf(fabric->name, sizeof(fabric->name), "LogGP %s", text);
	for (i = 0; (number = fabric_number(fabric, i, &name)); i++) {
		*number = strtod(at, &end);
		if (end == at || !(*number >= 0 && *number <= FABRIC_MAX))
			break;
		at = end + (*end == ',');
		if (!*end && i >= 3)
			return 0;
		if (*end != ',')
			break;
	}
	snprintf(error, error_len,
		 "\"%.60s\": not a fabric: four or five numbers L,o,g,G[,gamma] from 0 to %g are expected (ns, and ns a byte)",
		 text, FABRIC_MAX);
	return -EINVAL;
}

static int fabric_from_doc(const struct zc_doc *doc, struct zcoll_fabric *fabric)
{
	static const struct zc_doc_key keys[] = {
		{ "$schema", JSON_STRING, 0 }, { "zcoll_fabric", JSON_INTEGER, 1 },
		{ "name", JSON_STRING, 1 }, { "latency_ns", JSON_REAL, 1 },
		{ "overhead_ns", JSON_REAL, 1 }, { "gap_ns", JSON_REAL, 1 },
		{ "ns_per_byte", JSON_REAL, 1 }, { "ns_per_byte_folded", JSON_REAL, 1 },
		{ "measured", JSON_OBJECT, 0 }, { NULL, JSON_NULL, 0 },
	};
	uint64_t version;
	const char *name;
	unsigned int i;
	double *number;

	if (zc_doc_object(doc, "", doc->root, keys) ||
	    zc_doc_uint(doc, "", doc->root, "zcoll_fabric", FABRIC_VERSION, FABRIC_VERSION,
			&version))
		return -EINVAL;
	for (i = 0; (number = fabric_number(fabric, i, &name)); i++) {
		*number = json_number_value(json_object_get(doc->root, name));
		if (!(*number >= 0 && *number <= FABRIC_MAX))
			return zc_doc_bad(doc, "", "\"%s\" is %g, and should be 0 to %g", name,
					  *number, FABRIC_MAX);
	}
	snprintf(fabric->name, sizeof(fabric->name), "%s",
		 json_string_value(json_object_get(doc->root, "name")));
	return 0;
}

/**
 * zcoll_fabric_get - a fabric from where it is described
 * @where: a file of `zcoll calibrate`, or "L,o,g,G" or "L,o,g,G,gamma"
 * @fabric: fabric
 * @error: text of an error
 * @error_len: its size
 *
 * Return: 0 or a negative errno, with a text.
 */
int zcoll_fabric_get(const char *where, struct zcoll_fabric *fabric, char *error,
		     size_t error_len)
{
	struct zc_doc doc;
	int err;

	if (where[strspn(where, "0123456789.,eE+-")] == '\0')
		return fabric_from_numbers(where, fabric, error, error_len);
	memset(fabric, 0, sizeof(*fabric));
	err = zc_doc_load(&doc, where, error, error_len);
	/* "nan,1,2,3" is not meant as a file */
	if (err == -ENOENT && strchr(where, ','))
		return fabric_from_numbers(where, fabric, error, error_len);
	if (err)
		return err;
	err = fabric_from_doc(&doc, fabric);
	zc_doc_free(&doc);
	return err;
}

/**
 * zcoll_fabric_format - a fabric as the text of its file
 * @fabric: fabric
 *
 * Return: text, to be freed by free(); NULL without memory.
 */
char *zcoll_fabric_format(const struct zcoll_fabric *fabric)
{
	json_t *root = json_pack("{si ss sf sf sf sf sf}", "zcoll_fabric", FABRIC_VERSION,
				 "name", fabric->name, "latency_ns", fabric->latency,
				 "overhead_ns", fabric->overhead, "gap_ns", fabric->gap,
				 "ns_per_byte", fabric->per_byte,
				 "ns_per_byte_folded", fabric->per_byte_folded);
	char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : NULL;

	json_decref(root);
	return text;
}
