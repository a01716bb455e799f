// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * gamma: what folding a received byte costs on this CPU, by the module's own loops.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/zcoll.h>

#include "calibrate.h"
#include "isa.h"
#include "../msg.h"

/* As much as a slice: what has just been received is in a cache */
#define FOLD_BYTES	((uint64_t)ZCOLL_SLICE_DEFAULT)
#define FOLDS		512U

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double time_folds(zc_fold_fn fold, void *acc, void *received, double ns)
{
	const void *src[] = { acc, received };
	void *dst[] = { acc };
	double times[FOLDS], begin = now_ns(), from;
	unsigned int n = 0;

	do {
		from = now_ns();
		fold(dst, src, 1, 2, 1, 0, FOLD_BYTES / sizeof(float), false);
		times[n++] = now_ns() - from;
	} while (n < FOLDS && now_ns() - begin < ns);
	return median(times, n) / FOLD_BYTES;
}

int measure_fold(uint64_t ns, double *per_byte, const char **loops)
{
	const struct zc_fold_isa *isa = isa_best();
	char *memory = aligned_alloc(64, 2 * FOLD_BYTES);

	if (!memory)
		return failed("out of memory");
	memset(memory, 0, 2 * FOLD_BYTES);
	*per_byte = time_folds(isa->fn[ZCOLL_FP32][ZCOLL_SUM], memory, memory + FOLD_BYTES,
			       (double)ns);
	*loops = isa->name;
	free(memory);
	return 0;
}
