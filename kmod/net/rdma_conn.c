// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections of both sides of a half-link: made, published, lost, destroyed, and what the
 * communication manager tells of them.
 *
 * All waiting is done in the sending side's zc_rdma_connect(). Whatever happens to a connection
 * afterwards is noted by zc_conn_lose(), and told to the net from zc_rdma_poll(), when all that
 * has come before has been taken in.
 */
#include <linux/slab.h>

#include "rdma.h"

/* ---- making and destroying ---- */

/* What is charged for a connection: the inboxes that are posted, or room for chains */
static u64 zc_conn_bytes(const struct zc_conn *conn)
{
	const struct zc_rail *rail = conn->rail;

	if (!conn->sends)
		return ZC_RDMA_INBOXES(rail->rdma->net) * ZC_INBOX_BYTES;
	return rail->post_wrs * (sizeof(*conn->wrs) + rail->max_sge * sizeof(*conn->sges));
}

/* Return: a connection, or an ERR_PTR, with a text if it is -ENOBUFS */
struct zc_conn *zc_conn_alloc(struct zc_rail *rail, bool sends, struct zc_text *why)
{
	struct zc_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	int err;

	if (!conn)
		return ERR_PTR(-ENOMEM);
	conn->rail = rail;
	conn->sends = sends;
	err = zc_net_charge(rail->rdma->net, zc_conn_bytes(conn), why);
	if (err) {
		kfree(conn);
		return ERR_PTR(err);
	}
	conn->since = ktime_get();
	INIT_LIST_HEAD(&conn->link);
	INIT_LIST_HEAD(&conn->posts);
	INIT_HLIST_HEAD(&conn->inboxes);
	atomic_inc(&rail->rdma->users);
	return conn;
}

void zc_conn_free(struct zc_conn *conn)
{
	struct zc_rdma *rdma = conn->rail->rdma;

	if (!conn->half)
		atomic_dec(&rdma->strangers);
	zc_net_uncharge(rdma->net, zc_conn_bytes(conn));
	kfree(conn);
	zc_rdma_exit(rdma);
}

/* Nobody finds it any more, but the communication manager */
void zc_conn_close(struct zc_conn *conn)
{
	if (IS_ERR_OR_NULL(conn->id))
		return;
	rdma_disconnect(conn->id);
	zc_conn_close_qp(conn);
	rdma_destroy_id(conn->id);
}

void zc_conns_close(struct list_head *conns)
{
	struct zc_conn *conn;

	list_for_each_entry(conn, conns, link)
		zc_conn_close(conn);
}

void zc_conns_free(struct list_head *conns)
{
	struct zc_conn *conn, *next;

	list_for_each_entry_safe(conn, next, conns, link)
		zc_conn_free(conn);
}

/* From now on it is polled */
void zc_conn_publish(struct zc_conn *conn)
{
	struct zc_net *net = zc_conn_net(conn);

	mutex_lock(&net->poll_lock);
	list_add_tail(&conn->link, &conn->rail->rdma->conns);
	mutex_unlock(&net->poll_lock);
	zc_net_event(net);
}

/* Under zc_net.poll_lock: its connections are to be destroyed */
void zc_half_unlink(struct zc_half *half, struct list_head *conns)
{
	u32 r;

	for (r = 0; r < ZC_MAX_RAILS; r++)
		if (half->conns[r])
			list_move(&half->conns[r]->link, conns);
}

/* What is lost stays so, with the first cause. Any context. */
void zc_conn_lose(struct zc_conn *conn, int error, const char *what)
{
	if (cmpxchg(&conn->what, NULL, what))
		return;
	WRITE_ONCE(conn->error, error);
	wake_up_all(&conn->rail->rdma->waitq);
	zc_net_event(zc_conn_net(conn));
}

void zc_conn_param(struct rdma_conn_param *param, const void *data, u8 bytes)
{
	*param = (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = bytes,
		.retry_count = 7,
		/* Who has a credit finds an inbox; 7 would be for ever, whoever keeps none */
		.rnr_retry_count = 6,
	};
}

/* ---- the communication manager's events ---- */

/* What the other side said is not where rdma_consumer_reject_data() looks, if the device is siw */
static void zc_conn_rejected(struct zc_conn *conn, struct rdma_cm_id *id,
			     struct rdma_cm_event *event)
{
	const struct zc_rdma_reject *said = event->param.conn.private_data;

	if (!said || event->param.conn.private_data_len < sizeof(*said) ||
	    said->magic != cpu_to_le32(ZW_MAGIC)) {
		zc_conn_lose(conn, -ECONNREFUSED, rdma_reject_msg(id, event->status));
		return;
	}
	switch (le32_to_cpu(said->reason)) {
	case ZC_RDMA_VERSION:
		zc_conn_lose(conn, -EPROTO, "it has another version of the protocol");
		break;
	case ZC_RDMA_KEY:
		zc_conn_lose(conn, -EKEYREJECTED, "it has another key");
		break;
	case ZC_RDMA_NODE:
		zc_conn_lose(conn, -EPROTO, "it is another node, or another rail");
		break;
	case ZC_RDMA_CLOSED:
		zc_conn_lose(conn, -ESHUTDOWN, "it has left the communicator");
		break;
	default:
		zc_conn_lose(conn, -EBUSY, "it is busy with other connections");
	}
}

void zc_conn_progress(struct zc_conn *conn, enum zc_conn_step step)
{
	/* Who waits for it (zc_conn_wait()) sees what has come with it */
	smp_store_release(&conn->step, step);
	wake_up_all(&conn->rail->rdma->waitq);
}

static void zc_conn_established(struct zc_conn *conn, const struct rdma_conn_param *theirs)
{
	if (!conn->sends)
		return;
	if (theirs->private_data)
		memcpy(&conn->welcome, theirs->private_data,
		       min_t(size_t, sizeof(conn->welcome), theirs->private_data_len));
	zc_conn_progress(conn, ZC_CONN_WELCOME);
}

/*
 * The id's context is the rail for a listener and for a connection that comes, then the
 * connection. Removal of the device is what zc_rdma_remove() deals with, before this is told.
 */
int zc_conn_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return zc_conn_request(id->context, id, &event->param.conn);
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		zc_conn_progress(id->context, ZC_CONN_ADDRESS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		zc_conn_progress(id->context, ZC_CONN_ROUTE);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		zc_conn_established(id->context, &event->param.conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		zc_conn_rejected(id->context, id, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		zc_conn_lose(id->context, -EHOSTDOWN, "disconnected");
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		zc_conn_lose(id->context, -EHOSTUNREACH, rdma_event_msg(event->event));
		break;
	default:
		break;
	}
	return 0;
}
