// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into the command, takes the place of the library's communicators: of one
 * rank, in this process, without a device. So what the command prints, and where it
 * fails, can be tested on a host that has none.
 *
 * Joining says on standard error how long it would wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zcoll.h>

static char only;	/* the communicator, and each request */

int zcoll_info_get(const char *device, struct zcoll_info *info)
{
	(void)device;
	*info = (struct zcoll_info){ .window = ZCOLL_MAX_WINDOW };
	return 0;
}

int zcoll_comm_create(struct zcoll_comm **comm, const struct zcoll_attr *attr)
{
	fprintf(stderr, "joins within %llu ns\n", (unsigned long long)attr->join_timeout_ns);
	*comm = (void *)&only;
	return 0;
}

int zcoll_comm_free(struct zcoll_comm *comm)
{
	(void)comm;
	return 0;
}

int zcoll_comm_abort(struct zcoll_comm *comm)
{
	(void)comm;
	return 0;
}

unsigned int zcoll_comm_rank(const struct zcoll_comm *comm)
{
	(void)comm;
	return 0;
}

unsigned int zcoll_comm_size(const struct zcoll_comm *comm)
{
	(void)comm;
	return 1;
}

void *zcoll_alloc(struct zcoll_comm *comm, size_t len)
{
	(void)comm;
	return malloc(len);
}

int zcoll_free(struct zcoll_comm *comm, void *p)
{
	(void)comm;
	free(p);
	return 0;
}

unsigned int zcoll_comm_nodes(const struct zcoll_comm *comm)
{
	(void)comm;
	return 1;
}

unsigned int zcoll_comm_node(const struct zcoll_comm *comm)
{
	(void)comm;
	return 0;
}

int zcoll_comm_node_of(const struct zcoll_comm *comm, unsigned int rank)
{
	(void)comm;
	(void)rank;
	return 0;
}

int zcoll_comm_set_flags(struct zcoll_comm *comm, unsigned int flags)
{
	(void)comm;
	(void)flags;
	return 0;
}

int zcoll_comm_stats(struct zcoll_comm *comm, struct zcoll_stats *stats)
{
	(void)comm;
	*stats = (struct zcoll_stats){ .nodes = 1 };
	return 0;
}

/* Of one rank, all collectives are a copy */
int zcoll_call(struct zcoll_comm *comm, const struct zcoll_call *call)
{
	(void)comm;
	if (call->count)
		memmove(call->recv, call->send, call->count * zcoll_dtype_size(call->dtype));
	return 0;
}

int zcoll_icall(struct zcoll_comm *comm, const struct zcoll_call *call, struct zcoll_req **req)
{
	*req = (void *)&only;
	return zcoll_call(comm, call);
}

int zcoll_wait(struct zcoll_req *req, uint64_t timeout_ns)
{
	(void)req;
	(void)timeout_ns;
	return 0;
}
