// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Meeting: a caller finds the store of rank 0, and both prove that they know the key.
 *
 * Until the time is over, all ports and addresses are tried, again and again. Who answers
 * and does not know the key may be the store of another job, or of the one before.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "caller.h"

#define PAUSE_MIN_NS	10000000ULL	/* between attempts to connect, doubled each time */
#define PAUSE_MAX_NS	200000000ULL
#define DIAL_NS		3000000000ULL	/* for one address to answer */
#define PROBE_NS	1000000000ULL	/* for it to say something, if there are others */
#define REFUSED_NS	1000000000ULL	/* try again so long after somebody hung up */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Prove who we are, and have the store prove that it is ours. What the store says
 * against us it says in the first round.
 */
static int shake_hands(const struct caller *c, int fd, uint64_t end)
{
	const struct zcoll_attr *attr = c->x.attr;
	struct proof_of of = {
		.key = attr->key, .who = c->x.me, .nranks = attr->nranks,
		.aggregators = attr->aggregators,
	};
	struct frame frame;
	int ret = zc_nonce(of.caller_nonce);

	memcpy(frame.hello.nonce, of.caller_nonce, NONCE_BYTES);
	if (!ret)
		ret = zc_send_frame(fd, &frame, FRAME_HELLO, sizeof(frame.hello), end);
	if (!ret)
		ret = zc_recv_frame(fd, &frame, FRAME_CHALLENGE, sizeof(frame.hello), end);
	if (ret)
		return ret;
	memcpy(of.server_nonce, frame.hello.nonce, NONCE_BYTES);

	frame.proof.who = htole32(of.who);
	frame.proof.nranks = htole32(of.nranks);
	frame.proof.aggregators = htole32(of.aggregators);
	zc_prove(frame.proof.proof, &of, SIDE_CALLER);
	ret = zc_send_frame(fd, &frame, FRAME_PROOF, sizeof(frame.proof), end);
	if (!ret)
		ret = zc_recv_frame(fd, &frame, FRAME_WELCOME, sizeof(frame.welcome), end);
	if (!ret && !zc_is_proof(frame.welcome.proof, &of, SIDE_SERVER))
		ret = -EKEYREJECTED;
	return ret;
}

/* Somebody was there who was not our store */
static bool is_refusal(int err)
{
	return err == -ECONNRESET || err == -EPROTO || err == -EKEYREJECTED || err == -EPIPE;
}

/* Call whoever is at one address and port, for a short time if there are others to try */
static int try_one(struct caller *c, const struct addrinfo *ai, unsigned int port, bool others)
{
	int fd = zc_dial(ai->ai_addr, ai->ai_addrlen, port, sooner(c->x.end, zc_after(DIAL_NS)));
	int ret;

	if (fd < 0)
		return fd;
	ret = shake_hands(c, fd, others ? sooner(c->x.end, zc_after(PROBE_NS)) : c->x.end);
	if (ret)
		close(fd);
	else
		c->fd = fd;
	return ret;
}

/* Call the store at all its ports and addresses in turn; 0, or the error that tells most */
static int try_all(struct caller *c, const struct addrinfo *list)
{
	bool several = c->place.low != c->place.high || list->ai_next;
	int ret, worst = 0;

	for (unsigned int port = c->place.low; port <= c->place.high; port++)
		for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
			ret = try_one(c, ai, port, several);
			if (!ret)
				return 0;
			if (!worst || is_refusal(ret))
				worst = ret;
		}
	return worst;
}

static int cannot_call(const struct caller *c, int err)
{
	char name[PLACE_NAME];

	zc_store_place_name(name, sizeof(name), &c->place);
	if (is_refusal(err))
		return zc_exchange_error(&c->x, -EKEYREJECTED,
					 "who answers at %s is not the store of this job, or has another ZCOLL_KEY",
					 name);
	return zc_exchange_error(&c->x, -ETIMEDOUT,
				 "rank 0's store at %s did not answer in %g s: %s", name,
				 c->x.attr->join_timeout_ns / 1e9, strerror(-err));
}

/* Call until the store answers: rank 0 may be late */
static int call(struct caller *c, struct addrinfo *list)
{
	uint64_t pause = PAUSE_MIN_NS, refused = ZCOLL_WAIT_FOREVER;
	int ret;

	for (;;) {
		ret = try_all(c, list);
		if (!ret)
			return 0;
		/* The store of the job before may still be there */
		if (is_refusal(ret))
			refused = sooner(refused, zc_after(REFUSED_NS));
		if (!zc_left(sooner(c->x.end, refused)))
			return cannot_call(c, ret);
		zc_sleep(sooner(pause, zc_left(c->x.end)));
		pause = sooner(2 * pause, PAUSE_MAX_NS);
	}
}

/* Resolve, as long as the name server says that it may know later */
static struct addrinfo *resolve(const struct caller *c, int *err)
{
	struct addrinfo *list = zc_store_resolve(&c->place, err);

	while (!list && *err == EAI_AGAIN && zc_left(c->x.end)) {
		zc_sleep(PAUSE_MAX_NS);
		list = zc_store_resolve(&c->place, err);
	}
	return list;
}

/**
 * zc_caller_meet - connect to the store
 * @c: the caller; @c->fd is set
 */
int zc_caller_meet(struct caller *c)
{
	struct addrinfo *list;
	int ret, err;

	ret = zc_store_place(&c->place, c->x.attr);
	if (ret)
		return ret;
	list = resolve(c, &err);
	if (!list)
		return zc_exchange_error(&c->x, -EHOSTUNREACH, "%s=%.100s: %s", c->place.from,
					 c->place.host, gai_strerror(err));
	ret = call(c, list);
	freeaddrinfo(list);
	return ret;
}
