// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions and keys: memory of this node that others write to, and memory of others that
 * this node writes to.
 *
 * A region is mapped when it is made: the fabric can read it then. It is *exposed* when a
 * GRANT first names it, and then its keys are told to each node that gets such a GRANT, once.
 * So memory that is never a landing can never be written to, and a node that is never granted
 * anything has no key. Posts that name a region wait at it while it is being exposed.
 *
 * Regions of the kernel are a power of two of pages, and kept for the next operation with
 * mapping and keys. Those of buffers go with them: peers are told to FORGET the keys.
 *
 * What peers tell of their regions is kept in a table for each, all of them of bounded size, and
 * each write is checked against it: a write beyond what was told is not even tried.
 *
 * Locking. A region is made, unmapped and destroyed under zc_net.region_lock; its state, and who
 * has been told, are under zc_comm.lock. Tables of a peer's keys are changed under both poll_lock
 * (message.c) and zc_comm.lock, and looked at under either.
 */
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "net.h"

static uint region_mib = 256;
module_param(region_mib, uint, 0644);
MODULE_PARM_DESC(region_mib, "kernel memory for operations of a communicator with several nodes, at most, MiB");

static uint keys_mib = 64;
module_param(keys_mib, uint, 0644);
MODULE_PARM_DESC(keys_mib, "memory for keys of buffers of all other nodes of a communicator, at most, MiB; 64 are good for 4 TiB of such buffers");

/* ---- own regions ---- */

static u64 zc_region_bytes(const struct zc_region *region)
{
	return (u64)region->npages << PAGE_SHIFT;
}

static u32 zc_region_chunks(const struct zc_region *region)
{
	return DIV_ROUND_UP(region->npages, region->net->fabric->chunk_pages);
}

/**
 * zc_region_make - let the network read memory, and later write it
 * @net: the net
 * @base: kernel address, on a page boundary
 * @npages: pages
 *
 * Context: may sleep.
 * Return: the region, or an ERR_PTR.
 */
struct zc_region *zc_region_make(struct zc_net *net, void *base, unsigned long npages)
{
	struct zc_region *region;
	int err = -ENOMEM;

	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return ERR_PTR(-ENOMEM);
	region->told = bitmap_zalloc(net->comm->layout.nodes, GFP_KERNEL_ACCOUNT);
	if (!region->told)
		goto out_free;
	region->net = net;
	region->base = base;
	region->npages = npages;
	INIT_LIST_HEAD(&region->waiting);
	INIT_LIST_HEAD(&region->free_link);
	mutex_lock(&net->region_lock);
	/* Of a revoked communicator nothing is sent any more, so nothing needs to be mapped */
	err = net->closed ? 0 : net->fabric->map(region);
	if (err) {
		mutex_unlock(&net->region_lock);
		goto out_free;
	}
	region->mapped = !net->closed;
	spin_lock(&net->comm->lock);
	region->id = net->next_region++;
	list_add(&region->link, &net->regions);
	spin_unlock(&net->comm->lock);
	mutex_unlock(&net->region_lock);
	return region;

out_free:
	bitmap_free(region->told);
	kfree(region);
	return ERR_PTR(err);
}

/* A post is not to be sent before peers can write into a region; under zc_comm.lock */
void zc_post_name(struct zc_post *post, struct zc_region *region)
{
	post->region = region;
	region->nposts++;
}

/*
 * Grants that nobody needs: the operation is over, or is to end. A peer may have sent without
 * having seen them, so they may still be anywhere. Under zc_comm.lock.
 */
static void zc_region_drop_posts(struct zc_region *region)
{
	struct zc_post *post, *next;

	list_for_each_entry_safe(post, next, &region->waiting, link) {
		list_del(&post->link);
		zc_post_drop(post);
	}
	if (region->nposts)
		zc_peers_drop_posts(region);
}

/* Peers do not need its keys any more; under zc_comm.lock */
static void zc_region_forget(struct zc_region *region)
{
	struct zc_net *net = region->net;
	struct zc_post *post;
	u32 node;

	for_each_set_bit(node, region->told, net->comm->layout.nodes) {
		post = zc_message_new(net, node, ZW_FORGET, 0);
		if (!post)
			return;
		((struct zw_header *)post->message)->unit = cpu_to_le64(region->id);
		zc_out_queue(post);
	}
	bitmap_zero(region->told, net->comm->layout.nodes);
}

static bool zc_region_settled(const struct zc_region *region)
{
	bool settled;

	spin_lock(&region->net->comm->lock);
	settled = region->state != ZC_REGION_EXPOSING;
	spin_unlock(&region->net->comm->lock);
	return settled;
}

/* Is none being exposed? */
bool zc_regions_settled(const struct zc_net *net)
{
	const struct zc_region *region;
	bool settled = true;

	spin_lock(&net->comm->lock);
	list_for_each_entry(region, &net->regions, link)
		settled &= region->state != ZC_REGION_EXPOSING;
	spin_unlock(&net->comm->lock);
	return settled;
}

/* Peers cannot touch it after that; under region_lock */
static void zc_region_unmap(struct zc_region *region)
{
	lockdep_assert_held(&region->net->region_lock);
	if (region->mapped)
		region->net->fabric->unmap(region);
	region->mapped = false;
}

/**
 * zc_region_destroy - peers and fabric let go of memory
 * @region: the region; no operation uses it. NULL is allowed
 *
 * Context: may sleep.
 */
void zc_region_destroy(struct zc_region *region)
{
	struct zc_net *net;

	if (!region)
		return;
	net = region->net;
	spin_lock(&net->comm->lock);
	zc_region_drop_posts(region);
	/* Who has left is not listened to, and its keys are of no use */
	if (zc_net_sends(net) && !net->left)
		zc_region_forget(region);
	spin_unlock(&net->comm->lock);
	/*
	 * The fabric answers: its half-link is up, or is being ended. Not under region_lock, which
	 * who polls may want; and this may be who would poll.
	 */
	while (!wait_event_timeout(net->waitq, zc_region_settled(region), 1))
		zc_net_take_in(net);
	mutex_lock(&net->region_lock);
	zc_region_unmap(region);
	spin_lock(&net->comm->lock);
	list_del(&region->link);
	spin_unlock(&net->comm->lock);
	mutex_unlock(&net->region_lock);
	if (region->kernel)
		vfree(region->base);
	bitmap_free(region->told);
	kfree(region);
}

/* ---- the kernel's regions ---- */

/* One of so many pages that is free, or of any number of pages; under zc_comm.lock */
static struct zc_region *zc_region_take(struct zc_net *net, unsigned long npages)
{
	struct zc_region *region;

	list_for_each_entry(region, &net->free_regions, free_link) {
		if (npages ? region->npages != npages : region->state == ZC_REGION_EXPOSING)
			continue;
		list_del_init(&region->free_link);
		return region;
	}
	return NULL;
}

/* Count so many bytes more, if that is within the limits; under zc_comm.lock */
static int zc_region_count(struct zc_net *net, u64 bytes, struct zc_text *why)
{
	u64 limit = (u64)READ_ONCE(region_mib) << 20;
	int err;

	if (net->region_bytes + bytes > limit) {
		zc_text_add(why, "kernel memory for operations: limit (module parameter ");
		zc_text_add(why, "region_mib) %llu KiB, in use %llu KiB, needed %llu KiB more",
			    limit >> 10, net->region_bytes >> 10, bytes >> 10);
		return -ENOBUFS;
	}
	err = zc_net_charge(net, bytes, why);
	if (!err)
		net->region_bytes += bytes;
	return err;
}

/* Under zc_comm.lock */
static void zc_region_uncount(struct zc_net *net, u64 bytes)
{
	net->region_bytes -= bytes;
	zc_net_uncharge(net, bytes);
}

/* Make room for so many bytes more, by giving back what is unused */
static int zc_region_charge(struct zc_net *net, u64 bytes, struct zc_text *why)
{
	struct zc_region *region;
	int err;

	for (;;) {
		struct zc_text refusal = {};

		spin_lock(&net->comm->lock);
		err = zc_region_count(net, bytes, &refusal);
		region = err ? zc_region_take(net, 0) : NULL;
		if (region)
			zc_region_uncount(net, zc_region_bytes(region));
		spin_unlock(&net->comm->lock);
		if (!region) {
			zc_text_add(why, "%s", refusal.buf);
			return err;
		}
		zc_region_destroy(region);
	}
}

static void zc_region_uncharge(struct zc_net *net, u64 bytes)
{
	spin_lock(&net->comm->lock);
	zc_region_uncount(net, bytes);
	spin_unlock(&net->comm->lock);
}

static struct zc_region *zc_region_grow(struct zc_net *net, unsigned long npages,
					struct zc_text *why)
{
	u64 bytes = (u64)npages << PAGE_SHIFT;
	struct zc_region *region;
	void *base;
	int err;

	err = zc_region_charge(net, bytes, why);
	if (err)
		return ERR_PTR(err);
	base = __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (base) {
		region = zc_region_make(net, base, npages);
		if (!IS_ERR(region)) {
			region->kernel = true;
			return region;
		}
		err = PTR_ERR(region);
		vfree(base);
	} else {
		err = -ENOMEM;
	}
	zc_region_uncharge(net, bytes);
	zc_text_add(why, "no kernel memory for operations: needed %llu KiB", bytes >> 10);
	return ERR_PTR(err);
}

/**
 * zc_region_get - kernel memory for an operation
 * @net: the net
 * @bytes: at least so many, not 0; what is in them is undefined
 * @why: gets the text of a failure
 *
 * Context: may sleep.
 * Return: a region, or an ERR_PTR: -ENOMEM, -ENOBUFS.
 */
struct zc_region *zc_region_get(struct zc_net *net, size_t bytes, struct zc_text *why)
{
	unsigned long npages = DIV_ROUND_UP(bytes, PAGE_SIZE);
	struct zc_region *region;

	if (bytes > (u64)READ_ONCE(region_mib) << 20) {
		zc_text_add(why, "an operation needs %zu KiB of kernel memory, ", bytes >> 10);
		zc_text_add(why, "the limit (module parameter region_mib) is %llu KiB",
			    (u64)READ_ONCE(region_mib) << 10);
		return ERR_PTR(-ENOBUFS);
	}
	npages = roundup_pow_of_two(npages);
	spin_lock(&net->comm->lock);
	region = zc_region_take(net, npages);
	spin_unlock(&net->comm->lock);
	return region ?: zc_region_grow(net, npages, why);
}

/* Give kernel memory back, under zc_comm.lock; NULL is allowed */
void zc_region_put(struct zc_region *region)
{
	if (!region)
		return;
	lockdep_assert_held(&region->net->comm->lock);
	zc_region_drop_posts(region);
	list_add(&region->free_link, &region->net->free_regions);
}

/* ---- exposing, and telling keys ---- */

static void zc_key_to_wire(struct zc_region *region, u32 chunk, struct zw_key *keys)
{
	const struct zc_net *net = region->net;
	u32 rail;

	for (rail = 0; rail < net->rails; rail++) {
		u64 address;
		u32 key;

		net->fabric->key(region, rail, chunk, &address, &key);
		keys[rail] = (struct zw_key) {
			.address = cpu_to_le64(address),
			.key = cpu_to_le32(key),
		};
	}
}

/* A KEYS message with chunks first .. first + count - 1 */
static struct zc_post *zc_keys_post(struct zc_region *region, u32 node, u32 first, u32 count)
{
	struct zc_net *net = region->net;
	struct zw_keys *keys;
	struct zc_post *post;
	u32 i;

	post = zc_message_new(net, node, ZW_KEYS,
			      sizeof(*keys) + count * net->rails * sizeof(struct zw_key));
	if (!post)
		return NULL;
	keys = (struct zw_keys *)(post->message + sizeof(struct zw_header));
	*keys = (struct zw_keys) {
		.region = cpu_to_le64(region->id),
		.first = cpu_to_le32(first),
		.count = cpu_to_le32(count),
		.chunks = cpu_to_le32(zc_region_chunks(region)),
		.chunk_pages = cpu_to_le32(net->fabric->chunk_pages << (PAGE_SHIFT - 12)),
		.bytes = cpu_to_le64(zc_region_bytes(region)),
		.rails = cpu_to_le32(net->rails),
	};
	for (i = 0; i < count; i++)
		zc_key_to_wire(region, first + i,
			       (struct zw_key *)(keys + 1) + (size_t)i * net->rails);
	return post;
}

/* Chunks whose keys fit in a message */
static u32 zc_keys_fit(const struct zc_net *net)
{
	return (ZC_MESSAGE_MAX - sizeof(struct zw_header) - sizeof(struct zw_keys)) /
	       (net->rails * sizeof(struct zw_key));
}

/* Tell a node all keys, before all else in its queue */
static void zc_region_tell(struct zc_region *region, u32 node)
{
	u32 chunks = zc_region_chunks(region), fit = zc_keys_fit(region->net), first;
	struct zc_post *post;

	set_bit(node, region->told);
	/* From the last message to the first one, since each goes to the front */
	for (first = rounddown(chunks - 1, fit); ; first -= fit) {
		post = zc_keys_post(region, node, first, min(fit, chunks - first));
		if (!post)
			return;
		zc_out_queue_first(post);
		if (!first)
			return;
	}
}

/**
 * zc_region_ready - may a post be sent that names a region?
 * @region: the region
 * @post: the first one in its half-link's queue, which is UP; zc_comm.lock is held
 *
 * Return: true: yes; false: keys go before it, or it waits at the region now.
 */
bool zc_region_ready(struct zc_region *region, struct zc_post *post)
{
	u32 node = post->out->peer->node;

	if (region->state == ZC_REGION_EXPOSED) {
		if (test_bit(node, region->told))
			return true;
		zc_region_tell(region, node);
		return false;
	}
	list_move_tail(&post->link, &region->waiting);
	if (region->state == ZC_REGION_PRIVATE) {
		region->state = ZC_REGION_EXPOSING;
		region->via = post->out;
		region->via->owed++;
		region->net->fabric->expose(region, post->out);
	}
	return false;
}

/* What waited goes back to the front of its queues, in order; under zc_comm.lock */
static void zc_region_resume(struct zc_region *region)
{
	struct zc_post *post, *next;

	list_for_each_entry_safe_reverse(post, next, &region->waiting, link) {
		list_del(&post->link);
		zc_out_queue_first(post);
	}
	zc_peers_pump(region->net);
}

/**
 * zc_region_exposed - a region is exposed, or cannot be
 * @region: the region, EXPOSING
 * @error: 0; -ENOTCONN: the half-link has gone, which is judged by itself, and those who wait for
 *	other ones try theirs; else why not, which revokes
 */
void zc_region_exposed(struct zc_region *region, int error)
{
	struct zc_net *net = region->net;

	spin_lock(&net->comm->lock);
	region->state = error ? ZC_REGION_PRIVATE : ZC_REGION_EXPOSED;
	region->via->owed--;
	if (error && error != -ENOTCONN)
		zc_comm_failf(net->comm, error,
			      "node %u: memory cannot be opened for other nodes: error %d",
			      net->comm->layout.node, error);
	if (zc_net_sends(net))
		zc_region_resume(region);
	else
		zc_region_drop_posts(region);
	/* Who waits looks under the same lock */
	if (waitqueue_active(&net->waitq))
		wake_up_all(&net->waitq);
	spin_unlock(&net->comm->lock);
}

/* ---- the end ---- */

/* After failure nobody waits for grants any more; under zc_comm.lock */
void zc_regions_drop_posts(struct zc_net *net)
{
	struct zc_region *region;

	list_for_each_entry(region, &net->regions, link)
		zc_region_drop_posts(region);
}

/* Peers cannot write anywhere from now on, and what is made later is not mapped */
void zc_regions_unmap(struct zc_net *net)
{
	struct zc_region *region;

	wait_event(net->waitq, zc_regions_settled(net));
	mutex_lock(&net->region_lock);
	/* Only under region_lock does the list change */
	list_for_each_entry(region, &net->regions, link)
		zc_region_unmap(region);
	net->closed = true;
	mutex_unlock(&net->region_lock);
}

/* All that are left are the kernel's, and unused */
void zc_regions_destroy(struct zc_net *net)
{
	struct zc_region *region;

	for (;;) {
		spin_lock(&net->comm->lock);
		region = zc_region_take(net, 0);
		spin_unlock(&net->comm->lock);
		if (!region)
			return;
		zc_region_destroy(region);
	}
}

/* ---- what peers have told ---- */

struct zc_key {
	u64 address;
	u32 key;
};

/**
 * struct zc_keys - a region of a peer
 * @node: in zc_peer.keys, under zc_comm.lock
 * @region: its number
 * @bytes: of the region
 * @chunk_bytes: of each chunk, but the last one
 * @chunks: their number
 * @rails: keys for each of them
 * @heard: chunks whose keys have come
 * @room: chunks that there is room for
 * @keys: chunk by chunk
 */
struct zc_keys {
	struct rb_node node;
	u64 region;
	u64 bytes;
	u32 chunk_bytes;
	u32 chunks;
	u32 rails;
	u32 heard;
	u32 room;
	struct zc_key *keys;
};

static int zc_keys_compare(const void *region, const struct rb_node *node)
{
	u64 a = *(const u64 *)region, b = rb_entry(node, struct zc_keys, node)->region;

	return a < b ? -1 : a > b;
}

static bool zc_keys_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct zc_keys, node)->region <
	       rb_entry(b, struct zc_keys, node)->region;
}

/* Under zc_comm.lock */
static struct zc_keys *zc_keys_of(const struct zc_peer *peer, u64 region)
{
	struct rb_node *node = rb_find(&region, &peer->keys, zc_keys_compare);

	return node ? rb_entry(node, struct zc_keys, node) : NULL;
}

/* Bytes of so many keys, and of what they are kept in */
static u64 zc_keys_bytes(const struct zc_net *net, u32 chunks)
{
	return sizeof(struct zc_keys) + (u64)chunks * net->rails * sizeof(struct zc_key);
}

/*
 * Take @bytes for keys of a peer, of which there are to be @all in the end. Return: 0, or -ENOBUFS,
 * which has revoked.
 */
static int zc_keys_charge(struct zc_peer *peer, u64 bytes, u64 all)
{
	u64 limit = (u64)READ_ONCE(keys_mib) << 20;
	struct zc_net *net = peer->net;
	struct zc_text why = {};
	int err = -ENOBUFS;

	zc_text_add(&why, "node %u: keys of buffers of node %u: ", net->comm->layout.node,
		    peer->node);
	spin_lock(&net->comm->lock);
	if (all > limit || net->keys_bytes + bytes > limit) {
		zc_text_add(&why, "limit (module parameter keys_mib) %llu KiB, ", limit >> 10);
		zc_text_add(&why, "in use %llu KiB, needed %llu KiB", net->keys_bytes >> 10,
			    all >> 10);
	} else {
		err = zc_net_charge(net, bytes, &why);
	}
	if (err)
		zc_comm_fail(net->comm, err, &why);
	else
		net->keys_bytes += bytes;
	spin_unlock(&net->comm->lock);
	return err;
}

/* Under zc_comm.lock */
static void zc_keys_uncharge(struct zc_net *net, u64 bytes)
{
	net->keys_bytes -= bytes;
	zc_net_uncharge(net, bytes);
}

static struct zc_keys *zc_keys_make(struct zc_peer *peer, const struct zc_keys_part *part)
{
	struct zc_net *net = peer->net;
	struct zc_keys *keys;
	int err;

	err = zc_keys_charge(peer, zc_keys_bytes(net, 0), zc_keys_bytes(net, part->chunks));
	if (err)
		return ERR_PTR(err);
	keys = kzalloc(sizeof(*keys), GFP_KERNEL_ACCOUNT);
	spin_lock(&net->comm->lock);
	if (keys) {
		keys->region = part->region;
		keys->bytes = part->bytes;
		keys->chunk_bytes = part->chunk_bytes;
		keys->chunks = part->chunks;
		keys->rails = net->rails;
		rb_add(&keys->node, &peer->keys, zc_keys_less);
	} else {
		zc_keys_uncharge(net, zc_keys_bytes(net, 0));
	}
	spin_unlock(&net->comm->lock);
	return keys ?: ERR_PTR(-ENOMEM);
}

/*
 * Room for the keys of @chunks chunks. It grows with what has come, not with what is announced, and
 * nobody looks at keys before all have come.
 */
static int zc_keys_grow(struct zc_peer *peer, struct zc_keys *keys, u32 chunks)
{
	struct zc_net *net = peer->net;
	u32 room = min(max(chunks, 2 * keys->room), keys->chunks);
	u64 more = zc_keys_bytes(net, room) - zc_keys_bytes(net, keys->room);
	struct zc_key *grown;
	int err;

	if (chunks <= keys->room)
		return 0;
	err = zc_keys_charge(peer, more, zc_keys_bytes(net, keys->chunks));
	if (err)
		return err;
	grown = kvmalloc_array(room, keys->rails * sizeof(*grown), GFP_KERNEL_ACCOUNT);
	if (!grown) {
		spin_lock(&net->comm->lock);
		zc_keys_uncharge(net, more);
		spin_unlock(&net->comm->lock);
		return -ENOMEM;
	}
	if (keys->heard)
		memcpy(grown, keys->keys, keys->heard * keys->rails * sizeof(*grown));
	kvfree(keys->keys);
	keys->keys = grown;
	keys->room = room;
	return 0;
}

static void zc_keys_destroy(struct zc_keys *keys)
{
	kvfree(keys->keys);
	kfree(keys);
}

static bool zc_keys_continue(const struct zc_keys *keys, const struct zc_keys_part *part)
{
	return keys->heard == part->first && keys->chunks == part->chunks &&
	       keys->bytes == part->bytes && keys->chunk_bytes == part->chunk_bytes;
}

/**
 * zc_keys_heard - a peer tells keys of a region of its
 * @peer: the peer
 * @payload: of a KEYS message
 * @length: its bytes
 *
 * Context: under poll_lock, without zc_comm.lock; may sleep.
 * Return: 0; -EPROTO: no node that keeps the rules sends that; -ENOBUFS: too many keys, which
 * has revoked; -ENOMEM.
 */
int zc_keys_heard(struct zc_peer *peer, const void *payload, u32 length)
{
	struct zc_keys_part part;
	struct zc_keys *keys;
	u32 i, at, n;
	int err;

	lockdep_assert_held(&peer->net->poll_lock);
	if (zc_keys_parse(payload, length, peer->net->rails, &part))
		return -EPROTO;
	spin_lock(&peer->net->comm->lock);
	keys = zc_keys_of(peer, part.region);
	spin_unlock(&peer->net->comm->lock);
	if (!keys) {
		keys = zc_keys_make(peer, &part);
		if (IS_ERR(keys))
			return PTR_ERR(keys);
	}
	if (!zc_keys_continue(keys, &part))
		return -EPROTO;
	err = zc_keys_grow(peer, keys, part.first + part.count);
	if (err)
		return err;
	n = part.count * keys->rails;
	at = keys->heard * keys->rails;
	for (i = 0; i < n; i++)
		keys->keys[at + i] = (struct zc_key) {
			.address = le64_to_cpu(part.keys[i].address),
			.key = le32_to_cpu(part.keys[i].key),
		};
	/* Whoever looks sees the keys, too */
	smp_store_release(&keys->heard, keys->heard + part.count);
	return 0;
}

/* A region of a peer is gone; under poll_lock, or by who alone knows the peer */
void zc_keys_forget(struct zc_peer *peer, u64 region)
{
	struct zc_keys *keys;

	spin_lock(&peer->net->comm->lock);
	keys = zc_keys_of(peer, region);
	if (keys) {
		rb_erase(&keys->node, &peer->keys);
		zc_keys_uncharge(peer->net, zc_keys_bytes(peer->net, keys->room));
	}
	spin_unlock(&peer->net->comm->lock);
	if (keys)
		zc_keys_destroy(keys);
}

/* The net is being closed: nobody looks any more */
void zc_keys_free(struct zc_peer *peer)
{
	struct zc_keys *keys, *next;

	rbtree_postorder_for_each_entry_safe(keys, next, &peer->keys, node)
		zc_keys_destroy(keys);
}

/**
 * zc_keys_find - where to write in a peer's region
 * @peer: the peer; zc_comm.lock is held
 * @region: its region
 * @offset: first byte in it
 * @bytes: bytes
 * @rail: on this rail
 * @write: gets address, key, and bytes: as many as one key is good for
 *
 * Return: these bytes; 0: the peer has not told of so much.
 */
u32 zc_keys_find(struct zc_peer *peer, u64 region, u64 offset, u64 bytes, u32 rail,
		 struct zc_write *write)
{
	const struct zc_keys *keys = zc_keys_of(peer, region);
	const struct zc_key *key;
	u32 chunk, in_chunk;

	lockdep_assert_held(&peer->net->comm->lock);
	/* Pairs with zc_keys_heard(): all keys are there then */
	if (!keys || smp_load_acquire(&keys->heard) != keys->chunks)
		return 0;
	if (offset >= keys->bytes || bytes > keys->bytes - offset)
		return 0;
	chunk = offset / keys->chunk_bytes;
	in_chunk = offset % keys->chunk_bytes;
	key = &keys->keys[(size_t)chunk * keys->rails + rail];
	write->address = key->address + in_chunk;
	write->key = key->key;
	write->bytes = min_t(u64, bytes, keys->chunk_bytes - in_chunk);
	return write->bytes;
}
