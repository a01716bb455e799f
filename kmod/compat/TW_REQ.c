// SPDX-License-Identifier: GPL-2.0-only
/* Task work is given a struct io_tw_req (6.19) */
#include <linux/module.h>
#include <linux/fs.h>
#include "uring.h"

static void probe_work(struct io_tw_req tw_req, io_tw_token_t tw)
{
}

void probe(struct io_uring_cmd *ucmd);
void probe(struct io_uring_cmd *ucmd)
{
	io_uring_cmd_complete_in_task(ucmd, probe_work);
}
