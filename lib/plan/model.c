// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The cost model: closed forms of LogGP time for the known algorithms.
 *
 * Vocabulary: n bytes of the operation, N nodes; alpha = L + 2o; a message of m bytes
 * takes alpha + (m-1)G, and gamma m if it is folded. It goes in *slices*, so that while one
 * is folded the next is on the wire; between two slices passes the *cadence*, the longest
 * of what each of the serial parts needs for one: NIC (g, (s-1)G) and processor (o to send
 * one, o to receive one, gamma s).
 *
 * The forms are composed of four shapes:
 *
 *	message		one message, while each node sends one and receives one
 *	stream		messages to or from several peers that do not wait for each other
 *	chain		messages each of which waits for the one before, round a ring
 *	pipe		one message that is handed on, slice by slice
 *
 * Sources: Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication: theory,
 * practice, and experience", CCPE 19(13), 2007; Thakur, Rabenseifner, Gropp,
 * "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1), 2005;
 * Traeff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms" (circulant);
 * Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and
 * scan", Parallel Computing 35(12), 2009. lib/plan/cost.c times the plans themselves; the
 * tests hold the forms against it.
 */
#include <math.h>
#include <string.h>

#include "../../kmod/engine/engine.h"
#include "model.h"

struct model {
	const struct zcoll_fabric *fabric;
	uint64_t slice;		/* bytes */
	uint32_t collective;
	uint32_t nodes;
	uint32_t radix;
	const uint32_t *levels;
};

/* ---- the shapes ---- */

static double alpha(const struct model *m)
{
	return m->fabric->latency + 2 * m->fabric->overhead;
}

static double wire(const struct model *m, double bytes)
{
	return fmax(bytes - 1, 0) * m->fabric->per_byte;
}

static double folding(const struct model *m, double bytes, bool folds)
{
	return folds ? bytes * m->fabric->per_byte_folded : 0;
}

static double slices(const struct model *m, double bytes)
{
	return zc_cut(ceil(bytes), m->slice).slices;
}

/* Bytes of a slice */
static double unit(const struct model *m, double bytes)
{
	return bytes / slices(m, bytes);
}

static double cadence(const struct model *m, double bytes, bool folds)
{
	double nic = fmax(m->fabric->gap, wire(m, bytes));

	return fmax(nic, 2 * m->fabric->overhead + folding(m, bytes, folds));
}

/*
 * What is to be folded, or is small, lands in slots. Where more slices follow each other
 * than there are, leave comes for half of the slots at a time, and the others last for as
 * long as their cadence; the longer if messages come from several peers.
 */
static double stall(const struct model *m, double peers, double bytes, bool folds)
{
	double slice = unit(m, bytes), k = slices(m, bytes), half = ZC_ENGINE_SLOTS / 2;
	double leave = 2 * alpha(m) + folding(m, slice, folds);
	double others = half * peers * cadence(m, slice, folds);
	bool slotted = folds || slice <= ZC_ENGINE_EAGER;

	return slotted && k > ZC_ENGINE_SLOTS ?
	       (k - ZC_ENGINE_SLOTS) / half * fmax(0, leave - others) : 0;
}

/*
 * @count messages that do not wait for each other. The processor sends while the first are
 * on the way; it may be busy for longer than that.
 */
static double stream(const struct model *m, double count, double bytes, bool folds)
{
	double slice = unit(m, bytes), k = count * slices(m, bytes);
	double work = m->fabric->overhead + folding(m, slice, folds);
	double beat = fmax(fmax(m->fabric->gap, wire(m, slice)), work);
	double flow = alpha(m) + (k - 1) * beat + wire(m, slice) + folding(m, slice, folds);

	return count < 1 ? 0 : fmax(flow, k * (work + m->fabric->overhead)) +
			       stall(m, count, bytes, folds);
}

/* The same, each message in one piece */
static double whole(const struct model *m, double count, double bytes)
{
	struct model uncut = *m;

	uncut.slice = fmax(ceil(bytes), 1);
	return stream(&uncut, count, bytes, false);
}

static double message(const struct model *m, double bytes, bool folds)
{
	return stream(m, 1, bytes, folds);
}

/* @hops messages, each of which waits, slice by slice, for the one before */
static double chain(const struct model *m, double hops, double bytes, bool folds)
{
	double slice = unit(m, bytes), k = slices(m, bytes);
	double hop = alpha(m) + wire(m, slice) + folding(m, slice, folds);
	double beat = cadence(m, slice, folds);

	if (hops < 1)
		return 0;
	return hop + (hops - 1) * fmax(hop, k * beat) + (k - 1) * beat +
	       hops * stall(m, 1, bytes, folds);
}

/* One message, over @hops nodes, each of which hands on what it has got */
static double pipe(const struct model *m, double hops, double bytes, bool folds)
{
	double slice = unit(m, bytes);

	return hops * (alpha(m) + wire(m, slice) + folding(m, slice, folds)) +
	       (slices(m, bytes) - 1) * cadence(m, slice, folds);
}

/*
 * Before the first message into outputs or scratch comes a grant, if it is not small; those
 * for later ones come while others are on the way
 */
static double grant(const struct model *m, double bytes)
{
	return bytes > ZC_ENGINE_EAGER ? alpha(m) : 0;
}

/* ---- reduce-scatter and all-gather of n bytes in few rounds, for any N ---- */

/* A round: the blocks beyond @kept of @all go @kept, 2 @kept, ... nodes further on */
static double skip(const struct model *m, uint32_t all, uint32_t kept, double block, bool folds)
{
	double peers = ceil((double)(all - kept) / kept);

	return stream(m, peers, (all - kept) * block / peers, folds);
}

/* Traeff's skips: N, ceil(N / radix), ..., 1; halving where N is 2^k and radix 2 */
static double skips(const struct model *m, uint32_t nodes, uint32_t radix, double bytes,
		    bool folds)
{
	uint32_t all = nodes, kept;
	double ns = 0;

	for (; all > 1; all = kept) {
		kept = (all + radix - 1) / radix;
		ns += skip(m, all, kept, bytes / nodes, folds);
	}
	return ns;
}

/* Bruck's skips: N, and the powers of the radix below it */
static double powers(const struct model *m, uint32_t nodes, uint32_t radix, double bytes,
		     bool folds)
{
	uint64_t kept, all;
	double ns = 0;

	for (kept = 1; kept < nodes; kept = all) {
		all = kept * radix;
		ns += skip(m, all < nodes ? all : nodes, kept, bytes / nodes, folds);
	}
	return ns;
}

static double rounds(uint32_t nodes, uint32_t radix)
{
	uint64_t power = 1;
	uint32_t count = 0;

	for (; power < nodes; power *= radix)
		count++;
	return count;
}

/* The largest power of @radix that is at most @nodes */
static uint32_t power_below(uint32_t radix, uint32_t nodes)
{
	uint32_t power = 1;

	while (nodes / radix >= power)
		power *= radix;
	return power;
}

/* ---- the algorithms; NAN: there is no such form ---- */

/* Both halves of an all-reduce or a barrier, or the one that is asked for. @first: bytes
 * of its first message */
static double halves(const struct model *m, double scatter, double gather, double first)
{
	switch (m->collective) {
	case ZCOLL_REDUCE_SCATTER:
	case ZCOLL_REDUCE:
		return scatter;
	case ZCOLL_ALLGATHER:
	case ZCOLL_BROADCAST:
		return grant(m, unit(m, first)) + gather;
	default:
		return scatter + gather;
	}
}

static double ring(const struct model *m, double n)
{
	double hops = m->nodes - 1, part = n / m->nodes;

	if (m->collective == ZCOLL_BROADCAST || m->collective == ZCOLL_REDUCE)
		return pipe(m, hops, n, m->collective == ZCOLL_REDUCE);
	if (m->collective == ZCOLL_BARRIER)
		return 2 * pipe(m, hops, 0, false);
	return halves(m, chain(m, hops, part, true), chain(m, hops, part, false), part);
}

/* What comes is kept, and folded at the end */
static double pairwise(const struct model *m, double n)
{
	double peers = m->nodes - 1, part = n / m->nodes;
	double fold = folding(m, peers * part, true);

	if (m->collective == ZCOLL_REDUCE_SCATTER)
		return grant(m, part) + whole(m, peers, part) + fold;
	return grant(m, part) + whole(m, peers, part) +
	       (m->collective == ZCOLL_ALLREDUCE ? fold + skips(m, m->nodes, 2, n, false) : 0);
}

static double circulant(const struct model *m, double n)
{
	uint32_t radix = m->radix ? m->radix : 2;

	if (m->collective == ZCOLL_BARRIER)
		return rounds(m->nodes, radix) * stream(m, radix - 1, 0, false);
	return halves(m, skips(m, m->nodes, radix, n, true),
		      skips(m, m->nodes, radix, n, false), n / m->nodes);
}

static double bruck(const struct model *m, double n)
{
	uint32_t radix = m->radix ? m->radix : 2;

	if (m->collective == ZCOLL_BARRIER)
		return rounds(m->nodes, radix) * stream(m, radix - 1, 0, false);
	return halves(m, powers(m, m->nodes, radix, n, true),
		      powers(m, m->nodes, radix, n, false), n / m->nodes);
}

/*
 * Radix 2: a chain over all rounds. Larger: in a round, each digit's value comes in one
 * piece, and then they are folded. What is beyond the core joins before and gets the
 * result after.
 */
static double recursive_doubling(const struct model *m, double n)
{
	uint32_t radix = m->radix ? m->radix : 2, stride, digit = 1;
	uint32_t power = power_below(radix, m->nodes), core = m->nodes / power * power;
	double extras = m->nodes - core, ns = grant(m, n), o = m->fabric->overhead;

	if (m->collective == ZCOLL_ALLGATHER)
		return grant(m, unit(m, n / m->nodes)) + powers(m, core, 2, n, false) +
		       (extras > 0 ? alpha(m) + message(m, n, false) : 0);
	for (stride = 1; stride < core; stride *= digit) {
		digit = fmin(radix, core / stride);
		ns += whole(m, digit - 1, n) + folding(m, (digit - 1) * n, true);
	}
	if (radix == 2)
		ns = chain(m, log2(core), n, true);
	if (extras > 0)
		ns += stream(m, ceil(extras / core), n, true);
	/* where only nodes with one highest digit have extras, they are all that is late: the
	 * last round's values have come when they send theirs, and then the result */
	return ns + (extras > core / digit ? stream(m, ceil(extras / core), n, false) + 2 * o :
		     extras > 0 ? wire(m, n) + digit * o : 0);
}

static double halving_doubling(const struct model *m, double n)
{
	uint32_t power = power_below(2, m->nodes);
	bool rest = m->nodes > power;

	if (m->collective == ZCOLL_REDUCE)
		return skips(m, power, 2, n, true) + skips(m, power, 2, n, false) +
		       (rest ? message(m, n, true) : 0);
	return halves(m, skips(m, power, 2, n, true) + (rest ? message(m, n, true) : 0),
		      skips(m, power, 2, n, false) + (rest ? message(m, n, false) : 0), n / power);
}

/* What a digit of a node's number costs on the way from the root: @j - 1 go before it */
static double digit_ns(uint32_t j, uint32_t radix, double hop, double beat)
{
	return j ? hop + (j - 1) * beat : (radix - 1) * beat;
}

/* The longest way from the root of a k-nomial tree, or to it, over all numbers of nodes */
static double longest(uint32_t nodes, uint32_t radix, double hop, double beat)
{
	double free = digit_ns(radix - 1, radix, hop, beat);	/* the most a digit costs */
	double head = 0, most = 0, less;
	uint32_t last = nodes - 1, power = power_below(radix, last), digits = 0, digit;

	for (digit = power; digit > 1; digit /= radix)
		digits++;
	for (; power; power /= radix) {
		digit = last / power % radix;
		/* this digit less by one, and all below as they like */
		less = digit > 1 || (digit && head > 0) ?
		       digit_ns(digit - 1, radix, hop, beat) : 0;
		if (digit)
			most = fmax(most, head + less + digits * free);
		head += digit_ns(digit, radix, hop, beat);
		if (digits)
			digits--;
	}
	return fmax(most, head);
}

static double knomial(const struct model *m, double n, uint32_t radix)
{
	double up = message(m, n, true), down = message(m, n, false);

	return halves(m, longest(m->nodes, radix, up, stream(m, 2, n, true) - up),
		      longest(m->nodes, radix, down, stream(m, 2, n, false) - down), n);
}

static double tree(const struct model *m, double n)
{
	return knomial(m, n, m->radix ? m->radix : 4);
}

static double binomial(const struct model *m, double n)
{
	return knomial(m, n, 2);
}

/*
 * Two binary trees, each for one half, in which each node is once inside and once a leaf.
 * A root has one child; for a broadcast or reduce between two nodes it is that of both.
 */
static double double_tree(const struct model *m, double n)
{
	bool rooted = m->collective == ZCOLL_BROADCAST || m->collective == ZCOLL_REDUCE;
	double slice = unit(m, n / 2), more = slices(m, n / 2) - 1;
	double levels = rounds(m->nodes, 2) - 1;
	double busy = m->nodes > 2 || rooted ? 2 : 1;	/* messages of a node for each slice */

	return halves(m, levels * stream(m, 2, slice, true) + message(m, slice, true) +
			 busy * more * cadence(m, slice, true),
		      levels * stream(m, 2, slice, false) + message(m, slice, false) +
		      busy * more * cadence(m, slice, false), n);
}

/*
 * From the leaves to the top, and back, slice by slice; the top is not the root of the
 * operation
 */
static double aggregator(const struct model *m, double n)
{
	uint32_t radix = m->radix ? m->radix : 8, below = m->nodes, count;
	double slice = unit(m, n), more = slices(m, n) - 1, most = 0, children;
	double up = 0, down = 0, extra = message(m, slice, false);

	for (; below > 1 || !most; below = count) {
		count = (below + radix - 1) / radix;
		children = ceil((double)below / count);
		most = fmax(most, children);
		up += stream(m, children, slice, true);
		down += stream(m, children, slice, false);
	}
	/* going up and coming down do not hinder each other */
	if (m->collective == ZCOLL_ALLREDUCE || m->collective == ZCOLL_BARRIER)
		return up + down + more * most * cadence(m, slice, true);
	if (m->collective == ZCOLL_REDUCE)
		return up + extra + more * most * cadence(m, slice, true);
	return down + extra + more * fmax(most - 1, 1) * cadence(m, slice, false);
}

/* The largest divisor up to the square root, and @most: how the generator splits nodes */
static uint32_t divisor(uint32_t nodes, uint32_t most)
{
	uint32_t best = 1, d;

	for (d = 2; d <= most && d * d <= nodes; d++)
		if (nodes % d == 0)
			best = d;
	return best;
}

/* Groups of a prime number of nodes */
static uint32_t group_size(uint32_t nodes)
{
	uint32_t size = 2;

	while (4 * size * size <= nodes)
		size *= 2;
	return size;
}

/* For a prime number of nodes: trees in groups, and the leaders all-reduce */
static double leaders(const struct model *m, double n)
{
	uint32_t size = group_size(m->nodes), heads;
	double trees;
	bool lone;	/* the last group would be one node, and goes with the one before */

	lone = m->nodes % size == 1;
	heads = m->nodes / size + !lone;
	trees = rounds(size, 2) + lone;
	return trees * (message(m, n, true) + message(m, n, false)) +
	       skips(m, heads, 2, n, true) + skips(m, heads, 2, n, false);
}

/*
 * A binomial tree in each level. Where the root of a broadcast needs leave, it comes from the
 * nearest nodes first, and the first slice goes to them before the outer levels.
 */
static double tiers(const struct model *m, double n, const uint32_t *levels)
{
	bool folds = m->collective == ZCOLL_REDUCE;
	double hop = message(m, n, folds), beat = stream(m, 2, n, folds) - hop;
	double leave = folds ? 0 : grant(m, unit(m, n)), ns = leave;
	unsigned int i;

	for (i = 0; i < ZCOLL_PLAN_LEVELS && levels[i]; i++) {
		ns += longest(levels[i], 2, hop, beat);
		if (leave > 0 && i + 1 < ZCOLL_PLAN_LEVELS && levels[i + 1])
			ns += rounds(levels[i], 2) * cadence(m, unit(m, n), false);
	}
	return ns;
}

/*
 * A segment a message: to each other node of a group all that is of it, and in the outermost
 * level round by round. One level is circulant.
 */
static double stripes(const struct model *m, double n, const uint32_t *levels)
{
	bool folds = m->collective == ZCOLL_REDUCE_SCATTER;
	double part = n / m->nodes, ns = folds ? 0 : grant(m, part);
	uint32_t stride = 1, all, kept, i;

	if (!levels[1])
		return circulant(m, n);
	for (i = 0; i + 1 < ZCOLL_PLAN_LEVELS && levels[i + 1]; i++) {
		stride *= levels[i];
		ns += stream(m, (double)(levels[i] - 1) * m->nodes / stride, part, folds);
	}
	for (all = levels[i]; all > 1; all = kept) {
		kept = (all + 1) / 2;
		ns += stream(m, all - kept, part, folds);
	}
	return ns;
}

/* Scatter in the groups, then between them, and so on; and gather the other way */
static double hierarchical(const struct model *m, double n)
{
	bool rooted = m->collective == ZCOLL_BROADCAST || m->collective == ZCOLL_REDUCE;
	bool striped = m->collective == ZCOLL_ALLGATHER ||
		       m->collective == ZCOLL_REDUCE_SCATTER;
	uint32_t inner = divisor(m->nodes, striped ? 16 : m->nodes), i;
	uint32_t own[] = { inner, m->nodes / inner, 0 };
	const uint32_t *levels = m->levels[0] ? m->levels : own;
	bool leads = !m->levels[0] && inner == 1 && m->nodes > 4;
	double ns = 0, part = n;

	if (inner == 1) {
		own[0] = m->nodes;
		own[1] = 0;
	}
	if (rooted && leads) {
		own[0] = group_size(m->nodes);
		own[1] = (m->nodes + own[0] - 2) / own[0];
		/* the last group has one more; a reduce gets the others' meanwhile */
		own[0] += m->collective == ZCOLL_BROADCAST && m->nodes % own[0] == 1;
	}
	if (rooted)
		return tiers(m, n, levels);
	if (striped)
		return stripes(m, n, levels);
	if (m->collective == ZCOLL_ALLREDUCE && leads)
		return leaders(m, n);
	for (i = 0; i < ZCOLL_PLAN_LEVELS && levels[i]; i++) {
		if (m->collective == ZCOLL_BARRIER)
			ns += rounds(levels[i], 2) * alpha(m);
		else
			ns += skips(m, levels[i], 2, part, true) +
			      skips(m, levels[i], 2, part, false);
		part /= levels[i];
	}
	return ns;
}

/* Words of all nodes to all, when the results are there: see zc_agree() */
static double agreeing(const struct model *m, const struct zcoll_plan_spec *spec)
{
	return spec->flags & ZCOLL_PLAN_AGREED ?
	       rounds(spec->nodes + spec->aggregators, 2) * message(m, 0, false) : 0;
}

static double local(const struct model *m, double n)
{
	return m->nodes == 1 && n >= 0 ? 0 : NAN;
}

static const struct {
	const char *algo;
	double (*time)(const struct model *m, double n);
} forms[] = {
	{ "ring", ring }, { "pairwise", pairwise }, { "circulant", circulant },
	{ "recursive-doubling", recursive_doubling },
	{ "halving-doubling", halving_doubling }, { "binomial", binomial }, { "knomial", tree },
	{ "double-tree", double_tree }, { "bruck", bruck },
	{ "hierarchical", hierarchical }, { "aggregator", aggregator }, { "local", local },
};

/**
 * zcoll_plan_estimate - the time of a known algorithm, by its closed form
 * @spec: algorithm, collective, nodes and parameters
 * @fabric: fabric
 * @bytes: of the operation
 * @slice: bytes of a slice; 0: ZCOLL_SLICE_DEFAULT
 *
 * Return: ns; not a number where there is no form, or the specification is out of range.
 */
double zcoll_plan_estimate(const struct zcoll_plan_spec *spec,
			   const struct zcoll_fabric *fabric, uint64_t bytes, uint64_t slice)
{
	const struct model model = {
		.fabric = fabric, .slice = slice ? slice : ZCOLL_SLICE_DEFAULT,
		.collective = spec->collective, .nodes = spec->nodes,
		/* zcoll_plan_make() takes a larger radix so, too */
		.radix = spec->radix < spec->nodes || spec->nodes < 2 ? spec->radix : spec->nodes,
		.levels = spec->levels,
	};
	double n = spec->collective == ZCOLL_BARRIER ? 0 : bytes;
	unsigned int i;

	if (!spec->nodes || spec->nodes > ZCOLL_PLAN_MAX_NODES || spec->radix == 1)
		return NAN;
	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (!strcmp(forms[i].algo, spec->algo))
			return forms[i].time(&model, n) + agreeing(&model, spec);
	return NAN;
}

/**
 * zcoll_plan_bound - the yardstick: a time that plans are compared with
 * @collective: ZCOLL_ALLREDUCE ...
 * @nodes: nodes
 * @fabric: fabric
 * @bytes: of the operation
 *
 * Return: ns: ceil(log2 nodes) messages in a row, and the least number of bytes on the
 * wire of each node, one after the other. (A node that sends to several others at once can
 * be below that where o is small.)
 */
double zcoll_plan_bound(uint32_t collective, uint32_t nodes,
			const struct zcoll_fabric *fabric, uint64_t bytes)
{
	double wires[ZCOLL_NR_COLLECTIVES] = {
		[ZCOLL_ALLREDUCE] = 2, [ZCOLL_REDUCE_SCATTER] = 1, [ZCOLL_ALLGATHER] = 1,
		[ZCOLL_BROADCAST] = 1, [ZCOLL_REDUCE] = 1,
	};
	bool whole = collective == ZCOLL_BROADCAST || collective == ZCOLL_REDUCE;
	double share = whole && nodes > 1 ? 1 : (double)(nodes - 1) / nodes;

	return rounds(nodes, 2) * (fabric->latency + 2 * fabric->overhead) +
	       wires[collective] * share * bytes * fabric->per_byte;
}
