// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Array files; see array.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zcoll.h>

#include "array.h"
#include "cmd.h"
#include "msg.h"

/* ---- input ---- */

static int read_at(int fd, void *buf, size_t len, uint64_t offset)
{
	ssize_t n;

	while (len) {
		n = pread(fd, buf, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ENODATA;
		buf = (char *)buf + n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

static int set_raw(struct array_in *in, int dtype, uint64_t size)
{
	in->raw = true;
	in->npy = (struct npy){ .dtype = dtype, .itemsize = zcoll_dtype_size(dtype),
				.data_bytes = size };
	if (!dtype)
		return failed("%s: not a .npy file; if it is raw data, name its type with --dtype",
			      in->path);
	if (size % in->npy.itemsize)
		return failed("%s: %llu bytes are not a whole number of elements of %s (%zu bytes)",
			      in->path, (unsigned long long)size, zcoll_dtype_name(dtype),
			      in->npy.itemsize);
	in->npy.count = size / in->npy.itemsize;
	return 0;
}

/* NumPy has no bf16: programs save it as V2 or u2. All else is what its header says. */
static int settle_dtype(struct array_in *in, int dtype)
{
	struct npy *npy = &in->npy;

	if (dtype == ZCOLL_BF16 && (!npy->dtype || npy->dtype == ZCOLL_UINT16))
		npy->dtype = ZCOLL_BF16;
	if (!npy->dtype)
		return failed("%s: the type '%s' has no meaning of its own; say --dtype bf16 if it is that",
			      in->path, npy->descr);
	if (dtype && dtype != npy->dtype)
		return failed("%s: has type '%s' (%s), not %s; leave --dtype out, or convert the array",
			      in->path, npy->descr, zcoll_dtype_name(npy->dtype),
			      zcoll_dtype_name(dtype));
	return 0;
}

static int set_npy(struct array_in *in, int dtype, const void *start, size_t len, uint64_t size)
{
	char error[NPY_ERROR_MAX];
	uint64_t want;

	if (npy_parse(&in->npy, start, len, error))
		return failed("%s: %s", in->path, error);
	want = in->npy.data_offset + in->npy.data_bytes;
	if (size != want)
		return failed("%s: the header promises %llu bytes, the file has %llu", in->path,
			      (unsigned long long)want, (unsigned long long)size);
	return settle_dtype(in, dtype);
}

static int read_layout(struct array_in *in, int dtype)
{
	size_t len;
	struct stat st;
	char *start;
	int err;

	if (fstat(in->fd, &st))
		return failed("%s: %s", in->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return failed("%s: not a regular file", in->path);
	len = st.st_size < NPY_MAX_HEADER ? (size_t)st.st_size : NPY_MAX_HEADER;
	start = malloc(len + 1);
	if (!start)
		return failed("out of memory");
	err = read_at(in->fd, start, len, 0);
	if (err)
		err = failed("%s: %s", in->path, strerror(-err));
	else if (npy_magic(start, len))
		err = set_npy(in, dtype, start, len, (uint64_t)st.st_size);
	else
		err = set_raw(in, dtype, (uint64_t)st.st_size);
	free(start);
	return err;
}

int array_open(struct array_in *in, const char *path, int dtype)
{
	int err;

	memset(in, 0, sizeof(*in));
	in->path = path;
	in->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0)
		return failed("%s: %s", path, strerror(errno));
	err = read_layout(in, dtype);
	if (err)
		array_close(in);
	return err;
}

int array_read(const struct array_in *in, uint64_t offset, void *buf, size_t len)
{
	int err = read_at(in->fd, buf, len, in->npy.data_offset + offset);

	if (err == -ENODATA)
		return failed("%s: became shorter while it was read", in->path);
	if (err)
		return failed("%s: %s", in->path, strerror(-err));
	return 0;
}

void array_close(struct array_in *in)
{
	close(in->fd);
}

/* ---- output ---- */

static const int fatal_signals[] = { SIGHUP, SIGINT, SIGTERM };

/* The one temporary file there is; the handler below reads it */
static char *volatile unfinished;

static void remove_unfinished(int sig)
{
	if (unfinished)
		unlink(unfinished);
	/* SA_RESETHAND: now it ends us, as soon as we return */
	raise(sig);
}

static void guard(char *temp)
{
	struct sigaction action = { .sa_handler = remove_unfinished, .sa_flags = SA_RESETHAND };
	struct sigaction now;
	size_t i;

	unfinished = temp;
	for (i = 0; i < sizeof(fatal_signals) / sizeof(fatal_signals[0]); i++)
		if (!sigaction(fatal_signals[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaction(fatal_signals[i], &action, NULL);
}

/* In the same folder, or rename() could not replace the old file at once */
static int open_temp(struct array_out *out)
{
	mode_t mask;

	if (asprintf(&out->temp, "%s.XXXXXX", out->path) < 0) {
		out->temp = NULL;
		errno = ENOMEM;
		return -1;
	}
	out->fd = mkostemp(out->temp, O_CLOEXEC);
	if (out->fd < 0) {
		free(out->temp);
		out->temp = NULL;
		return -1;
	}
	guard(out->temp);
	mask = umask(0);
	umask(mask);
	return fchmod(out->fd, 0666 & ~mask);
}

/* A link keeps its name, and what it points to is replaced */
static int open_output(struct array_out *out, const char *path)
{
	struct stat st;
	int exists = !stat(path, &st);

	out->fd = -1;
	out->path = exists && S_ISREG(st.st_mode) ? realpath(path, NULL) : strdup(path);
	if (!out->path)
		return -1;
	if (!exists || S_ISREG(st.st_mode))
		return open_temp(out);
	out->fd = open(path, O_WRONLY | O_CLOEXEC);
	return out->fd < 0 ? -1 : 0;
}

int array_create(struct array_out *out, const char *path, const struct array_in *in)
{
	size_t len = in->npy.data_offset;
	char *header;
	int err;

	memset(out, 0, sizeof(*out));
	if (open_output(out, path)) {
		err = failed("%s: %s", path, strerror(errno));
		array_discard(out);
		return err;
	}
	if (!len)
		return 0;
	header = malloc(len);
	if (!header) {
		err = failed("out of memory");
	} else {
		err = read_at(in->fd, header, len, 0);
		if (err)
			err = failed("%s: %s", in->path, strerror(-err));
		else
			err = array_write(out, header, len);
	}
	free(header);
	if (err)
		array_discard(out);
	return err;
}

int array_write(const struct array_out *out, const void *buf, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(out->fd, buf, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed("%s: %s", out->path, strerror(errno));
		buf = (const char *)buf + n;
		len -= (size_t)n;
	}
	return 0;
}

int array_commit(struct array_out *out)
{
	/* some file systems tell of a full disk only now */
	int err = close(out->fd);

	out->fd = -1;
	if (!err && out->temp)
		err = rename(out->temp, out->path);
	if (err)
		return failed("%s: %s", out->path, strerror(errno));
	unfinished = NULL;
	free(out->temp);
	out->temp = NULL;
	return 0;
}

void array_discard(struct array_out *out)
{
	if (out->fd >= 0)
		close(out->fd);
	if (out->temp)
		unlink(out->temp);
	unfinished = NULL;
	free(out->temp);
	free(out->path);
	memset(out, 0, sizeof(*out));
	out->fd = -1;
}
