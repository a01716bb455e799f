// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The check of a plan at one node: whatever the other nodes do, this one then reads
 * only what is there, writes only where it may, and in a fixed order.
 *
 * The turns are gone through one after the other, each when all turns it waits for
 * have been; if none is left that could be next, there is a cycle. Of each turn is
 * asked:
 *
 *   peer       does the step that is at the other end see the same?
 *   knowledge  what is known to be done when it begins?
 *   places     is that enough for what it reads and writes (plan_place.c)?
 *
 * Knowledge. A turn *knows* for each step how many of its turns are done when it
 * begins. That is the largest of
 *
 *   - what the step's turn before knew: turns begin in order;
 *   - what each turn waited for knew when it began;
 *   - the turn waited for itself, and all before it, as they count as done in order.
 *
 * After AFTER_SLICE a slice of a turn knows this of the same slice only. But the segments
 * are the same then, and a turn touches in each slice what belongs to that slice; so
 * its accesses are in order all the same. The turn after it begins when all its slices
 * have, and knows it of all.
 *
 * It is a vector clock (Mattern, Virtual Time and Global States of Distributed
 * Systems, 1989) whose processes are the steps. Turns of OPEN steps are not in
 * order, so each knows only by itself what it knows.
 */
#include "plan_check.h"

/* Refuse the plan at the turn that is being looked at. Return: @err */
int zc_refuse(struct zc_check *check, int err, const char *what, u32 segment)
{
	*check->why = (struct zc_plan_why){
		what, check->step, check->t, segment, check->v, ZC_NONE, ZC_NONE,
	};
	return err;
}

/* ---- room ---- */

struct zc_needs {
	u32 rows;
	u32 reads;
	u32 spots;
};

/* Nothing waits for single turns of an OPEN step, so one vector is enough for all */
static u32 zc_step_rows(const struct zcoll_step *step)
{
	return step->flags & ZCOLL_STEP_OPEN ? 1 : step->repeat;
}

/*
 * As if the node took part in all steps. For each of its segments, a turn reads at most
 * the segment and an accumulation, or a scratch place.
 */
static struct zc_needs zc_check_needs(const struct zcoll_plan *plan)
{
	struct zc_needs needs = { .spots = plan->segments + plan->acc + plan->scratch };
	u32 i;

	for (i = 0; i < plan->nsteps; i++) {
		const struct zcoll_step *step = &plan->steps[i];

		needs.rows += zc_step_rows(step);
		needs.reads += step->repeat * step->count;
	}
	if (plan->acc)
		needs.reads *= 2;
	return needs;
}

/**
 * zc_plan_check_room - memory for zc_plan_check()
 * @plan: a valid plan
 *
 * Return: bytes. They are bounded by the limits of a plan, but may be some GiB: who
 * calls must have a limit, and one of zc_plan_check_work().
 */
size_t zc_plan_check_room(const struct zcoll_plan *plan)
{
	struct zc_needs needs = zc_check_needs(plan);
	u64 room = ((u64)needs.rows + plan->nsteps) * plan->nsteps * sizeof(u32);

	room += plan->nsteps * sizeof(struct zc_track);
	room += needs.spots * sizeof(struct zc_spot);
	room += needs.reads * sizeof(struct zc_read);
	room += plan->segments;
	return room < SIZE_MAX ? room : SIZE_MAX;
}

/**
 * zc_plan_check_work - how much zc_plan_check() has to do
 * @plan: a valid plan
 *
 * Each turn looks at the vectors of what it waits for, which have an entry for each
 * step. Steps that stay in one row of the room count as well.
 *
 * Return: turns times steps, each some nanoseconds; at most 2^30.
 */
u64 zc_plan_check_work(const struct zcoll_plan *plan)
{
	u64 turns = 0;
	u32 i;

	for (i = 0; i < plan->nsteps; i++)
		turns += plan->steps[i].repeat;
	return turns * plan->nsteps;
}

static void zc_check_place(struct zc_check *check, void *room)
{
	const struct zcoll_plan *plan = check->plan;
	struct zc_needs needs = zc_check_needs(plan);

	check->known = room;
	check->last = check->known + (size_t)needs.rows * plan->nsteps;
	check->tracks = (void *)(check->last + (size_t)plan->nsteps * plan->nsteps);
	check->spots = (void *)(check->tracks + plan->nsteps);
	check->reads = (void *)(check->spots + needs.spots);
	check->state = (void *)(check->reads + needs.reads);
}

static void zc_check_tracks(struct zc_check *check)
{
	const struct zcoll_plan *plan = check->plan;
	u32 i, row = 0;

	for (i = 0; i < plan->nsteps; i++) {
		struct zc_track *track = &check->tracks[i];
		bool active = zc_step_active(plan, &plan->steps[i], check->v);

		*track = (struct zc_track){
			.column = active ? check->columns++ : ZC_NONE,
			.row = row,
			.stop = active ? plan->steps[i].repeat : 0,
			.waiters = ZC_NONE,
			.sender = ZC_NONE,
		};
		row += active ? zc_step_rows(&plan->steps[i]) : 0;
	}
	for (i = 0; i < plan->nsteps; i++) {
		struct zc_track *match = &check->tracks[plan->steps[i].match];

		if (plan->steps[i].kind != ZCOLL_STEP_SEND)
			continue;
		check->tracks[i].sibling = match->sender;
		match->sender = i;
	}
}

static void zc_check_init(struct zc_check *check, void *room)
{
	const struct zcoll_plan *plan = check->plan;
	struct zc_needs needs = zc_check_needs(plan);
	u32 i;

	zc_check_place(check, room);
	zc_check_tracks(check);
	memset(check->last, 0, (size_t)check->columns * check->columns * sizeof(u32));
	for (i = 0; i < needs.spots; i++)
		check->spots[i] = (struct zc_spot){ ZC_NONE, 0, ZC_NONE, ZC_NONE };
	for (i = 0; i < needs.reads; i++)
		check->reads[i].next = i + 1 < needs.reads ? i + 1 : ZC_NONE;
	check->spare = needs.reads ? 0 : ZC_NONE;
	for (i = 0; i < plan->segments; i++)
		check->state[i] = zc_plan_has_input(plan, check->v, i) ? ZC_RAW : ZC_EMPTY;
}

/* ---- knowledge ---- */

static u32 *zc_check_known(struct zc_check *check, u32 step, u32 t)
{
	bool open = check->plan->steps[step].flags & ZCOLL_STEP_OPEN;

	return check->known +
	       ((size_t)check->tracks[step].row + (open ? 0 : t)) * check->columns;
}

static u32 *zc_check_last(struct zc_check *check, u32 step)
{
	return check->last + (size_t)check->tracks[step].column * check->columns;
}

/* @to knows what @from knows */
static void zc_learn(const struct zc_check *check, u32 *to, const u32 *from)
{
	u32 i;

	for (i = 0; i < check->columns; i++)
		if (from[i] > to[i])
			to[i] = from[i];
}

/*
 * Which turn is waited for? Return: false: none. ZCOLL_AFTER_ALL is the last one.
 */
static bool zc_after_turn(const struct zc_check *check, const struct zcoll_after *after,
			  u32 t, u32 *waited)
{
	u32 stop;
	s64 at;

	if (after->mode == ZCOLL_AFTER_NONE)
		return false;
	stop = check->tracks[after->step].stop;
	at = (s64)t - after->shift;
	if (!stop || (after->mode != ZCOLL_AFTER_ALL && at < 0))
		return false;
	*waited = after->mode == ZCOLL_AFTER_ALL || at >= stop ? stop - 1 : at;
	return true;
}

static bool zc_same_segments(const struct zc_check *check, u32 step, u32 t)
{
	struct zc_turn other;

	return !zc_step_turn(check->plan, &check->plan->steps[step], check->v, t, &other) &&
	       zc_range_same(&other.range, &check->turn.range);
}

static int zc_learn_after(struct zc_check *check, const struct zcoll_after *after)
{
	u32 waited, *own;

	if (!zc_after_turn(check, after, check->t, &waited))
		return 0;
	if (after->mode == ZCOLL_AFTER_SLICE && !zc_same_segments(check, after->step, waited))
		return zc_refuse(check, -EDOM, "waits for slices of other segments", ZC_NONE);
	/* All of an OPEN step know more than its last turn */
	zc_learn(check, check->now, after->mode == ZCOLL_AFTER_ALL ?
		 zc_check_last(check, after->step) :
		 zc_check_known(check, after->step, waited));
	own = &check->now[check->tracks[after->step].column];
	if (*own <= waited)
		*own = waited + 1;
	return 0;
}

static int zc_check_knowledge(struct zc_check *check)
{
	bool open = check->row->flags & ZCOLL_STEP_OPEN;
	u32 *last = zc_check_last(check, check->step);
	u32 i;
	int err;

	check->now = zc_check_known(check, check->step, check->t);
	for (i = 0; i < check->columns; i++)
		check->now[i] = open ? 0 : last[i];
	for (i = 0; i < ZCOLL_PLAN_AFTER; i++) {
		err = zc_learn_after(check, &check->row->after[i]);
		if (err)
			return err;
	}
	zc_learn(check, last, check->now);
	return 0;
}

/* ---- peers ---- */

/* Does turn @t of @step at the peer face this node, with the same segments? */
static bool zc_faces(const struct zc_check *check, const struct zcoll_step *step)
{
	u32 peer = check->turn.peer;
	struct zc_turn turn;

	return zc_step_active(check->plan, step, peer) &&
	       !zc_step_turn(check->plan, step, peer, check->t, &turn) &&
	       turn.peer == check->v && zc_range_same(&turn.range, &check->turn.range);
}

static int zc_check_sender(struct zc_check *check)
{
	const struct zcoll_plan *plan = check->plan;
	const struct zcoll_step *sender = NULL;
	u32 i;

	for (i = check->tracks[check->step].sender; i != ZC_NONE; i = check->tracks[i].sibling) {
		if (!zc_step_active(plan, &plan->steps[i], check->turn.peer))
			continue;
		if (sender)
			return zc_refuse(check, -ENOLINK, "the peer has two SENDs for this step",
					 ZC_NONE);
		sender = &plan->steps[i];
	}
	if (!sender)
		return zc_refuse(check, -ENOLINK, "the peer has no SEND for this step", ZC_NONE);
	if (!zc_faces(check, sender))
		return zc_refuse(check, -ENOLINK,
				 "the peer's SEND goes elsewhere, or with other segments", ZC_NONE);
	return 0;
}

static u32 zc_gcd(u32 a, u32 b)
{
	while (b) {
		u32 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* So many turns have peers that differ. Then they come again in the same order. */
static u32 zc_step_peers(const struct zcoll_step *step)
{
	s64 by = step->dist_step;

	switch (step->peer) {
	case ZCOLL_PEER_ADD:
		return step->radix / zc_gcd(by < 0 ? -by : by, step->radix);
	case ZCOLL_PEER_TO:
		return by ? U32_MAX : 1;
	}
	return 1;
}

static int zc_check_peer(struct zc_check *check)
{
	const struct zcoll_step *row = check->row;

	if (row->peer == ZCOLL_PEER_NONE)
		return 0;
	if (row->flags & ZCOLL_STEP_OPEN && !check->t && row->repeat > zc_step_peers(row))
		return zc_refuse(check, -ENOTUNIQ,
				 "two turns of an OPEN step have the same peer", ZC_NONE);
	if (row->kind != ZCOLL_STEP_SEND)
		return zc_check_sender(check);
	if (!zc_faces(check, &check->plan->steps[row->match]))
		return zc_refuse(check, -ENOLINK,
				 "the match at the peer expects another sender, or other segments",
				 ZC_NONE);
	return 0;
}

/* ---- turns ---- */

static int zc_check_turn(struct zc_check *check)
{
	int err;

	err = zc_step_turn(check->plan, check->row, check->v, check->t, &check->turn);
	if (err == -EHOSTUNREACH)
		return zc_refuse(check, err, "the peer is out of range, or the node itself",
				 ZC_NONE);
	if (err)
		return zc_refuse(check, err, "a segment or scratch place is out of range",
				 ZC_NONE);
	err = zc_check_peer(check);
	if (!err)
		err = zc_check_knowledge(check);
	if (!err)
		err = zc_check_places(check);
	return err;
}

/* Is there something to wait for? Then the step is put among those that wait for it. */
static bool zc_check_waits(struct zc_check *check, u32 step, u32 t)
{
	u32 i, waited;

	for (i = 0; i < ZCOLL_PLAN_AFTER; i++) {
		const struct zcoll_after *after = &check->plan->steps[step].after[i];
		struct zc_track *other;

		if (!zc_after_turn(check, after, t, &waited))
			continue;
		other = &check->tracks[after->step];
		if (other->next > waited)
			continue;
		check->tracks[step].need = waited + 1;
		check->tracks[step].link = other->waiters;
		other->waiters = step;
		return true;
	}
	return false;
}

/* Go through as many turns of a step as can be. Return: 0, or why the plan is refused. */
static int zc_check_step(struct zc_check *check, u32 step)
{
	struct zc_track *track = &check->tracks[step];
	int err = 0;

	while (!err && track->next < track->stop && !zc_check_waits(check, step, track->next)) {
		check->step = step;
		check->row = &check->plan->steps[step];
		check->t = track->next++;
		err = zc_check_turn(check);
		if (!err && zc_give_way())
			err = zc_refuse(check, -EINTR, "the caller has been killed", ZC_NONE);
	}
	return err;
}

/* Those that have waited long enough for @step move to the list @ready */
static u32 zc_check_wake(struct zc_check *check, u32 step, u32 ready)
{
	u32 *link = &check->tracks[step].waiters;

	while (*link != ZC_NONE) {
		u32 i = *link;
		struct zc_track *waiter = &check->tracks[i];

		if (waiter->need > check->tracks[step].next) {
			link = &waiter->link;
			continue;
		}
		*link = waiter->link;
		waiter->link = ready;
		ready = i;
	}
	return ready;
}

static int zc_check_turns(struct zc_check *check)
{
	u32 i, ready = ZC_NONE;
	int err;

	for (i = check->plan->nsteps; i-- > 0;) {
		check->tracks[i].link = ready;
		ready = i;
	}
	while (ready != ZC_NONE) {
		i = ready;
		ready = check->tracks[i].link;
		err = zc_check_step(check, i);
		if (err)
			return err;
		ready = zc_check_wake(check, i, ready);
	}
	for (i = 0; i < check->plan->nsteps; i++) {
		if (check->tracks[i].next == check->tracks[i].stop)
			continue;
		check->step = i;
		check->t = check->tracks[i].next;
		return zc_refuse(check, -ELOOP, "waits, by way of others, for itself", ZC_NONE);
	}
	return 0;
}

static int zc_check_end(struct zc_check *check)
{
	u32 i;

	check->step = ZC_NONE;
	check->t = ZC_NONE;
	for (i = 0; i < check->plan->segments; i++) {
		if (check->state[i] == ZC_RAW)
			return zc_refuse(check, -ENODATA, "nothing reads the local inputs", i);
		if (check->state[i] != ZC_FINAL && zc_plan_has_output(check->plan, check->v, i))
			return zc_refuse(check, -ENOMSG, "nothing makes the output final", i);
	}
	return 0;
}

/**
 * zc_plan_check - is a plan safe at a node?
 * @plan: a valid plan
 * @v: the node's number in the plan, below @plan->nodes
 * @room: zc_plan_check_room() bytes, aligned to 4; what is in them does not matter
 * @why: gets the reason of a refusal
 *
 * Takes time in proportion to zc_plan_check_work() and the plan's length, at most, and
 * gives way to others.
 *
 * Return: 0; a negative errno as <linux/zcoll.h> has it under "Errors of plans"; in the
 * kernel also -EINTR: the caller has been killed.
 */
int zc_plan_check(const struct zcoll_plan *plan, u32 v, void *room, struct zc_plan_why *why)
{
	struct zc_check check = { .plan = plan, .v = v, .why = why };
	int err;

	zc_check_init(&check, room);
	err = zc_check_turns(&check);
	return err ? err : zc_check_end(&check);
}
