// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Absent ranks: those that have not preloaded the library, for which the others would wait for
 * ever when they agree, see comm.c.
 *
 * Nobody can be asked: such a rank is in a call of the MPI's own, and any call to the MPI that
 * it takes part in might be taken for that one. So the ranks agree by a non-blocking call, which
 * no blocking call can be taken for, and a process that has waited for some time looks at the
 * others of its node in /proc. A process is a *neighbour* if its launcher gave it a rank of this
 * job; it is absent if it uses the MPI, and not this library. That is certain, whenever it is
 * seen, and the job is ended. Of ranks on other nodes nothing is known, so that is all that is
 * said.
 */
#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../internal.h"
#include "internal.h"

#define LOOK_NS		1000000000ULL	/* wait so long before looking */
#define TELL_NS		10000000000ULL	/* and before saying that there may be absent ranks */
#define NAP_NS		200000ULL
#define YIELDS		1000		/* before the first nap */

enum { UNSEEN, PRESENT, ABSENT };

/* What a launcher says to a process */
struct place {
	int rank;		/* -1: none */
	char job[256];
};

/* The ranks of the world, as far as they are neighbours */
struct view {
	int n;
	struct neighbour {
		int state;
		int pid;
	} *of;
};

/* ------------------------------------------------------------- one process */

static FILE *open_proc(const char *process, const char *name)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/%.20s/%s", process, name);
	return fopen(path, "re");
}

/* The parent, for launchers that give the job no name: they have one for each job and node */
static void read_parent(const char *process, struct place *place)
{
	FILE *file = open_proc(process, "status");
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "PPid:", 5))
			snprintf(place->job, sizeof(place->job), "%s", line);
	if (file)
		fclose(file);
}

static const char *value_of(const char *line, const char *name)
{
	size_t len = strlen(name);

	return strncmp(line, name, len) || line[len] != '=' ? NULL : line + len + 1;
}

static void read_variable(const char *line, struct place *place)
{
	const char *rank = value_of(line, "PMIX_RANK"), *job = value_of(line, "PMIX_NAMESPACE");

	rank = rank ? rank : value_of(line, "PMI_RANK");
	job = job ? job : value_of(line, "PMI_JOBID");
	if (rank)
		place->rank = atoi(rank);
	if (job)
		snprintf(place->job, sizeof(place->job), "%s", job);
}

static void read_place(const char *process, struct place *place)
{
	FILE *file = open_proc(process, "environ");
	char *line = NULL;
	size_t size = 0;

	*place = (struct place){ .rank = -1 };
	while (file && getdelim(&line, &size, '\0', file) > 0)
		read_variable(line, place);
	free(line);
	if (file)
		fclose(file);
	if (place->rank >= 0 && !place->job[0])
		read_parent(process, place);
}

/* Shells between the launcher and the program use no MPI, and are nobody */
static int state_of(const char *process)
{
	FILE *file = open_proc(process, "maps");
	bool mpi = false, library = false;
	char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		mpi = mpi || strstr(line, "/libmpi");
		library = library || strstr(line, "/libzcoll-mpi.so");
	}
	free(line);
	if (file)
		fclose(file);
	if (library)
		return PRESENT;
	return mpi ? ABSENT : UNSEEN;
}

/* ------------------------------------------------------------ all of a node */

/* A rank is present if one of its processes is */
static void note(struct view *view, const char *process, int rank)
{
	struct neighbour *n = &view->of[rank];
	int state = state_of(process);

	if (state == UNSEEN || n->state == PRESENT)
		return;
	n->state = state;
	n->pid = atoi(process);
}

static void look_around(struct view *view)
{
	struct place own, other;
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	read_place("self", &own);
	while (dir && own.rank >= 0 && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		read_place(entry->d_name, &other);
		if (other.rank >= 0 && other.rank < view->n && !strcmp(other.job, own.job))
			note(view, entry->d_name, other.rank);
	}
	if (dir)
		closedir(dir);
}

static bool view_init(struct view *view)
{
	PMPI_Comm_size(MPI_COMM_WORLD, &view->n);
	view->of = calloc(view->n, sizeof(*view->of));
	return view->of;
}

/* ------------------------------------------------------- of a communicator */

/* The world's rank of each of the communicator's; to be freed */
static int *world_ranks(MPI_Comm comm, int n)
{
	int *own = calloc(2 * n, sizeof(*own)), *theirs = own + n;
	MPI_Group group, world;

	if (!own)
		return NULL;
	for (int i = 0; i < n; i++)
		theirs[i] = i;
	PMPI_Comm_group(comm, &group);
	PMPI_Comm_group(MPI_COMM_WORLD, &world);
	PMPI_Group_translate_ranks(group, n, theirs, world, own);
	PMPI_Group_free(&group);
	PMPI_Group_free(&world);
	return own;
}

static void die(int rank, int pid)
{
	fprintf(stderr,
		"libzcoll-mpi: rank %d (process %d) has not preloaded this library, and others wait for it: preload it in all ranks (mpirun -x LD_PRELOAD, mpiexec -genv LD_PRELOAD) or in none\n",
		rank, pid);
	PMPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

/* One process of each node says it, once */
static void tell(int rank)
{
	static _Atomic bool told;

	if (!atomic_exchange(&told, true))
		fprintf(stderr,
			"libzcoll-mpi: rank %d has waited %llu s for ranks of other nodes to begin with a collective call: those that have not preloaded this library never will (mpirun -x LD_PRELOAD reaches all)\n",
			rank, TELL_NS / 1000000000);
}

/*
 * Look at the ranks of a communicator, and end the job if one is absent. @may_tell: if some are
 * on other nodes, say so, if this rank is the first of its node
 */
static void look(MPI_Comm comm, bool may_tell)
{
	int n, me, first = -1, unseen = 0, *ranks;
	struct view view;

	PMPI_Comm_size(comm, &n);
	PMPI_Comm_rank(MPI_COMM_WORLD, &me);
	ranks = world_ranks(comm, n);
	if (!ranks)
		return;
	if (view_init(&view)) {
		look_around(&view);
		for (int i = 0; i < n; i++) {
			int r = ranks[i] == MPI_UNDEFINED ? -1 : ranks[i];
			int state = r < 0 ? UNSEEN : view.of[r].state;

			if (state == ABSENT)
				die(r, view.of[r].pid);
			if (state == PRESENT && first < 0)
				first = r;
			unseen += state == UNSEEN;
		}
		if (may_tell && unseen && first == me)
			tell(me);
	}
	free(view.of);
	free(ranks);
}

/**
 * zm_absent_await - wait until all ranks of a communicator have come
 * @comm: the communicator
 * @request: a non-blocking call of all of them
 *
 * Return: whether it was done; an absent rank of this node ends the program.
 */
bool zm_absent_await(MPI_Comm comm, MPI_Request *request)
{
	uint64_t when[] = { zc_after(LOOK_NS), zc_after(TELL_NS) };
	unsigned int tries = 0, looks = 0;
	int done = 0;

	while (PMPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
		if (looks < ARRAY_SIZE(when) && !zc_left(when[looks])) {
			look(comm, looks > 0);
			looks++;
		}
		if (tries++ < YIELDS)
			sched_yield();
		else
			zc_sleep(NAP_NS);
	}
	return done;
}
