#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# sim.sh - the simulator's times equal closed forms, its runs are repeatable, its
# fault campaign finds nothing; needs no device
# shellcheck disable=SC2317 # functions called by t
# shellcheck source=selftests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

seeds=${ZCOLL_SIM_SEEDS:-3000}

# What LogGOPSim takes by default, ns: Hoefler, Schneider, Lumsdaine: "LogGOPSim -
# Simulating Large-Scale Applications in the LogGOPS Model", HPDC 2010
L=2500 o=1500 G=6
gamma=2

# Time of a message of so many bytes, as if it were alone
msg_ns() { echo $((o + L + ($1 - 1) * G + o)); }

# takes NS ARG...: a simulation takes exactly so long
takes() {
	local wanted=$1
	shift
	run "$zcoll" sim --loggp "$L,$o,1000,$G" "$@"
	is 0 "$status" || return
	is "$wanted" "$(sed -n 's/^time_ns: //p' out)"
}

# ------------------------------------------------------------- known times

# The end of its example dissemination_16
loggopsim() { takes 22000 --algo recursive-doubling -N 16 --bytes 1; }

# Partners of a round share the CPU of each node
radix_two() { takes 22168 --algo recursive-doubling -N 16 --bytes 8 --radix 2; }
radix_four() { takes 18000 --algo recursive-doubling -N 16 --bytes 8 --radix 4; }

rounds() {
	local rounds=0
	while [ $((1 << rounds)) -lt "$1" ]; do rounds=$((rounds + 1)); done
	echo "$rounds"
}

alone() { takes "$@" --contention none --eager inf --gamma "$gamma"; }

recursive_doubling() {
	for n in 2 4 16 64; do
		alone $(($(rounds "$n") * ($(msg_ns 4096) + gamma * 4096))) \
			--algo recursive-doubling -N "$n" --bytes 4096 || return
	done
}

# N - 1 messages are folded, and N - 1 are not
ring() {
	for n in 2 3 7 8 12; do
		alone $((2 * (n - 1) * $(msg_ns 512) + (n - 1) * gamma * 512)) \
			--algo ring -N "$n" --bytes $((512 * n)) || return
	done
}

# Of s blocks, the upper s/2 go to who gathers them, until one is left
circulant() {
	local n s blocks ns
	for n in 2 3 5 8 12 13 16 48 100; do
		ns=0
		for ((s = n; s > 1; s = (s + 1) / 2)); do
			blocks=$((s / 2))
			ns=$((ns + 2 * $(msg_ns $((512 * blocks))) + gamma * 512 * blocks))
		done
		alone "$ns" --algo circulant -N "$n" --bytes $((512 * n)) || return
	done
}

# What four nodes send to another rack goes through one cable
core_is_shared() {
	"$zcoll" sim --algo circulant -N 8 --bytes 1M --topology two-level:4,4 >slow
	"$zcoll" sim --algo circulant -N 8 --bytes 1M --topology two-level:4,1 >fast
	[ "$(sed -n 's/^time_ns: //p' slow | cut -d. -f1)" -gt \
	  "$(sed -n 's/^time_ns: //p' fast | cut -d. -f1)" ]
}

# In a ring of 8, the partners of the rounds are 1, 2 and 4 links away
torus_hops() {
	takes $((3 * $(msg_ns 1) + (0 + 1 + 3) * 100)) --algo recursive-doubling -N 8 --bytes 1 \
		--topology torus:8x1x1 --hop 100ns
}

# -------------------------------------------------------------- repeatable

faulty="--algo circulant -N 12 --bytes 4800 --slice 64 --ops 6 --window 4 --jitter 5us \
	--drop 0.05 --duplicate 0.05 --rails 2 --slow 0.3 --skew 20us"

same_seed_same_run() {
	# shellcheck disable=SC2086 # options
	"$zcoll" sim $faulty --seed 7 --trace one.json >one &&
		"$zcoll" sim $faulty --seed 7 --trace two.json >two &&
		cmp one two && cmp one.json two.json
}

other_seed_other_run() {
	# shellcheck disable=SC2086 # options
	"$zcoll" sim $faulty --seed 8 >two && ! cmp -s one two
}

trace_is_json() { python3 -m json.tool one.json >/dev/null; }
trace_has_all() {
	for what in '"name":"data"' '"ph":"s"' '"ph":"f"' '"name":"node 11"' '"name":"complete"'; do
		grep -qF "$what" one.json || { echo "no $what"; return 1; }
	done
}

json() {
	"$zcoll" sim --algo ring -N 4 --bytes 4K --json --stats >one.json &&
		python3 - <<-EOF
		import json
		got = json.load(open("one.json"))
		assert got["algorithm"] == "ring" and got["nodes"] == 4 and got["checked"]
		assert got["events_per_second"] > 0
		EOF
}

reads_plan() {
	"$zcoll" plan make ring -N 6 >ring.json &&
		"$zcoll" sim --plan ring.json --bytes 6K --checked 1 >out && grep -q "^nodes: 6" out
}

trace_to_stdout() {
	"$zcoll" sim --algo ring -N 4 --trace - >out.json && python3 -m json.tool out.json >/dev/null &&
		[ ! -e ./- ]
}

fabric_is_loggp() {
	"$zcoll" sim --algo ring -N 4 --loggp 2500,1500,1000,6,2 >one &&
		"$zcoll" sim --algo ring -N 4 --fabric 2500,1500,1000,6,2 | cmp - one
}

# Times of other runs can be compared only if these are known
says_costs() {
	"$zcoll" sim --algo ring -N 4 --bytes 1M --slice 64K --contention nic >out &&
		grep -q "^slice: 65536$" out && grep -q "^contention: nic$" out &&
		grep -q "^time: .* us$" out
}

says_why_unchecked() {
	"$zcoll" sim --algo ring -N 64 --bytes 4M >out &&
		grep -q "^checked: no (takes [0-9]* MiB, more than 64; --checked 1 does it)" out
}

hints() {
	run "$zcoll" sim --algo ring -N 4 --topology torus:2x3
	is 0 "$status" && grep -q "changes nothing without --hop or --contention nic" err &&
		grep -q "2 places of the torus stay empty" err
	run "$zcoll" sim --algo ring -N 6 --topology torus:2x3 --hop 100ns
	is 0 "$status" && is "" "$(cat err)"
}

help_of_sweep() {
	"$zcoll" help sim sweep >one && "$zcoll" sim sweep --help | cmp - one &&
		grep -q -- --factor one
}

# ------------------------------------------------------------------ faults

death_is_told() {
	run "$zcoll" sim --algo ring -N 8 --bytes 8K --ops 4 --window 2 --kill 3@100
	is 0 "$status" && grep -q "^dead_nodes: 1" out && grep -q "^first_error: Host is down" out &&
		grep -q "^first_error_node: [0-7]$" out && ! grep -q "^first_error_node: 3" out
}

# No node has a result: that took no time of 0
no_result_no_time() {
	run "$zcoll" sim --algo ring -N 4 --kill 1@3
	is 0 "$status" && ! grep -q "^time" out &&
		! "$zcoll" sim --algo ring -N 4 --kill 1@3 --runs 3 | grep "_ns: 0" &&
		"$zcoll" sim --algo ring -N 4 --kill 1@3 --json | grep -q '"time_ns": null'
}

abort_is_told() {
	run "$zcoll" sim --algo ring -N 8 --bytes 8K --ops 40 --abort 2@100 --silence 50us
	is 0 "$status" && grep -q "^first_error: Operation canceled" out
}

campaign() {
	run "$zcoll" sim faults --seeds "1..$seeds"
	is 0 "$status" || { cat out; return 1; }
	grep -q "^[0-9]* cases, .* nodes died" out
}

one_case_is_the_campaigns() {
	"$zcoll" sim faults --seeds 17..17 --list >one && "$zcoll" sim faults --seeds 16..18 --list |
		grep "^seed 17:" | cmp - <(grep "^seed 17:" one)
}

# ------------------------------------------------------------------- sweep

sweep() {
	run "$zcoll" sim sweep -N 2,5 --max 32K --svg sweep.svg
	is 0 "$status" && grep -q "^yardstick" out && grep -q "^ring" out &&
		grep -q "^beyond 1.25 of both terms: [0-9]* of 10 cases" out &&
		python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("sweep.svg")'
}

# The legend has what is drawn, and what is selected, and no two lines look the same
legend() {
	! grep -q ">aggregator<" sweep.svg && grep -q ">selected<" sweep.svg &&
		is "" "$(sed -nE 's/.*h24" (.*)\/><text.*/\1/p' sweep.svg | sort | uniq -d)"
}

# Where few rounds and few bytes meet, and where segments differ by an element
selected_is_near() {
	run "$zcoll" sim sweep --selected -N 100,1000 --min 4K --max 16M --factor 4096
	is 0 "$status" && ! grep -q "^ring" out &&
		grep -q "^beyond 1.25 of both terms: 0 of 4 cases" out
}

# ----------------------------------------------------------------- refusals

sim() { refused "$1" "$zcoll" sim "${@:2}"; }
no_algorithm() { sim "which algorithm" -N 4; }
no_nodes() { sim "how many nodes" --algo ring; }
bad_algorithm() { sim "did you mean 'ring'" --algo rang -N 4; }
bad_collective() { sim "no collective" --algo ring -N 4 --coll nothing; }
bad_root() { sim "nodes 0 to 3" --algo ring -N 4 --root 4; }
bad_window() { sim "power of two" --algo ring -N 4 --window 3; }
bad_topology() { sim "two-level:" --algo ring -N 4 --topology ring; }
small_torus() { sim "8 places" --algo ring -N 9 --topology torus:2x2x2; }
bad_dtype() { sim "not a multiple" --algo ring -N 4 --bytes 10 --dtype 4; }
bad_sizes() { sim "4 numbers" --algo ring -N 4 --sizes 1,2,3; }
bad_kill() { sim "NODE@EVENT" --algo ring -N 4 --kill 3; }
dead_stranger() { sim "nodes 0 to 3" --algo ring -N 4 --kill 9@1; }
bad_loggp() { sim "--loggp" --algo ring -N 4 --loggp 1,2; }
bad_chance() { sim "probability" --algo ring -N 4 --drop 2; }
too_much_memory() { sim "take fewer" --algo ring -N 4096 --bytes 1G --checked 1; }
two_plans() { sim "which of them" --algo ring --plan x -N 4; }
no_unit() { sim "which unit? Such as 100ns" --algo ring -N 4 --jitter 100; }
sizes_and_bytes() { sim "which of them" --algo ring -N 2 --sizes 1,2 --bytes 7; }
inplace_of_many() { sim "one rank, not 3" --algo ring -N 4 --ranks 3 --inplace; }
sweep_json() {
	"$zcoll" sim sweep -N 2,5 --min 8 --max 64 --json >out.json && python3 - <<-EOF
		import json
		cases = json.load(open("out.json"))
		assert [(c["nodes"], c["bytes"]) for c in cases] == [(2, 8), (2, 64), (5, 8), (5, 64)]
		assert all(c["times_ns"]["ring"] > 0 and c["yardstick_ns"] > 0 for c in cases)
		EOF
}
faults_json() {
	"$zcoll" sim faults --seeds 1..50 --json | python3 -c 'import json, sys
got = json.load(sys.stdin)
assert got["cases"] + got["skipped"] == 50 and got["wrong"] == 0 and got["ended_well"] > 0'
}
typo() { sim "did you mean 'faults'" fualts; }
stranger() { sim "faults and sweep" everything; }
sweep_option() { sim "help sim sweep" sweep --nonsense; }
no_file() { fails "No such file" "$zcoll" sim --plan nowhere.json; }
bad_seeds() { refused "not A..B" "$zcoll" sim faults --seeds 9..1; }
trace_of_many() { refused "one seed" "$zcoll" sim faults --seeds 1..2 --trace x; }
bad_sweep() { refused "numbers of nodes" "$zcoll" sim sweep -N 0; }

t "16 nodes take as long as in LogGOPSim" loggopsim
t "recursive doubling: a message to one partner a round, at 16 nodes" radix_two
t "radix 4 is 19 % faster there" radix_four
t "recursive doubling: its closed form" recursive_doubling
t "ring: its closed form" ring
t "circulant: its closed form, for any number of nodes" circulant
t "two-level: an oversubscribed core takes longer" core_is_shared
t "torus: the time of links adds up" torus_hops
t "the same seed gives the same run and trace" same_seed_same_run
t "another seed gives another run" other_seed_other_run
t "the trace is JSON" trace_is_json
t "the trace has messages, arrows, names and ends" trace_has_all
t "--json is JSON, and has what it should" json
t "a plan from a file" reads_plan
t "a trace to standard output" trace_to_stdout
t "--fabric and --loggp are the same" fabric_is_loggp
t "the report says slice and contention" says_costs
t "the report says why elements were not checked" says_why_unchecked
t "a topology without effect is told" hints
t "help has sweep's options" help_of_sweep
t "a death ends operations with an error" death_is_told
t "without a result there is no time" no_result_no_time
t "an abort ends operations with an error" abort_is_told
t "$seeds random cases with faults: no hang, no wrong result" campaign
t "one case alone is the one in the campaign" one_case_is_the_campaigns
t "a sweep prints a table and draws SVG" sweep
t "each line of a sweep looks different, and is drawn" legend
t "a sweep as JSON" sweep_json
t "a campaign as JSON" faults_json
t "what is selected is near the yardstick, also for uneven segments" selected_is_near
for f in no_algorithm no_nodes bad_algorithm bad_collective bad_root bad_window bad_topology \
	small_torus bad_dtype bad_sizes bad_kill dead_stranger bad_loggp bad_chance \
	too_much_memory two_plans no_unit sizes_and_bytes inplace_of_many typo stranger \
	sweep_option no_file bad_seeds trace_of_many bad_sweep; do
	t "refused: $f" "$f"
done
tap_end
