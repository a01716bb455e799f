// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The size of the job, from a PMIx server; rank and name of the job are in the
 * environment.
 *
 * libpmix is loaded only when there is a server to ask: it brings an event loop
 * and a dozen libraries, which most programs do not need.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <stdlib.h>

#include "bootstrap.h"

struct pmix {
	void *lib;
	__typeof__(&PMIx_Init) init;
	__typeof__(&PMIx_Finalize) finalize;
	__typeof__(&PMIx_Get) get;
	__typeof__(&PMIx_Error_string) error_string;
};

static int load(struct pmix *pmix)
{
	pmix->lib = dlopen(ZC_PMIX_LIB, RTLD_NOW | RTLD_LOCAL);
	if (!pmix->lib)
		return -ENOENT;
	pmix->init = dlsym(pmix->lib, "PMIx_Init");
	pmix->finalize = dlsym(pmix->lib, "PMIx_Finalize");
	pmix->get = dlsym(pmix->lib, "PMIx_Get");
	pmix->error_string = dlsym(pmix->lib, "PMIx_Error_string");
	if (pmix->init && pmix->finalize && pmix->get && pmix->error_string)
		return 0;
	dlclose(pmix->lib);
	return -ENOENT;
}

static int fail(struct zcoll_attr *attr, const struct pmix *pmix, const char *what,
		pmix_status_t rc)
{
	return zc_text(attr->error, attr->error_len, -EPROTO, "PMIx server: %s: %s", what,
		       pmix->error_string(rc));
}

/* Ask for the number of processes of the job; connected */
static int get_size(struct zcoll_attr *attr, const struct pmix *pmix, const pmix_proc_t *me)
{
	pmix_value_t *value = NULL;
	pmix_proc_t all = *me;
	pmix_status_t rc;
	int ret = 0;

	all.rank = PMIX_RANK_WILDCARD;
	rc = pmix->get(&all, PMIX_JOB_SIZE, NULL, 0, &value);
	if (rc != PMIX_SUCCESS)
		return fail(attr, pmix, "size of the job", rc);
	if (value->type == PMIX_UINT32)
		attr->nranks = value->data.uint32;
	else
		ret = fail(attr, pmix, "size of the job", PMIX_ERR_TYPE_MISMATCH);
	free(value);	/* a number owns nothing more */
	return ret;
}

/**
 * zc_pmix_size - the size of this process' PMIx job
 * @attr: @attr->nranks is written
 *
 * The library is left loaded: its threads and hooks are not made to be unloaded.
 */
int zc_pmix_size(struct zcoll_attr *attr)
{
	struct pmix pmix;
	pmix_proc_t me;
	pmix_status_t rc;
	int ret;

	if (load(&pmix))
		return zc_text(attr->error, attr->error_len, -ENOENT,
			       "PMIX_RANK is set, but " ZC_PMIX_LIB " cannot be loaded: %s",
			       dlerror());
	rc = pmix.init(&me, NULL, 0);
	if (rc != PMIX_SUCCESS)
		return fail(attr, &pmix, "cannot connect", rc);
	ret = get_size(attr, &pmix, &me);
	pmix.finalize(NULL, 0);
	return ret;
}
