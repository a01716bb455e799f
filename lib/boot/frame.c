// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Frames of the store that both sides make or read; see store.h.
 */
#include <errno.h>
#include <string.h>

#include "store.h"

/* Begin a frame with a body of @len bytes */
void zc_frame(struct frame *frame, uint32_t type, size_t len)
{
	frame->head.type = htole32(type);
	frame->head.len = htole32(len);
}

/* Make a frame of an error; returns its bytes */
size_t zc_frame_fail(struct frame *frame, int err, const char *text)
{
	size_t len = strnlen(text, sizeof(frame->fail.text));

	frame->fail.err = htole32(-err);
	memcpy(frame->fail.text, text, len);
	len += sizeof(frame->fail.err);
	zc_frame(frame, FRAME_FAIL, len);
	return sizeof(frame->head) + len;
}

/* The error of a frame with a body of @len bytes, its text to where the caller wants it */
int zc_read_fail(const struct zc_exchange *x, const struct frame_fail *fail, size_t len)
{
	int err = le32toh(fail->err);

	if (len < sizeof(fail->err) || len > sizeof(*fail) || err < 1 || err > 4095)
		return zc_exchange_error(x, -EPROTO, "the store sent an error that is none");
	return zc_text(x->attr->error, x->attr->error_len, -err, "%.*s",
		       (int)(len - sizeof(fail->err)), fail->text);
}
