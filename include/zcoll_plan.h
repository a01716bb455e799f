/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * libzcoll, plans: making, proving, storing and choosing them. What a plan is says
 * <linux/zcoll_plan.h>. Nothing here needs the device.
 *
 * Functions return 0 or a negative errno, with a text in the caller's buffer where
 * they take one (ZCOLL_TEXT_MAX bytes always suffice). All may be called from any
 * thread; there is no global state. Plans that functions make are the caller's, to
 * be freed by zcoll_plan_free().
 */
#ifndef ZCOLL_PLAN_H
#define ZCOLL_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <linux/zcoll.h>
#include <linux/zcoll_plan.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)	/* the library hides all else */

/**
 * struct zcoll_plan_spec - which plan to make
 * @size: sizeof(struct zcoll_plan_spec)
 * @algo: "ring", "pairwise", "recursive-doubling", "halving-doubling", "circulant",
 *	"binomial", "knomial", "double-tree", "bruck", "hierarchical", "aggregator",
 *	or "local" (one node)
 * @collective: ZCOLL_ALLREDUCE ... ZCOLL_BARRIER
 * @nodes: nodes with ranks, at least 1
 * @radix: of knomial, aggregator, recursive-doubling, circulant, bruck; 0: the algorithm's own
 * @aggregators: further nodes without ranks, for "aggregator"; 0: as many as its tree
 *	needs
 * @flags: ZCOLL_PLAN_AGREED: append what makes the verdict uniform
 * @levels: group sizes for "hierarchical", innermost first; all 0: the algorithm's own
 */
struct zcoll_plan_spec {
	size_t size;
	const char *algo;
	uint32_t collective;
	uint32_t nodes;
	uint32_t radix;
	uint32_t aggregators;
	uint32_t flags;
	uint32_t levels[ZCOLL_PLAN_LEVELS];
};

const char *zcoll_plan_algorithm(unsigned int i);
const char *zcoll_collective_name(unsigned int collective);
int zcoll_collective_parse(const char *name, unsigned int *collective);

int zcoll_plan_make(const struct zcoll_plan_spec *spec, struct zcoll_plan **plan,
		    char *error, size_t error_len);
void zcoll_plan_free(struct zcoll_plan *plan);

int zcoll_plan_parse(const char *text, size_t len, struct zcoll_plan **plan, char *error,
		     size_t error_len);
char *zcoll_plan_format(const struct zcoll_plan *plan);

/**
 * struct zcoll_plan_facts - what the proof of a plan has found
 * @rounds: messages on the longest chain of messages that wait for each other
 * @sent_max: segments that a node sends, the most of all nodes
 * @sent_total: segments that all nodes send
 * @messages_max: messages that a node sends, the most of all nodes
 * @messages_total: messages of all nodes
 * @folded_max: segments received that a node folds, the most of all nodes
 * @peers_max: different nodes that a node sends to or receives from, the most
 * @scratch: scratch places really used
 * @acc: segments of accumulation that a node without room in its outputs needs
 * @reserved: 0
 * @same_bits: all nodes get the same bits for each segment, whatever the operator
 * @ordered: the order is the fixed tree's over nodes (zcoll_plan.flags)
 * @agreed: no node ends before all nodes have all results
 * @nodes_run: nodes that were run symbolically; fewer than all where the plan is
 *	the same seen from every node
 * @order: the order in which one segment is reduced, "((0+1)+(2+3))", cut off with
 *	"..." where it is long
 */
struct zcoll_plan_facts {
	uint32_t rounds;
	uint32_t nodes_run;
	uint64_t sent_max;
	uint64_t sent_total;
	uint64_t messages_max;
	uint64_t messages_total;
	uint64_t folded_max;
	uint32_t peers_max;
	uint32_t scratch;
	uint32_t acc;
	uint8_t same_bits;
	uint8_t ordered;
	uint8_t agreed;
	uint8_t reserved;
	char order[ZCOLL_TEXT_MAX];
};

/**
 * struct zcoll_plan_limits - under which grants a plan is to be proved
 * @window: operations in flight, at least 1
 * @slots: slots of a receiving step, at least 1
 * @nodes: a plan that looks the same from every node is run at one node only if it has
 *	more nodes than this; 0: never. Others are always run at all nodes
 *
 * The proof holds for any window, number of slots and slices; NULL limits mean that
 * @nodes is 1.
 */
struct zcoll_plan_limits {
	uint32_t window;
	uint32_t slots;
	uint32_t nodes;
};

int zcoll_plan_check(const struct zcoll_plan *plan, const struct zcoll_plan_limits *limits,
		     struct zcoll_plan_facts *facts, char *error, size_t error_len);

/**
 * struct zcoll_fabric - what a network costs, in the LogGP model
 * @latency: L, ns from one node to another
 * @overhead: o, ns of a CPU to send or to receive a message
 * @gap: g, ns between two messages of a NIC
 * @per_byte: G, ns a byte on the wire
 * @per_byte_folded: gamma, ns a byte of received data to be folded
 * @name: of the fabric
 *
 * A message of m bytes takes overhead + latency + (m - 1) per_byte + overhead.
 */
struct zcoll_fabric {
	double latency;
	double overhead;
	double gap;
	double per_byte;
	double per_byte_folded;
	char name[64];
};

void zcoll_fabric_default(struct zcoll_fabric *fabric);
int zcoll_fabric_get(const char *where, struct zcoll_fabric *fabric, char *error,
		     size_t error_len);
char *zcoll_fabric_format(const struct zcoll_fabric *fabric);

/**
 * struct zcoll_plan_cost - what a plan costs on a fabric
 * @ns: time from the begin, at all nodes at once, until the last node has ended
 * @bound_ns: zcoll_plan_bound(), to compare with
 * @rounds: messages on the longest chain of messages that wait for each other
 * @messages_max: messages that a node sends, the most of all nodes
 * @sent_max: bytes that a node sends, the most of all nodes
 * @sent_total: bytes that all nodes send
 * @folded_max: bytes received that a node folds, the most of all nodes
 */
struct zcoll_plan_cost {
	double ns;
	double bound_ns;
	uint64_t rounds;
	uint64_t messages_max;
	double sent_max;
	double sent_total;
	double folded_max;
};

int zcoll_plan_time(const struct zcoll_plan *plan, const struct zcoll_fabric *fabric,
		    uint64_t bytes, uint64_t slice, struct zcoll_plan_cost *cost,
		    char *error, size_t error_len);
double zcoll_plan_estimate(const struct zcoll_plan_spec *spec,
			   const struct zcoll_fabric *fabric, uint64_t bytes,
			   uint64_t slice);
double zcoll_plan_bound(uint32_t collective, uint32_t nodes,
			const struct zcoll_fabric *fabric, uint64_t bytes);

#define ZCOLL_PLAN_CANDIDATES	64
#define ZCOLL_SLICE_DEFAULT	(64U << 10)	/* bytes of a slice, if nobody says */

/* Who has chosen a plan, the greatest authority first */
#define ZCOLL_BY_CALL		1	/* zcoll_plan_query.choice */
#define ZCOLL_BY_ENVIRONMENT	2	/* $ZCOLL_PLAN_ALLREDUCE ..., $ZCOLL_PLAN */
#define ZCOLL_BY_RULES		3	/* zcoll_plan_query.rules, $ZCOLL_RULES */
#define ZCOLL_BY_COST		4	/* the least estimated time */

/**
 * struct zcoll_plan_query - for what a plan is wanted
 * @size: sizeof(struct zcoll_plan_query)
 * @collective: ZCOLL_ALLREDUCE ... ZCOLL_BARRIER
 * @nodes: nodes with ranks, at least 1
 * @bytes: of the whole operation: all segments
 * @flags: ZCOLL_PLAN_ORDERED, ZCOLL_PLAN_AGREED: it must be so
 * @scratch: bytes that a node can give for scratch places, and for accumulations
 *	where @output is 0; 0: as many as needed
 * @element: bytes of an element, at least 1; slices are whole elements
 * @output: 1: each node has an output with room for all segments
 * @reserved: 0
 * @fabric: NULL: $ZCOLL_COSTS, or the built-in one if that is not set
 * @rules: rules file; NULL: $ZCOLL_RULES, or none if that is not set
 * @choice: "ALGORITHM[:radix=N][,levels=AxB...][,aggregators=N][,slice=BYTES]", NULL: let
 *	others decide
 */
struct zcoll_plan_query {
	size_t size;
	uint32_t collective;
	uint32_t nodes;
	uint64_t bytes;
	uint64_t scratch;
	uint32_t flags;
	uint32_t element;
	uint32_t output;
	uint32_t reserved;
	const struct zcoll_fabric *fabric;
	const char *rules;
	const char *choice;
};

/**
 * struct zcoll_plan_candidate - one of the plans to choose from
 * @spec: what to give to zcoll_plan_make()
 * @slice: bytes of a slice
 * @scratch: bytes a node needs, as zcoll_plan_query.scratch counts
 * @ns: estimated time
 * @refused: why it cannot be, "" if it can
 */
struct zcoll_plan_candidate {
	struct zcoll_plan_spec spec;
	uint64_t slice;
	uint64_t scratch;
	double ns;
	char refused[112];
};

/**
 * struct zcoll_plan_choice - what zcoll_plan_select() has chosen
 * @best: the chosen one
 * @by: ZCOLL_BY_*
 * @ncandidates: number of @candidates
 * @fabric: on which times are estimated
 * @bound_ns: zcoll_plan_bound()
 * @why: who decided, in words: the variable, the file and the rule in it, ...
 * @candidates: all that were compared, those that can be first, by time
 */
struct zcoll_plan_choice {
	struct zcoll_plan_candidate best;
	uint32_t by;
	uint32_t ncandidates;
	struct zcoll_fabric fabric;
	double bound_ns;
	char why[ZCOLL_TEXT_MAX];
	struct zcoll_plan_candidate candidates[ZCOLL_PLAN_CANDIDATES];
};

int zcoll_plan_select(const struct zcoll_plan_query *query, struct zcoll_plan_choice *choice,
		      char *error, size_t error_len);
int zcoll_plan_choice_text(const struct zcoll_plan_candidate *candidate, char *text,
			   size_t len);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* ZCOLL_PLAN_H */
