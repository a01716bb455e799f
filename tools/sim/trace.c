// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Traces; see trace.h. Times in them are microseconds, here with six digits: exact.
 */
#include <errno.h>
#include <string.h>

#include "trace.h"

#define PS_IN_US 1000000ULL

static const char *const kinds[] = {
	[ZC_DO_GATHER] = "gather", [ZC_DO_FOLD] = "fold", [ZC_DO_DELIVER] = "deliver",
	[ZC_DO_FINAL] = "final",
};

static const char *const messages[] = {
	[ZC_MSG_DATA] = "data", [ZC_MSG_GRANT] = "grant", [ZC_MSG_RETIRED] = "retired",
	[ZC_MSG_ALIVE] = "alive", [ZC_MSG_ABORT] = "abort", [ZC_MSG_ASK] = "ask",
	[ZC_MSG_ANSWER] = "answer", [ZC_MSG_DECISION] = "decision",
};

/* @path: of the file, or "-": standard output */
int trace_open(struct sim_trace *trace, const char *path)
{
	trace->more = false;
	trace->file = strcmp(path, "-") ? fopen(path, "w") : stdout;
	if (!trace->file)
		return -errno;
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", trace->file);
	return 0;
}

/* Return: 0, or -errno: not all is written */
int trace_close(struct sim_trace *trace)
{
	int bad;

	fputs("\n]}\n", trace->file);
	bad = fflush(trace->file) || ferror(trace->file);
	if (trace->file == stdout)
		return bad ? -EIO : 0;
	return fclose(trace->file) || bad ? -EIO : 0;
}

/* Begin an entry; the caller adds arguments and the closing brace */
static void entry(struct sim_trace *trace, char phase, u32 node, const char *name, u64 at)
{
	fprintf(trace->file,
		"%s\n{\"ph\":\"%c\",\"pid\":1,\"tid\":%u,\"name\":\"%s\",\"ts\":%llu.%06llu",
		trace->more ? "," : "", phase, node, name, (unsigned long long)(at / PS_IN_US),
		(unsigned long long)(at % PS_IN_US));
	trace->more = true;
}

static void span(struct sim_trace *trace, u32 node, const char *name, u64 begin, u64 end)
{
	entry(trace, 'X', node, name, begin);
	fprintf(trace->file, ",\"dur\":%llu.%06llu",
		(unsigned long long)((end - begin) / PS_IN_US),
		(unsigned long long)((end - begin) % PS_IN_US));
}

static void arguments(struct sim_trace *trace, const char *who, u32 peer, u64 seq, u32 step,
		      u64 unit)
{
	fprintf(trace->file, ",\"args\":{\"%s\":%lld,\"operation\":%llu,\"step\":%u,"
		"\"unit\":%llu}}", who, peer == ZC_NONE ? -1LL : (long long)peer,
		(unsigned long long)seq, step,
		(unsigned long long)unit);
}

/* Where an arrow begins ('s') or ends ('f'): at the span that holds that time */
static void arrow(struct sim_trace *trace, char phase, u32 node, u64 flow, u64 at)
{
	entry(trace, phase, node, "message", at);
	fprintf(trace->file, ",\"cat\":\"message\",\"id\":%llu%s}", (unsigned long long)flow,
		phase == 'f' ? ",\"bp\":\"e\"" : "");
}

/* Names for the tracks, and their order */
void trace_nodes(struct sim_trace *trace, u32 nodes)
{
	u32 n;

	entry(trace, 'M', 0, "process_name", 0);
	fputs(",\"args\":{\"name\":\"zcoll sim\"}}", trace->file);
	for (n = 0; n < nodes; n++) {
		entry(trace, 'M', n, "thread_name", 0);
		fprintf(trace->file, ",\"args\":{\"name\":\"node %u\"}}", n);
		entry(trace, 'M', n, "thread_sort_index", 0);
		fprintf(trace->file, ",\"args\":{\"sort_index\":%u}}", n);
	}
}

void trace_work(struct sim_trace *trace, u32 node, const struct zc_action *action, u64 begin,
		u64 end)
{
	span(trace, node, kinds[action->type], begin, end);
	arguments(trace, "from", action->peer, action->seq, action->step, action->unit);
}

void trace_post(struct sim_trace *trace, u32 node, const struct zc_action *action, u64 flow,
		u64 begin, u64 end)
{
	span(trace, node, messages[action->msg.type], begin, end);
	arguments(trace, "to", action->peer, action->msg.seq, action->msg.step,
		  action->msg.unit);
	arrow(trace, 's', node, flow, begin);
}

void trace_receive(struct sim_trace *trace, u32 node, const struct zc_action *sent, u32 from,
		   u64 flow, u64 begin, u64 end)
{
	span(trace, node, messages[sent->msg.type], begin, end);
	arguments(trace, "from", from, sent->msg.seq, sent->msg.step, sent->msg.unit);
	arrow(trace, 'f', node, flow, begin);
}

void trace_mark(struct sim_trace *trace, u32 node, const char *name, u64 seq, u64 at)
{
	entry(trace, 'i', node, name, at);
	fprintf(trace->file, ",\"s\":\"t\",\"args\":{\"operation\":%llu}}",
		(unsigned long long)seq);
}
