// SPDX-License-Identifier: GPL-2.0
/*
 * Mailboxes: sleeping until the bell is rung, and what else wakes who sleeps.
 */
#include "mailbox.h"

static int start_park(struct zt_call *call, int ep, struct zcoll_park *arg)
{
	return zt_start(call, ep, ZCOLL_IOC_PARK, arg);
}

/* It sleeps, and goes on sleeping */
static bool sleeps(struct zt_call *call)
{
	return zt_until(ZT_LONG_MS, call->tid) && zt_finish(call, ZT_QUIET_MS) == -ETIME;
}

TEST_F(mailbox, bell_is_counted)
{
	uint32_t before = self->verdict->bell;

	for (uint32_t i = 1; i <= 3; i++) {
		EXPECT_EQ(0, bell(self->ep[i % N]));
		EXPECT_EQ(before + i, self->verdict->bell);
	}
}

TEST_F(mailbox, bell_and_park_need_a_mapping)
{
	int ep[2];

	ASSERT_EQ(0, zt_comm(&self->zt, 2, ep));
	EXPECT_EQ(-ENXIO, bell(ep[0]));
	EXPECT_EQ(-ENXIO, park(ep[0], &self->park[0]));
	ASSERT_EQ(0, shared(ep[1], HEAP(0), PAGE, RO));
	EXPECT_EQ(0, bell(ep[0]));
}

TEST_F(mailbox, bell_and_park_fields_are_checked)
{
	struct zcoll_flags flags = { .size = sizeof(flags), .flags = 1 };
	struct zcoll_park arg = self->park[0];

	EXPECT_EQ(-EINVAL, zt_ioctl(self->ep[0], ZCOLL_IOC_BELL, &flags));
	arg.timeout_ns = 0;
	arg.flags = ZCOLL_PARK_DEADLINE << 1;
	EXPECT_EQ(-EINVAL, park(self->ep[0], &arg));
	arg.flags = 1U << 31;
	EXPECT_EQ(-EINVAL, park(self->ep[0], &arg));
	arg.flags = 0;
	arg.__reserved = 1;
	EXPECT_EQ(-EINVAL, park(self->ep[0], &arg));
	arg.__reserved = 0;
	arg.size = 4;
	EXPECT_EQ(-EINVAL, park(self->ep[0], &arg));
	EXPECT_EQ(-EFAULT, park(self->ep[0], (void *)16));
	EXPECT_EQ(0, zt_revoked(self->ep[0]));
}

TEST_F(mailbox, bell_before_the_sleep_is_not_lost)
{
	self->park[0].bell = self->verdict->bell;
	ASSERT_EQ(0, bell(self->ep[1]));
	EXPECT_EQ(0, park(self->ep[0], &self->park[0]));
}

TEST_F(mailbox, bell_wakes_all_that_sleep)
{
	for (int r = 0; r < 2; r++) {
		self->park[r].bell = self->verdict->bell;
		self->park[r].seq = r;
		ASSERT_EQ(0, start_park(&self->call[r], self->ep[r], &self->park[r]));
	}
	for (int r = 0; r < 2; r++)
		ASSERT_TRUE(sleeps(&self->call[r]));
	ASSERT_EQ(0, bell(self->ep[2]));
	for (int r = 0; r < 2; r++)
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_SOON_MS));
}

TEST_F(mailbox, park_times_out_and_nothing_is_lost)
{
	uint64_t start = zt_now_ms();

	self->park[0].bell = self->verdict->bell;
	self->park[0].timeout_ns = 100 * NS_PER_MS;
	EXPECT_EQ(-ETIMEDOUT, park(self->ep[0], &self->park[0]));
	EXPECT_LE(start + 100, zt_now_ms());
	EXPECT_GE(start + 100 + ZT_SOON_MS, zt_now_ms());
	self->park[0].timeout_ns = 0;
	EXPECT_EQ(-ETIMEDOUT, park(self->ep[0], &self->park[0]));
	EXPECT_EQ(0, zt_revoked(self->ep[0]));
	EXPECT_EQ(0, self->verdict->error);
}

TEST_F(mailbox, park_of_three_centuries_and_more_ends_by_the_bell)
{
	static const uint64_t times[] = { INT64_MAX - 1, INT64_MAX, 1ULL << 63, ~0ULL - 1 };

	for (int i = 0; i < 4; i++) {
		self->park[0].bell = self->verdict->bell;
		self->park[0].timeout_ns = times[i];
		ASSERT_EQ(0, start_park(&self->call[0], self->ep[0], &self->park[0]));
		EXPECT_TRUE(sleeps(&self->call[0]))
			TH_LOG("a time-out of %llu", (unsigned long long)times[i]);
		ASSERT_EQ(0, bell(self->ep[1]));
		EXPECT_EQ(0, zt_finish(&self->call[0], ZT_SOON_MS));
	}
}

static void on_signal(int sig)
{
	(void)sig;
}

TEST_F(mailbox, signal_leaves_what_is_left_of_the_time)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGUSR1, &sa, NULL);
	self->park[0].bell = self->verdict->bell;
	self->park[0].timeout_ns = 60000 * NS_PER_MS;
	ASSERT_EQ(0, start_park(&self->call[0], self->ep[0], &self->park[0]));
	ASSERT_TRUE(sleeps(&self->call[0]));
	pthread_kill(self->call[0].thread, SIGUSR1);
	EXPECT_EQ(-EINTR, zt_finish(&self->call[0], ZT_SOON_MS));
	EXPECT_LT(0, self->park[0].timeout_ns);
	EXPECT_GE((60000 - ZT_QUIET_MS + 1) * NS_PER_MS, self->park[0].timeout_ns);
	EXPECT_EQ(0, zt_revoked(self->ep[0]));

	self->park[0].timeout_ns = ZCOLL_WAIT_FOREVER;
	ASSERT_EQ(0, start_park(&self->call[0], self->ep[0], &self->park[0]));
	ASSERT_TRUE(sleeps(&self->call[0]));
	pthread_kill(self->call[0].thread, SIGUSR1);
	EXPECT_EQ(-EINTR, zt_finish(&self->call[0], ZT_SOON_MS));
	EXPECT_EQ(ZCOLL_WAIT_FOREVER, self->park[0].timeout_ns);
}

/* Where the call is started again by itself, its time runs on */
TEST_F(mailbox, signals_do_not_renew_the_time)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	uint64_t start = zt_now_ms();

	sigaction(SIGUSR1, &sa, NULL);
	self->park[0].bell = self->verdict->bell;
	self->park[0].timeout_ns = 1000 * NS_PER_MS;
	ASSERT_EQ(0, start_park(&self->call[0], self->ep[0], &self->park[0]));
	for (int i = 0; i < 40 && !self->call[0].done; i++) {
		zt_sleep_ms(100);
		if (!self->call[0].done)
			pthread_kill(self->call[0].thread, SIGUSR1);
	}
	EXPECT_EQ(-ETIMEDOUT, zt_finish(&self->call[0], ZT_LONG_MS));
	EXPECT_LE(start + 1000, self->call[0].ended_ms);
	EXPECT_GE(start + 1000 + 1500, self->call[0].ended_ms);
}

TEST_F(mailbox, deadline_revokes_and_names_the_missing_rank)
{
	const uint64_t seq = 70;

	write_line(self->own[0], seq, ZCOLL_FORM_MAIL);
	write_line(self->own[1], seq - ZCOLL_LINES, ZCOLL_FORM_MAIL);
	write_line(self->own[2], seq, ZCOLL_FORM_HEAP);
	self->park[0].flags = ZCOLL_PARK_DEADLINE;
	self->park[0].bell = self->verdict->bell;
	self->park[0].timeout_ns = 100 * NS_PER_MS;
	self->park[0].seq = seq;
	self->park[2].bell = self->verdict->bell;
	ASSERT_EQ(0, start_park(&self->call[2], self->ep[2], &self->park[2]));
	EXPECT_EQ(-ETIMEDOUT, park(self->ep[0], &self->park[0]));
	EXPECT_EQ(0, zt_finish(&self->call[2], ZT_SOON_MS));
	EXPECT_EQ(-ETIMEDOUT, self->verdict->error);
	for (int r = 0; r < N; r++) {
		EXPECT_EQ(-ETIMEDOUT, zt_revoked(self->ep[r]));
		ASSERT_EQ(0, zt_comm_status(self->ep[r], &self->st, self->text));
		EXPECT_NE(NULL, strstr(self->text, "operation 70"));
		EXPECT_NE(NULL, strstr(self->text, "rank 0"));
		EXPECT_STREQ("missing: 1", strstr(self->text, "missing") ?: "")
			TH_LOG("%s", self->text);
	}
}

TEST_F(mailbox, abort_and_leave_wake_who_sleeps)
{
	for (int r = 0; r < 2; r++) {
		self->park[r].bell = self->verdict->bell;
		ASSERT_EQ(0, start_park(&self->call[r], self->ep[r], &self->park[r]));
		ASSERT_TRUE(sleeps(&self->call[r]));
		ASSERT_EQ(0, r ? zt_abort(self->ep[0]) : zt_leave(self->ep[2]));
		EXPECT_EQ(0, zt_finish(&self->call[r], ZT_SOON_MS));
	}
	/* And nobody falls asleep any more */
	self->park[0].bell = self->verdict->bell;
	EXPECT_EQ(0, park(self->ep[0], &self->park[0]));
}

TEST_F(mailbox, death_of_a_rank_wakes_who_sleeps)
{
	struct zcoll_verdict *verdict;
	uint8_t key[16];
	pid_t pid;
	int ep;

	zt_key(key);
	ep = zt_join(&self->zt, key, 0, 2);
	ASSERT_LE(0, ep);
	pid = zt_fork(&self->zt);
	if (!pid) {
		zt_join(&self->zt, key, 1, 2);
		pause();
	}
	ASSERT_EQ(POLLIN, zt_poll(ep, ZT_LONG_MS) & POLLIN);
	verdict = map(ep, 0, PAGE, RO);
	ASSERT_NE(NULL, verdict);
	self->park[0].bell = verdict->bell;
	ASSERT_EQ(0, start_park(&self->call[0], ep, &self->park[0]));
	ASSERT_TRUE(sleeps(&self->call[0]));
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, zt_reap(pid, ZT_LONG_MS));
	EXPECT_EQ(0, zt_finish(&self->call[0], ZT_SOON_MS));
	EXPECT_EQ(-EOWNERDEAD, verdict->error);
	munmap(verdict, PAGE);
}

TEST_F(mailbox, killed_while_it_sleeps)
{
	struct zcoll_park arg = self->park[0];
	uint8_t key[16];
	pid_t pid;
	int ep;

	zt_key(key);
	pid = zt_fork(&self->zt);
	if (!pid) {
		ep = zt_join(&self->zt, key, 0, 1);
		shared(ep, 0, PAGE, RO);
		arg.bell = 1;
		_exit(park(ep, &arg) == 0 ? 3 : 4);
	}
	zt_sleep_ms(ZT_QUIET_MS);
	kill(pid, SIGKILL);
	EXPECT_NE(4, zt_reap(pid, ZT_SOON_MS));
}

ZT_MAIN
