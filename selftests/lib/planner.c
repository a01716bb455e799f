// SPDX-License-Identifier: GPL-2.0
/*
 * The planner on a mock of the device: which plans calls on several nodes name, and that
 * all ranks would come to the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zcoll_plan.h>

#include "internal.h"
#include "mock.h"
#include "tap.h"

#define KIB	1024ULL

static char data[256 * KIB], result[256 * KIB];
static struct zcoll_comm *comm;

static void on_nodes(unsigned int nodes, unsigned int members)
{
	unsetenv("ZCOLL_PLAN");
	unsetenv("ZCOLL_PLAN_BARRIER");
	unsetenv("ZCOLL_RULES");
	comm = mock_comm(0);
	comm->nodes = nodes;
	comm->members = members;
}

/* An all-reduce of so many bytes. Return: the plan it names, or an error */
static int plan_of(uint64_t bytes)
{
	int ret = zcoll_allreduce(comm, data, result, bytes, ZCOLL_INT8, ZCOLL_SUM);

	mock_end(mock.last.seq, 0);
	memset(mock.ops, 0, sizeof(mock.ops));
	atomic_store(&comm->next, 0);
	atomic_store(&comm->oldest, 0);
	return ret ? ret : (int)mock.last.plan;
}

static uint64_t id_of(const char *algo, uint32_t collective, uint32_t nodes, uint32_t flags,
		      uint32_t radix)
{
	struct zcoll_plan_spec spec = { .size = sizeof(spec), .algo = algo, .nodes = nodes,
					.collective = collective, .flags = flags,
					.radix = radix };
	char error[ZCOLL_TEXT_MAX];
	struct zcoll_plan *plan;
	uint64_t id = 0;

	if (!zcoll_plan_make(&spec, &plan, error, sizeof(error))) {
		id = plan->id;
		zcoll_plan_free(plan);
	}
	return id;
}

static void test_one_node(void)
{
	on_nodes(1, 1);
	setenv("ZCOLL_PLAN", "ring", 1);
	is(plan_of(64), 0, "on one node the module's own plan is used");
	is(mock.loads, 0, "and none is loaded");
	zcoll_comm_free(comm);
}

static void test_environment(void)
{
	on_nodes(4, 4);
	setenv("ZCOLL_PLAN", "ring", 1);
	is(mock.plans[plan_of(64)], id_of("ring", ZCOLL_ALLREDUCE, 4, 0, 0), "ZCOLL_PLAN=ring");
	setenv("ZCOLL_PLAN_BARRIER", "bruck:radix=3", 1);
	is(zcoll_barrier(comm), 0, "ZCOLL_PLAN_BARRIER");
	is(mock.plans[mock.last.plan], id_of("bruck", ZCOLL_BARRIER, 4, 0, 3), "is another's");
	setenv("ZCOLL_PLAN", "rign", 1);
	is(plan_of(128), -EINVAL, "an algorithm that there is not");
	has(mock_text(comm), "ZCOLL_PLAN=rign", "which is named");
	is(plan_of(64) < 0, 0, "but what has been decided stays");
	zcoll_comm_free(comm);
}

static void test_flags(void)
{
	on_nodes(4, 4);
	setenv("ZCOLL_PLAN", "binomial", 1);
	zcoll_comm_set_flags(comm, ZCOLL_CMD_AGREED);
	is(mock.plans[plan_of(64)],
	   id_of("binomial", ZCOLL_ALLREDUCE, 4, ZCOLL_PLAN_AGREED, 0), "agreed");
	zcoll_comm_set_flags(comm, ZCOLL_CMD_REPRODUCIBLE);
	is(mock.plans[plan_of(64)], id_of("binomial", ZCOLL_ALLREDUCE, 4, 0, 0), "reproducible");
	setenv("ZCOLL_PLAN", "ring", 1);
	is(plan_of(128), -EOPNOTSUPP, "a ring is not in the fixed order");
	has(mock_text(comm), "order", "and that is said");
	zcoll_comm_free(comm);
}

static void test_classes(void)
{
	int small, loads;

	on_nodes(16, 16);
	small = plan_of(8);
	ok(small > 0 && plan_of(200 * KIB) > 0 && plan_of(200 * KIB) != small,
	   "small and large operations have different plans");
	loads = mock.loads;
	plan_of(8);
	plan_of(140 * KIB);
	is(mock.loads, loads, "sizes up to the same power of two have one decision");
	zcoll_comm_free(comm);
}

static const char rules[] =
"{ \"zcoll_rules\": 1, \"collectives\": { \"allreduce\": [ { \"rules\": [\n"
"  { \"msg_size_max\": 100, \"alg\": \"ring\" },\n"
"  { \"msg_size_min\": 101, \"alg\": \"binomial\" } ] } ] } }\n";

static void test_rules(void)
{
	char path[] = "/tmp/planner-rules-XXXXXX";
	int fd = mkstemp(path);

	on_nodes(4, 4);
	ok(fd >= 0 && write(fd, rules, sizeof(rules) - 1) == sizeof(rules) - 1, "a rules file");
	close(fd);
	setenv("ZCOLL_RULES", path, 1);
	is(mock.plans[plan_of(100)], id_of("ring", ZCOLL_ALLREDUCE, 4, 0, 0), "its first rule");
	is(mock.plans[plan_of(101)], id_of("binomial", ZCOLL_ALLREDUCE, 4, 0, 0),
	   "its second rule, from the byte on that it says");
	unlink(path);
	zcoll_comm_free(comm);
}

static void test_aggregators(void)
{
	on_nodes(6, 5);
	ok(plan_of(64) > 0, "where nodes only aggregate, a plan is found that has them");
	is(mock.plans[plan_of(64)], id_of("aggregator", ZCOLL_ALLREDUCE, 5, 0, 0),
	   "the aggregator tree");
	setenv("ZCOLL_PLAN", "ring", 1);
	is(plan_of(1000), -EOPNOTSUPP, "others are refused");
	has(mock_text(comm), "only aggregate", "and it is said why");
	zcoll_comm_free(comm);
}

static void test_refused_by_module(void)
{
	on_nodes(4, 4);
	mock.refuse = -E2BIG;
	is(plan_of(64), -E2BIG, "a plan that the module refuses is an error");
	has(mock_text(comm), "kernel says: no such plan", "with the module's text");
	is(mock.calls, 0, "and nothing is called");
	mock.refuse = 0;
	ok(plan_of(64) > 0, "and the call can be made again");
	zcoll_comm_free(comm);
}

static void test_forced(void)
{
	on_nodes(4, 4);
	is(zcoll_plan_use(comm, ZCOLL_ALLREDUCE, 77), 0, "a number of the caller's");
	is(plan_of(64), 77, "is used");
	is(zcoll_barrier(comm) || mock.last.plan == 77, 0, "for this collective only");
	zcoll_plan_use(comm, ZCOLL_ALLREDUCE, 0);
	ok(plan_of(64) > 0 && plan_of(64) != 77, "until it is taken back");
	is(zcoll_plan_use(comm, ZCOLL_NR_COLLECTIVES, 1), -EINVAL, "a collective there is not");
	zcoll_comm_free(comm);
}

/* More plans than are kept: one for each radix */
static void test_bounded(void)
{
	char text[32];
	int i, first = 0;

	on_nodes(256, 256);
	for (i = 0; i < 2 * ZC_PLANS; i++) {
		snprintf(text, sizeof(text), "knomial:radix=%d", 2 + i);
		setenv("ZCOLL_PLAN", text, 1);
		memset(comm->decisions, 0, sizeof(comm->decisions));
		if (plan_of(64) < 0)
			printf("# %s: %s\n", text, mock_text(comm));
		first = i ? first : (int)mock.last.plan;
	}
	is(mock.loaded, ZC_PLANS, "no more plans are loaded than are kept");
	is(mock.plans[first], ~0ULL, "the one not used for the longest time is unloaded");
	zcoll_comm_free(comm);
}

int main(void)
{
	test_one_node();
	test_environment();
	test_flags();
	test_classes();
	test_rules();
	test_aggregators();
	test_refused_by_module();
	test_forced();
	test_bounded();
	return tap_end();
}
