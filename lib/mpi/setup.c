// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What the environment says, the attribute that communicators are kept by, a request that is
 * never complete, see zm_progress(), and a communicator of this process alone, for requests.c.
 * All are made at the first call that could be taken, for MPI must have begun, and last as
 * long as MPI does.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool on;
static int keyval;
static MPI_Request never;
static MPI_Comm self;

static bool is_no(const char *text)
{
	return !strcmp(text, "0") || !strcmp(text, "off") || !strcmp(text, "no");
}

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

static void setup(void)
{
	const char *env = getenv("ZCOLL_MPI");

	on = (!env || !is_no(env)) &&
	     PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, zm_comm_deleted, &keyval, NULL) ==
	     MPI_SUCCESS &&
	     PMPI_Grequest_start(query, freed, cancel, NULL, &never) == MPI_SUCCESS &&
	     PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &self) == MPI_SUCCESS;
}

/**
 * zm_on - are calls to be taken?
 */
bool zm_on(void)
{
	pthread_once(&once, setup);
	return on;
}

int zm_keyval(void)
{
	return keyval;
}

MPI_Request zm_never(void)
{
	return never;
}

MPI_Comm zm_self(void)
{
	return self;
}

/**
 * zm_wants_stats - is the line of statistics to be printed by this process?
 * @rank: its rank in the world
 */
bool zm_wants_stats(int rank)
{
	const char *env = getenv("ZCOLL_MPI_STATS");

	return env && *env && !is_no(env) && (!rank || !strcmp(env, "all"));
}
