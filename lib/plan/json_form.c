// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The text form of plans: keys and names; see json_form.h.
 */
#include "json_form.h"

#define NAMES(...) {								\
	.name = (const char *const[]){ __VA_ARGS__ },				\
	.count = sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *),	\
}

const struct zc_form_names zc_form_flags = NAMES("ordered", "agreed");
const struct zc_form_names zc_form_kinds = NAMES(NULL, "gather", "send", "fold", "deliver",
						"final");
const struct zc_form_names zc_form_peers = NAMES(NULL, "add", "xor", "to");
const struct zc_form_names zc_form_step_flags = NAMES("first", "input", "store", "result",
						     "open", "flip");
const struct zc_form_names zc_form_of = NAMES("zero", "self", "peer");
const struct zc_form_names zc_form_after = NAMES(NULL, "slice", "turn", "all");

#define OF_PLAN(member, type, usual) \
	{ #member, offsetof(struct zcoll_plan, member), type, usual }
#define OF_STEP(key, member, type, usual) \
	{ key, offsetof(struct zcoll_step, member), type, usual }

const struct zc_form_number zc_form_plan[] = {
	OF_PLAN(nodes, PLAN_U32, USUAL_0),
	OF_PLAN(members, PLAN_U32, USUAL_NODES),
	OF_PLAN(segments, PLAN_U32, USUAL_NODES),
	OF_PLAN(scratch, PLAN_U32, USUAL_0),
	OF_PLAN(acc, PLAN_U32, USUAL_0),
	{ NULL },
};

const struct zc_form_number zc_form_repeat[] = {
	OF_STEP("repeat", repeat, PLAN_U32, USUAL_1),
	{ NULL },
};

/* hi comes after every, by which it is judged */
const struct zc_form_number zc_form_who[] = {
	OF_STEP("origin", origin, PLAN_U32, USUAL_0),
	OF_STEP("first", first, PLAN_U32, USUAL_0),
	OF_STEP("last", last, PLAN_U32, USUAL_LAST),
	OF_STEP("every", every, PLAN_U32, USUAL_1),
	OF_STEP("lo", lo, PLAN_U32, USUAL_0),
	OF_STEP("hi", hi, PLAN_U32, USUAL_EVERY),
	{ NULL },
};

const struct zc_form_number zc_form_digit[] = {
	OF_STEP("stride", stride, PLAN_U32, USUAL_1),
	OF_STEP("radix", radix, PLAN_U32, USUAL_NODES),
	{ NULL },
};

const struct zc_form_number zc_form_segments[] = {
	OF_STEP("at", seg, PLAN_S32, USUAL_0),
	OF_STEP("each", seg_step, PLAN_S32, USUAL_0),
	OF_STEP("count", count, PLAN_U32, USUAL_1),
	OF_STEP("width", width, PLAN_U32, USUAL_1),
	OF_STEP("blocks", blocks, PLAN_U32, USUAL_SEGMENTS),
	{ NULL },
};

const struct zc_form_number zc_form_match[] = {
	OF_STEP("match", match, PLAN_U16, USUAL_0),
	{ NULL },
};

const struct zc_form_number zc_form_place[] = {
	{ "scratch", offsetof(struct zcoll_place, index), PLAN_S32, USUAL_0 },
	{ "each", offsetof(struct zcoll_place, index_step), PLAN_S32, USUAL_0 },
	{ NULL },
};

int64_t zc_form_get(const struct zc_form_number *number, const void *from)
{
	const char *at = (const char *)from + number->offset;

	switch (number->type) {
	case PLAN_U16:
		return *(const uint16_t *)at;
	case PLAN_U32:
		return *(const uint32_t *)at;
	}
	return *(const int32_t *)at;
}

void zc_form_set(const struct zc_form_number *number, void *to, int64_t value)
{
	char *at = (char *)to + number->offset;

	switch (number->type) {
	case PLAN_U16:
		*(uint16_t *)at = value;
		break;
	case PLAN_U32:
		*(uint32_t *)at = value;
		break;
	case PLAN_S32:
		*(int32_t *)at = value;
		break;
	}
}

/* @step: the step that has the number, or NULL if the plan has it */
int64_t zc_form_usual(const struct zc_form_number *number, const struct zcoll_plan *plan,
		      const struct zcoll_step *step)
{
	switch (number->usual) {
	case USUAL_1:
		return 1;
	case USUAL_NODES:
		return plan->nodes;
	case USUAL_LAST:
		return plan->nodes ? plan->nodes - 1 : 0;
	case USUAL_SEGMENTS:
		return plan->segments;
	case USUAL_EVERY:
		return step->every ? step->every - 1 : 0;
	}
	return 0;
}
