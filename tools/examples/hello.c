// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The smallest program: every rank gives its number, and gets the sum of all.
 *
 *	cc hello.c -o hello $(pkg-config --cflags --libs zcoll)
 *	zcoll run -n 4 -- ./hello
 */
#include <stdio.h>
#include <zcoll.h>

int main(void)
{
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_comm *comm;
	float mine, sum;

	if (zcoll_comm_create_from_env(&comm, text, sizeof(text))) {
		fprintf(stderr, "hello: %s\n", text);
		return 1;
	}
	mine = zcoll_comm_rank(comm);
	if (zcoll_allreduce(comm, &mine, &sum, 1, ZCOLL_FP32, ZCOLL_SUM)) {
		zcoll_comm_error(comm, text, sizeof(text));
		fprintf(stderr, "hello: %s\n", text);
		return 1;
	}
	printf("rank %u of %u: the sum is %g\n", zcoll_comm_rank(comm), zcoll_comm_size(comm), sum);
	return zcoll_comm_free(comm) != 0;
}
