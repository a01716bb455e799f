/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Pattern: input data that every rank can derive for all ranks, and the result that
 * follows from it.
 *
 * The elements repeat with a period that is a prime number, so a piece of data that
 * ends up in a wrong place, which will be off by a multiple of a power of two, does
 * not look right. Integers use all bits and overflow; floats are of both signs and
 * of magnitudes that make sums round, so that the order of reduction shows. A
 * *shift* moves the pattern: data of another operation does not look right either.
 *
 * Where the order of reduction is not known, floats can be *exact*: small numbers, of which
 * few enough meet in an element that no sum or product rounds, whatever the order.
 */
#ifndef ZCOLL_PATTERN_H
#define ZCOLL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_PERIOD	4093	/* elements */

struct pattern {
	size_t size;		/* bytes of an element */
	int dtype, op;
	bool exact;
	unsigned int nranks;
	unsigned int other_rank;	/* whose data @other is */
	char *input;		/* one period of this rank's data */
	char *result;		/* one period of the reduction over all ranks */
	char *other;		/* one period of another rank's data */
};

/* @op: 0: nothing is reduced, and there is no result. Returns 0 or -ENOMEM */
int pattern_init(struct pattern *p, int dtype, int op, unsigned int rank, unsigned int nranks,
		 bool exact);
void pattern_free(struct pattern *p);

/* Writes @len bytes (the last element may be cut) */
void pattern_fill(const struct pattern *p, void *to, size_t len, uint64_t shift);

/* How many of @count elements are not those of the input, another's, or of the result? */
uint64_t pattern_wrong_input(const struct pattern *p, const void *data, uint64_t count,
			     uint64_t shift);
uint64_t pattern_wrong_other(struct pattern *p, unsigned int rank, const void *data,
			     uint64_t count, uint64_t shift);
uint64_t pattern_wrong_result(const struct pattern *p, const void *data, uint64_t count,
			      uint64_t shift);

#endif /* ZCOLL_PATTERN_H */
