// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Keys: 128 bits that all ranks of a communicator agree on, made of names by the
 * 128-bit FNV-1a hash (RFC 9923). It keeps jobs apart; it is not a secret, and
 * the kernel lets only processes of one user meet.
 */
#include <string.h>

#include "internal.h"

__extension__ typedef unsigned __int128 u128;

#define FNV_PRIME	(((u128)1 << 88) | 0x13b)
#define FNV_BASIS	(((u128)0x6c62272e07bb0142 << 64) | 0x62b821756295c58d)

static u128 fnv(u128 hash, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len--)
		hash = (hash ^ *p++) * FNV_PRIME;
	return hash;
}

static void to_key(uint8_t key[16], u128 hash)
{
	for (int i = 15; i >= 0; i--, hash >>= 8)
		key[i] = hash & 0xff;
}

void zcoll_key_from_string(uint8_t key[16], const char *name)
{
	to_key(key, fnv(FNV_BASIS, name, strlen(name)));
}

void zcoll_key_derive(uint8_t key[16], const char *name)
{
	to_key(key, fnv(fnv(FNV_BASIS, key, 16), name, strlen(name)));
}
