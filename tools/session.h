/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Session: how the subcommands become a rank of a communicator, and what they
 * say when they cannot.
 *
 * The environment names rank, size and key (that of zcoll run, or of another
 * launcher that the library knows). A process that no launcher started is alone:
 * rank 0 of 1.
 */
#ifndef ZCOLL_SESSION_H
#define ZCOLL_SESSION_H

#include <stdint.h>
#include <zcoll.h>

/* No wait is endless unless asked for (deadline "0") */
#define SESSION_DEADLINE_NS	(600ULL * 1000000000)

/**
 * session_open - join
 * @comm: output
 * @deadline_ns: deadline of each operation and, unless 0 (none), of joining, which
 *	has one of its own; SESSION_DEFAULT: that of the environment, or
 *	SESSION_DEADLINE_NS
 *
 * From now on messages name the rank. Returns 0 or an exit status, after a
 * message that says what to do.
 */
int session_open(struct zcoll_comm **comm, uint64_t deadline_ns);
#define SESSION_DEFAULT UINT64_MAX

/* The device cannot be used: what to do. @err: negative errno. Returns STATUS_FAILED */
int device_failed(int err);

/**
 * session_failed - report that an operation failed
 * @comm: its communicator
 * @what: what was being done, for instance "all-reduce of 8 bytes"
 * @err: negative errno
 *
 * Prints the text that the kernel keeps for the failure. Returns STATUS_FAILED.
 */
int session_failed(struct zcoll_comm *comm, const char *what, int err);

#endif /* ZCOLL_SESSION_H */
