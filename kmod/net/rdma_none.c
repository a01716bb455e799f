// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fabric "rdma" on a kernel without what it needs: it cannot be opened.
 */
#include "net.h"

static int zc_none_open(struct zc_net *net, const char *rails, struct zc_text *why)
{
	zc_text_add(why, "this kernel has no RDMA stack (CONFIG_INFINIBAND_ADDR_TRANS) ");
	zc_text_add(why, "or no SHA-256 (CONFIG_CRYPTO_LIB_SHA256)");
	return -ENODEV;
}

const struct zc_fabric zc_fabric_rdma = {
	.name = "rdma",
	.open = zc_none_open,
};

int zc_rdma_init(void)
{
	return 0;
}

void zc_rdma_uninit(void)
{
}
