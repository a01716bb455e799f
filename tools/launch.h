/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Launch: start the ranks of a job on this node, and look after them to the end.
 *
 * Each rank is a child process with the environment of the job (ZCOLL_RANK,
 * ZCOLL_SIZE, ZCOLL_KEY, and RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE). The
 * job *ends early* when a rank fails or the launcher is told to stop: all that
 * still runs gets SIGTERM, and SIGKILL when the grace time is over. The launcher
 * is the subreaper of its ranks, so that what they started ends with them, and it
 * leaves no zombie. Ranks die with the launcher, however it ends.
 *
 * The ranks stay in the launcher's process group: a terminal's Ctrl-C or Ctrl-Z
 * reaches all of them, and rank 0 can read from it. A signal that the terminal
 * sent is therefore not passed on once more; one that was sent to the launcher
 * alone is.
 */
#ifndef ZCOLL_LAUNCH_H
#define ZCOLL_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct launch - a job
 * @nranks: number of ranks, 1 .. ZCOLL_MAX_RANKS
 * @argv: program and arguments, ended by NULL; in each, %r stands for the rank,
 *	%n for the number of ranks and %% for %. NULL: call @child instead.
 * @child: what a rank does if there is no program; its exit status
 * @arg: given to @child
 * @bind: bind rank i to the i-th CPU that the launcher may use, modulo their number
 * @prefix: put "[rank] " before each line that a rank writes
 * @deadline_ns: default deadline of the ranks' operations, and of joining, 0: the
 *	library's
 * @grace_ns: time between SIGTERM and SIGKILL
 */
struct launch {
	unsigned int nranks;
	char **argv;
	int (*child)(void *arg);
	void *arg;
	bool bind;
	bool prefix;
	uint64_t deadline_ns;
	uint64_t grace_ns;
};

#define LAUNCH_GRACE_NS	5000000000ULL

/**
 * launch_run - run the job
 *
 * Returns the exit status: that of the first rank that failed (128 + signal if a
 * signal ended it; 126 or 127 if the program could not be run), 128 + signal if
 * the launcher was told to stop before a rank failed, else 0.
 */
int launch_run(const struct launch *job);

/* One argument for one rank, with %r, %n and %% replaced; to be freed. NULL: no memory */
char *launch_expand(const char *arg, unsigned int rank, unsigned int nranks);

#endif /* ZCOLL_LAUNCH_H */
