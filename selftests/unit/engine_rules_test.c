// SPDX-License-Identifier: GPL-2.0
/*
 * One engine alone: the rules of engine.h one by one, and peers that lie. How it fails is in
 * engine_failure_test.c.
 *
 *	engine_rules_test [SEED]
 */
#include <stdlib.h>

#include "engine_host.h"
#include "engine_solo.h"
#include "../lib/tap.h"

/* ------------------------------------------------------------------ dimensions */

static void test_dimensions(void)
{
	const struct zc_engine_config good = {
		.node = 1, .nodes = 3, .window = 4, .steps = 24, .links = 2, .slots = 4,
		.inflight = 4, .bits = 128,
	};
	struct zc_engine_config c;

	ok(zc_engine_size(&good) > 0, "dimensions that make sense have a size");
#define refused(field, value) do {							\
	c = good;									\
	c.field = value;								\
	is(zc_engine_size(&c), 0, "no engine with " #field " = " #value);		\
} while (0)
	refused(window, 0);
	refused(window, 3);
	refused(window, 128);
	refused(slots, 1);
	refused(slots, 65);
	refused(inflight, 0);
	refused(inflight, 65);
	refused(node, 3);
	refused(links, 3);
	refused(steps, 0);
	refused(steps, ZCOLL_PLAN_MAX_STEPS + 1);
	refused(nodes, ZCOLL_PLAN_MAX_NODES + 1);
	refused(bits, 64 * ZCOLL_PLAN_MAX_LENGTH + 1);
#undef refused
}

/* ------------------------------------------------------------------ slices */

static void test_cut(void)
{
	struct zc_cut cut = zc_cut(4 * 64 + 1, 64);
	u64 longest, slice;
	bool right = true;

	is(cut.slices, 4, "an element more makes no slice more");
	is(cut.unit, 65, "but slices that are a little longer");
	is(zc_cut(4 * 64, 64).unit, 64, "whole slices stay as long as was asked for");
	is(zc_cut(4 * 64 + 33, 64).slices, 5, "more than an eighth is a slice more");
	is(zc_cut(0, 64).slices, 1, "a step that only notifies has one");
	is(zc_cut(1000, U64_MAX).slices, 1, "so has one that is not to be cut");
	for (slice = 1; slice < 40; slice++)
		for (longest = 1; longest < 900; longest++) {
			cut = zc_cut(longest, slice);
			right = right && cut.unit <= slice + slice / 8 &&
				cut.slices * cut.unit >= longest &&
				(cut.slices - 1) * cut.unit < longest;
		}
	ok(right, "all of a turn is in slices that fit a slot, and none is empty");
}

static void test_even(void)
{
	const struct zc_geometry geo = { .count = 2048 };
	u64 first = zc_geometry_at(&geo, 4096, 1024), all = zc_geometry_at(&geo, 4096, 4096);

	is(first, 512, "even segments: a quarter of them has a quarter of the elements");
	is(all, 2048, "and all have all");
}

/* ------------------------------------------------------------------ submission */

static void test_submit(void)
{
	struct solo *s = solo_new(plan_chain(3, false), 0);

	is(submit(s, 4), -ENOBUFS, "beyond the window");
	s->desc.root = 3;
	is(submit(s, 0), -EINVAL, "a root that is no member");
	s->desc.root = 0;
	s->desc.slice = 0;
	is(submit(s, 0), -EINVAL, "slices of nothing");
	s->desc.slice = 1;
	s->desc.geo.count = 1ULL << 40;
	is(submit(s, 0), -EINVAL, "more slices than can be counted");
	s->desc.geo.count = 40;
	s->desc.flags = 2;
	is(submit(s, 0), -EINVAL, "an unknown flag");
	s->desc.flags = ZC_OP_AGREED;
	is(submit(s, 0), -EINVAL, "an agreed verdict with a plan that has none");
	s->desc.flags = 0;
	is(zc_engine_error(s->engine), 0, "refusals do not revoke");
	is(submit(s, 0), 0, "after all these, the operation itself");
	is(submit(s, 0), -EEXIST, "but not twice");
	is(submit(s, 3), 0, "the last one of the window before the others");
	solo_free(s);
}

static void test_small_engine(void)
{
	struct zc_engine_config config = {
		.node = 0, .nodes = 5, .window = 2, .steps = 5, .links = 3, .slots = 2,
		.inflight = 1, .bits = 64,
	};
	struct solo *s = solo_config(plan_exchange(5, false), &config);
	struct zcoll_plan *chain;

	is(submit(s, 0), -E2BIG, "more steps than there is room for");
	solo_free(s);
	config.steps = 6;
	config.links = 4;
	s = solo_config(plan_exchange(5, false), &config);
	is(submit(s, 0), -ENOBUFS, "no room for the bits of both OPEN steps");
	solo_free(s);
	config.bits = 128;
	config.links = 3;
	s = solo_config(plan_exchange(5, false), &config);
	is(submit(s, 0), -ENOSPC, "more nodes than there is room for");
	is(zc_engine_error(s->engine), 0, "which does not revoke");
	/* Another operation with this number, as if nothing had been */
	chain = plan_chain(5, false);
	free(s->prog_room);
	free(s->plan);
	s->plan = chain;
	s->prog_room = malloc(zc_prog_size(chain));
	zc_prog_init(&s->prog, chain, s->prog_room);
	s->desc.fingerprint++;
	is(submit(s, 0), 0, "a refused submission leaves nothing behind");
	is(drain(s) > 0 && !zc_engine_error(s->engine), true, "and what follows begins");
	solo_free(s);
}

/* ------------------------------------------------------------------ the life of an operation */

static void test_early(void)
{
	struct solo *s = solo_new(plan_chain(3, false), 2);
	u32 unit;

	for (unit = 0; unit < 4; unit++)
		hear(s, 1, data(CHAIN_DELIVER, 3 - unit));
	is(drain(s), 0, "messages before the submission are kept");
	is(submit(s, 0), 0, "and fit");
	drain(s);
	is(count(s, ZC_DO_DELIVER), 4, "all of them are delivered");
	is(s->action[0].slot, 0, "in the order of units");
	answer(s);
	drain(s);
	is(told(s, ZC_MSG_GRANT, 1) > 0, true, "slots are granted again");
	for (unit = 4; unit < 8; unit++)
		hear(s, 1, data(CHAIN_DELIVER, unit));
	hear(s, 1, data(CHAIN_DELIVER, 2));
	drain(s);
	is(count(s, ZC_DO_DELIVER), 4, "a message that comes again changes nothing");
	answer(s);
	drain(s);
	hear(s, 1, data(CHAIN_DELIVER, 8));
	hear(s, 1, data(CHAIN_DELIVER, 9));
	drain(s);
	is(verdict(s), 1, "no end before the last unit is done");
	answer(s);
	drain(s);
	is(verdict(s), 0, "then it ends");
	is(zc_engine_retired(s->engine), 1, "and is retired");
	hear(s, 1, data(CHAIN_DELIVER, 9));
	zc_engine_done(s->engine, 0, CHAIN_DELIVER, 9);
	is(zc_engine_error(s->engine), 0, "late duplicates of it are ignored");
	is(submit(s, 0), -EEXIST, "its number is used up");
	solo_free(s);
}

static void test_retires_in_order(void)
{
	struct solo *s = solo_new(plan_local(), 0);

	s->desc.slice = s->desc.geo.count;
	submit(s, 2);
	submit(s, 1);
	drain(s);
	answer(s);
	drain(s);
	is(count(s, ZC_DO_COMPLETE), 2, "operations end in any order");
	is(zc_engine_retired(s->engine), 0, "but retire only in that of their numbers");
	submit(s, 0);
	drain(s);
	answer(s);
	drain(s);
	is(zc_engine_retired(s->engine), 3, "all at once when the first one ends");
	solo_free(s);
}

/* Numbers that nobody will submit are passed over, and what has ended beyond them retires */
static void test_skip(void)
{
	struct solo *s = solo_new(plan_local(), 0);

	s->desc.slice = s->desc.geo.count;
	submit(s, 3);
	drain(s);
	answer(s);
	drain(s);
	zc_engine_skip(s->engine, 3);
	is(zc_engine_retired(s->engine), 4, "all before it skipped, an operation that has ended retires");
	zc_engine_skip(s->engine, 2);
	is(zc_engine_retired(s->engine), 4, "nothing is skipped backwards");
	zc_engine_skip(s->engine, 1002);
	is(submit(s, 1001), -EEXIST, "what was skipped is over");
	is(submit(s, 1005), 0, "the window begins behind it");
	submit(s, 1002);
	drain(s);
	answer(s);
	drain(s);
	is(count(s, ZC_DO_COMPLETE), 2, "and operations end as ever");
	is(zc_engine_retired(s->engine), 1003, "in order");
	solo_free(s);
}

/* A segment without elements has as many units as the others: others are let in meanwhile */
static void test_empty_units(void)
{
	const u64 starts[] = { 0, 0, 0, 4000 };
	struct solo *s = solo_new(plan_ring(3, false), 0);

	s->desc.geo = (struct zc_geometry){ .count = 4000, .starts = starts };
	s->desc.slice = 1;
	is(submit(s, 0), 0, "a geometry with empty segments");
	drain(s);
	ok(count(s, ZC_DO_AGAIN) > 0, "long rows of empty units are interrupted");
	solo_free(s);
}

/* A node that says it is at the end of all numbers is sent to all the same */
static void test_retired_wraps(void)
{
	struct solo *s = solo_new(plan_chain(3, false), 0);
	struct zc_msg msg = { .type = ZC_MSG_RETIRED, .retired = U64_MAX };

	hear(s, 1, msg);
	is(submit(s, 3), 0, "an operation after an absurd word of what is retired");
	drain(s);
	answer(s);
	drain(s);
	ok(count(s, ZC_DO_SEND) > 0, "is sent");
	solo_free(s);
}

/* ------------------------------------------------------------------ slots in reserve */

/* The first action of that type in the last drain() */
static const struct zc_action *first(const struct solo *s, u32 type)
{
	static const struct zc_action none;
	u32 i;

	for (i = 0; i < s->n; i++)
		if (s->action[i].type == type)
			return &s->action[i];
	return &none;
}

static void test_no_reserve(void)
{
	struct solo *s = solo_new(plan_chain(3, false), 0);
	const struct zc_action *a;

	s->desc.reserve = 3;
	submit(s, 0);
	drain(s);
	answer(s);
	drain(s);
	is(count(s, ZC_DO_SEND), 0, "units that are larger than the reserve wait for a grant");
	hear(s, 1, grant(CHAIN_FIRST_SEND, 2));
	drain(s);
	is(count(s, ZC_DO_SEND), 2, "and go when it comes");
	is(first(s, ZC_DO_SEND)->slot, 0, "into slots");
	solo_free(s);

	s = solo_new(plan_chain(3, false), 2);
	s->desc.reserve = 3;
	s->desc.priv = s;
	submit(s, 0);
	drain(s);
	a = first(s, ZC_DO_TELL);
	is(told(s, ZC_MSG_GRANT, 1), 1, "the receiver grants when it is submitted");
	is(a->msg.unit, 4, "as many units as there are slots");
	ok(a->step == CHAIN_DELIVER && a->row == &s->plan->steps[CHAIN_DELIVER] &&
	   !a->seq && a->unit == 4 && a->priv == s, "and the host is told for which step");
	solo_free(s);

	s = solo_new(plan_chain(3, false), 0);
	s->desc.reserve = 4;
	submit(s, 0);
	drain(s);
	answer(s);
	drain(s);
	is(count(s, ZC_DO_SEND), 4, "units as large as the reserve need no grant");
	solo_free(s);

	s = solo_new(plan_chain(3, false), 0);
	s->desc.reserve = 0;
	s->desc.geo.count = 0;
	submit(s, 0);
	drain(s);
	is(count(s, ZC_DO_SEND), 1, "nor does what only notifies");
	solo_free(s);
}

static void test_no_reserve_open(void)
{
	struct solo *s = solo_new(plan_exchange(3, false), 0);
	u32 i, units = 0;

	s->desc.reserve = 0;
	submit(s, 0);
	drain(s);
	is(count(s, ZC_DO_SEND), 0, "units of an OPEN step wait, too");
	is(told(s, ZC_MSG_GRANT, 1), 1, "one node is granted its unit");
	is(told(s, ZC_MSG_GRANT, 2), 1, "and so is the other one");
	for (i = 0; i < s->n; i++)
		if (s->action[i].type == ZC_DO_TELL && s->action[i].step == EXCHANGE_FOLD)
			units |= 1 << s->action[i].unit;
	is(units, 3, "each once");
	hear(s, 2, opened(data(EXCHANGE_FOLD, 0), 2));
	drain(s);
	answer(s);
	is(first(s, ZC_DO_FOLD)->slot, 0, "into a slot of its own");
	solo_free(s);
}

/* ------------------------------------------------------------------ waits */

static u32 waits(const struct solo *s, u32 step, u64 *unit)
{
	return zc_engine_waits(s->engine, 0, step, unit);
}

static void test_waits(void)
{
	struct solo *s = solo_new(plan_chain(3, false), 0);
	u64 unit = 0;

	s->desc.reserve = 0;
	submit(s, 0);
	is(waits(s, CHAIN_FIRST_SEND, &unit), ZC_NONE, "what local work is due for waits for nobody");
	drain(s);
	answer(s);
	drain(s);
	is(waits(s, CHAIN_FIRST_SEND, &unit), 1, "a SEND waits for who is to grant it");
	is(waits(s, CHAIN_FIRST_SEND, &unit), ZC_NONE, "and for no second one");
	hear(s, 1, grant(CHAIN_FIRST_SEND, 2));
	unit = 0;
	is(waits(s, CHAIN_FIRST_SEND, &unit), ZC_NONE, "who has granted is not waited for");
	is(zc_engine_waits(s->engine, 1, CHAIN_FIRST_SEND, &unit), ZC_NONE,
	   "an operation that nobody has submitted waits for nobody");
	is(waits(s, ZCOLL_PLAN_MAX_STEPS, &unit), ZC_NONE, "nor does a step that there is not");
	solo_free(s);

	s = solo_new(plan_exchange(3, false), 0);
	submit(s, 0);
	drain(s);
	answer(s);
	drain(s);
	hear(s, 2, opened(data(EXCHANGE_FOLD, 0), 2));
	unit = 0;
	is(waits(s, EXCHANGE_FOLD, &unit), 1, "of an OPEN step those are named that have not sent");
	is(waits(s, EXCHANGE_FOLD, &unit), ZC_NONE, "and nobody else");
	solo_free(s);
}

/* ------------------------------------------------------------------ lies */

/* A message that nobody who keeps the rules sends */
struct lie {
	const char *what;
	u32 from;
	struct zc_msg msg;
};

/* Told when the operation has been submitted, and before */
static void try_lie(struct zcoll_plan *(*plan)(u32, bool), u32 node, bool direct,
		    bool slow, const struct lie *lie, bool early)
{
	struct solo *s = solo_new(plan(3, false), node);
	int err;

	s->desc.eager = direct ? 0 : U64_MAX;
	s->desc.reserve = slow ? 0 : U64_MAX;
	if (early)
		hear(s, lie->from, lie->msg);
	err = submit(s, 0);
	drain(s);
	if (!early) {
		hear(s, lie->from, lie->msg);
		answer(s);
		drain(s);
		zc_engine_closed(s->engine);
		drain(s);
		err = verdict(s);
	}
	is(err, -EPROTO, "node %u revokes: %s%s", node, lie->what,
	   early ? ", before the submission" : "");
	solo_free(s);
}

static void test_lies(void)
{
	struct zc_msg far = data(CHAIN_DELIVER, 0), other = far, type = far;
	const struct lie always[] = {
		{ "DATA for a step that sends", 1, data(CHAIN_SEND, 0) },
		{ "DATA for a local step", 1, data(CHAIN_FINAL, 0) },
		{ "DATA for a step that is none here", 1, data(CHAIN_FIRST_SEND, 0) },
		{ "a step beyond all", 1, data(24, 0) },
		{ "a unit beyond the last", 1, data(CHAIN_DELIVER, 10) },
		{ "a unit beyond all numbers", 1, data(CHAIN_DELIVER, U64_MAX) },
		{ "a unit that was not granted", 1, data(CHAIN_DELIVER, 4) },
		{ "DATA of another node", 0, data(CHAIN_DELIVER, 0) },
		{ "GRANT for a step that receives", 1, grant(CHAIN_DELIVER, 1) },
		{ "an OPEN message for a step that is not", 1,
		  opened(data(CHAIN_DELIVER, 0), 10) },
		{ "too many bits", 1, opened(data(CHAIN_DELIVER, 0), 10000) },
		{ "an operation beyond the window", 1, (far.seq = 4, far) },
		{ "another operation", 1, (other.fingerprint = 1, other) },
		{ "an unknown message", 1, (type.type = 99, type) },
		{ "no message", 1, (type.type = 0, type) },
		{ "a message of itself", 2, data(CHAIN_DELIVER, 0) },
		{ "a message of nobody", 3, data(CHAIN_DELIVER, 0) },
	};
	const struct lie of_grants[] = {
		{ "GRANT of another node", 2, grant(CHAIN_FIRST_SEND, 6) },
		{ "GRANT of more than there is", 1, grant(CHAIN_FIRST_SEND, 11) },
		{ "DATA for a step that sends", 1, data(CHAIN_FIRST_SEND, 0) },
	};
	const struct lie open[] = {
		{ "an OPEN step of another length", 1, opened(data(EXCHANGE_FOLD, 0), 3) },
		{ "a unit beyond its length", 1, opened(data(EXCHANGE_FOLD, 2), 2) },
		{ "no length", 1, data(EXCHANGE_FOLD, 0) },
	};
	const struct lie nothing = {
		"GRANT of nothing", 1, grant(CHAIN_FIRST_SEND, 0),
	};
	const struct lie ungranted = {
		"OPEN DATA that was not granted", 1, opened(data(EXCHANGE_FOLD, 1), 2),
	};
	const struct lie too_soon = {
		"DATA before the first grant", 1, data(CHAIN_DELIVER, 0),
	};
	const struct lie beyond = {
		"DATA for a step that the plan has not", 1, data(23, 0),
	};
	const struct lie wrong_turn = {
		"OPEN DATA of another turn's node", 1, opened(data(EXCHANGE_FOLD, 0), 2),
	};
	const struct lie wrong_kind = {
		"OPEN DATA for a step that sends", 1, opened(data(EXCHANGE_SEND, 0), 2),
	};
	size_t i;
	int early;

	for (early = 0; early < 2; early++) {
		for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
			try_lie(plan_chain, 2, false, false, &always[i], early);
		for (i = 0; i < sizeof(of_grants) / sizeof(of_grants[0]); i++)
			try_lie(plan_chain, 0, false, false, &of_grants[i], early);
		for (i = 0; i < sizeof(open) / sizeof(open[0]); i++)
			try_lie(plan_exchange, 0, false, false, &open[i], early);
		try_lie(plan_exchange, 0, false, false, &wrong_turn, early);
		try_lie(plan_exchange, 0, false, false, &wrong_kind, early);
		try_lie(plan_exchange, 0, true, false, &ungranted, true);
		try_lie(plan_exchange, 0, false, true, &ungranted, true);
		try_lie(plan_chain, 2, false, true, &too_soon, true);
	}
	try_lie(plan_chain, 0, false, false, &nothing, false);
	try_lie(plan_chain, 2, false, false, &beyond, true);
}

static void test_mismatch(void)
{
	struct solo *s = solo_new(plan_chain(3, false), 2);

	hear(s, 1, data(CHAIN_DELIVER, 0));
	s->desc.fingerprint++;
	is(submit(s, 0), -EPROTO, "another operation than the others have called is refused");
	is(zc_engine_error(s->engine), -EPROTO, "and revokes");
	drain(s);
	is(told(s, ZC_MSG_ABORT, 1), 1, "and they are told");
	is(zc_engine_blame(s->engine), 1, "and who has called it is named");
	is(submit(s, 1), -EPROTO, "nothing can be submitted any more");
	solo_free(s);
}

/* Any messages at all, with numbers near the right ones, while operations go on */
static void test_random_lies(u64 seed)
{
	u64 random = seed, rounds, revoked = 0, i;

	for (rounds = 0; rounds < 3000; rounds++) {
		u32 kind = host_random(&random, 4), node = host_random(&random, 3), left = 60;
		struct solo *s = solo_new(kind == 0 ? plan_chain(3, true) :
					  kind == 1 ? plan_exchange(3, true) :
					  kind == 2 ? plan_ring(3, true) :
						      plan_spread(3, true), node);
		static const u64 odd[] = { 0, 1, 63, 64, 65, U32_MAX, 1ULL << 63, U64_MAX };

		s->desc.flags = host_random(&random, 2);
		s->desc.eager = host_random(&random, 2) * U64_MAX;
		s->desc.reserve = host_random(&random, 2) * U64_MAX;
		while (left--) {
			struct zc_msg msg = {
				.type = host_random(&random, 10),
				.open = host_random(&random, 3) ? 0 : host_random(&random, 4),
				.step = host_random(&random, 20), .status = random >> 32,
				.seq = host_random(&random, 5), .unit = host_random(&random, 12),
				.fingerprint = FINGERPRINT,
				.retired = host_random(&random, 5),
			};

			if (!host_random(&random, 4))
				msg.type = 1 + host_random(&random, 2);
			if (!host_random(&random, 20))
				msg.unit = odd[host_random(&random, 8)];
			if (!host_random(&random, 20))
				msg.seq = odd[host_random(&random, 8)];
			if (!host_random(&random, 20))
				msg.retired = odd[host_random(&random, 8)];
			if (!host_random(&random, 20))
				msg.open = odd[host_random(&random, 8)];
			if (!host_random(&random, 20))
				msg.step = odd[host_random(&random, 8)];
			hear(s, host_random(&random, 4), msg);
			if (!host_random(&random, 4))
				submit(s, host_random(&random, 4));
			for (i = 0; i < 50 && drain(s); i++) {
				answer(s);
				if (count(s, ZC_DO_CLOSE))
					zc_engine_closed(s->engine);
			}
			if (i == 50)
				ok(false, "seed %llu: no end", (unsigned long long)rounds);
		}
		revoked += zc_engine_error(s->engine) != 0;
		solo_free(s);
	}
	ok(revoked > rounds / 2, "random lies revoke and do not crash (%llu of %llu)",
	   (unsigned long long)revoked, (unsigned long long)rounds);
}

int main(int argc, char **argv)
{
	test_dimensions();
	test_cut();
	test_even();
	test_submit();
	test_small_engine();
	test_early();
	test_retires_in_order();
	test_skip();
	test_empty_units();
	test_retired_wraps();
	test_no_reserve();
	test_no_reserve_open();
	test_waits();
	test_lies();
	test_mismatch();
	test_random_lies(argc > 1 ? strtoull(argv[1], NULL, 0) : 1);
	return tap_end();
}
