// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Progress of long work on a terminal; see progress.h.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

#define SILENT_NS	1000000000ULL
#define REWRITE_NS	250000000ULL
#define ERASE_LINE	"\r\033[K"

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

void progress_start(struct progress *p, bool on)
{
	p->on = on && isatty(STDERR_FILENO);
	p->shown = false;
	p->start_ns = now_ns();
	p->next_ns = p->start_ns + SILENT_NS;
}

void progress_update(struct progress *p, const char *what, uint64_t done,
		     uint64_t total, bool bytes)
{
	uint64_t now;
	double seconds;

	if (!p->on || (bytes && !total))
		return;
	now = now_ns();
	if (now < p->next_ns)
		return;
	p->next_ns = now + REWRITE_NS;
	p->shown = true;
	seconds = (double)(now - p->start_ns) / 1e9;
	if (bytes)
		fprintf(stderr, ERASE_LINE "%s: %.0f %% of %.0f MiB, %.0f MB/s", what,
			100.0 * (double)done / (double)total, (double)total / 0x1p20,
			(double)done / 1e6 / seconds);
	else if (total)
		fprintf(stderr, ERASE_LINE "%s: %llu of %llu, %.0f s", what,
			(unsigned long long)done, (unsigned long long)total, seconds);
	else
		fprintf(stderr, ERASE_LINE "%s: %llu, %.0f s", what, (unsigned long long)done,
			seconds);
	fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->shown)
		fputs(ERASE_LINE, stderr);
	progress_start(p, p->on);
}
