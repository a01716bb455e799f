// SPDX-License-Identifier: GPL-2.0
/*
 * Failures on nodes: all that survive get an error in time, which names what failed.
 *
 * A *scenario* says what the ranks do and what harm is done when all are in the midst of
 * it. Its *victim* is the last rank (so on another node than rank 0), or the last aggregator, or
 * the last node; the *survivors* are all others. In time is within the heartbeat and a second.
 * After each scenario the driver holds nothing, and where ZCOLL_KO says which module
 * was loaded, it is unloaded and loaded again.
 *
 * What happens to networks and machines takes several machines (tools/vm/guest/fault).
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recipe.h"
#include "team.h"
#include "trial.h"
#include "when.h"

#define LIMIT_MS	60000
#define SLACK_MS	1000
#define ELEMENTS	(256 << 10)	/* of the stream: 1 MiB, many slices */
#define DEADLINE_MS	500
#define FREEZE_MAX_S	15		/* of tools/vm/guest/fault */

struct scenario {
	const char *name;
	play_fn *play;
	void (*harm)(void);		/* by the keepers, when all are ready */
	void (*mend)(void);		/* afterwards */
	int errors[4];			/* what survivors may get */
	bool node;			/* the victim is a node, not a rank */
	bool same_text;			/* all get one text */
	bool victim_too;		/* the victim gets the error, too */
	bool several;			/* takes several machines */
	const char *says;		/* in the text, beside the victim */
	struct zcoll_call off;		/* how the victim's call differs */
};

static struct team team;
static const struct scenario *now;
static const struct recipe *recipe;	/* NULL: the library's choice */

static unsigned int victim(void)
{
	return team_members(&team) - 1;
}

static unsigned int victim_node(void)
{
	return now->node ? team.nodes - 1 : team_node_of(&team, victim());
}

static bool is_victim(unsigned int member)
{
	return now->node ? team_node_of(&team, member) == victim_node() : member == victim();
}

static bool victim_here(void)
{
	return victim_node() % team.meet.machines == team.meet.machine;
}

/* --------------------------------------------------------------------- time */

static unsigned int heartbeat_ms(void)
{
	FILE *f = fopen("/sys/module/zcoll/parameters/heartbeat_ms", "re");
	unsigned int ms = 2000;

	if (f) {
		if (fscanf(f, "%u", &ms) != 1)
			ms = 2000;
		fclose(f);
	}
	return ms;
}

/* From the harm on; all survivors must have their error then */
static uint64_t limit_ms(void)
{
	return heartbeat_ms() + SLACK_MS * time_scale();
}

/* A node that goes on later does so when all others have given it up */
static unsigned int freeze_s(void)
{
	uint64_t s = limit_ms() / 1000 + 2;

	return s < FREEZE_MAX_S ? s : FREEZE_MAX_S;
}

/* ------------------------------------------------------------- what ranks do */

static bool prepare(struct member *me)
{
	uint32_t number;

	if (recipe && zcoll_plan_load(me->comm, recipe->plan, &number)) {
		wrong(me, "the plan cannot be loaded");
		return false;
	}
	if (is_rank(me)) {
		if (recipe)
			zcoll_plan_use(me->comm, recipe->plan->collective, number);
		return true;
	}
	ready(me);
	ended_with(me, zcoll_aggregator_serve(me->comm));
	return false;
}

static int sum(struct member *me, float *x, uint64_t count)
{
	return zcoll_allreduce(me->comm, x, x, count, ZCOLL_FP32, ZCOLL_SUM);
}

/* Operations of much data, until one fails */
static void play_stream(struct member *me, const void *play)
{
	float *x = calloc(ELEMENTS, sizeof(*x));
	int ret;

	(void)play;
	if (!prepare(me))
		return;
	doing(me, "all-reduces");
	ret = sum(me, x, ELEMENTS);
	ready(me);
	while (!ret)
		ret = sum(me, x, ELEMENTS);
	ended_with(me, ret);
	free(x);
}

/* All but the victim call an operation, for which it is waited in vain */
static void play_wait(struct member *me, const void *play)
{
	float x[8] = { 0 };
	int ret;

	(void)play;
	if (!prepare(me))
		return;
	ret = sum(me, x, 8);
	doing(me, "an all-reduce without the last rank");
	ready(me);
	if (is_victim(me->number))
		pause();
	else if (!ret)
		ret = sum(me, x, 8);
	ended_with(me, ret);
}

static void play_leave(struct member *me, const void *play)
{
	float x[8] = { 0 };
	int ret;

	(void)play;
	if (!prepare(me))
		return;
	ret = sum(me, x, 8);
	ready(me);
	if (is_victim(me->number))
		return;
	while (!ret)
		ret = sum(me, x, 8);
	ended_with(me, ret);
}

/* The first of several ranks on this node: others are there when it has left */
static bool is_first_of_several(const struct member *me)
{
	unsigned int here = 0, r;

	for (r = 0; r < team.nranks; r++) {
		if (team.map[r] != team.map[me->number])
			continue;
		if (!here++ && r != me->number)
			return false;
	}
	return here > 1;
}

/* Has it been told to this rank that something is wrong? */
static int told_of_failure(struct member *me)
{
	char text[sizeof(me->report->wrong)] = "";
	struct zcoll_status st = { .text = (uintptr_t)text, .text_len = sizeof(text) };
	int ret = zcoll_comm_pending(me->comm, 1000, &st);

	if (!ret && st.result)
		wrong(me, "after all had left: %d: %s", st.result, text);
	return ret;
}

/*
 * All leave in good order: first one with others on its node, so that the node has left and still
 * hears; then those of other nodes, and last who is there to see.
 */
static void play_farewell(struct member *me, const void *play)
{
	bool first = is_first_of_several(me);
	float x[8] = { 0 };
	int ret;

	(void)play;
	if (!prepare(me))
		return;
	ret = sum(me, x, 8);
	ready(me);
	if (!first)
		usleep(300000 * time_scale());
	if (!first && team.map[me->number] == 0) {
		usleep((heartbeat_ms() + SLACK_MS) * 1000);
		ret = ret ?: told_of_failure(me);
	}
	ended_with(me, ret);
}

static void play_abort(struct member *me, const void *play)
{
	float x[8] = { 0 };
	int ret;

	(void)play;
	if (!prepare(me))
		return;
	ret = sum(me, x, 8);
	ready(me);
	if (is_victim(me->number)) {
		zcoll_comm_abort(me->comm);
		return;
	}
	while (!ret)
		ret = sum(me, x, 8);
	ended_with(me, ret);
}

/* The last rank is late: all get the same, and it, too */
static void play_deadline(struct member *me, const void *play)
{
	static float x[8];
	struct zcoll_call call = {
		.size = sizeof(call), .collective = ZCOLL_ALLREDUCE, .dtype = ZCOLL_FP32,
		.op = ZCOLL_SUM, .count = 8, .send = x, .recv = x,
		.deadline_ns = DEADLINE_MS * 1000000ULL * time_scale(),
	};

	(void)play;
	if (!prepare(me))
		return;
	doing(me, "an operation with a deadline");
	ready(me);
	if (is_victim(me->number))
		usleep((DEADLINE_MS + 500) * 1000 * time_scale());
	ended_with(me, zcoll_call(me->comm, &call));
}

/* A call on all ranks, which is another one on the victim */
static void play_mismatch(struct member *me, const void *play)
{
	static float x[64], y[64 * TEAM_MEMBERS];
	struct zcoll_call call = {
		.size = sizeof(call), .collective = ZCOLL_ALLREDUCE, .dtype = ZCOLL_FP32,
		.op = ZCOLL_SUM, .count = 16, .send = x, .recv = y,
	};
	const struct zcoll_call *off = &now->off;
	int ret;

	(void)play;
	if (!prepare(me))
		return;
	if (off->root || off->collective == ZCOLL_BROADCAST) {
		call.collective = ZCOLL_BROADCAST;
		call.op = 0;
	}
	if (is_victim(me->number)) {
		call.collective = off->collective ? off->collective : call.collective;
		call.dtype = off->dtype ? off->dtype : call.dtype;
		call.op = off->op ? off->op : call.op;
		call.count = off->count ? off->count : call.count;
		call.root = off->root;
		call.flags = off->flags;
	}
	doing(me, "a mismatch");
	ready(me);
	ret = zcoll_call(me->comm, &call);
	/* A root that nobody answers learns of it with what comes next */
	if (!ret && call.collective == ZCOLL_BROADCAST)
		ret = zcoll_barrier(me->comm);
	ended_with(me, ret);
}

/* The kernel does the work of a process that is stopped */
static void play_stopped(struct member *me, const void *play)
{
	float *x = calloc(ELEMENTS, sizeof(*x));
	struct zcoll_req *req;
	int ret;

	(void)play;
	if (!prepare(me))
		return;
	ret = sum(me, x, 8);
	if (!ret)
		ret = zcoll_iallreduce(me->comm, x, x, ELEMENTS, ZCOLL_FP32, ZCOLL_SUM, &req);
	ready(me);
	if (is_victim(me->number))
		raise(SIGSTOP);
	if (!ret)
		ret = zcoll_wait(req, ZCOLL_WAIT_FOREVER);
	ended_with(me, ret);
	free(x);
}

/* Right results on a bad network */
static void play_trials(struct member *me, const void *play)
{
	struct trial t = {
		.collective = ZCOLL_ALLREDUCE, .dtype = ZCOLL_INT32, .op = ZCOLL_SUM,
		.count = 100003, .memory = &memories[0], .small = true,
	};
	struct attempt a;
	int ret = 0;

	(void)play;
	if (!prepare(me))
		return;
	ret = zcoll_barrier(me->comm);
	ready(me);
	for (t.seed = 0; !ret && t.seed < 30; t.seed++) {
		doing(me, "all-reduce %u", (unsigned int)t.seed);
		usleep(20000);
		if (!attempt_begin(&a, me, &t))
			return;
		ret = zcoll_call(me->comm, &a.call);
		if (!ret)
			attempt_end(&a, ret);
	}
	ended_with(me, ret);
}

static bool all_are(const uint8_t *p, uint8_t value, size_t n)
{
	return p[0] == value && !memcmp(p, p + 1, n - 1);
}

/* When the operation has failed the buffer is the rank's again, and for good */
static void play_frozen(struct member *me, const void *play)
{
	size_t bytes = ELEMENTS * sizeof(float);
	void *x = zcoll_alloc(me->comm, bytes);
	int ret;

	(void)play;
	if (!prepare(me))
		return;
	doing(me, "all-reduces");
	ret = sum(me, x, ELEMENTS);
	ready(me);
	while (!ret)
		ret = sum(me, x, ELEMENTS);
	ended_with(me, ret);
	doing(me, "watching its buffer");
	memset(x, 0x3c, bytes);
	sleep(freeze_s() + 2);
	if (!all_are(x, 0x3c, bytes))
		wrong(me, "the buffer was written after the operation had failed");
}

/* ------------------------------------------------------------ what is done to them */

__attribute__((format(printf, 1, 2)))
static void command(const char *fmt, ...)
{
	char text[128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (system(text))
		fprintf(stderr, "failed: %s\n", text);
}

static void kill_victim(void)
{
	if (victim_here())
		team_kill(&team, victim());
}

static void wake_victim(void)
{
	if (!victim_here())
		return;
	usleep(2000000 * time_scale());
	kill(team.pid[victim()], SIGCONT);
}

static void link_down(void)
{
	if (victim_here())
		command("fault link down");
}

/*
 * With a new device: rxe's connection manager has lost its queue pair if it was to send while
 * the link was down (Documentation/protocol.md, "Devices")
 */
static void link_up(void)
{
	if (victim_here())
		command("fault link up && sleep 1 && fault rdma-del && fault rdma-add");
}

static void device_away(void)
{
	if (victim_here())
		command("fault rdma-del");
}

static void device_back(void)
{
	if (victim_here())
		command("fault rdma-add");
}

static void lose(void)
{
	command("fault loss 1");
}

static void delay(void)
{
	command("fault delay 20");
}

static void clear(void)
{
	command("fault clear");
}

static void freeze(void)
{
	if (!team.meet.machine)
		command("fault freeze %u %u", victim_node() % team.meet.machines, freeze_s());
}

static void power_off(void)
{
	if (!team.meet.machine)
		command("fault kill %u", victim_node() % team.meet.machines);
	while (!meet_killed(&team.meet, victim_node() % team.meet.machines))
		usleep(10000);
}

/* ----------------------------------------------------------------- what must come */

static bool may_be(int result)
{
	unsigned int i;

	if (!now->errors[0] && !result)
		return true;
	for (i = 0; i < 4; i++)
		if (now->errors[i] && result == -now->errors[i])
			return true;
	return false;
}

/* "rank 3", "node 1": who is to blame; either will do, as other nodes know the node only */
static bool names_victim(const char *text)
{
	char rank[32], node[32];

	snprintf(rank, sizeof(rank), "rank %u", victim());
	snprintf(node, sizeof(node), "node %u", victim_node());
	return (!now->node && victim() < team.nranks && strstr(text, rank)) ||
	       strstr(text, node);
}

/* Without the rank that is told, where a text begins with it: "rank 3: " */
static const char *told(const char *text)
{
	unsigned int rank;
	int n = 0;

	return sscanf(text, "rank %u: %n", &rank, &n) == 1 && n ? text + n : text;
}

/* Who only comes when all has failed is told so by another call, which says its name first */
static bool same_text(const char *a, const char *b)
{
	return strstr(told(a), told(b)) || strstr(told(b), told(a));
}

static void judge(struct report *report)
{
	size_t room = sizeof(report->wrong);
	uint64_t limit = team.harm_ms + limit_ms();

	if (report->wrong[0])
		return;
	if (!may_be(report->result))
		snprintf(report->wrong, room, "got %d: %.200s", report->result, report->text);
	else if (!report->result)
		return;
	else if (report->at_ms > limit)
		snprintf(report->wrong, room, "got its error after %llu ms, limit %llu: %.180s",
			 (unsigned long long)report->at_ms, (unsigned long long)limit,
			 report->text);
	else if (!names_victim(report->text))
		snprintf(report->wrong, room, "not told who failed: \"%.200s\"", report->text);
	else if (now->says && !strstr(report->text, now->says))
		snprintf(report->wrong, room, "no \"%s\" in \"%.200s\"", now->says,
			 report->text);
	else if (now->same_text && !same_text(report->text, team.report[0].text))
		snprintf(report->wrong, room, "has \"%.100s\", but rank 0 \"%.100s\"",
			 report->text, team.report[0].text);
}

static void judge_all(void)
{
	unsigned int m;

	for (m = 0; m < team_members(&team); m++)
		if (!is_victim(m) || now->victim_too)
			judge(&team.report[m]);
		else
			team.report[m].wrong[0] = 0;
}

static void reload(const char *how)
{
	if (getenv("ZCOLL_KO"))
		team_test(!system("selftests/nodes/reload"),
			  "%s%s: the module unloads, nodes %s over %s", now->name, how,
			  team.layout, team.fabric);
}

static void run(const struct scenario *s, const struct recipe *by)
{
	char how[64] = "";

	now = s;
	recipe = by;
	if (by)
		snprintf(how, sizeof(how), ", %.40s", by->name);
	team_start(&team, s->play, s);
	if (!team_ready(&team, LIMIT_MS))
		printf("# not all members were ready\n");
	else if (s->harm)
		s->harm();
	team.harmed_ms = now_ms();
	team_settle(&team, LIMIT_MS);
	if (s->mend)
		s->mend();
	team_end(&team, LIMIT_MS);
	judge_all();
	team_verdict(&team, "%s%s, nodes %s over %s", s->name, how, team.layout, team.fabric);
	reload(how);
}

/* ------------------------------------------------------------------ scenarios */

#define DEAD	{ EOWNERDEAD }
#define LOST	{ EHOSTDOWN, EHOSTUNREACH }
#define DIFFER	.play = play_mismatch, .errors = { EPROTO }, .same_text = true, .victim_too = true

static const struct scenario with_each_plan[] = {
	{ .name = "a rank is killed in the midst", .play = play_stream, .harm = kill_victim,
	  .errors = DEAD },
};

static const struct scenario scenarios[] = {
	{ .name = "a rank is killed that others wait for", .play = play_wait,
	  .harm = kill_victim, .errors = DEAD },
	{ .name = "a rank leaves early", .play = play_leave, .errors = { ESHUTDOWN } },
	{ .name = "ranks leave one after the other", .play = play_farewell, .victim_too = true },
	{ .name = "a rank aborts", .play = play_abort, .errors = { ECANCELED } },
	{ .name = "a rank is later than the deadline", .play = play_deadline,
	  .errors = { ETIMEDOUT }, .victim_too = true },
	{ .name = "another count", DIFFER, .off = { .count = 17 }, .says = "17" },
	{ .name = "another type", DIFFER, .off = { .dtype = ZCOLL_INT32 }, .says = "int32" },
	{ .name = "another operator", DIFFER, .off = { .op = ZCOLL_MAX }, .says = "max" },
	{ .name = "another root", DIFFER, .off = { .root = 1 }, .says = "root" },
	{ .name = "another collective", DIFFER, .off = { .collective = ZCOLL_REDUCE_SCATTER },
	  .says = "reduce" },
	{ .name = "a rank is stopped after its call", .play = play_stopped,
	  .harm = wake_victim },
};

static const struct scenario with_aggregator[] = {
	{ .name = "an aggregator is killed", .play = play_stream, .harm = kill_victim,
	  .errors = { EOWNERDEAD, ESHUTDOWN, EHOSTDOWN } },
	{ .name = "ranks leave one after the other", .play = play_farewell, .victim_too = true },
};

static const struct scenario of_machines[] = {
	{ .name = "packets come late", .play = play_trials, .harm = delay, .mend = clear,
	  .node = true, .victim_too = true },
	{ .name = "packets are lost", .play = play_trials, .harm = lose, .mend = clear,
	  .node = true, .victim_too = true },
	{ .name = "the link of a node goes down", .play = play_stream, .harm = link_down,
	  .mend = link_up, .node = true, .errors = LOST },
	{ .name = "the RDMA device of a node goes away", .play = play_stream,
	  .harm = device_away, .mend = device_back, .node = true,
	  .errors = { EHOSTDOWN, EHOSTUNREACH, ENODEV, ECONNRESET } },
	{ .name = "a node stands still, and goes on later", .play = play_frozen,
	  .harm = freeze, .node = true, .errors = LOST },
	{ .name = "a node is powered off", .play = play_stream, .harm = power_off,
	  .node = true, .errors = LOST },
};

static const char *only;

#define LIST(list) (list), sizeof(list) / sizeof((list)[0])

static void run_list(const struct scenario *list, unsigned int n, const struct recipe *by)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (!only || strstr(list[i].name, only))
			run(&list[i], by);
}

static void run_all(void)
{
	struct recipe list[RECIPES];
	unsigned int n, i;

	n = recipes_make(list, &team, ZCOLL_ALLREDUCE, 0);
	if (team.aggregators) {
		run_list(LIST(with_aggregator), &list[0]);
		recipes_free(list, n);
		return;
	}
	for (i = 0; i < n; i++)
		run_list(LIST(with_each_plan), &list[i]);
	recipes_free(list, n);
	run_list(LIST(scenarios), NULL);
	if (team.meet.machines > 1)
		run_list(LIST(of_machines), NULL);
}

static void usage(void)
{
	fprintf(stderr, "Usage: faults [--fabric NAME] [--only WORD] LAYOUT\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "fabric", required_argument, NULL, 'f' },
		{ "only", required_argument, NULL, 'o' },
		{}
	};
	const char *fabric = "loop";
	int c;

	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1)
		switch (c) {
		case 'f': fabric = optarg; break;
		case 'o': only = optarg; break;
		default: usage();
		}
	if (optind != argc - 1)
		usage();
	team_open(&team, "faults", argv[optind], fabric);
	run_all();
	return team_done();
}
