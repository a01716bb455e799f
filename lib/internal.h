/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What the files of the library share.
 *
 * Locking. ranges_lock guards the table of registered ranges; ring_lock the
 * internal ring and the list of requests; planner_lock the tables of the planner; seq_lock
 * which operations have ended; text_lock the error text. Order: ranges_lock, ring_lock or
 * planner_lock, then seq_lock or text_lock. None of them is held while a thread waits for
 * other ranks. Sequence numbers are drawn without a lock.
 *
 * Lifetimes. A communicator lives from zcoll_comm_create() to zcoll_comm_free().
 * A request lives until its result has been given to the caller and the ring has
 * posted its CQE, whichever comes last.
 */
#ifndef LIBZCOLL_INTERNAL_H
#define LIBZCOLL_INTERNAL_H

#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <zcoll.h>
#include "env.h"

#define ARRAY_SIZE(x)		(sizeof(x) / sizeof((x)[0]))

#define ZC_DEFAULT_DEVICE	"/dev/zcoll"

/* Pause between looks at what another thread, or io_uring's, is about to do */
#define ZC_LOOK_AGAIN_NS	20000

/* One registered range of addresses */
struct zc_range {
	uintptr_t addr;
	size_t len;
	uint32_t handle;
	size_t map_len;		/* bytes to unmap: zcoll_alloc()'s; 0: zcoll_register()'s */
};

/* A plan that the planner has loaded; number 0: none */
struct zc_loaded {
	uint32_t number;
	uint64_t id;
	uint64_t used;		/* comm->planned when it was last used */
};

/* What the planner has decided, for calls of a class */
struct zc_decision {
	uint32_t collective;
	uint32_t flags;
	uint64_t class;		/* bytes, at most */
	struct zc_loaded *loaded;
	uint32_t number;	/* of @loaded at the time: it may have another plan by now */
};

#define ZC_PLANS	40	/* that the planner keeps loaded */
#define ZC_DECISIONS	256	/* a power of two */

/* What a call reads, or what it writes, at this rank */
struct zc_side {
	const char *name;
	uintptr_t addr;
	uint64_t len;		/* 0: this rank has none */
};

/**
 * struct zc_sides - a call that has been checked
 * @call: the call
 * @block: bytes of a block
 * @all: bytes of the whole operation: of all blocks, where there are some
 * @input: bytes of the input, at a rank that has one
 * @output: of the output, likewise
 * @in: this rank's input
 * @out: this rank's output
 * @same: they are in place
 */
struct zc_sides {
	const struct zcoll_call *call;
	uint64_t block;
	uint64_t all;
	uint64_t input;
	uint64_t output;
	struct zc_side in;
	struct zc_side out;
	bool same;
};

struct zc_mail;

struct zcoll_comm {
	int fd;
	unsigned int rank;
	unsigned int nranks;
	unsigned int nodes;
	unsigned int members;	/* of these, the first so many have ranks */
	unsigned int node;	/* ours */
	uint32_t *node_map;	/* node of each rank; NULL: there is one node */
	int *lifelines;		/* sockets between rank 0 and aggregators, see aggregator.c */
	unsigned int nr_lifelines;
	struct zc_meeting *meeting;	/* of an aggregator that does not serve yet */
	unsigned int window;
	uint64_t types;
	uint64_t ops;
	uint64_t deadline_ns;
	const uint32_t *owner;	/* a page that fork() wipes, see zc_is_owner() */

	bool has_mailbox;	/* the module knows them, and they are wanted */
	uint32_t mail_bytes;	/* of the whole up to which they are wanted */
	struct zc_mail *mail;	/* mailboxes, or NULL */

	_Atomic uint64_t next;	/* the sequence number to be drawn next */
	_Atomic uint64_t oldest;	/* all operations below have ended */
	pthread_mutex_t seq_lock;
	uint64_t seq_over;	/* bit seq % 64: has ended, and is not below oldest */
	uint64_t seq_busy;	/* likewise: is being done from mailboxes */
	_Atomic uint32_t flags;	/* ZCOLL_CMD_* of all calls */
	void (*idle)(void *arg);	/* what the program does while it waits, or NULL */
	void *idle_arg;
	_Atomic uint32_t used_plans[ZCOLL_NR_COLLECTIVES];	/* 0: the planner's */

	pthread_mutex_t planner_lock;
	struct zc_decision decisions[ZC_DECISIONS];
	struct zc_loaded loaded[ZC_PLANS];
	uint64_t planned;	/* calls, counted */

	pthread_rwlock_t ranges_lock;
	struct zc_range *ranges;	/* by address; they do not overlap */
	size_t nr_ranges;
	size_t max_ranges;

	pthread_mutex_t ring_lock;
	bool has_ring;
	struct io_uring ring;
	struct zcoll_req *reqs;

	pthread_mutex_t text_lock;
	char text[ZCOLL_TEXT_MAX];
};

/* device.c */
int zc_device_open(const char *device, struct zcoll_info *info, char *text, size_t len);
int zc_ioctl(int fd, unsigned long cmd, void *arg);

/* What a mailbox has room for; copies of so much are less work than a call of the kernel */
#define ZC_MAIL_BYTES	(64U << 10)

/* settings.c */
struct zc_settings {
	bool mailbox;		/* ZCOLL_MAILBOX */
	uint32_t mail_bytes;	/* ZCOLL_MAIL_BYTES */
};

int zc_setting(const char *name, const char *const words[], int otherwise, char *text, size_t len);
int zc_settings_get(struct zc_settings *settings, const struct zcoll_attr *attr);
const char *zc_fabric(const char *asked);

/* text.c */
int zc_text(char *text, size_t len, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int zc_fail(struct zcoll_comm *comm, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int zc_fail_op(struct zcoll_comm *comm, uint64_t seq, int err);

/* time.c */
uint64_t zc_after(uint64_t ns);
uint64_t zc_left(uint64_t end);
void zc_sleep(uint64_t ns);
int zc_poll(struct pollfd *fds, unsigned int n, uint64_t end);

/* idle.c */
void zc_idle(struct zcoll_comm *comm);
uint64_t zc_nap(const struct zcoll_comm *comm, uint64_t *nap, uint64_t left);

/* aggregator.c */
void zc_lifelines_end(struct zcoll_comm *comm);

/* join.c */
int zc_join_here(struct zcoll_comm *comm, int dev, const struct zcoll_attr *attr);
int zc_join_by(struct zcoll_comm *comm, int dev, const struct zcoll_attr *attr,
	       struct zcoll_join *join);
int zc_wait_for_ranks(struct zcoll_comm *comm, const struct zcoll_attr *attr);

/* join_nodes.c */
int zc_meeting_conclude(struct zcoll_comm *comm);
void zc_meeting_abandon(struct zcoll_comm *comm);
int zc_join_nodes(struct zcoll_comm **comm, const struct zcoll_attr *attr, bool aggregate);

/* comm.c */
int zc_comm_new(struct zcoll_comm **comm, int *dev, const struct zcoll_attr *attr);
void zc_comm_destroy(struct zcoll_comm *comm);
int zc_comm_status(struct zcoll_comm *comm, struct zcoll_status *st);
int zc_check_owner(struct zcoll_comm *comm);
bool zc_is_owner(const struct zcoll_comm *comm);
bool zc_is_revoked(struct zcoll_comm *comm);

/* sequence.c */
int zc_seq_draw(struct zcoll_comm *comm, uint64_t *seq);
int zc_seq_draw_now(struct zcoll_comm *comm, uint64_t *seq);
bool zc_seq_give_back(struct zcoll_comm *comm, uint64_t seq);
bool zc_seq_succeeded(struct zcoll_comm *comm, uint64_t seq);
bool zc_seq_accepted(struct zcoll_comm *comm, uint64_t seq);
void zc_seq_done(struct zcoll_comm *comm, uint64_t seq);
void zc_seq_begin(struct zcoll_comm *comm, uint64_t seq);
void zc_seq_begin_undo(struct zcoll_comm *comm, uint64_t seq);
int zc_op_ended(struct zcoll_comm *comm, uint64_t seq, int result);

/* command.c */
int zc_call_check(struct zcoll_comm *comm, const struct zcoll_call *call,
		  struct zc_sides *sides);
int zc_cmd_make(struct zcoll_comm *comm, struct zcoll_cmd *cmd, const struct zc_sides *sides);
int zc_cmd_init(struct zcoll_comm *comm, struct zcoll_cmd *cmd, const struct zcoll_call *call);
void zc_cmd_number(struct zcoll_comm *comm, struct zcoll_cmd *cmd, const struct zcoll_call *call,
		   uint64_t seq);
void zc_cmd_to_sqe(struct io_uring_sqe *sqe, unsigned int ring_flags, int fd,
		   unsigned int collective, struct zcoll_cmd *at, const struct zcoll_cmd *cmd);

/* planner.c */
int zc_plan_for(struct zcoll_comm *comm, unsigned int collective, uint64_t bytes,
		uint32_t flags, uint32_t *number);

/* buffers.c */
void zc_range_find(struct zcoll_comm *comm, const void *addr, size_t len,
		   uint32_t *handle, __u64 *offset);
void zc_ranges_free(struct zcoll_comm *comm);

/* mail/ */
void zc_mail_open(struct zcoll_comm *comm);
void zc_mail_close(struct zcoll_comm *comm);
bool zc_mail_call(struct zcoll_comm *comm, const struct zc_sides *sides, uint64_t seq,
		  int *result, uint64_t *deadline_ns);
void zc_mail_announce(struct zcoll_comm *comm, const struct zcoll_call *call, uint64_t seq);
bool zc_mail_line_free(struct zcoll_comm *comm, uint64_t seq);
void zc_mail_ended(struct zcoll_comm *comm, uint64_t seq);
char *zc_mail_heap(struct zcoll_comm *comm, size_t *len);
bool zc_mail_in_heap(struct zcoll_comm *comm, uintptr_t addr);

/* request.c */
int zc_need_ring(struct zcoll_comm *comm);
int zc_request_do(struct zcoll_comm *comm, unsigned int collective, const struct zcoll_cmd *cmd);
bool zc_requests_busy(struct zcoll_comm *comm);
void zc_requests_free(struct zcoll_comm *comm);

#endif /* LIBZCOLL_INTERNAL_H */
