// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll help: the list of subcommands, or the help text of one; and the search
 * for a subcommand by name.
 */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "msg.h"

#define NAME_LEN 32

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Levenshtein distance: insertions, deletions and replacements from a to b */
static size_t distance(const char *a, const char *b)
{
	size_t row[NAME_LEN + 1], diagonal, above, i, j, n = strlen(b);

	if (n > NAME_LEN || strlen(a) > NAME_LEN)
		return NAME_LEN;
	for (j = 0; j <= n; j++)
		row[j] = j;
	for (i = 0; a[i]; i++) {
		diagonal = row[0];
		row[0] = i + 1;
		for (j = 0; j < n; j++) {
			above = row[j + 1];
			row[j + 1] = min3(above + 1, row[j] + 1, diagonal + (a[i] != b[j]));
			diagonal = above;
		}
	}
	return row[n];
}

static const char *closest(const char *name)
{
	const char *best = NULL;
	size_t d, least = 4;	/* further away is another word */
	int i;

	for (i = 0; commands[i]; i++) {
		d = distance(name, commands[i]->name);
		if (d < least && d < strlen(commands[i]->name)) {
			least = d;
			best = commands[i]->name;
		}
	}
	return best;
}

const struct command *command_find(const char *name)
{
	const char *near;
	int i;

	for (i = 0; commands[i]; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	near = closest(name);
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
	     "Collective operations between the processes of this node, through /dev/zcoll.\n");
	for (i = 0; commands[i]; i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	puts("\n"
	     "Exit status: 0 success, 1 failure, 2 wrong usage; `zcoll run` gives the status\n"
	     "of the first rank that failed.");
}

static int help(int argc, char **argv)
{
	const struct command *cmd;

	if (argc < 2) {
		help_all();
		return STATUS_OK;
	}
	if (argc > 2)
		return usage("one subcommand at a time");
	cmd = command_find(argv[1]);
	if (!cmd)
		return STATUS_USAGE;
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
