/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * zcoll: the module's own header.
 *
 * Vocabulary
 *
 *   communicator   the ranks that do operations together: struct zc_comm
 *   endpoint       one rank of a communicator, and its file: struct zc_rank
 *   operation      what all ranks call together, named by a sequence number:
 *                  struct zc_op, in the slot seq % ZC_WINDOW of its communicator
 *   submission     one rank's call of an operation: struct zc_sub, in the slot
 *                  seq % ZC_WINDOW of its endpoint
 *   buffer         a pinned range of user memory: struct zc_buf
 *   plan           how the nodes do an operation, a table: struct zc_plan
 *   holder         a thread that folds pieces of a running operation: a kernel
 *                  worker, or a caller that waits and helps
 *   verdict        the result of an operation, given to each submission once
 *
 * Lifetimes
 *
 *   An endpoint lives until its file is released, and until no submission of it is
 *   in flight after that (rank.c).
 *   A communicator is counted: one for each endpoint. Who looks at it holds an
 *   endpoint's file, or is a worker or a work item that is stopped before.
 *   A buffer is counted: one for its handle, one for each submission that uses it.
 *   A plan is counted: one for its number, one for each operation that follows it.
 *   An io_uring command in flight is owned by its submission; whoever moves the
 *   submission from PENDING to DONE under zc_comm.lock completes it, and touches
 *   neither the submission nor the endpoint after that.
 *
 * Locking order: zc_comms_lock -> zc_comm.lock. Under io_uring's own lock (issue
 * and cancel of commands) only zc_comm.lock is taken. All are taken in process
 * context only.
 */
#ifndef ZCOLL_KMOD_H
#define ZCOLL_KMOD_H

#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <uapi/linux/zcoll.h>

#include "engine/engine.h"
#include "engine/fold.h"

#define ZC_WINDOW	ZCOLL_MAX_WINDOW
#define ZC_MAX_BUFFERS	4096
#define ZC_MAX_COMMS	4096
#define ZC_REJECTS	2

/* All inputs and outputs of an operation done inline, or within one SIMD section */
#define ZC_INLINE_BYTES	SZ_64K
#define ZC_SECTION_BYTES SZ_64K

struct io_uring_cmd;
struct pid;
struct task_struct;
struct zc_comm;
struct zc_rank;
struct zc_waiter;
struct zc_worker;

/* ---- text.c: error texts ---- */

/* A text being put together; what does not fit is cut off */
struct zc_text {
	size_t len;
	char buf[ZCOLL_TEXT_MAX];
};

__printf(2, 3) void zc_text_add(struct zc_text *text, const char *fmt, ...);
void zc_text_add_ranks(struct zc_text *text, struct zc_comm *comm, u64 seq);
int zc_text_to_user(const char *text, u64 addr, u32 len);

/* ---- buf.c: pinned memory ---- */

/**
 * struct zc_buf - a pinned range of user memory, with a flat kernel view
 * @ref: handle and submissions in flight
 * @mm: the address space charged, held with mmgrab()
 * @addr: user address
 * @len: bytes
 * @npages: pages pinned, and charged if @charged
 * @charged: counted in mm->pinned_vm
 * @base: kernel address of the first page
 * @vmapped: @base is a mapping of our own, not the direct map
 */
struct zc_buf {
	struct kref ref;
	struct mm_struct *mm;
	u64 addr;
	u64 len;
	unsigned long npages;
	bool charged;
	bool vmapped;
	void *base;
};

struct zc_buf *zc_buf_pin(u64 addr, u64 len, struct zc_text *why);
void zc_buf_put(struct zc_buf *buf);

static inline void *zc_buf_kaddr(const struct zc_buf *buf, u64 offset)
{
	return buf->base + offset_in_page(buf->addr) + offset;
}

/* ---- plan.c: plans ---- */

/**
 * struct zc_plan - a plan that has been checked at this node
 * @ref: its number, and operations that follow it
 * @number: its name in the communicator, 0: the built-in one
 * @loads: times it was loaded and not unloaded; under zc_comm.plans_lock
 * @prog: the plan, and what the engine needs of it
 * @room: of @prog
 */
struct zc_plan {
	refcount_t ref;
	u32 number;
	u32 loads;
	struct zc_prog prog;
	u32 room[];
};

extern struct zc_plan *zc_plan_local;

int zc_plan_load(struct zc_rank *rank, struct zcoll_plan_load *args, struct zc_text *why);
int zc_plan_unload(struct zc_comm *comm, u32 number);
void zc_plans_init(struct zc_comm *comm);
void zc_plans_free(struct zc_comm *comm);
struct zc_plan *zc_plan_get(struct zc_comm *comm, u32 number);
void zc_plan_put(struct zc_comm *comm, struct zc_plan *plan);
int zc_plan_init(void);
void zc_plan_uninit(void);

/* ---- op.c: operations ---- */

enum zc_op_state {
	ZC_OP_FREE,		/* no rank has called it */
	ZC_OP_WAITING,		/* ranks are missing */
	ZC_OP_RUNNING,		/* all have called; holders fold */
	ZC_OP_DONE,		/* verdict known; the slot is kept for status */
};

/**
 * struct zc_op - an operation
 * @seq: its sequence number
 * @state: enum zc_op_state
 * @result: verdict, when DONE
 * @first_rank: the first rank that called; others are compared with its @desc
 * @arrived: ranks that have called
 * @inplace: of @arrived, those whose input is their output
 * @holders: threads that fold pieces of it now
 * @runnable: counted in zc_comm.runnable
 * @unit_open: the engine waits for @unit to be done
 * @stream: write past the caches
 * @desc: the call of @first_rank
 * @deadline: CLOCK_MONOTONIC ns, the earliest of all ranks', or KTIME_MAX
 * @deadline_ns: that deadline as it was given
 * @deadline_rank: who gave it
 * @plan: what the engine runs
 * @unit: the engine's unit that is being folded
 * @from: its first element
 * @to: one past its last element
 * @chunk: elements of a chunk, the unit of the cursor
 * @piece: elements of a piece, the unit of a SIMD section
 * @nchunks: number of chunks
 * @next: cursor: the next chunk to take
 * @fold: the loop
 * @src: kernel addresses of the inputs, by rank
 * @dst: kernel addresses of the outputs, by rank
 *
 * All fields are written under zc_comm.lock, but @next (atomic). A holder reads the
 * fields that are constant while there are holders without it.
 */
struct zc_op {
	u64 seq;
	enum zc_op_state state;
	s32 result;
	u32 first_rank;
	u32 arrived;
	u32 inplace;
	u32 holders;
	bool runnable;
	bool unit_open;
	bool stream;
	struct zcoll_cmd desc;
	ktime_t deadline;
	u64 deadline_ns;
	u32 deadline_rank;
	struct zc_plan *plan;
	u64 unit;
	u64 from;
	u64 to;
	u64 chunk;
	u64 piece;
	u64 nchunks;
	atomic64_t next;
	zc_fold_fn fold;
	const void **src;
	void **dst;
};

enum zc_sub_state {
	ZC_SUB_FREE,
	ZC_SUB_PENDING,
	ZC_SUB_DONE,		/* verdict given; kept for WAIT and re-attaching */
};

/**
 * struct zc_sub - one rank's call of an operation
 * @cmd: the call
 * @state: enum zc_sub_state
 * @result: verdict, when DONE
 * @collected: a blocking call has returned the verdict
 * @send: pinned input, NULL if count is 0
 * @recv: pinned output, likewise
 * @ucmd: the io_uring command to complete, NULL for a blocking call
 */
struct zc_sub {
	struct zcoll_cmd cmd;
	enum zc_sub_state state;
	s32 result;
	bool collected;
	struct zc_buf *send;
	struct zc_buf *recv;
	struct io_uring_cmd *ucmd;
};

/* One rank's call, checked, its memory pinned, on its way into an operation */
struct zc_call {
	struct zcoll_cmd cmd;
	struct zc_plan *plan;
	struct zc_buf *send;
	struct zc_buf *recv;
	struct io_uring_cmd *ucmd;
	struct zc_waiter *waiter;
};

int zc_op_submit(struct zc_rank *rank, struct zc_call *call, struct zc_text *why);
void zc_op_conclude(struct zc_comm *comm, struct zc_op *op, int result);
void zc_op_deliver(struct zc_comm *comm, u64 seq, int result);
void zc_op_not_runnable(struct zc_comm *comm, struct zc_op *op);
bool zc_op_is_small(const struct zc_comm *comm, const struct zc_op *op);
void zc_op_fail_fn(struct work_struct *work);

/* ---- run.c: the engine's host ---- */

#define ZC_NO_SEQ U64_MAX

size_t zc_run_size(void);
struct zc_engine *zc_run_init(void *room);
void zc_run_submit(struct zc_comm *comm, struct zc_op *op);
void zc_run_unit_done(struct zc_comm *comm, struct zc_op *op);
bool zc_run(struct zc_comm *comm, u64 own, bool helps) __releases(&comm->lock);

/* ---- call.c: one rank's call, from checking to waiting ---- */

int zc_call_prepare(struct zc_rank *rank, struct zc_call *call);
void *zc_call_address(const struct zc_buf *buf, u32 handle, u64 where);
int zc_call_submit(struct zc_rank *rank, struct zc_call *call);
int zc_call_blocking(struct zc_rank *rank, struct zc_call *call);
int zc_call_wait(struct zc_rank *rank, u64 seq, u64 *timeout_ns, s32 *result);

/* ---- wait.c: waiting for verdicts ---- */

/**
 * struct zc_waiter - someone who waits for a verdict
 * @link: in zc_rank.waiters until told
 * @seq: the operation
 * @until: CLOCK_MONOTONIC, or KTIME_MAX
 * @result: the verdict
 * @done: @result is there
 */
struct zc_waiter {
	struct list_head link;
	u64 seq;
	ktime_t until;
	s32 result;
	bool done;
};

void zc_waiter_init(struct zc_waiter *waiter, u64 seq, ktime_t until);
void zc_waiter_add(struct zc_rank *rank, struct zc_waiter *waiter);
void zc_waiters_tell(struct zc_rank *rank, u64 seq, s32 result);
bool zc_waiter_stop(const struct zc_waiter *waiter);
int zc_waiter_wait(struct zc_rank *rank, struct zc_waiter *waiter);

/* ---- rank.c: endpoints ---- */

/* An attempt that was refused: its text is kept for ZCOLL_IOC_STATUS */
struct zc_reject {
	u64 seq;
	s32 error;
	char text[ZCOLL_TEXT_MAX];
};

/**
 * struct zc_rank - an endpoint
 * @comm: its communicator
 * @rank: its number
 * @left: it has left, or its process has ended: no new submissions
 * @exited: it is out of its communicator; of the releasing path
 * @inflight: submissions PENDING
 * @ring_inflight: of these, uring commands
 * @next_seq: one past the highest sequence number it has called
 * @mm: the address space that is the rank; the notifier holds it
 * @pid: the process that joined
 * @exec_since: when the watch first saw @pid in exec, 0: not now
 * @worker: the kernel thread it gave the communicator, or NULL; ended by xchg()
 * @worker_wanted: the communicator wants a worker of it
 * @waiters: who waits for its verdicts
 * @left_work: gives memory and worker back after it has left
 * @free_work: frees the endpoint
 * @notifier: tells of the end of @mm
 * @deadline_ns: default deadline
 * @bufs: registered buffers by handle
 * @bufs_closed: no more of them; under the lock of @bufs
 * @nbufs: their number
 * @nvmapped: of these, with a mapping of their own
 * @pinned: pages pinned by them
 * @call_pins: ranges pinned for one call
 * @rejects: ring of refused attempts
 * @reject_next: where the next one goes
 * @subs: submissions
 *
 * Protected by zc_comm.lock but for constants, @bufs (its own lock) and counters.
 */
struct zc_rank {
	struct zc_comm *comm;
	u32 rank;
	bool left;
	bool exited;
	bool worker_wanted;
	bool bufs_closed;
	u32 inflight;
	u32 ring_inflight;
	u64 next_seq;
	struct mm_struct *mm;
	struct pid *pid;
	ktime_t exec_since;
	struct mmu_notifier notifier;
	struct zc_worker *worker;
	struct list_head waiters;
	struct work_struct left_work;
	struct work_struct free_work;
	u64 deadline_ns;
	struct xarray bufs;
	atomic_t nbufs;
	atomic_t nvmapped;
	atomic64_t pinned;
	atomic64_t call_pins;
	struct zc_reject rejects[ZC_REJECTS];
	u32 reject_next;
	struct zc_sub subs[ZC_WINDOW];
};

/**
 * struct zc_comm - a communicator
 * @link: in the list of all, while @nmembers
 * @ref: endpoints that have not let go
 * @key: its name
 * @uid: who may join
 * @nranks: ranks
 * @node: the node number all of them have in the node map
 * @njoined: ranks that have joined, also those that have gone since
 * @nmembers: endpoints that are in it, under zc_comms_lock
 * @nleft: ranks that have left
 * @first_left: the first of them
 * @lock: see the head of this file
 * @error: 0, or the negative errno that revoked it; never changes again
 * @text: why
 * @base: oldest unfinished sequence number
 * @engine: carries out the operations' plans
 * @ops: operations
 * @runnable: operations that have chunks nobody has taken
 * @addresses: room for the operations' @src and @dst
 * @ranks: endpoints by rank, NULL: has not joined or has closed
 * @waitq: callers that wait for verdicts or work, exclusively
 * @pollq: poll(), and ranks that leave
 * @waiters: callers that wait, awake or not, and will help
 * @workq: idle workers
 * @nworkers: workers it has
 * @cpus: union of the CPUs the ranks may use
 * @fail_work: ends operations after @error was set
 * @watch_work: deadlines, and on kernels that need it the exec watch
 * @watch_at: when @watch_work runs next, KTIME_MAX: not armed
 * @plans: loaded plans by number
 * @plans_lock: who loads or unloads one; the table has a lock of its own for who looks
 *	one up
 * @next_plan: where to look for an unused number
 * @nplans: their number
 * @plan_bytes: memory of the plans
 * @kernel_bytes: memory of communicator and endpoints
 * @ops_done: these and the following: as in struct zcoll_stats
 * @ops_failed: likewise
 * @ops_inline: likewise
 * @bytes_folded: likewise
 * @work_pieces: likewise
 * @help_pieces: likewise
 */
struct zc_comm {
	struct list_head link;
	refcount_t ref;
	u8 key[16];
	kuid_t uid;
	u32 nranks;
	u32 node;
	u32 njoined;
	u32 nmembers;
	u32 nleft;
	u32 first_left;
	spinlock_t lock;	/* operations, submissions, endpoints */
	int error;
	char text[ZCOLL_TEXT_MAX];
	u64 base;
	struct zc_engine *engine;
	struct zc_op ops[ZC_WINDOW];
	u32 runnable;
	void **addresses;
	struct zc_rank **ranks;
	wait_queue_head_t waitq;
	wait_queue_head_t pollq;
	atomic_t waiters;
	wait_queue_head_t workq;
	atomic_t nworkers;
	cpumask_var_t cpus;
	struct work_struct fail_work;
	struct delayed_work watch_work;
	ktime_t watch_at;
	struct xarray plans;
	struct mutex plans_lock;	/* loading and unloading */
	u32 next_plan;
	u32 nplans;
	atomic64_t plan_bytes;
	size_t kernel_bytes;
	u64 ops_done;
	u64 ops_failed;
	u64 ops_inline;
	atomic64_t bytes_folded;
	atomic64_t work_pieces;
	atomic64_t help_pieces;
};

int zc_join(const struct zcoll_join *args, struct zc_text *why);
void zc_rank_leave(struct zc_rank *rank);
int zc_rank_settle(struct zc_rank *rank);
void zc_rank_release(struct zc_rank *rank);
bool zc_process_ends(struct task_struct *task);
int zc_rank_init(void);
void zc_rank_uninit(void);

/* ---- comm.c: communicators ---- */

int zc_comm_enter(struct zc_rank *rank, const struct zcoll_join *args, u32 node,
		  struct zc_text *why);
void zc_comm_exit(struct zc_rank *rank);
void zc_comm_unenter(struct zc_rank *rank);
void zc_comm_put(struct zc_comm *comm);
void zc_comm_fail(struct zc_comm *comm, int error, const struct zc_text *text);
__printf(3, 4) void zc_comm_failf(struct zc_comm *comm, int error, const char *fmt, ...);

static inline struct zc_op *zc_comm_op(struct zc_comm *comm, u64 seq)
{
	return &comm->ops[seq % ZC_WINDOW];
}

static inline struct zc_sub *zc_rank_sub(struct zc_rank *rank, u64 seq)
{
	return &rank->subs[seq % ZC_WINDOW];
}

/* Has this rank called the operation, which is not forgotten? Under zc_comm.lock. */
static inline bool zc_rank_called(struct zc_rank *rank, u64 seq)
{
	struct zc_sub *sub = zc_rank_sub(rank, seq);

	return sub->state != ZC_SUB_FREE && sub->cmd.seq == seq;
}

/* A call has been accepted: earlier attempts do not matter any more */
static inline void zc_rejects_forget(struct zc_rank *rank, u64 seq)
{
	u32 i;

	for (i = 0; i < ZC_REJECTS; i++)
		if (rank->rejects[i].seq == seq)
			rank->rejects[i].error = 0;
}

/* ---- work.c: who folds ---- */

struct zc_op *zc_work_get(struct zc_comm *comm);
void zc_work_run(struct zc_comm *comm, struct zc_op *op, const struct zc_waiter *waiter);
void zc_work_put(struct zc_comm *comm, struct zc_op *op);
void zc_work_kick(struct zc_comm *comm, u64 nchunks, bool caller_helps);
int zc_worker_start(struct zc_rank *rank);
void zc_worker_stop(struct zc_rank *rank);

/* ---- watch.c: deadlines and rings ---- */

void zc_watch_fn(struct work_struct *work);
void zc_watch_arm(struct zc_comm *comm, ktime_t at);
void zc_watch_ring(struct zc_comm *comm);

/* ---- isa.c: loops for this CPU ---- */

int zc_isa_init(void);
const char *zc_isa_name(void);
zc_fold_fn zc_isa_fold(u32 dtype, u32 op);

/* ---- uring.c: io_uring commands ---- */

int zc_uring_cmd(struct io_uring_cmd *ucmd, unsigned int issue_flags);
void zc_uring_complete(struct io_uring_cmd *ucmd, int result);
bool zc_uring_cancel_known(void);

/* ---- endpoint.c ---- */

extern const struct file_operations zc_endpoint_fops;

void zc_rank_forget_buffer(struct zc_rank *rank, struct zc_buf *buf);

/* ---- main.c ---- */

/* What INFO reports of the whole module */
struct zc_totals {
	atomic_t comms;
	atomic_t ranks;
	atomic_t workers;
	atomic64_t pinned_pages;
	atomic64_t kernel_bytes;
	atomic64_t ops_done;
	atomic64_t ops_failed;
};

extern struct zc_totals zc_totals;
extern struct workqueue_struct *zc_wq;
extern struct workqueue_struct *zc_free_wq;

#endif /* ZCOLL_KMOD_H */
