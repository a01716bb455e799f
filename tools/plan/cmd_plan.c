// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll plan: dispatch to its subcommands; see plan.h.
 */
#include <string.h>

#include "../cmd.h"
#include "../msg.h"
#include "../suggest.h"
#include "plan.h"

static const char help[] =
"Usage: zcoll plan make ALGO -N N [OPTION...]\n"
"       zcoll plan show FILE [--node V | --svg FILE | --json]\n"
"       zcoll plan check FILE [OPTION...]\n"
"       zcoll plan cost FILE [OPTION...]\n"
"       zcoll plan select -N N [OPTION...]\n"
"\n"
"A plan is a collective algorithm as a table, which the module carries out. FILE has\n"
"one as JSON or as it is in memory; - is standard input. No device is needed.\n"
"\n"
"make prints the plan of an algorithm, as JSON. ALGO is ring, pairwise,\n"
"recursive-doubling, halving-doubling, circulant, binomial, knomial, double-tree,\n"
"bruck, hierarchical, aggregator or local.\n"
"  -N, --nodes N           nodes that have ranks\n"
"      --coll C            allreduce (the default), reduce-scatter, allgather,\n"
"                          broadcast, reduce or barrier\n"
"      --radix K           of knomial, aggregator, recursive-doubling, circulant and\n"
"                          bruck: 2 or more\n"
"      --levels A,B,...    sizes of groups in hierarchical, innermost first; AxB is\n"
"                          the same\n"
"      --aggregators N     nodes without ranks in aggregator\n"
"      --agreed            no node ends before all have all results\n"
"      --binary            as it is in memory, and not as JSON\n"
"\n"
"show prints a plan for people: its steps in words, and who talks to whom when.\n"
"      --node V            what node V does in each round\n"
"      --svg FILE          draw who talks to whom in which round; -: standard output\n"
"      --json              as JSON\n"
"\n"
"check proves that a plan is right, and tells rounds, messages, memory and the order\n"
"in which it reduces; or says why it is not.\n"
"      --window N          operations in flight (8); the proof holds for any number\n"
"      --slots N           messages that wait for a step that is not ready (2); likewise\n"
"      --all               run all nodes, even if the plan is the same seen from each\n"
"      --json              as one JSON object\n"
"\n"
"cost estimates how long a plan takes.\n"
"      --bytes SIZE        of the whole operation (1M)\n"
"      --slice SIZE        sent and reduced at a time (64K)\n"
"      --fabric FILE       the network, as `zcoll calibrate` writes it\n"
"      --json              as one JSON object\n"
"\n"
"select chooses an algorithm, and explains the choice.\n"
"  -N, --nodes N           nodes that have ranks\n"
"      --coll C            as in make\n"
"      --bytes SIZE        of the whole operation (1M)\n"
"      --element SIZE      bytes of an element (4)\n"
"      --fabric FILE       as in cost\n"
"      --rules FILE        rules that come before the estimate\n"
"      --choice CHOICE     what a call would ask for: ALGO[:radix=K][,levels=AxB]\n"
"                          [,aggregators=N][,slice=SIZE]\n"
"      --ordered           only plans that reduce in the fixed tree's order\n"
"      --agreed            as in make\n"
"      --scratch SIZE      memory that a node has for partial results\n"
"      --no-output         the outputs have no room for all segments\n"
"      --json              as one JSON object\n"
"\n"
"  -h, --help              show this text\n"
"\n"
"Exit status: 0 success, 1 failure or a plan that is not right, 2 wrong usage.\n";

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} subcommands[] = {
	{ "make", plan_make },
	{ "show", plan_show },
	{ "check", plan_check },
	{ "cost", plan_cost },
	{ "select", plan_select },
};

#define NSUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static const char *subcommand_name(unsigned int i)
{
	return i < NSUBCOMMANDS ? subcommands[i].name : NULL;
}

static bool wants_help(int argc, char **argv)
{
	return argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
}

static int run_subcommand(unsigned int i, int argc, char **argv)
{
	char name[32];

	if (wants_help(argc, argv)) {
		fputs(help, stdout);
		return STATUS_OK;
	}
	snprintf(name, sizeof(name), "zcoll plan %s", subcommands[i].name);
	argv[0] = name;
	return subcommands[i].run(argc, argv);
}

static int plan(int argc, char **argv)
{
	const char *near;
	unsigned int i;

	if (argc < 2)
		return usage("make, show, check, cost or select?");
	for (i = 0; i < NSUBCOMMANDS; i++)
		if (!strcmp(argv[1], subcommands[i].name))
			return run_subcommand(i, argc - 1, argv + 1);
	near = suggest(argv[1], subcommand_name);
	if (near)
		return usage("no '%s'; did you mean '%s'?", argv[1], near);
	return usage("no '%s'; there are make, show, check, cost and select", argv[1]);
}

const struct command cmd_plan = {
	.name = "plan",
	.summary = "make, show, prove and choose algorithms",
	.help = help,
	.run = plan,
};
