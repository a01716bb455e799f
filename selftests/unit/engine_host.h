/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A host for the engines of all nodes of a communicator, in one process: what the
 * module is to one engine, for tests.
 *
 * All that takes time is an event on one clock with a random delay: a message on its
 * way, a unit being carried out, a tick, a submission. So messages and completions
 * come in random order, and a run is repeated exactly by its seed. Data are real: a
 * node has inputs, outputs, accumulations, scratch places and slots of 64-bit numbers,
 * which are summed up; a SEND reads its source when the host pleases between its action
 * and zc_engine_done(), and elements land some time before the engine hears of them.
 *
 * At every action the host looks for what an engine must never do: a unit twice, a
 * place written that another unit still uses, a slot or a place that has not been
 * granted, units after the end, a wrong result with success, unequal verdicts where
 * they must be agreed, a hang. The first of these, the *fault*, ends the run.
 *
 *	struct host *host = host_new(&params, 10);
 *	for (i = 0; i < 10; i++)
 *		host_add(host, &op);
 *	host_kill(host, 3, 250);
 *	fault = host_run(host);
 *	host_free(host);
 */
#ifndef ENGINE_HOST_H
#define ENGINE_HOST_H

#include "engine.h"

/**
 * struct host_params - how the engines are made and treated
 * @nodes: nodes
 * @window: as in struct zc_engine_config, like all up to @timeout
 * @slots: "
 * @inflight: "
 * @steps: "
 * @bits: "
 * @links: "; 0: all other nodes
 * @silence: "
 * @timeout: "
 * @seed: of all that is random
 * @spread: a delay is 1 .. spread ns, one in 16 of them 20 times that; 0: 100
 * @duplicates: so many of 1024 messages come twice
 * @lazy: so many of 1024 times actions are left for later
 * @in_order: operations are submitted in the order of their numbers
 * @detect: survivors are told of a lost node, each after up to so long; 0: never
 * @leave: a node whose operations have all ended well leaves, and the others are told
 */
struct host_params {
	u32 nodes;
	u32 window;
	u32 slots;
	u32 inflight;
	u32 steps;
	u32 bits;
	u32 links;
	u64 silence;
	u64 timeout;
	u64 seed;
	u32 spread;
	u32 duplicates;
	u32 lazy;
	bool in_order;
	u64 detect;
	bool leave;
};

/**
 * struct host_op - an operation, the same on all nodes
 * @plan: the plan; it and geo.starts must stay until host_free()
 * @root: as in struct zc_op_desc, like the rest
 * @flags: "
 * @geo: "
 * @slice: "
 * @eager: "
 * @reserve: "
 * @deadline: ns from the beginning of the run, 0: none
 */
struct host_op {
	const struct zcoll_plan *plan;
	u32 root;
	u32 flags;
	struct zc_geometry geo;
	u64 slice;
	u64 eager;
	u64 reserve;
	u64 deadline;
};

struct host;

/* Engines as @params say, for at most @max_ops operations */
struct host *host_new(const struct host_params *params, u32 max_ops);
void host_free(struct host *host);

/* One more operation for all nodes to submit; before host_run(). Its number. */
u64 host_add(struct host *host, const struct host_op *op);

/* At step @when of the run: a node dies; a node aborts */
void host_kill(struct host *host, u32 node, u64 when);
void host_abort(struct host *host, u32 node, u64 when);

/* Run to the end. Return: NULL, or the fault, which stays until host_free(). */
const char *host_run(struct host *host);

/* Steps of the run so far: events and actions */
u64 host_steps(const struct host *host);
u64 host_retired(const struct host *host, u32 node);

/*
 * Random numbers 0 .. below - 1, by SplitMix64: Steele, Lea, Flood, "Fast splittable
 * pseudorandom number generators", 2014
 */
static inline u64 host_random(u64 *state, u64 below)
{
	u64 x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return (x ^ x >> 31) % below;
}

/* Everything the engines did goes to stderr, for looking at a failure */
void host_trace(struct host *host);

#endif /* ENGINE_HOST_H */
