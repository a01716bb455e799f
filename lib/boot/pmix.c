// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * PMIx: loading its library, and the size of the job; see pmix.h.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "../bootstrap.h"
#include "pmix.h"

static int load(struct pmix *pmix)
{
	pmix->lib = dlopen(ZC_PMIX_LIB, RTLD_NOW | RTLD_LOCAL);
	if (!pmix->lib)
		return -ENOENT;
	pmix->init = dlsym(pmix->lib, "PMIx_Init");
	pmix->finalize = dlsym(pmix->lib, "PMIx_Finalize");
	pmix->get = dlsym(pmix->lib, "PMIx_Get");
	pmix->get_nb = dlsym(pmix->lib, "PMIx_Get_nb");
	pmix->put = dlsym(pmix->lib, "PMIx_Put");
	pmix->commit = dlsym(pmix->lib, "PMIx_Commit");
	pmix->fence_nb = dlsym(pmix->lib, "PMIx_Fence_nb");
	pmix->error_string = dlsym(pmix->lib, "PMIx_Error_string");
	if (pmix->init && pmix->finalize && pmix->get && pmix->get_nb && pmix->put &&
	    pmix->commit && pmix->fence_nb && pmix->error_string)
		return 0;
	dlclose(pmix->lib);
	return -ENOENT;
}

int zc_pmix_fail(const struct zcoll_attr *attr, const struct pmix *pmix, const char *what,
		 pmix_status_t rc)
{
	return zc_text(attr->error, attr->error_len, -EPROTO, "PMIx server: %s: %s", what,
		       pmix->error_string(rc));
}

int zc_pmix_begin(struct pmix *pmix, const struct zcoll_attr *attr)
{
	if (load(pmix))
		return zc_text(attr->error, attr->error_len, -ENOENT,
			       "PMIX_RANK is set, but " ZC_PMIX_LIB " cannot be loaded: %s",
			       dlerror());
	return zc_pmix_connect(pmix, attr);
}

/* Ask for a number of processes of the job */
static int get_number(unsigned int *number, const struct zcoll_attr *attr,
		      const struct pmix *pmix, const char *key, const char *what)
{
	pmix_value_t *value = NULL;
	pmix_proc_t all = pmix->me;
	pmix_status_t rc;
	int ret = 0;

	all.rank = PMIX_RANK_WILDCARD;
	rc = pmix->get(&all, key, NULL, 0, &value);
	if (rc != PMIX_SUCCESS)
		return zc_pmix_fail(attr, pmix, what, rc);
	if (value->type == PMIX_UINT32)
		*number = value->data.uint32;
	else
		ret = zc_pmix_fail(attr, pmix, what, PMIX_ERR_TYPE_MISMATCH);
	free(value);	/* a number owns nothing more */
	return ret;
}

/**
 * zc_pmix_size - the size of this process' PMIx job
 * @attr: @attr->nranks is written
 * @local: output: ranks of it on this node
 */
int zc_pmix_size(struct zcoll_attr *attr, unsigned int *local)
{
	struct pmix pmix;
	int ret = zc_pmix_begin(&pmix, attr);

	if (ret)
		return ret;
	ret = get_number(&attr->nranks, attr, &pmix, PMIX_JOB_SIZE, "size of the job");
	if (!ret)
		ret = get_number(local, attr, &pmix, PMIX_LOCAL_SIZE, "ranks on this node");
	pmix.finalize(NULL, 0);
	return ret;
}
