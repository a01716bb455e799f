// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll plan show: a plan for people: as text, or who talks to whom as a picture.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"
#include "plan.h"

/* Lines of rounds that are shown: so many, and the last ones */
#define MAX_BATCHES	60
#define LAST_BATCHES	2

/* Messages are listed up to this column */
#define COLUMNS		96

enum { OPT_NODE = 256, OPT_SVG, OPT_JSON };

struct show_options {
	const char *path;
	const char *svg;
	uint64_t node;	/* UINT64_MAX: all */
	bool json;
};

/* ---- header and steps ---- */

static void show_head(const struct zcoll_plan *plan)
{
	int i;

	printf("%s: %s of %u nodes\n", words_name(plan),
	       zcoll_collective_name(plan->collective), plan->nodes);
	printf("  id        %016" PRIx64 "\n", (uint64_t)plan->id);
	if (plan->members < plan->nodes)
		printf("  members   %u; nodes %u..%u only aggregate\n", plan->members,
		       plan->members, plan->nodes - 1);
	printf("  segments  %u\n", plan->segments);
	if (plan->scratch || plan->acc)
		printf("  needs     %u scratch places, and %u accumulations where outputs are "
		       "too short\n", plan->scratch, plan->acc);
	if (plan->levels[0])
		printf("  levels    ");
	for (i = 0; i < ZCOLL_PLAN_LEVELS && plan->levels[i]; i++)
		printf(i ? " x %u" : "%u", plan->levels[i]);
	if (plan->levels[0])
		puts(" nodes, innermost first");
	if (plan->flags)
		printf("  promises  %s%s%s\n", plan->flags & ZCOLL_PLAN_ORDERED ?
		       "the fixed tree's order" : "", plan->flags == ZCOLL_PLAN_FLAGS ?
		       ", " : "", plan->flags & ZCOLL_PLAN_AGREED ?
		       "no node ends before all have all results" : "");
}

static void show_steps(const struct zcoll_plan *plan)
{
	u32 i;

	puts("\nsteps of node v; p is its peer, x a digit, t the turn from 0; the node or\n"
	     "segment after the last one is the first");
	for (i = 0; i < plan->nsteps; i++) {
		fputs("  ", stdout);
		words_step(stdout, plan, i);
		putchar('\n');
	}
}

/* ---- rounds ---- */

static void show_batch(const struct rounds *rounds, size_t from, size_t end)
{
	const struct event *event = &rounds->event[from];
	char *text = NULL;
	size_t size, i;
	FILE *line = open_memstream(&text, &size);

	if (!line)
		return;
	fprintf(line, "  %5u %5u %9zu ", event->round, event->step, end - from);
	for (i = from; i < end && (fflush(line), size < COLUMNS - 16); i++) {
		putc(' ', line);
		words_message(line, &rounds->event[i]);
	}
	fputs(i < end ? " ..." : "", line);
	if (!fclose(line))
		puts(text);
	free(text);
}

static void show_rounds(const struct zcoll_plan *plan, const struct rounds *rounds)
{
	size_t from, end = 0, batches = 0, i = 0;

	while (rounds_batch(plan, rounds, end, &end) < rounds->count)
		batches++;
	printf("\nrounds: %u\n", rounds->rounds);
	if (batches)
		puts("  round  step  messages  from>to[segments]");
	for (end = 0; i < batches; i++) {
		from = rounds_batch(plan, rounds, end, &end);
		if (i < MAX_BATCHES - LAST_BATCHES || i >= batches - LAST_BATCHES)
			show_batch(rounds, from, end);
		else if (i == MAX_BATCHES - LAST_BATCHES)
			printf("    ... %zu lines more\n", batches - MAX_BATCHES);
	}
}

static void show_event(const struct zcoll_plan *plan, const struct event *event)
{
	const struct zcoll_step *step = &plan->steps[event->step];

	printf("  %5u %5u  %s", event->round, event->step, words_kind(step));
	if (event->turn.range.count)
		putchar(' ');
	words_range(stdout, &event->turn.range, false);
	if (event->turn.peer != ZC_NONE)
		printf(" %s node %u", step->kind == ZCOLL_STEP_SEND ? "to" : "from",
		       event->turn.peer);
	if (event->turn.src != ZC_NONE)
		printf(", from scratch %u", event->turn.src);
	if (event->turn.dst != ZC_NONE)
		printf(", into scratch %u", event->turn.dst);
	if (step->flags & ZCOLL_STEP_FIRST)
		fputs(", local inputs", stdout);
	if (step->flags & ZCOLL_STEP_RESULT)
		fputs(", into the outputs", stdout);
	putchar('\n');
}

static void show_node(const struct zcoll_plan *plan, const struct rounds *rounds, u32 node)
{
	size_t i;

	printf("\nnode %u: rounds: %u\n  round  step  what\n", node, rounds->rounds);
	for (i = 0; i < rounds->count; i++)
		if (rounds->event[i].node == node)
			show_event(plan, &rounds->event[i]);
}

/* ---- what is asked for ---- */

static int show_text(const struct show_options *o, const struct zcoll_plan *plan)
{
	struct rounds rounds;
	const char *why = rounds_find(plan, &rounds);

	show_head(plan);
	show_steps(plan);
	if (why)
		printf("\nrounds: not shown, %s\n", why);
	else if (o->node != UINT64_MAX)
		show_node(plan, &rounds, (u32)o->node);
	else
		show_rounds(plan, &rounds);
	rounds_free(&rounds);
	return STATUS_OK;
}

static int write_svg(const char *path, const struct zcoll_plan *plan,
		     const struct rounds *rounds)
{
	FILE *out;
	bool bad;

	if (!strcmp(path, "-")) {
		svg_rounds(stdout, plan, rounds);
		return STATUS_OK;
	}
	out = fopen(path, "w");
	if (!out)
		return failed("%s: %s", path, strerror(errno));
	svg_rounds(out, plan, rounds);
	bad = ferror(out);
	if (fclose(out) || bad)
		return failed("%s: %s", path, strerror(errno));
	return STATUS_OK;
}

static int show_svg(const struct show_options *o, const struct zcoll_plan *plan)
{
	struct rounds rounds;
	const char *why = rounds_find(plan, &rounds);
	int status = why ? failed("%s: %s", o->path, why) :
			   write_svg(o->svg, plan, &rounds);

	rounds_free(&rounds);
	return status;
}

static int show(const struct show_options *o, const struct zcoll_plan *plan)
{
	if (o->node != UINT64_MAX && o->node >= plan->nodes)
		return usage("--node %" PRIu64 ": the plan has nodes 0 to %u", o->node,
			     plan->nodes - 1);
	if (o->json)
		return plan_write(plan);
	return o->svg ? show_svg(o, plan) : show_text(o, plan);
}

static int set_option(struct show_options *o, int opt)
{
	switch (opt) {
	case OPT_NODE:
		if (parse_uint(optarg, 0, ZCOLL_PLAN_MAX_NODES - 1, &o->node))
			return usage("--node %s: not the number of a node", optarg);
		return STATUS_OK;
	case OPT_SVG:
		o->svg = optarg;
		return STATUS_OK;
	case OPT_JSON:
		o->json = true;
		return STATUS_OK;
	}
	return usage_option();
}

int plan_show(int argc, char **argv)
{
	static const struct option options[] = {
		{ "node", required_argument, NULL, OPT_NODE },
		{ "svg", required_argument, NULL, OPT_SVG },
		{ "json", no_argument, NULL, OPT_JSON },
		{ NULL, 0, NULL, 0 },
	};
	struct show_options o = { .node = UINT64_MAX };
	struct zcoll_plan *plan;
	int opt, status;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		status = set_option(&o, opt);
		if (status)
			return status;
	}
	if ((o.node != UINT64_MAX) + !!o.svg + o.json > 1)
		return usage("only one of --node, --svg and --json");
	status = plan_file_argument(argc, argv, &o.path);
	if (!status)
		status = plan_read(o.path, &plan);
	if (status)
		return status;
	status = show(&o, plan);
	zcoll_plan_free(plan);
	return status;
}
