// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll: dispatch to the subcommands; see cmd.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll.h>

#include "cmd.h"
#include "msg.h"

const struct command *const commands[] = {
	&cmd_info, &cmd_run, &cmd_allreduce, &cmd_perf, &cmd_aggregate, &cmd_plan, &cmd_sim,
	&cmd_calibrate, &cmd_help, NULL,
};

static int wants_help(int argc, char **argv)
{
	/* only the first: what follows may be the command line of a program */
	return argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
}

static int run_command(const struct command *cmd, int argc, char **argv)
{
	char name[32];

	snprintf(name, sizeof(name), "zcoll %s", cmd->name);
	msg_command(cmd->name);
	if (wants_help(argc, argv)) {
		fputs(cmd->help, stdout);
		return STATUS_OK;
	}
	argv[0] = name;
	return cmd->run(argc, argv);
}

static int dispatch(int argc, char **argv)
{
	const struct command *cmd;

	if (argc < 2) {
		cmd_help.run(0, NULL);
		return usage("which subcommand?");
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("zcoll %s (ABI %d)\n", zcoll_version(), ZCOLL_ABI_VERSION);
		return STATUS_OK;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return cmd_help.run(0, NULL);
	cmd = command_find(argv[1]);
	if (!cmd)
		return STATUS_USAGE;
	return run_command(cmd, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	return output_status(dispatch(argc, argv));
}
