// SPDX-License-Identifier: GPL-2.0-only
/*
 * For whom does an operation wait?
 *
 * The engine knows which steps wait for nothing but another node's message. What this node knows
 * beside that says what is the matter: whether it is connected with that node, and whether
 * anything of the operation has come from there. Nothing is kept for this but a bit for each
 * operation that a peer has spoken of.
 *
 * A node sees its neighbours in the plan only. So if all of these have sent something, some of them
 * wait themselves, and who is to blame is what they tell.
 */
#include "net.h"

/* More nodes than this are not listed by number */
#define ZC_WAITS 8

/* Nodes, in the order of their numbers */
struct zc_waits {
	u32 node[ZC_WAITS];
	u32 n;
	bool more;
};

static void zc_waits_add(struct zc_waits *waits, u32 node)
{
	u32 i, at;

	for (at = 0; at < waits->n && waits->node[at] < node; at++)
		;
	if (at < waits->n && waits->node[at] == node)
		return;
	if (waits->n == ZC_WAITS)
		waits->more = true;
	else
		waits->n++;
	for (i = waits->n - 1; i > at; i--)
		waits->node[i] = waits->node[i - 1];
	if (at < waits->n)
		waits->node[at] = node;
}

static bool zc_peer_connected(const struct zc_peer *peer)
{
	return peer && (peer->in.up || peer->out.state == ZC_OUT_UP);
}

/* Those whose message the engine waits for */
static void zc_waits_for_messages(struct zc_waits *waits, const struct zc_comm *comm,
				  const struct zc_op *op)
{
	u32 step, node;
	u64 unit;

	for (step = 0; step < op->plan->prog.plan->nsteps; step++) {
		unit = 0;
		while ((node = zc_engine_waits(comm->engine, op->seq, step, &unit)) != ZC_NONE)
			zc_waits_add(waits, node);
	}
}

/* Those that messages for wait to be connected with */
static void zc_waits_for_links(struct zc_waits *waits, const struct zc_comm *comm)
{
	u32 node;

	for (node = 0; node < comm->layout.nodes; node++) {
		const struct zc_peer *peer = comm->net->peers[node];

		if (peer && !list_empty(&peer->out.queue) && peer->out.state != ZC_OUT_UP)
			zc_waits_add(waits, node);
	}
}

static const char *zc_waits_why(const struct zc_peer *peer, u64 seq)
{
	if (!zc_peer_connected(peer))
		return "not connected";
	if (!zc_seqs_has(&peer->heard, seq))
		return "nothing has come from it";
	return peer->out.state == ZC_OUT_UP || list_empty(&peer->out.queue) ?
	       "more is to come from it" : "cannot be sent to yet";
}

/**
 * zc_net_add_waits - say for which nodes an operation waits
 * @text: where to
 * @comm: communicator with several nodes, locked
 * @op: RUNNING operation
 */
void zc_net_add_waits(struct zc_text *text, const struct zc_comm *comm, const struct zc_op *op)
{
	struct zc_waits waits = {};
	u32 i;

	zc_waits_for_messages(&waits, comm, op);
	zc_waits_for_links(&waits, comm);
	if (!waits.n) {
		zc_text_add(text, "all has come from other nodes, the work on node %u is not done",
			    comm->layout.node);
		return;
	}
	zc_text_add(text, "waits for ");
	for (i = 0; i < waits.n; i++)
		zc_text_add(text, "%snode %u (%s)", i ? ", " : "", waits.node[i],
			    zc_waits_why(comm->net->peers[waits.node[i]], op->seq));
	if (waits.more)
		zc_text_add(text, " and more");
}
