// SPDX-License-Identifier: GPL-2.0
/*
 * In place of libpmix: a connection to a server that never answers. Nothing else of it is called.
 */
#include <unistd.h>

int PMIx_Init(void);
int PMIx_Init(void)
{
	for (;;)
		pause();
}

#define NEVER(name)		\
	int name(void);		\
	int name(void)		\
	{			\
		_exit(99);	\
	}

NEVER(PMIx_Finalize)
NEVER(PMIx_Get)
NEVER(PMIx_Get_nb)
NEVER(PMIx_Put)
NEVER(PMIx_Commit)
NEVER(PMIx_Fence_nb)
NEVER(PMIx_Error_string)
