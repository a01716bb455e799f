#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""
arrays.py - NumPy files for `zcoll allreduce`, made of handwritten digits

Each of N ranks gets its share of the digits and adds up its pictures of each
digit: a float32 array of 10 x 64. Their all-reduce is the sum over all pictures,
so it must show ten digits. Needs no NumPy: the format is simple enough.

  arrays.py make DIR N DIGITS.CSV    write DIR/in.RANK.npy
  arrays.py show DIR N               check DIR/out.RANK.npy and draw it
"""
import array
import ast
import struct
import sys

MAGIC = b"\x93NUMPY\x01\x00"
DIGITS, PIXELS, SIDE = 10, 64, 8
SHADES = " .:-=+*#%@"


def save(path, values, shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(MAGIC) + 2 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(MAGIC + struct.pack("<H", len(header)) + header.encode())
        array.array("f", values).tofile(f)


def load(path):
    with open(path, "rb") as f:
        if f.read(8) != MAGIC:
            sys.exit(f"{path}: not a NumPy file of version 1")
        header = ast.literal_eval(f.read(struct.unpack("<H", f.read(2))[0]).decode())
        if header["descr"] != "<f4" or header["shape"] != (DIGITS, PIXELS):
            sys.exit(f"{path}: not float32 of {DIGITS} x {PIXELS}: {header}")
        return array.array("f", f.read())


def make(folder, ranks, csv):
    sums = [[0.0] * (DIGITS * PIXELS) for _ in range(ranks)]
    with open(csv, encoding="ascii") as f:
        for i, line in enumerate(f):
            *pixels, digit = (int(float(word)) for word in line.split(","))
            for p, value in enumerate(pixels):
                sums[i % ranks][digit * PIXELS + p] += value
    for rank, values in enumerate(sums):
        save(f"{folder}/in.{rank}.npy", values, (DIGITS, PIXELS))


def show(folder, ranks):
    total = [sum(v) for v in zip(*(load(f"{folder}/in.{r}.npy") for r in range(ranks)))]
    for rank in range(ranks):
        if list(load(f"{folder}/out.{rank}.npy")) != total:
            sys.exit(f"{folder}/out.{rank}.npy is not the sum of the inputs")
    for y in range(SIDE):
        row = ""
        for digit in range(DIGITS):
            picture = total[digit * PIXELS:(digit + 1) * PIXELS]
            row += "".join(SHADES[int(picture[y * SIDE + x] * 9 / max(picture))]
                           for x in range(SIDE)) + " "
        print("   ", row.rstrip())
    print(f"all {ranks} results are the sum of all inputs, bit for bit")


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    elif len(sys.argv) == 4 and sys.argv[1] == "show":
        show(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(__doc__)
