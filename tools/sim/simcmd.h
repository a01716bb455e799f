/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * zcoll sim: what its subcommands share.
 */
#ifndef ZCOLL_SIM_SIMCMD_H
#define ZCOLL_SIM_SIMCMD_H

#include <zcoll_plan.h>

#include "sim.h"

/* The subcommands, called as main() is; they return the exit status */
int sim_faults(int argc, char **argv);
int sim_sweep(int argc, char **argv);

/* ---- job.c ---- */

/**
 * struct sim_job_spec - what to make a job of
 * @plan: plan, to stay as long as the job
 * @bytes: of the operation, all segments together
 * @element: bytes of an element, which divide @bytes
 * @slice: bytes of a slice; 0: all of a turn
 * @eager: bytes of a unit that still goes through slots; U64_MAX: any
 * @root: root node
 */
struct sim_job_spec {
	const struct zcoll_plan *plan;
	u64 bytes;
	u32 element;
	u64 slice;
	u64 eager;
	u32 root;
};

int plan_prove(const struct zcoll_plan *plan, struct zc_plan_why *why);
int job_init(struct sim_job *job, const struct sim_job_spec *spec);
int job_uneven(struct sim_job *job, u64 *random);
void job_free(struct sim_job *job);

/* ---- options.c ---- */

void model_from_fabric(struct sim_model *model, const struct zcoll_fabric *fabric);

/* Options that end in 0, or in an exit status after a message */
int option_uint(const char *name, u64 min, u64 max, u64 *to);
int option_u32(const char *name, u64 min, u64 max, u32 *to);
int option_size(const char *name, u64 *to);
int option_time(const char *name, u64 *ns);	/* with a unit */
int option_chance(const char *name, u32 *ppm);
int option_fabric(const char *name, struct sim_model *model);
int option_gamma(struct sim_model *model);
const char *contention_name(enum sim_contention contention);
int option_contention(struct sim_model *model);
int option_topology(struct sim_model *model);
int option_blow(const char *name, enum sim_blow_kind kind, struct sim_faults *faults);

#endif /* ZCOLL_SIM_SIMCMD_H */
