/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Choices: an algorithm with its parameters, as somebody asks for it, in a call, in
 * an environment variable or in a rules file.
 *
 * As text: ALGORITHM[:KEY=VALUE[,KEY=VALUE]...], with the keys radix (at least 2),
 * levels (group sizes, innermost first: 8x4), slice (bytes; K and M are powers of
 * 1024) and aggregators (a number). "knomial:radix=4,slice=64K".
 */
#ifndef ZCOLL_PLAN_CHOICE_H
#define ZCOLL_PLAN_CHOICE_H

#include <zcoll_plan.h>

#define ZC_RADIX_MIN 2
#define ZC_SLICE_MAX (1ULL << 30)	/* bytes */

/**
 * struct zc_choice - an algorithm with its parameters
 * @algo: name, one of zcoll_plan_algorithm()
 * @radix: 0: the algorithm's own
 * @aggregators: likewise
 * @levels: likewise
 * @slice: bytes; 0: not said
 */
struct zc_choice {
	const char *algo;
	uint32_t radix;
	uint32_t aggregators;
	uint32_t levels[ZCOLL_PLAN_LEVELS];
	uint64_t slice;
};

/* make.c */
int zc_plan_wants(const struct zcoll_plan_spec *spec, char *error, size_t error_len);

/* choice.c */
const char *zc_choice_algorithm(const char *name, size_t len);
int zc_choice_parse(const char *text, struct zc_choice *choice, char *error,
		    size_t error_len);

/* select.c: do the variables of selection make sense, each by itself? */
int zc_plan_environment(char *error, size_t error_len);

/**
 * struct zc_rule_query - for what a rule is looked for
 * @collective: ZCOLL_ALLREDUCE ...
 * @nodes: nodes
 * @bytes: of the operation
 */
struct zc_rule_query {
	uint32_t collective;
	uint32_t nodes;
	uint64_t bytes;
};

/* rules.c: 1: there is a rule, @at is its pointer; 0: there is none; or an errno */
int zc_rules_find(const char *path, const struct zc_rule_query *query,
		  struct zc_choice *choice, char *at, size_t at_len, char *error,
		  size_t error_len);

#endif /* ZCOLL_PLAN_CHOICE_H */
