// SPDX-License-Identifier: GPL-2.0-only
/*
 * Proofs that the other side knows the communicator's key, which is never sent.
 *
 * Each proof is HMAC-SHA-256 (RFC 2104, FIPS 198-1) with the key over a label, which tells for
 * what it is, and all that has been said so far. Both sides' random nonces are in there, so a
 * proof that was overheard is worth nothing in another connection; the first thing said, where
 * there is no other side's nonce yet, has a time in it, and counts once. What is proved is who is
 * there when a connection is made; what is sent on it afterwards is neither signed nor encrypted,
 * like everything else on such networks.
 */
#include <crypto/sha2.h>
#include <linux/string.h>

#include "rdma.h"

#define ZC_KEY_BYTES	16
#define ZC_SAID_MAX	192

/* What a proof is over, behind the block that HMAC puts in front */
struct zc_said {
	u8 bytes[SHA256_BLOCK_SIZE + ZC_SAID_MAX];
	u32 length;
};

static void zc_said_add(struct zc_said *said, const void *what, u32 bytes)
{
	if (WARN_ON_ONCE(said->length + bytes > sizeof(said->bytes)))
		return;
	memcpy(said->bytes + said->length, what, bytes);
	said->length += bytes;
}

static void zc_said_begin(struct zc_said *said, const char *label)
{
	said->length = SHA256_BLOCK_SIZE;
	zc_said_add(said, label, strlen(label));
}

static void zc_said_pad(u8 *pad, const u8 *key, u8 with)
{
	u32 i;

	memset(pad, with, SHA256_BLOCK_SIZE);
	for (i = 0; i < ZC_KEY_BYTES; i++)
		pad[i] ^= key[i];
}

/* H(key ^ opad || H(key ^ ipad || what was said)) */
static void zc_said_proof(struct zc_said *said, const u8 *key, u8 *proof)
{
	u8 outer[SHA256_BLOCK_SIZE + SHA256_DIGEST_SIZE];

	zc_said_pad(said->bytes, key, 0x36);
	zc_said_pad(outer, key, 0x5c);
	sha256(said->bytes, said->length, outer + SHA256_BLOCK_SIZE);
	sha256(outer, sizeof(outer), proof);
	memzero_explicit(said, sizeof(*said));
	memzero_explicit(outer, sizeof(outer));
}

/* A name of the communicator that others may see, 8 bytes */
void zc_hello_name(const u8 *key, u8 *name)
{
	u8 proof[ZW_PROOF_BYTES];
	struct zc_said said;

	zc_said_begin(&said, "name");
	zc_said_proof(&said, key, proof);
	memcpy(name, proof, 8);
}

/* What the connecting side shows before it gets an answer, ZW_NONCE_BYTES */
void zc_hello_tag(const u8 *key, const struct zw_hello *hello, u8 *tag)
{
	u8 proof[ZW_PROOF_BYTES];
	struct zc_said said;

	zc_said_begin(&said, "hello");
	zc_said_add(&said, hello, sizeof(*hello));
	zc_said_proof(&said, key, proof);
	memcpy(tag, proof, ZW_NONCE_BYTES);
}

/* zw_welcome.proof, from the rest of @welcome */
void zc_hello_accept(const u8 *key, const struct zw_hello *hello,
		     const struct zw_welcome *welcome, u8 *proof)
{
	struct zc_said said;

	zc_said_begin(&said, "accept");
	zc_said_add(&said, hello, sizeof(*hello));
	zc_said_add(&said, &welcome->settings, sizeof(welcome->settings));
	zc_said_add(&said, welcome->nonce, sizeof(welcome->nonce));
	zc_said_proof(&said, key, proof);
}

/* zw_proof.proof */
void zc_hello_connect(const u8 *key, const struct zw_hello *hello,
		      const struct zw_welcome *welcome, const struct zw_settings *settings,
		      u8 *proof)
{
	struct zc_said said;

	zc_said_begin(&said, "connect");
	zc_said_add(&said, hello, sizeof(*hello));
	zc_said_add(&said, welcome, sizeof(*welcome));
	zc_said_add(&said, settings, sizeof(*settings));
	zc_said_proof(&said, key, proof);
}

/*
 * Takes the same time wherever they differ. Not every kernel with SHA-256 has
 * crypto_memneq().
 */
bool zc_hello_equal(const u8 *a, const u8 *b, size_t bytes)
{
	u8 differs = 0;

	while (bytes--) {
		differs |= *a++ ^ *b++;
		OPTIMIZER_HIDE_VAR(differs);
	}
	return !differs;
}
