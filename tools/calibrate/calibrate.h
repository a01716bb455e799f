/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * zcoll calibrate: measuring a fabric, in the terms of LogGP.
 *
 * Two processes are joined by a TCP connection: one *asks* and takes the times, the
 * other *answers*. A request says which of two things to do with a number of messages
 * of a size: a *ping*, where each message is sent back; or a *stream*, where
 * all go one way and a byte comes back when the last is there.
 */
#ifndef ZCOLL_CALIBRATE_H
#define ZCOLL_CALIBRATE_H

#include <stdint.h>

#include <zcoll_plan.h>

#define WIRE_MAX_SIZE (1U << 20)	/* bytes of a message */
#define WIRE_SILENCE_S 10		/* give up when the other has said nothing for so long */

/**
 * struct wire - a connection to the other process
 * @fd: socket
 * @peer: who is there, for messages
 * @buffer: WIRE_MAX_SIZE bytes
 */
struct wire {
	int fd;
	char peer[128];
	void *buffer;
};

/* All return 0, or an exit status after a message */
int wire_connect(struct wire *wire, const char *host_port);
int wire_accept(struct wire *wire, const char *port, uint64_t wait_ns);
int wire_fork(struct wire *wire, int *child);	/* a child answers */
void wire_close(struct wire *wire);

int wire_answer(struct wire *wire);	/* until the other closes the connection */

/**
 * wire_ping - exchange messages
 * @wire: connection
 * @size: bytes of a message
 * @count: messages
 * @round_trip: @count times in ns
 */
int wire_ping(struct wire *wire, uint32_t size, uint32_t count, double *round_trip);

/**
 * wire_stream - send messages, one after another
 * @wire: connection
 * @size: bytes of a message
 * @count: messages
 * @ns: from the first message to the answer to the last
 * @cpu: ns that this process' CPU was busy to send them
 */
int wire_stream(struct wire *wire, uint32_t size, uint32_t count, double *ns, double *cpu);

/* Each begins at the asking side; about @ns is spent. @wire: see above */
int measure_fabric(struct wire *wire, uint64_t ns, struct zcoll_fabric *fabric);

/* ns a byte of fp32 sums on this CPU; @loops: name of the loops that were used */
int measure_fold(uint64_t ns, double *per_byte, const char **loops);

double median(double *values, unsigned int count);	/* sorts them */

/* Slope of the line through (x, y) that has the least sum of squares */
double slope(const double *x, const double *y, unsigned int count);

#endif /* ZCOLL_CALIBRATE_H */
