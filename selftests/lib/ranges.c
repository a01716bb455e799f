// SPDX-License-Identifier: GPL-2.0
/*
 * Registered ranges on a mock of the device: which handle and offset an address
 * becomes, compared with a search through all ranges.
 */
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

#include "mock.h"
#include "tap.h"

static char mem[1 << 16];
static struct zcoll_comm *comm;

/* How does the library name @len bytes at @at? In a command that is not submitted */
static struct zcoll_cmd name(char *at, uint64_t len)
{
	struct zcoll_cmd cmd = { 0 };
	struct io_uring_sqe sqe;

	if (zcoll_prep_allreduce(&sqe, 0, comm, &cmd, at, at, len, ZCOLL_UINT8, ZCOLL_SUM) ||
	    zcoll_unprep(comm, cmd.seq))
		printf("# %s\n", mock_text(comm));
	return cmd;
}

static bool named(char *at, uint64_t len, uint32_t handle, uint64_t offset)
{
	struct zcoll_cmd cmd = name(at, len);

	return cmd.send_buf == handle && cmd.recv_buf == handle && cmd.send == cmd.recv &&
	       cmd.send == (handle ? offset : (uintptr_t)at);
}

static void test_edges(void)
{
	char *a = mem + 100;

	comm = mock_comm(0);
	is(zcoll_register(comm, a, 50), 0, "register");
	ok(mock.buf.addr == (uintptr_t)a && mock.buf.len == 50, "the kernel gets the range");
	ok(named(a, 50, 1, 0), "all of a range");
	ok(named(a + 49, 1, 1, 49), "its last byte");
	ok(named(a + 7, 20, 1, 7), "its middle");
	ok(named(a - 1, 1, 0, 0), "the byte before is an address");
	ok(named(a + 50, 1, 0, 0), "the byte after is an address");
	ok(named(a - 1, 52, 0, 0), "more than the range is an address");
	ok(named(a + 1, 50, 0, 0), "one byte more than the range is an address");
	ok(named(a + 50, 0, 0, 0), "no bytes at its end are an address");

	is(zcoll_register(comm, a + 50, 10), 0, "a range may touch another");
	ok(named(a + 50, 10, 2, 0), "and is found");
	ok(named(a + 40, 20, 0, 0), "bytes in two ranges are an address");
	is(zcoll_register(comm, a + 59, 2), -EEXIST, "a range may not overlap another's end");
	is(zcoll_register(comm, a - 1, 2), -EEXIST, "nor its beginning");
	is(zcoll_register(comm, a - 1, 100), -EEXIST, "nor hold it");
	is(zcoll_register(comm, a, 50), -EEXIST, "nor be it");
	has(mock_text(comm), "overlap", "and the text says so");
	is(zcoll_register(comm, a + 200, 0), -EINVAL, "an empty range is refused");
	is(zcoll_register(comm, a, UINTPTR_MAX), -EOVERFLOW, "one that wraps is refused");

	is(zcoll_unregister(comm, a + 1), -ENOENT, "a range is unregistered by its first byte");
	is(zcoll_free(comm, a), -ENOENT, "and not freed");
	is(zcoll_unregister(comm, a), 0, "unregister");
	is(zcoll_unregister(comm, a), -ENOENT, "but only once");
	ok(named(a, 50, 0, 0) && named(a + 50, 10, 2, 0), "and only the one");

	mock.refuse = -EDQUOT;
	is(zcoll_register(comm, a, 50), -EDQUOT, "the kernel's refusal is returned");
	has(mock_text(comm), "kernel says: limit", "with its text");
	mock.refuse = 0;
	ok(named(a, 50, 0, 0), "and nothing is registered");
	zcoll_comm_free(comm);
}

#define NR	200

/* A range or none in each of NR places of 256 bytes, changed at random */
static void test_many(void)
{
	struct { unsigned int from, len; uint32_t handle; } place[NR] = { 0 };
	unsigned int wrong = 0;

	srand(1);
	comm = mock_comm(0);
	for (int round = 0; round < 20000; round++) {
		unsigned int i = rand() % NR, at = rand() % 256, len = rand() % (256 - at) + 1;
		char *base = mem + 256 * i;
		bool inside;

		if (rand() % 4 == 0) {
			if (place[i].handle) {
				wrong += !!zcoll_unregister(comm, base + place[i].from);
				place[i].handle = 0;
			} else {
				wrong += !!zcoll_register(comm, base + at, len);
				place[i].from = at;
				place[i].len = len;
				place[i].handle = mock.handles;
			}
			continue;
		}
		inside = place[i].handle && at >= place[i].from &&
			 at + len <= place[i].from + place[i].len;
		wrong += !named(base + at, len, inside ? place[i].handle : 0,
				inside ? at - place[i].from : 0);
	}
	is(wrong, 0, "%d ranges that come and go are always found", NR);
	zcoll_comm_free(comm);
}

static void test_alloc(void)
{
	const size_t big = (5 << 20) + 1;
	char *small, *large;
	bool zero = true;

	comm = mock_comm(0);
	small = zcoll_alloc(comm, 100);
	ok(small && (uintptr_t)small % 4096 == 0 && named(small, 100, 1, 0),
	   "a small allocation is page-aligned and registered");
	large = zcoll_alloc(comm, big);
	ok(large && (uintptr_t)large % (2 << 20) == 0, "a large one is aligned to huge pages");
	for (size_t i = 0; i < big; i++)
		zero = zero && !large[i];
	ok(zero, "and filled with zeroes");
	large[big - 1] = 1;
	is(zcoll_unregister(comm, small), -ENOENT, "an allocation is not unregistered");
	is(zcoll_free(comm, small + 1), -ENOENT, "and freed by its address");
	is(zcoll_free(comm, small), 0, "free");
	is(zcoll_free(comm, small), -ENOENT, "but only once");
	is(zcoll_free(comm, NULL), 0, "freeing nothing is allowed");
	errno = 0;
	ok(!zcoll_alloc(comm, 0) && errno == EINVAL, "no bytes are refused");
	errno = 0;
	ok(!zcoll_alloc(comm, SIZE_MAX - 5) && errno == ENOMEM, "too many are refused");
	mock.refuse = -EDQUOT;
	errno = 0;
	ok(!zcoll_alloc(comm, 10) && errno == EDQUOT, "the kernel's refusal is returned");
	zcoll_comm_free(comm);
}

int main(void)
{
	test_edges();
	test_many();
	test_alloc();
	return tap_end();
}
