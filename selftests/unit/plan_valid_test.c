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
	size_t room;

	plan_ring_of(image, 65536);
	image_seal(image);
	is(check_at(image, 4711), 0, "a ring of 65536 passes");
	room = zc_plan_check_room(image->plan);
	ok(room < 16 << 20, "its check needs less than 16 MiB: %zu bytes", room);
}

int main(void)
{
	struct image image = image_new();
	struct plan_fault fault;

	for (size_t i = 0; i < NR_RIGHT_PLANS; i++)
		test_right(&image, &right_plans[i]);
	test_rings(&image);
	test_large_ring(&image);
	for (unsigned int n = 0; plan_spoil(&image, n, &fault); n++)
		test_fault(&image, &fault);
	image_free(&image);
	return tap_end();
}
