// SPDX-License-Identifier: GPL-2.0-only
/* io_uring_cmd_done() takes a second result (until 6.18) */
#include <linux/module.h>
#include <linux/fs.h>
#include "uring.h"

void probe(struct io_uring_cmd *ucmd);
void probe(struct io_uring_cmd *ucmd)
{
	io_uring_cmd_done(ucmd, 0, 0, 0);
}
