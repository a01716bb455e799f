/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * PMIx: the launcher's server.
 *
 * libpmix is loaded only when there is a server to ask: it brings an event loop and a
 * dozen libraries, which most programs do not need. It is left loaded: its threads and
 * hooks are not made to be unloaded.
 *
 * A process can connect to its server, leave it, and connect again, but Open MPI 4 cannot
 * if it was left before. So a program that uses MPI too must call MPI_Init() first, and
 * then all connections are one.
 */
#ifndef LIBZCOLL_BOOT_PMIX_H
#define LIBZCOLL_BOOT_PMIX_H

#include <pmix.h>

#include "../internal.h"

struct pmix {
	void *lib;
	__typeof__(&PMIx_Init) init;
	__typeof__(&PMIx_Finalize) finalize;
	__typeof__(&PMIx_Get) get;
	__typeof__(&PMIx_Get_nb) get_nb;
	__typeof__(&PMIx_Put) put;
	__typeof__(&PMIx_Commit) commit;
	__typeof__(&PMIx_Fence_nb) fence_nb;
	__typeof__(&PMIx_Error_string) error_string;
	pmix_proc_t me;
};

/* pmix.c */
int zc_pmix_begin(struct pmix *pmix, const struct zcoll_attr *attr);
int zc_pmix_fail(const struct zcoll_attr *attr, const struct pmix *pmix, const char *what,
		 pmix_status_t rc);

/* pmix_connect.c */
int zc_pmix_connect(struct pmix *pmix, const struct zcoll_attr *attr);

/* Calls in flight, shared with their callbacks; the last of both sides frees it */
struct calls {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int users;
	unsigned int left;	/* that have not come back */
	pmix_status_t rc;	/* of the last */
	bool there[];		/* by rank: it has answered */
};

/* pmix_calls.c */
struct calls *zc_calls_new(unsigned int n, unsigned int ranks);
void zc_calls_drop(struct calls *calls);
void zc_calls_back(struct calls *calls, pmix_status_t rc);
bool zc_calls_wait(struct calls *calls, uint64_t end);

#endif /* LIBZCOLL_BOOT_PMIX_H */
