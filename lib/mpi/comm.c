// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Communicators: to each MPI communicator belongs a zcoll communicator of the same ranks,
 * kept by an attribute.
 *
 * It is made at the first call that is to be taken and may wait for the other ranks, which
 * all are in the same call then. All of them get one, or none does and calls are passed on
 * for good: the ranks agree by an all-reduce on what they can do and want (ZCOLL_MPI), rank
 * 0 draws a key and broadcasts it, and zcoll_comm_create() exchanges the rest by all-gathers,
 * and fails on all ranks if it does on one. A rank that is turned off or lacks something
 * takes part in the first step, or the others would meet its next call there; one that has not
 * preloaded the library does not, see absent.c. A duplicate of a communicator gets its own.
 *
 * A communicator that MPI frees is left when its last operation is over, and persistent requests
 * keep theirs; a second attribute tells when the MPI communicator has gone. The communicators
 * that are there at MPI_Finalize() are left by the end of the process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "internal.h"

/* What each rank can do; of a bit the least is "and", of a number the minimum */
struct ability {
	uint64_t types, ops;
	int64_t ready;
	int64_t most;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct zm_comm *all;	/* that have a zcoll communicator */

static void enlist(struct zm_comm *c)
{
	pthread_mutex_lock(&lock);
	c->next = all;
	all = c;
	pthread_mutex_unlock(&lock);
}

static void delist(struct zm_comm *c)
{
	struct zm_comm **at;

	pthread_mutex_lock(&lock);
	for (at = &all; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	pthread_mutex_unlock(&lock);
}

/**
 * zm_comm_any - is it true of any communicator?
 * @is: of this one? It may take the communicator's lock
 */
bool zm_comm_any(bool (*is)(struct zm_comm *c))
{
	struct zm_comm *c;

	pthread_mutex_lock(&lock);
	for (c = all; c && !is(c); c = c->next)
		;
	pthread_mutex_unlock(&lock);
	return c;
}

void zm_comm_get(struct zm_comm *c)
{
	atomic_fetch_add(&c->users, 1);
}

void zm_comm_put(struct zm_comm *c)
{
	if (atomic_fetch_sub(&c->users, 1) != 1)
		return;
	if (c->pass == ZM_TAKEN)
		delist(c);
	if (c->zcoll)
		zm_count_mail(c);
	if (c->zcoll && zcoll_comm_free(c->zcoll)) {
		zcoll_comm_abort(c->zcoll);	/* requests that the program never waited for */
		zcoll_comm_free(c->zcoll);
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ------------------------------------------------------------------ making */

static int gather(void *arg, const void *mine, void *all, size_t bytes)
{
	MPI_Comm *comm = arg;

	return PMPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, *comm) == MPI_SUCCESS ?
	       0 : -EIO;
}

static bool agree_on(const void *mine, void *all, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	MPI_Request request;

	return PMPI_Iallreduce(mine, all, 2, type, op, comm, &request) == MPI_SUCCESS &&
	       zm_absent_await(comm, &request);
}

/* The least that all ranks can do */
static bool agree(MPI_Comm comm, struct ability *least)
{
	struct ability mine = *least;

	return agree_on(&mine.types, &least->types, MPI_UINT64_T, MPI_BAND, comm) &&
	       agree_on(&mine.ready, &least->ready, MPI_INT64_T, MPI_MIN, comm) && least->ready;
}

static bool draw_key(struct zcoll_attr *attr, MPI_Comm comm)
{
	if (!attr->rank && getrandom(attr->key, sizeof(attr->key), 0) != sizeof(attr->key))
		zcoll_key_from_string(attr->key, "");	/* never: the pool is that small */
	return PMPI_Bcast(attr->key, sizeof(attr->key), MPI_BYTE, 0, comm) == MPI_SUCCESS;
}

/*
 * The first operation makes what later ones need, an io_uring for one, which this rank may
 * be refused. Then it ends for all.
 */
static bool first_barrier(struct zm_comm *c)
{
	struct zm_op op = {
		.comm = c, .call = { .size = sizeof(op.call), .collective = ZCOLL_BARRIER },
	};

	int ret = zcoll_comm_set_idle(c->zcoll, zm_idle, NULL);

	if (ret) {
		zm_op_fail(&op, ret, NULL);
	} else {
		zm_op_start(&op);
		zm_op_wait(&op);
	}
	if (op.error)
		zm_why_no_comm(op.text);
	return !op.error;
}

static bool join(struct zm_comm *c, MPI_Comm comm)
{
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_attr attr;

	zcoll_attr_init(&attr);
	attr.rank = c->rank;
	attr.nranks = c->size;
	attr.error = text;
	attr.error_len = sizeof(text);
	attr.exchange = ZCOLL_EXCHANGE_GATHER;
	attr.gather = gather;
	attr.gather_arg = &comm;
	if (!draw_key(&attr, comm))
		return false;
	if (!zcoll_comm_create(&c->zcoll, &attr))
		return true;
	zm_why_no_comm(text);
	return false;
}

/* Have zm_comm_gone() called: without it, an error might be raised on a handle that is gone */
static bool watch(MPI_Comm comm)
{
	void *value;
	int found;

	if (PMPI_Comm_get_attr(comm, zm_watch_keyval(), &value, &found) == MPI_SUCCESS &&
	    (found || PMPI_Comm_set_attr(comm, zm_watch_keyval(), NULL) == MPI_SUCCESS))
		return true;
	zm_why_no_comm("the MPI refuses to keep an attribute");
	return false;
}

/* Is there all that this rank needs, and may it be used? Return: 0, or @text says why not */
static int ready(struct zcoll_info *info, char *text, size_t len)
{
	if (!zm_wanted())
		snprintf(text, len, "ZCOLL_MPI=0");
	else if (zm_wrong_setting())
		snprintf(text, len, "%s", zm_wrong_setting());
	else if (!zm_able())
		snprintf(text, len, "the MPI refuses a request or a communicator");
	else
		return zm_limit_device(info, text, len);
	return -ECANCELED;
}

static enum zm_reason make(struct zm_comm *c, MPI_Comm comm)
{
	struct zcoll_info info = { 0 };
	char text[ZCOLL_TEXT_MAX];
	struct ability least;
	int inter, ret;

	PMPI_Comm_test_inter(comm, &inter);
	if (inter)
		return ZM_INTER;
	PMPI_Comm_rank(comm, &c->rank);
	PMPI_Comm_size(comm, &c->size);
	if (c->size == 1)
		return ZM_ALONE;

	ret = ready(&info, text, sizeof(text));
	least = (struct ability){
		.types = info.types, .ops = info.ops, .ready = !ret, .most = zm_limit_pinned(),
	};
	if (!agree(comm, &least)) {
		zm_why_no_comm(ret ? text :
			       "a rank has no device, no io_uring, a wrong setting or ZCOLL_MPI=0");
		return zm_wanted() ? ZM_NO_COMM : ZM_OFF;
	}
	c->types = least.types;
	c->ops = least.ops;
	c->most = least.most;
	c->window = info.window;
	if (!join(c, comm))
		return ZM_NO_COMM;
	least = (struct ability){ .ready = first_barrier(c) && watch(comm) };
	return agree(comm, &least) ? ZM_TAKEN : ZM_NO_COMM;
}

/* For a rank that lacks the memory for one */
static struct zm_comm none = {
	.pass = ZM_NO_COMM, .users = 1, .lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct zm_comm *make_none(MPI_Comm comm)
{
	struct ability nothing = { 0 };
	int inter;

	PMPI_Comm_test_inter(comm, &inter);
	if (!inter)
		agree(comm, &nothing);
	zm_why_no_comm("no memory");
	zm_comm_get(&none);
	return &none;
}

/**
 * zm_comm_make - make a communicator; collective
 * @comm: the MPI communicator
 *
 * Return: the communicator, which may be one that passes all calls on.
 */
struct zm_comm *zm_comm_make(MPI_Comm comm)
{
	struct zm_comm *c = calloc(1, sizeof(*c));

	if (!c)
		return make_none(comm);
	pthread_mutex_init(&c->lock, NULL);
	c->users = 1;
	c->handle = comm;
	c->pass = make(c, comm);
	if (c->pass == ZM_TAKEN)
		enlist(c);
	return c;
}

/* ------------------------------------------------------------------ keeping */

/**
 * zm_comm_of - what is kept for an MPI communicator
 * @comm: the MPI communicator
 * @may_make: may it be made here? All ranks must be in this call then, and say the same
 *
 * Return: it, or NULL: it was not made.
 */
struct zm_comm *zm_comm_of(MPI_Comm comm, bool may_make)
{
	struct zm_comm *c;
	int found;

	if (PMPI_Comm_get_attr(comm, zm_keyval(), &c, &found) != MPI_SUCCESS)
		return NULL;
	if (found)
		return c;
	if (!may_make)
		return NULL;
	c = zm_comm_make(comm);
	if (PMPI_Comm_set_attr(comm, zm_keyval(), c) != MPI_SUCCESS)
		zm_die("to keep an attribute");
	return c;
}

/* MPI deletes the attribute: the communicator is being freed */
int zm_comm_deleted(MPI_Comm comm, int keyval, void *value, void *extra)
{
	struct zm_comm *c = value;

	(void)comm;
	(void)keyval;
	(void)extra;
	zm_comm_put(c);
	return MPI_SUCCESS;
}

/* MPI frees the communicator: its handle must not be used for errors any more */
int zm_comm_gone(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)keyval;
	(void)value;
	(void)extra;
	pthread_mutex_lock(&lock);
	for (struct zm_comm *c = all; c; c = c->next)
		if (c->handle == comm)
			c->handle = MPI_COMM_NULL;
	pthread_mutex_unlock(&lock);
	return MPI_SUCCESS;
}
