// SPDX-License-Identifier: GPL-2.0
/*
 * The command of the ABI, one error at a time: in each of the three ways to give it, and
 * for each collective, which have different fields and different lengths.
 */
#include "abi.h"

/* A field of the command, in each of the three ways to give it */
#define CMD_FIELD(name, member, val, error)					\
	FIELD(ioctl_##name, CALL_IOCTL, zcoll_cmd, member, val, error);		\
	FIELD(sqe128_##name, CALL_SQE128, zcoll_cmd, member, val, error);	\
	FIELD(sqe64_##name, CALL_SQE64, zcoll_cmd, member, val, error)

CMD_FIELD(version_0, version, 0, EINVAL);
CMD_FIELD(version_next, version, ZCOLL_CMD_VERSION + 1, EINVAL);
CMD_FIELD(dtype_0, dtype, 0, EINVAL);
CMD_FIELD(dtype_past_last, dtype, ZCOLL_NR_TYPES, EINVAL);
CMD_FIELD(dtype_huge, dtype, 255, EINVAL);
CMD_FIELD(op_0, op, 0, EINVAL);
CMD_FIELD(op_past_last, op, ZCOLL_NR_OPS, EINVAL);
CMD_FIELD(op_huge, op, 255, EINVAL);
CMD_FIELD(flags_unknown, flags, ZCOLL_CMD_FLAGS + 1, EINVAL);
CMD_FIELD(flags_high, flags, TOP_BIT, EINVAL);
CMD_FIELD(seq_at_window, seq, ZCOLL_MAX_WINDOW, ENOBUFS);
CMD_FIELD(seq_huge, seq, UINT64_MAX, ENOBUFS);
CMD_FIELD(send_null, send, 0, EFAULT);
CMD_FIELD(send_unmapped, send, NOT_MAPPED, EFAULT);
CMD_FIELD(send_kernel, send, KERNEL_ADDR, EFAULT);
CMD_FIELD(send_wraps, send, UINT64_MAX - BYTES / 2, EOVERFLOW);
CMD_FIELD(recv_null, recv, 0, EFAULT);
CMD_FIELD(recv_unmapped, recv, NOT_MAPPED, EFAULT);
CMD_FIELD(recv_kernel, recv, KERNEL_ADDR, EFAULT);
CMD_FIELD(recv_wraps, recv, UINT64_MAX - BYTES / 2, EOVERFLOW);
CMD_FIELD(send_buf_unknown, send_buf, 12345, ENOENT);
CMD_FIELD(send_buf_huge, send_buf, UINT32_MAX, ENOENT);
CMD_FIELD(recv_buf_unknown, recv_buf, 12345, ENOENT);
CMD_FIELD(recv_buf_huge, recv_buf, UINT32_MAX, ENOENT);
CMD_FIELD(count_bytes_wrap, count, 1ULL << 62, EOVERFLOW);
CMD_FIELD(count_bytes_top_bit, count, 1ULL << 61, EOVERFLOW);
CMD_FIELD(count_huge, count, UINT64_MAX, EOVERFLOW);
CMD_FIELD(count_wraps_address, count, (UINT64_MAX >> 2) - 2, EOVERFLOW);
CMD_FIELD(root, root, 1, EINVAL);
CMD_FIELD(plan, plan, 1, ENOENT);
CMD_FIELD(deadline_above_max, deadline_ns, ZCOLL_MAX_DEADLINE_NS + 1, EINVAL);
CMD_FIELD(deadline_huge, deadline_ns, UINT64_MAX, EINVAL);
CMD_FIELD(extra, extra, 1, EINVAL);
CMD_FIELD(ended, ended, 1, EINVAL);

FIXTURE(cmd) {
	struct site s;
};

FIXTURE_SETUP(cmd)
{
	ASSERT_EQ(0, site_setup(&self->s));
}

FIXTURE_TEARDOWN(cmd)
{
	EXPECT_STREQ("", site_teardown(&self->s));
}

/* --- numbers ------------------------------------------------------------- */

/* A command with this number, in both forms: -ENOTTY or another result */
static int number_as_command(struct site *s, uint32_t number)
{
	int ret = -ENOTTY;

	for (int form = SQE64; form <= SQE128 && ret == -ENOTTY; form++) {
		ring_cmd(ring_of(s, form), s->ep, number, 0);
		io_uring_submit(ring_of(s, form));
		ret = ring_next(ring_of(s, form), ZT_LONG_MS, NULL);
	}
	return ret;
}

TEST_F(cmd, unknown_uring_command_is_enotty)
{
	EXPECT_EQ(-ENOTTY, number_as_command(&self->s, _IOW(ZCOLL_IOC_TYPE, 0x7f, int)));
}

TEST_F(cmd, setup_ioctl_as_uring_command_is_enotty)
{
	EXPECT_EQ(-ENOTTY, number_as_command(&self->s, ZCOLL_IOC_STATS));
}

/* A command has no size to grow by, so its number must be right to the bit */
TEST_F(cmd, operation_with_another_size_or_direction_is_enotty)
{
	uint32_t larger = _IOC(_IOC_WRITE, ZCOLL_IOC_TYPE, 0x40, sizeof(struct zcoll_cmd) + 8);
	uint32_t reads = _IOWR(ZCOLL_IOC_TYPE, 0x40, struct zcoll_cmd);
	struct zcoll_cmd cmd = zt_barrier(0);

	EXPECT_EQ(-ENOTTY, zt_ioctl(self->s.ep, larger, &cmd));
	EXPECT_EQ(-ENOTTY, zt_ioctl(self->s.ep, reads, &cmd));
	EXPECT_EQ(-ENOTTY, number_as_command(&self->s, larger));
	EXPECT_EQ(-ENOTTY, number_as_command(&self->s, reads));
	EXPECT_EQ(0, zt_allreduce(self->s.ep, &cmd));
}

/* Buffers registered with the ring are not ours */
TEST_F(cmd, sqe_with_a_fixed_buffer_is_einval)
{
	struct iovec iov = { .iov_base = self->s.mem, .iov_len = self->s.page };
	struct zcoll_cmd cmd = zt_barrier(0);
	struct io_uring *ring = ring_of(&self->s, SQE128);

	ASSERT_EQ(0, io_uring_register_buffers(ring, &iov, 1));
	ring_op(ring, self->s.ep, &cmd, 0)->uring_cmd_flags = 1; /* IORING_URING_CMD_FIXED */
	ASSERT_EQ(1, io_uring_submit(ring));
	EXPECT_EQ(-EINVAL, ring_next(ring, ZT_LONG_MS, NULL));
	EXPECT_EQ(0, ring_do(ring, self->s.ep, &cmd, ZT_LONG_MS));
}

/* io_uring itself answers for files that know no commands */
TEST_F(cmd, uring_command_on_the_device_is_refused)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	int ret = ring_do(ring_of(&self->s, SQE128), self->s.zt.dev, &cmd, ZT_LONG_MS);

	EXPECT_TRUE(ret == -ENOTTY || ret == -EOPNOTSUPP);
}

static int send_ptr(struct site *s, struct zcoll_cmd_ptr ptr)
{
	struct io_uring_sqe *sqe;

	sqe = ring_cmd(ring_of(s, SQE64), s->ep, ZCOLL_IOC_ALLREDUCE, 0);
	memcpy(ring_payload(sqe), &ptr, sizeof(ptr));
	io_uring_submit(&s->ring[SQE64]);
	return ring_next(&s->ring[SQE64], ZT_LONG_MS, NULL);
}

TEST_F(cmd, sqe64_reserved_is_einval)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	struct zcoll_cmd_ptr ptr = { .addr = (uintptr_t)&cmd, .__reserved = 1 };

	EXPECT_EQ(-EINVAL, send_ptr(&self->s, ptr));
	ptr.__reserved = 0;
	EXPECT_EQ(0, send_ptr(&self->s, ptr));
}

TEST_F(cmd, sqe64_pointer_null_is_efault)
{
	EXPECT_EQ(-EFAULT, send_ptr(&self->s, (struct zcoll_cmd_ptr) {}));
}

TEST_F(cmd, sqe64_pointer_unmapped_is_efault)
{
	struct zcoll_cmd_ptr ptr = { .addr = NOT_MAPPED };

	EXPECT_EQ(-EFAULT, send_ptr(&self->s, ptr));
}

TEST_F(cmd, sqe64_pointer_kernel_is_efault)
{
	struct zcoll_cmd_ptr ptr = { .addr = KERNEL_ADDR };

	EXPECT_EQ(-EFAULT, send_ptr(&self->s, ptr));
}

/* --- ranges of registered buffers ---------------------------------------- */

/* An operation on the registered page, from @send to @recv, @count elements */
static int in_buffer(struct site *s, uint64_t send, uint64_t recv, uint64_t count)
{
	struct zcoll_cmd cmd = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM, NULL, NULL, count);

	cmd.send = send;
	cmd.recv = recv;
	cmd.send_buf = s->handle;
	cmd.recv_buf = s->handle;
	return zt_allreduce(s->ep, &cmd);
}

TEST_F(cmd, range_that_ends_with_the_buffer_works)
{
	EXPECT_EQ(0, in_buffer(&self->s, 0, self->s.page - BYTES, COUNT));
}

TEST_F(cmd, send_one_byte_past_the_buffer_is_erange)
{
	EXPECT_EQ(-ERANGE, in_buffer(&self->s, self->s.page - BYTES + 1, 0, COUNT));
	EXPECT_EQ(0, in_buffer(&self->s, self->s.page - BYTES, 0, COUNT));
}

TEST_F(cmd, recv_one_byte_past_the_buffer_is_erange)
{
	EXPECT_EQ(-ERANGE, in_buffer(&self->s, 0, self->s.page - BYTES + 1, COUNT));
	EXPECT_EQ(0, in_buffer(&self->s, 0, self->s.page - BYTES, COUNT));
}

TEST_F(cmd, offset_past_the_buffer_is_erange)
{
	EXPECT_EQ(-ERANGE, in_buffer(&self->s, self->s.page + 4, 0, 1));
	EXPECT_EQ(-ERANGE, in_buffer(&self->s, 1ULL << 40, 0, 1));
	EXPECT_EQ(0, in_buffer(&self->s, 8, 0, 1));
}

TEST_F(cmd, offset_that_wraps_is_refused)
{
	int ret = in_buffer(&self->s, UINT64_MAX - 3, 0, COUNT);

	EXPECT_TRUE(ret == -ERANGE || ret == -EOVERFLOW);
	EXPECT_EQ(0, in_buffer(&self->s, 0, 0, COUNT));
}

TEST_F(cmd, count_longer_than_the_buffer_is_erange)
{
	EXPECT_EQ(-ERANGE, in_buffer(&self->s, 0, 0, self->s.page / 4 + 1));
	EXPECT_EQ(0, in_buffer(&self->s, 0, 0, self->s.page / 4));
}

TEST_F(cmd, overlap_in_a_buffer_is_einval)
{
	EXPECT_EQ(-EINVAL, in_buffer(&self->s, 0, 4, COUNT));
	EXPECT_EQ(-EINVAL, in_buffer(&self->s, 4, 0, COUNT));
	EXPECT_EQ(-EINVAL, in_buffer(&self->s, BYTES - 1, 0, COUNT));
	EXPECT_EQ(0, in_buffer(&self->s, BYTES, 0, COUNT));
}

TEST_F(cmd, overlap_of_addresses_is_einval)
{
	char *mem = self->s.mem;
	struct zcoll_cmd cmd = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM, mem, mem + 1, COUNT);

	EXPECT_EQ(-EINVAL, zt_allreduce(self->s.ep, &cmd));
	cmd.recv = cmd.send + BYTES - 1;
	EXPECT_EQ(-EINVAL, zt_allreduce(self->s.ep, &cmd));
	cmd.recv = cmd.send + BYTES;
	EXPECT_EQ(0, zt_allreduce(self->s.ep, &cmd));
}

/* In place is the same name for both, so that the kernel can tell */
TEST_F(cmd, same_memory_under_two_names_is_einval)
{
	char *mem = self->s.mem;
	struct zcoll_cmd cmd = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM, NULL, mem, COUNT);

	cmd.send_buf = self->s.handle;
	EXPECT_EQ(-EINVAL, zt_allreduce(self->s.ep, &cmd));
	cmd.recv += BYTES - 1;
	EXPECT_EQ(-EINVAL, zt_allreduce(self->s.ep, &cmd));
	cmd.recv += 1;
	EXPECT_EQ(0, zt_allreduce(self->s.ep, &cmd));
}

TEST_F(cmd, unregistered_handle_is_enoent)
{
	ASSERT_EQ(0, zt_unregister(self->s.ep, self->s.handle));
	EXPECT_EQ(-ENOENT, in_buffer(&self->s, 0, 0, COUNT));
	EXPECT_EQ(-ENOENT, zt_unregister(self->s.ep, self->s.handle));
	ASSERT_EQ(0, zt_register(self->s.ep, self->s.mem, self->s.page, &self->s.handle));
	EXPECT_EQ(0, in_buffer(&self->s, 0, 0, COUNT));
}

/* --- the fields of each collective --------------------------------------- */

FIXTURE(each) {
	struct zt zt;
	int ep[3];
	int32_t mem[64];
	struct zcoll_cmd cmd;
};

FIXTURE_VARIANT(each) {
	unsigned int collective;
	bool reduces, rooted, barrier;
};

FIXTURE_VARIANT_ADD(each, allreduce) { ZCOLL_ALLREDUCE, .reduces = true };
FIXTURE_VARIANT_ADD(each, reduce_scatter) { ZCOLL_REDUCE_SCATTER, .reduces = true };
FIXTURE_VARIANT_ADD(each, allgather) { ZCOLL_ALLGATHER };
FIXTURE_VARIANT_ADD(each, broadcast) { ZCOLL_BROADCAST, .rooted = true };
FIXTURE_VARIANT_ADD(each, reduce) { ZCOLL_REDUCE, .reduces = true, .rooted = true };
FIXTURE_VARIANT_ADD(each, barrier) { ZCOLL_BARRIER, .barrier = true };

/* What rank 0 of three calls, with all fields right */
static struct zcoll_cmd good_cmd(unsigned int collective, bool reduces, int32_t *mem)
{
	struct zcoll_cmd cmd = zt_cmd(0, ZCOLL_INT32, reduces ? ZCOLL_SUM : 0, mem, mem + 32, 4);

	if (collective == ZCOLL_BARRIER)
		cmd = zt_cmd(0, 0, 0, NULL, NULL, 0);
	return cmd;
}

FIXTURE_SETUP(each)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, 3, self->ep));
	self->cmd = good_cmd(variant->collective, variant->reduces, self->mem);
}

FIXTURE_TEARDOWN(each)
{
	ZT_TEARDOWN(self);
}

/* A call of rank 0 that is refused with -EINVAL, and a text with @word */
#define EXPECT_BAD(word, ...) do {						\
	struct zcoll_cmd __bad = self->cmd;					\
	struct zcoll_status __st;						\
	char __text[ZCOLL_TEXT_MAX];						\
										\
	__VA_ARGS__;								\
	EXPECT_EQ(-EINVAL, zt_collective(self->ep[0], variant->collective, &__bad)); \
	EXPECT_EQ(0, zt_status(self->ep[0], 0, &__st, __text));			\
	EXPECT_NE(NULL, strstr(__text, word)) TH_LOG("%s", __text);		\
} while (0)

TEST_F(each, operator_only_where_something_is_reduced)
{
	if (variant->reduces)
		EXPECT_BAD("field op", __bad.op = 0);
	else
		EXPECT_BAD("field op", __bad.op = ZCOLL_SUM);
	EXPECT_BAD("field op", __bad.op = ZCOLL_NR_OPS);
}

TEST_F(each, root_only_where_there_is_one)
{
	EXPECT_BAD("field root", __bad.root = variant->rooted ? 3 : 1);
	EXPECT_BAD("field root", __bad.root = UINT32_MAX);
}

TEST_F(each, type_and_count_but_of_a_barrier)
{
	if (variant->barrier) {
		EXPECT_BAD("field dtype", __bad.dtype = ZCOLL_INT8);
		EXPECT_BAD("field count", __bad.count = 1);
	} else {
		EXPECT_BAD("field dtype", __bad.dtype = 0);
		EXPECT_BAD("field dtype", __bad.dtype = ZCOLL_NR_TYPES);
	}
}

TEST_F(each, unknown_flag)
{
	EXPECT_BAD("field flags", __bad.flags = ZCOLL_CMD_FLAGS + 1);
}

/* Three times the count is what wraps */
TEST_F(each, blocks_of_all_ranks_wrap)
{
	struct zcoll_cmd cmd = self->cmd;

	if (variant->barrier)
		SKIP(return, "it has no elements");
	cmd.count = UINT64_MAX / 12 + 1;
	EXPECT_EQ(-EOVERFLOW, zt_collective(self->ep[0], variant->collective, &cmd));
}

/* The flags ask for nothing that one node does not give anyway */
TEST_F(each, both_flags_on_one_node)
{
	struct zcoll_cmd cmd[3];
	int32_t recv[3][64];

	for (int r = 0; r < 3; r++) {
		cmd[r] = self->cmd;
		cmd[r].recv = (uintptr_t)recv[r];
		cmd[r].flags = ZCOLL_CMD_FLAGS;
	}
	EXPECT_EQ(0, zt_all_of(self->ep, variant->collective, cmd, 3));
}

/* --- what is looked at, and what overlaps -------------------------------- */

FIXTURE(pair) {
	struct zt zt;
	int ep[2];
	int32_t mem[2][64];
	struct zcoll_cmd cmd[2];
};

FIXTURE_SETUP(pair)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, 2, self->ep));
	for (int i = 0; i < 64; i++) {
		self->mem[0][i] = i;
		self->mem[1][i] = 100 * i;
	}
}

FIXTURE_TEARDOWN(pair)
{
	ZT_TEARDOWN(self);
}

/* Both ranks call with @send and @recv words into their memory */
static void place(struct zcoll_cmd *cmd, int32_t mem[2][64], int op, int send, int recv,
		  uint64_t count)
{
	for (int r = 0; r < 2; r++)
		cmd[r] = zt_cmd(0, ZCOLL_INT32, op, mem[r] + send, mem[r] + recv, count);
}

TEST_F(pair, output_of_a_reduce_is_looked_at_at_the_root_only)
{
	place(self->cmd, self->mem, ZCOLL_SUM, 0, 32, 4);
	self->cmd[0].root = 1;
	self->cmd[1].root = 1;
	self->cmd[0].recv = NOT_MAPPED;
	self->cmd[0].recv_buf = 77;
	ASSERT_EQ(0, zt_all_of(self->ep, ZCOLL_REDUCE, self->cmd, 2));
	EXPECT_EQ(3 + 300, self->mem[1][35]);
	EXPECT_EQ(35, self->mem[0][35]);
}

TEST_F(pair, input_of_a_broadcast_is_looked_at_at_the_root_only)
{
	place(self->cmd, self->mem, 0, 0, 32, 4);
	self->cmd[1].send = NOT_MAPPED;
	self->cmd[1].send_buf = 77;
	ASSERT_EQ(0, zt_all_of(self->ep, ZCOLL_BROADCAST, self->cmd, 2));
	EXPECT_EQ(3, self->mem[0][35]);
	EXPECT_EQ(3, self->mem[1][35]);
}

TEST_F(pair, memory_of_a_barrier_is_not_looked_at)
{
	for (int r = 0; r < 2; r++)
		self->cmd[r] = (struct zcoll_cmd) {
			.version = ZCOLL_CMD_VERSION, .send = NOT_MAPPED, .recv_buf = 77,
		};
	EXPECT_EQ(0, zt_all_of(self->ep, ZCOLL_BARRIER, self->cmd, 2));
}

/* Only rank 0 is asked: a refused call does not reach the others */
#define EXPECT_CALL(err, collective) \
	EXPECT_EQ(err, zt_collective(self->ep[0], collective, &self->cmd[0]))

TEST_F(pair, in_place_all_gather_is_block_r_of_the_output)
{
	place(self->cmd, self->mem, 0, 3, 0, 4);
	EXPECT_CALL(-EINVAL, ZCOLL_ALLGATHER);
	place(self->cmd, self->mem, 0, 4, 0, 4);
	EXPECT_CALL(-EINVAL, ZCOLL_ALLGATHER);
	self->cmd[0].send = self->cmd[0].recv;
	ASSERT_EQ(0, zt_all_of(self->ep, ZCOLL_ALLGATHER, self->cmd, 2));
	for (int r = 0; r < 2; r++) {
		EXPECT_EQ(3, self->mem[r][3]);
		EXPECT_EQ(400, self->mem[r][4]);
	}
}

TEST_F(pair, in_place_reduce_scatter_is_block_r_of_the_input)
{
	place(self->cmd, self->mem, ZCOLL_SUM, 0, 4, 4);
	EXPECT_CALL(-EINVAL, ZCOLL_REDUCE_SCATTER);
	place(self->cmd, self->mem, ZCOLL_SUM, 0, 7, 4);
	EXPECT_CALL(-EINVAL, ZCOLL_REDUCE_SCATTER);
	place(self->cmd, self->mem, ZCOLL_SUM, 0, 0, 4);
	self->cmd[1].recv += 16;
	ASSERT_EQ(0, zt_all_of(self->ep, ZCOLL_REDUCE_SCATTER, self->cmd, 2));
	EXPECT_EQ(303, self->mem[0][3]);
	EXPECT_EQ(4, self->mem[0][4]);
	EXPECT_EQ(0, self->mem[1][0]);
	EXPECT_EQ(404, self->mem[1][4]);
}

TEST_F(pair, all_blocks_must_be_in_the_buffer)
{
	uint32_t handle;

	ASSERT_EQ(0, zt_register(self->ep[0], self->mem[0], 7 * sizeof(int32_t), &handle));
	place(self->cmd, self->mem, ZCOLL_SUM, 0, 0, 4);
	self->cmd[0].send = 0;
	self->cmd[0].send_buf = handle;
	EXPECT_CALL(-ERANGE, ZCOLL_REDUCE_SCATTER);
	place(self->cmd, self->mem, 0, 0, 0, 4);
	self->cmd[0].recv = 0;
	self->cmd[0].recv_buf = handle;
	EXPECT_CALL(-ERANGE, ZCOLL_ALLGATHER);
}

/* A call that is made again must be the same collective to find its operation */
TEST_F(pair, sequence_number_of_another_collective_is_taken)
{
	struct zcoll_cmd cmd = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM, NULL, NULL, 0);
	struct zt_call call;

	ASSERT_EQ(0, zt_start(&call, self->ep[0], ZCOLL_IOC_ALLREDUCE, &cmd));
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep[0], 0) == 1));
	EXPECT_EQ(-EEXIST, zt_collective(self->ep[0], ZCOLL_REDUCE, &cmd));
	EXPECT_EQ(0, zt_allreduce(self->ep[1], &cmd));
	EXPECT_EQ(0, zt_finish(&call, ZT_LONG_MS));
}

/* --- texts --------------------------------------------------------------- */

TEST_F(cmd, status_text_pointer_is_checked)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	struct zcoll_status arg = {
		.size = sizeof(arg),
		.text = NOT_MAPPED,
		.text_len = ZCOLL_TEXT_MAX,
	};

	cmd.root = 1;
	ASSERT_EQ(-EINVAL, zt_allreduce(self->s.ep, &cmd));
	EXPECT_EQ(-EFAULT, zt_ioctl(self->s.ep, ZCOLL_IOC_STATUS, &arg));
	arg.text = 0;
	EXPECT_EQ(0, zt_ioctl(self->s.ep, ZCOLL_IOC_STATUS, &arg));
}

ZT_MAIN
