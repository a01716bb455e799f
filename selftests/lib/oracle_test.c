// SPDX-License-Identifier: GPL-2.0
/*
 * The oracle against what is known without it: orders written by hand, and, for what does
 * not depend on the order, all plans of the library against the plain result.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll.h>
#include <zcoll_plan.h>

#include "oracle.h"
#include "tap.h"

#define COUNT	12	/* elements: 4 for each of 3 segments, 3 for each of 4 */
#define RANKS	8
#define ROOM	(RANKS * 64)

static struct zcoll_plan *make(const char *algo, uint32_t collective, uint32_t nodes,
			       uint32_t flags)
{
	struct zcoll_plan_spec spec = { .size = sizeof(spec), .algo = algo, .nodes = nodes,
					.collective = collective, .flags = flags };
	char error[ZCOLL_TEXT_MAX];
	struct zcoll_plan *plan = NULL;

	if (zcoll_plan_make(&spec, &plan, error, sizeof(error)))
		return NULL;
	return plan;
}

/* Numbers whose sums round, so that the order shows */
static float value(unsigned int rank, unsigned int i)
{
	static const float of[] = { 1e8f, 1.0f, -1e8f, 3.0f, 7e7f, -2.5f, 1e-3f, 33.0f };

	return of[rank % 8] + (float)i / 3;
}

static float x[RANKS][ROOM], y[RANKS][ROOM];

static bool run_root(struct zcoll_plan *plan, uint32_t op, uint32_t nranks, const uint32_t *map,
		     uint32_t root)
{
	struct oracle o = { .plan = plan, .dtype = ZCOLL_FP32, .op = op, .nranks = nranks,
			    .count = COUNT, .map = map, .root = root };
	const void *in[RANKS];
	void *out[RANKS];
	const char *wrong;

	for (unsigned int r = 0; r < nranks; r++) {
		for (unsigned int i = 0; i < ROOM; i++)
			x[r][i] = value(r, i);
		in[r] = x[r];
		out[r] = y[r];
	}
	wrong = plan ? oracle_run(&o, in, out) : "no plan";
	if (wrong)
		printf("# %s\n", wrong);
	zcoll_plan_free(plan);
	return !wrong;
}

static bool run(struct zcoll_plan *plan, uint32_t op, uint32_t nranks, const uint32_t *map)
{
	return run_root(plan, op, nranks, map, 0);
}

/* Is element @i of all ranks @want, bit for bit? */
static bool all_are(unsigned int nranks, unsigned int i, float want)
{
	bool good = true;

	for (unsigned int r = 0; r < nranks; r++)
		if (memcmp(&y[r][i], &want, sizeof(want))) {
			printf("# element %u of rank %u is %a and should be %a\n", i, r,
			       (double)y[r][i], (double)want);
			good = false;
		}
	return good;
}

/* A segment of a ring begins at the node after its owner, and each adds its own to it */
static void test_ring(void)
{
	static const uint32_t map[] = { 0, 1, 2 };
	float sum;
	bool good = run(make("ring", ZCOLL_ALLREDUCE, 3, 0), ZCOLL_SUM, 3, map);

	for (unsigned int s = 0; s < 3 && good; s++)
		for (unsigned int i = 4 * s; i < 4 * s + 4; i++) {
			sum = x[(s + 2) % 3][i] + x[(s + 1) % 3][i];
			sum = x[s][i] + sum;
			good &= all_are(3, i, sum);
		}
	ok(good, "ring of 3 nodes: x[s] + (x[s+2] + x[s+1])");
}

/* ((0 + 1) + (2 + 3)), twice: by the nodes, and by the ranks of a node */
static void test_binomial(void)
{
	static const uint32_t map[] = { 0, 1, 2, 3 }, pairs[] = { 0, 0, 1, 1 };
	float a, b, sum;
	bool good = run(make("binomial", ZCOLL_ALLREDUCE, 4, 0), ZCOLL_SUM, 4, map);

	for (unsigned int i = 0; i < COUNT && good; i++) {
		a = x[0][i] + x[1][i];
		b = x[2][i] + x[3][i];
		sum = a + b;
		good &= all_are(4, i, sum);
	}
	ok(good, "binomial tree of 4 nodes: (x0 + x1) + (x2 + x3)");
	good = run(make("binomial", ZCOLL_ALLREDUCE, 2, 0), ZCOLL_SUM, 4, pairs);
	for (unsigned int i = 0; i < COUNT && good; i++) {
		a = x[0][i] + x[1][i];
		b = x[2][i] + x[3][i];
		sum = a + b;
		good &= all_are(4, i, sum);
	}
	ok(good, "and of 2 nodes with 2 ranks each: the same");
}

/* Uneven: the ranks of a node first, whichever numbers they have */
static void test_uneven(void)
{
	static const uint32_t map[] = { 0, 1, 0, 0 };
	float a, sum;
	bool good = run(make("binomial", ZCOLL_ALLREDUCE, 2, 0), ZCOLL_AVG, 4, map);

	for (unsigned int i = 0; i < COUNT && good; i++) {
		a = x[0][i] + x[2][i];
		a = a + x[3][i];
		sum = a + x[1][i];
		good &= all_are(4, i, sum / 4);
	}
	ok(good, "average, ranks 0, 2, 3 and 1 on two nodes: (((x0 + x2) + x3) + x1) / 4");
}

/* Nodes are counted from the root, so the order turns with it */
static void test_root(void)
{
	static const uint32_t map[] = { 0, 1, 2, 3 };
	float a, b, sum;
	bool good = run_root(make("binomial", ZCOLL_REDUCE, 4, 0), ZCOLL_SUM, 4, map, 1);

	for (unsigned int i = 0; i < COUNT && good; i++) {
		a = x[1][i] + x[2][i];
		b = x[3][i] + x[0][i];
		sum = a + b;
		good &= !memcmp(&y[1][i], &sum, sizeof(sum));
	}
	ok(good, "binomial tree of 4 nodes to root 1: (x1 + x2) + (x3 + x0)");
}

/* Halving leaves each node the sum of a piece; the root, which alone has an output, divides */
static void test_halving_to_root(void)
{
	static const uint32_t map[] = { 0, 1, 2, 3 };
	float a, b, sum;
	bool good = run_root(make("halving-doubling", ZCOLL_REDUCE, 4, 0), ZCOLL_AVG, 4, map, 0);

	for (unsigned int i = 0; i < COUNT && good; i++) {
		a = x[0][i] + x[2][i];
		b = x[1][i] + x[3][i];
		sum = a + b;
		good &= !memcmp(&y[0][i], &(float){ sum / 4 }, sizeof(sum));
		if (!good)
			printf("# element %u is %a and should be %a\n", i, (double)y[0][i],
			       (double)(sum / 4));
	}
	ok(good, "average to the root by halving and gathering: ((x0 + x2) + (x1 + x3)) / 4");
}

/* --------------------------------------------------- what has no order */

struct layout {
	const char *name;
	uint32_t nodes, nranks;
	uint32_t map[RANKS];
};

static const struct layout layouts[] = {
	{ "2 nodes", 2, 2, { 0, 1 } },
	{ "3 nodes", 3, 3, { 0, 1, 2 } },
	{ "4 nodes with 2 ranks, scattered", 4, 8, { 0, 1, 2, 3, 3, 2, 1, 0 } },
	{ "5 nodes, uneven", 5, 8, { 0, 0, 0, 1, 2, 3, 3, 4 } },
};

static int32_t number(unsigned int rank, unsigned int i)
{
	return (int32_t)((rank + 1) * 2654435761u + i * 40503u);
}

static int32_t sum_at(uint32_t nranks, unsigned int i)
{
	uint32_t sum = 0;

	for (uint32_t r = 0; r < nranks; r++)
		sum += (uint32_t)number(r, i);
	return (int32_t)sum;
}

static int32_t p[RANKS][ROOM], q[RANKS][ROOM];

/* What rank r must have in its output's element i */
static int32_t wanted(const struct oracle *o, uint32_t r, unsigned int i)
{
	switch (o->plan->collective) {
	case ZCOLL_REDUCE_SCATTER:
		return sum_at(o->nranks, r * o->count + i);
	case ZCOLL_ALLGATHER:
		return number(i / o->count, i % o->count);
	case ZCOLL_BROADCAST:
		return number(o->root, i);
	default:
		return sum_at(o->nranks, i);
	}
}

static uint64_t out_count(const struct oracle *o, uint32_t r)
{
	switch (o->plan->collective) {
	case ZCOLL_ALLGATHER:
		return o->nranks * o->count;
	case ZCOLL_REDUCE:
		return r == o->root ? o->count : 0;
	case ZCOLL_BARRIER:
		return 0;
	default:
		return o->count;
	}
}

static const char *check(const struct oracle *o)
{
	const void *in[RANKS];
	void *out[RANKS];
	const char *wrong;
	uint64_t i;

	memset(q, 0xee, sizeof(q));
	for (uint32_t r = 0; r < o->nranks; r++) {
		for (i = 0; i < ROOM; i++)
			p[r][i] = number(r, i);
		in[r] = p[r];
		out[r] = q[r];
	}
	wrong = oracle_run(o, in, out);
	for (uint32_t r = 0; r < o->nranks && !wrong; r++) {
		for (i = 0; i < out_count(o, r); i++)
			if (q[r][i] != wanted(o, r, i))
				return "a wrong element";
		if (q[r][i] != (int32_t)0xeeeeeeee)
			return "an element behind the output";
	}
	return wrong;
}

static void test_all(const struct layout *layout, uint32_t collective, uint64_t count)
{
	bool reduces = collective != ZCOLL_ALLGATHER && collective != ZCOLL_BROADCAST &&
		       collective != ZCOLL_BARRIER;
	bool rooted = collective == ZCOLL_BROADCAST || collective == ZCOLL_REDUCE;
	struct oracle o = { .dtype = ZCOLL_INT32, .op = reduces ? ZCOLL_SUM : 0,
			    .nranks = layout->nranks, .map = layout->map, .count = count };
	unsigned int plans = 0;
	struct zcoll_plan *plan;
	const char *algo, *wrong = NULL;

	if (collective == ZCOLL_BARRIER) {
		o.dtype = 0;
		o.count = 0;
	}
	for (unsigned int i = 0; (algo = zcoll_plan_algorithm(i)) && !wrong; i++) {
		plan = make(algo, collective, layout->nodes, i % 2 ? ZCOLL_PLAN_AGREED : 0);
		if (!plan)
			continue;
		plans++;
		o.plan = plan;
		for (o.root = 0; o.root < (rooted ? o.nranks : 1) && !wrong; o.root++)
			wrong = check(&o);
		if (wrong)
			printf("# %s, root %u: %s\n", algo, o.root - 1, wrong);
		zcoll_plan_free(plan);
	}
	ok(plans > 2 && !wrong, "%s: %s of %d by all %u plans", layout->name,
	   zcoll_collective_name(collective), (int)o.count, plans);
}

int main(void)
{
	test_ring();
	test_binomial();
	test_uneven();
	test_root();
	test_halving_to_root();
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		for (uint32_t c = 1; c < ZCOLL_NR_COLLECTIVES; c++)
			test_all(&layouts[i], c, i % 2 ? 13 : 2);
	test_all(&layouts[1], ZCOLL_ALLREDUCE, 0);
	test_all(&layouts[3], ZCOLL_ALLGATHER, 1);
	return tap_end();
}
