// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Requests: operations that the program has an MPI_Request for.
 *
 * The handle is a real one, so that it may be in one array with others and given to
 * functions that know nothing of zcoll. For a non-blocking operation it is a generalized
 * request, completed when MPI is *shown* that the operation is over. A persistent request
 * lasts, which generalized ones do not: its handle is that of a persistent receive of nothing
 * from the process itself, inactive until the operation is over, then started and sent to.
 * (A send to MPI_PROC_NULL would do, but persistent collectives of MPICH 4.0 hang after one.)
 *
 * MPI does not call us while it waits, so wait.c waits for our requests before it lets
 * MPI see them. A table finds a request by its handle.
 */
#include <stdlib.h>

#include "internal.h"

#define BUCKETS	256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct zm_request *table[BUCKETS];

_Atomic int zm_nr_requests;	/* in the table; most programs have none */

static struct zm_request **bucket_of(MPI_Request handle)
{
	uint64_t bits = (uintptr_t)handle;

	return &table[(bits * 0x9e3779b97f4a7c15ULL) >> 56];
}

/**
 * zm_request_find - our request of a handle
 * @handle: handle
 *
 * Return: it, to be put; NULL: it is another's.
 */
struct zm_request *zm_request_find(MPI_Request handle)
{
	struct zm_request *r;

	pthread_mutex_lock(&lock);
	for (r = *bucket_of(handle); r && r->handle != handle; r = r->next)
		;
	if (r)
		r->users++;
	pthread_mutex_unlock(&lock);
	return r;
}

void zm_request_put(struct zm_request *r)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = !--r->users;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	zm_memory_release(&r->op);
	zm_op_end(&r->op);
	free(r);
}

static void add(struct zm_request *r)
{
	struct zm_request **bucket = bucket_of(r->handle);

	r->users = 1;
	pthread_mutex_lock(&lock);
	r->next = *bucket;
	*bucket = r;
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&zm_nr_requests, 1);
}

/**
 * zm_request_remove - MPI is about to free the handle, or has done so
 * @r: request; put
 */
void zm_request_remove(struct zm_request *r)
{
	struct zm_request **at;

	pthread_mutex_lock(&lock);
	for (at = bucket_of(r->handle); *at != r; at = &(*at)->next)
		;
	*at = r->next;
	pthread_mutex_unlock(&lock);
	atomic_fetch_sub(&zm_nr_requests, 1);
	zm_request_put(r);
}

/* ------------------------------------------------ what MPI asks about a handle */

static int query(void *arg, MPI_Status *status)
{
	(void)arg;
	PMPI_Status_set_elements(status, MPI_BYTE, 0);
	PMPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = MPI_UNDEFINED;
	status->MPI_TAG = MPI_UNDEFINED;
	return MPI_SUCCESS;	/* errors are told by wait.c, to the right communicator */
}

static int freed(void *arg)
{
	zm_request_remove(arg);
	return MPI_SUCCESS;
}

static int cancel(void *arg, int complete)
{
	(void)arg;
	return complete ? MPI_SUCCESS : MPI_ERR_REQUEST;	/* collectives cannot be */
}

/**
 * zm_request_new - give a request its handle
 * @r: request
 * @handle: output
 * @persistent: persistent
 *
 * Return: MPI_SUCCESS or a code, and there is no handle.
 */
int zm_request_new(struct zm_request *r, MPI_Request *handle, bool persistent)
{
	int ret;

	r->persistent = persistent;
	if (persistent)
		ret = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, 0, zm_self(), handle);
	else
		ret = PMPI_Grequest_start(query, freed, cancel, r, handle);
	if (ret != MPI_SUCCESS)
		return ret;
	r->handle = *handle;
	add(r);
	return MPI_SUCCESS;
}

/**
 * zm_request_show - let MPI see that the operation is over
 * @r: request
 */
void zm_request_show(struct zm_request *r)
{
	MPI_Request handle = r->handle;

	if (r->shown)
		return;
	r->shown = true;
	if (r->persistent) {
		PMPI_Start(&handle);
		PMPI_Send(NULL, 0, MPI_BYTE, 0, 0, zm_self());
	} else {
		PMPI_Grequest_complete(handle);
	}
}
