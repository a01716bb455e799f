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

int zcoll_barrier(struct zcoll_comm *comm)
{
	(void)comm;
	return 0;
}

int zcoll_allreduce(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		    int dtype, int op)
{
	(void)comm;
	(void)op;
	memmove(recv, send, count * zcoll_dtype_size(dtype));
	return 0;
}

int zcoll_iallreduce(struct zcoll_comm *comm, const void *send, void *recv, uint64_t count,
		     int dtype, int op, struct zcoll_req **req)
{
	*req = (void *)&only;
	return zcoll_allreduce(comm, send, recv, count, dtype, op);
}

int zcoll_wait(struct zcoll_req *req, uint64_t timeout_ns)
{
	(void)req;
	(void)timeout_ns;
	return 0;
}
