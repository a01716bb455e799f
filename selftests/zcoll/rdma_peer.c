// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that knows the key and keeps the rules of messages, but not how they are to be sent: it
 * breaks its connection, and nothing of what it sent that way counts.
 *
 * The test is node 1, on a queue pair of its own. iWARP has no immediate data, so with siw the
 * tests are skipped, as they are without an RDMA device.
 */
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include "hello.h"
#include "net.h"
#include "kselftest_harness.h"

#define NODES	2

/* Types of messages */
enum { ALIVE = 4, PROOF = 21 };

struct header {
	uint8_t type, flags;
	uint16_t length;
	uint32_t step, open, status, credits, reserved;
	uint64_t seq, unit, fingerprint, retired;
};

struct proof {
	struct header header;
	uint32_t settings[8];
	uint8_t proof[32];
};

/* --- a connection -------------------------------------------------------- */

/* With this HELLO to the address that a node gave for its first rail. Return: an id, or NULL. */
static struct rdma_cm_id *peer_connect(const uint8_t *address, const struct zh_hello *hello,
				       struct zh_welcome *welcome)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1,
			 .max_inline_data = sizeof(struct proof) },
	};
	struct rdma_conn_param param = {
		.private_data = hello, .private_data_len = sizeof(*hello), .retry_count = 7,
	};
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct rdma_cm_id *id;

	memcpy(&to.sin_port, address + 2, 2);
	memcpy(&to.sin_addr, address + 8, 4);
	/* Without a channel for events each call waits for its own */
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return NULL;
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000) ||
	    rdma_resolve_route(id, 2000) || rdma_create_qp(id, NULL, &attr) ||
	    rdma_connect(id, &param) ||
	    id->event->param.conn.private_data_len < sizeof(*welcome)) {
		rdma_destroy_ep(id);
		return NULL;
	}
	memcpy(welcome, id->event->param.conn.private_data, sizeof(*welcome));
	return id;
}

/* Post it, and wait until the other side has it. Return: how that ended. */
static int peer_send(struct rdma_cm_id *id, enum ibv_wr_opcode opcode, const void *what,
		     uint32_t bytes)
{
	struct ibv_sge sge = { .addr = (uintptr_t)what, .length = bytes };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = bytes ? 1 : 0, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
	}, *bad;
	struct ibv_wc wc;

	if (ibv_post_send(id->qp, &wr, &bad) ||
	    !zt_until(ZT_LONG_MS, ibv_poll_cq(id->send_cq, 1, &wc) == 1))
		return -1;
	return wc.status;
}

/* Show that the key is known */
static int peer_prove(struct rdma_cm_id *id, const uint8_t key[16], const struct zh_hello *hello,
		      const struct zh_welcome *welcome)
{
	struct proof proof = {
		.header = {
			.type = PROOF, .length = htole16(sizeof(proof) - sizeof(proof.header)),
		},
	};
	const size_t said = offsetof(struct zh_hello, tag);
	uint8_t all[256];

	memcpy(proof.settings, welcome->settings, sizeof(proof.settings));
	memcpy(all, hello, said);
	memcpy(all + said, welcome, sizeof(*welcome));
	memcpy(all + said + sizeof(*welcome), proof.settings, sizeof(proof.settings));
	return zh_hmac(key, "connect", all, said + sizeof(*welcome) + sizeof(proof.settings),
		       proof.proof) ?:
	       peer_send(id, IBV_WR_SEND, &proof, sizeof(proof));
}

/* --- tests --------------------------------------------------------------- */

FIXTURE(peer) {
	struct zt zt;
	struct zn zn;
	uint8_t address[ZCOLL_ADDRESS_MAX];
	struct zh_hello hello;
	struct zh_welcome welcome;
	struct rdma_cm_id *id;
};

FIXTURE_SETUP(peer)
{
	static const unsigned int ranks[NODES] = { 1, 1 };
	const char *kind = getenv("ZCOLL_RDMA");

	ZT_SETUP(self);
	zn_init(&self->zn, &self->zt, NODES, ranks);
	self->zn.fabric = "rdma";
	self->zn.ep[0] = zn_join(&self->zn, 0);
	if (self->zn.ep[0] == -ENODEV || (kind && !strcmp(kind, "siw")))
		SKIP(return, "no InfiniBand or RoCE device");
	ASSERT_LE(0, self->zn.ep[0]) TH_LOG("%s", self->zn.text);
	ASSERT_EQ(0, zn_address(self->zn.ep[0], self->address));
	if (zh_hello(&self->hello, self->zn.key))
		SKIP(return, "no hmac(sha256) for user space");
	self->id = peer_connect(self->address, &self->hello, &self->welcome);
	if (!self->id)
		SKIP(return, "user space has no queue pair here");
	ASSERT_EQ(0, peer_prove(self->id, self->zn.key, &self->hello, &self->welcome));
}

FIXTURE_TEARDOWN(peer)
{
	if (self->id)
		rdma_destroy_ep(self->id);
	ZT_TEARDOWN(self);
}

static const struct header alive = { .type = ALIVE };

/* What the following tests do differently */
TEST_F(peer, is_heard)
{
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(0, peer_send(self->id, IBV_WR_SEND, &alive, sizeof(alive)));
	zt_sleep_ms(ZT_QUIET_MS);
	EXPECT_EQ(0, zt_revoked(self->zn.ep[0]));
	EXPECT_EQ(1, zn_stats(self->zn.ep[0]).connected);
}

/* A message in itself, but who sends immediate data may also write with it */
TEST_F(peer, message_with_immediate_data)
{
	peer_send(self->id, IBV_WR_SEND_WITH_IMM, &alive, sizeof(alive));
	EXPECT_TRUE(zt_until(ZT_LONG_MS, zt_revoked(self->zn.ep[0])));
	EXPECT_EQ(-EHOSTDOWN, zt_revoked(self->zn.ep[0])) {
		TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
	}
}

/* It takes an inbox, and leaves in there what was there before: that is no message */
TEST_F(peer, write_with_immediate_data)
{
	peer_send(self->id, IBV_WR_RDMA_WRITE_WITH_IMM, NULL, 0);
	EXPECT_TRUE(zt_until(ZT_LONG_MS, zt_revoked(self->zn.ep[0])));
	EXPECT_EQ(-EHOSTDOWN, zt_revoked(self->zn.ep[0])) {
		TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
	}
}

TEST_HARNESS_MAIN
