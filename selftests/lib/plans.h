/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plans for tests, made by hand: small ones that are right and use all the format
 * has, and for each rule of the check a fault that breaks it and no other.
 *
 * A *fault* is one change to one of the plans. PLAN_FAULTS is the table of all, for
 * the test of the check itself and for that of the ioctl.
 */
#ifndef TEST_PLANS_H
#define TEST_PLANS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <linux/zcoll_plan.h>

#define PLAN_MAX_BYTES \
	(sizeof(struct zcoll_plan) + (ZCOLL_PLAN_MAX_STEPS + 1) * sizeof(struct zcoll_step))

/**
 * struct image - a plan in the making
 * @plan: the plan
 * @bytes: to be given as its size
 * @sealed: size and id are not to be set any more
 */
struct image {
	struct zcoll_plan *plan;
	size_t bytes;
	bool sealed;
};

static inline struct image image_new(void)
{
	return (struct image){ .plan = calloc(1, PLAN_MAX_BYTES) };
}

static inline void image_free(struct image *image)
{
	free(image->plan);
}

/* FNV-1a, written anew: the driver's must come to the same */
static inline uint64_t plan_hash(const struct zcoll_plan *plan, size_t bytes)
{
	struct zcoll_plan head = *plan;
	const uint8_t *byte = (const uint8_t *)plan, *first = (const uint8_t *)&head;
	uint64_t hash = 14695981039346656037ULL;

	head.id = 0;
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (i < sizeof(head) ? first[i] : byte[i])) * 1099511628211ULL;
	return hash;
}

/* Set what follows from the rest */
static inline void image_seal(struct image *image)
{
	struct zcoll_plan *plan = image->plan;

	if (image->sealed)
		return;
	plan->size = sizeof(*plan) + plan->nsteps * sizeof(plan->steps[0]);
	image->bytes = plan->size;
	plan->id = plan_hash(plan, plan->size);
}

static inline struct zcoll_plan *plan_begin(struct image *image, const char *name,
					    unsigned int collective, uint32_t nodes)
{
	struct zcoll_plan *plan = image->plan;

	memset(plan, 0, PLAN_MAX_BYTES);
	image->sealed = false;
	plan->version = ZCOLL_PLAN_VERSION;
	plan->collective = collective;
	plan->nodes = nodes;
	plan->members = nodes;
	plan->segments = 1;
	strncpy(plan->name, name, sizeof(plan->name) - 1);
	return plan;
}

/* A step all nodes take part in, with the peer @dist away, about segment 0 */
static inline struct zcoll_step *plan_add(struct zcoll_plan *plan, unsigned int kind,
					  unsigned int flags, unsigned int peer, int dist)
{
	struct zcoll_step *step = &plan->steps[plan->nsteps++];

	*step = (struct zcoll_step){
		.kind = kind, .flags = flags, .peer = peer, .dist = dist,
		.repeat = 1, .last = UINT32_MAX, .every = 1, .stride = 1,
		.radix = plan->nodes, .width = 1, .blocks = plan->segments, .count = 1,
	};
	return step;
}

static inline void step_after(struct zcoll_step *step, unsigned int other, unsigned int mode,
			      int shift)
{
	unsigned int i = 0;

	while (step->after[i].mode)
		i++;
	step->after[i] = (struct zcoll_after){ .step = other, .mode = mode, .shift = shift };
}

static inline void step_segment(struct zcoll_step *step, unsigned int of, int seg, int seg_step)
{
	step->of = of;
	step->seg = seg;
	step->seg_step = seg_step;
}

static inline struct zcoll_place scratch(int index)
{
	return (struct zcoll_place){ .space = ZCOLL_PLACE_SCRATCH, .index = index };
}

#define GATHER	ZCOLL_STEP_GATHER
#define SEND	ZCOLL_STEP_SEND
#define FOLD	ZCOLL_STEP_FOLD
#define DELIVER	ZCOLL_STEP_DELIVER
#define FINAL	ZCOLL_STEP_FINAL
#define FIRST	ZCOLL_STEP_FIRST
#define INPUT	ZCOLL_STEP_INPUT
#define STORE	ZCOLL_STEP_STORE
#define RESULT	ZCOLL_STEP_RESULT
#define OPEN	ZCOLL_STEP_OPEN
#define NONE	ZCOLL_PEER_NONE
#define ADD	ZCOLL_PEER_ADD
#define XOR	ZCOLL_PEER_XOR
#define TO	ZCOLL_PEER_TO
#define SELF	ZCOLL_OF_SELF
#define PEER	ZCOLL_OF_PEER
#define SLICE	ZCOLL_AFTER_SLICE
#define TURN	ZCOLL_AFTER_TURN
#define ALL	ZCOLL_AFTER_ALL

/* ---- plans that are right ---- */

/* One node, one step */
static inline void plan_local(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "local", ZCOLL_ALLREDUCE, 1);

	plan_add(p, FINAL, FIRST, NONE, 0);
}

/* All-reduce in a ring of at least 4: partial sums go round, then results */
enum { RING_S0, RING_F0, RING_S1, RING_F1, RING_S2, RING_FR, RING_SEND, RING_DELIVER };

static inline void plan_ring_of(struct image *image, uint32_t nodes)
{
	struct zcoll_plan *p = plan_begin(image, "ring", ZCOLL_ALLREDUCE, nodes);
	int n = nodes;
	struct zcoll_step *s;

	p->segments = nodes;
	s = plan_add(p, SEND, FIRST, ADD, 1);
	step_segment(s, SELF, 0, 0);
	s->match = RING_F0;
	s = plan_add(p, FOLD, FIRST, ADD, -1);
	step_segment(s, SELF, -1, 0);
	s = plan_add(p, SEND, 0, ADD, 1);
	step_segment(s, SELF, -1, -1);
	s->match = RING_F1;
	s->repeat = n - 3;
	step_after(s, RING_F0, ALL, 0);
	step_after(s, RING_F1, SLICE, 1);
	s = plan_add(p, FOLD, FIRST, ADD, -1);
	step_segment(s, SELF, -2, -1);
	s->repeat = n - 3;
	s = plan_add(p, SEND, 0, ADD, 1);
	step_segment(s, SELF, 2 - n, 0);
	s->match = RING_FR;
	step_after(s, RING_F1, SLICE, 4 - n);
	s = plan_add(p, FOLD, FIRST | RESULT, ADD, -1);
	step_segment(s, SELF, 1 - n, 0);
	s = plan_add(p, SEND, 0, ADD, 1);
	step_segment(s, SELF, 1, -1);
	s->match = RING_DELIVER;
	s->repeat = n - 1;
	step_after(s, RING_FR, ALL, 0);
	step_after(s, RING_DELIVER, SLICE, 1);
	s = plan_add(p, DELIVER, 0, ADD, -1);
	step_segment(s, SELF, 0, -1);
	s->repeat = n - 1;
	step_after(s, RING_S0, ALL, 0);
	step_after(s, RING_S1, ALL, 0);
	step_after(s, RING_S2, ALL, 0);
}

static inline void plan_ring(struct image *image)
{
	plan_ring_of(image, 4);
}

/* All-reduce by recursive doubling over 4 nodes */
enum { RD_GATHER, RD_S0, RD_F0, RD_S1, RD_F1 };

static inline void plan_doubling(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "recursive-doubling", ZCOLL_ALLREDUCE, 4);
	struct zcoll_step *s;

	p->scratch = 1;
	plan_add(p, GATHER, 0, NONE, 0);
	s = plan_add(p, SEND, INPUT, XOR, 1);
	s->match = RD_F0;
	step_after(s, RD_GATHER, SLICE, 0);
	s = plan_add(p, FOLD, INPUT, XOR, 1);
	s->dst = scratch(0);
	step_after(s, RD_GATHER, SLICE, 0);
	s = plan_add(p, SEND, 0, XOR, 2);
	s->src = scratch(0);
	s->match = RD_F1;
	step_after(s, RD_F0, SLICE, 0);
	s = plan_add(p, FOLD, RESULT, XOR, 2);
	s->src = scratch(0);
	step_after(s, RD_F0, SLICE, 0);
	step_after(s, RD_S0, TURN, 0);
}

/* All-gather: everybody sends to everybody, in any order */
enum { AG_FINAL, AG_SEND, AG_DELIVER };

static inline void plan_direct(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "direct", ZCOLL_ALLGATHER, 4);
	struct zcoll_step *s;

	p->segments = 4;
	s = plan_add(p, FINAL, FIRST, NONE, 0);
	step_segment(s, SELF, 0, 0);
	s = plan_add(p, SEND, OPEN, ADD, 1);
	step_segment(s, SELF, 0, 0);
	s->match = AG_DELIVER;
	s->dist_step = 1;
	s->repeat = 3;
	step_after(s, AG_FINAL, SLICE, 0);
	s = plan_add(p, DELIVER, OPEN, ADD, -1);
	step_segment(s, PEER, 0, 0);
	s->dist_step = -1;
	s->repeat = 3;
}

/* Reduce-scatter: to each its segment, where it is accumulated in a place of its own */
enum { RS_GATHER, RS_S0, RS_F0, RS_S1, RS_F1, RS_FINAL };

static inline void plan_scatter(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "pairwise", ZCOLL_REDUCE_SCATTER, 3);
	struct zcoll_step *s;

	p->segments = 3;
	p->acc = 1;
	s = plan_add(p, GATHER, 0, NONE, 0);
	step_segment(s, SELF, 0, 0);
	for (int d = 1; d <= 2; d++) {
		s = plan_add(p, SEND, FIRST, ADD, d);
		step_segment(s, PEER, 0, 0);
		s->match = p->nsteps;
		s = plan_add(p, FOLD, d == 1 ? INPUT : 0, ADD, -d);
		step_segment(s, SELF, 0, 0);
		step_after(s, d == 1 ? RS_GATHER : RS_F0, SLICE, 0);
	}
	s = plan_add(p, FINAL, 0, NONE, 0);
	step_segment(s, SELF, 0, 0);
	step_after(s, RS_F1, TURN, -1);
}

/* All-reduce of two nodes by a third one without ranks, and a local fold */
enum { AGG_S, AGG_F0, AGG_F1, AGG_FOLD, AGG_SEND0, AGG_SEND1, AGG_DELIVER0, AGG_DELIVER1,
       AGG_S1 };

static inline struct zcoll_step *only(struct zcoll_step *step, uint32_t v)
{
	step->first = v;
	step->last = v;
	return step;
}

static inline void plan_aggregator(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "aggregator", ZCOLL_ALLREDUCE, 3);
	struct zcoll_step *s;

	p->members = 2;
	p->acc = 1;
	p->scratch = 2;
	only(plan_add(p, SEND, FIRST, TO, 2), 0)->match = AGG_F0;
	s = only(plan_add(p, FOLD, STORE, TO, 0), 2);
	s->dst = scratch(0);
	s = only(plan_add(p, FOLD, STORE, TO, 1), 2);
	s->dst = scratch(0);
	s->dst.of = PEER;
	s = only(plan_add(p, FOLD, 0, NONE, 0), 2);
	s->dst = scratch(0);
	s->src = scratch(1);
	step_after(s, AGG_F0, SLICE, 0);
	step_after(s, AGG_F1, SLICE, 0);
	s = only(plan_add(p, SEND, 0, TO, 0), 2);
	s->src = scratch(0);
	s->match = AGG_DELIVER0;
	step_after(s, AGG_FOLD, SLICE, 0);
	s = only(plan_add(p, SEND, 0, TO, 1), 2);
	s->src = scratch(0);
	s->match = AGG_DELIVER1;
	step_after(s, AGG_FOLD, SLICE, 0);
	s = only(plan_add(p, DELIVER, 0, TO, 2), 0);
	step_after(s, AGG_S, ALL, 0);
	s = only(plan_add(p, DELIVER, 0, TO, 2), 1);
	step_after(s, AGG_S1, ALL, 0);
	only(plan_add(p, SEND, FIRST, TO, 2), 1)->match = AGG_F1;
}

/* All-reduce of two nodes, 4 segments at a time, accumulated at a node without ranks */
enum { MID_S0, MID_S1, MID_F0, MID_F1, MID_B0, MID_B1, MID_D0, MID_D1 };

static inline void plan_middle(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "middle", ZCOLL_ALLREDUCE, 3);
	struct zcoll_step *s;

	p->members = 2;
	p->segments = 4;
	p->acc = 4;
	only(plan_add(p, SEND, FIRST, TO, 2), 0)->match = MID_F0;
	only(plan_add(p, SEND, FIRST, TO, 2), 1)->match = MID_F1;
	only(plan_add(p, FOLD, STORE, TO, 0), 2);
	s = only(plan_add(p, FOLD, 0, TO, 1), 2);
	step_after(s, MID_F0, SLICE, 0);
	for (int v = 0; v < 2; v++) {
		s = only(plan_add(p, SEND, 0, TO, v), 2);
		s->match = MID_D0 + v;
		step_after(s, MID_F1, SLICE, 0);
	}
	for (int v = 0; v < 2; v++) {
		s = only(plan_add(p, DELIVER, 0, TO, 2), v);
		step_after(s, MID_S0 + v, ALL, 0);
	}
	for (uint32_t i = 0; i < p->nsteps; i++)
		p->steps[i].count = 4;
}

/* Barrier of 3 nodes: nothing but notifications */
enum { BAR_S0, BAR_R0, BAR_S1, BAR_R1 };

static inline void plan_barrier(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "dissemination", ZCOLL_BARRIER, 3);

	for (int round = 0; round < 2; round++) {
		struct zcoll_step *s = plan_add(p, SEND, 0, ADD, 1 << round);

		s->match = p->nsteps;
		s->count = 0;
		if (round)
			step_after(s, BAR_R0, ALL, 0);
		plan_add(p, DELIVER, 0, ADD, -(1 << round))->count = 0;
	}
}

/* Broadcast from 0 to 1 and 2 through scratch, which is kept as DATA on the way */
enum { BC_GATHER, BC_SEND, BC_STORE, BC_COPY, BC_FINAL0, BC_FINAL };

static inline void plan_broadcast(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "broadcast", ZCOLL_BROADCAST, 2);
	struct zcoll_step *s;

	p->scratch = 1;
	s = only(plan_add(p, GATHER, 0, NONE, 0), 0);
	s = only(plan_add(p, SEND, INPUT, TO, 1), 0);
	s->match = BC_STORE;
	step_after(s, BC_GATHER, SLICE, 0);
	s = only(plan_add(p, FOLD, STORE, TO, 0), 1);
	s->dst = scratch(0);
	s = only(plan_add(p, FOLD, STORE, NONE, 0), 1);
	s->src = scratch(0);
	step_after(s, BC_STORE, SLICE, 0);
	s = only(plan_add(p, FINAL, INPUT, NONE, 0), 0);
	step_after(s, BC_SEND, ALL, 0);
	s = only(plan_add(p, FINAL, 0, NONE, 0), 1);
	step_after(s, BC_COPY, SLICE, 0);
}

/* Broadcast from 0 to 1 through a node without ranks, segment by segment */
enum { RELAY_GATHER, RELAY_SEND, RELAY_STORE, RELAY_PASS, RELAY_DELIVER, RELAY_FINAL };

static inline void plan_relay(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "relay", ZCOLL_BROADCAST, 3);
	struct zcoll_step *s;

	p->members = 2;
	p->segments = 2;
	p->acc = 2;
	only(plan_add(p, GATHER, 0, NONE, 0), 0)->count = 2;
	s = only(plan_add(p, SEND, INPUT, TO, 2), 0);
	s->match = RELAY_STORE;
	step_after(s, RELAY_GATHER, ALL, 0);
	s = only(plan_add(p, FOLD, STORE, TO, 0), 2);
	s = only(plan_add(p, SEND, 0, TO, 1), 2);
	s->match = RELAY_DELIVER;
	step_after(s, RELAY_STORE, SLICE, 0);
	s = only(plan_add(p, DELIVER, 0, TO, 2), 1);
	for (int i = RELAY_SEND; i <= RELAY_DELIVER; i++) {
		p->steps[i].repeat = 2;
		p->steps[i].seg_step = 1;
	}
	s = only(plan_add(p, FINAL, INPUT, NONE, 0), 0);
	s->count = 2;
	step_after(s, RELAY_SEND, ALL, 0);
}

/* All-reduce of 4: everybody sends all to everybody, in any order, and folds it alone */
enum { FLAT_GATHER, FLAT_SEND, FLAT_STORE, FLAT_OWN, FLAT_FOLD, FLAT_FINAL };

static inline void plan_flat(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "flat", ZCOLL_ALLREDUCE, 4);
	struct zcoll_step *s;

	p->scratch = 3;
	plan_add(p, GATHER, 0, NONE, 0);
	s = plan_add(p, SEND, INPUT | OPEN, ADD, 1);
	s->match = FLAT_STORE;
	s->repeat = 3;
	s->dist_step = 1;
	step_after(s, FLAT_GATHER, SLICE, 0);
	s = plan_add(p, FOLD, STORE | OPEN, ADD, -1);
	s->repeat = 3;
	s->dist_step = -1;
	s->dst = scratch(0);
	s->dst.index_step = 1;
	s = plan_add(p, FOLD, INPUT, NONE, 0);
	s->dst = scratch(0);
	step_after(s, FLAT_GATHER, SLICE, 0);
	step_after(s, FLAT_STORE, ALL, 0);
	s = plan_add(p, FOLD, 0, NONE, 0);
	s->dst = scratch(0);
	s->src = scratch(1);
	s->src.index_step = 1;
	s->repeat = 2;
	step_after(s, FLAT_OWN, SLICE, 0);
	step_after(s, FLAT_FOLD, SLICE, 1);
	s = plan_add(p, FINAL, 0, NONE, 0);
	s->src = scratch(0);
	step_after(s, FLAT_FOLD, TURN, -1);
	step_after(s, FLAT_SEND, ALL, 0);
}

struct right_plan {
	const char *name;
	void (*make)(struct image *image);
};

static const struct right_plan right_plans[] = {
	{ "local", plan_local }, { "ring", plan_ring }, { "doubling", plan_doubling },
	{ "direct", plan_direct }, { "scatter", plan_scatter },
	{ "aggregator", plan_aggregator }, { "middle", plan_middle },
	{ "barrier", plan_barrier }, { "broadcast", plan_broadcast },
	{ "relay", plan_relay }, { "flat", plan_flat },
};

#define NR_RIGHT_PLANS (sizeof(right_plans) / sizeof(right_plans[0]))

/* ---- plans whose check takes much ---- */

/* Time: a barrier of OPEN steps, each iteration of which waits for all of three others */
static inline void plan_slow(struct image *image, uint32_t repeat)
{
	struct zcoll_plan *p = plan_begin(image, "slow", ZCOLL_BARRIER, ZCOLL_PLAN_MAX_NODES);
	struct zcoll_step *s;

	for (int pair = 0; pair < 7; pair++) {
		s = plan_add(p, SEND, OPEN, ADD, 1);
		s->match = p->nsteps;
		s->dist_step = 1;
		for (int i = 1; i <= 3; i++)
			step_after(s, ZCOLL_PLAN_MAX_STEPS - i, ALL, 0);
		plan_add(p, DELIVER, OPEN, ADD, -1)->dist_step = -1;
	}
	for (s = p->steps; s < p->steps + p->nsteps; s++) {
		s->repeat = repeat;
		s->count = 0;
	}
	while (p->nsteps < ZCOLL_PLAN_MAX_STEPS)
		plan_add(p, FINAL, FIRST, NONE, 0)->count = 0;
}

/* Memory: as many vectors of knowledge as may be, some 60 MiB */
static inline void plan_roomy(struct image *image)
{
	struct zcoll_plan *p = plan_begin(image, "roomy", ZCOLL_BARRIER, 1);

	while (p->nsteps < ZCOLL_PLAN_MAX_STEPS) {
		struct zcoll_step *s = plan_add(p, FINAL, FIRST, NONE, 0);

		s->count = 0;
		s->repeat = 14;
	}
}

/* ---- faults ---- */

/*
 * X(what is wrong, plan, node, errno, change); in a change, p is the plan, and S(i) its
 * step i
 */
#define PLAN_FAULTS(X)								\
	/* the header */							\
	X("shorter than a header", local, 0, EINVAL,				\
	  image->bytes = sizeof(*p) - 1, image->sealed = true)			\
	X("a byte more than size", local, 0, EINVAL,				\
	  image_seal(image), image->bytes++, image->sealed = true)		\
	X("size without the last step", local, 0, EINVAL,			\
	  p->size = image->bytes = sizeof(*p), image->sealed = true)		\
	X("more than 1024 steps", local, 0, E2BIG, p->nsteps = 1025)		\
	X("version 2", local, 0, EOPNOTSUPP, p->version = 2)			\
	X("version 0", local, 0, EOPNOTSUPP, p->version = 0)			\
	X("a wrong id", local, 0, EBADMSG,					\
	  image_seal(image), p->id++, image->sealed = true)			\
	X("a byte changed behind the id", local, 0, EBADMSG,			\
	  image_seal(image), S(0)->lo++, image->sealed = true)			\
	X("no collective", local, 0, EINVAL, p->collective = 0)			\
	X("an unknown collective", local, 0, EINVAL,				\
	  p->collective = ZCOLL_NR_COLLECTIVES)					\
	X("unknown flags", local, 0, EINVAL, p->flags = 4)			\
	X("__reserved of the header", local, 0, EINVAL, p->__reserved = 1)	\
	X("no nodes", local, 0, EINVAL, p->nodes = p->members = 0)		\
	X("too many nodes", local, 0, E2BIG, p->nodes = 65537)			\
	X("no members", local, 0, EINVAL, p->members = 0)			\
	X("more members than nodes", local, 0, EINVAL, p->members = 2)		\
	X("no segments", local, 0, EINVAL, p->segments = 0)			\
	X("too many segments", local, 0, E2BIG, p->segments = 65537)		\
	X("too many scratch places", local, 0, E2BIG, p->scratch = 65537)	\
	X("more accumulations than segments", local, 0, EINVAL, p->acc = 2)	\
	X("a name without end", local, 0, EINVAL,				\
	  memset(p->name, 'x', sizeof(p->name)))				\
	X("bytes behind the name's end", local, 0, EINVAL, p->name[31] = 'x', p->name[30] = 0) \
	X("a name with a control character", local, 0, EINVAL, p->name[0] = 27)	\
	X("a name with a blank", local, 0, EINVAL, p->name[1] = ' ')		\
	X("levels whose product is not nodes", ring, 0, EINVAL,			\
	  p->levels[0] = 2)							\
	X("levels whose product wraps", ring, 0, EINVAL,			\
	  p->levels[0] = 1U << 31, p->levels[1] = 1U << 31, p->levels[2] = 4)	\
	X("a level that is not 0 after the last", ring, 0, EINVAL,		\
	  p->levels[0] = 2, p->levels[1] = 2, p->levels[2] = 2)			\
	X("a level after a hole", ring, 0, EINVAL, p->levels[0] = 4, p->levels[2] = 1) \
	X("levels without the first", ring, 0, EINVAL, p->levels[1] = 4)	\
	X("reduce-scatter with other segments than members", scatter, 0, EINVAL, p->segments = 8) \
	X("all-gather with other segments than members", direct, 0, EINVAL, p->segments = 8) \
	X("a barrier with scratch", barrier, 0, EINVAL, p->scratch = 1)		\
	X("a barrier with acc", barrier, 0, EINVAL, p->acc = 1)			\
	X("a barrier of two segments", barrier, 0, EINVAL, p->segments = 2)	\
	X("a barrier that moves elements", barrier, 0, EINVAL,			\
	  S(BAR_S0)->count = S(BAR_R0)->count = 1)				\
	X("no repeat", ring, 0, EINVAL, S(RING_S0)->repeat = 0)			\
	X("too many iterations", ring, 0, E2BIG, S(RING_S0)->repeat = 1 << 20)	\
	X("a length that wraps", ring, 0, E2BIG,				\
	  S(RING_S0)->repeat = S(RING_S0)->count = UINT32_MAX)			\
	/* steps: who */							\
	X("kind 0", ring, 0, EINVAL, S(RING_F1)->kind = 0)			\
	X("an unknown kind", ring, 0, EINVAL, S(RING_F1)->kind = ZCOLL_NR_STEPS) \
	X("an unknown peer rule", ring, 0, EINVAL, S(RING_F1)->peer = 4)	\
	X("a SEND without peer", ring, 0, EINVAL, S(RING_S0)->peer = NONE, S(RING_S0)->dist = 0) \
	X("a DELIVER without peer", direct, 0, EINVAL,				\
	  S(AG_DELIVER)->peer = NONE, S(AG_DELIVER)->dist = S(AG_DELIVER)->dist_step = 0, \
	  S(AG_DELIVER)->of = SELF)						\
	X("a GATHER with peer", doubling, 0, EINVAL, S(RD_GATHER)->peer = ADD)	\
	X("a FINAL with peer", direct, 0, EINVAL, S(AG_FINAL)->peer = ADD)	\
	X("dist without peer", local, 0, EINVAL, S(0)->dist = 1)		\
	X("dist_step without peer", local, 0, EINVAL, S(0)->dist_step = 1)	\
	X("a negative dist of XOR", doubling, 0, EINVAL, S(RD_S0)->dist = -1)	\
	X("dist_step with XOR", doubling, 0, EINVAL, S(RD_S0)->dist_step = 1)	\
	X("a peer that changes without OPEN", ring, 0, EINVAL, S(RING_SEND)->dist_step = 1) \
	X("origin beyond nodes", ring, 0, EINVAL, S(RING_S0)->origin = 4)	\
	X("every 0", ring, 0, EINVAL, S(RING_S0)->every = 0)			\
	X("stride 0", ring, 0, EINVAL, S(RING_S0)->stride = 0)			\
	X("stride above the limit", ring, 0, EINVAL, S(RING_S0)->stride = 65537) \
	X("radix 0", ring, 0, EINVAL, S(RING_S0)->radix = 0)			\
	X("radix above the limit", ring, 0, EINVAL, S(RING_S0)->radix = 65537)	\
	/* steps: what */							\
	X("width 0", ring, 0, EINVAL, S(RING_S0)->width = 0)			\
	X("blocks 0", ring, 0, EINVAL, S(RING_S0)->blocks = 0)			\
	X("blocks beyond segments", ring, 0, EINVAL, S(RING_S0)->blocks = 5)	\
	X("blocks times width wraps", ring, 0, EINVAL,				\
	  S(RING_S0)->blocks = S(RING_S0)->width = 1U << 16)			\
	X("count beyond the blocks", ring, 0, EINVAL,				\
	  S(RING_S0)->count = S(RING_F0)->count = 5)				\
	X("of out of range", ring, 0, EINVAL, S(RING_S0)->of = 3)		\
	X("of a peer that is not there", direct, 0, EINVAL, S(AG_FINAL)->of = PEER) \
	X("__reserved of a step", ring, 0, EINVAL, S(RING_S0)->__reserved = 1)	\
	X("__reserved2 of a step", ring, 0, EINVAL, S(RING_S0)->__reserved2[1] = 1) \
	X("an unknown flag", ring, 0, EINVAL, S(RING_S0)->flags |= 64)		\
	X("FIRST on GATHER", doubling, 0, EINVAL, S(RD_GATHER)->flags = FIRST)	\
	X("FIRST on DELIVER", ring, 0, EINVAL, S(RING_DELIVER)->flags = FIRST)	\
	X("FIRST on a local FOLD", aggregator, 2, EINVAL, S(AGG_FOLD)->flags = FIRST, \
	  memset(&S(AGG_FOLD)->src, 0, sizeof(S(0)->src)))			\
	X("FIRST and INPUT", ring, 0, EINVAL, S(RING_S0)->flags = FIRST | INPUT) \
	X("FIRST and STORE", ring, 0, EINVAL, S(RING_F0)->flags = FIRST | STORE) \
	X("STORE on SEND", ring, 0, EINVAL, S(RING_S0)->flags = STORE)		\
	X("STORE and INPUT from a peer", broadcast, 1, EINVAL, S(BC_STORE)->flags = STORE | INPUT) \
	X("STORE and RESULT", broadcast, 1, EINVAL,				\
	  S(BC_STORE)->flags = STORE | RESULT, memset(&S(BC_STORE)->dst, 0, sizeof(S(0)->dst))) \
	X("RESULT into scratch", doubling, 0, EINVAL, S(RD_F1)->dst = scratch(0)) \
	X("RESULT on a local FOLD", broadcast, 1, EINVAL, S(BC_COPY)->flags = RESULT) \
	X("OPEN on GATHER", doubling, 0, EINVAL, S(RD_GATHER)->flags = OPEN)	\
	X("OPEN at one end", direct, 0, EINVAL, S(AG_SEND)->flags = S(AG_SEND)->dist_step = 0)		\
	X("an OPEN fold without STORE", direct, 0, EINVAL, S(AG_DELIVER)->kind = FOLD) \
	X("an OPEN fold into DATA", direct, 0, EINVAL,				\
	  S(AG_DELIVER)->kind = FOLD, S(AG_DELIVER)->flags |= STORE)		\
	X("an OPEN receiver that waits", direct, 0, EINVAL,			\
	  step_after(S(AG_DELIVER), AG_FINAL, ALL, 0))				\
	X("waiting for one iteration of an OPEN step", direct, 0, EINVAL,	\
	  step_after(S(AG_FINAL), AG_DELIVER, TURN, 0))				\
	/* steps: where */							\
	X("an unknown space", doubling, 0, EINVAL, S(RD_S1)->src.space = 2)	\
	X("of on DATA", doubling, 0, EINVAL, S(RD_S0)->src.of = SELF)		\
	X("index on DATA", doubling, 0, EINVAL, S(RD_S0)->src.index = 1)	\
	X("index_step on DATA", doubling, 0, EINVAL, S(RD_S0)->src.index_step = 1) \
	X("of out of range on scratch", doubling, 0, EINVAL, S(RD_S1)->src.of = 3) \
	X("__reserved of a place", doubling, 0, EINVAL, S(RD_S1)->src.__reserved = 1) \
	X("a place of a peer that is not there", broadcast, 1, EINVAL, S(BC_COPY)->src.of = PEER) \
	X("scratch where there is none", doubling, 0, EINVAL, p->scratch = 0)	\
	X("scratch for two segments", doubling, 0, EINVAL,			\
	  p->segments = 2, S(RD_S1)->blocks = S(RD_F1)->blocks = 2,		\
	  S(RD_S1)->count = S(RD_F1)->count = 2)				\
	X("dst on SEND", doubling, 0, EINVAL, S(RD_S1)->dst = scratch(0))	\
	X("dst on FINAL", broadcast, 1, EINVAL, S(BC_FINAL)->dst = scratch(0))	\
	X("src on GATHER", doubling, 0, EINVAL, S(RD_GATHER)->src = scratch(0))	\
	X("src on DELIVER", aggregator, 0, EINVAL, S(AGG_DELIVER0)->src = scratch(0)) \
	X("src with FIRST", aggregator, 0, EINVAL, S(AGG_S)->src = scratch(0))	\
	X("src with STORE from a peer", aggregator, 2, EINVAL, S(AGG_F0)->src = scratch(1)) \
	X("INPUT from scratch", doubling, 0, EINVAL, S(RD_S1)->flags = INPUT)	\
	X("INPUT on a local fold of scratch", aggregator, 2, EINVAL, S(AGG_FOLD)->flags = INPUT) \
	X("INPUT on a local STORE of scratch", broadcast, 1, EINVAL,		\
	  S(BC_COPY)->flags = STORE | INPUT)					\
	X("a local fold of DATA with itself", broadcast, 1, EINVAL,		\
	  memset(&S(BC_COPY)->src, 0, sizeof(S(0)->src)))			\
	/* steps: links */							\
	X("match on FOLD", ring, 0, EINVAL, S(RING_F0)->match = 1)		\
	X("match that is no step", ring, 0, EINVAL, S(RING_S0)->match = 8)	\
	X("match that does not receive", ring, 0, EINVAL, S(RING_S0)->match = RING_SEND) \
	X("match that is local", doubling, 0, EINVAL, S(RD_S0)->match = RD_GATHER) \
	X("match with another repeat", ring, 0, EINVAL, S(RING_F0)->repeat = 2)	\
	X("match with another count", ring, 0, EINVAL, S(RING_F0)->count = 2)	\
	X("after with an unknown mode", ring, 0, EINVAL, S(RING_S1)->after[0].mode = 4) \
	X("after with __reserved", ring, 0, EINVAL, S(RING_S1)->after[0].__reserved = 1) \
	X("after that is no step", ring, 0, EINVAL, S(RING_S1)->after[0].step = 8) \
	X("AFTER_ALL with shift", ring, 0, EINVAL, S(RING_S1)->after[0].shift = 1) \
	X("AFTER_NONE with step", ring, 0, EINVAL, S(RING_S1)->after[2].step = 1) \
	X("AFTER_NONE with shift", ring, 0, EINVAL, S(RING_S1)->after[2].shift = 1) \
	/* at a node: who */							\
	X("a peer that is the node itself", ring, 0, EHOSTUNREACH, S(RING_S0)->dist = 4) \
	X("a digit beyond the radix", doubling, 0, EHOSTUNREACH, S(RD_S0)->dist = 4) \
	X("an absolute digit that is negative", aggregator, 0, EHOSTUNREACH, S(AGG_S)->dist = -1) \
	X("a peer beyond the nodes", ring, 3, EHOSTUNREACH, S(RING_S0)->radix = 5) \
	X("a SEND to who expects another", ring, 0, ENOLINK, S(RING_S0)->dist = 2) \
	X("a SEND to who takes no part", aggregator, 0, ENOLINK, only(S(AGG_F0), 1)) \
	X("a SEND of other segments than expected", ring, 0, ENOLINK, S(RING_F0)->seg = -2) \
	X("a receiver from who sends elsewhere", relay, 1, ENOLINK, S(RELAY_PASS)->dist = 0) \
	X("a receiver from who takes no part", relay, 1, ENOLINK, S(RELAY_DELIVER)->dist = 0) \
	X("a receiver of other segments than sent", relay, 2, ENOLINK, S(RELAY_STORE)->seg = 1) \
	X("a receiver with two SENDs", direct, 0, ENOLINK,			\
	  p->steps[p->nsteps++] = *S(AG_SEND))					\
	X("two OPEN iterations to the same peer", direct, 0, ENOTUNIQ,		\
	  S(AG_SEND)->dist_step = S(AG_DELIVER)->dist_step = 0)			\
	/* at a node: where */							\
	X("segments beyond the last", ring, 3, ERANGE,				\
	  S(RING_S0)->blocks = S(RING_F0)->blocks = 3)				\
	X("a scratch place beyond the last", aggregator, 2, ERANGE, S(AGG_F0)->dst.index = 2) \
	X("a scratch place below the first", aggregator, 2, ERANGE, S(AGG_F0)->dst.index = -1) \
	X("a scratch place beyond, by the peer's digit", aggregator, 2, ERANGE, p->scratch = 1) \
	/* at a node: order */							\
	X("a slice of other segments", relay, 2, EDOM,				\
	  step_after(S(RELAY_PASS), RELAY_STORE, SLICE, 1))			\
	X("two steps that wait for each other", ring, 0, ELOOP,			\
	  step_after(S(RING_F0), RING_S1, ALL, 0))				\
	X("a step that waits for itself", ring, 0, ELOOP,			\
	  step_after(S(RING_F0), RING_F0, TURN, 0))				\
	X("iterations that wait for later ones", relay, 2, ELOOP,		\
	  step_after(S(RELAY_STORE), RELAY_STORE, TURN, -1))			\
	X("a result that overwrites what is being sent", doubling, 0, EILSEQ,	\
	  memset(&S(RD_F1)->after[1], 0, sizeof(S(0)->after[1])))		\
	X("a SEND that does not wait for its value", doubling, 0, EILSEQ,	\
	  memset(&S(RD_S1)->after[0], 0, sizeof(S(0)->after[0])))		\
	X("iterations of a fold that do not wait for each other", flat, 0, EILSEQ, \
	  memset(&S(FLAT_FOLD)->after[1], 0, sizeof(S(0)->after[1])))		\
	X("a delivery that does not wait for a SEND", ring, 0, EILSEQ,		\
	  memset(&S(RING_DELIVER)->after[0], 0, sizeof(S(0)->after[0])))	\
	X("OPEN iterations into the same place", flat, 0, EILSEQ, S(FLAT_STORE)->dst.index_step = 0) \
	X("slices that follow others only as slices of one iteration", relay, 0, EILSEQ, \
	  S(RELAY_FINAL)->after[0].mode = TURN, S(RELAY_FINAL)->after[0].shift = 1) \
	/* at a node: what is there */						\
	X("local inputs sent after they were folded", ring, 0, EALREADY, S(RING_S1)->flags = FIRST) \
	X("local inputs used twice", local, 0, EALREADY,			\
	  step_after(plan_add(p, GATHER, 0, NONE, 0), 0, ALL, 0))		\
	X("a scratch place folded with itself", aggregator, 2, EALREADY,	\
	  S(AGG_FOLD)->src.index = 0)						\
	X("local inputs where there are none", aggregator, 2, ENODATA, S(AGG_F0)->flags = FIRST) \
	X("DATA that nothing was folded into", aggregator, 2, ENODATA,		\
	  memset(&S(AGG_SEND0)->src, 0, sizeof(S(0)->src)))			\
	X("scratch that nothing was put into", aggregator, 2, ENODATA,		\
	  p->scratch = 3, S(AGG_SEND0)->src.index = 2)				\
	X("a local fold into scratch that is empty", aggregator, 2, ENODATA,	\
	  p->scratch = 3, S(AGG_FOLD)->dst.index = 2)				\
	X("a local fold into DATA that is only gathered", flat, 0, ENODATA, S(FLAT_FINAL)->kind = FOLD) \
	X("a gathered segment without INPUT", doubling, 0, ENODATA, S(RD_S0)->flags = 0) \
	X("INPUT after others were folded in", scatter, 0, ENODATA, S(RS_F1)->flags = INPUT) \
	X("local inputs that nothing reads", local, 0, ENODATA, S(0)->first = 1) \
	X("local inputs that a delivery overwrites", aggregator, 0, ENODATA,	\
	  S(AGG_S)->flags = S(AGG_S)->count = S(AGG_F0)->count = 0,		\
	  memset(&S(AGG_F0)->dst, 0, sizeof(S(0)->dst)))			\
	X("a final segment made final again", local, 0, EROFS,			\
	  step_after(plan_add(p, FINAL, 0, NONE, 0), 0, ALL, 0))		\
	X("a final segment folded into", broadcast, 1, EROFS,			\
	  p->steps[p->nsteps++] = *S(BC_COPY), step_after(S(BC_FINAL + 1), BC_FINAL, ALL, 0)) \
	X("two accumulations of an iteration in one place", middle, 2, EXFULL, p->acc = 3) \
	X("an accumulation without a place", middle, 2, EXFULL, p->acc = 0)	\
	X("an accumulation replaced by another", relay, 2, EXFULL, p->acc = 1,	\
	  step_after(S(RELAY_STORE), RELAY_STORE, TURN, 1),			\
	  S(RELAY_PASS)->after[0].mode = ALL)					\
	X("a final segment without output", relay, 2, EMEDIUMTYPE,		\
	  S(RELAY_STORE)->kind = DELIVER, S(RELAY_STORE)->flags = 0)		\
	X("an output never made final", scatter, 0, ENOMSG, S(RS_FINAL)->first = 4)

#define S(i) (&p->steps[i])

struct plan_fault {
	const char *what;
	uint32_t node;
	int err;
};

/* Make fault @n of the table. Return: false: there are no more. */
static inline bool plan_spoil(struct image *image, unsigned int n, struct plan_fault *fault)
{
	struct zcoll_plan *p = image->plan;
	unsigned int i = 0;

#define X(what, base, node, err, ...)						\
	if (i++ == n) {								\
		*fault = (struct plan_fault){ what, node, err };		\
		plan_##base(image);						\
		__VA_ARGS__;							\
		image_seal(image);						\
		return true;							\
	}
	PLAN_FAULTS(X)
#undef X
	return false;
}

#endif /* TEST_PLANS_H */
