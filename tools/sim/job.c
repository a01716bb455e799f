// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Jobs: kinds of operations, made ready from plans.
 */
#include <stdlib.h>

#include "random.h"
#include "simcmd.h"

/* What the kernel checks of a plan, at all nodes. Return: 0 or a negative errno */
int plan_prove(const struct zcoll_plan *plan, struct zc_plan_why *why)
{
	void *room = malloc(zc_plan_check_room(plan));
	int err = room ? 0 : -ENOMEM;
	u32 v;

	for (v = 0; v < plan->nodes && !err; v++)
		err = zc_plan_check(plan, v, room, why);
	free(room);
	return err;
}

static u64 in_elements(u64 bytes, u32 element)
{
	return bytes == U64_MAX ? U64_MAX : bytes / element;
}

/* Return: 0 or -ENOMEM */
int job_init(struct sim_job *job, const struct sim_job_spec *spec)
{
	void *room = malloc(zc_prog_size(spec->plan));

	*job = (struct sim_job){
		.geo.count = spec->bytes / spec->element,
		.element = spec->element,
		.slice = spec->slice ? in_elements(spec->slice, spec->element) : U64_MAX,
		.eager = in_elements(spec->eager, spec->element),
		.reserve = U64_MAX,
		.root = spec->root,
	};
	if (!room)
		return -ENOMEM;
	if (!job->slice)
		job->slice = 1;
	zc_prog_init(&job->prog, spec->plan, room);
	job->room = room;
	return 0;
}

static int by_size(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

/* Segments of random sizes, some of them empty. Return: 0 or -ENOMEM */
int job_uneven(struct sim_job *job, u64 *random)
{
	u32 segments = job->prog.plan->segments, i;
	u64 *starts = malloc((segments + 1) * sizeof(*starts));

	if (!starts)
		return -ENOMEM;
	starts[0] = 0;
	for (i = 1; i < segments; i++)
		starts[i] = random_range(random, 0, job->geo.count);
	starts[segments] = job->geo.count;
	qsort(starts, segments + 1, sizeof(*starts), by_size);
	job->starts = starts;
	job->geo.starts = starts;
	return 0;
}

void job_free(struct sim_job *job)
{
	free(job->room);
	free(job->starts);
}
