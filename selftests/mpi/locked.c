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
	return end();
}
