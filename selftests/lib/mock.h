/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device that is a table: the tests of the library on a host without the
 * module are linked with --wrap, so that the library's open(), ioctl() and
 * io_uring_submit() come here. The mock keeps the rules of the ABI that the
 * library builds on: numbers are refused beyond the window, a refused number can
 * be used again, and who has submitted what.
 *
 * It plays one rank, and the others have called every operation already, so that
 * an operation ends when it is submitted, but for those in mock.hold.
 */
#ifndef MOCK_H
#define MOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <zcoll.h>

#define MOCK_WINDOW	4
#define MOCK_NODES	16		/* nodes, and ranks with a map of them */
#define MOCK_OPS	256
#define MOCK_PLANS	256		/* numbers, in all */

struct mock_op {
	bool submitted;
	bool ended;
	int result;
};

struct mock {
	struct mock_op ops[MOCK_OPS];
	struct zcoll_cmd last;		/* the command submitted last */
	unsigned long number;		/* and its ioctl */
	struct zcoll_buf buf;		/* the range registered last */
	uint32_t handles;
	int refuse_open;		/* the device cannot be opened: positive errno */
	int refuse;			/* the next submission gets this error */
	int fail;			/* the next operation ends with this error */
	int interrupt;			/* so many ioctls of it are interrupted first */
	uint64_t hold;			/* bit s: operation s does not end by itself */
	bool expire;			/* held operations end with -ETIME, by their CQE */
	bool absent;			/* a rank does not join */
	struct zcoll_join join;		/* how this one has */
	uint32_t node_map[MOCK_NODES];
	int refuse_address;		/* ZCOLL_IOC_ADDRESS gets this error */
	int refuse_peers;		/* ZCOLL_IOC_PEERS gets this error */
	char peers[MOCK_NODES][ZCOLL_ADDRESS_MAX];	/* what it gave */
	int introduced;			/* calls of it */
	bool aborted;
	int leaves;
	uint64_t plans[MOCK_PLANS];	/* ids of loaded plans, by number */
	int loads;			/* ioctls that load */
	int loaded;			/* plans there are */
	int calls;			/* ioctls that submit */
	int looks;			/* ioctls that ask or wait */
	void (*on_submit)(void);	/* called when a command arrives */
	void (*on_wait)(uint64_t seq);	/* called when the library waits */
};

extern struct mock mock;

struct zcoll_comm *mock_comm(uint64_t deadline_ns);
void mock_end(uint64_t seq, int result);
const char *mock_text(struct zcoll_comm *comm);

#endif /* MOCK_H */
