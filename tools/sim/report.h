/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What runs of a scene have found, for people and for programs.
 */
#ifndef ZCOLL_SIM_REPORT_H
#define ZCOLL_SIM_REPORT_H

#include <zcoll_plan.h>

#include "simcmd.h"

/**
 * struct sim_report - what is known so far
 * @plan: the plan
 * @scene: the scene
 * @job: what the job was made of
 * @needs: bytes to have all elements in memory; 0: that was not the question
 * @room: of these, bytes that are thought to be few enough
 * @most_room: more is not possible
 * @outcome: of the last run
 * @runs: runs
 * @timed: of these, in which an operation ended well, so that there is a time
 * @least: the shortest time, ps
 * @most: the longest time
 * @sum: of times
 * @events: of all runs
 * @seconds: of CPU time that all runs took here
 */
struct sim_report {
	const struct zcoll_plan *plan;
	const struct sim_scene *scene;
	const struct sim_job_spec *job;
	u64 needs;
	u64 room;
	u64 most_room;
	struct sim_outcome outcome;
	u64 runs;
	u64 timed;
	u64 least;
	u64 most;
	double sum;
	u64 events;
	double seconds;
};

int report_run(struct sim_report *report, const struct sim_scene *scene);
void report_print(const struct sim_report *report, bool stats);
int report_json(const struct sim_report *report, bool stats);

#endif /* ZCOLL_SIM_REPORT_H */
