// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Launch: the supervisor of the ranks of a job; see launch.h. What a rank does
 * between fork and exec is in rank.c.
 *
 * One loop: signals arrive by a signalfd, output by the relay, time by poll().
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"
#include "launch.h"
#include "msg.h"
#include "progress.h"
#include "rank.h"
#include "relay.h"

struct supervisor {
	const struct launch *job;
	struct rank_setup setup;
	struct relay relay;
	struct pollfd *fds;
	pid_t *pids;		/* of each rank, 0: not started or gone */
	unsigned int running;
	int signals;		/* signalfd */
	int exec_errors;	/* read end: errno of ranks that could not exec */
	int status;		/* of the first failure */
	int told;		/* the signal that told us to stop */
	bool ending;
	bool childless;		/* nothing left, adopted processes included */
	bool killed;
	bool impatient;		/* told twice: do not wait for a slow reader either */
	uint64_t kill_ns;	/* when the grace time is over */
};

/* ---- sending signals ---- */

/*
 * Signals all children: the ranks and, as we are their subreaper, what they left
 * behind. A kernel without CONFIG_PROC_CHILDREN lists none: then only the ranks.
 */
static void signal_all(struct supervisor *s, int sig)
{
	FILE *list = fopen("/proc/thread-self/children", "re");
	unsigned int i;
	int pid, n = 0;

	while (list && fscanf(list, "%d", &pid) == 1) {
		kill(pid, sig);
		n++;
	}
	if (list)
		fclose(list);
	for (i = 0; !n && i < s->job->nranks; i++)
		if (s->pids[i])
			kill(s->pids[i], sig);
}

static void end_job(struct supervisor *s, int sig)
{
	if (s->ending)
		return;
	s->ending = true;
	s->kill_ns = now_ns() + s->job->grace_ns;
	if (sig)
		signal_all(s, sig);
}

static void kill_job(struct supervisor *s)
{
	if (s->killed)
		return;
	s->killed = true;
	if (s->running)
		msg("%u of %u ranks still run after the grace time of %g s; sending SIGKILL",
		    s->running, s->job->nranks, (double)s->job->grace_ns / 1e9);
	signal_all(s, SIGKILL);
}

/* SIGINT, SIGTERM or SIGHUP: pass it on, then end; the second time, at once */
static void told_to_stop(struct supervisor *s, const struct signalfd_siginfo *info)
{
	int sig = (int)info->ssi_signo;

	if (s->told) {
		signal_all(s, SIGKILL);
		s->killed = true;
		s->impatient = true;
		return;
	}
	s->told = sig;
	/* one from the terminal has reached the ranks too: same process group */
	end_job(s, info->ssi_code == SI_KERNEL ? 0 : sig);
}

/* ---- ranks that end ---- */

static int exit_status(int wstatus)
{
	return WIFSIGNALED(wstatus) ? 128 + WTERMSIG(wstatus) : WEXITSTATUS(wstatus);
}

static void first_failure(struct supervisor *s, unsigned int rank, int wstatus)
{
	int err;

	s->status = exit_status(wstatus);
	if (read(s->exec_errors, &err, sizeof(err)) == (ssize_t)sizeof(err))
		msg("cannot run '%s': %s", s->job->argv[0], strerror(err));
	else if (WIFSIGNALED(wstatus))
		msg("rank %u was killed by signal %d (%s)%s", rank, WTERMSIG(wstatus),
		    strsignal(WTERMSIG(wstatus)), s->running ? "; ending the others" : "");
	else
		msg("rank %u exited with status %d%s", rank, s->status,
		    s->running ? "; ending the others" : "");
}

static void rank_ended(struct supervisor *s, pid_t pid, int wstatus)
{
	unsigned int rank;

	for (rank = 0; rank < s->job->nranks; rank++)
		if (s->pids[rank] == pid)
			break;
	if (rank == s->job->nranks)
		return;		/* adopted from a rank */
	s->pids[rank] = 0;
	s->running--;
	/* what fails because it was told to end is not a failure of its own */
	if (!exit_status(wstatus) || s->status || s->ending)
		return;
	first_failure(s, rank, wstatus);
	end_job(s, SIGTERM);
}

static void reap(struct supervisor *s, pid_t which)
{
	int wstatus;
	pid_t pid;

	while ((pid = waitpid(which, &wstatus, WNOHANG)) > 0)
		rank_ended(s, pid, wstatus);
	if (which == -1) {
		s->childless = pid < 0;
		/* orphans of ranks that have just ended */
		if (s->ending && !s->running && !s->childless)
			signal_all(s, s->killed ? SIGKILL : SIGTERM);
	}
}

static void handle_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo != SIGCHLD) {
			told_to_stop(s, &info);
			continue;
		}
		/* later SIGCHLDs were merged into this one: it tells who was first */
		reap(s, (pid_t)info.ssi_pid);
		reap(s, -1);
	}
}

/* ---- start ---- */

static int start_rank(struct supervisor *s, unsigned int rank)
{
	int ends[2] = { -1, -1 };
	int err = 0;
	pid_t pid;

	if (s->job->prefix)
		err = relay_open(&s->relay, rank, ends);
	if (!err) {
		pid = fork();
		if (!pid)
			rank_main(&s->setup, rank, ends);
		if (pid < 0) {
			err = -errno;
		} else {
			s->pids[rank] = pid;
			s->running++;
		}
	}
	if (ends[0] >= 0)
		close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	return err;
}

static void start_ranks(struct supervisor *s)
{
	unsigned int rank;
	int err;

	fflush(NULL);
	for (rank = 0; rank < s->job->nranks && !s->ending; rank++) {
		err = start_rank(s, rank);
		if (err) {
			s->status = failed("cannot start rank %u of %u: %s", rank,
					   s->job->nranks, strerror(-err));
			end_job(s, SIGTERM);
		}
		handle_signals(s);
	}
	close(s->setup.exec_errors);
	s->setup.exec_errors = -1;
}

/* ---- the loop ---- */

static int poll_timeout(const struct supervisor *s)
{
	uint64_t now = now_ns();

	if (!s->ending || s->killed)
		return -1;
	return now >= s->kill_ns ? 0 : (int)((s->kill_ns - now) / 1000000 + 1);
}

static bool all_gone(const struct supervisor *s)
{
	return s->ending ? s->childless : !s->running;
}

/* Nobody reads our output any more: end, as the signal would end any other program */
static void output_failed(struct supervisor *s, int err)
{
	if (!s->status)
		s->status = err == -EPIPE ? 128 + SIGPIPE
					  : failed("cannot write the output: %s", strerror(-err));
	relay_free(&s->relay);
	end_job(s, SIGTERM);
}

static void supervise(struct supervisor *s)
{
	unsigned int n;
	int ret;

	reap(s, -1);
	while (!all_gone(s) || (s->relay.nsources && !s->impatient)) {
		ret = all_gone(s) ? relay_finish(&s->relay) : relay_move(&s->relay);
		if (ret < 0)
			output_failed(s, ret);
		if (ret > 0 && all_gone(s))
			break;
		s->fds[0] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
		n = 1 + relay_poll(&s->relay, s->fds + 1);
		if (poll(s->fds, n, poll_timeout(s)) < 0 && errno != EINTR)
			break;
		handle_signals(s);
		if (s->ending && now_ns() >= s->kill_ns)
			kill_job(s);
	}
}

/* ---- set-up ---- */

/* Signals that whoever started us wants ignored (nohup) stay so */
static void add_unless_ignored(sigset_t *set, int sig)
{
	struct sigaction now;

	if (!sigaction(sig, NULL, &now) && now.sa_handler != SIG_IGN)
		sigaddset(set, sig);
}

static int open_signals(struct supervisor *s)
{
	sigset_t set;

	/* an ignored SIGCHLD would reap the ranks before us */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	add_unless_ignored(&set, SIGINT);
	add_unless_ignored(&set, SIGTERM);
	add_unless_ignored(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, &s->setup.mask))
		return -errno;
	s->setup.sigpipe = signal(SIGPIPE, SIG_IGN);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signals < 0 ? -errno : 0;
}

static int open_exec_errors(struct supervisor *s)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	s->exec_errors = ends[0];
	s->setup.exec_errors = ends[1];
	return 0;
}

static int setup(struct supervisor *s)
{
	unsigned int n = s->job->nranks;
	int err;

	s->pids = calloc(n, sizeof(*s->pids));
	s->fds = calloc(1 + 2 * n, sizeof(*s->fds));
	if (!s->pids || !s->fds)
		return -ENOMEM;
	err = rank_setup(&s->setup, s->job);
	if (!err)
		err = open_exec_errors(s);
	if (!err && s->job->prefix)
		err = relay_init(&s->relay, n);
	if (!err && prctl(PR_SET_CHILD_SUBREAPER, 1))
		err = -errno;
	if (!err)
		err = open_signals(s);
	s->setup.signals = s->signals;
	return err;
}

int launch_run(const struct launch *job)
{
	struct supervisor s = { .job = job, .signals = -1, .exec_errors = -1 };
	int err;

	err = setup(&s);
	if (err) {
		s.status = failed("cannot prepare %u ranks: %s", job->nranks, strerror(-err));
	} else {
		start_ranks(&s);
		supervise(&s);
		if (!s.status && s.told)
			s.status = 128 + s.told;
	}
	relay_free(&s.relay);
	rank_setup_free(&s.setup);
	if (s.signals >= 0)
		close(s.signals);
	if (s.exec_errors >= 0)
		close(s.exec_errors);
	free(s.fds);
	free(s.pids);
	return s.status;
}
