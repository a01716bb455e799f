// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A caller's connection: all is sent or received, or the time is over.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "caller.h"

static int wait_for(int fd, short events, uint64_t end)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int ret = zc_poll(&pfd, 1, end);

	if (ret < 0)
		return ret;
	return ret ? 0 : -ETIMEDOUT;
}

/* Send (POLLOUT) or receive (POLLIN) what can be just now */
static ssize_t move_some(int fd, void *buf, size_t len, short way)
{
	return way == POLLOUT ? send(fd, buf, len, MSG_NOSIGNAL) : recv(fd, buf, len, 0);
}

static int move_all(int fd, char *at, size_t len, short way, uint64_t end)
{
	ssize_t n;
	int ret;

	while (len) {
		n = move_some(fd, at, len, way);
		if (n > 0) {
			at += n;
			len -= n;
		} else if (!n) {
			return -ECONNRESET;
		} else if (errno == EAGAIN) {
			ret = wait_for(fd, way, end);
			if (ret)
				return ret;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

int zc_send_all(int fd, const void *buf, size_t len, uint64_t end)
{
	return move_all(fd, (char *)buf, len, POLLOUT, end);
}

int zc_recv_all(int fd, void *buf, size_t len, uint64_t end)
{
	return move_all(fd, buf, len, POLLIN, end);
}

int zc_send_frame(int fd, struct frame *frame, uint32_t type, size_t len, uint64_t end)
{
	zc_frame(frame, type, len);
	return zc_send_all(fd, frame, sizeof(frame->head) + len, end);
}

/* Receive a frame of just this type and length */
int zc_recv_frame(int fd, struct frame *frame, uint32_t type, size_t len, uint64_t end)
{
	int ret = zc_recv_all(fd, &frame->head, sizeof(frame->head), end);

	if (ret)
		return ret;
	if (frame->head.type != htole32(type) || frame->head.len != htole32(len))
		return -EPROTO;
	return zc_recv_all(fd, &frame->hello, len, end);
}

int zc_dial(struct sockaddr *sa, socklen_t len, unsigned int port, uint64_t end)
{
	int fd, err = 0, on = 1;
	socklen_t err_len = sizeof(err);

	fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	zc_set_port(sa, port);
	if (connect(fd, sa, len) && errno != EINPROGRESS)
		err = errno;
	if (!err)
		err = -wait_for(fd, POLLOUT, end);
	if (!err && getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &err_len))
		err = errno;
	if (err) {
		close(fd);
		return -err;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}
