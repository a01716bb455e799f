// SPDX-License-Identifier: GPL-2.0
/*
 * Requests of collective operations among others: in one array, in any order, waited for
 * and tested by all functions there are; and messages that need progress while a rank is
 * in a collective call.
 */
#include <unistd.h>

#include "check.h"

#define N	1000
#define MANY	100		/* more than zcoll takes at once */
#define LARGE	(4 << 20)	/* bytes of a message that needs its receiver to be sent */

static int next(void)
{
	return (me + 1) % ranks;
}

static int before(void)
{
	return (me + ranks - 1) % ranks;
}

/* Two all-reduces, a broadcast and a barrier among a message in each direction */
enum { SUM, RECV, MAX, SEND, BCAST, BARRIER, REQUESTS };

static struct {
	int in[N], sum[N], max[N], out, message, bcast[N];
	MPI_Request r[REQUESTS];
} m;

static void start_mix(void)
{
	memset(&m, 0, sizeof(m));
	for (int i = 0; i < N; i++)
		m.in[i] = me + i;
	if (!me)
		memcpy(m.bcast, m.in, sizeof(m.in));
	m.out = me;
	MPI_Iallreduce(m.in, m.sum, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &m.r[SUM]);
	MPI_Irecv(&m.message, 1, MPI_INT, before(), 1, MPI_COMM_WORLD, &m.r[RECV]);
	MPI_Iallreduce(m.in, m.max, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &m.r[MAX]);
	MPI_Isend(&m.out, 1, MPI_INT, next(), 1, MPI_COMM_WORLD, &m.r[SEND]);
	MPI_Ibcast(m.bcast, N, MPI_INT, 0, MPI_COMM_WORLD, &m.r[BCAST]);
	MPI_Ibarrier(MPI_COMM_WORLD, &m.r[BARRIER]);
}

static bool mix_is_right(void)
{
	bool good = m.message == before();

	for (int i = 0; i < REQUESTS; i++)
		good = good && m.r[i] == MPI_REQUEST_NULL;
	for (int i = 0; i < N; i++)
		good = good && m.sum[i] == ranks * (ranks - 1) / 2 + ranks * i &&
		       m.max[i] == ranks - 1 + i && m.bcast[i] == i;
	return good;
}

static void waits(void)
{
	int index[REQUESTS], n, flag, seen = 0, tries;
	MPI_Status statuses[REQUESTS];
	bool good;

	start_mix();
	good = MPI_Waitall(REQUESTS, m.r, statuses) == MPI_SUCCESS;
	check(good && mix_is_right() && statuses[RECV].MPI_SOURCE == before(), "Waitall");

	start_mix();
	for (int i = 0; i < REQUESTS; i++) {
		good = MPI_Waitany(REQUESTS, m.r, &n, statuses) == MPI_SUCCESS && good;
		seen |= 1 << n;
	}
	good = good && seen == (1 << REQUESTS) - 1;
	MPI_Waitany(REQUESTS, m.r, &n, statuses);
	check(good && n == MPI_UNDEFINED && mix_is_right(), "Waitany");

	start_mix();
	for (seen = 0; seen < REQUESTS; seen += n)
		MPI_Waitsome(REQUESTS, m.r, &n, index, statuses);
	MPI_Waitsome(REQUESTS, m.r, &n, index, statuses);
	check(n == MPI_UNDEFINED && mix_is_right(), "Waitsome");

	start_mix();
	for (int i = REQUESTS - 1; i >= 0; i--)
		MPI_Wait(&m.r[i], MPI_STATUS_IGNORE);
	check(mix_is_right(), "Wait for each, in reverse");

	start_mix();
	for (tries = 0, flag = 0; !flag; tries++)
		MPI_Testall(REQUESTS, m.r, &flag, MPI_STATUSES_IGNORE);
	check(mix_is_right(), "Testall");

	start_mix();
	for (n = 0; n != MPI_UNDEFINED;)
		MPI_Testany(REQUESTS, m.r, &n, &flag, MPI_STATUS_IGNORE), n = flag ? n : 0;
	check(flag && mix_is_right(), "Testany");

	start_mix();
	for (n = 0; n != MPI_UNDEFINED;)
		MPI_Testsome(REQUESTS, m.r, &n, index, MPI_STATUSES_IGNORE);
	check(mix_is_right(), "Testsome");

	start_mix();
	for (int i = 0; i < REQUESTS; i++)
		for (flag = 0; !flag;)
			MPI_Test(&m.r[i], &flag, MPI_STATUS_IGNORE);
	check(mix_is_right(), "Test");

	start_mix();
	for (int i = 0; i < REQUESTS; i++)
		for (flag = 0; !flag;)
			MPI_Request_get_status(m.r[i], &flag, MPI_STATUS_IGNORE);
	good = m.r[SUM] != MPI_REQUEST_NULL && m.r[RECV] != MPI_REQUEST_NULL;
	MPI_Waitall(REQUESTS, m.r, MPI_STATUSES_IGNORE);
	check(good && mix_is_right(), "Request_get_status leaves the request");
}

/* Persistent ones among persistent messages; ranks start them in different orders */
static void persistent(void)
{
	int in = me, sum, max, message, index, flag;
	MPI_Request r[4];
	bool good = true;

	INIT(Allreduce)(&in, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
	INIT(Allreduce)(&in, &max, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
	MPI_Recv_init(&message, 1, MPI_INT, before(), 2, MPI_COMM_WORLD, &r[2]);
	MPI_Send_init(&in, 1, MPI_INT, next(), 2, MPI_COMM_WORLD, &r[3]);
	for (int i = 0; i < 10; i++) {
		sum = max = message = -1;
		MPI_Startall(4, r);
		MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
		good = good && sum == ranks * (ranks - 1) / 2 && max == ranks - 1 &&
		       message == before();
	}
	check(good, "persistent requests, Startall");

	sum = max = -1;
	MPI_Start(&r[me % 2]);
	MPI_Start(&r[1 - me % 2]);
	for (int i = 0; i < 2; i++)
		MPI_Waitany(4, r, &index, MPI_STATUS_IGNORE);
	check(sum == ranks * (ranks - 1) / 2 && max == ranks - 1,
	      "persistent requests started in another order");

	MPI_Waitany(4, r, &index, MPI_STATUS_IGNORE);
	MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
	check(index == MPI_UNDEFINED && flag, "persistent requests that are not active");

	if (me)
		MPI_Start(&r[0]);
	MPI_Testany(4, r, &index, &flag, MPI_STATUS_IGNORE);
	good = me ? !flag : flag && index == MPI_UNDEFINED;
	PMPI_Barrier(MPI_COMM_WORLD);
	if (!me)
		MPI_Start(&r[0]);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	check(good, "an active persistent request is not over before all have started it");
	for (int i = 0; i < 4; i++)
		MPI_Request_free(&r[i]);
}

/* Started calls never wait: the message between them is needed by another rank */
static void more_than_fit(void)
{
	static int in[MANY], out[MANY];
	MPI_Request r[MANY];
	bool good = true;
	int token = 1;

	for (int i = 0; i < MANY; i++)
		in[i] = me + i;
	if (me)
		MPI_Recv(&token, 1, MPI_INT, me - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < MANY; i++)
		MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &r[i]);
	if (me < ranks - 1)
		MPI_Send(&token, 1, MPI_INT, me + 1, 3, MPI_COMM_WORLD);
	MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++)
		good = good && out[i] == ranks - 1 + i;
	check(good, "more operations at once than zcoll takes");
}

/* One call is small enough for mailboxes, the other is not */
static void message_meanwhile(int count)
{
	int *in = calloc(count, sizeof(*in)), *sum = calloc(count, sizeof(*sum));
	char *large = calloc(1, LARGE);
	MPI_Request r = MPI_REQUEST_NULL;

	in[count - 1] = me;
	if (!me)
		MPI_Irecv(large, LARGE, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &r);
	if (me == 1) {
		memset(large, 7, LARGE);
		usleep(100000);
		MPI_Send(large, LARGE, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
	}
	MPI_Allreduce(in, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	check(sum[count - 1] == ranks * (ranks - 1) / 2 && (me || large[LARGE - 1] == 7),
	      count == 1 ? "a large message arrives while its receiver is in a small call" :
	      "a large message arrives while its receiver is in a large call");
	free(in);
	free(sum);
	free(large);
}

/* Blocking calls go by mailboxes, started ones by the kernel, and both keep their order */
static void many_small(void)
{
	int in[2], sum, max, all[64];
	MPI_Request r[2];
	bool good = true;

	for (int i = 0; i < MANY; i++) {
		in[0] = in[1] = me + i;
		MPI_Iallreduce(&in[0], &max, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &r[0]);
		MPI_Allreduce(&in[1], &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Ibarrier(MPI_COMM_WORLD, &r[1]);
		MPI_Allgather(&in[1], 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		good = good && max == ranks - 1 + i && all[ranks - 1] == ranks - 1 + i &&
		       sum == ranks * (ranks - 1) / 2 + ranks * i;
	}
	check(good, "small blocking calls among started ones");
}

/* Those that find no room are behind the others, and blocking calls behind them */
static void behind_the_queue(void)
{
	static int in[MANY], out[MANY];
	MPI_Request r[MANY];
	int sum;

	for (int i = 0; i < MANY; i++) {
		in[i] = me + i;
		MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &r[i]);
	}
	MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
	check(sum == ranks * (ranks - 1) / 2 && out[MANY - 1] == ranks - 1 + MANY - 1,
	      "a blocking call behind more operations than zcoll takes");
}

static void freed_meanwhile(void)
{
	int in[2] = { me, -1 }, sum = -1, data[4] = { 0 };
	MPI_Datatype every_other;
	MPI_Request r[2];
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Barrier(comm);
	MPI_Iallreduce(in, &sum, 1, MPI_INT, MPI_SUM, comm, &r[0]);
	MPI_Type_vector(2, 1, 2, MPI_INT, &every_other);
	MPI_Type_commit(&every_other);
	if (!me)
		data[0] = 1, data[2] = 2;
	MPI_Ibcast(data, 1, every_other, 0, comm, &r[1]);
	MPI_Type_free(&every_other);
	MPI_Comm_free(&comm);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	check(sum == ranks * (ranks - 1) / 2 && data[0] == 1 && data[2] == 2 && !data[1],
	      "communicator and type are freed while operations go on");
}

int main(int argc, char **argv)
{
	begin(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Barrier(MPI_COMM_WORLD);
	waits();
	more_than_fit();
	behind_the_queue();
	message_meanwhile(1);
	message_meanwhile(N * N);
	many_small();
	if (with_zcoll) {
		persistent();
		freed_meanwhile();
	}
	return end();
}
