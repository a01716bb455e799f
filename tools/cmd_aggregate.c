// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll aggregate: be a node without ranks, which reduces what others send to it
 * (in-network computing in software). The kernel does the work; this process holds the node's
 * place in the communicator, and the plans it is to follow.
 *
 * A plan is named by algorithm, as ZCOLL_PLAN has it, and made for all collectives that the
 * algorithm has; the ranks make the same ones of the same names. What the ranks use and
 * the aggregator has not loaded is an error of the operation.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <zcoll_plan.h>

#include "cmd.h"
#include "msg.h"
#include "parse.h"
#include "plan/plan.h"
#include "session.h"

static const char help[] =
"Usage: zcoll aggregate [OPTION...]\n"
"\n"
"Makes this node one that has no ranks and only aggregates, until the communicator\n"
"ends. Its plans must be those that the ranks use.\n"
"\n"
"      --plan P         ALGORITHM[:radix=N][,aggregators=N], as ZCOLL_PLAN has it, for\n"
"                       all its collectives; may be given again (ZCOLL_PLAN, or else\n"
"                       aggregator)\n"
"      --agreed         also the plans of --agreed operations\n"
"      --file F         a plan from a file, as `zcoll plan make` writes it; may be given\n"
"                       again\n"
"      --deadline T     give up when joining takes longer (60s; 0: never)\n"
"  -h, --help           show this text\n"
"\n"
"ZCOLL_AGGREGATOR, ZCOLL_AGGREGATORS, ZCOLL_SIZE, ZCOLL_KEY and ZCOLL_STORE of the\n"
"environment say which aggregator of how many this is, of how many ranks, and where these\n"
"are found; see libzcoll(3). All ranks have ZCOLL_AGGREGATORS, too.\n"
"\n"
"Exit status: 0 when the ranks have left, 1 failure, 2 wrong usage.\n"
"\n"
"Example: ZCOLL_AGGREGATOR=0 ZCOLL_AGGREGATORS=1 ZCOLL_SIZE=8 ZCOLL_STORE=n0:29501 \\\n"
"         zcoll aggregate\n";

#define MAX_PLANS 32	/* that are named on the command line */

struct wanted {
	const char *name[MAX_PLANS];
	const char *file[MAX_PLANS];
	unsigned int names, files;
	bool agreed;
	uint64_t deadline_ns;
};

/* ---- plans ---- */

static int load(struct zcoll_comm *comm, struct zcoll_plan *plan)
{
	uint32_t number;
	int err = zcoll_plan_load(comm, plan, &number);
	int status = err ? session_failed(comm, plan->name, err) : STATUS_OK;

	zcoll_plan_free(plan);
	return status;
}

static int load_file(struct zcoll_comm *comm, const char *path)
{
	struct zcoll_plan *plan;
	int status = plan_read(path, &plan);

	return status ? status : load(comm, plan);
}

/* Of all members of the communicator: those of its nodes that are no aggregators */
static unsigned int members(const struct zcoll_comm *comm)
{
	unsigned int n = zcoll_comm_size(comm), rank;
	int most = 0, node;

	for (rank = 0; rank < n; rank++) {
		node = zcoll_comm_node_of(comm, rank);
		most = node > most ? node : most;
	}
	return (unsigned int)most + 1;
}

/* The plan that all ranks make of @name for a collective; none if the algorithm has none */
static int load_one(struct zcoll_comm *comm, const char *name, uint32_t collective, uint32_t flags)
{
	static struct zcoll_plan_choice choice;
	struct zcoll_plan_query query = {
		.size = sizeof(query), .collective = collective, .nodes = members(comm),
		.flags = flags, .element = 1, .choice = name,
	};
	char error[ZCOLL_TEXT_MAX] = "";
	struct zcoll_plan *plan;
	int err;

	err = zcoll_plan_select(&query, &choice, error, sizeof(error));
	if (!err && !choice.best.spec.aggregators)
		choice.best.spec.aggregators = zcoll_comm_nodes(comm) - query.nodes;
	if (!err)
		err = zcoll_plan_make(&choice.best.spec, &plan, error, sizeof(error));
	if (err == -EOPNOTSUPP && collective != ZCOLL_ALLREDUCE)
		return STATUS_OK;
	return err ? failed("%s", error) : load(comm, plan);
}

static int load_named(struct zcoll_comm *comm, const char *name, bool agreed)
{
	uint32_t collective;
	int status = STATUS_OK;

	for (collective = 1; collective < ZCOLL_NR_COLLECTIVES && !status; collective++) {
		status = load_one(comm, name, collective, 0);
		if (!status && agreed)
			status = load_one(comm, name, collective, ZCOLL_PLAN_AGREED);
	}
	return status;
}

static int load_all(struct zcoll_comm *comm, const struct wanted *wanted)
{
	const char *name = getenv("ZCOLL_PLAN");
	unsigned int i;
	int status = STATUS_OK;

	if (!wanted->names && !wanted->files)
		return load_named(comm, name && *name ? name : "aggregator", wanted->agreed);
	for (i = 0; i < wanted->names && !status; i++)
		status = load_named(comm, wanted->name[i], wanted->agreed);
	for (i = 0; i < wanted->files && !status; i++)
		status = load_file(comm, wanted->file[i]);
	return status;
}

/* ---- serving ---- */

static int serve(const struct wanted *wanted)
{
	char text[ZCOLL_TEXT_MAX] = "";
	struct zcoll_comm *comm;
	struct zcoll_attr attr;
	int err, status;

	zcoll_attr_init(&attr);
	attr.error = text;
	attr.error_len = sizeof(text);
	err = zcoll_attr_from_env(&attr);
	if (!err && wanted->deadline_ns != SESSION_DEFAULT)
		attr.join_timeout_ns = wanted->deadline_ns ? wanted->deadline_ns :
							     ZCOLL_WAIT_FOREVER;
	if (!err)
		err = zcoll_aggregator_create(&comm, &attr);
	if (err)
		return failed("%s", text[0] ? text : strerror(-err));

	status = load_all(comm, wanted);
	if (status) {
		zcoll_comm_abort(comm);
	} else {
		err = zcoll_aggregator_serve(comm);
		if (err)
			status = session_failed(comm, "aggregating", err);
	}
	zcoll_comm_free(comm);
	return status;
}

/* ---- options ---- */

static int add(const char *option, const char **list, unsigned int *count, const char *value)
{
	if (*count == MAX_PLANS)
		return usage("%s: at most %d of them", option, MAX_PLANS);
	list[(*count)++] = value;
	return 0;
}

static int aggregate(int argc, char **argv)
{
	enum { OPT_PLAN = 256, OPT_FILE, OPT_AGREED, OPT_DEADLINE };
	static const struct option options[] = {
		{ "plan", required_argument, NULL, OPT_PLAN },
		{ "file", required_argument, NULL, OPT_FILE },
		{ "agreed", no_argument, NULL, OPT_AGREED },
		{ "deadline", required_argument, NULL, OPT_DEADLINE },
		{ NULL, 0, NULL, 0 },
	};
	struct wanted wanted = { .deadline_ns = SESSION_DEFAULT };
	int opt, status = 0;

	while (!status && (opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case OPT_PLAN:
			status = add("--plan", wanted.name, &wanted.names, optarg);
			break;
		case OPT_FILE:
			status = add("--file", wanted.file, &wanted.files, optarg);
			break;
		case OPT_AGREED:
			wanted.agreed = true;
			break;
		case OPT_DEADLINE:
			if (parse_deadline(optarg, &wanted.deadline_ns))
				status = usage("--deadline %s: not a time up to one day", optarg);
			break;
		default:
			return usage_option();
		}
	}
	if (!status && optind < argc)
		status = usage("unexpected argument '%s'", argv[optind]);
	return status ? status : serve(&wanted);
}

const struct command cmd_aggregate = {
	.name = "aggregate",
	.summary = "be a node without ranks, which reduces for the others",
	.help = help,
	.run = aggregate,
};
