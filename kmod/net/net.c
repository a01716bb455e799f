// SPDX-License-Identifier: GPL-2.0-only
/*
 * A communicator's network: opened with it, told the addresses of the other nodes, polled,
 * ticked, and closed.
 *
 * Polling. Whoever waits for a result polls (zc_net_poll()); else an event of the fabric queues
 * poll_work. Both let the engine run after they have taken something in.
 *
 * Ticks. The engine's clock is moved by tick_work, on a workqueue of high priority, and leaves out
 * time in which this node did not run: a tick that is late by more than an interval moves it by
 * one interval only, after what has come meanwhile has been taken in. So a node that was not
 * scheduled, or suspended, does not take all others for dead.
 *
 * Failure. CLOSE of the engine is carried out by close_work: nothing more is sent but control
 * messages; when those are out (they carry the text of the failure, which others are to
 * learn before they see writes fail), half-links with posts that are not answered are ended, and
 * all regions are unmapped. From then on the memory of this node is its own. The other half-links
 * stay for control messages: survivors may still settle their verdicts.
 *
 * Leaving. When a rank leaves in good order, nothing more can be called on this node: BYE
 * tells how far it has taken part. The end of its half-links is no failure then. The net is
 * closed when the BYE has been delivered, or some time has passed.
 */
#include <linux/jiffies.h>
#include <linux/kconfig.h>
#include <linux/ktime.h>
#include <linux/memcontrol.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "net.h"

static uint slots = 8;
module_param(slots, uint, 0644);
MODULE_PARM_DESC(slots, "slots of memory for each receiving step, 2 to 64: units that a sender may be ahead; the same on all nodes");

static uint slice_kib = 64;
module_param(slice_kib, uint, 0644);
MODULE_PARM_DESC(slice_kib, "KiB of a vector that are sent and folded at a time, 4 to 16384; the same on all nodes");

static uint eager_bytes = 3840;
module_param(eager_bytes, uint, 0644);
MODULE_PARM_DESC(eager_bytes, "units of at most so many bytes go in messages, copied, others are written in place; the same on all nodes");

static uint depth = 32;
module_param(depth, uint, 0644);
MODULE_PARM_DESC(depth, "messages that a node keeps posted for each other one, 6 to 1024; the same on all nodes");

static uint heartbeat_ms = 2000;
module_param(heartbeat_ms, uint, 0644);
MODULE_PARM_DESC(heartbeat_ms, "time-out, 100 to 3600000: a node that says nothing for so long is taken for dead; 0: never");

/* Units of a step that may be begun and not done */
#define ZC_NET_INFLIGHT 8

/* A node says something so many times within the heartbeat time-out */
#define ZC_NET_BEATS 5

/* Without heartbeats: how long a node may take to answer, and the interval of ticks */
#define ZC_NET_ANSWER_NS (10ULL * NSEC_PER_SEC)
#define ZC_NET_TICK_NS NSEC_PER_SEC

/* How long control messages are waited for */
#define ZC_NET_FLUSH_MS 500

/* Rounds of polling before others get a chance */
#define ZC_NET_ROUNDS 64

/* How long BYE is waited for, at most */
#define ZC_NET_BYE_MS 10000

/* Takes in what comes, and ticks: nothing that waits long */
static struct workqueue_struct *zc_net_wq;
/* Carries out CLOSE, which verdicts wait for */
static struct workqueue_struct *zc_net_close_wq;

/* ---- settings ---- */

static int zc_setting(const char *name, u32 value, u32 least, u32 most, struct zc_text *why)
{
	if (value >= least && value <= most)
		return 0;
	zc_text_add(why, "module parameter %s is %u, allowed are %u to %u", name, value, least,
		    most);
	return -EINVAL;
}

static int zc_net_configure(struct zc_net_config *config, struct zc_text *why)
{
	u32 room = ZC_MESSAGE_MAX - sizeof(struct zw_header) - sizeof(struct zw_desc);
	u32 kib = READ_ONCE(slice_kib), ms = READ_ONCE(heartbeat_ms);
	int err;

	config->slots = READ_ONCE(slots);
	config->eager_bytes = READ_ONCE(eager_bytes);
	config->depth = READ_ONCE(depth);
	err = zc_setting("slots", config->slots, 2, ZC_ENGINE_MAX_SLOTS, why) ?:
	      zc_setting("slice_kib", kib, 4, 16384, why) ?:
	      zc_setting("eager_bytes", config->eager_bytes, 0, room, why) ?:
	      zc_setting("depth", config->depth, 2 * ZC_RESERVE + 2, 1024, why) ?:
	      zc_setting("heartbeat_ms", ms ?: 100, 100, 3600000, why);
	config->slice_bytes = kib << 10;
	config->timeout_ns = (u64)ms * NSEC_PER_MSEC;
	config->silence_ns = config->timeout_ns / ZC_NET_BEATS;
	config->tick_ns = config->silence_ns ?: ZC_NET_TICK_NS;
	return err;
}

/* What must be the same on all nodes */
void zc_net_settings(const struct zc_net *net, struct zw_settings *settings)
{
	*settings = (struct zw_settings) {
		.version = cpu_to_le32(ZW_VERSION),
		.nodes = cpu_to_le32(net->comm->layout.nodes),
		.window = cpu_to_le32(ZC_WINDOW),
		.slots = cpu_to_le32(net->config.slots),
		.slice_bytes = cpu_to_le32(net->config.slice_bytes),
		.eager_bytes = cpu_to_le32(net->config.eager_bytes),
		.rails = cpu_to_le32(net->rails),
		.depth = cpu_to_le32(net->config.depth),
	};
}

/**
 * zc_net_settings_check - are another node's settings the same?
 * @net: the net
 * @theirs: the other node's
 * @why: gets the first one that differs
 *
 * Return: 0, or -EPROTO.
 */
int zc_net_settings_check(const struct zc_net *net, const struct zw_settings *theirs,
			  struct zc_text *why)
{
	static const char * const names[] = {
		"protocol version", "number of nodes", "window", "slots", "slice in bytes",
		"eager_bytes", "number of rails", "depth",
	};
	const __le32 *other = (const __le32 *)theirs;
	struct zw_settings own;
	u32 i;

	static_assert(sizeof(own) == ARRAY_SIZE(names) * sizeof(*other));
	zc_net_settings(net, &own);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		u32 mine = le32_to_cpu(((const __le32 *)&own)[i]);

		if (mine == le32_to_cpu(other[i]))
			continue;
		zc_text_add(why, "%s: %u on one of both, %u on the other", names[i], mine,
			    le32_to_cpu(other[i]));
		return -EPROTO;
	}
	return 0;
}

/* Dimensions of the engine of a communicator with several nodes */
struct zc_engine_config zc_net_engine_config(const struct zc_comm *comm)
{
	const struct zc_net_config *config = &comm->net->config;

	return (struct zc_engine_config) {
		.node = comm->layout.node,
		.nodes = comm->layout.nodes,
		.window = ZC_WINDOW,
		.steps = ZC_PLAN_STEPS,
		.links = comm->layout.nodes - 1,
		.slots = config->slots,
		.inflight = ZC_NET_INFLIGHT,
		.bits = 4 * round_up(comm->layout.nodes, 64),
		.silence = config->silence_ns,
		.timeout = config->timeout_ns,
		.patience = 2 * (config->timeout_ns ?: ZC_NET_ANSWER_NS),
	};
}

/* ---- polling ---- */

/* Let the engine do what comes of what it has been told */
static void zc_net_run(struct zc_net *net)
{
	spin_lock(&net->comm->lock);
	/* The fabric listens before there is an engine */
	if (!net->comm->engine) {
		spin_unlock(&net->comm->lock);
		return;
	}
	zc_run_check(net->comm);
	zc_run(net->comm, ZC_NO_SEQ, false);
}

/* By a kernel thread: what it allocates is the user's who has made the net */
static int zc_net_drain(struct zc_net *net)
{
	struct mem_cgroup *before = set_active_memcg(net->memcg);
	int n;

	mutex_lock(&net->poll_lock);
	n = net->fabric->poll(net);
	mutex_unlock(&net->poll_lock);
	set_active_memcg(before);
	return n;
}

/* Take in what has come, unless somebody else does; the engine runs later */
void zc_net_take_in(struct zc_net *net)
{
	if (!mutex_trylock(&net->poll_lock))
		return;
	net->fabric->poll(net);
	mutex_unlock(&net->poll_lock);
	zc_net_event(net);
}

/* Something has happened: poll. Any context. */
void zc_net_event(struct zc_net *net)
{
	queue_work(zc_net_wq, &net->poll_work);
}

static void zc_net_poll_fn(struct work_struct *work)
{
	struct zc_net *net = container_of(work, struct zc_net, poll_work);
	int rounds = 0;

	/* What is left of the fabric must not be asked */
	if (READ_ONCE(net->deaf))
		return;
	while (zc_net_drain(net)) {
		zc_net_run(net);
		if (++rounds == ZC_NET_ROUNDS) {
			zc_net_event(net);
			return;
		}
	}
	zc_peers_judge(net);
	zc_net_run(net);
}

/**
 * zc_net_poll - take in what has come, unless somebody else does
 * @net: the net
 *
 * Context: process context, maybe under the ring's lock; may sleep.
 * Return: what has been taken in.
 */
int zc_net_poll(struct zc_net *net)
{
	int n;

	if (!mutex_trylock(&net->poll_lock))
		return 0;
	n = net->fabric->poll(net);
	mutex_unlock(&net->poll_lock);
	if (n)
		zc_net_run(net);
	return n;
}

/* ---- ticks ---- */

static void zc_net_tick_fn(struct work_struct *work)
{
	struct zc_net *net = container_of(work, struct zc_net, tick_work.work);
	u64 interval = net->config.tick_ns, passed;
	ktime_t now;
	int i;

	/* What has been said while this node slept counts */
	for (i = 0; i < ZC_NET_ROUNDS && zc_net_drain(net); i++)
		zc_net_run(net);
	spin_lock(&net->comm->lock);
	now = ktime_get();
	passed = ktime_to_ns(ktime_sub(now, net->ticked));
	net->ticked = now;
	net->clock += passed > 2 * interval ? interval : passed;
	/* Others are silent then, and have no operation with this node that could be late */
	if (!net->left)
		zc_engine_tick(net->comm->engine, net->clock);
	/* A half-link may have waited to be judged */
	if (net->broken)
		zc_net_event(net);
	spin_unlock(&net->comm->lock);
	zc_net_run(net);
	queue_delayed_work(zc_net_wq, &net->tick_work, nsecs_to_jiffies(interval));
}

/* ---- failure ---- */

/* CLOSE: make sure that no peer can write here any more; under zc_comm.lock */
void zc_net_shut(struct zc_net *net)
{
	lockdep_assert_held(&net->comm->lock);
	net->shut = true;
	/* When the net is being closed no operation is left, and it sees to the rest */
	if (net->closing)
		zc_engine_closed(net->comm->engine);
	else
		queue_work(zc_net_close_wq, &net->close_work);
}

/* More half-links are to end than did with CLOSE; under zc_comm.lock */
void zc_net_close_again(struct zc_net *net)
{
	if (net->shut && !net->closing)
		queue_work(zc_net_close_wq, &net->close_work);
}

/* Wait until all messages are out */
static void zc_net_flush(struct zc_net *net, u32 ms)
{
	wait_event_timeout(net->waitq, zc_peers_quiet(net), msecs_to_jiffies(ms));
}

static void zc_net_close_fn(struct work_struct *work)
{
	struct zc_net *net = container_of(work, struct zc_net, close_work);

	spin_lock(&net->comm->lock);
	zc_peers_drop_data(net);
	zc_regions_drop_posts(net);
	spin_unlock(&net->comm->lock);
	zc_net_flush(net, ZC_NET_FLUSH_MS);
	zc_peers_disconnect(net, READ_ONCE(net->device_gone));
	zc_regions_unmap(net);
	spin_lock(&net->comm->lock);
	zc_engine_closed(net->comm->engine);
	spin_unlock(&net->comm->lock);
	zc_net_run(net);
}

/* All other nodes are out of reach: nobody can settle verdicts with them any more */
static void zc_net_lose_all(struct zc_net *net)
{
	u32 node;

	spin_lock(&net->comm->lock);
	for (node = 0; node < net->comm->layout.nodes; node++)
		zc_engine_lost(net->comm->engine, node);
	spin_unlock(&net->comm->lock);
}

/**
 * zc_net_device_gone - a device that the net uses is about to go
 * @net: the net
 * @device: its name
 *
 * The communicator is revoked. Soon after that all half-links have been ended and all regions
 * unmapped, for which the fabric waits by itself.
 */
void zc_net_device_gone(struct zc_net *net, const char *device)
{
	spin_lock(&net->comm->lock);
	net->device_gone = true;
	zc_comm_failf(net->comm, -ENODEV, "node %u: device %s is gone", net->comm->layout.node,
		      device);
	/* It may have been closed before, with half-links that stayed */
	zc_net_close_again(net);
	spin_unlock(&net->comm->lock);
	if (!net->comm->engine)
		return;
	/* Others are told why, first */
	zc_net_run(net);
	zc_net_lose_all(net);
	zc_net_run(net);
}

/* ---- leaving ---- */

/* Tell one that is connected; under zc_comm.lock */
void zc_net_bye(struct zc_net *net, struct zc_peer *peer)
{
	struct zc_post *post;

	if (peer->left || (!peer->in.up && peer->out.state == ZC_OUT_IDLE))
		return;
	post = zc_message_new(net, peer->node, ZW_BYE, 0);
	if (!post)
		return;
	((struct zw_header *)post->message)->retired =
		cpu_to_le64(zc_engine_retired(net->comm->engine));
	zc_out_queue(post);
}

/**
 * zc_net_leave - this node takes no further part in what is called from now on
 * @net: the net, its communicator locked
 */
void zc_net_leave(struct zc_net *net)
{
	u32 node;

	lockdep_assert_held(&net->comm->lock);
	if (net->left || !zc_net_sends(net))
		return;
	for (node = 0; node < net->comm->layout.nodes; node++)
		if (net->peers[node])
			zc_net_bye(net, net->peers[node]);
	/* If there was no memory for one, that is a failure, which all must hear of */
	net->left = zc_net_sends(net);
}

/* ---- opening and closing ---- */

static const struct zc_fabric * const zc_fabrics[] = { &zc_fabric_rdma, &zc_fabric_loop };

/* The fabric of a string "NAME" or "NAME:RAILS"; @rails: gets what follows the name */
static const struct zc_fabric *zc_fabric_find(const char *option, const char **rails)
{
	size_t n = strcspn(option, ":");
	u32 i;

	*rails = option[n] ? option + n + 1 : "";
	for (i = 0; i < ARRAY_SIZE(zc_fabrics); i++)
		if (strlen(zc_fabrics[i]->name) == n && !memcmp(zc_fabrics[i]->name, option, n))
			return zc_fabrics[i];
	return NULL;
}

static void zc_net_init_fields(struct zc_net *net, struct zc_comm *comm)
{
	net->comm = comm;
	mutex_init(&net->poll_lock);
	mutex_init(&net->region_lock);
	INIT_WORK(&net->poll_work, zc_net_poll_fn);
	INIT_DELAYED_WORK(&net->tick_work, zc_net_tick_fn);
	INIT_WORK(&net->close_work, zc_net_close_fn);
	net->memcg = get_mem_cgroup_from_mm(current->mm);
	init_waitqueue_head(&net->waitq);
	INIT_LIST_HEAD(&net->regions);
	INIT_LIST_HEAD(&net->free_regions);
	INIT_LIST_HEAD(&net->to_connect);
}

/* Nothing is polled any more, whoever asks for it */
void zc_net_deafen(struct zc_net *net)
{
	WRITE_ONCE(net->deaf, true);
	cancel_work_sync(&net->poll_work);
}

static void zc_net_free(struct zc_net *net)
{
	/* The fabric calls nothing back any more */
	cancel_work_sync(&net->poll_work);
	zc_peers_free(net);
	zc_user_exit(net);
	mem_cgroup_put(net->memcg);
	kvfree(net->addresses);
	mutex_destroy(&net->region_lock);
	mutex_destroy(&net->poll_lock);
	kfree(net);
}

/**
 * zc_net_open - make a communicator's network
 * @comm: the communicator, which nobody else knows; it has several nodes
 * @fabric: "NAME" or "NAME:RAILS"
 * @why: gets the text of a failure
 *
 * Other nodes may connect from now on. This node does after zc_net_peers().
 *
 * Return: 0, then @comm->net is set; or a negative errno.
 */
int zc_net_open(struct zc_comm *comm, const char *fabric, struct zc_text *why)
{
	const struct zc_fabric *found;
	struct zc_net *net;
	const char *rails;
	int err;

	found = zc_fabric_find(fabric, &rails);
	if (!found) {
		zc_text_add(why, "fabric %s: there are rdma and loop", fabric);
		return -ENODEV;
	}
	net = kzalloc(sizeof(*net), GFP_KERNEL_ACCOUNT);
	if (!net)
		goto no_memory;
	zc_net_init_fields(net, comm);
	net->fabric = found;
	net->peers = kvcalloc(comm->layout.nodes, sizeof(*net->peers), GFP_KERNEL_ACCOUNT);
	if (!net->peers || zc_user_enter(net)) {
		zc_net_free(net);
		goto no_memory;
	}
	err = zc_net_configure(&net->config, why);
	if (!err)
		err = found->open(net, rails, why);
	if (err) {
		zc_net_free(net);
		return err;
	}
	comm->net = net;
	return 0;

no_memory:
	zc_text_add(why, "no kernel memory for a network of %u nodes", comm->layout.nodes);
	return -ENOMEM;
}

/**
 * zc_net_address - how other nodes reach this one
 * @net: the net
 * @buf: gets at most ZCOLL_ADDRESS_MAX bytes
 *
 * Return: how many.
 */
u32 zc_net_address(struct zc_net *net, void *buf)
{
	return net->fabric->address(net, buf);
}

/**
 * zc_net_peers - take the addresses of all nodes
 * @net: the net
 * @addresses: kvmalloc'ed, ZCOLL_ADDRESS_MAX bytes for each; the net's from now on
 * @why: gets the text of a failure, of which there is none
 *
 * The first time counts. What has waited for addresses is sent; heartbeats begin.
 *
 * Return: 0.
 */
int zc_net_peers(struct zc_net *net, u8 *addresses, struct zc_text *why)
{
	spin_lock(&net->comm->lock);
	if (!net->addresses) {
		swap(net->addresses, addresses);
		zc_peers_pump(net);
		net->ticked = ktime_get();
		queue_delayed_work(zc_net_wq, &net->tick_work, 0);
	}
	spin_unlock(&net->comm->lock);
	kvfree(addresses);
	return 0;
}

/*
 * Connect a half-link, in a thread that may sleep; many at once, but not so many that other users'
 * have to wait. Under zc_comm.lock.
 */
void zc_net_connect(struct zc_out *out)
{
	struct zc_net *net = out->peer->net;

	if (net->connecting == ZC_CONNECTS) {
		list_add_tail(&out->connect_link, &net->to_connect);
		return;
	}
	net->connecting++;
	zc_user_connect(net->user, &out->connect_work);
}

/* One is connected, or will not be: the next one */
void zc_net_connect_ended(struct zc_net *net)
{
	struct zc_out *out;

	spin_lock(&net->comm->lock);
	net->connecting--;
	out = list_first_entry_or_null(&net->to_connect, struct zc_out, connect_link);
	if (out) {
		list_del_init(&out->connect_link);
		zc_net_connect(out);
	}
	spin_unlock(&net->comm->lock);
}

/* Nodes this one is connected to; under zc_comm.lock */
u32 zc_net_connected(const struct zc_net *net)
{
	u32 node, n = 0;

	for (node = 0; node < net->comm->layout.nodes; node++)
		n += net->peers[node] &&
		     (net->peers[node]->in.up || net->peers[node]->out.state == ZC_OUT_UP);
	return n;
}

/* How long the last messages are waited for */
static u32 zc_net_patience(const struct zc_net *net)
{
	u64 ms = div_u64(net->config.timeout_ns, NSEC_PER_MSEC);

	/* Who has not got a BYE takes this node for dead */
	if (zc_engine_error(net->comm->engine))
		return ZC_NET_FLUSH_MS;
	return clamp_t(u64, ms, ZC_NET_FLUSH_MS, ZC_NET_BYE_MS);
}

/**
 * zc_net_close - take a communicator's network apart
 * @comm: the communicator; it has no endpoints any more
 *
 * Context: may sleep, for a bounded time.
 */
void zc_net_close(struct zc_comm *comm)
{
	struct zc_net *net = comm->net;

	/* If it has failed in its last moment, nobody has told others yet */
	if (comm->engine) {
		spin_lock(&comm->lock);
		zc_net_leave(net);
		spin_unlock(&comm->lock);
		zc_net_run(net);
		zc_net_flush(net, zc_net_patience(net));
	}
	spin_lock(&comm->lock);
	net->closing = true;
	spin_unlock(&comm->lock);
	cancel_delayed_work_sync(&net->tick_work);
	cancel_work_sync(&net->close_work);
	zc_peers_disconnect(net, true);
	/* One may still be in the middle of that, though nobody waits for its grant */
	wait_event(net->waitq, zc_regions_settled(net));
	/* What strangers do does not matter any more */
	zc_net_deafen(net);
	zc_places_free(comm);
	zc_regions_destroy(net);
	net->fabric->close(net);
	zc_net_free(net);
	comm->net = NULL;
}

int __init zc_net_init(void)
{
	int err;

	err = zc_message_init();
	if (err)
		return err;
	err = -ENOMEM;
	zc_net_wq = alloc_workqueue("zcoll_net", WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!zc_net_wq)
		goto out_message;
	zc_net_close_wq = alloc_workqueue("zcoll_close", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!zc_net_close_wq)
		goto out_wq;
	err = zc_rdma_init();
	if (err)
		goto out_close_wq;
	return 0;

out_close_wq:
	destroy_workqueue(zc_net_close_wq);
out_wq:
	destroy_workqueue(zc_net_wq);
out_message:
	zc_message_uninit();
	return err;
}

void zc_net_uninit(void)
{
	zc_rdma_uninit();
	destroy_workqueue(zc_net_close_wq);
	destroy_workqueue(zc_net_wq);
	zc_message_uninit();
}
