// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Guard: a program of the other MPI must not get this library, whose handles and constants
 * have other values: it would crash in its first call, and nobody could tell why.
 *
 * Programs that use no MPI, as the shells and launchers that inherit LD_PRELOAD, are none
 * of our business.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "compat.h"

#define STATUS	127	/* as when a program cannot be loaded */

__attribute__((constructor)) static void guard(void)
{
	void *other = dlopen(ZM_OTHER_LIB, RTLD_LAZY | RTLD_NOLOAD);

	if (!other)
		return;
	fprintf(stderr, "libzcoll-mpi: this one is for %s, and the program uses %s: preload %s/libzcoll-mpi.so\n",
		ZM_MPI_NAME, ZM_OTHER_NAME, ZM_OTHER_FOLDER);
	_exit(STATUS);
}
