// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll run: start the ranks of a job on this node; see launch.h.
 */
#include <getopt.h>
#include <stddef.h>

#include <zcoll.h>

#include "cmd.h"
#include "launch.h"
#include "msg.h"
#include "parse.h"

static const char help[] =
"Usage: zcoll run -n N [OPTION...] [--] PROG [ARG...]\n"
"\n"
"Starts N ranks of PROG on this node, and waits for them. When one fails, the\n"
"others are ended, and the exit status is that of the first failure.\n"
"\n"
"  -n, --ranks N      number of ranks, 1 to 1024\n"
"      --bind         bind rank i to the i-th usable CPU, modulo their number\n"
"      --prefix       put \"[rank] \" before each line of output\n"
"      --deadline T   fail each collective operation that takes longer than T, and\n"
"                     joining too, unless ZCOLL_JOIN_TIMEOUT is set\n"
"      --grace T      time between SIGTERM and SIGKILL (5s)\n"
"  -h, --help         show this text\n"
"\n"
"In PROG and each ARG, %r stands for the rank, %n for the number of ranks and %%\n"
"for %; any other % is kept.\n"
"\n"
"Times are a number and ns, us, ms, s, m or h; without a unit in seconds.\n"
"The ranks must join within ZCOLL_JOIN_TIMEOUT of the environment (60s).\n"
"\n"
"Each rank finds ZCOLL_RANK, ZCOLL_SIZE and ZCOLL_KEY in its environment, and for\n"
"programs written for other launchers RANK, WORLD_SIZE, LOCAL_RANK and\n"
"LOCAL_WORLD_SIZE. Rank 0 reads the standard input, the others /dev/null.\n"
"\n"
"SIGINT, SIGTERM and SIGHUP are passed on to the ranks and end the job; the second\n"
"one kills them at once.\n"
"\n"
"Exit status: 0 when all ranks succeeded; that of the first rank that failed, or\n"
"128 + signal if a signal ended it; 126 or 127 if PROG cannot be run; 128 + signal\n"
"if the job was told to stop; 1 if ranks could not be started; 2 wrong usage.\n"
"\n"
"Example: zcoll run -n 4 -- zcoll allreduce --op sum in.%r.npy out.%r.npy\n";

static int run(int argc, char **argv)
{
	enum { OPT_BIND = 256, OPT_PREFIX, OPT_DEADLINE, OPT_GRACE };
	static const struct option options[] = {
		{ "ranks", required_argument, NULL, 'n' },
		{ "bind", no_argument, NULL, OPT_BIND },
		{ "prefix", no_argument, NULL, OPT_PREFIX },
		{ "deadline", required_argument, NULL, OPT_DEADLINE },
		{ "grace", required_argument, NULL, OPT_GRACE },
		{ NULL, 0, NULL, 0 },
	};
	struct launch job = { .grace_ns = LAUNCH_GRACE_NS };
	uint64_t n = 0;
	int opt;

	/* '+': options after PROG are its own */
	while ((opt = getopt_long(argc, argv, "+n:", options, NULL)) != -1) {
		switch (opt) {
		case 'n':
			if (parse_uint(optarg, 1, ZCOLL_MAX_RANKS, &n))
				return usage("-n %s: not a number from 1 to %d", optarg,
					     ZCOLL_MAX_RANKS);
			break;
		case OPT_BIND:
			job.bind = true;
			break;
		case OPT_PREFIX:
			job.prefix = true;
			break;
		case OPT_DEADLINE:
			if (parse_deadline(optarg, &job.deadline_ns))
				return usage("--deadline %s: not a time up to one day", optarg);
			break;
		case OPT_GRACE:
			if (parse_duration(optarg, &job.grace_ns))
				return usage("--grace %s: not a time", optarg);
			break;
		default:
			return usage_option();
		}
	}
	if (!n)
		return usage("-n N is missing: how many ranks?");
	if (optind == argc)
		return usage("which program?");
	job.nranks = (unsigned int)n;
	job.argv = argv + optind;
	return launch_run(&job);
}

const struct command cmd_run = {
	.name = "run",
	.summary = "start the ranks of a job on this node",
	.help = help,
	.run = run,
};
