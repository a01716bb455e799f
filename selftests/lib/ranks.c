// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ranks.h"

#define MAX_RANKS	64
#define ALARM_S		60

struct zcoll_attr rank_attr;
static unsigned int failures;

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

uint64_t cpu_ms(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000ULL +
	       (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

void sleep_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&ts, &ts))
		;
}

void expect_at(const char *file, int line, bool good, const char *what, long long got,
	       long long want)
{
	if (good)
		return;
	failures++;
	printf("# rank %u: %s:%d: %s is %lld and should be %lld\n", rank_attr.rank, file, line,
	       what, got, want);
}

void expect_text_at(const char *file, int line, const char *text, const char *part)
{
	if (strstr(text, part))
		return;
	failures++;
	printf("# rank %u: %s:%d: no \"%s\" in \"%s\"\n", rank_attr.rank, file, line, part, text);
}

bool rank_failed(void)
{
	return failures;
}

const char *error_of(struct zcoll_comm *comm)
{
	static char text[ZCOLL_TEXT_MAX];

	zcoll_comm_error(comm, text, sizeof(text));
	return text;
}

void fill(int32_t *data, uint64_t count, unsigned int rank)
{
	for (uint64_t i = 0; i < count; i++)
		data[i] = (int32_t)(i % 1000003) * (int32_t)(rank + 1);
}

void expect_sum_at(const char *file, int line, const int32_t *data, uint64_t count,
		   unsigned int nranks)
{
	uint32_t all = nranks * (nranks + 1) / 2;

	for (uint64_t i = 0; i < count; i++) {
		int32_t want = (int32_t)(i % 1000003 * all);

		if (data[i] == want)
			continue;
		failures++;
		printf("# rank %u: %s:%d: element %llu is %d and should be %d\n", rank_attr.rank,
		       file, line, (unsigned long long)i, data[i], want);
		return;
	}
}

/* Without the device there is nothing to test */
void need_device(void)
{
	struct zcoll_info info;
	int ret = zcoll_info_get(NULL, &info);

	if (!ret)
		return;
	printf("ok 1 # SKIP no device: %s\n1..1\n", strerror(-ret));
	exit(4);
}

static void with_comm(const struct zcoll_attr *attr, rank_fn fn)
{
	struct zcoll_comm *comm;

	if (zcoll_comm_create(&comm, attr)) {
		printf("# rank %u: %s\n", attr->rank, attr->error);
		failures++;
		return;
	}
	fn(comm);
	expect(zcoll_comm_free(comm), 0);
}

static int child(rank_fn fn, attr_fn with_attr)
{
	static char text[ZCOLL_TEXT_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(ALARM_S);
	setvbuf(stdout, NULL, _IOLBF, 0);
	rank_attr.error = text;
	rank_attr.error_len = sizeof(text);
	if (fn)
		with_comm(&rank_attr, fn);
	else
		with_attr(&rank_attr);
	return rank_failed();
}

static bool run(const struct ranks *ranks, rank_fn fn, attr_fn with_attr)
{
	pid_t pids[MAX_RANKS];
	bool good = true;
	int status;

	zcoll_attr_init(&rank_attr);
	rank_attr.nranks = ranks->n;
	rank_attr.deadline_ns = ranks->deadline_ns;
	rank_attr.join_timeout_ns = ranks->join_timeout_ns;
	if (getrandom(rank_attr.key, sizeof(rank_attr.key), 0) != sizeof(rank_attr.key))
		abort();

	fflush(stdout);
	for (unsigned int r = 0; r < ranks->n; r++) {
		rank_attr.rank = r;
		pids[r] = fork();
		if (!pids[r])
			exit(child(fn, with_attr));
	}
	for (unsigned int r = 0; r < ranks->n; r++) {
		if (waitpid(pids[r], &status, 0) != pids[r] || status) {
			printf("# rank %u: wait status 0x%x\n", r, status);
			good = false;
		}
	}
	return good;
}

bool run_ranks(const struct ranks *ranks, rank_fn fn)
{
	return run(ranks, fn, NULL);
}

/* For tests of joining: the ranks make their communicators themselves */
bool run_attrs(const struct ranks *ranks, attr_fn fn)
{
	return run(ranks, NULL, fn);
}
