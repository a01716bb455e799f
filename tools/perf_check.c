// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll perf: the data of an operation, where they are, and whether they are right; see
 * perf.h.
 *
 * In place, all is in the buffer of results: an all-gather's input in this rank's block of
 * its output, a reduce-scatter's output in this rank's block of its input.
 */
#include <string.h>

#include "perf.h"

#define POISON	0xa5

/* ---- where ---- */

static bool is_root(const struct perf_case *pc)
{
	return zcoll_comm_rank(pc->comm) == pc->root;
}

/* Bytes of a block; of the only one where there are no blocks */
static size_t block(const struct perf_case *pc)
{
	return pc->count * pc->pattern->size;
}

static size_t own_block(const struct perf_case *pc)
{
	return zcoll_comm_rank(pc->comm) * block(pc);
}

/* Bytes of this rank's input, and of its result */
static size_t in_bytes(const struct perf_case *pc)
{
	if (pc->opts->collective == ZCOLL_BROADCAST && !is_root(pc))
		return 0;
	return pc->opts->collective == ZCOLL_REDUCE_SCATTER ? perf_whole(pc) : block(pc);
}

static size_t out_bytes(const struct perf_case *pc)
{
	if (pc->opts->collective == ZCOLL_REDUCE && !is_root(pc))
		return 0;
	return pc->opts->collective == ZCOLL_ALLGATHER ? perf_whole(pc) : block(pc);
}

static char *source(const struct perf_case *pc, uint64_t slot, bool in_place)
{
	char *at = (in_place ? pc->bufs->recv : pc->bufs->send) + slot * pc->bufs->stride;

	return in_place && pc->opts->collective == ZCOLL_ALLGATHER ? at + own_block(pc) : at;
}

static char *target(const struct perf_case *pc, uint64_t slot, bool in_place)
{
	char *at = pc->bufs->recv + slot * pc->bufs->stride;

	return in_place && pc->opts->collective == ZCOLL_REDUCE_SCATTER ? at + own_block(pc) : at;
}

struct zcoll_call perf_call(const struct perf_case *pc, uint64_t slot, bool in_place)
{
	struct zcoll_call call = {
		.size = sizeof(call),
		.collective = pc->opts->collective,
	};

	if (call.collective == ZCOLL_BARRIER)
		return call;
	call.dtype = pc->dtype;
	call.op = pc->op;
	call.root = pc->root;
	call.count = pc->count;
	call.send = source(pc, slot, in_place);
	call.recv = target(pc, slot, in_place);
	return call;
}

/* ---- what ---- */

/* Each operation has a shift of its own; any odd number of steps will do */
static uint64_t shift_of(uint64_t iter, uint64_t slot)
{
	return 97 * iter + 11 * slot;
}

void perf_prepare(const struct perf_case *pc, uint64_t iter, bool in_place)
{
	uint64_t slot;

	for (slot = 0; slot < pc->opts->agg; slot++) {
		memset(pc->bufs->recv + slot * pc->bufs->stride, POISON,
		       perf_whole(pc) + PERF_GUARD_BYTES);
		pattern_fill(pc->pattern, source(pc, slot, in_place), in_bytes(pc),
			     shift_of(iter, slot));
	}
}

static uint64_t wrong_blocks(const struct perf_case *pc, const char *data, uint64_t shift)
{
	unsigned int rank, n = zcoll_comm_size(pc->comm);
	uint64_t bad = 0;

	for (rank = 0; rank < n; rank++)
		bad += pattern_wrong_other(pc->pattern, rank, data + rank * block(pc), pc->count,
					   shift);
	return bad;
}

static uint64_t wrong_result(const struct perf_case *pc, const char *data, uint64_t shift)
{
	switch (pc->opts->collective) {
	case ZCOLL_REDUCE_SCATTER:
		shift += zcoll_comm_rank(pc->comm) * pc->count;
		break;
	case ZCOLL_REDUCE:
		if (!is_root(pc))
			return 0;
		break;
	case ZCOLL_ALLGATHER:
		return wrong_blocks(pc, data, shift);
	case ZCOLL_BROADCAST:
		return pattern_wrong_other(pc->pattern, pc->root, data, pc->count, shift);
	case ZCOLL_BARRIER:
		return 0;
	}
	return pattern_wrong_result(pc->pattern, data, pc->count, shift);
}

static uint64_t wrong_guard(const char *guard)
{
	uint64_t bad = 0;
	int i;

	for (i = 0; i < PERF_GUARD_BYTES; i++)
		bad += (unsigned char)guard[i] != POISON;
	return bad;
}

/* Has the input stayed as it was? Where the result is in its place, it cannot. */
static uint64_t wrong_input(const struct perf_case *pc, uint64_t slot, bool in_place,
			    uint64_t shift)
{
	if (in_place && out_bytes(pc))
		return 0;
	return pattern_wrong_input(pc->pattern, source(pc, slot, in_place),
				   in_bytes(pc) / pc->pattern->size, shift);
}

/* Results, input that must not have changed, and bytes that were nobody's to write */
uint64_t perf_count_wrong(const struct perf_case *pc, uint64_t iter, bool in_place)
{
	size_t end = in_place ? perf_whole(pc) : out_bytes(pc);
	uint64_t slot, shift, bad = 0;

	for (slot = 0; slot < pc->opts->agg; slot++) {
		shift = shift_of(iter, slot);
		bad += wrong_result(pc, target(pc, slot, in_place), shift);
		bad += wrong_guard(pc->bufs->recv + slot * pc->bufs->stride + end);
		bad += wrong_input(pc, slot, in_place, shift);
	}
	return bad;
}
