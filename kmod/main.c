// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/zcoll: what the module can do, and the way into a communicator.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "ioctl.h"
#include "net/net.h"

struct zc_totals zc_totals;
/* Ends operations, watches deadlines. Unbound: nobody waits for a busy CPU. */
struct workqueue_struct *zc_wq;
/* Frees endpoints, which waits for works of the other one */
struct workqueue_struct *zc_free_wq;

static int zc_ioctl_info(void *priv, void *arg)
{
	struct zcoll_info info = {
		.abi_version = ZCOLL_ABI_VERSION,
		.features = ZCOLL_FEAT_URING | ZCOLL_FEAT_MAILBOX,
		.types = GENMASK_ULL(ZCOLL_NR_TYPES - 1, 1),
		.ops = GENMASK_ULL(ZCOLL_NR_OPS - 1, 1),
		.max_ranks = ZCOLL_MAX_RANKS,
		.window = ZC_WINDOW,
		.max_buffers = ZC_MAX_BUFFERS,
		.max_comms = ZC_MAX_COMMS,
		.inline_bytes = ZC_INLINE_BYTES,
		.comms = atomic_read(&zc_totals.comms),
		.ranks = atomic_read(&zc_totals.ranks),
		.workers = atomic_read(&zc_totals.workers),
		.pinned_pages = atomic64_read(&zc_totals.pinned_pages),
		.kernel_bytes = atomic64_read(&zc_totals.kernel_bytes),
		.ops_done = atomic64_read(&zc_totals.ops_done),
		.ops_failed = atomic64_read(&zc_totals.ops_failed),
	};
	struct zc_cache_counts counts;

	zc_caches_count(&counts);
	info.cache_hits = counts.hits;
	info.cache_misses = counts.misses;
	info.cache_dropped = counts.dropped;
	info.cache_pages = counts.pages;
	info.pin_ns = counts.pin_ns;
	if (zc_uring_cancel_known())
		info.features |= ZCOLL_FEAT_RING_CANCEL;
	if (ZC_COMPAT_RDMA)
		info.features |= ZCOLL_FEAT_RDMA;
	strscpy(info.fold, zc_isa_name(), sizeof(info.fold));
	memcpy(arg, &info, sizeof(info));
	return 0;
}

static int zc_ioctl_join(void *priv, void *arg)
{
	struct zcoll_join *args = arg;
	struct zc_text why = {};
	int ret;

	ret = zc_join(args, &why);
	/* Not when it is about to be started again */
	if (ret >= 0 || ret == -ERESTARTNOINTR)
		return ret;
	if (zc_text_to_user(why.buf, args->text, args->text_len))
		return -EFAULT;
	return ret;
}

static const struct zc_ioctl zc_device_ioctls[] = {
	ZC_IOCTL(ZCOLL_IOC_INFO, zc_ioctl_info, zcoll_info, fold, 0),
	ZC_IOCTL(ZCOLL_IOC_JOIN, zc_ioctl_join, zcoll_join, __reserved, 0),
};

static long zc_device_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return zc_ioctl_dispatch(zc_device_ioctls, ARRAY_SIZE(zc_device_ioctls), cmd,
				 (void __user *)arg, NULL, true);
}

static const struct file_operations zc_device_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = zc_device_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice zc_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "zcoll",
	.fops = &zc_device_fops,
	.mode = 0660,
};

static int __init zc_init(void)
{
	int err;

	err = zc_isa_init();
	if (err)
		return err;
	err = zc_plan_init();
	if (err)
		return err;
	err = zc_rank_init();
	if (err)
		goto out_plan;
	err = -ENOMEM;
	zc_wq = alloc_workqueue("zcoll", WQ_UNBOUND, 0);
	if (!zc_wq)
		goto out_rank;
	zc_free_wq = alloc_workqueue("zcoll_free", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!zc_free_wq)
		goto out_wq;
	err = zc_caches_init();
	if (err)
		goto out_free_wq;
	err = zc_net_init();
	if (err)
		goto out_caches;
	err = misc_register(&zc_device);
	if (err)
		goto out_net;
	pr_info("ready, folding with %s\n", zc_isa_name());
	return 0;

out_net:
	zc_net_uninit();
out_caches:
	zc_caches_uninit();
out_free_wq:
	destroy_workqueue(zc_free_wq);
out_wq:
	destroy_workqueue(zc_wq);
out_rank:
	zc_rank_uninit();
out_plan:
	zc_plan_uninit();
	return err;
}

/* Files hold the module; endpoints whose file is gone are waited for here */
static void __exit zc_exit(void)
{
	misc_deregister(&zc_device);
	destroy_workqueue(zc_free_wq);
	zc_net_uninit();
	zc_caches_uninit();
	destroy_workqueue(zc_wq);
	zc_rank_uninit();
	zc_plan_uninit();
}

module_init(zc_init);
module_exit(zc_exit);

MODULE_DESCRIPTION("Zero-copy collective operations between processes");
MODULE_LICENSE("GPL");
