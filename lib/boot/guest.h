/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What the store of rank 0 is made of; see server.c for the whole.
 *
 * A *guest* is a connection: a *stranger* until it has proved that it knows the key, then
 * a *member*. It lives until the end of the turn of the loop in which it has gone.
 *
 * What a guest is to be sent is a few small frames of its own and the result, which all
 * members share. A frame that has been begun is ended before another one.
 */
#ifndef LIBZCOLL_BOOT_GUEST_H
#define LIBZCOLL_BOOT_GUEST_H

#include <sys/resource.h>

#include "store.h"

enum guest_state { SAYS_HELLO, SAYS_PROOF, IS_MEMBER };

struct guest {
	int fd;
	enum guest_state state;
	bool gone;		/* hung up, or was hung up on; freed at the end of the turn */
	bool excused;		/* a member that is not counted: its number is taken */
	uint64_t end;		/* of a stranger */
	struct proof_of of;
	struct guest *next;	/* in server.guests */

	struct frame in;
	size_t in_len;

	uint8_t out[3 * sizeof(struct frame)];
	size_t out_len, out_at;
	size_t result_at;	/* bytes of server.result that were sent */
	bool failure_told;

	unsigned int round;	/* of the last record */
	uint16_t record_len;
	uint8_t record[ZC_RECORD_MAX];
};

struct server {
	struct zc_exchange x;
	struct store_place place;
	int listener;		/* -1: all are there */
	bool deaf;		/* there are too many strangers to listen to more */
	int epoll;
	struct rlimit files;	/* the limit that was; rlim_cur is 0 if it was not changed */

	struct guest *guests;	/* all */
	struct guest **members;	/* by number; 0 is us */
	unsigned int strangers;
	unsigned int here;	/* members, us too */
	unsigned int records;	/* of this round, ours too */

	uint8_t *result;	/* FRAME_RESULT of this round, or the last */
	size_t result_len;
	unsigned int made;	/* the round it is of */
	unsigned int sending;	/* members that have not got all of it */

	int err;		/* of the failure, which is the same for all */
	char text[ZCOLL_TEXT_MAX];
	struct frame failure;	/* as they are told */
	size_t failure_len;
};

/* failure.c */
void zc_store_failed(struct server *s, int err, const char *text);
void zc_store_failf(struct server *s, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void zc_store_expired(struct server *s, uint64_t timeout_ns);
void zc_store_missed(struct server *s, unsigned int who);
int zc_store_no_memory(struct server *s);

/* guest.c */
bool zc_guest_counts(const struct server *s, const struct guest *g);
void zc_guest_part(struct server *s, struct guest *g);
void zc_guests_free(struct server *s);
bool zc_guest_queue(struct server *s, struct guest *g, const struct frame *frame, size_t len);
void zc_guest_tell(struct server *s, struct guest *g);
void zc_guest_send(struct server *s, struct guest *g);

/* receive.c */
void zc_guest_receive(struct server *s, struct guest *g);

/* turn.c */
void zc_store_turn(struct server *s, uint64_t end);
void zc_store_tell_all(struct server *s);
void zc_store_shut_door(struct server *s);

#endif /* LIBZCOLL_BOOT_GUEST_H */
