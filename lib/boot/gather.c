// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The caller's own function as the exchange: for programs that can talk to each other
 * already, by MPI for instance.
 *
 * A round is one call of it. All records are of one size: an errno, and if that is not 0,
 * the rank has failed and the rest is its text.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"

struct record {
	uint32_t err;		/* positive errno, little-endian */
	uint8_t data[ZC_RECORD_MAX];	/* or the text */
};

struct exchange {
	struct zc_exchange x;
	struct record mine;
	struct record all[];
};

static int ask(struct exchange *e)
{
	return e->x.attr->gather(e->x.attr->gather_arg, &e->mine, e->all, sizeof(e->mine));
}

/* Spread the records, unless one is of a failure: of these the first counts */
static int spread(const struct zc_exchange *x, const struct record *all, uint8_t *to,
		  size_t size)
{
	for (unsigned int r = 0; r < x->n; r++, to += size) {
		if (all[r].err)
			return zc_text(x->attr->error, x->attr->error_len,
				       -(int)le32toh(all[r].err), "%.*s", ZC_RECORD_MAX - 1,
				       (const char *)all[r].data);
		memcpy(to, all[r].data, size);
	}
	return 0;
}

static int gather(struct zc_exchange *x, const void *data, size_t len, uint8_t *to, size_t size)
{
	struct exchange *e = (struct exchange *)x;
	int ret;

	memset(&e->mine, 0, sizeof(e->mine));
	memcpy(e->mine.data, data, len);
	ret = ask(e);
	if (ret)
		return zc_exchange_error(x, ret, "the caller's exchange failed in round %u: %s",
					 x->round, strerror(-ret));
	return spread(x, e->all, to, size);
}

/* As the record of the round that the others are in, or come to */
static void tell_failure(struct zc_exchange *x, int err, const char *text)
{
	struct exchange *e = (struct exchange *)x;

	memset(&e->mine, 0, sizeof(e->mine));
	e->mine.err = htole32(-err);
	memcpy(e->mine.data, text, strnlen(text, ZC_RECORD_MAX - 1));
	ask(e);
}

static void end(struct zc_exchange *x)
{
	free(x);
}

static const struct zc_exchange_kind caller = {
	.gather = gather, .fail = tell_failure, .close = end,
};

/**
 * zc_gather_open - exchange by @attr->gather
 * @x: output
 * @attr: attr
 * @me: number of this participant, a rank
 */
int zc_gather_open(struct zc_exchange **x, const struct zcoll_attr *attr, unsigned int me)
{
	struct exchange *e = calloc(1, sizeof(*e) + attr->nranks * sizeof(e->all[0]));

	if (!e)
		return zc_text(attr->error, attr->error_len, -ENOMEM, "no memory for the exchange");
	e->x = (struct zc_exchange){
		.kind = &caller, .attr = attr, .me = me, .n = attr->nranks,
		.end = zc_after(attr->join_timeout_ns),
	};
	*x = &e->x;
	return 0;
}
