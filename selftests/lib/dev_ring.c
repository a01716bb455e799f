// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on rings of the caller's own: both SQE forms, links, order, and what
 * does not end a command.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"
#include "tap.h"

#define COUNT	5000
#define LEN	(COUNT * sizeof(int32_t))

static bool open_ring(struct io_uring *ring, unsigned int flags)
{
	int ret = io_uring_queue_init(64, ring, flags);

	expect(ret, 0);
	return !ret;
}

static struct io_uring_sqe *get_sqe(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		abort();	/* more than the 64 that the ring has room for */
	return sqe;
}

/* Submit a command as it is, with the number that it has */
static void submit_again(struct io_uring *ring, struct zcoll_comm *comm, struct zcoll_cmd *cmd,
			 uint64_t user_data)
{
	struct io_uring_sqe *sqe = get_sqe(ring);

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = zcoll_comm_fd(comm);
	sqe->cmd_op = ZCOLL_IOC_ALLREDUCE;
	sqe->user_data = user_data;
	*(__u64 *)sqe->cmd = (uintptr_t)cmd;
	expect(io_uring_submit(ring), 1);
}

/* Prepare an in-place sum of @mem; *@cmd is used by rings of small SQEs */
static struct io_uring_sqe *prep_sum(struct io_uring *ring, struct zcoll_comm *comm,
				     struct zcoll_cmd *cmd, int32_t *mem, uint64_t count,
				     uint64_t user_data)
{
	struct io_uring_sqe *sqe = get_sqe(ring);

	expect(zcoll_prep_allreduce(sqe, ring->flags, comm, cmd, mem, mem, count, ZCOLL_INT32,
				    ZCOLL_SUM), 0);
	sqe->user_data = user_data;
	return sqe;
}

/* Wait for @nr completions and put their results where their user_data says */
static void reap(struct io_uring *ring, int nr, int *res)
{
	struct __kernel_timespec ts = { .tv_sec = 15 };
	struct io_uring_cqe *cqe;
	int ret;

	while (nr--) {
		ret = io_uring_wait_cqe_timeout(ring, &cqe, &ts);
		expect(ret, 0);
		if (ret)
			return;
		res[cqe->user_data] = cqe->res;
		io_uring_cqe_seen(ring, cqe);
	}
}

static void one_sum(struct zcoll_comm *comm, unsigned int ring_flags)
{
	static int32_t mem[COUNT];
	struct zcoll_cmd cmd;
	struct io_uring ring;
	int res = -1;

	if (!open_ring(&ring, ring_flags))
		return;
	fill(mem, COUNT, zcoll_comm_rank(comm));
	prep_sum(&ring, comm, &cmd, mem, COUNT, 0);
	expect(io_uring_submit(&ring), 1);
	reap(&ring, 1, &res);
	expect(res, 0);
	expect_sum(mem, COUNT, zcoll_comm_size(comm));
	expect(zcoll_barrier(comm), 0);		/* numbers go on */
	io_uring_queue_exit(&ring);
}

static void sqe_128(struct zcoll_comm *comm)
{
	one_sum(comm, IORING_SETUP_SQE128);
}

static void sqe_64(struct zcoll_comm *comm)
{
	one_sum(comm, 0);
}

static void defer_taskrun(struct zcoll_comm *comm)
{
	one_sum(comm, IORING_SETUP_SQE128 | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
}

static void sqpoll(struct zcoll_comm *comm)
{
	one_sum(comm, IORING_SETUP_SQE128 | IORING_SETUP_SQPOLL);
}

static void async_and_fixed_file(struct zcoll_comm *comm)
{
	static int32_t mem[COUNT];
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int fd = zcoll_comm_fd(comm), res = -1;

	if (!open_ring(&ring, IORING_SETUP_SQE128))
		return;
	expect(io_uring_register_files(&ring, &fd, 1), 0);
	fill(mem, COUNT, zcoll_comm_rank(comm));
	sqe = prep_sum(&ring, comm, NULL, mem, COUNT, 0);
	sqe->fd = 0;
	sqe->flags |= IOSQE_FIXED_FILE | IOSQE_ASYNC;
	expect(io_uring_submit(&ring), 1);
	reap(&ring, 1, &res);
	expect(res, 0);
	expect_sum(mem, COUNT, zcoll_comm_size(comm));
	io_uring_queue_exit(&ring);
}

/* Numbers are drawn at preparation, so that submission has no order to keep */
static void submitted_backwards(struct zcoll_comm *comm)
{
	static int32_t a[COUNT], b[COUNT];
	struct io_uring first, second;
	struct zcoll_cmd cmd;
	int res[2] = { -1, -1 };

	if (!open_ring(&first, 0) || !open_ring(&second, IORING_SETUP_SQE128))
		return;
	fill(a, COUNT, zcoll_comm_rank(comm));
	fill(b, 10, zcoll_comm_rank(comm));
	prep_sum(&first, comm, &cmd, a, COUNT, 0);
	prep_sum(&second, comm, NULL, b, 10, 1);
	if (zcoll_comm_rank(comm) % 2) {
		expect(io_uring_submit(&second), 1);
		sleep_ms(50);
		expect(io_uring_submit(&first), 1);
	} else {
		expect(io_uring_submit(&first), 1);
		expect(io_uring_submit(&second), 1);
	}
	reap(&first, 1, res);
	reap(&second, 1, res);
	expect(res[0], 0);
	expect(res[1], 0);
	expect_sum(a, COUNT, zcoll_comm_size(comm));
	expect_sum(b, 10, zcoll_comm_size(comm));
	io_uring_queue_exit(&first);
	io_uring_queue_exit(&second);
}

/* ------------------------------------------------------------------- links */

static int temp_file(const void *data, size_t len)
{
	char path[] = "/tmp/zcoll-ring-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	expect(pwrite(fd, data, len, 0), len);
	return fd;
}

/* read -> all-reduce -> write, and the caller touches the data only in the files */
static void link_through_files(struct zcoll_comm *comm)
{
	static int32_t data[COUNT];
	int32_t *mem = zcoll_alloc(comm, LEN);
	int res[3] = { -1, -1, -1 }, in, out;
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	if (!open_ring(&ring, IORING_SETUP_SQE128))
		return;
	fill(data, COUNT, zcoll_comm_rank(comm));
	in = temp_file(data, LEN);
	memset(data, 0, LEN);
	out = temp_file(data, LEN);

	sqe = get_sqe(&ring);
	io_uring_prep_read(sqe, in, mem, LEN, 0);
	sqe->flags |= IOSQE_IO_LINK;
	sqe->user_data = 0;
	sqe = prep_sum(&ring, comm, NULL, mem, COUNT, 1);
	sqe->flags |= IOSQE_IO_LINK;
	sqe = get_sqe(&ring);
	io_uring_prep_write(sqe, out, mem, LEN, 0);
	sqe->user_data = 2;
	expect(io_uring_submit(&ring), 3);
	reap(&ring, 3, res);
	expect(res[0], LEN);
	expect(res[1], 0);
	expect(res[2], LEN);

	expect(pread(out, data, LEN, 0), LEN);
	expect_sum(data, COUNT, zcoll_comm_size(comm));
	close(in);
	close(out);
	io_uring_queue_exit(&ring);
}

/* A refused command breaks its chain, and its number can be given back */
static void link_is_broken(struct zcoll_comm *comm)
{
	static int32_t mem[COUNT];
	int res[2] = { -1, -1 };
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	struct zcoll_cmd cmd;

	if (!open_ring(&ring, 0))
		return;
	sqe = prep_sum(&ring, comm, &cmd, mem, COUNT, 0);
	sqe->flags |= IOSQE_IO_LINK;
	cmd.send_buf = 12345;
	sqe = get_sqe(&ring);
	io_uring_prep_nop(sqe);
	sqe->user_data = 1;
	expect(io_uring_submit(&ring), 2);
	reap(&ring, 2, res);
	expect(res[0], -ENOENT);
	expect(res[1], -ECANCELED);
	expect(zcoll_unprep(comm, cmd.seq), 0);
	expect(zcoll_barrier(comm), 0);
	io_uring_queue_exit(&ring);
}

/* A refused command may be corrected and submitted again, with its number */
static void refused_and_repeated(struct zcoll_comm *comm)
{
	static int32_t mem[COUNT];
	struct io_uring ring;
	struct zcoll_cmd cmd;
	int res = -1;

	if (!open_ring(&ring, 0))
		return;
	fill(mem, COUNT, zcoll_comm_rank(comm));
	prep_sum(&ring, comm, &cmd, mem, COUNT, 0);
	cmd.recv_buf = 12345;
	expect(io_uring_submit(&ring), 1);
	reap(&ring, 1, &res);
	expect(res, -ENOENT);

	cmd.recv_buf = ZCOLL_NO_BUF;
	submit_again(&ring, comm, &cmd, 0);
	reap(&ring, 1, &res);
	expect(res, 0);
	expect_sum(mem, COUNT, zcoll_comm_size(comm));
	io_uring_queue_exit(&ring);
}

/*
 * io_uring cannot cancel a command in flight: a linked time-out passes, and the
 * operation still ends with success when the last rank has come. Deadlines are for
 * what should end.
 */
static void link_timeout(struct zcoll_comm *comm)
{
	struct __kernel_timespec soon = { .tv_nsec = 20 * MS };
	int res[2] = { -1, 1 };
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int32_t x = 1;

	if (!open_ring(&ring, IORING_SETUP_SQE128))
		return;
	if (zcoll_comm_rank(comm) == 0)
		sleep_ms(300);
	sqe = prep_sum(&ring, comm, NULL, &x, 1, 0);
	sqe->flags |= IOSQE_IO_LINK;
	sqe = get_sqe(&ring);
	io_uring_prep_link_timeout(sqe, &soon, 0);
	sqe->user_data = 1;
	expect(io_uring_submit(&ring), 2);
	reap(&ring, 2, res);
	expect(res[0], 0);
	expect(res[1] < 0, 1);
	expect(x, zcoll_comm_size(comm));
	io_uring_queue_exit(&ring);
}

/* ------------------------------------------------------------------- window */

static void beyond_the_window(struct zcoll_comm *comm)
{
	static int32_t x[ZCOLL_MAX_WINDOW + 1];
	static int res[ZCOLL_MAX_WINDOW + 1];
	static struct zcoll_cmd cmd[ZCOLL_MAX_WINDOW + 1];
	struct zcoll_info info;
	struct io_uring ring;
	unsigned int w;

	expect(zcoll_info_get(NULL, &info), 0);
	w = info.window;
	if (!open_ring(&ring, 0))
		return;
	if (zcoll_comm_rank(comm) == 0)
		sleep_ms(300);
	for (unsigned int i = 0; i <= w; i++) {
		x[i] = 1;
		res[i] = 1;
		prep_sum(&ring, comm, &cmd[i], &x[i], 1, i);
	}
	expect(io_uring_submit(&ring), w + 1);
	reap(&ring, w + 1, res);
	for (unsigned int i = 0; i < w; i++)
		expect(res[i], 0);
	/* Rank 0 comes last, and its operations may end as they are submitted */
	if (zcoll_comm_rank(comm) != 0)
		expect(res[w], -ENOBUFS);
	if (res[w] == -ENOBUFS) {
		submit_again(&ring, comm, &cmd[w], w);
		reap(&ring, 1, res);
	}
	expect(res[w], 0);
	expect(x[w], zcoll_comm_size(comm));
	io_uring_queue_exit(&ring);
}

static void taken_back(struct zcoll_comm *comm)
{
	struct io_uring_sqe sqe[2];
	uint64_t first, second;
	int32_t x = 1;

	zcoll_prep_allreduce(sqe, IORING_SETUP_SQE128, comm, NULL, &x, &x, 1, ZCOLL_INT32, ZCOLL_SUM);
	first = zcoll_sqe_seq(sqe, IORING_SETUP_SQE128);
	zcoll_prep_allreduce(sqe, IORING_SETUP_SQE128, comm, NULL, &x, &x, 1, ZCOLL_INT32, ZCOLL_SUM);
	second = zcoll_sqe_seq(sqe, IORING_SETUP_SQE128);
	expect(zcoll_unprep(comm, first), -EBUSY);
	expect(zcoll_unprep(comm, second), 0);
	expect(zcoll_unprep(comm, first), 0);
	expect(zcoll_barrier(comm), 0);
	expect(zcoll_unprep(comm, first), -EINVAL);	/* it is the barrier now */
}

/* So many operations by the ring, one at a time: nobody tells the library of their end */
static void by_ring(struct io_uring *ring, struct zcoll_comm *comm, int n)
{
	struct zcoll_cmd cmd;
	int res;

	while (n--) {
		int32_t x = 1;

		res = -1;
		prep_sum(ring, comm, &cmd, &x, 1, 0);
		expect(io_uring_submit(ring), 1);
		reap(ring, 1, &res);
		expect(res, 0);
		expect(x, zcoll_comm_size(comm));
	}
}

/* More of them than there are lines, and between them what the kernel does not see */
static void ring_and_mailboxes(struct zcoll_comm *comm)
{
	struct io_uring ring;

	if (!open_ring(&ring, 0))
		return;
	expect(zcoll_barrier(comm), 0);
	by_ring(&ring, comm, 40);
	expect(zcoll_barrier(comm), 0);
	by_ring(&ring, comm, 2 * ZCOLL_LINES + 1);
	expect(zcoll_barrier(comm), 0);
	io_uring_queue_exit(&ring);
}

/* Lines are as many as may be prepared; what is too much is refused, and taken back nothing stays */
static void prepared_too_far(struct zcoll_comm *comm)
{
	char room[128] = "";
	struct io_uring_sqe *sqe = (struct io_uring_sqe *)room;
	struct zcoll_call call = { .size = sizeof(call), .collective = ZCOLL_BARRIER };
	uint64_t seq = 0;
	int ret, n = 0;

	while (!(ret = zcoll_prep_call(sqe, IORING_SETUP_SQE128, comm, NULL, &call))) {
		seq = zcoll_sqe_seq(sqe, IORING_SETUP_SQE128);
		if (++n > 1000)
			break;
	}
	expect(ret, -ENOBUFS);
	expect(n, ZCOLL_LINES);
	while (n--)
		expect(zcoll_unprep(comm, seq--), 0);
	expect(zcoll_barrier(comm), 0);
}

int main(void)
{
	need_device();
	ok(run_ranks(&RANKS(3), sqe_128), "a ring with SQEs of 128 bytes");
	ok(run_ranks(&RANKS(3), sqe_64), "a ring with SQEs of 64 bytes");
	ok(run_ranks(&RANKS(2), defer_taskrun), "a ring with deferred task work");
	ok(run_ranks(&RANKS(2), sqpoll), "a ring with a polling thread");
	ok(run_ranks(&RANKS(2), async_and_fixed_file), "IOSQE_ASYNC and a registered file");
	ok(run_ranks(&RANKS(4), submitted_backwards), "two rings, submitted in either order");
	ok(run_ranks(&RANKS(3), link_through_files), "a link of read, all-reduce and write");
	ok(run_ranks(&RANKS(2), link_is_broken), "a refused command breaks its link and loses nothing");
	ok(run_ranks(&RANKS(2), refused_and_repeated), "a refused command can be repeated");
	ok(run_ranks(&RANKS(2), link_timeout), "a linked time-out does not end a command");
	ok(run_ranks(&RANKS(2), beyond_the_window), "beyond the window is refused and can be repeated");
	ok(run_ranks(&RANKS(2), taken_back), "operations that are never submitted are taken back");
	ok(run_ranks(&RANKS(2), ring_and_mailboxes), "operations by a ring and by mailboxes in turn");
	ok(run_ranks(&RANKS(2), prepared_too_far), "what is prepared too far ahead is refused");
	return tap_end();
}
