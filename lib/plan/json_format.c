// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Writing plans in their text form; see json_form.h. What is as usual is left out.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include <zcoll_plan.h>

#include "json_form.h"

static void put_numbers(json_t *to, const struct zc_form_number *numbers, const void *from,
			const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	for (; numbers->key; numbers++) {
		int64_t value = zc_form_get(numbers, from);

		if (value != zc_form_usual(numbers, plan, step))
			json_object_set_new(to, numbers->key, json_integer(value));
	}
}

static void put_flags(json_t *to, const struct zc_form_names *names, uint32_t flags)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < names->count; i++)
		if (flags & (1U << i))
			json_array_append_new(list, json_string(names->name[i]));
	if (flags)
		json_object_set(to, "flags", list);
	json_decref(list);
}

/* A member that is an object, unless there is nothing in it */
static void put_object(json_t *to, const char *key, json_t *object)
{
	if (json_object_size(object))
		json_object_set(to, key, object);
	json_decref(object);
}

static void put_of(json_t *to, unsigned int of)
{
	if (of != ZCOLL_OF_ZERO)
		json_object_set_new(to, "of", json_string(zc_form_of.name[of]));
}

static void put_group(json_t *to, const char *key, const struct zc_form_number *numbers,
		      const struct zcoll_plan *plan, const struct zcoll_step *step)
{
	json_t *group = json_object();

	if (numbers == zc_form_segments)
		put_of(group, step->of);
	put_numbers(group, numbers, step, plan, step);
	put_object(to, key, group);
}

static void put_peer(json_t *to, const struct zcoll_step *step)
{
	json_t *peer = json_object();

	if (step->peer != ZCOLL_PEER_NONE)
		json_object_set_new(peer, zc_form_peers.name[step->peer],
				    json_integer(step->dist));
	if (step->dist_step)
		json_object_set_new(peer, "each", json_integer(step->dist_step));
	put_object(to, "peer", peer);
}

static void put_place(json_t *to, const char *key, const struct zcoll_place *from)
{
	json_t *place = json_object();

	if (from->space == ZCOLL_PLACE_SCRATCH) {
		json_object_set_new(place, "scratch", json_integer(from->index));
		put_numbers(place, zc_form_place + 1, from, NULL, NULL);
		put_of(place, from->of);
	}
	put_object(to, key, place);
}

static json_t *json_wait(const struct zcoll_after *after)
{
	json_t *wait;

	if (after->mode == ZCOLL_AFTER_NONE)
		return json_null();
	wait = json_object();
	json_object_set_new(wait, "step", json_integer(after->step));
	json_object_set_new(wait, zc_form_after.name[after->mode],
			    after->mode == ZCOLL_AFTER_ALL ? json_true() :
							     json_integer(after->shift));
	return wait;
}

static void put_after(json_t *to, const struct zcoll_after after[ZCOLL_PLAN_AFTER])
{
	unsigned int i, n = ZCOLL_PLAN_AFTER;
	json_t *list;

	while (n && after[n - 1].mode == ZCOLL_AFTER_NONE)
		n--;
	if (!n)
		return;
	list = json_array();
	for (i = 0; i < n; i++)
		json_array_append_new(list, json_wait(&after[i]));
	json_object_set_new(to, "after", list);
}

static json_t *json_step(const struct zcoll_plan *plan, unsigned int index)
{
	const struct zcoll_step *step = &plan->steps[index];
	json_t *to = json_object();

	json_object_set_new(to, "step", json_integer(index));
	json_object_set_new(to, "kind", json_string(zc_form_kinds.name[step->kind]));
	put_numbers(to, zc_form_repeat, step, plan, step);
	put_flags(to, &zc_form_step_flags, step->flags);
	put_group(to, "who", zc_form_who, plan, step);
	put_peer(to, step);
	put_group(to, "digit", zc_form_digit, plan, step);
	put_group(to, "segments", zc_form_segments, plan, step);
	put_numbers(to, zc_form_match, step, plan, step);
	put_place(to, "dst", &step->dst);
	put_place(to, "src", &step->src);
	put_after(to, step->after);
	return to;
}

static json_t *json_head(const struct zcoll_plan *plan)
{
	json_t *to = json_object(), *levels = json_array();
	char id[17];
	int i;

	snprintf(id, sizeof(id), "%016" PRIx64, (uint64_t)plan->id);
	for (i = 0; i < ZCOLL_PLAN_LEVELS && plan->levels[i]; i++)
		json_array_append_new(levels, json_integer(plan->levels[i]));
	json_object_set_new(to, "version", json_integer(plan->version));
	json_object_set_new(to, "name", json_string(plan->name));
	json_object_set_new(to, "collective",
			    json_string(zcoll_collective_name(plan->collective)));
	put_numbers(to, zc_form_plan, plan, plan, NULL);
	put_flags(to, &zc_form_flags, plan->flags);
	if (i)
		json_object_set(to, "levels", levels);
	json_decref(levels);
	json_object_set_new(to, "id", json_string(id));
	return to;
}

/* ---- the text ---- */

/* A text that grows; once there is no memory for it, it stays as it is */
struct text {
	char *start;
	size_t len;
	size_t size;
};

/* As jansson calls it */
static int append(const char *part, size_t len, void *data)
{
	struct text *text = data;
	size_t size = 2 * (text->len + len);
	char *larger;

	if (text->size - text->len < len) {
		larger = realloc(text->start, size);
		if (!larger)
			return -1;
		text->start = larger;
		text->size = size;
	}
	memcpy(text->start + text->len, part, len);
	text->len += len;
	return 0;
}

static int append_string(struct text *text, const char *part)
{
	return append(part, strlen(part), text);
}

/* Takes the reference */
static int append_json(struct text *text, json_t *json)
{
	int err = json ? json_dump_callback(json, append, text, JSON_ENCODE_ANY) : -1;

	json_decref(json);
	return err;
}

static int append_head(struct text *text, json_t *head)
{
	const char *key;
	json_t *value;
	int err = 0;

	json_object_foreach(head, key, value) {
		err |= append_string(text, "\t");
		err |= append_json(text, json_string(key));
		err |= append_string(text, ": ");
		err |= append_json(text, json_incref(value));
		err |= append_string(text, ",\n");
	}
	json_decref(head);
	return err;
}

static int append_plan(struct text *text, const struct zcoll_plan *plan)
{
	unsigned int i;
	int err = append_string(text, "{\n");

	err |= append_head(text, json_head(plan));
	err |= append_string(text, "\t\"steps\": [");
	for (i = 0; i < plan->nsteps; i++) {
		err |= append_string(text, i ? ",\n\t\t" : "\n\t\t");
		err |= append_json(text, json_step(plan, i));
	}
	err |= append_string(text, "\n\t]\n}\n");
	err |= append("", 1, text);
	return err;
}

/**
 * zcoll_plan_format - the text form of a plan
 * @plan: plan
 *
 * zcoll_plan_parse() makes the same plan of it, byte for byte.
 *
 * Return: the text, to be freed; NULL, with errno set: ENOMEM, or EINVAL: not a plan
 * that zcoll_plan_parse() would take.
 */
char *zcoll_plan_format(const struct zcoll_plan *plan)
{
	struct text text = { 0 };
	struct zc_plan_why why;

	if (zc_plan_valid(plan, plan->size, &why)) {
		errno = EINVAL;
		return NULL;
	}
	if (!append_plan(&text, plan))
		return text.start;
	free(text.start);
	errno = ENOMEM;
	return NULL;
}
