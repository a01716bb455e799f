// SPDX-License-Identifier: GPL-2.0
/*
 * The library on the device: plans that a program makes, loads and uses.
 */
#include <errno.h>
#include <string.h>

#include <zcoll_plan.h>

#include "ranks.h"
#include "tap.h"

#define COUNT	3001

/* A plan of @nodes nodes, made by the library */
static struct zcoll_plan *make(const char *algo, unsigned int nodes, unsigned int flags)
{
	struct zcoll_plan_spec spec = {
		.size = sizeof(spec), .algo = algo, .collective = ZCOLL_ALLREDUCE, .nodes = nodes,
		.flags = flags,
	};
	char error[ZCOLL_TEXT_MAX] = "";
	struct zcoll_plan *plan = NULL;

	expect(zcoll_plan_make(&spec, &plan, error, sizeof(error)), 0);
	return plan;
}

static void reduce(struct zcoll_comm *comm, int want)
{
	static int32_t in[COUNT], out[COUNT];

	fill(in, COUNT, zcoll_comm_rank(comm));
	memset(out, 0xff, sizeof(out));
	expect(zcoll_allreduce(comm, in, out, COUNT, ZCOLL_INT32, ZCOLL_SUM), want);
	if (!want)
		expect_sum(out, COUNT, zcoll_comm_size(comm));
}

static void used(struct zcoll_comm *comm)
{
	struct zcoll_plan *plan = make("local", 1, 0);
	uint32_t number = 0, again = 0;

	if (!plan)
		return;
	expect(zcoll_plan_load(comm, plan, &number), 0);
	expect(number != 0, 1);
	expect(zcoll_plan_load(comm, plan, &again), 0);
	expect(again, number);
	reduce(comm, 0);
	expect(zcoll_plan_use(comm, ZCOLL_ALLREDUCE, number), 0);
	reduce(comm, 0);
	expect(zcoll_barrier(comm), 0);
	expect(zcoll_plan_use(comm, ZCOLL_ALLREDUCE, 0), 0);
	reduce(comm, 0);
	expect(zcoll_barrier(comm), 0);
	expect(zcoll_plan_unload(comm, number), 0);
	expect(zcoll_plan_unload(comm, number), 0);
	expect(zcoll_barrier(comm), 0);
	expect(zcoll_plan_unload(comm, number), -ENOENT);
	expect(zcoll_plan_use(comm, ZCOLL_ALLREDUCE, number), 0);
	reduce(comm, -ENOENT);
	expect_text(error_of(comm), "no plan has number");
	/* It was not called: the next one is the same operation */
	expect(zcoll_plan_use(comm, ZCOLL_ALLREDUCE, 0), 0);
	reduce(comm, 0);
	zcoll_plan_free(plan);
}

static void refused(struct zcoll_comm *comm)
{
	struct zcoll_plan *ring = make("ring", 4, 0);
	uint32_t number = 77;

	if (!ring)
		return;
	expect(zcoll_plan_load(comm, ring, &number), -ENXIO);
	expect_text(error_of(comm), "ring");
	ring->id++;
	expect(zcoll_plan_load(comm, ring, &number), -EBADMSG);
	expect(number, 77);
	reduce(comm, 0);
	zcoll_plan_free(ring);
}

/* The same plan by another number would be no difference */
static void different(struct zcoll_comm *comm)
{
	struct zcoll_plan *plan = make("local", 1, ZCOLL_PLAN_AGREED);
	uint32_t number = 0;

	if (!plan)
		return;
	expect(zcoll_plan_load(comm, plan, &number), 0);
	expect(zcoll_barrier(comm), 0);
	if (zcoll_comm_rank(comm) == 0)
		expect(zcoll_plan_use(comm, ZCOLL_ALLREDUCE, number), 0);
	reduce(comm, -EPROTO);
	expect_text(error_of(comm), "plan");
	zcoll_plan_free(plan);
}

int main(void)
{
	need_device();
	ok(run_ranks(&RANKS(3), used), "operations use the plan that was loaded");
	ok(run_ranks(&RANKS(2), refused), "a plan that does not fit is refused, and loses nothing");
	ok(run_ranks(&RANKS(2), different), "ranks that use different plans are told");
	return tap_end();
}
