// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll sim sweep: time against size, for all algorithms, and how far the algorithm
 * that zcoll_plan_select() chooses is from what no algorithm can do without.
 *
 * Each algorithm is simulated with the parameters that the selection thinks best for
 * it. NICs send and receive one message at a time: without that, slices of
 * a large message would travel side by side.
 *
 * The yardstick: with alpha = L + 2 o, an all-reduce whose nodes send one message after the
 * other takes at least ceil(log2 N) alpha, as the number of nodes that know of an input at
 * most doubles in a round, and any takes at least 2 (N - 1) / N n G on the wire
 * (Patarasuk, Yuan: "Bandwidth optimal all-reduce algorithms for clusters of workstations",
 * JPDC 69(2), 2009). A high radix overlaps messages, and so may beat the first
 * term. Other collectives: see zcoll_plan_bound().
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"
#include "../plan/options.h"
#include "../progress.h"
#include "chart.h"
#include "simcmd.h"

static const char help[] =
"Usage: zcoll sim sweep [OPTION...]\n"
"\n"
"Simulates all algorithms over a range of sizes and numbers of nodes, prints times beside\n"
"a yardstick, the larger of ceil(log2 N) (L + 2o) and 2 (N - 1)/N n G for an all-reduce of\n"
"n bytes, and names where the algorithm that would be selected takes more than 1.25 times\n"
"these two terms together. A high radix overlaps messages, and so may beat the first one.\n"
"\n"
"  -N, --nodes LIST        numbers of nodes (2,3,8,12,16,64,100,256,1024,4096)\n"
"      --coll C            collective (allreduce)\n"
"      --fabric L,o,g,G    ns, a fifth number: to fold a byte; or a fabric's file\n"
"      --min SIZE          smallest size (8)\n"
"      --max SIZE          largest size (1G)\n"
"      --factor N          from size to size (8)\n"
"      --events N          leave out runs of more events (4000000)\n"
"      --selected          simulate no other algorithms\n"
"      --svg FILE          draw it\n"
"      --json              an array of JSON objects, one for each case, instead of tables\n"
"  -h, --help              show this text\n"
"\n"
"Slices are made larger where a run would take too many events.\n"
"\n"
"Exit status: 0 success, 1 failure, 2 wrong usage.\n";

#define MAX_COUNTS	32	/* numbers of nodes */
#define MAX_SIZES	42
#define MAX_ALGOS	16
#define ELEMENT		4
#define FACTOR		1.25
#define COARSER		4	/* slices, where a run would take too many events */

enum { LINE_YARDSTICK = MAX_ALGOS, LINE_SELECTED, LINES };

/**
 * struct sweep - what the command line asks for, and where the sweep is
 * @counts: numbers of nodes
 * @ncounts: how many
 * @sizes: bytes
 * @nsizes: how many
 * @collective: collective
 * @fabric: costs
 * @min: --min
 * @max: --max
 * @factor: --factor
 * @events: --events
 * @only: --selected
 * @svg: --svg, or NULL
 * @json: --json
 * @list: then the cases, or NULL: out of memory
 * @times: ns by line and size, for one number of nodes; 0: not simulated
 * @slices: likewise, bytes of the slices with which it was simulated
 * @drawn: a bit for each line of the picture that has points
 * @ratio: by size: of the selected algorithm to the yardstick's terms
 * @beyond: cases beyond @FACTOR
 * @cases: all cases, but those left out
 * @progress: of all cases
 * @done: cases
 */
struct sweep {
	u32 counts[MAX_COUNTS];
	int ncounts;
	double sizes[MAX_SIZES];
	int nsizes;
	u32 collective;
	struct zcoll_fabric fabric;
	u64 min;
	u64 max;
	u64 factor;
	u64 events;
	bool only;
	const char *svg;
	bool json;
	json_t *list;
	double times[LINES][MAX_SIZES];
	u64 slices[LINES][MAX_SIZES];
	unsigned int drawn;
	double ratio[MAX_SIZES];
	char selected[MAX_SIZES][64];
	u32 beyond;
	u32 cases;
	struct progress progress;
	u64 done;
};

/* ---- one run ---- */

static int algorithm_index(const char *name)
{
	const char *each;
	int i;

	for (i = 0; i < MAX_ALGOS && (each = zcoll_plan_algorithm(i)); i++)
		if (!strcmp(each, name))
			return i;
	return -1;
}

static void tell_progress(void *told, u64 events)
{
	struct sweep *s = told;

	(void)events;
	progress_update(&s->progress, "cases", s->done, (u64)s->ncounts * (u64)s->nsizes, false);
}

static int simulate(struct sweep *s, const struct zcoll_plan *plan, u64 bytes, u64 slice,
		    double *ns)
{
	struct sim_job_spec spec = {
		.plan = plan, .bytes = bytes, .element = ELEMENT, .slice = slice,
		.eager = ZC_ENGINE_EAGER,
	};
	struct sim_scene scene = {
		.model = { .inlined = 64, .contention = SIM_CONTENTION_NIC },
		.faults = { .slowness = 1 },
		.njobs = 1, .ops = 1, .window = 1, .slots = ZC_ENGINE_SLOTS,
		.inflight = ZC_ENGINE_INFLIGHT, .ranks = 1, .most_events = s->events,
		.tell = tell_progress, .told = s,
	};
	struct sim_outcome outcome;
	struct sim_job job;
	int err = job_init(&job, &spec);

	scene.jobs = &job;
	model_from_fabric(&scene.model, &s->fabric);
	if (!err)
		err = sim_run(&scene, &outcome);
	job_free(&job);
	if (err)
		return err;
	*ns = outcome.events < s->events ? (double)outcome.time / SIM_PS : 0;
	return 0;
}

/* What a message takes: TRANSMIT, SENT, HOP, ARRIVE, RECEIVED, and what is done with it */
#define MESSAGE_EVENTS 6

/* About how many messages a node sends in a step, if it takes part */
static double step_messages(const struct zcoll_plan *plan, const struct zcoll_step *step,
			    u64 bytes, u64 slice)
{
	const struct zc_geometry geo = { .count = bytes / ELEMENT };
	u64 largest = zc_geometry_largest(&geo, plan->segments);
	double elements = (double)geo.count / plan->segments * step->count;
	u64 slices = zc_step_cut(step, &geo, largest, slice / ELEMENT ? slice / ELEMENT : 1).slices;

	/* segments without elements are not sent */
	return step->repeat * (step->count ? fmin(slices, elements) : 1);
}

/* Is even a guess at the events too high? Then do not begin. */
static bool too_many_messages(const struct sweep *s, const struct zcoll_plan *plan, u64 bytes,
			      u64 slice)
{
	double events = 0, each;
	u32 v, i;

	for (i = 0; i < plan->nsteps; i++) {
		each = MESSAGE_EVENTS * step_messages(plan, &plan->steps[i], bytes, slice);
		for (v = 0; v < plan->nodes && plan->steps[i].kind == ZCOLL_STEP_SEND; v++)
			events += zc_step_active(plan, &plan->steps[i], v) ? each : 0;
	}
	return events > s->events;
}

/* The time of a candidate, with coarser slices if it takes too many events */
static int candidate_time(struct sweep *s, const struct zcoll_plan_candidate *candidate,
			  int line, int k)
{
	u64 bytes = (u64)s->sizes[k], slice = candidate->slice;
	char error[ZCOLL_TEXT_MAX];
	struct zcoll_plan *plan;
	bool coarsest = false;
	double ns = 0;
	int err = 0;

	if (zcoll_plan_make(&candidate->spec, &plan, error, sizeof(error)))
		return 0;
	while (!err && !ns && !coarsest) {
		coarsest = slice >= bytes;
		if (!too_many_messages(s, plan, bytes, slice))
			err = simulate(s, plan, bytes, slice, &ns);
		s->times[line][k] = ns;
		s->slices[line][k] = slice;
		slice *= COARSER;
	}
	zcoll_plan_free(plan);
	return err;
}

/* ---- one size ---- */

/* The larger term of the yardstick, and both together */
static void yardstick(const struct sweep *s, u32 nodes, double bytes, double *most, double *sum)
{
	double alpha = s->fabric.latency + 2 * s->fabric.overhead;
	double rounds = ceil(log2(nodes)) * alpha;
	double wire = 2 * (nodes - 1.0) / nodes * bytes * s->fabric.per_byte;

	*most = fmax(rounds, wire);
	*sum = rounds + wire;
	if (s->collective == ZCOLL_ALLREDUCE)
		return;
	*most = zcoll_plan_bound(s->collective, nodes, &s->fabric, (u64)bytes);
	*sum = *most;
}

/* The first candidate of each algorithm is its best one */
static int time_algorithms(struct sweep *s, const struct zcoll_plan_choice *choice, int k)
{
	const struct zcoll_plan_candidate *candidate;
	bool seen[MAX_ALGOS] = { false };
	u32 i;
	int algo, err = 0;

	for (i = 0; i < choice->ncandidates && !err; i++) {
		candidate = &choice->candidates[i];
		algo = algorithm_index(candidate->spec.algo);
		if (algo < 0 || seen[algo] || candidate->refused[0])
			continue;
		seen[algo] = true;
		err = candidate_time(s, candidate, algo, k);
	}
	return err;
}

/* What the cost model selects is the first of all candidates */
static int selected_time(struct sweep *s, const struct zcoll_plan_choice *choice, int k)
{
	int algo = algorithm_index(choice->best.spec.algo);

	if (algo < 0 || s->only || choice->by != ZCOLL_BY_COST)
		return candidate_time(s, &choice->best, LINE_SELECTED, k);
	s->times[LINE_SELECTED][k] = s->times[algo][k];
	s->slices[LINE_SELECTED][k] = s->slices[algo][k];
	return 0;
}

static int sweep_size(struct sweep *s, u32 nodes, int k)
{
	struct zcoll_plan_query query = {
		.size = sizeof(query), .collective = s->collective, .nodes = nodes,
		.bytes = (u64)s->sizes[k], .element = ELEMENT, .output = 1,
		.fabric = &s->fabric,
	};
	struct zcoll_plan_choice choice = { 0 };
	char error[ZCOLL_TEXT_MAX] = "";
	double sum;
	int err;

	if (zcoll_plan_select(&query, &choice, error, sizeof(error)))
		return failed("%u nodes: %s", nodes, error);
	err = s->only ? 0 : time_algorithms(s, &choice, k);
	if (!err)
		err = selected_time(s, &choice, k);
	if (err)
		return failed("%u nodes: %s", nodes, strerror(-err));
	choice.best.slice = s->slices[LINE_SELECTED][k];
	zcoll_plan_choice_text(&choice.best, s->selected[k], sizeof(s->selected[k]));
	yardstick(s, nodes, s->sizes[k], &s->times[LINE_YARDSTICK][k], &sum);
	s->ratio[k] = s->times[LINE_SELECTED][k] / sum;
	s->cases += s->ratio[k] > 0;
	s->beyond += s->ratio[k] > FACTOR;
	s->done++;
	tell_progress(s, 0);
	return STATUS_OK;
}

/* ---- JSON ---- */

static json_t *json_ns(double ns)
{
	return ns > 0 ? json_real(ns) : json_null();
}

/* A case; what was left out is null */
static void list_case(struct sweep *s, u32 nodes, int k)
{
	json_t *times = json_object();
	const char *name;
	int i;

	for (i = 0; i < MAX_ALGOS && (name = zcoll_plan_algorithm(i)); i++)
		if (s->times[i][k] > 0)
			json_object_set_new(times, name, json_ns(s->times[i][k]));
	json_array_append_new(s->list, json_pack("{ss si sI ss so so so so}",
		"collective", zcoll_collective_name(s->collective), "nodes", (int)nodes,
		"bytes", (json_int_t)s->sizes[k], "selected", s->selected[k],
		"selected_ns", json_ns(s->times[LINE_SELECTED][k]),
		"yardstick_ns", json_ns(s->times[LINE_YARDSTICK][k]),
		"ratio", json_ns(s->ratio[k]), "times_ns", times));
}

/* ---- tables and charts ---- */

static void print_time(double ns)
{
	char text[32];

	printf(" %7s", ns > 0 ? plan_time(text, sizeof(text), ns) : "-");
}

static void print_row(const struct sweep *s, const char *name, int line)
{
	int k;

	printf("%-20s", name);
	for (k = 0; k < s->nsizes; k++)
		print_time(s->times[line][k]);
	putchar('\n');
}

static void print_size(double bytes)
{
	static const char units[] = "BKMGT";
	int unit = 0;

	while (bytes >= 1024 && unit < 4) {
		bytes /= 1024;
		unit++;
	}
	printf(" %6.0f%c", bytes, units[unit]);
}

static bool has_times(const struct sweep *s, int line)
{
	int k;

	for (k = 0; k < s->nsizes; k++)
		if (s->times[line][k] > 0)
			return true;
	return false;
}

static void print_table(const struct sweep *s, u32 nodes)
{
	const char *name;
	int k, i;

	printf("%-20s", "");
	for (k = 0; k < s->nsizes; k++)
		print_size(s->sizes[k]);
	printf("   %s, %u nodes\n", zcoll_collective_name(s->collective), nodes);
	for (i = 0; i < MAX_ALGOS && (name = zcoll_plan_algorithm(i)); i++)
		if (has_times(s, i))
			print_row(s, name, i);
	print_row(s, "selected", LINE_SELECTED);
	print_row(s, "yardstick", LINE_YARDSTICK);
	printf("%-20s", "selected/both terms");
	for (k = 0; k < s->nsizes; k++)
		printf(" %7.2f", s->ratio[k]);
	putchar('\n');
	for (k = 0; k < s->nsizes; k++)
		if (s->ratio[k] > FACTOR)
			printf("beyond %.2f: %u nodes, %.0f bytes, %s: %.2f\n", FACTOR, nodes,
			       s->sizes[k], s->selected[k], s->ratio[k]);
		else if (!(s->ratio[k] > 0))
			printf("left out: %u nodes, %.0f bytes, %s: over %" PRIu64 " events\n",
			       nodes, s->sizes[k], s->selected[k], s->events);
	putchar('\n');
}

/* What the yardstick is; NULL-terminated */
static const char *const *yardstick_notes(const struct sweep *s)
{
	static const char *const allreduce[] = {
		"yardstick: the larger of ceil(log2 N) (L + 2o) and 2 (N - 1)/N n G;",
		"a high radix overlaps messages, and so may beat the first of these", NULL,
	};
	static const char *const other[] = {
		"yardstick: one message after the other, and each byte once", NULL,
	};

	return s->collective == ZCOLL_ALLREDUCE ? allreduce : other;
}

static void print_notes(const char *const *notes)
{
	for (; *notes; notes++)
		puts(*notes);
}

/* @index: of the panel; after the last comes the legend */
static void draw(struct sweep *s, FILE *svg, int index)
{
	struct chart_line lines[LINES];
	char title[64];
	struct chart_panel panel = {
		.title = title, .x = s->sizes, .points = s->nsizes, .lines = lines,
	};
	const char *name;
	int i;

	lines[panel.nlines++] = (struct chart_line){ "selected", s->times[LINE_SELECTED],
						     CHART_BAND };
	for (i = 0; i < MAX_ALGOS && (name = zcoll_plan_algorithm(i)); i++)
		lines[panel.nlines++] = (struct chart_line){ name, s->times[i], CHART_LINE };
	lines[panel.nlines++] = (struct chart_line){ "yardstick", s->times[LINE_YARDSTICK],
						     CHART_BOUND };
	if (index == s->ncounts) {
		chart_end(svg, &panel, s->drawn);
		return;
	}
	if (!index) {
		snprintf(title, sizeof(title), "%s: time against size",
			 zcoll_collective_name(s->collective));
		chart_begin(svg, title, yardstick_notes(s), s->ncounts);
	}
	snprintf(title, sizeof(title), "%u nodes", s->counts[index]);
	s->drawn |= chart_panel(svg, index, &panel);
}

/* ---- the sweep ---- */

static int sweep_all(struct sweep *s, FILE *svg)
{
	int i, k, status = STATUS_OK;

	progress_start(&s->progress, true);
	for (i = 0; i < s->ncounts && !status; i++) {
		memset(s->times, 0, sizeof(s->times));
		for (k = 0; k < s->nsizes && !status; k++)
			status = sweep_size(s, s->counts[i], k);
		progress_end(&s->progress);
		if (status)
			break;
		if (s->json)
			for (k = 0; k < s->nsizes; k++)
				list_case(s, s->counts[i], k);
		else
			print_table(s, s->counts[i]);
		fflush(stdout);
		if (svg)
			draw(s, svg, i);
	}
	return status;
}

/* What comes after all tables, or instead of them */
static int sweep_end(struct sweep *s)
{
	if (s->json)
		return plan_print_json(s->list);
	print_notes(yardstick_notes(s));
	printf("beyond %.2f of both terms: %u of %u cases\n", FACTOR, s->beyond, s->cases);
	return STATUS_OK;
}

static int sweep_run(struct sweep *s)
{
	FILE *svg = NULL;
	int status;

	s->list = s->json ? json_array() : NULL;
	if (s->svg) {
		svg = fopen(s->svg, "w");
		if (!svg)
			return failed("%s: %s", s->svg, strerror(errno));
	}
	status = sweep_all(s, svg);
	progress_end(&s->progress);
	if (!status)
		status = sweep_end(s);
	else
		json_decref(s->list);
	if (!svg)
		return status;
	if (!status)
		draw(s, svg, s->ncounts);
	if ((ferror(svg) | fclose(svg)) && !status)
		return failed("%s: cannot be written", s->svg);
	return status;
}

/* ---- options ---- */

enum {
	OPT_COLL = 256, OPT_FABRIC, OPT_MIN, OPT_MAX, OPT_FACTOR, OPT_EVENTS, OPT_SELECTED,
	OPT_SVG, OPT_JSON,
};

static const struct option options[] = {
	{ "nodes", required_argument, NULL, 'N' },
	{ "coll", required_argument, NULL, OPT_COLL },
	{ "fabric", required_argument, NULL, OPT_FABRIC },
	{ "min", required_argument, NULL, OPT_MIN },
	{ "max", required_argument, NULL, OPT_MAX },
	{ "factor", required_argument, NULL, OPT_FACTOR },
	{ "events", required_argument, NULL, OPT_EVENTS },
	{ "selected", no_argument, NULL, OPT_SELECTED },
	{ "svg", required_argument, NULL, OPT_SVG },
	{ "json", no_argument, NULL, OPT_JSON },
	{ NULL, 0, NULL, 0 },
};

static int set_counts(struct sweep *s, const char *list)
{
	char text[256], *rest = text, *item = NULL;
	u64 value;

	s->ncounts = 0;
	snprintf(text, sizeof(text), "%s", list);
	while (strlen(list) < sizeof(text) && (item = strsep(&rest, ",")) &&
	       s->ncounts < MAX_COUNTS && !parse_uint(item, 2, ZCOLL_PLAN_MAX_NODES, &value))
		s->counts[s->ncounts++] = (u32)value;
	if (!item && s->ncounts)
		return STATUS_OK;
	return usage("-N %s: not up to %d numbers of nodes such as 2,16,100", list, MAX_COUNTS);
}

static int set_option(struct sweep *s, int opt)
{
	switch (opt) {
	case 'N':
		return set_counts(s, optarg);
	case OPT_COLL:
		return plan_set_collective(optarg, &s->collective);
	case OPT_FABRIC:
		return plan_set_fabric(optarg, &s->fabric);
	case OPT_MIN:
		return option_size("--min", &s->min);
	case OPT_MAX:
		return option_size("--max", &s->max);
	case OPT_FACTOR:
		return option_uint("--factor", 2, 1 << 20, &s->factor);
	case OPT_EVENTS:
		return option_uint("--events", 1000, INT64_MAX, &s->events);
	case OPT_SELECTED:
		s->only = true;
		return STATUS_OK;
	case OPT_SVG:
		if (!strcmp(optarg, "-"))
			return usage("--svg -: standard output is for the table; name a file");
		s->svg = optarg;
		return STATUS_OK;
	case OPT_JSON:
		s->json = true;
		return STATUS_OK;
	}
	return usage_option();
}

static int check_options(struct sweep *s, int argc, char **argv)
{
	u64 bytes;

	if (optind < argc)
		return usage("unexpected argument '%s'", argv[optind]);
	if (s->min < ELEMENT || s->min % ELEMENT)
		return usage("--min: not a multiple of %d bytes, an element", ELEMENT);
	if (s->min > s->max)
		return usage("--min is more than --max");
	for (bytes = s->min; bytes <= s->max && s->nsizes < MAX_SIZES; bytes *= s->factor)
		s->sizes[s->nsizes++] = (double)bytes;
	return STATUS_OK;
}

int sim_sweep(int argc, char **argv)
{
	struct sweep s = {
		.collective = ZCOLL_ALLREDUCE, .min = 8, .max = 1 << 30, .factor = 8,
		.events = 4000000,
	};
	int opt, status;

	if (plan_wants_help(argc, argv, help))
		return STATUS_OK;
	status = plan_default_fabric(&s.fabric);
	if (status)
		return status;
	set_counts(&s, "2,3,8,12,16,64,100,256,1024,4096");
	while ((opt = getopt_long(argc, argv, "N:", options, NULL)) != -1) {
		status = set_option(&s, opt);
		if (status)
			return status;
	}
	status = check_options(&s, argc, argv);
	return status ? status : sweep_run(&s);
}
