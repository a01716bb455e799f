// SPDX-License-Identifier: GPL-2.0
/*
 * The checker of plans on plans written by hand: right ones, with the facts that anybody
 * can count, and for each refusal a wrong one, with its counterexample.
 */
#include "plan_build.h"

#include "../lib/tap.h"

static char error[ZCOLL_TEXT_MAX];

/* The plan is right: facts */
static struct zcoll_plan_facts right(struct zcoll_plan *plan, const char *name)
{
	struct zcoll_plan_limits limits = { .window = 8, .slots = 2 };
	struct zcoll_plan_facts facts = {};
	int err;

	plan_seal(plan);
	err = zcoll_plan_check(plan, &limits, &facts, error, sizeof(error));
	if (!ok(!err, "%s is right", name))
		printf("# %d: %s\n", err, error);
	free(plan);
	return facts;
}

/* The plan is wrong, and the counterexample says so; so it is seen from one node */
static void wrong(struct zcoll_plan *plan, const char *name, const char *text)
{
	struct zcoll_plan_limits all = { .window = 8, .slots = 2 };
	struct zcoll_plan_limits one = { .window = 8, .slots = 2, .nodes = 1 };
	bool refused;

	plan_seal(plan);
	error[0] = '\0';
	refused = zcoll_plan_check(plan, &one, NULL, error, sizeof(error)) < 0;
	ok(refused && zcoll_plan_check(plan, &all, NULL, error, sizeof(error)) < 0,
	   "%s: refused", name);
	has(error, text, "%s: counterexample", name);
	free(plan);
}

static void test_ring(void)
{
	struct zcoll_plan_facts facts = right(plan_ring3(), "a ring of three");
	struct zcoll_plan_limits limits = { .window = 1, .slots = 1, .nodes = 1 };
	struct zcoll_plan *plan = plan_ring3();

	is(facts.rounds, 4, "a ring of three takes four rounds");
	is(facts.sent_max, 4, "each node sends four segments");
	is(facts.sent_total, 12, "all send twelve");
	is(facts.messages_max, 4, "each node sends four messages");
	is(facts.messages_total, 12, "all send twelve");
	is(facts.folded_max, 2, "each node folds two segments");
	is(facts.peers_max, 2, "each node has two peers");
	is(facts.scratch + facts.acc, 0, "a ring needs no room beside the outputs");
	is(facts.nodes_run, 3, "with no limit, all nodes are run");
	ok(facts.same_bits && !facts.ordered, "all get the same bits, in no fixed tree's order");
	has(facts.order, "((0+1)+2)", "the order is told");
	is(zcoll_plan_check(plan, &limits, &facts, error, sizeof(error)), 0,
	   "seen from one node, the ring is right as well");
	ok(facts.nodes_run == 1 && facts.rounds == 4 && facts.sent_total == 12 &&
	   facts.same_bits && !facts.ordered, "and has the same facts");
	is(zcoll_plan_check(plan, NULL, NULL, NULL, 0), 0, "limits, facts and error may be NULL");
	limits.slots = 0;
	ok(zcoll_plan_check(plan, &limits, &facts, error, sizeof(error)) < 0,
	   "no slots are no limit to be proved under");
	plan->id++;
	zcoll_plan_check(plan, NULL, NULL, error, sizeof(error));
	has(error, "id is not the hash", "what is no plan at all is refused");
	free(plan);
}

static void test_pairs(void)
{
	struct zcoll_plan *plan = plan_ring3();

	plan->steps[0].match = 3;
	wrong(plan, "a message with another segment than is expected",
	      "node 0, step 0 (send), turn 0: 1 segments from 0 on are sent, but node 1 "
	      "expects 1 from 2 on in step 3 (fold)");
	plan = plan_ring3();
	plan->steps[3].first = 1;
	wrong(plan, "a message to a node that does not take part",
	      "node 2, step 2 (send), turn 0: node 0 does not take part in step 3 (fold), "
	      "which is to receive this");
	plan = plan_ring3();
	plan->steps[1].dist = 1;
	wrong(plan, "a message that is expected from another node",
	      "node 0, step 0 (send), turn 0: node 1, the peer, has node 2 as its peer in "
	      "step 1 (fold), the other side of this");
	plan = plan_ring3();
	plan->steps[2].first = 1;
	wrong(plan, "a message that nobody sends",
	      "node 1, step 3 (fold), turn 0: nobody sends this: node 0 takes part in no "
	      "step whose match is this one");
	plan = plan_ring3();
	wrong(plan_append(plan, plan->steps[0]), "a message that is sent twice",
	      "node 0, step 1 (fold), turn 0: steps 0 and 6 of node 2 both name step 1 as "
	      "their match");
	plan = plan_ring3();
	plan->steps[0].dist = 0;
	wrong(plan, "a message to itself",
	      "node 0, step 0 (send), turn 0: its peer, segment or scratch place is out of "
	      "range");
	plan = plan_ring3();
	plan->steps[0].radix = 4;
	wrong(plan, "a message from a node that has no peer",
	      "node 0, step 1 (fold), turn 0: node 2 has no peer or segment in step 0 "
	      "(send), the other side of this");
}

static void test_local_rules(void)
{
	struct zcoll_plan *plan = plan_ring3();

	memset(&plan->steps[5].after[0], 0, sizeof(plan->steps[5].after[0]));
	wrong(plan, "a place written while a SEND may be reading it",
	      "node 0, step 5 (deliver), turn 0: segment 0: not ordered after an earlier "
	      "access to the same place, by step 0 (send), turn 0: one of the two must wait");
	plan = plan_ring3();
	plan->steps[4].flags = ZCOLL_STEP_FIRST;
	wrong(plan, "inputs used twice",
	      "node 0, step 4 (send), turn 0: segment 1: the local inputs have been used");
}

static void test_values(void)
{
	struct zcoll_plan_facts facts;
	struct zcoll_plan *plan;

	facts = right(plan_exchanges(ZCOLL_PEER_ADD, 2, -2), "dissemination among four");
	is(facts.rounds, 2, "two rounds");
	ok(!facts.same_bits, "nodes that reduce in different orders get different bits");
	plan = plan_exchanges(ZCOLL_PEER_XOR, 2, 2);
	plan->flags = ZCOLL_PLAN_ORDERED;
	facts = right(plan, "recursive doubling among four");
	ok(facts.same_bits && facts.ordered, "it reduces in the fixed tree's order");
	has(facts.order, "((0+1)+(2+3))", "which is told");
	plan = plan_exchanges(ZCOLL_PEER_ADD, 2, -2);
	plan->flags = ZCOLL_PLAN_ORDERED;
	wrong(plan, "a broken promise of order",
	      "the plan promises the fixed tree's order, but reduces in this one: ((0+3)+(1+2))");
	wrong(plan_exchanges(ZCOLL_PEER_ADD, 1, -1), "a contribution that comes twice",
	      "node 0, step 4 (fold), turn 0: segment 0 gets the contribution of node 3 a "
	      "second time");
	plan = plan_exchanges(ZCOLL_PEER_ADD, 2, -2);
	plan->steps[3].first = plan->steps[4].first = 4;
	plan->steps[5].after[0].step = 2;
	wrong(plan, "a contribution that does not come",
	      "node 0: segment 0 lacks the contribution of node 1 at the end");
}

/* Who has an output divides an average there: what it sends on as a result must be one */
static void test_final_before_delivered(void)
{
	/* Node 0 folds what node 1 has, keeps that, and returns it */
	static const struct zcoll_step steps[] = {
		{ .kind = ZCOLL_STEP_SEND, .flags = ZCOLL_STEP_FIRST, .first = 1, .count = 1,
		  .peer = ZCOLL_PEER_XOR, .dist = 1, .match = 1 },
		{ .kind = ZCOLL_STEP_FOLD, .flags = ZCOLL_STEP_FIRST, .every = 2, .count = 1,
		  .peer = ZCOLL_PEER_XOR, .dist = 1 },
		{ .kind = ZCOLL_STEP_FINAL, .every = 2, .count = 1, .after = { SLICE(1, 0) } },
		{ .kind = ZCOLL_STEP_SEND, .every = 2, .count = 1, .peer = ZCOLL_PEER_XOR,
		  .dist = 1, .match = 4, .after = { SLICE(2, 0) } },
		{ .kind = ZCOLL_STEP_DELIVER, .first = 1, .count = 1, .peer = ZCOLL_PEER_XOR,
		  .dist = 1, .after = { SLICE(0, 0) } },
	};
	struct zcoll_plan *plan = PLAN(ZCOLL_ALLREDUCE, 2, 1, steps);

	right(plan_copy(plan), "a result that is returned");
	plan->steps[2].after[0].step = 3;
	plan->steps[3].after[0].step = 1;
	wrong(plan, "an accumulation that is returned as a result",
	      "node 0, step 3 (send), turn 0: segment 0 goes to a deliver before it is final here: "
	      "a final, or a fold with result, must come first");
}

static void test_reduce_scatter(void)
{
	struct zcoll_plan_facts facts = right(plan_scatter3(), "a reduce-scatter of three");

	is(facts.acc, 2, "a node without room in its outputs keeps an accumulation");
}

static void test_deadlocks(void)
{
	static const struct zcoll_step barrier[] = {
		{ NOTIFY(1), .match = 1, .after = { ALL(1) } },
		{ NOTIFIED(1) },
	};
	/* Node 0 sends the segment twice; node 1 takes the first only after the second */
	static const struct zcoll_step broadcast[] = {
		{ .kind = ZCOLL_STEP_SEND, .flags = ZCOLL_STEP_INPUT, .every = 2, .count = 1,
		  .peer = ZCOLL_PEER_XOR, .dist = 1, .match = 1, .after = { SLICE(4, 0) } },
		{ .kind = ZCOLL_STEP_DELIVER, .first = 1, .count = 1, .peer = ZCOLL_PEER_XOR,
		  .dist = 1, .after = { SLICE(3, 0) } },
		{ .kind = ZCOLL_STEP_SEND, .flags = ZCOLL_STEP_INPUT, .every = 2, .count = 1,
		  .peer = ZCOLL_PEER_XOR, .dist = 1, .match = 3, .after = { SLICE(0, 0) } },
		{ .kind = ZCOLL_STEP_FOLD, .flags = ZCOLL_STEP_STORE, .first = 1, .count = 1,
		  .peer = ZCOLL_PEER_XOR, .dist = 1, .dst = SCRATCH(0) },
		{ .kind = ZCOLL_STEP_GATHER, .every = 2, .count = 1 },
		{ .kind = ZCOLL_STEP_FINAL, .flags = ZCOLL_STEP_INPUT, .every = 2, .count = 1,
		  .after = { SLICE(0, 0), SLICE(2, 0) } },
	};
	struct zcoll_plan *plan = plan_exchanges(ZCOLL_PEER_XOR, 2, 2);

	wrong(PLAN(ZCOLL_BARRIER, 2, 1, barrier), "nodes that wait for each other",
	      "node 1, step 1 (deliver), turn 0: deadlock: this waits for node 0, step 0 "
	      "(send), turn 0, which waits for this");
	plan->steps[2].after[0].mode = ZCOLL_AFTER_TURN;
	wrong(plan, "nodes that wait for each other's slots",
	      ", which waits for this, if there are more slices than slots");
	plan = PLAN(ZCOLL_BROADCAST, 2, 1, broadcast);
	plan->scratch = 1;
	wrong(plan_copy(plan), "a DELIVER that is granted too late", "(send), turn 0: deadlock");
	memset(plan->steps[1].after, 0, sizeof(plan->steps[1].after));
	right(plan, "the same that is granted at once");
}

static void test_ends(void)
{
	struct zcoll_plan_facts facts;
	struct zcoll_plan *plan;

	facts = right(plan_barrier4(), "a barrier of four");
	ok(facts.agreed && facts.rounds == 2, "it takes two rounds");
	plan = plan_barrier4();
	memset(plan->steps[2].after, 0, sizeof(plan->steps[2].after));
	wrong(plan, "a barrier whose second round does not wait for the first",
	      "node 0: may end before node 1 has begun");
	plan = plan_ring3();
	plan->flags = ZCOLL_PLAN_AGREED;
	wrong(plan, "a ring that promises to agree",
	      "node 0: may end before node 1 has all its results");
	plan = plan_ring3();
	facts = right(plan_copy(plan), "a ring that does not");
	ok(!facts.agreed, "and it does not agree");
	free(plan);
	plan = plan_ring3_agreed();
	facts = right(plan_copy(plan), "a ring with notices at the end");
	ok(facts.agreed, "and it agrees");
	plan->steps[6].after[1].mode = ZCOLL_AFTER_NONE;
	plan->steps[6].after[1].step = 0;
	wrong(plan, "notices that do not wait for all results", "may end before node");
}

int main(void)
{
	test_ring();
	test_pairs();
	test_local_rules();
	test_values();
	test_final_before_delivered();
	test_reduce_scatter();
	test_deadlocks();
	test_ends();
	return tap_end();
}
