// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that knows the key and means harm: node 1 takes part in an operation until it has been
 * granted where to write, and then writes when it must not, or where, or says what is not true.
 *
 * It can break its communicator. It cannot write into memory that was not granted, nor any more
 * when the operation is over; and who it was is told.
 *
 * The peer speaks verbs (peer.h), so without an RDMA device the tests are skipped. siw is left
 * out: a write that is refused there ends the connection without saying why.
 */
#include "net.h"
#include "peer.h"
#include "kselftest_harness.h"

#define NODES	2
#define COUNT	(1 << 16)
#define BYTES	(COUNT * sizeof(int32_t))
#define SLICE	(1 << 16)
#define PAGE	4096

/* The user's memory: pages before and after the buffer, which begins and ends within one */
#define OUT_AT	(2 * PAGE + 128)
#define ALL	(OUT_AT + BYTES + 2 * PAGE + PAGE - 128)
#define MARK	0x5a

/**
 * struct side - node 0, and its peer
 * @zn: both, of which only node 0 is real
 * @address: of both
 * @zp: the peer
 * @match: by step of the plan that was loaded last, which step receives it
 * @cmd: of the operation
 * @call: likewise
 * @grant: the first one that node 0 has given in it
 * @memory: ALL bytes, whole pages
 * @in: inputs, BYTES of 0
 */
struct side {
	struct zn zn;
	uint8_t address[NODES][ZCOLL_ADDRESS_MAX];
	struct zp zp;
	uint16_t match[ZCOLL_PLAN_MAX_STEPS];
	struct zcoll_cmd cmd;
	struct zt_call call;
	struct zp_grant grant;
	uint8_t *memory;
	int32_t *in;
};

/* Node 0 joins, and its peer connects. Return: NULL, or why the tests are to be skipped. */
static const char *side_open(struct side *side, struct zt *zt)
{
	static const unsigned int ranks[NODES] = { 1, 1 };
	const char *kind = getenv("ZCOLL_RDMA");
	struct zh_hello hello;
	unsigned int heartbeat;

	zn_init(&side->zn, zt, NODES, ranks);
	side->zn.fabric = "rdma";
	side->memory = zt_pages(ALL);
	side->in = calloc(1, BYTES);
	memset(side->memory, MARK, ALL);
	/* The peer has better things to do than to say that it lives */
	heartbeat = zt_parameter("heartbeat_ms", 0);
	side->zn.ep[0] = zn_join(&side->zn, 0);
	zt_parameter("heartbeat_ms", heartbeat);
	if (side->zn.ep[0] == -ENODEV || (kind && !strcmp(kind, "siw")))
		return "no InfiniBand or RoCE device";
	if (zn_address(side->zn.ep[0], side->address[0]) || zh_hello(&hello, side->zn.key))
		return "no hmac(sha256) for user space";
	if (zp_connect(&side->zp, side->address[0], &hello, side->zn.key))
		return "user space has no queue pair here";
	return NULL;
}

/* They know each other then. Return: 0, or what went wrong. */
static int side_meet(struct side *side)
{
	return zp_prove(&side->zp) ?:
	       zp_listen(&side->zp, side->address[0], side->address[1]) ?:
	       zn_peers(&side->zn, side->zn.ep[0], side->address);
}

static void side_close(struct side *side)
{
	zp_close(&side->zp);
	free(side->in);
	if (side->memory)
		munmap(side->memory, ALL);
}

static int load(struct side *side, const char *algo, unsigned int collective)
{
	struct zcoll_plan_spec spec = {
		.size = sizeof(spec), .algo = algo, .collective = collective, .nodes = NODES,
	};
	struct zcoll_plan *plan;
	int ret;

	if (zcoll_plan_make(&spec, &plan, side->zn.text, sizeof(side->zn.text)))
		return -EINVAL;
	for (uint32_t i = 0; i < plan->nsteps; i++)
		side->match[i] = plan->steps[i].match;
	ret = zn_load(&side->zn, side->zn.ep[0], plan, &side->zn.plan[0]);
	zcoll_plan_free(plan);
	return ret;
}

static int start(struct side *side, unsigned int collective)
{
	return zt_start(&side->call, side->zn.ep[0], ZCOLL_IOC_OP(collective), &side->cmd);
}

/* Node 0 is to receive COUNT elements from node 1, the root, where they belong */
static int begin_broadcast(struct side *side, uint64_t seq)
{
	void *out = side->memory + OUT_AT;

	side->cmd = zn_cmd(&side->zn, 0, seq, ZCOLL_INT32, 0, out, out, COUNT);
	side->cmd.root = 1;
	return start(side, ZCOLL_BROADCAST);
}

/* Node 0 is to fold its half of @count elements with that of node 1 */
static int begin_allreduce(struct side *side, uint64_t seq, uint64_t count)
{
	side->cmd = zn_cmd(&side->zn, 0, seq, ZCOLL_INT32, ZCOLL_SUM, side->in,
			   side->memory + OUT_AT, count);
	return start(side, ZCOLL_ALLREDUCE);
}

/* It has been granted something in operation 0. Return: 0, or -1. */
static int granted(struct side *side)
{
	return zp_accept(&side->zp) ?: zp_granted(&side->zp, &side->grant);
}

/* Say that a unit is there. Return: how that ended. */
static int say_data(struct side *side, uint64_t unit)
{
	const struct zp_header data = {
		.type = ZP_DATA, .step = side->match[side->grant.header.step], .unit = unit,
		.seq = side->grant.header.seq, .fingerprint = side->grant.header.fingerprint,
		.credits = side->zp.taken,
	};

	return zp_send(&side->zp, IBV_WR_SEND, &data, sizeof(data));
}

/* Write a unit to where it was granted, and say so */
static int deliver(struct side *side, uint64_t unit)
{
	return zp_write_region(&side->zp, &side->grant, side->grant.landing.origin + unit * SLICE,
			       SLICE) ?: say_data(side, unit);
}

/* The first byte of the user's memory, from @from to @to, that is not @value; @to: none */
static uint64_t other_than(const struct side *side, uint8_t value, uint64_t from, uint64_t to)
{
	while (from < to && side->memory[from] == value)
		from++;
	return from;
}

/* --- writes -------------------------------------------------------------- */

FIXTURE(hostile) {
	struct zt zt;
	struct side a, b;
};

FIXTURE_SETUP(hostile)
{
	const char *none;

	ZT_SETUP(self);
	none = side_open(&self->a, &self->zt);
	if (none)
		ZT_SETUP_SKIP("%s", none);
	ASSERT_EQ(0, side_meet(&self->a));
}

FIXTURE_TEARDOWN(hostile)
{
	side_close(&self->a);
	side_close(&self->b);
	ZT_TEARDOWN(self);
}

#define BEGIN_BROADCAST() do {							\
	ASSERT_EQ(0, load(&self->a, "binomial", ZCOLL_BROADCAST))		\
		TH_LOG("%s", self->a.zn.text);					\
	ASSERT_EQ(0, begin_broadcast(&self->a, 0));				\
	ASSERT_EQ(0, granted(&self->a))						\
		TH_LOG("%s", zn_text(&self->a.zn, self->a.zn.ep[0]));		\
	ASSERT_EQ(ZP_USER, self->a.grant.landing.mode);				\
} while (0)

/* All that was granted, as it should be */
#define DELIVER_ALL() do {							\
	for (uint64_t __unit = 0; __unit < BYTES / SLICE; __unit++)		\
		ASSERT_EQ(0, deliver(&self->a, __unit));			\
	ASSERT_EQ(0, zt_finish(&self->a.call, ZT_LONG_MS))			\
		TH_LOG("%s", zn_text(&self->a.zn, self->a.zn.ep[0]));		\
} while (0)

/* The write is refused, and the user's memory is as it was */
#define EXPECT_REFUSED(write) do {						\
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, write);				\
	zt_sleep_ms(ZT_QUIET_MS);						\
	EXPECT_EQ(ALL, other_than(&self->a, MARK, 0, ALL));			\
} while (0)

/* What the following tests do differently */
TEST_F(hostile, writes_what_was_granted)
{
	BEGIN_BROADCAST();
	DELIVER_ALL();
	EXPECT_EQ(OUT_AT, other_than(&self->a, MARK, 0, ALL));
	EXPECT_EQ(OUT_AT + BYTES, other_than(&self->a, 0, OUT_AT, ALL));
	EXPECT_EQ(ALL, other_than(&self->a, MARK, OUT_AT + BYTES, ALL));
	EXPECT_EQ(0, zt_revoked(self->a.zn.ep[0]));
}

/* Messages may come twice where the fabric has several ways: the second one says nothing */
TEST_F(hostile, says_each_unit_twice)
{
	BEGIN_BROADCAST();
	for (uint64_t unit = 0; unit < BYTES / SLICE - 1; unit++) {
		ASSERT_EQ(0, deliver(&self->a, unit));
		ASSERT_EQ(0, say_data(&self->a, unit));
	}
	ASSERT_EQ(0, say_data(&self->a, 0));
	EXPECT_EQ(-ETIME, zt_finish(&self->a.call, ZT_QUIET_MS));
	ASSERT_EQ(0, deliver(&self->a, BYTES / SLICE - 1));
	EXPECT_EQ(0, zt_finish(&self->a.call, ZT_LONG_MS));
	EXPECT_EQ(OUT_AT + BYTES, other_than(&self->a, 0, OUT_AT, ALL));
	EXPECT_EQ(0, zt_revoked(self->a.zn.ep[0]));
}

TEST_F(hostile, writes_after_the_operation_has_failed)
{
	BEGIN_BROADCAST();
	ASSERT_EQ(0, zt_abort(self->a.zn.ep[0]));
	ASSERT_EQ(-ECANCELED, zt_finish(&self->a.call, ZT_LONG_MS));
	EXPECT_REFUSED(zp_write_region(&self->a.zp, &self->a.grant, OUT_AT % PAGE, SLICE));
}

TEST_F(hostile, writes_after_the_operation_has_ended)
{
	BEGIN_BROADCAST();
	DELIVER_ALL();
	memset(self->a.memory, MARK, ALL);
	EXPECT_REFUSED(zp_write_region(&self->a.zp, &self->a.grant, OUT_AT % PAGE, SLICE));
}

/* A registered buffer stays open until then: that is what unregistering it is for */
TEST_F(hostile, writes_after_the_buffer_is_unregistered)
{
	uint32_t handle;

	ASSERT_EQ(0, load(&self->a, "binomial", ZCOLL_BROADCAST));
	ASSERT_EQ(0, zt_register(self->a.zn.ep[0], self->a.memory, ALL, &handle));
	self->a.cmd = zn_cmd(&self->a.zn, 0, 0, ZCOLL_INT32, 0, NULL, (void *)OUT_AT, COUNT);
	self->a.cmd.send = OUT_AT;
	self->a.cmd.send_buf = handle;
	self->a.cmd.recv_buf = handle;
	self->a.cmd.root = 1;
	ASSERT_EQ(0, start(&self->a, ZCOLL_BROADCAST));
	ASSERT_EQ(0, granted(&self->a));
	EXPECT_EQ(OUT_AT, self->a.grant.landing.origin);
	DELIVER_ALL();
	ASSERT_EQ(0, zp_write_region(&self->a.zp, &self->a.grant, OUT_AT, SLICE));
	ASSERT_EQ(0, zt_unregister(self->a.zn.ep[0], handle));
	memset(self->a.memory, MARK, ALL);
	EXPECT_REFUSED(zp_write_region(&self->a.zp, &self->a.grant, OUT_AT, SLICE));
}

/* A key is of whole pages (Documentation/protocol.md, "Security"), and of no more */
TEST_F(hostile, writes_beside_its_landing_but_in_its_pages)
{
	BEGIN_BROADCAST();
	EXPECT_EQ(0, zp_write_region(&self->a.zp, &self->a.grant, 0, 1));
	EXPECT_EQ(2 * PAGE, other_than(&self->a, MARK, 0, ALL));
	EXPECT_EQ(ALL, other_than(&self->a, MARK, 2 * PAGE + 1, ALL));
	EXPECT_EQ((BYTES + OUT_AT % PAGE + PAGE - 1) / PAGE * PAGE, self->a.grant.bytes);
}

TEST_F(hostile, writes_behind_its_pages)
{
	BEGIN_BROADCAST();
	EXPECT_REFUSED(zp_write_region(&self->a.zp, &self->a.grant, self->a.grant.bytes, 1));
}

TEST_F(hostile, writes_across_the_end_of_its_pages)
{
	BEGIN_BROADCAST();
	EXPECT_REFUSED(zp_write_region(&self->a.zp, &self->a.grant, self->a.grant.bytes - 8, 16));
}

TEST_F(hostile, writes_before_its_pages)
{
	uint64_t to;
	uint32_t key;

	BEGIN_BROADCAST();
	to = zp_address(&self->a.grant, 0, &key);
	EXPECT_REFUSED(zp_write(&self->a.zp, 0, 16, to - 8, key));
}

TEST_F(hostile, writes_with_a_key_that_it_was_not_told)
{
	uint64_t to;
	uint32_t key;

	BEGIN_BROADCAST();
	to = zp_address(&self->a.grant, 0, &key);
	EXPECT_REFUSED(zp_write(&self->a.zp, 0, 16, to, key ^ 1));
}

/* Slots are memory of the kernel, which keeps it for the next operation; not after a failure */
TEST_F(hostile, writes_to_slots_after_failure)
{
	ASSERT_EQ(0, load(&self->a, "ring", ZCOLL_ALLREDUCE));
	ASSERT_EQ(0, begin_allreduce(&self->a, 0, COUNT));
	ASSERT_EQ(0, granted(&self->a));
	EXPECT_EQ(ZP_SLOTS, self->a.grant.landing.mode);
	ASSERT_EQ(0, zp_write_region(&self->a.zp, &self->a.grant, 0, SLICE));
	ASSERT_EQ(0, zt_abort(self->a.zn.ep[0]));
	ASSERT_EQ(-ECANCELED, zt_finish(&self->a.call, ZT_LONG_MS));
	EXPECT_REFUSED(zp_write_region(&self->a.zp, &self->a.grant, 0, SLICE));
}

/* Who takes part in one communicator has no power over another, though he know its keys */
TEST_F(hostile, writes_into_another_communicator)
{
	BEGIN_BROADCAST();
	ASSERT_EQ(NULL, side_open(&self->b, &self->zt));
	ASSERT_EQ(0, zp_prove(&self->b.zp));
	EXPECT_REFUSED(zp_write_region(&self->b.zp, &self->a.grant, OUT_AT % PAGE, SLICE));
	EXPECT_EQ(0, zt_revoked(self->a.zn.ep[0]));
	DELIVER_ALL();
}

/* --- words --------------------------------------------------------------- */

#define NAMES(text, word) do {							\
	EXPECT_NE(NULL, strstr(text, "node 1")) TH_LOG("%s", text);		\
	EXPECT_NE(NULL, strstr(text, word)) TH_LOG("%s", text);			\
} while (0)

#define EXPECT_BROKEN(err, word) do {						\
	EXPECT_EQ(err, zt_finish(&self->a.call, ZT_LONG_MS));			\
	EXPECT_EQ(err, zt_revoked(self->a.zn.ep[0]));				\
	NAMES(zn_text(&self->a.zn, self->a.zn.ep[0]), word);			\
} while (0)

#define BEGIN_ALLREDUCE() do {							\
	ASSERT_EQ(0, load(&self->a, "ring", ZCOLL_ALLREDUCE))			\
		TH_LOG("%s", self->a.zn.text);					\
	ASSERT_EQ(0, begin_allreduce(&self->a, 0, COUNT));			\
	ASSERT_EQ(0, granted(&self->a))						\
		TH_LOG("%s", zn_text(&self->a.zn, self->a.zn.ep[0]));		\
} while (0)

/* DATA of 100 elements: a header and at most 200 bytes. The ring's step 1 receives them. */
static int say_inline(struct side *side, uint64_t seq, uint64_t fingerprint, uint16_t bytes)
{
	struct {
		struct zp_header header;
		uint8_t payload[200];
	} data = {
		.header = {
			.type = ZP_DATA, .length = bytes, .step = 1, .seq = seq,
			.fingerprint = fingerprint, .credits = side->zp.taken,
		},
	};

	return zp_send(&side->zp, IBV_WR_SEND, &data, sizeof(data.header) + bytes);
}

/* The first message of node 0 that is DATA */
static const struct zp_header *take_data(struct side *side)
{
	const struct zp_header *header;

	do
		header = zp_take(&side->zp, ZT_LONG_MS);
	while (header && header->type != ZP_DATA);
	return header;
}

TEST_F(hostile, sends_less_than_a_unit_in_its_message)
{
	const struct zp_header *data;

	ASSERT_EQ(0, load(&self->a, "ring", ZCOLL_ALLREDUCE));
	ASSERT_EQ(0, begin_allreduce(&self->a, 0, 100));
	ASSERT_EQ(0, zp_accept(&self->a.zp));
	data = take_data(&self->a);
	ASSERT_NE(NULL, data);
	ASSERT_EQ(0, say_inline(&self->a, 0, data->fingerprint, 196));
	EXPECT_BROKEN(-EPROTO, "196 bytes in its message instead of 200");
	EXPECT_EQ(ALL, other_than(&self->a, MARK, OUT_AT + 400, ALL));
}

/* It waits for the operation to be called, and is looked at only then */
TEST_F(hostile, sends_less_than_a_unit_before_it_is_wanted)
{
	const struct zp_header *data;
	struct zcoll_cmd next;

	ASSERT_EQ(0, load(&self->a, "ring", ZCOLL_ALLREDUCE));
	ASSERT_EQ(0, begin_allreduce(&self->a, 0, 100));
	ASSERT_EQ(0, zp_accept(&self->a.zp));
	data = take_data(&self->a);
	ASSERT_NE(NULL, data);
	ASSERT_EQ(0, say_inline(&self->a, 1, data->fingerprint, 4));
	zt_sleep_ms(ZT_QUIET_MS);
	ASSERT_EQ(0, zt_revoked(self->a.zn.ep[0]));
	next = zn_cmd(&self->a.zn, 0, 1, ZCOLL_INT32, ZCOLL_SUM, self->a.in,
		      self->a.memory + OUT_AT + 400, 100);
	EXPECT_EQ(-EPROTO, zt_allreduce(self->a.zn.ep[0], &next));
	EXPECT_BROKEN(-EPROTO, "4 bytes in its message instead of 200");
}

/* Longer than any message: the queue pair sees that */
TEST_F(hostile, sends_more_than_an_inbox)
{
	static const uint8_t zeros[ZP_INBOX_BYTES];

	BEGIN_BROADCAST();
	zp_send(&self->a.zp, IBV_WR_SEND, zeros, sizeof(zeros));
	EXPECT_BROKEN(-EHOSTDOWN, "node 1");
	EXPECT_EQ(ALL, other_than(&self->a, MARK, 0, ALL));
}

/* A text for people is nothing that moves their cursor */
TEST_F(hostile, aborts_with_a_text_that_is_none)
{
	struct {
		struct zp_header header;
		char text[16];
	} bad = {
		.header = { .type = ZP_ABORT, .length = 16, .status = -EIO },
		.text = "node 1\033[2J\n\x80\xff%s",
	};
	const char *text;

	BEGIN_BROADCAST();
	bad.header.credits = self->a.zp.taken;
	ASSERT_EQ(0, zp_send(&self->a.zp, IBV_WR_SEND, &bad, sizeof(bad)));
	EXPECT_EQ(-EIO, zt_finish(&self->a.call, ZT_LONG_MS));
	text = zn_text(&self->a.zn, self->a.zn.ep[0]);
	EXPECT_EQ(0, strncmp(text, "node 1?[2J???%s", 15)) TH_LOG("%s", text);
}

/* --- lies ---------------------------------------------------------------- */

FIXTURE(lie) {
	struct zt zt;
	struct side a;
};

/**
 * FIXTURE_VARIANT(lie) - a message that no node sends that keeps the rules
 * @header: what it says; sequence number 0 is that of the operation
 * @landing: with ZP_HAS_LANDING
 * @desc: with ZP_HAS_DESC
 * @keys: of a KEYS
 * @bytes: how many it has, if not as many as it says
 * @strange: it has the header's fingerprint, and not the operation's
 * @told: keys of region 5, of a page, come before
 * @error: what the communicator ends with, if not -EPROTO
 * @says: is in its text, beside the node
 */
FIXTURE_VARIANT(lie) {
	struct zp_header header;
	struct zp_landing landing;
	struct zp_desc desc;
	struct zp_keys keys;
	uint32_t bytes;
	bool strange;
	bool told;
	int error;
	const char *says;
};

FIXTURE_SETUP(lie)
{
	const char *none;

	ZT_SETUP(self);
	none = side_open(&self->a, &self->zt);
	if (none)
		ZT_SETUP_SKIP("%s", none);
	ASSERT_EQ(0, side_meet(&self->a));
	BEGIN_ALLREDUCE();
}

FIXTURE_TEARDOWN(lie)
{
	side_close(&self->a);
	ZT_TEARDOWN(self);
}

#define LIE(name, text, ...) \
	FIXTURE_VARIANT_ADD(lie, name) { .says = text, __VA_ARGS__ }

/* The operation is a ring's all-reduce: step 0 sends 2 units, 1 folds, 2 sends, 3 delivers */
#define GRANT(...)	.header = { .type = ZP_GRANT, .unit = 2, __VA_ARGS__ }
#define LANDING(...)	.landing = { .mode = ZP_SLOTS, .stride = SLICE, __VA_ARGS__ }
#define DATA(...)	.header = { .type = ZP_DATA, __VA_ARGS__ }
#define KEYS(...) \
	.header = { .type = ZP_KEYS, .length = sizeof(struct zp_keys) + sizeof(struct zp_key) }, \
	.keys = { __VA_ARGS__ }

#define UNFIT	"does not fit the operations"
#define FIELD	"a field that it must not have"

LIE(grant_of_an_unknown_region, "untold",
	GRANT(.flags = ZP_HAS_LANDING), LANDING(.region = 77));
LIE(grant_of_more_than_a_region, "untold", .told = true,
	GRANT(.flags = ZP_HAS_LANDING), LANDING(.region = 5));
LIE(grant_behind_a_region, "untold", .told = true,
	GRANT(.flags = ZP_HAS_LANDING), LANDING(.region = 5, .origin = 1ULL << 62));
LIE(grant_of_a_negative_place, "impossible place", .told = true,
	GRANT(.flags = ZP_HAS_LANDING), LANDING(.region = 5, .origin = -8ULL));
LIE(grant_in_no_mode, "impossible place",
	GRANT(.flags = ZP_HAS_LANDING), .landing = { .mode = 0 });
LIE(grant_in_an_unknown_mode, "impossible place",
	GRANT(.flags = ZP_HAS_LANDING), .landing = { .mode = 4 });
LIE(grant_of_nowhere, "without saying where to write", GRANT());
LIE(grant_of_too_many_units, UNFIT, .header = { .type = ZP_GRANT, .unit = 1000 });
LIE(grant_of_the_last_unit_there_could_be, UNFIT, .header = { .type = ZP_GRANT, .unit = -1ULL });
LIE(grant_of_a_fold, UNFIT, GRANT(.step = 1));
LIE(grant_of_a_step_that_the_plan_lacks, UNFIT, GRANT(.step = 200));
LIE(grant_of_a_step_that_no_plan_has, "a step that no plan has", GRANT(.step = -1U));
LIE(grant_of_an_open_step, UNFIT, GRANT(.open = 5));
LIE(data_not_granted, UNFIT, DATA(.step = 3));
LIE(data_beyond_the_grant, UNFIT, DATA(.step = 1, .unit = 2));
LIE(data_of_the_last_unit_there_could_be, UNFIT, DATA(.step = 1, .unit = -1ULL));
LIE(data_of_a_send, UNFIT, DATA(.step = 0));
LIE(data_in_a_message, "which is to be written", DATA(.step = 1, .length = 64));
LIE(data_of_a_far_operation, UNFIT, DATA(.step = 1, .seq = 1ULL << 40));
LIE(data_of_something_else, UNFIT, DATA(.step = 1, .fingerprint = 4711), .strange = true);
LIE(described_by_no_rank, "contradicts itself", DATA(.step = 1, .flags = ZP_HAS_DESC),
	.desc = { .rank = 99 });
LIE(described_as_something_else, "differ in", DATA(.step = 1, .flags = ZP_HAS_DESC),
	.desc = { .collective = ZCOLL_BROADCAST, .rank = 1 });
LIE(unknown_type, "unknown type", .header = { .type = 9 });
LIE(proof_again, "unknown type", .header = { .type = ZP_PROOF });
LIE(unknown_flag, FIELD, .header = { .type = ZP_ALIVE, .flags = 0x80 });
LIE(reserved_field, FIELD, .header = { .type = ZP_ALIVE, .reserved = 1 });
LIE(heartbeat_of_a_step, FIELD, .header = { .type = ZP_ALIVE, .step = 1 });
LIE(shorter_than_a_header, "shorter than its header", .header = { .type = ZP_ALIVE },
	.bytes = 8);
LIE(shorter_than_it_says, "longer or shorter than it says", .bytes = sizeof(struct zp_header),
	DATA(.step = 1, .length = 64));
LIE(longer_than_it_says, "longer or shorter than it says", DATA(.step = 1),
	.bytes = sizeof(struct zp_header) + 8);
LIE(credits_for_what_was_not_sent, "more messages than have been sent",
	.header = { .type = ZP_CREDIT, .credits = 1000 });
LIE(keys_of_no_chunk, "contradicts itself",
	KEYS(.chunks = 1, .chunk_pages = 1, .bytes = 4096, .rails = 1));
LIE(keys_of_a_part_that_is_not_there, "contradicts itself",
	KEYS(.first = 1, .count = 1, .chunks = 1, .chunk_pages = 1, .bytes = 4096, .rails = 1));
LIE(keys_of_other_rails, "contradicts itself",
	KEYS(.count = 1, .chunks = 1, .chunk_pages = 1, .bytes = 4096, .rails = 2));
LIE(keys_of_more_bytes_than_chunks, "contradicts itself",
	KEYS(.count = 1, .chunks = 1, .chunk_pages = 1, .bytes = -1ULL, .rails = 1));
LIE(keys_for_all_memory, "keys_mib", .error = -ENOBUFS,
	KEYS(.count = 1, .chunks = 1U << 31, .chunk_pages = 1, .bytes = 1ULL << 43, .rails = 1));
LIE(keys_of_another_size, "contradicts itself", .told = true,
	KEYS(.region = 5, .count = 1, .chunks = 1, .chunk_pages = 1, .bytes = 8, .rails = 1));
LIE(bye_after_what_has_not_come, "after messages that have not come",
	.header = { .type = ZP_BYE, .unit = 1000 });
LIE(abort_without_error, "no error number", .header = { .type = ZP_ABORT });
LIE(abort_with_success, "no error number", .header = { .type = ZP_ABORT, .status = 5 });
LIE(abort_with_an_unknown_error, "no error number",
	.header = { .type = ZP_ABORT, .status = -4000 });

/* Keys of region 5, which is not there */
static int tell_keys(struct side *side)
{
	const struct {
		struct zp_header header;
		struct zp_keys keys;
		struct zp_key key;
	} told = {
		.header = {
			.type = ZP_KEYS, .length = sizeof(struct zp_keys) + sizeof(struct zp_key),
		},
		.keys = {
			.region = 5, .count = 1, .chunks = 1, .chunk_pages = 1, .bytes = 4096,
			.rails = 1,
		},
	};

	return zp_send(&side->zp, IBV_WR_SEND, &told, sizeof(told));
}

/* Append, and move on */
static void put(uint8_t **at, const void *what, size_t bytes)
{
	memcpy(*at, what, bytes);
	*at += bytes;
}

/* The message of a lie, as bytes. Return: their number. */
static uint32_t lie_bytes(const FIXTURE_VARIANT(lie) *lie, const struct side *side, uint8_t *to)
{
	struct zp_header header = lie->header;
	uint8_t *at = to;

	if ((header.type == ZP_DATA || header.type == ZP_GRANT) && !lie->strange)
		header.fingerprint = side->grant.header.fingerprint;
	header.credits = header.credits ?: side->zp.taken;
	put(&at, &header, sizeof(header));
	if (header.flags & ZP_HAS_DESC)
		put(&at, &lie->desc, sizeof(lie->desc));
	if (header.flags & ZP_HAS_LANDING)
		put(&at, &lie->landing, sizeof(lie->landing));
	if (header.type == ZP_KEYS)
		memcpy(at, &lie->keys, sizeof(lie->keys));
	return lie->bytes ?: at + header.length - to;
}

TEST_F_TIMEOUT(lie, is_told, 120)
{
	uint8_t message[ZP_INBOX_BYTES] = {};
	uint32_t bytes = lie_bytes(variant, &self->a, message);

	if (variant->told)
		ASSERT_EQ(0, tell_keys(&self->a));
	zp_send(&self->a.zp, IBV_WR_SEND, message, bytes);
	EXPECT_BROKEN(variant->error ?: -EPROTO, variant->says);
}

TEST_HARNESS_MAIN
