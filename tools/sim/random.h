/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Random numbers that are the same on every machine: splitmix64 (Steele, Lea, Flood:
 * "Fast splittable pseudorandom number generators", OOPSLA 2014).
 */
#ifndef ZCOLL_SIM_RANDOM_H
#define ZCOLL_SIM_RANDOM_H

#include "types.h"

static inline u64 random_mix(u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static inline u64 random_next(u64 *state)
{
	*state += 0x9e3779b97f4a7c15ULL;
	return random_mix(*state);
}

/* 0 .. below - 1; 0 if @below is */
static inline u64 random_below(u64 *state, u64 below)
{
	u64 x = random_next(state);

	return below ? x % below : 0;
}

static inline u64 random_range(u64 *state, u64 least, u64 most)
{
	return least + random_below(state, most - least + 1);
}

/* True so many times in a million */
static inline bool random_chance(u64 *state, u32 ppm)
{
	return random_next(state) % 1000000 < ppm;
}

#endif /* ZCOLL_SIM_RANDOM_H */
