// SPDX-License-Identifier: GPL-2.0
/*
 * Make a communicator as the environment says, with a mock of the device, and print
 * "rank R of N is on node I of M", or the error text. With an argument, the rank of that
 * number does not come, or, as "-R", has no device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mock.h"

int main(int argc, char **argv)
{
	char text[ZCOLL_TEXT_MAX];
	struct zcoll_attr attr;
	struct zcoll_comm *comm;
	int special = argc > 1 ? atoi(argv[1]) : 0;

	zcoll_attr_init(&attr);
	attr.error = text;
	attr.error_len = sizeof(text);
	if (zcoll_attr_from_env(&attr)) {
		printf("%s\n", text);
		return 1;
	}
	if (special > 0 && attr.rank == (unsigned int)special) {
		sleep(3);
		return 0;
	}
	if (special < 0 && attr.rank == (unsigned int)-special)
		mock.refuse_address = -19;
	if (zcoll_comm_create(&comm, &attr)) {
		printf("rank %u is told: %s\n", attr.rank, text);
		return 0;
	}
	printf("rank %u of %u is on node %u of %u\n", zcoll_comm_rank(comm), zcoll_comm_size(comm),
	       zcoll_comm_node(comm), zcoll_comm_nodes(comm));
	return zcoll_comm_free(comm) != 0;
}
