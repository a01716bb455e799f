// SPDX-License-Identifier: GPL-2.0
/*
 * The store: processes on several nodes meet at it, strangers do not; whoever is
 * missing is named, and a failure of one is known to all.
 */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/boot/store.h"
#include "party.h"
#include "tap.h"

#define ROUNDS	3

/* ---- what the processes do ---- */

/* The record of participant @p in a round: of its own length, and easy to tell */
static size_t fill(uint8_t *record, unsigned int p, unsigned int round)
{
	size_t len = (p * 7 + round * 3) % 60;

	memset(record, p + round * 16 + 1, len);
	return len;
}

static int check(const uint8_t *all, unsigned int n, unsigned int round)
{
	uint8_t want[60];

	for (unsigned int p = 0; p < n; p++, all += sizeof(want)) {
		memset(want, 0, sizeof(want));
		fill(want, p, round);
		if (memcmp(all, want, sizeof(want)))
			return -EBADMSG;
	}
	return 0;
}

/* All rounds, as participant @me; then, or on failure, close */
static int all_rounds(struct zcoll_attr *attr, unsigned int me)
{
	unsigned int n = attr->nranks + attr->aggregators;
	uint8_t mine[60], *all = malloc(n * sizeof(mine));
	struct zc_exchange *x;
	int ret = zc_exchange_open(&x, attr, me);
	bool open = !ret;

	for (unsigned int round = 0; !ret && round < ROUNDS; round++) {
		ret = zc_exchange_gather(x, mine, fill(mine, me, round), all, sizeof(mine));
		if (!ret)
			ret = check(all, n, round);
	}
	if (open)
		zc_exchange_close(x);
	free(all);
	return ret;
}

static int meet(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	(void)party;
	return all_rounds(attr, process);
}

/* ---- meeting ---- */

static void test_meet(void)
{
	struct party party;

	party_init(&party, 1, 0, meet);
	party_run(&party);
	ok(party_all(&party, 0, ""), "one rank meets itself");

	party_init(&party, 5, 2, meet);
	party_run(&party);
	ok(party_all(&party, 0, ""), "5 ranks and 2 aggregators get all records of all rounds");

	party_init(&party, 4, 0, meet);
	party.attr.store = party_store("[::1]", NULL);
	party_run(&party);
	ok(party_all(&party, 0, ""), "by IPv6");

	party_init(&party, 4, 0, meet);
	party.attr.store = party_store("localhost", NULL);
	party_run(&party);
	ok(party_all(&party, 0, ""), "by a name");

	party_init(&party, 300, 0, meet);
	party_run(&party);
	ok(party_all(&party, 0, ""), "300 ranks");
}

static int rank_0_is_late(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	(void)party;
	if (!process)
		usleep(300000);
	return all_rounds(attr, process);
}

static int twice(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	int ret = all_rounds(attr, process);

	(void)party;
	zcoll_key_derive(attr->key, "second");
	return ret ? ret : all_rounds(attr, process);
}

static void test_order(void)
{
	struct party party;

	party_init(&party, 4, 0, rank_0_is_late);
	party_run(&party);
	ok(party_all(&party, 0, ""), "rank 0 may be the last to come");

	party_init(&party, 4, 0, twice);
	party_run(&party);
	ok(party_all(&party, 0, ""), "one communicator after the other at one store");
}

/* ---- who is missing ---- */

static void test_missing(void)
{
	struct party party;

	party_init(&party, 5, 1, meet);
	party.processes = 3;
	party.attr.join_timeout_ns = 300 * PARTY_MS;
	party_run(&party);
	ok(party_all(&party, -ETIMEDOUT,
		     "3 of 6 ranks and aggregators joined in 0.3 s, missing: rank 3, rank 4, aggregator 0"),
	   "all that are there are told who is missing");

	party_init(&party, 100, 0, meet);
	party.processes = 2;
	party.attr.join_timeout_ns = 300 * PARTY_MS;
	party_run(&party);
	ok(party_all(&party, -ETIMEDOUT, "rank 9, ... (98 in all)"), "of many, some");
}

static int one_is_impatient(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	(void)party;
	if (process == 1)
		attr->join_timeout_ns = 300 * PARTY_MS;
	return all_rounds(attr, process);
}

static void test_impatient(void)
{
	struct party party;

	party_init(&party, 4, 0, one_is_impatient);
	party.processes = 3;
	party_run(&party);
	ok(party_all(&party, -ETIMEDOUT, "3 of 4 ranks joined in 0.3 s, missing: rank 3"),
	   "the shortest time counts, and ends it for all, by one text");
}

static int rank_0_never_comes(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	return process ? meet(party, process, attr) : 0;
}

static void test_no_store(void)
{
	struct party party;

	party_init(&party, 2, 0, rank_0_never_comes);
	party.attr.join_timeout_ns = 200 * PARTY_MS;
	party_run(&party);
	is(party.results[1].ret, -ETIMEDOUT, "without rank 0 the time ends it");
	has(party.results[1].text, "rank 1: rank 0's store at 127.0.0.1:", "by name");
	has(party.results[1].text, "Connection refused", "with the reason");
}

/* Of 3 ranks some do not come: the others are told @part */
static void miss(int (*play)(struct party *, unsigned int, struct zcoll_attr *), const char *part,
		 const char *name)
{
	struct party party;

	party_init(&party, 3, 0, play);
	party.attr.store = NULL;
	party.processes = 2;
	party.attr.join_timeout_ns = 300 * PARTY_MS;
	party_run(&party);
	if (play == rank_0_never_comes)
		party.results[0] = party.results[1];
	ok(party_all(&party, -ETIMEDOUT, part), "%s", name);
}

/* Whoever is missing has perhaps been told another place */
static void test_place_is_named(void)
{
	char place[60], part[120];
	unsigned int port;

	snprintf(place, sizeof(place), "%s", party_store("127.0.0.1", &port));
	setenv("ZCOLL_STORE", place, 1);
	snprintf(part, sizeof(part), "at %s (ZCOLL_STORE)", place);
	miss(meet, part, "a rank is missing at ZCOLL_STORE, which is named");
	miss(rank_0_never_comes, part, "so it is if that is rank 0");
	unsetenv("ZCOLL_STORE");

	party_store("127.0.0.1", &port);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	snprintf(place, sizeof(place), "%u", port - 1);
	setenv("MASTER_PORT", place, 1);
	snprintf(part, sizeof(part), "at 127.0.0.1:%u (MASTER_ADDR)", port);
	miss(meet, part, "a rank is missing where MASTER_ADDR says, which is named");
	miss(rank_0_never_comes, part, "and again");
	unsetenv("MASTER_ADDR");
	unsetenv("MASTER_PORT");
}

/* ---- who does not belong ---- */

static int last_is_another(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	const struct zcoll_attr *other = party->arg;

	if (process < party->processes - 1)
		return all_rounds(attr, process);
	memcpy(attr->key, other->key, sizeof(attr->key));
	attr->nranks = other->nranks;
	usleep(100000);
	return all_rounds(attr, other->rank);
}

static void test_strange_ranks(void)
{
	struct party party;
	struct zcoll_attr other;
	unsigned int second;

	party_init(&party, 3, 0, last_is_another);
	other = party.attr;
	other.rank = 2;
	zcoll_key_derive(other.key, "wrong");
	party.attr.join_timeout_ns = 2000 * PARTY_MS;
	party.arg = &other;
	party_run(&party);
	is(party.results[2].ret, -EKEYREJECTED, "a rank with another key is refused");
	has(party.results[2].text, "has another ZCOLL_KEY", "and told why");
	has(party.results[0].text, "missing: rank 2", "to the others it is missing");

	party_init(&party, 3, 0, last_is_another);
	other = party.attr;
	other.rank = 1;
	party.arg = &other;
	party.attr.join_timeout_ns = 1000 * PARTY_MS;
	party_run(&party);	/* 0, 1, and another 1: 2 is not there */
	second = party.results[1].ret == -EBUSY ? 1 : 2;
	is(party.results[second].ret, -EBUSY, "the second process of a rank is refused");
	has(party.results[second].text, "rank 1 is taken", "and told why");
	has(party.results[3 - second].text, "missing: rank 2", "which does not harm the first");

	party_init(&party, 3, 0, last_is_another);
	other = party.attr;
	other.rank = 2;
	other.nranks = 4;
	party.arg = &other;
	party_run(&party);
	ok(party_all(&party, -EPROTO, "rank 2 was told that there are 4 ranks"),
	   "ranks that disagree on their number all fail");
}

static int connect_to(const char *store)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	sa.sin_port = htons(atoi(strchr(store, ':') + 1));
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 100; i++) {
		if (!connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
			return fd;
		usleep(10000);
	}
	return -1;
}

/* What strangers send: nothing, garbage, a part of a frame, a frame too long */
static void send_strange(int fd, unsigned int i)
{
	static const uint8_t half[] = { 0x11, 0x53, 0x63, 0x7a, 32, 0, 0, 0, 1, 2, 3 };
	static const uint8_t large[] = { 0x11, 0x53, 0x63, 0x7a, 0xff, 0xff, 0xff, 0xff };
	static const uint8_t early[] = { 0x15, 0x53, 0x63, 0x7a, 4, 0, 0, 0, 1, 0, 0, 0 };
	char noise[4096];

	switch (i % 5) {
	case 1:
		memset(noise, i, sizeof(noise));
		send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
		break;
	case 2:
		send(fd, half, sizeof(half), MSG_NOSIGNAL);
		break;
	case 3:
		send(fd, large, sizeof(large), MSG_NOSIGNAL);
		break;
	case 4:
		send(fd, early, sizeof(early), MSG_NOSIGNAL);
		break;
	}
}

/* Ranks come when the strangers are there */
static int after_strangers(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	if (process)
		usleep(*(unsigned int *)party->arg);
	return all_rounds(attr, process);
}

static void test_strangers(unsigned int strangers, bool silent, const char *name)
{
	unsigned int pause = 200000;
	int fds[256];
	struct party party;

	party_init(&party, 3, 0, after_strangers);
	party.arg = &pause;
	party_start(&party);
	for (unsigned int i = 0; i < strangers; i++) {
		fds[i] = connect_to(party.attr.store);
		send_strange(fds[i], silent ? 0 : i);
	}
	party_end(&party);
	ok(party_all(&party, 0, "") && party.results[0].ns < 4000 * PARTY_MS, "%s", name);
	for (unsigned int i = 0; i < strangers; i++)
		close(fds[i]);
}

/* ---- who knows the key, but not how to behave ---- */

/* Become a member, as participant 1, or as far as a server goes */
static int shake_hands(int fd, const struct zcoll_attr *attr)
{
	struct proof_of of = { .key = attr->key, .who = 1, .nranks = attr->nranks };
	struct frame frame;

	zc_nonce(of.caller_nonce);
	memcpy(frame.hello.nonce, of.caller_nonce, NONCE_BYTES);
	zc_frame(&frame, FRAME_HELLO, sizeof(frame.hello));
	send(fd, &frame, sizeof(frame.head) + sizeof(frame.hello), MSG_NOSIGNAL);
	recv(fd, &frame, sizeof(frame.head) + sizeof(frame.hello), MSG_WAITALL);
	memcpy(of.server_nonce, frame.hello.nonce, NONCE_BYTES);

	frame.proof.who = htole32(1);
	frame.proof.nranks = htole32(attr->nranks);
	frame.proof.aggregators = 0;
	zc_prove(frame.proof.proof, &of, SIDE_CALLER);
	zc_frame(&frame, FRAME_PROOF, sizeof(frame.proof));
	send(fd, &frame, sizeof(frame.head) + sizeof(frame.proof), MSG_NOSIGNAL);
	recv(fd, &frame, sizeof(frame.head) + sizeof(frame.welcome), MSG_WAITALL);
	return zc_is_proof(frame.welcome.proof, &of, SIDE_SERVER) ? 0 : -EKEYREJECTED;
}

/* What a member must not send */
static void misbehave(int fd, unsigned int how)
{
	struct frame frame;
	size_t len = sizeof(frame.head);

	memset(&frame, 0x5a, sizeof(frame));
	switch (how) {
	case 0:			/* noise */
		break;
	case 1:			/* a record of a later round */
		frame.record.round = htole32(2);
		zc_frame(&frame, FRAME_RECORD, 4);
		len += 4;
		break;
	case 2:			/* a record that is too long */
		frame.record.round = htole32(1);
		zc_frame(&frame, FRAME_RECORD, sizeof(frame.record) + 1);
		break;
	case 3:			/* an error that is none */
		frame.fail.err = 0;
		zc_frame(&frame, FRAME_FAIL, 8);
		len += 8;
		break;
	case 4:			/* no error at all */
		zc_frame(&frame, FRAME_FAIL, 0);
		break;
	case 5:			/* a result */
		zc_frame(&frame, FRAME_RESULT, 4);
		len += 4;
		break;
	}
	send(fd, &frame, len, MSG_NOSIGNAL);
}

static int one_misbehaves(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	char byte;
	int fd;

	if (process != 1)
		return all_rounds(attr, process);
	fd = connect_to(attr->store);
	if (shake_hands(fd, attr))
		return 0;
	misbehave(fd, *(unsigned int *)party->arg);
	while (recv(fd, &byte, 1, 0) > 0)
		;
	return -EOWNERDEAD;
}

static void test_members(void)
{
	struct party party;

	for (unsigned int how = 0; how < 6; how++) {
		bool all = true;

		party_init(&party, 3, 0, one_misbehaves);
		party.arg = &how;
		party_run(&party);
		for (unsigned int i = 0; i < 3; i++)
			all = all && (party.results[i].ret == -EOWNERDEAD ||
				      party.results[i].ret == -EPROTO) &&
			      party.results[i].ns < 4000 * PARTY_MS;
		if (!ok(all, "a member that breaks the rules ends it for all, at once: %u", how))
			party_all(&party, -EOWNERDEAD, "");
	}
}

/* A server that is not ours: it answers, in the right form, but knows no key */
static int false_server(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	struct frame frame;
	int fd, on = 1;

	(void)party;
	if (process)
		return all_rounds(attr, process);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	sa.sin_port = htons(atoi(strchr(attr->store, ':') + 1));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, 10))
		return -errno;
	alarm(5);
	for (;;) {
		int caller = accept(fd, NULL, NULL);

		memset(&frame, 0, sizeof(frame));
		recv(caller, &frame, sizeof(frame.head) + sizeof(frame.hello), MSG_WAITALL);
		zc_frame(&frame, FRAME_CHALLENGE, sizeof(frame.hello));
		send(caller, &frame, sizeof(frame.head) + sizeof(frame.hello), MSG_NOSIGNAL);
		recv(caller, &frame, sizeof(frame.head) + sizeof(frame.proof), MSG_WAITALL);
		zc_frame(&frame, FRAME_WELCOME, sizeof(frame.welcome));
		send(caller, &frame, sizeof(frame.head) + sizeof(frame.welcome), MSG_NOSIGNAL);
	}
}

static void test_false_server(void)
{
	struct party party;

	party_init(&party, 2, 0, false_server);
	party_start(&party);
	while (party.results[1].ret == 1)
		usleep(10000);
	kill(party.pids[0], SIGKILL);
	party_end(&party);
	is(party.results[1].ret, -EKEYREJECTED, "a store that does not know the key is none");
}

/* ---- failures ---- */

/* One process fails between the first round and the second */
static int one_fails(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	unsigned int who = *(unsigned int *)party->arg;
	uint8_t all[16];
	struct zc_exchange *x;
	int ret = zc_exchange_open(&x, attr, process);

	if (!ret)
		ret = zc_exchange_gather(x, "", 0, all, 1);
	if (!ret && process == who)
		ret = zc_exchange_error(x, -ENODEV, "no device");
	if (!ret)
		ret = zc_exchange_gather(x, "", 0, all, 1);
	if (ret)
		zc_exchange_fail(x, ret);
	zc_exchange_close(x);
	return ret;
}

/* One process fails when the others have not even come */
static int one_fails_early(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	unsigned int who = *(unsigned int *)party->arg;
	struct zc_exchange *x;
	int ret;

	if (process != who) {
		usleep(200000);
		return all_rounds(attr, process);
	}
	ret = zc_exchange_open(&x, attr, process);
	if (ret)
		return ret;
	ret = zc_exchange_error(x, -ENODEV, "no device");
	zc_exchange_fail(x, ret);
	zc_exchange_close(x);
	return ret;
}

static int one_is_killed(struct party *party, unsigned int process, struct zcoll_attr *attr)
{
	unsigned int who = *(unsigned int *)party->arg;
	uint8_t all[16];
	struct zc_exchange *x;
	int ret = zc_exchange_open(&x, attr, process);

	if (!ret)
		ret = zc_exchange_gather(x, "", 0, all, 1);
	if (process == who)
		kill(getpid(), SIGKILL);
	if (!ret)
		ret = zc_exchange_gather(x, "", 0, all, 1);
	zc_exchange_close(x);
	return ret;
}

static bool soon(const struct party *party)
{
	for (unsigned int i = 0; i < party->processes; i++)
		if (party->results[i].ns > 5000 * PARTY_MS)
			return false;
	return true;
}

static void test_failures(void)
{
	struct party party;
	char text[40];

	for (unsigned int who = 0; who < 2; who++) {
		snprintf(text, sizeof(text), "rank %u: no device", who);
		party_init(&party, 4, 0, one_fails);
		party.arg = &who;
		party_run(&party);
		ok(party_all(&party, -ENODEV, text) && soon(&party),
		   "when rank %u fails, all know why, at once", who);

		party_init(&party, 4, 0, one_fails_early);
		party.arg = &who;
		party_run(&party);
		ok(party_all(&party, -ENODEV, text) && soon(&party),
		   "also those that come later than rank %u fails", who);

		snprintf(text, sizeof(text), "rank %u has gone", who);
		party_init(&party, 4, 0, one_is_killed);
		party.arg = &who;
		party_run(&party);
		party.results[who] = party.results[2];
		ok(party_all(&party, -EOWNERDEAD, text) && soon(&party),
		   "when rank %u is killed, all know, at once", who);
	}
}

/* ---- where it is ---- */

static void test_range(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	struct party party, other;
	unsigned int port;
	char range[40];
	int fd;

	party_store("127.0.0.1", &port);
	if (port > 65500)
		port = 65500;
	snprintf(range, sizeof(range), "%u-%u", port, port + 8);
	setenv("ZCOLL_PORTS", range, 1);

	/* The first port belongs to somebody who says nothing */
	fd = socket(AF_INET, SOCK_STREAM, 0);
	sa.sin_port = htons(port);
	bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	listen(fd, 10);

	party_init(&party, 3, 0, meet);
	party.attr.store = "127.0.0.1";
	party.attr.join_timeout_ns = 20000 * PARTY_MS;
	other = party;
	party_init(&other, 3, 0, meet);
	other.attr = party.attr;
	zcoll_key_derive(other.attr.key, "other");
	party_start(&party);
	party_start(&other);
	party_end(&party);
	party_end(&other);
	ok(party_all(&party, 0, "") && party_all(&other, 0, ""),
	   "two jobs share a range of ports, of which one is taken");
	close(fd);
	unsetenv("ZCOLL_PORTS");
}

static void test_interface(void)
{
	struct party party;

	setenv("ZCOLL_IFACE", "lo", 1);
	party_init(&party, 3, 0, meet);
	party_run(&party);
	ok(party_all(&party, 0, ""), "rank 0 listens at an interface");
	unsetenv("ZCOLL_IFACE");
}

static const struct {
	const char *store, *ports, *iface, *part;
} places[] = {
	{ "", NULL, NULL, "must be HOST:PORT" },
	{ ":1", NULL, NULL, "must be HOST:PORT" },
	{ "host", NULL, NULL, "zcoll_attr.store=host: no port" },
	{ "host:", NULL, NULL, "must follow a port" },
	{ "host:0", NULL, NULL, "must follow a port" },
	{ "host:65536", NULL, NULL, "must follow a port" },
	{ "host:12x", NULL, NULL, "must follow a port" },
	{ "::1:5", NULL, NULL, "must be HOST:PORT" },
	{ "fe80::1:5", NULL, NULL, "is put in [ ]" },
	{ "[::1", NULL, NULL, "must be HOST:PORT" },
	{ "[::1]5", NULL, NULL, "must follow a port" },
	{ "host", "5", NULL, "ZCOLL_PORTS=5: must be LOW-HIGH" },
	{ "host", "9-5", NULL, "ZCOLL_PORTS=9-5" },
	{ "host", "1000-1064", NULL, "at most 64 ports" },
	{ "127.0.0.1:1", NULL, "nosuch0", "ZCOLL_IFACE=nosuch0" },
};

static void test_places(void)
{
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_attr attr;
	struct zc_exchange *x;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		zcoll_attr_init(&attr);
		attr.nranks = 2;
		attr.exchange = ZCOLL_EXCHANGE_STORE;
		attr.store = places[i].store;
		attr.error = text;
		attr.error_len = sizeof(text);
		text[0] = '\0';
		if (places[i].ports)
			setenv("ZCOLL_PORTS", places[i].ports, 1);
		if (places[i].iface)
			setenv("ZCOLL_IFACE", places[i].iface, 1);
		if (zc_exchange_open(&x, &attr, 0) == 0)
			zc_exchange_close(x);
		has(text, places[i].part, "refused and named: '%s' %s%s", places[i].store,
		    places[i].ports ?: "", places[i].iface ?: "");
		unsetenv("ZCOLL_PORTS");
		unsetenv("ZCOLL_IFACE");
	}
}

int main(void)
{
	test_meet();
	test_order();
	test_missing();
	test_impatient();
	test_no_store();
	test_place_is_named();
	test_strange_ranks();
	test_strangers(20, false, "strangers who send garbage do not keep ranks from meeting");
	test_strangers(200, true, "nor do many who say nothing: they are dropped");
	test_members();
	test_false_server();
	test_failures();
	test_range();
	test_interface();
	test_places();
	return tap_end();
}
