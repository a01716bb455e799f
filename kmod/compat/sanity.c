// SPDX-License-Identifier: GPL-2.0-only
/* Must compile: else all other probes fail for the wrong reason */
#include <linux/module.h>
#include <linux/fs.h>
#if __has_include(<linux/io_uring/cmd.h>)
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif

int probe(struct io_uring_cmd *ucmd);
int probe(struct io_uring_cmd *ucmd)
{
	return ucmd->cmd_op;
}
