#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# launch.sh - jobs that launchers start on two machines: mpirun, and as torchrun does
#
# For tools/vm/vm --nodes 2 --on 0; vm-mpirun and vm-run start what they do by vm-rsh, in place
# of ssh. The example that trains gives the same weights on two nodes as on one.
# shellcheck disable=SC2317 # functions called by t
# shellcheck source=selftests/tools/tap.sh
. "$(dirname "$0")/../tools/tap.sh"

digits=$build/tools/digits
data=$top/tools/examples/data/digits.csv
training=("$digits" --epochs 3 --reproducible "$data")

weights() { sed -n 's/^.*\(weights: .*\)/\1/p' out; }

# The weights of one node, for the others to compare with
one_node() {
	run "$zcoll" run -n 4 -- "${training[@]}"
	weights >one
	is 1 "$(wc -l <one)"
}

mpirun_perf() {
	run vm-mpirun -np 4 --host node0:2,node1:2 "$zcoll" perf -b 8 -e 64K -f 8 -n 3 -w 1
	is 0 "$status"
}

mpirun_trains() {
	run vm-mpirun -np 4 --host node0:2,node1:2 "${training[@]}"
	is "$(cat one)" "$(weights)"
}

torchrun_trains() {
	run vm-run 2 "${training[@]}"
	is "$(cat one)" "$(weights)"
}

uneven() {
	run vm-run 3,1 "$zcoll" perf -b 8 -e 64K -f 8 -n 3 -w 1
	is 0 "$status"
}

t "one node trains" one_node
t "mpirun starts 2 ranks on each of 2 nodes, which measure" mpirun_perf
t "and train, to the weights of one node bit for bit" mpirun_trains
t "so do ranks that are started as torchrun does" torchrun_trains
t "3 ranks on one node and 1 on the other measure" uneven
tap_end
