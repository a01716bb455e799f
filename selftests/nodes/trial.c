// SPDX-License-Identifier: GPL-2.0
/*
 * Trials of trial.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "oracle.h"
#include "trial.h"

#define GUARD	192
#define PAINT	0xc5	/* what is not written must be afterwards */

const struct memory memories[MEMORIES] = {
	{ .name = "not registered" },
	{ .name = "registered", .send_registered = true, .recv_registered = true },
	{ .name = "unaligned", .send_shift = 1, .recv_shift = 3 },
	{ .name = "in place", .in_place = true },
	{ .name = "registered and unaligned", .send_shift = 6, .recv_shift = 61,
	  .send_registered = true, .recv_registered = true },
	{ .name = "registered, in place", .in_place = true, .recv_registered = true },
	{ .name = "unaligned, in place", .in_place = true, .recv_shift = 7 },
	{ .name = "input registered", .send_registered = true, .recv_shift = 2 },
	{ .name = "output registered", .recv_registered = true, .send_shift = 5 },
	{ .name = "of zcoll_alloc", .alloc = true },
	{ .name = "registered and unaligned, in place", .in_place = true, .recv_shift = 13,
	  .recv_registered = true },
};

bool reduces(uint32_t collective)
{
	return collective == ZCOLL_ALLREDUCE || collective == ZCOLL_REDUCE_SCATTER ||
	       collective == ZCOLL_REDUCE;
}

bool has_root(uint32_t collective)
{
	return collective == ZCOLL_BROADCAST || collective == ZCOLL_REDUCE;
}

void trial_name(const struct trial *t, char *name, size_t len)
{
	int n = snprintf(name, len, "%s", zcoll_collective_name(t->collective));

	if (t->collective == ZCOLL_BARRIER)
		return;
	n += snprintf(name + n, len - n, " %s%s%s, %llu elements, %s", zcoll_dtype_name(t->dtype),
		      t->op ? " " : "", t->op ? zcoll_op_name(t->op) : "",
		      (unsigned long long)t->count, t->memory->name);
	if (has_root(t->collective))
		snprintf(name + n, len - n, ", root %u", t->root);
}

/* -------------------------------------------------------------------- shapes */

static uint64_t inputs(const struct trial *t, unsigned int nranks, unsigned int rank)
{
	switch (t->collective) {
	case ZCOLL_REDUCE_SCATTER:
		return t->count * nranks;
	case ZCOLL_BROADCAST:
		return rank == t->root ? t->count : 0;
	case ZCOLL_BARRIER:
		return 0;
	default:
		return t->count;
	}
}

static uint64_t outputs(const struct trial *t, unsigned int nranks, unsigned int rank)
{
	switch (t->collective) {
	case ZCOLL_ALLGATHER:
		return t->count * nranks;
	case ZCOLL_REDUCE:
		return rank == t->root ? t->count : 0;
	case ZCOLL_BARRIER:
		return 0;
	default:
		return t->count;
	}
}

/* -------------------------------------------------------------------- values */

/* A finalizer of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators, OOPSLA 2014)
 */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* Both signs, any mantissa, and magnitudes that differ a little: sums and products round */
static uint64_t floating(uint64_t random, unsigned int mantissa, unsigned int exponent)
{
	enum { ZERO, INFINITE, NOT_A_NUMBER };
	uint64_t bias = (1ULL << (exponent - 1)) - 1, sign = random >> 63;
	uint64_t fraction = random & ((1ULL << mantissa) - 1);
	uint64_t e = bias + (random >> 56) % 7 - 3;

	switch ((random >> 52) % 97) {
	case ZERO:
		return sign << (mantissa + exponent);
	case INFINITE:
		return ((sign << exponent) + 2 * bias + 1) << mantissa;
	case NOT_A_NUMBER:
		return ((2 * bias + 1) << mantissa) | fraction | 1;
	}
	return ((sign << exponent) + e) << mantissa | fraction;
}

static int32_t small_value(const struct trial *t, unsigned int rank, uint64_t i)
{
	return (int32_t)((i * 7 + rank * 13 + t->seed) & 127) - 50;
}

static void write_small(const struct trial *t, void *to, uint64_t i, int32_t value)
{
	if (t->dtype == ZCOLL_FP32)
		((float *)to)[i] = value;
	else
		((int32_t *)to)[i] = value;
}

/* The input of @rank, in memory that is aligned */
static void fill(const struct trial *t, unsigned int rank, void *to, uint64_t count)
{
	uint64_t i, random;

	if (t->small) {
		for (i = 0; i < count; i++)
			write_small(t, to, i, small_value(t, rank, i));
		return;
	}
	for (i = 0; i < count; i++) {
		random = mix(t->seed + mix(rank) + i);
		switch (t->dtype) {
		case ZCOLL_FP64:
			((uint64_t *)to)[i] = floating(random, 52, 11);
			break;
		case ZCOLL_FP32:
			((uint32_t *)to)[i] = floating(random, 23, 8);
			break;
		case ZCOLL_BF16:
			((uint16_t *)to)[i] = floating(random, 7, 8);
			break;
		case ZCOLL_FP16:
			((uint16_t *)to)[i] = floating(random, 10, 5);
			break;
		default:
			memcpy((uint8_t *)to + i * zcoll_dtype_size(t->dtype), &random,
			       zcoll_dtype_size(t->dtype));
		}
	}
}

/* What rank @rank must get of small integers */
static void expect_small(const struct trial *t, unsigned int nranks, unsigned int rank, void *to)
{
	uint64_t i, count = outputs(t, nranks, rank);
	unsigned int r;
	int32_t sum;

	for (i = 0; i < count; i++) {
		if (t->collective == ZCOLL_ALLGATHER) {
			sum = small_value(t, i / t->count, i % t->count);
		} else if (t->collective == ZCOLL_BROADCAST) {
			sum = small_value(t, t->root, i);
		} else {
			uint64_t at = t->collective == ZCOLL_REDUCE_SCATTER ?
					      rank * t->count + i : i;

			for (sum = 0, r = 0; r < nranks; r++)
				sum += small_value(t, r, at);
		}
		write_small(t, to, i, sum);
	}
}

/* -------------------------------------------------------------- in the keeper */

/**
 * trial_expect - find out what must come out, for the ranks of this machine
 * @t: the trial, not @small
 * @team: the team
 * @plan: by which it is done
 * @map: node of each rank in that plan: the team's, or NULL for the order of one node
 *
 * Return: NULL, or what the oracle says is wrong.
 */
const char *trial_expect(struct trial *t, const struct team *team,
			 const struct zcoll_plan *plan, const uint32_t *map)
{
	size_t size = zcoll_dtype_size(t->dtype);
	struct oracle oracle = {
		.plan = plan, .dtype = t->dtype, .op = t->op, .root = t->root,
		.nranks = team->nranks, .count = t->count, .map = map,
	};
	void *in[TEAM_MEMBERS] = { 0 };
	const char *what;
	unsigned int r;

	for (r = 0; r < team->nranks; r++) {
		in[r] = calloc(inputs(t, team->nranks, r) + 1, size);
		fill(t, r, in[r], inputs(t, team->nranks, r));
		if (team_here(team, r) && outputs(t, team->nranks, r))
			t->want[r] = calloc(outputs(t, team->nranks, r), size);
	}
	what = oracle_run(&oracle, (const void *const *)in, t->want);
	for (r = 0; r < team->nranks; r++)
		free(in[r]);
	return what;
}

void trial_forget(struct trial *t)
{
	unsigned int r;

	for (r = 0; r < TEAM_MEMBERS; r++) {
		free(t->want[r]);
		t->want[r] = NULL;
	}
}

/* -------------------------------------------------------------------- areas */

static bool area_make(struct area *a, struct member *me, size_t len, unsigned int shift,
		      bool registered, bool alloc)
{
	int ret = 0;

	*a = (struct area){ .len = len, .alloc = alloc, .room = len + shift + 2 * GUARD };
	a->base = alloc ? zcoll_alloc(me->comm, a->room) :
			  mmap(NULL, a->room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
	if (!a->base || a->base == MAP_FAILED) {
		wrong(me, "no memory of %zu bytes", a->room);
		return false;
	}
	a->at = a->base + GUARD + shift;
	memset(a->base, PAINT, a->room);
	if (registered)
		ret = zcoll_register(me->comm, a->base, a->room);
	if (ret)
		wrong(me, "zcoll_register: %d", ret);
	a->registered = registered && !ret;
	return !ret;
}

static void area_free(struct area *a, struct member *me)
{
	if (!a->base)
		return;
	if (a->registered)
		zcoll_unregister(me->comm, a->base);
	if (a->alloc)
		zcoll_free(me->comm, a->base);
	else
		munmap(a->base, a->room);
	a->base = NULL;
}

static bool is_painted(const uint8_t *p, size_t n)
{
	return !n || (p[0] == PAINT && !memcmp(p, p + 1, n - 1));
}

/* ---------------------------------------------------------------- in a rank */

/* Where the rank's own input lies in the only buffer, and where its output */
static size_t own_offset(const struct attempt *a, uint32_t collective)
{
	return a->trial->collective == collective ?
		       a->me->number * a->trial->count * zcoll_dtype_size(a->trial->dtype) : 0;
}

/* An input lies at any address, is made at an aligned one */
static void put_input(const struct attempt *a, uint8_t *to, uint64_t count)
{
	size_t bytes = count * zcoll_dtype_size(a->trial->dtype);
	void *made = malloc(bytes + 1);

	fill(a->trial, a->me->number, made, count);
	memcpy(to, made, bytes);
	free(made);
}

/**
 * attempt_begin - make the buffers of a trial, and its call
 * @a: output
 * @me: this rank
 * @t: the trial
 *
 * Return: it can be called.
 */
bool attempt_begin(struct attempt *a, struct member *me, const struct trial *t)
{
	size_t size = t->dtype ? zcoll_dtype_size(t->dtype) : 0;
	uint64_t in = inputs(t, me->team->nranks, me->number);
	uint64_t out = outputs(t, me->team->nranks, me->number);
	const struct memory *m = t->memory;
	bool in_place = m->in_place && in && out;

	*a = (struct attempt){ .me = me, .trial = t };
	a->call = (struct zcoll_call){
		.size = sizeof(a->call), .collective = t->collective, .dtype = t->dtype,
		.op = t->op, .flags = t->flags, .root = t->root, .count = t->count,
	};
	if (in && !in_place) {
		if (!area_make(&a->send, me, in * size, m->send_shift, m->send_registered,
			       m->alloc))
			return false;
		put_input(a, a->send.at, in);
		a->call.send = a->send.at;
	}
	if (out) {
		if (!area_make(&a->recv, me, (in_place && in > out ? in : out) * size,
			       m->recv_shift, m->recv_registered, m->alloc))
			return false;
		a->call.recv = a->recv.at + (in_place ? own_offset(a, ZCOLL_REDUCE_SCATTER) : 0);
	}
	if (in_place) {
		a->call.send = a->recv.at + own_offset(a, ZCOLL_ALLGATHER);
		put_input(a, a->recv.at + own_offset(a, ZCOLL_ALLGATHER), in);
	}
	return true;
}

static void compare(const struct attempt *a, const char *what, const uint8_t *got,
		    const uint8_t *want, size_t bytes)
{
	size_t size = zcoll_dtype_size(a->trial->dtype), i, bad = 0;
	char name[128], is[20] = "", be[20] = "";

	if (!memcmp(got, want, bytes))
		return;
	for (i = 0; !memcmp(got + i, want + i, size); )
		i += size;
	for (size_t j = i; j < bytes; j += size)
		bad += !!memcmp(got + j, want + j, size);
	for (size_t k = 0; k < size; k++) {
		sprintf(is + 2 * k, "%02x", got[i + size - 1 - k]);
		sprintf(be + 2 * k, "%02x", want[i + size - 1 - k]);
	}
	trial_name(a->trial, name, sizeof(name));
	wrong(a->me, "%s: %s element %zu is %s, not %s (%zu wrong)", name, what, i / size, is, be,
	      bad);
}

static void check_guards(const struct attempt *a, const struct area *area, const char *what)
{
	const uint8_t *end = area->base + area->room;
	char name[128];

	if (!area->base)
		return;
	trial_name(a->trial, name, sizeof(name));
	if (!is_painted(area->base, area->at - area->base))
		wrong(a->me, "%s: written before the %s", name, what);
	if (!is_painted(area->at + area->len, end - area->at - area->len))
		wrong(a->me, "%s: written behind the %s", name, what);
}

/* What is in the only buffer, and is no output, is as it was */
static void check_input(const struct attempt *a)
{
	uint64_t in = inputs(a->trial, a->me->team->nranks, a->me->number);
	size_t bytes, block;
	const uint8_t *at;
	uint8_t *made;

	if (!in)
		return;
	bytes = in * zcoll_dtype_size(a->trial->dtype);
	made = malloc(bytes);
	fill(a->trial, a->me->number, made, in);
	if (a->send.base) {
		compare(a, "input", a->send.at, made, bytes);
	} else if (a->trial->collective == ZCOLL_REDUCE_SCATTER) {
		at = a->recv.at;
		block = bytes / a->me->team->nranks;
		compare(a, "input", at, made, a->me->number * block);
		at += (a->me->number + 1) * block;
		compare(a, "input behind", at, made + (at - a->recv.at),
			bytes - (at - a->recv.at));
	}
	free(made);
}

static void check_output(const struct attempt *a)
{
	const struct trial *t = a->trial;
	uint64_t out = outputs(t, a->me->team->nranks, a->me->number);
	size_t bytes = t->dtype ? out * zcoll_dtype_size(t->dtype) : 0;
	void *made = NULL;

	if (!out)
		return;
	if (t->small) {
		made = malloc(bytes);
		expect_small(t, a->me->team->nranks, a->me->number, made);
	}
	compare(a, "output", a->call.recv, made ? made : t->want[a->me->number], bytes);
	free(made);
}

/**
 * attempt_end - check what came out, and free the buffers
 * @a: the attempt
 * @result: of the operation
 */
void attempt_end(struct attempt *a, int result)
{
	char name[128], text[ZCOLL_TEXT_MAX] = "";

	if (result) {
		trial_name(a->trial, name, sizeof(name));
		zcoll_comm_error(a->me->comm, text, sizeof(text));
		wrong(a->me, "%s: %d: %s", name, result, text);
	} else {
		check_output(a);
		check_input(a);
	}
	check_guards(a, &a->send, "input");
	check_guards(a, &a->recv, "output");
	area_free(&a->send, a->me);
	area_free(&a->recv, a->me);
}

/**
 * trial_run - do it in a blocking call
 * @me: this rank
 * @t: the trial
 *
 * Return: the operation has succeeded, so that others can follow; what came out may be wrong.
 */
bool trial_run(struct member *me, const struct trial *t)
{
	struct attempt a;
	char name[128];
	int ret;

	trial_name(t, name, sizeof(name));
	doing(me, "%s", name);
	if (!attempt_begin(&a, me, t))
		return false;
	ret = zcoll_call(me->comm, &a.call);
	attempt_end(&a, ret);
	return !ret;
}
