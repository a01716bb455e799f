/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A line on the terminal while one call of the library works for long: what is being
 * done, after a second. Nothing if standard error is not a terminal. Where there are
 * steps to count, see ../progress.h.
 */
#ifndef ZCOLL_TOOLS_PATIENCE_H
#define ZCOLL_TOOLS_PATIENCE_H

/* @line: such as "proving"; a constant, as it is shown from a signal handler */
void patience_begin(const char *line);

/* Wipes the line */
void patience_end(void);

#endif /* ZCOLL_TOOLS_PATIENCE_H */
