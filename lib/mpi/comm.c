// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Communicators: to each MPI communicator belongs a zcoll communicator of the same ranks,
 * kept by an attribute.
 *
 * It is made at the first call that is to be taken and may wait for the other ranks, which
 * all are in the same call then. All of them get one, or none does and calls are passed on
 * for good: the ranks agree by an all-reduce on what they can do, rank 0 draws a key and
 * broadcasts it, and zcoll_comm_create() exchanges the rest by all-gathers, and fails on
 * all ranks if it does on one. A duplicate of a communicator gets its own.
 *
 * A communicator that MPI frees is left when its last operation is over. The communicators
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

void zm_comm_get(struct zm_comm *c)
{
	atomic_fetch_add(&c->users, 1);
}

void zm_comm_put(struct zm_comm *c)
{
	if (atomic_fetch_sub(&c->users, 1) != 1)
		return;
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

/* The least that all ranks can do */
static bool agree(MPI_Comm comm, struct ability *least)
{
	struct ability mine = *least;

	return PMPI_Allreduce(&mine.types, &least->types, 2, MPI_UINT64_T, MPI_BAND, comm) ==
	       MPI_SUCCESS &&
	       PMPI_Allreduce(&mine.ready, &least->ready, 2, MPI_INT64_T, MPI_MIN, comm) ==
	       MPI_SUCCESS && least->ready;
}

static bool draw_key(struct zcoll_attr *attr, MPI_Comm comm)
{
	if (!attr->rank && getrandom(attr->key, sizeof(attr->key), 0) != sizeof(attr->key))
		zcoll_key_from_string(attr->key, "");	/* never: the pool is that small */
	return PMPI_Bcast(attr->key, sizeof(attr->key), MPI_BYTE, 0, comm) == MPI_SUCCESS;
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

	ret = zm_limit_device(&info, text, sizeof(text));
	least = (struct ability){
		.types = info.types, .ops = info.ops, .ready = !ret, .most = zm_limit_pinned(),
	};
	if (!agree(comm, &least)) {
		zm_why_no_comm(ret ? text : "another rank has no device, or no io_uring");
		return ZM_NO_COMM;
	}
	c->types = least.types;
	c->ops = least.ops;
	c->most = least.most;
	c->window = info.window;
	return join(c, comm) ? ZM_TAKEN : ZM_NO_COMM;
}

/**
 * zm_comm_make - make a communicator; collective
 * @comm: the MPI communicator
 *
 * Return: the communicator, which may be one that passes all calls on; or NULL, where
 * memory was lacking for even that.
 */
struct zm_comm *zm_comm_make(MPI_Comm comm)
{
	struct zm_comm *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	c->users = 1;
	c->handle = comm;
	c->pass = make(c, comm);
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
	c = may_make ? zm_comm_make(comm) : NULL;
	if (c)
		PMPI_Comm_set_attr(comm, zm_keyval(), c);
	return c;
}

/* MPI deletes the attribute: the communicator is being freed */
int zm_comm_deleted(MPI_Comm comm, int keyval, void *value, void *extra)
{
	struct zm_comm *c = value;

	(void)comm;
	(void)keyval;
	(void)extra;
	c->handle = MPI_COMM_NULL;
	zm_comm_put(c);
	return MPI_SUCCESS;
}
