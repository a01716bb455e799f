// SPDX-License-Identifier: GPL-2.0
/*
 * The library on the device: all collectives on one node, against the oracle, bit for bit.
 * In place and not, with every root, blocking, as requests and on a ring; with memory that
 * is registered and that is not.
 */
#include <errno.h>

#include <zcoll_plan.h>

#include "against.h"
#include "ranks.h"
#include "tap.h"

#define NRANKS	3
#define COUNT	1501			/* elements, of a block where there are blocks */

static struct zcoll_plan *local_plan(unsigned int collective)
{
	struct zcoll_plan_spec spec = { .size = sizeof(spec), .algo = "local", .nodes = 1,
					.collective = collective };
	char error[ZCOLL_TEXT_MAX];
	struct zcoll_plan *plan = NULL;

	expect(zcoll_plan_make(&spec, &plan, error, sizeof(error)), 0);
	return plan;
}

static void all_ways(struct zcoll_comm *comm, const struct zcoll_call *call, bool registered)
{
	struct against against = { .plan = local_plan(call->collective), .registered = registered };
	char why[ZCOLL_TEXT_MAX] = "";

	for (int in_place = 0; in_place < 2; in_place++)
		for (against.how = BLOCKING; against.how < NR_HOW; against.how++) {
			against.in_place = in_place;
			against.offset = registered ? 0 : 3;
			expect(against_oracle(comm, call, &against, why), 0);
			if (*why)
				printf("# %s\n", why);
		}
	zcoll_plan_free((struct zcoll_plan *)against.plan);
}

static unsigned int collective;

static void types_and_operators(struct zcoll_comm *comm)
{
	struct zcoll_call call = { .size = sizeof(call), .collective = collective };
	bool reduces = call_reduces(collective);

	for (call.dtype = 1; call.dtype < ZCOLL_NR_TYPES; call.dtype++) {
		for (int op = 1; op < (reduces ? ZCOLL_NR_OPS : 2); op++) {
			call.op = reduces ? op : 0;
			call.root = call_rooted(collective) ? (call.dtype + op) % NRANKS : 0;
			call.count = call.dtype % 2 ? COUNT : COUNT / 64;
			all_ways(comm, &call, false);
		}
	}
}

static void registered(struct zcoll_comm *comm)
{
	struct zcoll_call call = { .size = sizeof(call), .collective = collective,
				   .dtype = ZCOLL_FP32, .count = COUNT,
				   .op = call_reduces(collective) ? ZCOLL_SUM : 0 };

	all_ways(comm, &call, true);
	call.count = 0;
	all_ways(comm, &call, true);
}

static void named(struct zcoll_comm *comm)
{
	unsigned int rank = zcoll_comm_rank(comm);
	int32_t mine[NRANKS] = { 1 + (int)rank, 10, 100 }, got[NRANKS] = { 0 }, sum = 0;

	expect(zcoll_reduce_scatter(comm, mine, &sum, 1, ZCOLL_INT32, ZCOLL_SUM), 0);
	expect(sum, rank == 0 ? 6 : rank == 1 ? 30 : 300);
	expect(zcoll_allgather(comm, mine, got, 1, ZCOLL_INT32), 0);
	expect(got[0] + 10 * got[1] + 100 * got[2], 321);
	expect(zcoll_broadcast(comm, mine, got, 1, ZCOLL_INT32, 2), 0);
	expect(got[0], 3);
	sum = -1;
	expect(zcoll_reduce(comm, mine, rank == 1 ? &sum : NULL, 1, ZCOLL_INT32, ZCOLL_MAX, 1), 0);
	expect(sum, rank == 1 ? 3 : -1);
	expect(zcoll_barrier(comm), 0);
}

/* No rank is through a barrier before all have come */
static void barrier_waits(struct zcoll_comm *comm)
{
	unsigned int n = zcoll_comm_size(comm);
	uint64_t came, came_all[8], through;

	if (zcoll_comm_rank(comm) == 1)
		sleep_ms(150);
	came = now_ms();
	expect(zcoll_barrier(comm), 0);
	through = now_ms();
	expect(zcoll_allgather(comm, &came, came_all, 1, ZCOLL_UINT64), 0);
	for (unsigned int i = 0; i < n; i++)
		expect(through >= came_all[i], 1);
}

static void differ(struct zcoll_comm *comm)
{
	int32_t a[NRANKS] = { 0 }, b[NRANKS];

	expect(zcoll_barrier(comm), 0);
	if (zcoll_comm_rank(comm) == 1)
		expect(zcoll_allgather(comm, a, b, 1, ZCOLL_INT32), -EPROTO);
	else
		expect(zcoll_broadcast(comm, a, b, 1, ZCOLL_INT32, 0), -EPROTO);
	expect_text(error_of(comm), "broadcast");
}

static void flags(struct zcoll_comm *comm)
{
	float a[64] = { 1 }, b[64];

	expect(zcoll_comm_set_flags(comm, ZCOLL_CMD_REPRODUCIBLE), 0);
	expect(zcoll_allreduce(comm, a, b, 64, ZCOLL_FP32, ZCOLL_SUM), 0);
	expect(b[0] == NRANKS, 1);
	expect(zcoll_allgather(comm, a, b, 2, ZCOLL_FP32), 0);
	expect(zcoll_barrier(comm), 0);
}

int main(void)
{
	need_device();
	ok(run_ranks(&RANKS(NRANKS), named), "each collective by its name");
	for (collective = ZCOLL_ALLREDUCE; collective < ZCOLL_BARRIER; collective++) {
		ok(run_ranks(&RANKS(NRANKS), types_and_operators), "%s: types and operators",
		   zcoll_collective_name(collective));
		ok(run_ranks(&RANKS(NRANKS), registered), "%s: registered memory",
		   zcoll_collective_name(collective));
	}
	ok(run_ranks(&RANKS(NRANKS), barrier_waits), "a barrier waits for all");
	ok(run_ranks(&RANKS(NRANKS), differ), "ranks that call different collectives are told");
	ok(run_ranks(&RANKS(NRANKS), flags), "reproducible, where it is so anyway");
	return tap_end();
}
