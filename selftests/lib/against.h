/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Collectives against the oracle: one call of all ranks, in one of the ways there are to call
 * it, and whether every bit is as it must be, and nothing else was written.
 *
 * Inputs are random bits that make finite numbers of any type, and that every rank can
 * derive for all ranks.
 */
#ifndef AGAINST_H
#define AGAINST_H

#include <stdbool.h>
#include <stdint.h>
#include <zcoll.h>

enum how { BLOCKING, REQUEST, RING, NR_HOW };

/**
 * struct against - what a call is compared with
 * @plan: by which the oracle does it
 * @map: node of each rank, for the oracle; NULL: all on one
 * @in_place: as "Collectives" in <linux/zcoll.h> says
 * @how: how to call
 * @registered: the buffers are registered before, and unregistered after
 * @offset: bytes by which the buffers are off alignment
 */
struct against {
	const struct zcoll_plan *plan;
	const uint32_t *map;
	bool in_place;
	enum how how;
	bool registered;
	unsigned int offset;
};

/**
 * against_oracle - call, and compare
 * @comm: communicator
 * @call: the call, but for its buffers
 * @against: what with
 * @why: text of what is wrong
 *
 * Return: 0: all is as it should be. -EBADMSG: not the right bits. Others: the call failed.
 */
int against_oracle(struct zcoll_comm *comm, const struct zcoll_call *call,
		   const struct against *against, char why[ZCOLL_TEXT_MAX]);

/*
 * The input of a rank: numbers of both signs and of some magnitudes, in any type of @size bytes:
 * no exponent of all ones.
 */
void fill_bits(char *data, size_t len, unsigned int rank, size_t size);

/* Does it reduce; has it a root? */
bool call_reduces(unsigned int collective);
bool call_rooted(unsigned int collective);

#endif /* AGAINST_H */
