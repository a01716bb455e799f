// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll plan select: which plan an operation would use, who says so, and why.
 */
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"
#include "options.h"
#include "plan.h"

static const char help[] =
"Usage: zcoll plan select -N N [OPTION...]\n"
"\n"
"Chooses an algorithm for an operation as the library does, and explains: all\n"
"candidates with their estimated times, also as multiples of a yardstick,\n"
"ceil(log2 N) (L + 2o) + 2 (N-1)/N bytes G for an all-reduce, which is no bound; who\n"
"decided; and the command that makes the plan. The greatest authority that says anything decides: --choice; the environment\n"
"variables ZCOLL_PLAN_ALLREDUCE (or another collective) and ZCOLL_PLAN; the rules file;\n"
"the least estimated time.\n"
"\n"
"  -N, --nodes N           nodes that have ranks\n"
"      --coll C            allreduce (the default), reduce-scatter, allgather,\n"
"                          broadcast, reduce or barrier\n"
"      --bytes SIZE        of the whole operation (1M)\n"
"      --element N         bytes of an element (4)\n"
"      --fabric F          file of `zcoll calibrate`, or L,o,g,G[,gamma] in ns and ns\n"
"                          a byte (ZCOLL_COSTS, or a built-in fabric)\n"
"      --rules FILE        rules (ZCOLL_RULES, or none)\n"
"      --choice C          this one: ALGO[:radix=N][,levels=AxB][,aggregators=N]\n"
"                          [,slice=SIZE], such as hierarchical:levels=4x3\n"
"      --ordered           it has to reduce in the fixed order over nodes\n"
"      --agreed            no node ends before all have all results\n"
"      --scratch SIZE      a node gives at most this for partial results\n"
"      --no-output         nodes have no output with room for all that is reduced\n"
"      --json              as one JSON object\n"
"  -h, --help              show this text\n"
"\n"
"Sizes may end in K, M, G or T, powers of 1024.\n"
"\n"
"Exit status: 0 success, 1 no plan fits or an input is wrong, 2 wrong usage.\n";

enum {
	OPT_COLL = 256, OPT_BYTES, OPT_ELEMENT, OPT_FABRIC, OPT_RULES, OPT_CHOICE, OPT_ORDERED,
	OPT_AGREED, OPT_SCRATCH, OPT_NO_OUTPUT, OPT_JSON,
};

static const struct option options[] = {
	{ "nodes", required_argument, NULL, 'N' },
	{ "coll", required_argument, NULL, OPT_COLL },
	{ "bytes", required_argument, NULL, OPT_BYTES },
	{ "element", required_argument, NULL, OPT_ELEMENT },
	{ "fabric", required_argument, NULL, OPT_FABRIC },
	{ "rules", required_argument, NULL, OPT_RULES },
	{ "choice", required_argument, NULL, OPT_CHOICE },
	{ "ordered", no_argument, NULL, OPT_ORDERED },
	{ "agreed", no_argument, NULL, OPT_AGREED },
	{ "scratch", required_argument, NULL, OPT_SCRATCH },
	{ "no-output", no_argument, NULL, OPT_NO_OUTPUT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ NULL, 0, NULL, 0 },
};

struct select_options {
	struct zcoll_plan_query query;
	struct zcoll_fabric fabric;
	bool json;
};

/* ---- commands that make, and simulate, what was chosen ---- */

static void print_spec(FILE *out, const char *command, const struct zcoll_plan_spec *spec)
{
	unsigned int i;

	fprintf(out, "zcoll %s %s -N %u --coll %s", command, spec->algo, spec->nodes,
		zcoll_collective_name(spec->collective));
	if (spec->radix)
		fprintf(out, " --radix %u", spec->radix);
	for (i = 0; i < ZCOLL_PLAN_LEVELS && spec->levels[i]; i++)
		fprintf(out, "%s%u", i ? "," : " --levels ", spec->levels[i]);
	if (spec->aggregators)
		fprintf(out, " --aggregators %u", spec->aggregators);
	if (spec->flags & ZCOLL_PLAN_AGREED)
		fprintf(out, " --agreed");
}

static const char *authority(uint32_t by)
{
	static const char *const names[] = {
		[ZCOLL_BY_CALL] = "call", [ZCOLL_BY_ENVIRONMENT] = "environment",
		[ZCOLL_BY_RULES] = "rules", [ZCOLL_BY_COST] = "cost",
	};

	return names[by];
}

/* ---- a table ---- */

static void print_candidate(const struct zcoll_plan_candidate *candidate, double yardstick_ns)
{
	char choice[ZCOLL_TEXT_MAX], ns[32];

	zcoll_plan_choice_text(candidate, choice, sizeof(choice));
	printf("  %10s  %6.2f  %s%s%s\n", plan_time(ns, sizeof(ns), candidate->ns),
	       yardstick_ns > 0 ? candidate->ns / yardstick_ns : 1.0, choice,
	       *candidate->refused ? ": " : "", candidate->refused);
}

static void print_choice(const struct zcoll_plan_query *query,
			 const struct zcoll_plan_choice *choice)
{
	char text[ZCOLL_TEXT_MAX];
	unsigned int i;

	zcoll_plan_choice_text(&choice->best, text, sizeof(text));
	printf("%s of %llu bytes by %u node%s: %s\n", zcoll_collective_name(query->collective),
	       (unsigned long long)query->bytes, query->nodes, query->nodes == 1 ? "" : "s",
	       text);
	printf("decided by %s: %s\n", authority(choice->by), choice->why);
	printf("fabric %s: L %g ns, o %g ns, g %g ns, G %g ns/B, gamma %g ns/B\n",
	       choice->fabric.name, choice->fabric.latency, choice->fabric.overhead,
	       choice->fabric.gap, choice->fabric.per_byte, choice->fabric.per_byte_folded);
	printf("yardstick %s\n\n", plan_time(text, sizeof(text), choice->bound_ns));
	printf("  %10s  %6s  %s\n", "time", "ratio", "candidate");
	for (i = 0; i < choice->ncandidates; i++)
		print_candidate(&choice->candidates[i], choice->bound_ns);
	printf("\nto make it: ");
	print_spec(stdout, "plan make", &choice->best.spec);
	printf("\nto simulate it: ");
	print_spec(stdout, "sim --algo", &choice->best.spec);
	printf(" --bytes %llu --dtype %u --slice %llu --contention nic\n",
	       (unsigned long long)query->bytes, query->element,
	       (unsigned long long)choice->best.slice);
}

/* ---- JSON ---- */

static json_t *json_candidate(const struct zcoll_plan_candidate *candidate)
{
	char choice[ZCOLL_TEXT_MAX];

	zcoll_plan_choice_text(candidate, choice, sizeof(choice));
	return json_pack("{ss ss sI sI sf ss}", "choice", choice, "algo", candidate->spec.algo,
			 "slice", (json_int_t)candidate->slice,
			 "scratch", (json_int_t)candidate->scratch, "time_ns", candidate->ns,
			 "refused", candidate->refused);
}

static json_t *json_command(const struct zcoll_plan_spec *spec)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	json_t *string;

	if (!out)
		return NULL;
	print_spec(out, "plan make", spec);
	string = fclose(out) ? NULL : json_string(text);
	free(text);
	return string;
}

static int print_json(const struct zcoll_plan_query *query,
		      const struct zcoll_plan_choice *choice)
{
	json_t *all = json_array();
	unsigned int i;

	for (i = 0; i < choice->ncandidates; i++)
		json_array_append_new(all, json_candidate(&choice->candidates[i]));
	return plan_print_json(json_pack("{ss si sI so ss ss ss sf so so}",
		"collective", zcoll_collective_name(query->collective),
		"nodes", (int)query->nodes, "bytes", (json_int_t)query->bytes,
		"best", json_candidate(&choice->best), "by", authority(choice->by),
		"why", choice->why, "fabric", choice->fabric.name,
		"yardstick_ns", choice->bound_ns, "make", json_command(&choice->best.spec),
		"candidates", all));
}

/* ---- options ---- */

static int set_nodes(const char *text, uint32_t *nodes)
{
	uint64_t value;

	if (parse_uint(text, 1, ZCOLL_PLAN_MAX_NODES, &value))
		return usage("-N %s: not a number from 1 to %d", text, ZCOLL_PLAN_MAX_NODES);
	*nodes = value;
	return 0;
}

static int set_element(const char *text, uint32_t *element)
{
	uint64_t value;

	if (parse_uint(text, 1, 1 << 20, &value))
		return usage("--element %s: not a number from 1 to %d", text, 1 << 20);
	*element = value;
	return 0;
}

static int set_option(struct select_options *o, int opt)
{
	switch (opt) {
	case 'N':
		return set_nodes(optarg, &o->query.nodes);
	case OPT_COLL:
		return plan_set_collective(optarg, &o->query.collective);
	case OPT_BYTES:
		return plan_set_bytes("--bytes", optarg, &o->query.bytes);
	case OPT_ELEMENT:
		return set_element(optarg, &o->query.element);
	case OPT_FABRIC:
		o->query.fabric = &o->fabric;
		return plan_set_fabric(optarg, &o->fabric);
	case OPT_RULES:
		o->query.rules = optarg;
		return 0;
	case OPT_CHOICE:
		o->query.choice = optarg;
		return 0;
	case OPT_ORDERED:
		o->query.flags |= ZCOLL_PLAN_ORDERED;
		return 0;
	case OPT_AGREED:
		o->query.flags |= ZCOLL_PLAN_AGREED;
		return 0;
	case OPT_SCRATCH:
		return plan_set_bytes("--scratch", optarg, &o->query.scratch);
	case OPT_NO_OUTPUT:
		o->query.output = 0;
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	default:
		return usage_option();
	}
}

/* A reduce-scatter's output is its own segment only */
static bool has_output(uint32_t collective)
{
	return collective == ZCOLL_ALLREDUCE || collective == ZCOLL_ALLGATHER ||
	       collective == ZCOLL_BROADCAST;
}

static int select_plan(struct select_options *o)
{
	struct zcoll_plan_choice *choice = malloc(sizeof(*choice));
	char error[ZCOLL_TEXT_MAX];
	int status = 0;

	if (!choice)
		return failed("out of memory");
	o->query.output = o->query.output && has_output(o->query.collective);
	if (zcoll_plan_select(&o->query, choice, error, sizeof(error)))
		status = failed("%s", error);
	else if (o->json)
		status = print_json(&o->query, choice);
	else
		print_choice(&o->query, choice);
	free(choice);
	return status;
}

int plan_select(int argc, char **argv)
{
	struct select_options o = {
		.query = { .size = sizeof(o.query), .collective = ZCOLL_ALLREDUCE,
			   .bytes = 1 << 20, .element = 4, .output = 1 },
	};
	int opt, status = 0;

	if (plan_wants_help(argc, argv, help))
		return STATUS_OK;
	while (!status && (opt = getopt_long(argc, argv, "N:", options, NULL)) != -1)
		status = set_option(&o, opt);
	if (status)
		return status;
	if (optind < argc)
		return usage("unexpected argument '%s'", argv[optind]);
	if (!o.query.nodes)
		return usage("how many nodes? give -N");
	if (o.query.bytes % o.query.element)
		return usage("--bytes %llu is not a multiple of --element %u",
			     (unsigned long long)o.query.bytes, o.query.element);
	return select_plan(&o);
}
