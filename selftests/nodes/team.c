// SPDX-License-Identifier: GPL-2.0
/*
 * Teams of team.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"
#include "team.h"
#include "when.h"

#define HEARTBEAT_MS	2000	/* the module's own */
#define PORT		29600	/* of the first play; each has another */
#define PORTS		200
#define DEADLINE_NS	(40 * 1000000000ULL)	/* no operation of a test hangs */
#define JOIN_NS		(30 * 1000000000ULL)

/* -------------------------------------------------------------------- layout */

static void bad_layout(const char *layout)
{
	fprintf(stderr, "not a layout of at most %u ranks: %s\n", TEAM_MEMBERS, layout);
	exit(2);
}

static void add_rank(struct team *team, unsigned long node)
{
	if (team_members(team) == TEAM_MEMBERS || node > team->nodes)
		bad_layout(team->layout);
	if (node == team->nodes)
		team->nodes++;
	team->map[team->nranks++] = node;
}

static void read_layout(struct team *team)
{
	bool by_rank = team->layout[0] == '@';
	const char *at = team->layout + by_rank;
	unsigned long value;
	char *end;

	for (;; at = end + 1) {
		value = strtoul(at, &end, 10);
		if (end == at)
			bad_layout(team->layout);
		if (by_rank)
			add_rank(team, value);
		else
			for (unsigned int node = team->nodes; value; value--)
				add_rank(team, node);
		if (*end != ',')
			break;
	}
	if (*end == '+')
		team->aggregators = strtoul(end + 1, &end, 10);
	if (*end || !team->nranks || team_members(team) > TEAM_MEMBERS)
		bad_layout(team->layout);
}

/* Memory that the keeper shares with its members */
void *team_shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	return p;
}

/**
 * team_open - make a team
 * @team: output
 * @program: name of this program
 * @layout: see team.h
 * @fabric: what connects the nodes
 *
 * On the first machine TAP is printed; the others come to the same verdicts and are silent.
 */
void team_open(struct team *team, const char *program, const char *layout, const char *fabric)
{
	*team = (struct team){ .layout = layout, .fabric = fabric };
	meet_open(&team->meet, program);
	read_layout(team);
	team->report = team_shared(TEAM_MEMBERS * sizeof(*team->report));
	if (team->meet.machine && !freopen("/dev/null", "w", stdout))
		exit(2);
}

/* -------------------------------------------------------------------- member */

void wrong(struct member *me, const char *fmt, ...)
{
	va_list ap;

	if (me->report->wrong[0])
		return;		/* the first is what the others follow from */
	va_start(ap, fmt);
	vsnprintf(me->report->wrong, sizeof(me->report->wrong), fmt, ap);
	va_end(ap);
}

void doing(struct member *me, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(me->report->doing, sizeof(me->report->doing), fmt, ap);
	va_end(ap);
}

void ready(struct member *me)
{
	me->report->stage = STAGE_READY;
}

/* The result that the test is about, with its text and time */
void ended_with(struct member *me, int result)
{
	me->report->at_ms = now_ms();
	me->report->result = result;
	if (result)
		zcoll_comm_error(me->comm, me->report->text, sizeof(me->report->text));
}

static int join(struct member *me)
{
	const struct team *team = me->team;
	const char *host = getenv("MASTER_ADDR");
	struct zcoll_attr attr;
	char store[64], name[64];

	snprintf(name, sizeof(name), "%s %u", team->meet.program, team->plays);
	snprintf(store, sizeof(store), "%s:%u",
		 team->meet.machines > 1 && host ? host : "127.0.0.1",
		 PORT + team->plays % PORTS);
	zcoll_attr_init(&attr);
	zcoll_key_from_string(attr.key, name);
	attr.rank = is_rank(me) ? me->number : me->number - team->nranks;
	attr.nranks = team->nranks;
	attr.aggregators = team->aggregators;
	attr.exchange = ZCOLL_EXCHANGE_STORE;
	attr.store = store;
	attr.fabric = team->fabric;
	attr.deadline_ns = DEADLINE_NS * time_scale();
	attr.join_timeout_ns = JOIN_NS * time_scale();
	attr.error = me->report->text;
	attr.error_len = sizeof(me->report->text);
	return is_rank(me) ? zcoll_comm_create(&me->comm, &attr) :
			     zcoll_aggregator_create(&me->comm, &attr);
}

static void member_main(struct member *me, play_fn *fn, const void *play)
{
	char node[16];
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(node, sizeof(node), "%u", team_node_of(me->team, me->number));
	setenv("ZCOLL_NODE_ID", node, 1);
	me->report->stage = STAGE_JOINING;
	doing(me, "joining");
	ret = join(me);
	if (ret) {
		me->report->result = ret;
		wrong(me, "cannot join: %s (%d)", me->report->text, ret);
	} else {
		fn(me, play);
		doing(me, "leaving");
		ret = zcoll_comm_free(me->comm);
		if (ret)
			wrong(me, "zcoll_comm_free: %d", ret);
	}
	me->report->stage = STAGE_ENDED;
	_exit(0);
}

/* -------------------------------------------------------------------- keeper */

/* A slow machine is given longer to say that it lives. Anew, as the module may be new */
static void scale_heartbeat(void)
{
	FILE *f;

	if (time_scale() == 1)
		return;
	f = fopen("/sys/module/zcoll/parameters/heartbeat_ms", "we");
	if (!f)
		return;
	fprintf(f, "%u", HEARTBEAT_MS * time_scale());
	fclose(f);
}

/**
 * team_start - have this machine's members play
 * @team: the team
 * @fn: what each does
 * @play: given to @fn
 */
void team_start(struct team *team, play_fn *fn, const void *play)
{
	unsigned int m;

	memset(team->report, 0, TEAM_MEMBERS * sizeof(*team->report));
	memset(team->pid, 0, sizeof(team->pid));
	team->late = false;
	team->ready_ms = 0;
	team->harmed_ms = 0;
	team->plays++;
	scale_heartbeat();
	fflush(stdout);
	for (m = 0; m < team_members(team); m++) {
		struct member me = { .team = team, .number = m, .report = &team->report[m] };

		if (!team_here(team, m))
			continue;
		team->pid[m] = fork();
		if (!team->pid[m])
			member_main(&me, fn, play);
		if (team->pid[m] < 0) {
			perror("fork");
			exit(2);
		}
	}
}

/* Wait until @end for this machine's members to come to @stage, or to their end */
static bool wait_for(const struct team *team, enum stage stage, uint64_t end)
{
	unsigned int m;

	for (m = 0; m < team_members(team); m++)
		while (team->pid[m] && (int)team->report[m].stage < (int)stage) {
			if (now_ms() >= end)
				return false;
			usleep(1000);
		}
	return true;
}

/**
 * team_ready - wait until all members of all machines are ready
 * @team: the team
 * @limit_ms: for how long
 *
 * Return: they are.
 */
bool team_ready(struct team *team, unsigned int limit_ms)
{
	char here, all[MEET_MACHINES];
	unsigned int i;

	limit_ms *= time_scale();
	here = wait_for(team, STAGE_READY, now_ms() + limit_ms);
	if (!meet_all(&team->meet, &here, 1, all, limit_ms))
		return false;
	team->ready_ms = now_ms();
	for (i = 0; i < team->meet.machines; i++)
		if (!all[i] && !meet_killed(&team->meet, i))
			return false;
	return true;
}

/**
 * team_kill - end a member of this machine, as the OOM killer does
 * @team: the team
 * @member: its number
 */
void team_kill(struct team *team, unsigned int member)
{
	kill(team->pid[member], SIGKILL);
	waitpid(team->pid[member], NULL, 0);
	team->pid[member] = 0;
}

/* A member that has come to its end, or to one that it did not report; or is late */
static void reap(const struct team *team, unsigned int m, uint64_t end)
{
	struct report *report = &team->report[m];
	const char *how = NULL;

	while (!waitpid(team->pid[m], NULL, WNOHANG)) {
		if (now_ms() >= end) {
			how = "did not end";
			kill(team->pid[m], SIGKILL);
			waitpid(team->pid[m], NULL, 0);
			break;
		}
		usleep(1000);
	}
	if (!how && report->stage != STAGE_ENDED)
		how = "died";
	if (how)
		snprintf(report->wrong, sizeof(report->wrong), "%s, was at: %s", how,
			 report->doing);
}

/* What the driver of this machine still holds when all have left; "": nothing */
static void look_what_is_held(char *text, size_t len)
{
	uint64_t end = now_ms() + 5000 * time_scale();
	struct zcoll_info info = { 0 };
	int ret;

	do {
		ret = zcoll_info_get(NULL, &info);
		if (!ret && !info.comms && !info.ranks && !info.pinned_pages)
			return;
		usleep(2000);
	} while (now_ms() < end);
	snprintf(text, len, "%u communicators, %u ranks, %llu pinned pages (%d)", info.comms,
		 info.ranks, (unsigned long long)info.pinned_pages, ret);
}

/* Of a machine: reports of its members, what its driver held, how long the harm took */
struct account {
	struct report report[TEAM_MEMBERS];
	char held[128];
	uint64_t harm_ms;
};

/* Some get the error before their keeper knows that all were ready */
static uint64_t since(uint64_t at, uint64_t begin)
{
	return at > begin ? at - begin : 0;
}

/* Times are told from when all were ready, as machines have clocks of their own */
static void exchange_accounts(struct team *team)
{
	struct account *all = calloc(team->meet.machines + 1, sizeof(*all));
	struct account *mine = &all[team->meet.machines];
	unsigned int m;

	memcpy(mine->report, team->report, sizeof(mine->report));
	for (m = 0; m < team_members(team); m++)
		mine->report[m].at_ms = since(mine->report[m].at_ms, team->ready_ms);
	mine->harm_ms = since(team->harmed_ms, team->ready_ms);
	look_what_is_held(mine->held, sizeof(mine->held));
	team->late = !meet_all(&team->meet, mine, sizeof(*mine), all, 60000 * time_scale());
	for (m = 0; m < team_members(team); m++)
		team->report[m] = all[team_machine_of(team, m)].report[m];
	team->harm_ms = 0;
	for (m = 0; m < team->meet.machines; m++) {
		memcpy(team->held[m], all[m].held, sizeof(all[m].held));
		if (all[m].harm_ms > team->harm_ms)
			team->harm_ms = all[m].harm_ms;
	}
	free(all);
}

/**
 * team_settle - wait until this machine's members have ended, or for @limit_ms
 * @team: the team
 * @limit_ms: for how long
 */
void team_settle(const struct team *team, unsigned int limit_ms)
{
	wait_for(team, STAGE_ENDED, now_ms() + limit_ms * time_scale());
}

/**
 * team_end - wait for the end of the play, and get the reports of all members
 * @team: the team
 * @limit_ms: members that take longer are killed, which their reports tell
 */
void team_end(struct team *team, unsigned int limit_ms)
{
	uint64_t end = now_ms() + limit_ms * time_scale();
	unsigned int m;

	for (m = 0; m < team_members(team); m++)
		if (team->pid[m])
			reap(team, m, end);
	exchange_accounts(team);
}

/* ------------------------------------------------------------------- verdict */

static bool all_members_well(const struct team *team)
{
	bool good = true;
	unsigned int m;

	for (m = 0; m < team_members(team); m++)
		if (team->report[m].wrong[0]) {
			printf("# %s %u: %s\n", m < team->nranks ? "rank" : "aggregator",
			       m < team->nranks ? m : m - team->nranks, team->report[m].wrong);
			good = false;
		}
	return good;
}

static bool drivers_are_empty(const struct team *team)
{
	bool good = true;
	unsigned int i;

	for (i = 0; i < team->meet.machines; i++)
		if (team->held[i][0]) {
			printf("# the driver of machine %u still holds %s\n", i, team->held[i]);
			good = false;
		}
	return good;
}

/**
 * team_verdict - one test: no member found anything wrong, and nothing is left behind
 * @team: after team_end()
 * @fmt: name of the test
 *
 * Return: it passed.
 */
bool team_verdict(struct team *team, const char *fmt, ...)
{
	char name[256];
	bool good = true;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	good &= all_members_well(team);
	good &= drivers_are_empty(team);
	if (team->late)
		printf("# a machine did not come to tell its results\n");
	return ok(good && !team->late, "%s", name);
}

/* A test that is not about the members; printed by the first machine like all */
bool team_test(bool good, const char *fmt, ...)
{
	char name[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	return ok(good, "%s", name);
}

int team_done(void)
{
	return tap_end();
}
