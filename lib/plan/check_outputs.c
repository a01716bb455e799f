// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Outputs: what each of them has to be at the end, and in which order it was reduced.
 */
#include <stdlib.h>

#include "check.h"

/**
 * struct outputs - what the outputs have to be, and are
 * @c: proof
 * @exprs: values
 * @tree: the fixed tree over all members
 * @members: set of all members
 * @seen: the last value that was found to be right
 * @first: by segment: the value at the first node that has it as an output
 * @same: all nodes that have a segment have the same value
 * @ordered: and it is the fixed tree
 */
struct outputs {
	struct zc_proof *c;
	struct zc_exprs *exprs;
	struct zc_value tree;
	u32 members;
	struct zc_value seen;
	struct zc_value *first;
	bool same;
	bool ordered;
};

/* The only node that contributes to a segment, where nothing is reduced; ZC_NONE: all do */
static u32 owner_of(const struct zcoll_plan *plan, u32 segment)
{
	switch (plan->collective) {
	case ZCOLL_ALLGATHER:
		return segment;
	case ZCOLL_BROADCAST:
		return 0;
	}
	return ZC_NONE;
}

/*
 * Do all contribute to this value that must? None does twice, as fold() has seen; and where
 * there is one owner, no other node has inputs.
 */
static int check_whole(struct outputs *out, const struct zc_at *at,
		       u32 segment, struct zc_value value)
{
	u32 owner = owner_of(out->c->plan, segment), need = out->members, set, lacks;
	struct zc_sets *sets = &out->exprs->sets;

	if (zc_value_same(value, owner == ZC_NONE ? out->seen : zc_exprs_leaf(owner)))
		return 0;
	if (owner != ZC_NONE)
		need = zc_sets_add(sets, ZC_SET_EMPTY, owner);
	set = zc_exprs_set(out->exprs, value);
	if (set == ZC_SET_NONE || need == ZC_SET_NONE)
		return -ENOMEM;
	lacks = zc_sets_lacks(sets, set, need);
	if (lacks != ZC_SET_NONE)
		return zc_proof_refuse(out->c, at, "segment %u lacks the contribution of node %u "
				       "at the end", segment, lacks);
	out->seen = value;
	return 0;
}

/* Compare the values of the same segment at different nodes, and with the fixed tree */
static void compare(struct outputs *out, u32 segment, struct zc_value value)
{
	const u32 nodes = out->c->plan->nodes;
	u32 first = segment;

	if (owner_of(out->c->plan, segment) != ZC_NONE)
		return;
	if (!zc_value_same(value, out->tree))
		out->ordered = false;
	if (out->c->rows == 1) {
		/* Raised by 1 it is what the next node has, and so on */
		if (!zc_value_same(zc_exprs_raise(out->exprs, value, 1), out->tree))
			out->ordered = false;
		/* What another node has of segment 0 */
		value = zc_exprs_raise(out->exprs, value, nodes - segment % nodes);
		first = 0;
	}
	if (!out->first[first].expr)
		out->first[first] = value;
	else if (!zc_value_same(value, out->first[first]))
		out->same = false;
}

static int check_output(struct outputs *out, u32 v, u32 segment, struct zc_value value)
{
	struct zcoll_plan_facts *facts = out->c->facts;
	struct zc_at at = { v, ZC_NONE, ZC_NONE };

	if (!zc_plan_has_output(out->c->plan, v, segment))
		return 0;
	if (!*facts->order)
		zc_exprs_print(out->exprs, value, facts->order, sizeof(facts->order));
	compare(out, segment, value);
	return check_whole(out, &at, segment, value);
}

/**
 * zc_proof_outputs - show that the outputs are right, and see in which order they are reduced
 * @c: proof; the plan has been run
 * @exprs: values
 * @data: [row * segments + segment]: what DATA of the segment holds at the end
 *
 * Return: 0, -ENOMEM or a refusal.
 */
int zc_proof_outputs(struct zc_proof *c, struct zc_exprs *exprs, const struct zc_value *data)
{
	const struct zcoll_plan *plan = c->plan;
	struct outputs out = { .c = c, .exprs = exprs, .same = true, .ordered = true };
	struct zc_at nowhere = { ZC_NONE, ZC_NONE, ZC_NONE };
	int err = zc_exprs_tree(exprs, 0, plan->members, &out.tree);
	u32 v, segment;

	out.first = calloc(plan->segments, sizeof(*out.first));
	out.members = zc_sets_first(&exprs->sets, plan->members);
	if (!out.first || out.members == ZC_SET_NONE)
		err = -ENOMEM;
	for (v = 0; v < c->rows && !err; v++)
		for (segment = 0; segment < plan->segments && !err; segment++)
			err = check_output(&out, v, segment,
					   data[(size_t)v * plan->segments + segment]);
	free(out.first);
	c->facts->same_bits = out.same;
	c->facts->ordered = out.same && out.ordered;
	if (!err && plan->flags & ZCOLL_PLAN_ORDERED && !c->facts->ordered)
		err = zc_proof_refuse(c, &nowhere, "the plan promises the fixed tree's order, "
				      "but reduces in this one: %.400s", c->facts->order);
	return err;
}
