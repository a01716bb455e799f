/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Time in the tests of several nodes.
 *
 * Limits are made for an emulated processor that is shared; ZCOLL_TIME_SCALE, a whole
 * number, makes them longer on a machine that is slower still.
 */
#ifndef NODES_WHEN_H
#define NODES_WHEN_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static inline unsigned int time_scale(void)
{
	const char *value = getenv("ZCOLL_TIME_SCALE");
	unsigned int scale = value ? strtoul(value, NULL, 10) : 1;

	return scale ? scale : 1;
}

#endif /* NODES_WHEN_H */
