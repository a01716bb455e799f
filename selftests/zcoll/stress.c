// SPDX-License-Identifier: GPL-2.0
/*
 * A random mix, from a seed: processes with several communicators each, every
 * rank a thread, operations of random size in random ways, and in half of the
 * rounds some *trouble*: a rank cancels, aborts, leaves, calls something else,
 * exits, or is killed.
 *
 * Without trouble every result must be right. With trouble each call must end,
 * with a right result or with an errno that the trouble can cause. After each
 * round the driver must hold nothing.
 *
 *	stress [SECONDS [SEED]]		(5 seconds, seed 1)
 *
 * Every failure names the seed of its round, and "stress 0 SEED" repeats it.
 */
#include "zcoll_test.h"
#include "ring.h"
#include "kselftest.h"

#define PROCESSES	3
#define COMMS		2
#define OPS		12
#define MOST		40000		/* elements, but for a few */
/* An operation that takes this long hangs */
#define HANG_NS		(30000 * NS_PER_MS)

enum trouble {
	NONE,
	CANCEL,
	ABORT,
	LEAVE,
	MISMATCH,
	EXIT,
	KILL,
	TROUBLES
};

static const char * const trouble_name[] = {
	"no trouble", "cancel", "abort", "leave", "mismatch", "exit", "kill",
};

/* What all ranks of a round know */
struct round {
	uint32_t seed;
	enum trouble trouble;
	unsigned int process;		/* who makes it, */
	unsigned int comm;		/* in which communicator, */
	unsigned int op;		/* and before which operation */
	uint8_t key[COMMS][16];
};

/* A rank of one communicator */
struct rank {
	const struct round *round;
	struct zt *zt;
	unsigned int process, comm;
	int ep;
	int failures;
};

static uint32_t mix(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	uint64_t x = ((uint64_t)a << 32 | b) ^ ((uint64_t)c << 40 | (uint64_t)d << 8);

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static void say(struct rank *k, const char *what, unsigned int op, int ret)
{
	k->failures++;
	fprintf(stderr, "# seed %u (%s): rank %u communicator %u operation %u: %s (%d)\n",
		k->round->seed, trouble_name[k->round->trouble], k->process, k->comm,
		op, what, ret);
}

/* --- one rank ------------------------------------------------------------ */

static bool makes_trouble(const struct rank *k, unsigned int op)
{
	const struct round *r = k->round;

	return r->trouble && r->process == k->process && r->comm == k->comm && r->op == op;
}

/* May operation @op of this rank end with @err? */
static bool expected(const struct rank *k, int err)
{
	const struct round *r = k->round;

	/* a process that goes away takes its ranks of all communicators along */
	if (r->trouble != EXIT && r->trouble != KILL && r->comm != k->comm)
		return false;
	switch (r->trouble) {
	case CANCEL:
	case ABORT:
		return err == -ECANCELED;
	case LEAVE:
		return err == -ESHUTDOWN;
	case MISMATCH:
		return err == -EPROTO;
	case EXIT:
	case KILL:
		return err == -EOWNERDEAD;
	default:
		return false;
	}
}

/* Trouble that happens beside the operation; true: this rank does no more */
static bool trouble_before(struct rank *k, int ep, unsigned int op)
{
	switch (k->round->trouble) {
	case ABORT:
		zt_abort(ep);
		return false;
	case LEAVE:
		zt_leave(ep);
		return true;
	case EXIT:
		_exit(0);
	case KILL:
		kill(getpid(), SIGKILL);
		return true;
	default:
		(void)op;
		return false;
	}
}

static int one_op(struct rank *k, int ep, struct io_uring *ring, unsigned int op,
		  int32_t *in, int32_t *out)
{
	uint32_t h = mix(k->round->seed, k->comm, op, 1);
	uint32_t own = mix(k->round->seed, k->comm, op, 100 + k->process);
	unsigned int count = h % 8 ? h / 8 % MOST : h / 8 % (5 * MOST);
	int32_t want = 0;
	struct zcoll_cmd cmd;
	uint32_t handle = 0;
	int ret;

	if (own & 1)
		out = in;
	for (unsigned int i = 0; i < count; i++)
		in[i] = h * (k->process + 1) + i;
	cmd = zt_cmd(op, ZCOLL_INT32, ZCOLL_SUM, in, out, count);
	cmd.deadline_ns = HANG_NS;
	if (own & 2) {
		ret = zt_register(ep, in, 5 * MOST * sizeof(*in), &handle);
		if (ret)
			return ret;
		cmd.send_buf = handle;
		cmd.send = 0;
		if (out == in) {
			cmd.recv_buf = handle;
			cmd.recv = 0;
		}
	}
	if (makes_trouble(k, op)) {
		if (k->round->trouble == MISMATCH)
			cmd.op = ZCOLL_MAX;
		if (trouble_before(k, ep, op))
			return -ECHILD;
	}
	if (own & 4 || (makes_trouble(k, op) && k->round->trouble == CANCEL)) {
		ret = ring_send_in(ring, ep, &cmd, op);
		if (!ret && makes_trouble(k, op) && k->round->trouble == CANCEL)
			zt_cancel(ep, op);
		if (!ret)
			ret = ring_next(ring, ZT_LONG_MS, NULL);
	} else {
		ret = zt_allreduce(ep, &cmd);
	}
	if (handle && own & 8)
		zt_unregister(ep, handle);
	for (unsigned int p = 0; p < PROCESSES; p++)
		want += h * (p + 1);
	for (unsigned int i = 0; !ret && i < count; i++) {
		if (out[i] != (int32_t)(want + PROCESSES * i))
			ret = -EBADMSG;
	}
	return ret;
}

static void *rank_main(void *p)
{
	struct rank *k = p;
	size_t len = 5 * MOST * sizeof(int32_t);
	int32_t *in = zt_pages(len), *out = zt_pages(len);
	struct io_uring ring;
	int ret;

	ret = ring_init(&ring, 4, k->comm ? IORING_SETUP_SQE128 : 0);
	if (ret) {
		say(k, "no ring", 0, ret);
		return NULL;
	}
	for (unsigned int op = 0; op < OPS && !ret; op++) {
		ret = one_op(k, k->ep, &ring, op, in, out);
		if (ret && ret != -ECHILD && !expected(k, ret))
			say(k, ret == -EBADMSG ? "wrong result" : "error", op, ret);
	}
	io_uring_queue_exit(&ring);
	/* a rank that is through waits for no one, but must not be taken for dead */
	if (!ret && zt_revoked(k->ep) == 0)
		zt_leave(k->ep);
	munmap(in, len);
	munmap(out, len);
	return NULL;
}

/* --- one process, one round ---------------------------------------------- */

static int process_main(struct zt *zt, const struct round *round, unsigned int process)
{
	struct rank rank[COMMS];
	pthread_t thread[COMMS];
	int failures = 0;

	/* all communicators first: nobody is told of a rank that never joined */
	for (unsigned int c = 0; c < COMMS; c++) {
		struct rank *k = &rank[c];

		*k = (struct rank) {
			.round = round,
			.zt = zt,
			.process = process,
			.comm = c,
		};
		k->ep = zt_join(zt, round->key[c], process, PROCESSES);
		if (k->ep < 0 && !expected(k, k->ep))
			say(k, "join", 0, k->ep);
	}
	for (unsigned int c = 0; c < COMMS; c++) {
		if (rank[c].ep >= 0)
			pthread_create(&thread[c], NULL, rank_main, &rank[c]);
	}
	for (unsigned int c = 0; c < COMMS; c++) {
		if (rank[c].ep >= 0)
			pthread_join(thread[c], NULL);
		failures += rank[c].failures;
	}
	return failures;
}

static int play(struct zt *zt, uint32_t seed)
{
	struct round round = { .seed = seed };
	uint32_t h = mix(seed, 2, 3, 4);
	pid_t pid[PROCESSES];
	int failures = 0;

	round.trouble = h & 1 ? h / 2 % TROUBLES : NONE;
	round.process = h / 32 % PROCESSES;
	round.comm = h / 128 % COMMS;
	round.op = h / 512 % OPS;
	for (unsigned int c = 0; c < COMMS; c++)
		zt_key(round.key[c]);
	for (unsigned int p = 0; p < PROCESSES; p++) {
		pid[p] = zt_fork(zt);
		if (!pid[p])
			_exit(process_main(zt, &round, p));
	}
	for (unsigned int p = 0; p < PROCESSES; p++) {
		int status = zt_reap(pid[p], 2 * ZT_LONG_MS);

		if (status == 0 || (round.trouble == KILL && round.process == p &&
				    status == 128 + SIGKILL))
			continue;
		failures++;
		fprintf(stderr, "# seed %u (%s): process %u: %s %d\n", seed,
			trouble_name[round.trouble], p,
			status == -ETIME ? "hangs" : "exit status", status);
		kill(pid[p], SIGKILL);
	}
	if (*zt_above_text(zt->dev, &zt->base)) {
		failures++;
		fprintf(stderr, "# seed %u (%s): %s\n", seed, trouble_name[round.trouble],
			zt_above_text(zt->dev, &zt->base));
	}
	return failures;
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? atoi(argv[1]) : 5;
	uint32_t seed = argc > 2 ? atoi(argv[2]) : 1;
	uint64_t end = zt_now_ms() + seconds * 1000;
	unsigned int rounds = 0, failures = 0;
	struct zt zt;

	ksft_print_header();
	if (access(ZT_DEVICE, R_OK | W_OK))
		ksft_exit_skip("no %s here\n", ZT_DEVICE);
	ksft_set_plan(1);
	if (zt_open(&zt))
		ksft_exit_fail_msg("cannot open %s\n", ZT_DEVICE);
	fflush(stdout);
	do {
		failures += play(&zt, seed++);
		rounds++;
	} while (zt_now_ms() < end);
	ksft_test_result(!failures, "stress.%u_rounds\n", rounds);
	ksft_finished();
}
