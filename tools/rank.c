// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Rank: from fork to exec; see rank.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <zcoll.h>

#include "msg.h"
#include "rank.h"

/* ---- in the launcher ---- */

static int make_key(char key[33])
{
	unsigned char bytes[16];
	int i;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -errno;
	for (i = 0; i < 16; i++)
		sprintf(key + 2 * i, "%02x", bytes[i]);
	return 0;
}

/* The kernel refuses a set that is smaller than its own: try larger ones */
static int usable_cpus(struct rank_setup *setup)
{
	int n;

	for (n = 1024; n <= 1 << 16; n *= 2) {
		setup->cpus = CPU_ALLOC(n);
		if (!setup->cpus)
			return -ENOMEM;
		setup->cpus_size = CPU_ALLOC_SIZE(n);
		if (!sched_getaffinity(0, setup->cpus_size, setup->cpus))
			return 0;
		CPU_FREE(setup->cpus);
		setup->cpus = NULL;
	}
	return -errno;
}

/* The relay holds two pipes of each rank, and makes two ends more for a moment */
static int raise_file_limit(struct rank_setup *setup)
{
	rlim_t need = 2ULL * setup->job->nranks + 32;
	struct rlimit limit;

	limit = setup->files;
	if (!setup->job->prefix || limit.rlim_cur >= need)
		return 0;
	if (limit.rlim_max < need) {
		msg("--prefix with %u ranks needs %llu open files, the hard limit is %llu; raise it (ulimit -Hn) or leave --prefix out",
		    setup->job->nranks, (unsigned long long)need,
		    (unsigned long long)limit.rlim_max);
		return -EMFILE;
	}
	limit.rlim_cur = need;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

int rank_setup(struct rank_setup *setup, const struct launch *job)
{
	int err;

	setup->job = job;
	setup->launcher = getpid();
	setup->exec_errors = -1;
	if (getrlimit(RLIMIT_NOFILE, &setup->files))
		return -errno;
	err = make_key(setup->key);
	if (!err && job->bind)
		err = usable_cpus(setup);
	if (!err)
		err = raise_file_limit(setup);
	return err;
}

void rank_setup_free(struct rank_setup *setup)
{
	if (setup->cpus)
		CPU_FREE(setup->cpus);
	if (setup->exec_errors >= 0)
		close(setup->exec_errors);
}

/* ---- in the child ---- */

static int bind_to_cpu(const struct rank_setup *setup, unsigned int rank)
{
	int nth = (int)(rank % (unsigned int)CPU_COUNT_S(setup->cpus_size, setup->cpus));
	cpu_set_t *one = CPU_ALLOC(8 * setup->cpus_size);
	size_t cpu;
	int err;

	if (!one)
		return -ENOMEM;
	for (cpu = 0; !CPU_ISSET_S(cpu, setup->cpus_size, setup->cpus) || nth-- > 0; cpu++)
		;
	CPU_ZERO_S(setup->cpus_size, one);
	CPU_SET_S(cpu, setup->cpus_size, one);
	err = sched_setaffinity(0, setup->cpus_size, one) ? -errno : 0;
	CPU_FREE(one);
	return err;
}

static int set_number(const char *name, unsigned long long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", value);
	return setenv(name, text, 1) ? -errno : 0;
}

static int set_time(const char *name, uint64_t ns, int replace)
{
	char text[32];

	snprintf(text, sizeof(text), "%lluns", (unsigned long long)ns);
	return setenv(name, text, replace) ? -errno : 0;
}

/* A rank that never joins is a wait too; but what the user says of joining counts */
static int set_deadline(uint64_t ns)
{
	uint64_t join = ns < ZCOLL_JOIN_TIMEOUT_NS ? ns : ZCOLL_JOIN_TIMEOUT_NS;
	int err = set_time("ZCOLL_DEADLINE", ns, 1);

	return err ? err : set_time("ZCOLL_JOIN_TIMEOUT", join, 0);
}

static int set_environment(const struct rank_setup *setup, unsigned int rank)
{
	const struct launch *job = setup->job;
	int err;

	err = set_number("ZCOLL_RANK", rank);
	if (!err)
		err = set_number("ZCOLL_SIZE", job->nranks);
	if (!err && setenv("ZCOLL_KEY", setup->key, 1))
		err = -errno;
	if (!err)
		err = set_number("RANK", rank);
	if (!err)
		err = set_number("WORLD_SIZE", job->nranks);
	if (!err)
		err = set_number("LOCAL_RANK", rank);
	if (!err)
		err = set_number("LOCAL_WORLD_SIZE", job->nranks);
	if (!err && job->deadline_ns)
		err = set_deadline(job->deadline_ns);
	return err;
}

/* Standard input belongs to rank 0 */
static int set_files(unsigned int rank, const int output[2])
{
	int null;

	if (rank) {
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (null < 0 || dup2(null, STDIN_FILENO) < 0)
			return -errno;
		if (null != STDIN_FILENO)
			close(null);
	}
	if (output[0] >= 0 && dup2(output[0], STDOUT_FILENO) < 0)
		return -errno;
	if (output[1] >= 0 && dup2(output[1], STDERR_FILENO) < 0)
		return -errno;
	return 0;
}

/* To be as the launcher was before it became one */
static int restore(const struct rank_setup *setup)
{
	signal(SIGPIPE, setup->sigpipe);
	if (setrlimit(RLIMIT_NOFILE, &setup->files))
		return -errno;
	if (sigprocmask(SIG_SETMASK, &setup->mask, NULL))
		return -errno;
	return 0;
}

char *launch_expand(const char *arg, unsigned int rank, unsigned int nranks)
{
	/* a number takes at most ten characters in place of two */
	char *text = malloc(5 * strlen(arg) + 1), *to = text;

	if (!text)
		return NULL;
	while (*arg) {
		if (arg[0] == '%' && arg[1] == 'r')
			to += sprintf(to, "%u", rank);
		else if (arg[0] == '%' && arg[1] == 'n')
			to += sprintf(to, "%u", nranks);
		else if (arg[0] == '%' && arg[1] == '%')
			*to++ = '%';
		else {
			*to++ = *arg++;
			continue;
		}
		arg += 2;
	}
	*to = '\0';
	return text;
}

/* Returns only on failure; memory is left to _exit() */
static int run_program(const struct rank_setup *setup, unsigned int rank)
{
	unsigned int nranks = setup->job->nranks;
	char **from = setup->job->argv, **argv;
	size_t n = 0;

	while (from[n])
		n++;
	argv = calloc(n + 1, sizeof(*argv));
	for (n = 0; argv && from[n]; n++) {
		argv[n] = launch_expand(from[n], rank, nranks);
		if (!argv[n])
			return -ENOMEM;
	}
	if (!argv)
		return -ENOMEM;
	execvp(argv[0], argv);
	return -errno;
}

_Noreturn void rank_main(const struct rank_setup *setup, unsigned int rank, const int output[2])
{
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != setup->launcher)
		_exit(1);	/* it died before the line above */
	err = set_files(rank, output);
	if (!err && setup->cpus)
		err = bind_to_cpu(setup, rank);
	if (!err)
		err = set_environment(setup, rank);
	if (!err)
		err = restore(setup);
	if (!err && !setup->job->argv) {
		close(setup->exec_errors);
		close(setup->signals);
		exit(output_status(setup->job->child(setup->job->arg)));
	}
	if (!err)
		err = run_program(setup, rank);
	err = -err;
	/* the launcher reports the first of these; it may be gone */
	if (write(setup->exec_errors, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(err == ENOENT ? 127 : 126);
}
