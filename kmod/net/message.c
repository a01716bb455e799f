// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages: what the engine wants to be sent is put together, and what comes, taken apart by
 * parse.c, is held against what this node knows (wire.h).
 *
 * Out. A unit of at most config.eager_bytes goes in its message, copied, and is answered at
 * once. A longer one is written to where the receiver's GRANT said, its landing, piece by piece
 * of what lies in a row here and has one key there; after the last write goes the
 * message, and the unit is answered when all has been sent. Each operation is described in the
 * first message of it on a half-link.
 *
 * In. Whatever a peer sends, it harms its own communicator only: each field is checked before it
 * is used, what is kept is bounded, and what breaks the rules revokes the communicator
 * with the name of the node that did. Messages come one at a time, under zc_net.poll_lock.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "net.h"
#include "../place.h"

static uint inbox_mib = 64;
module_param(inbox_mib, uint, 0644);
MODULE_PARM_DESC(inbox_mib, "memory of messages of a communicator that have come before they were wanted, at most, MiB");

/* Memory of such messages is charged in steps, which stay for the next ones */
#define ZC_INBOX_ROOM SZ_1M

static struct kmem_cache *zc_inbox_cache;

int __init zc_message_init(void)
{
	zc_inbox_cache = kmem_cache_create("zcoll_inbox", ZC_INBOX_BYTES, ZC_INBOX_BYTES,
					   SLAB_ACCOUNT, NULL);
	return zc_inbox_cache ? 0 : -ENOMEM;
}

void zc_message_uninit(void)
{
	kmem_cache_destroy(zc_inbox_cache);
}

struct zc_inbox *zc_inbox_alloc(gfp_t gfp)
{
	struct zc_inbox *box = kmem_cache_alloc(zc_inbox_cache, gfp);

	if (box)
		memset(box, 0, sizeof(*box));
	return box;
}

/* NULL is allowed */
void zc_inbox_free(struct zc_inbox *box)
{
	if (!box)
		return;
	if (box->net)
		atomic64_sub(ZC_INBOX_BYTES, &box->net->inbox_bytes);
	kmem_cache_free(zc_inbox_cache, box);
}

/* It is in no list any more; under zc_comm.lock */
void zc_grant_free(struct zc_net *net, struct zc_grant *grant)
{
	net->nlandings--;
	kfree(grant);
}

/* ---- out ---- */

static struct zw_header *zc_header(struct zc_post *post)
{
	return (struct zw_header *)post->message;
}

/**
 * zc_message_new - begin a message
 * @net: the net, its communicator locked
 * @node: to
 * @type: enum zc_msg_type or enum zw_type
 * @length: bytes of its payload, which are the caller's to fill
 *
 * Return: a post, or NULL: no memory, which revokes.
 */
struct zc_post *zc_message_new(struct zc_net *net, u32 node, u8 type, u32 length)
{
	struct zc_post *post;

	post = zc_post_alloc(net, node, sizeof(struct zw_header) + length, 0);
	if (!post)
		return NULL;
	*zc_header(post) = (struct zw_header) {
		.type = type, .length = cpu_to_le16(length),
	};
	return post;
}

static void zc_header_fill(struct zw_header *header, const struct zc_msg *msg, u8 flags,
			   u32 length)
{
	*header = (struct zw_header) {
		.type = msg->type,
		.flags = flags,
		.length = cpu_to_le16(length),
		.step = cpu_to_le32(msg->step),
		.open = cpu_to_le32(msg->open),
		.status = cpu_to_le32((u32)msg->status),
		.seq = cpu_to_le64(msg->seq),
		.unit = cpu_to_le64(msg->unit),
		.fingerprint = cpu_to_le64(msg->fingerprint),
		.retired = cpu_to_le64(msg->retired),
	};
}

static void *zc_desc_fill(void *at, const struct zc_desc *desc)
{
	*(struct zw_desc *)at = (struct zw_desc) {
		.collective = cpu_to_le16(desc->collective),
		.dtype = desc->dtype,
		.op = desc->op,
		.flags = cpu_to_le32(desc->flags),
		.root = cpu_to_le32(desc->root),
		.rank = cpu_to_le32(desc->rank),
		.count = cpu_to_le64(desc->count),
		.plan = cpu_to_le64(desc->plan),
	};
	return at + sizeof(struct zw_desc);
}

/*
 * A message of an operation, described if the peer does not know it yet. @gap: bytes between
 * description and payload; @at: gets where they begin.
 */
static struct zc_post *zc_op_message_new(struct zc_peer *peer, const struct zc_op *op,
					 const struct zc_action *action, u8 flags, u32 gap,
					 u32 length, u32 nwrites, void **at)
{
	bool describes = !zc_seqs_add(peer->net->comm, &peer->described, action->seq) ||
			 flags & ZW_DESC;
	u32 head = sizeof(struct zw_header) + (describes ? sizeof(struct zw_desc) : 0);
	struct zc_post *post;

	post = zc_post_alloc(peer->net, peer->node, head + gap + length, nwrites);
	if (!post)
		return NULL;
	zc_header_fill(zc_header(post), &action->msg, flags | (describes ? ZW_DESC : 0), length);
	*at = zc_header(post) + 1;
	if (describes)
		*at = zc_desc_fill(*at, &op->desc);
	return post;
}

static u64 zc_unit_bytes(const struct zc_op *op, const struct zc_action *action)
{
	u64 elements = 0;
	u32 i;

	for (i = 0; i < action->npieces; i++)
		elements += action->piece[i].count;
	return elements * op->esize;
}

/* A unit that goes in its message */
static void zc_send_inline(struct zc_peer *peer, struct zc_op *op,
			   const struct zc_action *action)
{
	u32 bytes = zc_unit_bytes(op, action);
	struct zc_net *net = peer->net;
	struct zc_post *post;
	void *at;

	post = zc_op_message_new(peer, op, action, 0, 0, bytes, 0, &at);
	if (post && bytes)
		zc_place_copy_out(net->comm, op, action, at);
	if (post) {
		net->bytes_inline += bytes;
		zc_out_queue(post);
	}
	zc_engine_done(net->comm->engine, action->seq, action->step, action->unit);
}

static const struct zc_landing *zc_landing_find(const struct zc_op *op, u32 step, u64 unit)
{
	const struct zc_grant *grant;

	hlist_for_each_entry(grant, &op->landings[zc_op_hash(step, unit)], link)
		if (grant->landing.seq == op->seq && grant->landing.step == step &&
		    grant->landing.unit == unit)
			return &grant->landing;
	return NULL;
}

/* A unit that is written to where the peer has granted. Return: false: there it is not. */
static bool zc_send_written(struct zc_peer *peer, struct zc_op *op,
			    const struct zc_action *action)
{
	bool open = action->row->flags & ZCOLL_STEP_OPEN;
	const struct zc_landing *landing;
	struct zc_net *net = peer->net;
	struct zc_post *post;
	void *at;

	landing = zc_landing_find(op, action->step, open ? action->unit : 0);
	if (!landing) {
		zc_peer_misbehaved(peer, "it granted step %u without saying where to write",
				   action->step);
		return false;
	}
	post = zc_op_message_new(peer, op, action, 0, 0, 0, ZC_POST_WRITES, &at);
	if (!post)
		return false;
	post->rail = net->next_rail++ % net->rails;
	post->wait_length = post->length;
	post->unit_bytes = zc_unit_bytes(op, action);
	post->landing = *landing;
	post->action = *action;
	post->data = true;
	zc_out_queue(post);
	return true;
}

/**
 * zc_net_send - carry out a SEND
 * @net: the net, its communicator locked
 * @op: RUNNING operation
 * @action: what the engine wants; answered now or later
 */
void zc_net_send(struct zc_net *net, struct zc_op *op, const struct zc_action *action)
{
	struct zc_comm *comm = net->comm;
	struct zc_peer *peer = zc_net_sends(net) ? zc_peer(net, action->peer) : NULL;

	lockdep_assert_held(&comm->lock);
	if (peer && !peer->left && (!action->npieces || zc_place_small(op, action->step)))
		zc_send_inline(peer, op, action);
	else if (!peer || peer->left || !zc_send_written(peer, op, action))
		zc_engine_done(comm->engine, action->seq, action->step, action->unit);
}

/* Where in the peer's region a row of a unit goes */
static u64 zc_landing_offset(const struct zc_net *net, const struct zc_post *post,
			     const struct zc_op *op, const struct zc_span *span)
{
	const struct zc_landing *landing = &post->landing;
	const struct zc_action *action = &post->action;

	switch (landing->mode) {
	case ZW_SLOTS:
		return landing->origin + action->slot % net->config.slots * landing->stride +
		       span->at;
	case ZW_USER:
		return landing->origin + span->user;
	default:
		return landing->origin + action->offset * op->esize + span->at;
	}
}

/**
 * zc_post_fill - find the next writes of a post
 * @post: of a queue; zc_comm.lock is held
 *
 * Return: false: they cannot be made, which has revoked; true: it can be sent.
 */
bool zc_post_fill(struct zc_post *post)
{
	struct zc_peer *peer = post->out->peer;
	struct zc_comm *comm = peer->net->comm;
	u64 most = zc_net_post_bytes(peer->net);
	const struct zc_op *op;
	struct zc_write *write;
	struct zc_span span;
	u64 to;

	if (!post->data || post->nwrites)
		return true;
	op = zc_comm_op(comm, post->action.seq);
	post->written = 0;
	while (post->nwrites < ZC_POST_WRITES && post->at < post->unit_bytes &&
	       post->written < most) {
		if (WARN_ON_ONCE(!zc_place_span(comm, op, &post->action, post->at, &span)))
			return false;
		span.bytes = min(span.bytes, most - post->written);
		to = zc_landing_offset(peer->net, post, op, &span);
		write = &post->writes[post->nwrites];
		if (!zc_keys_find(peer, post->landing.region, to, span.bytes, post->rail, write)) {
			zc_peer_misbehaved(peer,
					   "it granted bytes %llu to %llu of region %llu, untold",
					   to, to + span.bytes, post->landing.region);
			return false;
		}
		write->region = span.region;
		write->offset = span.offset;
		post->at += write->bytes;
		post->written += write->bytes;
		post->nwrites++;
	}
	post->length = post->at == post->unit_bytes ? post->wait_length : 0;
	return true;
}

static void zc_landing_fill(struct zw_landing *wire, const struct zc_landing *landing)
{
	*wire = (struct zw_landing) {
		.region = cpu_to_le64(landing->region),
		.origin = cpu_to_le64(landing->origin),
		.stride = cpu_to_le32(landing->stride),
		.mode = landing->mode,
	};
}

/* A GRANT, with where to write what does not go in messages */
static struct zc_post *zc_tell_grant(struct zc_peer *peer, const struct zc_action *action)
{
	struct zc_comm *comm = peer->net->comm;
	const struct zc_op *op = zc_comm_op(comm, action->seq);
	struct zc_region *region;
	struct zc_landing landing;
	struct zc_post *post;
	u8 flags = 0;
	void *at;

	zc_place_landing(comm, op, action, &landing, &region);
	if (region)
		flags |= ZW_LANDING;
	/* If it has to wait for the region, others may overtake it */
	if (region && region->state != ZC_REGION_EXPOSED)
		flags |= ZW_DESC;
	post = zc_op_message_new(peer, op, action, flags, region ? sizeof(struct zw_landing) : 0,
				 0, 0, &at);
	if (!post || !region)
		return post;
	zc_landing_fill(at, &landing);
	zc_post_name(post, region);
	return post;
}

/* An ABORT, with the text of the failure: it is the same on all nodes */
static struct zc_post *zc_tell_abort(struct zc_peer *peer, const struct zc_action *action)
{
	struct zc_comm *comm = peer->net->comm;
	u32 length = strlen(comm->text);
	struct zc_post *post;

	post = zc_message_new(peer->net, peer->node, ZC_MSG_ABORT, length);
	if (!post)
		return NULL;
	zc_header_fill(zc_header(post), &action->msg, 0, length);
	memcpy(zc_header(post) + 1, comm->text, length);
	return post;
}

/*
 * A message that says nothing but that this node lives, and what it has retired, is not needed
 * while others wait to be sent: the last one says it, too. So a peer that takes nothing in
 * collects none.
 */
static bool zc_tell_along(struct zc_peer *peer, const struct zc_msg *msg)
{
	struct zc_post *last;

	if ((msg->type != ZC_MSG_ALIVE && msg->type != ZC_MSG_RETIRED) ||
	    list_empty(&peer->out.queue))
		return false;
	last = list_last_entry(&peer->out.queue, struct zc_post, link);
	if (zc_header(last)->type >= ZW_KEYS)
		return false;
	zc_header(last)->retired = cpu_to_le64(msg->retired);
	return true;
}

/**
 * zc_net_tell - carry out a TELL
 * @net: the net, its communicator locked
 * @action: what the engine wants; it is not answered
 */
void zc_net_tell(struct zc_net *net, const struct zc_action *action)
{
	struct zc_peer *peer = zc_peer(net, action->peer);
	struct zc_post *post = NULL;

	lockdep_assert_held(&net->comm->lock);
	/* After BYE nobody listens, nor watches */
	if (!peer || peer->left || net->left)
		return;
	if (zc_tell_along(peer, &action->msg))
		return;
	if (action->msg.type == ZC_MSG_ABORT) {
		post = zc_tell_abort(peer, action);
	} else if (action->msg.type != ZC_MSG_GRANT) {
		post = zc_message_new(net, peer->node, action->msg.type, 0);
		if (post)
			zc_header_fill(zc_header(post), &action->msg, 0, 0);
	} else if (zc_net_sends(net)) {
		post = zc_tell_grant(peer, action);
	}
	if (!post)
		return;
	if (action->msg.type != ZC_MSG_ABORT || peer->out.aborting) {
		zc_out_queue(post);
		return;
	}
	/* The first one goes by the inbox that is kept back for it */
	post->urgency = ZC_ABORT;
	peer->out.aborting = true;
	zc_out_queue_first(post);
	zc_out_pump(&peer->out);
}

/* Tell a node that an operation has been called, now, or when it has room for it */
static void zc_call_peer(struct zc_peer *peer, const struct zc_op *op)
{
	struct zc_action action = { .seq = op->seq, .msg = { .type = ZW_CALL, .seq = op->seq } };
	struct zc_post *post;
	void *at;

	if (zc_seqs_has(&peer->described, op->seq))
		return;
	if (op->seq > peer->retired && op->seq - peer->retired >= ZC_WINDOW) {
		zc_seqs_add(peer->net->comm, &peer->uncalled, op->seq);
		return;
	}
	post = zc_op_message_new(peer, op, &action, ZW_DESC, 0, 0, 0, &at);
	if (post)
		zc_out_queue(post);
}

/**
 * zc_net_call - tell nodes without ranks that they are to take part
 * @net: the net, its communicator locked
 * @op: RUNNING operation
 *
 * Such a node learns of an operation by its first message. Whoever has long units for it waits
 * for its grant, and sends none: so that is one of its own.
 */
void zc_net_call(struct zc_net *net, struct zc_op *op)
{
	const struct zcoll_plan *plan = op->plan->prog.plan;
	u32 root = zc_place_root(net->comm, op), turns, s, t;
	struct zc_peer *peer;
	struct zc_turn turn;
	u32 node;

	for (s = 0; s < plan->nsteps && net->comm->layout.members < net->comm->layout.nodes; s++) {
		const struct zcoll_step *step = &plan->steps[s];

		if (step->kind != ZCOLL_STEP_SEND || !zc_step_active(plan, step, op->v))
			continue;
		turns = step->flags & ZCOLL_STEP_OPEN ? step->repeat : 1;
		for (t = 0; t < turns; t++) {
			if (zc_step_turn(plan, step, op->v, t, &turn))
				continue;
			node = zc_plan_node(plan, root, turn.peer);
			peer = node >= net->comm->layout.members ? zc_peer(net, node) : NULL;
			if (peer)
				zc_call_peer(peer, op);
		}
	}
}

/* ---- in ---- */

/* May there be an operation of this number that is not over here? Under zc_comm.lock. */
static bool zc_message_in_window(const struct zc_comm *comm, const struct zc_message *m)
{
	u64 base = zc_engine_retired(comm->engine);
	const struct zc_op *op = zc_comm_op((struct zc_comm *)comm, m->msg.seq);

	if (comm->error || m->msg.seq < base || m->msg.seq - base >= ZC_WINDOW)
		return false;
	return op->state != ZC_OP_DONE || op->seq != m->msg.seq;
}

/* Landings that are kept, at most: those of all steps and OPEN units of all operations */
static u32 zc_landings_max(const struct zc_net *net)
{
	return ZC_WINDOW * (ZC_PLAN_STEPS + zc_net_engine_config(net->comm).bits);
}

/* Keep a landing until units are sent there. Return: it is the operation's now. */
static bool zc_grant_keep(struct zc_peer *peer, struct zc_grant *grant)
{
	const struct zc_landing *landing = &grant->landing;
	struct zc_net *net = peer->net;
	struct zc_op *op = zc_comm_op(net->comm, landing->seq);
	struct hlist_head *head = &op->landings[zc_op_hash(landing->step, landing->unit)];
	struct zc_grant *other;

	hlist_for_each_entry(other, head, link)
		/* Each GRANT of a step says it again */
		if (other->landing.step == landing->step && other->landing.unit == landing->unit)
			return false;
	if (net->nlandings >= zc_landings_max(net)) {
		zc_peer_misbehaved(peer, "it grants more than plans may have");
		return false;
	}
	net->nlandings++;
	hlist_add_head(&grant->link, head);
	return true;
}

/* More room for payloads that wait, charged in steps. Return: false: there is none: it revokes. */
static bool zc_inbox_grow(struct zc_net *net, u64 bytes)
{
	u64 limit = (u64)READ_ONCE(inbox_mib) << 20;
	struct zc_text why = {};
	int err = -ENOBUFS;

	if (bytes > limit)
		zc_text_add(&why, "limit (module parameter inbox_mib) %llu KiB, needed %llu KiB",
			    limit >> 10, bytes >> 10);
	else
		err = zc_net_charge(net, ZC_INBOX_ROOM, &why);
	if (err)
		zc_comm_failf(net->comm, err, "node %u: messages that wait: %s",
			      net->comm->layout.node, why.buf);
	else
		net->inbox_room += ZC_INBOX_ROOM;
	return !err;
}

/* Keep a payload until it is wanted. Return: it is the operation's now. */
static bool zc_inbox_keep(struct zc_peer *peer, struct zc_inbox *box,
			  const struct zc_message *m)
{
	struct zc_net *net = peer->net;
	struct zc_op *op = zc_comm_op(net->comm, m->msg.seq);
	struct hlist_head *head = &op->inboxes[zc_op_hash(m->msg.step, m->msg.unit)];
	u64 bytes = atomic64_read(&net->inbox_bytes) + ZC_INBOX_BYTES;
	struct zc_inbox *other;

	if (op->state == ZC_OP_RUNNING && op->seq == m->msg.seq &&
	    !zc_place_small(op, m->msg.step)) {
		zc_peer_misbehaved(peer, "a unit of step %u in its message, which is to be written",
				   m->msg.step);
		return false;
	}
	hlist_for_each_entry(other, head, link) {
		if (other->step != m->msg.step || other->unit != m->msg.unit)
			continue;
		zc_peer_misbehaved(peer, "unit %llu of step %u has come twice", m->msg.unit,
				   m->msg.step);
		return false;
	}
	if (bytes > net->inbox_room && !zc_inbox_grow(net, bytes))
		return false;
	atomic64_add(ZC_INBOX_BYTES, &net->inbox_bytes);
	box->net = net;
	box->seq = m->msg.seq;
	box->step = m->msg.step;
	box->unit = m->msg.unit;
	box->from = peer->node;
	box->offset = m->payload - box->message;
	box->length = m->length;
	hlist_add_head(&box->link, head);
	return true;
}

/* The failure that another node tells of becomes this one's, with the same words */
static void zc_message_abort(struct zc_peer *peer, const struct zc_message *m)
{
	struct zc_text text = {};

	if (m->length)
		zc_message_text(m, text.buf, sizeof(text.buf));
	else
		zc_text_add(&text, "node %u has given up", peer->node);
	zc_comm_fail(peer->net->comm, m->msg.status, &text);
}

/* The node takes no further part, and all that it had sent before has come */
static void zc_peer_leaves(struct zc_peer *peer)
{
	peer->left = true;
	zc_engine_left(peer->net->comm->engine, peer->node, peer->bye_retired);
	zc_out_drop(&peer->out);
}

/* On other rails what it sent before may still be on its way: all of that is DATA */
static void zc_message_bye(struct zc_peer *peer, const struct zc_message *m)
{
	u32 missing = (u32)m->msg.unit - (peer->in.received - 1);

	if (peer->bye || m->msg.unit > U32_MAX || missing > peer->net->config.depth) {
		zc_peer_misbehaved(peer, "it leaves twice, or after messages that have not come");
		return;
	}
	peer->bye = true;
	peer->bye_missing = missing;
	peer->bye_retired = m->msg.retired;
	if (!missing)
		zc_peer_leaves(peer);
}

/* A message of a node that has said BYE */
static void zc_message_late(struct zc_peer *peer, const struct zc_message *m)
{
	if (m->msg.type == ZC_MSG_DATA && !--peer->bye_missing)
		zc_peer_leaves(peer);
}

/* A node has ended more operations: those without ranks may be called again */
static void zc_message_retired(struct zc_peer *peer, u64 retired)
{
	struct zc_comm *comm = peer->net->comm;
	u64 uncalled = peer->uncalled.bits, from = peer->uncalled.from, seq;

	if (retired <= peer->retired)
		return;
	peer->retired = retired;
	/* Some may be put back, which moves @from */
	peer->uncalled.bits = 0;
	for (; uncalled && zc_net_sends(peer->net); uncalled &= uncalled - 1) {
		seq = from + __ffs64(uncalled);
		if (zc_comm_op(comm, seq)->seq == seq &&
		    zc_comm_op(comm, seq)->state == ZC_OP_RUNNING)
			zc_call_peer(peer, zc_comm_op(comm, seq));
	}
}

/* What the message says; @box and @grant become NULL if they are kept. Under zc_comm.lock. */
static void zc_message_take(struct zc_peer *peer, const struct zc_message *m,
			    struct zc_inbox **box, struct zc_grant **grant)
{
	bool operates = m->msg.type == ZC_MSG_DATA || m->msg.type == ZC_MSG_GRANT ||
			m->msg.type == ZW_CALL;
	struct zc_comm *comm = peer->net->comm;
	bool wanted = operates && zc_message_in_window(comm, m);

	if (wanted)
		zc_seqs_add(comm, &peer->heard, m->msg.seq);
	if (m->msg.type == ZW_BYE)
		zc_message_bye(peer, m);
	if (m->msg.type >= ZW_KEYS)
		return;
	zc_message_retired(peer, m->msg.retired);
	if (m->msg.type == ZC_MSG_ABORT)
		zc_message_abort(peer, m);
	if (m->msg.type == ZC_MSG_DATA && m->length && wanted && zc_inbox_keep(peer, *box, m))
		*box = NULL;
	if (m->flags & ZW_LANDING && wanted && zc_grant_keep(peer, *grant))
		*grant = NULL;
	zc_engine_message(comm->engine, peer->node, &m->msg);
	zc_run_check(comm);
	if (peer->bye)
		zc_message_late(peer, m);
}

/*
 * What has to be done without zc_comm.lock, before all else. Return: 0, or a negative errno, of
 * which -ENOBUFS has revoked.
 */
static int zc_message_prepare(struct zc_peer *peer, const struct zc_message *m,
			      struct zc_grant **grant)
{
	struct zc_comm *comm = peer->net->comm;
	bool wanted;
	int err = 0;

	if (m->msg.type == ZW_KEYS)
		err = zc_keys_heard(peer, m->payload, m->length);
	if (m->msg.type == ZW_FORGET)
		zc_keys_forget(peer, m->msg.unit);
	if (m->flags & ZW_LANDING) {
		*grant = kzalloc(sizeof(**grant), GFP_KERNEL_ACCOUNT);
		if (!*grant)
			return -ENOMEM;
		(*grant)->landing = m->landing;
	}
	if (!(m->flags & ZW_DESC) || err)
		return err;
	if (m->desc.rank >= comm->layout.nranks)
		return -EPROTO;
	spin_lock(&comm->lock);
	wanted = zc_message_in_window(comm, m);
	spin_unlock(&comm->lock);
	if (wanted)
		zc_op_described(comm, peer->node, m->msg.seq, &m->desc);
	return 0;
}

static void zc_message_refuse(struct zc_peer *peer, const char *wrong, int err)
{
	if (err == -ENOMEM)
		zc_comm_failf(peer->net->comm, err, "no kernel memory for what node %u tells",
			      peer->node);
	else if (err != -ENOBUFS)
		zc_peer_misbehaved(peer, "%s",
				   wrong ?: "a message that contradicts itself, or others");
}

/**
 * zc_in_message - a message has come
 * @in: by this half-link
 * @box: the message, which is not the fabric's any more
 * @length: its bytes, at most ZC_MESSAGE_MAX
 *
 * Context: under zc_net.poll_lock, without zc_comm.lock; may sleep.
 */
void zc_in_message(struct zc_in *in, struct zc_inbox *box, u32 length)
{
	struct zc_peer *peer = in->peer;
	struct zc_comm *comm = peer->net->comm;
	struct zc_grant *grant = NULL;
	struct zc_message m = {};
	const char *wrong;
	int err = 0;

	lockdep_assert_held(&peer->net->poll_lock);
	wrong = zc_message_parse(box->message, length, &m);
	if (!wrong)
		err = zc_message_prepare(peer, &m, &grant);
	spin_lock(&comm->lock);
	in->received++;
	if (!peer->lost && zc_peer_in_credit(peer)) {
		if (!wrong && !err && !zc_out_credited(&peer->out, m.credits))
			wrong = "it has taken in more messages than have been sent";
		/* Who has left has no further part, whatever it says */
		if (!peer->left && (wrong || err))
			zc_message_refuse(peer, wrong, err);
		else if (!peer->left)
			zc_message_take(peer, &m, &box, &grant);
		zc_peer_credit(peer);
	}
	spin_unlock(&comm->lock);
	kfree(grant);
	zc_inbox_free(box);
}
