/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Store: the exchange over TCP. Rank 0 *serves*: it listens, takes the record of every
 * participant and sends all of them to each; the others *call* it. The socket that
 * listens is closed as soon as all participants are there.
 *
 * Frames. All that is sent is a *frame*: type and length of the body, then the body;
 * numbers are little-endian.
 *
 *	caller				server
 *	HELLO nonce
 *					CHALLENGE nonce
 *	PROOF who, how many, proof
 *					WELCOME proof
 *	RECORD round, record
 *					RESULT round, all records
 *
 * Both prove that they know the key of the communicator, by the HMAC-SHA-256 (RFC 2104)
 * of both nonces, the caller's number and what side it is. The server is the second to
 * do so: a stranger that connects learns nothing from which a key could be guessed.
 * A connection that has not proved itself in STRANGER_NS is closed, or in CROWDED_NS when
 * there are STRANGERS_MAX of them already, and what they send has a fixed length. What
 * follows the proofs is neither encrypted nor signed.
 *
 * FAIL, in either direction, ends the exchange; EXPIRED asks the server to end it,
 * with the names of those that are missing, as the caller's time is over.
 */
#ifndef LIBZCOLL_BOOT_STORE_H
#define LIBZCOLL_BOOT_STORE_H

#include <endian.h>
#include <sys/socket.h>

#include "exchange.h"

#define STRANGER_NS	5000000000ULL	/* time to prove who one is */
#define CROWDED_NS	250000000ULL	/* the same, when others wait for their place */
#define STRANGERS_MAX	64		/* connections that have not */
#define PORTS_MAX	64		/* that a caller tries */

/* "zcS", version 1 of all this, and what it is */
#define FRAME(type)	(0x7a635310U | (type))

#define FRAME_HELLO	FRAME(1)
#define FRAME_CHALLENGE	FRAME(2)
#define FRAME_PROOF	FRAME(3)
#define FRAME_WELCOME	FRAME(4)
#define FRAME_RECORD	FRAME(5)
#define FRAME_RESULT	FRAME(6)
#define FRAME_FAIL	FRAME(7)
#define FRAME_EXPIRED	FRAME(8)

#define NONCE_BYTES	32
#define PROOF_BYTES	32

struct frame_head {
	uint32_t type;
	uint32_t len;
};

struct frame_hello {		/* and FRAME_CHALLENGE */
	uint8_t nonce[NONCE_BYTES];
};

struct frame_proof {
	uint32_t who;
	uint32_t nranks;
	uint32_t aggregators;
	uint8_t proof[PROOF_BYTES];
};

struct frame_welcome {
	uint8_t proof[PROOF_BYTES];
};

struct frame_record {
	uint32_t round;
	uint8_t record[ZC_RECORD_MAX];
};

struct frame_fail {
	int32_t err;
	char text[ZCOLL_TEXT_MAX];
};

struct frame_expired {
	uint64_t timeout_ns;
};

/* FRAME_RESULT: a round, then a length of two bytes and a record for each participant */
#define RESULT_MAX(n)	(sizeof(uint32_t) + (size_t)(n) * (sizeof(uint16_t) + ZC_RECORD_MAX))

/* A frame that is not FRAME_RESULT, as it lies on the wire */
struct frame {
	struct frame_head head;
	union {
		struct frame_hello hello;
		struct frame_proof proof;
		struct frame_welcome welcome;
		struct frame_record record;
		struct frame_fail fail;
		struct frame_expired expired;
	} __attribute__((packed));
} __attribute__((packed));

/* What both sides prove to know, and of what */
struct proof_of {
	const uint8_t *key;
	uint8_t caller_nonce[NONCE_BYTES];
	uint8_t server_nonce[NONCE_BYTES];
	uint32_t who;
	uint32_t nranks;
	uint32_t aggregators;
};

/* proof.c */
int zc_nonce(uint8_t nonce[NONCE_BYTES]);
void zc_prove(uint8_t proof[PROOF_BYTES], const struct proof_of *of, const char *side);
bool zc_is_proof(const uint8_t proof[PROOF_BYTES], const struct proof_of *of, const char *side);

#define SIDE_CALLER	"zcoll store, caller"
#define SIDE_SERVER	"zcoll store, server"

/* Where the store is, and what says so */
struct store_place {
	char host[256];
	unsigned int low, high;		/* ports */
	const char *from;		/* "ZCOLL_STORE" */
};

#define PLACE_NAME	160		/* bytes of a place's name */

/* place.c */
int zc_store_place(struct store_place *place, const struct zcoll_attr *attr);
int zc_store_check(const struct zcoll_attr *attr);
void zc_store_place_name(char *name, size_t len, const struct store_place *place);
int zc_store_listen(const struct store_place *place, const struct zcoll_attr *attr);
struct addrinfo *zc_store_resolve(const struct store_place *place, int *err);
void zc_set_port(struct sockaddr *sa, unsigned int port);

/* frame.c */
void zc_frame(struct frame *frame, uint32_t type, size_t len);
size_t zc_frame_fail(struct frame *frame, int err, const char *text);
int zc_read_fail(const struct zc_exchange *x, const struct frame_fail *fail, size_t len);

#endif /* LIBZCOLL_BOOT_STORE_H */
