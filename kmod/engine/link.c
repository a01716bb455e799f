// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Links: what this node knows of another one it has to do with.
 *
 * Each message carries how many operations its sender has retired: the receiver of
 * an operation's messages has room for it only when it is in its window. Where no
 * messages go the other way, that is told from time to time, so that
 * nobody waits for it forever: whenever half a window more has been retired.
 *
 * A link is made when an operation is submitted that has to do with the other node, or
 * by the first message from there, and watched from then on: both sides say something
 * at least every config.silence. Both sides of a new link tell what they have retired:
 * it may be the first one after many operations.
 *
 * A node that is *gone*, lost or having left, is told nothing.
 */
#include "engine_priv.h"

static u32 zc_link_hash(u32 node)
{
	return (u32)(node * 2654435769U) >> 7;
}

/**
 * zc_link - find or make the link to a node
 * @e: engine
 * @node: another node
 *
 * Return: the link, or NULL: config.links are in use, or it is no other node.
 */
struct zc_link *zc_link(struct zc_engine *e, u32 node)
{
	u32 at = zc_link_hash(node) & e->index_mask;
	struct zc_link *link;

	while (e->index[at]) {
		link = &e->links[e->index[at] - 1];
		if (link->node == node)
			return link;
		at = (at + 1) & e->index_mask;
	}
	if (e->nlinks == e->config.links || node >= e->config.nodes || node == e->config.node)
		return NULL;
	link = &e->links[e->nlinks++];
	*link = (struct zc_link) { .node = node, .heard = e->now };
	link->gone = zc_bit(e->agree.gone, node);
	link->retired = link->gone ? U64_MAX : 0;
	e->index[at] = e->nlinks;
	e->sweep = e->nlinks;
	return link;
}

/**
 * zc_link_heard - a message has come
 * @e: engine
 * @link: from there
 * @retired: operations that its sender has retired
 */
void zc_link_heard(struct zc_engine *e, struct zc_link *link, u64 retired)
{
	link->heard = e->now;
	if (retired <= link->retired)
		return;
	link->retired = retired;
	for (; link->blocked; link->blocked &= link->blocked - 1) {
		struct zc_eop *op = &e->ops[__builtin_ctzll(link->blocked)];

		if (op->phase == ZC_OP_ACTIVE)
			zc_op_wake(e, op);
	}
}

/* Has that node room for messages of this operation? If not, rows are woken later. */
bool zc_link_takes(struct zc_engine *e, u32 node, u64 seq)
{
	struct zc_link *link = zc_link(e, node);

	if (!link) {
		zc_revoke(e, -ENOSPC, ZC_NONE);
		return false;
	}
	if (seq < link->retired || seq - link->retired < e->config.window)
		return true;
	link->blocked |= 1ULL << zc_place_of(e, seq);
	return false;
}

/* An action that sends a message: to whom, and what goes with all messages */
void zc_link_say(struct zc_engine *e, u32 node, struct zc_action *action)
{
	struct zc_link *link = zc_link(e, node);

	action->peer = node;
	action->msg.retired = e->base;
	if (link) {
		link->told = e->base;
		link->said = e->now;
	}
	/* A SEND is the host's to answer */
	if (action->type == ZC_DO_TELL && zc_bit(e->agree.gone, node))
		action->type = ZC_DO_AGAIN;
}

static bool zc_link_tell(struct zc_engine *e, const struct zc_link *link, u32 type,
			 struct zc_action *action)
{
	action->type = ZC_DO_TELL;
	action->msg = (struct zc_msg) { .type = type };
	zc_link_say(e, link->node, action);
	return true;
}

/**
 * zc_link_next - what links have to be told that have heard nothing for a while
 * @e: engine
 * @action: to be filled
 *
 * Return: false: nothing.
 */
bool zc_link_next(struct zc_engine *e, struct zc_action *action)
{
	u32 half = e->config.window > 1 ? e->config.window / 2 : 1;
	const struct zc_link *link;

	while (e->sweep) {
		link = &e->links[--e->sweep];
		if (!link->gone && e->base > link->told &&
		    (!link->told || e->base >= link->told + half))
			return zc_link_tell(e, link, ZC_MSG_RETIRED, action);
	}
	while (e->beat) {
		link = &e->links[--e->beat];
		if (!link->gone && e->now >= link->said + e->config.silence)
			return zc_link_tell(e, link, ZC_MSG_ALIVE, action);
	}
	return false;
}
