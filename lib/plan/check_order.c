// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Order: what waits for what, and that nothing waits forever.
 *
 * A turn is cut into slices, any number of them. A slice of a turn waits
 *
 *   0      for all of the turn before it, and for the slices before it;
 *   1..3   for its step's @after;
 *   4      receiving: for the same slice of the turn that sends it;
 *   5..7   sending to a DELIVER, where elements may land directly: for what the turn that
 *          receives it waits for, since only then it is granted;
 *   8      sending into slots: for the turn that receives it, to be done with an
 *          earlier slice, which has left its slot (ZC_WAIT_ROOM);
 *   9      likewise, for all of the turn before that.
 *
 * The last two are more than an engine asks for that has more than one slot, or fewer
 * slices than slots, so that the proof is for any number of slots. The waits of
 * slots and of direct landing are taken together: a step does either, by its size.
 *
 * Nothing waits forever if
 *
 *   (a) without 8 and 9, the waits have no circle, and
 *   (b) in each strongly connected part of the graph of all waits between turns, all waits
 *       are by slice, or ROOM.
 *
 * Proof. Let the parts be carried out one after the other, each when all it waits for outside
 * is done: so all waits by TURN, which lead out of the part by (b), are satisfied. Within
 * a part, let all turns do their first slice, in the order that (a) allows, then all
 * their second slice, and so on (turns of a part that wait for each other by
 * slice or message have the same segments, so the same number of slices). A wait for the same
 * slice is satisfied by the order; ROOM, because it is for an earlier slice. The other
 * way round, with enough slices a circle in a part that has a wait by TURN is a circle
 * of slices: the wait leads to the last slice, from which there is room to step down
 * by as many slots as the circle has waits for ROOM. So this refuses nothing that
 * would end for every number of slices.
 *
 * Both walks are Tarjan's ("Depth-first search and linear graph algorithms", 1972), without
 * recursion. The walk (a) leaves each turn after all that it waits for, which is
 * an order in which turns may run: the symbolic run (check_run.c) is its visitor.
 */
#include <stdlib.h>

#include "check.h"

#define DONE U32_MAX

/**
 * struct frame - a turn on the way from a root to where the walk is
 * @at: turn
 * @peer: its peer
 * @i: number of the wait that is next, or is being followed
 * @wait: how that one waits
 * @low: least mark of a turn that is known to wait for this one
 */
struct frame {
	struct zc_at at;
	u32 peer;
	u32 i;
	enum zc_wait wait;
	u32 low;
};

/**
 * struct walk - a walk over all turns
 * @c: proof
 * @waits: those below this number are followed
 * @visit: called when a turn is left
 * @arg: for @visit
 * @mark: by turn: 0, not seen; DONE; else in which order it was found, from 1 on
 * @found: turns found
 * @way: frames from the root to where the walk is
 * @deep: their number
 * @way_room: frames there is room for
 * @open: turns found whose part is not complete
 * @nopen: their number
 * @open_room: turns there is room for
 */
struct walk {
	struct zc_proof *c;
	u32 waits;
	zc_visit visit;
	void *arg;
	u32 *mark;
	u32 found;
	struct frame *way;
	size_t deep;
	size_t way_room;
	u32 *open;
	size_t nopen;
	size_t open_room;
};

/* One of the waits of a step, as it is at one node */
static enum zc_wait wait_after(const struct zc_proof *c, u32 v, u32 t,
			       const struct zcoll_after *after, struct zc_at *on)
{
	u32 last = c->plan->steps[after->step].repeat - 1;
	s64 want = after->mode == ZCOLL_AFTER_ALL ? last : (s64)t - after->shift;

	if (after->mode == ZCOLL_AFTER_NONE || want < 0 || !zc_proof_active(c, v, after->step))
		return ZC_WAIT_NONE;
	*on = (struct zc_at) { v, after->step, want < last ? want : last };
	return after->mode == ZCOLL_AFTER_SLICE ? ZC_WAIT_SLICE : ZC_WAIT_TURN;
}

/**
 * zc_proof_wait - one of the things that a turn waits for
 * @c: proof
 * @at: turn
 * @peer: its peer
 * @i: number of the wait, below ZC_WAITS_ALL; see the head of this file
 * @on: gets the turn it waits for
 *
 * Return: how it waits; ZC_WAIT_NONE: there is no such wait.
 */
enum zc_wait zc_proof_wait(const struct zc_proof *c, const struct zc_at *at, u32 peer, u32 i,
			   struct zc_at *on)
{
	const struct zcoll_step *step = &c->plan->steps[at->step], *match;

	if (!i) {
		*on = (struct zc_at) { at->v, at->step, at->t - 1 };
		return at->t ? ZC_WAIT_TURN : ZC_WAIT_NONE;
	}
	if (i < ZC_WAITS_OWN)
		return wait_after(c, at->v, at->t, &step->after[i - 1], on);
	if (peer == ZC_NONE)
		return ZC_WAIT_NONE;
	if (step->kind != ZCOLL_STEP_SEND) {
		if (i != ZC_WAITS_OWN)
			return ZC_WAIT_NONE;
		*on = (struct zc_at) { zc_proof_row(c, peer),
				       zc_proof_feeder(c, at->step, peer, 0), at->t };
		return ZC_WAIT_SLICE;
	}
	if (i == ZC_WAITS_OWN || step->flags & ZCOLL_STEP_OPEN)
		return ZC_WAIT_NONE;
	match = &c->plan->steps[step->match];
	if (i < ZC_WAITS_GRANT)
		return match->kind != ZCOLL_STEP_DELIVER ? ZC_WAIT_NONE :
		       wait_after(c, zc_proof_row(c, peer), at->t,
				  &match->after[i - ZC_WAITS_DATA], on);
	*on = (struct zc_at) { zc_proof_row(c, peer), step->match, at->t };
	if (i == ZC_WAITS_GRANT)
		return step->count ? ZC_WAIT_ROOM : ZC_WAIT_NONE;
	on->t--;
	return at->t ? ZC_WAIT_TURN : ZC_WAIT_NONE;
}

/* Make room for one more */
static void *grow(void *list, size_t n, size_t *room, size_t bytes)
{
	void *more;

	if (n < *room)
		return list;
	more = realloc(list, (*room ? 2 * *room : 256) * bytes);
	if (more)
		*room = *room ? 2 * *room : 256;
	return more;
}

static int walk_enter(struct walk *w, const struct zc_at *at)
{
	const struct zcoll_step *step = &w->c->plan->steps[at->step];
	struct frame *way = grow(w->way, w->deep, &w->way_room, sizeof(*way));
	u32 turn = zc_proof_turn(w->c, at);
	struct zc_turn about = { .peer = ZC_NONE };
	u32 *open;

	if (way)
		w->way = way;
	open = grow(w->open, w->nopen, &w->open_room, sizeof(*open));
	if (open)
		w->open = open;
	if (!way || !open)
		return -ENOMEM;
	if (step->peer != ZCOLL_PEER_NONE)
		zc_step_turn(w->c->plan, step, at->v, at->t, &about);
	w->mark[turn] = ++w->found;
	way[w->deep++] = (struct frame) { .at = *at, .peer = about.peer, .low = w->found };
	open[w->nopen++] = turn;
	return 0;
}

static int refuse_circle(const struct walk *w, const struct zc_at *at, const struct zc_at *on)
{
	const char *more = w->waits == ZC_WAITS_ALL ?
		", if there are more slices than slots" : "";

	return zc_proof_refuse(w->c, at, "deadlock: this waits for node %u, step %u (%s), "
			       "turn %u, which waits for this%s", on->v, on->step,
			       zc_proof_kind(w->c, on->step), on->t, more);
}

/* A turn on which another one waits, and which waits for that one, if by a detour */
static int walk_circle(const struct walk *w, struct frame *from, const struct zc_at *on,
		       u32 low)
{
	if (from->wait == ZC_WAIT_TURN || w->waits != ZC_WAITS_ALL)
		return refuse_circle(w, &from->at, on);
	if (low < from->low)
		from->low = low;
	return 0;
}

static int walk_leave(struct walk *w)
{
	struct frame left = w->way[--w->deep];
	u32 turn = zc_proof_turn(w->c, &left.at), mark = w->mark[turn];

	if (left.low != mark)
		return walk_circle(w, &w->way[w->deep - 1], &left.at, left.low);
	do
		w->mark[w->open[--w->nopen]] = DONE;
	while (w->open[w->nopen] != turn);
	return w->visit ? w->visit(w->arg, &left.at, left.peer) : 0;
}

static int walk_on(struct walk *w)
{
	struct frame *top = &w->way[w->deep - 1];
	struct zc_at on;
	u32 mark;

	if (top->i == w->waits)
		return walk_leave(w);
	top->wait = zc_proof_wait(w->c, &top->at, top->peer, top->i++, &on);
	if (top->wait == ZC_WAIT_NONE)
		return 0;
	mark = w->mark[zc_proof_turn(w->c, &on)];
	if (mark == DONE)
		return 0;
	return mark ? walk_circle(w, top, &on, mark) : walk_enter(w, &on);
}

static int walk_from(struct walk *w, struct zc_at *at)
{
	int err = 0;

	for (at->t = 0; at->t < w->c->plan->steps[at->step].repeat && !err; at->t++) {
		if (w->mark[zc_proof_turn(w->c, at)] == DONE)
			continue;
		err = walk_enter(w, at);
		while (w->deep && !err)
			err = walk_on(w);
	}
	return err;
}

static int walk_all(struct walk *w)
{
	struct zc_at at;
	int err;

	w->mark = calloc((size_t)w->c->turns + 1, sizeof(*w->mark));
	err = w->mark ? 0 : -ENOMEM;
	for (at.v = 0; at.v < w->c->rows && !err; at.v++)
		for (at.step = 0; at.step < w->c->plan->nsteps && !err; at.step++)
			if (zc_proof_active(w->c, at.v, at.step))
				err = walk_from(w, &at);
	free(w->mark);
	free(w->way);
	free(w->open);
	return err;
}

/**
 * zc_proof_order - show (a), and visit all turns in an order in which they may run
 * @c: proof; messages are paired
 * @visit: visitor
 * @arg: for it
 *
 * Return: 0, -ENOMEM, a refusal, or what the visitor says if that is not 0.
 */
int zc_proof_order(struct zc_proof *c, zc_visit visit, void *arg)
{
	struct walk w = { .c = c, .waits = ZC_WAITS_GRANT, .visit = visit, .arg = arg };

	return walk_all(&w);
}

/**
 * zc_proof_room - show (b)
 * @c: proof; (a) has been shown
 *
 * Return: 0, -ENOMEM or a refusal.
 */
int zc_proof_room(struct zc_proof *c)
{
	struct walk w = { .c = c, .waits = ZC_WAITS_ALL };

	return walk_all(&w);
}
