// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * In the place of pmix.c in a library that is built without PMIx.
 */
#include <errno.h>

#include "../bootstrap.h"
#include "exchange.h"

int zc_pmix_size(struct zcoll_attr *attr, unsigned int *local)
{
	(void)local;
	return zc_text(attr->error, attr->error_len, -EOPNOTSUPP,
		       "PMIX_RANK is set, but this libzcoll is built without PMIx: set ZCOLL_RANK, ZCOLL_SIZE and ZCOLL_KEY");
}

int zc_pmix_open(struct zc_exchange **x, const struct zcoll_attr *attr, unsigned int me)
{
	(void)x;
	(void)me;
	return zc_text(attr->error, attr->error_len, -EOPNOTSUPP,
		       "the ranks are on several nodes, but this libzcoll is built without PMIx: set ZCOLL_STORE=HOST:PORT");
}
