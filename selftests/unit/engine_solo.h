/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An engine alone, for tests of its rules: the test plays the host and all other nodes. The
 * memory of the engine is exactly what zc_engine_size() says, so that the sanitizer sees any step
 * beside it.
 */
#ifndef ENGINE_SOLO_H
#define ENGINE_SOLO_H

#include "engine.h"
#include "engine_plans.h"

/* More than an engine asks for at once */
#define MAX_ACTIONS	4096

/* The steps of plan_chain() */
enum { CHAIN_FIRST_SEND, CHAIN_SEND, CHAIN_DELIVER, CHAIN_FINAL };
/* ... of plan_exchange() */
enum { EXCHANGE_SEND, EXCHANGE_FOLD, EXCHANGE_GATHER };

#define FINGERPRINT 77

/**
 * struct solo - an engine, its plan, and what it has asked for since the last drain()
 */
struct solo {
	struct zc_engine_config config;
	void *room, *prog_room;
	struct zc_engine *engine;
	struct zcoll_plan *plan;
	struct zc_prog prog;
	struct zc_op_desc desc;
	struct zc_action action[MAX_ACTIONS];
	u32 n;
};

struct solo *solo_config(struct zcoll_plan *plan, const struct zc_engine_config *config);
struct solo *solo_new(struct zcoll_plan *plan, u32 node);
void solo_free(struct solo *s);

/* What the host does: submit, take all that the engine asks for now, answer it */
int submit(struct solo *s, u64 seq);
u32 drain(struct solo *s);
void answer(struct solo *s);

/* Of the last drain(): actions of a type, messages of a type to a node, first verdict (1: none) */
u32 count(const struct solo *s, u32 type);
u32 told(const struct solo *s, u32 type, u32 node);
s32 verdict(const struct solo *s);

/* What other nodes say */
void hear(struct solo *s, u32 from, struct zc_msg msg);
struct zc_msg data(u32 step, u64 unit);
struct zc_msg grant(u32 step, u64 unit);
struct zc_msg opened(struct zc_msg msg, u32 open);

#endif /* ENGINE_SOLO_H */
