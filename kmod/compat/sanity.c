// SPDX-License-Identifier: GPL-2.0-only
/* Must compile: else all other probes fail for the wrong reason */
#include <linux/module.h>
#include <linux/fs.h>
#include "uring.h"

int probe(struct io_uring_cmd *ucmd);
int probe(struct io_uring_cmd *ucmd)
{
	return ucmd->cmd_op;
}
