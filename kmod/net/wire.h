/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What nodes say to each other: the bytes of messages. Documentation/protocol.md tells
 * the story; this file is the layout.
 *
 * All numbers are little-endian. Reserved fields are 0, and a message where one is not, or
 * that is longer or shorter than it says, is an error that ends the communicator.
 *
 * A message is a header, and what the header's flags say follows, in this order: a
 * descriptor, a landing, a payload of @length bytes.
 */
#ifndef ZCOLL_NET_WIRE_H
#define ZCOLL_NET_WIRE_H

#include <linux/types.h>

#include "../engine/types.h"

#ifdef __KERNEL__
#include <asm/byteorder.h>
#else
#include <endian.h>
#define le16_to_cpu(x) le16toh(x)
#define le32_to_cpu(x) le32toh(x)
#define le64_to_cpu(x) le64toh(x)
#define cpu_to_le16(x) htole16(x)
#define cpu_to_le32(x) htole32(x)
#define cpu_to_le64(x) htole64(x)
#endif

#define ZW_MAGIC	0x6c6f637a	/* "zcol" */
#define ZW_VERSION	1

#define ZW_MESSAGE_MAX	3968		/* bytes of a message */

#define ZW_NONCE_BYTES	16
#define ZW_PROOF_BYTES	32		/* HMAC-SHA-256 */

enum zw_type {
	/* 1 .. 8 are the engine's, enum zc_msg_type */
	ZW_KEYS = 16,		/* payload: struct zw_keys and entries */
	ZW_FORGET,		/* the region @unit has no keys any more */
	ZW_CREDIT,		/* nothing but @credits */
	ZW_CALL,		/* operation @seq has been called: nothing but its description */
	ZW_BYE,			/* no further part after @retired, and after @unit messages sent */
	ZW_PROOF,		/* first message of a half-link: payload: struct zw_proof */
};

/* zw_header.flags */
#define ZW_DESC		1	/* a struct zw_desc follows */
#define ZW_LANDING	2	/* a struct zw_landing follows */
#define ZW_FLAGS	3

/**
 * struct zw_header - begins each message
 * @type: enum zc_msg_type or enum zw_type
 * @flags: ZW_*
 * @length: bytes of the payload
 * @step: as in struct zc_msg, like the following
 * @open: see @step
 * @status: see @step
 * @credits: messages of the other direction that the sender has taken in, in all
 * @__reserved: 0
 * @seq: see @step
 * @unit: see @step
 * @fingerprint: see @step
 * @retired: see @step
 */
struct zw_header {
	u8 type;
	u8 flags;
	__le16 length;
	__le32 step;
	__le32 open;
	__le32 status;
	__le32 credits;
	__le32 __reserved;
	__le64 seq;
	__le64 unit;
	__le64 fingerprint;
	__le64 retired;
};

/**
 * struct zw_desc - an operation, as its caller described it
 * @collective: ZCOLL_ALLREDUCE ...
 * @dtype: as in struct zcoll_cmd, like the following
 * @op: see @dtype
 * @flags: see @dtype
 * @root: see @dtype
 * @rank: of the sender's node, who called first
 * @count: see @dtype
 * @plan: id of the plan
 *
 * All but @rank is in the fingerprint, and so are the settings of struct zw_settings.
 */
struct zw_desc {
	__le16 collective;
	u8 dtype;
	u8 op;
	__le32 flags;
	__le32 root;
	__le32 rank;
	__le64 count;
	__le64 plan;
};

enum zw_mode {
	ZW_SLOTS = 1,		/* unit u: @origin + u mod slots times @stride (OPEN: @origin) */
	ZW_LINEAR,		/* byte b of the turn: @origin + b */
	ZW_USER,		/* byte b of the user's buffer: @origin + b */
};

/**
 * struct zw_landing - where the units of a GRANT are to be written
 * @region: number of a region whose keys have been told
 * @origin: byte offset in it
 * @stride: bytes from one slot to the next
 * @mode: enum zw_mode
 * @__reserved: 0
 */
struct zw_landing {
	__le64 region;
	__le64 origin;
	__le32 stride;
	u8 mode;
	u8 __reserved[3];
};

/**
 * struct zw_keys - the keys of a region, or a part of them
 * @region: its number, never used again for another one
 * @first: first chunk of this message
 * @count: chunks of this message
 * @chunks: chunks of the region
 * @chunk_pages: pages of 4096 bytes in each, but the last one
 * @bytes: of the region
 * @rails: entries for each chunk
 * @__reserved: 0
 *
 * @count times @rails struct zw_key follow, chunk by chunk.
 */
struct zw_keys {
	__le64 region;
	__le32 first;
	__le32 count;
	__le32 chunks;
	__le32 chunk_pages;
	__le64 bytes;
	__le32 rails;
	__le32 __reserved;
};

struct zw_key {
	__le64 address;
	__le32 key;
	__le32 __reserved;
};

/* What must be equal on all nodes; part of the proof, and compared one by one */
struct zw_settings {
	__le32 version;
	__le32 nodes;
	__le32 window;
	__le32 slots;
	__le32 slice_bytes;
	__le32 eager_bytes;
	__le32 rails;
	__le32 depth;
};

/**
 * struct zw_hello - the connecting side's private data
 * @magic: ZW_MAGIC
 * @version: ZW_VERSION
 * @rail: of the sender
 * @comm: names the communicator: part of a hash of its key, which does not tell the key
 * @from: the sender's node
 * @to: the node it wants
 * @time: of the sender's clock, later than in all it has said before: what is repeated is a copy
 * @nonce: random
 */
struct zw_hello {
	__le32 magic;
	__le16 version;
	__le16 rail;
	u8 comm[8];
	__le32 from;
	__le32 to;
	__le64 time;
	u8 nonce[8];
};

/**
 * struct zw_welcome - the accepting side's answer
 * @magic: ZW_MAGIC
 * @__reserved: 0
 * @settings: its settings
 * @nonce: random
 * @proof: HMAC(key, "accept" || hello || settings || nonce)
 */
struct zw_welcome {
	__le32 magic;
	__le32 __reserved;
	struct zw_settings settings;
	u8 nonce[ZW_NONCE_BYTES];
	u8 proof[ZW_PROOF_BYTES];
};

/**
 * struct zw_proof - the connecting side's first message
 * @settings: its settings
 * @proof: HMAC(key, "connect" || hello || welcome || settings)
 */
struct zw_proof {
	struct zw_settings settings;
	u8 proof[ZW_PROOF_BYTES];
};

#endif /* ZCOLL_NET_WIRE_H */
