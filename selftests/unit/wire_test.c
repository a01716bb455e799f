// SPDX-License-Identifier: GPL-2.0
/*
 * The parser of what comes from other nodes (kmod/net/parse.c): each field out of its range is
 * refused, what each type of message may have is taken in as it was meant, and no bytes at all
 * lead outside of the message, which sanitizers see (this program is built with them).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/zcoll.h>
#include "net/parse.h"
#include "tap.h"

#define ROUNDS	2000000

/**
 * struct type - a type of message, as Documentation/protocol.md has it
 * @name: its name there
 * @type: enum zc_msg_type or enum zw_type
 * @may: ZW_*
 * @must: ZW_*
 * @payload: bytes of payload in the example here
 * @step: it has @step and @open, and so on
 * @status: see @step
 * @seq: see @step
 * @unit: see @step
 * @print: see @step
 * @retired: see @step
 */
struct type {
	const char *name;
	u8 type, may, must;
	u16 payload;
	bool step, status, seq, unit, print, retired;
};

#define KEYS	3
#define RAILS	2
#define KEYS_BYTES (sizeof(struct zw_keys) + KEYS * RAILS * sizeof(struct zw_key))

static const struct type types[] = {
	{ "DATA", ZC_MSG_DATA, ZW_DESC, 0, 100, 1, 0, 1, 1, 1, 1 },
	{ "GRANT", ZC_MSG_GRANT, ZW_DESC | ZW_LANDING, 0, 0, 1, 0, 1, 1, 1, 1 },
	{ "RETIRED", ZC_MSG_RETIRED, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
	{ "ALIVE", ZC_MSG_ALIVE, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
	{ "ABORT", ZC_MSG_ABORT, 0, 0, 12, 0, 1, 1, 1, 0, 1 },
	{ "ASK", ZC_MSG_ASK, 0, 0, 0, 0, 1, 1, 1, 0, 1 },
	{ "ANSWER", ZC_MSG_ANSWER, 0, 0, 0, 0, 1, 1, 1, 0, 1 },
	{ "DECISION", ZC_MSG_DECISION, 0, 0, 0, 0, 1, 1, 1, 0, 1 },
	{ "KEYS", ZW_KEYS, 0, 0, KEYS_BYTES, 0, 0, 0, 0, 0, 0 },
	{ "FORGET", ZW_FORGET, 0, 0, 0, 0, 0, 0, 1, 0, 0 },
	{ "CREDIT", ZW_CREDIT, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
	{ "CALL", ZW_CALL, ZW_DESC, ZW_DESC, 0, 0, 0, 1, 0, 0, 1 },
	{ "BYE", ZW_BYE, 0, 0, 0, 0, 0, 0, 1, 0, 1 },
};

#define NTYPES (sizeof(types) / sizeof(types[0]))

/* ---- messages ---- */

/**
 * struct image - bytes of a message, which end where memory that may be touched does
 * @bytes: malloc'ed
 * @length: as many
 */
struct image {
	u8 *bytes;
	u32 length;
};

static struct image image_new(const void *bytes, u32 length)
{
	struct image image = { malloc(length ?: 1), length };

	memcpy(image.bytes, bytes, length);
	return image;
}

static struct zw_header *header(u8 *bytes)
{
	return (struct zw_header *)bytes;
}

/* The example of a type, with parts @flags. Return: its bytes. */
static u32 compose(const struct type *type, u8 flags, u8 *bytes)
{
	u32 at = sizeof(struct zw_header), i;

	*header(bytes) = (struct zw_header) {
		.type = type->type,
		.flags = flags,
		.length = cpu_to_le16(type->payload),
		.step = cpu_to_le32(type->step ? 255 : 0),
		.open = cpu_to_le32(type->step ? 7 : 0),
		.status = cpu_to_le32(type->status ? (u32)-ECANCELED : 0),
		.credits = cpu_to_le32(0x12345678),
		.seq = cpu_to_le64(type->seq ? 0x1122334455667788 : 0),
		.unit = cpu_to_le64(type->unit ? 5 : 0),
		.fingerprint = cpu_to_le64(type->print ? 0x99aabbccddeeff00 : 0),
		.retired = cpu_to_le64(type->retired ? 0x1122334455667700 : 0),
	};
	if (flags & ZW_DESC) {
		*(struct zw_desc *)(bytes + at) = (struct zw_desc) {
			.collective = cpu_to_le16(3), .dtype = 4, .op = 5,
			.flags = cpu_to_le32(6), .root = cpu_to_le32(7), .rank = cpu_to_le32(8),
			.count = cpu_to_le64(9), .plan = cpu_to_le64(10),
		};
		at += sizeof(struct zw_desc);
	}
	if (flags & ZW_LANDING) {
		*(struct zw_landing *)(bytes + at) = (struct zw_landing) {
			.region = cpu_to_le64(11), .origin = cpu_to_le64(12),
			.stride = cpu_to_le32(13), .mode = ZW_LINEAR,
		};
		at += sizeof(struct zw_landing);
	}
	for (i = 0; i < type->payload; i++)
		bytes[at + i] = 'a' + i % 26;
	return at + type->payload;
}

/* Parse a copy of so many bytes. Return: what is wrong with it, or NULL. */
static const char *parse(const u8 *bytes, u32 length, struct zc_message *m)
{
	struct image image = image_new(bytes, length);
	const char *wrong = zc_message_parse(image.bytes, length, m);

	if (!wrong)
		m->payload = bytes + (m->payload - image.bytes);
	free(image.bytes);
	return wrong;
}

static bool refused(const u8 *bytes, u32 length)
{
	struct zc_message m;

	return parse(bytes, length, &m);
}

/* ---- each type ---- */

static void test_round_trip(const struct type *type, u8 flags)
{
	u8 bytes[ZW_MESSAGE_MAX] __attribute__((aligned(8)));
	u32 length = compose(type, flags, bytes);
	struct zc_message m;
	const char *wrong = parse(bytes, length, &m);
	bool same;

	if (!ok(!wrong, "%s with parts %u is taken", type->name, flags)) {
		printf("# %s\n", wrong);
		return;
	}
	same = m.msg.type == type->type && m.flags == flags && m.credits == 0x12345678 &&
	       m.msg.step == (type->step ? 255 : 0) && m.msg.open == (type->step ? 7 : 0) &&
	       m.msg.status == (type->status ? -ECANCELED : 0) &&
	       m.msg.seq == (type->seq ? 0x1122334455667788 : 0) &&
	       m.msg.unit == (type->unit ? 5 : 0) &&
	       m.msg.fingerprint == (type->print ? 0x99aabbccddeeff00 : 0) &&
	       m.msg.retired == (type->retired ? 0x1122334455667700 : 0);
	if (flags & ZW_DESC)
		same &= m.desc.collective == 3 && m.desc.dtype == 4 && m.desc.op == 5 &&
			m.desc.flags == 6 && m.desc.root == 7 && m.desc.rank == 8 &&
			m.desc.count == 9 && m.desc.plan == 10;
	if (flags & ZW_LANDING)
		same &= m.landing.region == 11 && m.landing.origin == 12 &&
			m.landing.stride == 13 && m.landing.mode == ZW_LINEAR &&
			m.landing.seq == m.msg.seq && m.landing.step == 255 &&
			m.landing.unit == 5;
	ok(same && m.length == type->payload && m.payload + m.length == bytes + length,
	   "%s with parts %u says what was meant", type->name, flags);
}

static void test_lengths(const struct type *type)
{
	u8 bytes[ZW_MESSAGE_MAX + 64] __attribute__((aligned(8))) = { 0 };
	u32 length = compose(type, type->may, bytes), n, taken = 0;

	for (n = 0; n < sizeof(bytes); n++)
		taken += n != length && !refused(bytes, n);
	is(taken, 0, "%s of any other length is refused", type->name);
	header(bytes)->length = cpu_to_le16(0xffff);
	ok(refused(bytes, length) && refused(bytes, sizeof(bytes)),
	   "%s that says it is longer than any message is refused", type->name);
}

static void test_parts(const struct type *type)
{
	u8 bytes[ZW_MESSAGE_MAX] __attribute__((aligned(8)));
	u32 flags, taken = 0;

	for (flags = 0; flags < 256; flags++) {
		u32 length = compose(type, flags, bytes);
		bool allowed = !(flags & ~type->may) && !(type->must & ~flags);

		taken += refused(bytes, length) == allowed;
	}
	is(taken, 0, "%s has only the parts it may, and all that it must", type->name);
}

/* A number that this type does not have: any bit of it is refused */
static bool number_is_free(const struct type *type, size_t at, size_t n, bool has)
{
	u8 bytes[ZW_MESSAGE_MAX] __attribute__((aligned(8)));
	bool good = true;
	size_t i;

	for (i = 0; i < 8 * n && !has; i++) {
		u32 length = compose(type, type->may, bytes);

		bytes[at + i / 8] ^= 1 << i % 8;
		good &= refused(bytes, length);
	}
	return good;
}

#define FREE(field, has) number_is_free(type, offsetof(struct zw_header, field), \
					sizeof(((struct zw_header *)NULL)->field), has)

static void test_numbers(const struct type *type)
{
	ok(FREE(step, type->step) && FREE(open, type->step) && FREE(status, type->status) &&
	   FREE(__reserved, false) && FREE(seq, type->seq) && FREE(unit, type->unit) &&
	   FREE(fingerprint, type->print) && FREE(retired, type->retired),
	   "%s has no numbers but its own", type->name);
}

/* ---- ranges ---- */

static void test_unknown_types(void)
{
	u8 bytes[ZW_MESSAGE_MAX] __attribute__((aligned(8)));
	u32 t, taken = 0, known = 0;
	size_t i;

	for (t = 0; t < 256; t++) {
		struct type type = { .type = t };
		bool is_known = false;

		for (i = 0; i < NTYPES; i++)
			is_known |= types[i].type == t;
		known += is_known;
		taken += !is_known && !refused(bytes, compose(&type, 0, bytes));
	}
	ok(known == NTYPES && !taken, "types that there are not are refused");
}

static void test_step_and_status(void)
{
	u8 bytes[ZW_MESSAGE_MAX] __attribute__((aligned(8)));
	static const s32 right[] = { -1, -ECANCELED, -133 };
	static const s32 wrong[] = { 0, 1, -134, -4095, INT32_MIN, INT32_MAX };
	u32 length = compose(&types[0], 0, bytes);
	bool good = true;
	size_t i;

	header(bytes)->step = cpu_to_le32(256);
	ok(refused(bytes, length), "a step that no plan has is refused");
	length = compose(&types[4], 0, bytes);
	for (i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		header(bytes)->status = cpu_to_le32(right[i]);
		good &= !refused(bytes, length);
	}
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		header(bytes)->status = cpu_to_le32(wrong[i]);
		good &= refused(bytes, length);
	}
	ok(good, "a failure is an error number");
}

static void test_landing(void)
{
	u8 bytes[ZW_MESSAGE_MAX] __attribute__((aligned(8)));
	u32 length = compose(&types[1], ZW_LANDING, bytes), mode, i;
	struct zw_landing *landing = (void *)(bytes + sizeof(struct zw_header));
	struct zc_message m;
	bool good = true;

	for (mode = 0; mode < 256; mode++) {
		landing->mode = mode;
		good &= refused(bytes, length) == (mode < ZW_SLOTS || mode > ZW_USER);
	}
	landing->mode = ZW_USER;
	for (i = 0; i < 3; i++) {
		landing->__reserved[i] = 1;
		good &= refused(bytes, length);
		landing->__reserved[i] = 0;
	}
	ok(good, "a landing has a mode that there is, and nothing in what is reserved");
	landing->origin = cpu_to_le64(1ULL << 63);
	good = refused(bytes, length);
	landing->origin = cpu_to_le64((1ULL << 63) - 1);
	ok(good && !refused(bytes, length), "an origin that sums with it could wrap is refused");
	header(bytes)->open = 0;
	ok(!parse(bytes, length, &m) && !m.landing.unit,
	   "a landing of a step that is not OPEN is that of all its units");
}

static void test_text(void)
{
	u8 bytes[ZW_MESSAGE_MAX] __attribute__((aligned(8)));
	struct type type = types[4];
	char text[16];
	struct zc_message m;
	u32 length;

	type.payload = ZCOLL_TEXT_MAX - 1;
	length = compose(&type, 0, bytes);
	ok(!refused(bytes, length), "a failure has as long a text as there is room for");
	type.payload++;
	length = compose(&type, 0, bytes);
	ok(refused(bytes, length), "and no longer one");
	type.payload = 8;
	length = compose(&type, 0, bytes);
	memcpy(bytes + length - 8, "a\nb\0c\x1b\xff~", 8);
	parse(bytes, length, &m);
	zc_message_text(&m, text, sizeof(text));
	ok(!strcmp(text, "a?b?c??~"), "of a text only what can be shown is kept");
	zc_message_text(&m, text, 4);
	ok(!strcmp(text, "a?b"), "and as much as there is room for");
}

/* ---- keys ---- */

/* Keys of all chunks of a region of 3 chunks of 16 pages, the last one shorter */
static u32 compose_keys(u8 *payload)
{
	struct zw_keys *keys = (struct zw_keys *)payload;
	struct zw_key *key = (struct zw_key *)(keys + 1);
	u32 i;

	*keys = (struct zw_keys) {
		.region = cpu_to_le64(1ULL << 40), .first = cpu_to_le32(0),
		.count = cpu_to_le32(KEYS), .chunks = cpu_to_le32(3),
		.chunk_pages = cpu_to_le32(16), .bytes = cpu_to_le64(2 * 65536 + 1),
		.rails = cpu_to_le32(RAILS),
	};
	for (i = 0; i < KEYS * RAILS; i++)
		key[i] = (struct zw_key) { .address = cpu_to_le64(i), .key = cpu_to_le32(~i) };
	return KEYS_BYTES;
}

static bool keys_refused(const u8 *payload, u32 length, u32 rails)
{
	struct image image = image_new(payload, length);
	struct zc_keys_part part;
	bool wrong = zc_keys_parse(image.bytes, length, rails, &part);

	free(image.bytes);
	return wrong;
}

/* With one field of @keys set to @value */
#define KEYS_WITH(field, value, bits) ({					\
	u8 __payload[KEYS_BYTES] __attribute__((aligned(8)));			\
	u32 __length = compose_keys(__payload);					\
										\
	((struct zw_keys *)__payload)->field = cpu_to_le##bits(value);		\
	keys_refused(__payload, __length, RAILS);				\
})

static void test_keys(void)
{
	u8 payload[KEYS_BYTES + 16] __attribute__((aligned(8))) = { 0 };
	u32 length = compose_keys(payload), n, taken = 0;
	struct zw_key *key = (void *)(payload + sizeof(struct zw_keys));
	struct zc_keys_part part;

	ok(!zc_keys_parse(payload, length, RAILS, &part) && part.region == 1ULL << 40 &&
	   part.first == 0 && part.count == KEYS && part.chunks == 3 &&
	   part.chunk_bytes == 65536 && part.bytes == 2 * 65536 + 1 && part.keys == key,
	   "keys say what was meant");
	for (n = 0; n < sizeof(payload); n++)
		taken += n != length && !keys_refused(payload, n, RAILS);
	is(taken, 0, "keys of any other length are refused");
	ok(keys_refused(payload, length, 1) && keys_refused(payload, length, 4),
	   "keys of another number of rails are refused");
	ok(KEYS_WITH(count, 0, 32) && KEYS_WITH(count, 2, 32) && KEYS_WITH(count, 4, 32) &&
	   KEYS_WITH(count, U32_MAX, 32), "as many keys are there as are told of");
	ok(KEYS_WITH(first, 1, 32) && KEYS_WITH(first, 3, 32) && KEYS_WITH(first, U32_MAX, 32),
	   "keys of chunks that the region has not are refused");
	ok(KEYS_WITH(chunks, 2, 32) && KEYS_WITH(chunks, 4, 32) && KEYS_WITH(bytes, 0, 64) &&
	   KEYS_WITH(bytes, 2 * 65536, 64) && KEYS_WITH(bytes, 3 * 65536 + 1, 64) &&
	   KEYS_WITH(bytes, U64_MAX, 64), "a region has as many chunks as its bytes need");
	ok(!KEYS_WITH(bytes, 3 * 65536, 64), "a last chunk may be whole");
	ok(KEYS_WITH(chunk_pages, 0, 32) && KEYS_WITH(chunk_pages, 17 << 20, 32) &&
	   KEYS_WITH(chunk_pages, U32_MAX, 32), "chunks have a size that can be");
	ok(KEYS_WITH(__reserved, 1, 32), "what is reserved of keys is 0");
	key[KEYS * RAILS - 1].__reserved = cpu_to_le32(1);
	ok(keys_refused(payload, length, RAILS), "and of each key");
}

/* ---- anything ---- */

static uint64_t seed = 1;

static uint32_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

/* A byte, of which those near limits come often */
static u8 strange(u8 was)
{
	switch (any() % 4) {
	case 0:
		return was ^ 1 << any() % 8;
	case 1:
		return 0;
	case 2:
		return 0xff;
	}
	return any();
}

/* What is taken keeps all that the kernel relies on, and lies in the message */
static bool sound(const struct zc_message *m, const u8 *bytes, u32 length)
{
	if (m->payload + m->length != bytes + length || m->payload < bytes + sizeof(struct zw_header))
		return false;
	if (m->msg.step >= ZC_PLAN_STEPS || m->msg.status > 0 || m->msg.status < -133)
		return false;
	if (m->msg.type == ZC_MSG_ABORT && (!m->msg.status || m->length >= ZCOLL_TEXT_MAX))
		return false;
	return !(m->flags & ZW_LANDING) || (m->landing.origin >> 63 == 0 &&
	       m->landing.mode >= ZW_SLOTS && m->landing.mode <= ZW_USER);
}

static bool keys_sound(const struct zc_keys_part *part, const u8 *payload, u32 length)
{
	return part->count && part->first < part->chunks &&
	       part->count <= part->chunks - part->first && part->chunk_bytes &&
	       (u64)part->chunks * part->chunk_bytes >= part->bytes &&
	       (u64)(part->chunks - 1) * part->chunk_bytes < part->bytes &&
	       (const u8 *)(part->keys + part->count * RAILS) == payload + length;
}

/* Change some bytes of a message, mostly of those that are looked at, and maybe its length */
static u32 spoil(u8 *bytes, u32 length)
{
	u32 changes = any() % 5, most = length < 160 ? length : 160;

	while (changes--) {
		u32 at = any() % most;

		bytes[at] = strange(bytes[at]);
	}
	return any() % 8 ? length : any() % (length + 8);
}

static void test_fuzz(void)
{
	u32 round, taken = 0, keys_taken = 0, unsound = 0;
	u8 bytes[ZW_MESSAGE_MAX + 8] __attribute__((aligned(8))) = { 0 };
	/* What comes ends where memory does */
	u8 *room = aligned_alloc(8, 4096);
	struct zc_keys_part part;
	struct zc_message m;

	for (round = 0; round < ROUNDS; round++) {
		const struct type *type = &types[any() % NTYPES];
		u32 length = compose(type, type->may & (any() | type->must), bytes);
		u8 *at;

		if (type->type == ZW_KEYS)
			compose_keys(bytes + sizeof(struct zw_header));
		length = spoil(bytes, length);
		/* But for what is missing to 8, which a message begins on a multiple of */
		at = room + 4096 - (length + 7) / 8 * 8;
		memcpy(at, bytes, length);
		if (zc_message_parse(at, length, &m))
			continue;
		taken++;
		unsound += !sound(&m, at, length);
		if (m.msg.type != ZW_KEYS || zc_keys_parse(m.payload, m.length, RAILS, &part))
			continue;
		keys_taken++;
		unsound += !keys_sound(&part, m.payload, m.length);
	}
	free(room);
	ok(!unsound, "whatever of %u spoiled messages is taken is sound", ROUNDS);
	ok(taken > ROUNDS / 10 && taken < ROUNDS && keys_taken > ROUNDS / 1000,
	   "some of them are: %u, and %u of their keys", taken, keys_taken);
}

int main(void)
{
	size_t i;
	u32 flags;

	for (i = 0; i < NTYPES; i++) {
		for (flags = 0; flags <= ZW_FLAGS; flags++)
			if (!(flags & ~types[i].may) && !(types[i].must & ~flags))
				test_round_trip(&types[i], flags);
		test_lengths(&types[i]);
		test_parts(&types[i]);
		test_numbers(&types[i]);
	}
	test_unknown_types();
	test_step_and_status();
	test_landing();
	test_text();
	test_keys();
	test_fuzz();
	return tap_end();
}
