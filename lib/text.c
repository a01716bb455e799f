// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Error texts: each failure leaves one, in the caller's buffer when there is no
 * communicator yet, else in the communicator. The functions here return the error
 * that they were given, so that a failure is one statement.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/**
 * zc_text - put a text into a buffer
 * @text: buffer or NULL
 * @len: its size in bytes
 * @err: what to return
 * @fmt: as printf()
 */
int zc_text(char *text, size_t len, int err, const char *fmt, ...)
{
	va_list ap;

	if (!text || !len)
		return err;
	va_start(ap, fmt);
	vsnprintf(text, len, fmt, ap);
	va_end(ap);
	return err;
}

/**
 * zc_fail - put a text into the communicator
 * @comm: the communicator
 * @err: what to return
 * @fmt: as printf()
 */
int zc_fail(struct zcoll_comm *comm, int err, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&comm->text_lock);
	va_start(ap, fmt);
	vsnprintf(comm->text, sizeof(comm->text), fmt, ap);
	va_end(ap);
	pthread_mutex_unlock(&comm->text_lock);
	return err;
}

/* Has the kernel a text of a failure: of operation @seq, or of the communicator? */
static bool kernel_says(struct zcoll_comm *comm, uint32_t flags, uint64_t seq,
			char text[ZCOLL_TEXT_MAX])
{
	struct zcoll_status st = {
		.size = sizeof(st),
		.flags = flags,
		.seq = seq,
		.text = (uintptr_t)text,
		.text_len = ZCOLL_TEXT_MAX,
	};

	text[0] = '\0';
	return !zc_ioctl(comm->fd, ZCOLL_IOC_STATUS, &st) &&
	       st.state >= ZCOLL_STATE_DONE && text[0];
}

/**
 * zc_fail_op - let the kernel say why an operation failed
 * @comm: the communicator
 * @seq: the operation; one that came when the communicator was revoked already
 *	has no text of its own
 * @err: what to return
 */
int zc_fail_op(struct zcoll_comm *comm, uint64_t seq, int err)
{
	char text[ZCOLL_TEXT_MAX];

	if (kernel_says(comm, 0, seq, text) || kernel_says(comm, ZCOLL_STATUS_COMM, 0, text))
		return zc_fail(comm, err, "%s", text);
	return zc_fail(comm, err, "rank %u, operation %llu: %s", comm->rank,
		       (unsigned long long)seq, strerror(-err));
}

int zcoll_comm_error(struct zcoll_comm *comm, char *buf, size_t len)
{
	int ret;

	/* Not a lock: in a child of fork() nobody may be there to drop it */
	if (!zc_is_owner(comm))
		return snprintf(buf, buf ? len : 0,
				"rank %u belongs to another process: after fork() only the parent may use its communicator",
				comm->rank);
	pthread_mutex_lock(&comm->text_lock);
	if (buf && len)
		snprintf(buf, len, "%s", comm->text);
	ret = strlen(comm->text);
	pthread_mutex_unlock(&comm->text_lock);
	return ret;
}
