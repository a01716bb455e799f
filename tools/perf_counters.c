// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll perf: what the kernels count while operations are timed; see perf.h.
 *
 * The counters of a node are those of all its ranks together, so on each node its lowest
 * rank tells them, and they are added up over nodes. Whatever else the communicator sends
 * meanwhile, heartbeats and the barrier before the first operation, is in them, too.
 */
#include <string.h>

#include "perf.h"

static bool tells(const struct zcoll_comm *comm)
{
	unsigned int rank = zcoll_comm_rank(comm), r;
	int node = (int)zcoll_comm_node(comm);

	for (r = 0; r < rank; r++)
		if (zcoll_comm_node_of(comm, r) == node)
			return false;
	return true;
}

static int read_node(struct zcoll_comm *comm, struct perf_counters *counters)
{
	struct zcoll_stats stats;
	int err = zcoll_comm_stats(comm, &stats);

	if (err)
		return err;
	*counters = (struct perf_counters){
		.folded = stats.bytes_folded,
		.copied = stats.bytes_copied,
		.written = stats.bytes_written,
		.inlined = stats.bytes_inline,
		.messages = stats.messages,
	};
	return 0;
}

int perf_counters_begin(struct zcoll_comm *comm, struct perf_counters *counters)
{
	return read_node(comm, counters);
}

/* From what was at the begin to what has been counted since, on all nodes */
int perf_counters_end(struct zcoll_comm *comm, struct perf_counters *counters)
{
	const struct perf_counters begin = *counters;
	struct perf_counters end;
	int err = read_node(comm, &end);

	if (err)
		return err;
	memset(counters, 0, sizeof(*counters));
	if (tells(comm))
		*counters = (struct perf_counters){
			.folded = end.folded - begin.folded,
			.copied = end.copied - begin.copied,
			.written = end.written - begin.written,
			.inlined = end.inlined - begin.inlined,
			.messages = end.messages - begin.messages,
		};
	return zcoll_allreduce(comm, counters, counters, sizeof(*counters) / sizeof(uint64_t),
			       ZCOLL_UINT64, ZCOLL_SUM);
}
