/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What the files of a caller of the store share; see store.h.
 */
#ifndef LIBZCOLL_BOOT_CALLER_H
#define LIBZCOLL_BOOT_CALLER_H

#include "store.h"

struct caller {
	struct zc_exchange x;
	struct store_place place;
	int fd;
	uint8_t *result;	/* body of FRAME_RESULT */
};

/* wire.c */
int zc_send_all(int fd, const void *buf, size_t len, uint64_t end);
int zc_recv_all(int fd, void *buf, size_t len, uint64_t end);
int zc_send_frame(int fd, struct frame *frame, uint32_t type, size_t len, uint64_t end);
int zc_recv_frame(int fd, struct frame *frame, uint32_t type, size_t len, uint64_t end);
int zc_dial(struct sockaddr *sa, socklen_t len, unsigned int port, uint64_t end);

/* meet.c */
int zc_caller_meet(struct caller *c);

#endif /* LIBZCOLL_BOOT_CALLER_H */
