#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# dev_digits.sh - the example trains, and notices when it should not have
# shellcheck disable=SC2317 # functions called by t
# shellcheck source=selftests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

digits=$build/tools/digits
data=$top/tools/examples/data/digits.csv

trains() { # RANKS EPOCHS
	run "$zcoll" run -n "$1" -- "$digits" --epochs "$2" "$data"
	is 0 "$status" && is "$2" "$(grep -c '^epoch' out)" &&
		grep -q '^all ranks hold the same weights bit for bit: yes$' out &&
		grep -qE '^accuracy on the held-out tenth \(180 pictures\): 9[4-9]\.' out &&
		grep -q '^same loss curve as 1 rank within 0.0001: yes ' out
}

# On one node the order is fixed anyway
reproducible() {
	run "$zcoll" run -n 4 -- "$digits" --epochs 12 "$data"
	fixed=$(grep '^weights: ' out)
	run "$zcoll" run -n 4 -- "$digits" --epochs 12 --reproducible "$data"
	is 0 "$status" && is "$fixed" "$(grep '^weights: ' out)"
}

# Three layers, whose gradients are averaged in the background; the same weights as without
three_layers() {
	run "$zcoll" run -n 2 -- "$digits" --layers 3 --hidden 24 --epochs 8 --overlap "$1" "$data"
	is 0 "$status" && is 8 "$(grep -c '^epoch' out)" &&
		grep -q '^all ranks hold the same weights bit for bit: yes$' out &&
		grep -q '^same loss curve as 1 rank within 0.0001: yes ' out
}

overlap() {
	three_layers 0 || return 1
	plain=$(grep '^weights: ' out)
	three_layers 1 && is "$plain" "$(grep '^weights: ' out)" &&
		grep -q '^same weights with and without overlap: yes$' out &&
		grep -qE '^an epoch \(median\): [0-9.]+ ms with overlap, [0-9.]+ ms without, -?[0-9.]+ % saved$' out
}

too_little_training() {
	run "$zcoll" run -n 2 -- "$digits" --epochs 1 "$data"
	is 1 "$status" && grep -q '^accuracy' out
}

bad_data() {
	head -n 50 "$data" | sed '40s/,.*//' >bad.csv
	run "$zcoll" run -n 2 -- "$digits" bad.csv
	is 1 "$status" && said "bad.csv: not lines of 64 pixels and a digit"
}

t "4 ranks" trains 4 12
t "3 ranks, of which shares are uneven" trains 3 6
t "reproducible training gives the same weights" reproducible
t "3 layers with overlap give the weights they give without" overlap
t "too little training fails" too_little_training
t "data that is cut is refused" bad_data
tap_end
