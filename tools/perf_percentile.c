// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * zcoll perf: what is said of many times of the same thing; see perf.h.
 */
#include <stdlib.h>

#include "perf.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value that @percent of the values are not above, by the nearest rank; sorts them */
double perf_percentile(double *values, size_t count, unsigned int percent)
{
	size_t rank = (count * percent + 99) / 100;

	qsort(values, count, sizeof(*values), compare);
	return values[rank ? rank - 1 : 0];
}
