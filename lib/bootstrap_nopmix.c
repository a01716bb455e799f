// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * In the place of bootstrap_pmix.c in a library that is built without PMIx.
 */
#include <errno.h>

#include "bootstrap.h"

int zc_pmix_size(struct zcoll_attr *attr)
{
	return zc_text(attr->error, attr->error_len, -EOPNOTSUPP,
		       "PMIX_RANK is set, but this libzcoll is built without PMIx: set ZCOLL_RANK, ZCOLL_SIZE and ZCOLL_KEY");
}
