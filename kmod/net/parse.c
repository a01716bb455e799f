// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parser of messages (parse.h): everything that can be said of a message by itself is
 * checked here, so that who gets a struct zc_message need only ask whether it fits what this
 * node knows: the engine for steps and units, key.c for regions, op.c for descriptions.
 *
 * For each type one table says what it may have, must have, and which numbers it uses. All
 * others are 0: a message means the same to any two nodes, or is refused.
 */
#include <linux/zcoll.h>

#include "parse.h"

/* Error numbers that a node may say (include/uapi/asm-generic/errno.h) */
#define ZC_ERRNO_MAX	133

/* Numbers of a header, by the engine's name for them */
#define ZC_STEP		0x01	/* and @open */
#define ZC_STATUS	0x02
#define ZC_SEQ		0x04
#define ZC_UNIT		0x08
#define ZC_PRINT	0x10
#define ZC_RETIRED	0x20

#define ZC_OF_UNIT	(ZC_STEP | ZC_SEQ | ZC_UNIT | ZC_PRINT | ZC_RETIRED)
#define ZC_OF_VERDICT	(ZC_STATUS | ZC_SEQ | ZC_UNIT | ZC_RETIRED)

/**
 * struct zc_message_rule - what a type of message has
 * @known: there is such a type
 * @may: ZW_* that it may have
 * @must: ZW_* that it must have
 * @numbers: ZC_STEP ..., that need not be 0
 * @least: bytes of its payload, at least
 * @most: likewise, at most
 */
struct zc_message_rule {
	bool known;
	u8 may;
	u8 must;
	u8 numbers;
	u16 least;
	u16 most;
};

static const struct zc_message_rule zc_rules[] = {
	[ZC_MSG_DATA] = { true, ZW_DESC, 0, ZC_OF_UNIT, 0, ZW_MESSAGE_MAX },
	[ZC_MSG_GRANT] = { true, ZW_DESC | ZW_LANDING, 0, ZC_OF_UNIT, 0, 0 },
	[ZC_MSG_RETIRED] = { true, 0, 0, ZC_RETIRED, 0, 0 },
	[ZC_MSG_ALIVE] = { true, 0, 0, ZC_RETIRED, 0, 0 },
	[ZC_MSG_ABORT] = { true, 0, 0, ZC_OF_VERDICT, 0, ZCOLL_TEXT_MAX - 1 },
	[ZC_MSG_ASK] = { true, 0, 0, ZC_OF_VERDICT, 0, 0 },
	[ZC_MSG_ANSWER] = { true, 0, 0, ZC_OF_VERDICT, 0, 0 },
	[ZC_MSG_DECISION] = { true, 0, 0, ZC_OF_VERDICT, 0, 0 },
	[ZW_KEYS] = { true, 0, 0, 0, sizeof(struct zw_keys), ZW_MESSAGE_MAX },
	[ZW_FORGET] = { true, 0, 0, ZC_UNIT, 0, 0 },
	[ZW_CREDIT] = { true, 0, 0, 0, 0, 0 },
	[ZW_CALL] = { true, ZW_DESC, ZW_DESC, ZC_SEQ | ZC_RETIRED, 0, 0 },
	[ZW_BYE] = { true, 0, 0, ZC_UNIT | ZC_RETIRED, 0, 0 },
	/* Is the fabric's, and comes before all others */
	[ZW_PROOF] = { false },
};

static void zc_header_parse(const struct zw_header *header, struct zc_message *m)
{
	*m = (struct zc_message) {
		.flags = header->flags,
		.length = le16_to_cpu(header->length),
		.credits = le32_to_cpu(header->credits),
		.msg = {
			.type = header->type,
			.open = le32_to_cpu(header->open),
			.step = le32_to_cpu(header->step),
			.status = (s32)le32_to_cpu(header->status),
			.seq = le64_to_cpu(header->seq),
			.unit = le64_to_cpu(header->unit),
			.fingerprint = le64_to_cpu(header->fingerprint),
			.retired = le64_to_cpu(header->retired),
		},
	};
}

/* Numbers that are not 0 */
static u8 zc_numbers(const struct zc_msg *msg)
{
	return (msg->step || msg->open ? ZC_STEP : 0) | (msg->status ? ZC_STATUS : 0) |
	       (msg->seq ? ZC_SEQ : 0) | (msg->unit ? ZC_UNIT : 0) |
	       (msg->fingerprint ? ZC_PRINT : 0) | (msg->retired ? ZC_RETIRED : 0);
}

static const char *zc_header_wrong(const struct zw_header *header, const struct zc_message *m,
				   const struct zc_message_rule *rule)
{
	const struct zc_msg *msg = &m->msg;

	if (header->__reserved || m->flags & ~rule->may || rule->must & ~m->flags ||
	    zc_numbers(msg) & ~rule->numbers)
		return "a message with a field that it must not have, or without one that it must";
	if (m->length < rule->least || m->length > rule->most)
		return "a message with more to it, or less, than its type may have";
	if (msg->step >= ZC_PLAN_STEPS)
		return "a message of a step that no plan has";
	/* Only after a failure are there verdicts */
	if (rule->numbers & ZC_STATUS && (msg->status >= 0 || msg->status < -ZC_ERRNO_MAX))
		return "a message of a failure that is no error number";
	return NULL;
}

static void zc_desc_parse(const struct zw_desc *wire, struct zc_desc *desc)
{
	*desc = (struct zc_desc) {
		.collective = le16_to_cpu(wire->collective),
		.dtype = wire->dtype,
		.op = wire->op,
		.flags = le32_to_cpu(wire->flags),
		.root = le32_to_cpu(wire->root),
		.rank = le32_to_cpu(wire->rank),
		.count = le64_to_cpu(wire->count),
		.plan = le64_to_cpu(wire->plan),
	};
}

static bool zc_landing_parse(const struct zw_landing *wire, const struct zc_msg *msg,
			     struct zc_landing *landing)
{
	*landing = (struct zc_landing) {
		.seq = msg->seq,
		.step = msg->step,
		.unit = msg->open ? msg->unit : 0,
		.region = le64_to_cpu(wire->region),
		.origin = le64_to_cpu(wire->origin),
		.stride = le32_to_cpu(wire->stride),
		.mode = wire->mode,
	};
	/* What is added to it later does not wrap then */
	return wire->mode >= ZW_SLOTS && wire->mode <= ZW_USER && !wire->__reserved[0] &&
	       !wire->__reserved[1] && !wire->__reserved[2] && landing->origin >> 63 == 0;
}

/**
 * zc_message_parse - take a message apart
 * @bytes: the message, on an 8-byte boundary
 * @length: its bytes
 * @m: to be filled; points into @bytes
 *
 * Return: NULL, or what is wrong with it; then @m is not to be used.
 */
const char *zc_message_parse(const void *bytes, u32 length, struct zc_message *m)
{
	const struct zw_header *header = bytes;
	const u8 *at = (const u8 *)(header + 1);
	const struct zc_message_rule *rule;
	const char *wrong;

	if (length < sizeof(*header) || length > ZW_MESSAGE_MAX)
		return "a message shorter than its header, or too long";
	if (header->type > ZW_PROOF || !zc_rules[header->type].known)
		return "a message of unknown type";
	rule = &zc_rules[header->type];
	zc_header_parse(header, m);
	wrong = zc_header_wrong(header, m, rule);
	if (wrong)
		return wrong;
	if (length != sizeof(*header) + (m->flags & ZW_DESC ? sizeof(struct zw_desc) : 0) +
		      (m->flags & ZW_LANDING ? sizeof(struct zw_landing) : 0) + m->length)
		return "a message longer or shorter than it says";
	if (m->flags & ZW_DESC) {
		zc_desc_parse((const struct zw_desc *)at, &m->desc);
		at += sizeof(struct zw_desc);
	}
	if (m->flags & ZW_LANDING) {
		if (!zc_landing_parse((const struct zw_landing *)at, &m->msg, &m->landing))
			return "a grant of an impossible place";
		at += sizeof(struct zw_landing);
	}
	m->payload = at;
	return NULL;
}

/**
 * zc_message_text - the text of an ABORT, fit to be shown
 * @m: the message
 * @text: gets it, ended
 * @size: of @text, at least 1
 */
void zc_message_text(const struct zc_message *m, char *text, size_t size)
{
	size_t i;

	for (i = 0; i < m->length && i < size - 1; i++)
		text[i] = m->payload[i] >= ' ' && m->payload[i] <= '~' ? m->payload[i] : '?';
	text[i] = '\0';
}

/* Does it make sense by itself? */
static bool zc_keys_valid(const struct zw_keys *wire, u32 length, u32 rails)
{
	u32 first = le32_to_cpu(wire->first), count = le32_to_cpu(wire->count);
	u32 chunks = le32_to_cpu(wire->chunks), pages = le32_to_cpu(wire->chunk_pages);
	u64 bytes = le64_to_cpu(wire->bytes);

	if (wire->__reserved || le32_to_cpu(wire->rails) != rails || !count || !pages ||
	    pages > ZC_CHUNK_PAGES_MAX || !bytes)
		return false;
	if (length != sizeof(*wire) + (u64)count * rails * sizeof(struct zw_key))
		return false;
	if (first >= chunks || count > chunks - first)
		return false;
	return (bytes - 1) / ((u64)pages << 12) + 1 == chunks;
}

/**
 * zc_keys_parse - take the payload of KEYS apart
 * @payload: the payload, on an 8-byte boundary
 * @length: its bytes
 * @rails: keys of a chunk
 * @part: to be filled; points into @payload
 *
 * Return: NULL, or what is wrong with it; then @part is not to be used.
 */
const char *zc_keys_parse(const void *payload, u32 length, u32 rails, struct zc_keys_part *part)
{
	const struct zw_keys *wire = payload;
	u32 i;

	if (length < sizeof(*wire) || !zc_keys_valid(wire, length, rails))
		return "keys of an impossible region";
	*part = (struct zc_keys_part) {
		.region = le64_to_cpu(wire->region),
		.first = le32_to_cpu(wire->first),
		.count = le32_to_cpu(wire->count),
		.chunks = le32_to_cpu(wire->chunks),
		.chunk_bytes = le32_to_cpu(wire->chunk_pages) << 12,
		.bytes = le64_to_cpu(wire->bytes),
		.keys = (const struct zw_key *)(wire + 1),
	};
	for (i = 0; i < part->count * rails; i++)
		if (part->keys[i].__reserved)
			return "a key with a field that it must not have";
	return NULL;
}
