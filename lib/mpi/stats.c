// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Statistics: how many calls were taken, how many of these without the kernel, by mailboxes,
 * and how many were passed on and why. With ZCOLL_MPI_STATS a process prints a line of them
 * when it ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zcoll_plan.h>

#include "internal.h"

static _Atomic unsigned long taken[ZCOLL_NR_COLLECTIVES], passed[ZM_NR_REASONS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char no_comm[ZCOLL_TEXT_MAX];
static unsigned long mailed;	/* by communicators that were freed */
static int rank = -1;
static pid_t pid;	/* a child of fork() has nothing to say */

static const char *const reasons[ZM_NR_REASONS] = {
	[ZM_ARGUMENTS] = "wrong arguments",
	[ZM_OPERATOR] = "operator",
	[ZM_TYPE] = "datatype",
	[ZM_UNEQUAL] = "unequal blocks",
	[ZM_EMPTY] = "no data",
	[ZM_LARGE] = "limit of locked memory",
	[ZM_HUGE] = "2 GiB or more",
	[ZM_INTER] = "inter-communicator",
	[ZM_ALONE] = "one rank",
	[ZM_SESSION] = "no MPI_Init",
	[ZM_NOT_YET] = "not blocking, before a blocking one",
	[ZM_NO_COMM] = "no communicator",
};

void zm_count(unsigned int collective, enum zm_reason reason)
{
	if (rank < 0 && reason != ZM_SESSION) {
		PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
		pid = getpid();
	}
	if (reason)
		atomic_fetch_add_explicit(&passed[reason], 1, memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&taken[collective], 1, memory_order_relaxed);
}

/* Called once for each communicator, at its end or ours */
void zm_count_mail(struct zm_comm *c)
{
	struct zcoll_stats stats;

	if (zcoll_comm_stats(c->zcoll, &stats))
		return;
	pthread_mutex_lock(&lock);
	mailed += stats.ops_mailbox;
	pthread_mutex_unlock(&lock);
}

static bool count_mail(struct zm_comm *c)
{
	zm_count_mail(c);
	return false;
}

/* The first reason is kept */
void zm_why_no_comm(const char *text)
{
	pthread_mutex_lock(&lock);
	if (!no_comm[0])
		snprintf(no_comm, sizeof(no_comm), "%s", text);
	pthread_mutex_unlock(&lock);
}

static unsigned long sum(_Atomic unsigned long *counts, int n)
{
	unsigned long all = 0;

	for (int i = 1; i < n; i++)
		all += counts[i];
	return all;
}

static void print_list(FILE *to, _Atomic unsigned long *counts, int n,
		       const char *(*name)(int i))
{
	const char *before = " (";

	for (int i = 1; i < n; i++) {
		if (!counts[i])
			continue;
		fprintf(to, "%s%s %lu", before, name(i), counts[i]);
		before = ", ";
	}
	if (before[0] == ',')
		fputc(')', to);
}

static const char *collective_name(int i)
{
	return zcoll_collective_name(i);
}

static const char *reason_name(int i)
{
	return reasons[i];
}

static void print_counts(FILE *to)
{
	fprintf(to, "%lu calls taken", sum(taken, ZCOLL_NR_COLLECTIVES));
	print_list(to, taken, ZCOLL_NR_COLLECTIVES, collective_name);
	if (mailed)
		fprintf(to, ", %lu of them by mailboxes", mailed);
	fprintf(to, ", %lu passed on", sum(passed, ZM_NR_REASONS));
	print_list(to, passed, ZM_NR_REASONS, reason_name);
	if (no_comm[0])
		fprintf(to, "; %s", no_comm);
}

/* One line in one write, so that those of several ranks do not mix */
__attribute__((destructor)) static void print(void)
{
	size_t len;
	char *line;
	FILE *to;

	if (rank < 0 || pid != getpid() || !zm_wants_stats(rank))
		return;
	zm_comm_any(count_mail);
	to = open_memstream(&line, &len);
	if (!to)
		return;
	fprintf(to, "libzcoll-mpi: rank %d: ", rank);
	if (zm_wanted())
		print_counts(to);
	else
		fprintf(to, "off (ZCOLL_MPI=0), %lu calls passed on", sum(passed, ZM_NR_REASONS));
	fputc('\n', to);
	fclose(to);
	fputs(line, stderr);
	free(line);
}
