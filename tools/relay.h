/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Relay: the output of many ranks, line by line, each line with its rank before it.
 *
 * A *source* is the pipe that one rank writes standard output or standard error
 * into. Its bytes are collected up to the newline, and leave as a whole line, so
 * lines of different ranks never mix. A line longer than RELAY_LINE_MAX leaves in
 * pieces of that size. The last line may lack its newline; it gets one.
 *
 * The relay never blocks, so that a reader who does not read cannot keep the
 * launcher from its other duties: what could not be written waits in one queue,
 * and meanwhile nothing more is read (the ranks then block, as they would without
 * the relay).
 */
#ifndef ZCOLL_RELAY_H
#define ZCOLL_RELAY_H

#include <poll.h>
#include <stddef.h>

#define RELAY_LINE_MAX	(1 << 20)

struct relay_source {
	int fd;		/* read end, -1: ended */
	int to;		/* STDOUT_FILENO or STDERR_FILENO */
	unsigned int rank;
	char *line;	/* bytes after the last newline */
	size_t len, cap;
};

struct relay {
	struct relay_source *sources;	/* two for each rank */
	unsigned int nsources;
	unsigned int next;	/* the source to look at first: all get their turn */
	char *queue;		/* lines to be written to @to */
	size_t len, cap, done;
	int to;
};

/* All return 0 or a negative errno, of which -EPIPE: nobody reads our output */
int relay_init(struct relay *relay, unsigned int nranks);
void relay_free(struct relay *relay);

/* Makes both pipes of a rank; ends[] gets the write ends, close-on-exec, or -1 */
int relay_open(struct relay *relay, unsigned int rank, int ends[2]);

/* Fills what poll() shall wait for, at most nsources + 1; returns their number */
unsigned int relay_poll(const struct relay *relay, struct pollfd *fds);

/* Moves what can be moved without blocking */
int relay_move(struct relay *relay);

/*
 * The ranks have ended: moves what is left in the pipes, and gives up on those that
 * something else still holds open. Call it in place of relay_move() until it
 * returns 1: everything is written.
 */
int relay_finish(struct relay *relay);

#endif /* ZCOLL_RELAY_H */
