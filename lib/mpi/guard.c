// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Guard: a program of the other MPI must not get this library, whose handles and constants
 * have other values: it would crash in its first call, and nobody could tell why.
 *
 * A program may load its MPI later, as the modules of an interpreter do, so MPI_Init() looks
 * again. Programs that use no MPI, as the shells and launchers that inherit LD_PRELOAD, are
 * none of our business.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "compat.h"

#define STATUS	127	/* as when a program cannot be loaded */

static bool is_loaded(const char *name)
{
	void *lib = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);

	if (lib)
		dlclose(lib);
	return lib;
}

static bool other_is_loaded(void)
{
	static const char *const others[] = { ZM_OTHER_LIBS };

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (is_loaded(others[i]))
			return true;
	return false;
}

__attribute__((constructor)) static void guard(void)
{
	if (!other_is_loaded())
		return;
	fprintf(stderr,
		"libzcoll-mpi: for %s, but the program uses %s: preload %s/libzcoll-mpi.so\n",
		ZM_MPI_NAME, ZM_OTHER_NAME, ZM_OTHER_FOLDER);
	_exit(STATUS);
}

int MPI_Init(int *argc, char ***argv)
{
	guard();
	return PMPI_Init(argc, argv);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	guard();
	return PMPI_Init_thread(argc, argv, required, provided);
}
