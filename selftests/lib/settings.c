// SPDX-License-Identifier: GPL-2.0
/*
 * What the environment asks of the library, and the device, on a mock of it: what makes no sense
 * is refused with its name, its value and what there is, on one node as on several.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "mock.h"
#include "party.h"
#include "tap.h"

static char rules[] = "/tmp/zcoll-settings-XXXXXX";

/* A variable that makes no sense, and what is said of it */
static const struct {
	const char *name, *value, *part;
} bad[] = {
	{ "ZCOLL_MAILBOX", "no", "ZCOLL_MAILBOX=no: must be 0 or 1" },
	{ "ZCOLL_MAILBOX", "2", "ZCOLL_MAILBOX=2: must be 0 or 1" },
	{ "ZCOLL_MAILBOX", "01", "ZCOLL_MAILBOX=01: must be 0 or 1" },
	{ "ZCOLL_MAILBOX", " 1", "ZCOLL_MAILBOX= 1: must be 0 or 1" },
	{ "ZCOLL_MAIL_BYTES", "64K", "ZCOLL_MAIL_BYTES=64K: must be 0 to 65536" },
	{ "ZCOLL_MAIL_BYTES", "65537", "ZCOLL_MAIL_BYTES=65537: must be" },
	{ "ZCOLL_MAIL_BYTES", "-1", "ZCOLL_MAIL_BYTES=-1: must be" },
	{ "ZCOLL_MAIL_BYTES", "99999999999999999999", "ZCOLL_MAIL_BYTES=9999" },
	{ "ZCOLL_FABRIC", "ib", "ZCOLL_FABRIC=ib: must be rdma, rdma:RAIL,... or loop" },
	{ "ZCOLL_FABRIC", "rdm", "ZCOLL_FABRIC=rdm: must be" },
	{ "ZCOLL_FABRIC", "rdmas:a", "ZCOLL_FABRIC=rdmas:a: must be" },
	{ "ZCOLL_FABRIC", ":", "ZCOLL_FABRIC=:: must be" },
	{ "ZCOLL_PORTS", "29600", "ZCOLL_PORTS=29600: must be LOW-HIGH, at most 64 ports of 1 to 65535" },
	{ "ZCOLL_PORTS", "9-5", "ZCOLL_PORTS=9-5: must be LOW-HIGH" },
	{ "ZCOLL_PORTS", "1000-1064", "ZCOLL_PORTS=1000-1064: must be LOW-HIGH" },
	{ "ZCOLL_PORTS", "1-70000", "ZCOLL_PORTS=1-70000: must be LOW-HIGH" },
	{ "ZCOLL_PLAN", "rign", "ZCOLL_PLAN=rign: no algorithm \"rign\"; there are: " },
	{ "ZCOLL_PLAN", "ring:radix=x", "ZCOLL_PLAN=ring:radix=x: \"radix=x\": should be" },
	{ "ZCOLL_PLAN_ALLREDUCE", "rign", "ZCOLL_PLAN_ALLREDUCE=rign: no algorithm" },
	{ "ZCOLL_PLAN_REDUCE_SCATTER", "1", "ZCOLL_PLAN_REDUCE_SCATTER=1: no algorithm" },
	{ "ZCOLL_PLAN_ALLGATHER", "1", "ZCOLL_PLAN_ALLGATHER=1: no algorithm" },
	{ "ZCOLL_PLAN_BROADCAST", "1", "ZCOLL_PLAN_BROADCAST=1: no algorithm" },
	{ "ZCOLL_PLAN_REDUCE", "1", "ZCOLL_PLAN_REDUCE=1: no algorithm" },
	{ "ZCOLL_PLAN_BARRIER", "1", "ZCOLL_PLAN_BARRIER=1: no algorithm" },
	{ "ZCOLL_RULES", "/none/rules", "ZCOLL_RULES: /none/rules: No such file" },
	{ "ZCOLL_RULES", rules, "ZCOLL_RULES: /tmp/zcoll-settings-" },
	{ "ZCOLL_COSTS", "/none/costs", "ZCOLL_COSTS: /none/costs: " },
	{ "ZCOLL_COSTS", "1,2,x", "ZCOLL_COSTS: " },
};

static const struct {
	const char *name, *value;
} good[] = {
	{ "ZCOLL_MAILBOX", "0" }, { "ZCOLL_MAILBOX", "1" }, { "ZCOLL_MAILBOX", "" },
	{ "ZCOLL_MAIL_BYTES", "0" }, { "ZCOLL_MAIL_BYTES", "65536" }, { "ZCOLL_MAIL_BYTES", "" },
	{ "ZCOLL_FABRIC", "loop" }, { "ZCOLL_FABRIC", "loop:2" }, { "ZCOLL_FABRIC", "rdma" },
	{ "ZCOLL_FABRIC", "rdma:a/1,b" }, { "ZCOLL_FABRIC", "" },
	{ "ZCOLL_PORTS", "1000-1063" }, { "ZCOLL_PORTS", "" },
	{ "ZCOLL_STORE", "host:5" }, { "ZCOLL_STORE", "[::1]:5" }, { "ZCOLL_STORE", "" },
	{ "ZCOLL_IFACE", "none0" }, { "ZCOLL_PLAN", "pairwise" }, { "ZCOLL_PLAN", "knomial:radix=4,slice=64K" },
	{ "ZCOLL_PLAN_BARRIER", "bruck" }, { "ZCOLL_PLAN", "" }, { "ZCOLL_RULES", "" },
	{ "ZCOLL_COSTS", "1000,100,50,0.1" },
};

static char text[ZCOLL_TEXT_MAX];

/* One node; @fabric: as the caller asks for it, or NULL */
static int create_here(const char *fabric)
{
	struct zcoll_comm *comm;
	struct zcoll_attr attr;
	int ret;

	zcoll_attr_init(&attr);
	attr.nranks = 2;
	attr.fabric = fabric;
	attr.error = text;
	attr.error_len = sizeof(text);
	text[0] = '\0';
	ret = zcoll_comm_create(&comm, &attr);
	return ret ? ret : zcoll_comm_free(comm);
}

/* One of two nodes; rank 1 has the variable, and all are told */
static int create_there(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	unsigned int i = *(unsigned int *)party->arg;
	char node[2] = { '0' + process };
	struct zcoll_comm *comm;
	int ret;

	setenv("ZCOLL_NODE_ID", node, 1);
	if (process)
		setenv(bad[i].name, bad[i].value, 1);
	attr->rank = process;
	ret = zcoll_comm_create(&comm, attr);
	return ret ? ret : zcoll_comm_free(comm);
}

static void test_bad(void)
{
	struct party party;

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		setenv(bad[i].name, bad[i].value, 1);
		ok(create_here(NULL) < 0, "%s='%s' is refused", bad[i].name, bad[i].value);
		has(text, bad[i].part, "and named");
		unsetenv(bad[i].name);

		party_init(&party, 2, 0, create_there);
		party.arg = &i;
		party_run(&party);
		ok(party.results[0].ret < 0 && strstr(party.results[0].text, bad[i].part) &&
		   strstr(party.results[0].text, "rank 1"), "with its rank, on all nodes");
	}
	is(create_here("ib"), -EINVAL, "a fabric that the caller asks for");
	has(text, "fabric ib: must be rdma", "likewise");
}

static void test_good(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(good); i++) {
		setenv(good[i].name, good[i].value, 1);
		is(create_here(NULL), 0, "%s='%s' is taken", good[i].name, good[i].value);
		unsetenv(good[i].name);
	}
	setenv("ZCOLL_FABRIC", "ib", 1);
	is(create_here("loop"), 0, "what the caller asks for counts");
	unsetenv("ZCOLL_FABRIC");
}

static int gather_alone(void *arg, const void *mine, void *all, size_t bytes)
{
	(void)arg;
	memcpy(all, mine, bytes);
	return 0;
}

/* One rank, that the caller lets meet the others */
static int create_gathered(void)
{
	struct zcoll_comm *comm;
	struct zcoll_attr attr;
	int ret;

	zcoll_attr_init(&attr);
	attr.exchange = ZCOLL_EXCHANGE_GATHER;
	attr.gather = gather_alone;
	attr.error = text;
	attr.error_len = sizeof(text);
	ret = zcoll_comm_create(&comm, &attr);
	return ret ? ret : zcoll_comm_free(comm);
}

/* Where the ranks would meet, if they were on several nodes */
static void test_store(void)
{
	setenv("ZCOLL_STORE", "host:0", 1);
	is(create_here(NULL), -EINVAL, "a store that cannot be is refused on one node");
	has(text, "ZCOLL_STORE=host:0: after the host must follow a port", "and named");
	is(create_gathered(), 0, "but not looked at where the caller lets ranks meet");
	setenv("ZCOLL_STORE", "host", 1);
	is(create_here(NULL), -EINVAL, "so is one without a port");
	has(text, "ZCOLL_STORE=host: no port: say HOST:PORT, or set ZCOLL_PORTS", "with what helps");
	setenv("ZCOLL_PORTS", "5-9", 1);
	is(create_here(NULL), 0, "which does help");
	unsetenv("ZCOLL_PORTS");
	unsetenv("ZCOLL_STORE");
}

/* A file that has no rules */
static void make_rules(char *path)
{
	int fd = mkstemp(path);

	if (fd < 0 || write(fd, "{}\n", 3) != 3)
		ok(false, "a file in /tmp");
	close(fd);
}

static const struct {
	int err;
	const char *part;
} doors[] = {
	{ ENOENT, "cannot open /none/zcoll: No such file or directory; is the module loaded (modprobe zcoll)?" },
	{ EACCES, "cannot open /none/zcoll: Permission denied; who may use it is in the group zcoll (usermod -aG zcoll USER" },
	{ EPERM, "a container must be given the device" },
	{ EMFILE, "cannot open /none/zcoll: Too many open files" },
};

static void test_doors(void)
{
	setenv("ZCOLL_DEVICE", "/none/zcoll", 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(doors); i++) {
		mock.refuse_open = doors[i].err;
		is(create_here(NULL), -doors[i].err, "a device that cannot be opened: %s",
		   strerror(doors[i].err));
		has(text, doors[i].part, "with its path and what helps");
		ok(strlen(text) < sizeof(text) - 1, "all of it");
	}
	mock.refuse_open = 0;
	unsetenv("ZCOLL_DEVICE");
}

int main(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++)
		unsetenv(bad[i].name);
	unsetenv("ZCOLL_STORE");
	make_rules(rules);
	test_bad();
	test_good();
	test_store();
	test_doors();
	unlink(rules);
	return tap_end();
}
