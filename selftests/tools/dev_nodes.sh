#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# dev_nodes.sh - the command on several nodes, which are this machine over the fabric loop
# shellcheck disable=SC2317 # functions called by t
# shellcheck source=selftests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

digits=$build/tools/digits
data=$top/tools/examples/data/digits.csv
export ZCOLL_FABRIC=loop ZCOLL_STORE=127.0.0.1:29731

# nodes RANKS RANKS_A_NODE COMMAND...: like zcoll run
nodes() {
	ranks=$1 each=$2
	shift 2
	# shellcheck disable=SC2016
	run "$zcoll" run -n "$ranks" -- sh -c \
		'each=$1; shift; ZCOLL_NODE_ID=$((%r / each)); export ZCOLL_NODE_ID; exec "$@"' sh "$each" "$@"
}

# right LINES: perf succeeded, with so many lines, and nothing was wrong
right() {
	is 0 "$status" && grep -q '^# Out of bounds values : 0 OK$' out &&
		is "$1" "$(grep -cE '^ +[0-9]' out)"
}

collective() { # LINES COLLECTIVE OPTION...
	lines=$1
	shift
	nodes 4 2 "$zcoll" perf -n 1 -w 0 --coll "$@" && right "$lines"
}

each_algorithm() {
	for plan in ring pairwise recursive-doubling halving-doubling circulant binomial knomial:radix=3 \
		double-tree bruck hierarchical; do
		export ZCOLL_PLAN_ALLREDUCE=$plan
		nodes 3 1 "$zcoll" perf -b 12 -e 120000 -i 119988 -n 1 -w 0 -d int32
		unset ZCOLL_PLAN_ALLREDUCE
		right 2 || { echo "$plan"; return 1; }
	done
}

unknown_algorithm() {
	export ZCOLL_PLAN=rign
	nodes 2 1 "$zcoll" perf -b 8 -e 8
	unset ZCOLL_PLAN
	is 1 "$status" && said 'ZCOLL_PLAN=rign: no algorithm "rign"'
}

# A ring does not reduce in the fixed order
order_impossible() {
	export ZCOLL_PLAN_ALLREDUCE=ring
	nodes 2 1 "$zcoll" perf -b 8 -e 8 --reproducible
	unset ZCOLL_PLAN_ALLREDUCE
	is 1 "$status" && said "does not keep the fixed order of reduction"
}

reproducible() { nodes 4 2 "$zcoll" perf -b 80000 -e 80000 -n 1 -w 0 -d float -o all --reproducible && right 5; }
agreed() { nodes 4 2 "$zcoll" perf -b 80000 -e 80000 -n 1 -w 0 --agreed && right 1; }

# 1 rank for each node: all bytes go over the network once in each direction, and no rank copies
counted() {
	nodes 2 1 "$zcoll" perf --coll broadcast -b 1M -e 1M -n 4 --counters
	right 1 && grep -qE '^# in place  *: copied 0.000, folded 0.000, RDMA 1.000, ' out
}

aggregator() {
	export ZCOLL_AGGREGATORS=1 ZCOLL_KEY=000102030405060708090a0b0c0d0e0f
	ZCOLL_NODE_ID=agg ZCOLL_AGGREGATOR=0 ZCOLL_SIZE=2 timeout 60 "$zcoll" aggregate >served 2>&1 &
	# shellcheck disable=SC2016
	run "$zcoll" run -n 2 -- sh -c 'export ZCOLL_KEY='"$ZCOLL_KEY"' ZCOLL_NODE_ID=%r; exec "$@"' sh \
		"$zcoll" perf -b 8 -e 80000 -f 10000 -n 2 -w 0
	wait $!
	ended=$?
	unset ZCOLL_AGGREGATORS ZCOLL_KEY
	right 2 && is 0 "$ended" && is "" "$(cat served)"
}

# The weights of 4 ranks do not depend on how they lie
training() {
	run "$zcoll" run -n 4 -- "$digits" --epochs 4 --reproducible "$data"
	one=$(grep '^weights: ' out)
	nodes 4 2 "$digits" --epochs 4 --reproducible "$data"
	is "$one" "$(grep '^weights: ' out)" && [ -n "$one" ]
}

t "reduce-scatter" collective 2 reduce-scatter -b 16 -e 80000 -f 5000
t "all-gather" collective 2 allgather -b 16 -e 80000 -f 5000
t "broadcast from all roots" collective 4 broadcast -b 80000 -e 80000 -r all
t "reduce to all roots" collective 4 reduce -b 80000 -e 80000 -r all
t "barrier" collective 1 barrier
t "all-reduce by each algorithm, as the environment says" each_algorithm
t "an unknown algorithm is named" unknown_algorithm
t "a plan that does not keep the order is refused" order_impossible
t "reproducible" reproducible
t "agreed" agreed
t "what the kernels count" counted
t "a node that only aggregates" aggregator
t "reproducible training gives the weights of one node" training
tap_end
