// SPDX-License-Identifier: GPL-2.0
/*
 * Many operations in flight on nodes, and several communicators: each result is its own.
 *
 * A *flight* is as many trials as the window holds, all different, started one after the
 * other without waiting. Their plans take turns, so that reductions of different orders are
 * interleaved on the same connections. Ranks wait in an order of their own.
 */
#include <errno.h>
#include <getopt.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe.h"
#include "team.h"
#include "trial.h"

#define LIMIT_MS	120000
#define FLIGHT		ZCOLL_MAX_WINDOW
#define COMMS		3
#define RINGS		2

struct flight {
	struct trial trial[FLIGHT];
	const struct recipe *recipe[FLIGHT];
};

static struct team team;
static unsigned int rounds = 3;

/* ---------------------------------------------------------------- in a member */

static int use(struct zcoll_comm *comm, const struct flight *f, unsigned int i)
{
	uint32_t number;
	int ret = zcoll_plan_load(comm, f->recipe[i]->plan, &number);

	return ret ? ret : zcoll_plan_use(comm, f->trial[i].collective, number);
}

static bool start(struct member *me, struct zcoll_comm *comm, const struct flight *f,
		  unsigned int i, struct attempt *a, struct zcoll_req **req)
{
	char text[ZCOLL_TEXT_MAX] = "";
	int ret = use(comm, f, i);

	if (!ret && !attempt_begin(a, me, &f->trial[i]))
		return false;
	if (!ret)
		ret = zcoll_icall(comm, &a->call, req);
	if (ret) {
		zcoll_comm_error(comm, text, sizeof(text));
		wrong(me, "operation %u by %s: %d: %s", i, f->recipe[i]->name, ret, text);
	}
	return !ret;
}

/* Each rank waits in another order: from its own number on, every other rank backwards */
static unsigned int turn(const struct member *me, unsigned int i)
{
	i = (i + 5 * me->number) % FLIGHT;
	return me->number % 2 ? FLIGHT - 1 - i : i;
}

static bool land(struct member *me, struct attempt *a, struct zcoll_req **req)
{
	bool good = true;
	unsigned int i, t;
	int ret;

	for (i = 0; i < FLIGHT; i++) {
		t = turn(me, i);
		doing(me, "waiting for operation %u", t);
		ret = zcoll_wait(req[t], ZCOLL_WAIT_FOREVER);
		attempt_end(&a[t], ret);
		good &= !ret;
	}
	return good;
}

static void play_window(struct member *me, const void *play)
{
	static struct attempt a[FLIGHT];
	struct zcoll_req *req[FLIGHT];
	unsigned int round, i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < FLIGHT; i++) {
			doing(me, "starting operation %u", i);
			if (!start(me, me->comm, play, i, &a[i], &req[i]))
				return;
		}
		if (!land(me, a, req))
			return;
	}
}

/* --- several communicators ------------------------------------------------ */

/* Registered memory belongs to a communicator: each has a member of its own, as it were */
static bool join_again(struct member *more, const struct member *me, unsigned int i)
{
	char error[ZCOLL_TEXT_MAX] = "", store[64], name[64];
	const char *host = getenv("MASTER_ADDR");
	struct zcoll_attr attr;
	int ret;

	*more = *me;
	zcoll_attr_init(&attr);
	snprintf(name, sizeof(name), "flight %u, communicator %u", team.plays, i);
	snprintf(store, sizeof(store), "%s:%u",
		 team.meet.machines > 1 && host ? host : "127.0.0.1", 29900 + i);
	zcoll_key_from_string(attr.key, name);
	attr.rank = me->number;
	attr.nranks = team.nranks;
	attr.exchange = ZCOLL_EXCHANGE_STORE;
	attr.store = store;
	attr.fabric = team.fabric;
	attr.error = error;
	attr.error_len = sizeof(error);
	ret = zcoll_comm_create(&more->comm, &attr);
	if (ret)
		wrong(more, "communicator %u: %d: %s", i, ret, error);
	return !ret;
}

static void play_comms(struct member *me, const void *play)
{
	static struct attempt a[COMMS][FLIGHT];
	struct zcoll_req *req[COMMS][FLIGHT];
	struct member more[COMMS];
	unsigned int i, c;

	more[0] = *me;
	for (c = 1; c < COMMS; c++)
		if (!join_again(&more[c], me, c))
			return;
	for (i = 0; i < FLIGHT; i++)
		for (c = 0; c < COMMS; c++) {
			doing(me, "starting operation %u of communicator %u", i, c);
			if (!start(&more[c], more[c].comm, play, i, &a[c][i], &req[c][i]))
				return;
		}
	for (c = COMMS; c-- > 0; ) {
		land(&more[c], a[c], req[c]);
		if (c)
			zcoll_comm_free(more[c].comm);
	}
}

/* --- rings ----------------------------------------------------------------- */

static bool prepare(struct member *me, const struct flight *f, unsigned int i, struct attempt *a,
		    struct zcoll_cmd *cmd, struct io_uring_sqe *sqe)
{
	int ret = use(me->comm, f, i);

	if (!ret && !attempt_begin(a, me, &f->trial[i]))
		return false;
	if (!ret)
		ret = zcoll_prep_call(sqe, 0, me->comm, cmd, &a->call);
	if (ret)
		wrong(me, "preparing operation %u: %d", i, ret);
	sqe->user_data = i;
	return !ret;
}

static bool reap_ring(struct member *me, struct io_uring *ring, unsigned int n, struct attempt *a)
{
	struct io_uring_cqe *cqe;
	int ret;

	while (n--) {
		ret = io_uring_wait_cqe(ring, &cqe);
		if (ret) {
			wrong(me, "io_uring_wait_cqe: %d", ret);
			return false;
		}
		attempt_end(&a[cqe->user_data], cqe->res);
		io_uring_cqe_seen(ring, cqe);
	}
	return true;
}

/*
 * Operations get their numbers when they are prepared, here from 0 on; they reach the kernel
 * from the last on, by two rings, on each rank in blocks that begin elsewhere.
 */
static void play_rings(struct member *me, const void *play)
{
	static struct io_uring_sqe sqe[FLIGHT];
	static struct zcoll_cmd cmd[FLIGHT];
	static struct attempt a[FLIGHT];
	struct io_uring ring[RINGS];
	unsigned int i, t;

	for (i = 0; i < RINGS; i++)
		if (io_uring_queue_init(FLIGHT, &ring[i], 0)) {
			wrong(me, "io_uring_queue_init");
			return;
		}
	for (i = 0; i < FLIGHT; i++)
		if (!prepare(me, play, i, &a[i], &cmd[i], &sqe[i]))
			return;
	doing(me, "submitting");
	for (i = FLIGHT; i-- > 0; ) {
		t = turn(me, i);
		*io_uring_get_sqe(&ring[t % RINGS]) = sqe[t];
		io_uring_submit(&ring[t % RINGS]);
	}
	doing(me, "waiting");
	for (i = 0; i < RINGS; i++) {
		if (!reap_ring(me, &ring[i], FLIGHT / RINGS, a))
			return;
		io_uring_queue_exit(&ring[i]);
	}
}

/* -------------------------------------------------------------- in the keeper */

/* Different in collective, plan, size and memory from one to the next */
static void make_trial(struct trial *t, const struct recipe *r, unsigned int i)
{
	static const unsigned int counts[] = { 1031, 3, 20000, 0, 4096, 1, 70001 };

	*t = (struct trial){ .collective = r->plan->collective, .seed = 1000 + i };
	t->dtype = i % 3 ? ZCOLL_FP32 : ZCOLL_BF16;
	t->op = reduces(t->collective) ? ZCOLL_SUM : 0;
	t->count = counts[i % 7];
	t->memory = &memories[i % MEMORIES];
	if (has_root(t->collective))
		t->root = i % team.nranks;
}

static void make(struct flight *f, const struct recipe *list, unsigned int n)
{
	const char *what;
	unsigned int i;

	for (i = 0; i < FLIGHT; i++) {
		f->recipe[i] = &list[i * 5 % n];
		make_trial(&f->trial[i], f->recipe[i], i);
		what = trial_expect(&f->trial[i], &team, f->recipe[i]->plan, team.map);
		if (what) {
			printf("Bail out! the oracle: %s\n", what);
			exit(1);
		}
	}
}

static void test(play_fn *fn, const struct flight *f, const char *name)
{
	team_start(&team, fn, f);
	team_end(&team, LIMIT_MS);
	team_verdict(&team, "%s, nodes %s over %s", name, team.layout, team.fabric);
}

static void usage(void)
{
	fprintf(stderr, "Usage: flight [--fabric NAME] [--rounds N] LAYOUT\n");
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{ "fabric", required_argument, NULL, 'f' },
		{ "rounds", required_argument, NULL, 'r' },
		{}
	};
	static struct recipe list[5 * RECIPES], reductions[RECIPES];
	static struct flight all, sums;
	const char *fabric = "loop";
	unsigned int n = 0, m;
	uint32_t c;
	int o;

	while ((o = getopt_long(argc, argv, "", longopts, NULL)) != -1)
		switch (o) {
		case 'f': fabric = optarg; break;
		case 'r': rounds = strtoul(optarg, NULL, 10); break;
		default: usage();
		}
	if (optind != argc - 1)
		usage();
	team_open(&team, "flight", argv[optind], fabric);
	if (team.aggregators)
		usage();
	for (c = ZCOLL_ALLREDUCE; c < ZCOLL_BARRIER; c++)
		n += recipes_make(list + n, &team, c, 0);
	m = recipes_make(reductions, &team, ZCOLL_ALLREDUCE, 0);
	make(&all, list, n);
	make(&sums, reductions, m);
	test(play_window, &sums, "a full window of reductions by all plans in turn");
	test(play_window, &all, "a full window of all collectives");
	test(play_comms, &all, "three communicators with full windows");
	test(play_rings, &all, "two rings, submitted backwards");
	return team_done();
}
