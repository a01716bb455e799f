// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * "recursive-doubling": in round i, nodes that differ in digit i exchange all they have.
 * R. Thakur, R. Rabenseifner and W. Gropp, Optimization of Collective Communication
 * Operations in MPICH, IJHPCA 19(1), 2005; with a radix above 2, recursive multiplying:
 * M. Ruefenacht, M. Bull and S. Booth, Generalisation of Recursive Doubling for
 * AllReduce, EuroMPI 2016.
 *
 * The nodes below @core, a product of radices, do so. The *extras*, from @core on, give
 * their inputs to the nodes @core, 2 core, ... below them, and get the results back.
 *
 * A value goes from place to place, so that a fold never has to wait for the
 * acknowledgement of the message that was just sent from where it would write. Radix 2:
 * x + y of both nodes is the same, bit for bit. Above that, values are put in scratch
 * places in the order of digits, and all nodes fold them in that order.
 */
#include "gen.h"

/* Values of digit @i: the radix, or in the highest one what is left */
static u32 zc_core(u32 nodes, u32 radix)
{
	u32 power = zc_power_below(radix, nodes);

	return nodes / power * power;
}

static u32 zc_digit_values(u32 core, u32 stride, u32 radix)
{
	return zc_min(core / stride, radix);
}

/* A row of the nodes in the core, which differ in one digit */
static struct zcoll_step zc_core_row(const struct zc_build *build, u32 kind, u32 core)
{
	struct zcoll_step row = zc_row(build, kind);

	row.last = core - 1;
	return row;
}

/* Extras number j core .. (j + 1) core - 1 and the nodes of the core they belong to */
static struct zcoll_step zc_extras(const struct zc_build *build, u32 core, u32 j)
{
	struct zcoll_step row = zc_row(build, ZCOLL_STEP_SEND);

	row.dist = -(s32)(j * core);
	zc_between(&row, j * core, zc_min((j + 1) * core, build->plan->nodes) - 1);
	return row;
}

/*
 * Each node of the core has its inputs, and those of its extras, at @place. Return: what
 * that waits for; @sent gets the SEND of the extras of each j.
 */
static struct zc_waits zc_take_extras(struct zc_build *build, u32 core,
				      struct zcoll_place place, struct zc_waits *sent)
{
	u32 nodes = build->plan->nodes, folded = ZC_NONE;
	struct zcoll_step own = zc_core_row(build, ZCOLL_STEP_GATHER, core);
	struct zc_waits ready = { .n = 0 };

	/* Who has an extra folds it with the inputs; who has none gathers them */
	own.dst = place;
	own.first = zc_min(nodes - core, core);
	if (own.first < core)
		zc_wait(build, &ready, zc_on_slice(zc_add(build, &own), 0));
	for (u32 j = 1; j * core < nodes; j++) {
		struct zcoll_step send = zc_extras(build, core, j), fold;

		fold = zc_answer(&send, ZCOLL_STEP_FOLD);
		zc_shift(&fold, send.dist);
		fold.dst = place;
		fold.after[0] = zc_on_slice(folded, 0);
		if (j == 1)
			fold.flags = ZCOLL_STEP_FIRST;
		else
			fold.src = place;
		send.flags = ZCOLL_STEP_FIRST;
		folded = zc_message(build, &send, &fold);
		zc_wait(build, sent, zc_on(folded - 1));
		zc_wait(build, &ready, zc_on_slice(folded, 0));
	}
	return ready;
}

/* The extras get results from the nodes of the core */
static void zc_give_extras(struct zc_build *build, u32 core, struct zcoll_after ready,
			   const struct zc_waits *sent)
{
	for (u32 j = 1; j * core < build->plan->nodes; j++) {
		struct zcoll_step send = zc_extras(build, core, j), deliver;

		zc_shift(&send, send.dist);
		send.dist = -send.dist;
		send.after[0] = ready;
		deliver = zc_answer(&send, ZCOLL_STEP_DELIVER);
		zc_shift(&deliver, send.dist);
		zc_set_after(&deliver, sent);
		zc_message(build, &send, &deliver);
	}
}

/* ---- radix 2 ---- */

/* Where the value is before round @i of @rounds; before round @rounds it is the result */
static struct zcoll_place zc_pair_place(u32 i, u32 rounds, bool scratch)
{
	if (i == rounds || (i == 0 && !scratch))
		return (struct zcoll_place){ 0 };
	return zc_scratch(ZCOLL_OF_ZERO, (i + !scratch) % 2, 0);
}

/* The last round before @i in which the value was sent from @place, ZC_NONE: none */
static u32 zc_pair_sent(u32 i, const struct zcoll_place *place, u32 rounds, bool scratch)
{
	while (i-- > 0) {
		struct zcoll_place old = zc_pair_place(i, rounds, scratch);

		if (old.space == place->space && old.index == place->index)
			return i;
	}
	return ZC_NONE;
}

/* @scratch: the value is in a scratch place at first, else gathered in DATA */
static struct zcoll_after zc_pair_rounds(struct zc_build *build, u32 core, bool scratch,
					 struct zc_waits ready)
{
	u32 sends[ZC_MAX_ROUNDS], rounds = 0, folded = ZC_NONE, old;

	while (core >> rounds > 1)
		rounds++;
	for (u32 i = 0; i < rounds; i++) {
		struct zcoll_step send = zc_core_row(build, ZCOLL_STEP_SEND, core), fold;

		send.peer = ZCOLL_PEER_XOR;
		send.radix = core;
		send.dist = 1 << i;
		send.src = zc_pair_place(i, rounds, scratch);
		if (i == 0 && !scratch)
			send.flags = ZCOLL_STEP_INPUT;
		zc_set_after(&send, &ready);
		fold = zc_answer(&send, ZCOLL_STEP_FOLD);
		fold.flags = send.flags | (i + 1 == rounds ? ZCOLL_STEP_RESULT : 0);
		fold.src = send.src;
		fold.dst = zc_pair_place(i + 1, rounds, scratch);
		zc_set_after(&fold, &ready);
		old = zc_pair_sent(i, &fold.dst, rounds, scratch);
		if (old != ZC_NONE)
			fold.after[ZCOLL_PLAN_AFTER - 1] = zc_on_slice(sends[old], 0);
		folded = zc_message(build, &send, &fold);
		sends[i] = folded - 1;
		ready = (struct zc_waits){ .on[0] = zc_on_slice(folded, 0), .n = 1 };
	}
	return zc_on_slice(folded, 0);
}

static void zc_pairs(struct zc_build *build, u32 core)
{
	struct zcoll_plan *plan = build->plan;
	bool scratch = core < plan->nodes || core == 2;
	struct zc_waits sent = { .n = 0 }, ready;

	if (plan->collective != ZCOLL_BARRIER)
		plan->scratch = core == 2 ? 1 : core == 4 && !scratch ? 1 : 2;
	if (core == plan->nodes && plan->collective == ZCOLL_ALLREDUCE)
		plan->flags |= ZCOLL_PLAN_ORDERED;
	ready = zc_take_extras(build, core, zc_pair_place(0, ZC_MAX_ROUNDS, scratch), &sent);
	zc_give_extras(build, core, zc_pair_rounds(build, core, scratch, ready), &sent);
}

/* ---- larger radix ---- */

/* The value goes from @place to that of the node's own digit */
static struct zcoll_after zc_place_own(struct zc_build *build, u32 core, u32 digit,
				       const struct zcoll_place *place,
				       const struct zc_waits *ready)
{
	struct zcoll_step row = zc_core_row(build, ZCOLL_STEP_FOLD, core);

	row.peer = ZCOLL_PEER_NONE;
	row.flags = ZCOLL_STEP_STORE;
	row.radix = digit;
	row.dst = zc_scratch(ZCOLL_OF_SELF, 0, 0);
	row.src = *place;
	zc_set_after(&row, ready);
	return zc_on_slice(zc_add(build, &row), 0);
}

/*
 * One round: the values of all digits come to the places from @base on, and are folded
 * into the dst of @next, a row with that place's digit. @ready: the own one is there.
 */
static struct zcoll_after zc_digit_round(struct zc_build *build, const struct zcoll_step *group,
					 u32 base, const struct zcoll_step *next,
					 struct zcoll_after ready)
{
	struct zcoll_step send = *group, store, fold = *next;
	u32 digit = group->radix, copied;

	send.flags = ZCOLL_STEP_OPEN;
	send.repeat = digit - 1;
	send.dist = 1;
	send.dist_step = 1;
	send.src = zc_scratch(ZCOLL_OF_SELF, base, 0);
	send.after[0] = ready;
	store = zc_answer(&send, ZCOLL_STEP_FOLD);
	store.flags |= ZCOLL_STEP_STORE;
	store.dst = zc_scratch(ZCOLL_OF_PEER, base, 0);

	fold.kind = ZCOLL_STEP_FOLD;
	fold.peer = ZCOLL_PEER_NONE;
	fold.flags = ZCOLL_STEP_STORE;
	fold.src = zc_scratch(ZCOLL_OF_ZERO, base, 0);
	fold.after[0] = ready;
	fold.after[1] = zc_on(zc_message(build, &send, &store));
	copied = zc_add(build, &fold);

	fold.flags = 0;
	fold.repeat = digit - 1;
	fold.src = zc_scratch(ZCOLL_OF_ZERO, base + 1, 1);
	fold.after[0] = zc_on_slice(copied, 0);
	fold.after[1] = zc_on_slice(build->rows, 1);
	return zc_on_slice(zc_add(build, &fold), -(s32)(digit - 2));
}

/* Return: what to wait for to have the result, final */
static struct zcoll_after zc_digit_rounds(struct zc_build *build, u32 core, u32 radix,
					  struct zcoll_after ready)
{
	struct zcoll_step group = zc_core_row(build, ZCOLL_STEP_SEND, core), next = group;
	struct zcoll_step final = zc_core_row(build, ZCOLL_STEP_FINAL, core);
	u32 base = 0;

	for (u32 stride = 1; stride < core; stride *= group.radix) {
		group.stride = stride;
		group.radix = zc_digit_values(core, stride, radix);
		next.stride = stride * group.radix;
		if (next.stride < core) {
			next.radix = zc_digit_values(core, next.stride, radix);
			next.dst = zc_scratch(ZCOLL_OF_SELF, base + group.radix, 0);
		} else {
			next.stride = 1;
			next.dst = (struct zcoll_place){ 0 };
		}
		ready = zc_digit_round(build, &group, base, &next, ready);
		base += group.radix;
	}
	final.after[0] = ready;
	return zc_on_slice(zc_add(build, &final), 0);
}

static void zc_digits_allreduce(struct zc_build *build, u32 core, u32 radix)
{
	struct zcoll_plan *plan = build->plan;
	struct zcoll_step own = zc_core_row(build, ZCOLL_STEP_GATHER, core);
	struct zc_waits sent = { .n = 0 }, taken;
	u32 digit = zc_digit_values(core, 1, radix), places = 0;
	struct zcoll_place extra;
	struct zcoll_after ready;

	for (u32 stride = 1, k; stride < core; stride *= k, places += k)
		k = zc_digit_values(core, stride, radix);
	if (core == plan->nodes) {
		plan->scratch = places;
		own.radix = digit;
		own.dst = zc_scratch(ZCOLL_OF_SELF, 0, 0);
		ready = zc_on_slice(zc_add(build, &own), 0);
	} else {
		plan->scratch = places + 1;
		extra = zc_scratch(ZCOLL_OF_ZERO, places, 0);
		taken = zc_take_extras(build, core, extra, &sent);
		ready = zc_place_own(build, core, digit, &extra, &taken);
	}
	zc_give_extras(build, core, zc_digit_rounds(build, core, radix, ready), &sent);
}

static void zc_digits_barrier(struct zc_build *build, u32 core, u32 radix)
{
	struct zcoll_step group = zc_core_row(build, ZCOLL_STEP_SEND, core);
	struct zc_waits sent = { .n = 0 }, ready;

	ready = zc_take_extras(build, core, (struct zcoll_place){ 0 }, &sent);
	for (u32 stride = 1; stride < core; stride *= group.radix) {
		group.stride = stride;
		group.radix = zc_digit_values(core, stride, radix);
		zc_disseminate(build, &group, group.radix, &ready);
	}
	zc_give_extras(build, core, zc_join(build, &ready), &sent);
}

int zc_gen_recursive_doubling(struct zc_build *build)
{
	struct zcoll_plan *plan = build->plan;
	u32 radix = build->spec->radix ? build->spec->radix : 2;
	u32 core = zc_core(plan->nodes, radix);

	if (plan->collective == ZCOLL_ALLGATHER && radix != 2)
		return zc_build_fail(build, -EINVAL,
				     "recursive-doubling: all-gather has radix 2 only, not %u; bruck has any",
				     radix);
	if (plan->collective == ZCOLL_ALLGATHER)
		zc_doubling_allgather(build);
	else if (radix == 2)
		zc_pairs(build, core);
	else if (plan->collective == ZCOLL_BARRIER)
		zc_digits_barrier(build, core, radix);
	else
		zc_digits_allreduce(build, core, radix);
	return 0;
}
