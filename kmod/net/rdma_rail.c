// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rails: which devices, ports and addresses a net uses.
 *
 * The option is a list DEVICE[/PORT[/GIDINDEX]],... with a rail for each entry, in this order;
 * an empty list means one rail, on the first port found. The communication manager goes by IP
 * addresses, on InfiniBand, RoCE and iWARP alike, so a rail is found by trying this machine's
 * addresses, in the order of its network interfaces, until one belongs to the device, port and
 * GID wanted and the port is active. Link-local addresses are of no use: they do not tell the
 * network.
 *
 * Ports are given out by the communication manager, which knows its own only. On iWARP they are
 * ports of TCP, where a socket may have the one that was given: then the rail asks for another.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <rdma/ib_cache.h>

#include "rdma.h"

/* Addresses of this machine that are tried, and ports of one */
#define ZC_ADDRESSES	64
#define ZC_PORTS	16

/* What an entry of the option asks for; NULL, 0 and -1: any */
struct zc_rail_wish {
	const char *device;
	u32 port;
	int gid;
};

struct zc_rail_candidates {
	u32 count;
	struct sockaddr_storage addresses[ZC_ADDRESSES];
};

/* ---- this machine's addresses ---- */

static struct sockaddr_storage *zc_candidate(struct zc_rail_candidates *all)
{
	return all->count < ZC_ADDRESSES ? &all->addresses[all->count++] : NULL;
}

static void zc_candidates_v4(struct zc_rail_candidates *all, struct net_device *netdev)
{
	struct in_device *in_dev = __in_dev_get_rtnl(netdev);
	const struct in_ifaddr *ifa;
	struct sockaddr_in *address;

	if (!in_dev)
		return;
	in_dev_for_each_ifa_rtnl(ifa, in_dev) {
		address = (struct sockaddr_in *)zc_candidate(all);
		if (!address)
			return;
		address->sin_family = AF_INET;
		address->sin_addr.s_addr = ifa->ifa_local;
	}
}

static void zc_candidates_v6(struct zc_rail_candidates *all, struct net_device *netdev)
{
	struct inet6_dev *in6_dev = __in6_dev_get(netdev);
	const struct inet6_ifaddr *ifa;
	struct sockaddr_in6 *address;

	if (!in6_dev)
		return;
	read_lock_bh(&in6_dev->lock);
	list_for_each_entry(ifa, &in6_dev->addr_list, if_list) {
		if (ifa->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED) ||
		    ipv6_addr_type(&ifa->addr) & IPV6_ADDR_LINKLOCAL)
			continue;
		address = (struct sockaddr_in6 *)zc_candidate(all);
		if (!address)
			break;
		address->sin6_family = AF_INET6;
		address->sin6_addr = ifa->addr;
	}
	read_unlock_bh(&in6_dev->lock);
}

static struct zc_rail_candidates *zc_candidates(void)
{
	struct zc_rail_candidates *all = kvzalloc(sizeof(*all), GFP_KERNEL);
	struct net_device *netdev;

	if (!all)
		return NULL;
	rtnl_lock();
	for_each_netdev(&init_net, netdev) {
		if (!(netdev->flags & IFF_UP) || netdev->flags & IFF_LOOPBACK)
			continue;
		zc_candidates_v4(all, netdev);
		zc_candidates_v6(all, netdev);
	}
	rtnl_unlock();
	return all;
}

/* ---- one rail ---- */

static bool zc_rail_fits(const struct rdma_cm_id *id, const struct zc_rail_wish *wish)
{
	const struct ib_gid_attr *gid = id->route.addr.dev_addr.sgid_attr;
	enum ib_port_state state;

	if (wish->device && strcmp(wish->device, dev_name(&id->device->dev)))
		return false;
	if (wish->port && wish->port != id->port_num)
		return false;
	if (wish->gid >= 0 && (!gid || gid->index != wish->gid))
		return false;
	return !ib_get_cached_port_state(id->device, id->port_num, &state) &&
	       state == IB_PORT_ACTIVE;
}

/* A listener on this address, if it belongs to what is wished for */
static struct rdma_cm_id *zc_rail_bind(struct zc_rail *rail, struct sockaddr_storage *address,
				       const struct zc_rail_wish *wish)
{
	struct rdma_cm_id *id;

	id = rdma_create_id(&init_net, zc_conn_event, rail, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return NULL;
	if (!rdma_bind_addr(id, (struct sockaddr *)address) && id->device &&
	    zc_rail_fits(id, wish))
		return id;
	rdma_destroy_id(id);
	return NULL;
}

/* Can it do what is needed, and how much of it at once? */
static int zc_rail_limits(struct zc_rail *rail, struct zc_text *why)
{
	const struct ib_device_attr *attrs = &rail->dev->attrs;
	u32 bytes = zc_net_post_bytes(rail->rdma->net);
	/* Each write may begin and end within a page */
	u32 pages = bytes / PAGE_SIZE + 2 * ZC_POST_WRITES;
	u32 least;

	if (!(attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS) ||
	    attrs->max_fast_reg_page_list_len < ZC_RDMA_CHUNK_PAGES) {
		zc_text_add(why, "RDMA device %s registers %u pages at once, needed %u",
			    rail->name, attrs->max_fast_reg_page_list_len,
			    ZC_RDMA_CHUNK_PAGES);
		return -EOPNOTSUPP;
	}
	rail->max_sge = clamp_t(u32, attrs->max_send_sge, 1, ZC_RDMA_SGE);
	/*
	 * A work request ends with the list, with the write, or with a chunk, of which each write
	 * may begin and end in the middle of one; and the message
	 */
	rail->post_wrs = DIV_ROUND_UP(pages, rail->max_sge) + 2 * ZC_POST_WRITES +
			 DIV_ROUND_UP(bytes, ZC_RDMA_CHUNK_PAGES << PAGE_SHIFT) + 1;
	rail->sq_wrs = min_t(int, 4 * rail->rdma->net->config.depth + rail->post_wrs,
			     attrs->max_qp_wr - ZC_RDMA_REGS - 1);
	least = max(rail->post_wrs + ZC_RDMA_REGS, ZC_RDMA_INBOXES(rail->rdma->net)) + 1;
	if (attrs->max_qp_wr < (int)least) {
		zc_text_add(why, "RDMA device %s takes %d work requests in a queue, needed %u",
			    rail->name, attrs->max_qp_wr, least);
		return -EOPNOTSUPP;
	}
	return 0;
}

static void zc_rail_set_listener(struct zc_rail *rail, struct rdma_cm_id *id)
{
	rail->listener = id;
	memcpy(&rail->address, &id->route.addr.src_addr, sizeof(rail->address));
}

/* Bound to another port of the same address; the old one is not free before that is done */
static bool zc_rail_rebind(struct zc_rail *rail, struct sockaddr_storage *address)
{
	const struct zc_rail_wish same = { .device = rail->name, .port = rail->port, .gid = -1 };
	struct rdma_cm_id *id = zc_rail_bind(rail, address, &same);

	if (!id)
		return false;
	rdma_destroy_id(rail->listener);
	zc_rail_set_listener(rail, id);
	return true;
}

/* On @address, which names no port */
static int zc_rail_listen(struct zc_rail *rail, struct sockaddr_storage *address)
{
	u32 ports = 0;
	int err;

	do {
		/* A burst of all who may be strangers, and as many again to be told to wait */
		err = rdma_listen(rail->listener, 2 * ZC_STRANGERS);
	} while (err == -EADDRINUSE && ++ports < ZC_PORTS && zc_rail_rebind(rail, address));
	return err;
}

static int zc_rail_open(struct zc_rail *rail, struct sockaddr_storage *address,
			struct zc_text *why)
{
	struct ib_pd *pd;
	int err;

	err = zc_rail_limits(rail, why);
	if (err)
		return err;
	rail->said = kvcalloc(rail->rdma->net->comm->layout.nodes, sizeof(*rail->said),
			      GFP_KERNEL_ACCOUNT);
	if (!rail->said)
		return -ENOMEM;
	pd = ib_alloc_pd(rail->dev, 0);
	err = PTR_ERR_OR_ZERO(pd);
	if (!err) {
		rail->pd = pd;
		err = zc_rail_listen(rail, address);
	}
	if (err)
		zc_text_add(why, "cannot listen on RDMA device %s port %u: error %d",
			    rail->name, rail->port, err);
	return err;
}

void zc_rail_listener_destroy(struct zc_rail *rail)
{
	if (rail->listener)
		rdma_destroy_id(rail->listener);
	rail->listener = NULL;
}

/* What has been made is undone by the caller, who closes all rails */
static int zc_rail_find(struct zc_rail *rail, struct zc_rail_candidates *all,
			const struct zc_rail_wish *wish, struct zc_text *why)
{
	struct rdma_cm_id *id = NULL;
	u32 i;

	for (i = 0; i < all->count; i++) {
		id = zc_rail_bind(rail, &all->addresses[i], wish);
		if (id)
			break;
	}
	if (!id && !wish->device)
		zc_text_add(why, "no RDMA device has an active port with an IP address");
	else if (!id)
		zc_text_add(why, "RDMA device %s: no such port is active and has an IP address",
			    wish->device);
	if (!id)
		return -ENODEV;
	rail->dev = id->device;
	strscpy(rail->name, dev_name(&id->device->dev), sizeof(rail->name));
	rail->port = id->port_num;
	zc_rail_set_listener(rail, id);
	if (!zc_rail_device_enter(rail)) {
		zc_text_add(why, "RDMA device %s is being removed", rail->name);
		return -ENODEV;
	}
	return zc_rail_open(rail, &all->addresses[i], why);
}

/* ---- the option ---- */

/* Take DEVICE[/PORT[/GIDINDEX]] apart, in place */
static int zc_rail_parse(char *entry, struct zc_rail_wish *wish)
{
	char *port, *gid = NULL;

	*wish = (struct zc_rail_wish){ .device = strsep(&entry, "/"), .gid = -1 };
	port = strsep(&entry, "/");
	if (port)
		gid = strsep(&entry, "/");
	if (!*wish->device || entry)
		return -EINVAL;
	if (port && (kstrtou32(port, 10, &wish->port) || !wish->port))
		return -EINVAL;
	if (gid && (kstrtoint(gid, 10, &wish->gid) || wish->gid < 0))
		return -EINVAL;
	return 0;
}

static int zc_rails_find_each(struct zc_rdma *rdma, struct zc_rail_candidates *all, char *list,
			      struct zc_text *why)
{
	struct zc_rail_wish wish = { .gid = -1 };
	bool any = !*list;
	char *entry;
	int err;

	while ((entry = strsep(&list, ","))) {
		struct zc_rail *rail = &rdma->rails[rdma->nrails];

		if (rdma->nrails == ZC_MAX_RAILS) {
			zc_text_add(why, "more than %d rails", ZC_MAX_RAILS);
			return -EINVAL;
		}
		if (!any && zc_rail_parse(entry, &wish)) {
			zc_text_add(why, "rails must be DEVICE[/PORT[/GIDINDEX]],...");
			return -EINVAL;
		}
		rail->rdma = rdma;
		rail->index = rdma->nrails++;
		err = zc_rail_find(rail, all, &wish, why);
		if (err)
			return err;
	}
	return 0;
}

/* Fill zc_rdma.rails as the option says; on error, what was made is there, to be closed */
int zc_rails_find(struct zc_rdma *rdma, const char *rails, struct zc_text *why)
{
	struct zc_rail_candidates *all = zc_candidates();
	char *list = kstrdup(rails, GFP_KERNEL);
	int err = -ENOMEM;

	mutex_lock(&zc_devices_lock);
	if (all && list)
		err = zc_rails_find_each(rdma, all, list, why);
	mutex_unlock(&zc_devices_lock);
	kfree(list);
	kvfree(all);
	return err;
}
