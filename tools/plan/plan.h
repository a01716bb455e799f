/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * zcoll plan: what its subcommands share. Each is one function in one file, called as
 * main() is, with argv[0] "zcoll plan NAME"; it returns the exit status.
 */
#ifndef ZCOLL_TOOLS_PLAN_H
#define ZCOLL_TOOLS_PLAN_H

#include <stdbool.h>
#include <stdio.h>

#include <zcoll_plan.h>

#include "../../kmod/engine/plan.h"

int plan_make(int argc, char **argv);
int plan_show(int argc, char **argv);
int plan_check(int argc, char **argv);
int plan_cost(int argc, char **argv);
int plan_select(int argc, char **argv);

/*
 * plan_read - a plan from a file, text or binary; "-": standard input
 *
 * Returns 0, or the exit status after a message. The plan is to be freed by
 * zcoll_plan_free().
 */
int plan_read(const char *path, struct zcoll_plan **plan);

/* A plan's text form to standard output; returns the exit status */
int plan_write(const struct zcoll_plan *plan);

/* A number that an option has, in getopt's optarg; returns 0, or the exit status */
int plan_number(const char *option, uint64_t min, uint64_t max, uint32_t *to);

/* Only arguments that are left in @argv from optind on: one file, or a message */
int plan_file_argument(int argc, char **argv, const char **path);

/* words.c: a step as a sentence, in one line without its end */
void words_step(FILE *out, const struct zcoll_plan *plan, unsigned int index);

/* "segments 2-3,0", or "0-1" with @bare; nothing if there are none */
void words_range(FILE *out, const struct zc_range *range, bool bare);

const char *words_name(const struct zcoll_plan *plan);
const char *words_kind(const struct zcoll_step *step);

/**
 * struct event - a turn of a step at a node, and when
 * @round: of a message: its place in the longest chain of messages that wait for
 *	each other; of what is local: the round after which it is done
 * @node: where
 * @step: step
 * @t: which of the step's turns, from 0
 * @turn: with whom and about what
 */
struct event {
	u32 round;
	u32 node;
	u32 step;
	u32 t;
	struct zc_turn turn;
};

/**
 * struct rounds - all turns of all nodes of a plan
 * @event: by round; in a round what is sent first, then what is received, then what
 *	is local
 * @count: their number
 * @rounds: the last round
 */
struct rounds {
	struct event *event;
	size_t count;
	u32 rounds;
};

/*
 * rounds_find - order the turns of a plan by rounds
 *
 * Returns NULL, or a sentence why that cannot be. To be freed by rounds_free() anyway.
 */
const char *rounds_find(const struct zcoll_plan *plan, struct rounds *rounds);
void rounds_free(struct rounds *rounds);

/*
 * rounds_batch - the next messages of one step in one round
 *
 * Returns the index of their first event from @from on, or @rounds->count; *@end is
 * behind the last one.
 */
size_t rounds_batch(const struct zcoll_plan *plan, const struct rounds *rounds, size_t from,
		    size_t *end);

/* "0>1[2]": who sends which segments to whom */
void words_message(FILE *out, const struct event *event);

/* svg.c: who talks to whom in which round */
void svg_rounds(FILE *out, const struct zcoll_plan *plan, const struct rounds *rounds);

#endif /* ZCOLL_TOOLS_PLAN_H */
