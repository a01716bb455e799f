#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# dev_perf.sh - zcoll perf and zcoll info with the device
# shellcheck disable=SC2317 # functions called by t
# shellcheck source=selftests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

# right [N]: the sweep succeeded, with N lines, and nothing was wrong
right() {
	is 0 "$status" && grep -q '^# Out of bounds values : 0 OK$' out &&
		grep -q '^# Avg bus bandwidth    : ' out &&
		is "${1:-1}" "$(grep -cE '^ +[0-9]' out)" && is "" "$(cat err)"
}

all_types_and_operators() {
	run "$zcoll" perf -g 3 -b 1 -e 20000 -i 19999 -n 1 -w 0 -d all -o all
	right 120 && is 60 "$(awk '/^ +[0-9]/ { print $3, $4 }' out | sort -u | wc -l)"
}

collective() { # LINES COLLECTIVE OPTION...
	lines=$1
	shift
	run "$zcoll" perf -g 3 -n 1 -w 0 --coll "$@"
	right "$lines"
}

# No type, no size: one line
barrier() { run "$zcoll" perf -g 3 --coll barrier -n 5; right && is "0 0" "$(awk '/^ +[0-9]/ { print $1, $2 }' out)"; }

in_place_only() {
	run "$zcoll" perf -g 2 --coll allgather -b 4K -e 4K -n 2 --in-place
	right && is "N/A 0" "$(awk '/^ +[0-9]/ { print $9, $13 }' out)"
}

# 2 ranks: two inputs are read for each byte of an all-reduce, one copy is made for a broadcast
counted() {
	ZCOLL_MAILBOX=0 run "$zcoll" perf -g 2 -b 64K -e 64K -n 10 --counters
	right && grep -q '^# in place  *: copied 0.000, folded 2.000, RDMA 0.000, ' out || return 1
	ZCOLL_MAILBOX=0 run "$zcoll" perf -g 2 --coll broadcast -b 64K -e 64K -n 10 --counters
	right && grep -q '^# in place  *: copied 1.000, folded 0.000, RDMA 0.000, ' out
}

root_impossible() { fails "-r 3: there are 2 ranks" "$zcoll" perf -g 2 --coll reduce -r 3 -b 8 -e 8; }

under_run() { run "$zcoll" run -n 2 -- "$zcoll" perf -b 8 -e 8K -f 32 -n 2; right 3; }
alone() { run "$zcoll" perf -b 4K -e 4K -n 2; right; }
in_flight() { run "$zcoll" perf -g 2 -b 4 -e 64K -f 128 -n 2 -m 8 -c 2; right 3; }
rotating() { run "$zcoll" perf -g 2 -b 60000 -e 60000 -n 20 -R 1M; right && grep -q '^# Rotating' out; }
blocking() { run "$zcoll" perf -g 2 -b 64 -e 64 -n 5 -z 1 -a 3; right && grep -q '^# Blocking Enabled' out; }
unregistered() { run "$zcoll" perf -g 2 -b 100 -e 70000 -i 69900 -n 2 --unregistered -d bfloat16 -o avg; right 2; }
no_elements() { run "$zcoll" perf -g 2 -b 0 -e 0 -n 2; right; }
unchecked() {
	run "$zcoll" perf -g 2 -b 64 -e 64 -n 2 -c 0
	right && is "N/A N/A" "$(awk '/^ +[0-9]/ { print $9, $13 }' out)"
}

columns() {
	run "$zcoll" perf -g 2 -b 64 -e 64 -n 2 -d float
	grep -q '^#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong$' out &&
		is "64 16 float sum -1 13" "$(awk '/^ +[0-9]/ { print $1, $2, $3, $4, $5, NF }' out)"
}

json() {
	run "$zcoll" perf -g 2 -b 8 -e 64 -f 8 -n 2 --json perf.json
	right 2 && is "2 true 0 64 float 2" "$(python3 -c '
import json
d = json.load(open("perf.json")); r = d["results"]
print(len(r), str(d["out_of_bounds"]["okay"]).lower(), r[1]["in_place"]["nwrong"],
      r[1]["size"], r[1]["type"], d["config"]["ranks"])')"
}

json_impossible() { fails "/none/x: No such file" "$zcoll" perf -b 8 -e 8 --json /none/x; }

# One wrong element on each of 2 ranks, out of place and in place
wrong_is_seen() {
	run env LD_PRELOAD="$build/selftests/tools/spoil.so" "$zcoll" perf -g 2 -b 400 -e 400 -n 1 -d int32
	is 1 "$status" && is "2 2" "$(awk '/^ +[0-9]/ { print $9, $13 }' out)" &&
		grep -q '^# Out of bounds values : 4 FAILED$' out
}

# Rank 1 warms up, the others go on to the barrier
calls_differ() {
	# shellcheck disable=SC2016
	run "$zcoll" run -n 3 -- sh -c \
		'exec "$1" perf -b 8 -e 8 -n 1 -w $([ %r = 1 ] && echo 1 || echo 0)' sh "$zcoll"
	is 1 "$status" && said "differ in collective"
}

rank_missing() {
	# shellcheck disable=SC2016
	run env ZCOLL_JOIN_TIMEOUT=1 "$zcoll" run -n 3 -- sh -c \
		'[ %r = 1 ] && exec sleep 60; exec "$1" perf -b 8 -e 8' sh "$zcoll"
	is 1 "$status" && said "2 of 3 ranks joined in 1 s, missing: 1"
}

# All ways but SQPOLL need nothing special; the counters prove who has done the operations
cost() { # OPTION...
	run "$zcoll" perf -g 2 --cost -n 2 -w 1 --json cost.json "$@"
	is 0 "$status" && is "2 mailbox, 1 heap, 2 kernel, 2 kernel, 2 kernel, 2 kernel" "$(python3 -c '
import json
with open("cost.json") as f:
    said = json.load(f)
ways = {}
for row in said["results"]:
    ways.setdefault(row["way"], []).append(row)
sqpoll = ways.pop("sqpoll")
for name, rows in ways.items():
    assert [w["bytes"] for w in rows] == said["config"]["bytes"][name == "fold":], name
    assert all(0 < w["least"] <= w["ns"] <= w["most"] and not w["nwrong"] for w in rows), name
print(*("%d %s" % (len(w), w[0].get("done_by", w[0].get("note"))) for w in ways.values()), sep=", ")
assert len(sqpoll) == 2 and said["config"]["bytes"][1] == 2048')"
}

# What was not done in mailboxes is not shown as if it had been
cost_of_no_mailbox() {
	ZCOLL_MAILBOX=0 run "$zcoll" perf -g 2 --cost -n 2 -w 1
	is 0 "$status" && is 3 "$(grep -c '^  blocking call.* N/A  (done by the kernel)$' out)" &&
		grep -qE '^  blocking ioctl  +8  .* kernel  +0$' out
}

# One CPU for the ranks and none for the kernel's threads
cost_of_no_cpu() {
	run "$zcoll" perf -g "$(($(nproc) / 2 + 1))" --cost -n 1 -w 0
	is 0 "$status" && grep -q '^  io_uring, SQPOLL .* N/A  (needs two CPUs for each rank' out
}

overlap() {
	run "$zcoll" perf -g 2 --overlap -b 64K -e 256K -f 4 -n 4 -w 2 --json overlap.json "$@"
	is 0 "$status" && grep -q '^# Out of bounds values : 0 OK$' out &&
		is "65536 262144" "$(awk '/^ +[0-9]/ { print $1 }' out | xargs)" &&
		python3 -c '
import json
for r in json.load(open("overlap.json"))["results"]:
    assert 0 <= r["overlap_percent"] <= 100 and r["wait_percent"] <= r["wait_percent_95"]
    assert min(r[k] for k in ("pure", "compute", "in_flight", "start", "total")) > 0'
}

overlap_wrong_is_seen() {
	run env LD_PRELOAD="$build/selftests/tools/spoil.so" "$zcoll" perf -g 2 --overlap -b 400 -e 400 -n 1 -d int32
	is 1 "$status" && grep -q '^# Out of bounds values : 2 FAILED$' out
}

# Standard error of a command under `script` is a terminal
progress() {
	timeout 6 script -qefc "$zcoll perf -b 1M -e 1M -w 0 -c 0 -n 10000000" log >out 2>&1
	grep -qaE 'iteration: [0-9]+ of 10000000, [0-9]+ s' log
}

info_says() {
	run "$zcoll" info
	is 0 "$status" && grep -q '^ABI version  *1$' out && grep -qE '^types .* bf16 fp32 fp64$' out
}

info_json() {
	run "$zcoll" info --json
	is 0 "$status" && is "1 12 5 True" "$(python3 -c '
import json
d = json.load(open("out"))
print(d["abi_version"], len(d["types"]), len(d["ops"]), d["limits"]["window"] >= 1)')"
}

# Calls on memory that is not registered pin it once, and nothing stays when the ranks have ended
info_cache() {
	run "$zcoll" info --json
	mv out before
	ZCOLL_MAILBOX=0 run "$zcoll" perf -g 2 --unregistered -b 64K -e 64K -n 20
	right || return 1
	run "$zcoll" info --json
	is "True True True 0" "$(python3 -c '
import json
a, b = (json.load(open(name))["cache"] for name in ("before", "out"))
hits, misses = b["hits"] - a["hits"], b["misses"] - a["misses"]
print(hits > 40, 0 < misses < hits, b["pin_ns"] > a["pin_ns"], b["pages"])')" || return 1
	run "$zcoll" info
	grep -qE '^  kept pinned +0 pages' out && grep -qE '^  given up +[0-9]+ ranges' out &&
		grep -qE '^  found pinned +[1-9][0-9]* of [1-9][0-9]* \([0-9.]+ %\) ranges' out &&
		grep -qE '^  to pin one took +[1-9][0-9]* ns' out
}

nothing_stays() {
	run "$zcoll" info --json
	is "0 0 0" "$(python3 -c '
import json
d = json.load(open("out"))["now"]
print(d["comms"], d["ranks"], d["pinned_pages"])')"
}

t "all types with all operators, 3 ranks: nothing wrong" all_types_and_operators
t "reduce-scatter, all types with all operators" collective 60 reduce-scatter -b 20000 -e 20000 -d all -o all
t "all-gather, all types" collective 24 allgather -b 1 -e 20000 -i 19999 -d all
t "broadcast from all roots" collective 6 broadcast -b 1 -e 20000 -i 19999 -r all
t "reduce to all roots" collective 15 reduce -b 20000 -e 20000 -r all -o all
t "barrier" barrier
t "only in place" in_place_only
t "what the kernel counts" counted
t "a root that is no rank is refused" root_impossible
t "under zcoll run" under_run
t "a rank alone" alone
t "8 operations in flight" in_flight
t "rotating through buffers" rotating
t "with barriers" blocking
t "unregistered memory" unregistered
t "no elements" no_elements
t "-c 0 checks nothing, and says so" unchecked
t "the columns are those of nccl-tests" columns
t "--json gives the results" json
t "--json to where no file can be is refused first" json_impossible
t "wrong elements are counted, and the status is 1" wrong_is_seen
t "ranks that call different operations: all are told" calls_differ
t "a rank that does not join is named" rank_missing
t "--cost: each way is done as it says" cost
t "--cost of other types and sizes" cost -b 512 -d int8 -o max
t "--cost does not call mailbox what is not" cost_of_no_mailbox
t "--cost without a CPU for SQPOLL says so" cost_of_no_cpu
t "--overlap" overlap
t "--overlap of unregistered memory, all-gather" overlap --unregistered --coll allgather
t "--overlap sees wrong elements" overlap_wrong_is_seen
t "progress is shown on a terminal" progress
t "info tells what the module can do" info_says
t "info --json is JSON" info_json
t "info tells how often memory was pinned still" info_cache
t "nothing stays behind" nothing_stays
tap_end
