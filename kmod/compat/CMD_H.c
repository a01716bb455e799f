// SPDX-License-Identifier: GPL-2.0-only
/* io_uring commands have a header of their own (6.8) */
#include <linux/module.h>
#include <linux/io_uring/cmd.h>
