// SPDX-License-Identifier: GPL-2.0
/*
 * The library on the device: results of operations that the ranks of a node do without the
 * kernel. They are compared with what the kernel makes of the same call, bit for bit: a request
 * (zcoll_icall()) always is for the kernel.
 */
#include <stdlib.h>
#include <string.h>

#include <zcoll_plan.h>

#include "against.h"
#include "ranks.h"
#include "tap.h"

#define MAX_RANKS	4
#define MAX_BYTES	(1UL << 20)		/* of an input or output */
#define GUARD		64
#define BUF_BYTES	(2 * MAX_BYTES + GUARD)

enum memory { PLAIN, ALLOCATED, MIXED, NR_MEMORIES };

struct buffers {
	char *in, *out;
};

/* Buffers of a rank; the first ones are the kernel's */
static struct buffers kernels, plain, allocated;

static bool get_buffers(struct zcoll_comm *comm)
{
	kernels = (struct buffers){ malloc(BUF_BYTES), malloc(BUF_BYTES) };
	plain = (struct buffers){ malloc(BUF_BYTES), malloc(BUF_BYTES) };
	allocated = (struct buffers){ zcoll_alloc(comm, BUF_BYTES), zcoll_alloc(comm, BUF_BYTES) };
	expect(allocated.in && allocated.out, 1);
	return kernels.in && kernels.out && plain.in && plain.out && allocated.in && allocated.out;
}

static unsigned int collective;

static bool in_blocks(void)
{
	return collective == ZCOLL_REDUCE_SCATTER || collective == ZCOLL_ALLGATHER;
}

/* Set a call up in @buffers; in place means what it does for its collective */
static void place(const struct zcoll_comm *comm, struct zcoll_call *call,
		  const struct buffers *buffers, size_t block, bool in_place)
{
	char *in = in_place ? buffers->out : buffers->in, *out = buffers->out;
	size_t whole = in_blocks() ? zcoll_comm_size(comm) * block : block;
	unsigned int rank = zcoll_comm_rank(comm);

	memset(buffers->in, 0xa5, whole + GUARD);
	memset(buffers->out, 0xa5, whole + GUARD);
	if (in_place && call->collective == ZCOLL_ALLGATHER)
		in += rank * block;
	if (in_place && call->collective == ZCOLL_REDUCE_SCATTER)
		out += rank * block;
	fill_bits(in, call->collective == ZCOLL_REDUCE_SCATTER ? whole : block, rank,
		  zcoll_dtype_size(call->dtype));
	call->send = in;
	call->recv = out;
}

static const struct buffers *mine(const struct zcoll_comm *comm, enum memory memory)
{
	bool heap = memory == ALLOCATED || (memory == MIXED && zcoll_comm_rank(comm) % 2);

	return heap ? &allocated : &plain;
}

/* The call is done twice, by a request and as it is, and leaves the same bytes everywhere */
static void same_as_kernel(struct zcoll_comm *comm, struct zcoll_call *call, enum memory memory,
			   bool in_place)
{
	size_t block = call->count * zcoll_dtype_size(call->dtype);
	size_t bytes = (in_blocks() ? zcoll_comm_size(comm) * block : block) + GUARD;
	const struct buffers *buffers = mine(comm, memory);
	struct zcoll_req *req;
	int ret;

	place(comm, call, &kernels, block, in_place);
	ret = zcoll_icall(comm, call, &req);
	expect(ret ? ret : zcoll_wait(req, ZCOLL_WAIT_FOREVER), 0);
	place(comm, call, buffers, block, in_place);
	expect(zcoll_call(comm, call), 0);
	if (!memcmp(kernels.in, buffers->in, bytes) && !memcmp(kernels.out, buffers->out, bytes))
		return;
	printf("# %llu of %s by %s, %s, memory %d: not what the kernel gives\n",
	       (unsigned long long)call->count, zcoll_dtype_name(call->dtype),
	       call->op ? zcoll_op_name(call->op) : "nothing",
	       in_place ? "in place" : "not in place", memory);
	expect(0, 1);
}

/* Types and operators by turns, so that each size sees some */
static void choose_type(struct zcoll_comm *comm, struct zcoll_call *call, unsigned int turn)
{
	call->dtype = 1 + turn % (ZCOLL_NR_TYPES - 1);
	call->op = call_reduces(collective) ? 1 + turn / 3 % (ZCOLL_NR_OPS - 1) : 0;
	call->root = call_rooted(collective) ? turn % zcoll_comm_size(comm) : 0;
}

/* So many elements that they are @bytes, or a few more; blocks share the largest size */
static uint64_t elements(struct zcoll_comm *comm, const struct zcoll_call *call, uint64_t bytes)
{
	size_t size = zcoll_dtype_size(call->dtype);

	if (bytes == MAX_BYTES && in_blocks())
		bytes /= zcoll_comm_size(comm);
	return (bytes + size - 1) / size;
}

static void sizes(struct zcoll_comm *comm)
{
	static const uint64_t bytes[] = { 0, 1, 48, 49, 340, 1024, 1025, 4096, 16 << 10,
					  64 << 10, (64 << 10) + 4, MAX_BYTES };
	struct zcoll_call call = { .size = sizeof(call), .collective = collective };
	unsigned int turn = 0;

	if (!get_buffers(comm))
		return;
	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
		for (int memory = 0; memory < NR_MEMORIES; memory++) {
			choose_type(comm, &call, turn++);
			call.count = elements(comm, &call, bytes[i]);
			same_as_kernel(comm, &call, memory, (i + memory) % 2);
		}
}

static void types_and_operators(struct zcoll_comm *comm)
{
	struct zcoll_call call = { .size = sizeof(call), .collective = collective };

	if (!get_buffers(comm))
		return;
	for (call.dtype = 1; call.dtype < ZCOLL_NR_TYPES; call.dtype++)
		for (call.op = 1; call.op < ZCOLL_NR_OPS; call.op++) {
			call.count = 5;
			same_as_kernel(comm, &call, PLAIN, false);
			call.count = 101;
			same_as_kernel(comm, &call, PLAIN, true);
			call.count = 2049;
			same_as_kernel(comm, &call, ALLOCATED, false);
		}
}

int main(void)
{
	need_device();
	for (unsigned int n = 1; n <= MAX_RANKS; n++)
		for (collective = ZCOLL_ALLREDUCE; collective < ZCOLL_BARRIER; collective++)
			ok(run_ranks(&RANKS(n), sizes),
			   "%s of %u ranks: as the kernel, at all sizes",
			   zcoll_collective_name(collective), n);
	for (collective = ZCOLL_ALLREDUCE; collective < ZCOLL_BARRIER; collective++)
		if (call_reduces(collective))
			ok(run_ranks(&RANKS(3), types_and_operators),
			   "%s: as the kernel, all types and operators",
			   zcoll_collective_name(collective));
	return tap_end();
}
