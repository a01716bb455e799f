/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages from bytes: what another node has sent, checked and in the host's numbers (parse.c).
 *
 * Plain C on plain types: no locks, no memory, no kernel. A test outside of the kernel gives it
 * whatever there is (selftests/unit/wire_test.c).
 */
#ifndef ZCOLL_NET_PARSE_H
#define ZCOLL_NET_PARSE_H

#include "../desc.h"
#include "../engine/engine.h"
#include "wire.h"

/* Pages of 4096 bytes that a chunk of a region may have: 1 GiB */
#define ZC_CHUNK_PAGES_MAX 0x40000

/**
 * struct zc_landing - where a unit is to be written, as its receiver's GRANT says
 * @seq: operation
 * @step: the sender's step
 * @unit: of an OPEN step, else 0
 * @region: as in struct zw_landing, like the following
 * @origin: see @region
 * @stride: see @region
 * @mode: see @region
 */
struct zc_landing {
	u64 seq;
	u32 step;
	u64 unit;
	u64 region;
	u64 origin;
	u32 stride;
	u8 mode;
};

/**
 * struct zc_message - a message, taken apart
 * @msg: for the engine, but for types of enum zw_type
 * @flags: ZW_*
 * @credits: as in struct zw_header
 * @desc: if ZW_DESC
 * @landing: if ZW_LANDING
 * @payload: in the message's bytes
 * @length: bytes of it
 */
struct zc_message {
	struct zc_msg msg;
	u8 flags;
	u32 credits;
	struct zc_desc desc;
	struct zc_landing landing;
	const u8 *payload;
	u32 length;
};

const char *zc_message_parse(const void *bytes, u32 length, struct zc_message *m);
void zc_message_text(const struct zc_message *m, char *text, size_t size);

/**
 * struct zc_keys_part - keys of a region of another node, or a part of them
 * @region: as in struct zw_keys, like the following
 * @first: see @region
 * @count: see @region
 * @chunks: see @region
 * @chunk_bytes: bytes of each chunk, but the last one
 * @bytes: see @region
 * @keys: @count times as many as there are rails, in the message's bytes
 */
struct zc_keys_part {
	u64 region;
	u32 first;
	u32 count;
	u32 chunks;
	u32 chunk_bytes;
	u64 bytes;
	const struct zw_key *keys;
};

const char *zc_keys_parse(const void *payload, u32 length, u32 rails, struct zc_keys_part *part);

#endif /* ZCOLL_NET_PARSE_H */
