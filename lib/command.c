// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Commands: a struct zcoll_call, checked and made a struct zcoll_cmd, and that put
 * into an SQE. The 80 bytes lie in the SQE itself where the ring has SQEs of 128
 * bytes, else beside it.
 *
 * A *side* of a call is what it reads, or what it writes: an address and a number of
 * bytes, none at ranks that have no such side (struct zc_sides, internal.h).
 */
#include <errno.h>
#include <string.h>

#include <zcoll_plan.h>

#include "internal.h"

/* What a collective asks for, beside buffers */
static const struct shape {
	bool reduces;
	bool moves;		/* elements, so that it has a type */
	bool rooted;
	bool in_blocks;		/* one for each rank, in the input */
	bool out_blocks;
} shapes[ZCOLL_NR_COLLECTIVES] = {
	[ZCOLL_ALLREDUCE] = { .reduces = true, .moves = true },
	[ZCOLL_REDUCE_SCATTER] = { .reduces = true, .moves = true, .in_blocks = true },
	[ZCOLL_ALLGATHER] = { .moves = true, .out_blocks = true },
	[ZCOLL_BROADCAST] = { .moves = true, .rooted = true },
	[ZCOLL_REDUCE] = { .reduces = true, .moves = true, .rooted = true },
	[ZCOLL_BARRIER] = { 0 },
};

/* ------------------------------------------------------------------- checks */

static int check_form(struct zcoll_comm *comm, const struct zcoll_call *call)
{
	if (call->size != sizeof(*call) || call->reserved)
		return zc_fail(comm, -EINVAL, "rank %u: struct zcoll_call is of another version",
			       comm->rank);
	if (!call->collective || call->collective >= ZCOLL_NR_COLLECTIVES)
		return zc_fail(comm, -EINVAL, "rank %u: there is no collective %u", comm->rank,
			       call->collective);
	if (call->flags & ~ZCOLL_CMD_FLAGS)
		return zc_fail(comm, -EINVAL, "rank %u: %s: unknown flags 0x%x", comm->rank,
			       zcoll_collective_name(call->collective),
			       call->flags & ~ZCOLL_CMD_FLAGS);
	if (call->deadline_ns > ZCOLL_MAX_DEADLINE_NS)
		return zc_fail(comm, -EINVAL, "rank %u: deadline of %llu ns: at most %llu, a day",
			       comm->rank, (unsigned long long)call->deadline_ns,
			       (unsigned long long)ZCOLL_MAX_DEADLINE_NS);
	return 0;
}

/* What a collective has no use for must be 0: it is a mistake otherwise */
static int check_unused(struct zcoll_comm *comm, const struct zcoll_call *call,
			const struct shape *shape)
{
	const char *what = NULL;

	if (!shape->moves && (call->dtype || call->count))
		what = "elements";
	else if (!shape->reduces && call->op)
		what = "an operator";
	else if (!shape->rooted && call->root)
		what = "a root";
	return what ? zc_fail(comm, -EINVAL, "rank %u: %s does not have %s", comm->rank,
			      zcoll_collective_name(call->collective), what) : 0;
}

static int check_values(struct zcoll_comm *comm, const struct zcoll_call *call,
			const struct shape *shape)
{
	if (shape->moves && !zcoll_dtype_size(call->dtype))
		return zc_fail(comm, -EINVAL, "rank %u: there is no element type %d", comm->rank,
			       call->dtype);
	if (shape->reduces && !zcoll_op_name(call->op))
		return zc_fail(comm, -EINVAL, "rank %u: there is no operator %d", comm->rank,
			       call->op);
	if (shape->rooted && call->root >= comm->nranks)
		return zc_fail(comm, -EINVAL, "rank %u: root %u of %s: must be 0 to %u", comm->rank,
			       call->root, zcoll_collective_name(call->collective),
			       comm->nranks - 1);
	if (shape->moves && !(comm->types >> call->dtype & 1))
		return zc_fail(comm, -EOPNOTSUPP, "rank %u: the module does not know %s",
			       comm->rank, zcoll_dtype_name(call->dtype));
	if (shape->reduces && !(comm->ops >> call->op & 1))
		return zc_fail(comm, -EOPNOTSUPP, "rank %u: the module does not know %s",
			       comm->rank, zcoll_op_name(call->op));
	return 0;
}

static int check_side(struct zcoll_comm *comm, const struct zc_side *side)
{
	if (!side->addr && side->len)
		return zc_fail(comm, -EFAULT, "rank %u: %s is NULL and count is not 0", comm->rank,
			       side->name);
	if (side->addr + side->len < side->addr)
		return zc_fail(comm, -EOVERFLOW, "rank %u: %s 0x%lx: %llu bytes leave the address space",
			       comm->rank, side->name, (unsigned long)side->addr,
			       (unsigned long long)side->len);
	return 0;
}

/* -------------------------------------------------------------------- sides */

/* Bytes of a block, and of all ranks' together, which must be addressable */
static int call_bytes(struct zcoll_comm *comm, const struct zcoll_call *call, uint64_t *block,
		      uint64_t *all)
{
	size_t size = call->dtype ? zcoll_dtype_size(call->dtype) : 1;
	const struct shape *shape = &shapes[call->collective];
	unsigned int blocks = shape->in_blocks || shape->out_blocks ? comm->nranks : 1;

	if (!__builtin_mul_overflow(call->count, size, block) &&
	    !__builtin_mul_overflow(*block, blocks, all) && *all <= SIZE_MAX)
		return 0;
	return zc_fail(comm, -EOVERFLOW, "rank %u: %u times %llu elements of %s are too many bytes",
		       comm->rank, blocks, (unsigned long long)call->count,
		       zcoll_dtype_name(call->dtype));
}

/* What this rank reads and writes */
static void find_sides(const struct zcoll_comm *comm, struct zc_sides *sides)
{
	const struct zcoll_call *call = sides->call;
	const struct shape *shape = &shapes[call->collective];
	bool root = comm->rank == call->root;

	sides->input = shape->in_blocks ? sides->all : sides->block;
	sides->output = shape->out_blocks ? sides->all : sides->block;
	sides->in = (struct zc_side){ "send", (uintptr_t)call->send, sides->input };
	sides->out = (struct zc_side){ "recv", (uintptr_t)call->recv, sides->output };
	if (!shape->moves || (call->collective == ZCOLL_BROADCAST && !root))
		sides->in = (struct zc_side){ "send", 0, 0 };
	if (!shape->moves || (call->collective == ZCOLL_REDUCE && !root))
		sides->out = (struct zc_side){ "recv", 0, 0 };
}

/* Both sides are one memory, as "in place" of the collective has it */
static bool in_place(const struct zcoll_comm *comm, const struct zc_sides *sides)
{
	const struct shape *shape = &shapes[sides->call->collective];

	return sides->in.addr + (shape->in_blocks ? comm->rank * sides->block : 0) ==
	       sides->out.addr + (shape->out_blocks ? comm->rank * sides->block : 0);
}

static int check_overlap(struct zcoll_comm *comm, const struct zc_sides *sides)
{
	const struct zc_side *in = &sides->in, *out = &sides->out;

	if (sides->same || in->addr >= out->addr + out->len || out->addr >= in->addr + in->len)
		return 0;
	return zc_fail(comm, -EINVAL,
		       "rank %u: %s: send 0x%lx of %llu bytes and recv 0x%lx of %llu overlap, and not as in place",
		       comm->rank, zcoll_collective_name(sides->call->collective),
		       (unsigned long)in->addr, (unsigned long long)in->len,
		       (unsigned long)out->addr, (unsigned long long)out->len);
}

/*
 * Handles and offsets. In place, the smaller side is named by what names the larger one,
 * so that the kernel sees that they are one.
 */
static void put_sides(struct zcoll_comm *comm, struct zcoll_cmd *cmd,
		      const struct zc_sides *sides)
{
	const struct zc_side *in = &sides->in, *out = &sides->out;
	const struct zc_side *whole = in->len > out->len ? in : out;
	uint32_t handle;
	__u64 at;

	if (sides->same && in->len && out->len) {
		zc_range_find(comm, (void *)whole->addr, whole->len, &handle, &at);
		cmd->send_buf = handle;
		cmd->recv_buf = handle;
		cmd->send = at + (in->addr - whole->addr);
		cmd->recv = at + (out->addr - whole->addr);
		return;
	}
	zc_range_find(comm, (void *)in->addr, in->len, &cmd->send_buf, &cmd->send);
	zc_range_find(comm, (void *)out->addr, out->len, &cmd->recv_buf, &cmd->recv);
}

/* ------------------------------------------------------------------ commands */

/* All flags: REPRODUCIBLE only says something of reductions, AGREED of several nodes */
static uint32_t all_flags(const struct zcoll_comm *comm, const struct zcoll_call *call)
{
	uint32_t flags = call->flags | atomic_load(&comm->flags);

	if (!shapes[call->collective].reduces)
		flags &= ~ZCOLL_CMD_REPRODUCIBLE;
	return flags;
}

/**
 * zc_call_check - check a call, and find out what it reads and writes
 * @comm: the communicator
 * @call: the call
 * @sides: output
 *
 * All that the library can know to be wrong is found here, before a number is
 * drawn.
 */
int zc_call_check(struct zcoll_comm *comm, const struct zcoll_call *call, struct zc_sides *sides)
{
	const struct shape *shape;
	int ret;

	ret = zc_check_owner(comm);
	if (!ret)
		ret = check_form(comm, call);
	if (ret)
		return ret;
	shape = &shapes[call->collective];
	sides->call = call;
	ret = check_unused(comm, call, shape);
	if (!ret)
		ret = check_values(comm, call, shape);
	if (!ret)
		ret = call_bytes(comm, call, &sides->block, &sides->all);
	if (ret)
		return ret;

	find_sides(comm, sides);
	sides->same = in_place(comm, sides);
	ret = check_side(comm, &sides->in);
	if (!ret)
		ret = check_side(comm, &sides->out);
	return ret ? ret : check_overlap(comm, sides);
}

/**
 * zc_cmd_make - make a command of a call
 * @comm: the communicator
 * @cmd: output, all but its sequence number
 * @sides: the call, checked
 */
int zc_cmd_make(struct zcoll_comm *comm, struct zcoll_cmd *cmd, const struct zc_sides *sides)
{
	const struct zcoll_call *call = sides->call;

	memset(cmd, 0, sizeof(*cmd));
	cmd->version = ZCOLL_CMD_VERSION;
	cmd->dtype = call->dtype;
	cmd->op = call->op;
	cmd->flags = all_flags(comm, call);
	cmd->count = call->count;
	cmd->root = call->root;
	cmd->deadline_ns = call->deadline_ns;
	put_sides(comm, cmd, sides);
	return zc_plan_for(comm, call->collective, sides->all, cmd->flags, &cmd->plan);
}

/* zc_call_check() and zc_cmd_make() */
int zc_cmd_init(struct zcoll_comm *comm, struct zcoll_cmd *cmd, const struct zcoll_call *call)
{
	struct zc_sides sides;
	int ret = zc_call_check(comm, call, &sides);

	return ret ? ret : zc_cmd_make(comm, cmd, &sides);
}

/**
 * zc_cmd_number - give a command the number it has drawn, and tell the other ranks of it
 * @comm: the communicator
 * @cmd: the command
 * @call: what it is made of
 * @seq: its number
 */
void zc_cmd_number(struct zcoll_comm *comm, struct zcoll_cmd *cmd, const struct zcoll_call *call,
		   uint64_t seq)
{
	uint64_t ended = atomic_load(&comm->oldest);

	cmd->seq = seq;
	if (!comm->mail)
		return;
	cmd->ended = ended < seq ? ended : seq;
	zc_mail_announce(comm, call, seq);
}

/**
 * zc_cmd_to_sqe - fill an SQE
 * @sqe: overwritten, with the second 64 bytes if the ring has them
 * @ring_flags: flags the ring was made with
 * @fd: the endpoint
 * @collective: what the command is of
 * @at: where the command stays if it does not fit the SQE
 * @cmd: the command
 */
void zc_cmd_to_sqe(struct io_uring_sqe *sqe, unsigned int ring_flags, int fd,
		   unsigned int collective, struct zcoll_cmd *at, const struct zcoll_cmd *cmd)
{
	struct zcoll_cmd_ptr ptr = { .addr = (uintptr_t)at };
	const size_t payload = offsetof(struct io_uring_sqe, cmd);
	void *dst = (char *)sqe + payload;

	if (ring_flags & IORING_SETUP_SQE128) {
		memset(sqe, 0, 2 * sizeof(*sqe));
		memcpy(dst, cmd, sizeof(*cmd));
	} else {
		memset(sqe, 0, sizeof(*sqe));
		*at = *cmd;
		memcpy(dst, &ptr, sizeof(ptr));
	}
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = ZCOLL_IOC_OP(collective);
}

/* ------------------------------------------------- on a ring of the caller's */

static const struct zcoll_cmd *cmd_of_sqe(const struct io_uring_sqe *sqe, unsigned int ring_flags)
{
	const char *payload = (const char *)sqe + offsetof(struct io_uring_sqe, cmd);
	struct zcoll_cmd_ptr ptr;

	if (ring_flags & IORING_SETUP_SQE128)
		return (const void *)payload;
	memcpy(&ptr, payload, sizeof(ptr));
	return (const void *)(uintptr_t)ptr.addr;
}

int zcoll_prep_call(struct io_uring_sqe *sqe, unsigned int ring_flags, struct zcoll_comm *comm,
		    struct zcoll_cmd *at, const struct zcoll_call *call)
{
	struct zcoll_cmd cmd;
	uint64_t seq;
	int ret;

	if (!at && !(ring_flags & IORING_SETUP_SQE128))
		return zc_fail(comm, -EINVAL, "rank %u: an SQE of 64 bytes needs cmd, and it is NULL",
			       comm->rank);
	ret = zc_cmd_init(comm, &cmd, call);
	if (!ret)
		ret = zc_seq_draw_now(comm, &seq);
	if (ret)
		return ret;
	zc_cmd_number(comm, &cmd, call, seq);
	zc_cmd_to_sqe(sqe, ring_flags, comm->fd, call->collective, at, &cmd);
	return 0;
}

uint64_t zcoll_sqe_seq(const struct io_uring_sqe *sqe, unsigned int ring_flags)
{
	return cmd_of_sqe(sqe, ring_flags)->seq;
}

int zcoll_unprep(struct zcoll_comm *comm, uint64_t seq)
{
	uint64_t next = atomic_load(&comm->next);
	int ret = zc_check_owner(comm);

	if (ret)
		return ret;
	if (seq >= next || zc_seq_accepted(comm, seq))
		return zc_fail(comm, -EINVAL, "rank %u: operation %llu %s", comm->rank,
			       (unsigned long long)seq,
			       seq >= next ? "was never prepared" : "has been submitted");
	if (!zc_seq_give_back(comm, seq))
		return zc_fail(comm, -EBUSY,
			       "rank %u: operation %llu cannot be taken back, later ones up to %llu have been prepared: take these back first, or submit it, or abort",
			       comm->rank, (unsigned long long)seq, (unsigned long long)next - 1);
	return 0;
}
