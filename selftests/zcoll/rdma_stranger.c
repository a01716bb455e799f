// SPDX-License-Identifier: GPL-2.0
/*
 * Who connects to a node's RDMA listener without being one of its peers: with garbage, without
 * the key, or with it but no more to say. None gets far, none stays, and none disturbs.
 *
 * The test speaks to the connection manager through /dev/infiniband/rdma_cm, with a queue pair
 * number that it made up: what comes after the handshake would need a queue pair. iWARP devices
 * want one at once, so there the tests are skipped, as they are without an RDMA device.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>

#include "hello.h"
#include "net.h"
#include "kselftest_harness.h"

#define NODES		2
#define STRANGERS	16	/* of them are there at a time */
#define STAY_MS		5000	/* and for so long */

/* Documentation/protocol.md */
enum reason { BUSY = 1, VERSION, KEY, NODE, CLOSED };

/* Events of the connection manager */
enum { ADDR_RESOLVED = 0, ROUTE_RESOLVED = 2, RESPONSE = 5, REJECTED = 8 };

/* --- the connection manager ---------------------------------------------- */

/* Give a command. Return: 0 or a negative errno. */
static int cm(int fd, uint32_t number, const void *command, uint16_t in, uint16_t out)
{
	struct rdma_ucm_cmd_hdr *hdr;
	char buf[1024];
	int ret;

	hdr = (struct rdma_ucm_cmd_hdr *)buf;
	*hdr = (struct rdma_ucm_cmd_hdr){ .cmd = number, .in = in, .out = out };
	memcpy(hdr + 1, command, in);
	ret = write(fd, buf, sizeof(*hdr) + in);
	return ret < 0 ? -errno : 0;
}

/* The next event, or a negative errno */
static int cm_event(int fd, struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_get_event get = { .response = (uintptr_t)event };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ret;

	if (poll(&p, 1, ZT_LONG_MS) != 1)
		return -ETIME;
	ret = cm(fd, RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), sizeof(*event));
	return ret ?: (int)event->event;
}

/* An id on its way to the address that a node gave for its first rail */
static int cm_resolve(const uint8_t *address, uint32_t *id)
{
	/* Without a uid there are no events */
	struct rdma_ucm_create_id create = {
		.uid = 1, .response = (uintptr_t)id, .ps = 0x106, .qp_type = 2,
	};
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct rdma_ucm_resolve_ip ip = { .timeout_ms = 2000 };
	struct rdma_ucm_resolve_route route = { .timeout_ms = 2000 };
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	struct rdma_ucm_event_resp event;

	if (fd < 0)
		return -errno;
	memcpy(&to.sin_port, address + 2, 2);
	memcpy(&to.sin_addr, address + 8, 4);
	memcpy(&ip.dst_addr, &to, sizeof(to));
	if (cm(fd, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create), sizeof(*id)))
		goto out;
	ip.id = *id;
	route.id = *id;
	if (!cm(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &ip, sizeof(ip), 0) &&
	    cm_event(fd, &event) == ADDR_RESOLVED &&
	    !cm(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0) &&
	    cm_event(fd, &event) == ROUTE_RESOLVED)
		return fd;
out:
	close(fd);
	return -EHOSTUNREACH;
}

/* Connect with these private data, and get the answer; *@fd is to be closed */
static int stranger(const uint8_t *address, const void *data, uint8_t bytes, int *fd,
		    struct rdma_ucm_event_resp *answer)
{
	/* Two connections from the same queue pair are one to the manager */
	static uint32_t qp_num = 0x4711;
	struct rdma_ucm_connect connect = {
		.conn_param = {
			.qp_num = qp_num++, .private_data_len = bytes,
			.retry_count = 7, .rnr_retry_count = 7, .valid = 1,
		},
	};
	int ret;

	*fd = cm_resolve(address, &connect.id);
	if (*fd < 0)
		return *fd;
	memcpy(connect.conn_param.private_data, data, bytes);
	ret = cm(*fd, RDMA_USER_CM_CMD_CONNECT, &connect, sizeof(connect), 0);
	return ret ?: cm_event(*fd, answer);
}

/* Why it was rejected, as the answer says */
static unsigned int reason(const struct rdma_ucm_event_resp *answer)
{
	uint32_t said[2];

	memcpy(said, answer->param.conn.private_data, sizeof(said));
	return le32toh(said[0]) == ZH_MAGIC ? le32toh(said[1]) : 0;
}

/* --- tests --------------------------------------------------------------- */

FIXTURE(stranger) {
	struct zt zt;
	struct zn zn;
	uint8_t address[ZCOLL_ADDRESS_MAX];
	struct rdma_ucm_event_resp answer;
	struct zh_hello hello;
	int fd;
};

FIXTURE_SETUP(stranger)
{
	static const unsigned int ranks[NODES] = { 1, 1 };
	const char *kind = getenv("ZCOLL_RDMA");

	ZT_SETUP(self);
	zn_init(&self->zn, &self->zt, NODES, ranks);
	self->zn.fabric = "rdma";
	self->fd = -1;
	for (int n = 0; n < NODES; n++) {
		self->zn.ep[n] = zn_join(&self->zn, n);
		if (self->zn.ep[n] == -ENODEV || (kind && !strcmp(kind, "siw")))
			ZT_SETUP_SKIP("no InfiniBand or RoCE device");
		ASSERT_LE(0, self->zn.ep[n]) TH_LOG("%s", self->zn.text);
	}
	ASSERT_EQ(0, zn_address(self->zn.ep[0], self->address));
	if (access("/dev/infiniband/rdma_cm", R_OK | W_OK))
		ZT_SETUP_SKIP("no /dev/infiniband/rdma_cm");
	if (zh_hello(&self->hello, self->zn.key))
		ZT_SETUP_SKIP("no hmac(sha256) for user space");
	ASSERT_EQ(56, sizeof(self->hello));
}

FIXTURE_TEARDOWN(stranger)
{
	if (self->fd >= 0)
		close(self->fd);
	ZT_TEARDOWN(self);
}

/* The hello, spoiled by what follows, is rejected for this reason */
#define EXPECT_REJECTED(why, ...) do {						\
	struct zh_hello hello = self->hello;					\
										\
	__VA_ARGS__;								\
	if ((why) != KEY)							\
		zh_tag(&hello, self->zn.key);					\
	EXPECT_EQ(REJECTED, stranger(self->address, &hello, sizeof(hello), &self->fd, \
				     &self->answer));				\
	EXPECT_EQ(why, reason(&self->answer));					\
	close(self->fd);							\
	self->fd = -1;								\
} while (0)

TEST_F(stranger, garbage)
{
	EXPECT_REJECTED(VERSION, memset(&hello, 0xa5, sizeof(hello)));
	EXPECT_REJECTED(VERSION, hello.magic ^= 1);
	EXPECT_REJECTED(VERSION, hello.version = htole16(99));
	EXPECT_EQ(0, zt_revoked(self->zn.ep[0]));
}

TEST_F(stranger, without_the_key)
{
	EXPECT_REJECTED(KEY, hello.tag[15] ^= 1);
	EXPECT_REJECTED(KEY, hello.nonce[0] ^= 1);
	EXPECT_REJECTED(KEY, hello.comm[7] ^= 1);
	EXPECT_EQ(0, zt_revoked(self->zn.ep[0]));
}

TEST_F(stranger, from_nowhere_or_to_another)
{
	EXPECT_REJECTED(NODE, hello.from = htole32(NODES));
	EXPECT_REJECTED(NODE, hello.from = 0);
	EXPECT_REJECTED(NODE, hello.to = htole32(1));
	EXPECT_REJECTED(NODE, hello.rail = htole16(1));
	EXPECT_EQ(0, zt_revoked(self->zn.ep[0]));
}

/* Say a new hello; the answer */
static int newcomer(FIXTURE_DATA(stranger) *self, int *fd)
{
	zh_hello(&self->hello, self->zn.key);
	return stranger(self->address, &self->hello, sizeof(self->hello), fd, &self->answer);
}

/* A hello that was overheard is of no use: its queue pair could write to what has been granted */
TEST_F(stranger, said_before)
{
	int fd;

	ASSERT_EQ(RESPONSE, newcomer(self, &fd));
	EXPECT_REJECTED(BUSY, (void)hello);
	EXPECT_REJECTED(BUSY, hello.nonce[0] ^= 1);
	EXPECT_REJECTED(BUSY, hello.time = htole64(le64toh(hello.time) - 1));
	close(fd);
	EXPECT_EQ(0, zt_revoked(self->zn.ep[0]));
}

/* Who says hello and cannot go on takes a place for a while */
TEST_F(stranger, places_are_few_and_not_for_long)
{
	int fd[STRANGERS];
	uint64_t began = zt_now_ms();

	for (int i = 0; i < STRANGERS; i++)
		ASSERT_EQ(RESPONSE, newcomer(self, &fd[i]));
	EXPECT_EQ(REJECTED, newcomer(self, &self->fd));
	EXPECT_EQ(BUSY, reason(&self->answer));
	close(self->fd);
	EXPECT_GT(STAY_MS, zt_now_ms() - began);
	EXPECT_TRUE(zt_until(3 * STAY_MS, ({
		int ret = newcomer(self, &self->fd);

		close(self->fd);
		self->fd = -1;
		ret == RESPONSE;
	})));
	EXPECT_LT(STAY_MS - 500, zt_now_ms() - began);
	for (int i = 0; i < STRANGERS; i++)
		close(fd[i]);
	EXPECT_EQ(0, zt_revoked(self->zn.ep[0]));
}

/* The nodes themselves still find each other when strangers are there */
TEST_F(stranger, does_not_keep_peers_out)
{
	int32_t in[NODES] = { 3, 4 }, out[NODES] = {};
	struct zcoll_cmd cmd[NODES];

	ASSERT_EQ(RESPONSE, newcomer(self, &self->fd));
	ASSERT_EQ(0, zn_connect(&self->zn));
	ASSERT_EQ(0, zn_plan(&self->zn, "ring", ZCOLL_ALLREDUCE, 0)) TH_LOG("%s", self->zn.text);
	for (int n = 0; n < NODES; n++)
		cmd[n] = zn_cmd(&self->zn, n, 0, ZCOLL_INT32, ZCOLL_SUM, &in[n], &out[n], 1);
	EXPECT_EQ(0, zt_all_of(self->zn.ep, ZCOLL_ALLREDUCE, cmd, NODES));
	EXPECT_EQ(7, out[0]);
	EXPECT_EQ(7, out[1]);
}

TEST_HARNESS_MAIN
