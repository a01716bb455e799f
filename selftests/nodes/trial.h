/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trial: one operation with data, of which every bit of the result is known.
 *
 * What must come out is the business of the oracle (selftests/lib/oracle.h), which knows the
 * order of each plan. The keeper asks it before the members are forked, so they find
 * the answer in their memory. For much data that would take too long; then inputs are
 * small integers, of which no order shows, and each rank knows the result by itself.
 *
 * Buffers lie in *areas*: guard bytes before and after, which must stay as they were. So
 * must inputs, and outputs of ranks that have none.
 */
#ifndef NODES_TRIAL_H
#define NODES_TRIAL_H

#include <zcoll.h>
#include <zcoll_plan.h>

#include "team.h"

/**
 * struct memory - where a rank's buffers are
 * @name: what tests call it
 * @send_shift: bytes from an aligned address
 * @recv_shift: the same for the output
 * @send_registered: is the input's area?
 * @recv_registered: and the output's?
 * @in_place: only one buffer, as the collective has it
 * @alloc: from zcoll_alloc()
 */
struct memory {
	const char *name;
	unsigned char send_shift;
	unsigned char recv_shift;
	bool send_registered;
	bool recv_registered;
	bool in_place;
	bool alloc;
};

/* 11, so that it has no common divisor with other numbers of choices, see grid.c */
#define MEMORIES	11
extern const struct memory memories[MEMORIES];

/**
 * struct trial - an operation, the same on all ranks
 * @collective: which
 * @dtype: as in struct zcoll_call, like the following
 * @op: 0 where nothing is reduced
 * @root: rank
 * @flags: ZCOLL_CMD_*
 * @count: elements
 * @memory: of all ranks
 * @seed: of the inputs
 * @small: inputs are small integers (int32, fp32)
 * @want: results, by rank; NULL: with @small
 */
struct trial {
	uint32_t collective;
	uint32_t dtype;
	uint32_t op;
	uint32_t root;
	uint32_t flags;
	uint64_t count;
	const struct memory *memory;
	uint64_t seed;
	bool small;
	void *want[TEAM_MEMBERS];
};

/* A buffer between guards */
struct area {
	uint8_t *base;
	size_t room;
	uint8_t *at;
	size_t len;
	bool registered;
	bool alloc;
};

/**
 * struct attempt - a trial at one rank, under way
 * @me: the rank
 * @trial: what
 * @send: area of the input, empty if in place
 * @recv: area of the output
 * @call: for the library
 */
struct attempt {
	struct member *me;
	const struct trial *trial;
	struct area send;
	struct area recv;
	struct zcoll_call call;
};

void trial_name(const struct trial *trial, char *name, size_t len);

/* In the keeper */
const char *trial_expect(struct trial *trial, const struct team *team,
			 const struct zcoll_plan *plan, const uint32_t *map);
void trial_forget(struct trial *trial);

/* In a rank */
bool attempt_begin(struct attempt *a, struct member *me, const struct trial *trial);
void attempt_end(struct attempt *a, int result);
bool trial_run(struct member *me, const struct trial *trial);

bool reduces(uint32_t collective);
bool has_root(uint32_t collective);

#endif /* NODES_TRIAL_H */
