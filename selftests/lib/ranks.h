/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests with several ranks: each is a forked child that makes a communicator of
 * its own and runs one function. A test passes if all its ranks find all as
 * expected, and end as they should. No test hangs: operations have a deadline,
 * and each child an alarm.
 */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>
#include <stdint.h>

#include <zcoll.h>

#define MS		1000000ULL
#define RANK_DEADLINE	(10000 * MS)

/* What a test can set before its ranks start */
struct ranks {
	unsigned int n;
	uint64_t deadline_ns;
	uint64_t join_timeout_ns;
};

#define RANKS(nranks) (struct ranks){						\
	.n = (nranks),								\
	.deadline_ns = RANK_DEADLINE,						\
	.join_timeout_ns = RANK_DEADLINE,					\
}

typedef void (*rank_fn)(struct zcoll_comm *comm);
typedef void (*attr_fn)(const struct zcoll_attr *attr);

void need_device(void);
bool run_ranks(const struct ranks *ranks, rank_fn fn);
bool run_attrs(const struct ranks *ranks, attr_fn fn);

/* In a rank: note what is not as expected */
void expect_at(const char *file, int line, bool good, const char *what, long long got,
	       long long want);
void expect_text_at(const char *file, int line, const char *text, const char *part);
bool rank_failed(void);
const char *error_of(struct zcoll_comm *comm);
extern struct zcoll_attr rank_attr;	/* what the rank's communicator was made of */

#define expect(got, want) do {							\
	long long got_ = (got), want_ = (want);					\
										\
	expect_at(__FILE__, __LINE__, got_ == want_, #got, got_, want_);	\
} while (0)

#define expect_text(text, part)	expect_text_at(__FILE__, __LINE__, text, part)

uint64_t now_ms(void);
uint64_t cpu_ms(void);	/* of this process */
void sleep_ms(unsigned int ms);

/* Data that tells rank and place: the sum over ranks is known */
void fill(int32_t *data, uint64_t count, unsigned int rank);
void expect_sum_at(const char *file, int line, const int32_t *data, uint64_t count,
		   unsigned int nranks);
#define expect_sum(data, count, nranks) expect_sum_at(__FILE__, __LINE__, data, count, nranks)

#endif /* RANKS_H */
