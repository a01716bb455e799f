// SPDX-License-Identifier: GPL-2.0
/*
 * One engine alone: how it fails. What revokes it, who is told and blamed, what becomes of nodes
 * that leave, and how nodes agree on a verdict, whichever of them are lost or silent meanwhile.
 */
#include "engine_solo.h"
#include "../lib/tap.h"

/* The middle of a chain of three, which minds when it last heard of the others */
static const struct zc_engine_config watchful = {
	.node = 1, .nodes = 3, .window = 4, .steps = 24, .links = 2, .slots = 4,
	.inflight = 4, .silence = 100, .timeout = 300,
};

static void test_abort(void)
{
	struct solo *s = solo_new(plan_chain(3, false), 1);

	submit(s, 0);
	hear(s, 0, data(CHAIN_DELIVER, 0));
	hear(s, 0, data(CHAIN_DELIVER, 1));
	drain(s);
	is(count(s, ZC_DO_DELIVER), 2, "two units are with the host");
	zc_engine_abort(s->engine, -ECANCELED);
	zc_engine_done(s->engine, 0, CHAIN_DELIVER, 0);
	zc_engine_abort(s->engine, -EIO);
	drain(s);
	is(told(s, ZC_MSG_ABORT, 0), 1, "one neighbour is told once");
	is(told(s, ZC_MSG_ABORT, 2), 1, "and the other one");
	is(count(s, ZC_DO_SEND), 0, "nothing begins any more");
	is(count(s, ZC_DO_CLOSE), 1, "the host is asked to cut the peers off");
	zc_engine_closed(s->engine);
	drain(s);
	is(verdict(s), 1, "no end while the host has a unit");
	zc_engine_done(s->engine, 0, CHAIN_DELIVER, 1);
	drain(s);
	is(verdict(s), -ECANCELED, "then it ends, by the first cause");
	is(count(s, ZC_DO_CLOSE), 0, "CLOSE comes once");
	is(zc_engine_blame(s->engine), ZC_NONE, "no other node is to blame");
	solo_free(s);

	s = solo_new(plan_chain(3, false), 1);
	submit(s, 0);
	zc_engine_abort(s->engine, -ECANCELED);
	drain(s);
	is(count(s, ZC_DO_COMPLETE), 0, "no end before the peers are cut off");
	solo_free(s);
}

static void test_cause(s32 told_cause, s32 want)
{
	struct solo *s = solo_new(plan_chain(3, false), 1);

	hear(s, 0, (struct zc_msg){ .type = ZC_MSG_ABORT, .status = told_cause });
	is(zc_engine_error(s->engine), want, "an ABORT by %d", told_cause);
	is(zc_engine_blame(s->engine), 0, "names who told of it");
	solo_free(s);
}

/* A node that fails before it has a link to another one tells it when it appears */
static void test_stranger(void)
{
	struct solo *s = solo_new(plan_chain(3, false), 1);

	zc_engine_abort(s->engine, -ECANCELED);
	drain(s);
	is(count(s, ZC_DO_TELL), 0, "nobody is linked, nobody is told");
	zc_engine_closed(s->engine);
	hear(s, 2, (struct zc_msg){ .type = ZC_MSG_ALIVE });
	drain(s);
	is(told(s, ZC_MSG_ABORT, 2), 1, "who appears afterwards is told");
	solo_free(s);
}

static void test_deadline(void)
{
	struct solo *s = solo_new(plan_chain(3, false), 1);

	s->desc.deadline = 5000;
	submit(s, 0);
	is(zc_engine_tick(s->engine, 2000), 5000, "a deadline is when to tick next");
	is(zc_engine_error(s->engine), 0, "which has not come");
	is(zc_engine_tick(s->engine, 4999), 5000, "not yet");
	zc_engine_tick(s->engine, 5000);
	is(zc_engine_error(s->engine), -ETIMEDOUT, "now it has");
	is(zc_engine_blame(s->engine), ZC_NONE, "which is nobody's silence");
	solo_free(s);
}

static void test_heartbeat(void)
{
	struct solo *s = solo_config(plan_chain(3, false), &watchful);

	submit(s, 0);
	drain(s);
	is(zc_engine_tick(s->engine, 1100), 1200, "ticks come as often as heartbeats");
	drain(s);
	is(told(s, ZC_MSG_ALIVE, 0), 1, "who sends to this node is told that it lives");
	is(told(s, ZC_MSG_ALIVE, 2), 1, "who receives from it, too");
	hear(s, 0, (struct zc_msg){ .type = ZC_MSG_ALIVE });
	zc_engine_tick(s->engine, 1299);
	is(zc_engine_error(s->engine), 0, "nobody has been silent for too long");
	zc_engine_tick(s->engine, 1301);
	is(zc_engine_error(s->engine), -EHOSTDOWN, "now one has");
	is(zc_engine_blame(s->engine), 2, "and is named");
	drain(s);
	is(told(s, ZC_MSG_ABORT, 0), 1, "who has not is told");
	is(told(s, ZC_MSG_ABORT, 2), 0, "who is lost is not");
	solo_free(s);
}

static void test_blame_of_messages(void)
{
	struct solo *s = solo_new(plan_chain(3, false), 2);

	hear(s, 0, data(CHAIN_DELIVER, 0));
	is(submit(s, 0), -EPROTO, "an early message of a node that has no part in the step");
	is(zc_engine_blame(s->engine), 0, "is that node's");
	zc_engine_lost(s->engine, 1);
	is(zc_engine_blame(s->engine), 0, "and only the first cause counts");
	solo_free(s);

	s = solo_new(plan_chain(3, false), 2);
	submit(s, 0);
	hear(s, 1, data(CHAIN_DELIVER, 10));
	is(zc_engine_blame(s->engine), 1, "so is a wrong one later");
	solo_free(s);
}

/* ------------------------------------------------------------------ leaving */

static void test_left(void)
{
	struct solo *s = solo_config(plan_chain(3, false), &watchful);

	submit(s, 0);
	drain(s);
	zc_engine_left(s->engine, 0, 1);
	is(zc_engine_error(s->engine), 0, "a node that has done its part may leave");
	hear(s, 0, data(CHAIN_DELIVER, 0));
	zc_engine_tick(s->engine, 1200);
	hear(s, 2, (struct zc_msg){ .type = ZC_MSG_ALIVE });
	drain(s);
	is(count(s, ZC_DO_DELIVER), 1, "what it has sent may come later");
	is(told(s, ZC_MSG_ALIVE, 0), 0, "it is not told that others live");
	is(told(s, ZC_MSG_ALIVE, 2), 1, "while these are");
	zc_engine_tick(s->engine, 1400);
	is(zc_engine_error(s->engine), 0, "and its silence is no loss");
	zc_engine_lost(s->engine, 0);
	is(zc_engine_error(s->engine), 0, "nor is the end of its connections");
	is(submit(s, 1), -ESHUTDOWN, "an operation that it has not done cannot be carried out");
	is(zc_engine_error(s->engine), -ESHUTDOWN, "which revokes");
	is(zc_engine_blame(s->engine), 0, "because of who has left");
	drain(s);
	is(told(s, ZC_MSG_ABORT, 2), 1, "others are told of that");
	is(told(s, ZC_MSG_ABORT, 0), 0, "but not who has left");
	solo_free(s);

	s = solo_new(plan_chain(3, false), 1);
	submit(s, 0);
	submit(s, 1);
	zc_engine_left(s->engine, 2, 1);
	is(zc_engine_error(s->engine), -ESHUTDOWN, "nor one that is going on already");
	solo_free(s);
}

/* A SEND that waits for the other node to retire operations, when that leaves */
static void test_send_to_left(void)
{
	struct solo *s = solo_new(plan_chain(3, false), 0);

	s->desc.geo.count = 0;
	submit(s, 0);
	drain(s);
	answer(s);
	drain(s);
	submit(s, 4);
	drain(s);
	is(count(s, ZC_DO_SEND), 0, "nothing is sent beyond the window of the receiver");
	zc_engine_left(s->engine, 1, 9);
	drain(s);
	is(count(s, ZC_DO_SEND), 1, "what waited for a node that leaves is the host's to answer");
	solo_free(s);
}

/* ------------------------------------------------------------------ agreement */

static struct solo *solo_agreed_of(u32 nodes, u32 node)
{
	struct solo *s = solo_new(plan_chain(nodes, true), node);

	s->desc.flags = ZC_OP_AGREED;
	s->desc.geo.count = 0;
	submit(s, 0);
	drain(s);
	answer(s);
	return s;
}

static struct solo *solo_agreed(u32 node)
{
	return solo_agreed_of(5, node);
}

static struct zc_msg settling(u32 type, u64 below)
{
	return (struct zc_msg){ .type = type, .status = -EHOSTDOWN, .seq = below };
}

static void test_agreement(void)
{
	struct solo *s = solo_agreed(4);

	hear(s, 3, data(CHAIN_DELIVER, 0));
	drain(s);
	answer(s);
	zc_engine_lost(s->engine, 2);
	drain(s);
	is(count(s, ZC_DO_CLOSE), 0, "an agreed verdict is waited for");
	hear(s, 0, settling(ZC_MSG_ASK, 0));
	drain(s);
	is(told(s, ZC_MSG_ANSWER, 0), 1, "who asks gets an answer");
	hear(s, 0, settling(ZC_MSG_DECISION, 1));
	drain(s);
	is(count(s, ZC_DO_CLOSE), 1, "the decision settles it");
	zc_engine_closed(s->engine);
	drain(s);
	is(verdict(s), 0, "the results are there, and another node has ended well");
	solo_free(s);

	s = solo_agreed(4);
	hear(s, 0, settling(ZC_MSG_DECISION, 1));
	drain(s);
	zc_engine_closed(s->engine);
	drain(s);
	is(verdict(s), -EHOSTDOWN, "a decision does not make a result that is not there");
	solo_free(s);
}

/* What a lost coordinator has decided may have been decided without it by the next one */
static void test_late_decision(void)
{
	struct solo *s = solo_agreed(4);

	hear(s, 3, data(CHAIN_DELIVER, 0));
	hear(s, 1, settling(ZC_MSG_ASK, 0));
	drain(s);
	zc_engine_lost(s->engine, 1);
	hear(s, 0, settling(ZC_MSG_DECISION, 1));
	drain(s);
	is(count(s, ZC_DO_CLOSE), 0, "a decision of a coordinator below the last one is late");
	is(told(s, ZC_MSG_ABORT, 2) > 0, true, "the next one is asked to coordinate");
	hear(s, 2, settling(ZC_MSG_ASK, 0));
	hear(s, 2, settling(ZC_MSG_DECISION, 0));
	drain(s);
	zc_engine_closed(s->engine);
	drain(s);
	is(verdict(s), -EHOSTDOWN, "its decision counts");
	solo_free(s);
}

static void test_coordinator(void)
{
	struct solo *s = solo_agreed(1);
	u32 node;

	zc_engine_lost(s->engine, 0);
	drain(s);
	for (node = 2; node < 5; node++)
		is(told(s, ZC_MSG_ASK, node), 1, "the lowest node asks node %u", node);
	hear(s, 2, settling(ZC_MSG_ANSWER, 0));
	hear(s, 3, settling(ZC_MSG_ANSWER, 0));
	hear(s, 3, settling(ZC_MSG_ANSWER, 0));
	drain(s);
	is(told(s, ZC_MSG_DECISION, 2), 0, "an answer counts once");
	zc_engine_lost(s->engine, 4);
	drain(s);
	is(told(s, ZC_MSG_DECISION, 2), 1, "who is lost is not waited for");
	is(told(s, ZC_MSG_DECISION, 4), 0, "nor told");
	is(count(s, ZC_DO_CLOSE), 1, "and the coordinator is bound, too");
	solo_free(s);
}

static void test_agreement_without_left(void)
{
	struct solo *s = solo_agreed(2);

	zc_engine_left(s->engine, 0, 1);
	zc_engine_left(s->engine, 3, 1);
	zc_engine_lost(s->engine, 1);
	drain(s);
	is(told(s, ZC_MSG_ASK, 4), 1, "the lowest that has not left coordinates");
	is(told(s, ZC_MSG_ASK, 0) + told(s, ZC_MSG_ASK, 3), 0, "and asks nobody who has");
	hear(s, 4, settling(ZC_MSG_ANSWER, 0));
	drain(s);
	is(told(s, ZC_MSG_DECISION, 4), 1, "nor waits for them");
	is(told(s, ZC_MSG_DECISION, 0) + told(s, ZC_MSG_DECISION, 3), 0, "nor tells them");
	solo_free(s);
}

/* The host may have dropped it: nobody has written that output */
static void test_unit_of_revoked(void)
{
	struct solo *s = solo_new(plan_chain(5, true), 4);

	s->desc.flags = ZC_OP_AGREED;
	s->desc.geo.count = 4;
	submit(s, 0);
	drain(s);
	hear(s, 3, data(CHAIN_DELIVER, 0));
	drain(s);
	is(count(s, ZC_DO_DELIVER), 1, "a result is on its way to its place");
	hear(s, 0, settling(ZC_MSG_DECISION, 1));
	answer(s);
	answer(s);
	drain(s);
	is(count(s, ZC_DO_CLOSE), 1, "the engine is revoked before it is there");
	zc_engine_closed(s->engine);
	drain(s);
	is(verdict(s), -EHOSTDOWN, "which is no success, whatever others decide");
	solo_free(s);
}

/* Nodes that live, and say nothing of the verdicts */

static void test_silent_coordinator(void)
{
	struct solo *s = solo_agreed(4);

	zc_engine_abort(s->engine, -ECANCELED);
	drain(s);
	is(told(s, ZC_MSG_ABORT, 0) > 0, true, "the lowest node is asked to coordinate");
	is(zc_engine_tick(s->engine, 1199), 1200, "it has twice a coordinator's patience");
	hear(s, 0, (struct zc_msg){ .type = ZC_MSG_ALIVE });
	drain(s);
	is(told(s, ZC_MSG_ABORT, 1), 0, "for so long it is waited for");
	zc_engine_tick(s->engine, 1200);
	drain(s);
	is(told(s, ZC_MSG_ABORT, 1) > 0, true, "then the next one is asked to");
	hear(s, 1, settling(ZC_MSG_ASK, 0));
	drain(s);
	is(told(s, ZC_MSG_ANSWER, 1), 1, "which may still settle it");
	solo_free(s);
}

static void test_silent_followers(void)
{
	struct solo *s = solo_agreed(0);

	zc_engine_abort(s->engine, -ECANCELED);
	drain(s);
	hear(s, 1, settling(ZC_MSG_ANSWER, 0));
	hear(s, 3, settling(ZC_MSG_ANSWER, 0));
	zc_engine_tick(s->engine, 1099);
	hear(s, 2, (struct zc_msg){ .type = ZC_MSG_ALIVE });
	drain(s);
	is(count(s, ZC_DO_CLOSE), 0, "a coordinator waits for all answers");
	zc_engine_tick(s->engine, 1100);
	drain(s);
	is(told(s, ZC_MSG_DECISION, 1) + told(s, ZC_MSG_DECISION, 3), 2,
	   "but not for ever: it decides with those it has");
	is(told(s, ZC_MSG_DECISION, 2) + told(s, ZC_MSG_DECISION, 4), 0,
	   "who has not answered is lost");
	is(count(s, ZC_DO_CLOSE), 1, "and verdicts come");
	solo_free(s);
}

/* Each asks when the one before is about to be given up, and none decides */
static void test_silent_together(void)
{
	struct solo *s = solo_agreed_of(10, 9);
	u64 now;

	zc_engine_abort(s->engine, -ECANCELED);
	drain(s);
	for (now = 1000; now < 1800; now += 10) {
		hear(s, (now - 1000) / 100, settling(ZC_MSG_ASK, 0));
		zc_engine_tick(s->engine, now);
		drain(s);
	}
	is(count(s, ZC_DO_CLOSE), 0, "several coordinators may follow each other");
	zc_engine_tick(s->engine, 1800);
	drain(s);
	is(count(s, ZC_DO_CLOSE), 1, "but there is a time when all is settled");
	solo_free(s);
}

int main(void)
{
	test_abort();
	test_cause(-ECANCELED, -ECANCELED);
	test_cause(5, -EIO);
	test_cause(-100000, -EIO);
	test_stranger();
	test_deadline();
	test_heartbeat();
	test_blame_of_messages();
	test_left();
	test_send_to_left();
	test_agreement();
	test_late_decision();
	test_coordinator();
	test_agreement_without_left();
	test_unit_of_revoked();
	test_silent_coordinator();
	test_silent_followers();
	test_silent_together();
	return tap_end();
}
