// SPDX-License-Identifier: GPL-2.0
/*
 * For scripts: joins a communicator of one rank, does one operation, says
 * "held", and keeps the endpoint (not the device) until its input ends.
 */
#include "zcoll_test.h"

int main(void)
{
	struct zcoll_cmd cmd = zt_barrier(0);
	struct zt zt;
	char c;
	int ep;

	if (zt_open(&zt) || zt_comm(&zt, 1, &ep))
		return 1;
	close(zt.dev);
	if (zt_allreduce(ep, &cmd))
		return 2;
	puts("held");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
