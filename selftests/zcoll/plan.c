// SPDX-License-Identifier: GPL-2.0
/*
 * Plans through the ABI: loading, sharing, naming and unloading them, and that each
 * rule of the check is its own errno.
 *
 * The faults are those of selftests/lib/plans.h, which the check itself has in
 * selftests/unit/plan_valid_test.c.
 */
#include "zcoll_test.h"
#include "../lib/plans.h"
#include "kselftest_harness.h"

#define RANKS	3
#define COUNT	1000

FIXTURE(plan) {
	struct zt zt;
	int ep[RANKS];
	struct image image;
	uint32_t number;
	char text[ZCOLL_TEXT_MAX];
};

FIXTURE_SETUP(plan)
{
	ZT_SETUP(self);
	ASSERT_EQ(0, zt_comm(&self->zt, RANKS, self->ep));
	self->image = image_new();
	plan_local(&self->image);
	image_seal(&self->image);
}

FIXTURE_TEARDOWN(plan)
{
	image_free(&self->image);
	ZT_TEARDOWN(self);
}

/* --- calls --------------------------------------------------------------- */

static struct zcoll_plan_load load_arg(const struct image *image)
{
	return (struct zcoll_plan_load) {
		.size = sizeof(struct zcoll_plan_load),
		.plan = (uintptr_t)image->plan,
		.bytes = image->bytes,
	};
}

static int load_text(int ep, const struct image *image, uint32_t *number, char *text)
{
	struct zcoll_plan_load arg = load_arg(image);
	int ret;

	arg.text = (uintptr_t)text;
	arg.text_len = ZCOLL_TEXT_MAX;
	if (text)
		*text = '\0';
	ret = zt_ioctl(ep, ZCOLL_IOC_PLAN_LOAD, &arg);
	*number = arg.number;
	return ret;
}

static int load(int ep, const struct image *image, uint32_t *number)
{
	return load_text(ep, image, number, NULL);
}

static int check_at(int ep, const struct image *image, uint32_t node, char *text)
{
	struct zcoll_plan_load arg = load_arg(image);

	arg.flags = ZCOLL_PLAN_CHECK;
	arg.node = node;
	arg.text = (uintptr_t)text;
	arg.text_len = ZCOLL_TEXT_MAX;
	*text = '\0';
	return zt_ioctl(ep, ZCOLL_IOC_PLAN_LOAD, &arg);
}

static int unload(int ep, uint32_t number)
{
	struct zcoll_plan_unload arg = { .size = sizeof(arg), .number = number };

	return zt_ioctl(ep, ZCOLL_IOC_PLAN_UNLOAD, &arg);
}

/* Another plan that does the same */
static void rename_plan(struct image *image, int i)
{
	snprintf(image->plan->name, sizeof(image->plan->name), "local-%d", i);
	image_seal(image);
}

static struct zcoll_cmd barrier_by(uint64_t seq, uint32_t number)
{
	struct zcoll_cmd cmd = zt_barrier(seq);

	cmd.plan = number;
	return cmd;
}

static uint64_t comm_bytes(int ep)
{
	struct zcoll_stats stats;

	return zt_stats(ep, &stats) ? 0 : stats.comm_kernel_bytes;
}

/* A thread that loads or checks again and again */
struct churn {
	int ep;
	const struct image *image;
	int bad;
};

/* --- the check ----------------------------------------------------------- */

TEST_F(plan, plans_that_are_right_pass_at_every_node)
{
	for (size_t i = 0; i < NR_RIGHT_PLANS; i++) {
		right_plans[i].make(&self->image);
		image_seal(&self->image);
		for (uint32_t v = 0; v < self->image.plan->nodes; v++) {
			EXPECT_EQ(0, check_at(self->ep[0], &self->image, v, self->text)) {
				TH_LOG("%s at %u: %s", right_plans[i].name, v, self->text);
			}
		}
	}
}

TEST_F(plan, each_rule_has_its_errno_and_a_text)
{
	struct plan_fault fault;

	for (unsigned int n = 0; plan_spoil(&self->image, n, &fault); n++) {
		EXPECT_EQ(-fault.err, check_at(self->ep[0], &self->image, fault.node, self->text)) {
			TH_LOG("%s: %s", fault.what, self->text);
		}
		EXPECT_LT(20, strlen(self->text));
	}
}

TEST_F(plan, the_text_names_node_step_turn_and_segment)
{
	plan_flat(&self->image);
	memset(&self->image.plan->steps[FLAT_FOLD].after[1], 0, sizeof(struct zcoll_after));
	image_seal(&self->image);
	EXPECT_EQ(-EILSEQ, check_at(self->ep[0], &self->image, 2, self->text));
	EXPECT_STREQ("rank 0: plan: flat: node 2: step 4: turn 1: segment or place 0: not ordered after an earlier access to the same place, by step 4, turn 0",
		     self->text);
}

TEST_F(plan, a_ring_of_16384_nodes_is_checked)
{
	plan_ring_of(&self->image, 16384);
	image_seal(&self->image);
	EXPECT_EQ(0, check_at(self->ep[0], &self->image, 16383, self->text)) {
		TH_LOG("%s", self->text);
	}
}

TEST_F(plan, a_check_that_needs_too_much_memory_is_refused)
{
	struct zcoll_plan *p = self->image.plan;

	p->steps[0].repeat = 1000;
	for (int i = 1; i < 1000; i++)
		plan_add(p, FINAL, FIRST, NONE, 0)->repeat = 1000;
	image_seal(&self->image);
	EXPECT_EQ(-E2BIG, check_at(self->ep[0], &self->image, 0, self->text));
	EXPECT_NE(NULL, strstr(self->text, "67108864"));
}

TEST_F(plan, a_check_that_takes_too_long_is_refused)
{
	plan_slow(&self->image, ZCOLL_PLAN_MAX_NODES - 1);
	image_seal(&self->image);
	EXPECT_EQ(-E2BIG, check_at(self->ep[0], &self->image, 0, self->text));
	EXPECT_NE(NULL, strstr(self->text, "33554432"));
}

/* A check lasts, in ms */
static uint64_t check_ms(int ep, const struct image *image, char *text)
{
	uint64_t begin = zt_now_ms();

	return check_at(ep, image, 0, text) ? 0 : zt_now_ms() - begin;
}

static int join_alone(struct zt *zt)
{
	uint8_t key[16];

	zt_key(key);
	return zt_join(zt, key, 0, 1);
}

/* Kill a process some ms after its check began. Return: ms until it was gone */
static uint64_t kill_checker(struct zt *zt, const struct image *image, uint64_t ms)
{
	char text[ZCOLL_TEXT_MAX], go;
	uint64_t begin;
	int pipes[2];
	pid_t pid;

	if (pipe(pipes))
		return UINT64_MAX;
	pid = zt_fork(zt);
	if (!pid) {
		int ep = join_alone(zt);

		if (write(pipes[1], "", 1) == 1)
			check_at(ep, image, 0, text);
		_exit(1);
	}
	close(pipes[1]);
	if (read(pipes[0], &go, 1) != 1)
		return UINT64_MAX;
	close(pipes[0]);
	zt_sleep_ms(ms);
	begin = zt_now_ms();
	kill(pid, SIGKILL);
	return zt_reap(pid, ZT_LONG_MS) == 128 + SIGKILL ? zt_now_ms() - begin : UINT64_MAX;
}

TEST_F_TIMEOUT(plan, a_check_ends_when_its_process_is_killed, 120)
{
	uint64_t again, all, took = UINT64_MAX;

	plan_slow(&self->image, 2000);
	image_seal(&self->image);
	all = check_ms(self->ep[0], &self->image, self->text);
	again = check_ms(self->ep[0], &self->image, self->text);
	all = again < all ? again : all;
	ASSERT_LT(0, all);
	/* A machine that does something else for a moment is no failure */
	for (int i = 0; i < 3 && took > all / 2; i++)
		took = kill_checker(&self->zt, &self->image, all / 8);
	EXPECT_GE(all / 2, took);
}

enum { CHECKERS = 8 };

static void *check_main(void *p)
{
	struct churn *churn = p;
	char text[ZCOLL_TEXT_MAX];

	while (!check_at(churn->ep, churn->image, 0, text))
		;
	return NULL;
}

/* In a child: check in many threads, until it is killed */
static void check_in_threads(struct zt *zt, const struct image *image)
{
	struct churn churn = { join_alone(zt), image, 0 };
	pthread_t thread;

	for (int i = 1; i < CHECKERS; i++)
		pthread_create(&thread, NULL, check_main, &churn);
	check_main(&churn);
	_exit(1);
}

static long vmalloc_kib(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[100];
	long kib = 0;

	while (f && !kib && fgets(line, sizeof(line), f))
		sscanf(line, "VmallocUsed: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

TEST_F_TIMEOUT(plan, large_checks_come_one_after_the_other_and_can_be_killed, 120)
{
	long before = vmalloc_kib(), most = 0;
	uint64_t one, begin;
	pid_t pid;

	plan_roomy(&self->image);
	image_seal(&self->image);
	one = check_ms(self->ep[0], &self->image, self->text);
	ASSERT_LT(0, one);
	pid = zt_fork(&self->zt);
	if (!pid)
		check_in_threads(&self->zt, &self->image);
	begin = zt_now_ms();
	while (zt_now_ms() < begin + 500 + 2 * one) {
		long now = vmalloc_kib() - before;

		most = now > most ? now : most;
		zt_sleep_ms(1);
	}
	begin = zt_now_ms();
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
	EXPECT_GT(CHECKERS * one / 2 + ZT_QUIET_MS, zt_now_ms() - begin);
	/* It has been seen, and not twice */
	EXPECT_LT(50 << 10, most);
	EXPECT_GT(100 << 10, most);
}

TEST_F(plan, a_node_that_the_plan_does_not_have)
{
	EXPECT_EQ(-EINVAL, check_at(self->ep[0], &self->image, 1, self->text));
	EXPECT_NE(NULL, strstr(self->text, "no node 1"));
}

TEST_F(plan, a_check_loads_nothing)
{
	struct zcoll_plan_load arg = load_arg(&self->image);

	arg.flags = ZCOLL_PLAN_CHECK;
	arg.number = 77;
	ASSERT_EQ(0, zt_ioctl(self->ep[0], ZCOLL_IOC_PLAN_LOAD, &arg));
	EXPECT_EQ(0, arg.number);
	EXPECT_EQ(-ENOENT, unload(self->ep[0], 1));
}

/* --- the struct ---------------------------------------------------------- */

/* @change spoils one field of a load that would succeed */
#define BAD_LOAD(name, err, change)						\
TEST_F(plan, load_with_##name)							\
{										\
	struct {								\
		struct zcoll_plan_load arg;					\
		uint32_t tail[2];						\
	} call = { .arg = load_arg(&self->image) };				\
	struct zcoll_plan_load *arg = &call.arg;				\
										\
	change;									\
	EXPECT_EQ(-(err), zt_ioctl(self->ep[0], ZCOLL_IOC_PLAN_LOAD, arg));	\
	EXPECT_EQ(-ENOENT, unload(self->ep[0], 1));				\
	EXPECT_EQ(0, load(self->ep[0], &self->image, &self->number));		\
}

BAD_LOAD(a_size_too_small, EINVAL, arg->size -= 8)
BAD_LOAD(a_size_of_0, EINVAL, arg->size = 0)
BAD_LOAD(a_tail_that_is_not_zero, E2BIG, (arg->size += 8, call.tail[1] = 1))
BAD_LOAD(unknown_flags, EINVAL, arg->flags = 2)
BAD_LOAD(a_node_without_check, EINVAL, arg->node = 1)
BAD_LOAD(no_bytes, EINVAL, arg->bytes = 0)
BAD_LOAD(fewer_bytes_than_a_header, EINVAL, arg->bytes = sizeof(struct zcoll_plan) - 1)
BAD_LOAD(fewer_bytes_than_it_says, EINVAL, arg->bytes--)
BAD_LOAD(more_bytes_than_a_plan_has, E2BIG, arg->bytes = UINT32_MAX)
BAD_LOAD(an_address_that_cannot_be_read, EFAULT, arg->plan = 8)
BAD_LOAD(a_text_buffer_that_cannot_be_written, EFAULT,
	 (arg->flags = 2, arg->text = 8, arg->text_len = 100))

TEST_F(plan, a_tail_of_zeros_is_accepted)
{
	struct {
		struct zcoll_plan_load arg;
		uint32_t tail[2];
	} call = { .arg = load_arg(&self->image) };

	call.arg.size = sizeof(call);
	EXPECT_EQ(0, zt_ioctl(self->ep[0], ZCOLL_IOC_PLAN_LOAD, &call));
	EXPECT_LT(0, call.arg.number);
}

TEST_F(plan, a_number_that_cannot_be_told_is_not_used)
{
	struct zcoll_plan_load *arg;
	size_t page = sysconf(_SC_PAGESIZE);

	arg = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, arg);
	*arg = load_arg(&self->image);
	ASSERT_EQ(0, mprotect(arg, page, PROT_READ));
	EXPECT_EQ(-EFAULT, zt_ioctl(self->ep[0], ZCOLL_IOC_PLAN_LOAD, arg));
	munmap(arg, page);
	ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	EXPECT_EQ(0, unload(self->ep[0], self->number));
	EXPECT_EQ(-ENOENT, unload(self->ep[0], self->number));
}

TEST_F(plan, unload_with_a_size_too_small)
{
	struct zcoll_plan_unload arg = { .size = 4 };

	EXPECT_EQ(-EINVAL, zt_ioctl(self->ep[0], ZCOLL_IOC_PLAN_UNLOAD, &arg));
}

/* --- loading ------------------------------------------------------------- */

TEST_F(plan, a_plan_for_other_nodes_than_there_are)
{
	plan_ring(&self->image);
	image_seal(&self->image);
	EXPECT_EQ(-ENXIO, load_text(self->ep[0], &self->image, &self->number, self->text));
	EXPECT_STREQ("rank 0: plan: ring: it is for 4 nodes, the communicator has 1", self->text);
}

TEST_F(plan, a_plan_for_one_node_has_one_step)
{
	plan_add(self->image.plan, FINAL, FIRST, NONE, 0);
	image_seal(&self->image);
	EXPECT_EQ(-EOPNOTSUPP, load_text(self->ep[0], &self->image, &self->number, self->text));
	EXPECT_NE(NULL, strstr(self->text, "one step"));
}

TEST_F(plan, loads_are_counted)
{
	uint32_t again;

	ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	EXPECT_EQ(1, self->number);
	ASSERT_EQ(0, load(self->ep[0], &self->image, &again));
	EXPECT_EQ(self->number, again);
	EXPECT_EQ(0, unload(self->ep[0], self->number));
	EXPECT_EQ(0, unload(self->ep[0], self->number));
	EXPECT_EQ(-ENOENT, unload(self->ep[0], self->number));
}

TEST_F(plan, the_built_in_plan_cannot_be_unloaded)
{
	EXPECT_EQ(-ENOENT, unload(self->ep[0], 0));
}

TEST_F(plan, ranks_share_numbers)
{
	uint32_t other;

	ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	ASSERT_EQ(0, load(self->ep[1], &self->image, &other));
	EXPECT_EQ(self->number, other);
	rename_plan(&self->image, 1);
	ASSERT_EQ(0, load(self->ep[2], &self->image, &other));
	EXPECT_NE(self->number, other);
	EXPECT_EQ(0, unload(self->ep[2], self->number));
	EXPECT_EQ(0, unload(self->ep[2], self->number));
	EXPECT_EQ(-ENOENT, unload(self->ep[0], self->number));
}

TEST_F(plan, communicators_do_not_share_them)
{
	int other;

	ASSERT_EQ(0, zt_comm(&self->zt, 1, &other));
	ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	EXPECT_EQ(-ENOENT, unload(other, self->number));
}

TEST_F(plan, a_number_is_not_given_again_soon)
{
	uint32_t other;

	ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	ASSERT_EQ(0, unload(self->ep[0], self->number));
	rename_plan(&self->image, 1);
	ASSERT_EQ(0, load(self->ep[0], &self->image, &other));
	EXPECT_NE(self->number, other);
}

TEST_F(plan, at_most_64)
{
	for (int i = 0; i < ZCOLL_MAX_PLANS; i++) {
		rename_plan(&self->image, i);
		ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	}
	rename_plan(&self->image, ZCOLL_MAX_PLANS);
	EXPECT_EQ(-ENOSPC, load_text(self->ep[0], &self->image, &self->number, self->text));
	EXPECT_NE(NULL, strstr(self->text, "64"));
	EXPECT_EQ(0, unload(self->ep[0], 7));
	EXPECT_EQ(0, load(self->ep[0], &self->image, &self->number));
}

TEST_F(plan, their_memory_is_counted)
{
	uint64_t before = comm_bytes(self->ep[0]);
	struct zcoll_info info, after;

	ASSERT_EQ(0, zt_info(self->zt.dev, &info));
	ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	ASSERT_EQ(0, zt_info(self->zt.dev, &after));
	EXPECT_LE(before + self->image.bytes, comm_bytes(self->ep[0]));
	EXPECT_LE(info.kernel_bytes + self->image.bytes, after.kernel_bytes);
	ASSERT_EQ(0, unload(self->ep[0], self->number));
	EXPECT_EQ(before, comm_bytes(self->ep[0]));
}

/* --- who ----------------------------------------------------------------- */

TEST_F(plan, not_for_another_process)
{
	pid_t pid;
	int bad = 0;

	ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	pid = fork();
	if (!pid) {
		uint32_t number;

		ZT_CHECK(bad, -EPERM, load(self->ep[0], &self->image, &number));
		ZT_CHECK(bad, -EPERM, unload(self->ep[0], self->number));
		_exit(bad);
	}
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	EXPECT_EQ(0, unload(self->ep[0], self->number));
}

TEST_F(plan, not_after_leaving)
{
	ASSERT_EQ(0, zt_leave(self->ep[0]));
	EXPECT_EQ(-ESHUTDOWN, load_text(self->ep[0], &self->image, &self->number, self->text));
	EXPECT_NE(NULL, strstr(self->text, "left"));
}

TEST_F(plan, not_into_a_revoked_communicator)
{
	ASSERT_EQ(0, zt_abort(self->ep[0]));
	EXPECT_EQ(-ECANCELED, load_text(self->ep[1], &self->image, &self->number, self->text));
	EXPECT_NE(NULL, strstr(self->text, "aborted"));
}

TEST_F(plan, they_stay_when_the_process_that_loaded_them_dies)
{
	uint8_t key[16];
	int ep, bad = 0;
	pid_t pid;

	zt_key(key);
	ep = zt_join(&self->zt, key, 0, 2);
	ASSERT_LE(0, ep);
	ASSERT_EQ(0, load(ep, &self->image, &self->number));
	pid = zt_fork(&self->zt);
	if (!pid) {
		uint32_t number = 0;
		int mine;

		mine = zt_join(&self->zt, key, 1, 2);
		ZT_CHECK(bad, true, mine >= 0);
		ZT_CHECK(bad, 0, load(mine, &self->image, &number));
		ZT_CHECK(bad, self->number, number);
		_exit(bad);
	}
	EXPECT_EQ(0, zt_reap(pid, ZT_LONG_MS));
	EXPECT_TRUE(zt_until(ZT_LONG_MS, zt_revoked(ep) == -EOWNERDEAD));
	EXPECT_EQ(0, unload(ep, self->number));
	EXPECT_EQ(0, unload(ep, self->number));
	EXPECT_EQ(-ENOENT, unload(ep, self->number));
}

/* --- operations ---------------------------------------------------------- */

static void fill(float *in, int rank)
{
	for (int i = 0; i < COUNT; i++)
		in[i] = (i + 1) * 0.37f + rank * 1.7f;
}

TEST_F(plan, an_operation_by_a_loaded_plan_is_that_of_the_built_in_one)
{
	float (*in)[COUNT] = zt_pages(RANKS * sizeof(*in));
	float (*out)[RANKS][COUNT] = zt_pages(2 * sizeof(*out));
	struct zcoll_cmd cmd[RANKS];

	ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	for (int way = 0; way < 2; way++) {
		for (int r = 0; r < RANKS; r++) {
			fill(in[r], r);
			cmd[r] = zt_cmd(way, ZCOLL_FP32, ZCOLL_SUM, in[r], out[way][r], COUNT);
			cmd[r].plan = way ? self->number : 0;
		}
		ASSERT_EQ(0, zt_all(self->ep, cmd, RANKS));
	}
	EXPECT_EQ(0, memcmp(out[0], out[1], sizeof(*out)));
	EXPECT_LT(0, out[1][RANKS - 1][COUNT - 1]);
}

TEST_F(plan, an_operation_by_a_plan_that_is_not_there)
{
	struct zcoll_cmd cmd = barrier_by(0, 5);
	struct zcoll_status st;

	EXPECT_EQ(-ENOENT, zt_allreduce(self->ep[0], &cmd));
	ASSERT_EQ(0, zt_status(self->ep[0], 0, &st, self->text));
	EXPECT_NE(NULL, strstr(self->text, "no plan has number 5"));
}

TEST_F(plan, an_operation_by_a_plan_for_another_collective)
{
	struct zcoll_status st;
	struct zcoll_cmd cmd;

	self->image.plan->collective = ZCOLL_BROADCAST;
	image_seal(&self->image);
	ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	cmd = barrier_by(0, self->number);
	EXPECT_EQ(-EOPNOTSUPP, zt_allreduce(self->ep[0], &cmd));
	ASSERT_EQ(0, zt_status(self->ep[0], 0, &st, self->text));
	EXPECT_NE(NULL, strstr(self->text, "another collective"));
}

TEST_F(plan, ranks_that_name_different_plans_do_not_match)
{
	struct zcoll_cmd cmd[RANKS] = { zt_barrier(0), zt_barrier(0), zt_barrier(0) };
	struct zcoll_status st;

	ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	cmd[1].plan = self->number;
	EXPECT_EQ(-EPROTO, zt_all(self->ep, cmd, RANKS));
	ASSERT_EQ(0, zt_comm_status(self->ep[0], &st, self->text));
	EXPECT_NE(NULL, strstr(self->text, "plan"));
}

TEST_F(plan, it_may_be_unloaded_while_an_operation_waits)
{
	struct zcoll_cmd cmd[RANKS];
	struct zt_call call[RANKS];
	int r;

	ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
	for (r = 0; r < RANKS - 1; r++) {
		cmd[r] = barrier_by(0, self->number);
		ASSERT_EQ(0, zt_start_op(&call[r], self->ep[r], &cmd[r]));
	}
	ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep[0], 0) == RANKS - 1));
	ASSERT_EQ(0, unload(self->ep[0], self->number));
	cmd[r] = barrier_by(0, self->number);
	EXPECT_EQ(-ENOENT, zt_allreduce(self->ep[r], &cmd[r]));
	ASSERT_EQ(0, zt_abort(self->ep[0]));
	for (r = 0; r < RANKS - 1; r++)
		EXPECT_EQ(-ECANCELED, zt_finish(&call[r], ZT_LONG_MS));
}

TEST_F(plan, it_may_be_unloaded_while_an_operation_runs)
{
	enum { BIG = 1 << 20 };
	struct zcoll_cmd cmd[RANKS];
	struct zt_call call[RANKS];
	int32_t *mem[RANKS];

	for (int r = 0; r < RANKS; r++)
		mem[r] = zt_pages(BIG * sizeof(int32_t));
	for (uint64_t seq = 0; seq < 4; seq++) {
		ASSERT_EQ(0, load(self->ep[0], &self->image, &self->number));
		for (int r = 0; r < RANKS; r++) {
			for (int i = 0; i < BIG; i += 1000)
				mem[r][i] = i;
			cmd[r] = zt_sum(seq, mem[r], BIG);
			cmd[r].plan = self->number;
			ASSERT_EQ(0, zt_start_op(&call[r], self->ep[r], &cmd[r]));
		}
		ASSERT_TRUE(zt_until(ZT_LONG_MS, zt_arrived(self->ep[0], seq) == RANKS));
		EXPECT_EQ(0, unload(self->ep[0], self->number));
		for (int r = 0; r < RANKS; r++)
			ASSERT_EQ(0, zt_finish(&call[r], ZT_LONG_MS));
		EXPECT_EQ(RANKS * 1000, mem[1][1000]);
	}
}

static void *churn_main(void *p)
{
	struct churn *churn = p;
	uint32_t number;

	for (int i = 0; i < 200; i++) {
		churn->bad += load(churn->ep, churn->image, &number) != 0;
		churn->bad += unload(churn->ep, number) != 0;
	}
	return NULL;
}

TEST_F(plan, many_load_and_unload_the_same_one_at_once)
{
	uint64_t before = comm_bytes(self->ep[0]);
	struct churn churn[RANKS];
	pthread_t thread[RANKS];

	for (int r = 0; r < RANKS; r++) {
		churn[r] = (struct churn){ self->ep[r], &self->image, 0 };
		ASSERT_EQ(0, pthread_create(&thread[r], NULL, churn_main, &churn[r]));
	}
	for (int r = 0; r < RANKS; r++) {
		pthread_join(thread[r], NULL);
		EXPECT_EQ(0, churn[r].bad);
	}
	EXPECT_EQ(before, comm_bytes(self->ep[0]));
}

int main(int argc, char **argv)
{
	return zt_main(argc, argv);
}
