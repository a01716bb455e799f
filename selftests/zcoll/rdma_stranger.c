// SPDX-License-Identifier: GPL-2.0
/*
 * Who connects to a node's RDMA listener without being one of its peers: with garbage, without
 * the key, or with it but no more to say. None gets far, none stays, and none disturbs.
 *
 * The test speaks to the connection manager through /dev/infiniband/rdma_cm, with a queue pair
 * number that it made up: what comes after the handshake would need a queue pair. iWARP devices
 * want one at once, so there the tests are skipped, as they are without an RDMA device.
 *
 * The tag of a HELLO is computed by the kernel's crypto interface, apart from the driver.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <linux/if_alg.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>

#include "net.h"
#include "kselftest_harness.h"

#define MAGIC		0x6c6f637a
#define NODES		2
#define STRANGERS	16	/* of them are there at a time */
#define STAY_MS		5000	/* and for so long */

/* Documentation/protocol.md */
struct hello {
	uint32_t magic;
	uint16_t version, rail;
	uint8_t comm[8];
	uint32_t from, to;
	uint8_t nonce[16];
	uint8_t tag[16];
};

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
	return le32toh(said[0]) == MAGIC ? le32toh(said[1]) : 0;
}

/* --- what is said -------------------------------------------------------- */

/* HMAC-SHA-256. Return: 0, or a negative errno: the kernel does not offer it. */
static int hmac(const uint8_t key[16], const char *label, const void *data, size_t bytes,
		uint8_t proof[32])
{
	struct sockaddr_alg alg = {
		.salg_family = AF_ALG, .salg_type = "hash", .salg_name = "hmac(sha256)",
	};
	int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), op = -1, ret = -EIO;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&alg, sizeof(alg)) &&
	    !setsockopt(fd, SOL_ALG, ALG_SET_KEY, key, 16))
		op = accept(fd, NULL, 0);
	if (op >= 0 && send(op, label, strlen(label), MSG_MORE) >= 0 &&
	    send(op, data, bytes, 0) == (ssize_t)bytes && read(op, proof, 32) == 32)
		ret = 0;
	close(op);
	close(fd);
	return ret;
}

/* What node 1 would say to node 0 */
static int hello_make(struct hello *hello, const uint8_t key[16])
{
	uint8_t proof[32];
	int ret;

	*hello = (struct hello){ .magic = htole32(MAGIC), .version = htole16(1), .from = htole32(1) };
	ret = hmac(key, "name", "", 0, proof);
	memcpy(hello->comm, proof, sizeof(hello->comm));
	ret = ret ?: hmac(key, "hello", hello, offsetof(struct hello, tag), proof);
	memcpy(hello->tag, proof, sizeof(hello->tag));
	return ret;
}

/* --- tests --------------------------------------------------------------- */

FIXTURE(stranger) {
	struct zt zt;
	struct zn zn;
	uint8_t address[ZCOLL_ADDRESS_MAX];
	struct rdma_ucm_event_resp answer;
	struct hello hello;
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
			SKIP(return, "no InfiniBand or RoCE device");
		ASSERT_LE(0, self->zn.ep[n]) TH_LOG("%s", self->zn.text);
	}
	ASSERT_EQ(0, zn_address(self->zn.ep[0], self->address));
	if (access("/dev/infiniband/rdma_cm", R_OK | W_OK))
		SKIP(return, "no /dev/infiniband/rdma_cm");
	if (hello_make(&self->hello, self->zn.key))
		SKIP(return, "no hmac(sha256) for user space");
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
	struct hello hello = self->hello;					\
	uint8_t __proof[32];							\
										\
	__VA_ARGS__;								\
	if ((why) != KEY)							\
		hmac(self->zn.key, "hello", &hello, offsetof(struct hello, tag), __proof); \
	if ((why) != KEY)							\
		memcpy(hello.tag, __proof, sizeof(hello.tag));			\
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

/* Who was overheard may say the hello again, but cannot go on: it takes a place for a while */
TEST_F(stranger, places_are_few_and_not_for_long)
{
	int fd[STRANGERS];
	uint64_t began = zt_now_ms();

	for (int i = 0; i < STRANGERS; i++)
		ASSERT_EQ(RESPONSE, stranger(self->address, &self->hello, sizeof(self->hello),
					     &fd[i], &self->answer));
	EXPECT_REJECTED(BUSY, (void)hello);
	EXPECT_GT(STAY_MS, zt_now_ms() - began);
	EXPECT_TRUE(zt_until(3 * STAY_MS, ({
		int ret = stranger(self->address, &self->hello, sizeof(self->hello), &self->fd,
				   &self->answer);
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

	ASSERT_EQ(RESPONSE, stranger(self->address, &self->hello, sizeof(self->hello), &self->fd,
				     &self->answer));
	ASSERT_EQ(0, zn_connect(&self->zn));
	ASSERT_EQ(0, zn_plan(&self->zn, "ring", ZCOLL_ALLREDUCE, 0)) TH_LOG("%s", self->zn.text);
	for (int n = 0; n < NODES; n++)
		cmd[n] = zn_cmd(&self->zn, n, 0, ZCOLL_INT32, ZCOLL_SUM, &in[n], &out[n], 1);
	EXPECT_EQ(0, zt_all_of(self->zn.ep, ZCOLL_ALLREDUCE, cmd, NODES));
	EXPECT_EQ(7, out[0]);
	EXPECT_EQ(7, out[1]);
}

TEST_HARNESS_MAIN
