// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The rounds of a plan.
 *
 * A message is in round 1 + that of the latest message which the sender waits for
 * before. So a round is what can go on at once, were all nodes equally fast; none of
 * them waits for the end of a round. The turns of all steps at all nodes and what
 * they wait for are a graph without cycles; each turn's round is found when those it
 * waits for are known, by a search in depth with a stack of its own, since chains
 * may be as long as the plan.
 */
#include <stdlib.h>

#include "plan.h"

/* Turns of all nodes that are looked at; more would not be read by anybody */
#define MAX_TURNS (2U << 20)

#define UNKNOWN U32_MAX		/* round not known yet */
#define BEGUN (U32_MAX - 1)	/* on the stack */

struct search {
	const struct zcoll_plan *plan;
	u32 *start;	/* of a node's turns, where those of a step begin */
	u32 turns;	/* of a node */
	u32 *round;	/* of each turn, by turn_id() */
	u32 *stack;
	u32 height;
	const char *why;
};

static u32 turn_id(const struct search *search, u32 v, u32 step, u32 t)
{
	return v * search->turns + search->start[step] + t;
}

/* Which turn of a node is it? */
static void turn_of(const struct search *search, u32 id, u32 *v, u32 *step, u32 *t)
{
	u32 low = 0, high = search->plan->nsteps, rest = id % search->turns;

	*v = id / search->turns;
	while (high - low > 1) {	/* start[low] <= rest < start[high] */
		u32 mid = low + (high - low) / 2;

		if (search->start[mid] <= rest)
			low = mid;
		else
			high = mid;
	}
	*step = low;
	*t = rest - search->start[low];
}

/* The round of another turn; if it is not known, it is to be found first */
static bool known(struct search *search, u32 id, u32 *round)
{
	u32 is = search->round[id];

	if (is == BEGUN)
		search->why = "it never ends: some turns wait for each other";
	if (is == BEGUN)
		return false;
	if (is == UNKNOWN) {
		search->round[id] = BEGUN;
		search->stack[search->height++] = id;
		return false;
	}
	if (*round < is)
		*round = is;
	return true;
}

/* What the step's @after says; turns below 0 count as done, later ones as the last */
static bool known_after(struct search *search, u32 v, u32 t, const struct zcoll_after *after,
			u32 *round)
{
	const struct zcoll_step *step = &search->plan->steps[after->step];
	s64 at = after->mode == ZCOLL_AFTER_ALL ? U32_MAX : (s64)t - after->shift;

	if (after->mode == ZCOLL_AFTER_NONE || at < 0 ||
	    !zc_step_active(search->plan, step, v))
		return true;
	if (at >= step->repeat)
		at = step->repeat - 1;
	return known(search, turn_id(search, v, after->step, at), round);
}

/* The step by which a peer sends what this one receives */
static u32 sending_step(const struct zcoll_plan *plan, u32 receiver, u32 peer)
{
	u32 i;

	for (i = 0; i < plan->nsteps; i++)
		if (plan->steps[i].kind == ZCOLL_STEP_SEND && plan->steps[i].match == receiver &&
		    zc_step_active(plan, &plan->steps[i], peer))
			return i;
	return ZC_NONE;
}

static bool known_message(struct search *search, u32 v, u32 index, u32 t, u32 *round)
{
	const struct zcoll_plan *plan = search->plan;
	struct zc_turn turn;
	u32 sender;

	if (zc_step_turn(plan, &plan->steps[index], v, t, &turn)) {
		search->why = "a peer or a segment is out of range";
		return false;
	}
	if (!zc_step_receives(&plan->steps[index]))
		return true;
	sender = sending_step(plan, index, turn.peer);
	if (sender == ZC_NONE || t >= plan->steps[sender].repeat) {
		search->why = "a node waits for a message that nobody sends";
		return false;
	}
	return known(search, turn_id(search, turn.peer, sender, t), round);
}

/* The turn on top of the stack: done, or something else is on top now */
static void look(struct search *search)
{
	u32 id = search->stack[search->height - 1], v, index, t, i, round = 0;
	const struct zcoll_step *step;

	turn_of(search, id, &v, &index, &t);
	step = &search->plan->steps[index];
	for (i = 0; i < ZCOLL_PLAN_AFTER; i++)
		if (!known_after(search, v, t, &step->after[i], &round))
			return;
	round += step->kind == ZCOLL_STEP_SEND;
	if (t && !known(search, id - 1, &round))
		return;
	if (!known_message(search, v, index, t, &round))
		return;
	search->round[id] = round;
	search->height--;
}

static void look_all(struct search *search)
{
	const struct zcoll_plan *plan = search->plan;
	u32 v, s, id, round;

	for (v = 0; v < plan->nodes; v++)
		for (s = 0; s < plan->nsteps; s++) {
			if (!zc_step_active(plan, &plan->steps[s], v))
				continue;
			id = turn_id(search, v, s, plan->steps[s].repeat - 1);
			known(search, id, &round);
			while (search->height && !search->why)
				look(search);
			if (search->why)
				return;
		}
}

/* ---- in order ---- */

static int phase(const struct zcoll_plan *plan, const struct event *event)
{
	const struct zcoll_step *step = &plan->steps[event->step];

	if (step->peer == ZCOLL_PEER_NONE)
		return 2;
	return step->kind == ZCOLL_STEP_SEND ? 0 : 1;
}

static int by_round(const void *a, const void *b, void *plan)
{
	const struct event *x = a, *y = b;
	int px = phase(plan, x), py = phase(plan, y);

	if (x->round != y->round)
		return x->round < y->round ? -1 : 1;
	if (px != py)
		return px - py;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->t < y->t ? -1 : x->t > y->t;
}

static void collect(const struct search *search, struct rounds *rounds)
{
	const struct zcoll_plan *plan = search->plan;
	struct event *event = rounds->event;
	u32 id;

	for (id = 0; id < plan->nodes * search->turns; id++) {
		if (search->round[id] == UNKNOWN)
			continue;
		event->round = search->round[id];
		turn_of(search, id, &event->node, &event->step, &event->t);
		zc_step_turn(plan, &plan->steps[event->step], event->node, event->t,
			     &event->turn);
		if (rounds->rounds < event->round)
			rounds->rounds = event->round;
		event++;
	}
	rounds->count = event - rounds->event;
	qsort_r(rounds->event, rounds->count, sizeof(*rounds->event), by_round, (void *)plan);
}

static const char *search_all(struct search *search, struct rounds *rounds, size_t all)
{
	search->round = malloc(all * sizeof(*search->round));
	search->stack = malloc(all * sizeof(*search->stack));
	rounds->event = malloc(all * sizeof(*rounds->event));
	if (!search->round || !search->stack || !rounds->event)
		return "out of memory";
	memset(search->round, 0xff, all * sizeof(*search->round));
	look_all(search);
	if (!search->why)
		collect(search, rounds);
	return search->why;
}

const char *rounds_find(const struct zcoll_plan *plan, struct rounds *rounds)
{
	struct search search = { .plan = plan };
	const char *why = NULL;
	u32 s;

	*rounds = (struct rounds){ 0 };
	search.start = calloc(plan->nsteps + 1, sizeof(*search.start));
	if (!search.start)
		return "out of memory";
	for (s = 0; s < plan->nsteps; s++)
		search.start[s + 1] = search.start[s] + plan->steps[s].repeat;
	search.turns = search.start[plan->nsteps];
	if ((u64)search.turns * plan->nodes > MAX_TURNS)
		why = "there are too many turns to be shown";
	else if (search.turns)
		why = search_all(&search, rounds, (size_t)search.turns * plan->nodes);
	free(search.start);
	free(search.round);
	free(search.stack);
	return why;
}

static bool is_message(const struct zcoll_plan *plan, const struct event *event)
{
	return plan->steps[event->step].kind == ZCOLL_STEP_SEND;
}

size_t rounds_batch(const struct zcoll_plan *plan, const struct rounds *rounds, size_t from,
		    size_t *end)
{
	const struct event *event = rounds->event;
	size_t at;

	while (from < rounds->count && !is_message(plan, &event[from]))
		from++;
	for (at = from; at < rounds->count; at++)
		if (event[at].round != event[from].round || event[at].step != event[from].step)
			break;
	*end = at;
	return from;
}

void rounds_free(struct rounds *rounds)
{
	free(rounds->event);
}
