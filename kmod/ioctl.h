/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ioctls as a table: each row names the struct, its smallest size (the end of the
 * last field of its first version), and whether only the address space that joined
 * may call it. A row whose function makes something has another that undoes it, for
 * when the caller cannot be told its name.
 */
#ifndef ZCOLL_IOCTL_H
#define ZCOLL_IOCTL_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <asm/ioctl.h>

#define ZC_OWNER	BIT(0)	/* only for the address space that joined */

/* Room for the largest struct */
#define ZC_IOCTL_MAX	256

struct zc_ioctl {
	unsigned int cmd;
	u32 size;
	u32 min_size;
	u32 flags;
	int (*fn)(void *priv, void *arg);
	void (*undo)(void *priv, void *arg);
};

#define ZC_IOCTL(_cmd, _fn, _struct, _last, _flags)				\
	ZC_IOCTL_UNDO(_cmd, _fn, NULL, _struct, _last, _flags)

#define ZC_IOCTL_UNDO(_cmd, _fn, _undo, _struct, _last, _flags) {		\
	.cmd = (_cmd),								\
	.undo = (_undo),							\
	.fn = (_fn),								\
	.size = sizeof(struct _struct) +					\
		BUILD_BUG_ON_ZERO(sizeof(struct _struct) > ZC_IOCTL_MAX) +	\
		BUILD_BUG_ON_ZERO(offsetof(struct _struct, size)),		\
	.min_size = offsetofend(struct _struct, _last),				\
	.flags = (_flags),							\
}

long zc_ioctl_dispatch(const struct zc_ioctl *table, u32 n, unsigned int cmd,
		       void __user *arg, void *priv, bool owner);

#endif /* ZCOLL_IOCTL_H */
