// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll help: the list of subcommands, or the help text of one; and the search
 * for a subcommand by name.
 */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "msg.h"
#include "suggest.h"

static const char *command_name(unsigned int i)
{
	return commands[i] ? commands[i]->name : NULL;
}

const struct command *command_find(const char *name)
{
	const char *near;
	int i;

	for (i = 0; commands[i]; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	near = suggest(name, command_name);
	if (near)
		usage("no subcommand '%s'; did you mean '%s'?", name, near);
	else
		usage("no subcommand '%s'", name);
	return NULL;
}

static void help_all(void)
{
	int i;

	puts("Usage: zcoll SUBCOMMAND [ARG...]\n"
	     "       zcoll help SUBCOMMAND\n"
	     "       zcoll --version\n"
	     "\n"
	     "Collective operations between processes of one node or several, through /dev/zcoll.\n");
	for (i = 0; commands[i]; i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	puts("\n"
	     "Exit status: 0 success, 1 failure, 2 wrong usage; `zcoll run` gives the status\n"
	     "of the first rank that failed.");
}

/* "help sim sweep" is "sim sweep --help" */
static int help_nested(const struct command *cmd, char *name)
{
	static char wanted[] = "--help";
	char *argv[] = { name, name, wanted, NULL };

	return cmd->run(3, argv);
}

static int help(int argc, char **argv)
{
	const struct command *cmd;

	if (argc < 2) {
		help_all();
		return STATUS_OK;
	}
	cmd = command_find(argv[1]);
	if (!cmd)
		return STATUS_USAGE;
	if (argc == 3 && cmd->nested && argv[2][0] != '-')
		return help_nested(cmd, argv[2]);
	if (argc > 2)
		return usage("one subcommand at a time");
	fputs(cmd->help, stdout);
	return STATUS_OK;
}

const struct command cmd_help = {
	.name = "help",
	.summary = "show this list, or the help of a subcommand",
	.help = "Usage: zcoll help [SUBCOMMAND]\n"
		"\n"
		"Shows the list of subcommands, or the help of one.\n",
	.run = help,
};
