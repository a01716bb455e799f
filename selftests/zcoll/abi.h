/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of the ABI share: calls, and how to spoil them.
 *
 * A *call* is one ioctl, or one form of a command, with arguments that are right.
 * A *fault* spoils one field of them. The test makes the call spoiled, expects
 * the documented errno, then makes the same call unspoiled and expects success:
 * so a refused call has used up nothing and left nothing.
 *
 * Every test has a communicator of one rank, whose operations end at once.
 */
#ifndef ZCOLL_ABI_H
#define ZCOLL_ABI_H

#include "zcoll_test.h"
#include "ring.h"
#include "kselftest_harness.h"

#define COUNT	16
#define BYTES	(COUNT * sizeof(int32_t))

enum call {
	CALL_INFO,
	CALL_JOIN,
	CALL_LEAVE,
	CALL_ABORT,
	CALL_REGISTER,
	CALL_UNREGISTER,
	CALL_STATUS,
	CALL_COMM_STATUS,
	CALL_WAIT,
	CALL_CANCEL,
	CALL_STATS,
	CALL_IOCTL,		/* an operation by ioctl */
	CALL_SQE128,		/* by a 128-byte SQE */
	CALL_SQE64,		/* by an ordinary SQE */
};

static const struct {
	unsigned long req;
	size_t size;
} calls[] = {
	[CALL_INFO] =		{ ZCOLL_IOC_INFO, sizeof(struct zcoll_info) },
	[CALL_JOIN] =		{ ZCOLL_IOC_JOIN, sizeof(struct zcoll_join) },
	[CALL_LEAVE] =		{ ZCOLL_IOC_LEAVE, sizeof(struct zcoll_flags) },
	[CALL_ABORT] =		{ ZCOLL_IOC_ABORT, sizeof(struct zcoll_flags) },
	[CALL_REGISTER] =	{ ZCOLL_IOC_REGISTER, sizeof(struct zcoll_buf) },
	[CALL_UNREGISTER] =	{ ZCOLL_IOC_UNREGISTER, sizeof(struct zcoll_unbuf) },
	[CALL_STATUS] =		{ ZCOLL_IOC_STATUS, sizeof(struct zcoll_status) },
	[CALL_COMM_STATUS] =	{ ZCOLL_IOC_STATUS, sizeof(struct zcoll_status) },
	[CALL_WAIT] =		{ ZCOLL_IOC_WAIT, sizeof(struct zcoll_wait) },
	[CALL_CANCEL] =		{ ZCOLL_IOC_CANCEL, sizeof(struct zcoll_seq) },
	[CALL_STATS] =		{ ZCOLL_IOC_STATS, sizeof(struct zcoll_stats) },
	[CALL_IOCTL] =		{ ZCOLL_IOC_ALLREDUCE, sizeof(struct zcoll_cmd) },
	[CALL_SQE128] =		{ ZCOLL_IOC_ALLREDUCE, sizeof(struct zcoll_cmd) },
	[CALL_SQE64] =		{ ZCOLL_IOC_ALLREDUCE, sizeof(struct zcoll_cmd) },
};

/* Arguments of any call, with room behind for the fields of the future */
union arg {
	uint32_t size;
	struct zcoll_info info;
	struct zcoll_join join;
	struct zcoll_flags flags;
	struct zcoll_buf buf;
	struct zcoll_unbuf unbuf;
	struct zcoll_status status;
	struct zcoll_wait wait;
	struct zcoll_seq seq;
	struct zcoll_stats stats;
	struct zcoll_cmd cmd;
	uint8_t byte[512];
};

/* One rank alone, with two buffers, one of them registered */
struct site {
	struct zt zt;
	int ep;
	int pair[2];			/* a communicator of two, where needed, */
	struct zcoll_cmd waiting;	/* and what its rank 0 waits in */
	struct io_uring ring[2];	/* [0]: 64-byte SQEs, [1]: 128-byte; */
	bool have_ring[2];		/* made when they are needed */
	uint8_t key[16];
	char *mem;			/* two pages, one without access, one page */
	size_t page;
	uint32_t handle;		/* of the first page */
	char text[ZCOLL_TEXT_MAX];
};

static inline int site_setup(struct site *s)
{
	int ret;

	s->page = sysconf(_SC_PAGESIZE);
	ret = zt_open(&s->zt);
	if (ret)
		return ret;
	s->mem = zt_pages(4 * s->page);
	mprotect(s->mem + 2 * s->page, s->page, PROT_NONE);
	memset(s->mem, 1, 2 * s->page);
	zt_key(s->key);
	ret = zt_comm(&s->zt, 1, &s->ep);
	if (!ret)
		ret = zt_register(s->ep, s->mem, s->page, &s->handle);
	return ret;
}

enum { SQE64, SQE128 };

static inline struct io_uring *ring_of(struct site *s, int form)
{
	if (!s->have_ring[form] &&
	    ring_init(&s->ring[form], 4, form == SQE128 ? IORING_SETUP_SQE128 : 0))
		abort();
	s->have_ring[form] = true;
	return &s->ring[form];
}

static inline const char *site_teardown(struct site *s)
{
	for (int i = 0; i < 2; i++) {
		if (s->have_ring[i])
			io_uring_queue_exit(&s->ring[i]);
	}
	return zt_leaks(&s->zt);
}

/* An operation of two ranks, of which one has called it */
static inline int wait_for_second_rank(struct site *s)
{
	int ret = zt_comm(&s->zt, 2, s->pair);

	s->waiting = zt_barrier(0);
	return ret ?: ring_send_in(ring_of(s, SQE128), s->pair[0], &s->waiting, 0);
}

/* Arguments with which @call succeeds; some calls need a step before */
static inline int prepare(struct site *s, enum call call, union arg *arg)
{
	memset(arg, 0, sizeof(*arg));
	arg->size = calls[call].size;
	switch (call) {
	case CALL_JOIN:
		arg->join = zt_join_arg(s->key, 0, 2);
		arg->join.text = (uintptr_t)s->text;
		arg->join.text_len = sizeof(s->text);
		return 0;
	case CALL_REGISTER:
		arg->buf.addr = (uintptr_t)s->mem;
		arg->buf.len = s->page;
		arg->buf.text = (uintptr_t)s->text;
		arg->buf.text_len = sizeof(s->text);
		return 0;
	case CALL_UNREGISTER:
		return zt_register(s->ep, s->mem + s->page, s->page,
				   &arg->unbuf.handle);
	case CALL_COMM_STATUS:
		arg->status.flags = ZCOLL_STATUS_COMM;
		return 0;
	case CALL_WAIT:
		arg->cmd = zt_barrier(0);
		zt_allreduce(s->ep, &arg->cmd);
		memset(arg, 0, sizeof(*arg));
		arg->size = sizeof(arg->wait);
		return 0;
	case CALL_CANCEL:
		return wait_for_second_rank(s);
	case CALL_IOCTL:
	case CALL_SQE128:
	case CALL_SQE64:
		arg->cmd = zt_cmd(0, ZCOLL_INT32, ZCOLL_SUM, s->mem,
				  s->mem + s->page, COUNT);
		return 0;
	default:
		return 0;
	}
}

static inline int do_call(struct site *s, enum call call, union arg *arg)
{
	switch (call) {
	case CALL_INFO:
		return zt_ioctl(s->zt.dev, calls[call].req, arg);
	case CALL_JOIN:
		return zt_note(&s->zt, zt_ioctl(s->zt.dev, calls[call].req, arg));
	case CALL_CANCEL:
		return zt_ioctl(s->pair[0], calls[call].req, arg);
	case CALL_SQE128:
		return ring_do(ring_of(s, SQE128), s->ep, &arg->cmd, ZT_LONG_MS);
	case CALL_SQE64:
		return ring_do(ring_of(s, SQE64), s->ep, &arg->cmd, ZT_LONG_MS);
	default:
		return zt_ioctl(s->ep, calls[call].req, arg);
	}
}

/* JOIN gives a descriptor, all others 0 */
#define EXPECT_WORKS(call, ret) EXPECT_TRUE((call) == CALL_JOIN ? (ret) >= 0 : (ret) == 0) \
	TH_LOG("the call without the fault: %d", ret)

/* --- one field out of range ---------------------------------------------- */

FIXTURE(field) {
	struct site s;
};

FIXTURE_VARIANT(field) {
	enum call call;
	size_t offset;
	size_t len;
	uint64_t value;
	int err;
};

FIXTURE_SETUP(field)
{
	ASSERT_EQ(0, site_setup(&self->s));
}

FIXTURE_TEARDOWN(field)
{
	EXPECT_STREQ("", site_teardown(&self->s));
}

#define FIELD(name, which, type, member, val, error)				\
FIXTURE_VARIANT_ADD(field, name) {						\
	.call = which,								\
	.offset = offsetof(struct type, member),				\
	.len = sizeof(((struct type *)0)->member),				\
	.value = val,								\
	.err = error,								\
}

#define TOP_BIT		(1U << 31)
#define KERNEL_ADDR	0xffff888000000000ULL
#define NOT_MAPPED	4096ULL

/* A refused operation has a state of its own, and a text */
#define EXPECT_REJECTED(ep, seq, err) do {					\
	struct zcoll_status __st;						\
	char __text[ZCOLL_TEXT_MAX];						\
										\
	EXPECT_EQ(0, zt_status(ep, seq, &__st, __text));			\
	EXPECT_EQ(ZCOLL_STATE_REJECTED, __st.state);				\
	EXPECT_EQ(err, __st.result);						\
	EXPECT_LT(0, strnlen(__text, sizeof(__text)));				\
	EXPECT_GT(sizeof(__text), strnlen(__text, sizeof(__text)));		\
} while (0)

TEST_F(field, refused_then_corrected)
{
	union arg arg, spoiled;
	int ret;

	ASSERT_EQ(0, prepare(&self->s, variant->call, &arg));
	spoiled = arg;
	memcpy(spoiled.byte + variant->offset, &variant->value, variant->len);
	EXPECT_EQ(-variant->err, do_call(&self->s, variant->call, &spoiled));
	if (variant->call >= CALL_IOCTL) {
		EXPECT_REJECTED(self->s.ep, spoiled.cmd.seq, -variant->err);
	}
	ret = do_call(&self->s, variant->call, &arg);
	EXPECT_WORKS(variant->call, ret);
}

#endif /* ZCOLL_ABI_H */
