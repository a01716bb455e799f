// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The connection of zcoll calibrate, both sides; see calibrate.h.
 *
 * Both begin with a word that says who they are, so that another service on that port is
 * not measured by mistake. A request is three numbers in network order.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "calibrate.h"
#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"

static const char hello[] = "zcoll calibrate 1\n";

enum { REQUEST_PING = 1, REQUEST_STREAM };

struct request {
	uint32_t what;
	uint32_t size;
	uint32_t count;
};

static double now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* ---- bytes ---- */

static int lost(const struct wire *wire, int err)
{
	if (err == EAGAIN)
		return failed("%s has said nothing for %d s", wire->peer, WIRE_SILENCE_S);
	return failed("%s: %s", wire->peer, err ? strerror(err) : "closed the connection");
}

static int put(struct wire *wire, const void *bytes, size_t size)
{
	const char *at = bytes;
	ssize_t n;

	while (size) {
		n = send(wire->fd, at, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return lost(wire, errno);
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

/* @end: the other may close the connection instead, which is told by -1 */
static int get(struct wire *wire, void *bytes, size_t size, int end)
{
	char *at = bytes;
	size_t left = size;
	ssize_t n;

	while (left) {
		n = recv(wire->fd, at, left, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 && end && left == size)
			return -1;
		if (n <= 0)
			return lost(wire, n ? errno : 0);
		at += n;
		left -= (size_t)n;
	}
	return 0;
}

/* ---- connections ---- */

static int greet(struct wire *wire)
{
	char word[sizeof(hello)];

	if (put(wire, hello, sizeof(hello)) || get(wire, word, sizeof(word), 0))
		return STATUS_FAILED;
	if (memcmp(word, hello, sizeof(hello)))
		return failed("%s is not a zcoll calibrate of this version", wire->peer);
	return 0;
}

static int wire_open(struct wire *wire, int fd)
{
	const struct timeval silence = { .tv_sec = WIRE_SILENCE_S };
	const int one = 1;

	wire->fd = fd;
	wire->buffer = calloc(1, WIRE_MAX_SIZE);
	if (!wire->buffer)
		return failed("out of memory");
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof(silence)))
		return failed("%s: %s", wire->peer, strerror(errno));
	return greet(wire);
}

void wire_close(struct wire *wire)
{
	if (wire->fd >= 0)
		close(wire->fd);
	free(wire->buffer);
}

/* getaddrinfo() takes any number, and keeps the lower 16 bits */
static int bad_port(const char *option, const char *text, const char *port)
{
	uint64_t value;

	return parse_uint(port, 1, 65535, &value) ?
	       usage("%s %s: the port is not a number from 1 to 65535", option, text) : 0;
}

/* "host:port" or "[address]:port"; cuts @text. Returns the port, NULL: there is none */
static char *split_port(char *text, char **host)
{
	char *port = strrchr(text, ':');
	size_t len;

	if (!port || !port[1] || port == text)
		return NULL;
	*port++ = '\0';
	len = strlen(text);
	if (text[0] == '[' && text[len - 1] == ']') {
		text[len - 1] = '\0';
		text++;
	}
	*host = text;
	return port;
}

static int connect_any(const struct addrinfo *list)
{
	int fd, err = ENOENT;

	for (; list; list = list->ai_next) {
		fd = socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC, 0);
		if (fd >= 0 && !connect(fd, list->ai_addr, list->ai_addrlen))
			return fd;
		err = errno;
		if (fd >= 0)
			close(fd);
	}
	errno = err;
	return -1;
}

int wire_connect(struct wire *wire, const char *host_port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	char text[128], *host, *port;
	int fd, err;

	*wire = (struct wire){ .fd = -1 };
	snprintf(wire->peer, sizeof(wire->peer), "%s", host_port);
	snprintf(text, sizeof(text), "%s", host_port);
	port = split_port(text, &host);
	if (!port)
		return usage("--peer %s: not HOST:PORT", host_port);
	if (bad_port("--peer", host_port, port))
		return STATUS_USAGE;
	err = getaddrinfo(host, port, &hints, &list);
	if (err)
		return failed("%s: %s", host_port, gai_strerror(err));
	fd = connect_any(list);
	freeaddrinfo(list);
	if (fd < 0)
		return failed("%s: %s; does 'zcoll calibrate --listen %s' run there?", host_port,
			      strerror(errno), port);
	return wire_open(wire, fd);
}

static int listen_at(const struct addrinfo *at)
{
	int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);
	const int one = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, at->ai_addr, at->ai_addrlen) && !listen(fd, 1))
		return fd;
	close(fd);
	return -1;
}

/* The first that connects; the listening socket is closed then */
static int accept_one(struct wire *wire, int listener, uint64_t wait_ns)
{
	struct pollfd poll_fd = { .fd = listener, .events = POLLIN };
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	int fd = -1, n;

	do {
		n = poll(&poll_fd, 1, (int)(wait_ns / 1000000));
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		fd = accept4(listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
	close(listener);
	if (n == 0)
		return failed("nobody has connected in %u s",
			      (unsigned int)(wait_ns / 1000000000));
	if (fd < 0)
		return failed("accept: %s", strerror(errno));
	if (getnameinfo((struct sockaddr *)&from, len, wire->peer, sizeof(wire->peer), NULL, 0,
			NI_NUMERICHOST))
		snprintf(wire->peer, sizeof(wire->peer), "the peer");
	return wire_open(wire, fd);
}

int wire_accept(struct wire *wire, const char *port, uint64_t wait_ns)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_family = AF_INET, .ai_flags = AI_PASSIVE,
	};
	struct addrinfo *list;
	char text[128], *number, *host = NULL;
	int fd, err;

	*wire = (struct wire){ .fd = -1 };
	snprintf(text, sizeof(text), "%s", port);
	number = strchr(text, ':') ? split_port(text, &host) : text;
	if (!number)
		return usage("--listen %s: not [HOST:]PORT", port);
	if (bad_port("--listen", port, number))
		return STATUS_USAGE;
	err = getaddrinfo(host, number, &hints, &list);
	if (err)
		return failed("--listen %s: %s", port, gai_strerror(err));
	fd = listen_at(list);
	freeaddrinfo(list);
	if (fd < 0)
		return failed("--listen %s: %s", port, strerror(errno));
	msg("listening at %s, for %u minutes", port, (unsigned int)(wait_ns / 60000000000ULL));
	return accept_one(wire, fd, wait_ns);
}

/* In the child, for ever: nothing is left to say when the parent is gone */
static void child_answers(int listener, pid_t parent)
{
	struct wire wire = { .fd = -1 };
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(STATUS_FAILED);
	status = accept_one(&wire, listener, WIRE_SILENCE_S * 1000000000ULL);
	if (!status)
		status = wire_answer(&wire);
	_exit(status);
}

int wire_fork(struct wire *wire, int *child)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const struct addrinfo any = {
		.ai_family = AF_INET, .ai_socktype = SOCK_STREAM,
		.ai_addr = (struct sockaddr *)&at, .ai_addrlen = sizeof(at),
	};
	socklen_t len = sizeof(at);
	int listener = listen_at(&any), fd;
	pid_t parent = getpid();

	*child = -1;
	*wire = (struct wire){ .fd = -1, .peer = "the child" };
	if (listener < 0 || getsockname(listener, (struct sockaddr *)&at, &len))
		return failed("loopback: %s", strerror(errno));
	*child = fork();
	if (*child == 0)
		child_answers(listener, parent);
	close(listener);
	if (*child < 0)
		return failed("fork: %s", strerror(errno));
	fd = connect_any(&any);
	if (fd < 0)
		return failed("loopback: %s", strerror(errno));
	return wire_open(wire, fd);
}

/* ---- requests ---- */

static int ask(struct wire *wire, uint32_t what, uint32_t size, uint32_t count)
{
	const struct request request = { htonl(what), htonl(size), htonl(count) };

	return put(wire, &request, sizeof(request));
}

int wire_ping(struct wire *wire, uint32_t size, uint32_t count, double *round_trip)
{
	double begin;
	uint32_t i;

	if (ask(wire, REQUEST_PING, size, count))
		return STATUS_FAILED;
	for (i = 0; i < count; i++) {
		begin = now_ns(CLOCK_MONOTONIC);
		if (put(wire, wire->buffer, size) || get(wire, wire->buffer, size, 0))
			return STATUS_FAILED;
		round_trip[i] = now_ns(CLOCK_MONOTONIC) - begin;
	}
	return 0;
}

int wire_stream(struct wire *wire, uint32_t size, uint32_t count, double *ns, double *cpu)
{
	double begin, cpu_begin;
	uint32_t i;
	char byte;

	if (ask(wire, REQUEST_STREAM, size, count))
		return STATUS_FAILED;
	begin = now_ns(CLOCK_MONOTONIC);
	cpu_begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (i = 0; i < count; i++)
		if (put(wire, wire->buffer, size))
			return STATUS_FAILED;
	*cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin;
	if (get(wire, &byte, 1, 0))
		return STATUS_FAILED;
	*ns = now_ns(CLOCK_MONOTONIC) - begin;
	return 0;
}

static int answer_one(struct wire *wire, const struct request *request)
{
	uint32_t i;

	for (i = 0; i < request->count; i++) {
		if (get(wire, wire->buffer, request->size, 0))
			return STATUS_FAILED;
		if (request->what == REQUEST_PING && put(wire, wire->buffer, request->size))
			return STATUS_FAILED;
	}
	return request->what == REQUEST_STREAM ? put(wire, "", 1) : 0;
}

int wire_answer(struct wire *wire)
{
	struct request request;
	int status;

	for (;;) {
		status = get(wire, &request, sizeof(request), 1);
		if (status)
			return status < 0 ? STATUS_OK : status;
		request = (struct request){ ntohl(request.what), ntohl(request.size),
					    ntohl(request.count) };
		if (request.size > WIRE_MAX_SIZE || request.what > REQUEST_STREAM)
			return failed("%s asks for what is not known here", wire->peer);
		status = answer_one(wire, &request);
		if (status)
			return status;
	}
}
