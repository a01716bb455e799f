/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Team: the processes of a test on several nodes.
 *
 * Vocabulary. A *member* is a process of its own: a rank, or an aggregator; ranks come
 * first, by number, then aggregators. The *layout* says which rank is on which node. A
 * *machine* holds one node or many: they are told apart by ZCOLL_NODE_ID, and with fabric
 * "loop" all are in one kernel. The *keeper* is the process that forks this machine's
 * members, waits for them with a limit, and meets the other keepers (meet.h), so
 * that at the end each keeper has the *reports* of all members.
 *
 * A member makes the communicator, does what the test says, and leaves. It writes into
 * its report, which is in memory shared with the keeper, and so outlives a kill. Every
 * play has a communicator of its own, so that one failure is one failure.
 *
 * Layouts. "2,1,2": ranks of each node, in order; "2,2+1": and a node more that only
 * aggregates; "@0,1,0,1": the node of each rank.
 */
#ifndef NODES_TEAM_H
#define NODES_TEAM_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include <zcoll.h>

#include "meet.h"

#define TEAM_MEMBERS	32

enum stage {
	STAGE_NONE,	/* not started, or not on this machine */
	STAGE_JOINING,
	STAGE_READY,	/* in the operation that something is to happen to */
	STAGE_ENDED,
};

/**
 * struct report - what a member has to say
 * @stage: how far it is
 * @result: of what it did, 0 or a negative errno
 * @at_ms: when that came, on its machine's clock
 * @text: error text that belongs to @result
 * @wrong: what the member found wrong, "": nothing
 * @doing: what it is doing, for when it does not end
 */
struct report {
	atomic_int stage;
	int result;
	uint64_t at_ms;
	char text[ZCOLL_TEXT_MAX];
	char wrong[ZCOLL_TEXT_MAX];
	char doing[128];
};

/**
 * struct team - the layout, and the processes
 * @meet: the keepers
 * @layout: as it was written
 * @fabric: "loop", "rdma", ...
 * @nranks: ranks
 * @nodes: nodes with ranks
 * @aggregators: nodes without
 * @map: node of each rank
 * @report: by member
 * @pid: of this machine's members, 0: not here
 * @ready_ms: when all were ready, on this machine's clock
 * @harmed_ms: when this keeper had done the harm
 * @harm_ms: after team_end(), how long after @ready_ms the last harm was done
 * @plays: plays so far
 * @late: a machine did not come to the last meeting
 * @held: by machine, what the driver still had when all members had left
 */
struct team {
	struct meet meet;
	const char *layout;
	const char *fabric;
	unsigned int nranks;
	unsigned int nodes;
	unsigned int aggregators;
	uint32_t map[TEAM_MEMBERS];
	struct report *report;
	pid_t pid[TEAM_MEMBERS];
	uint64_t ready_ms;
	uint64_t harmed_ms;
	uint64_t harm_ms;
	unsigned int plays;
	bool late;
	char held[MEET_MACHINES][128];
};

/**
 * struct member - this process, in a play
 * @team: the team
 * @number: its number in the team
 * @comm: the communicator
 * @report: its report
 */
struct member {
	const struct team *team;
	unsigned int number;
	struct zcoll_comm *comm;
	struct report *report;
};

typedef void play_fn(struct member *me, const void *play);

void team_open(struct team *team, const char *program, const char *layout, const char *fabric);
void *team_shared(size_t len);
void team_start(struct team *team, play_fn *fn, const void *play);
bool team_ready(struct team *team, unsigned int limit_ms);
void team_settle(const struct team *team, unsigned int limit_ms);
void team_kill(struct team *team, unsigned int member);
void team_end(struct team *team, unsigned int limit_ms);
bool team_verdict(struct team *team, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool team_test(bool good, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int team_done(void);

static inline unsigned int team_members(const struct team *team)
{
	return team->nranks + team->aggregators;
}

static inline unsigned int team_node_of(const struct team *team, unsigned int member)
{
	return member < team->nranks ? team->map[member] :
				       team->nodes + member - team->nranks;
}

static inline unsigned int team_machine_of(const struct team *team, unsigned int member)
{
	return team_node_of(team, member) % team->meet.machines;
}

static inline bool team_here(const struct team *team, unsigned int member)
{
	return team_machine_of(team, member) == team->meet.machine;
}

static inline bool is_rank(const struct member *me)
{
	return me->number < me->team->nranks;
}

/* In a member */
void wrong(struct member *me, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void doing(struct member *me, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ready(struct member *me);
void ended_with(struct member *me, int result);

#endif /* NODES_TEAM_H */
