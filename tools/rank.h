/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Rank: what a new child of the launcher does before it runs its program, and
 * what the launcher has to prepare for that.
 */
#ifndef ZCOLL_TOOLS_RANK_H
#define ZCOLL_TOOLS_RANK_H

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "launch.h"

/**
 * struct rank_setup - the same for all ranks
 * @job: the job
 * @launcher: the parent
 * @key: of the communicator, as text
 * @cpus: CPUs that the launcher may use, NULL: ranks are not bound
 * @cpus_size: size of @cpus in bytes
 * @mask: signal mask that the ranks get back
 * @sigpipe: disposition of SIGPIPE that the ranks get back
 * @files: limit of open files that the ranks get back
 * @exec_errors: a rank that cannot exec writes errno here
 * @signals: the launcher's signalfd, of no use to ranks
 */
struct rank_setup {
	const struct launch *job;
	pid_t launcher;
	char key[33];
	cpu_set_t *cpus;
	size_t cpus_size;
	sigset_t mask;
	sighandler_t sigpipe;
	struct rlimit files;
	int exec_errors;
	int signals;
};

int rank_setup(struct rank_setup *setup, const struct launch *job);
void rank_setup_free(struct rank_setup *setup);

/* Runs in the child. @output: pipes for standard output and error, or -1 */
_Noreturn void rank_main(const struct rank_setup *setup, unsigned int rank, const int output[2]);

#endif /* ZCOLL_TOOLS_RANK_H */
