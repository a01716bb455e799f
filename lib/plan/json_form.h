/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The text form of plans: JSON, one object for each step, on one line, which a person
 * can write. What both directions share is here: the keys, what a key that is not
 * given stands for, and the names of enumerations and flags.
 *
 * What a number is usually need not be written. That is a constant, or follows from the
 * plan, so that a step of a ring reads
 *
 *	{"step": 0, "kind": "send", "repeat": 3, "flags": ["first"], "peer": {"add": 1},
 *	 "segments": {"of": "self"}, "match": 1}
 */
#ifndef LIBZCOLL_PLAN_JSON_FORM_H
#define LIBZCOLL_PLAN_JSON_FORM_H

#include "../../kmod/engine/plan.h"

/* A text that is longer is no plan: the longest one that is written is shorter */
#define PLAN_TEXT_MAX	(1U << 20)

/* Names of the values 0, 1, ... of an enumeration, or of the bits 0, 1, ... of flags */
struct zc_form_names {
	const char *const *name;
	unsigned int count;
};

extern const struct zc_form_names zc_form_flags;
extern const struct zc_form_names zc_form_kinds;
extern const struct zc_form_names zc_form_peers;
extern const struct zc_form_names zc_form_step_flags;
extern const struct zc_form_names zc_form_of;
extern const struct zc_form_names zc_form_after;

/* What a number is where it is not given */
enum zc_form_usual {
	USUAL_0,
	USUAL_1,
	USUAL_NODES,		/* nodes of the plan */
	USUAL_LAST,		/* the last of them */
	USUAL_SEGMENTS,		/* segments of the plan */
	USUAL_EVERY,		/* the step's every - 1 */
};

enum zc_form_type { PLAN_U16, PLAN_U32, PLAN_S32 };

/**
 * struct zc_form_number - a number of a structure and its key
 * @key: in the JSON object
 * @offset: in the structure
 * @type: of the structure's member
 * @usual: what it is where it is not given
 */
struct zc_form_number {
	const char *key;
	uint16_t offset;
	uint8_t type;
	uint8_t usual;
};

/* Lists that end with a NULL key: of the plan, of a step, of its groups, of a scratch place */
extern const struct zc_form_number zc_form_plan[];
extern const struct zc_form_number zc_form_repeat[];
extern const struct zc_form_number zc_form_who[];
extern const struct zc_form_number zc_form_digit[];
extern const struct zc_form_number zc_form_segments[];
extern const struct zc_form_number zc_form_match[];
extern const struct zc_form_number zc_form_place[];

int64_t zc_form_get(const struct zc_form_number *number, const void *from);
void zc_form_set(const struct zc_form_number *number, void *to, int64_t value);
int64_t zc_form_usual(const struct zc_form_number *number, const struct zcoll_plan *plan,
		      const struct zcoll_step *step);

#endif /* LIBZCOLL_PLAN_JSON_FORM_H */
