// SPDX-License-Identifier: GPL-2.0
/*
 * Selection: who decides, what a rules file and a fabric file may say, and which
 * algorithms are chosen for which sizes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zcoll_plan.h>

#include "../../kmod/engine/plan.h"
#include "../lib/tap.h"

static char path[64];		/* of a file for each test */
static struct zcoll_plan_choice choice;
static char error[ZCOLL_TEXT_MAX];

static const char *file_with(const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file)) {
		perror(path);
		exit(1);
	}
	return path;
}

static struct zcoll_plan_query query(uint32_t collective, uint32_t nodes, uint64_t bytes)
{
	return (struct zcoll_plan_query){
		.size = sizeof(struct zcoll_plan_query), .collective = collective,
		.nodes = nodes, .bytes = bytes, .element = 4, .output = 1,
	};
}

static int choose(const struct zcoll_plan_query *wanted)
{
	error[0] = '\0';
	return zcoll_plan_select(wanted, &choice, error, sizeof(error));
}

static bool chosen(const char *algo, uint32_t by)
{
	if (choice.best.spec.algo && !strcmp(choice.best.spec.algo, algo) && choice.by == by)
		return true;
	printf("# %s by %u, and should be %s by %u; %s\n",
	       choice.best.spec.algo ? choice.best.spec.algo : "nothing", choice.by, algo, by,
	       error);
	return false;
}

/* ---- fabrics ---- */

static void test_fabric_numbers(void)
{
	struct zcoll_fabric fabric;

	is(zcoll_fabric_get("2500,1500,1000,6", &fabric, error, sizeof(error)), 0,
	   "four numbers are a fabric");
	ok(fabric.latency == 2500 && fabric.overhead == 1500 && fabric.gap == 1000 &&
	   fabric.per_byte == 6 && fabric.per_byte_folded == 0,
	   "in the order L, o, g, G, without gamma");
	zcoll_fabric_get("1,2,3,4,0.5", &fabric, error, sizeof(error));
	ok(fabric.per_byte_folded == 0.5, "the fifth number is gamma");
}

static void test_fabric_numbers_wrong(void)
{
	static const char *const texts[] = { "1", "1,2,3", "1,2,3,4,5,6", "-1,2,3,4",
					     "1,2,3,4,", "1,,3,4", "1e99,2,3,4",
					     "nan,0,0,0", "inf,0,0,0,0", "1,2,x,4" };
	struct zcoll_fabric fabric;
	unsigned int i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		is(zcoll_fabric_get(texts[i], &fabric, error, sizeof(error)), -EINVAL,
		   "\"%s\" is no fabric", texts[i]);
		has(error, "L,o,g,G[,gamma]", "what is expected is told");
	}
}

static void test_fabric_file(void)
{
	struct zcoll_fabric fabric, again;
	char *text;

	zcoll_fabric_default(&fabric);
	text = zcoll_fabric_format(&fabric);
	is(zcoll_fabric_get(file_with(text), &again, error, sizeof(error)), 0,
	   "what is written as a fabric can be read");
	ok(!memcmp(&fabric, &again, sizeof(fabric)), "and is the same");
	free(text);
}

#define FABRIC(members) "{\"zcoll_fabric\": 1, \"name\": \"x\", \"overhead_ns\": 1, " \
	"\"gap_ns\": 1, \"ns_per_byte\": 1, \"ns_per_byte_folded\": 1" members "}"

static void test_fabric_file_wrong(void)
{
	static const struct {
		const char *text, *what;
	} files[] = {
		{ "", ": is empty" },
		{ " ", ":1:1: " },
		{ "{\n\"zcoll_fabric\": 1,\n}", ":3:1: " },
		{ "[]", "is an array, and should be an object" },
		{ FABRIC(""), "\"latency_ns\" is missing" },
		{ FABRIC(", \"latency_ns\": \"1\""),
		  "\"latency_ns\" is a string, and should be a number" },
		{ FABRIC(", \"latency_ns\": -1"), "\"latency_ns\" is -1" },
		{ FABRIC(", \"latency_ns\": 1, \"l\": 1"), "no member \"l\" is known here" },
		{ "{\"zcoll_fabric\": 2, \"name\": \"x\", \"latency_ns\": 1, \"overhead_ns\": 1, "
		  "\"gap_ns\": 1, \"ns_per_byte\": 1, \"ns_per_byte_folded\": 1}",
		  "\"zcoll_fabric\" is 2, and should be 1 to 1" },
	};
	struct zcoll_fabric fabric;
	unsigned int i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		is(zcoll_fabric_get(file_with(files[i].text), &fabric, error, sizeof(error)),
		   -EINVAL, "a fabric file that is wrong is refused: %s", files[i].what);
		ok(!strncmp(error, path, strlen(path)), "the file is named");
		has(error, files[i].what, "and what is wrong");
	}
	is(zcoll_fabric_get("no/such/file", &fabric, error, sizeof(error)), -ENOENT,
	   "a fabric file that is not there");
	has(error, "no/such/file: No such file", "is named");
}

/* ---- rules ---- */

#define RULES(collectives) "{\"zcoll_rules\": 1, \"collectives\": {" collectives "}}"
#define RULE(rule) RULES("\"allreduce\": [{\"rules\": [" rule "]}]")

static void test_rules_wrong(void)
{
	static const struct {
		const char *text, *what;
	} files[] = {
		{ "{", ":1:1: " },
		{ "{\"a\": 1, \"a\": 2}", "duplicate" },
		{ "[]", "is an array, and should be an object" },
		{ "{}", "\"zcoll_rules\" is missing" },
		{ "{\"zcoll_rules\": 1}", "\"collectives\" is missing" },
		{ "{\"zcoll_rules\": 3, \"collectives\": {}}", "\"zcoll_rules\" is 3" },
		{ RULES("\"alltoall\": []"), ": /collectives: no collective \"alltoall\"" },
		{ RULES("\"allreduce\": {}"), ": /collectives/allreduce: should be an array" },
		{ RULES("\"reduce\": [{}]"), ": /collectives/reduce/0: \"rules\" is missing" },
		{ RULES("\"allreduce\": [{\"rules\": [], \"comm_size\": 1}]"),
		  ": /collectives/allreduce/0: no member \"comm_size\"" },
		{ RULES("\"allreduce\": [{\"rules\": [], \"comm_size_min\": 9, \"comm_size_max\": 8}]"),
		  ": /collectives/allreduce/0: \"comm_size_min\" is more than" },
		{ RULE("1"), ": /collectives/allreduce/0/rules/0: is a whole number" },
		{ RULE("{\"alg\": \"ring\"}, {}"),
		  ": /collectives/allreduce/0/rules/1: \"alg\" is missing" },
		{ RULE("{\"alg\": \"rnig\"}"), "\"alg\": no algorithm \"rnig\"" },
		{ RULE("{\"alg\": 4}"), "\"alg\" is a whole number, and should be a string" },
		{ RULE("{\"alg\": \"ring\", \"msg_size_min\": -1}"), "\"msg_size_min\" is -1" },
		{ RULE("{\"alg\": \"ring\", \"msg_size_min\": 2, \"msg_size_max\": 1}"),
		  "no size fits" },
		{ RULE("{\"alg\": \"ring\", \"slice\": 0}"),
		  "\"slice\" is 0, and should be 1 to 1073741824" },
		{ RULE("{\"alg\": \"knomial\", \"radix\": 70000}"), "\"radix\" is 70000" },
		{ RULE("{\"alg\": \"knomial\", \"radix\": 1}"),
		  "\"radix\" is 1, and should be 2 to 65536" },
		{ RULE("{\"alg\": \"ring\", \"radix\": 4}"),
		  ": /collectives/allreduce/0/rules/0: ring has no radix" },
		{ RULE("{\"alg\": \"ring\", \"levels\": [2, 2]}"), ": ring has no levels" },
		{ RULE("{\"alg\": \"ring\", \"aggregators\": 2}"), ": ring has no aggregators" },
		{ RULES("\"broadcast\": [{\"rules\": [{\"alg\": \"pairwise\"}]}]"),
		  ": /collectives/broadcast/0/rules/0: pairwise has no broadcast" },
		{ RULE("{\"alg\": \"ring\", \"msg_size_min\": 5e3}"),
		  "\"msg_size_min\" should be written as 5000" },
		{ RULE("{\"alg\": \"ring\", \"msg_size_min\": 0.5}"),
		  "\"msg_size_min\" is a number, and should be a whole number" },
		{ RULE("{\"alg\": \"hierarchical\", \"levels\": [2, 2, 2, 2, 2]}"),
		  "\"levels\" has 5 numbers, and may have 4" },
		{ RULE("{\"alg\": \"hierarchical\", \"levels\": [2, \"x\"]}"),
		  "\"levels\" should be numbers from 1 to 65536" },
	};
	struct zcoll_plan_query wanted = query(ZCOLL_ALLREDUCE, 4, 4096);
	unsigned int i;

	wanted.rules = path;
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		file_with(files[i].text);
		is(choose(&wanted), -EINVAL, "a rules file that is wrong is refused: %s",
		   files[i].what);
		ok(!strncmp(error, path, strlen(path)), "the file is named");
		has(error, files[i].what, "and what is wrong");
	}
	wanted.rules = "no/such/file";
	is(choose(&wanted), -ENOENT, "a rules file that is not there is an error");
	wanted.rules = "/";
	is(choose(&wanted), -EISDIR, "and a folder");
}

static void test_rules_ranges(void)
{
	static const char text[] = RULES(
		"\"allreduce\": ["
		"{\"comm_size_min\": 4, \"comm_size_max\": 8, \"rules\": ["
		"{\"msg_size_max\": 4096, \"alg\": \"ring\"},"
		"{\"msg_size_min\": 4097, \"msg_size_max\": 8192, \"alg\": \"circulant\", \"slice\": 4096}]},"
		"{\"comm_size_min\": 8, \"rules\": [{\"alg\": \"recursive-doubling\"}]}],"
		"\"broadcast\": [{\"rules\": [{\"alg\": \"binomial\"}]}]");
	static const struct {
		uint32_t nodes;
		uint64_t bytes;
		const char *algo;	/* NULL: none of the file's */
	} cases[] = {
		{ 3, 4096, NULL }, { 4, 4096, "ring" }, { 8, 4096, "ring" },
		{ 8, 4100, "circulant" }, { 8, 8192, "circulant" },
		{ 8, 8196, "recursive-doubling" }, { 9, 4, "recursive-doubling" },
		{ 4, 8196, NULL },
	};
	struct zcoll_plan_query wanted;
	unsigned int i;

	file_with(text);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wanted = query(ZCOLL_ALLREDUCE, cases[i].nodes, cases[i].bytes);
		wanted.rules = path;
		choose(&wanted);
		ok(cases[i].algo ? chosen(cases[i].algo, ZCOLL_BY_RULES) :
		   choice.by == ZCOLL_BY_COST, "rules for %u nodes, %llu bytes: %s",
		   cases[i].nodes, (unsigned long long)cases[i].bytes,
		   cases[i].algo ? cases[i].algo : "none");
	}
	wanted = query(ZCOLL_ALLREDUCE, 8, 8192);
	wanted.rules = path;
	choose(&wanted);
	is(choice.best.slice, 4096, "the rule's slice is taken");
	has(choice.why, "/collectives/allreduce/0/rules/1", "the rule that decided is told");
	wanted = query(ZCOLL_BROADCAST, 8, 8192);
	wanted.rules = path;
	choose(&wanted);
	ok(chosen("binomial", ZCOLL_BY_RULES), "each collective has its own rules");
}

/* ---- authority ---- */

static void test_authority(void)
{
	struct zcoll_plan_query wanted = query(ZCOLL_ALLREDUCE, 8, 4096);

	choose(&wanted);
	is(choice.by, ZCOLL_BY_COST, "where nobody says anything, the cost model decides");
	file_with(RULE("{\"alg\": \"ring\"}"));
	setenv("ZCOLL_RULES", path, 1);
	choose(&wanted);
	ok(chosen("ring", ZCOLL_BY_RULES), "rules beat the cost model");
	setenv("ZCOLL_PLAN", "circulant", 1);
	choose(&wanted);
	ok(chosen("circulant", ZCOLL_BY_ENVIRONMENT), "the environment beats rules");
	setenv("ZCOLL_PLAN_ALLREDUCE", "halving-doubling", 1);
	choose(&wanted);
	ok(chosen("halving-doubling", ZCOLL_BY_ENVIRONMENT),
	   "the collective's variable beats the general one");
	wanted.choice = "pairwise:slice=16K";
	choose(&wanted);
	ok(chosen("pairwise", ZCOLL_BY_CALL), "the call beats the environment");
	is(choice.best.slice, 16384, "with its slice");
	unsetenv("ZCOLL_PLAN_ALLREDUCE");
	unsetenv("ZCOLL_PLAN");
	unsetenv("ZCOLL_RULES");
}

static void test_authority_is_not_overruled(void)
{
	struct zcoll_plan_query wanted = query(ZCOLL_BROADCAST, 8, 4096);

	setenv("ZCOLL_PLAN", "pairwise", 1);
	ok(choose(&wanted) < 0, "what cannot be is an error, and not replaced");
	has(error, "ZCOLL_PLAN=pairwise: has no broadcast", "which tells who wants it, once");
	setenv("ZCOLL_PLAN", "rign", 1);
	is(choose(&wanted), -EINVAL, "a name that is wrong is an error");
	has(error, "no algorithm \"rign\"; there are: ", "and tells which there are");
	setenv("ZCOLL_PLAN", "", 1);
	setenv("ZCOLL_RULES", "", 1);
	setenv("ZCOLL_COSTS", "", 1);
	is(choose(&wanted), 0, "variables that are empty");
	is(choice.by, ZCOLL_BY_COST, "count as not set");
	unsetenv("ZCOLL_COSTS");
	unsetenv("ZCOLL_RULES");
	unsetenv("ZCOLL_PLAN");
	wanted.choice = "knomial:radix=x";
	is(choose(&wanted), -EINVAL, "so is a parameter");
	has(error, "\"radix=x\": should be radix=N", "and tells how it is written");
	wanted.choice = "knomial:radix=65537";
	choose(&wanted);
	has(error, "choice knomial:radix=65537: \"radix=65537\": should be radix=N, from 2 to 65536",
	    "and its range, and whose choice it is");
	wanted.choice = "hierarchical:levels=2,4";
	choose(&wanted);
	has(error, "\"4\": should be radix=N, levels=AxB... (such as levels=4x3)",
	    "levels have an x between them, which is told");
	wanted.choice = "hierarchical:levels=2x4";
	is(choose(&wanted), 0, "so they are taken");
	wanted.choice = "hierarchical:levels=5x4";
	choose(&wanted);
	has(error, "choice hierarchical:levels=5x4: levels 5x4", "no name is told twice");
	wanted.choice = "knomial:radix=4,slice=2M";
	is(choose(&wanted), 0, "parameters that are right");
	is(choice.best.spec.radix, 4, "are taken");
	is(choice.best.slice, 2 << 20, "all of them");
}

/* A radix of 1 gets nowhere: no form or generator may be asked for it */
static void radix_1_is_refused(const char *algo)
{
	struct zcoll_plan_query wanted = query(ZCOLL_ALLREDUCE, 12, 1024);
	struct zcoll_plan_spec spec = { .size = sizeof(spec), .algo = algo, .nodes = 12,
					.collective = ZCOLL_ALLREDUCE, .radix = 1 };
	struct zcoll_plan *plan;
	struct zcoll_fabric fabric;
	char text[128];

	zcoll_fabric_default(&fabric);
	ok(isnan(zcoll_plan_estimate(&spec, &fabric, 1024, 0)), "%s: radix 1 has no time", algo);
	is(zcoll_plan_make(&spec, &plan, error, sizeof(error)), -EINVAL, "and no plan");
	snprintf(text, sizeof(text), "%s:radix=1", algo);
	wanted.choice = text;
	is(choose(&wanted), -EINVAL, "the call cannot choose it");
	has(error, "\"radix=1\": should be radix=N, from 2 to 65536", "and is told the range");
	wanted.choice = NULL;
	setenv("ZCOLL_PLAN", text, 1);
	is(choose(&wanted), -EINVAL, "nor the environment");
	unsetenv("ZCOLL_PLAN");
	snprintf(text, sizeof(text), RULE("{\"alg\": \"%s\", \"radix\": 1}"), algo);
	wanted.rules = file_with(text);
	is(choose(&wanted), -EINVAL, "nor a rule");
}

static void test_radix_1(void)
{
	const char *algo;
	unsigned int i;

	for (i = 0; (algo = zcoll_plan_algorithm(i)); i++)
		radix_1_is_refused(algo);
}

static void test_estimate_out_of_range(void)
{
	struct zcoll_plan_spec spec = { .algo = "knomial", .collective = ZCOLL_BROADCAST };
	struct zcoll_fabric fabric;

	zcoll_fabric_default(&fabric);
	ok(isnan(zcoll_plan_estimate(&spec, &fabric, 1024, 0)), "no nodes have no time");
	spec.nodes = ZCOLL_PLAN_MAX_NODES + 1;
	ok(isnan(zcoll_plan_estimate(&spec, &fabric, 1024, 0)), "nor have too many");
	spec.nodes = 12;
	spec.radix = UINT32_MAX;
	ok(zcoll_plan_estimate(&spec, &fabric, 1024, 0) > 0,
	   "a radix above the nodes is as good as all of them");
}

static void test_fabric_of_environment(void)
{
	struct zcoll_plan_query wanted = query(ZCOLL_ALLREDUCE, 8, 4096);

	setenv("ZCOLL_COSTS", "1000,100,50,0.1", 1);
	choose(&wanted);
	ok(choice.fabric.latency == 1000, "ZCOLL_COSTS is used");
	setenv("ZCOLL_COSTS", "no/such/file", 1);
	ok(choose(&wanted) < 0, "a fabric that is not there is an error");
	has(error, "ZCOLL_COSTS: no/such/file: ", "which tells the variable");
	unsetenv("ZCOLL_COSTS");
	choose(&wanted);
	has(choice.fabric.name, "built-in", "without it, the built-in fabric is told");
}

/* ---- constraints ---- */

static void test_constraints(void)
{
	struct zcoll_plan_query wanted = query(ZCOLL_ALLREDUCE, 12, 1 << 20);
	unsigned int i, refused = 0;

	wanted.flags = ZCOLL_PLAN_ORDERED;
	is(choose(&wanted), 0, "there is a plan that keeps the fixed order");
	for (i = 0; i < choice.ncandidates; i++)
		refused += !!strstr(choice.candidates[i].refused, "fixed order");
	ok(refused > 0, "and plans that do not are refused");
	wanted.choice = "circulant";
	is(choose(&wanted), -EOPNOTSUPP, "also when they are asked for");
	wanted = query(ZCOLL_ALLREDUCE, 12, 1 << 20);
	wanted.scratch = 4;
	wanted.choice = "pairwise";
	is(choose(&wanted), -EOPNOTSUPP, "a plan that needs more scratch than there is");
	has(error, "bytes of scratch; the limit is 4", "is refused with need and limit");
	wanted = query(ZCOLL_ALLREDUCE, 12, 1 << 20);
	wanted.flags = ZCOLL_PLAN_AGREED;
	is(choose(&wanted), 0, "there is a plan that ends with agreement");
	is(choice.best.spec.flags, ZCOLL_PLAN_AGREED, "and it is made so");
}

static void test_query(void)
{
	struct zcoll_plan_query wanted = query(ZCOLL_ALLREDUCE, 0, 4);

	is(choose(&wanted), -EINVAL, "no nodes");
	wanted = query(99, 2, 4);
	is(choose(&wanted), -EINVAL, "no such collective");
	wanted = query(ZCOLL_ALLREDUCE, 2, 5);
	is(choose(&wanted), -EINVAL, "bytes that are not whole elements");
	has(error, "5 bytes are not a multiple of an element's 4", "are told, with both numbers");
	wanted = query(ZCOLL_ALLREDUCE, 2, 4);
	wanted.size--;
	is(choose(&wanted), -EINVAL, "a query of another version");
	wanted = query(ZCOLL_ALLREDUCE, 1, 4);
	is(choose(&wanted), 0, "one node");
	ok(chosen("local", ZCOLL_BY_COST), "needs no messages");
}

/* ---- cost ---- */

static const struct zcoll_fabric golden = {
	.latency = 2500, .overhead = 1500, .gap = 1000, .per_byte = 6,
};

static struct zcoll_plan *make(const char *algo, uint32_t collective, uint32_t nodes,
			       uint32_t radix)
{
	const struct zcoll_plan_spec spec = {
		.size = sizeof(spec), .algo = algo, .collective = collective, .nodes = nodes,
		.radix = radix,
	};
	struct zcoll_plan *plan;

	return zcoll_plan_make(&spec, &plan, error, sizeof(error)) ? NULL : plan;
}

static double time_of(const char *algo, uint32_t collective, uint32_t nodes, uint32_t radix,
		      const struct zcoll_fabric *fabric, uint64_t bytes, uint64_t slice)
{
	struct zcoll_plan *plan = make(algo, collective, nodes, radix);
	struct zcoll_plan_cost cost = { 0 };

	if (!plan)
		return -1;
	if (zcoll_plan_time(plan, fabric, bytes, slice, &cost, error, sizeof(error)))
		cost.ns = -1;
	zcoll_plan_free(plan);
	return cost.ns;
}

/* LogGOPSim's dissemination_16 ends at 22000 ns: four rounds of 2o + L */
static void test_time_golden(void)
{
	is(time_of("bruck", ZCOLL_BARRIER, 16, 2, &golden, 0, 0), 22000,
	   "dissemination among 16 nodes takes LogGOPSim's 22000 ns");
	is(time_of("recursive-doubling", ZCOLL_ALLREDUCE, 16, 2, &golden, 1, 0), 22000,
	   "so does recursive doubling of one byte");
	is(time_of("recursive-doubling", ZCOLL_ALLREDUCE, 16, 2, &golden, 1000, 0),
	   4 * (5500 + 999 * 6), "and of more bytes, as the closed form says");
	is(time_of("ring", ZCOLL_ALLREDUCE, 5, 0, &golden, 5000, 0), 8 * (5500 + 999 * 6),
	   "a ring of 5 takes 8 messages in a row");
	is(time_of("circulant", ZCOLL_ALLREDUCE, 8, 2, &golden, 8000, 0),
	   6 * 5500 + 2 * (7000 - 3) * 6,
	   "circulant sends each byte once in each of 3 rounds and back");
}

static void test_time_radix(void)
{
	double two = time_of("recursive-doubling", ZCOLL_ALLREDUCE, 16, 2, &golden, 1, 0);
	double four = time_of("recursive-doubling", ZCOLL_ALLREDUCE, 16, 4, &golden, 1, 0);

	ok(four > 0 && four < 0.85 * two, "radix 4 beats radix 2 at 16 nodes: %.0f and %.0f ns",
	   four, two);
}

static void test_time_scales(void)
{
	struct zcoll_plan *plan = make("ring", ZCOLL_ALLREDUCE, 64, 0);
	struct zcoll_plan_cost small, large;

	zcoll_plan_time(plan, &golden, 1ULL << 30, 65536, &small, error, sizeof(error));
	is(zcoll_plan_time(plan, &golden, 1ULL << 40, 65536, &large, error, sizeof(error)), 0,
	   "a tebibyte can be timed");
	ok(fabs(large.ns / small.ns / 1024 - 1) < 0.01, "and takes 1024 times a gibibyte");
	is(large.rounds, 126, "in 126 rounds");
	is(large.sent_total, 126ULL << 40, "with the bytes of a ring");
	zcoll_plan_free(plan);
}

static void test_time_wrong_plan(void)
{
	struct zcoll_plan *plan = make("ring", ZCOLL_ALLREDUCE, 4, 0);
	struct zcoll_plan_cost cost;

	plan->steps[0].after[0] = (struct zcoll_after){ .step = 1, .mode = ZCOLL_AFTER_ALL };
	plan->id = zc_plan_id(plan);
	ok(zcoll_plan_time(plan, &golden, 4096, 0, &cost, error, sizeof(error)) < 0,
	   "a plan that waits for itself has no time");
	has(error, "wait", "and it is told so");
	zcoll_plan_free(plan);
}

/*
 * Closed forms against the plans themselves. They assume that nodes keep step; where some
 * nodes have more to do than others, messages meet at NICs in an order that no form knows.
 */
static double tolerance(const char *algo)
{
	if (!strcmp(algo, "halving-doubling") || !strcmp(algo, "double-tree"))
		return 0.4;
	return strcmp(algo, "aggregator") ? 0.3 : 0.5;
}

static void compare(const char *algo, uint32_t collective, uint32_t nodes, uint64_t bytes,
		    const struct zcoll_fabric *fabric, double *worst)
{
	const struct zcoll_plan_spec spec = { .algo = algo, .collective = collective,
					      .nodes = nodes };
	double form, ns = time_of(algo, collective, nodes, 0, fabric, bytes, 65536);

	if (ns < 0)
		return;
	form = zcoll_plan_estimate(&spec, fabric, bytes, 65536);
	if (!(fabs(form / ns - 1) <= *worst)) {
		*worst = fabs(form / ns - 1);
		if (!(*worst <= tolerance(algo)))
			printf("# %s %s, %u nodes, %llu bytes: form %.0f, plan %.0f ns\n", algo,
			       zcoll_collective_name(collective), nodes,
			       (unsigned long long)bytes, form, ns);
	}
}

static void test_forms(void)
{
	static const uint32_t nodes[] = { 2, 3, 4, 7, 12, 16, 33, 64 };
	struct zcoll_fabric fabric;
	double worst;
	unsigned int i, coll, n;
	uint64_t bytes;
	const char *algo;

	zcoll_fabric_default(&fabric);
	for (i = 0; (algo = zcoll_plan_algorithm(i)); i++) {
		worst = 0;
		for (coll = 1; coll < ZCOLL_NR_COLLECTIVES; coll++)
			for (n = 0; n < sizeof(nodes) / sizeof(nodes[0]); n++)
				for (bytes = 256; bytes <= 16 << 20; bytes *= 256)
					compare(algo, coll, nodes[n], bytes, &fabric, &worst);
		ok(worst <= tolerance(algo), "the closed form of %s is at most %.0f %% off its plans",
		   algo, 100 * worst);
	}
}

/* What agreement adds, in the forms and in the plans */
static void test_forms_agreed(void)
{
	struct zcoll_plan_spec spec = { .size = sizeof(spec), .collective = ZCOLL_ALLREDUCE,
					.nodes = 12, .flags = ZCOLL_PLAN_AGREED };
	struct zcoll_fabric fabric;
	struct zcoll_plan_cost cost;
	struct zcoll_plan *plan;
	unsigned int i;
	double form;

	zcoll_fabric_default(&fabric);
	for (i = 0; (spec.algo = zcoll_plan_algorithm(i)); i++) {
		if (zcoll_plan_make(&spec, &plan, error, sizeof(error)))
			continue;
		zcoll_plan_time(plan, &fabric, 1024, 0, &cost, error, sizeof(error));
		zcoll_plan_free(plan);
		form = zcoll_plan_estimate(&spec, &fabric, 1024, 0);
		ok(fabs(form / cost.ns - 1) <= tolerance(spec.algo),
		   "the form of %s knows the rounds of agreement: %.0f and %.0f ns", spec.algo,
		   form, cost.ns);
	}
}

/* ---- choices ---- */

/* The goal: within 1.25 of ceil(log2 N) alpha + 2 (N-1)/N n G */
static void test_bound(void)
{
	static const uint32_t nodes[] = { 2, 3, 5, 8, 13, 32, 100, 256, 1000, 1024, 3000, 4096 };
	struct zcoll_plan_query wanted;
	double worst = 0, ratio;
	unsigned int i;
	uint64_t bytes;

	for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		for (bytes = 8; bytes <= 1 << 30; bytes *= 4) {
			wanted = query(ZCOLL_ALLREDUCE, nodes[i], bytes);
			if (choose(&wanted)) {
				ok(false, "%u nodes, %llu bytes: %s", nodes[i],
				   (unsigned long long)bytes, error);
				return;
			}
			ratio = choice.best.ns / choice.bound_ns;
			if (ratio > 1.25)
				printf("# %u nodes, %llu bytes: %s is at %.2f\n", nodes[i],
				       (unsigned long long)bytes, choice.best.spec.algo, ratio);
			worst = fmax(worst, ratio);
		}
	}
	ok(worst <= 1.25, "all choices are within %.2f of the yardstick", worst);
}

int main(void)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/plan_select_test.XXXXXX");
	fd = mkstemp(path);
	if (fd < 0) {
		perror(path);
		return 1;
	}
	close(fd);
	unsetenv("ZCOLL_COSTS");
	unsetenv("ZCOLL_RULES");
	test_fabric_numbers();
	test_fabric_numbers_wrong();
	test_fabric_file();
	test_fabric_file_wrong();
	test_rules_wrong();
	test_rules_ranges();
	test_authority();
	test_authority_is_not_overruled();
	test_radix_1();
	test_estimate_out_of_range();
	test_fabric_of_environment();
	test_constraints();
	test_query();
	test_time_golden();
	test_time_radix();
	test_time_scales();
	test_time_wrong_plan();
	test_forms();
	test_forms_agreed();
	test_bound();
	unlink(path);
	return tap_end();
}
