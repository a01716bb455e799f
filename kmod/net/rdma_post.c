// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sending and receiving on connections.
 *
 * A post becomes RDMA writes and then a SEND of its message, in one chain on one queue pair. The
 * SEND is what the receiver notices, after the writes before it have been placed: that holds for
 * InfiniBand, RoCE and iWARP, where immediate data does not. The completion of the chain's last
 * request, which is the SEND if there is a message, answers the post and frees the queue's room
 * for all of the chain. So no other needs to be signalled, but on iWARP (zc_write_flags()). A
 * write that fails completes by itself, and breaks the connection.
 *
 * The receiving side has as many inboxes posted as the sender has credits. A message is handed
 * over after a new inbox has been posted in its place.
 *
 * Each connection has a completion queue of its own. It is polled until it is empty, and then
 * armed; when the next completion comes, zc_net_event() has all be polled again.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "rdma.h"

/* Completions that are taken in from a connection before the next one's turn */
#define ZC_POLL_BUDGET	64

/* Within that a queue pair in the error state has answered a receive */
#define ZC_HUSH_MS	1000

/* What the fabric keeps in zc_post.priv */
struct zc_post_priv {
	struct ib_cqe sent;
	struct ib_cqe written;
	u64 dma;
	u64 nwrs;
};

static struct zc_post_priv *zc_post_priv(struct zc_post *post)
{
	BUILD_BUG_ON(sizeof(struct zc_post_priv) > sizeof(post->priv));
	return (struct zc_post_priv *)post->priv;
}

static struct zc_post *zc_post_of(struct zc_post_priv *priv)
{
	return container_of((u64 (*)[ARRAY_SIZE(((struct zc_post *)0)->priv)])priv,
			    struct zc_post, priv);
}

static struct ib_cqe *zc_inbox_cqe(struct zc_inbox *box)
{
	BUILD_BUG_ON(sizeof(struct ib_cqe) > sizeof(box->priv));
	return (struct ib_cqe *)box->priv;
}

static struct zc_inbox *zc_inbox_of(struct ib_cqe *cqe)
{
	return container_of((u64 (*)[ARRAY_SIZE(((struct zc_inbox *)0)->priv)])cqe,
			    struct zc_inbox, priv);
}

/* A work request has failed: the connection with it. The others' end as flushed. */
static void zc_conn_broken(struct zc_conn *conn, const struct ib_wc *wc)
{
	zc_conn_lose(conn, -EHOSTDOWN, ib_wc_status_msg(wc->status));
}

/* ---- receiving ---- */

static void zc_inbox_unmap(struct zc_conn *conn, struct zc_inbox *box)
{
	hlist_del(&box->link);
	ib_dma_unmap_single(conn->rail->dev, box->dma, ZC_MESSAGE_MAX, DMA_FROM_DEVICE);
}

static void zc_recv_done(struct ib_cq *cq, struct ib_wc *wc);

static int zc_inbox_post(struct zc_conn *conn, struct zc_inbox *box)
{
	struct ib_sge sge = {
		.length = ZC_MESSAGE_MAX,
		.lkey = conn->rail->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = zc_inbox_cqe(box),
		.sg_list = &sge,
		.num_sge = 1,
	};
	int err;

	box->dma = ib_dma_map_single(conn->rail->dev, box->message, ZC_MESSAGE_MAX,
				     DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(conn->rail->dev, box->dma))
		return -ENOMEM;
	sge.addr = box->dma;
	zc_inbox_cqe(box)->done = zc_recv_done;
	hlist_add_head(&box->link, &conn->inboxes);
	err = ib_post_recv(conn->qp, &wr, NULL);
	if (err)
		zc_inbox_unmap(conn, box);
	return err;
}

/* Post @count new inboxes. Under zc_net.poll_lock, or before others see the connection. */
int zc_conn_refill(struct zc_conn *conn, u32 count)
{
	struct mem_cgroup *before = set_active_memcg(zc_conn_net(conn)->memcg);
	struct zc_inbox *box;
	int err = 0;

	while (count-- && !err) {
		box = zc_inbox_alloc(GFP_KERNEL);
		err = box ? zc_inbox_post(conn, box) : -ENOMEM;
		if (err && box)
			zc_inbox_free(box);
	}
	set_active_memcg(before);
	return err;
}

/*
 * Is it a SEND and no more, which has filled the inbox? A write with immediate data completes a
 * receive, too, and leaves in the inbox what was there before, with the length of something else.
 */
static bool zc_recv_is_send(const struct ib_wc *wc)
{
	return wc->opcode == IB_WC_RECV && wc->byte_len <= ZC_MESSAGE_MAX &&
	       !(wc->wc_flags & (IB_WC_WITH_IMM | IB_WC_WITH_INVALIDATE));
}

/* Is what has come for the net? Else it has been dealt with. */
static bool zc_recv_is_message(struct zc_conn *conn, struct zc_inbox *box, u32 length)
{
	if (conn->half)
		return true;
	if (!zc_conn_proved(conn, (const void *)box->message, length))
		zc_conn_lose(conn, -EKEYREJECTED, "it has not proved to know the key");
	return false;
}

static void zc_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct zc_inbox *box = zc_inbox_of(wc->wr_cqe);
	struct zc_conn *conn = cq->cq_context;

	zc_inbox_unmap(conn, box);
	if (wc->status != IB_WC_SUCCESS) {
		zc_conn_broken(conn, wc);
	} else if (!zc_recv_is_send(wc)) {
		zc_conn_lose(conn, -EPROTO, "what has come is no message");
	} else if (zc_conn_refill(conn, 1)) {
		zc_conn_lose(conn, -ENOMEM, "no memory for messages");
	} else if (zc_recv_is_message(conn, box, wc->byte_len)) {
		box->in = conn->half->in;
		zc_in_message(box->in, box, wc->byte_len);
		return;
	}
	zc_inbox_free(box);
}

/* ---- sending ---- */

/* Room for the chain and the message, if there is */
static int zc_post_map(struct zc_post *post, struct ib_device *dev)
{
	struct zc_post_priv *priv = zc_post_priv(post);

	if (!post->length)
		return 0;
	priv->dma = ib_dma_map_single(dev, post->message, post->length, DMA_TO_DEVICE);
	return ib_dma_mapping_error(dev, priv->dma) ? -EAGAIN : 0;
}

static void zc_post_unmap(struct zc_post *post, struct ib_device *dev)
{
	if (post->length)
		ib_dma_unmap_single(dev, zc_post_priv(post)->dma, post->length, DMA_TO_DEVICE);
}

/* Take a post off its connection and answer it */
static void zc_post_finish(struct zc_conn *conn, struct zc_post *post, int error)
{
	struct zc_post_priv *priv = zc_post_priv(post);
	struct zc_comm *comm = zc_conn_net(conn)->comm;
	struct zc_out *out = post->out;
	bool starved;

	spin_lock(&comm->lock);
	list_del(&post->link);
	conn->wrs_used -= priv->nwrs;
	starved = conn->starved;
	conn->starved = false;
	spin_unlock(&comm->lock);
	zc_post_unmap(post, conn->rail->dev);
	zc_post_done(post, error);
	if (starved && !error)
		zc_out_kick(out);
}

static void zc_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct zc_post_priv *priv = container_of(wc->wr_cqe, struct zc_post_priv, sent);
	struct zc_conn *conn = cq->cq_context;

	if (wc->status != IB_WC_SUCCESS)
		zc_conn_broken(conn, wc);
	zc_post_finish(conn, zc_post_of(priv), wc->status == IB_WC_SUCCESS ? 0 : -EHOSTDOWN);
}

/* Of interest only when it has failed: the post is answered with the last of its chain */
static void zc_write_done(struct ib_cq *cq, struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS)
		zc_conn_broken(cq->cq_context, wc);
}

/*
 * On iWARP completion tells only that TCP has the bytes. siw gives it the pages themselves if a
 * write is not signalled, and they would be read after the post has been answered, when they are
 * the user's again; of a signalled one it takes a copy.
 */
static int zc_write_flags(const struct zc_rail *rail)
{
	return rdma_protocol_iwarp(rail->dev, rail->port) ? IB_SEND_SIGNALED : 0;
}

/* The work requests of a post's writes. Return: their number, or more than there is room for. */
static u32 zc_post_writes(struct zc_conn *conn, struct zc_post *post)
{
	struct zc_rail *rail = conn->rail;
	u32 i, n = 0;

	for (i = 0; i < post->nwrites; i++) {
		const struct zc_write *write = &post->writes[i];
		u64 address = write->address;
		u64 offset = write->offset;
		u64 left = write->bytes;

		while (left) {
			struct ib_rdma_wr *wr = &conn->wrs[n];
			struct ib_sge *sges = &conn->sges[n * rail->max_sge];
			u64 before = left;

			if (++n == rail->post_wrs)
				return n;
			*wr = (struct ib_rdma_wr){
				.wr.wr_cqe = &zc_post_priv(post)->written,
				.wr.opcode = IB_WR_RDMA_WRITE,
				.wr.send_flags = zc_write_flags(rail),
				.wr.sg_list = sges,
				.wr.next = &conn->wrs[n].wr,
				.remote_addr = address,
				.rkey = write->key,
			};
			wr->wr.num_sge = zc_rdma_gather(write->region, rail, &offset, &left,
							sges, rail->max_sge);
			address += before - left;
		}
	}
	return n;
}

/* The work request of a post's message */
static void zc_post_message(struct zc_conn *conn, struct zc_post *post, u32 n)
{
	struct ib_rdma_wr *wr = &conn->wrs[n];
	struct ib_sge *sge = &conn->sges[n * conn->rail->max_sge];

	*sge = (struct ib_sge){
		.addr = zc_post_priv(post)->dma,
		.length = post->length,
		.lkey = conn->rail->pd->local_dma_lkey,
	};
	*wr = (struct ib_rdma_wr){
		.wr.opcode = IB_WR_SEND,
		.wr.sg_list = sge,
		.wr.num_sge = 1,
	};
}

/* The whole chain. Return: its length, or 0: it does not fit. */
static u32 zc_post_chain(struct zc_conn *conn, struct zc_post *post)
{
	u32 n = zc_post_writes(conn, post);
	struct ib_rdma_wr *last;

	if (n == conn->rail->post_wrs)
		return 0;
	if (post->length)
		zc_post_message(conn, post, n++);
	last = &conn->wrs[n - 1];
	last->wr.wr_cqe = &zc_post_priv(post)->sent;
	last->wr.send_flags = IB_SEND_SIGNALED;
	last->wr.next = NULL;
	return n;
}

/*
 * A post that the queue pair does not take stays with the connection, which is lost, and is
 * answered when that is destroyed: a part of its chain may have been taken.
 */
int zc_rdma_post(struct zc_post *post)
{
	struct zc_post_priv *priv = zc_post_priv(post);
	struct zc_half *half = post->out->fab;
	struct zc_conn *conn;
	u32 n;

	/* It is being disconnected */
	if (!half)
		return -EAGAIN;
	conn = half->conns[post->rail];
	if (conn->wrs_used + conn->rail->post_wrs > conn->rail->sq_wrs ||
	    zc_post_map(post, conn->rail->dev)) {
		conn->starved = true;
		/* The next post that is answered has it tried again. If none is, nothing would. */
		if (list_empty(&conn->posts))
			zc_conn_lose(conn, -ENOMEM, "the device has no room to map a message");
		return -EAGAIN;
	}
	priv->sent.done = zc_send_done;
	priv->written.done = zc_write_done;
	n = zc_post_chain(conn, post);
	priv->nwrs = n;
	conn->wrs_used += n;
	list_add_tail(&post->link, &conn->posts);
	if (WARN_ON_ONCE(!n))
		zc_conn_lose(conn, -EMSGSIZE, "more is to be sent at once than was planned for");
	else if (ib_post_send(conn->qp, &conn->wrs[0].wr, NULL))
		zc_conn_lose(conn, -EHOSTDOWN, "the queue pair takes nothing more");
	return 0;
}

/* ---- the proof, the first message of all ---- */

static void zc_proof_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct zc_conn *conn = cq->cq_context;

	if (wc->status == IB_WC_SUCCESS)
		zc_conn_progress(conn, ZC_CONN_PROVED);
	else
		zc_conn_broken(conn, wc);
}

static void zc_proof_fill(struct zc_conn *conn)
{
	struct zw_proof *proof = &conn->proof->proof;
	struct zc_net *net = zc_conn_net(conn);

	conn->proof->header.type = ZW_PROOF;
	conn->proof->header.length = cpu_to_le16(sizeof(*proof));
	zc_net_settings(net, &proof->settings);
	zc_hello_connect(net->comm->key, &conn->hello.hello, &conn->welcome, &proof->settings,
			 proof->proof);
}

int zc_conn_send_proof(struct zc_conn *conn)
{
	struct ib_device *dev = conn->rail->dev;
	struct ib_sge sge = {
		.length = sizeof(*conn->proof),
		.lkey = conn->rail->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &conn->proof_cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};

	conn->proof = kzalloc(sizeof(*conn->proof), GFP_KERNEL);
	if (!conn->proof)
		return -ENOMEM;
	zc_proof_fill(conn);
	conn->proof_dma = ib_dma_map_single(dev, conn->proof, sizeof(*conn->proof),
					    DMA_TO_DEVICE);
	if (ib_dma_mapping_error(dev, conn->proof_dma)) {
		kfree(conn->proof);
		conn->proof = NULL;
		return -ENOMEM;
	}
	conn->proof_cqe.done = zc_proof_done;
	sge.addr = conn->proof_dma;
	return ib_post_send(conn->qp, &wr, NULL);
}

/* ---- completions ---- */

/* Interrupt context, perhaps */
static void zc_cq_event(struct ib_cq *cq, void *context)
{
	struct zc_conn *conn = context;
	struct zc_rdma *rdma = conn->rail->rdma;

	WRITE_ONCE(conn->armed, false);
	zc_net_event(rdma->net);
	/* The end may be waiting for this */
	if (wq_has_sleeper(&rdma->waitq))
		wake_up_all(&rdma->waitq);
}

/* Interrupt context, perhaps */
static void zc_qp_event(struct ib_event *event, void *context)
{
	struct zc_conn *conn = context;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		/* Messages overtake the manager's last word */
		rdma_notify(conn->id, event->event);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		zc_conn_lose(conn, -EHOSTDOWN, ib_event_msg(event->event));
		break;
	default:
		break;
	}
}

/* Arm the queue. Return: something may have come meanwhile. */
static bool zc_conn_arm(struct zc_conn *conn)
{
	if (READ_ONCE(conn->armed))
		return false;
	WRITE_ONCE(conn->armed, true);
	if (ib_req_notify_cq(conn->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) <= 0)
		return false;
	WRITE_ONCE(conn->armed, false);
	return true;
}

/* Take in what has come on a connection. Return: how much. */
static int zc_conn_drain(struct zc_conn *conn)
{
	struct ib_wc *wcs = conn->rail->rdma->wcs;
	int i, n, taken = 0;

	do {
		n = ib_poll_cq(conn->cq, ZC_RDMA_WCS, wcs);
		for (i = 0; i < n; i++)
			wcs[i].wr_cqe->done(conn->cq, &wcs[i]);
		taken += max(n, 0);
		if (taken >= ZC_POLL_BUDGET) {
			zc_net_event(zc_conn_net(conn));
			break;
		}
	} while (n > 0 || zc_conn_arm(conn));
	return taken;
}

/* A connection is lost, and all that came before has been taken in: who is to know it? */
static void zc_conn_report(struct zc_conn *conn)
{
	struct zc_half *half = conn->half;
	struct zc_rdma *rdma = conn->rail->rdma;
	struct zc_text why = {};

	if (!half) {
		mod_delayed_work(zc_rdma_wq, &rdma->reap_work, 0);
		return;
	}
	/* Who connects looks at it himself */
	if (half->down || (half->out && !half->up))
		return;
	half->down = true;
	if (half->in) {
		zc_in_down(half->in, conn->error);
		return;
	}
	zc_text_add(&why, "RDMA device %s port %u (rail %u): %s", conn->rail->name,
		    conn->rail->port, conn->rail->index, conn->what);
	zc_out_down(half->out, conn->error, &why);
}

/* What comes on a half-link before all its rails have been proved waits in the queue */
static bool zc_conn_counts(const struct zc_conn *conn)
{
	return !conn->half || conn->half->out || conn->half->up;
}

int zc_rdma_poll(struct zc_net *net)
{
	struct zc_rdma *rdma = net->fab;
	struct zc_conn *conn;
	int n, taken = 0;

	lockdep_assert_held(&net->poll_lock);
	list_for_each_entry(conn, &rdma->conns, link) {
		bool lost = READ_ONCE(conn->error);

		n = zc_conn_counts(conn) ? zc_conn_drain(conn) : 0;
		if (lost && !n)
			zc_conn_report(conn);
		taken += n;
	}
	return taken;
}

/* ---- queue pairs ---- */

static int zc_conn_alloc_chain(struct zc_conn *conn)
{
	const struct zc_rail *rail = conn->rail;

	conn->wrs = kvcalloc(rail->post_wrs, sizeof(*conn->wrs), GFP_KERNEL);
	conn->sges = kvcalloc(rail->post_wrs * rail->max_sge, sizeof(*conn->sges), GFP_KERNEL);
	return conn->wrs && conn->sges ? 0 : -ENOMEM;
}

/* What fails is undone by zc_conn_close_qp() */
int zc_conn_open_qp(struct zc_conn *conn)
{
	const struct zc_rail *rail = conn->rail;
	u32 inboxes = ZC_RDMA_INBOXES(rail->rdma->net);
	struct ib_qp_init_attr attr = {
		.event_handler = zc_qp_event,
		.qp_context = conn,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.cap = {
			/* The proof has been sent before anything else; one for zc_conn_hush() */
			.max_send_wr = conn->sends ? rail->sq_wrs + ZC_RDMA_REGS : 1,
			.max_recv_wr = conn->sends ? 1 : inboxes + 1,
			.max_send_sge = conn->sends ? rail->max_sge : 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_cq_init_attr cq_attr = {
		.cqe = attr.cap.max_send_wr + attr.cap.max_recv_wr,
		.comp_vector = conn->half ? conn->half->node % rail->dev->num_comp_vectors : 0,
	};
	struct ib_cq *cq;
	int err;

	if (conn->sends) {
		err = zc_conn_alloc_chain(conn);
		if (err)
			return err;
	}
	cq = ib_create_cq(rail->dev, zc_cq_event, NULL, conn, &cq_attr);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	conn->cq = cq;
	attr.send_cq = cq;
	attr.recv_cq = cq;
	err = rdma_create_qp(conn->id, rail->pd, &attr);
	if (!err)
		conn->qp = conn->id->qp;
	return err;
}

/* Nothing is taken in from it any more: answer what is still posted */
static void zc_conn_answer(struct zc_conn *conn)
{
	struct ib_device *dev = conn->rail->dev;
	struct zc_inbox *box;
	struct hlist_node *next_box;
	struct zc_post *post, *next;

	list_for_each_entry_safe(post, next, &conn->posts, link)
		zc_post_finish(conn, post, -EHOSTDOWN);
	hlist_for_each_entry_safe(box, next_box, &conn->inboxes, link) {
		zc_inbox_unmap(conn, box);
		zc_inbox_free(box);
	}
	if (conn->proof)
		ib_dma_unmap_single(dev, conn->proof_dma, sizeof(*conn->proof), DMA_TO_DEVICE);
}

/*
 * No event comes any more. A device that calls its handlers later than it puts completions into
 * the queue (rxe did so from a tasklet) may not be done with the last one when the queue goes. So
 * one is made to come that is the last: nobody arms the queue any more but this, and a receive is
 * answered at once in the error state. Whether the queue was armed does not tell whether an
 * event is due: one of before may be late, and who arms it may be told that it is too late.
 */
static void zc_conn_hush(struct zc_conn *conn)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	static const struct ib_recv_wr none;

	/* Those of before are over */
	synchronize_rcu_expedited();
	WRITE_ONCE(conn->armed, true);
	if (ib_req_notify_cq(conn->cq, IB_CQ_NEXT_COMP) < 0 ||
	    ib_modify_qp(conn->qp, &attr, IB_QP_STATE) || ib_post_recv(conn->qp, &none, NULL))
		return;
	wait_event_timeout(conn->rail->rdma->waitq, !READ_ONCE(conn->armed),
			   msecs_to_jiffies(ZC_HUSH_MS));
	/* The handler has been left, too */
	synchronize_rcu_expedited();
}

void zc_conn_close_qp(struct zc_conn *conn)
{
	if (conn->qp) {
		zc_conn_hush(conn);
		rdma_destroy_qp(conn->id);
	}
	if (conn->cq)
		ib_destroy_cq(conn->cq);
	zc_conn_answer(conn);
	kfree(conn->proof);
	kvfree(conn->sges);
	kvfree(conn->wrs);
}
