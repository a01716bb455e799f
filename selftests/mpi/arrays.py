#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
arrays.py - an mpi4py program: collective operations on NumPy arrays; prints TAP
"""
import sys

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
me, ranks = world.Get_rank(), world.Get_size()
done = failed = 0


def check(good, name):
    """A test passes if it does on all ranks."""
    global done, failed
    good = all(world.allgather(bool(good)))
    done += 1
    failed += not good
    if me == 0:
        print(f"{'' if good else 'not '}ok {done} - {name}", flush=True)


for kind in "bhilBHILfd":
    mine = (np.arange(5000) % 7 + me).astype(kind)
    everyone = [(np.arange(5000) % 7 + r).astype(kind) for r in range(ranks)]
    total = np.zeros_like(mine)
    world.Allreduce(mine, total, MPI.SUM)
    check((total == sum(everyone)).all(), f"Allreduce of {mine.dtype}")

blocks = np.empty((ranks, 100))
world.Allgather(np.full(100, float(me)), blocks)
check((blocks == np.arange(ranks)[:, None]).all(), "Allgather")

data = np.arange(100000.) if me == 0 else np.zeros(100000)
requests = [world.Ibcast(data, 0), world.Ibarrier()]
largest = np.zeros(1)
requests.append(world.Iallreduce(np.array([float(me)]), largest, MPI.MAX))
MPI.Request.Waitall(requests)
check((data == np.arange(100000.)).all() and largest[0] == ranks - 1,
      "Ibcast, Ibarrier, Iallreduce")

half = world.Split(me % 2, me)
share = np.empty(10)
half.Reduce_scatter_block(np.ones(10 * half.Get_size()), share)
check((share == half.Get_size()).all(), "Reduce_scatter_block on a part of the world")
half.Free()

matrix = np.zeros((50, 50))
if me == 0:
    matrix[:, 3] = np.arange(50)
column = MPI.DOUBLE.Create_vector(50, 1, 50).Commit()
world.Bcast([matrix.ravel()[3:], 1, column], 0)
check((matrix[:, 3] == np.arange(50)).all() and matrix.sum() == 50 * 49 / 2, "Bcast of a column")
column.Free()

check(world.allreduce({me}, op=lambda a, b: a | b) == set(range(ranks)), "objects, by pickle")
if me == 0:
    print(f"1..{done}", flush=True)
sys.exit(failed > 0)
