/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A peer that is no kernel: node 1 of two, played by the test on queue pairs of its own.
 *
 * It knows the key of node 0's communicator, opens a half-link in each direction, and says on its
 * own whatever the test wants; from node 0 it takes messages one by one. The layout of what is
 * said is that of Documentation/protocol.md, written down anew. One rail, IPv4.
 *
 * Each call waits for its own end, at most ZT_LONG_MS. One thread uses a peer.
 */
#ifndef ZCOLL_TEST_PEER_H
#define ZCOLL_TEST_PEER_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "hello.h"

#define ZP_INBOX_BYTES	4096
#define ZP_INBOXES	128	/* enough for a test: none is used twice */
#define ZP_CHUNKS	16
#define ZP_BYTES	(1 << 20)

/* Types of messages */
enum {
	ZP_DATA = 1, ZP_GRANT, ZP_RETIRED, ZP_ALIVE, ZP_ABORT, ZP_ASK, ZP_ANSWER, ZP_DECISION,
	ZP_KEYS = 16, ZP_FORGET, ZP_CREDIT, ZP_CALL, ZP_BYE, ZP_PROOF,
};

/* What follows the header */
enum { ZP_HAS_DESC = 1, ZP_HAS_LANDING = 2 };

enum { ZP_SLOTS = 1, ZP_LINEAR, ZP_USER };

/* Little-endian, as the machines are that the tests run on */
struct zp_header {
	uint8_t type, flags;
	uint16_t length;
	uint32_t step, open;
	int32_t status;
	uint32_t credits, reserved;
	uint64_t seq, unit, fingerprint, retired;
};

struct zp_desc {
	uint16_t collective;
	uint8_t dtype, op;
	uint32_t flags, root, rank;
	uint64_t count, plan;
};

struct zp_landing {
	uint64_t region, origin;
	uint32_t stride;
	uint8_t mode, reserved[3];
};

struct zp_key {
	uint64_t address;
	uint32_t key, reserved;
};

struct zp_keys {
	uint64_t region;
	uint32_t first, count, chunks, chunk_pages;
	uint64_t bytes;
	uint32_t rails, reserved;
	/* struct zp_key [count * rails] */
};

struct zp_proof {
	struct zp_header header;
	uint32_t settings[8];
	uint8_t proof[32];
};

/* A GRANT with a landing, and the keys of that */
struct zp_grant {
	struct zp_header header;
	struct zp_landing landing;
	uint64_t bytes;		/* of the region */
	uint64_t chunk_bytes;
	struct zp_key chunk[ZP_CHUNKS];
};

/**
 * struct zp - a peer
 * @key: of the communicator
 * @hello: what it has said first
 * @welcome: what node 0 has said to that
 * @out: half-link to node 0
 * @listener: for the half-link from node 0
 * @in: that half-link
 * @inboxes: what has come by @in
 * @inbox_mr: their memory region
 * @taken: messages taken from @in
 * @memory: ZP_BYTES that can be written to node 0
 * @memory_mr: their memory region
 */
struct zp {
	const uint8_t *key;
	struct zh_hello hello;
	struct zh_welcome welcome;
	struct rdma_cm_id *out;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *in;
	uint8_t (*inboxes)[ZP_INBOX_BYTES];
	struct ibv_mr *inbox_mr;
	uint32_t taken;
	uint8_t *memory;
	struct ibv_mr *memory_mr;
};

static inline struct ibv_qp_init_attr zp_qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {
			.max_send_wr = 8, .max_recv_wr = ZP_INBOXES + 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
}

/* The address that a node gave for its first rail */
static inline struct sockaddr_in zp_sockaddr(const uint8_t *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET };

	memcpy(&to.sin_port, address + 2, 2);
	memcpy(&to.sin_addr, address + 8, 4);
	return to;
}

/* --- the half-link to node 0 --------------------------------------------- */

static inline int zp_open(struct zp *zp, const struct sockaddr_in *to)
{
	struct ibv_qp_init_attr attr = zp_qp_attr();
	struct rdma_conn_param param = {
		.private_data = &zp->hello, .private_data_len = sizeof(zp->hello),
		.retry_count = 7, .rnr_retry_count = 6,
	};

	/* Without a channel for events each call waits for its own */
	if (rdma_create_id(NULL, &zp->out, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_resolve_addr(zp->out, NULL, (struct sockaddr *)to, 2000) ||
	    rdma_resolve_route(zp->out, 2000) || rdma_create_qp(zp->out, NULL, &attr) ||
	    rdma_connect(zp->out, &param) ||
	    zp->out->event->param.conn.private_data_len < sizeof(zp->welcome))
		return -1;
	memcpy(&zp->welcome, zp->out->event->param.conn.private_data, sizeof(zp->welcome));
	zp->memory = calloc(1, ZP_BYTES);
	zp->memory_mr = rdma_reg_msgs(zp->out, zp->memory, ZP_BYTES);
	return zp->memory_mr ? 0 : -1;
}

/* Connect to a node with this address. Return: 0, or -1: user space has no queue pair here. */
static inline int zp_connect(struct zp *zp, const uint8_t *address, const struct zh_hello *hello,
			     const uint8_t *key)
{
	struct sockaddr_in to = zp_sockaddr(address);

	*zp = (struct zp){ .key = key, .hello = *hello };
	return zp_open(zp, &to);
}

/* A queue that says nothing any more ends it, too */
static inline void zp_close(struct zp *zp)
{
	if (zp->in)
		rdma_destroy_ep(zp->in);
	if (zp->listener)
		rdma_destroy_ep(zp->listener);
	if (zp->inbox_mr)
		rdma_dereg_mr(zp->inbox_mr);
	if (zp->memory_mr)
		rdma_dereg_mr(zp->memory_mr);
	if (zp->out)
		rdma_destroy_ep(zp->out);
	free(zp->inboxes);
	free(zp->memory);
	*zp = (struct zp){};
}

/* Post it, and wait until the other side has it. Return: how that ended, or -1. */
static inline int zp_post(struct zp *zp, struct ibv_send_wr *wr, uint64_t from, uint32_t bytes)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)zp->memory + from, .length = bytes, .lkey = zp->memory_mr->lkey,
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->sg_list = &sge;
	wr->num_sge = bytes ? 1 : 0;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(zp->out->qp, wr, &bad) ||
	    !zt_until(ZT_LONG_MS, ibv_poll_cq(zp->out->send_cq, 1, &wc) == 1))
		return -1;
	return wc.status;
}

/* Likewise, bytes as they are */
static inline int zp_send(struct zp *zp, enum ibv_wr_opcode opcode, const void *what,
			  uint32_t bytes)
{
	struct ibv_send_wr wr = { .opcode = opcode };
	const uint64_t from = ZP_BYTES - ZP_INBOX_BYTES;

	memcpy(zp->memory + from, what, bytes);
	return zp_post(zp, &wr, from, bytes);
}

/* Write @bytes of zp.memory to an address of node 0 */
static inline int zp_write(struct zp *zp, uint64_t from, uint32_t bytes, uint64_t to, uint32_t key)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = { .remote_addr = to, .rkey = key },
	};

	return zp_post(zp, &wr, from, bytes);
}

/* Show that the key is known */
static inline int zp_prove(struct zp *zp)
{
	struct zp_proof proof = {
		.header = {
			.type = ZP_PROOF, .length = sizeof(proof) - sizeof(proof.header),
		},
	};
	const size_t said = offsetof(struct zh_hello, tag);
	uint8_t all[256];

	memcpy(proof.settings, zp->welcome.settings, sizeof(proof.settings));
	memcpy(all, &zp->hello, said);
	memcpy(all + said, &zp->welcome, sizeof(zp->welcome));
	memcpy(all + said + sizeof(zp->welcome), proof.settings, sizeof(proof.settings));
	return zh_hmac(zp->key, "connect", all,
		       said + sizeof(zp->welcome) + sizeof(proof.settings), proof.proof) ?:
	       zp_send(zp, IBV_WR_SEND, &proof, sizeof(proof));
}

/* --- the half-link from node 0 ------------------------------------------- */

/* Listen beside node 0, whose address is given; @own gets that of node 1 */
static inline int zp_listen(struct zp *zp, const uint8_t *address, uint8_t *own)
{
	struct sockaddr_in at = zp_sockaddr(address);
	uint16_t port;

	at.sin_port = 0;
	if (rdma_create_id(NULL, &zp->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(zp->listener, (struct sockaddr *)&at) || rdma_listen(zp->listener, 4))
		return -1;
	port = rdma_get_src_port(zp->listener);
	memcpy(own, address, ZCOLL_ADDRESS_MAX);
	memcpy(own + 2, &port, 2);
	return 0;
}

/* The answer to the HELLO that has come */
static inline int zp_welcome(const struct zp *zp, struct zh_welcome *welcome)
{
	const size_t said = offsetof(struct zh_hello, tag);
	const size_t proved = offsetof(struct zh_welcome, proof) -
			      offsetof(struct zh_welcome, settings);
	const void *hello = zp->in->event->param.conn.private_data;
	uint8_t all[256];

	*welcome = (struct zh_welcome){ .magic = htole32(ZH_MAGIC), .nonce = "one test's nonce" };
	memcpy(welcome->settings, zp->welcome.settings, sizeof(welcome->settings));
	memcpy(all, hello, said);
	memcpy(all + said, welcome->settings, proved);
	return zh_hmac(zp->key, "accept", all, said + proved, welcome->proof);
}

static inline int zp_inboxes(struct zp *zp)
{
	const size_t bytes = ZP_INBOXES * ZP_INBOX_BYTES;
	int err;

	zp->inboxes = calloc(1, bytes);
	zp->inbox_mr = rdma_reg_msgs(zp->in, zp->inboxes, bytes);
	err = !zp->inbox_mr;
	for (int i = 0; i < ZP_INBOXES && !err; i++)
		err = rdma_post_recv(zp->in, NULL, zp->inboxes[i], ZP_INBOX_BYTES, zp->inbox_mr);
	return err;
}

static inline int zp_answer(struct zp *zp)
{
	struct ibv_qp_init_attr attr = zp_qp_attr();
	struct zh_welcome welcome;
	struct rdma_conn_param param = {
		.private_data = &welcome, .private_data_len = sizeof(welcome),
		.retry_count = 7, .rnr_retry_count = 6,
	};

	return rdma_create_qp(zp->in, NULL, &attr) || zp_welcome(zp, &welcome) ||
	       zp_inboxes(zp) || rdma_accept(zp->in, &param);
}

/* The next message, or NULL. Its number is zp.taken then. */
static inline const struct zp_header *zp_take(struct zp *zp, unsigned int ms)
{
	struct ibv_wc wc;

	if (zp->taken == ZP_INBOXES - 1 ||
	    !zt_until(ms, ibv_poll_cq(zp->in->recv_cq, 1, &wc) == 1) || wc.status)
		return NULL;
	/* The first one is the proof, which does not count */
	return (const struct zp_header *)zp->inboxes[++zp->taken];
}

/*
 * Node 0 connects when it has something to say; it does so again if that takes long. Return: 0,
 * or -1.
 */
static inline int zp_accept(struct zp *zp)
{
	uint64_t until = zt_now_ms() + ZT_LONG_MS;
	struct pollfd p = { .fd = zp->listener->channel->fd, .events = POLLIN };
	struct ibv_wc wc;

	while (zt_now_ms() < until) {
		if (poll(&p, 1, ZT_LONG_MS) != 1 || rdma_get_request(zp->listener, &zp->in))
			return -1;
		if (!zp_answer(zp))
			break;
		if (zp->inbox_mr)
			rdma_dereg_mr(zp->inbox_mr);
		rdma_destroy_ep(zp->in);
		free(zp->inboxes);
		zp->in = NULL;
		zp->inbox_mr = NULL;
		zp->inboxes = NULL;
	}
	if (!zp->in || !zt_until(ZT_LONG_MS, ibv_poll_cq(zp->in->recv_cq, 1, &wc) == 1) ||
	    wc.status || zp->inboxes[0][0] != ZP_PROOF)
		return -1;
	return 0;
}

/* --- what node 0 says ---------------------------------------------------- */

static inline void zp_keep_keys(struct zp_grant *grant, const struct zp_keys *keys)
{
	const struct zp_key *key = (const struct zp_key *)(keys + 1);

	for (uint32_t i = 0; i < keys->count && keys->first + i < ZP_CHUNKS; i++)
		grant->chunk[keys->first + i] = key[i];
	grant->bytes = keys->bytes;
	grant->chunk_bytes = keys->chunk_pages * 4096ULL;
}

/* The next GRANT with a landing. Its keys come before it. Return: 0, or -1: there is none. */
static inline int zp_granted(struct zp *zp, struct zp_grant *grant)
{
	const struct zp_header *header;
	const uint8_t *at;

	memset(grant, 0, sizeof(*grant));
	while ((header = zp_take(zp, ZT_LONG_MS))) {
		at = (const uint8_t *)(header + 1);
		if (header->type == ZP_KEYS)
			zp_keep_keys(grant, (const struct zp_keys *)at);
		if (header->type != ZP_GRANT || !(header->flags & ZP_HAS_LANDING))
			continue;
		if (header->flags & ZP_HAS_DESC)
			at += sizeof(struct zp_desc);
		grant->header = *header;
		memcpy(&grant->landing, at, sizeof(grant->landing));
		return grant->chunk_bytes ? 0 : -1;
	}
	return -1;
}

/* Where byte @offset of the region is for the fabric, and the key for it */
static inline uint64_t zp_address(const struct zp_grant *grant, uint64_t offset, uint32_t *key)
{
	const struct zp_key *chunk = &grant->chunk[offset / grant->chunk_bytes];

	*key = chunk->key;
	return chunk->address + offset % grant->chunk_bytes;
}

/* Write into the region, at most to the end of a chunk. Return: how that ended. */
static inline int zp_write_region(struct zp *zp, const struct zp_grant *grant, uint64_t offset,
				  uint32_t bytes)
{
	uint32_t key;
	uint64_t to = zp_address(grant, offset, &key);

	return zp_write(zp, 0, bytes, to, key);
}

#endif /* ZCOLL_TEST_PEER_H */
