// SPDX-License-Identifier: GPL-2.0
/*
 * The checker of plans on random edits of right plans. A mutant that it accepts is carried
 * out by the engine, with data, several operations in flight and everything in random
 * order: it must end, with the right results, and without two accesses that clash
 * (engine_host.h). One that it refuses must come with a counterexample.
 *
 * All is repeated by the seeds. Usage: plan_mutate_test [--long] [SEED]; with a seed,
 * only that mutant of each plan, which is printed.
 */
#include <getopt.h>

#include "../lib/tap.h"
#include "engine_host.h"
#include "plan_build.h"

#define MUTANTS		3000
#define MUTANTS_LONG	100000
#define RUNS		3	/* of an accepted one */
#define OPERATIONS	3

static u64 state;

static u32 draw(u32 below)
{
	u64 x = state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return (x ^ x >> 31) % below;
}

static bool chance(u32 of_ten)
{
	return draw(10) < of_ten;
}

/* ------------------------------------------------------------------ edits */

/* A number near the old one, or any small one */
static u32 near(u32 number)
{
	if (chance(7))
		return number + draw(5) - 2;
	return draw(9) - 2;
}

static void edit_place(struct zcoll_place *place)
{
	switch (draw(4)) {
	case 0:
		place->space ^= 1;
		break;
	case 1:
		place->of = draw(3);
		break;
	case 2:
		place->index = near(place->index);
		break;
	case 3:
		place->index_step = near(place->index_step);
		break;
	}
}

static void edit_after(const struct zcoll_plan *plan, struct zcoll_after *after)
{
	switch (draw(4)) {
	case 0:
		after->step = draw(plan->nsteps);
		break;
	case 1:
		after->mode = draw(4);
		break;
	case 2:
		after->shift = near(after->shift);
		break;
	case 3:
		memset(after, 0, sizeof(*after));
		break;
	}
}

/* The fields that say who takes part, with whom and about what */
static void edit_number(struct zcoll_step *step)
{
	u32 *const fields[] = {
		&step->origin, &step->first, &step->last, &step->every, &step->lo, &step->hi,
		&step->stride, &step->radix, (u32 *)&step->dist, (u32 *)&step->dist_step,
		&step->width, &step->blocks, (u32 *)&step->seg, (u32 *)&step->seg_step,
	};
	u32 *field = fields[draw(sizeof(fields) / sizeof(*fields))];

	*field = near(*field);
}

static void edit_step(const struct zcoll_plan *plan, struct zcoll_step *step)
{
	switch (draw(10)) {
	case 0:
		step->kind = 1 + draw(ZCOLL_NR_STEPS - 1);
		break;
	case 1:
		step->peer = draw(4);
		break;
	case 2:
	case 3:
		step->flags ^= 1 << draw(6);
		break;
	case 4:
		step->of = draw(3);
		break;
	case 5:
		step->match = draw(plan->nsteps);
		break;
	case 6:
		edit_place(chance(5) ? &step->dst : &step->src);
		break;
	case 7:
	case 8:
		edit_after(plan, &step->after[draw(ZCOLL_PLAN_AFTER)]);
		break;
	case 9:
		edit_number(step);
		break;
	}
}

/* The same change on both sides of a message, which one side alone never survives */
static void edit_pair(struct zcoll_plan *plan)
{
	struct zcoll_step *send = &plan->steps[draw(plan->nsteps)];
	struct zcoll_step *other = &plan->steps[send->match];
	s32 by = chance(5) ? 1 : -1;

	if (send->kind != ZCOLL_STEP_SEND)
		return;
	switch (draw(7)) {
	case 0:
		send->repeat = other->repeat = near(send->repeat);
		break;
	case 1:
		send->count = other->count = near(send->count);
		break;
	case 2:
		send->dist += by;
		other->dist += send->peer == ZCOLL_PEER_ADD ? -by : by;
		break;
	case 3:
		send->seg += by;
		other->seg += by;
		break;
	case 4:
		send->seg_step += by;
		other->seg_step += by;
		break;
	case 5:
		send->flags ^= ZCOLL_STEP_OPEN;
		other->flags ^= ZCOLL_STEP_OPEN;
		break;
	case 6:
		send->dist_step += by;
		other->dist_step -= by;
		break;
	}
}

static void edit_header(struct zcoll_plan *plan)
{
	u32 *const fields[] = {
		&plan->scratch, &plan->acc, &plan->segments, &plan->members, &plan->flags,
		&plan->levels[0],
	};
	u32 *field = fields[draw(sizeof(fields) / sizeof(*fields))];

	*field = near(*field);
}

/* Steps are referred to by number: all references to @from become ones to @to */
static void renumber(struct zcoll_plan *plan, u32 from, u32 to)
{
	u32 s, i;

	for (s = 0; s < plan->nsteps; s++) {
		struct zcoll_step *step = &plan->steps[s];

		if (step->kind == ZCOLL_STEP_SEND && step->match == from)
			step->match = to;
		for (i = 0; i < ZCOLL_PLAN_AFTER; i++) {
			if (step->after[i].mode == ZCOLL_AFTER_NONE || step->after[i].step != from)
				continue;
			step->after[i].step = to;
			if (to == plan->nsteps - 1 && from != to)
				memset(&step->after[i], 0, sizeof(step->after[i]));
		}
	}
}

/* Leave out a row; what waited for it waits for nothing */
static void drop_row(struct zcoll_plan *plan)
{
	u32 row = draw(plan->nsteps), i;

	renumber(plan, row, plan->nsteps - 1 == row ? row : plan->nsteps - 1);
	for (i = row + 1; i < plan->nsteps; i++) {
		renumber(plan, i, i - 1);
		plan->steps[i - 1] = plan->steps[i];
	}
	plan->nsteps--;
	plan->size -= sizeof(plan->steps[0]);
}

static void swap_rows(struct zcoll_plan *plan)
{
	u32 a = draw(plan->nsteps), b = draw(plan->nsteps);
	struct zcoll_step step = plan->steps[a];

	plan->steps[a] = plan->steps[b];
	plan->steps[b] = step;
	/* With its references it is the same plan: then it must be found right again */
	if (chance(5))
		return;
	renumber(plan, a, ZCOLL_PLAN_MAX_STEPS);
	renumber(plan, b, a);
	renumber(plan, ZCOLL_PLAN_MAX_STEPS, b);
}

static void repeat_row(struct zcoll_plan *plan)
{
	plan->steps[plan->nsteps] = plan->steps[draw(plan->nsteps)];
	plan->nsteps++;
	plan->size += sizeof(plan->steps[0]);
}

/* A plan with a few edits, and room for one step more for each of them */
static struct zcoll_plan *mutant_of(const struct zcoll_plan *plan)
{
	u32 edits = 1 + draw(3), i;
	struct zcoll_plan *mutant = malloc(plan->size + edits * sizeof(plan->steps[0]));

	memcpy(mutant, plan, plan->size);
	for (i = 0; i < edits && mutant->nsteps; i++) {
		switch (draw(16)) {
		case 0:
			drop_row(mutant);
			break;
		case 1:
			swap_rows(mutant);
			break;
		case 2:
			repeat_row(mutant);
			break;
		case 3:
			edit_header(mutant);
			break;
		case 4:
		case 5:
		case 6:
			edit_pair(mutant);
			break;
		default:
			edit_step(mutant, &mutant->steps[draw(mutant->nsteps)]);
		}
	}
	plan_seal(mutant);
	return mutant;
}

/* ------------------------------------------------------------------ running */

static u32 open_bits(const struct zcoll_plan *plan)
{
	u32 bits = 0, s;

	for (s = 0; s < plan->nsteps; s++)
		if (plan->steps[s].flags & ZCOLL_STEP_OPEN)
			bits += (plan->steps[s].repeat + 63) / 64 * 64;
	return bits;
}

/* Offsets of segments, some of them empty */
static u64 *uneven(const struct zcoll_plan *plan)
{
	u64 *starts = calloc(plan->segments + 1, sizeof(*starts));
	u32 s;

	for (s = 0; s < plan->segments; s++)
		starts[s + 1] = starts[s] + draw(6) * chance(8);
	return starts;
}

/* Carry out a plan a few times. Return: whether all was right; else it says why not. */
static bool carried_out(const struct zcoll_plan *plan)
{
	struct host_params params = {
		.nodes = plan->nodes, .window = 2, .slots = 2, .inflight = 1 + draw(8),
		.steps = plan->nsteps + !plan->nsteps, .bits = open_bits(plan),
		.seed = draw(U32_MAX), .duplicates = 50, .lazy = 100,
	};
	struct host *host = host_new(&params, OPERATIONS);
	struct host_op op = { .plan = plan, .slice = 1 + draw(4), .eager = chance(5) * 64,
		.reserve = U64_MAX };
	u64 *starts = uneven(plan);
	const char *fault;
	u32 i;

	for (i = 0; i < OPERATIONS; i++) {
		op.root = draw(plan->members);
		op.geo.starts = chance(5) ? starts : NULL;
		op.geo.count = op.geo.starts ? starts[plan->segments] : draw(8 * plan->segments);
		op.flags = plan->flags & ZCOLL_PLAN_AGREED ? ZC_OP_AGREED : 0;
		host_add(host, &op);
	}
	fault = host_run(host);
	if (fault)
		printf("# %s\n", fault);
	host_free(host);
	free(starts);
	return !fault;
}

/**
 * struct tally - what has become of the mutants of a plan
 * @accepted: found right
 * @refused: found wrong
 * @bad: found right and were not
 * @mute: found wrong and nobody said why
 */
struct tally {
	u32 accepted;
	u32 refused;
	u32 bad;
	u32 mute;
};

static void print_plan(const struct zcoll_plan *plan, u32 seed)
{
	char *text = zcoll_plan_format(plan), *line, *rest = text;

	printf("# seed %u\n", seed);
	while ((line = strsep(&rest, "\n")))
		printf("# %s\n", line);
	free(text);
}

static void try_mutant(const struct zcoll_plan *plan, u32 seed, bool show, struct tally *tally)
{
	struct zcoll_plan_limits limits = { .window = 2, .slots = 2, .nodes = draw(2) };
	char error[ZCOLL_TEXT_MAX] = "";
	struct zcoll_plan *mutant;
	bool bad = false;
	u32 i;

	state = seed;
	mutant = mutant_of(plan);
	if (zcoll_plan_check(mutant, &limits, NULL, error, sizeof(error))) {
		tally->refused++;
		tally->mute += !error[0];
		if (show)
			printf("# refused: %s\n", error);
	} else {
		tally->accepted++;
		for (i = 0; i < RUNS && !bad; i++)
			bad = !carried_out(mutant);
		tally->bad += bad;
	}
	if (bad || show)
		print_plan(mutant, seed);
	free(mutant);
}

static void test_plan(const char *name, struct zcoll_plan *plan, u32 from, u32 mutants, bool show)
{
	char error[ZCOLL_TEXT_MAX] = "";
	struct tally tally = {};
	u32 seed;

	state = 1;
	if (!ok(!zcoll_plan_check(plan, NULL, NULL, error, sizeof(error)) && carried_out(plan),
		"%s: right, and carried out", name))
		printf("# %s\n", error);
	for (seed = from; seed < from + mutants; seed++)
		try_mutant(plan, seed, show, &tally);
	is(tally.bad, 0, "%s: %u accepted mutants are right", name, tally.accepted);
	is(tally.mute, 0, "%s: %u refused mutants have counterexamples", name,
	   tally.refused);
	free(plan);
}

/* Plans by hand */
static void test_by_hand(u32 from, u32 mutants, bool show)
{
	const struct {
		const char *name;
		struct zcoll_plan *plan;
	} plans[] = {
		{ "ring by hand", plan_ring3() },
		{ "ring by hand that agrees", plan_ring3_agreed() },
		{ "reduce-scatter by hand", plan_scatter3() },
		{ "dissemination by hand", plan_exchanges(ZCOLL_PEER_ADD, 2, -2) },
		{ "recursive doubling by hand", plan_exchanges(ZCOLL_PEER_XOR, 2, 2) },
		{ "barrier by hand", plan_barrier4() },
	};
	u32 i;

	for (i = 0; i < sizeof(plans) / sizeof(*plans); i++)
		test_plan(plans[i].name, plans[i].plan, from, mutants, show);
}

/* Plans of the library: each algorithm and collective, every other one agreed */
static void test_made(u32 from, u32 mutants, bool show)
{
	struct zcoll_plan_spec spec = { .size = sizeof(spec), .nodes = 5 };
	struct zcoll_plan *plan;
	char name[100];
	u32 i;

	for (i = 0; (spec.algo = zcoll_plan_algorithm(i)); i++) {
		for (spec.collective = 1; spec.collective < ZCOLL_NR_COLLECTIVES;
		     spec.collective++) {
			if (zcoll_plan_make(&spec, &plan, NULL, 0))
				continue;
			snprintf(name, sizeof(name), "%s %s%s", spec.algo,
				 zcoll_collective_name(spec.collective),
				 spec.flags ? " that agrees" : "");
			test_plan(name, plan, from, mutants, show);
			spec.flags ^= ZCOLL_PLAN_AGREED;
		}
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "long", no_argument, NULL, 'l' }, {} };
	u32 mutants = MUTANTS, from = 0;
	bool show = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) == 'l')
		mutants = MUTANTS_LONG;
	if (option != -1)
		return 2;
	if (optind < argc) {
		from = strtoul(argv[optind], NULL, 0);
		mutants = 1;
		show = true;
	}
	test_by_hand(from, mutants, show);
	test_made(from, show ? 1 : mutants / 6, show);
	return tap_end();
}
