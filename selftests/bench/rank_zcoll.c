// SPDX-License-Identifier: GPL-2.0
/*
 * Back end: zcoll_allreduce(), blocking, on memory of zcoll_alloc(); with the argument
 * "plain" on memory that the library knows nothing of, as MPI programs have it.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <zcoll.h>

#include "rank.h"

static struct zcoll_comm *comm;

static void must(int err, const char *what)
{
	char text[ZCOLL_TEXT_MAX] = "";

	if (err >= 0)
		return;
	zcoll_comm_error(comm, text, sizeof(text));
	die("%s: error %d: %s", what, err, text);
}

/* Instead of the arena that there is, and touched whole, as that was */
static void alloc_arena(struct arena *arena)
{
	munmap(arena->mem, arena->len);
	arena->mem = zcoll_alloc(comm, arena->len);
	if (!arena->mem)
		must(-1, "allocate the arena");
	memset(arena->mem, 0, arena->len);
}

static void zc_start(struct back_end *be, struct arena *arena, const char *arg)
{
	char text[ZCOLL_TEXT_MAX] = "";
	int err;

	err = zcoll_comm_create_from_env(&comm, text, sizeof(text));
	if (err)
		die("cannot join: error %d: %s", err, text);
	be->rank = zcoll_comm_rank(comm);
	be->nranks = zcoll_comm_size(comm);
	if (!arg || strcmp(arg, "plain"))
		alloc_arena(arena);
}

static void zc_barrier(struct back_end *be)
{
	(void)be;
	must(zcoll_barrier(comm), "barrier");
}

static void zc_allreduce(struct back_end *be, const float *send, float *recv, size_t count)
{
	(void)be;
	must(zcoll_allreduce(comm, send, recv, count, ZCOLL_FP32, ZCOLL_SUM), "all-reduce");
}

static void zc_facts(struct back_end *be, char *buf, size_t len)
{
	struct zcoll_stats st;

	(void)be;
	must(zcoll_comm_stats(comm, &st), "statistics");
	snprintf(buf, len,
		 "kernel_bytes=%llu pinned_pages=%llu workers=%u vmapped=%u call_pins=%llu "
		 "copied=%llu folded=%llu written=%llu inline=%llu by_library=%llu",
		 (unsigned long long)st.comm_kernel_bytes, (unsigned long long)st.pinned_pages,
		 st.workers, st.vmapped, (unsigned long long)st.call_pins,
		 (unsigned long long)st.bytes_copied, (unsigned long long)st.bytes_folded,
		 (unsigned long long)st.bytes_written, (unsigned long long)st.bytes_inline,
		 (unsigned long long)(st.ops_mailbox + st.ops_heap));
}

static void zc_stop(struct back_end *be)
{
	(void)be;
	must(zcoll_comm_free(comm), "leave");
}

struct back_end back_end = {
	.mmap_flags = MAP_PRIVATE,
	.start = zc_start,
	.barrier = zc_barrier,
	.allreduce = zc_allreduce,
	.facts = zc_facts,
	.stop = zc_stop,
};
