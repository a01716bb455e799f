/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Exchange: what processes on several nodes must tell each other before they have a
 * communicator.
 *
 * Vocabulary. A *participant* is a rank or an aggregator: ranks come first, by number,
 * then aggregators. In a *round* each participant gives one *record* of a few bytes and
 * gets those of all. All participants go through the same rounds; a round is a barrier
 * too. A participant that fails says so in place of its next record, and then the
 * exchange has failed on all, with its error and text.
 *
 * There are three kinds: the *store*, which is rank 0 listening on a TCP port (store.h),
 * the PMIx server of the launcher (pmix.c), and the caller's function (gather.c). No thread is made, and nothing is left
 * behind when the exchange is closed. All rounds together end in the time to join.
 */
#ifndef LIBZCOLL_BOOT_EXCHANGE_H
#define LIBZCOLL_BOOT_EXCHANGE_H

#include "../internal.h"

#define ZC_RECORD_MAX	ZCOLL_ADDRESS_MAX	/* bytes of a record */

struct zc_exchange;

/**
 * struct zc_exchange_kind - what a kind of exchange does
 * @gather: one round, see zc_exchange_gather()
 * @fail: tell the others that this participant has failed, see zc_exchange_fail()
 * @keep: give connections away, see zc_exchange_keep()
 * @close: end and free
 */
struct zc_exchange_kind {
	int (*gather)(struct zc_exchange *x, const void *record, size_t len, uint8_t *all,
		      size_t size);
	void (*fail)(struct zc_exchange *x, int err, const char *text);
	unsigned int (*keep)(struct zc_exchange *x, int *fds);
	void (*close)(struct zc_exchange *x);
};

/**
 * struct zc_exchange - what the kinds have in common, and begin with
 * @kind: what it is
 * @attr: whose exchange it is: key, ranks, time and the buffer for error texts
 * @me: number of this participant
 * @n: number of participants
 * @round: rounds begun
 * @end: when the time is over
 * @failed: has it failed? Then all know
 */
struct zc_exchange {
	const struct zc_exchange_kind *kind;
	const struct zcoll_attr *attr;
	unsigned int me;
	unsigned int n;
	unsigned int round;
	uint64_t end;
	bool failed;
};

/* exchange.c */
int zc_exchange_open(struct zc_exchange **x, const struct zcoll_attr *attr, unsigned int me);
int zc_exchange_gather(struct zc_exchange *x, const void *record, size_t len, void *all,
		       size_t size);
void zc_exchange_fail(struct zc_exchange *x, int err);
unsigned int zc_exchange_keep(struct zc_exchange *x, int *fds);
void zc_exchange_close(struct zc_exchange *x);
int zc_exchange_error(const struct zc_exchange *x, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void zc_participant_name(char *name, size_t len, const struct zcoll_attr *attr, unsigned int p);
void zc_missing_text(char *text, size_t len, const struct zc_exchange *x, const bool *there,
		     uint64_t timeout_ns);

#define ZC_PARTICIPANT_NAME	24	/* bytes of a participant's name */

/* The kinds */
int zc_store_serve(struct zc_exchange **x, const struct zcoll_attr *attr);
int zc_store_call(struct zc_exchange **x, const struct zcoll_attr *attr, unsigned int me);
int zc_pmix_open(struct zc_exchange **x, const struct zcoll_attr *attr, unsigned int me);
int zc_gather_open(struct zc_exchange **x, const struct zcoll_attr *attr, unsigned int me);

/* proof.c */
void zc_key_name(uint8_t name[16], const uint8_t key[16]);

/* nodes.c */
#define ZC_BOOT_ID	"/proc/sys/kernel/random/boot_id"

int zc_node_id(uint8_t id[16]);
int zc_node_map(uint32_t *map, unsigned int *nodes, const void *ids, size_t stride,
		unsigned int nranks);

#endif /* LIBZCOLL_BOOT_EXCHANGE_H */
