# SPDX-License-Identifier: GPL-2.0
"""
samples - what selftests/bench/measure wrote, read back

A *row* holds all samples of one number of ranks, size and use of buffers (mode). A
*contender* is zcoll on one kind of memory, an MPI in one setting, or a *bound*: what
the machine can do at best. A median is over the rounds. A *ratio* is our time over that
of a peer, round by round, because contenders of one round were measured within a
second; the *best peer* of a row is the one with the least median.
"""
import collections
import statistics

OURS = "zcoll"              # on memory of zcoll_alloc(), where there is one node
PLAIN = "zcoll-plain"
PEERS = {"openmpi-best": "Open MPI, best setting", "mpich": "MPICH"}
# Between nodes, and the bound of what each goes over
NODE_PEERS = {"openmpi-ucx": "Open MPI over verbs", "openmpi-tcp": "Open MPI over TCP"}
TRANSPORT = {OURS: "bound-verbs", "openmpi-ucx": "bound-verbs", "openmpi-tcp": "bound-tcp"}
NODE_BOUNDS = {"bound-verbs": "wire bound, verbs", "bound-tcp": "wire bound, TCP"}
# What a one-pass all-reduce cannot be faster than: the least of these
ONE_PASS = ("bound-fold", "bound-stream", "bound-copy")
MODES = {"reuse": "buffers reused", "rotate": "buffers rotated"}
KIB, MIB = 1 << 10, 1 << 20

median = statistics.median


def spread(values):
    """Half the distance between the quartiles, in percent of the median."""
    low, _, high = statistics.quantiles(values, n=4)
    return 50 * (high - low) / median(values)


def size_name(size):
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def words_of(text):
    return dict(word.split("=") for word in text.split())


class Row:
    def __init__(self):
        self.ns = collections.defaultdict(list)
        self.calls = {}     # of the system, in one operation, by contender

    def has(self, name):
        return len(self.ns[name]) > 1

    def median(self, name):
        return median(self.ns[name])

    def best_peer(self):
        return min((p for p in PEERS if self.has(p)), key=self.median, default=None)

    def ratios(self, ours=OURS, peer=None, less=0):
        """Our time, with `less` ns off, over the peer's (the best), round by round."""
        peer = peer or self.best_peer()
        if not peer or not self.has(peer) or not self.has(ours):
            return None
        return [max(a - less, 0) / b for a, b in zip(self.ns[ours], self.ns[peer])]

    def calls_ns(self, name):
        """What the system calls of an operation take if they do nothing; None: unknown."""
        if name not in self.calls or not self.has("bound-call"):
            return None
        return self.calls[name] * self.median("bound-call")

    def one_pass(self):
        return min((self.median(b) for b in ONE_PASS if self.has(b)), default=None)

    def fraction(self, name=OURS):
        """Which part of the one-pass bound's speed a contender reaches."""
        bound = self.one_pass()
        return bound / self.median(name) if bound and self.has(name) else None

    def of_transport(self, name):
        """Which part of the speed of what it goes over a contender reaches."""
        bound = TRANSPORT[name]
        if not (self.has(bound) and self.has(name)):
            return None
        return self.median(bound) / self.median(name)


class Samples:
    """All of a rig: rows by (ranks, size, mode), and facts, lists of words by their key."""

    def __init__(self, folder):
        self.rows, self.facts = {}, collections.defaultdict(list)
        with open(f"{folder}/samples.tsv", encoding="ascii") as f:
            next(f, None)
            for line in f:
                ranks, size, mode, name, _, _, ns = line.split("\t")
                row = self.rows.setdefault((int(ranks), int(size), mode), Row())
                row.ns[name].append(float(ns))
        with open(f"{folder}/facts.tsv", encoding="utf-8") as f:
            for line in f:
                key, *words = line.rstrip("\n").split("\t")
                self.facts[key].append(words)
        for ranks, size, mode, name, calls in self.facts["calls"]:
            key = int(ranks), int(size), mode
            if key in self.rows:
                self.rows[key].calls[name] = max(int(calls), self.rows[key].calls.get(name, 0))

    def fact(self, key, default=None):
        return self.facts[key][0][0] if self.facts[key] else default

    def nodes(self):
        return int(self.fact("nodes", "1"))

    def ranks(self):
        return sorted({ranks for ranks, _, _ in self.rows})

    def modes(self, ranks):
        return [m for m in MODES if any(k[0] == ranks and k[2] == m for k in self.rows)]

    def by_size(self, ranks, mode):
        """(size, row) in order of size."""
        return [(k[1], r) for k, r in sorted(self.rows.items()) if k[0] == ranks and k[2] == mode]
