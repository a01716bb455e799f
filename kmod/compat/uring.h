/* SPDX-License-Identifier: GPL-2.0-only */
/* The header of io_uring commands; for compat.h and for the probes */
#ifdef ZC_HAVE_CMD_H
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#include <linux/io_uring_types.h>
#endif
