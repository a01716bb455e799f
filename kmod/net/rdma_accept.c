// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiving side of a half-link: it lets in who knows the key.
 *
 * It looks at the tag of a HELLO before it makes anything, posts its inboxes, and answers with a
 * WELCOME, which proves that it knows the key. The sending side's proof is the first message. Until
 * that has come the connection is a stranger: there are few, and they do not stay. When all rails
 * have been proved the half-link counts.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "rdma.h"

/*
 * Is it no copy of what has been said before? Its queue pair may write to all that has been
 * granted to anybody, even before the proof: the keys are those of the whole protection domain.
 */
static bool zc_hello_is_new(const struct zc_rail *rail, const struct zw_hello *hello)
{
	atomic64_t *said = &rail->said[le32_to_cpu(hello->from)];
	s64 time = le64_to_cpu(hello->time), last = atomic64_read(said);

	do {
		if (time <= last)
			return false;
	} while (!atomic64_try_cmpxchg(said, &last, time));
	return true;
}

/* Return: 0, or why not */
static enum zc_rdma_reason zc_hello_check(const struct zc_rail *rail, const void *data,
					  u32 bytes)
{
	const struct zc_rdma *rdma = rail->rdma;
	const struct zc_comm *comm = rdma->net->comm;
	const struct zc_rdma_hello *said = data;
	const struct zw_hello *hello = &said->hello;
	u8 tag[ZW_NONCE_BYTES];

	if (!data || bytes < sizeof(*said) || hello->magic != cpu_to_le32(ZW_MAGIC) ||
	    hello->version != cpu_to_le16(ZW_VERSION))
		return ZC_RDMA_VERSION;
	zc_hello_tag(comm->key, hello, tag);
	if (memcmp(hello->comm, rdma->name, sizeof(hello->comm)) ||
	    !zc_hello_equal(tag, said->tag, sizeof(tag)))
		return ZC_RDMA_KEY;
	if (le32_to_cpu(hello->to) != comm->layout.node ||
	    le32_to_cpu(hello->from) >= comm->layout.nodes ||
	    le32_to_cpu(hello->from) == comm->layout.node ||
	    le16_to_cpu(hello->rail) != rail->index)
		return ZC_RDMA_NODE;
	/* Not after a failure: who comes late then is told by ABORT what has failed */
	if (READ_ONCE(rdma->net->closing))
		return ZC_RDMA_CLOSED;
	return zc_hello_is_new(rail, hello) ? 0 : ZC_RDMA_BUSY;
}

static void zc_welcome_make(struct zc_conn *conn)
{
	struct zw_welcome *welcome = &conn->welcome;
	struct zc_net *net = zc_conn_net(conn);

	welcome->magic = cpu_to_le32(ZW_MAGIC);
	zc_net_settings(net, &welcome->settings);
	get_random_bytes(welcome->nonce, sizeof(welcome->nonce));
	zc_hello_accept(net->comm->key, &conn->hello.hello, welcome, welcome->proof);
}

/* Answer a HELLO that is in order. Return: 0, or the manager is to destroy the id. */
static int zc_conn_accept(struct zc_conn *conn, struct rdma_cm_id *id)
{
	struct rdma_conn_param param;
	int err;

	conn->id = id;
	id->context = conn;
	err = zc_conn_open_qp(conn);
	if (err)
		return err;
	err = zc_conn_refill(conn, ZC_RDMA_INBOXES(zc_conn_net(conn)));
	if (err)
		return err;
	zc_welcome_make(conn);
	zc_conn_param(&param, &conn->welcome, sizeof(conn->welcome));
	return rdma_accept(id, &param);
}

/* A node that knows the key cannot be let in. It tries again, but not if that is for good. */
static void zc_request_failed(struct zc_net *net, int error, const struct zc_rdma_hello *said,
			      const struct zc_text *why)
{
	if (error != -ENOBUFS)
		return;
	spin_lock(&net->comm->lock);
	zc_comm_failf(net->comm, error, "node %u: the connection from node %u: %s",
		      net->comm->layout.node, le32_to_cpu(said->hello.from), why->buf);
	spin_unlock(&net->comm->lock);
	zc_net_event(net);
}

int zc_conn_request(struct zc_rail *rail, struct rdma_cm_id *id,
		    const struct rdma_conn_param *theirs)
{
	struct zc_rdma_reject reject = { .magic = cpu_to_le32(ZW_MAGIC) };
	struct zc_rdma *rdma = rail->rdma;
	enum zc_rdma_reason reason;
	struct zc_text why = {};
	struct zc_conn *conn;
	int err;

	reason = zc_hello_check(rail, theirs->private_data, theirs->private_data_len);
	if (!reason && atomic_inc_return(&rdma->strangers) > ZC_STRANGERS) {
		atomic_dec(&rdma->strangers);
		reason = ZC_RDMA_BUSY;
	}
	if (reason) {
		reject.reason = cpu_to_le32(reason);
		rdma_reject(id, &reject, sizeof(reject), IB_CM_REJ_CONSUMER_DEFINED);
		return -ECONNREFUSED;
	}
	conn = zc_conn_alloc(rail, false, &why);
	if (IS_ERR(conn)) {
		atomic_dec(&rdma->strangers);
		zc_request_failed(rdma->net, PTR_ERR(conn), theirs->private_data, &why);
		return PTR_ERR(conn);
	}
	memcpy(&conn->hello, theirs->private_data, sizeof(conn->hello));
	err = zc_conn_accept(conn, id);
	if (err) {
		zc_conn_close_qp(conn);
		zc_conn_free(conn);
		return err;
	}
	/* It does not put off the end of those that came before */
	queue_delayed_work(zc_rdma_wq, &rdma->reap_work, msecs_to_jiffies(ZC_STRANGER_MS));
	zc_conn_publish(conn);
	return 0;
}

static struct zc_half *zc_half_find(struct zc_rdma *rdma, u32 node)
{
	struct zc_half *half;
	struct zc_in *in;

	list_for_each_entry(half, &rdma->halves, link)
		if (half->node == node)
			return half;
	half = kzalloc(sizeof(*half), GFP_KERNEL);
	if (!half)
		return NULL;
	in = zc_in_accept(rdma->net, node);
	if (!in) {
		kfree(half);
		return NULL;
	}
	half->in = in;
	half->node = node;
	in->fab = half;
	list_add_tail(&half->link, &rdma->halves);
	return half;
}

/* It has shown that it knows the key: with the other rails' it makes a half-link */
static bool zc_conn_joins(struct zc_conn *conn)
{
	struct zc_rdma *rdma = conn->rail->rdma;
	struct zc_half *half = zc_half_find(rdma, le32_to_cpu(conn->hello.hello.from));
	u32 r;

	if (!half || half->conns[conn->rail->index])
		return false;
	half->conns[conn->rail->index] = conn;
	conn->half = half;
	conn->step = ZC_CONN_PROVED;
	atomic_dec(&rdma->strangers);
	for (r = 0; r < rdma->nrails; r++)
		if (!half->conns[r])
			return true;
	list_del_init(&half->link);
	half->up = true;
	zc_in_up(half->in);
	/* What has come on the other rails waits */
	zc_net_event(rdma->net);
	return true;
}

/*
 * A stranger's first message has come. Return: false: it is none of us. Under
 * zc_net.poll_lock.
 */
bool zc_conn_proved(struct zc_conn *conn, const struct zc_proof_message *message, u32 length)
{
	const struct zw_header wanted = {
		.type = ZW_PROOF,
		.length = cpu_to_le16(sizeof(message->proof)),
	};
	struct zc_net *net = zc_conn_net(conn);
	struct zc_text why = {};
	u8 proof[ZW_PROOF_BYTES];

	if (length != sizeof(*message) || memcmp(&message->header, &wanted, sizeof(wanted)))
		return false;
	zc_hello_connect(net->comm->key, &conn->hello.hello, &conn->welcome,
			 &message->proof.settings, proof);
	return zc_hello_equal(proof, message->proof.proof, sizeof(proof)) &&
	       !zc_net_settings_check(net, &message->proof.settings, &why) &&
	       zc_conn_joins(conn);
}

void zc_rdma_drop(struct zc_in *in)
{
	struct zc_net *net = in->peer->net;
	struct zc_half *half;
	LIST_HEAD(conns);

	mutex_lock(&net->poll_lock);
	half = in->fab;
	in->fab = NULL;
	if (half) {
		list_del_init(&half->link);
		zc_half_unlink(half, &conns);
	}
	mutex_unlock(&net->poll_lock);
	zc_conns_close(&conns);
	zc_conns_free(&conns);
	kfree(half);
}

/* ---- strangers ---- */

static bool zc_conn_is_overdue(const struct zc_conn *conn, ktime_t now)
{
	return READ_ONCE(conn->error) || ktime_ms_delta(now, conn->since) >= ZC_STRANGER_MS;
}

/* Destroy strangers: @all, or those that are lost or have taken too long */
static void zc_strangers_end(struct zc_rdma *rdma, bool all)
{
	ktime_t now = ktime_get();
	struct zc_conn *conn, *next;
	LIST_HEAD(conns);

	mutex_lock(&rdma->net->poll_lock);
	list_for_each_entry_safe(conn, next, &rdma->conns, link)
		if (!conn->half && (all || zc_conn_is_overdue(conn, now)))
			list_move(&conn->link, &conns);
	mutex_unlock(&rdma->net->poll_lock);
	zc_conns_close(&conns);
	zc_conns_free(&conns);
}

void zc_rdma_reap_fn(struct work_struct *work)
{
	struct zc_rdma *rdma = container_of(work, struct zc_rdma, reap_work.work);

	zc_strangers_end(rdma, false);
	if (atomic_read(&rdma->strangers))
		queue_delayed_work(zc_rdma_wq, &rdma->reap_work,
				   msecs_to_jiffies(ZC_STRANGER_MS / 4));
}

/* No connection that does not count yet, when none can come any more */
void zc_rdma_drop_strangers(struct zc_rdma *rdma)
{
	struct zc_half *half;
	struct zc_in *in;

	zc_strangers_end(rdma, true);
	/*
	 * Without strangers nobody adds to the list, but closing may take off it at the same time,
	 * and free what it took. The peers, with their half-links, stay as long as the net.
	 */
	do {
		mutex_lock(&rdma->net->poll_lock);
		half = list_first_entry_or_null(&rdma->halves, struct zc_half, link);
		in = half ? half->in : NULL;
		mutex_unlock(&rdma->net->poll_lock);
		if (in)
			zc_rdma_drop(in);
	} while (in);
}
