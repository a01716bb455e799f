// SPDX-License-Identifier: GPL-2.0-only
/* Rings that go away are reported (6.7) */
#include <linux/module.h>
#include <linux/fs.h>
#include "uring.h"

int probe(struct io_uring_cmd *ucmd, unsigned int issue_flags);
int probe(struct io_uring_cmd *ucmd, unsigned int issue_flags)
{
	io_uring_cmd_mark_cancelable(ucmd, issue_flags);
	return issue_flags & IO_URING_F_CANCEL;
}
