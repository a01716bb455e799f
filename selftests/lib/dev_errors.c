// SPDX-License-Identifier: GPL-2.0
/*
 * Failures as a program sees them through the library: the error on every rank,
 * and a text that names the cause. None may take long.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks.h"
#include "tap.h"

#define SOON_MS	5000	/* CPUs may be emulated */

static int sum(struct zcoll_comm *comm, int32_t *x, uint64_t count)
{
	return zcoll_allreduce(comm, x, x, count, ZCOLL_INT32, ZCOLL_SUM);
}

/* The failure is @err, comes soon, stays, and has @part in its text */
static void expect_failure(struct zcoll_comm *comm, int err, const char *part)
{
	uint64_t before = now_ms();
	int32_t x = 1;

	expect(sum(comm, &x, 1), err);
	expect_text(error_of(comm), part);
	expect(sum(comm, &x, 1), err);
	expect(now_ms() - before < SOON_MS, 1);
}

static void deadline(struct zcoll_comm *comm)
{
	if (zcoll_comm_rank(comm) == 2)
		sleep_ms(1500);
	expect_failure(comm, -ETIMEDOUT, "2");
}

static void mismatch(struct zcoll_comm *comm)
{
	int32_t x[2] = { 1, 1 };
	unsigned int r = zcoll_comm_rank(comm);

	expect(zcoll_barrier(comm), 0);		/* all have joined */
	expect(sum(comm, x, r == 1 ? 2 : 1), -EPROTO);
	expect_text(error_of(comm), "count");
	expect(sum(comm, x, 1), -EPROTO);
}

static void killed_rank(const struct zcoll_attr *attr)
{
	struct zcoll_comm *comm;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		alarm(20);	/* is not inherited */
		expect(zcoll_comm_create(&comm, attr), 0);
		expect(zcoll_barrier(comm), 0);
		if (attr->rank == 1) {
			sleep_ms(100);
			kill(getpid(), SIGKILL);
		}
		expect_failure(comm, -EOWNERDEAD, "1");
		expect(zcoll_comm_free(comm), 0);
		exit(rank_failed());
	}
	waitpid(pid, &status, 0);
	if (attr->rank == 1)
		expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, 1);
	else
		expect(status, 0);
}

static void left(struct zcoll_comm *comm)
{
	expect(zcoll_barrier(comm), 0);
	if (zcoll_comm_rank(comm) != 1)
		expect_failure(comm, -ESHUTDOWN, "1");
}

static void aborted(struct zcoll_comm *comm)
{
	expect(zcoll_barrier(comm), 0);
	if (zcoll_comm_rank(comm) == 1) {
		sleep_ms(100);
		expect(zcoll_comm_abort(comm), 0);
	}
	expect_failure(comm, -ECANCELED, "1");
}

static void refused(struct zcoll_comm *comm)
{
	int32_t *gone = mmap(NULL, 4 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct zcoll_req *req;
	int32_t x = 1;

	if (zcoll_comm_rank(comm) == 0) {
		/* So much that the kernel reads it, and not the library */
		expect(sum(comm, gone, 1 << 20), -EFAULT);
		expect(strlen(error_of(comm)) > 0, 1);
		expect(zcoll_iallreduce(comm, gone, gone, 1, ZCOLL_INT32, ZCOLL_SUM, &req), -EFAULT);
	}
	expect(sum(comm, &x, 1), 0);
	expect(x, zcoll_comm_size(comm));
}

static void request_fails(struct zcoll_comm *comm)
{
	struct zcoll_req *req;
	int32_t x = 1;

	expect(zcoll_barrier(comm), 0);
	if (zcoll_comm_rank(comm) == 0) {
		sleep_ms(100);
		expect(zcoll_comm_abort(comm), 0);
		return;
	}
	expect(zcoll_iallreduce(comm, &x, &x, 1, ZCOLL_INT32, ZCOLL_SUM, &req), 0);
	expect(zcoll_wait(req, ZCOLL_WAIT_FOREVER), -ECANCELED);
	expect(strlen(error_of(comm)) > 0, 1);
}

static void busy(struct zcoll_comm *comm)
{
	struct zcoll_req *req;
	int32_t x = 1;

	expect(zcoll_barrier(comm), 0);
	if (zcoll_comm_rank(comm) == 0) {
		sleep_ms(300);
		return;
	}
	expect(zcoll_iallreduce(comm, &x, &x, 1, ZCOLL_INT32, ZCOLL_SUM, &req), 0);
	expect(zcoll_comm_free(comm), -EBUSY);
	expect_text(error_of(comm), "in flight");
	expect(zcoll_comm_abort(comm), 0);
}

static void forked(struct zcoll_comm *comm)
{
	int32_t x = 1;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		if (sum(comm, &x, 1) != -EPERM || zcoll_comm_free(comm))
			_exit(1);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	expect(status, 0);
	expect(sum(comm, &x, 1), 0);
	expect(x, zcoll_comm_size(comm));
}

static void nobody_comes(const struct zcoll_attr *attr)
{
	struct zcoll_attr a = *attr;
	struct zcoll_comm *comm;

	a.nranks = 4;
	a.join_timeout_ns = 50 * MS;
	expect(zcoll_comm_create(&comm, &a), -ETIMEDOUT);
	expect_text(attr->error, "1, 2, 3");
}

static void taken(const struct zcoll_attr *attr)
{
	struct zcoll_comm *comm, *again;
	struct zcoll_attr a = *attr;

	a.join_timeout_ns = 0;
	a.nranks = 2;
	expect(zcoll_comm_create(&comm, &a), 0);
	expect(zcoll_comm_create(&again, &a), -EBUSY);
	expect_text(attr->error, "rank 0");
	a.rank = 1;
	a.nranks = 3;
	expect(zcoll_comm_create(&again, &a), -EPROTO);
	expect(strlen(attr->error) > 0, 1);
	expect(zcoll_comm_free(comm), 0);
}

static void no_device(const struct zcoll_attr *attr)
{
	struct zcoll_attr a = *attr;
	struct zcoll_comm *comm;

	a.device = "/dev/none";
	expect(zcoll_comm_create(&comm, &a), -ENOENT);
	expect_text(attr->error, "is the module loaded");
	a.device = "/dev/null";
	expect(zcoll_comm_create(&comm, &a), -ENOTTY);
	expect_text(attr->error, "not a zcoll device");
}

int main(void)
{
	struct ranks soon = RANKS(3);

	need_device();
	soon.deadline_ns = 300 * MS;
	ok(run_ranks(&soon, deadline), "a deadline names the rank that is missing");
	ok(run_ranks(&RANKS(3), mismatch), "a mismatch names the field");
	ok(run_attrs(&RANKS(3), killed_rank), "a killed rank is named");
	ok(run_ranks(&RANKS(3), left), "a rank that left is named");
	ok(run_ranks(&RANKS(3), aborted), "an abort reaches all");
	ok(run_ranks(&RANKS(2), refused), "a refused call loses nothing");
	ok(run_ranks(&RANKS(2), request_fails), "a request gives its failure");
	ok(run_ranks(&RANKS(2), busy), "a communicator with requests is busy, and free when aborted");
	ok(run_ranks(&RANKS(2), forked), "a forked child does no harm");
	ok(run_attrs(&RANKS(1), nobody_comes), "ranks that do not join are named");
	ok(run_attrs(&RANKS(1), taken), "a rank that is taken, and a size that differs");
	ok(run_attrs(&RANKS(1), no_device), "a missing device is explained");
	return tap_end();
}
