// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users: what all networks of a user may take together.
 *
 * Each limit of a network is good for one communicator, and a user may have many. So the kernel
 * memory that a network takes because of what other nodes do, or for them, is counted here, too:
 * inboxes, keys, regions of the kernel, and connections. A user without CAP_SYS_RESOURCE has a
 * limit for all of it. And each user's half-links are connected by threads of their own, so that
 * one who connects to where nobody answers keeps nobody else waiting.
 *
 * A user is made with the first network, and goes with the last one. zc_users_lock protects the
 * list; counting needs no lock.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "net.h"

static uint user_net_mib;
module_param(user_net_mib, uint, 0644);
MODULE_PARM_DESC(user_net_mib, "kernel memory for networks that a user without CAP_SYS_RESOURCE may have, MiB; 0: a quarter of the machine's");

/**
 * struct zc_user - a user
 * @link: in the list of all
 * @uid: who
 * @nets: networks
 * @bytes: kernel memory that they have taken
 * @connect_wq: connects their half-links
 */
struct zc_user {
	struct list_head link;
	kuid_t uid;
	u32 nets;
	atomic64_t bytes;
	struct workqueue_struct *connect_wq;
};

static DEFINE_MUTEX(zc_users_lock);
static LIST_HEAD(zc_users);

/* Under zc_users_lock. Return: NULL: no memory. */
static struct zc_user *zc_user_make(kuid_t uid)
{
	struct zc_user *user = kzalloc(sizeof(*user), GFP_KERNEL);

	if (!user)
		return NULL;
	user->uid = uid;
	user->connect_wq = alloc_workqueue("zcoll_connect", WQ_UNBOUND, 0);
	if (!user->connect_wq) {
		kfree(user);
		return NULL;
	}
	list_add(&user->link, &zc_users);
	return user;
}

/* Under zc_users_lock */
static struct zc_user *zc_user_find(kuid_t uid)
{
	struct zc_user *user;

	list_for_each_entry(user, &zc_users, link)
		if (uid_eq(user->uid, uid))
			return user;
	return zc_user_make(uid);
}

/**
 * zc_user_enter - a network is one of its user's, who is the caller
 * @net: being made
 *
 * Return: 0 or -ENOMEM.
 */
int zc_user_enter(struct zc_net *net)
{
	mutex_lock(&zc_users_lock);
	net->user = zc_user_find(net->comm->uid);
	if (net->user)
		net->user->nets++;
	mutex_unlock(&zc_users_lock);
	net->unlimited = capable(CAP_SYS_RESOURCE);
	return net->user ? 0 : -ENOMEM;
}

/* A network ends: what it has taken is given back. Nothing of it is connected any more. */
void zc_user_exit(struct zc_net *net)
{
	struct zc_user *user = net->user;
	bool last;

	if (!user)
		return;
	atomic64_sub(atomic64_read(&net->bytes), &user->bytes);
	mutex_lock(&zc_users_lock);
	last = !--user->nets;
	if (last)
		list_del(&user->link);
	mutex_unlock(&zc_users_lock);
	if (!last)
		return;
	destroy_workqueue(user->connect_wq);
	kfree(user);
}

static u64 zc_user_limit(void)
{
	u64 mib = READ_ONCE(user_net_mib);

	return mib ? mib << 20 : ((u64)totalram_pages() << PAGE_SHIFT) / 4;
}

/**
 * zc_net_charge - a network takes kernel memory
 * @net: the net
 * @bytes: so much more
 * @why: gets the text of a failure
 *
 * Return: 0 or -ENOBUFS.
 */
int zc_net_charge(struct zc_net *net, u64 bytes, struct zc_text *why)
{
	u64 used = atomic64_add_return(bytes, &net->user->bytes), limit = zc_user_limit();

	if (used <= limit || net->unlimited) {
		atomic64_add(bytes, &net->bytes);
		return 0;
	}
	atomic64_sub(bytes, &net->user->bytes);
	zc_text_add(why, "kernel memory for networks of this user: limit (module parameter ");
	zc_text_add(why, "user_net_mib) %llu KiB, in use %llu KiB, needed %llu KiB more",
		    limit >> 10, (used - bytes) >> 10, DIV_ROUND_UP_ULL(bytes, 1024));
	return -ENOBUFS;
}

/* It gives so much back */
void zc_net_uncharge(struct zc_net *net, u64 bytes)
{
	atomic64_sub(bytes, &net->bytes);
	atomic64_sub(bytes, &net->user->bytes);
}

/* Connect a half-link, in a thread that may sleep */
void zc_user_connect(struct zc_user *user, struct work_struct *work)
{
	queue_work(user->connect_wq, work);
}
