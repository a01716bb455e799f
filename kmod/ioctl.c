// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ioctl dispatch: find the row, copy the struct in once, call, copy it out.
 */
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/uaccess.h>

#include "ioctl.h"

/* The size in the number is the caller's, which may be older or newer than ours */
#define ZC_CMD_ID(cmd) ((cmd) & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT))

static long zc_ioctl_call(const struct zc_ioctl *row, void __user *uarg, void *priv)
{
	u8 arg[ZC_IOCTL_MAX] __aligned(8) = {};
	u32 size;
	int ret;

	if (get_user(size, (u32 __user *)uarg))
		return -EFAULT;
	if (size < row->min_size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(arg, row->size, uarg, size);
	if (ret)
		return ret;
	ret = row->fn(priv, arg);
	/* A call that is started again goes on from what it left in its struct */
	if ((ret < 0 && ret != -ERESTARTSYS) || !(_IOC_DIR(row->cmd) & _IOC_READ))
		return ret;
	/* The size stays what the caller said */
	if (copy_to_user(uarg + sizeof(u32), arg + sizeof(u32),
			 min(size, row->size) - sizeof(u32))) {
		if (row->undo && !ret)
			row->undo(priv, arg);
		return -EFAULT;
	}
	return ret;
}

/**
 * zc_ioctl_dispatch - run one ioctl
 * @table: the rows
 * @n: their number
 * @cmd: ioctl number
 * @arg: the caller's struct
 * @priv: for the row's function
 * @owner: the caller is the address space that joined
 *
 * Return: the row's, or -ENOTTY, -EPERM, -EFAULT, -EINVAL, -E2BIG.
 */
long zc_ioctl_dispatch(const struct zc_ioctl *table, u32 n, unsigned int cmd,
		       void __user *arg, void *priv, bool owner)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (ZC_CMD_ID(table[i].cmd) != ZC_CMD_ID(cmd))
			continue;
		if ((table[i].flags & ZC_OWNER) && !owner)
			return -EPERM;
		return zc_ioctl_call(&table[i], arg, priv);
	}
	return -ENOTTY;
}
