/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Numbers, sizes and times as people write them on a command line.
 *
 * All functions return 0, or -1 if the text is not wholly such a value or is out
 * of range; the output is then unchanged.
 */
#ifndef ZCOLL_PARSE_H
#define ZCOLL_PARSE_H

#include <stdint.h>

/* A decimal number, min <= value <= max */
int parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* Bytes: a number, and K, M, G or T (or KiB, MiB, ...) for powers of 1024 */
int parse_size(const char *text, uint64_t *bytes);

/* A time: "1.5s"; units are ns, us, ms, s, m, h; without one in seconds */
int parse_duration(const char *text, uint64_t *ns);

/* A deadline of operations: a time up to ZCOLL_MAX_DEADLINE_NS, 0 for none */
int parse_deadline(const char *text, uint64_t *ns);

#endif /* ZCOLL_PARSE_H */
