// SPDX-License-Identifier: GPL-2.0
/*
 * Transport: TCP, one connection for each link.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wire.h"

#define TRIES	200	/* a peer may come later: this times 0.1 s */

/* What goes before a message's bytes; both sides are of one build */
struct header {
	uint64_t offset, len;
};

/* One way of a connection: a header, then so many bytes */
struct stream {
	int fd;
	struct header head;
	size_t done;		/* bytes of header and message that are through */
	bool busy;
};

static struct stream out[WIRE_LINKS], in[WIRE_LINKS];

static void must(bool ok, const char *what)
{
	if (!ok)
		die("%s: %s", what, strerror(errno));
}

static int listen_at(const char *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	must(fd >= 0, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)), "bind");
	must(!listen(fd, WIRE_LINKS), "listen");
	return fd;
}

static void connect_to(const struct wire *w, unsigned int i)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *ai;
	struct wire_hello hello = { .rank = w->rank, .link = i };
	struct timespec pause = { .tv_nsec = 100000000 };
	int fd, tries = 0, on = 1;
	char host[32];

	snprintf(host, sizeof(host), "node%u", wire_peer(w, i, false));
	if (getaddrinfo(host, w->port, &hints, &ai))
		die("%s: no such host", host);
	for (;;) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
			break;
		must(tries++ < TRIES, host);
		close(fd);
		nanosleep(&pause, NULL);
	}
	freeaddrinfo(ai);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	must(write(fd, &hello, sizeof(hello)) == sizeof(hello), "hello");
	out[i].fd = fd;
}

/* The peers' listening sockets take connections before they are accepted here */
void wire_open(struct wire *w)
{
	int listener = listen_at(w->port), fd;
	struct wire_hello hello;
	unsigned int i;

	for (i = 0; i < w->links; i++)
		connect_to(w, i);
	for (i = 0; i < w->links; i++) {
		fd = accept(listener, NULL, NULL);
		must(recv(fd, &hello, sizeof(hello), MSG_WAITALL) == sizeof(hello), "hello");
		in[wire_welcome(w, &hello)].fd = fd;
	}
	close(listener);
}

/* The next bytes to move: of the header or of the message */
static void *next_bytes(const struct wire *w, struct stream *s, size_t *len)
{
	if (s->done < sizeof(s->head)) {
		*len = sizeof(s->head) - s->done;
		return (char *)&s->head + s->done;
	}
	*len = s->head.len - (s->done - sizeof(s->head));
	return w->arena.mem + s->head.offset + (s->done - sizeof(s->head));
}

/* Move what can be moved without waiting; true when a whole message is through */
static bool move(const struct wire *w, struct stream *s, bool sending)
{
	ssize_t ret;
	size_t len;
	void *p;

	for (;;) {
		p = next_bytes(w, s, &len);
		if (!len)
			break;
		ret = sending ? send(s->fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL) :
				recv(s->fd, p, len, MSG_DONTWAIT);
		if (ret < 0 && errno == EAGAIN)
			return false;
		if (ret <= 0)
			die("connection lost: %s", ret ? strerror(errno) : "closed");
		s->done += ret;
	}
	s->done = 0;
	return true;
}

void wire_send(struct wire *w, unsigned int link, size_t offset, size_t len)
{
	struct stream *s = &out[link];

	while (s->busy)
		wire_progress(w);
	s->head = (struct header) { .offset = offset, .len = len };
	s->busy = !move(w, s, true);
}

bool wire_progress(struct wire *w)
{
	bool idle = true;
	unsigned int i;

	for (i = 0; i < w->links; i++) {
		if (out[i].busy)
			out[i].busy = !move(w, &out[i], true);
		idle = idle && !out[i].busy;
		if (move(w, &in[i], false))
			w->came[i]++;
	}
	return idle;
}
