// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What is measured of a fabric, and how; see calibrate.h.
 *
 *	o	CPU time of the sender for each of many small messages in a row
 *	g	time for each of them
 *	L	half of the round trip of a small ping, less o at each end: the wire, and
 *		what waking a process takes
 *	G	slope of half of the round trip over the size
 *
 * as LogP was first measured (Culler, Liu, Martin, Yoshikawa: "Assessing Fast Network
 * Interfaces", IEEE Micro 16(1), 1996), and with medians, because one interrupt is longer
 * than all these times.
 */
#include <stdlib.h>
#include <time.h>

#include "calibrate.h"
#include "../msg.h"

#define SMALL		8U	/* bytes of a small message */
#define PINGS		32U	/* in a batch */
#define STREAMED	512U	/* likewise */
#define BATCHES		512U	/* at most, of a kind */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count & 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double slope(const double *x, const double *y, unsigned int count)
{
	double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
	unsigned int i;

	for (i = 0; i < count; i++) {
		mean_x += x[i] / count;
		mean_y += y[i] / count;
	}
	for (i = 0; i < count; i++) {
		xy += (x[i] - mean_x) * (y[i] - mean_y);
		xx += (x[i] - mean_x) * (x[i] - mean_x);
	}
	return xy / xx;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* Median of the round trip, over batches for about @ns */
static int ping(struct wire *wire, uint32_t size, uint64_t ns, double *round_trip)
{
	double trips[PINGS], of_batch[BATCHES];
	uint64_t end = now_ns() + ns;
	unsigned int n = 0;
	int status;

	do {
		status = wire_ping(wire, size, PINGS, trips);
		if (status)
			return status;
		of_batch[n++] = median(trips, PINGS);
	} while (n < BATCHES && now_ns() < end);
	*round_trip = median(of_batch, n);
	return 0;
}

static int stream(struct wire *wire, uint64_t ns, double round_trip,
		  struct zcoll_fabric *fabric)
{
	uint64_t end = now_ns() + ns;
	double gaps[BATCHES], cpus[BATCHES], all, cpu;
	unsigned int n = 0;
	int status;

	do {
		status = wire_stream(wire, SMALL, STREAMED, &all, &cpu);
		if (status)
			return status;
		/* the last one's way, and its answer's, are no gap */
		gaps[n] = (all - round_trip) / STREAMED;
		cpus[n++] = cpu / STREAMED;
	} while (n < BATCHES && now_ns() < end);
	fabric->gap = median(gaps, n);
	fabric->overhead = median(cpus, n);
	return 0;
}

static int bytes(struct wire *wire, uint64_t ns, double *per_byte)
{
	static const double sizes[] = { 4096, 16384, 65536, 262144, WIRE_MAX_SIZE };
	const unsigned int count = sizeof(sizes) / sizeof(sizes[0]);
	double half[sizeof(sizes) / sizeof(sizes[0])];
	unsigned int i;
	int status;

	for (i = 0; i < count; i++) {
		status = ping(wire, (uint32_t)sizes[i], ns / count, &half[i]);
		if (status)
			return status;
		half[i] /= 2;
	}
	*per_byte = slope(sizes, half, count);
	return 0;
}

int measure_fabric(struct wire *wire, uint64_t ns, struct zcoll_fabric *fabric)
{
	double trip;
	int status;

	/* the first is not counted: caches are cold, and TCP's window is small */
	status = ping(wire, WIRE_MAX_SIZE, ns / 16, &trip);
	if (!status)
		status = ping(wire, SMALL, ns / 4, &trip);
	if (!status)
		status = stream(wire, ns / 4, trip, fabric);
	if (!status)
		status = bytes(wire, ns / 2, &fabric->per_byte);
	if (status)
		return status;
	fabric->latency = trip / 2 - 2 * fabric->overhead;
	if (fabric->latency <= 0 || fabric->gap <= 0 || fabric->per_byte <= 0)
		return failed("too noisy: L %.0f ns, g %.0f ns, G %.4f ns a byte came out; try a longer --time",
			      fabric->latency, fabric->gap, fabric->per_byte);
	return 0;
}
