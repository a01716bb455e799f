// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers and half-links: connecting, the queue of what is to be sent, credits.
 *
 * A half-link is connected when something is to be sent on it for the first time, and the
 * node's address is known. Posts wait in its queue, in order, for the connection, for a
 * credit, and for room in the fabric.
 *
 * Credits. A receiver keeps config.depth inboxes posted for each half-link, and posts a new one
 * for each message that it takes in; it takes all in at once, and never waits for anything in
 * that. So a message may be sent while fewer than depth have been sent beyond those that the
 * receiver has told it has taken in. Every message tells that for the other direction, and when
 * more than half the depth is untold a CREDIT does.
 *
 * It cannot come to a standstill, for the last inboxes are kept back: ordinary messages leave two,
 * a CREDIT leaves one for the half-link's urgent ABORT, of which there is one only. Suppose that
 * a node A may not send even a CREDIT to B, and B none to A, with all that was sent taken in. Then
 * beyond what ordinary messages may use A has sent a CREDIT that B's last message did not take
 * into account (the ABORT alone leaves room for one), and that told of more than half of depth
 * messages B had not known to be taken in. Since B took it in, B has fewer than half of depth
 * messages out, and may send: a contradiction. And while one of them may, a CREDIT that is due
 * is sent, which sets the other one free.
 *
 * Failure. A half-link that breaks is judged only when all that had come before has been
 * taken in (zc_peers_judge(), by poll_work): if that was a BYE, it is no failure. The peer's BYE
 * comes by the peer's half-link, which is another connection: while that is up it is waited for,
 * for a heartbeat's interval. Until then
 * posts that it did not send stay in the queue.
 */
#include <linux/slab.h>

#include "net.h"

static void zc_out_connect_fn(struct work_struct *work);

static void zc_peer_init(struct zc_peer *peer, struct zc_net *net, u32 node)
{
	peer->net = net;
	peer->node = node;
	peer->out.peer = peer;
	INIT_LIST_HEAD(&peer->out.queue);
	INIT_WORK(&peer->out.connect_work, zc_out_connect_fn);
	INIT_LIST_HEAD(&peer->out.connect_link);
	peer->in.peer = peer;
	peer->keys = RB_ROOT;
}

/**
 * zc_peer - find or make a peer
 * @net: the net, its communicator locked
 * @node: another node
 *
 * Return: the peer, or NULL: no memory, which revokes.
 */
struct zc_peer *zc_peer(struct zc_net *net, u32 node)
{
	struct zc_peer *peer;

	lockdep_assert_held(&net->comm->lock);
	if (net->peers[node])
		return net->peers[node];
	peer = kzalloc(sizeof(*peer), GFP_ATOMIC | __GFP_NOWARN);
	if (!peer) {
		zc_comm_failf(net->comm, -ENOMEM, "no kernel memory to speak to node %u", node);
		return NULL;
	}
	zc_peer_init(peer, net, node);
	net->peers[node] = peer;
	return peer;
}

/* A node has sent what no node that keeps the rules sends; under zc_comm.lock */
void zc_peer_misbehaved(struct zc_peer *peer, const char *fmt, ...)
{
	struct zc_text text = {};
	va_list args;

	zc_text_add(&text, "node %u breaks the protocol: ", peer->node);
	va_start(args, fmt);
	text.len += vscnprintf(text.buf + text.len, sizeof(text.buf) - text.len, fmt, args);
	va_end(args);
	zc_comm_fail(peer->net->comm, -EPROTO, &text);
}

/* Is an operation one of some? Under zc_comm.lock. */
bool zc_seqs_has(const struct zc_seqs *seqs, u64 seq)
{
	return seq - seqs->from < 64 && seqs->bits >> (seq - seqs->from) & 1;
}

/*
 * Put an operation of the window among some; what has been retired is not spoken of any
 * more. Return: it was there already. Under zc_comm.lock.
 */
bool zc_seqs_add(const struct zc_comm *comm, struct zc_seqs *seqs, u64 seq)
{
	u64 base = zc_engine_retired(comm->engine);
	u64 bit = 1ULL << (seq - base);
	bool there;

	seqs->bits = base - seqs->from < 64 ? seqs->bits >> (base - seqs->from) : 0;
	seqs->from = base;
	there = seqs->bits & bit;
	seqs->bits |= bit;
	return there;
}

/* ---- posts ---- */

/**
 * zc_post_alloc - make a post
 * @net: the net, its communicator locked
 * @node: to
 * @length: bytes of its message
 * @nwrites: room for so many writes
 *
 * Return: the post, or NULL: no memory, which revokes.
 */
struct zc_post *zc_post_alloc(struct zc_net *net, u32 node, u32 length, u32 nwrites)
{
	struct zc_peer *peer = zc_peer(net, node);
	size_t head = ALIGN(struct_size((struct zc_post *)NULL, message, length), 8);
	struct zc_post *post;

	if (!peer)
		return NULL;
	post = kmalloc(head + nwrites * sizeof(*post->writes), GFP_ATOMIC | __GFP_NOWARN);
	if (!post) {
		zc_comm_failf(net->comm, -ENOMEM, "no kernel memory for a message to node %u",
			      node);
		return NULL;
	}
	memset(post, 0, sizeof(*post));
	post->out = &peer->out;
	post->length = length;
	if (nwrites)
		post->writes = (struct zc_write *)((u8 *)post + head);
	return post;
}

/* It is sent, or never will be: answer it, and free it; under zc_comm.lock */
void zc_post_drop(struct zc_post *post)
{
	struct zc_net *net = post->out->peer->net;

	lockdep_assert_held(&net->comm->lock);
	if (post->data) {
		zc_engine_done(net->comm->engine, post->action.seq, post->action.step,
			       post->action.unit);
		zc_net_event(net);
	}
	if (post->urgency == ZC_CREDIT)
		post->out->crediting = false;
	if (post->region)
		post->region->nposts--;
	kfree(post);
	/* Who waits looks under the same lock, after it has become active */
	if (waitqueue_active(&net->waitq))
		wake_up_all(&net->waitq);
}

/* ---- the queue ---- */

/* Does the queue of this half-link still lead anywhere? */
static bool zc_out_accepts(const struct zc_out *out)
{
	const struct zc_peer *peer = out->peer;

	if (peer->left || peer->net->closing)
		return false;
	return out->state != ZC_OUT_DOWN || peer->broken;
}

/* Drop all that waits; under zc_comm.lock */
void zc_out_drop(struct zc_out *out)
{
	struct zc_post *post, *next;

	list_for_each_entry_safe(post, next, &out->queue, link) {
		list_del(&post->link);
		zc_post_drop(post);
	}
}

/* Drop the posts in all queues that @drops says; under zc_comm.lock */
static void zc_peers_drop(struct zc_net *net,
			  bool (*drops)(const struct zc_post *post, const struct zc_region *region),
			  const struct zc_region *region)
{
	struct zc_post *post, *next;
	u32 node;

	for (node = 0; node < net->comm->layout.nodes; node++) {
		if (!net->peers[node])
			continue;
		list_for_each_entry_safe(post, next, &net->peers[node]->out.queue, link) {
			if (!drops(post, region))
				continue;
			list_del(&post->link);
			zc_post_drop(post);
		}
	}
}

static bool zc_post_is_data(const struct zc_post *post, const struct zc_region *region)
{
	return post->data || post->region;
}

/* After failure nobody wants data any more, nor grants of places; under zc_comm.lock */
void zc_peers_drop_data(struct zc_net *net)
{
	zc_peers_drop(net, zc_post_is_data, NULL);
}

static bool zc_post_names(const struct zc_post *post, const struct zc_region *region)
{
	return post->region == region;
}

/* Posts that name a region are not needed any more; under zc_comm.lock */
void zc_peers_drop_posts(struct zc_region *region)
{
	zc_peers_drop(region->net, zc_post_names, region);
}

/* Send what can be sent to anybody; under zc_comm.lock */
void zc_peers_pump(struct zc_net *net)
{
	u32 node;

	for (node = 0; node < net->comm->layout.nodes; node++)
		if (net->peers[node])
			zc_out_pump(&net->peers[node]->out);
}

static void zc_out_connect(struct zc_out *out)
{
	struct zc_net *net = out->peer->net;

	/* Before that, zc_net_peers() will have it tried again */
	if (!net->addresses)
		return;
	out->state = ZC_OUT_CONNECTING;
	zc_net_connect(out);
}

static void zc_out_connect_fn(struct work_struct *work)
{
	struct zc_out *out = container_of(work, struct zc_out, connect_work);
	struct zc_peer *peer = out->peer;
	struct zc_net *net = peer->net;

	net->fabric->connect(out, net->addresses + (size_t)peer->node * ZCOLL_ADDRESS_MAX);
	zc_net_connect_ended(net);
}

/* How many messages the receiver may have been sent beyond those it has told of, and one more */
static u32 zc_out_limit(const struct zc_out *out, enum zc_urgency urgency)
{
	u32 depth = out->peer->net->config.depth;

	switch (urgency) {
	case ZC_ABORT:
		return depth;
	case ZC_CREDIT:
		return depth - !out->aborting;
	default:
		return depth - ZC_RESERVE;
	}
}

/* Is more than half the depth taken in and untold? */
static bool zc_in_owes(const struct zc_in *in)
{
	return in->received - in->credited > in->peer->net->config.depth / 2;
}

/* Give a post to the fabric. Return: false: it has no room. */
static bool zc_out_post(struct zc_out *out, struct zc_post *post)
{
	struct zw_header *header = (struct zw_header *)post->message;
	struct zc_peer *peer = out->peer;

	list_del(&post->link);
	header->credits = cpu_to_le32(peer->in.received);
	/* By other rails than this one, what goes before may come after it */
	if (post->length && header->type == ZW_BYE)
		header->unit = cpu_to_le64(out->sent);
	if (peer->net->fabric->post(post)) {
		list_add(&post->link, &out->queue);
		return false;
	}
	out->posted++;
	out->owed += post->data;
	if (post->region) {
		post->region->nposts--;
		post->region = NULL;
	}
	if (!post->length)
		return true;
	out->sent++;
	peer->net->messages++;
	peer->in.credited = peer->in.received;
	if (post->urgency == ZC_CREDIT)
		out->crediting = false;
	return true;
}

/* Send what can be sent; under zc_comm.lock */
void zc_out_pump(struct zc_out *out)
{
	struct zc_post *post;

	lockdep_assert_held(&out->peer->net->comm->lock);
	if (list_empty(&out->queue))
		return;
	if (out->state == ZC_OUT_IDLE)
		zc_out_connect(out);
	while (out->state == ZC_OUT_UP && !list_empty(&out->queue)) {
		post = list_first_entry(&out->queue, struct zc_post, link);
		/* It waits elsewhere then, or something goes before it */
		if (post->region && !zc_region_ready(post->region, post))
			continue;
		/* What a message before it has told is not told again: see the head of this file */
		if (!zc_post_fill(post) ||
		    (post->urgency == ZC_CREDIT && !zc_in_owes(&out->peer->in))) {
			list_del(&post->link);
			zc_post_drop(post);
			continue;
		}
		if (post->length && out->sent - out->taken >= zc_out_limit(out, post->urgency))
			break;
		if (!zc_out_post(out, post))
			break;
	}
}

/* Queue a post, which may be gone then; under zc_comm.lock */
void zc_out_queue(struct zc_post *post)
{
	struct zc_out *out = post->out;

	if (!zc_out_accepts(out)) {
		zc_post_drop(post);
		return;
	}
	list_add_tail(&post->link, &out->queue);
	zc_out_pump(out);
}

/* Likewise, before all others; the caller calls zc_out_pump() */
void zc_out_queue_first(struct zc_post *post)
{
	if (zc_out_accepts(post->out))
		list_add(&post->link, &post->out->queue);
	else
		zc_post_drop(post);
}

/* The fabric has room again */
void zc_out_kick(struct zc_out *out)
{
	struct zc_comm *comm = out->peer->net->comm;

	spin_lock(&comm->lock);
	zc_out_pump(out);
	spin_unlock(&comm->lock);
}

/* ---- credits; under zc_comm.lock ---- */

/* The peer says that it has taken in so many messages. Return: false: that cannot be. */
bool zc_out_credited(struct zc_out *out, u32 taken)
{
	/* Messages of several rails may overtake each other */
	if ((s32)(taken - out->taken) <= 0)
		return true;
	if (taken - out->taken > out->sent - out->taken)
		return false;
	out->taken = taken;
	zc_out_pump(out);
	return true;
}

/* A message has been taken in: tell the peer in time, if no other message does */
void zc_peer_credit(struct zc_peer *peer)
{
	struct zc_net *net = peer->net;
	struct zc_post *post;

	if (!zc_in_owes(&peer->in) || peer->out.crediting || !zc_out_accepts(&peer->out))
		return;
	post = zc_message_new(net, peer->node, ZW_CREDIT, 0);
	if (!post)
		return;
	post->urgency = ZC_CREDIT;
	peer->out.crediting = true;
	zc_out_queue_first(post);
	zc_out_pump(&peer->out);
}

/*
 * Does the peer keep to its credits? If not, it might have this node say any number of things that
 * it never takes in. So nothing that it says counts any more; its half-links end with CLOSE.
 */
bool zc_peer_in_credit(struct zc_peer *peer)
{
	struct zc_net *net = peer->net;

	if (peer->in.received - peer->in.credited <= net->config.depth)
		return true;
	zc_peer_misbehaved(peer, "more than %u messages that it had no credits for",
			   net->config.depth);
	peer->lost = true;
	WRITE_ONCE(peer->shunned, true);
	peer->out.state = ZC_OUT_DOWN;
	zc_engine_lost(net->comm->engine, peer->node);
	zc_out_drop(&peer->out);
	zc_net_close_again(net);
	return false;
}

/* ---- what a fabric calls back ---- */

/* A half-link has gone down: to be judged when what came before has been taken in */
static void zc_peer_broke(struct zc_peer *peer, int error, char *why)
{
	lockdep_assert_held(&peer->net->comm->lock);
	if (!peer->broken && !peer->lost) {
		peer->error = error;
		swap(peer->why, why);
	}
	if (!peer->broken) {
		peer->heard_out = false;
		peer->broke_at = ktime_get();
	}
	peer->broken = true;
	peer->net->broken = true;
	kfree(why);
	zc_net_event(peer->net);
	/* Nothing more goes out there that somebody might wait for */
	if (waitqueue_active(&peer->net->waitq))
		wake_up_all(&peer->net->waitq);
}

/*
 * The peer has shown that it knows the key: that counts as a message. To connect there and back,
 * one after the other, may take longer than the heartbeat time-out. Under zc_comm.lock.
 */
static void zc_peer_answered(struct zc_peer *peer)
{
	static const struct zc_msg alive = { .type = ZC_MSG_ALIVE };

	zc_engine_message(peer->net->comm->engine, peer->node, &alive);
}

/* The half-link is connected */
void zc_out_up(struct zc_out *out)
{
	struct zc_net *net = out->peer->net;

	spin_lock(&net->comm->lock);
	if (out->state == ZC_OUT_CONNECTING) {
		out->state = ZC_OUT_UP;
		out->was_up = true;
		zc_peer_answered(out->peer);
		zc_out_pump(out);
	}
	spin_unlock(&net->comm->lock);
}

/**
 * zc_out_down - the half-link cannot be connected, or has broken
 * @out: the half-link
 * @error: -EKEYREJECTED: the peer does not know the key, or we do not know its
 * @why: what has happened, without naming the node; or NULL
 */
void zc_out_down(struct zc_out *out, int error, const struct zc_text *why)
{
	struct zc_peer *peer = out->peer;
	char *what = kstrdup(why && why->len ? why->buf : "connection lost", GFP_KERNEL);

	spin_lock(&peer->net->comm->lock);
	if (out->was_up)
		error = -EHOSTDOWN;
	else if (error != -EKEYREJECTED)
		error = -EHOSTUNREACH;
	out->state = ZC_OUT_DOWN;
	zc_peer_broke(peer, error, what);
	spin_unlock(&peer->net->comm->lock);
}

/**
 * zc_in_accept - another node wants a half-link to this one, and knows the key
 * @net: the net
 * @node: another node
 *
 * Return: its half-link; NULL: not wanted.
 */
struct zc_in *zc_in_accept(struct zc_net *net, u32 node)
{
	struct zc_in *in = NULL;
	struct zc_peer *peer;

	if (node >= net->comm->layout.nodes || node == net->comm->layout.node)
		return NULL;
	spin_lock(&net->comm->lock);
	peer = net->closing || net->device_gone || !net->comm->engine ? NULL : zc_peer(net, node);
	if (peer && !peer->left && !peer->in.accepted) {
		in = &peer->in;
		in->accepted = true;
	}
	spin_unlock(&net->comm->lock);
	return in;
}

/* Its messages count from now on */
void zc_in_up(struct zc_in *in)
{
	struct zc_net *net = in->peer->net;

	spin_lock(&net->comm->lock);
	in->up = true;
	zc_peer_answered(in->peer);
	/* Those that came before have been told when this node left */
	if (net->left && !net->closing)
		zc_net_bye(net, in->peer);
	spin_unlock(&net->comm->lock);
}

/* Nothing comes from there any more; @error: 0: the other node has ended it */
void zc_in_down(struct zc_in *in, int error)
{
	struct zc_comm *comm = in->peer->net->comm;
	char *why = kasprintf(GFP_KERNEL, error ? "connection lost (error %d)" :
			      "connection ended", error);

	spin_lock(&comm->lock);
	in->up = false;
	zc_peer_broke(in->peer, -EHOSTDOWN, why);
	spin_unlock(&comm->lock);
}

/**
 * zc_post_done - a post is sent, or will never be
 * @post: the post; it is not the fabric's any more
 * @error: 0, or why not
 */
void zc_post_done(struct zc_post *post, int error)
{
	struct zc_out *out = post->out;
	struct zc_peer *peer = out->peer;
	struct zc_net *net = peer->net;

	spin_lock(&net->comm->lock);
	out->posted--;
	out->owed -= post->data;
	if (!error)
		net->bytes_written += post->written;
	if (error && zc_net_sends(net) && zc_out_accepts(out)) {
		/* What it means is not known before the half-link is judged */
		list_add(&post->link, &out->queue);
		out->state = ZC_OUT_DOWN;
		zc_peer_broke(peer, -EHOSTDOWN, NULL);
	} else if (!error && !post->length && zc_net_sends(net) && zc_out_accepts(out)) {
		/* The rest of a long unit */
		post->nwrites = 0;
		list_add(&post->link, &out->queue);
		zc_out_pump(out);
	} else {
		zc_post_drop(post);
	}
	spin_unlock(&net->comm->lock);
}

/* ---- judging, and the end ---- */

static void zc_peer_judge(struct zc_peer *peer)
{
	struct zc_net *net = peer->net;

	peer->broken = false;
	peer->out.state = ZC_OUT_DOWN;
	/* To who has left none says BYE */
	if (!peer->left && !net->left && !net->closing) {
		peer->lost = true;
		zc_comm_failf(net->comm, peer->error, "node %u %s: %s", peer->node,
			      peer->error == -EHOSTDOWN ? "is gone" : "cannot be reached",
			      peer->why ?: "connection lost");
		zc_engine_lost(net->comm->engine, peer->node);
	}
	zc_out_drop(&peer->out);
}

/* May a BYE still come, by the peer's own half-link? */
static bool zc_peer_may_say_bye(const struct zc_peer *peer)
{
	return peer->in.up && !peer->left && !peer->net->left && !peer->net->closing &&
	       ktime_before(ktime_get(), ktime_add_ns(peer->broke_at,
						      peer->net->config.silence_ns));
}

/*
 * Judge the half-links that have gone down; by poll_work, when it has taken all in. What went
 * down after it had begun to is judged the next time.
 */
void zc_peers_judge(struct zc_net *net)
{
	bool again = false, look;
	u32 node;

	spin_lock(&net->comm->lock);
	look = net->broken;
	net->broken = false;
	for (node = 0; look && node < net->comm->layout.nodes; node++) {
		struct zc_peer *peer = net->peers[node];

		if (!peer || !peer->broken)
			continue;
		if (!peer->heard_out) {
			peer->heard_out = true;
			again = true;
		} else if (zc_peer_may_say_bye(peer)) {
			/* What comes makes an event, and so does the next tick */
			net->broken = true;
		} else {
			zc_peer_judge(peer);
		}
	}
	net->broken |= again;
	spin_unlock(&net->comm->lock);
	if (again)
		zc_net_event(net);
}

/* Is all out that can be expected to get out? */
bool zc_peers_quiet(const struct zc_net *net)
{
	bool quiet = true;
	u32 node;

	spin_lock(&net->comm->lock);
	for (node = 0; node < net->comm->layout.nodes && quiet; node++) {
		const struct zc_peer *peer = net->peers[node];

		if (!peer || peer->lost || peer->left || peer->out.state == ZC_OUT_DOWN ||
		    (peer->out.state == ZC_OUT_IDLE && !net->addresses))
			continue;
		quiet = list_empty(&peer->out.queue) && !peer->out.posted;
	}
	spin_unlock(&net->comm->lock);
	return quiet;
}

static void zc_out_end(struct zc_out *out, bool all)
{
	struct zc_net *net = out->peer->net;
	bool begun, waits = false;

	spin_lock(&net->comm->lock);
	begun = !out->ended && out->state != ZC_OUT_IDLE &&
		(all || out->owed || out->state == ZC_OUT_DOWN);
	if (begun) {
		out->ended = true;
		out->state = ZC_OUT_DOWN;
		waits = !list_empty(&out->connect_link);
		list_del_init(&out->connect_link);
	}
	spin_unlock(&net->comm->lock);
	if (!begun)
		return;
	if (net->fabric->hurry)
		net->fabric->hurry(out);
	/* If its connecting was still to come, the fabric knows nothing of it */
	if (cancel_work_sync(&out->connect_work))
		zc_net_connect_ended(net);
	else if (!waits)
		net->fabric->disconnect(out);
	spin_lock(&net->comm->lock);
	zc_out_drop(out);
	spin_unlock(&net->comm->lock);
}

static void zc_in_end(struct zc_in *in)
{
	struct zc_net *net = in->peer->net;
	bool ends;

	spin_lock(&net->comm->lock);
	ends = in->accepted && !in->ended;
	in->ended |= ends;
	in->up &= !ends;
	spin_unlock(&net->comm->lock);
	if (ends)
		net->fabric->drop(in);
}

/**
 * zc_peers_disconnect - end half-links
 * @net: the net
 * @all: all of them, in both directions; else those that are down or shunned, and those that have
 *	not answered for what concerns users' memory. Other messages may take their time: they
 *	settle verdicts.
 *
 * Context: may sleep; by close_work, or after it.
 */
void zc_peers_disconnect(struct zc_net *net, bool all)
{
	u32 node;

	for (node = 0; node < net->comm->layout.nodes; node++) {
		struct zc_peer *peer = READ_ONCE(net->peers[node]);

		if (!peer)
			continue;
		zc_out_end(&peer->out, all);
		if (all || READ_ONCE(peer->shunned))
			zc_in_end(&peer->in);
	}
}

void zc_peers_free(struct zc_net *net)
{
	u32 node;

	for (node = 0; net->peers && node < net->comm->layout.nodes; node++) {
		struct zc_peer *peer = net->peers[node];

		if (!peer)
			continue;
		spin_lock(&net->comm->lock);
		zc_out_drop(&peer->out);
		spin_unlock(&net->comm->lock);
		zc_keys_free(peer);
		kfree(peer->why);
		kfree(peer);
	}
	kvfree(net->peers);
}
