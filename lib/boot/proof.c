// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * What shows that one knows the key, but not the key: names, and proofs for both sides of
 * a connection to the store; see store.h.
 */
#include <errno.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>
#include <sys/random.h>

#include "store.h"

/**
 * zc_key_name - a name of a communicator that does not give its key away
 * @name: output
 * @key: the key
 */
void zc_key_name(uint8_t name[16], const uint8_t key[16])
{
	static const char what[] = "zcoll name";
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, 16, key);
	hmac_sha256_update(&hmac, sizeof(what), (const uint8_t *)what);
	hmac_sha256_digest(&hmac, 16, name);
}

int zc_nonce(uint8_t nonce[NONCE_BYTES])
{
	return getrandom(nonce, NONCE_BYTES, 0) == NONCE_BYTES ? 0 : -EIO;
}

static void add_number(struct hmac_sha256_ctx *hmac, uint32_t number)
{
	number = htole32(number);
	hmac_sha256_update(hmac, sizeof(number), (const uint8_t *)&number);
}

/**
 * zc_prove - make the proof of one side
 * @proof: output
 * @of: key, nonces and caller
 * @side: SIDE_CALLER or SIDE_SERVER, so that a proof cannot be sent back
 */
void zc_prove(uint8_t proof[PROOF_BYTES], const struct proof_of *of, const char *side)
{
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, 16, of->key);
	hmac_sha256_update(&hmac, strlen(side) + 1, (const uint8_t *)side);
	hmac_sha256_update(&hmac, NONCE_BYTES, of->caller_nonce);
	hmac_sha256_update(&hmac, NONCE_BYTES, of->server_nonce);
	add_number(&hmac, of->who);
	add_number(&hmac, of->nranks);
	add_number(&hmac, of->aggregators);
	hmac_sha256_digest(&hmac, PROOF_BYTES, proof);
}

bool zc_is_proof(const uint8_t proof[PROOF_BYTES], const struct proof_of *of, const char *side)
{
	uint8_t good[PROOF_BYTES];

	zc_prove(good, of, side);
	return memeql_sec(proof, good, PROOF_BYTES);
}
