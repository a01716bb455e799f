/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * libzcoll-mpi: MPI's collective operations by zcoll, in programs that know nothing of it.
 *
 * The library is preloaded and defines MPI_Allreduce() and its like. A call is *taken*, and
 * done by zcoll, or *passed on* to the MPI's own function, PMPI_Allreduce(). Which of the
 * two depends on nothing but what MPI requires to be the same on all ranks: the operation,
 * its operator, the bytes of its type signature, and what the calls before it on the
 * communicator were. It never depends on a rank's own datatype or buffer.
 *
 * Vocabulary. *Arguments* are those of the MPI call. An *operation* is a call that was
 * taken. Its *input* and *output* are the user's memory; where zcoll cannot use that, there
 * is *bounce* memory. A *request* is an operation with an MPI_Request. A *communicator*
 * (struct zm_comm) is what is kept for an MPI communicator, see comm.c.
 *
 * Locking. Each communicator has a lock for its operations in flight and in its queue;
 * requests.c, line.c, errors.c and comm.c have one each. None is held while others are waited
 * for, and none while another is taken, but a communicator's inside that of comm.c, and that of
 * line.c inside a communicator's.
 *
 * Lifetimes. An MPI communicator holds its struct zm_comm by an attribute; each operation
 * and each thread of queue.c holds it too. A request lives until MPI frees the handle and
 * nobody looks at it.
 */
#ifndef LIBZCOLL_MPI_INTERNAL_H
#define LIBZCOLL_MPI_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zcoll.h>

#include "compat.h"

/* Why a call is passed on */
enum zm_reason {
	ZM_TAKEN,
	ZM_OFF,			/* ZCOLL_MPI=0, on this rank */
	ZM_ARGUMENTS,		/* wrong: the MPI knows what to say */
	ZM_OPERATOR,
	ZM_TYPE,
	ZM_UNEQUAL,		/* blocks of different sizes */
	ZM_EMPTY,		/* there is no data */
	ZM_LARGE,		/* more than may be pinned */
	ZM_HUGE,		/* more than MPI_Pack() can */
	ZM_INTER,		/* an inter-communicator */
	ZM_ALONE,		/* one rank */
	ZM_SESSION,		/* the program has not called MPI_Init() */
	ZM_NOT_YET,		/* not blocking, and no communicator has been made */
	ZM_NO_COMM,		/* none could be made */
	ZM_NR_REASONS
};

/* What is kept for an MPI communicator */
struct zm_comm {
	enum zm_reason pass;	/* ZM_TAKEN: there is @zcoll */
	MPI_Comm handle;	/* MPI_COMM_NULL: freed; for error handlers */
	struct zcoll_comm *zcoll;
	int rank, size;
	uint64_t types, ops;	/* that the module has on all nodes, by bits */
	uint64_t most;		/* bytes that one operation may pin, on all ranks */
	unsigned int window;
	_Atomic unsigned int users;
	_Atomic unsigned int calling;	/* threads in a blocking call of much memory */
	_Atomic uint64_t next_seq;	/* number of the next operation */
	_Atomic bool feeding;	/* a thread submits what is in the queue; written with the lock */
	struct zm_comm *next;	/* of all that have @zcoll, comm.c's lock */

	pthread_mutex_t lock;	/* the rest */
	struct zm_op *flying;	/* operations that were submitted and are not over */
	struct zm_op *first, *last;	/* the queue */
};

/* Elements in the user's memory */
struct zm_data {
	void *buf;		/* of a send buffer: or MPI_IN_PLACE */
	MPI_Aint count;
	MPI_Datatype type;
};

/* A collective call */
struct zm_args {
	unsigned int collective;	/* ZCOLL_ALLREDUCE ... */
	struct zm_data send;
	struct zm_data recv;	/* BROADCAST: the buffer. Always count and type of a block */
	MPI_Op op;
	int root;
	MPI_Comm comm;
	bool unequal;		/* blocks of different sizes; then they are not told here */
};

enum zm_state { ZM_IDLE, ZM_QUEUED, ZM_FLYING, ZM_OVER };

struct zm_op {
	struct zm_comm *comm;
	struct zcoll_call call;
	struct zm_data input, output;	/* count 0: none */
	size_t block;		/* bytes of a block */
	size_t in_bytes, out_bytes;
	void *in_bounce, *out_bounce;
	bool in_place;
	_Atomic int state;
	struct zcoll_req *req;	/* FLYING */
	uint64_t seq;
	int error;		/* OVER: 0 or a negative errno */
	char text[ZCOLL_TEXT_MAX];
	struct zm_op *next;	/* in the queue or among the flying, comm->lock */
	struct zm_op *behind;	/* in line.c's line, its lock */
};

struct zm_request {
	struct zm_op op;
	MPI_Request handle;
	bool persistent;
	bool shown;		/* MPI knows that it is over */
	unsigned int users;	/* requests.c's lock */
	struct zm_request *next;
};

/* environment.c */
bool zm_wanted(void);
const char *zm_wrong_setting(void);
bool zm_wants_stats(int rank);

/* setup.c */
bool zm_able(void);
bool zm_in_world(void);
void zm_die(const char *what);
int zm_keyval(void);
int zm_watch_keyval(void);
MPI_Request zm_never(void);
MPI_Comm zm_self(void);

/* types.c */
int zm_type_element(MPI_Datatype type);
bool zm_type_is_plain(MPI_Datatype type);
size_t zm_type_size(MPI_Datatype type);
int zm_op_number(MPI_Op op);

/* data.c */
int zm_data_load(void *to, const struct zm_data *from, size_t bytes);
int zm_data_store(const struct zm_data *to, const void *from, size_t bytes);

/* comm.c */
struct zm_comm *zm_comm_of(MPI_Comm comm, bool may_make);
struct zm_comm *zm_comm_make(MPI_Comm comm);
void zm_comm_get(struct zm_comm *c);
void zm_comm_put(struct zm_comm *c);
bool zm_comm_any(bool (*is)(struct zm_comm *c));
int zm_comm_deleted(MPI_Comm comm, int keyval, void *value, void *extra);
int zm_comm_gone(MPI_Comm comm, int keyval, void *value, void *extra);

/* absent.c */
bool zm_absent_await(MPI_Comm comm, MPI_Request *request);

/* limits.c */
uint64_t zm_limit_pinned(void);
int zm_limit_device(struct zcoll_info *info, char *text, size_t len);

/* take.c */
enum zm_form { ZM_BLOCKING, ZM_NONBLOCKING, ZM_PERSISTENT };
enum zm_reason zm_take(struct zm_op *op, const struct zm_args *a, enum zm_form form);

/* memory.c */
int zm_memory_set(struct zm_op *op, const struct zm_args *a);
int zm_memory_bounce(struct zm_op *op);
int zm_memory_load(struct zm_op *op);
int zm_memory_store(struct zm_op *op);
void zm_memory_free(struct zm_op *op);
void zm_memory_hold(struct zm_op *op);
void zm_memory_release(struct zm_op *op);

/* operation.c */
void zm_op_do(struct zm_op *op);
void zm_op_start(struct zm_op *op);
bool zm_op_try(struct zm_op *op, uint64_t ns);
void zm_op_wait(struct zm_op *op);
void zm_op_end(struct zm_op *op);
void zm_op_fail(struct zm_op *op, int err, const char *why);
void zm_progress(void);
void zm_idle(void *arg);
void zm_nap(uint64_t ns);

/* queue.c */
bool zm_is_feeder(void);
void zm_submit(struct zm_op *op);
int zm_call(struct zm_op *op);

/* line.c */
void zm_line_join(struct zm_op *op);
void zm_line_leave(struct zm_op *op);
bool zm_line_is_turn(const struct zm_op *op);
bool zm_line_needs_little(const struct zm_op *op);

/* errors.c */
int zm_error_code(const struct zm_op *op);
int zm_raise(const struct zm_comm *c, int code);

/* requests.c */
extern _Atomic int zm_nr_requests;
int zm_request_new(struct zm_request *r, MPI_Request *handle, bool persistent);
struct zm_request *zm_request_find(MPI_Request handle);
void zm_request_put(struct zm_request *r);
void zm_request_show(struct zm_request *r);
void zm_request_remove(struct zm_request *r);

/* forms.c */
bool zm_blocking(const struct zm_args *a, int *ret);
bool zm_nonblocking(const struct zm_args *a, MPI_Request *request, int *ret);
bool zm_persistent(const struct zm_args *a, MPI_Request *request, int *ret);

/* stats.c */
void zm_count(unsigned int collective, enum zm_reason reason);
void zm_count_mail(struct zm_comm *c);
void zm_why_no_comm(const char *text);

#endif /* LIBZCOLL_MPI_INTERNAL_H */
