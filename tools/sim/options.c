// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Options of zcoll sim: what they may be, and what is said when they are not. The text
 * is in getopt's optarg.
 */
#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../cmd.h"
#include "../msg.h"
#include "../parse.h"
#include "simcmd.h"

int option_uint(const char *name, u64 min, u64 max, u64 *to)
{
	if (!parse_uint(optarg, min, max, to))
		return STATUS_OK;
	return usage("%s %s: not a number from %" PRIu64 " to %" PRIu64, name, optarg, min, max);
}

int option_u32(const char *name, u64 min, u64 max, u32 *to)
{
	u64 value = 0;
	int status = option_uint(name, min, max, &value);

	if (!status)
		*to = (u32)value;
	return status;
}

int option_size(const char *name, u64 *to)
{
	/* sums of times are then far below 2^64 ps */
	if (!parse_size(optarg, to) && *to <= 1ULL << 40)
		return STATUS_OK;
	return usage("%s %s: not a size up to 1T", name, optarg);
}

/* A number alone could be meant as ns, as in --fabric, or as seconds; only 0 is clear */
int option_time(const char *name, u64 *ns)
{
	u64 value;

	if (!parse_duration(optarg, &value) && value <= 3600000000000ULL) {
		if (value && !isalpha((unsigned char)optarg[strlen(optarg) - 1]))
			return usage("%s %s: in which unit? Such as %sns or %sus", name, optarg,
				     optarg, optarg);
		*ns = value;
		return STATUS_OK;
	}
	return usage("%s %s: not a time up to 1h, such as 5us", name, optarg);
}

static bool parse_real(const char *text, double min, double max, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return *text && !*end && *value >= min && *value <= max;
}

/* "0.01" is 10,000 in a million */
int option_chance(const char *name, u32 *ppm)
{
	double value;

	if (!parse_real(optarg, 0, 0.9, &value))
		return usage("%s %s: not a probability from 0 to 0.9", name, optarg);
	*ppm = (u32)lround(value * 1e6);
	return STATUS_OK;
}

/* ---- the model ---- */

static u64 in_ps(double ns)
{
	return (u64)llround(ns * SIM_PS);
}

void model_from_fabric(struct sim_model *model, const struct zcoll_fabric *fabric)
{
	model->latency = in_ps(fabric->latency);
	model->overhead = in_ps(fabric->overhead);
	model->gap = in_ps(fabric->gap);
	model->per_byte = in_ps(fabric->per_byte);
	model->per_byte_folded = in_ps(fabric->per_byte_folded);
}

int option_fabric(const char *name, struct sim_model *model)
{
	char error[ZCOLL_TEXT_MAX] = "";
	struct zcoll_fabric fabric;

	if (zcoll_fabric_get(optarg, &fabric, error, sizeof(error)))
		return usage("%s %s: %s", name, optarg, error);
	model_from_fabric(model, &fabric);
	return STATUS_OK;
}

int option_gamma(struct sim_model *model)
{
	double value;

	if (!parse_real(optarg, 0, 1e6, &value))
		return usage("--gamma %s: not a number of nanoseconds a byte", optarg);
	model->per_byte_folded = in_ps(value);
	return STATUS_OK;
}

const char *contention_name(enum sim_contention contention)
{
	static const char *const names[] = {
		[SIM_CONTENTION_NONE] = "none", [SIM_CONTENTION_CPU] = "cpu",
		[SIM_CONTENTION_NIC] = "nic",
	};

	return names[contention];
}

int option_contention(struct sim_model *model)
{
	unsigned int i;

	for (i = SIM_CONTENTION_NONE; i <= SIM_CONTENTION_NIC; i++) {
		if (strcmp(optarg, contention_name(i)))
			continue;
		model->contention = i;
		return STATUS_OK;
	}
	return usage("--contention %s: there are none, cpu and nic", optarg);
}

static bool parse_two_level(const char *text, struct sim_model *model)
{
	char head[16];
	const char *comma = strchr(text, ',');
	u64 rack;

	if (!comma || comma - text >= (int)sizeof(head))
		return false;
	memcpy(head, text, comma - text);
	head[comma - text] = 0;
	if (parse_uint(head, 1, ZCOLL_PLAN_MAX_NODES, &rack) ||
	    !parse_real(comma + 1, 0.01, 1000, &model->oversub))
		return false;
	model->rack = (u32)rack;
	model->shape = SIM_TWO_LEVEL;
	return true;
}

static bool parse_torus(const char *text, struct sim_model *model)
{
	char copy[32], *rest = copy, *item;
	u64 size;
	int i = 0;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	model->dims[0] = model->dims[1] = model->dims[2] = 1;
	while ((item = strsep(&rest, "x")) && i < 3 &&
	       !parse_uint(item, 1, ZCOLL_PLAN_MAX_NODES, &size))
		model->dims[i++] = (u32)size;
	model->shape = SIM_TORUS;
	return !item && (u64)model->dims[0] * model->dims[1] <= ZCOLL_PLAN_MAX_NODES &&
	       (u64)model->dims[0] * model->dims[1] * model->dims[2] <= ZCOLL_PLAN_MAX_NODES;
}

int option_topology(struct sim_model *model)
{
	static const char two[] = "two-level:", torus[] = "torus:";

	if (!strcmp(optarg, "flat")) {
		model->shape = SIM_FLAT;
		return STATUS_OK;
	}
	if (!strncmp(optarg, two, sizeof(two) - 1) &&
	    parse_two_level(optarg + sizeof(two) - 1, model))
		return STATUS_OK;
	if (!strncmp(optarg, torus, sizeof(torus) - 1) &&
	    parse_torus(optarg + sizeof(torus) - 1, model))
		return STATUS_OK;
	return usage("--topology %s: there are flat, two-level:RACK,OVERSUBSCRIPTION such as "
		     "two-level:16,4, and torus:XxYxZ such as torus:4x4x2", optarg);
}

/* "3@120": node 3, after 120 events */
int option_blow(const char *name, enum sim_blow_kind kind, struct sim_faults *faults)
{
	const char *at = strchr(optarg, '@');
	char node[16];
	u64 n, event;

	if (faults->nblows == SIM_MAX_BLOWS)
		return usage("%s: at most %d of --kill and --abort", name, SIM_MAX_BLOWS);
	if (at && at - optarg < (int)sizeof(node)) {
		memcpy(node, optarg, at - optarg);
		node[at - optarg] = 0;
		if (!parse_uint(node, 0, ZCOLL_PLAN_MAX_NODES - 1, &n) &&
		    !parse_uint(at + 1, 0, INT64_MAX, &event)) {
			faults->blows[faults->nblows++] =
				(struct sim_blow){ kind, (u32)n, event };
			return STATUS_OK;
		}
	}
	return usage("%s %s: not NODE@EVENT, such as 3@120", name, optarg);
}
