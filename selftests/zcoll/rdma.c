// SPDX-License-Identifier: GPL-2.0
/*
 * Fabric "rdma" on a device of this machine: rails, what is refused, and devices that go away.
 *
 * All nodes are in this kernel and reach each other through the first device of
 * /sys/class/infiniband. Without one the tests are skipped; tools/vm/vm --rdma rxe gives one.
 * The test that removes it makes it anew, which software devices only allow.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <sys/socket.h>

#include "net.h"
#include "kselftest_harness.h"

#define NODES	4

FIXTURE(rdma) {
	struct zt zt;
	struct zn zn;
	char device[256];
	int32_t *in[NODES], *out[NODES];
	struct zcoll_cmd cmd[NODES];
	struct zt_call call[NODES];
	char undo[128];
};

/* The first RDMA device, or "" */
static void first_device(char *name, size_t len)
{
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *entry;

	*name = '\0';
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			snprintf(name, len, "%s", entry->d_name);
	if (dir)
		closedir(dir);
}

FIXTURE_SETUP(rdma)
{
	static const unsigned int ranks[NODES] = { 1, 1, 1, 1 };

	ZT_SETUP(self);
	first_device(self->device, sizeof(self->device));
	if (!*self->device)
		ZT_SETUP_SKIP("no RDMA device");
	zn_init(&self->zn, &self->zt, NODES, ranks);
	self->zn.fabric = "rdma";
}

FIXTURE_TEARDOWN(rdma)
{
	for (int n = 0; n < NODES; n++) {
		free(self->in[n]);
		free(self->out[n]);
	}
	EXPECT_EQ(0, *self->undo ? system(self->undo) : 0);
	ZT_TEARDOWN(self);
}

#define MEET() do {								\
	ASSERT_EQ(0, zn_open(&self->zn)) TH_LOG("%s", self->zn.text);		\
	ASSERT_EQ(0, zn_plan(&self->zn, "ring", ZCOLL_ALLREDUCE, 0))		\
		TH_LOG("%s", self->zn.text);					\
} while (0)

/* --- operations ---------------------------------------------------------- */

static int32_t input(int node, uint64_t i)
{
	return (node + 1) * 1000003 + (int32_t)i * (node + 7);
}

/* Begin an all-reduce on node @n */
static int begin(FIXTURE_DATA(rdma) *self, int n, uint64_t seq, uint64_t count)
{
	self->in[n] = realloc(self->in[n], (count + 1) * sizeof(int32_t));
	self->out[n] = realloc(self->out[n], (count + 1) * sizeof(int32_t));
	memset(self->out[n], 0, (count + 1) * sizeof(int32_t));
	for (uint64_t i = 0; i < count; i++)
		self->in[n][i] = input(n, i);
	self->cmd[n] = zn_cmd(&self->zn, n, seq, ZCOLL_INT32, ZCOLL_SUM, self->in[n],
			      self->out[n], count);
	return zt_start_op(&self->call[n], self->zn.ep[n], &self->cmd[n]);
}

/* The first element that is wrong at node @n, or @count */
static uint64_t wrong(const FIXTURE_DATA(rdma) *self, int n, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		int32_t sum = 0;

		for (int m = 0; m < NODES; m++)
			sum += input(m, i);
		if (self->out[n][i] != sum)
			return i;
	}
	return count;
}

#define EXPECT_ALLREDUCE(seq, count) do {					\
	uint64_t __count = (count);						\
										\
	for (int n = 0; n < NODES; n++)						\
		ASSERT_EQ(0, begin(self, n, seq, __count));			\
	for (int n = 0; n < NODES; n++) {					\
		EXPECT_EQ(0, zt_finish(&self->call[n], ZT_LONG_MS))		\
			TH_LOG("node %d: %s", n, zn_text(&self->zn, self->zn.ep[n])); \
	}									\
	for (int n = 0; n < NODES; n++)						\
		EXPECT_EQ(__count, wrong(self, n, __count));			\
} while (0)

TEST_F(rdma, first_device_is_the_default)
{
	struct zcoll_stats stats;

	MEET();
	EXPECT_ALLREDUCE(0, 1);
	EXPECT_ALLREDUCE(1, 65537);
	stats = zn_stats(self->zn.ep[0]);
	EXPECT_EQ(1, stats.rails);
	/* From one neighbour, to the other one */
	EXPECT_EQ(2, stats.connected);
}

/* The ring sends 2 (n - 1) / n of the data */
TEST_F(rdma, large_units_are_written)
{
	struct zcoll_stats stats;

	MEET();
	EXPECT_ALLREDUCE(0, 1 << 18);
	stats = zn_stats(self->zn.ep[0]);
	EXPECT_EQ((1 << 20) * 3 / 2, stats.bytes_written);
	EXPECT_EQ(0, stats.bytes_inline);
}

TEST_F_TIMEOUT(rdma, many_operations_need_fresh_inboxes, 120)
{
	MEET();
	for (uint64_t seq = 0; seq < 200; seq++)
		EXPECT_ALLREDUCE(seq, 16);
}

/* Memory that is not in one piece, and is written from and to at any offset */
TEST_F(rdma, registered_buffers_of_scattered_pages)
{
	const uint64_t count = (5 << 18) + 77;
	size_t bytes = (count + 1) * sizeof(int32_t);
	uint32_t handle[NODES];
	char *mem[NODES];

	MEET();
	for (int n = 0; n < NODES; n++) {
		mem[n] = zt_pages(2 * bytes + 8192);
		memset(mem[n], 0, 2 * bytes);
		ASSERT_EQ(0, zt_register(self->zn.ep[n], mem[n], 2 * bytes, &handle[n]));
		for (uint64_t i = 0; i < count; i++)
			((int32_t *)(mem[n] + 4))[i] = input(n, i);
		self->cmd[n] = zn_cmd(&self->zn, n, 0, ZCOLL_INT32, ZCOLL_SUM, NULL, NULL, count);
		self->cmd[n].send_buf = handle[n];
		self->cmd[n].recv_buf = handle[n];
		self->cmd[n].send = 4;
		self->cmd[n].recv = bytes;
		ASSERT_EQ(0, zt_start_op(&self->call[n], self->zn.ep[n], &self->cmd[n]));
	}
	for (int n = 0; n < NODES; n++) {
		EXPECT_EQ(0, zt_finish(&self->call[n], ZT_LONG_MS))
			TH_LOG("node %d: %s", n, zn_text(&self->zn, self->zn.ep[n]));
	}
	for (int n = 0; n < NODES; n++) {
		self->out[n] = malloc(bytes);
		memcpy(self->out[n], mem[n] + bytes, bytes - sizeof(int32_t));
		EXPECT_EQ(count, wrong(self, n, count));
		EXPECT_EQ(0, zt_unregister(self->zn.ep[n], handle[n]));
	}
}

/*
 * With its verdict the root's buffer is its own again: what it writes there at once is not what the
 * others receive. TCP below an iWARP device still has bytes to send then.
 */
TEST_F(rdma, buffers_are_free_after_the_verdict)
{
	const uint64_t count = 1 << 19;
	size_t bytes = count * sizeof(int32_t);

	ASSERT_EQ(0, zn_open(&self->zn)) TH_LOG("%s", self->zn.text);
	ASSERT_EQ(0, zn_plan(&self->zn, "binomial", ZCOLL_BROADCAST, 0))
		TH_LOG("%s", self->zn.text);
	for (int n = 0; n < NODES; n++)
		self->out[n] = malloc(bytes);
	for (uint64_t seq = 0; seq < 10; seq++) {
		for (int n = 0; n < NODES; n++) {
			memset(self->out[n], n ? 0 : 1 + seq, bytes);
			self->cmd[n] = zn_cmd(&self->zn, n, seq, ZCOLL_INT32, 0, self->out[n],
					      self->out[n], count);
		}
		for (int n = 1; n < NODES; n++)
			ASSERT_EQ(0, zt_start(&self->call[n], self->zn.ep[n],
					      ZCOLL_IOC_OP(ZCOLL_BROADCAST), &self->cmd[n]));
		EXPECT_EQ(0, zt_collective(self->zn.ep[0], ZCOLL_BROADCAST, &self->cmd[0]))
			TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
		memset(self->out[0], 0xff, bytes);
		for (int n = 1; n < NODES; n++) {
			const char *got = (const char *)self->out[n];

			ASSERT_EQ(0, zt_finish(&self->call[n], ZT_LONG_MS));
			EXPECT_EQ((char)(1 + seq), got[0]);
			EXPECT_EQ(0, memcmp(got, got + 1, bytes - 1));
		}
	}
}

TEST_F(rdma, two_rails_on_one_device)
{
	char fabric[600];

	snprintf(fabric, sizeof(fabric), "rdma:%s,%s/1", self->device, self->device);
	self->zn.fabric = fabric;
	MEET();
	EXPECT_ALLREDUCE(0, 1);
	EXPECT_ALLREDUCE(1, 1 << 20);
	EXPECT_EQ(2, zn_stats(self->zn.ep[0]).rails);
}

/* What a file of the device's first port says, or "" */
static void port_says(const char *device, const char *file, unsigned int i, char line[64])
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/%s/%u", device, file, i);
	f = fopen(path, "re");
	if (!f || !fgets(line, 64, f))
		*line = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (f)
		fclose(f);
}

/* The index of a GID that begins like this, or -1 */
static int gid_index(const char *device, const char *begin)
{
	char gid[64];

	for (int i = 0; i < 256; i++) {
		port_says(device, "gids", i, gid);
		if (!*gid)
			break;
		if (!strncmp(gid, begin, strlen(begin)))
			return i;
	}
	return -1;
}

/* A unique local address (RFC 4193) for the device, whose GID it is then. Return: its index. */
static int add_ipv6(const char *device, char *undo, size_t len)
{
	static const char address[] = "fd00:7a63:6f6c:6c00::1/64";
	char netdev[64], command[128];

	port_says(device, "gid_attrs/ndevs", 0, netdev);
	if (!*netdev)
		return -1;
	snprintf(command, sizeof(command), "ip -6 addr add %s dev %.16s nodad", address, netdev);
	if (system(command))
		return -1;
	snprintf(undo, len, "ip -6 addr del %s dev %.16s", address, netdev);
	zt_until(ZT_SOON_MS, gid_index(device, "fd00:7a63:") >= 0);
	return gid_index(device, "fd00:7a63:");
}

/* Without the index IPv4 addresses come first */
TEST_F(rdma, gid_index_of_an_ipv6_address)
{
	int gid = add_ipv6(self->device, self->undo, sizeof(self->undo));
	uint8_t address[ZCOLL_ADDRESS_MAX];
	char fabric[300];

	if (gid < 0)
		SKIP(return, "no GID of an IPv6 address of its own");
	snprintf(fabric, sizeof(fabric), "rdma:%s/1/%d", self->device, gid);
	self->zn.fabric = fabric;
	MEET();
	ASSERT_EQ(0, zn_address(self->zn.ep[0], address));
	EXPECT_EQ(6, address[0]);
	EXPECT_EQ(0xfd, address[8]);
	EXPECT_ALLREDUCE(0, 1);
	EXPECT_ALLREDUCE(1, 1 << 18);
}

/* Leave only ports from @low on for those who ask for any */
static int few_ports(unsigned int low, unsigned int n, char *undo, size_t len)
{
	static const char file[] = "/proc/sys/net/ipv4/ip_local_port_range";
	unsigned int first = 0, last = 0;
	char command[128];
	FILE *f = fopen(file, "re");
	bool known = f && fscanf(f, "%u %u", &first, &last) == 2;

	if (f)
		fclose(f);
	if (!known)
		return -1;
	snprintf(undo, len, "echo %u %u >%s", first, last, file);
	snprintf(command, sizeof(command), "echo %u %u >%s", low, low + n - 1, file);
	return system(command);
}

/* On iWARP (vm --rdma siw) the connection manager's ports are those of TCP */
TEST_F(rdma, ports_that_sockets_have)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	const unsigned int low = 61000, n = 32;

	ASSERT_EQ(0, few_ports(low, n, self->undo, sizeof(self->undo)));
	for (unsigned int port = low; port < low + n; port += 2) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		any.sin_port = htons(port);
		ASSERT_EQ(0, bind(fd, (struct sockaddr *)&any, sizeof(any)));
		ASSERT_EQ(0, listen(fd, 1));
	}
	for (int node = 0; node < NODES; node++) {
		self->zn.ep[node] = zn_join(&self->zn, node);
		EXPECT_LE(0, self->zn.ep[node]) TH_LOG("%s", self->zn.text);
	}
}

/* --- what is refused ----------------------------------------------------- */

TEST_F(rdma, device_that_is_not_there)
{
	self->zn.fabric = "rdma:nonesuch";
	EXPECT_EQ(-ENODEV, zn_join(&self->zn, 0));
	EXPECT_NE(NULL, strstr(self->zn.text, "nonesuch")) TH_LOG("%s", self->zn.text);
}

TEST_F(rdma, port_that_is_not_there)
{
	char fabric[300];

	snprintf(fabric, sizeof(fabric), "rdma:%s/77", self->device);
	self->zn.fabric = fabric;
	EXPECT_EQ(-ENODEV, zn_join(&self->zn, 0));
	EXPECT_NE(NULL, strstr(self->zn.text, self->device)) TH_LOG("%s", self->zn.text);
}

/* A link-local address does not tell the network */
TEST_F(rdma, gid_index_without_an_address)
{
	int link_local = gid_index(self->device, "fe80:");
	char fabric[300];

	snprintf(fabric, sizeof(fabric), "rdma:%s/1/%d", self->device,
		 link_local < 0 ? 200 : link_local);
	self->zn.fabric = fabric;
	EXPECT_EQ(-ENODEV, zn_join(&self->zn, 0));
	EXPECT_NE(NULL, strstr(self->zn.text, self->device)) TH_LOG("%s", self->zn.text);
}

TEST_F(rdma, rails_that_are_none)
{
	static const char * const none[] = {
		"rdma:,", "rdma:a/", "rdma:a/0", "rdma:a/1/x", "rdma:a/1/2/3", "rdma:/1",
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(none); i++) {
		self->zn.fabric = none[i];
		EXPECT_EQ(-EINVAL, zn_join(&self->zn, 0)) TH_LOG("%s", none[i]);
		EXPECT_NE(NULL, strstr(self->zn.text, "DEVICE[/PORT[/GIDINDEX]]"))
			TH_LOG("%s: %s", none[i], self->zn.text);
	}
}

/* Where node 1 should be is a node of another communicator, which is not disturbed */
TEST_F(rdma, another_key)
{
	uint8_t addresses[NODES][ZCOLL_ADDRESS_MAX] = {};
	struct zn other = self->zn;

	zt_key(other.key);
	for (int n = 0; n < NODES; n++) {
		self->zn.ep[n] = zn_join(&self->zn, n);
		other.ep[n] = zn_join(&other, n);
		ASSERT_LE(0, self->zn.ep[n]);
		ASSERT_LE(0, other.ep[n]);
		ASSERT_EQ(0, zn_address(n == 1 ? other.ep[n] : self->zn.ep[n], addresses[n]));
	}
	ASSERT_EQ(0, zn_plan(&self->zn, "ring", ZCOLL_ALLREDUCE, 0));
	ASSERT_EQ(0, zn_peers(&self->zn, self->zn.ep[0], addresses));
	ASSERT_EQ(0, begin(self, 0, 0, 16));
	EXPECT_EQ(-EKEYREJECTED, zt_finish(&self->call[0], ZT_LONG_MS));
	EXPECT_NE(NULL, strstr(zn_text(&self->zn, self->zn.ep[0]), "node 1"))
		TH_LOG("%s", self->zn.text);
	EXPECT_EQ(0, zt_revoked(other.ep[1]));
}

/* --- what goes away ------------------------------------------------------ */

TEST_F(rdma, nobody_listens)
{
	uint64_t began;

	MEET();
	for (int n = 1; n < NODES; n++)
		zt_close_ep(&self->zt, self->zn.ep[n]);
	began = zt_now_ms();
	ASSERT_EQ(0, begin(self, 0, 0, 16));
	EXPECT_EQ(-EHOSTUNREACH, zt_finish(&self->call[0], ZT_LONG_MS))
		TH_LOG("%s", zn_text(&self->zn, self->zn.ep[0]));
	EXPECT_GT(ZT_LONG_MS / 2, zt_now_ms() - began);
}

/* Remove the device and make it anew; says how long the removal took, ms, or -1 */
static int replace_device(const char *device)
{
	char command[512], type[16] = {}, netdev[32] = {};
	uint64_t began;
	FILE *show;
	int ret;

	snprintf(command, sizeof(command),
		 "rdma link show %s/1 | sed -n 's/.* netdev \\([^ ]*\\).*/\\1/p'", device);
	show = popen(command, "r");
	if (!show || fscanf(show, "%31s", netdev) != 1)
		return -1;
	pclose(show);
	sscanf(device, "%15[a-z]", type);
	began = zt_now_ms();
	snprintf(command, sizeof(command), "rdma link delete %s", device);
	ret = system(command) ? -1 : (int)(zt_now_ms() - began);
	snprintf(command, sizeof(command), "rdma link add %s type %s netdev %s", device, type,
		 netdev);
	return system(command) ? -1 : ret;
}

#define EXPECT_DEVICE_GOES() do {						\
	int __ms = replace_device(self->device);				\
										\
	EXPECT_LE(0, __ms);							\
	EXPECT_GT(ZT_LONG_MS / 2, __ms);					\
	for (int n = 0; n < NODES; n++) {					\
		EXPECT_EQ(-ENODEV, zt_revoked(self->zn.ep[n]))			\
			TH_LOG("%s", zn_text(&self->zn, self->zn.ep[n]));	\
	}									\
	EXPECT_NE(NULL, strstr(zn_text(&self->zn, self->zn.ep[0]), self->device)) \
		TH_LOG("%s", self->zn.text);					\
} while (0)

TEST_F(rdma, removed_before_anything_was_sent)
{
	MEET();
	EXPECT_DEVICE_GOES();
}

TEST_F(rdma, removed_between_operations)
{
	uint32_t handle;

	MEET();
	EXPECT_ALLREDUCE(0, 1 << 16);
	ASSERT_EQ(0, zt_register(self->zn.ep[0], self->in[0], 1 << 18, &handle));
	EXPECT_DEVICE_GOES();
	EXPECT_EQ(0, zt_unregister(self->zn.ep[0], handle));
}

/* Node 3 does not take part, so that the others wait for it */
TEST_F(rdma, removed_in_the_middle_of_an_operation)
{
	MEET();
	EXPECT_ALLREDUCE(0, 1 << 16);
	for (int n = 0; n < NODES - 1; n++)
		ASSERT_EQ(0, begin(self, n, 1, 1 << 20));
	EXPECT_DEVICE_GOES();
	for (int n = 0; n < NODES - 1; n++)
		EXPECT_EQ(-ENODEV, zt_finish(&self->call[n], ZT_LONG_MS));
}

/* Between two attempts to connect there is nothing on the device, but soon will be again */
TEST_F(rdma, removed_while_nobody_answers)
{
	MEET();
	for (int n = 1; n < NODES; n++)
		zt_close_ep(&self->zt, self->zn.ep[n]);
	ASSERT_EQ(0, begin(self, 0, 0, 16));
	zt_sleep_ms(100);
	EXPECT_LE(0, replace_device(self->device));
	EXPECT_GT(0, zt_finish(&self->call[0], ZT_LONG_MS));
}

/* Whenever it comes: data that is on its way, connections that are being made */
TEST_F_TIMEOUT(rdma, removed_while_bytes_move, 120)
{
	for (int round = 0; round < 3; round++) {
		static const unsigned int ranks[NODES] = { 1, 1, 1, 1 };

		zn_init(&self->zn, &self->zt, NODES, ranks);
		self->zn.fabric = "rdma";
		MEET();
		for (int n = 0; n < NODES; n++)
			ASSERT_EQ(0, begin(self, n, 0, 1 << 20));
		zt_sleep_ms(10 * round * round);
		ASSERT_LE(0, replace_device(self->device));
		for (int n = 0; n < NODES; n++) {
			EXPECT_NE(-ETIME, zt_finish(&self->call[n], ZT_LONG_MS));
			zt_close_ep(&self->zt, self->zn.ep[n]);
		}
	}
}

TEST_HARNESS_MAIN
