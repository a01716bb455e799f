# SPDX-License-Identifier: GPL-2.0
"""
goals - what the figures should be, and whether they are

A *goal* is a sentence with a limit for figures of many *cases* (sizes, modes). It is *met*
if no case is beyond its limit, *met within the spread* if those that are beyond it are so by
less than the spread of their rounds, and that is not large, and else *not met*. Shown is
the worst case.

On one node times are judged as ratios to the faster MPI. Plain memory takes a system
call from some size on, which on User-Mode Linux is 20 to 40 times as dear as on metal;
below 1 MiB the calls that zcoll has made are taken off, at the price of an empty call.
"""
from dataclasses import dataclass
import math

from samples import (KIB, MIB, NODE_PEERS, OURS, PEERS, PLAIN, median, size_name, spread,
                     words_of)

# With a CPU for each of 2 ranks: at most so many times the time of the faster MPI, from
# this size up to the next one. With fewer CPUs than ranks, or translated arithmetic: at
# most its time.
STRICT = ((4, 1.0), (64 * KIB, 0.7), (MIB, 0.5))
AS_FAST = ((4, 1.0),)
NET_BELOW = MIB             # plain memory: without what calls cost
ONE_PASS_GOAL = 16 * MIB, 0.80
CLIFF_GOAL = 2.6            # twice the size takes at most so many times as long
OVERLAP_GOAL = 16 * MIB
WAIT_GOAL = 5               # percent of the operation's time are left to wait for
SLOWER_GOAL = 10            # percent by which computing is slowed, beside the fold's time
SPREAD_MOST = 25            # percent; figures that vary more show nothing
# Between nodes
WIRE_GOAL = 16 * MIB, 0.70
LATENCIES_GOAL = 1.2        # a small operation: its write latencies, and a fifth
FASTER_FROM = 64 * KIB


@dataclass
class Case:
    where: str
    value: float
    limit: float
    spread: float = 0       # of the value, in percent

    def slack(self):
        return self.spread / 100 if self.spread <= SPREAD_MOST else 0

    def excess(self, least):
        """More than 1: beyond the limit, which is a lower one for `least`."""
        if least:
            return self.limit / self.value if self.value else math.inf
        return self.value / self.limit


@dataclass
class Goal:
    text: str
    cases: list
    show: object = "{:.2f}".format      # a value or limit as text
    least: bool = False

    def worst(self):
        return max(self.cases, key=lambda c: c.excess(self.least))

    def verdict(self):
        beyond = [c for c in self.cases if c.excess(self.least) > 1]
        out = [c for c in beyond if c.excess(self.least) > 1 + c.slack()]
        of = f"{len(beyond)} of {len(self.cases)} beyond" if len(self.cases) > 1 else ""
        if not beyond:
            return "met"
        if not out:
            return f"met within the spread{of and f' ({of})'}"
        return f"**not met**{of and f' ({of})'}"

    def line(self):
        worst = self.worst()
        limit = f"at {'least' if self.least else 'most'} {self.show(worst.limit)}"
        cells = (self.text, limit, self.verdict(), self.show(worst.value), worst.where)
        return f"| {' | '.join(cells)} |"


def percent(value):
    return f"{value:.0f} %"


def strict(ranks, translated):
    return ranks == 2 and not translated


def time_goals(ranks, translated):
    return STRICT if strict(ranks, translated) else AS_FAST


def bands(ranks, translated):
    """(from, below, limit) of each band of sizes; plain memory has one more border."""
    steps = time_goals(ranks, translated)
    ends = [size for size, _ in steps[1:]] + [math.inf]
    return [(begin, end, limit) for (begin, limit), end in zip(steps, ends)]


def band_name(begin, end):
    if end == math.inf:
        return "every size" if begin <= 4 else f"from {size_name(begin)}"
    below = f"below {size_name(end)}"
    return below if begin <= 4 else f"from {size_name(begin)}, {below}"


def time_case(row, size, mode, ours, limit):
    """None: not measured. On plain memory net of calls, where that is known and counts."""
    net = row.calls_ns(ours) or 0 if ours == PLAIN and size < NET_BELOW else 0
    ratios = row.ratios(ours, less=net)
    if not ratios:
        return None
    raw = median(row.ratios(ours)) if net else 0
    off = f", {row.calls[ours]} call off (with it {raw:.2f})" if net else ""
    return Case(f"{size_name(size)}, {mode}{off}, {PEERS[row.best_peer()]}",
                median(ratios), limit, spread(ratios) if median(ratios) else 0)


def speed_goals(samples, translated):
    out = []
    for ranks in samples.ranks():
        for ours, memory in ((OURS, "`zcoll_alloc()` memory"), (PLAIN, "plain memory")):
            for begin, end, limit in bands(ranks, translated):
                found = (time_case(row, size, mode, ours, limit) for mode in samples.modes(ranks)
                         for size, row in samples.by_size(ranks, mode) if begin <= size < end)
                out.append(Goal(f"time, times the faster MPI's: {ranks} ranks, {memory}, "
                                f"{band_name(begin, end)}", [c for c in found if c]))
    return out


def step_name(size, mode, row, twice):
    """The bound has steps, too, where data leaves a cache."""
    bound = row.one_pass() and twice.one_pass() and twice.one_pass() / row.one_pass()
    return (f"{size_name(size)} to {size_name(2 * size)}, {mode}"
            f"{f' (the one-pass bound: {bound:.2f})' if bound else ''}")


def cliff_goals(samples):
    out = []
    for ranks in samples.ranks():
        for ours, memory in ((OURS, "`zcoll_alloc()` memory"), (PLAIN, "plain memory")):
            cases = []
            for mode in samples.modes(ranks):
                rows = dict(samples.by_size(ranks, mode))
                for size, row in rows.items():
                    twice = rows.get(2 * size)
                    if twice and row.has(ours) and twice.has(ours):
                        cases.append(Case(step_name(size, mode, row, twice),
                                          twice.median(ours) / row.median(ours), CLIFF_GOAL,
                                          max(spread(row.ns[ours]), spread(twice.ns[ours]))))
            out.append(Goal("no cliff: time of twice the size, times that of the size: "
                            f"{ranks} ranks, {memory}", cases))
    return out


def one_pass_goal(samples):
    size, limit = ONE_PASS_GOAL
    cases = []
    for mode in samples.modes(2):
        row = samples.rows.get((2, size, mode))
        if row and row.fraction():
            cases.append(Case(mode, 100 * row.fraction(), 100 * limit, spread(row.ns[OURS])))
    return Goal("part of the one-pass bound's speed: 2 ranks, `zcoll_alloc()` memory, "
                f"{size_name(size)}", cases, percent, least=True)


def kernel_memory_limit(ranks):
    return 64 * KIB + ranks * 8 * KIB


def memory_goal(samples):
    return Goal("kernel memory of a communicator, bytes", [
        Case(f"{ranks} ranks", int(words_of(words)["kernel_bytes"]),
             kernel_memory_limit(int(ranks)))
        for ranks, words in samples.facts["kernel memory"]], "{:.0f}".format)


def overlap_goals(lines):
    """`lines`: what zcoll perf --overlap says of each size."""
    lines = [line for line in lines if line["size"] == OVERLAP_GOAL]
    where = "the slowest rank"
    return [
        Goal(f"non-blocking, {size_name(OVERLAP_GOAL)}: left to wait for after the computing, "
             "in 95 % of runs, of the operation's time alone",
             [Case(where, x["wait_percent_95"], WAIT_GOAL) for x in lines], "{:.1f} %".format),
        # The operation alone is all fold, but for a call or two
        Goal(f"non-blocking, {size_name(OVERLAP_GOAL)}: slows the computing by (limit: the time "
             f"of the operation alone, and {SLOWER_GOAL} %)",
             [Case(where, x["slower_percent"], 100 * x["pure"] / x["compute"] + SLOWER_GOAL)
              for x in lines], "{:.1f} %".format),
    ]


def one_node_goals(samples, overlap, translated):
    out = speed_goals(samples, translated)
    if not translated:
        out += [*cliff_goals(samples), one_pass_goal(samples)]
    out += [*overlap_goals(overlap), memory_goal(samples)]
    return out


def write_latency(samples, ranks, bound="bound-latency"):
    """Nanoseconds one way, from the smallest size: a batch's call goes there and back."""
    _, row = samples.by_size(ranks, "reuse")[0]
    return row.median(bound) / 2 if row.has(bound) else None


def wire_goals(samples, ranks):
    rows = dict(samples.by_size(ranks, "reuse"))
    size, limit = WIRE_GOAL
    fraction = rows[size].of_transport(OURS) if size in rows else None
    faster = [Case(size_name(s), median(r), 1.0, spread(r)) for s, row in rows.items()
              if s >= FASTER_FROM and (r := row.ratios(peer="openmpi-ucx"))]
    reached = [Case("verbs", 100 * fraction, 100 * limit,
                    spread(rows[size].ns[OURS]))] if fraction else []
    return [
        Goal(f"part of the wire bound's speed: {size_name(size)}", reached, percent, least=True),
        Goal(f"time, times that of {NODE_PEERS['openmpi-ucx']}: from {size_name(FASTER_FROM)}",
             faster),
    ]


def latency_goal(samples, ranks):
    """2 ceil(log2 N) messages, one after the other, are needed."""
    rows = dict(samples.by_size(ranks, "reuse"))
    latency, row = write_latency(samples, ranks), rows.get(8)
    steps = 2 * math.ceil(math.log2(samples.nodes()))
    cases = []
    if latency and row and row.has(OURS):
        cases = [Case("8 B", row.median(OURS) / 1000, LATENCIES_GOAL * steps * latency / 1000,
                      spread(row.ns[OURS]))]
    return Goal(f"time of 8 B, us (limit: {steps} latencies of a write, and a fifth)", cases,
                "{:.0f}".format)


def node_goals(samples):
    return [g for ranks in samples.ranks()
            for g in (*wire_goals(samples, ranks), latency_goal(samples, ranks))]


def table(goals):
    """Markdown; a goal without figures says so."""
    out = ["| goal | limit | verdict | worst figure | where |", "|---|---|---|---:|---|"]
    return out + [g.line() if g.cases else f"| {g.text} | | not measured | - | - |" for g in goals]
