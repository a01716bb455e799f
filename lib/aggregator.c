// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Aggregators: nodes without ranks. The kernel does their work, so that all that is left
 * for the process is to hold the endpoint until the communicator ends. The ranks wait in
 * their last round of joining until all aggregators serve, so that their plans are loaded.
 *
 * Lifelines. The kernels of an aggregator and of the ranks connect only when a plan has
 * them meet, so the aggregator's may never hear that the ranks have left, or are dead.
 * Therefore the connection at which an aggregator and rank 0 met at the store, the
 * *lifeline*, stays open, and nothing is sent on it: its end says that rank 0 has left.
 * Operations that other ranks are still in are the kernel's, and waited for.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "internal.h"

#define LOOK_NS		50000000ULL	/* between looks whether the other nodes have gone too */
#define FAREWELL_NS	5000000000ULL	/* for them to go, after rank 0 has */

/* Say that we leave; a child of fork() may have a copy of the sockets */
void zc_lifelines_end(struct zcoll_comm *comm)
{
	for (unsigned int i = 0; i < comm->nr_lifelines; i++)
		shutdown(comm->lifelines[i], SHUT_RDWR);
}

/* Have the lifeline end too when the machine of rank 0 does not answer any more */
static void watch_machine(int lifeline)
{
	int on = 1, idle = 10, interval = 5, count = 3;

	setsockopt(lifeline, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(lifeline, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(lifeline, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(lifeline, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

/* Rank 0 has left: wait for the nodes that this one is connected to, and their news */
static int wait_for_nodes(struct zcoll_comm *comm, struct pollfd *endpoint)
{
	uint64_t end = zc_after(FAREWELL_NS);
	struct zcoll_stats stats;
	int ret;

	do {
		ret = zcoll_comm_stats(comm, &stats);
		if (ret || !stats.connected)
			return ret;
		ret = zc_poll(endpoint, 1, zc_after(LOOK_NS));
	} while (!ret && zc_left(end));
	return ret < 0 ? ret : 0;
}

/* Wait until the communicator, or the lifeline, has ended */
static int wait_for_end(struct zcoll_comm *comm)
{
	struct pollfd fds[2] = {
		{ .fd = comm->fd },
		{ .fd = comm->nr_lifelines ? comm->lifelines[0] : -1, .events = POLLIN },
	};
	int ret;

	if (comm->nr_lifelines)
		watch_machine(comm->lifelines[0]);
	ret = zc_poll(fds, 2, ZCOLL_WAIT_FOREVER);
	if (ret < 0)
		return zc_fail(comm, ret, "poll on the endpoint: %s", strerror(-ret));
	return fds[0].revents ? 0 : wait_for_nodes(comm, fds);
}

int zcoll_aggregator_serve(struct zcoll_comm *comm)
{
	char text[ZCOLL_TEXT_MAX] = "";
	struct zcoll_status st = { .text = (uintptr_t)text, .text_len = sizeof(text) };
	int ret = zc_check_owner(comm);

	if (!ret)
		ret = zc_meeting_conclude(comm);
	if (!ret)
		ret = wait_for_end(comm);
	if (ret)
		return ret;
	ret = zc_comm_status(comm, &st);
	if (ret)
		return zc_fail(comm, ret, "status of the communicator: %s", strerror(-ret));
	if (st.state != ZCOLL_STATE_DONE || !st.result || st.result == -ESHUTDOWN)
		return 0;	/* the ranks have left */
	return zc_fail(comm, st.result, "%s", text[0] ? text : strerror(-st.result));
}
