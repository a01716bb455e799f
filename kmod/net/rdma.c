// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fabric "rdma": devices that come and go, and a net's opening and closing.
 *
 * A device is removed while nets use it when its driver is unloaded, when it is unplugged, or when
 * somebody deletes a software device. Its removal is seen here before the communication manager
 * sees it: the nets are told, which revokes their communicators; their half-links are waited for;
 * and what else there is on the device is given back, before zc_rdma_remove() returns. Regions of
 * buffers that users still hold stay, but mean nothing to the device any more.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "rdma.h"

/**
 * struct zc_rdma_device - a device
 * @link: in the list of all
 * @dev: the device
 * @rails: of all nets, that are on it
 */
struct zc_rdma_device {
	struct list_head link;
	struct ib_device *dev;
	struct list_head rails;
};

static LIST_HEAD(zc_devices);
DEFINE_MUTEX(zc_devices_lock);	/* devices, and the rails on each */

/* Connects, registers, reaps. Unbound, and many at a time: they wait for others. */
struct workqueue_struct *zc_rdma_wq;

/* ---- devices ---- */

/* Under zc_devices_lock. Return: false: the device is going away. */
bool zc_rail_device_enter(struct zc_rail *rail)
{
	struct zc_rdma_device *device;

	lockdep_assert_held(&zc_devices_lock);
	list_for_each_entry(device, &zc_devices, link) {
		if (device->dev != rail->dev)
			continue;
		rail->device = device;
		list_add_tail(&rail->link, &device->rails);
		return true;
	}
	return false;
}

static void zc_rail_device_exit(struct zc_rail *rail)
{
	lockdep_assert_held(&zc_devices_lock);
	if (rail->device)
		list_del(&rail->link);
	rail->device = NULL;
}

static struct ib_client zc_rdma_client;

static int zc_rdma_add(struct ib_device *dev)
{
	struct zc_rdma_device *device = kzalloc(sizeof(*device), GFP_KERNEL);

	if (!device)
		return -ENOMEM;
	device->dev = dev;
	INIT_LIST_HEAD(&device->rails);
	mutex_lock(&zc_devices_lock);
	list_add_tail(&device->link, &zc_devices);
	mutex_unlock(&zc_devices_lock);
	ib_set_client_data(dev, &zc_rdma_client, device);
	return 0;
}

/* Until zc_rdma_exit() the net's devices stay. Return: false: one is going away. */
bool zc_rdma_enter(struct zc_rdma *rdma)
{
	bool stays;

	mutex_lock(&rdma->lock);
	stays = !rdma->gone;
	if (stays)
		atomic_inc(&rdma->users);
	mutex_unlock(&rdma->lock);
	return stays;
}

void zc_rdma_exit(struct zc_rdma *rdma)
{
	atomic_dec(&rdma->users);
	wake_up_all(&rdma->waitq);
}

/* Give back all that the net has on devices. Nothing can be made again after that. */
static void zc_rdma_strip(struct zc_rdma *rdma)
{
	u32 r;

	for (r = 0; r < rdma->nrails; r++)
		zc_rail_listener_destroy(&rdma->rails[r]);
	zc_rdma_drop_strangers(rdma);
	wait_event(rdma->waitq, !atomic_read(&rdma->users));
	zc_rdma_regions_detach(rdma);
	for (r = 0; r < rdma->nrails; r++) {
		struct zc_rail *rail = &rdma->rails[r];

		if (rail->pd)
			ib_dealloc_pd(rail->pd);
		rail->pd = NULL;
	}
}

/*
 * The lock is held all the time, so that no net goes away meanwhile: what closes the half-links
 * does not need it. Rails of a net on other devices end as well: it is of no use any more.
 */
static void zc_rdma_remove(struct ib_device *dev, void *client_data)
{
	struct zc_rdma_device *device = client_data;
	struct zc_rail *rail;

	mutex_lock(&zc_devices_lock);
	list_del(&device->link);
	list_for_each_entry(rail, &device->rails, link) {
		zc_net_device_gone(rail->rdma->net, dev_name(&dev->dev));
		mutex_lock(&rail->rdma->lock);
		rail->rdma->gone = true;
		mutex_unlock(&rail->rdma->lock);
		/* Who is connecting gives up */
		wake_up_all(&rail->rdma->waitq);
	}
	while (!list_empty(&device->rails)) {
		rail = list_first_entry(&device->rails, struct zc_rail, link);
		zc_rdma_strip(rail->rdma);
		zc_rail_device_exit(rail);
	}
	mutex_unlock(&zc_devices_lock);
	kfree(device);
}

/* ---- a net ---- */

static void zc_rdma_close(struct zc_net *net)
{
	struct zc_rdma *rdma = net->fab;
	u32 r;

	mutex_lock(&zc_devices_lock);
	for (r = 0; r < rdma->nrails; r++)
		zc_rail_device_exit(&rdma->rails[r]);
	mutex_unlock(&zc_devices_lock);
	zc_rdma_strip(rdma);
	cancel_delayed_work_sync(&rdma->reap_work);
	for (r = 0; r < rdma->nrails; r++)
		kvfree(rdma->rails[r].said);
	net->fab = NULL;
	kfree(rdma);
}

/*
 * Rails are on the machine's own addresses. Who has been put into another network, as in most
 * containers, does not get at these by having the device.
 */
static bool zc_rdma_may_use(void)
{
	return net_eq(current->nsproxy->net_ns, &init_net) || capable(CAP_NET_ADMIN);
}

static int zc_rdma_open(struct zc_net *net, const char *rails, struct zc_text *why)
{
	struct zc_rdma *rdma;
	int err;

	if (!zc_rdma_may_use()) {
		zc_text_add(why, "fabric rdma uses the machine's network; from another network ");
		zc_text_add(why, "namespace it needs CAP_NET_ADMIN");
		return -EPERM;
	}
	rdma = kzalloc(sizeof(*rdma), GFP_KERNEL);
	if (!rdma)
		return -ENOMEM;
	rdma->net = net;
	INIT_LIST_HEAD(&rdma->conns);
	INIT_LIST_HEAD(&rdma->halves);
	INIT_LIST_HEAD(&rdma->regions);
	INIT_DELAYED_WORK(&rdma->reap_work, zc_rdma_reap_fn);
	init_waitqueue_head(&rdma->waitq);
	mutex_init(&rdma->lock);
	zc_hello_name(net->comm->key, rdma->name);
	net->fab = rdma;
	err = zc_rails_find(rdma, rails, why);
	if (!err) {
		net->rails = rdma->nrails;
		return 0;
	}
	/* Who knows the key may have come already, by a rail that is there */
	zc_net_deafen(net);
	zc_rdma_close(net);
	return err;
}

/* Room for an IPv6 address and a port for each rail, whatever the family */
static u32 zc_rdma_address(struct zc_net *net, void *buf)
{
	struct zc_rdma_address *to = buf;
	struct zc_rdma *rdma = net->fab;
	u32 r;

	BUILD_BUG_ON(ZC_MAX_RAILS * sizeof(*to) > ZCOLL_ADDRESS_MAX);
	for (r = 0; r < rdma->nrails; r++, to++) {
		const struct sockaddr_storage *from = &rdma->rails[r].address;
		const struct sockaddr_in6 *v6 = (const void *)from;
		const struct sockaddr_in *v4 = (const void *)from;

		memset(to, 0, sizeof(*to));
		if (from->ss_family == AF_INET) {
			to->family = cpu_to_le16(4);
			to->port = v4->sin_port;
			memcpy(to->ip, &v4->sin_addr, sizeof(v4->sin_addr));
		} else {
			to->family = cpu_to_le16(6);
			to->port = v6->sin6_port;
			memcpy(to->ip, &v6->sin6_addr, sizeof(v6->sin6_addr));
		}
	}
	return rdma->nrails * sizeof(*to);
}

const struct zc_fabric zc_fabric_rdma = {
	.name = "rdma",
	.chunk_pages = ZC_RDMA_CHUNK_PAGES,
	.open = zc_rdma_open,
	.close = zc_rdma_close,
	.address = zc_rdma_address,
	.connect = zc_rdma_connect,
	.hurry = zc_rdma_hurry,
	.disconnect = zc_rdma_disconnect,
	.drop = zc_rdma_drop,
	.map = zc_rdma_map,
	.unmap = zc_rdma_unmap,
	.expose = zc_rdma_expose,
	.key = zc_rdma_key,
	.post = zc_rdma_post,
	.poll = zc_rdma_poll,
};

/* ---- the module ---- */

static struct ib_client zc_rdma_client = {
	.name = "zcoll",
	.add = zc_rdma_add,
	.remove = zc_rdma_remove,
};

int zc_rdma_init(void)
{
	int err;

	zc_rdma_wq = alloc_workqueue("zcoll_rdma", WQ_UNBOUND, 0);
	if (!zc_rdma_wq)
		return -ENOMEM;
	err = ib_register_client(&zc_rdma_client);
	if (err)
		destroy_workqueue(zc_rdma_wq);
	return err;
}

void zc_rdma_uninit(void)
{
	ib_unregister_client(&zc_rdma_client);
	destroy_workqueue(zc_rdma_wq);
}
