// SPDX-License-Identifier: GPL-2.0-only
/* The command leads to its SQE (6.6) */
#include <linux/module.h>
#include <linux/fs.h>
#include "uring.h"

const void *probe(struct io_uring_cmd *ucmd);
const void *probe(struct io_uring_cmd *ucmd)
{
	return ucmd->sqe->cmd;
}
