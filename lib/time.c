// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Time-outs in ns, as points on the monotonic clock; ZCOLL_WAIT_FOREVER is none.
 */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "internal.h"

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* The time @ns from now */
uint64_t zc_after(uint64_t ns)
{
	uint64_t now = now_ns();

	return ns < ZCOLL_WAIT_FOREVER - now ? now + ns : ZCOLL_WAIT_FOREVER;
}

/* What is left until @end */
uint64_t zc_left(uint64_t end)
{
	uint64_t now;

	if (end == ZCOLL_WAIT_FOREVER)
		return end;
	now = now_ns();
	return now < end ? end - now : 0;
}

void zc_sleep(uint64_t ns)
{
	struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	nanosleep(&ts, NULL);
}

/* Wait for files; how many of them have something, 0: the time is over, or a negative errno */
int zc_poll(struct pollfd *fds, unsigned int n, uint64_t end)
{
	struct timespec ts;
	uint64_t left;
	int ret;

	do {
		left = zc_left(end);
		ts.tv_sec = left / 1000000000;
		ts.tv_nsec = left % 1000000000;
		ret = ppoll(fds, n, end == ZCOLL_WAIT_FOREVER ? NULL : &ts, NULL);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret;
}
