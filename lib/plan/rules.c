// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Rules: a JSON file that says which algorithm to use for which sizes, by those who have
 * measured. Its schema is Documentation/rules.schema.json. The shape and the names
 * of the ranges are those of Open MPI 6's coll/tuned rules: for each collective a list of
 * ranges of the communicator's size, and in each a list of ranges of the message's:
 *
 *	{"zcoll_rules": 1, "collectives": {"allreduce": [
 *		{"comm_size_min": 2, "comm_size_max": 64, "rules": [
 *			{"msg_size_max": 4096, "alg": "recursive-doubling"},
 *			{"msg_size_min": 4097, "alg": "circulant", "slice": 65536}]}]}}
 *
 * The communicator's size is in nodes, the message's in bytes of the whole operation;
 * both ends belong to a range. The first rule that fits is taken. All of a file is
 * checked, also what is not used, so that an error is found at once.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "choice.h"
#include "doc.h"

#define RULES_VERSION 1

/* What is looked for, and what has been found */
struct search {
	const struct zc_doc *doc;
	const struct zc_rule_query *query;
	struct zc_choice *choice;
	char *at;
	size_t at_len;
	unsigned int collective;	/* whose rules are being read */
	int found;
};

/* A range of the object: does @value lie in it? -EINVAL: it is no range */
static int in_range(const struct zc_doc *doc, const char *at, json_t *object,
		    const char *what, uint64_t end, uint64_t value)
{
	char min_key[16], max_key[16];
	uint64_t min = 0, max = end;

	snprintf(min_key, sizeof(min_key), "%s_size_min", what);
	snprintf(max_key, sizeof(max_key), "%s_size_max", what);
	if (zc_doc_uint(doc, at, object, min_key, 0, end, &min) ||
	    zc_doc_uint(doc, at, object, max_key, 0, end, &max))
		return -EINVAL;
	if (min > max)
		return zc_doc_bad(doc, at, "\"%s\" is more than \"%s\": no size fits", min_key,
				  max_key);
	return value >= min && value <= max;
}

static int read_levels(const struct zc_doc *doc, const char *at, json_t *levels,
		       struct zc_choice *choice)
{
	json_int_t level;
	json_t *value;
	size_t i;

	if (json_array_size(levels) > ZCOLL_PLAN_LEVELS)
		return zc_doc_bad(doc, at, "\"levels\" has %zu numbers, and may have %d",
				  json_array_size(levels), ZCOLL_PLAN_LEVELS);
	json_array_foreach(levels, i, value) {
		level = json_integer_value(value);
		if (level < 1 || level > ZCOLL_PLAN_MAX_NODES)
			return zc_doc_bad(doc, at, "\"levels\" should be numbers from 1 to %d",
					  ZCOLL_PLAN_MAX_NODES);
		choice->levels[i] = level;
	}
	return 0;
}

static int read_choice(const struct zc_doc *doc, const char *at, json_t *rule,
		       struct zc_choice *choice)
{
	const char *name = json_string_value(json_object_get(rule, "alg"));
	uint64_t radix = 0, aggregators = 0;

	*choice = (struct zc_choice){ .algo = zc_choice_algorithm(name, strlen(name)) };
	if (!choice->algo)
		return zc_doc_bad(doc, at, "\"alg\": no algorithm \"%.40s\"", name);
	if (zc_doc_uint(doc, at, rule, "radix", ZC_RADIX_MIN, ZCOLL_PLAN_MAX_NODES, &radix) ||
	    zc_doc_uint(doc, at, rule, "aggregators", 1, ZCOLL_PLAN_MAX_NODES, &aggregators) ||
	    zc_doc_uint(doc, at, rule, "slice", 1, ZC_SLICE_MAX, &choice->slice))
		return -EINVAL;
	choice->radix = radix;
	choice->aggregators = aggregators;
	return read_levels(doc, at, json_object_get(rule, "levels"), choice);
}

/* Has the algorithm what the rule is for, and the parameters that it gives? */
static int choice_makes_sense(const struct zc_doc *doc, const char *at, uint32_t collective,
			      const struct zc_choice *choice)
{
	struct zcoll_plan_spec spec = {
		.algo = choice->algo, .collective = collective, .radix = choice->radix,
		.aggregators = choice->aggregators,
	};
	char why[ZCOLL_TEXT_MAX];

	memcpy(spec.levels, choice->levels, sizeof(spec.levels));
	if (zc_plan_wants(&spec, why, sizeof(why)))
		return zc_doc_bad(doc, at, "%s", why);
	return 0;
}

static int read_rule(struct search *search, const char *at, json_t *rule, int comm_fits)
{
	static const struct zc_doc_key keys[] = {
		{ "msg_size_min", JSON_INTEGER, 0 }, { "msg_size_max", JSON_INTEGER, 0 },
		{ "alg", JSON_STRING, 1 }, { "radix", JSON_INTEGER, 0 },
		{ "levels", JSON_ARRAY, 0 }, { "aggregators", JSON_INTEGER, 0 },
		{ "slice", JSON_INTEGER, 0 }, { "comment", JSON_STRING, 0 },
		{ NULL, JSON_NULL, 0 },
	};
	struct zc_choice choice;
	int fits;

	if (zc_doc_object(search->doc, at, rule, keys))
		return -EINVAL;
	fits = in_range(search->doc, at, rule, "msg", INT64_MAX, search->query->bytes);
	if (fits < 0 || read_choice(search->doc, at, rule, &choice) ||
	    choice_makes_sense(search->doc, at, search->collective, &choice))
		return -EINVAL;
	if (fits && comm_fits && !search->found) {
		search->found = 1;
		*search->choice = choice;
		snprintf(search->at, search->at_len, "%s", at);
	}
	return 0;
}

static int read_comm(struct search *search, const char *at, json_t *comm)
{
	static const struct zc_doc_key keys[] = {
		{ "comm_size_min", JSON_INTEGER, 0 }, { "comm_size_max", JSON_INTEGER, 0 },
		{ "rules", JSON_ARRAY, 1 }, { "comment", JSON_STRING, 0 },
		{ NULL, JSON_NULL, 0 },
	};
	char rule_at[ZC_DOC_AT + 32];
	json_t *rule;
	int fits, err;
	size_t i;

	if (zc_doc_object(search->doc, at, comm, keys))
		return -EINVAL;
	fits = in_range(search->doc, at, comm, "comm", ZCOLL_PLAN_MAX_NODES,
			search->query->nodes);
	if (fits < 0)
		return fits;
	fits = fits && search->collective == search->query->collective;
	json_array_foreach(json_object_get(comm, "rules"), i, rule) {
		snprintf(rule_at, sizeof(rule_at), "%s/rules/%zu", at, i);
		err = read_rule(search, rule_at, rule, fits);
		if (err)
			return err;
	}
	return 0;
}

static int read_collective(struct search *search, const char *name, json_t *comms)
{
	char at[ZC_DOC_AT];
	json_t *comm;
	size_t i;
	int err;

	if (zcoll_collective_parse(name, &search->collective))
		return zc_doc_bad(search->doc, "/collectives", "no collective \"%.40s\"", name);
	snprintf(at, sizeof(at), "/collectives/%s", name);
	if (!json_is_array(comms))
		return zc_doc_bad(search->doc, at, "should be an array of ranges of sizes");
	json_array_foreach(comms, i, comm) {
		snprintf(at, sizeof(at), "/collectives/%s/%zu", name, i);
		err = read_comm(search, at, comm);
		if (err)
			return err;
	}
	return 0;
}

static int read_rules(struct search *search)
{
	static const struct zc_doc_key keys[] = {
		{ "$schema", JSON_STRING, 0 }, { "zcoll_rules", JSON_INTEGER, 1 },
		{ "comment", JSON_STRING, 0 }, { "collectives", JSON_OBJECT, 1 },
		{ NULL, JSON_NULL, 0 },
	};
	json_t *root = search->doc->root, *comms;
	const char *name;
	uint64_t version;
	int err;

	if (zc_doc_object(search->doc, "", root, keys) ||
	    zc_doc_uint(search->doc, "", root, "zcoll_rules", RULES_VERSION, RULES_VERSION,
			&version))
		return -EINVAL;
	json_object_foreach(json_object_get(root, "collectives"), name, comms) {
		err = read_collective(search, name, comms);
		if (err)
			return err;
	}
	return 0;
}

/**
 * zc_rules_find - the first rule of a file that fits
 * @path: of the file
 * @query: what it has to fit
 * @choice: what it says
 * @at: pointer to it
 * @at_len: size of @at
 * @error: text of an error
 * @error_len: its size
 *
 * Return: 1, 0 if none fits, or a negative errno with a text.
 */
int zc_rules_find(const char *path, const struct zc_rule_query *query,
		  struct zc_choice *choice, char *at, size_t at_len, char *error,
		  size_t error_len)
{
	struct zc_doc doc;
	struct search search = { .doc = &doc, .query = query, .choice = choice, .at = at,
				 .at_len = at_len };
	int err = zc_doc_load(&doc, path, error, error_len);

	if (err)
		return err;
	err = read_rules(&search);
	zc_doc_free(&doc);
	return err ? err : search.found;
}
