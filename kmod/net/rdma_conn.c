// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections: how the two sides of a half-link find each other, and how they part.
 *
 * The sending side connects rail by rail, each with a HELLO; a rail that fails is tried again.
 * That ends before the heartbeat time-out does, so that users are told the cause. Each attempt has
 * a part of it only, since the communication manager repeats a lost request much later; and each
 * has twice the time of the one before, since a peer may be just slow. The
 * receiving side looks at the HELLO's tag before it makes anything, posts its inboxes, and answers
 * with a WELCOME, which proves that it knows the key. The sending side's proof is the first
 * message. Until that has come the connection is a stranger: there are few, and they do not
 * stay. When all rails have been proved the half-link counts.
 *
 * All waiting is done in the sending side's zc_rdma_connect(). Whatever happens to a connection
 * afterwards is noted by zc_conn_lose(), and told to the net from zc_rdma_poll(), when all that
 * has come before has been taken in.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "rdma.h"

/* Between two attempts */
#define ZC_RETRY_MS	50

/* How long a peer may be silent while it is connected to, if it may be so for longer later */
#define ZC_PATIENCE_NS	(10 * NSEC_PER_SEC)

/* Closing, and the removal of a device, wait for who connects: so there is a bound in any case */
static u64 zc_patience(const struct zc_rdma *rdma)
{
	u64 timeout = rdma->net->config.timeout_ns;

	return timeout ? min_t(u64, timeout, ZC_PATIENCE_NS) : ZC_PATIENCE_NS;
}

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
static struct zc_conn *zc_conn_alloc(struct zc_rail *rail, bool sends, struct zc_text *why)
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

static void zc_conn_free(struct zc_conn *conn)
{
	struct zc_rdma *rdma = conn->rail->rdma;

	if (!conn->half)
		atomic_dec(&rdma->strangers);
	zc_net_uncharge(rdma->net, zc_conn_bytes(conn));
	kfree(conn);
	zc_rdma_exit(rdma);
}

/* Nobody finds it any more, but the communication manager */
static void zc_conn_close(struct zc_conn *conn)
{
	if (IS_ERR_OR_NULL(conn->id))
		return;
	rdma_disconnect(conn->id);
	zc_conn_close_qp(conn);
	rdma_destroy_id(conn->id);
}

static void zc_conns_close(struct list_head *conns)
{
	struct zc_conn *conn;

	list_for_each_entry(conn, conns, link)
		zc_conn_close(conn);
}

static void zc_conns_free(struct list_head *conns)
{
	struct zc_conn *conn, *next;

	list_for_each_entry_safe(conn, next, conns, link)
		zc_conn_free(conn);
}

/* From now on it is polled */
static void zc_conn_publish(struct zc_conn *conn)
{
	struct zc_net *net = zc_conn_net(conn);

	mutex_lock(&net->poll_lock);
	list_add_tail(&conn->link, &conn->rail->rdma->conns);
	mutex_unlock(&net->poll_lock);
	zc_net_event(net);
}

/* Under zc_net.poll_lock: its connections are to be destroyed */
static void zc_half_unlink(struct zc_half *half, struct list_head *conns)
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

/* ---- the sending side ---- */

/*
 * Heartbeats decide that a peer is dead, not the queue pair: its 8 attempts last longer than the
 * heartbeat time-out, but not twice as long. A short time-out would repeat what a loaded machine is
 * about to acknowledge, and load it even more.
 */
static u8 zc_ack_timeout(const struct zc_rdma *rdma)
{
	u64 timeout = rdma->net->config.timeout_ns ?: ZC_PATIENCE_NS;
	u64 units = div_u64(timeout, 4 * 4096);

	return clamp(units ? ilog2(units) : 0, 8, 31);
}

static void zc_conn_param(struct rdma_conn_param *param, const void *data, u8 bytes)
{
	*param = (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = bytes,
		.retry_count = 7,
		/* Who has a credit finds an inbox; 7 would be for ever, whoever keeps none */
		.rnr_retry_count = 6,
	};
}

static u32 zc_ms_until(ktime_t until)
{
	return clamp_t(s64, ktime_ms_delta(until, ktime_get()), 1, INT_MAX);
}

/* Is this node not to be connected any more? Return: 0, or why. */
static int zc_half_over(const struct zc_half *half)
{
	const struct zc_rdma *rdma = half->out->peer->net->fab;

	if (READ_ONCE(rdma->gone))
		return -ENODEV;
	return READ_ONCE(half->closing) || READ_ONCE(half->out->ended) ? -ESHUTDOWN : 0;
}

static int zc_conn_over(struct zc_conn *conn)
{
	int err = zc_half_over(conn->half);

	if (err == -ENODEV)
		cmpxchg(&conn->what, NULL, "the device has been removed");
	return err;
}

static bool zc_conn_reached(const struct zc_conn *conn, enum zc_conn_step step)
{
	/* Pairs with zc_conn_progress() */
	return smp_load_acquire(&conn->step) >= step;
}

static int zc_conn_wait(struct zc_conn *conn, enum zc_conn_step step, ktime_t until)
{
	static const char * const silence[] = {
		[ZC_CONN_ADDRESS] = "nobody answers for that address (ARP or ND)",
		[ZC_CONN_ROUTE] = "no route",
		[ZC_CONN_WELCOME] = "no answer",
		[ZC_CONN_PROVED] = "no answer to the proof of the key",
	};
	int err;

	wait_event_timeout(conn->rail->rdma->waitq,
			   zc_conn_reached(conn, step) || READ_ONCE(conn->error) ||
			   zc_half_over(conn->half), msecs_to_jiffies(zc_ms_until(until)));
	err = zc_conn_over(conn);
	if (err)
		return err;
	if (READ_ONCE(conn->error))
		return conn->error;
	if (zc_conn_reached(conn, step))
		return 0;
	cmpxchg(&conn->what, NULL, silence[step]);
	return -ETIMEDOUT;
}

static int zc_address_get(const struct zc_rdma_address *from, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
	struct sockaddr_in *v4 = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	switch (le16_to_cpu(from->family)) {
	case 4:
		v4->sin_family = AF_INET;
		v4->sin_port = from->port;
		memcpy(&v4->sin_addr, from->ip, sizeof(v4->sin_addr));
		return 0;
	case 6:
		v6->sin6_family = AF_INET6;
		v6->sin6_port = from->port;
		memcpy(&v6->sin6_addr, from->ip, sizeof(v6->sin6_addr));
		return 0;
	default:
		return -EPROTO;
	}
}

/* This node's address, on any port */
static void zc_address_from(const struct zc_rail *rail, struct sockaddr_storage *from)
{
	*from = rail->address;
	if (from->ss_family == AF_INET)
		((struct sockaddr_in *)from)->sin_port = 0;
	else
		((struct sockaddr_in6 *)from)->sin6_port = 0;
}

static void zc_hello_make(struct zc_conn *conn)
{
	struct zw_hello *hello = &conn->hello.hello;
	struct zc_rdma *rdma = conn->rail->rdma;
	struct zc_comm *comm = rdma->net->comm;

	hello->magic = cpu_to_le32(ZW_MAGIC);
	hello->version = cpu_to_le16(ZW_VERSION);
	hello->rail = cpu_to_le16(conn->rail->index);
	memcpy(hello->comm, rdma->name, sizeof(hello->comm));
	hello->from = cpu_to_le32(comm->layout.node);
	hello->to = cpu_to_le32(conn->half->node);
	hello->time = cpu_to_le64(ktime_get_ns());
	get_random_bytes(hello->nonce, sizeof(hello->nonce));
	zc_hello_tag(comm->key, hello, conn->hello.tag);
}

/* Is who answered the one that was wanted? */
static int zc_welcome_check(struct zc_conn *conn, struct zc_text *why)
{
	const struct zw_welcome *welcome = &conn->welcome;
	struct zc_net *net = zc_conn_net(conn);
	u8 proof[ZW_PROOF_BYTES];

	zc_hello_accept(net->comm->key, &conn->hello.hello, welcome, proof);
	if (welcome->magic != cpu_to_le32(ZW_MAGIC) || welcome->__reserved ||
	    !zc_hello_equal(proof, welcome->proof, sizeof(proof))) {
		conn->what = "what answers there does not know the communicator's key";
		return -EKEYREJECTED;
	}
	return zc_net_settings_check(net, &welcome->settings, why);
}

/* From nothing to a connection whose other side is known; it is destroyed by the caller */
static int zc_conn_reach(struct zc_conn *conn, struct sockaddr_storage *to, ktime_t until,
			 struct zc_text *why)
{
	struct zc_rail *rail = conn->rail;
	struct rdma_conn_param param;
	struct sockaddr_storage from;
	int err;

	err = zc_conn_over(conn);
	if (err)
		return err;
	conn->id = rdma_create_id(&init_net, zc_conn_event, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(conn->id))
		return PTR_ERR(conn->id);
	rdma_set_ack_timeout(conn->id, zc_ack_timeout(rail->rdma));
	zc_address_from(rail, &from);
	err = rdma_resolve_addr(conn->id, (struct sockaddr *)&from, (struct sockaddr *)to,
				zc_ms_until(until)) ?: zc_conn_wait(conn, ZC_CONN_ADDRESS, until);
	if (err)
		return err;
	if (conn->id->device != rail->dev) {
		conn->what = "the way there leads over another device";
		return -ENODEV;
	}
	err = zc_conn_open_qp(conn);
	if (err)
		return err;
	err = rdma_resolve_route(conn->id, zc_ms_until(until)) ?:
	      zc_conn_wait(conn, ZC_CONN_ROUTE, until);
	if (err)
		return err;
	zc_hello_make(conn);
	zc_conn_param(&param, &conn->hello, sizeof(conn->hello));
	err = rdma_connect(conn->id, &param) ?: zc_conn_wait(conn, ZC_CONN_WELCOME, until);
	return err ?: zc_welcome_check(conn, why);
}

/* Would another attempt end in the same way? */
static bool zc_is_final(int error)
{
	return error == -EKEYREJECTED || error == -EPROTO || error == -ESHUTDOWN ||
	       error == -ENOMEM;
}

/* What a failure to connect is for users */
static int zc_unreachable(const struct zc_rail *rail, const struct sockaddr_storage *to,
			  int err, const char *what, struct zc_text *why)
{
	struct zc_text detail = *why;

	why->len = 0;
	zc_text_add(why, "no connection from RDMA device %s port %u to %pISpc (rail %u): %s",
		    rail->name, rail->port, to, rail->index,
		    detail.len ? detail.buf : what ?: "refused");
	if (!what && !detail.len)
		zc_text_add(why, ", error %d", err);
	return zc_is_final(err) ? err : -EHOSTUNREACH;
}

/* Connect one rail, with the proof on its way */
static int zc_half_connect(struct zc_half *half, struct zc_rail *rail,
			   const struct zc_rdma_address *address, ktime_t until,
			   struct zc_text *why)
{
	u64 share = div_u64(zc_patience(rail->rdma), 8);
	struct sockaddr_storage to;
	const char *what;
	int err;

	if (zc_address_get(address, &to)) {
		zc_text_add(why, "its address has no rail %u", rail->index);
		return -EPROTO;
	}
	for (;;) {
		ktime_t by = min_t(ktime_t, ktime_add_ns(ktime_get(), share), until);
		struct zc_conn *conn = zc_conn_alloc(rail, true, why);

		if (IS_ERR(conn))
			return PTR_ERR(conn);
		conn->half = half;
		err = zc_conn_reach(conn, &to, by, why);
		if (!err) {
			half->conns[rail->index] = conn;
			zc_conn_publish(conn);
			err = zc_conn_send_proof(conn) ?:
			      zc_conn_wait(conn, ZC_CONN_PROVED, until);
			return err ? zc_unreachable(rail, &to, err, conn->what, why) : 0;
		}
		what = conn->what;
		zc_conn_close(conn);
		zc_conn_free(conn);
		if (zc_is_final(err) || zc_half_over(half) || ktime_after(ktime_get(), until))
			return zc_unreachable(rail, &to, err, what, why);
		if (err == -ETIMEDOUT)
			share *= 2;
		wait_event_timeout(rail->rdma->waitq, zc_half_over(half),
				   msecs_to_jiffies(ZC_RETRY_MS));
	}
}

static int zc_half_connect_all(struct zc_half *half, const struct zc_rdma_address *address,
			       struct zc_text *why)
{
	struct zc_rdma *rdma = half->out->peer->net->fab;
	ktime_t until = ktime_add_ns(ktime_get(), div_u64(7 * zc_patience(rdma), 8));
	int err = 0;
	u32 r;

	/* Also between attempts, when there is no connection, the devices have to stay */
	if (!zc_rdma_enter(rdma)) {
		zc_text_add(why, "the RDMA device has been removed");
		return -ENODEV;
	}
	for (r = 0; r < rdma->nrails && !err; r++)
		err = zc_half_connect(half, &rdma->rails[r], address + r, until, why);
	zc_rdma_exit(rdma);
	return err;
}

void zc_rdma_connect(struct zc_out *out, const void *address)
{
	struct zc_half *half = kzalloc(sizeof(*half), GFP_KERNEL);
	struct zc_net *net = out->peer->net;
	struct zc_text why = {};
	int err;

	if (!half) {
		zc_text_add(&why, "no kernel memory to connect");
		zc_out_down(out, -ENOMEM, &why);
		return;
	}
	half->out = out;
	half->node = out->peer->node;
	init_completion(&half->settled);
	INIT_LIST_HEAD(&half->link);
	spin_lock(&net->comm->lock);
	out->fab = half;
	spin_unlock(&net->comm->lock);

	err = zc_half_connect_all(half, address, &why);
	mutex_lock(&net->poll_lock);
	if (err) {
		half->down = true;
		zc_out_down(out, err, &why);
	} else {
		half->up = true;
		zc_out_up(out);
	}
	mutex_unlock(&net->poll_lock);
	complete(&half->settled);
	zc_net_event(net);
}

/* @out has been ended: who connects it is to see that (zc_half_over()) */
void zc_rdma_hurry(struct zc_out *out)
{
	struct zc_rdma *rdma = out->peer->net->fab;

	wake_up_all(&rdma->waitq);
}

void zc_rdma_disconnect(struct zc_out *out)
{
	struct zc_net *net = out->peer->net;
	struct zc_rdma *rdma = net->fab;
	struct zc_half *half;
	LIST_HEAD(conns);

	spin_lock(&net->comm->lock);
	half = out->fab;
	out->fab = NULL;
	if (half)
		WRITE_ONCE(half->closing, true);
	spin_unlock(&net->comm->lock);
	if (!half)
		return;
	wake_up_all(&rdma->waitq);
	wait_for_completion(&half->settled);
	mutex_lock(&net->poll_lock);
	zc_half_unlink(half, &conns);
	mutex_unlock(&net->poll_lock);
	zc_conns_close(&conns);
	WRITE_ONCE(half->quiet, true);
	wake_up_all(&rdma->waitq);
	wait_event(rdma->waitq, !READ_ONCE(half->exposers));
	zc_conns_free(&conns);
	kfree(half);
}

/* ---- the receiving side ---- */

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

static int zc_conn_request(struct zc_rail *rail, struct rdma_cm_id *id,
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
