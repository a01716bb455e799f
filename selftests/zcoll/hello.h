/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What connections of fabric "rdma" begin with, as Documentation/protocol.md tells it, for tests
 * that speak with a node's kernel without being one.
 *
 * Proofs are computed by the kernel's crypto interface, apart from the driver.
 */
#ifndef ZCOLL_TEST_HELLO_H
#define ZCOLL_TEST_HELLO_H

#include <endian.h>
#include <linux/if_alg.h>

#include "zcoll_test.h"

#define ZH_MAGIC	0x6c6f637a

struct zh_hello {
	uint32_t magic;
	uint16_t version, rail;
	uint8_t comm[8];
	uint32_t from, to;
	uint64_t time;
	uint8_t nonce[8];
	uint8_t tag[16];	/* over all before */
};

struct zh_welcome {
	uint32_t magic, reserved;
	uint32_t settings[8];
	uint8_t nonce[16];
	uint8_t proof[32];
};

/* HMAC-SHA-256. Return: 0, or a negative errno: the kernel does not offer it. */
static inline int zh_hmac(const uint8_t key[16], const char *label, const void *data, size_t bytes,
			  uint8_t proof[32])
{
	struct sockaddr_alg alg = {
		.salg_family = AF_ALG, .salg_type = "hash", .salg_name = "hmac(sha256)",
	};
	int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), op = -1, ret = -EIO;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&alg, sizeof(alg)) &&
	    !setsockopt(fd, SOL_ALG, ALG_SET_KEY, key, 16))
		op = accept(fd, NULL, 0);
	if (op >= 0 && send(op, label, strlen(label), MSG_MORE) >= 0 &&
	    send(op, data, bytes, 0) == (ssize_t)bytes && read(op, proof, 32) == 32)
		ret = 0;
	close(op);
	close(fd);
	return ret;
}

static inline int zh_tag(struct zh_hello *hello, const uint8_t key[16])
{
	uint8_t proof[32];
	int ret = zh_hmac(key, "hello", hello, offsetof(struct zh_hello, tag), proof);

	memcpy(hello->tag, proof, sizeof(hello->tag));
	return ret;
}

/*
 * What node 1 would say to node 0. Times rise from one hello to the next, and are earlier than
 * those of the kernel, so that the real node 1 is still heard.
 */
static inline int zh_hello(struct zh_hello *hello, const uint8_t key[16])
{
	static uint64_t now;
	uint8_t proof[32];
	int ret;

	*hello = (struct zh_hello){
		.magic = htole32(ZH_MAGIC), .version = htole16(1), .from = htole32(1),
		.time = htole64(++now),
	};
	ret = zh_hmac(key, "name", "", 0, proof);
	memcpy(hello->comm, proof, sizeof(hello->comm));
	return ret ?: zh_tag(hello, key);
}

#endif /* ZCOLL_TEST_HELLO_H */
