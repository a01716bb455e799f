// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll plan cost: rounds, bytes and estimated time of a plan.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"
#include "options.h"
#include "patience.h"
#include "plan.h"

static const char help[] =
"Usage: zcoll plan cost FILE [OPTION...]\n"
"\n"
"Tells what a plan costs on a fabric: rounds, messages, bytes, and the time from the\n"
"begin at all nodes until the last has its results, by carrying the plan out on paper\n"
"with LogGP costs; and how often the yardstick of `zcoll plan select`. FILE is as for\n"
"`zcoll plan check`; - is standard input. It should be a plan that is right: cost does\n"
"not prove that.\n"
"\n"
"      --bytes SIZE        of the whole operation (1M)\n"
"      --slice SIZE        messages have at most so many bytes (64K)\n"
"      --fabric F          file of `zcoll calibrate`, or L,o,g,G[,gamma] in ns and ns\n"
"                          a byte (ZCOLL_COSTS, or a built-in fabric)\n"
"      --json              as one JSON object\n"
"  -h, --help              show this text\n"
"\n"
"Exit status: 0 success, 1 failure, 2 wrong usage.\n";

enum { OPT_BYTES = 256, OPT_SLICE, OPT_FABRIC, OPT_JSON };

static const struct option options[] = {
	{ "bytes", required_argument, NULL, OPT_BYTES },
	{ "slice", required_argument, NULL, OPT_SLICE },
	{ "fabric", required_argument, NULL, OPT_FABRIC },
	{ "json", no_argument, NULL, OPT_JSON },
	{ NULL, 0, NULL, 0 },
};

struct cost_options {
	uint64_t bytes;
	uint64_t slice;
	struct zcoll_fabric fabric;
	bool json;
};

static void print_cost(const struct cost_options *o, const struct zcoll_plan *plan,
		       const struct zcoll_plan_cost *cost)
{
	char ns[32], yardstick[32];

	printf("plan         %s, %s, %u node%s\n", plan->name,
	       zcoll_collective_name(plan->collective), plan->nodes,
	       plan->nodes == 1 ? "" : "s");
	printf("fabric       %s\n", o->fabric.name);
	printf("rounds       %llu\n", (unsigned long long)cost->rounds);
	printf("messages     %llu of the node that sends most\n",
	       (unsigned long long)cost->messages_max);
	printf("bytes sent   %.0f of the node that sends most, %.0f of all\n", cost->sent_max,
	       cost->sent_total);
	printf("bytes folded %.0f of the node that folds most\n", cost->folded_max);
	printf("time         %s\n", plan_time(ns, sizeof(ns), cost->ns));
	printf("yardstick    %s (%.2f times)\n",
	       plan_time(yardstick, sizeof(yardstick), cost->bound_ns),
	       cost->bound_ns > 0 ? cost->ns / cost->bound_ns : 1.0);
}

static int print_json(const struct cost_options *o, const struct zcoll_plan *plan,
		      const struct zcoll_plan_cost *cost)
{
	json_t *root = json_pack("{ss ss si sI ss sI sI sf sf sf sf sf}", "name", plan->name,
				 "collective", zcoll_collective_name(plan->collective),
				 "nodes", (int)plan->nodes, "bytes", (json_int_t)o->bytes,
				 "fabric", o->fabric.name,
				 "rounds", (json_int_t)cost->rounds,
				 "messages_max", (json_int_t)cost->messages_max,
				 "sent_max", cost->sent_max, "sent_total", cost->sent_total,
				 "folded_max", cost->folded_max, "time_ns", cost->ns,
				 "yardstick_ns", cost->bound_ns);

	return plan_print_json(root);
}

static int set_option(struct cost_options *o, int opt)
{
	switch (opt) {
	case OPT_BYTES:
		return plan_set_bytes("--bytes", optarg, &o->bytes);
	case OPT_SLICE:
		return plan_set_slice(optarg, &o->slice);
	case OPT_FABRIC:
		return plan_set_fabric(optarg, &o->fabric);
	case OPT_JSON:
		o->json = true;
		return 0;
	default:
		return usage_option();
	}
}

/* What is timed may be no plan that is right: then the cause is told by the check */
static int cost_failed(const char *path, int err, const char *error)
{
	bool ours = err == -ENOMEM || err == -E2BIG;

	return failed("%s: %s%s", path, error, ours ? "" : "; `zcoll plan check` tells why");
}

static int cost_of(const struct cost_options *o, const char *path)
{
	struct zcoll_plan *plan;
	struct zcoll_plan_cost cost;
	char error[ZCOLL_TEXT_MAX];
	int status = plan_read(path, &plan), err;

	if (status)
		return status;
	patience_begin("carrying it out on paper");
	err = zcoll_plan_time(plan, &o->fabric, o->bytes, o->slice, &cost, error, sizeof(error));
	patience_end();
	if (err)
		status = cost_failed(path, err, error);
	else if (o->json)
		status = print_json(o, plan, &cost);
	else
		print_cost(o, plan, &cost);
	zcoll_plan_free(plan);
	return status;
}

int plan_cost(int argc, char **argv)
{
	struct cost_options o = { .bytes = 1 << 20 };
	const char *path;
	int opt, status;

	if (plan_wants_help(argc, argv, help))
		return STATUS_OK;
	status = plan_default_fabric(&o.fabric);
	while (!status && (opt = getopt_long(argc, argv, "", options, NULL)) != -1)
		status = set_option(&o, opt);
	if (!status)
		status = plan_file_argument(argc, argv, &path);
	return status ? status : cost_of(&o, path);
}
