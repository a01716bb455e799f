/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A party: processes that play the participants of an exchange on this host, and how it
 * went for each of them.
 */
#ifndef PARTY_H
#define PARTY_H

#include <stdbool.h>

#include <zcoll.h>

#define PARTY_MAX	512
#define PARTY_MS	1000000ULL

/* What became of one process */
struct guest_result {
	int ret;
	char text[ZCOLL_TEXT_MAX];
	uint64_t ns;		/* how long it took */
};

struct party {
	struct zcoll_attr attr;	/* that all begin with */
	unsigned int processes;
	int (*play)(struct party *party, unsigned int process, struct zcoll_attr *attr);
	void *arg;		/* the test's */
	struct guest_result *results;	/* of each process; shared memory */
	int pids[PARTY_MAX];
};

void party_init(struct party *party, unsigned int nranks, unsigned int aggregators,
		int (*play)(struct party *, unsigned int, struct zcoll_attr *));
void party_start(struct party *party);
void party_end(struct party *party);
void party_run(struct party *party);
bool party_all(const struct party *party, int ret, const char *part);
const char *party_store(const char *host, unsigned int *port);
uint64_t party_now(void);

#endif /* PARTY_H */
