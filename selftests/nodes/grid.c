// SPDX-License-Identifier: GPL-2.0
/*
 * Every collective by every plan, on nodes: each bit of the results.
 *
 * A *group* is a collective with a plan, and a test; it has a communicator of its own. Its
 * *cases* differ in type, operator, size, memory and root. These have 12, 5, 7, 11 and 13
 * values, numbers without common divisors, and the cases of all groups are numbered
 * through: so any two values meet within as many cases as their product says (the
 * Chinese remainder theorem), 132 for types and memories.
 *
 * Beside these: much data, as small integers; reproducible results, which must be those
 * of one node; verdicts that are agreed on; what the library chooses by itself.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe.h"
#include "team.h"
#include "trial.h"
#include "when.h"

#define CASES_MAX	140
#define LIMIT_MS	120000
#define BARRIERS	20

struct group {
	const struct zcoll_plan *plan;	/* NULL: the library's choice */
	uint32_t collective;
	unsigned int ncases;
	struct trial trial[CASES_MAX];
};

static struct options {
	unsigned int cases;
	uint64_t large;		/* bytes of the largest operation */
	bool large_everywhere;
	const char *only;
} options = { .cases = 12, .large = 16 << 20 };

static struct team team;
static unsigned int case_number, group_number;
static bool selected;	/* is this group to be run? */
static atomic_uint *arrived;	/* ranks of this machine that have come to a barrier */

/* ---------------------------------------------------------------- in a member */

static void failed(struct member *me, const char *what, int ret)
{
	char text[ZCOLL_TEXT_MAX] = "";

	zcoll_comm_error(me->comm, text, sizeof(text));
	wrong(me, "%s: %d: %s", what, ret, text);
}

/* An aggregator is there as long as the ranks are */
static void aggregate(struct member *me)
{
	int ret = zcoll_aggregator_serve(me->comm);

	if (ret)
		failed(me, "serving", ret);
}

static bool use_plan(struct member *me, const struct group *g)
{
	uint32_t number;
	int ret;

	if (!g->plan)
		return true;
	doing(me, "loading the plan");
	ret = zcoll_plan_load(me->comm, g->plan, &number);
	if (!ret && is_rank(me))
		ret = zcoll_plan_use(me->comm, g->collective, number);
	if (ret)
		failed(me, "the plan", ret);
	return !ret;
}

/* Nobody is through before all of this machine are there; what other machines do, is theirs */
static void barriers(struct member *me)
{
	unsigned int here = 0, i;
	int ret;

	for (i = 0; i < team.nranks; i++)
		here += team_here(&team, i);
	for (i = 1; i <= BARRIERS; i++) {
		doing(me, "barrier %u", i);
		atomic_fetch_add(arrived, 1);
		ret = zcoll_barrier(me->comm);
		if (ret) {
			failed(me, "barrier", ret);
			return;
		}
		if (atomic_load(arrived) < i * here)
			wrong(me, "barrier %u was left before all had come", i);
	}
}

static void play_group(struct member *me, const void *play)
{
	const struct group *g = play;
	unsigned int i;

	if (!use_plan(me, g))
		return;
	if (!is_rank(me)) {
		aggregate(me);
		return;
	}
	if (g->collective == ZCOLL_BARRIER)
		barriers(me);
	for (i = 0; i < g->ncases && trial_run(me, &g->trial[i]); i++)
		;
}

/* -------------------------------------------------------------- in the keeper */

/* Elements, by type: none, few, around a page, several slices with a rest */
static uint64_t elements(unsigned int i, size_t size)
{
	static const unsigned int counts[] = { 0, 1, 7, 4095, 64, 1031 };

	return i < 6 ? counts[i] : 65536 / size + 1;
}

static void next_case(struct trial *t, uint32_t collective)
{
	unsigned int n = case_number++;

	*t = (struct trial){ .collective = collective, .seed = n };
	t->dtype = 1 + n % (ZCOLL_NR_TYPES - 1);
	if (reduces(collective))
		t->op = 1 + n % (ZCOLL_NR_OPS - 1);
	t->count = elements(n % 7, zcoll_dtype_size(t->dtype));
	t->memory = &memories[n % MEMORIES];
	if (has_root(collective))
		t->root = n % 13 % team.nranks;
}

/* @bytes in the whole operation */
static void large_case(struct trial *t, uint32_t collective, uint64_t bytes)
{
	unsigned int n = case_number++;

	*t = (struct trial){ .collective = collective, .seed = n, .small = true };
	t->dtype = n % 2 ? ZCOLL_FP32 : ZCOLL_INT32;
	t->memory = &memories[n % MEMORIES];
	t->op = reduces(collective) ? ZCOLL_SUM : 0;
	t->count = bytes / 4;
	if (collective == ZCOLL_REDUCE_SCATTER || collective == ZCOLL_ALLGATHER)
		t->count /= team.nranks;
	if (has_root(collective))
		t->root = n % 13 % team.nranks;
}

static void begin(struct group *g, const struct zcoll_plan *plan, const char *how)
{
	const char *name = zcoll_collective_name(g->collective);

	g->plan = plan;
	g->ncases = 0;
	selected = !options.only || strstr(name, options.only) || strstr(how, options.only);
}

/* Cases that are not wanted are numbered, so that the others are what they are */
static void expect(struct trial *t, const struct zcoll_plan *plan, const uint32_t *map)
{
	const char *what = selected ? trial_expect(t, &team, plan, map) : NULL;

	if (!what)
		return;
	printf("Bail out! the oracle: %s\n", what);
	exit(1);
}

static void test(struct group *g, const char *how)
{
	const char *name = zcoll_collective_name(g->collective);
	uint64_t begin = now_ms();
	unsigned int i;

	if (selected) {
		*arrived = 0;
		team_start(&team, play_group, g);
		team_end(&team, LIMIT_MS);
		team_verdict(&team, "%s by %s, nodes %s over %s", name, how, team.layout,
			     team.fabric);
		if (getenv("NODES_TIMES"))
			printf("# %llu ms\n", (unsigned long long)(now_ms() - begin));
	}
	for (i = 0; i < g->ncases; i++)
		trial_forget(&g->trial[i]);
}

static void add_large(struct group *g)
{
	large_case(&g->trial[g->ncases++], g->collective, 1 << 20);
	if (options.large_everywhere || !(group_number++ % 5))
		large_case(&g->trial[g->ncases++], g->collective, options.large);
}

static void group_of_recipe(struct group *g, const struct recipe *r)
{
	begin(g, r->plan, r->name);
	while (g->collective != ZCOLL_BARRIER && g->ncases < options.cases) {
		struct trial *t = &g->trial[g->ncases++];

		next_case(t, g->collective);
		expect(t, r->plan, team.map);
	}
	if (g->collective != ZCOLL_BARRIER)
		add_large(g);
	test(g, r->name);
}

/* The verdict takes further messages; data is the same */
static void group_agreed(struct group *g, const struct recipe *r)
{
	char how[80];

	snprintf(how, sizeof(how), "%.40s, agreed", r->name);
	begin(g, r->plan, how);
	while (g->collective != ZCOLL_BARRIER && g->ncases < 3) {
		struct trial *t = &g->trial[g->ncases++];

		next_case(t, g->collective);
		t->flags = ZCOLL_CMD_AGREED;
		expect(t, r->plan, team.map);
	}
	test(g, how);
}

/* Do ranks lie on nodes in blocks of one power of two, the last may have fewer? */
static bool in_equal_blocks(void)
{
	unsigned int size = 0, r;

	while (size < team.nranks && !team.map[size])
		size++;
	for (r = 0; r < team.nranks; r++)
		if (team.map[r] != r / size)
			return false;
	return !(size & (size - 1));
}

/* As one node would have it, which has one order for all */
static void group_reproducible(struct group *g, const struct recipe *r)
{
	struct zcoll_plan_spec spec = { .size = sizeof(spec), .algo = "local", .nodes = 1,
					.collective = g->collective };
	struct zcoll_plan *one;
	char how[80];

	if (zcoll_plan_make(&spec, &one, NULL, 0)) {
		printf("Bail out! there is no plan for one node\n");
		exit(1);
	}
	snprintf(how, sizeof(how), "%.40s, as on one node", r->name);
	begin(g, r->plan, how);
	while (g->ncases < 4) {
		struct trial *t = &g->trial[g->ncases++];

		next_case(t, g->collective);
		t->flags = ZCOLL_CMD_REPRODUCIBLE;
		t->dtype = g->ncases % 2 ? ZCOLL_FP32 : ZCOLL_FP64;
		expect(t, one, NULL);
	}
	zcoll_plan_free(one);
	test(g, how);
}

static void group_of_choice(struct group *g)
{
	static const unsigned int bytes[] = { 8, 4096, 60000, 1 << 20 };
	unsigned int i;

	begin(g, NULL, "the library's choice");
	for (i = 0; i < 4 && g->collective != ZCOLL_BARRIER; i++)
		large_case(&g->trial[g->ncases++], g->collective, bytes[i]);
	test(g, "the library's choice");
}

static void collective(uint32_t collective)
{
	static struct group g;
	struct recipe list[RECIPES];
	unsigned int n, i;

	g = (struct group){ .collective = collective };
	n = recipes_make(list, &team, collective, 0);
	for (i = 0; i < n; i++)
		group_of_recipe(&g, &list[i]);
	for (i = 0; i < n; i++)
		if (reduces(collective) && list[i].plan->flags & ZCOLL_PLAN_ORDERED &&
		    in_equal_blocks())
			group_reproducible(&g, &list[i]);
	recipes_free(list, n);
	n = recipes_make(list, &team, collective, ZCOLL_PLAN_AGREED);
	for (i = 0; i < n; i++)
		group_agreed(&g, &list[i]);
	recipes_free(list, n);
	/* An aggregator must be told what the ranks will choose */
	if (!team.aggregators)
		group_of_choice(&g);
}

static void usage(void)
{
	fprintf(stderr,
		"Usage: grid [OPTION]... LAYOUT\n"
		"Every collective by every plan on the nodes of LAYOUT, see team.h.\n"
		"  --fabric NAME  what connects the nodes (loop)\n"
		"  --cases N      cases of each plan (12; 132 have all pairs)\n"
		"  --large MIB    of the largest operation (16)\n"
		"  --long         all cases, and the largest operation by each plan\n"
		"  --only WORD    collectives or plans with it in their names\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "fabric", required_argument, NULL, 'f' },
		{ "cases", required_argument, NULL, 'c' },
		{ "large", required_argument, NULL, 'b' },
		{ "long", no_argument, NULL, 'l' },
		{ "only", required_argument, NULL, 'o' },
		{}
	};
	const char *fabric = "loop";
	int c;

	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1)
		switch (c) {
		case 'f': fabric = optarg; break;
		case 'c': options.cases = strtoul(optarg, NULL, 10); break;
		case 'b': options.large = strtoull(optarg, NULL, 10) << 20; break;
		case 'l': options.cases = 132; options.large_everywhere = true; break;
		case 'o': options.only = optarg; break;
		default: usage();
		}
	if (optind != argc - 1 || options.cases > 132)
		usage();
	team_open(&team, "grid", argv[optind], fabric);
}

int main(int argc, char **argv)
{
	uint32_t c;

	parse(argc, argv);
	arrived = team_shared(sizeof(*arrived));
	for (c = ZCOLL_ALLREDUCE; c <= ZCOLL_BARRIER; c++)
		collective(c);
	return team_done();
}
