// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The attributes that communicators are kept and watched by, a request that is never complete,
 * see zm_progress(), and a communicator of this process alone, for requests.c. All are made at
 * the first call that could be taken, for MPI must have begun, and last as long as MPI does.
 */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool able;
static int keyval, watch_keyval;
static MPI_Request never;
static MPI_Comm self;

static int query(void *arg, MPI_Status *status)
{
	(void)arg;
	(void)status;
	return MPI_SUCCESS;
}

static int freed(void *arg)
{
	(void)arg;
	return MPI_SUCCESS;
}

static int cancel(void *arg, int complete)
{
	(void)arg;
	(void)complete;
	return MPI_SUCCESS;
}

/**
 * zm_die - end the program: this rank cannot do what keeps it in step with the others
 * @what: what the MPI refuses
 */
void zm_die(const char *what)
{
	fprintf(stderr,
		"libzcoll-mpi: MPI refuses %s, ranks would be out of step: drop LD_PRELOAD\n",
		what);
	PMPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

static void setup(void)
{
	if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, zm_comm_deleted, &keyval, NULL) !=
	    MPI_SUCCESS ||
	    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, zm_comm_gone, &watch_keyval, NULL) !=
	    MPI_SUCCESS)
		zm_die("to make an attribute");
	able = PMPI_Grequest_start(query, freed, cancel, NULL, &never) == MPI_SUCCESS &&
	       PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &self) == MPI_SUCCESS;
}

/**
 * zm_able - has this rank what operations need?
 */
bool zm_able(void)
{
	pthread_once(&once, setup);
	return able;
}

/**
 * zm_in_world - has the program called MPI_Init()?
 *
 * What setup() makes lasts as long as MPI does. In a program that has only sessions MPI may
 * end, and begin again.
 */
bool zm_in_world(void)
{
	static _Atomic bool yes;
	int flag;

	if (!atomic_load_explicit(&yes, memory_order_relaxed)) {
		PMPI_Initialized(&flag);
		atomic_store(&yes, flag);
	}
	return yes;
}

int zm_keyval(void)
{
	pthread_once(&once, setup);
	return keyval;
}

int zm_watch_keyval(void)
{
	pthread_once(&once, setup);
	return watch_keyval;
}

MPI_Request zm_never(void)
{
	return never;
}

MPI_Comm zm_self(void)
{
	return self;
}
