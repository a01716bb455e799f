// SPDX-License-Identifier: GPL-2.0
/*
 * The library on the device: memory of zcoll_alloc(). What it is when it is allocated, and where
 * it goes when it is freed, when its communicator ends, or over a fork.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks.h"
#include "tap.h"

static bool all_bytes_are(const char *p, size_t len, char byte)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != byte)
			return false;
	return true;
}

static void allocations(struct zcoll_comm *comm)
{
	static const size_t lens[] = { 1, 4095, 4096, 4097, 100000, (2 << 20) - 1, 2 << 20,
				       (2 << 20) + 1, 5 << 20 };
	enum { NR = sizeof(lens) / sizeof(*lens) };
	char *p[NR];

	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < NR; i++) {
			p[i] = zcoll_alloc(comm, lens[i]);
			expect(!!p[i], 1);
			if (!p[i])
				return;
			expect((uintptr_t)p[i] % (lens[i] < 2 << 20 ? 4096 : 2 << 20), 0);
			expect(all_bytes_are(p[i], lens[i], 0), 1);
			memset(p[i], i + 1, lens[i]);
		}
		for (int i = 0; i < NR; i++)
			expect(all_bytes_are(p[i], lens[i], i + 1), 1);
		/* In another order each time */
		for (int i = 0; i < NR; i++)
			expect(zcoll_free(comm, p[(i * (turn + 1) + turn) % NR]),
			       turn == 2 && i > 2 ? -ENOENT : 0);
		for (int i = 0; turn == 2 && i < NR; i++)
			zcoll_free(comm, p[i]);
	}
	expect(zcoll_free(comm, p[0]), -ENOENT);
}

static void addresses_are_used_again(struct zcoll_comm *comm)
{
	char *keep = zcoll_alloc(comm, 4096), *first = zcoll_alloc(comm, 1 << 16), *p;

	expect(keep && first, 1);
	expect(zcoll_free(comm, first), 0);
	for (int i = 0; i < 100; i++) {
		p = zcoll_alloc(comm, 1 << 16);
		expect(p == first, 1);
		expect(zcoll_free(comm, p), 0);
	}
}

static void freed_pages_are_given_back(struct zcoll_comm *comm)
{
	const size_t len = 1 << 20;
	unsigned char core[256];
	char *p = zcoll_alloc(comm, len);

	expect(!!p, 1);
	memset(p, 1, len);
	expect(mincore(p, len, core), 0);
	expect(core[0] & core[255] & 1, 1);
	expect(zcoll_free(comm, p), 0);
	if (!mincore(p, len, core))
		for (size_t i = 0; i < sizeof(core); i++)
			expect(core[i] & 1, 0);
}

/* Of the whole machine, kB */
static long shmem_kb(void)
{
	char line[128];
	long kb = -1;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "Shmem: %ld", &kb) != 1)
		;
	if (f)
		fclose(f);
	return kb;
}

static void memory_ends_with_the_communicator(const struct zcoll_attr *attr)
{
	const long kb = 32 << 10;
	long before = shmem_kb(), during;
	struct zcoll_comm *comm;
	char *p;

	expect(zcoll_comm_create(&comm, attr), 0);
	p = zcoll_alloc(comm, kb << 10);
	expect(!!p, 1);
	memset(p, 1, kb << 10);
	during = shmem_kb();
	expect(during - before >= kb / 2, 1);
	if (during - before < kb / 2)
		printf("# %ld kB of shared memory before, %ld kB when allocated\n", before, during);
	expect(zcoll_comm_free(comm), 0);
	for (int i = 0; i < 100 && shmem_kb() - before > kb / 4; i++)
		sleep_ms(20);
	expect(shmem_kb() - before <= kb / 4, 1);
}

static void child_reads(struct zcoll_comm *comm)
{
	int32_t *x = zcoll_alloc(comm, 1 << 14), small = 1;
	int status;
	pid_t pid;

	expect(!!x, 1);
	x[100] = 42;
	pid = fork();
	if (!pid)
		_exit(x[100] != 42 || zcoll_allreduce(comm, &small, &small, 1, ZCOLL_INT32, ZCOLL_SUM) != -EPERM || zcoll_comm_free(comm));
	waitpid(pid, &status, 0);
	expect(status, 0);
	expect(x[100], 42);
	expect(zcoll_allreduce(comm, &small, &small, 1, ZCOLL_INT32, ZCOLL_SUM), 0);
	expect(small, zcoll_comm_size(comm));
}

int main(void)
{
	need_device();
	ok(run_ranks(&RANKS(1), allocations), "allocations: zeroes, alignment, no overlap");
	ok(run_ranks(&RANKS(2), addresses_are_used_again), "freed addresses are used again");
	ok(run_ranks(&RANKS(2), freed_pages_are_given_back), "freed pages are given back");
	ok(run_attrs(&RANKS(1), memory_ends_with_the_communicator),
	   "memory ends with the communicator");
	ok(run_ranks(&RANKS(2), child_reads), "a forked child may read allocated memory");
	return tap_end();
}
