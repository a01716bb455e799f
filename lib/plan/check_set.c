// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Sets of small numbers, kept once each; see check_set.h.
 */
#include <stdlib.h>

#include "check_set.h"

static u64 *set_of(const struct zc_sets *sets, u32 id)
{
	return sets->pool + (size_t)id * sets->words;
}

static u32 set_hash(const struct zc_sets *sets, const u64 *set)
{
	u64 hash = 0;
	u32 i;

	for (i = 0; i < sets->words; i++) {
		hash = (hash ^ set[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
	}
	return hash >> 16;
}

static int sets_grow(struct zc_sets *sets)
{
	u32 room = sets->room ? 2 * sets->room : 64, i, at;
	u64 *pool = realloc(sets->pool, (size_t)room * sets->words * sizeof(*pool));
	u32 *index;

	if (!pool)
		return -ENOMEM;
	sets->pool = pool;
	index = malloc(2 * (size_t)room * sizeof(*index));
	if (!index)
		return -ENOMEM;
	free(sets->index);
	sets->index = index;
	sets->room = room;
	sets->mask = 2 * room - 1;
	memset(index, 0xff, 2 * (size_t)room * sizeof(*index));
	for (i = 0; i < sets->count; i++) {
		at = set_hash(sets, set_of(sets, i)) & sets->mask;
		while (index[at] != ZC_SET_NONE)
			at = (at + 1) & sets->mask;
		index[at] = i;
	}
	return 0;
}

/* The id of the set in @sets->work */
static u32 set_keep(struct zc_sets *sets)
{
	const size_t bytes = sets->words * sizeof(u64);
	u32 at;

	if (sets->count == sets->room && sets_grow(sets))
		return ZC_SET_NONE;
	at = set_hash(sets, sets->work) & sets->mask;
	while (sets->index[at] != ZC_SET_NONE) {
		if (!memcmp(set_of(sets, sets->index[at]), sets->work, bytes))
			return sets->index[at];
		at = (at + 1) & sets->mask;
	}
	memcpy(set_of(sets, sets->count), sets->work, bytes);
	return sets->index[at] = sets->count++;
}

/* Add the numbers from .. from + n - 1 of a set, moved so that @from becomes @to */
static void set_or(u64 *into, u32 to, const u64 *set, u32 from, u32 n)
{
	while (n) {
		u32 step = 64 - (to % 64 > from % 64 ? to % 64 : from % 64);
		u64 bits = set[from / 64] >> from % 64;

		if (step > n)
			step = n;
		if (step < 64)
			bits &= (1ULL << step) - 1;
		into[to / 64] |= bits << to % 64;
		from += step;
		to += step;
		n -= step;
	}
}

static void set_turn(struct zc_sets *sets, u32 id, u32 turn)
{
	turn %= sets->bits;
	memset(sets->work, 0, sets->words * sizeof(u64));
	set_or(sets->work, turn, set_of(sets, id), 0, sets->bits - turn);
	set_or(sets->work, 0, set_of(sets, id), sets->bits - turn, turn);
}

/* The least number in the set in @sets->work */
static u32 set_least(const struct zc_sets *sets)
{
	u32 i;

	for (i = 0; i < sets->words; i++)
		if (sets->work[i])
			return i * 64 + __builtin_ctzll(sets->work[i]);
	return ZC_SET_NONE;
}

/**
 * zc_sets_init - make a store of sets
 * @sets: store
 * @bits: all numbers are below this, which is not 0
 *
 * Return: 0 or -ENOMEM; zc_sets_free() may follow in any case.
 */
int zc_sets_init(struct zc_sets *sets, u32 bits)
{
	*sets = (struct zc_sets) { .bits = bits, .words = (bits - 1) / 64 + 1 };
	sets->work = calloc(sets->words, sizeof(u64));
	if (!sets->work)
		return -ENOMEM;
	return set_keep(sets) == ZC_SET_EMPTY ? 0 : -ENOMEM;
}

void zc_sets_free(struct zc_sets *sets)
{
	free(sets->pool);
	free(sets->index);
	free(sets->work);
}

/* The set of all numbers below @n */
u32 zc_sets_first(struct zc_sets *sets, u32 n)
{
	u32 i;

	memset(sets->work, 0, sets->words * sizeof(u64));
	for (i = 0; i < n; i++)
		sets->work[i / 64] |= 1ULL << i % 64;
	return set_keep(sets);
}

/* A set and one number more */
u32 zc_sets_add(struct zc_sets *sets, u32 a, u32 number)
{
	if (set_of(sets, a)[number / 64] >> number % 64 & 1)
		return a;
	memcpy(sets->work, set_of(sets, a), sets->words * sizeof(u64));
	sets->work[number / 64] |= 1ULL << number % 64;
	return set_keep(sets);
}

/* a and b, b taken turned by @turn */
u32 zc_sets_union(struct zc_sets *sets, u32 a, u32 b, u32 turn)
{
	u32 i;

	if (b == ZC_SET_EMPTY || (a == b && !turn))
		return a;
	set_turn(sets, b, turn);
	for (i = 0; i < sets->words; i++)
		sets->work[i] |= set_of(sets, a)[i];
	return set_keep(sets);
}

/* The least number in both a and b, b taken turned; ZC_SET_NONE: there is none */
u32 zc_sets_common(struct zc_sets *sets, u32 a, u32 b, u32 turn)
{
	u32 i;

	set_turn(sets, b, turn);
	for (i = 0; i < sets->words; i++)
		sets->work[i] &= set_of(sets, a)[i];
	return set_least(sets);
}

/* The least number that is in b and not in a; ZC_SET_NONE: there is none */
u32 zc_sets_lacks(const struct zc_sets *sets, u32 a, u32 b)
{
	u32 i;

	for (i = 0; i < sets->words; i++) {
		u64 lacks = set_of(sets, b)[i] & ~set_of(sets, a)[i];

		if (lacks)
			return i * 64 + __builtin_ctzll(lacks);
	}
	return ZC_SET_NONE;
}

/* The least number of a set, taken turned */
u32 zc_sets_least(struct zc_sets *sets, u32 a, u32 turn)
{
	set_turn(sets, a, turn);
	return set_least(sets);
}
