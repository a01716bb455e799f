// SPDX-License-Identifier: GPL-2.0
/*
 * The check of plans, rule by rule: plans that are right pass at every node, and each
 * fault of selftests/lib/plans.h is refused with its errno and a reason. The ioctl
 * has the same table in selftests/zcoll/plan.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "plan.h"
#include "plans.h"
#include "tap.h"

static struct zc_plan_why why;

static int check_at(const struct image *image, uint32_t node)
{
	int err = zc_plan_valid(image->plan, image->bytes, &why);
	void *room;

	if (err)
		return err;
	/* Exactly what is needed, so that a sanitizer sees what goes beyond it */
	room = malloc(zc_plan_check_room(image->plan));
	err = zc_plan_check(image->plan, node, room, &why);
	free(room);
	return err;
}

static void refused(int err)
{
	if (err)
		printf("# %s: step %d turn %d segment %d node %d\n", why.what, why.step, why.turn,
		       why.segment, why.node);
}

static void test_right(struct image *image, const struct right_plan *right)
{
	int err = 0;

	right->make(image);
	image_seal(image);
	for (uint32_t v = 0; v < image->plan->nodes && !err; v++)
		err = check_at(image, v);
	is(err, 0, "%s passes at every node", right->name);
	refused(err);
}

/* Faults of fields are found without a node; the others only at one */
static void test_fault(const struct image *image, const struct plan_fault *fault)
{
	int err = check_at(image, fault->node);

	is(err, -fault->err, "%s is refused", fault->what);
	if (err != -fault->err)
		refused(err);
	ok(why.what && strlen(why.what) > 10, "and the reason is told");
}

static void test_rings(struct image *image)
{
	static const uint32_t nodes[] = { 5, 6, 7, 16, 64 };

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		int err = 0;

		plan_ring_of(image, nodes[i]);
		image_seal(image);
		for (uint32_t v = 0; v < nodes[i] && !err; v++)
			err = check_at(image, v);
		is(err, 0, "a ring of %u passes at every node", nodes[i]);
		refused(err);
	}
}

/* What the module grants, with much to spare */
static void test_large_ring(struct image *image)
{
	uint64_t work;
	size_t room;

	plan_ring_of(image, 65536);
	image_seal(image);
	is(check_at(image, 4711), 0, "a ring of 65536 passes");
	room = zc_plan_check_room(image->plan);
	ok(room < ZC_PLAN_CHECK_BYTES / 4, "its check needs less than 16 MiB: %zu bytes", room);
	work = zc_plan_check_work(image->plan);
	ok(work < ZC_PLAN_CHECK_WORK / 8, "and has little to do: %llu", (unsigned long long)work);
}

/* Little memory is not little work: OPEN iterations share one row of the room */
static void test_open_work(struct image *image)
{
	plan_slow(image, ZCOLL_PLAN_MAX_NODES - 1);
	image_seal(image);
	is(zc_plan_valid(image->plan, image->bytes, &why), 0, "a slow plan is valid");
	ok(zc_plan_check_room(image->plan) < ZC_PLAN_CHECK_BYTES, "its check has the memory");
	ok(zc_plan_check_work(image->plan) > ZC_PLAN_CHECK_WORK, "but not the time");
}

/* Node 0 sends to others in an OPEN step, which expect it */
static void open_sends(struct image *image, int nodes, int peer, int step, int repeat)
{
	struct zcoll_plan *p = plan_begin(image, "open", ZCOLL_BARRIER, nodes);
	struct zcoll_step *s;

	s = only(plan_add(p, SEND, OPEN, peer, 1), 0);
	s->match = 1;
	s->dist_step = step;
	s = plan_add(p, DELIVER, OPEN, ADD, -1);
	s->first = 1;
	s->dist_step = -step;
	for (s = p->steps; s < p->steps + 2; s++) {
		s->repeat = repeat;
		s->count = 0;
	}
	image_seal(image);
}

/* What the check says of it, found by going through all peers */
static int open_verdict(int nodes, int peer, int step, int repeat)
{
	bool met[32] = { false };
	int err = 0;

	for (int t = 0; t < repeat; t++) {
		int x = 1 + step * t;

		if (peer == ADD)
			x = ((x % nodes) + nodes) % nodes;
		if (x <= 0 || x >= nodes)
			err = -EHOSTUNREACH;
		else if (met[x])
			return -ENOTUNIQ;
		else
			met[x] = true;
	}
	return err;
}

static void test_open_peers(struct image *image)
{
	int bad = 0, all = 0;

	for (int nodes = 2; nodes <= 12; nodes++)
		for (int step = -14; step <= 14; step++)
			for (int repeat = 1; repeat <= 14; repeat++)
				for (int peer = ADD; peer <= TO; peer += TO - ADD) {
					int err = open_verdict(nodes, peer, step, repeat);

					open_sends(image, nodes, peer, step, repeat);
					all++;
					bad += check_at(image, 0) != err;
				}
	is(bad, 0, "whether OPEN iterations meet a peer again: %d plans", all);
}

/* An OPEN SEND waits between its iterations, and another one goes to the same peer */
static void test_open_interrupted(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "interrupted", ZCOLL_BARRIER, 4);
	int err;

	for (int i = 0; i < 2; i++) {
		plan_add(p, SEND, OPEN, ADD, 1)->match = 2 + i;
		only(&p->steps[i], 0)->count = 0;
	}
	for (int i = 0; i < 2; i++)
		only(plan_add(p, DELIVER, OPEN, ADD, -1), 1)->count = 0;
	p->steps[0].repeat = p->steps[2].repeat = 2;
	plan_add(p, FINAL, FIRST, NONE, 0)->count = 0;
	step_after(&p->steps[0], 4, TURN, 1);
	image_seal(image);
	err = check_at(image, 0);
	is(err, -ENOTUNIQ, "two OPEN iterations to one peer, with another step's between, are refused");
	refused(err);
}

/* Two turns of a fold into the same accumulation, which no longer wait for each other */
static void test_other_access(struct image *image)
{
	plan_flat(image);
	memset(&image->plan->steps[FLAT_FOLD].after[1], 0, sizeof(struct zcoll_after));
	image_seal(image);
	is(check_at(image, 2), -EILSEQ, "turns in no order are refused");
	is(why.turn, 1, "and the turn is named");
	is(why.other_step, FLAT_FOLD, "and the step of the other access");
	is(why.other_turn, 0, "and its turn");
}

int main(void)
{
	struct image image = image_new();
	struct plan_fault fault;

	for (size_t i = 0; i < NR_RIGHT_PLANS; i++)
		test_right(&image, &right_plans[i]);
	test_rings(&image);
	test_large_ring(&image);
	test_open_work(&image);
	test_open_peers(&image);
	test_open_interrupted(&image);
	test_other_access(&image);
	for (unsigned int n = 0; plan_spoil(&image, n, &fault); n++)
		test_fault(&image, &fault);
	image_free(&image);
	return tap_end();
}
