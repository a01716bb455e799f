/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The network: what a message costs, and which links it shares with others.
 *
 * LogGP (Alexandrov, Ionescu, Schauser, Scheiman: "LogGP: Incorporating Long Messages
 * into the LogP Model", SPAA 1995): a message of m bytes keeps the sender's CPU busy
 * for o, is on the way for L + (m - 1) G, and keeps the receiver's CPU busy for o.
 *
 * A *link* is what messages queue for: a NIC in one direction, the cable between a rack
 * and the core, a cable of a torus. It passes one message at a time, for
 * (m - 1) G or at least g. Messages cut through: the head goes on while
 * the tail is still on the link before. What carries no elements, as a grant, takes its
 * time on a link, too, but does not queue: it is one packet of a queue pair of its own, and
 * links pass packets of several queue pairs in turn. A *route* is a message's way over its
 * links.
 */
#ifndef ZCOLL_SIM_NET_H
#define ZCOLL_SIM_NET_H

#include "types.h"

#define SIM_PS 1000ULL	/* picoseconds in a nanosecond: sums of them are exact */

enum sim_contention {
	SIM_CONTENTION_NONE,	/* each message as if it were alone */
	SIM_CONTENTION_CPU,	/* a node does one o or fold at a time */
	SIM_CONTENTION_NIC,	/* also one message at a time per NIC and direction */
};

enum sim_shape {
	SIM_FLAT,
	SIM_TWO_LEVEL,
	SIM_TORUS,
};

/**
 * struct sim_model - costs, all in ps
 * @latency: L
 * @overhead: o
 * @gap: g
 * @per_byte: G
 * @per_byte_folded: gamma
 * @inlined: bytes up to which a message is copied when it is posted
 * @contention: enum sim_contention
 * @shape: enum sim_shape
 * @rack: two-level: nodes of a rack
 * @oversub: two-level: so many times less bandwidth leaves a rack than its NICs have
 * @dims: torus: nodes in each dimension
 * @hop: ps more for each link of a torus after the first, or through the core
 */
struct sim_model {
	u64 latency;
	u64 overhead;
	u64 gap;
	u64 per_byte;
	u64 per_byte_folded;
	u64 inlined;
	enum sim_contention contention;
	enum sim_shape shape;
	u32 rack;
	double oversub;
	u32 dims[3];
	u64 hop;
};

/**
 * struct sim_link - see above
 * @free: when it is
 * @per_byte: ps
 * @gap: ps that a message takes at least
 */
struct sim_link {
	u64 free;
	u64 per_byte;
	u64 gap;
};

/**
 * struct sim_route - where a message is on its way
 * @from: node
 * @to: node
 * @at: torus: the node where the head is
 * @stage: how many links, in flat and two-level networks, are behind
 * @link: the link that the head is waiting for
 * @slowest: ps a byte, of the links so far
 * @control: the message carries no elements
 */
struct sim_route {
	u32 from;
	u32 to;
	u32 at;
	u32 stage;
	u32 link;
	u64 slowest;
	bool control;
};

struct sim_net {
	const struct sim_model *model;
	u32 nodes;
	u32 nlinks;
	struct sim_link *links;
};

int net_init(struct sim_net *net, const struct sim_model *model, u32 nodes);
void net_free(struct sim_net *net);
bool net_has_links(const struct sim_net *net);
void net_depart(const struct sim_net *net, struct sim_route *route, u32 from, u32 to,
		bool control);
bool net_next(const struct sim_net *net, struct sim_route *route, u64 *head);
u64 net_pass(struct sim_net *net, struct sim_route *route, u64 bytes, u64 head);

/* What m bytes take on a link after the first one */
static inline u64 net_length(u64 bytes, u64 per_byte)
{
	return (bytes - 1) * per_byte;
}

#endif /* ZCOLL_SIM_NET_H */
