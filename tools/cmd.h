/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The command zcoll: one program, one file for each subcommand.
 *
 * A subcommand is a struct command: its name, one line for the list, its help
 * text, and a function that gets the arguments after its name (argv[0] is
 * "zcoll NAME", so that messages of getopt begin as all others do) and returns
 * the exit status.
 */
#ifndef ZCOLL_CMD_H
#define ZCOLL_CMD_H

#include <stdbool.h>

/* Exit statuses of zcoll; `zcoll run` gives that of the first failed rank instead */
enum {
	STATUS_OK = 0,
	STATUS_FAILED = 1,	/* the work could not be done, or a result is wrong */
	STATUS_USAGE = 2,	/* the command line makes no sense */
};

struct command {
	const char *name;
	const char *summary;
	const char *help;
	int (*run)(int argc, char **argv);
	bool nested;	/* has subcommands with a --help of their own */
};

extern const struct command cmd_aggregate;
extern const struct command cmd_allreduce;
extern const struct command cmd_calibrate;
extern const struct command cmd_help;
extern const struct command cmd_info;
extern const struct command cmd_perf;
extern const struct command cmd_plan;
extern const struct command cmd_run;
extern const struct command cmd_sim;

/* All subcommands in the order of the list, ended by NULL */
extern const struct command *const commands[];

/**
 * command_find - the subcommand of that name
 * @name: what the user typed
 *
 * Returns NULL after a message on standard error, with a suggestion if some name
 * is close.
 */
const struct command *command_find(const char *name);

#endif /* ZCOLL_CMD_H */
