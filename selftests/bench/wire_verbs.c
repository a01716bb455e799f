// SPDX-License-Identifier: GPL-2.0
/*
 * Transport: RDMA writes on reliable connected queue pairs, set up by RDMA CM.
 *
 * The news of a message is a write, too, of a counter that the peer polls, as
 * perftest's ib_write_lat does it: a queue pair's writes are placed in order.
 */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "wire.h"

#define CHUNK		(256UL << 10)
#define DEPTH		16
#define TRIES		200	/* a peer may come later: this times 0.1 s */

/* Where to write: what the accepting side says */
struct target {
	uint64_t arena, news;
	uint32_t arena_key, news_key;
};

struct link {
	struct rdma_cm_id *id;
	struct target to;
	size_t offset, left;	/* of the message: not posted yet */
	unsigned int posted;	/* writes not completed yet */
	bool tell;		/* the news is not posted yet */
	uint64_t sent;
};

static struct link out[WIRE_LINKS];
static struct rdma_cm_id *in[WIRE_LINKS];
static struct ibv_pd *pd;
static struct ibv_mr *arena_mr, *news_mr;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void must(int err, const char *what)
{
	if (err)
		die("%s: %s", what, strerror(errno));
}

/* The protection domain is ours: RDMA CM's own goes with the last attempt to connect */
static void prepare(struct wire *w, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = DEPTH + 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = sizeof(uint64_t) },
	};
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	pthread_mutex_lock(&lock);
	if (!pd) {
		pd = ibv_alloc_pd(id->verbs);
		must(!pd, "protection domain");
		arena_mr = ibv_reg_mr(pd, w->arena.mem, w->arena.len, access);
		news_mr = ibv_reg_mr(pd, (void *)w->came, sizeof(w->came), access);
		must(!arena_mr || !news_mr, "register memory");
	}
	pthread_mutex_unlock(&lock);
	must(rdma_create_qp(id, pd, &attr), "queue pair");
}

static struct rdma_conn_param conn_param(const void *private_data, uint8_t len)
{
	return (struct rdma_conn_param) {
		.private_data = private_data,
		.private_data_len = len,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static void *accept_all(void *arg)
{
	struct wire *w = arg;
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP }, *ai;
	struct rdma_cm_id *listener, *id;
	struct rdma_conn_param param;
	struct wire_hello hello;
	struct target here;
	unsigned int i, n;

	must(rdma_getaddrinfo(NULL, w->port, &hints, &ai), "address to listen on");
	must(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP), "listener");
	must(rdma_bind_addr(listener, ai->ai_src_addr), "bind");
	must(rdma_listen(listener, WIRE_LINKS), "listen");
	for (n = 0; n < w->links; n++) {
		must(rdma_get_request(listener, &id), "connection request");
		memcpy(&hello, id->event->param.conn.private_data, sizeof(hello));
		i = wire_welcome(w, &hello);
		prepare(w, id);
		here = (struct target) {
			.arena = (uintptr_t)w->arena.mem, .arena_key = arena_mr->rkey,
			.news = (uintptr_t)&w->came[i], .news_key = news_mr->rkey,
		};
		param = conn_param(&here, sizeof(here));
		must(rdma_accept(id, &param), "accept");
		in[i] = id;
	}
	rdma_freeaddrinfo(ai);
	return NULL;
}

/* One attempt: the connection, or NULL if the peer is not there yet */
static struct rdma_cm_id *try_connect(struct wire *w, unsigned int i, struct sockaddr *addr)
{
	struct wire_hello hello = { .rank = w->rank, .link = i };
	struct rdma_conn_param param = conn_param(&hello, sizeof(hello));
	struct rdma_cm_id *id;

	must(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "connection");
	if (rdma_resolve_addr(id, NULL, addr, 2000) || rdma_resolve_route(id, 2000))
		goto out_destroy;
	prepare(w, id);
	if (!rdma_connect(id, &param))
		return id;
	rdma_destroy_qp(id);
out_destroy:
	rdma_destroy_id(id);
	return NULL;
}

static void connect_to(struct wire *w, unsigned int i)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *ai;
	struct timespec pause = { .tv_nsec = 100000000 };
	struct link *l = &out[i];
	char host[32];
	int tries;

	snprintf(host, sizeof(host), "node%u", wire_peer(w, i, false));
	if (getaddrinfo(host, w->port, &hints, &ai))
		die("%s: no such host", host);
	for (tries = 0; !l->id; tries++) {
		if (tries == TRIES)
			die("cannot connect to %s: %s", host, strerror(errno));
		l->id = try_connect(w, i, ai->ai_addr);
		if (!l->id)
			nanosleep(&pause, NULL);
	}
	freeaddrinfo(ai);
	memcpy(&l->to, l->id->event->param.conn.private_data, sizeof(l->to));
}

void wire_open(struct wire *w)
{
	pthread_t acceptor;
	unsigned int i;

	errno = pthread_create(&acceptor, NULL, accept_all, w);
	must(errno, "thread");
	for (i = 0; i < w->links; i++)
		connect_to(w, i);
	pthread_join(acceptor, NULL);
}

static void post(struct link *l, struct ibv_sge *sge, uint64_t addr, uint32_t key, int flags)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = sge, .num_sge = 1,
		.send_flags = flags, .wr.rdma = { .remote_addr = addr, .rkey = key },
	};

	errno = ibv_post_send(l->id->qp, &wr, &bad);
	must(errno, "post a write");
	l->posted++;
}

static void post_more(struct wire *w, struct link *l)
{
	struct ibv_sge sge;

	while (l->left && l->posted < DEPTH) {
		sge = (struct ibv_sge) {
			.addr = (uintptr_t)w->arena.mem + l->offset,
			.length = l->left < CHUNK ? l->left : CHUNK,
			.lkey = arena_mr->lkey,
		};
		post(l, &sge, l->to.arena + l->offset, l->to.arena_key, 0);
		l->offset += sge.length;
		l->left -= sge.length;
	}
	if (!l->left && l->tell) {
		l->sent++;
		l->tell = false;
		sge = (struct ibv_sge) { .addr = (uintptr_t)&l->sent, .length = sizeof(l->sent) };
		post(l, &sge, l->to.news, l->to.news_key, IBV_SEND_INLINE);
	}
}

void wire_send(struct wire *w, unsigned int link, size_t offset, size_t len)
{
	struct link *l = &out[link];

	while (l->left || l->posted > DEPTH / 2)
		wire_progress(w);
	l->offset = offset;
	l->left = len;
	l->tell = true;
	post_more(w, l);
}

bool wire_progress(struct wire *w)
{
	bool idle = true;
	struct ibv_wc wc;
	struct link *l;
	int n;

	for (l = out; l < out + w->links; l++) {
		while (l->posted && (n = ibv_poll_cq(l->id->send_cq, 1, &wc))) {
			if (n < 0 || wc.status != IBV_WC_SUCCESS)
				die("write: %s", ibv_wc_status_str(wc.status));
			l->posted--;
		}
		post_more(w, l);
		idle = idle && !l->posted;
	}
	return idle;
}
