# SPDX-License-Identifier: GPL-2.0
"""
plots - time against size, and the ratio to the best peer, as SVG by gnuplot

One file for each rig and number of ranks: above, the time of an operation by all
contenders and the bound; below, our time over the best peer's and the goal. A column
for each use of buffers. The same samples give the same file.
"""
from dataclasses import dataclass
import os
import re
import shutil
import subprocess

from goals import time_goals
from samples import (MODES, NODE_BOUNDS, NODE_PEERS, OURS, PEERS, PLAIN, median, size_name)

WIDTH, HEIGHT = 520, 380    # of a panel
COLOURS = {OURS: "#0072b2", PLAIN: "#56b4e9", "openmpi-best": "#d55e00", "mpich": "#009e73",
           "openmpi-ucx": "#d55e00", "openmpi-tcp": "#009e73"}
# Powers of ten, in microseconds; and ratios
TIMES = ", ".join(f"'{10 ** (i % 3)} {('ns', 'us', 'ms', 's', 'ks')[i // 3]}' 1e{i - 3}"
                  for i in range(13))
RATIOS = ", ".join(f"'{m * 10 ** e:g}' {m}e{e}" for e in range(-3, 5) for m in (1, 2, 5))


@dataclass
class Series:
    title: str
    points: list            # (size, figure)
    style: str


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def contender(name, mark):
    width = 1.8 if name == OURS else 1.2
    return f"linespoints lc rgb '{COLOURS[name]}' lw {width} pt {mark} ps 0.5"


def series(rows, title, style, figure):
    """A point for each row of which there is the figure."""
    points = [(size, y) for size, row in rows if (y := figure(row))]
    return [Series(title, points, style)] if points else []


def micro(name):
    return lambda row: row.median(name) / 1000 if row.has(name) else None


def ratio(ours=OURS, peer=None):
    def figure(row):
        ratios = row.ratios(ours, peer)
        return median(ratios) if ratios else None
    return figure


def time_lines(rows, between):
    """All contenders, and what none can be faster than."""
    if between:
        names = {OURS: "zcoll", **NODE_PEERS}
        bounds = {title: micro(name) for name, title in NODE_BOUNDS.items()}
    else:
        names = {OURS: "zcoll, zcoll_alloc() memory", PLAIN: "zcoll, plain memory", **PEERS}
        bounds = {"one-pass bound": lambda row: row.one_pass() and row.one_pass() / 1000}
    out = []
    for mark, (name, title) in enumerate(names.items(), 4):
        out += series(rows, title, contender(name, mark), micro(name))
    for dash, (title, figure) in enumerate(bounds.items(), 2):
        out += series(rows, title, f"lines lc rgb '#000000' dt {dash}", figure)
    return out


def ratio_without_calls(row):
    net = row.calls_ns(PLAIN)
    ratios = net is not None and row.ratios(PLAIN, less=net)
    return median(ratios) if ratios else None


def goal_line(rows, goals):
    """Steps: each goal from its size on."""
    points = [(size, [limit for begin, limit in goals if begin <= size][-1]) for size, _ in rows]
    return [Series("goal: at most", points, "steps lc rgb '#cc0000' dt 4 lw 1.5")]


def ratio_lines(rows, between, goals):
    if between:
        out = []
        for mark, (peer, title) in enumerate(NODE_PEERS.items(), 5):
            out += series(rows, f"of {title}", contender(peer, mark), ratio(peer=peer))
        return out + goal_line(rows, ((4, 1.0),))
    out = series(rows, "zcoll, zcoll_alloc() memory", contender(OURS, 4), ratio())
    out += series(rows, "zcoll, plain memory", contender(PLAIN, 5), ratio(PLAIN))
    out += series(rows, "zcoll, plain memory, calls off", f"lines lc rgb '{COLOURS[PLAIN]}' dt 2",
                  ratio_without_calls)
    return out + goal_line(rows, goals)


def panel(number, title, y_label, y_ticks, lines):
    """The commands of gnuplot for one panel; the data go before, in blocks."""
    sizes = [size for line in lines for size, _ in line.points]
    data, plot = [], []
    for i, line in enumerate(lines):
        block = f"$panel{number}_{i}"
        data += [f"{block} << END", *(f"{size} {y:.6g}" for size, y in line.points), "END"]
        plot.append(f"{block} using 1:2 with {line.style} title {quoted(line.title)}")
    # Each third doubling has a label
    shown = sorted(set(sizes))[::3] if len(set(sizes)) > 10 else sorted(set(sizes))
    ticks = ", ".join(f"'{size_name(size)}' {size}" for size in shown)
    return [*data, f"set title {quoted(title)}", f"set ylabel {quoted(y_label)}",
            f"set xtics ({ticks})", f"set ytics ({y_ticks})",
            f"set xrange [{min(sizes) / 1.5:.6g}:{max(sizes) * 1.5:.6g}]",
            "plot " + ", \\\n     ".join(plot)]


def script(samples, ranks, title, translated):
    """Everything that gnuplot is told; it writes to its standard output."""
    modes, between = samples.modes(ranks), samples.nodes() > 1
    goals = time_goals(ranks, translated)
    out = [f"set terminal svg noenhanced size {WIDTH * len(modes)},{2 * HEIGHT} "
           "font 'sans-serif,11' background '#ffffff'",
           f"set multiplot layout 2,{len(modes)} title {quoted(title)}",
           "set logscale x 2", "set logscale y 10", "set grid lc rgb '#bbbbbb'",
           "set xtics rotate by -35 font ',9'", "set key below Left reverse font ',9' maxcols 2",
           "set xlabel 'bytes of each rank' offset 0,1"]
    compared = "time, times that of the peer" if between else "time, times that of the best peer"
    columns = [(mode, samples.by_size(ranks, mode)) for mode in modes]
    panels = [(MODES[mode], "time of an operation", TIMES, time_lines(rows, between))
              for mode, rows in columns]
    panels += [(MODES[mode], compared, RATIOS, ratio_lines(rows, between, goals))
               for mode, rows in columns]
    for number, words in enumerate(panels):
        out += panel(number, *words)
    return "\n".join([*out, "unset multiplot", ""])


def draw(samples, folder, rig, title, translated):
    """Write folder/RIG-RANKS.svg for each number of ranks. False: there is no gnuplot."""
    if not shutil.which("gnuplot"):
        return False
    os.makedirs(folder, exist_ok=True)
    for ranks in samples.ranks():
        done = subprocess.run(["gnuplot"], capture_output=True, text=True, timeout=60, check=False,
                              input=script(samples, ranks, f"{title}: {ranks} ranks", translated))
        if done.returncode or not done.stdout.startswith("<?xml"):
            raise SystemExit(f"report: gnuplot could not draw {rig}, {ranks} ranks: "
                             f"{done.stderr.strip()}")
        path = os.path.join(folder, f"{rig}-{ranks}.svg")
        with open(f"{path}.new", "w", encoding="utf-8") as f:
            f.write(re.sub(r"<g [^>]*>\s*</g>\n", "", done.stdout))    # gnuplot leaves empty ones
        os.replace(f"{path}.new", path)
    return True
