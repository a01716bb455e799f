// SPDX-License-Identifier: GPL-2.0
/*
 * Each struct of the ABI, one error at a time.
 *
 * How a field is spoiled is in abi.h; commands, which ioctls and rings share, are in
 * abi_cmd.c, and what is about several nodes in abi_nodes.c.
 */
#include "abi.h"

FIELD(info_size_0, CALL_INFO, zcoll_info, size, 0, EINVAL);
FIELD(info_size_short, CALL_INFO, zcoll_info, size,
      offsetof(struct zcoll_info, cache_hits) - 1, EINVAL);

FIELD(join_size_0, CALL_JOIN, zcoll_join, size, 0, EINVAL);
FIELD(join_size_short, CALL_JOIN, zcoll_join, size, offsetof(struct zcoll_join, nodes) - 1, EINVAL);
FIELD(join_flags_unknown, CALL_JOIN, zcoll_join, flags, 2, EINVAL);
FIELD(join_flags_high, CALL_JOIN, zcoll_join, flags, TOP_BIT, EINVAL);
FIELD(join_rank_is_nranks, CALL_JOIN, zcoll_join, rank, 2, EINVAL);
FIELD(join_rank_huge, CALL_JOIN, zcoll_join, rank, UINT32_MAX, EINVAL);
FIELD(join_nranks_0, CALL_JOIN, zcoll_join, nranks, 0, EINVAL);
FIELD(join_nranks_above_max, CALL_JOIN, zcoll_join, nranks, ZCOLL_MAX_RANKS + 1, EINVAL);
FIELD(join_nranks_huge, CALL_JOIN, zcoll_join, nranks, UINT32_MAX, EINVAL);
FIELD(join_node_map_unmapped, CALL_JOIN, zcoll_join, node_map, NOT_MAPPED, EFAULT);
FIELD(join_node_map_kernel, CALL_JOIN, zcoll_join, node_map, KERNEL_ADDR, EFAULT);
FIELD(join_deadline_above_max, CALL_JOIN, zcoll_join, deadline_ns,
      ZCOLL_MAX_DEADLINE_NS + 1, EINVAL);
FIELD(join_deadline_huge, CALL_JOIN, zcoll_join, deadline_ns, UINT64_MAX, EINVAL);
FIELD(join_reserved, CALL_JOIN, zcoll_join, __reserved, 1, EINVAL);
FIELD(join_node, CALL_JOIN, zcoll_join, node, 1, EINVAL);
FIELD(join_nodes_above_max, CALL_JOIN, zcoll_join, nodes, ZCOLL_MAX_NODES + 1, EINVAL);
FIELD(join_nodes_without_map, CALL_JOIN, zcoll_join, nodes, 2, EINVAL);
FIELD(join_fabric_without_length, CALL_JOIN, zcoll_join, fabric, NOT_MAPPED, EINVAL);
FIELD(join_fabric_length_alone, CALL_JOIN, zcoll_join, fabric_len, 4, EINVAL);
FIELD(join_reserved2, CALL_JOIN, zcoll_join, __reserved2, 1, EINVAL);

FIELD(leave_size_0, CALL_LEAVE, zcoll_flags, size, 0, EINVAL);
FIELD(leave_size_short, CALL_LEAVE, zcoll_flags, size, sizeof(struct zcoll_flags) - 1, EINVAL);
FIELD(leave_flags_low, CALL_LEAVE, zcoll_flags, flags, 1, EINVAL);
FIELD(leave_flags_high, CALL_LEAVE, zcoll_flags, flags, TOP_BIT, EINVAL);

FIELD(abort_size_0, CALL_ABORT, zcoll_flags, size, 0, EINVAL);
FIELD(abort_size_short, CALL_ABORT, zcoll_flags, size, sizeof(struct zcoll_flags) - 1, EINVAL);
FIELD(abort_flags_low, CALL_ABORT, zcoll_flags, flags, 1, EINVAL);
FIELD(abort_flags_high, CALL_ABORT, zcoll_flags, flags, TOP_BIT, EINVAL);

FIELD(register_size_0, CALL_REGISTER, zcoll_buf, size, 0, EINVAL);
FIELD(register_size_short, CALL_REGISTER, zcoll_buf, size, sizeof(struct zcoll_buf) - 1, EINVAL);
FIELD(register_flags_low, CALL_REGISTER, zcoll_buf, flags, 1, EINVAL);
FIELD(register_flags_high, CALL_REGISTER, zcoll_buf, flags, TOP_BIT, EINVAL);
FIELD(register_addr_null, CALL_REGISTER, zcoll_buf, addr, 0, EFAULT);
FIELD(register_addr_unmapped, CALL_REGISTER, zcoll_buf, addr, NOT_MAPPED, EFAULT);
FIELD(register_addr_kernel, CALL_REGISTER, zcoll_buf, addr, KERNEL_ADDR, EFAULT);
FIELD(register_addr_wraps, CALL_REGISTER, zcoll_buf, addr, UINT64_MAX - 100, EOVERFLOW);
FIELD(register_len_0, CALL_REGISTER, zcoll_buf, len, 0, EINVAL);
FIELD(register_len_wraps, CALL_REGISTER, zcoll_buf, len, UINT64_MAX, EOVERFLOW);

FIELD(unregister_size_0, CALL_UNREGISTER, zcoll_unbuf, size, 0, EINVAL);
FIELD(unregister_size_short, CALL_UNREGISTER, zcoll_unbuf, size,
      sizeof(struct zcoll_unbuf) - 1, EINVAL);
FIELD(unregister_handle_0, CALL_UNREGISTER, zcoll_unbuf, handle, 0, ENOENT);
FIELD(unregister_handle_unknown, CALL_UNREGISTER, zcoll_unbuf, handle, 12345, ENOENT);
FIELD(unregister_handle_huge, CALL_UNREGISTER, zcoll_unbuf, handle, UINT32_MAX, ENOENT);

FIELD(status_size_0, CALL_STATUS, zcoll_status, size, 0, EINVAL);
FIELD(status_size_short, CALL_STATUS, zcoll_status, size,
      sizeof(struct zcoll_status) - 1, EINVAL);
FIELD(status_flags_unknown, CALL_STATUS, zcoll_status, flags, 2, EINVAL);
FIELD(status_flags_high, CALL_STATUS, zcoll_status, flags, TOP_BIT, EINVAL);
FIELD(status_reserved, CALL_STATUS, zcoll_status, __reserved, 1, EINVAL);
FIELD(status_comm_seq, CALL_COMM_STATUS, zcoll_status, seq, 1, EINVAL);

FIELD(wait_size_0, CALL_WAIT, zcoll_wait, size, 0, EINVAL);
FIELD(wait_size_short, CALL_WAIT, zcoll_wait, size, sizeof(struct zcoll_wait) - 1, EINVAL);
FIELD(wait_flags_low, CALL_WAIT, zcoll_wait, flags, 1, EINVAL);
FIELD(wait_flags_high, CALL_WAIT, zcoll_wait, flags, TOP_BIT, EINVAL);
FIELD(wait_seq_unknown, CALL_WAIT, zcoll_wait, seq, 7, ENOENT);
FIELD(wait_seq_huge, CALL_WAIT, zcoll_wait, seq, UINT64_MAX, ENOENT);
FIELD(wait_reserved, CALL_WAIT, zcoll_wait, __reserved, 1, EINVAL);

FIELD(cancel_size_0, CALL_CANCEL, zcoll_seq, size, 0, EINVAL);
FIELD(cancel_size_short, CALL_CANCEL, zcoll_seq, size, sizeof(struct zcoll_seq) - 1, EINVAL);
FIELD(cancel_flags_low, CALL_CANCEL, zcoll_seq, flags, 1, EINVAL);
FIELD(cancel_flags_high, CALL_CANCEL, zcoll_seq, flags, TOP_BIT, EINVAL);
FIELD(cancel_seq_unknown, CALL_CANCEL, zcoll_seq, seq, 7, ENOENT);
FIELD(cancel_seq_huge, CALL_CANCEL, zcoll_seq, seq, UINT64_MAX, ENOENT);

FIELD(stats_size_0, CALL_STATS, zcoll_stats, size, 0, EINVAL);
FIELD(stats_size_short, CALL_STATS, zcoll_stats, size,
      offsetof(struct zcoll_stats, nodes) - 1, EINVAL);
FIELD(stats_flags_low, CALL_STATS, zcoll_stats, flags, 1, EINVAL);
FIELD(stats_flags_high, CALL_STATS, zcoll_stats, flags, TOP_BIT, EINVAL);

/* --- sizes larger than the kernel knows ---------------------------------- */

FIXTURE(larger) {
	struct site s;
};

FIXTURE_VARIANT(larger) {
	enum call call;
};

FIXTURE_SETUP(larger)
{
	ASSERT_EQ(0, site_setup(&self->s));
}

FIXTURE_TEARDOWN(larger)
{
	EXPECT_STREQ("", site_teardown(&self->s));
}

FIXTURE_VARIANT_ADD(larger, info) { CALL_INFO };
FIXTURE_VARIANT_ADD(larger, join) { CALL_JOIN };
FIXTURE_VARIANT_ADD(larger, leave) { CALL_LEAVE };
FIXTURE_VARIANT_ADD(larger, abort) { CALL_ABORT };
FIXTURE_VARIANT_ADD(larger, register) { CALL_REGISTER };
FIXTURE_VARIANT_ADD(larger, unregister) { CALL_UNREGISTER };
FIXTURE_VARIANT_ADD(larger, status) { CALL_STATUS };
FIXTURE_VARIANT_ADD(larger, wait) { CALL_WAIT };
FIXTURE_VARIANT_ADD(larger, cancel) { CALL_CANCEL };
FIXTURE_VARIANT_ADD(larger, stats) { CALL_STATS };

TEST_F(larger, with_zero_tail_is_accepted)
{
	static const uint8_t zero[64];
	union arg arg;
	int ret;

	ASSERT_EQ(0, prepare(&self->s, variant->call, &arg));
	arg.size += sizeof(zero);
	ret = do_call(&self->s, variant->call, &arg);
	EXPECT_WORKS(variant->call, ret);
	EXPECT_EQ(0, memcmp(arg.byte + calls[variant->call].size, zero, sizeof(zero)));
}

TEST_F(larger, with_nonzero_tail_is_e2big)
{
	union arg arg;
	int ret;

	ASSERT_EQ(0, prepare(&self->s, variant->call, &arg));
	arg.size += 64;
	arg.byte[arg.size - 1] = 1;
	EXPECT_EQ(-E2BIG, do_call(&self->s, variant->call, &arg));
	arg.byte[arg.size - 1] = 0;
	ret = do_call(&self->s, variant->call, &arg);
	EXPECT_WORKS(variant->call, ret);
}

TEST_F(larger, than_a_page_is_e2big)
{
	union arg arg;
	int ret;

	ASSERT_EQ(0, prepare(&self->s, variant->call, &arg));
	arg.size = 4097;
	EXPECT_EQ(-E2BIG, do_call(&self->s, variant->call, &arg));
	arg.size = UINT32_MAX;
	EXPECT_EQ(-E2BIG, do_call(&self->s, variant->call, &arg));
	arg.size = calls[variant->call].size;
	ret = do_call(&self->s, variant->call, &arg);
	EXPECT_WORKS(variant->call, ret);
}

/* --- pointers to the struct itself --------------------------------------- */

FIXTURE(pointer) {
	struct site s;
};

FIXTURE_VARIANT(pointer) {
	enum call call;
};

FIXTURE_SETUP(pointer)
{
	ASSERT_EQ(0, site_setup(&self->s));
}

FIXTURE_TEARDOWN(pointer)
{
	EXPECT_STREQ("", site_teardown(&self->s));
}

FIXTURE_VARIANT_ADD(pointer, info) { CALL_INFO };
FIXTURE_VARIANT_ADD(pointer, join) { CALL_JOIN };
FIXTURE_VARIANT_ADD(pointer, leave) { CALL_LEAVE };
FIXTURE_VARIANT_ADD(pointer, abort) { CALL_ABORT };
FIXTURE_VARIANT_ADD(pointer, register) { CALL_REGISTER };
FIXTURE_VARIANT_ADD(pointer, unregister) { CALL_UNREGISTER };
FIXTURE_VARIANT_ADD(pointer, status) { CALL_STATUS };
FIXTURE_VARIANT_ADD(pointer, wait) { CALL_WAIT };
FIXTURE_VARIANT_ADD(pointer, cancel) { CALL_CANCEL };
FIXTURE_VARIANT_ADD(pointer, stats) { CALL_STATS };
FIXTURE_VARIANT_ADD(pointer, allreduce) { CALL_IOCTL };

static int call_at(struct site *s, enum call call, void *p)
{
	int fd = s->ep;

	if (call == CALL_INFO || call == CALL_JOIN)
		fd = s->zt.dev;
	return zt_ioctl(fd, calls[call].req, p);
}

TEST_F(pointer, null_is_efault)
{
	EXPECT_EQ(-EFAULT, call_at(&self->s, variant->call, NULL));
}

TEST_F(pointer, unmapped_is_efault)
{
	EXPECT_EQ(-EFAULT, call_at(&self->s, variant->call, self->s.mem + 2 * self->s.page));
}

TEST_F(pointer, kernel_is_efault)
{
	EXPECT_EQ(-EFAULT, call_at(&self->s, variant->call, (void *)KERNEL_ADDR));
}

/* The first half of the struct can be read, the second not */
TEST_F(pointer, end_unmapped_is_efault)
{
	size_t half = calls[variant->call].size / 2;
	char *hole = self->s.mem + 2 * self->s.page;
	union arg arg;

	ASSERT_EQ(0, prepare(&self->s, variant->call, &arg));
	memcpy(hole - half, &arg, half);
	EXPECT_EQ(-EFAULT, call_at(&self->s, variant->call, hole - half));
}

/* --- outputs that cannot be written -------------------------------------- */

FIXTURE(output) {
	struct site s;
};

FIXTURE_VARIANT(output) {
	enum call call;
};

FIXTURE_SETUP(output)
{
	ASSERT_EQ(0, site_setup(&self->s));
}

FIXTURE_TEARDOWN(output)
{
	EXPECT_STREQ("", site_teardown(&self->s));
}

FIXTURE_VARIANT_ADD(output, info) { CALL_INFO };
FIXTURE_VARIANT_ADD(output, register) { CALL_REGISTER };
FIXTURE_VARIANT_ADD(output, status) { CALL_STATUS };
FIXTURE_VARIANT_ADD(output, wait) { CALL_WAIT };
FIXTURE_VARIANT_ADD(output, stats) { CALL_STATS };

TEST_F(output, read_only_is_efault_and_leaves_nothing)
{
	char *page = self->s.mem + self->s.page;
	struct zcoll_info before, after;
	union arg arg;

	ASSERT_EQ(0, prepare(&self->s, variant->call, &arg));
	memcpy(page, &arg, sizeof(arg));
	ASSERT_EQ(0, mprotect(page, self->s.page, PROT_READ));
	ASSERT_EQ(0, zt_info(self->s.zt.dev, &before));
	EXPECT_EQ(-EFAULT, call_at(&self->s, variant->call, page));
	EXPECT_TRUE(zt_until(ZT_SOON_MS, !zt_info(self->s.zt.dev, &after) &&
			     after.pinned_pages == before.pinned_pages));
	ASSERT_EQ(0, mprotect(page, self->s.page, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, call_at(&self->s, variant->call, page));
}

/* --- everything else ----------------------------------------------------- */

FIXTURE(abi) {
	struct site s;
};

FIXTURE_SETUP(abi)
{
	ASSERT_EQ(0, site_setup(&self->s));
}

FIXTURE_TEARDOWN(abi)
{
	EXPECT_STREQ("", site_teardown(&self->s));
}

TEST_F(abi, structs_have_the_published_sizes)
{
	EXPECT_EQ(152, sizeof(struct zcoll_info));
	EXPECT_EQ(88, sizeof(struct zcoll_join));
	EXPECT_EQ(24, sizeof(struct zcoll_address));
	EXPECT_EQ(32, sizeof(struct zcoll_peers));
	EXPECT_EQ(40, sizeof(struct zcoll_buf));
	EXPECT_EQ(8, sizeof(struct zcoll_unbuf));
	EXPECT_EQ(80, sizeof(struct zcoll_cmd));
	EXPECT_EQ(16, sizeof(struct zcoll_cmd_ptr));
	EXPECT_EQ(32, sizeof(struct zcoll_wait));
	EXPECT_EQ(72, sizeof(struct zcoll_status));
	EXPECT_EQ(16, sizeof(struct zcoll_seq));
	EXPECT_EQ(8, sizeof(struct zcoll_flags));
	EXPECT_EQ(200, sizeof(struct zcoll_stats));
	EXPECT_EQ(32, sizeof(struct zcoll_park));
	EXPECT_EQ(16, sizeof(struct zcoll_verdict));
	EXPECT_EQ(208, sizeof(struct zcoll_mailbox));
	EXPECT_EQ(64, sizeof(struct zcoll_line));
}

TEST_F(abi, unknown_ioctl_is_enotty)
{
	union arg arg = { .size = 64 };

	EXPECT_EQ(-ENOTTY, zt_ioctl(self->s.zt.dev, _IOWR(ZCOLL_IOC_TYPE, 0x3f, arg), &arg));
	EXPECT_EQ(-ENOTTY, zt_ioctl(self->s.ep, _IOWR(ZCOLL_IOC_TYPE, 0x3f, arg), &arg));
	EXPECT_EQ(-ENOTTY, zt_ioctl(self->s.ep, _IOWR(ZCOLL_IOC_TYPE, 0xff, arg), &arg));
}

TEST_F(abi, ioctl_of_another_driver_is_enotty)
{
	struct zcoll_info info = { .size = sizeof(info) };

	EXPECT_EQ(-ENOTTY, zt_ioctl(self->s.zt.dev,
				    _IOWR(ZCOLL_IOC_TYPE - 1, 0, info), &info));
	EXPECT_EQ(-ENOTTY, zt_ioctl(self->s.ep,
				    _IOWR(ZCOLL_IOC_TYPE - 1, 0, info), &info));
}

TEST_F(abi, operations_on_the_device_are_enotty)
{
	struct zcoll_cmd cmd = zt_barrier(0);

	EXPECT_EQ(-ENOTTY, zt_ioctl(self->s.zt.dev, ZCOLL_IOC_ALLREDUCE, &cmd));
}

TEST_F(abi, join_on_an_endpoint_is_enotty)
{
	struct zcoll_join arg = zt_join_arg(self->s.key, 0, 1);

	EXPECT_EQ(-ENOTTY, zt_ioctl(self->s.ep, ZCOLL_IOC_JOIN, &arg));
}

TEST_F(abi, info_is_sane)
{
	struct zcoll_info info;

	ASSERT_EQ(0, zt_info(self->s.zt.dev, &info));
	EXPECT_EQ(sizeof(info), info.size);
	EXPECT_EQ(ZCOLL_ABI_VERSION, info.abi_version);
	EXPECT_EQ(0, info.features & ~(ZCOLL_FEAT_URING | ZCOLL_FEAT_RING_CANCEL |
				       ZCOLL_FEAT_RDMA | ZCOLL_FEAT_MAILBOX));
	EXPECT_EQ(((1ULL << ZCOLL_NR_TYPES) - 1) & ~1ULL, info.types);
	EXPECT_EQ(((1ULL << ZCOLL_NR_OPS) - 1) & ~1ULL, info.ops);
	EXPECT_LE(2, info.max_ranks);
	EXPECT_GE(ZCOLL_MAX_RANKS, info.max_ranks);
	EXPECT_LE(2, info.window);
	EXPECT_GE(ZCOLL_MAX_WINDOW, info.window);
	EXPECT_LE(1, info.max_buffers);
	EXPECT_LE(1, info.max_comms);
	EXPECT_LT(0, strnlen(info.fold, sizeof(info.fold)));
	EXPECT_GT(sizeof(info.fold), strnlen(info.fold, sizeof(info.fold)));
}

TEST_F(abi, info_counts_what_there_is)
{
	struct zcoll_info before, after;
	uint32_t handle;
	int ep[3];

	ASSERT_EQ(0, zt_info(self->s.zt.dev, &before));
	ASSERT_EQ(0, zt_comm(&self->s.zt, 3, ep));
	ASSERT_EQ(0, zt_register(ep[0], self->s.mem, 2 * self->s.page, &handle));
	ASSERT_EQ(0, zt_info(self->s.zt.dev, &after));
	EXPECT_EQ(before.comms + 1, after.comms);
	EXPECT_EQ(before.ranks + 3, after.ranks);
	EXPECT_EQ(before.pinned_pages + 2, after.pinned_pages);
	EXPECT_LT(before.kernel_bytes, after.kernel_bytes);
}

TEST_F(abi, info_counts_operations)
{
	struct zcoll_info before, after;
	struct zcoll_cmd cmd = zt_barrier(0);

	ASSERT_EQ(0, zt_info(self->s.zt.dev, &before));
	ASSERT_EQ(0, zt_allreduce(self->s.ep, &cmd));
	ASSERT_EQ(0, zt_info(self->s.zt.dev, &after));
	EXPECT_EQ(before.ops_done + 1, after.ops_done);
	EXPECT_EQ(before.ops_failed, after.ops_failed);
}

/* A program that does not know the newer fields gets the older ones, and nothing behind them */
TEST_F(abi, info_of_an_older_program)
{
	size_t size = offsetof(struct zcoll_info, cache_hits);
	union arg arg, same;

	memset(&arg, 0xa5, sizeof(arg));
	same = arg;
	arg.size = size;
	ASSERT_EQ(0, do_call(&self->s, CALL_INFO, &arg));
	EXPECT_EQ(ZCOLL_ABI_VERSION, arg.info.abi_version);
	EXPECT_EQ(0, memcmp(arg.byte + size, same.byte + size, sizeof(arg) - size));
}

/* Kernel memory of a communicator: 64 KiB, and 8 KiB for each rank */
TEST_F(abi, kernel_memory_of_a_communicator_is_small)
{
	struct zcoll_stats stats;
	struct zcoll_cmd cmd[8];
	int ep[8];

	ASSERT_EQ(0, zt_comm(&self->s.zt, 8, ep));
	for (int r = 0; r < 8; r++)
		cmd[r] = zt_barrier(0);
	ASSERT_EQ(0, zt_all(ep, cmd, 8));
	ASSERT_EQ(0, zt_stats(ep[0], &stats));
	EXPECT_LT(0, stats.comm_kernel_bytes);
	EXPECT_GE(65536 + 8 * 8192, stats.comm_kernel_bytes);
}

/* A call with two different fillings of its outputs must give the same bytes */
static int outputs_differ(struct site *s, enum call call, size_t from, size_t to)
{
	union arg arg[2];

	for (int i = 0; i < 2; i++) {
		if (prepare(s, call, &arg[i]))
			return -1;
		memset(arg[i].byte + from, i ? 0xff : 0x00, to - from);
		if (do_call(s, call, &arg[i]))
			return -1;
	}
	return memcmp(arg[0].byte + from, arg[1].byte + from, to - from);
}

TEST_F(abi, info_leaves_no_stale_bytes)
{
	EXPECT_EQ(0, outputs_differ(&self->s, CALL_INFO,
				    offsetof(struct zcoll_info, abi_version),
				    sizeof(struct zcoll_info)));
}

TEST_F(abi, status_leaves_no_stale_bytes)
{
	EXPECT_EQ(0, outputs_differ(&self->s, CALL_STATUS,
				    offsetof(struct zcoll_status, state),
				    offsetof(struct zcoll_status, missing_len)));
	EXPECT_EQ(0, outputs_differ(&self->s, CALL_STATUS,
				    offsetof(struct zcoll_status, oldest),
				    offsetof(struct zcoll_status, text)));
}

TEST_F(abi, wait_leaves_no_stale_bytes)
{
	EXPECT_EQ(0, outputs_differ(&self->s, CALL_WAIT,
				    offsetof(struct zcoll_wait, result),
				    offsetof(struct zcoll_wait, __reserved)));
}

TEST_F(abi, stats_leave_no_stale_bytes)
{
	EXPECT_EQ(0, outputs_differ(&self->s, CALL_STATS,
				    offsetof(struct zcoll_stats, ops_done),
				    sizeof(struct zcoll_stats)));
}

TEST_F(abi, register_ignores_what_was_in_handle)
{
	union arg arg;

	ASSERT_EQ(0, prepare(&self->s, CALL_REGISTER, &arg));
	arg.buf.handle = 0xa5a5a5a5;
	ASSERT_EQ(0, do_call(&self->s, CALL_REGISTER, &arg));
	EXPECT_NE(0xa5a5a5a5, arg.buf.handle);
	EXPECT_NE(0, arg.buf.handle);
	EXPECT_EQ(0, zt_unregister(self->s.ep, arg.buf.handle));
}

TEST_F(abi, stats_count)
{
	struct zcoll_stats st;
	struct zcoll_cmd cmd = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM, 0,
				      self->s.mem + self->s.page, COUNT);

	cmd.send_buf = self->s.handle;
	ASSERT_EQ(0, zt_allreduce(self->s.ep, &cmd));
	ASSERT_EQ(0, zt_stats(self->s.ep, &st));
	EXPECT_EQ(1, st.ops_done);
	EXPECT_EQ(0, st.ops_failed);
	EXPECT_EQ(BYTES, st.bytes_folded);
	EXPECT_EQ(1, st.call_pins);
	EXPECT_EQ(0, st.cache_hits);
	EXPECT_EQ(0, st.cache_dropped);
	EXPECT_EQ(1, st.cache_pages);
	EXPECT_LT(0, st.pin_ns);
	EXPECT_EQ(1, st.buffers);
	EXPECT_GE(1, st.vmapped);
	EXPECT_EQ(1, st.pinned_pages);
	EXPECT_EQ(0, st.__reserved);
}

/* --- texts --------------------------------------------------------------- */

FIXTURE(text) {
	struct site s;
};

FIXTURE_VARIANT(text) {
	uint32_t len;
};

FIXTURE_SETUP(text)
{
	ASSERT_EQ(0, site_setup(&self->s));
}

FIXTURE_TEARDOWN(text)
{
	EXPECT_STREQ("", site_teardown(&self->s));
}

FIXTURE_VARIANT_ADD(text, of_0_bytes) { 0 };
FIXTURE_VARIANT_ADD(text, of_1_byte) { 1 };
FIXTURE_VARIANT_ADD(text, of_5_bytes) { 5 };
FIXTURE_VARIANT_ADD(text, of_full_length) { ZCOLL_TEXT_MAX };
FIXTURE_VARIANT_ADD(text, of_more_than_needed) { 2 * ZCOLL_TEXT_MAX };

/* A text fills its buffer with a string that ends in it, and nothing behind */
static const char *text_flaw(const char *buf, uint32_t len, size_t room)
{
	size_t n = strnlen(buf, room);

	if (len && n >= len)
		return "no NUL in the buffer";
	if (len > 1 && n == 0)
		return "empty";
	for (size_t i = len; i < room; i++) {
		if (buf[i] != 'x')
			return "written behind the buffer";
	}
	return "";
}

TEST_F(text, of_join)
{
	char buf[3 * ZCOLL_TEXT_MAX];
	struct zcoll_join arg = zt_join_arg(self->s.key, 5, 2);

	memset(buf, 'x', sizeof(buf));
	arg.text = (uintptr_t)buf;
	arg.text_len = variant->len;
	ASSERT_EQ(-EINVAL, zt_ioctl(self->s.zt.dev, ZCOLL_IOC_JOIN, &arg));
	EXPECT_STREQ("", text_flaw(buf, variant->len, sizeof(buf)));
}

TEST_F(text, of_register)
{
	char buf[3 * ZCOLL_TEXT_MAX];
	struct zcoll_buf arg = {
		.size = sizeof(arg),
		.addr = (uintptr_t)self->s.mem + 2 * self->s.page,
		.len = self->s.page,
		.text = (uintptr_t)buf,
		.text_len = variant->len,
	};

	memset(buf, 'x', sizeof(buf));
	ASSERT_EQ(-EFAULT, zt_ioctl(self->s.ep, ZCOLL_IOC_REGISTER, &arg));
	EXPECT_STREQ("", text_flaw(buf, variant->len, sizeof(buf)));
}

TEST_F(text, of_an_operation)
{
	char buf[3 * ZCOLL_TEXT_MAX];
	struct zcoll_cmd cmd = zt_barrier(3);
	struct zcoll_status arg = {
		.size = sizeof(arg),
		.seq = 3,
		.text = (uintptr_t)buf,
		.text_len = variant->len,
	};

	cmd.root = 1;
	ASSERT_EQ(-EINVAL, zt_allreduce(self->s.ep, &cmd));
	memset(buf, 'x', sizeof(buf));
	ASSERT_EQ(0, zt_ioctl(self->s.ep, ZCOLL_IOC_STATUS, &arg));
	EXPECT_STREQ("", text_flaw(buf, variant->len, sizeof(buf)));
}

TEST_F(text, of_a_revoked_communicator)
{
	char buf[3 * ZCOLL_TEXT_MAX];
	struct zcoll_status arg = {
		.size = sizeof(arg),
		.flags = ZCOLL_STATUS_COMM,
		.text = (uintptr_t)buf,
		.text_len = variant->len,
	};

	ASSERT_EQ(0, zt_abort(self->s.ep));
	memset(buf, 'x', sizeof(buf));
	ASSERT_EQ(0, zt_ioctl(self->s.ep, ZCOLL_IOC_STATUS, &arg));
	EXPECT_EQ(ZCOLL_STATE_DONE, arg.state);
	EXPECT_EQ(-ECANCELED, arg.result);
	EXPECT_STREQ("", text_flaw(buf, variant->len, sizeof(buf)));
}

TEST_F(abi, status_missing_pointer_is_checked)
{
	struct zcoll_status arg = {
		.size = sizeof(arg),
		.missing = NOT_MAPPED,
		.missing_len = 2,
	};

	ASSERT_EQ(0, wait_for_second_rank(&self->s));
	EXPECT_EQ(-EFAULT, zt_ioctl(self->s.pair[0], ZCOLL_IOC_STATUS, &arg));
	arg.missing = 0;
	EXPECT_EQ(0, zt_ioctl(self->s.pair[0], ZCOLL_IOC_STATUS, &arg));
}

/* A text that cannot be delivered must not turn a failure into a success */
TEST_F(abi, join_text_pointer_that_is_bad_still_fails)
{
	struct zcoll_join arg = zt_join_arg(self->s.key, 5, 2);
	int ret;

	arg.text = NOT_MAPPED;
	arg.text_len = ZCOLL_TEXT_MAX;
	ret = zt_ioctl(self->s.zt.dev, ZCOLL_IOC_JOIN, &arg);
	EXPECT_TRUE(ret == -EINVAL || ret == -EFAULT);
}

ZT_MAIN
