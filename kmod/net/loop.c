// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fabric "loop": the nodes are communicators of the same kernel.
 *
 * All of the network runs here but RDMA itself: messages, credits, grants, keys, failure. So
 * everything can be tried on one machine without any device, and under the kernel's checkers.
 * ``loop:N`` has N rails, which differ in nothing.
 *
 * A post waits at its half-link until the receiver polls, which copies what is written into its
 * regions, and takes the message in. Then the sender is told by its own poll. What is
 * written is checked as a device would check it: against the key, which names a region,
 * and its bounds; an access that is wrong breaks the half-link.
 *
 * Locking. zc_loops_lock (a mutex) protects the list of nets, and half-links while they are
 * made: who holds it may look at all nets. zc_half_link.busy (a mutex) is held while a post is
 * taken in, and to end a side. zc_loop_lock (a spinlock) protects all lists of posts. The order
 * is zc_loops_lock -> zc_comm.lock -> zc_loop_lock, and poll_lock -> busy -> zc_comm.lock.
 */
#include <linux/err.h>
#include <linux/kstrtox.h>
#include <linux/slab.h>

#include "net.h"

/* Small, so that pieces of regions with different keys are what is usual */
#define ZC_LOOP_CHUNK_PAGES 16

/* Bytes copied between two chances for others to run */
#define ZC_LOOP_COPY SZ_64K

/* Posts, at most, that one poll looks at */
#define ZC_LOOP_BUDGET 64

static DEFINE_MUTEX(zc_loops_lock);
static DEFINE_SPINLOCK(zc_loop_lock);
static LIST_HEAD(zc_loops);
static u64 zc_loop_last;

/**
 * struct zc_loop - a net
 * @link: in the list of all
 * @net: the net
 * @id: its address
 * @ready: half-links to this node that have posts
 * @done: posts of this node that are done
 * @exposing: regions that are exposed, which nobody has been told yet
 * @copying: held while something is written into regions
 * @regions: by key
 * @last_key: the last one given
 */
struct zc_loop {
	struct list_head link;
	struct zc_net *net;
	u64 id;
	struct list_head ready;
	struct list_head done;
	struct list_head exposing;
	struct mutex copying;		/* writing into regions */
	struct xarray regions;
	u32 last_key;
};

/**
 * struct zc_half_link - a half-link
 * @ref: its two sides
 * @busy: see the head of this file
 * @out: the sender's side; NULL: ended
 * @in: the receiver's side; NULL: ended
 * @posts: to be taken in
 * @ready: in zc_loop.ready of the receiver
 */
struct zc_half_link {
	refcount_t ref;
	struct mutex busy;		/* taking in, ending */
	struct zc_out *out;
	struct zc_in *in;
	struct list_head posts;
	struct list_head ready;
};

/**
 * struct zc_loop_region - a region
 * @link: in zc_loop.exposing
 * @region: the region
 * @key: its key, of all chunks and rails
 * @exposed: peers may write
 */
struct zc_loop_region {
	struct list_head link;
	struct zc_region *region;
	u32 key;
	bool exposed;
};

static struct zc_loop *zc_loop_of_out(const struct zc_out *out)
{
	return out->peer->net->fab;
}

static struct zc_loop *zc_loop_of_in(const struct zc_in *in)
{
	return in->peer->net->fab;
}

/* ---- nets ---- */

static int zc_loop_open(struct zc_net *net, const char *rails, struct zc_text *why)
{
	struct zc_loop *loop;

	net->rails = 1;
	if (*rails && (kstrtou32(rails, 10, &net->rails) || !net->rails ||
		       net->rails > ZC_MAX_RAILS)) {
		zc_text_add(why, "loop:%s: allowed are 1 to %u rails", rails, ZC_MAX_RAILS);
		return -EINVAL;
	}
	loop = kzalloc(sizeof(*loop), GFP_KERNEL_ACCOUNT);
	if (!loop) {
		zc_text_add(why, "no kernel memory for a network");
		return -ENOMEM;
	}
	loop->net = net;
	INIT_LIST_HEAD(&loop->ready);
	INIT_LIST_HEAD(&loop->done);
	INIT_LIST_HEAD(&loop->exposing);
	mutex_init(&loop->copying);
	xa_init_flags(&loop->regions, XA_FLAGS_ALLOC1);
	net->fab = loop;
	mutex_lock(&zc_loops_lock);
	loop->id = ++zc_loop_last;
	list_add(&loop->link, &zc_loops);
	mutex_unlock(&zc_loops_lock);
	return 0;
}

static void zc_loop_close(struct zc_net *net)
{
	struct zc_loop *loop = net->fab;

	mutex_lock(&zc_loops_lock);
	list_del(&loop->link);
	mutex_unlock(&zc_loops_lock);
	WARN_ON_ONCE(!xa_empty(&loop->regions));
	xa_destroy(&loop->regions);
	mutex_destroy(&loop->copying);
	kfree(loop);
}

static u32 zc_loop_address(struct zc_net *net, void *buf)
{
	struct zc_loop *loop = net->fab;
	__le64 id = cpu_to_le64(loop->id);

	memcpy(buf, &id, sizeof(id));
	return sizeof(id);
}

/* ---- half-links ---- */

static void zc_half_link_put(struct zc_half_link *half)
{
	if (!refcount_dec_and_test(&half->ref))
		return;
	mutex_destroy(&half->busy);
	kfree(half);
}

/* The net with that address, if it is the other node's, or an ERR_PTR; under zc_loops_lock */
static struct zc_loop *zc_loop_find(const struct zc_out *out, const void *address,
				    struct zc_text *why)
{
	const struct zc_comm *comm = out->peer->net->comm;
	struct zc_loop *loop;
	__le64 id;

	memcpy(&id, address, sizeof(id));
	list_for_each_entry(loop, &zc_loops, link) {
		if (loop->id != le64_to_cpu(id))
			continue;
		if (memcmp(loop->net->comm->key, comm->key, sizeof(comm->key))) {
			zc_text_add(why, "it does not know the key");
			return ERR_PTR(-EKEYREJECTED);
		}
		if (loop->net->comm->layout.node == out->peer->node)
			return loop;
		zc_text_add(why, "at that address is node %u", loop->net->comm->layout.node);
		return ERR_PTR(-EHOSTUNREACH);
	}
	zc_text_add(why, "there is no communicator %llu in this kernel", le64_to_cpu(id));
	return ERR_PTR(-EHOSTUNREACH);
}

/* Under zc_loops_lock. Return: 0 or a negative errno. */
static int zc_loop_join(struct zc_out *out, struct zc_loop *loop, struct zc_text *why)
{
	struct zw_settings settings;
	struct zc_half_link *half;
	int err;

	zc_net_settings(out->peer->net, &settings);
	err = zc_net_settings_check(loop->net, &settings, why);
	if (err)
		return err;
	half = kzalloc(sizeof(*half), GFP_KERNEL);
	if (!half) {
		zc_text_add(why, "no kernel memory for a connection");
		return -ENOMEM;
	}
	refcount_set(&half->ref, 2);
	mutex_init(&half->busy);
	INIT_LIST_HEAD(&half->posts);
	INIT_LIST_HEAD(&half->ready);
	half->out = out;
	half->in = zc_in_accept(loop->net, out->peer->net->comm->layout.node);
	if (!half->in) {
		zc_text_add(why, "it takes no further part");
		kfree(half);
		return -ECONNREFUSED;
	}
	out->fab = half;
	half->in->fab = half;
	zc_in_up(half->in);
	return 0;
}

static void zc_loop_connect(struct zc_out *out, const void *address)
{
	struct zc_text why = {};
	struct zc_loop *loop;
	int err;

	mutex_lock(&zc_loops_lock);
	loop = zc_loop_find(out, address, &why);
	err = IS_ERR(loop) ? PTR_ERR(loop) : zc_loop_join(out, loop, &why);
	mutex_unlock(&zc_loops_lock);
	if (err)
		zc_out_down(out, err, &why);
	else
		zc_out_up(out);
}

/* The next post of a half-link that is done, in or not; NULL: none. @status: how it ended. */
static struct zc_post *zc_half_link_answered(struct zc_half_link *half, struct zc_out *out,
					     int *status)
{
	struct zc_post *post, *found = NULL;

	spin_lock(&zc_loop_lock);
	list_for_each_entry(post, &zc_loop_of_out(out)->done, link)
		if (post->out == out) {
			*status = (int)post->priv[0];
			found = post;
			break;
		}
	if (!found) {
		*status = -ECONNRESET;
		found = list_first_entry_or_null(&half->posts, struct zc_post, link);
	}
	if (found)
		list_del(&found->link);
	spin_unlock(&zc_loop_lock);
	return found;
}

static void zc_loop_disconnect(struct zc_out *out)
{
	struct zc_half_link *half = out->fab;
	struct zc_net *net = out->peer->net;
	struct zc_post *post;
	int status;

	if (!half)
		return;
	mutex_lock(&half->busy);
	half->out = NULL;
	if (half->in)
		zc_in_down(half->in, 0);
	mutex_unlock(&half->busy);
	/* Who polls may be answering some of them */
	mutex_lock(&net->poll_lock);
	while ((post = zc_half_link_answered(half, out, &status)))
		zc_post_done(post, status);
	mutex_unlock(&net->poll_lock);
	out->fab = NULL;
	zc_half_link_put(half);
}

static void zc_loop_drop(struct zc_in *in)
{
	struct zc_text why = {};
	struct zc_half_link *half;

	/* If it is just being made, it is whole then */
	mutex_lock(&zc_loops_lock);
	half = in->fab;
	mutex_unlock(&zc_loops_lock);
	if (!half)
		return;
	mutex_lock(&half->busy);
	spin_lock(&zc_loop_lock);
	half->in = NULL;
	list_del_init(&half->ready);
	spin_unlock(&zc_loop_lock);
	zc_text_add(&why, "the other node has ended the connection");
	if (half->out)
		zc_out_down(half->out, -ECONNRESET, &why);
	mutex_unlock(&half->busy);
	in->fab = NULL;
	zc_half_link_put(half);
}

/* ---- regions ---- */

static int zc_loop_map(struct zc_region *region)
{
	struct zc_loop *loop = region->net->fab;
	struct zc_loop_region *own;
	int err;

	own = kzalloc(sizeof(*own), GFP_KERNEL_ACCOUNT);
	if (!own)
		return -ENOMEM;
	own->region = region;
	err = xa_alloc_cyclic(&loop->regions, &own->key, own, xa_limit_32b, &loop->last_key,
			      GFP_KERNEL);
	if (err < 0) {
		kfree(own);
		return err;
	}
	region->fab = own;
	return 0;
}

static void zc_loop_unmap(struct zc_region *region)
{
	struct zc_loop *loop = region->net->fab;
	struct zc_loop_region *own = region->fab;

	mutex_lock(&loop->copying);
	xa_erase(&loop->regions, own->key);
	mutex_unlock(&loop->copying);
	region->fab = NULL;
	kfree(own);
}

static void zc_loop_expose(struct zc_region *region, struct zc_out *out)
{
	struct zc_loop *loop = region->net->fab;
	struct zc_loop_region *own = region->fab;

	spin_lock(&zc_loop_lock);
	own->exposed = true;
	list_add_tail(&own->link, &loop->exposing);
	spin_unlock(&zc_loop_lock);
	zc_net_event(region->net);
}

static void zc_loop_key(struct zc_region *region, u32 rail, u32 chunk, u64 *address, u32 *key)
{
	struct zc_loop_region *own = region->fab;

	*address = (u64)chunk * ZC_LOOP_CHUNK_PAGES << PAGE_SHIFT;
	*key = own->key;
}

/* ---- sending and taking in ---- */

/* Put a half-link where its receiver finds it; under zc_loop_lock */
static void zc_half_link_ready(struct zc_half_link *half)
{
	if (!half->in || list_empty(&half->posts) || !list_empty(&half->ready))
		return;
	list_add_tail(&half->ready, &zc_loop_of_in(half->in)->ready);
	zc_net_event(half->in->peer->net);
}

static int zc_loop_post(struct zc_post *post)
{
	struct zc_half_link *half = post->out->fab;

	spin_lock(&zc_loop_lock);
	list_add_tail(&post->link, &half->posts);
	zc_half_link_ready(half);
	spin_unlock(&zc_loop_lock);
	return 0;
}

/* What a device does. Return: 0, or -EREMOTEIO: this access is not allowed. */
static int zc_loop_write(struct zc_loop *loop, const struct zc_write *write)
{
	struct zc_loop_region *own = xa_load(&loop->regions, write->key);
	u64 done, n;

	lockdep_assert_held(&loop->copying);
	if (!own || !own->exposed || write->address > own->region->npages << PAGE_SHIFT ||
	    write->bytes > (own->region->npages << PAGE_SHIFT) - write->address)
		return -EREMOTEIO;
	for (done = 0; done < write->bytes; done += n) {
		n = min_t(u64, write->bytes - done, ZC_LOOP_COPY);
		memcpy(own->region->base + write->address + done,
		       write->region->base + write->offset + done, n);
		cond_resched();
	}
	return 0;
}

/* Carry a post out at the receiver. Return: 0 or a negative errno. */
static int zc_loop_carry(struct zc_in *in, const struct zc_post *post)
{
	struct zc_loop *loop = zc_loop_of_in(in);
	struct zc_inbox *box = NULL;
	int err = 0;
	u32 i;

	if (post->length) {
		box = zc_inbox_alloc(GFP_KERNEL);
		if (!box)
			return -ENOMEM;
		memcpy(box->message, post->message, post->length);
	}
	mutex_lock(&loop->copying);
	for (i = 0; i < post->nwrites && !err; i++)
		err = zc_loop_write(loop, &post->writes[i]);
	mutex_unlock(&loop->copying);
	if (box && !err)
		zc_in_message(in, box, post->length);
	else
		zc_inbox_free(box);
	return err;
}

static struct zc_post *zc_half_link_next(struct zc_half_link *half)
{
	struct zc_post *post;

	spin_lock(&zc_loop_lock);
	post = list_first_entry_or_null(&half->posts, struct zc_post, link);
	if (post)
		list_del(&post->link);
	zc_half_link_ready(half);
	spin_unlock(&zc_loop_lock);
	return post;
}

/* Take in the next post of a half-link, which the caller has got */
static void zc_half_link_take(struct zc_half_link *half)
{
	struct zc_text why = {};
	struct zc_post *post = NULL;
	int err;

	mutex_lock(&half->busy);
	if (half->in && half->out)
		post = zc_half_link_next(half);
	if (post) {
		err = zc_loop_carry(half->in, post);
		spin_lock(&zc_loop_lock);
		post->priv[0] = err;
		list_add_tail(&post->link, &zc_loop_of_out(half->out)->done);
		spin_unlock(&zc_loop_lock);
		zc_net_event(half->out->peer->net);
		if (err) {
			zc_text_add(&why, "remote access error");
			zc_out_down(half->out, err, &why);
			zc_in_down(half->in, err);
		}
	}
	mutex_unlock(&half->busy);
	zc_half_link_put(half);
}

/* What there is to do next; all three NULL: nothing */
struct zc_loop_event {
	struct zc_post *post;
	struct zc_loop_region *exposed;
	struct zc_half_link *half;
};

static struct zc_loop_event zc_loop_next(struct zc_loop *loop)
{
	struct zc_loop_event event = {};

	spin_lock(&zc_loop_lock);
	event.post = list_first_entry_or_null(&loop->done, struct zc_post, link);
	event.exposed = list_first_entry_or_null(&loop->exposing, struct zc_loop_region, link);
	event.half = list_first_entry_or_null(&loop->ready, struct zc_half_link, ready);
	if (event.post)
		list_del(&event.post->link);
	if (event.exposed)
		list_del(&event.exposed->link);
	if (event.half) {
		list_del_init(&event.half->ready);
		refcount_inc(&event.half->ref);
	}
	spin_unlock(&zc_loop_lock);
	return event;
}

static int zc_loop_poll(struct zc_net *net)
{
	struct zc_loop_event event;
	int n;

	for (n = 0; n < ZC_LOOP_BUDGET; n++) {
		event = zc_loop_next(net->fab);
		if (!event.post && !event.exposed && !event.half)
			break;
		if (event.post)
			zc_post_done(event.post, (int)event.post->priv[0]);
		if (event.exposed)
			zc_region_exposed(event.exposed->region, 0);
		if (event.half)
			zc_half_link_take(event.half);
	}
	return n;
}

const struct zc_fabric zc_fabric_loop = {
	.name = "loop",
	.chunk_pages = ZC_LOOP_CHUNK_PAGES,
	.open = zc_loop_open,
	.close = zc_loop_close,
	.address = zc_loop_address,
	.connect = zc_loop_connect,
	.disconnect = zc_loop_disconnect,
	.drop = zc_loop_drop,
	.map = zc_loop_map,
	.unmap = zc_loop_unmap,
	.expose = zc_loop_expose,
	.key = zc_loop_key,
	.post = zc_loop_post,
	.poll = zc_loop_poll,
};
