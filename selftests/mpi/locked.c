// SPDX-License-Identifier: GPL-2.0
/*
 * Locked memory: a program that may lock little of it gets right results all the same.
 * The process gives CAP_IPC_LOCK up, and may lock 8 MiB then.
 */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "check.h"

#define LIMIT	(8 << 20)
#define MANY	12
#define N	(1 << 18)	/* ints, 1 MiB: an operation pins two of them */
#define LARGE	(3 << 18)	/* more than half of the limit */
#define HALF	(1 << 19)	/* half of the limit */
#define COMMS	3

static void give_up_the_right(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	struct rlimit limit = { LIMIT, LIMIT };

	if (syscall(SYS_capget, &head, data))
		exit(1);
	data[0].effective &= ~(1U << CAP_IPC_LOCK);
	data[0].permitted &= ~(1U << CAP_IPC_LOCK);
	if (syscall(SYS_capset, &head, data) || setrlimit(RLIMIT_MEMLOCK, &limit))
		exit(1);
}

/* The limit is the process's, and each communicator alone keeps to it */
static void several_communicators(const int *in, int **out)
{
	MPI_Request r[COMMS];
	MPI_Comm comms[COMMS];
	bool good = true;

	for (int k = 0; k < COMMS; k++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
		MPI_Barrier(comms[k]);
	}
	for (int turn = 0; turn < 5; turn++) {
		for (int k = 0; k < COMMS; k++) {
			memset(out[k], 0, sizeof(int) * HALF);
			MPI_Iallreduce(in, out[k], HALF, MPI_INT, MPI_MAX, comms[k], &r[k]);
		}
		memset(out[COMMS], 0, sizeof(int) * N);
		MPI_Allreduce(in, out[COMMS], N, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
		MPI_Waitall(COMMS, r, MPI_STATUSES_IGNORE);
		for (int i = 0; i < HALF; i++)
			for (int k = 0; k < COMMS; k++)
				good = good && out[k][i] == i + ranks - 1;
		for (int i = 0; i < N; i++)
			good = good && out[COMMS][i] == i;
	}
	for (int k = 0; k < COMMS; k++)
		MPI_Comm_free(&comms[k]);
	check(good, "several communicators share what may be locked");
}

int main(int argc, char **argv)
{
	int *in = malloc(sizeof(int) * LARGE), *out[MANY];
	MPI_Request r[MANY];
	bool good = true;

	give_up_the_right();
	begin(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < LARGE; i++)
		in[i] = me + i;
	for (int k = 0; k < MANY; k++) {
		out[k] = malloc(sizeof(int) * LARGE);
		MPI_Iallreduce(in, out[k], N, MPI_INT, k % 2 ? MPI_MAX : MPI_MIN, MPI_COMM_WORLD,
			       &r[k]);
	}
	MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
	for (int k = 0; k < MANY; k++)
		for (int i = 0; i < N; i++)
			good = good && out[k][i] == i + (k % 2 ? ranks - 1 : 0);
	check(good, "more operations at once than memory may be locked for");

	MPI_Allreduce(in, out[0], LARGE, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	for (int i = 0; i < LARGE; i++)
		good = good && out[0][i] == i + ranks - 1;
	check(good, "one that would take more than half of it");
	several_communicators(in, out);
	return end();
}
