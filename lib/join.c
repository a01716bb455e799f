// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Joining, on one node: the ranks join by the key, and wait for each other at the
 * endpoint.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define FAIL(attr, err, ...)	zc_text((attr)->error, (attr)->error_len, err, __VA_ARGS__)

/* -------------------------------------------------------- waiting at the endpoint */

/* Write "1, 4, 5" or "1, 4, ... (17 in all)" */
static void list_ranks(char *buf, size_t len, const uint32_t *ranks, unsigned int shown,
		       unsigned int all)
{
	size_t at = 0;

	for (unsigned int i = 0; i < shown && at < len; i++)
		at += snprintf(buf + at, len - at, "%s%u", i ? ", " : "", ranks[i]);
	if (all > shown && at < len)
		snprintf(buf + at, len - at, ", ... (%u in all)", all);
}

#define LIST_AT_MOST	8

/* The time to join is over, or the communicator was revoked: say why */
static int why_not_joined(struct zcoll_comm *comm, const struct zcoll_attr *attr)
{
	char text[ZCOLL_TEXT_MAX] = "", ranks[100] = "";
	uint32_t missing[LIST_AT_MOST];
	struct zcoll_status st = {
		.missing = (uintptr_t)missing,
		.missing_len = LIST_AT_MOST,
		.text = (uintptr_t)text,
		.text_len = sizeof(text),
	};
	unsigned int absent;
	int ret;

	ret = zc_comm_status(comm, &st);
	if (ret)
		return FAIL(attr, ret, "rank %u: status of the communicator: %s", comm->rank,
			    strerror(-ret));
	if (st.state == ZCOLL_STATE_DONE)
		return FAIL(attr, st.result, "%s", text[0] ? text : strerror(-st.result));

	absent = st.nranks - st.arrived;
	list_ranks(ranks, sizeof(ranks), missing, absent < LIST_AT_MOST ? absent : LIST_AT_MOST,
		   absent);
	return FAIL(attr, -ETIMEDOUT, "rank %u: %u of %u ranks joined in %g s, missing: %s%s",
		    comm->rank, st.arrived, st.nranks, attr->join_timeout_ns / 1e9, ranks,
		    attr->exchange ? "" : "; to meet ranks of other nodes, set ZCOLL_STORE=HOST:PORT");
}

/* Wait until the endpoint says that all ranks of this node are there */
int zc_wait_for_ranks(struct zcoll_comm *comm, const struct zcoll_attr *attr)
{
	struct pollfd pfd = { .fd = comm->fd, .events = POLLIN };
	int ret;

	if (!attr->join_timeout_ns)
		return 0;
	ret = zc_poll(&pfd, 1, zc_after(attr->join_timeout_ns));
	if (ret < 0)
		return FAIL(attr, ret, "rank %u: poll on the endpoint: %s", comm->rank,
			    strerror(-ret));
	if (ret && !(pfd.revents & (POLLERR | POLLHUP)))
		return 0;
	return why_not_joined(comm, attr);
}

/* ------------------------------------------------------------- one call to join */

/* Join by @join, in which is what is not in @attr */
int zc_join_by(struct zcoll_comm *comm, int dev, const struct zcoll_attr *attr,
	       struct zcoll_join *join)
{
	char text[ZCOLL_TEXT_MAX] = "";
	int fd;

	join->size = sizeof(*join);
	join->nranks = attr->nranks;
	join->deadline_ns = attr->deadline_ns;
	join->text = (uintptr_t)text;
	join->text_len = sizeof(text);
	memcpy(join->key, attr->key, sizeof(join->key));
	fd = zc_ioctl(dev, ZCOLL_IOC_JOIN, join);
	if (fd < 0)
		return FAIL(attr, fd, "%s %u of %u cannot join: %s",
			    join->flags & ZCOLL_JOIN_AGGREGATE ? "aggregator" : "rank", attr->rank,
			    join->flags & ZCOLL_JOIN_AGGREGATE ? attr->aggregators : attr->nranks,
			    text[0] ? text : strerror(-fd));
	comm->fd = fd;
	return 0;
}

/**
 * zc_join_here - join a communicator on one node
 * @comm: the communicator; is its rank then
 * @dev: the device
 * @attr: attr
 */
int zc_join_here(struct zcoll_comm *comm, int dev, const struct zcoll_attr *attr)
{
	struct zcoll_join args = { .rank = attr->rank };
	int ret = zc_join_by(comm, dev, attr, &args);

	return ret ? ret : zc_wait_for_ranks(comm, attr);
}
