/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Messages for people, on standard error: "zcoll run: what happened".
 *
 * The dispatcher sets the subcommand, a process that learns its rank adds it
 * ("zcoll perf: rank 3: ..."). A message is written by one write(), so that
 * those of several ranks do not mix.
 */
#ifndef ZCOLL_MSG_H
#define ZCOLL_MSG_H

void msg_command(const char *name);
void msg_rank(unsigned int rank);

void msg(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Both print a message and return the exit status it goes with */
int failed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * usage_name - a name that is not one of a list: say which there are
 * @option: as it is typed
 * @text: the name
 * @name: gives the names 1 .. @end - 1
 * @last: one more, or NULL
 */
int usage_name(const char *option, const char *text, const char *(*name)(int), int end,
	       const char *last);

/* The status to exit with: @status, or a failure if standard output was not written */
int output_status(int status);

/* The option was refused by getopt, which has said so: where to read more */
int usage_option(void);

#endif /* ZCOLL_MSG_H */
