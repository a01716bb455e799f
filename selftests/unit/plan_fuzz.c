// SPDX-License-Identifier: GPL-2.0
/*
 * Hostile plans: random bytes, and plans that were right before some random changes.
 *
 * Whatever comes, the check must neither touch memory that is not its own nor compute
 * what is not defined, which sanitizers see (this program is built with them), and its
 * verdict is 0 or one of the errnos of <linux/zcoll.h>. What it accepts at all
 * nodes is then carried out by engines in a host with random delays (engine_host.h).
 * There, too, all must stay within bounds and in order. But the nodes may wait for
 * each other for ever, and results may be wrong: that the kernel's check does not
 * promise.
 *
 * Usage: plan_fuzz [--seconds N] [--seed N]
 * Without --seconds, a short run that is always the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "engine_host.h"
#include "plans.h"
#include "tap.h"

#define ROUNDS		4000	/* of the short run */
#define MAX_NODES	8	/* of plans that are carried out */
#define MAX_SIZE	64	/* segments and scratch places of these */
#define MAX_LENGTH	2000

static uint64_t seed = 1;

static uint32_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

static uint32_t below(uint32_t n)
{
	return any() % n;
}

/* ---- making ---- */

/* A number that is often near a limit */
static uint32_t strange(uint32_t was)
{
	static const uint32_t limits[] = { 0, 1, 2, 3, 4, 7, 8, 255, 65535, 65536, 65537,
		1U << 20, INT32_MAX, 1U << 31, UINT32_MAX };

	switch (below(4)) {
	case 0:
		return was + below(5) - 2;
	case 1:
		return below(9);
	case 2:
		return limits[below(sizeof(limits) / sizeof(limits[0]))];
	}
	return was ^ (1U << below(32));
}

static void change_place(struct zcoll_place *place)
{
	switch (below(4)) {
	case 0:
		place->space ^= 1;
		break;
	case 1:
		place->of = below(3);
		break;
	case 2:
		place->index = strange(place->index);
		break;
	case 3:
		place->index_step = below(3) - 1;
	}
}

static void change_after(struct zcoll_plan *plan, struct zcoll_after *after)
{
	switch (below(4)) {
	case 0:
		memset(after, 0, sizeof(*after));
		break;
	case 1:
		after->step = below(plan->nsteps);
		break;
	case 2:
		after->mode = below(4);
		break;
	case 3:
		after->shift = strange(after->shift);
	}
}

/* Words of a step: all its fields from repeat to count */
#define WORDS ((offsetof(struct zcoll_step, of) - offsetof(struct zcoll_step, repeat)) / 4)

static void change_step(struct zcoll_plan *plan, struct zcoll_step *step)
{
	uint32_t *word = &step->repeat + below(WORDS);
	struct zcoll_step *match = &plan->steps[step->match];

	switch (below(9)) {
	case 0:
		step->kind = below(ZCOLL_NR_STEPS);
		break;
	case 1:
		step->peer = below(4);
		break;
	case 2:
		step->flags ^= 1U << below(6);
		break;
	case 3:
		step->of = below(3);
		break;
	case 4:
		step->match = below(plan->nsteps);
		break;
	case 5:
		change_place(below(2) ? &step->dst : &step->src);
		break;
	case 6:
		change_after(plan, &step->after[below(3)]);
		break;
	case 7:
		*word = strange(*word);
		break;
	case 8:
		/* At both ends */
		*word = strange(*word);
		if (step->kind == SEND && step->match < plan->nsteps)
			memcpy((char *)match + ((char *)word - (char *)step), word, 4);
	}
}

static void change_header(struct zcoll_plan *plan)
{
	uint32_t *field[] = { &plan->nodes, &plan->members, &plan->segments, &plan->scratch,
			      &plan->acc, &plan->flags, &plan->levels[0], &plan->levels[1] };
	uint32_t *word = field[below(sizeof(field) / sizeof(field[0]))];

	if (below(6))
		*word = strange(*word);
	else
		plan->collective = below(ZCOLL_NR_COLLECTIVES);
}

static void change(struct zcoll_plan *plan)
{
	struct zcoll_step *step = &plan->steps[below(plan->nsteps)];

	switch (below(16)) {
	case 0:
		change_header(plan);
		break;
	case 1:
		if (plan->nsteps < 16)
			plan->steps[plan->nsteps++] = *step;
		break;
	case 2:
		*step = plan->steps[below(plan->nsteps)];
		break;
	case 3:
		((uint8_t *)step)[below(sizeof(*step))] = any();
		break;
	default:
		change_step(plan, step);
	}
}

static void make_changed(struct image *image)
{
	int n = below(5);

	if (below(4))
		right_plans[below(NR_RIGHT_PLANS)].make(image);
	else
		plan_ring_of(image, 4 + below(4));
	while (n--)
		change(image->plan);
	image_seal(image);
}

static void make_random(struct image *image)
{
	uint8_t *byte;

	plan_begin(image, "random", below(ZCOLL_NR_COLLECTIVES + 1), below(10));
	image->plan->nsteps = below(20);
	image->plan->segments = below(10);
	byte = (uint8_t *)image->plan->steps;
	for (size_t i = 0; i < image->plan->nsteps * sizeof(struct zcoll_step); i++)
		byte[i] = below(3) ? 0 : below(4) ? below(4) : any();
	image_seal(image);
	if (!below(8))
		image->bytes = below(image->bytes + 1);
}

/* ---- checking ---- */

static bool documented(int err)
{
	static const int errnos[] = { EOPNOTSUPP, EINVAL, E2BIG, EBADMSG, EHOSTUNREACH, ERANGE,
		ENOLINK, ENOTUNIQ, EDOM, ELOOP, EILSEQ, EALREADY, ENODATA, EXFULL, EROFS,
		EMEDIUMTYPE, ENOMSG };

	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++)
		if (err == -errnos[i])
			return true;
	return !err;
}

/* In memory of exactly the size that is said, so that a sanitizer sees its ends */
static int check(const struct image *image, struct zc_plan_why *why)
{
	struct zcoll_plan *plan = memcpy(malloc(image->bytes + !image->bytes), image->plan,
					 image->bytes);
	int err = zc_plan_valid(plan, image->bytes, why);
	void *room;

	if (!err && (zc_plan_check_room(plan) > ZC_PLAN_CHECK_BYTES ||
		     zc_plan_check_work(plan) > ZC_PLAN_CHECK_WORK))
		err = -E2BIG;
	if (!err) {
		room = malloc(zc_plan_check_room(plan));
		for (uint32_t v = 0; v < plan->nodes && v < MAX_NODES && !err; v++)
			err = zc_plan_check(plan, v, room, why);
		free(room);
	}
	free(plan);
	return err;
}

/* ---- carrying out ---- */

static bool is_small(const struct zcoll_plan *plan)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < plan->nsteps; i++)
		length += (uint64_t)plan->steps[i].repeat * (plan->steps[i].count + 1);
	return plan->nodes <= MAX_NODES && plan->segments <= MAX_SIZE &&
	       plan->scratch <= MAX_SIZE && length <= MAX_LENGTH;
}

/* What a plan that is only safe at each node may do all the same */
static bool excused(const char *fault)
{
	return !strncmp(fault, "hang:", 5) || strstr(fault, "wrong result with success") ||
	       strstr(fault, "ends before");
}

/* Return: NULL, or what must not be */
static const char *carry_out(const struct zcoll_plan *plan)
{
	static char text[300];
	struct host_params params = {
		.nodes = plan->nodes, .window = 1U << below(3), .slots = 2 + below(4),
		.inflight = 1 + below(4), .steps = plan->nsteps + 1, .bits = 4096,
		.seed = any(), .lazy = below(2) * 300, .duplicates = below(2) * 100,
	};
	struct host_op op = {
		.plan = plan, .root = below(plan->members), .geo.count = below(3) * below(100),
		.slice = 1 + below(20), .eager = below(2) * below(20),
		.reserve = below(2) * U64_MAX,
	};
	struct host *host = host_new(&params, 3);
	const char *fault;

	for (int i = 0; i < 3; i++)
		host_add(host, &op);
	fault = host_run(host);
	if (fault && excused(fault))
		fault = NULL;
	if (fault)
		fault = strncpy(text, fault, sizeof(text) - 1);
	host_free(host);
	return fault;
}

/* ---- the run ---- */

struct tally {
	uint64_t made;
	uint64_t accepted;
	uint64_t carried;
	uint64_t bad;
};

static void complain(const struct tally *tally, uint64_t from, const char *what)
{
	printf("# plan %llu, --seed %llu: %s\n", (unsigned long long)tally->made,
	       (unsigned long long)from, what);
}

static void one(struct image *image, void (*make)(struct image *image), struct tally *tally)
{
	struct zc_plan_why why = { 0 };
	uint64_t from = seed;
	const char *fault;
	int err;

	make(image);
	tally->made++;
	err = check(image, &why);
	if (!documented(err) || (err && !why.what && err != -E2BIG)) {
		tally->bad++;
		complain(tally, from, strerror(-err));
	}
	if (err)
		return;
	tally->accepted++;
	if (!is_small(image->plan))
		return;
	tally->carried++;
	fault = carry_out(image->plan);
	if (fault) {
		tally->bad++;
		complain(tally, from, fault);
	}
}

static void report(const struct tally *tally, const char *what)
{
	is(tally->bad, 0, "%s: %llu checked, %llu accepted, %llu carried out", what,
	   (unsigned long long)tally->made, (unsigned long long)tally->accepted,
	   (unsigned long long)tally->carried);
}

int main(int argc, char **argv)
{
	struct image image = image_new();
	struct tally changed = { 0 }, bytes = { 0 };
	unsigned long seconds = 0;
	time_t end;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seconds"))
			seconds = strtoul(argv[i + 1], NULL, 0);
		if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 0);
	}
	end = time(NULL) + seconds;
	do {
		one(&image, make_changed, &changed);
		if (changed.made % 8 == 0)
			one(&image, make_random, &bytes);
	} while (seconds ? time(NULL) < end : changed.made < ROUNDS);
	report(&changed, "changed plans");
	report(&bytes, "random bytes");
	ok(changed.carried * 20 > changed.made, "enough of the plans are accepted to tell something");
	image_free(&image);
	return tap_end();
}
