/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * zcoll plan and sim: the options that several of their subcommands have, and how times are
 * written.
 */
#ifndef ZCOLL_TOOLS_PLAN_OPTIONS_H
#define ZCOLL_TOOLS_PLAN_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zcoll_plan.h>

/* Is help wanted? Then it has been printed. */
bool plan_wants_help(int argc, char **argv, const char *help);

/* Return 0, or the exit status after a message */
int plan_set_collective(const char *text, uint32_t *collective);
int plan_set_algorithm(const char *text, const char **algo);
int plan_set_levels(const char *text, uint32_t levels[ZCOLL_PLAN_LEVELS]);
int plan_set_bytes(const char *option, const char *text, uint64_t *bytes);
int plan_set_slice(const char *text, uint64_t *bytes);
int plan_set_fabric(const char *text, struct zcoll_fabric *fabric);
int plan_default_fabric(struct zcoll_fabric *fabric);	/* $ZCOLL_COSTS, or built in */

/* "12.3 us", into @text, which is returned */
const char *plan_time(char *text, size_t len, double ns);

int plan_print_json(json_t *root);	/* takes the reference; NULL: out of memory */

#endif /* ZCOLL_TOOLS_PLAN_OPTIONS_H */
