// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What this process and its node can do; comm.c has all ranks agree on the least of it.
 */
#include <errno.h>
#include <linux/capability.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../internal.h"
#include "internal.h"

#define SHARE	2	/* of the limit of locked memory one operation may take */

static bool may_lock_all(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !syscall(SYS_capget, &head, data) && data[0].effective & 1U << CAP_IPC_LOCK;
}

/**
 * zm_limit_pinned - bytes that one operation of this process should pin at most
 *
 * A rank that hits RLIMIT_MEMLOCK in the middle of a collective call could not pass it on:
 * the others have begun. So calls that may do so are passed on by all.
 */
uint64_t zm_limit_pinned(void)
{
	struct rlimit limit;

	if (may_lock_all() || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return INT64_MAX;
	return limit.rlim_cur / SHARE;
}

/**
 * zm_limit_device - is there all that operations need?
 * @info: output, of the module
 * @text: output: what is missing
 * @len: its size in bytes
 *
 * Return: 0 or a negative errno.
 */
int zm_limit_device(struct zcoll_info *info, char *text, size_t len)
{
	struct io_uring ring;
	int ret = zc_device_open(NULL, info, text, len);

	if (ret < 0)
		return ret;
	close(ret);
	ret = io_uring_queue_init(1, &ring, 0);
	if (ret) {
		snprintf(text, len, "no io_uring: %s", strerror(-ret));
		return ret;
	}
	io_uring_queue_exit(&ring);
	return 0;
}
