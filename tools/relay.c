// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Relay: lines of many ranks; see relay.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "relay.h"

#define READ_SIZE 65536

int relay_init(struct relay *relay, unsigned int nranks)
{
	unsigned int i;

	memset(relay, 0, sizeof(*relay));
	relay->sources = calloc(2 * nranks, sizeof(*relay->sources));
	if (!relay->sources)
		return -ENOMEM;
	relay->nsources = 2 * nranks;
	for (i = 0; i < relay->nsources; i++) {
		relay->sources[i].fd = -1;
		relay->sources[i].rank = i / 2;
		relay->sources[i].to = i % 2 ? STDERR_FILENO : STDOUT_FILENO;
	}
	return 0;
}

static void source_close(struct relay_source *source)
{
	if (source->fd >= 0)
		close(source->fd);
	source->fd = -1;
	free(source->line);
	source->line = NULL;
	source->len = 0;
	source->cap = 0;
}

void relay_free(struct relay *relay)
{
	unsigned int i;

	for (i = 0; i < relay->nsources; i++)
		source_close(&relay->sources[i]);
	free(relay->sources);
	free(relay->queue);
	memset(relay, 0, sizeof(*relay));
}

/* Only our end does not block: the other belongs to the rank */
static int pipe_open(int *read_end, int *write_end)
{
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK)) {
		err = -errno;
		close(ends[0]);
		close(ends[1]);
		return err;
	}
	*read_end = ends[0];
	*write_end = ends[1];
	return 0;
}

int relay_open(struct relay *relay, unsigned int rank, int ends[2])
{
	struct relay_source *pair = &relay->sources[2 * rank];
	int err;

	ends[0] = -1;
	ends[1] = -1;
	err = pipe_open(&pair[0].fd, &ends[0]);
	if (err)
		return err;
	return pipe_open(&pair[1].fd, &ends[1]);
}

unsigned int relay_poll(const struct relay *relay, struct pollfd *fds)
{
	unsigned int i, n = 0;

	if (relay->done < relay->len) {
		fds[0] = (struct pollfd){ .fd = relay->to, .events = POLLOUT };
		return 1;
	}
	for (i = 0; i < relay->nsources; i++)
		if (relay->sources[i].fd >= 0)
			fds[n++] = (struct pollfd){ .fd = relay->sources[i].fd,
						    .events = POLLIN };
	return n;
}

static int reserve(char **buf, size_t *cap, size_t need)
{
	size_t size = *cap ? *cap : 4096;
	char *grown;

	while (size < need)
		size *= 2;
	if (size == *cap)
		return 0;
	grown = realloc(*buf, size);
	if (!grown)
		return -ENOMEM;
	*buf = grown;
	*cap = size;
	return 0;
}

static int queue_line(struct relay *relay, const struct relay_source *source,
		      const char *tail, size_t tail_len)
{
	char prefix[16];
	size_t n = (size_t)snprintf(prefix, sizeof(prefix), "[%u] ", source->rank);
	char *to;
	int err;

	err = reserve(&relay->queue, &relay->cap,
		      relay->len + n + source->len + tail_len + 1);
	if (err)
		return err;
	to = relay->queue + relay->len;
	to = mempcpy(to, prefix, n);
	if (source->len)
		to = mempcpy(to, source->line, source->len);
	to = mempcpy(to, tail, tail_len);
	*to++ = '\n';
	relay->len = (size_t)(to - relay->queue);
	relay->to = source->to;
	return 0;
}

/* Queues the whole lines among @n new bytes, keeps the rest */
static int split(struct relay *relay, struct relay_source *source, const char *buf, size_t n)
{
	const char *newline;
	size_t part;
	int err;

	while (n) {
		newline = memchr(buf, '\n', n);
		part = newline ? (size_t)(newline - buf) : n;
		if (newline || source->len + part > RELAY_LINE_MAX) {
			err = queue_line(relay, source, buf, part);
			source->len = 0;
		} else {
			err = reserve(&source->line, &source->cap, source->len + part);
			if (!err) {
				memcpy(source->line + source->len, buf, part);
				source->len += part;
			}
		}
		if (err)
			return err;
		part += newline ? 1 : 0;
		buf += part;
		n -= part;
	}
	return 0;
}

/* Queues the line that has no newline */
static int source_end(struct relay *relay, struct relay_source *source)
{
	int err = source->len ? queue_line(relay, source, "", 0) : 0;

	source_close(source);
	return err;
}

/* Returns 1 if the source gave something, 0 if it had nothing or has ended */
static int source_read(struct relay *relay, struct relay_source *source)
{
	char buf[READ_SIZE];
	ssize_t n;
	int err;

	n = read(source->fd, buf, sizeof(buf));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0) {
		err = split(relay, source, buf, (size_t)n);
		return err ? err : 1;
	}
	return source_end(relay, source);
}

/*
 * Writes while poll() promises room. At most PIPE_BUF bytes at once: that much
 * fits a pipe that is writable, so write() does not block.
 */
static int queue_flush(struct relay *relay)
{
	struct pollfd fd = { .fd = relay->to, .events = POLLOUT };
	size_t part;
	ssize_t n;

	while (relay->done < relay->len) {
		if (poll(&fd, 1, 0) <= 0)
			return 0;
		part = relay->len - relay->done;
		n = write(relay->to, relay->queue + relay->done,
			  part < PIPE_BUF ? part : PIPE_BUF);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		relay->done += (size_t)n;
	}
	relay->len = 0;
	relay->done = 0;
	return 0;
}

int relay_move(struct relay *relay)
{
	unsigned int i, first = relay->next;
	struct relay_source *source;
	int ret;

	ret = queue_flush(relay);
	for (i = 0; i < relay->nsources && !ret && !relay->len; i++) {
		relay->next = (first + i + 1) % relay->nsources;
		source = &relay->sources[(first + i) % relay->nsources];
		if (source->fd < 0)
			continue;
		ret = source_read(relay, source);
		if (ret >= 0)
			ret = queue_flush(relay);
	}
	return ret;
}

int relay_finish(struct relay *relay)
{
	struct relay_source *source;
	unsigned int i;
	int ret;

	ret = queue_flush(relay);
	for (i = 0; i < relay->nsources && !ret; i++) {
		source = &relay->sources[i];
		while (source->fd >= 0 && !relay->len && ret >= 0) {
			ret = source_read(relay, source);
			if (!ret)
				ret = source_end(relay, source);
			if (ret >= 0)
				ret = queue_flush(relay);
		}
	}
	return ret ? ret : !relay->len;
}
