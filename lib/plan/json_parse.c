// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Reading plans: their text form, json_form.h, and their binary form, which is the
 * struct zcoll_plan itself.
 *
 * The input may come from anywhere. What is taken out of a JSON object is deleted
 * from it, so that what is left at the end are keys that nobody knows. The first
 * error counts, and says where it is: line and column while the text is no JSON,
 * then a JSON pointer (RFC 6901) such as /steps/2/peer/add.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <zcoll_plan.h>

#include "json_form.h"

/* Where the text of an error goes */
struct reader {
	char *error;
	size_t error_len;
	int err;
};

/* A JSON object that is being taken apart, from open_object() to close_object() */
struct object {
	struct reader *reader;
	json_t *json;
	char where[64];
};

/* ---- errors ---- */

__attribute__((format(printf, 3, 4)))
static int refuse(struct reader *reader, int err, const char *fmt, ...)
{
	va_list ap;

	if (reader->err)
		return reader->err;
	reader->err = err;
	if (reader->error && reader->error_len) {
		va_start(ap, fmt);
		vsnprintf(reader->error, reader->error_len, fmt, ap);
		va_end(ap);
	}
	return err;
}

static void wrong(struct object *object, const char *key, const char *what)
{
	refuse(object->reader, -EINVAL, "%s/%s: %s", object->where, key, what);
}

/* A word of the input as it may be shown: not long, and without codes for a terminal */
#define WORD_LEN 40

static const char *shown(const char *text, char *to, size_t len)
{
	size_t i;

	for (i = 0; text[i] && i < len - sizeof("..."); i++)
		to[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	strcpy(to + i, text[i] ? "..." : "");
	return to;
}

static void unknown_name(struct object *object, const char *key, const char *text,
			 const struct zc_form_names *names)
{
	char list[128] = "", word[WORD_LEN];
	unsigned int i;

	for (i = 0; i < names->count; i++)
		if (names->name[i])
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				 *list ? ", " : "", names->name[i]);
	refuse(object->reader, -EINVAL, "%s/%s: '%s' is none of %s", object->where, key,
	       shown(text, word, sizeof(word)), list);
}

/* ---- objects ---- */

static bool open_object(struct object *object, struct reader *reader, json_t *json)
{
	object->reader = reader;
	object->json = json_incref(json);
	if (json_is_object(json))
		return true;
	refuse(reader, -EINVAL, "%s: not an object", object->where);
	json_decref(json);
	return false;
}

/* All that was known has been taken out */
static void close_object(struct object *object)
{
	const char *key;
	char word[WORD_LEN];
	json_t *value;

	json_object_foreach(object->json, key, value)
		wrong(object, shown(key, word, sizeof(word)), "there is no such key");
	json_decref(object->json);
}

static bool open_member(struct object *object, const char *key, struct object *member)
{
	json_t *json = json_object_get(object->json, key);
	bool open;

	if (!json)
		return false;
	snprintf(member->where, sizeof(member->where), "%.40s/%s", object->where, key);
	open = open_object(member, object->reader, json);
	json_object_del(object->json, key);
	return open;
}

/* A whole number within a type; false if it is not there */
static bool take_number(struct object *object, const char *key, int type, int64_t *value)
{
	const int64_t min = type == PLAN_S32 ? INT32_MIN : 0;
	const int64_t max = type == PLAN_S32 ? INT32_MAX :
			    type == PLAN_U16 ? UINT16_MAX : UINT32_MAX;
	json_t *json = json_object_get(object->json, key);

	if (!json)
		return false;
	*value = json_integer_value(json);
	if (!json_is_integer(json) || *value < min || *value > max)
		refuse(object->reader, -EINVAL, "%s/%s: not a whole number from %" PRId64
		       " to %" PRId64, object->where, key, min, max);
	json_object_del(object->json, key);
	return true;
}

static void take_numbers(struct object *object, const struct zc_form_number *numbers, void *to,
			 const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	int64_t value;

	for (; numbers->key; numbers++) {
		if (!object || !take_number(object, numbers->key, numbers->type, &value))
			value = zc_form_usual(numbers, plan, step);
		zc_form_set(numbers, to, value);
	}
}

static bool find_name(const struct zc_form_names *names, const char *text, unsigned int *value)
{
	for (*value = 0; *value < names->count; (*value)++)
		if (names->name[*value] && !strcmp(names->name[*value], text))
			return true;
	return false;
}

/* The text of a member, to be freed; NULL if it is not there, or is wrong */
static char *take_text(struct object *object, const char *key)
{
	json_t *json = json_object_get(object->json, key);
	char *text = NULL;

	if (json && !json_is_string(json))
		wrong(object, key, "not a text");
	else if (json)
		text = strdup(json_string_value(json));
	if (json_is_string(json) && !text)
		refuse(object->reader, -ENOMEM, "out of memory");
	json_object_del(object->json, key);
	return text;
}

static unsigned int take_name(struct object *object, const char *key,
			      const struct zc_form_names *names)
{
	char *text = take_text(object, key);
	unsigned int value = 0;

	if (text && !find_name(names, text, &value)) {
		unknown_name(object, key, text, names);
		value = 0;
	}
	free(text);
	return value;
}

static uint32_t take_flags(struct object *object, const struct zc_form_names *names)
{
	json_t *list = json_object_get(object->json, "flags"), *item;
	unsigned int bit;
	uint32_t flags = 0;
	size_t i;

	if (list && !json_is_array(list))
		wrong(object, "flags", "not a list of names");
	json_array_foreach(list, i, item) {
		if (!json_is_string(item))
			wrong(object, "flags", "not a list of names");
		else if (find_name(names, json_string_value(item), &bit))
			flags |= 1U << bit;
		else
			unknown_name(object, "flags", json_string_value(item), names);
	}
	json_object_del(object->json, "flags");
	return flags;
}

/* ---- a step ---- */

/* The members of a group that is not given are what they usually are */
static void take_group(struct object *object, const char *key,
		       const struct zc_form_number *numbers, const struct zcoll_plan *plan,
		       struct zcoll_step *step)
{
	struct object group;

	if (!open_member(object, key, &group)) {
		take_numbers(NULL, numbers, step, plan, step);
		return;
	}
	take_numbers(&group, numbers, step, plan, step);
	if (numbers == zc_form_segments)
		step->of = take_name(&group, "of", &zc_form_of);
	close_object(&group);
}

/* {"add": 1, "each": 1} */
static void take_peer(struct object *object, struct zcoll_step *step)
{
	struct object peer;
	unsigned int i, found = 0;
	int64_t value = 0;

	if (!open_member(object, "peer", &peer))
		return;
	for (i = ZCOLL_PEER_ADD; i < zc_form_peers.count; i++) {
		if (!take_number(&peer, zc_form_peers.name[i], PLAN_S32, &value))
			continue;
		step->peer = i;
		step->dist = value;
		found++;
	}
	if (take_number(&peer, "each", PLAN_S32, &value))
		step->dist_step = value;
	close_object(&peer);
	if (found != 1)
		wrong(object, "peer", "needs one of add, xor, to");
}

/* {"scratch": 0, "each": 1, "of": "self"}; the accumulation is not written */
static void take_place(struct object *object, const char *key, struct zcoll_place *to)
{
	struct object place;

	if (!open_member(object, key, &place))
		return;
	if (!json_object_get(place.json, "scratch"))
		wrong(&place, "scratch", "missing");
	to->space = ZCOLL_PLACE_SCRATCH;
	take_numbers(&place, zc_form_place, to, NULL, NULL);
	to->of = take_name(&place, "of", &zc_form_of);
	close_object(&place);
}

/* {"step": 1, "slice": 1}; {"step": 1, "turn": 0}; {"step": 1, "all": true} */
static void take_wait(struct object *wait, struct zcoll_after *to)
{
	json_t *all = json_object_get(wait->json, "all");
	unsigned int mode, found = 0;
	int64_t shift, step;

	for (mode = ZCOLL_AFTER_SLICE; mode <= ZCOLL_AFTER_TURN; mode++) {
		if (!take_number(wait, zc_form_after.name[mode], PLAN_S32, &shift))
			continue;
		to->mode = mode;
		to->shift = shift;
		found++;
	}
	if (all && !json_is_true(all))
		wrong(wait, "all", "is true, or not there");
	if (all) {
		to->mode = ZCOLL_AFTER_ALL;
		found++;
	}
	json_object_del(wait->json, "all");
	if (take_number(wait, "step", PLAN_U16, &step))
		to->step = step;
	else
		wrong(wait, "step", "missing");
	close_object(wait);
	if (found != 1)
		refuse(wait->reader, -EINVAL, "%s: needs one of slice, turn, all", wait->where);
}

static void take_after(struct object *object, struct zcoll_after after[ZCOLL_PLAN_AFTER])
{
	json_t *list = json_object_get(object->json, "after"), *item;
	struct object wait;
	size_t i;

	if (list && (!json_is_array(list) || json_array_size(list) > ZCOLL_PLAN_AFTER))
		wrong(object, "after", "not a list of at most 3");
	json_array_foreach(list, i, item) {
		if (object->reader->err)
			break;
		if (json_is_null(item))	/* nothing, before something */
			continue;
		snprintf(wait.where, sizeof(wait.where), "%.30s/after/%zu", object->where, i);
		if (open_object(&wait, object->reader, item))
			take_wait(&wait, &after[i]);
	}
	json_object_del(object->json, "after");
}

static void take_step(struct object *object, struct zcoll_plan *plan, unsigned int index)
{
	struct zcoll_step *step = &plan->steps[index];
	int64_t value;

	if (take_number(object, "step", PLAN_U16, &value) && value != index)
		refuse(object->reader, -EINVAL, "%s/step: this is step %u", object->where,
		       index);
	step->kind = take_name(object, "kind", &zc_form_kinds);
	if (!step->kind)
		wrong(object, "kind", "missing");
	step->flags = take_flags(object, &zc_form_step_flags);
	take_numbers(object, zc_form_repeat, step, plan, step);
	take_group(object, "who", zc_form_who, plan, step);
	take_peer(object, step);
	take_group(object, "digit", zc_form_digit, plan, step);
	take_group(object, "segments", zc_form_segments, plan, step);
	take_numbers(object, zc_form_match, step, plan, step);
	take_place(object, "dst", &step->dst);
	take_place(object, "src", &step->src);
	take_after(object, step->after);
}

/* ---- the plan ---- */

static struct zcoll_plan *new_plan(size_t nsteps)
{
	const size_t size = sizeof(struct zcoll_plan) + nsteps * sizeof(struct zcoll_step);
	struct zcoll_plan *plan = calloc(1, size);

	if (!plan)
		return NULL;
	plan->size = size;
	plan->version = ZCOLL_PLAN_VERSION;
	plan->nsteps = nsteps;
	return plan;
}

static void take_levels(struct object *object, struct zcoll_plan *plan)
{
	json_t *list = json_object_get(object->json, "levels"), *item;
	size_t i;

	if (list && (!json_is_array(list) || json_array_size(list) > ZCOLL_PLAN_LEVELS))
		wrong(object, "levels", "not a list of at most 4 numbers");
	json_array_foreach(list, i, item) {
		if (object->reader->err)
			break;
		if (!json_is_integer(item) || json_integer_value(item) < 1 ||
		    json_integer_value(item) > ZCOLL_PLAN_MAX_NODES)
			wrong(object, "levels", "not a list of at most 4 numbers");
		plan->levels[i] = json_integer_value(item);
	}
	json_object_del(object->json, "levels");
}

static void take_head(struct object *object, struct zcoll_plan *plan)
{
	char *collective = take_text(object, "collective"), *name = take_text(object, "name");
	unsigned int value;
	int64_t version;
	char word[WORD_LEN];

	if (take_number(object, "version", PLAN_U16, &version) && version != ZCOLL_PLAN_VERSION)
		wrong(object, "version", "this library knows version 1");
	if (!collective)
		wrong(object, "collective", "missing");
	else if (zcoll_collective_parse(collective, &value))
		refuse(object->reader, -EINVAL, "/collective: '%s' is no collective",
		       shown(collective, word, sizeof(word)));
	else
		plan->collective = value;
	if (name && strlen(name) >= sizeof(plan->name))
		wrong(object, "name", "more than 31 bytes");
	else if (name)
		strcpy(plan->name, name);
	take_numbers(object, zc_form_plan, plan, plan, NULL);
	if (!plan->nodes)
		wrong(object, "nodes", "missing");
	plan->flags = take_flags(object, &zc_form_flags);
	take_levels(object, plan);
	free(collective);
	free(name);
}

/* The id need not be given; if it is, nothing may have changed since */
static void take_id(struct object *object, struct zcoll_plan *plan)
{
	char *text = take_text(object, "id"), id[17], word[WORD_LEN];

	plan->id = zc_plan_id(plan);
	snprintf(id, sizeof(id), "%016" PRIx64, (uint64_t)plan->id);
	if (text && strcmp(text, id))
		refuse(object->reader, -EBADMSG, "/id: is '%s', and that of this plan is %s; "
		       "leave it out where you change a plan", shown(text, word, sizeof(word)), id);
	free(text);
}

static struct zcoll_plan *take_plan(struct object *object)
{
	json_t *steps = json_incref(json_object_get(object->json, "steps"));
	struct zcoll_plan *plan;
	struct object step;
	unsigned int i, n = json_array_size(steps);

	json_object_del(object->json, "steps");
	if (!json_is_array(steps))
		wrong(object, "steps", "not a list of steps");
	if (n > ZCOLL_PLAN_MAX_STEPS)
		refuse(object->reader, -E2BIG, "/steps: %u steps; a plan has at most %u", n,
		       ZCOLL_PLAN_MAX_STEPS);
	plan = object->reader->err ? NULL : new_plan(n);
	if (!plan) {
		json_decref(steps);
		refuse(object->reader, -ENOMEM, "out of memory");
		return NULL;
	}
	take_head(object, plan);
	for (i = 0; i < n && !object->reader->err; i++) {
		snprintf(step.where, sizeof(step.where), "/steps/%u", i);
		if (!open_object(&step, object->reader, json_array_get(steps, i)))
			break;
		take_step(&step, plan, i);
		close_object(&step);
	}
	json_decref(steps);
	take_id(object, plan);
	return plan;
}

static struct zcoll_plan *parse_text(struct reader *reader, const char *text, size_t len)
{
	struct object object = { .where = "" };
	struct zcoll_plan *plan = NULL;
	json_error_t where;
	char what[JSON_ERROR_TEXT_LENGTH];
	json_t *json;

	json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
	if (!json) {
		refuse(reader, -EINVAL, "line %d, column %d: %s", where.line, where.column,
		       shown(where.text, what, sizeof(what)));
		return NULL;
	}
	if (open_object(&object, reader, json)) {
		plan = take_plan(&object);
		close_object(&object);
	}
	json_decref(json);
	return plan;
}

static struct zcoll_plan *parse_binary(struct reader *reader, const void *bytes, size_t len)
{
	struct zcoll_plan *plan = malloc(len + !len);

	if (!plan) {
		refuse(reader, -ENOMEM, "out of memory");
		return NULL;
	}
	memcpy(plan, bytes, len);
	if (len < sizeof(*plan) || plan->size != len)
		refuse(reader, -EINVAL, "neither JSON, which begins with {, nor a whole plan");
	return plan;
}

static void check_plan(struct reader *reader, const struct zcoll_plan *plan, size_t len)
{
	struct zc_plan_why why;
	int err = zc_plan_valid(plan, len, &why);

	if (err && why.step != ZC_NONE)
		refuse(reader, err, "step %u: %s", why.step, why.what);
	else if (err)
		refuse(reader, err, "%s", why.what);
}

/* JSON begins with a brace, after blanks; the size of a plan with none of these */
static bool is_text(const char *text, size_t len)
{
	while (len && strchr(" \t\r\n", *text) && *text)
		text++, len--;
	return len && *text == '{';
}

/**
 * zcoll_plan_parse - read a plan
 * @text: its text form, or the plan itself; trailing blanks are allowed in text
 * @len: bytes
 * @plan: to be freed by zcoll_plan_free()
 * @error: buffer for what is wrong and where, or NULL
 * @error_len: its size
 *
 * The plan can be carried out as far as its numbers go; that it is right says
 * zcoll_plan_check().
 *
 * Return: 0; -EINVAL: not a plan; -E2BIG: beyond a limit; -EBADMSG: the id is not the
 * plan's; -ENOMEM; or what zc_plan_valid() returns.
 */
int zcoll_plan_parse(const char *text, size_t len, struct zcoll_plan **plan, char *error,
		     size_t error_len)
{
	struct reader reader = { .error = error, .error_len = error_len };

	*plan = NULL;
	if (len > PLAN_TEXT_MAX)
		return refuse(&reader, -E2BIG, "%zu bytes; a plan has at most %u", len,
			      PLAN_TEXT_MAX);
	*plan = is_text(text, len) ? parse_text(&reader, text, len) :
				     parse_binary(&reader, text, len);
	if (*plan && !reader.err)
		check_plan(&reader, *plan, is_text(text, len) ? (*plan)->size : len);
	if (reader.err) {
		zcoll_plan_free(*plan);
		*plan = NULL;
	}
	return reader.err;
}
