/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * libzcoll: collective operations through /dev/zcoll.
 *
 * Here are the operations, and memory for them; <zcoll_comm.h>, which this includes, has the
 * communicators, and <zcoll_plan.h> the plans.
 *
 * Vocabulary. A *rank* is one process of a *communicator*; every rank calls the
 * same operations in the same order. A *request* is an operation in flight that
 * the caller will wait for. A *sequence number* names an operation on its
 * communicator: 0, 1, 2, ...; the library draws them in the order of the calls.
 *
 * Errors are negative errno values, the ones that <linux/zcoll.h> lists and
 * those that a function names here. Each has a text that names the rank and the
 * cause: zcoll_comm_error() gives the one of the communicator's last failed call,
 * zcoll_attr.error the one of a communicator that could not be made. The library
 * prints nothing.
 *
 * Failure. An error at submission (a bad argument, no memory to pin) loses
 * nothing: the operation has not been called, and may be called again. Any other
 * error of an operation revokes the communicator: its pending operations and all
 * later ones, on all ranks, end with the error that caused it, and what remains
 * to be done is zcoll_comm_free().
 *
 * Threads. All functions may be called from any thread of the process that
 * created the communicator, but zcoll_comm_free() must be the last call on it,
 * and one request must not be waited for by two threads at once. Two threads
 * that call operations on one communicator at the same time get an order between
 * them that the other ranks cannot know: give each thread its own communicator
 * (zcoll_key_derive()), or order the calls. There is no global state.
 *
 * Fork. The child of a fork() may look (rank, size, fd, error, stats, pending),
 * abort, and free its copy of the communicator, which leaves the parent's alone;
 * all other calls give it -EPERM.
 *
 * Structs of these headers may grow with the library; programs built with the
 * smaller one then get the old functions, by symbol version.
 */
#ifndef ZCOLL_H
#define ZCOLL_H

#include <stddef.h>
#include <stdint.h>
#include <linux/zcoll.h>
#include <zcoll_comm.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)	/* the library hides all else */

struct io_uring_sqe;
struct zcoll_req;

/* ------------------------------------------------------------------- memory */

/**
 * zcoll_register() - pin memory that operations will use again and again
 * @comm: the communicator
 * @addr: first byte; any alignment; anonymous, shmem or hugetlb memory, writable
 * @len: length in bytes, not 0
 *
 * Operations whose input or output lies inside a registered range find its pages
 * pinned already; other memory is pinned when it is first used, and again when it
 * has been changed since. The range stands for the memory
 * that is there now: unregister it before munmap() or mremap().
 *
 * Return: 0. -EEXIST: overlaps a registered range. -EDQUOT: RLIMIT_MEMLOCK, the
 * text tells limit, use and need. Others of ZCOLL_IOC_REGISTER.
 */
int zcoll_register(struct zcoll_comm *comm, void *addr, size_t len);

/**
 * zcoll_unregister() - undo zcoll_register()
 * @comm: the communicator
 * @addr: the address that was registered
 *
 * Operations in flight keep their pages until they end.
 *
 * Return: 0. -ENOENT: no range of zcoll_register() begins there.
 */
int zcoll_unregister(struct zcoll_comm *comm, void *addr);

/**
 * zcoll_alloc() - allocate registered memory
 * @comm: the communicator
 * @len: length in bytes, not 0
 *
 * Page-aligned and filled with zeroes; 2 MiB-aligned and of huge pages, where the
 * system has them to give, from 2 MiB up.
 *
 * On one node the memory is one that the other ranks can read and write, too, so that blocking
 * operations on it need no system call: the ranks reduce it themselves. They do so only in
 * operations that all have called; after a failure one that was in the middle of one may
 * write its outputs for a moment longer, until it notices. After fork() it is shared with
 * the child. It is not part of core dumps.
 *
 * Return: the memory, freed by zcoll_free() or with the communicator; NULL with
 * errno set, and a text at zcoll_comm_error().
 */
void *zcoll_alloc(struct zcoll_comm *comm, size_t len);

/**
 * zcoll_free() - free memory of zcoll_alloc()
 * @comm: the communicator that it was allocated on
 * @addr: what zcoll_alloc() returned; NULL is allowed
 *
 * Return: 0. -ENOENT: @addr is not memory of zcoll_alloc() on this communicator.
 */
int zcoll_free(struct zcoll_comm *comm, void *addr);

/* --------------------------------------------------------------- operations */

/**
 * struct zcoll_call - one collective operation, as this rank calls it
 * @size: sizeof(struct zcoll_call)
 * @collective: ZCOLL_ALLREDUCE ... ZCOLL_BARRIER
 * @dtype: element type, ZCOLL_INT8 ... ZCOLL_FP64; BARRIER: 0
 * @op: operator, ZCOLL_SUM ... ZCOLL_AVG; where nothing is reduced: 0
 * @flags: ZCOLL_CMD_*, beside those of zcoll_comm_set_flags()
 * @root: rank that is the root of BROADCAST or REDUCE; else 0
 * @reserved: 0
 * @count: number of elements; 0 only synchronises. BARRIER: 0
 * @send: the input; NULL without elements, and where a rank has none
 * @recv: the result, likewise
 * @deadline_ns: ns from the submission; 0: the communicator's. At most
 *	ZCOLL_MAX_DEADLINE_NS
 *
 * With n ranks, how many elements an input and a result have:
 *
 * ==============  ================  ================  ==============================
 * collective      @send             @recv             result
 * ==============  ================  ================  ==============================
 * ALLREDUCE       @count            @count            reduction of all inputs
 * REDUCE_SCATTER  n times @count    @count            this rank's block of that
 * ALLGATHER       @count            n times @count    block i is the input of rank i
 * BROADCAST       @count, at root   @count            the root's input
 * REDUCE          @count            @count, at root   reduction of all inputs
 * BARRIER         none              none              all have called
 * ==============  ================  ================  ==============================
 *
 * What a rank does not have is not looked at. In place: @send and @recv are equal; for
 * ALLGATHER, @send is this rank's block of @recv; for REDUCE_SCATTER, @recv is this
 * rank's block of @send. Other overlaps are refused.
 *
 * All but @send, @recv and @deadline_ns must be the same on all ranks.
 */
struct zcoll_call {
	size_t size;
	unsigned int collective;
	int dtype;
	int op;
	unsigned int flags;
	unsigned int root;
	unsigned int reserved;
	uint64_t count;
	const void *send;
	void *recv;
	uint64_t deadline_ns;
};

/**
 * zcoll_call() - do a collective operation
 * @comm: the communicator
 * @call: copied
 *
 * zcoll_allreduce() ... zcoll_barrier() are short for it.
 *
 * Blocks until the operation has ended; signal handlers run meanwhile. The
 * buffers stay the caller's. If zcoll_info.window operations are unfinished, waits
 * for the oldest of them first; that wait is bounded by the communicator's
 * deadline, if it has one (-ETIMEDOUT then loses nothing).
 *
 * On several nodes the library chooses a plan, see zcoll_plan_use().
 *
 * Return: 0 or a negative errno, see "Failure" at the top. -EFAULT: NULL with a
 * @count. -EINVAL: unknown collective, type, operator, flag or root, or buffers that
 * overlap and are not in place. -EOVERFLOW: bytes do not fit an address. -EOPNOTSUPP:
 * there is no plan for that, or the module does not know it.
 */
int zcoll_call(struct zcoll_comm *comm, const struct zcoll_call *call);

/**
 * zcoll_icall() - start a collective operation
 * @comm: the communicator
 * @call: copied. @call->send must not be written until the request has ended, and
 *	@call->recv not be touched
 * @req: output, owned by the caller until zcoll_wait() or zcoll_test() ends it
 *
 * zcoll_iallreduce() ... zcoll_ibarrier() are short for it.
 *
 * The operation makes progress in the kernel whatever the caller does. Returns as
 * soon as the kernel has accepted it, which for memory that is not registered is
 * when its pages are pinned. If zcoll_info.window operations are unfinished, waits
 * for the oldest of them first, as zcoll_call() does.
 *
 * Uses an io_uring that the library makes at the first call.
 *
 * Return: 0, or a negative errno as zcoll_call() and no request. -ENOSYS or
 * -EPERM: io_uring is not there, or forbidden (sysctl kernel.io_uring_disabled,
 * seccomp); there is no silent way around it.
 */
int zcoll_icall(struct zcoll_comm *comm, const struct zcoll_call *call,
		struct zcoll_req **req);

/**
 * zcoll_comm_set_flags() - flags that all later calls have
 * @comm: the communicator
 * @flags: beside those of the single call. ZCOLL_CMD_REPRODUCIBLE: the bits of
 *	reductions do not depend on how ranks lie on nodes; no matter where nothing is
 *	reduced. ZCOLL_CMD_AGREED: an operation ends with success on all ranks that
 *	survive it, or on none
 *
 * All ranks must set the same. What is asked for and cannot be is an error of the
 * call (-EOPNOTSUPP), see <linux/zcoll.h>.
 *
 * Return: 0, or -EINVAL: unknown flag; or -EPERM in another process.
 */
int zcoll_comm_set_flags(struct zcoll_comm *comm, unsigned int flags);

/**
 * zcoll_comm_set_idle() - what to do while a call waits for other ranks
 * @comm: the communicator
 * @fn: called again and again while a call waits, or NULL: nothing, as at first
 * @arg: its argument
 *
 * For a program that has something else to keep going, for instance messages of another
 * library, which another rank may need before it comes. It is called in zcoll_call() and what
 * is short for it, in zcoll_wait() with a time-out, and in zcoll_icall() when that waits for
 * room: by the thread that called, after some looks at first and every millisecond at last, and
 * never when the call has returned. A call that need not wait does not call it.
 *
 * @fn should be quick, or results are noticed late; deadlines hold all the same. It must not
 * call functions of @comm, but for zcoll_comm_abort(), and must return. Two threads that wait
 * at once call it at once.
 *
 * To be set while no other thread calls a function of @comm. The ranks need not agree on it.
 * With it, blocking operations that the kernel does take the way of zcoll_icall(), and so
 * need io_uring.
 *
 * Return: 0; what making an io_uring gave, as zcoll_icall(); or -EPERM in another process.
 */
int zcoll_comm_set_idle(struct zcoll_comm *comm, void (*fn)(void *arg), void *arg);

/**
 * zcoll_allreduce() - reduce all ranks' inputs, element by element, for all ranks
 * @comm: the communicator
 * @send: this rank's input, @count elements; any alignment
 * @recv: the result, @count elements: @send itself (in place), or no byte of it
 * @count: number of elements; 0 only synchronises, and @send and @recv may be NULL then
 * @dtype: element type, ZCOLL_INT8 ... ZCOLL_FP64
 * @op: operator, ZCOLL_SUM ... ZCOLL_AVG
 *
 * Return: as zcoll_call().
 */
int zcoll_allreduce(struct zcoll_comm *comm, const void *send, void *recv,
		    uint64_t count, int dtype, int op);
int zcoll_iallreduce(struct zcoll_comm *comm, const void *send, void *recv,
		     uint64_t count, int dtype, int op, struct zcoll_req **req);

/**
 * zcoll_reduce_scatter() - reduce all ranks' inputs, and give each rank one block
 * @comm: the communicator
 * @send: this rank's input: a block of @count elements for each rank, in their order
 * @recv: this rank's block of the result: its block of @send (in place), or no byte of it
 * @count: elements of a block
 * @dtype: as in zcoll_allreduce()
 * @op: as in zcoll_allreduce()
 *
 * Return: as zcoll_call().
 */
int zcoll_reduce_scatter(struct zcoll_comm *comm, const void *send, void *recv,
			 uint64_t count, int dtype, int op);
int zcoll_ireduce_scatter(struct zcoll_comm *comm, const void *send, void *recv,
			  uint64_t count, int dtype, int op, struct zcoll_req **req);

/**
 * zcoll_allgather() - give all ranks the inputs of all
 * @comm: the communicator
 * @send: this rank's input, @count elements: its block of @recv (in place), or no byte of it
 * @recv: the inputs, a block of @count elements for each rank, in their order
 * @count: elements of a block
 * @dtype: as in zcoll_allreduce()
 *
 * Return: as zcoll_call().
 */
int zcoll_allgather(struct zcoll_comm *comm, const void *send, void *recv,
		    uint64_t count, int dtype);
int zcoll_iallgather(struct zcoll_comm *comm, const void *send, void *recv,
		     uint64_t count, int dtype, struct zcoll_req **req);

/**
 * zcoll_broadcast() - give all ranks the input of one
 * @comm: the communicator
 * @send: at the root its input, @count elements; elsewhere not looked at
 * @recv: the same elements, on all ranks: at the root @send (in place), or no byte of it
 * @count: number of elements
 * @dtype: as in zcoll_allreduce()
 * @root: rank of the root
 *
 * Ranks that name different roots do not all have to learn of it here: a root to whose node no
 * other sends has done its part, and may return 0; the next operation fails on it.
 *
 * Return: as zcoll_call().
 */
int zcoll_broadcast(struct zcoll_comm *comm, const void *send, void *recv,
		    uint64_t count, int dtype, unsigned int root);
int zcoll_ibroadcast(struct zcoll_comm *comm, const void *send, void *recv,
		     uint64_t count, int dtype, unsigned int root, struct zcoll_req **req);

/**
 * zcoll_reduce() - reduce all ranks' inputs, element by element, for one rank
 * @comm: the communicator
 * @send: this rank's input, @count elements
 * @recv: at the root the result: @send itself (in place), or no byte of it; elsewhere not
 *	looked at
 * @count: number of elements
 * @dtype: as in zcoll_allreduce()
 * @op: as in zcoll_allreduce()
 * @root: rank of the root
 *
 * Return: as zcoll_call().
 */
int zcoll_reduce(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		 int dtype, int op, unsigned int root);
int zcoll_ireduce(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		  int dtype, int op, unsigned int root, struct zcoll_req **req);

/**
 * zcoll_barrier() - wait until all ranks have called it
 * @comm: the communicator
 *
 * Return: as zcoll_call().
 */
int zcoll_barrier(struct zcoll_comm *comm);
int zcoll_ibarrier(struct zcoll_comm *comm, struct zcoll_req **req);

/**
 * zcoll_wait() - wait for a request
 * @req: consumed (freed) by every return value but -EAGAIN and -EPERM
 * @timeout_ns: longest time to wait, in ns; 0: only look; ZCOLL_WAIT_FOREVER
 *
 * The caller helps with the operation's work while it waits.
 *
 * Return: 0: done. -EAGAIN: not ended yet; @req remains. -EPERM: called by the
 * child of a fork(); @req remains. Others: the operation failed.
 */
int zcoll_wait(struct zcoll_req *req, uint64_t timeout_ns);

/**
 * zcoll_test() - zcoll_wait() with a time-out of 0
 * @req: as in zcoll_wait()
 *
 * Return: as zcoll_wait().
 */
int zcoll_test(struct zcoll_req *req);

/**
 * zcoll_req_seq() - sequence number of a request's operation
 * @req: a request not consumed yet
 *
 * Return: the number, for zcoll_comm_pending() for instance.
 */
uint64_t zcoll_req_seq(const struct zcoll_req *req);

/**
 * zcoll_req_error() - what a request waits for, or why it failed
 * @req: a request not consumed yet; of one that zcoll_wait() consumed with an
 *	error, zcoll_comm_error() has the text
 * @buf: output, NUL-terminated, for instance the ranks that are missing; or NULL
 * @len: size of @buf in bytes; ZCOLL_TEXT_MAX always suffices
 *
 * Return: length of the text in bytes without its NUL, or a negative errno.
 */
int zcoll_req_error(struct zcoll_req *req, char *buf, size_t len);

/* ------------------------------------------------- on a ring of the caller's */

/**
 * zcoll_prep_call() - fill an SQE of the caller's own io_uring
 * @sqe: from io_uring_get_sqe(); overwritten: set its flags and user_data after
 * @ring_flags: the flags the ring was made with. With IORING_SETUP_SQE128 the
 *	command is written into the SQE, else into @cmd, and the SQE points there
 * @comm: the communicator
 * @cmd: 80 bytes, the caller's; must stay unchanged until the CQE: links,
 *	IOSQE_ASYNC and IORING_SETUP_SQPOLL have it read late. May be NULL with
 *	IORING_SETUP_SQE128
 * @call: as in zcoll_icall(); the buffers until the CQE
 *
 * zcoll_prep_allreduce() ... zcoll_prep_barrier() are short for it.
 *
 * The operation's sequence number is drawn here, so its place among the
 * operations of the communicator is that of this call; in which order and on
 * which rings the SQEs are submitted does not matter. Every SQE must be submitted
 * in the end, or the other ranks wait for it: one that will not be is taken back
 * by zcoll_unprep(), or else the communicator must be aborted.
 *
 * The CQE's res is 0 or a negative errno. If the operation was refused at
 * submission (zcoll_status.state is ZCOLL_STATE_REJECTED) the number is still
 * drawn: submit the same command again, corrected, or give it to zcoll_unprep().
 * This call does not wait: beyond zcoll_info.window unfinished operations the
 * submission is refused with -ENOBUFS, and on one node this call is 64 operations beyond
 * the oldest that some rank has not ended. IORING_OP_ASYNC_CANCEL and a linked
 * time-out do not end a command in flight; a deadline, ZCOLL_IOC_CANCEL and
 * zcoll_comm_abort() do. Links (IOSQE_IO_LINK) work in both directions.
 *
 * Return: 0, or a negative errno: no number is drawn and @sqe is not touched.
 */
int zcoll_prep_call(struct io_uring_sqe *sqe, unsigned int ring_flags,
		    struct zcoll_comm *comm, struct zcoll_cmd *cmd,
		    const struct zcoll_call *call);
int zcoll_prep_allreduce(struct io_uring_sqe *sqe, unsigned int ring_flags,
			 struct zcoll_comm *comm, struct zcoll_cmd *cmd,
			 const void *send, void *recv, uint64_t count, int dtype, int op);
int zcoll_prep_reduce_scatter(struct io_uring_sqe *sqe, unsigned int ring_flags,
			      struct zcoll_comm *comm, struct zcoll_cmd *cmd,
			      const void *send, void *recv, uint64_t count, int dtype,
			      int op);
int zcoll_prep_allgather(struct io_uring_sqe *sqe, unsigned int ring_flags,
			 struct zcoll_comm *comm, struct zcoll_cmd *cmd,
			 const void *send, void *recv, uint64_t count, int dtype);
int zcoll_prep_broadcast(struct io_uring_sqe *sqe, unsigned int ring_flags,
			 struct zcoll_comm *comm, struct zcoll_cmd *cmd,
			 const void *send, void *recv, uint64_t count, int dtype,
			 unsigned int root);
int zcoll_prep_reduce(struct io_uring_sqe *sqe, unsigned int ring_flags,
		      struct zcoll_comm *comm, struct zcoll_cmd *cmd,
		      const void *send, void *recv, uint64_t count, int dtype, int op,
		      unsigned int root);
int zcoll_prep_barrier(struct io_uring_sqe *sqe, unsigned int ring_flags,
		       struct zcoll_comm *comm, struct zcoll_cmd *cmd);

/**
 * zcoll_sqe_seq() - sequence number in an SQE of zcoll_prep_call()
 * @sqe: the SQE, not submitted yet
 * @ring_flags: as in zcoll_prep_call()
 *
 * Return: the number; keep it to ask about the operation later.
 */
uint64_t zcoll_sqe_seq(const struct io_uring_sqe *sqe, unsigned int ring_flags);

/**
 * zcoll_unprep() - give back the sequence number of an operation that will not be
 * @comm: the communicator
 * @seq: from zcoll_sqe_seq(); its SQE was never submitted, or was refused at
 *	submission. The caller sees to it that it is not submitted later: make it
 *	an IORING_OP_NOP
 *
 * Return: 0. -EINVAL: the operation has been submitted, or was never prepared.
 * -EBUSY: an operation with a later number has been prepared meanwhile: take
 * that one back first, or submit this one, or abort.
 */
int zcoll_unprep(struct zcoll_comm *comm, uint64_t seq);

/* ---------------------------------------------------------------------- plans */

/**
 * zcoll_plan_load() - give the communicator a plan
 * @comm: the communicator
 * @plan: the plan (<zcoll_plan.h> has functions that make, read and prove plans);
 *	copied, and checked by the module
 * @number: output: its name, not 0. The same plan loaded by another rank of this
 *	node has the same number
 *
 * Return: 0, or a negative errno of ZCOLL_IOC_PLAN_LOAD; zcoll_comm_error() then says
 * which step of the plan is wrong, and how.
 */
int zcoll_plan_load(struct zcoll_comm *comm, const struct zcoll_plan *plan,
		    uint32_t *number);

/**
 * zcoll_plan_unload() - take a zcoll_plan_load() back
 * @comm: the communicator
 * @number: from zcoll_plan_load(). With the last load of it the number is gone, and
 *	calls that name it fail with -ENOENT; operations in flight go on
 *
 * Return: 0, or -ENOENT.
 */
int zcoll_plan_unload(struct zcoll_comm *comm, uint32_t number);

/**
 * zcoll_plan_use() - by which plan later operations are done
 * @comm: the communicator
 * @collective: which operations: ZCOLL_ALLREDUCE ... ZCOLL_BARRIER
 * @number: from zcoll_plan_load(), or 0: what the library chooses, as at first
 *
 * It holds for operations that are called, or prepared, after it. All ranks must
 * use the same plan for the same operation; a mismatch is found, and fails on all.
 *
 * What the library chooses is the module's own plan on one node. On several it is what
 * zcoll_plan_select() says of the collective, its bytes, and what its flags want, so that
 * ``ZCOLL_PLAN`` and its like, ``ZCOLL_RULES`` and ``ZCOLL_COSTS`` decide; they must be
 * the same on all ranks. They are read when an operation of some size is first called.
 * Where nobody else decides, one choice is made for all sizes up to each power of two. The
 * plan is loaded then, and kept; at most 40 are.
 *
 * Any number is taken here, as another rank of the node may have loaded the plan. With
 * one that nobody has loaded, an operation fails with -ENOENT on this rank when it is
 * submitted. It was not called then: other ranks wait for it, and this one can call it
 * again by another plan, unless it had already called later ones; then the communicator
 * is aborted.
 *
 * Return: 0, or -EINVAL: there is no such collective; or -EPERM in another process.
 */
int zcoll_plan_use(struct zcoll_comm *comm, unsigned int collective, uint32_t number);

/* ------------------------------------------------------ information and names */

/**
 * zcoll_info_get() - what the module can do, and holds now
 * @device: path of the device; NULL: $ZCOLL_DEVICE, or else /dev/zcoll
 * @info: output, see <linux/zcoll.h>
 *
 * Return: 0 or a negative errno, -ENOENT for instance if the module is not there.
 */
int zcoll_info_get(const char *device, struct zcoll_info *info);

/**
 * zcoll_dtype_name() - name of an element type
 * @dtype: ZCOLL_INT8 ... ZCOLL_FP64
 *
 * Return: "int8", ... "uint64", "fp16", "bf16", "fp32", "fp64", static; NULL: there
 * is no such type.
 */
const char *zcoll_dtype_name(int dtype);

/**
 * zcoll_dtype_parse() - element type of a name
 * @name: as zcoll_dtype_name() gives, or as NumPy, C and NCCL say: "float32",
 *	"float", "half", "bfloat16", "double", ...
 *
 * Return: ZCOLL_INT8 ... ZCOLL_FP64, or -EINVAL.
 */
int zcoll_dtype_parse(const char *name);

/**
 * zcoll_dtype_size() - bytes of an element
 * @dtype: ZCOLL_INT8 ... ZCOLL_FP64
 *
 * Return: 1, 2, 4 or 8; 0: there is no such type.
 */
size_t zcoll_dtype_size(int dtype);

/**
 * zcoll_op_name() - name of an operator
 * @op: ZCOLL_SUM ... ZCOLL_AVG
 *
 * Return: "sum", "prod", "min", "max", "avg", static; NULL: no such operator.
 */
const char *zcoll_op_name(int op);

/**
 * zcoll_op_parse() - operator of a name
 * @name: as zcoll_op_name() gives
 *
 * Return: ZCOLL_SUM ... ZCOLL_AVG, or -EINVAL.
 */
int zcoll_op_parse(const char *name);

/**
 * zcoll_version() - version of the library
 *
 * Return: "0.1.0" for instance, static.
 */
const char *zcoll_version(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* ZCOLL_H */
