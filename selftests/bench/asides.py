# SPDX-License-Identifier: GPL-2.0
"""
asides - what else is measured in the boot of the speed study

What a call costs by each way to make it (zcoll perf --cost), how much of an operation
is hidden behind computing (zcoll perf --overlap), and what that saves in a program, the
digits example with three layers. Each is a command that measures in turns itself; here
it is run, and its figures are put where selftests/bench/report finds them.
"""
import os
import re
import subprocess
import sys
import time

COST_RANKS = (1, 2)     # by one alone: the call itself, and SQPOLL on 2 CPUs
OVERLAP_RANKS = 2
EPOCHS = "5"
DELAYS_MS = (0, 1, 5)   # of each packet between nodes
EPOCH = re.compile(r"an epoch \(median\): ([0-9.]+) ms with overlap, ([0-9.]+) ms without")
PICTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "../../tools/examples/data/digits.csv")


class Asides:
    """`fact` and `launcher` are the study's: where facts go, and how ranks are started."""

    def __init__(self, opt, launcher, fact):
        self.opt, self.launcher, self.fact = opt, launcher, fact

    def start(self, name, ranks, *command):
        """Run it on so many ranks. Returns what it printed; None: it failed, which is a fact."""
        begin = time.monotonic()
        try:
            done = subprocess.run([*self.launcher(self.opt, ranks), *command], capture_output=True,
                                  text=True, timeout=self.opt.limit, check=False)
        except subprocess.TimeoutExpired:
            self.fact("lost", name, f"did not end in {self.opt.limit} s")
            return None
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).split("\n")[-1]
            self.fact("lost", name, f"status {done.returncode}: {last}")
            return None
        print(f"bench: {name}: {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
        return done.stdout

    def perf(self, file, ranks, *options):
        """Its JSON goes into `file`, and that into the folder of results only if all went well."""
        path = os.path.join(self.opt.work, file)
        name = f"zcoll perf {options[0]}, {ranks} rank{'s' if ranks > 1 else ''}"
        if self.start(name, ranks, "zcoll", "perf", *options, "--json", path) is not None:
            with open(path, encoding="utf-8") as f, \
                    open(os.path.join(self.opt.out, file), "w", encoding="utf-8") as to:
                to.write(f.read())

    def digits(self, ranks, delay_ms):
        said = self.start(f"digits, packets {delay_ms} ms later", ranks,
                          f"{self.opt.build}/tools/digits",
                          "--layers", "3", "--hidden", self.opt.hidden, "--overlap", "1",
                          "--epochs", EPOCHS, PICTURES)
        times = EPOCH.search(said or "")
        if times:
            self.fact("digits", ranks, self.opt.hidden, *times.groups(), delay_ms)

    def between_nodes(self):
        """Where packets take their time, and not only the CPU's."""
        for delay in DELAYS_MS:
            for node in range(self.opt.nodes):
                subprocess.run(["vm-rsh", f"node{node}", f"fault delay {delay}"], check=True)
            self.digits(self.opt.nodes, delay)

    def on_one_node(self):
        for ranks in COST_RANKS:
            self.perf(f"cost-{ranks}.json", ranks, "--cost", "-n", "100")
        # -a 3: the slowest rank's figures
        self.perf("overlap.json", OVERLAP_RANKS, "--overlap", "-b", "1M", "-e", "16M", "-f", "4",
                  "-n", "40", "-a", "3")
        self.digits(OVERLAP_RANKS, 0)
