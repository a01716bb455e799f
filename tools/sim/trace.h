/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What happened, as a file that opens in Perfetto (ui.perfetto.dev): the JSON of the
 * "Trace Event Format" that Chrome's developers describe. Each node is a thread; posts,
 * receptions and folds are spans, messages are arrows between them, what engines tell
 * each other beside elements has its name, and ends of operations are marks.
 */
#ifndef ZCOLL_SIM_TRACE_H
#define ZCOLL_SIM_TRACE_H

#include <stdio.h>

#include "engine.h"

struct sim_trace {
	FILE *file;
	bool more;	/* an entry has been written */
};

int trace_open(struct sim_trace *trace, const char *path);
int trace_close(struct sim_trace *trace);
void trace_nodes(struct sim_trace *trace, u32 nodes);
void trace_work(struct sim_trace *trace, u32 node, const struct zc_action *action, u64 begin,
		u64 end);
void trace_post(struct sim_trace *trace, u32 node, const struct zc_action *action, u64 flow,
		u64 begin, u64 end);
void trace_receive(struct sim_trace *trace, u32 node, const struct zc_action *sent, u32 from,
		   u64 flow, u64 begin, u64 end);
void trace_mark(struct sim_trace *trace, u32 node, const char *name, u64 seq, u64 at);

#endif /* ZCOLL_SIM_TRACE_H */
