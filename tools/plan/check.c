// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll plan check: is a plan right? What its proof has found, or why it is refused.
 */
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>

#include "../cmd.h"
#include "../msg.h"
#include "options.h"
#include "patience.h"
#include "plan.h"

enum { OPT_WINDOW = 256, OPT_SLOTS, OPT_ALL, OPT_JSON };

static const char *yes(int it_is)
{
	return it_is ? "yes" : "no";
}

static void print_facts(const struct zcoll_plan *plan, const struct zcoll_plan_facts *facts)
{
	printf("%s: %s of %u nodes is right\n", words_name(plan),
	       zcoll_collective_name(plan->collective), plan->nodes);
	if (facts->nodes_run < plan->nodes)
		printf("  nodes run      %u; the plan is the same seen from all others\n",
		       facts->nodes_run);
	printf("  rounds         %u\n", facts->rounds);
	printf("  segments sent  %" PRIu64 " by a node at most, %" PRIu64 " by all, where the "
	       "data is %u\n", facts->sent_max, facts->sent_total, plan->segments);
	printf("  messages       %" PRIu64 " by a node at most, %" PRIu64 " by all\n",
	       facts->messages_max, facts->messages_total);
	printf("  folded         %" PRIu64 " received segments by a node at most\n",
	       facts->folded_max);
	printf("  peers          %u of a node at most\n", facts->peers_max);
	printf("  scratch        %u places\n", facts->scratch);
	printf("  accumulations  %u, where the outputs are too short\n", facts->acc);
	printf("  same bits      %s: all nodes get the same, whatever the operator\n",
	       yes(facts->same_bits));
	printf("  ordered        %s: reduces in the fixed tree's order over nodes\n",
	       yes(facts->ordered));
	printf("  agreed         %s: no node ends before all have all results\n",
	       yes(facts->agreed));
	if (*facts->order)
		printf("  order          %s\n", facts->order);
}

static json_t *json_facts(const struct zcoll_plan_facts *facts)
{
	return json_pack("{sb si si sI sI sI sI sI si si si sb sb sb ss}",
			 "right", 1,
			 "nodes_run", (int)facts->nodes_run,
			 "rounds", (int)facts->rounds,
			 "sent_max", (json_int_t)facts->sent_max,
			 "sent_total", (json_int_t)facts->sent_total,
			 "messages_max", (json_int_t)facts->messages_max,
			 "messages_total", (json_int_t)facts->messages_total,
			 "folded_max", (json_int_t)facts->folded_max,
			 "peers_max", (int)facts->peers_max,
			 "scratch", (int)facts->scratch,
			 "acc", (int)facts->acc,
			 "same_bits", facts->same_bits,
			 "ordered", facts->ordered,
			 "agreed", facts->agreed,
			 "order", facts->order);
}

static int check(const char *path, const struct zcoll_plan *plan,
		 const struct zcoll_plan_limits *limits, bool json)
{
	char error[ZCOLL_TEXT_MAX] = "";
	struct zcoll_plan_facts facts;
	int err;

	patience_begin("proving");
	err = zcoll_plan_check(plan, limits, &facts, error, sizeof(error));
	patience_end();
	if (err) {
		if (json)
			plan_print_json(json_pack("{sb ss}", "right", 0, "error", error));
		return failed("%s: %s", path, error);
	}
	if (json)
		return plan_print_json(json_facts(&facts));
	print_facts(plan, &facts);
	return STATUS_OK;
}

static int set_option(struct zcoll_plan_limits *limits, bool *json, int opt)
{
	switch (opt) {
	case OPT_WINDOW:
		return plan_number("--window", 1, 64, &limits->window);
	case OPT_SLOTS:
		return plan_number("--slots", 2, 64, &limits->slots);
	case OPT_ALL:
		limits->nodes = 0;
		return STATUS_OK;
	case OPT_JSON:
		*json = true;
		return STATUS_OK;
	}
	return usage_option();
}

int plan_check(int argc, char **argv)
{
	static const struct option options[] = {
		{ "window", required_argument, NULL, OPT_WINDOW },
		{ "slots", required_argument, NULL, OPT_SLOTS },
		{ "all", no_argument, NULL, OPT_ALL },
		{ "json", no_argument, NULL, OPT_JSON },
		{ NULL, 0, NULL, 0 },
	};
	struct zcoll_plan_limits limits = { .window = 8, .slots = 2, .nodes = 1 };
	struct zcoll_plan *plan;
	const char *path;
	bool json = false;
	int opt, status;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		status = set_option(&limits, &json, opt);
		if (status)
			return status;
	}
	status = plan_file_argument(argc, argv, &path);
	if (!status)
		status = plan_read(path, &plan);
	if (status)
		return status;
	status = check(path, plan, &limits, json);
	zcoll_plan_free(plan);
	return status;
}
