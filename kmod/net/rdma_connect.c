// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sending side of a half-link: it connects.
 *
 * Rail by rail, each with a HELLO; a rail that fails is tried again. That ends before the heartbeat
 * time-out does, so that users are told the cause. Each attempt has a part of it only, since the
 * communication manager repeats a lost request much later; and each has twice the time of the one
 * before, since a peer may be just slow. The answer is a WELCOME, which proves that the peer knows
 * the key. This side's proof is the first message. When all rails have been proved the half-link
 * counts.
 */
#include <linux/in.h>
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/slab.h>

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
