/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Three ranks with mailboxes that they have mapped: what the tests of mailboxes share.
 *
 * The ranks write their lines by hand here, in no order that a library would, and garbage, too:
 * the kernel must not care.
 */
#ifndef ZCOLL_TEST_MAILBOX_H
#define ZCOLL_TEST_MAILBOX_H

#include "zcoll_test.h"
#include "kselftest_harness.h"

#define N		3
#define PAGE		4096UL
#define HEAP(rank)	(ZCOLL_SPAN(rank) + ZCOLL_MAILBOX_BYTES)
#define RO		PROT_READ
#define RW		(PROT_READ | PROT_WRITE)

FIXTURE(mailbox) {
	struct zt zt;
	int ep[N];
	struct zcoll_verdict *verdict;
	char *own[N];			/* each rank's mailbox, as it maps it itself */
	struct zt_call call[N];
	struct zcoll_park park[N];
	struct zcoll_status st;
	char text[ZCOLL_TEXT_MAX];
};

static inline void *map(int ep, uint64_t offset, size_t bytes, int prot)
{
	void *p = mmap(NULL, bytes, prot, MAP_SHARED, ep, offset);

	return p == MAP_FAILED ? NULL : p;
}

/* 0 or a negative errno; nothing stays mapped */
static inline int try_map(int ep, uint64_t offset, size_t bytes, int prot, int flags)
{
	void *p = mmap(NULL, bytes, prot, flags, ep, offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, bytes);
	return 0;
}

static inline int shared(int ep, uint64_t offset, size_t bytes, int prot)
{
	return try_map(ep, offset, bytes, prot, MAP_SHARED | MAP_NORESERVE);
}

FIXTURE_SETUP(mailbox)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, N, self->ep));
	self->verdict = map(self->ep[0], 0, PAGE, RO);
	ASSERT_NE(NULL, self->verdict);
	for (int r = 0; r < N; r++) {
		self->own[r] = map(self->ep[r], ZCOLL_SPAN(r), ZCOLL_MAILBOX_BYTES, RW);
		ASSERT_NE(NULL, self->own[r]);
		self->park[r] = (struct zcoll_park) {
			.size = sizeof(self->park[r]),
			.timeout_ns = ZCOLL_WAIT_FOREVER,
		};
	}
}

FIXTURE_TEARDOWN(mailbox)
{
	ZT_TEARDOWN(self);
	munmap(self->verdict, PAGE);
	for (int r = 0; r < N; r++)
		munmap(self->own[r], ZCOLL_MAILBOX_BYTES);
}

static inline int bell(int ep)
{
	struct zcoll_flags arg = { .size = sizeof(arg) };

	return zt_ioctl(ep, ZCOLL_IOC_BELL, &arg);
}

static inline int park(int ep, struct zcoll_park *arg)
{
	return zt_ioctl(ep, ZCOLL_IOC_PARK, arg);
}

static inline void write_line(char *own, uint64_t seq, unsigned int form)
{
	struct zcoll_line *line = (struct zcoll_line *)(own + ZCOLL_LINE_AT(seq));

	__atomic_store_n(&line->stamp, ZCOLL_STAMP(seq, form), __ATOMIC_RELEASE);
}

/* All ranks call @seq, and say that those below @ended have ended */
static inline int all_say(int *ep, uint64_t seq, uint64_t ended)
{
	struct zcoll_cmd cmd[N];

	for (int r = 0; r < N; r++) {
		cmd[r] = zt_barrier(seq);
		cmd[r].ended = ended;
	}
	return zt_all(ep, cmd, N);
}

#endif /* ZCOLL_TEST_MAILBOX_H */
