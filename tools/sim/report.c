// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What runs of a scene have found; see report.h. Both forms come from one list of
 * names and values.
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../cmd.h"
#include "../msg.h"
#include "../plan/options.h"
#include "report.h"

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* One run more. Return: as sim_run(). */
int report_run(struct sim_report *report, const struct sim_scene *scene)
{
	double begin = cpu_seconds();
	int err = sim_run(scene, &report->outcome);
	u64 time = report->outcome.time;

	report->seconds += cpu_seconds() - begin;
	report->events += report->outcome.events;
	report->runs++;
	if (report->outcome.bad && !time)
		return err;
	report->sum += (double)time;
	if (!report->timed || time < report->least)
		report->least = time;
	if (time > report->most)
		report->most = time;
	report->timed++;
	return err;
}

/* ---- the list ---- */

static void put_ns(json_t *to, const char *name, u64 ps)
{
	json_object_set_new(to, name, ps % SIM_PS ? json_real((double)ps / SIM_PS) :
				      json_integer((json_int_t)(ps / SIM_PS)));
}

/* Where operations failed, and none ended well, there is no time */
static void put_time(json_t *to, const struct sim_report *report)
{
	if (report->timed)
		put_ns(to, "time_ns", (u64)(report->sum / (double)report->timed));
	else
		json_object_set_new(to, "time_ns", json_null());
}

static void put_number(json_t *to, const char *name, u64 value)
{
	json_object_set_new(to, name, json_integer((json_int_t)value));
}

static void put_faults(json_t *to, const struct sim_outcome *outcome)
{
	put_number(to, "resent", outcome->resent);
	put_number(to, "ended_well", outcome->good);
	put_number(to, "failed", outcome->bad);
	put_number(to, "dead_nodes", outcome->dead);
	if (!outcome->bad)
		return;
	json_object_set_new(to, "first_error", json_string(strerror(-outcome->error)));
	put_number(to, "first_error_node", outcome->error_node);
	put_number(to, "first_error_operation", outcome->error_seq);
}

static void put_stats(json_t *to, const struct sim_report *report)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	put_number(to, "events", report->events);
	json_object_set_new(to, "cpu_seconds", json_real(report->seconds));
	put_number(to, "events_per_second", (u64)((double)report->events / report->seconds));
	put_number(to, "memory_mib", usage.ru_maxrss >> 10);
}

static json_t *report_list(const struct sim_report *report, bool stats)
{
	const struct sim_outcome *outcome = &report->outcome;
	json_t *to = json_object();

	json_object_set_new(to, "algorithm", json_string(report->plan->name));
	json_object_set_new(to, "collective",
			    json_string(zcoll_collective_name(report->plan->collective)));
	put_number(to, "nodes", report->plan->nodes);
	put_number(to, "bytes", report->job->bytes);
	put_number(to, "slice", report->job->slice ? report->job->slice : report->job->bytes);
	json_object_set_new(to, "contention",
			    json_string(contention_name(report->scene->model.contention)));
	put_number(to, "operations", report->scene->ops);
	if (report->runs > 1)
		put_number(to, "runs", report->runs);
	put_time(to, report);
	if (report->runs == 1) {
		put_ns(to, "complete_ns", outcome->complete);
	} else if (report->timed) {
		put_ns(to, "least_ns", report->least);
		put_ns(to, "most_ns", report->most);
	}
	put_number(to, "messages", outcome->messages);
	put_number(to, "controls", outcome->controls);
	put_number(to, "sent_bytes", outcome->bytes);
	if (report->scene->faults.acked)
		put_faults(to, outcome);
	json_object_set_new(to, "checked", json_boolean(report->scene->data));
	if (stats)
		put_stats(to, report);
	return to;
}

/* Why elements were not folded, and what helps */
static void print_unchecked(const struct sim_report *report)
{
	if (!report->needs)
		puts("checked: no");
	else if (report->needs > report->most_room)
		printf("checked: no (takes %" PRIu64 " MiB, more than %" PRIu64 ")\n",
		       report->needs >> 20, report->most_room >> 20);
	else
		printf("checked: no (takes %" PRIu64 " MiB, more than %" PRIu64
		       "; --checked 1 does it)\n", report->needs >> 20, report->room >> 20);
}

static void print_value(const char *name, const json_t *value)
{
	if (json_is_null(value))
		return;
	printf("%s: ", name);
	if (json_is_string(value))
		puts(json_string_value(value));
	else if (json_is_integer(value))
		printf("%" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
	else if (json_is_real(value))
		printf("%.3f\n", json_real_value(value));
	else
		puts(json_is_true(value) ? "yes" : "no");
}

/* "name: value", a line each; the time also as people write it */
void report_print(const struct sim_report *report, bool stats)
{
	json_t *list = report_list(report, stats), *value;
	const char *name;
	char text[32];

	json_object_foreach(list, name, value) {
		if (!strcmp(name, "time_ns") && !json_is_null(value))
			printf("time: %s\n", plan_time(text, sizeof(text),
						      json_number_value(value)));
		if (json_is_false(value))
			print_unchecked(report);
		else
			print_value(name, value);
	}
	json_decref(list);
}

int report_json(const struct sim_report *report, bool stats)
{
	json_t *list = report_list(report, stats);
	int err = json_dumpf(list, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));

	json_decref(list);
	if (err)
		return failed("out of memory");
	putchar('\n');
	return STATUS_OK;
}
