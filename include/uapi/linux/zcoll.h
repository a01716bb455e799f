/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * zcoll: collective operations between the processes of a cluster, zero copy.
 *
 * This is the ABI header of /dev/zcoll; what plans are is in <linux/zcoll_plan.h>.
 */
#ifndef _UAPI_LINUX_ZCOLL_H
#define _UAPI_LINUX_ZCOLL_H

#include <linux/ioctl.h>
#include <linux/types.h>
#include <linux/zcoll_plan.h>

/**
 * DOC: Objects
 *
 * ``/dev/zcoll`` is opened once. ZCOLL_IOC_JOIN on it makes the caller one
 * *rank* of a *communicator* and returns a new file descriptor, the *endpoint*
 * of that rank. All operations, buffers, waiting and poll() go to the endpoint.
 *
 * A rank is the address space (mm) that joined. Another process that holds the
 * endpoint (after fork() or SCM_RIGHTS) may poll it, read status and statistics
 * and abort; everything else gives it -EPERM. The rank is gone when its address
 * space is (exit, kill, exec), when it calls ZCOLL_IOC_LEAVE, or when the last
 * reference to the endpoint is closed.
 *
 * DOC: Operations
 *
 * An operation is named by its *sequence number*: 0, 1, 2, ... on each
 * communicator, drawn by each rank for itself, so that the n-th call of every
 * rank meets in operation n, however and in whatever order the calls arrive. A
 * rank may be at most zcoll_info.window operations ahead of the oldest unfinished
 * one.
 *
 * The same 80-byte struct zcoll_cmd is given to a blocking ioctl
 * (ZCOLL_IOC_ALLREDUCE ... ZCOLL_IOC_BARRIER) or to io_uring (IORING_OP_URING_CMD
 * with that number as cmd_op): in place in the SQE of a ring made with
 * IORING_SETUP_SQE128, or through a struct zcoll_cmd_ptr in the SQE of an
 * ordinary ring. The result is 0 or a negative errno; it is given only when
 * nothing touches the operation's buffers any more.
 *
 * An error at submission (bad argument, no memory to pin) loses nothing: the
 * sequence number is not used up, and the call may be repeated, corrected. All
 * failures after that revoke the communicator: all its pending operations end
 * with the error that caused it, and later calls get the same error.
 *
 * DOC: Collectives
 *
 * Which operation a command is, its number says; struct zcoll_cmd is the same for all.
 * With n ranks, c = zcoll_cmd.count and r the caller's rank, a rank's input and output
 * have so many elements:
 *
 * ==============  ==============  ==============  ==================================
 * number          input           output          result
 * ==============  ==============  ==============  ==================================
 * ALLREDUCE       c               c               reduction of all inputs
 * REDUCE_SCATTER  n * c           c               block r of that reduction
 * ALLGATHER       c               n * c           block i is the input of rank i
 * BROADCAST       c, root only    c               the root's input
 * REDUCE          c               c, root only    reduction of all inputs
 * BARRIER         none            none            all have called
 * ==============  ==============  ==============  ==================================
 *
 * What a rank does not have is not looked at. In place: ALLREDUCE, BROADCAST and REDUCE
 * with input and output the same (at the root); ALLGATHER with the input being block r of
 * the output; REDUCE_SCATTER with the output being block r of the input. Other overlaps are
 * refused.
 *
 * The order of reduction over the ranks of a node is the fixed tree of
 * Documentation/design.md. Over nodes it is the plan's, unless ZCOLL_CMD_REPRODUCIBLE is set.
 *
 * DOC: Several nodes
 *
 * The ranks of a node share one communicator in its kernel, and the node is what takes
 * part in a plan. At ZCOLL_IOC_JOIN each rank says which rank is on which node, and how
 * this node is to be reached is asked by ZCOLL_IOC_ADDRESS; the library takes the addresses
 * to all nodes, and ZCOLL_IOC_PEERS gives them to the kernel, once a node. Nodes connect when an
 * operation's plan first has them meet. A node connects to those only that prove to know the
 * communicator's key.
 *
 * DOC: Mailboxes
 *
 * Small operations of ranks on one node need no system call. The ranks of a communicator
 * with one node share memory, which mmap() of the endpoint maps (MAP_SHARED), in spans of
 * ZCOLL_SPAN_BYTES:
 *
 * - at offset 0, one page that only the kernel writes, struct zcoll_verdict;
 * - at offset ZCOLL_SPAN(i) the ZCOLL_MAILBOX_BYTES of the *mailbox* of rank i, which only
 *   rank i can map to write;
 * - after it the *heap* of rank i, which all ranks can write: memory for operands that the
 *   ranks reduce themselves.
 *
 * A mailbox begins with struct zcoll_mailbox. A rank that has one writes a *line* there for
 * each of its calls, mailbox or not, before anything else: at ZCOLL_LINE_AT(seq). When all
 * ranks' lines for an operation are there, are ZCOLL_FORM_MAIL (or all ZCOLL_FORM_HEAP), and
 * say the same call, the operation is done in user mode by what the lines carry.
 * Else, as soon as a rank sees a line that differs, it submits the call to the kernel, which
 * compares the calls itself. So mailboxes are no matter of agreement, and the
 * kernel trusts nothing in them: it only reads, for texts and numbers of missing ranks,
 * whether a line is there.
 *
 * Operations that ended in mailboxes have no place in the kernel's window. That they are
 * over, zcoll_cmd.ended tells with the next command.
 *
 * Who waits too long for a line sleeps by ZCOLL_IOC_PARK, and says so in zcoll_mailbox.parked
 * before it looks a last time; who has written a line and sees that a rank is parked wakes it
 * by ZCOLL_IOC_BELL.
 *
 * DOC: Extensible structs
 *
 * An ioctl struct begins with its size as the caller knows it. A kernel that
 * knows a larger struct takes the missing fields as zero; a kernel that knows a
 * smaller one accepts the call if the unknown fields are zero (else -E2BIG).
 * Reserved fields and unknown flags must be zero.
 *
 * DOC: Errors
 *
 * ====================  ======================================================
 * -ENOTTY               unknown ioctl or uring command
 * -E2BIG                unknown trailing field not zero
 * -EINVAL               size too small, reserved field, flag or value out of range
 * -EFAULT               an address that cannot be read or written
 * -EPERM                not the address space that joined; or, at join, another
 *                       user's communicator, or fabric rdma from a network namespace
 *                       that is not the machine's, without CAP_NET_ADMIN
 * -EOPNOTSUPP           known but not possible here: type with operator, plan of
 *                       another collective, a reproducible result with this plan or
 *                       these nodes, memory that is neither anonymous, shmem nor hugetlb
 * -EBUSY                join: the rank is taken
 * -EPROTO               join: size, node map, or on one node fabric, differ from the
 *                       others';
 *                       operation: descriptors differ (revokes)
 * -ENOENT               no such buffer handle or plan, or operation that this rank
 *                       submitted
 * -ENODEV               join: no such fabric, or no device for it
 * -ENOTCONN             several nodes, and ZCOLL_IOC_PEERS has not been called
 * -EHOSTUNREACH         a node cannot be connected to (revokes)
 * -EHOSTDOWN            a node does not answer any more (revokes)
 * -EKEYREJECTED         a node does not know the key (revokes)
 * -ERANGE               range leaves the registered buffer
 * -EOVERFLOW            count times element size over all ranks is 2^63 bytes or more, or
 *                       address plus length wraps
 * -EEXIST               sequence number already used by this rank
 * -ENOBUFS              sequence number beyond the window
 * -EDQUOT               RLIMIT_MEMLOCK would be exceeded
 * -ENOSPC               too many buffers, plans, or communicators, on this node or
 *                       of this user
 * -EMFILE, -ENFILE      no file descriptor left
 * -ENOMEM               out of kernel memory
 * -ETIMEDOUT            deadline passed (revokes); or the time-out of a wait
 * -ECANCELED            cancelled or aborted by a rank, or its ring went away
 *                       (revokes)
 * -EOWNERDEAD           a rank's process died or called exec (revokes)
 * -ESHUTDOWN            a rank, or another node, left while others still needed it
 *                       (revokes); or this rank has left
 * -EINTR                interrupted by a signal; the operation goes on, and the
 *                       same call, or ZCOLL_IOC_WAIT, picks it up again
 * ====================  ======================================================
 *
 * Every failure has a text for people: JOIN, REGISTER and PLAN_LOAD write theirs into
 * the caller's @text buffer, all operations' are fetched by ZCOLL_IOC_STATUS.
 *
 * DOC: Errors of plans
 *
 * ZCOLL_IOC_PLAN_LOAD refuses a plan that is malformed, or not safe at this node. The
 * first rule that it breaks is the errno; the text says which step, iteration
 * and segment break it, and how.
 *
 * ====================  ======================================================
 * -EOPNOTSUPP           unknown version; or, not to be checked only, a plan for one node
 *                       of more than one step or segment
 * -EINVAL               size, reserved field, flag or value out of range; fields that
 *                       contradict each other
 * -E2BIG                nodes, segments, scratch places, steps or length above the
 *                       limit; or too much memory or time needed to check the plan
 * -EBADMSG              the id is not the hash
 * -ENXIO                made for another number of nodes than the communicator has
 * -EHOSTUNREACH         a peer is out of range, or the node itself
 * -ERANGE               a segment or scratch place is out of range
 * -ENOLINK              a SEND and the step that receives it do not face each other
 * -ENOTUNIQ             two iterations of an OPEN step have the same peer
 * -EDOM                 AFTER_SLICE names an iteration with other segments
 * -ELOOP                iterations wait for each other in a circle
 * -EILSEQ               two accesses to the same place, of which not both read, have
 *                       no order
 * -EALREADY             the local inputs are used twice, or a place is folded with
 *                       itself
 * -ENODATA              something is read that is not there; local inputs are
 *                       overwritten, or never read
 * -EXFULL               an accumulation or scratch place holds another segment by
 *                       then; or the plan has none
 * -EROFS                a segment that is final is written
 * -EMEDIUMTYPE          a segment is made final that has no output at this node
 * -ENOMSG               an output is never made final
 * ====================  ======================================================
 */

#define ZCOLL_ABI_VERSION	1

/* Element types. Zero is not a type. */
#define ZCOLL_INT8		1
#define ZCOLL_UINT8		2
#define ZCOLL_INT16		3
#define ZCOLL_UINT16		4
#define ZCOLL_INT32		5
#define ZCOLL_UINT32		6
#define ZCOLL_INT64		7
#define ZCOLL_UINT64		8
#define ZCOLL_FP16		9
#define ZCOLL_BF16		10
#define ZCOLL_FP32		11
#define ZCOLL_FP64		12
#define ZCOLL_NR_TYPES		13	/* one past the last */

/* Reduction operators. Zero is not an operator. */
#define ZCOLL_SUM		1
#define ZCOLL_PROD		2
#define ZCOLL_MIN		3
#define ZCOLL_MAX		4
#define ZCOLL_AVG		5
#define ZCOLL_NR_OPS		6	/* one past the last */

/* Plans loaded on a communicator, in every kernel */
#define ZCOLL_MAX_PLANS		64

/* Upper bounds of the ABI; a kernel may allow less, see struct zcoll_info */
#define ZCOLL_MAX_RANKS		1024	/* ranks of a communicator on one node */
#define ZCOLL_MAX_NODES		4096	/* nodes of a communicator */
#define ZCOLL_MAX_SIZE		(1U << 18)	/* ranks of a communicator on all nodes */
#define ZCOLL_ADDRESS_MAX	256	/* bytes of a node's address */
#define ZCOLL_MAX_WINDOW	32	/* operations in flight on a communicator */
#define ZCOLL_TEXT_MAX		256	/* bytes of an error text with its NUL */
#define ZCOLL_MAX_DEADLINE_NS	(86400ULL * 1000000000ULL)	/* one day */
#define ZCOLL_NO_BUF		0	/* no handle: the field beside it is an address */

/* zcoll_info.features */
#define ZCOLL_FEAT_URING	(1ULL << 0)	/* uring commands, both forms */
#define ZCOLL_FEAT_RING_CANCEL	(1ULL << 1)	/* the kernel reports rings that go away */
#define ZCOLL_FEAT_RDMA		(1ULL << 2)	/* fabric "rdma": built with the RDMA stack */
#define ZCOLL_FEAT_MAILBOX	(1ULL << 3)	/* mailboxes: mmap() of the endpoint */

/**
 * struct zcoll_info - ZCOLL_IOC_INFO: what this kernel can do, and holds now
 * @size: sizeof(struct zcoll_info)
 * @abi_version: ZCOLL_ABI_VERSION of the module
 * @features: ZCOLL_FEAT_*
 * @types: bit t is set when element type t is known
 * @ops: bit o is set when operator o is known
 * @max_ranks: most ranks of a communicator on this node
 * @window: most operations in flight on a communicator
 * @max_buffers: most buffers a rank may hold registered
 * @max_comms: most communicators on this node
 * @inline_bytes: an operation that reads and writes at most this many bytes in
 *	all is done by the last caller itself
 * @comms: communicators there are now
 * @ranks: endpoints there are now
 * @workers: kernel worker threads there are now
 * @pinned_pages: pages pinned now
 * @kernel_bytes: kernel memory held by communicators and endpoints now, in
 *	bytes; stacks of worker threads not included
 * @ops_done: operations completed with success since the module was loaded
 * @ops_failed: operations completed with an error
 * @fold: name of the fold loops chosen for this CPU, for instance "avx2"
 * @cache_hits: ranges named by calls, not registered, that were still pinned for an
 *	earlier call (module parameter cache_mib)
 * @cache_misses: ranges that had to be pinned
 * @cache_dropped: ranges that did not stay pinned because their memory was changed
 *	(munmap, madvise, fork, ...)
 * @cache_pages: pages that stay pinned for later calls now; @pinned_pages has them, too
 * @pin_ns: time that pinning for calls took, in ns
 *
 * Allowed to anybody who can open the device. All fields but @size are outputs.
 */
struct zcoll_info {
	__u32 size;
	__u32 abi_version;
	__aligned_u64 features;
	__aligned_u64 types;
	__aligned_u64 ops;
	__u32 max_ranks;
	__u32 window;
	__u32 max_buffers;
	__u32 max_comms;
	__u32 inline_bytes;
	__u32 comms;
	__u32 ranks;
	__u32 workers;
	__aligned_u64 pinned_pages;
	__aligned_u64 kernel_bytes;
	__aligned_u64 ops_done;
	__aligned_u64 ops_failed;
	char fold[16];
	__aligned_u64 cache_hits;
	__aligned_u64 cache_misses;
	__aligned_u64 cache_dropped;
	__aligned_u64 cache_pages;
	__aligned_u64 pin_ns;
};

/* zcoll_join.flags */
#define ZCOLL_JOIN_AGGREGATE	(1U << 0)	/* a node without ranks, which only aggregates */

/**
 * struct zcoll_join - ZCOLL_IOC_JOIN on /dev/zcoll: become a rank
 * @size: sizeof(struct zcoll_join)
 * @flags: ZCOLL_JOIN_AGGREGATE
 * @key: names the communicator; the first to come creates it, all others must
 *	have the same user id (or CAP_SYS_ADMIN). Choose at random. With several nodes
 *	it is also the secret by which they know each other.
 * @rank: 0 .. @nranks - 1; with ZCOLL_JOIN_AGGREGATE 0
 * @nranks: number of ranks of all nodes, the same for all; at most ZCOLL_MAX_RANKS on
 *	a node, ZCOLL_MAX_SIZE in all
 * @node_map: address of @nranks __u32, the node number of each rank, the same
 *	for all; 0: all ranks are on this node
 * @deadline_ns: deadline of operations that give none, ns from their
 *	submission; 0: none. At most ZCOLL_MAX_DEADLINE_NS. Each rank has its own.
 * @text: address of a buffer for the error text, or 0
 * @text_len: its size in bytes
 * @__reserved: must be 0
 * @nodes: nodes, at most ZCOLL_MAX_NODES; 0: one node, and all numbers of @node_map are
 *	equal. Else nodes 0 .. m - 1 have ranks, each at least one, and nodes m .. @nodes - 1
 *	only aggregate.
 * @node: with ZCOLL_JOIN_AGGREGATE the number of this node, m .. @nodes - 1; else 0, for
 *	the map tells
 * @fabric: address of what @nodes are to be connected by, a string: ``rdma``, ``loop`` or
 *	``rdma:RAIL,...``, see Documentation/protocol.md; 0: ``rdma``
 * @fabric_len: its bytes, at most 255, without a NUL
 * @__reserved2: must be 0
 *
 * Returns a new file descriptor (close-on-exec), the endpoint. It may be used at
 * once: operations wait for ranks that have not joined. poll() on the endpoint
 * gives POLLIN when all of this node have, POLLERR | POLLHUP when the communicator is
 * revoked.
 *
 * An endpoint of ZCOLL_JOIN_AGGREGATE is no rank, but for the rest the same: it loads the
 * plans that its node is to follow, and what it holds the node takes part in.
 *
 * A communicator lives until its last endpoint is closed; a revoked one accepts
 * no new ranks (they get the error that revoked it).
 */
struct zcoll_join {
	__u32 size;
	__u32 flags;
	__u8 key[16];
	__u32 rank;
	__u32 nranks;
	__aligned_u64 node_map;
	__aligned_u64 deadline_ns;
	__aligned_u64 text;
	__u32 text_len;
	__u32 __reserved;
	__u32 nodes;
	__u32 node;
	__aligned_u64 fabric;
	__u32 fabric_len;
	__u32 __reserved2;
};

/**
 * struct zcoll_address - ZCOLL_IOC_ADDRESS: how other nodes reach this one
 * @size: sizeof(struct zcoll_address)
 * @flags: must be 0
 * @address: address of a buffer of ZCOLL_ADDRESS_MAX bytes, filled; the same for all ranks
 *	of this node
 * @address_len: output: how many of them mean something
 * @__reserved: must be 0
 *
 * -ENOTCONN: the communicator has one node.
 */
struct zcoll_address {
	__u32 size;
	__u32 flags;
	__aligned_u64 address;
	__u32 address_len;
	__u32 __reserved;
};

/**
 * struct zcoll_peers - ZCOLL_IOC_PEERS: the addresses of all nodes
 * @size: sizeof(struct zcoll_peers)
 * @flags: must be 0
 * @addresses: address of @nodes times ZCOLL_ADDRESS_MAX bytes, by node
 * @nodes: as in struct zcoll_join (-EINVAL)
 * @text_len: size of the buffer at @text in bytes
 * @text: address of a buffer for the error text, or 0
 *
 * Once for each node, by any of its ranks; again, it changes nothing. Operations may be
 * called from then on.
 */
struct zcoll_peers {
	__u32 size;
	__u32 flags;
	__aligned_u64 addresses;
	__u32 nodes;
	__u32 text_len;
	__aligned_u64 text;
};

/**
 * struct zcoll_buf - ZCOLL_IOC_REGISTER: pin a range of the caller's memory
 * @size: sizeof(struct zcoll_buf)
 * @flags: must be 0
 * @addr: first byte; any alignment
 * @len: length in bytes, not 0
 * @handle: output, not 0; valid on this endpoint until ZCOLL_IOC_UNREGISTER
 * @text_len: size of the buffer at @text in bytes
 * @text: address of a buffer for the error text, or 0
 *
 * The handle stands for the memory that is there now: after munmap() or mremap()
 * it still names the old pages. The pages must be writable, and anonymous,
 * shmem/memfd or hugetlb memory. They are charged against RLIMIT_MEMLOCK, as
 * RDMA memory regions are, unless the caller has CAP_IPC_LOCK.
 */
struct zcoll_buf {
	__u32 size;
	__u32 flags;
	__aligned_u64 addr;
	__aligned_u64 len;
	__u32 handle;
	__u32 text_len;
	__aligned_u64 text;
};

/**
 * struct zcoll_unbuf - ZCOLL_IOC_UNREGISTER: give a handle back
 * @size: sizeof(struct zcoll_unbuf)
 * @handle: from ZCOLL_IOC_REGISTER
 *
 * The handle is gone at once; the pin ends with the operations in flight that
 * use it.
 */
struct zcoll_unbuf {
	__u32 size;
	__u32 handle;
};

/* zcoll_plan_load.flags */
#define ZCOLL_PLAN_CHECK	(1U << 0)	/* only check the plan, at any node */

/**
 * struct zcoll_plan_load - ZCOLL_IOC_PLAN_LOAD: check a plan, and keep it
 * @size: sizeof(struct zcoll_plan_load)
 * @flags: ZCOLL_PLAN_CHECK
 * @plan: address of a struct zcoll_plan with its steps
 * @bytes: their size
 * @node: with ZCOLL_PLAN_CHECK, the node of the plan at which to check it; else 0
 * @number: output, not 0: the name of the plan for operations, until as many calls of
 *	ZCOLL_IOC_PLAN_UNLOAD as of this one have been made; 0 with ZCOLL_PLAN_CHECK
 * @text_len: size of the buffer at @text in bytes
 * @text: address of a buffer for the error text, or 0
 *
 * Plans belong to the communicator: what one rank has loaded, all may name, and the
 * same plan loaded by several has one number. At most ZCOLL_MAX_PLANS. A number is
 * not given to another plan soon after.
 *
 * A plan is checked at the node that loads it, as if all other nodes were at fault.
 * Whether all nodes together do what the collective asks, the library proves.
 */
struct zcoll_plan_load {
	__u32 size;
	__u32 flags;
	__aligned_u64 plan;
	__u32 bytes;
	__u32 node;
	__u32 number;
	__u32 text_len;
	__aligned_u64 text;
};

/**
 * struct zcoll_plan_unload - ZCOLL_IOC_PLAN_UNLOAD: take a load back
 * @size: sizeof(struct zcoll_plan_unload)
 * @number: from ZCOLL_IOC_PLAN_LOAD; by any rank
 *
 * With the last load the number is gone at once (-ENOENT from then on); operations in
 * flight keep the plan itself. What is never unloaded ends with the communicator.
 */
struct zcoll_plan_unload {
	__u32 size;
	__u32 number;
};

#define ZCOLL_CMD_VERSION	1

/* zcoll_cmd.flags */
#define ZCOLL_CMD_REPRODUCIBLE	(1U << 0)	/* bits do not depend on how ranks lie on nodes */
#define ZCOLL_CMD_AGREED	(1U << 1)	/* all survivors get the same verdict */
#define ZCOLL_CMD_FLAGS		3U

/**
 * struct zcoll_cmd - one collective operation, as one rank calls it
 * @version: ZCOLL_CMD_VERSION
 * @dtype: element type, ZCOLL_INT8 ... ZCOLL_FP64; BARRIER: 0
 * @op: reduction operator, ZCOLL_SUM ... ZCOLL_AVG; ALLGATHER, BROADCAST, BARRIER: 0
 * @flags: ZCOLL_CMD_*. REPRODUCIBLE: the reduction has the order of the fixed tree over all
 *	ranks; the plan must be ZCOLL_PLAN_ORDERED, and ranks lie on nodes in blocks of one
 *	power of two (the last node may have fewer), and the root of REDUCE on node 0; fp16
 *	and bf16 are reproducible on one node only; else -EOPNOTSUPP. AGREED: the plan must be
 *	ZCOLL_PLAN_AGREED, with several nodes.
 * @seq: sequence number of the operation
 * @send: offset into @send_buf in bytes, or an address if @send_buf is
 *	ZCOLL_NO_BUF. Equal @send and @recv (and handles): in place. Any
 *	alignment. Ranges that overlap otherwise: -EINVAL.
 * @recv: the same for the result
 * @send_buf: buffer handle of the input
 * @recv_buf: buffer handle of the output
 * @count: elements, see "Collectives"; 0 is allowed and only synchronises. BARRIER: 0
 * @root: rank that is the root of BROADCAST or REDUCE; else 0
 * @plan: number from ZCOLL_IOC_PLAN_LOAD of a plan for this collective; 0: the
 *	built-in plan for one node, -EINVAL with several
 * @deadline_ns: ns from submission; 0: the endpoint's default. At most
 *	ZCOLL_MAX_DEADLINE_NS. The earliest of all ranks' deadlines counts.
 * @extra: must be 0
 * @ended: all of this rank's operations with smaller numbers have ended, and those of them
 *	that the kernel does not know in mailboxes; 0: nothing is said. -EINVAL if one is in
 *	flight, with several nodes, or above 2^61
 *
 * @dtype, @op, @flags, @count, @root and @plan must be the same on all ranks;
 * they are compared before any byte moves.
 *
 * A range that is not registered is pinned at submission; on one node it stays so for
 * later calls until its memory is changed, or others have been used since (module
 * parameter cache_mib; zcoll_stats.call_pins, .cache_hits).
 */
struct zcoll_cmd {
	__u16 version;
	__u8 dtype;
	__u8 op;
	__u32 flags;
	__aligned_u64 seq;
	__aligned_u64 send;
	__aligned_u64 recv;
	__u32 send_buf;
	__u32 recv_buf;
	__aligned_u64 count;
	__u32 root;
	__u32 plan;
	__aligned_u64 deadline_ns;
	__aligned_u64 extra;
	__aligned_u64 ended;
};

/**
 * struct zcoll_cmd_ptr - payload of a 64-byte SQE
 * @addr: address of a struct zcoll_cmd. It is read once, when the kernel begins the
 *	command: for a plain SQE before io_uring_enter() returns, but later with
 *	IOSQE_ASYNC, links, drain or SQPOLL. Keep it unchanged until the completion.
 * @__reserved: must be 0
 */
struct zcoll_cmd_ptr {
	__aligned_u64 addr;
	__aligned_u64 __reserved;
};

/**
 * struct zcoll_wait - ZCOLL_IOC_WAIT: wait for an operation of this rank
 * @size: sizeof(struct zcoll_wait)
 * @flags: must be 0
 * @seq: the operation, submitted before by this rank in any way
 * @timeout_ns: longest time to wait, ns; 0: only look; ZCOLL_WAIT_FOREVER. When a
 *	signal interrupts the wait, this is what is left of it.
 * @result: output: 0 or the negative errno the operation ended with
 * @__reserved: must be 0
 *
 * The caller helps with the operation's work while it waits. Returns 0 when the
 * operation has ended (@result says how), -ETIMEDOUT when it has not: nothing is
 * lost then. Results are kept until zcoll_info.window operations later (-ENOENT).
 */
struct zcoll_wait {
	__u32 size;
	__u32 flags;
	__aligned_u64 seq;
	__aligned_u64 timeout_ns;
	__s32 result;
	__u32 __reserved;
};

#define ZCOLL_WAIT_FOREVER	(~0ULL)

/* zcoll_status.state */
#define ZCOLL_STATE_NONE	0	/* no rank has called it, or forgotten by now */
#define ZCOLL_STATE_WAITING	1	/* ranks are missing */
#define ZCOLL_STATE_RUNNING	2	/* all have called, bytes move */
#define ZCOLL_STATE_DONE	3	/* ended, zcoll_status.result says how */
#define ZCOLL_STATE_REJECTED	4	/* this rank's last attempt was refused */

/* zcoll_status.flags */
#define ZCOLL_STATUS_COMM	(1U << 0)	/* the communicator, not an operation */

/**
 * struct zcoll_status - ZCOLL_IOC_STATUS: how an operation stands, and why
 * @size: sizeof(struct zcoll_status)
 * @flags: ZCOLL_STATUS_*
 * @seq: the operation; must be 0 with ZCOLL_STATUS_COMM
 * @state: output, ZCOLL_STATE_*. With ZCOLL_STATUS_COMM: WAITING while ranks
 *	have not joined, RUNNING, or DONE when it is revoked or ranks have left
 * @result: output: 0, or the negative errno of a DONE or REJECTED operation, or
 *	that revoked the communicator
 * @rank: output: rank of this endpoint
 * @nranks: output: ranks of the communicator
 * @arrived: output: ranks that have called the operation (have joined)
 * @missing_len: entries at @missing
 * @missing: address of __u32 entries; while @state is WAITING filled with the ranks
 *	that are missing, as many as fit (at most @nranks - @arrived); or 0
 * @oldest: output: the oldest unfinished operation; sequence numbers below
 *	@oldest + zcoll_info.window are accepted, once this rank has the result of its
 *	call one window earlier
 * @text: address of a buffer for the text, or 0
 * @text_len: its size in bytes
 * @__reserved: must be 0
 *
 * Any process that holds the endpoint may ask. The text of a failure names rank,
 * operation, limit and need; of a WAITING operation, who is missing; of a RUNNING one on
 * several nodes, for which nodes it waits.
 */
struct zcoll_status {
	__u32 size;
	__u32 flags;
	__aligned_u64 seq;
	__u32 state;
	__s32 result;
	__u32 rank;
	__u32 nranks;
	__u32 arrived;
	__u32 missing_len;
	__aligned_u64 missing;
	__aligned_u64 oldest;
	__aligned_u64 text;
	__u32 text_len;
	__u32 __reserved;
};

/**
 * struct zcoll_seq - ZCOLL_IOC_CANCEL: give an operation up
 * @size: sizeof(struct zcoll_seq)
 * @flags: must be 0
 * @seq: an operation this rank has submitted and that has not ended (-ENOENT)
 *
 * Others take part in the operation, so it cannot vanish: the communicator is
 * revoked with -ECANCELED.
 */
struct zcoll_seq {
	__u32 size;
	__u32 flags;
	__aligned_u64 seq;
};

/**
 * struct zcoll_flags - ZCOLL_IOC_ABORT, ZCOLL_IOC_LEAVE and ZCOLL_IOC_BELL
 * @size: sizeof(struct zcoll_flags)
 * @flags: must be 0
 *
 * ABORT revokes the communicator with -ECANCELED; any holder of the endpoint may
 * call it. LEAVE ends this rank's part: its buffers are unregistered, and other
 * ranks' operations that need it fail with -ESHUTDOWN. Leaving with operations in
 * flight revokes the communicator, and LEAVE returns when they are quiet. Leaving
 * again does nothing. What an endpoint holds is given back by LEAVE at once, by
 * close() a moment later if operations are in flight. BELL wakes ranks that sleep in
 * ZCOLL_IOC_PARK (-ENXIO: nothing is mapped).
 */
struct zcoll_flags {
	__u32 size;
	__u32 flags;
};

/**
 * struct zcoll_stats - ZCOLL_IOC_STATS: counters of an endpoint and its communicator
 * @size: sizeof(struct zcoll_stats)
 * @flags: must be 0
 * @ops_done: operations of the communicator that ended with success
 * @ops_failed: operations that ended with an error
 * @ops_inline: of these, done by the last caller itself
 * @bytes_folded: bytes of all inputs read by folds
 * @work_pieces: pieces of work done by kernel workers
 * @help_pieces: pieces done by callers that waited
 * @call_pins: ranges that were not registered, and had to be pinned when this rank
 *	called
 * @buffers: buffers this rank has registered
 * @vmapped: of these, how many needed a kernel mapping of their own
 * @pinned_pages: pages of the buffers this rank has registered
 * @comm_kernel_bytes: kernel memory of the whole communicator, in bytes
 * @workers: kernel worker threads of the communicator
 * @__reserved: output, 0
 * @nodes: nodes of the communicator, 1 or more
 * @node: number of this one
 * @bytes_copied: bytes the kernel has copied: results to the outputs of further local ranks,
 *	inputs where nothing is reduced, payload of small messages
 * @bytes_written: bytes this node has written by RDMA into other nodes' memory
 * @bytes_inline: bytes of payload this node has sent in small messages
 * @messages: messages this node has sent, of all kinds
 * @connected: nodes this one is connected to, in either direction
 * @rails: queue pairs to each
 * @ops_mailbox: operations that this rank says it has done from mailboxes
 * @ops_heap: operations that it says it has done in heaps
 * @cache_hits: ranges that were not registered, but still pinned for an earlier call
 * @cache_dropped: ranges that did not stay pinned because their memory was changed
 * @cache_pages: pages that stay pinned for later calls now
 * @pin_ns: time that @call_pins took, in ns
 * @local_pieces: of @work_pieces and @help_pieces, those whose output is on the NUMA node of
 *	the CPU that did them; counted on machines with several
 */
struct zcoll_stats {
	__u32 size;
	__u32 flags;
	__aligned_u64 ops_done;
	__aligned_u64 ops_failed;
	__aligned_u64 ops_inline;
	__aligned_u64 bytes_folded;
	__aligned_u64 work_pieces;
	__aligned_u64 help_pieces;
	__aligned_u64 call_pins;
	__u32 buffers;
	__u32 vmapped;
	__aligned_u64 pinned_pages;
	__aligned_u64 comm_kernel_bytes;
	__u32 workers;
	__u32 __reserved;
	__u32 nodes;
	__u32 node;
	__aligned_u64 bytes_copied;
	__aligned_u64 bytes_written;
	__aligned_u64 bytes_inline;
	__aligned_u64 messages;
	__u32 connected;
	__u32 rails;
	__aligned_u64 ops_mailbox;
	__aligned_u64 ops_heap;
	__aligned_u64 cache_hits;
	__aligned_u64 cache_dropped;
	__aligned_u64 cache_pages;
	__aligned_u64 pin_ns;
	__aligned_u64 local_pieces;
};

/* ---- mailboxes ---- */

#define ZCOLL_SPAN_SHIFT	36
#define ZCOLL_SPAN_BYTES	(1ULL << ZCOLL_SPAN_SHIFT)
#define ZCOLL_SPAN(rank)	(((__u64)(rank) + 1) << ZCOLL_SPAN_SHIFT)
#define ZCOLL_MAILBOX_BYTES	(1UL << 20)
#define ZCOLL_MAILBOX_RANKS	64	/* a communicator with more has no mailboxes */
#define ZCOLL_MAILBOX_VERSION	1
#define ZCOLL_LINES		64	/* twice the window, so that none is needed any more when
					 * it is written again
					 */
#define ZCOLL_LINE_PAYLOAD	48
/* Offset of the line for operation @seq in a mailbox */
#define ZCOLL_LINE_AT(seq)	(4096 + (seq) % ZCOLL_LINES * 64)

/* Lowest bits of zcoll_line.stamp */
#define ZCOLL_FORM_COMMAND	1	/* submitted to the kernel */
#define ZCOLL_FORM_MAIL		2	/* the input is in the mailbox */
#define ZCOLL_FORM_HEAP		3	/* input and output are in the heap */
#define ZCOLL_FORM_MASK		3ULL
#define ZCOLL_STAMP(seq, form)	(((seq) + 1) << 2 | (form))

/**
 * struct zcoll_verdict - what the kernel tells all ranks of a communicator, without a call
 * @error: 0, or the negative errno that revoked it
 * @bell: counts ZCOLL_IOC_BELL, and changes of the other fields
 * @gone: bit r is set when rank r has left
 */
struct zcoll_verdict {
	__s32 error;
	__u32 bell;
	__aligned_u64 gone;
};

/**
 * struct zcoll_mailbox - the beginning of a mailbox; its writer is the rank it belongs to
 * @version: ZCOLL_MAILBOX_VERSION once the rank writes lines
 * @ended: all operations below have ended for this rank, and nothing of them is read
 * @parked: this rank sleeps, or is about to, and is to be woken when something has changed
 * @mails: operations done from mailboxes
 * @heaps: operations done in heaps
 * @__pad0: what is written often has a cache line of its own
 * @__pad1: likewise
 * @__pad2: likewise
 */
struct zcoll_mailbox {
	__u32 version;
	__u32 __pad0[15];
	__aligned_u64 ended;
	__u64 __pad1[7];
	__u32 parked;
	__u32 __pad2[15];
	__aligned_u64 mails;
	__aligned_u64 heaps;
};

/**
 * struct zcoll_line - one rank's call of an operation, in its mailbox
 * @stamp: ZCOLL_STAMP(seq, form); written last
 * @call: what is called, as the library packs it; equal calls have equal ones
 * @payload: the input, if it fits; or where the operands are
 */
struct zcoll_line {
	__aligned_u64 stamp;
	__aligned_u64 call;
	__u8 payload[ZCOLL_LINE_PAYLOAD];
};

/* zcoll_park.flags */
#define ZCOLL_PARK_DEADLINE	(1U << 0)	/* the time-out is the operation's deadline */

/**
 * struct zcoll_park - ZCOLL_IOC_PARK: sleep until the bell rings
 * @size: sizeof(struct zcoll_park)
 * @flags: ZCOLL_PARK_*. DEADLINE: if the time passes, the communicator is revoked with
 *	-ETIMEDOUT, and a text that names the ranks whose line for @seq is missing
 * @seq: the operation that is waited for
 * @timeout_ns: longest sleep, ns, or ZCOLL_WAIT_FOREVER. When a signal interrupts it, this is
 *	what is left of it.
 * @bell: zcoll_verdict.bell before the caller looked for what it waits for
 * @__reserved: must be 0
 *
 * Returns 0 when the bell has rung since, or the communicator is revoked or a rank has left;
 * -ETIMEDOUT; -ENXIO: nothing is mapped.
 */
struct zcoll_park {
	__u32 size;
	__u32 flags;
	__aligned_u64 seq;
	__aligned_u64 timeout_ns;
	__u32 bell;
	__u32 __reserved;
};

#define ZCOLL_IOC_TYPE		0xEB

#define ZCOLL_IOC_INFO		_IOWR(ZCOLL_IOC_TYPE, 0x00, struct zcoll_info)
#define ZCOLL_IOC_JOIN		_IOW(ZCOLL_IOC_TYPE, 0x01, struct zcoll_join)
#define ZCOLL_IOC_LEAVE		_IOW(ZCOLL_IOC_TYPE, 0x02, struct zcoll_flags)
#define ZCOLL_IOC_ABORT		_IOW(ZCOLL_IOC_TYPE, 0x03, struct zcoll_flags)
#define ZCOLL_IOC_REGISTER	_IOWR(ZCOLL_IOC_TYPE, 0x04, struct zcoll_buf)
#define ZCOLL_IOC_UNREGISTER	_IOW(ZCOLL_IOC_TYPE, 0x05, struct zcoll_unbuf)
#define ZCOLL_IOC_STATUS	_IOWR(ZCOLL_IOC_TYPE, 0x06, struct zcoll_status)
#define ZCOLL_IOC_WAIT		_IOWR(ZCOLL_IOC_TYPE, 0x07, struct zcoll_wait)
#define ZCOLL_IOC_CANCEL	_IOW(ZCOLL_IOC_TYPE, 0x08, struct zcoll_seq)
#define ZCOLL_IOC_STATS		_IOWR(ZCOLL_IOC_TYPE, 0x09, struct zcoll_stats)
#define ZCOLL_IOC_PLAN_LOAD	_IOWR(ZCOLL_IOC_TYPE, 0x0A, struct zcoll_plan_load)
#define ZCOLL_IOC_PLAN_UNLOAD	_IOW(ZCOLL_IOC_TYPE, 0x0B, struct zcoll_plan_unload)
#define ZCOLL_IOC_ADDRESS	_IOWR(ZCOLL_IOC_TYPE, 0x0C, struct zcoll_address)
#define ZCOLL_IOC_PEERS		_IOW(ZCOLL_IOC_TYPE, 0x0D, struct zcoll_peers)
#define ZCOLL_IOC_PARK		_IOWR(ZCOLL_IOC_TYPE, 0x0E, struct zcoll_park)
#define ZCOLL_IOC_BELL		_IOW(ZCOLL_IOC_TYPE, 0x0F, struct zcoll_flags)

/*
 * Operations: blocking ioctls, and cmd_op of uring commands. Their number is
 * ZCOLL_IOC_OP(ZCOLL_ALLREDUCE ... ZCOLL_BARRIER).
 */
#define ZCOLL_IOC_OP(collective) _IOW(ZCOLL_IOC_TYPE, 0x3F + (collective), struct zcoll_cmd)
#define ZCOLL_IOC_ALLREDUCE	_IOW(ZCOLL_IOC_TYPE, 0x40, struct zcoll_cmd)
#define ZCOLL_IOC_REDUCE_SCATTER _IOW(ZCOLL_IOC_TYPE, 0x41, struct zcoll_cmd)
#define ZCOLL_IOC_ALLGATHER	_IOW(ZCOLL_IOC_TYPE, 0x42, struct zcoll_cmd)
#define ZCOLL_IOC_BROADCAST	_IOW(ZCOLL_IOC_TYPE, 0x43, struct zcoll_cmd)
#define ZCOLL_IOC_REDUCE	_IOW(ZCOLL_IOC_TYPE, 0x44, struct zcoll_cmd)
#define ZCOLL_IOC_BARRIER	_IOW(ZCOLL_IOC_TYPE, 0x45, struct zcoll_cmd)

#endif /* _UAPI_LINUX_ZCOLL_H */
