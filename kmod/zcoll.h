/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * zcoll: the module's own header.
 *
 * Vocabulary
 *
 *   communicator   the ranks that do operations together; here, those on this node:
 *                  struct zc_comm
 *   node           the ranks of a communicator in one kernel, or a part of them: with fabric
 *                  "loop" a kernel holds several nodes, each a struct zc_comm. A node without
 *                  ranks only aggregates
 *   local index    number of a rank among those of its node, by which tables go
 *   endpoint       one rank of a communicator, and its file: struct zc_rank
 *   operation      what all ranks call together, named by a sequence number:
 *                  struct zc_op, in the slot seq % ZC_WINDOW of its communicator
 *   submission     one rank's call of an operation: struct zc_sub, in the slot
 *                  seq % ZC_WINDOW of its endpoint
 *   buffer         a pinned range of user memory: struct zc_buf
 *   kept range     memory that was pinned for a call, and stays so for the next: cache.c
 *   plan           how the nodes do an operation, a table: struct zc_plan
 *   task           a unit of a running operation (engine/engine.h) that is to be carried
 *                  out here: struct zc_task
 *   holder         a thread that carries out pieces of a task: a kernel worker, or a
 *                  caller that waits and helps
 *   net            how the nodes of a communicator reach each other: net/net.h
 *   verdict        the result of an operation, given to each submission once
 *
 * Lifetimes
 *
 *   An endpoint lives until its file is released, and until no submission of it is
 *   in flight after that (rank.c).
 *   A communicator is counted: one for each endpoint. Who looks at it holds an
 *   endpoint's file, or is a worker or a work item that is stopped before.
 *   A buffer is counted: one for its handle or the cache that keeps it, one for each submission
 *   that uses it.
 *   A plan is counted: one for its number, one for each operation that follows it.
 *   An io_uring command in flight is owned by its submission; whoever moves the
 *   submission from PENDING to DONE under zc_comm.lock completes it, and touches
 *   neither the submission nor the endpoint after that.
 *
 * Locking order: zc_comms_lock -> zc_net.poll_lock -> zc_net.region_lock -> the fabric's own ->
 * zc_comm.lock. Those of caches come after all of them: cache.c. Under io_uring's own lock (issue
 * and cancel of commands) all but the first may be taken, poll_lock by trylock only. Nobody who
 * holds one of them waits for a ring. All are taken in process context only.
 */
#ifndef ZCOLL_KMOD_H
#define ZCOLL_KMOD_H

#include <linux/cpumask.h>
#include <linux/fs.h>
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

#include "buf.h"
#include "cache.h"
#include "desc.h"
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
struct vm_area_struct;
struct zc_comm;
struct zc_inbox;
struct zc_mailbox;
struct zc_net;
struct zc_rank;
struct zc_region;
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
void zc_text_add_share(struct zc_text *text, const struct zc_comm *comm, u32 n);
void zc_text_add_who(struct zc_text *text, const struct zc_comm *comm, u32 rank);
int zc_text_to_user(const char *text, u64 addr, u32 len);

/* ---- plan.c: plans ---- */

/**
 * struct zc_plan - a plan that has been checked at this node
 * @ref: its number, and operations that follow it
 * @number: its name in the communicator, 0: a built-in one
 * @loads: times it was loaded and not unloaded; under zc_comm.plans_lock
 * @checked: of a collective with a root, on several nodes: bit v is set when it has been
 *	checked for this node having the number v, which the root tells; else NULL
 * @prog: the plan, and what the engine needs of it
 * @room: of @prog
 */
struct zc_plan {
	refcount_t ref;
	u32 number;
	u32 loads;
	unsigned long *checked;
	struct zc_prog prog;
	u32 room[];
};

int zc_plan_load(struct zc_rank *rank, struct zcoll_plan_load *args, struct zc_text *why);
int zc_plan_unload(struct zc_comm *comm, u32 number);
void zc_plans_init(struct zc_comm *comm);
void zc_plans_free(struct zc_comm *comm);
struct zc_plan *zc_plan_get(struct zc_comm *comm, u32 number, u32 collective);
struct zc_plan *zc_plan_get_by_id(struct zc_comm *comm, u64 id);
int zc_plan_check_root(struct zc_comm *comm, struct zc_plan *plan, u32 root,
		       struct zc_text *why);
void zc_plan_put(struct zc_comm *comm, struct zc_plan *plan);
int zc_plan_init(void);
void zc_plan_uninit(void);

/* ---- desc.c: what is called ---- */

const char *zc_collective_name(u32 collective);
u32 zc_collective_of(u32 ioctl);
bool zc_collective_reduces(u32 collective);
bool zc_collective_rooted(u32 collective);
int zc_desc_check(const struct zc_comm *comm, const struct zc_desc *desc, struct zc_text *why);
int zc_desc_fits_plan(const struct zc_comm *comm, const struct zc_desc *desc,
		      const struct zc_plan *plan, struct zc_text *why);
u64 zc_desc_inputs(const struct zc_comm *comm, const struct zc_desc *desc, u32 rank);
u64 zc_desc_outputs(const struct zc_comm *comm, const struct zc_desc *desc, u32 rank);
bool zc_desc_differs(const struct zc_desc *a, const struct zc_desc *b);
void zc_desc_add_differences(struct zc_text *text, const struct zc_desc *a,
			     const struct zc_desc *b);

/* ---- op.c: operations ---- */

enum zc_op_state {
	ZC_OP_FREE,		/* no rank has called it */
	ZC_OP_WAITING,		/* local ranks are missing */
	ZC_OP_STARTING,		/* all have called; memory for it is being found */
	ZC_OP_RUNNING,		/* the engine has it */
	ZC_OP_ENDING,		/* verdict known; what it holds is being given back */
	ZC_OP_DONE,		/* the slot is kept for status */
};

/* Room for the messages and landings of an operation, by step and unit */
#define ZC_OP_HASH 16

/**
 * struct zc_op - an operation
 * @seq: its sequence number
 * @state: enum zc_op_state
 * @result: verdict, when ENDING or DONE
 * @arrived: local ranks that have called
 * @inplace: of @arrived, those whose input and output share memory
 * @stream: write past the caches
 * @desc: what is called; others are compared with it
 * @heard: another node's description of it has come, from @heard_from
 * @heard_from: see @heard
 * @theirs: that description
 * @deadline: CLOCK_MONOTONIC ns, the earliest of all ranks', or KTIME_MAX
 * @deadline_ns: that deadline as it was given
 * @deadline_rank: who gave it
 * @plan: what the engine runs
 * @esize: bytes of an element
 * @elements: elements of the whole: what the plan's segments are cut from
 * @geo: where the segments begin
 * @starts: memory of @geo.starts, or NULL
 * @slice: as in struct zc_op_desc
 * @eager: elements of a unit that goes in a message, at most
 * @v: this node's number in the plan
 * @outputs: the node has outputs for all segments, and the accumulation is in that of @lead
 * @lead: local index of the rank whose output holds the accumulation
 * @fold: the operator's loop; NULL: nothing is reduced
 * @partial: the same without the last division of an average
 * @copy: a loop that copies bytes
 * @width: bytes that are read and written for each element, in all buffers together
 * @chunk: elements of a chunk, the unit of a task's cursor
 * @piece: elements of a piece, the unit of a SIMD section
 * @src: kernel addresses of the inputs, by local index; NULL: it has none, or not a flat one
 * @dst: kernel addresses of the outputs, likewise
 * @in_blocks: some of them have not a flat one
 * @in: regions and offsets of the inputs, by local index, with several nodes
 * @out: likewise of the outputs
 * @room: kernel memory for slots, accumulation, scratch places and staging, or NULL
 * @places: where in @room is what (place.h)
 * @inboxes: messages with payload that wait, by step and unit
 * @landings: where to write what, by step and unit
 *
 * All fields are written under zc_comm.lock, or while the operation is STARTING by who
 * starts it. What does not change while it is RUNNING is read without.
 */
struct zc_op {
	u64 seq;
	enum zc_op_state state;
	s32 result;
	u32 arrived;
	u32 inplace;
	bool in_blocks;
	bool stream;
	struct zc_desc desc;
	bool heard;
	u32 heard_from;
	struct zc_desc theirs;
	ktime_t deadline;
	u64 deadline_ns;
	u32 deadline_rank;
	struct zc_plan *plan;
	u32 esize;
	u64 elements;
	struct zc_geometry geo;
	u64 *starts;
	u64 slice;
	u64 eager;
	u32 v;
	bool outputs;
	u32 lead;
	zc_fold_fn fold;
	zc_fold_fn partial;
	zc_fold_fn copy;
	u32 width;
	u64 chunk;
	u64 piece;
	const void **src;
	void **dst;
	struct zc_memory *in;
	struct zc_memory *out;
	struct zc_region *room;
	struct zc_places *places;
	struct hlist_head inboxes[ZC_OP_HASH];
	struct hlist_head landings[ZC_OP_HASH];
};

/* A place in memory that the network can reach */
struct zc_memory {
	struct zc_region *region;
	u64 offset;
};

enum zc_sub_state {
	ZC_SUB_FREE,
	ZC_SUB_PENDING,
	ZC_SUB_DONE,		/* verdict given; kept for WAIT and re-attaching */
};

/**
 * struct zc_sub - one rank's call of an operation
 * @collective: what it calls
 * @cmd: the call
 * @state: enum zc_sub_state
 * @result: verdict, when DONE
 * @collected: a blocking call has returned the verdict
 * @send: pinned input, NULL: it has none
 * @recv: pinned output, likewise
 * @ucmd: the io_uring command to complete, NULL for a blocking call
 */
struct zc_sub {
	u32 collective;
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
	struct zc_desc desc;	/* its collective is set first, the rest from @cmd */
	struct zcoll_cmd cmd;
	bool inplace;
	bool exact;		/* no more memory than it names is to be pinned */
	u64 send_bytes;
	u64 recv_bytes;
	struct zc_plan *plan;
	struct zc_buf *send;
	struct zc_buf *recv;
	struct io_uring_cmd *ucmd;
	struct zc_waiter *waiter;
};

int zc_op_submit(struct zc_rank *rank, struct zc_call *call, struct zc_text *why);
void zc_op_described(struct zc_comm *comm, u32 node, u64 seq, const struct zc_desc *desc);
u64 zc_op_fingerprint(const struct zc_comm *comm, const struct zc_op *op);
void zc_op_conclude(struct zc_comm *comm, struct zc_op *op, int result);
void zc_op_deliver(struct zc_comm *comm, u64 seq, int result);
void zc_op_fail_fn(struct work_struct *work);

/* ---- prepare.c: laying operations out ---- */

int zc_place_prepare(struct zc_comm *comm, struct zc_op *op, struct zc_text *why);
void zc_place_release(struct zc_comm *comm, struct zc_op *op);
void zc_places_free(struct zc_comm *comm);

/* ---- run.c: the engine's host ---- */

#define ZC_NO_SEQ U64_MAX

struct zc_engine_config zc_run_config(const struct zc_comm *comm);
void zc_run_start(struct zc_comm *comm, struct zc_op *op, bool blocking);
void zc_run(struct zc_comm *comm, u64 own, bool helps) __releases(&comm->lock);
void zc_run_done(struct zc_comm *comm, const struct zc_action *action);
void zc_run_check(struct zc_comm *comm);

/* ---- task.c: units that are carried out here ---- */

/* Parts of a task at most: enough to tell where in memory its outputs are */
#define ZC_PARTS 8
#define ZC_NO_CHUNK U64_MAX

/**
 * struct zc_part - a row of chunks of a task
 * @next: cursor: the next chunk to take
 * @end: the first chunk that is not of this part
 * @node: NUMA node that the output of its first chunk is on; NUMA_NO_NODE: it does not matter
 */
struct zc_part {
	atomic64_t next;
	u64 end;
	int node;
};

/**
 * struct zc_task - a unit that is to be carried out
 * @link: in zc_comm.tasks while there are chunks nobody has taken, or in .free_tasks
 * @op: its operation
 * @action: what the engine asks for
 * @box: the message it folds or delivers, where units go in messages; else NULL
 * @elements: elements of the unit
 * @nchunks: chunks
 * @parts: rows of chunks, each with a cursor
 * @nparts: their number
 * @holders: threads that carry out chunks of it now
 * @queued: in zc_comm.tasks
 *
 * Under zc_comm.lock, but cursors (atomic) and what is constant while there are holders.
 */
struct zc_task {
	struct list_head link;
	struct zc_op *op;
	struct zc_action action;
	struct zc_inbox *box;
	u64 elements;
	u64 nchunks;
	struct zc_part parts[ZC_PARTS];
	u32 nparts;
	u32 holders;
	bool queued;
};

size_t zc_tasks_size(const struct zc_comm *comm);
int zc_tasks_init(struct zc_comm *comm);
void zc_tasks_free(struct zc_comm *comm);
struct zc_task *zc_task_begin(struct zc_comm *comm, const struct zc_action *action);
u64 zc_task_take(struct zc_task *task, bool *local);
u64 zc_task_left(const struct zc_task *task);
void zc_task_queue(struct zc_comm *comm, struct zc_task *task);
void zc_task_unqueue(struct zc_comm *comm, struct zc_task *task);
void zc_task_end(struct zc_comm *comm, struct zc_task *task);
void zc_tasks_drop(struct zc_comm *comm);

/* ---- call.c: one rank's call, from checking to waiting ---- */

int zc_call_prepare(struct zc_rank *rank, struct zc_call *call);
u64 zc_call_offset(const struct zc_buf *buf, u32 handle, u64 where);
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
 * @local: its local index
 * @aggregates: it is no rank: ZCOLL_JOIN_AGGREGATE
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
 * @cache: ranges that are not registered, kept pinned
 * @rejects: ring of refused attempts
 * @reject_next: where the next one goes
 * @subs: submissions
 *
 * Protected by zc_comm.lock but for constants, @bufs (its own lock) and counters.
 */
struct zc_rank {
	struct zc_comm *comm;
	u32 rank;
	u32 local;
	bool aggregates;
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
	struct zc_cache cache;
	struct zc_reject rejects[ZC_REJECTS];
	u32 reject_next;
	struct zc_sub subs[ZC_WINDOW];
};

int zc_join(const struct zcoll_join *args, struct zc_text *why);
int zc_rank_admits(struct zc_rank *rank, struct zc_text *why);
void zc_rank_leave(struct zc_rank *rank);
int zc_rank_settle(struct zc_rank *rank);
void zc_rank_release(struct zc_rank *rank);
bool zc_process_ends(struct task_struct *task);
int zc_rank_init(void);
void zc_rank_uninit(void);

/* ---- layout.c: which rank is on which node ---- */

/**
 * struct zc_layout - who is where
 * @nranks: ranks of all nodes
 * @nlocal: ranks of this node; 0: it only aggregates
 * @nodes: nodes
 * @members: of these, the first so many have ranks
 * @node: this one
 * @number: as the ranks call it: @node, or any number if it is the only one
 * @map: node of each rank; NULL: one node
 * @locals: rank by local index, rising
 * @order: ranks node by node, those of a node rising; NULL: they are so by themselves.
 *	What a block collective's elements are, they are in this order
 * @begins: @nodes + 1 numbers: ranks of the nodes before it
 * @blocks: ranks lie on nodes in blocks of one power of two, only the last is shorter: the
 *	fixed tree over all ranks is one of the nodes' trees
 */
struct zc_layout {
	u32 nranks;
	u32 nlocal;
	u32 nodes;
	u32 members;
	u32 node;
	u32 number;
	u32 *map;
	u32 *locals;
	u32 *order;
	u32 *begins;
	bool blocks;
};

int zc_layout_read(struct zc_layout *layout, const struct zcoll_join *args,
		   struct zc_text *why);
void zc_layout_free(struct zc_layout *layout);
size_t zc_layout_size(const struct zc_layout *layout);
u32 zc_layout_local(const struct zc_layout *layout, u32 rank);

/* ---- comm.c: communicators ---- */

/* What nodes are connected by, as ranks say it, with its NUL */
#define ZC_FABRIC_BYTES 256

/**
 * struct zc_comm - a communicator
 * @link: in the list of all, while @nmembers
 * @ref: endpoints that have not let go
 * @key: its name
 * @uid: who may join
 * @layout: who is where
 * @fabric: what the nodes are connected by, as the first rank here has said; the others must, too
 * @njoined: local ranks that have joined, also those that have gone since
 * @nmembers: endpoints that are in it, under zc_comms_lock
 * @nleft: ranks that have left
 * @first_left: the first of them
 * @lock: see the head of this file
 * @error: 0, or the negative errno that revoked it; never changes again
 * @text: why
 * @base: oldest unfinished sequence number
 * @engine: carries out the operations' plans
 * @net: network, NULL: one node
 * @ops: operations
 * @tasks: those that have chunks nobody has taken, oldest first
 * @free_tasks: unused ones
 * @ntasks: number of @tasks, also read without the lock
 * @task_room: memory of all
 * @addresses: room for the operations' @src and @dst
 * @memories: room for the operations' @in and @out
 * @ranks: endpoints by local index, NULL: has not joined or has closed
 * @aggregator: the endpoint of a node that only aggregates
 * @waitq: callers that wait for verdicts or work, exclusively
 * @pollq: poll(), and ranks that leave
 * @mailbox: memory that the ranks share, NULL: none has mapped it
 * @gone: of the first 64 ranks, those that have left
 * @bellq: ranks that sleep in ZCOLL_IOC_PARK
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
 * @bytes_copied: likewise
 * @work_pieces: likewise
 * @help_pieces: likewise
 * @local_pieces: likewise
 */
struct zc_comm {
	struct list_head link;
	refcount_t ref;
	u8 key[16];
	kuid_t uid;
	struct zc_layout layout;
	char fabric[ZC_FABRIC_BYTES];
	u32 njoined;
	u32 nmembers;
	u32 nleft;
	u32 first_left;
	spinlock_t lock;	/* operations, submissions, endpoints */
	int error;
	char text[ZCOLL_TEXT_MAX];
	u64 base;
	struct zc_engine *engine;
	struct zc_net *net;
	struct zc_op ops[ZC_WINDOW];
	struct list_head tasks;
	struct list_head free_tasks;
	u32 ntasks;
	struct zc_task *task_room;
	void **addresses;
	struct zc_memory *memories;
	struct zc_rank **ranks;
	struct zc_rank *aggregator;
	wait_queue_head_t waitq;
	wait_queue_head_t pollq;
	struct zc_mailbox *mailbox;
	u64 gone;
	wait_queue_head_t bellq;
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
	atomic64_t bytes_copied;
	atomic64_t work_pieces;
	atomic64_t help_pieces;
	atomic64_t local_pieces;
};

/**
 * struct zc_joiner - a rank that joins: what it says
 * @args: copied from the caller, checked
 * @layout: who is where; a new communicator takes it over
 * @fabric: what the nodes are to be connected by
 */
struct zc_joiner {
	const struct zcoll_join *args;
	struct zc_layout layout;
	char fabric[ZC_FABRIC_BYTES];
};

int zc_comm_enter(struct zc_rank *rank, struct zc_joiner *joiner, struct zc_text *why);
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

/* Has it been called, and has no verdict yet? */
static inline bool zc_op_in_flight(const struct zc_op *op)
{
	return op->state == ZC_OP_WAITING || op->state == ZC_OP_STARTING ||
	       op->state == ZC_OP_RUNNING;
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

/* ---- exec.c: carrying out ---- */

void zc_exec(struct zc_comm *comm, struct zc_task *task, u64 first, u64 count);
int zc_exec_node(struct zc_comm *comm, const struct zc_task *task, u64 element);
bool zc_exec_is_void(struct zc_comm *comm, const struct zc_action *action);

/* ---- work.c: who does it ---- */

struct zc_task *zc_work_get(struct zc_comm *comm);
void zc_work_run(struct zc_comm *comm, struct zc_task *task, const struct zc_waiter *waiter);
void zc_work_put(struct zc_comm *comm, struct zc_task *task);
void zc_work_kick(struct zc_comm *comm, u64 nchunks, bool caller_helps);
int zc_worker_start(struct zc_rank *rank);
void zc_worker_stop(struct zc_rank *rank);

/* ---- watch.c: deadlines and rings ---- */

void zc_watch_fn(struct work_struct *work);
void zc_watch_arm(struct zc_comm *comm, ktime_t at);
void zc_watch_ring(struct zc_comm *comm);

/* ---- isa.c: loops and caches of this CPU ---- */

int zc_isa_init(void);
const char *zc_isa_name(void);
zc_fold_fn zc_isa_fold(u32 dtype, u32 op);
u64 zc_isa_own_cache(void);
u64 zc_isa_last_cache(void);

/* ---- uring.c: io_uring commands ---- */

int zc_uring_cmd(struct io_uring_cmd *ucmd, unsigned int issue_flags);
void zc_uring_complete(struct io_uring_cmd *ucmd, int result);
bool zc_uring_cancel_known(void);

/* ---- mailbox.c: memory that the ranks share ---- */

int zc_mailbox_mmap(struct zc_rank *rank, struct vm_area_struct *vma);
void zc_mailbox_free(struct zc_comm *comm);
void zc_mailbox_tell(struct zc_comm *comm);
bool zc_mailbox_called(struct zc_comm *comm, u32 rank, u64 seq);
u32 zc_mailbox_callers(struct zc_comm *comm, u64 seq);
void zc_mailbox_add_missing(struct zc_text *text, struct zc_comm *comm, u64 seq);
void zc_mailbox_count(struct zc_rank *rank, struct zcoll_stats *args);
int zc_mailbox_park(struct zc_rank *rank, struct zcoll_park *args);
int zc_mailbox_bell(struct zc_rank *rank);

/* ---- endpoint.c ---- */

extern const struct file_operations zc_endpoint_fops;

void zc_rank_forget_buffer(struct zc_rank *rank, struct zc_buf *buf);

/* ---- status.c ---- */

int zc_status(struct zc_rank *rank, struct zcoll_status *args);

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
