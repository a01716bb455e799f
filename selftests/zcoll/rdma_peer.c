// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that knows the key and keeps the rules of messages, but not how they are to be sent: it
 * breaks its connection, and nothing of what it sent that way counts.
 *
 * The test is node 1, on a queue pair of its own. iWARP has no immediate data, so with siw the
 * tests are skipped, as they are without an RDMA device.
 */
#include "net.h"
#include "peer.h"
#include "kselftest_harness.h"

#define NODES	2

/* --- tests --------------------------------------------------------------- */

FIXTURE(peer) {
	struct zt zt;
	struct zn zn;
	uint8_t address[ZCOLL_ADDRESS_MAX];
	struct zp zp;
};

FIXTURE_SETUP(peer)
{
	static const unsigned int ranks[NODES] = { 1, 1 };
	const char *kind = getenv("ZCOLL_RDMA");
	struct zh_hello hello;

	ZT_SETUP(self);
	zn_init(&self->zn, &self->zt, NODES, ranks);
	self->zn.fabric = "rdma";
	self->zn.ep[0] = zn_join(&self->zn, 0);
	if (self->zn.ep[0] == -ENODEV || (kind && !strcmp(kind, "siw")))
		ZT_SETUP_SKIP("no InfiniBand or RoCE device");
	ASSERT_LE(0, self->zn.ep[0]) TH_LOG("%s", self->zn.text);
	ASSERT_EQ(0, zn_address(self->zn.ep[0], self->address));
	if (zh_hello(&hello, self->zn.key))
		ZT_SETUP_SKIP("no hmac(sha256) for user space");
	if (zp_connect(&self->zp, self->address, &hello, self->zn.key))
		ZT_SETUP_SKIP("user space has no queue pair here");
	ASSERT_EQ(0, zp_prove(&self->zp));
}

FIXTURE_TEARDOWN(peer)
{
	zp_close(&self->zp);
	ZT_TEARDOWN(self);
}

static const struct zp_header alive = { .type = ZP_ALIVE };

/* What the following tests do differently */
TEST_F(peer, is_heard)
{
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(0, zp_send(&self->zp, IBV_WR_SEND, &alive, sizeof(alive)));
	zt_sleep_ms(ZT_QUIET_MS);
	EXPECT_EQ(0, zt_revoked(self->zn.ep[0]));
	EXPECT_EQ(1, zn_stats(self->zn.ep[0]).connected);
}

/* A message in itself, but who sends immediate data may also write with it */
TEST_F(peer, message_with_immediate_data)
{
	zp_send(&self->zp, IBV_WR_SEND_WITH_IMM, &alive, sizeof(alive));
	EXPECT_TRUE(zt_until(ZT_LONG_MS, zt_revoked(self->zn.ep[0])));
	EXPECT_EQ(-EHOSTDOWN, zt_revoked(self->zn.ep[0])) {
		TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
	}
}

/* It takes an inbox, and leaves in there what was there before: that is no message */
TEST_F(peer, write_with_immediate_data)
{
	zp_send(&self->zp, IBV_WR_RDMA_WRITE_WITH_IMM, NULL, 0);
	EXPECT_TRUE(zt_until(ZT_LONG_MS, zt_revoked(self->zn.ep[0])));
	EXPECT_EQ(-EHOSTDOWN, zt_revoked(self->zn.ep[0])) {
		TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
	}
}

/* It never learns what was taken in: what it says would be answered, and the answers kept */
TEST_F(peer, sends_more_than_it_has_credits_for)
{
	int sent = 0;

	while (sent < 64 && !zp_send(&self->zp, IBV_WR_SEND, &alive, sizeof(alive)))
		sent++;
	EXPECT_LE(32, sent);
	EXPECT_TRUE(zt_until(ZT_LONG_MS, zt_revoked(self->zn.ep[0])));
	EXPECT_EQ(-EPROTO, zt_revoked(self->zn.ep[0]));
	EXPECT_NE(NULL, strstr(zn_text(&self->zn, self->zn.ep[0]), "credits")) {
		TH_LOG("%s", self->zn.text);
	}
	EXPECT_TRUE(zt_until(ZT_LONG_MS, !zn_stats(self->zn.ep[0]).connected));
}

TEST_HARNESS_MAIN
