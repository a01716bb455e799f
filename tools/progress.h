/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Progress of long work: one line on the terminal, rewritten in place, from the
 * second second on. Nothing at all if standard error is not a terminal, or for
 * ranks other than 0.
 */
#ifndef ZCOLL_PROGRESS_H
#define ZCOLL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool on;	/* this process shows progress */
	bool shown;	/* there is a line to wipe */
	uint64_t start_ns;
	uint64_t next_ns;	/* when to rewrite the line */
};

void progress_start(struct progress *p, bool on);

/*
 * @what: text before the figures; @done of @total, in bytes if @bytes, else as counts, where
 * a @total of 0 means that nobody knows it
 */
void progress_update(struct progress *p, const char *what, uint64_t done,
		     uint64_t total, bool bytes);

/* Wipes the line; the next update starts the second anew */
void progress_end(struct progress *p);

uint64_t now_ns(void);

#endif /* ZCOLL_PROGRESS_H */
