#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# vm_test.sh - the network, the RDMA devices and the faults of tools/vm/vm, which the tests
# between nodes rely on; prints TAP
#
# Called without an argument on the host, or with --long, which adds what the other stages would
# stumble over, too. In the machines this script itself is the command, and its argument
# says which part to play.
set -u
here=$(cd "$(dirname "$0")" && pwd -P)
top=$(dirname "$here")
build=${ZCOLL_BUILD:-$top/build}

# ------------------------------------------------------------- in the machines

# ping NODE COUNT SECONDS: "N packets transmitted, M packets received, ..."
ping() { busybox ping -q -A -c "$2" -W "$3" "$1" | grep transmitted; }

# talk ADDRESS SERVER: RDMA CM, writes, reads and sends between the caller and node SERVER
serve() { timeout 30 rping -s -a "$1" -C 10 >/dev/null 2>&1; }
call() {
	for _ in {1..20}; do
		timeout 20 rping -c -a "$1" -C 10 >/dev/null 2>&1 && return
		sleep 0.2
	done
	return 1
}
passed() { if "$@"; then echo "passed: $*"; else echo "failed: $*"; fi; }

play_one() {
	serve 192.0.2.1 & passed call 192.0.2.1
	serve 192.0.2.129 & passed call 192.0.2.129
	echo "master: $MASTER_ADDR $ZCOLL_NODES"
	passed fault loss 100
	if [ "$ZCOLL_RDMA" = siw ]; then
		ping 192.0.2.1 1 1
		fault clear
	fi
	passed fault rdma-del
	passed fault rdma-add
	echo "made anew: $(rdma link | wc -l)"
}

play_three() {
	local i
	case $ZCOLL_NODE in
	0)	serve 192.0.2.129; ;;
	2)	passed call 192.0.2.129 ;;
	esac
	meet talked
	if [ "$ZCOLL_NODE" = 0 ]; then
		for i in 1 2; do ping "node$i" 3 5; done
		# shellcheck disable=SC2016 # for the other nodes' shells
		vm-rsh node1 'echo "rsh: $ZCOLL_NODE"; exit 7'
		echo "status: $?"
		# shellcheck disable=SC2016
		vm-run 1,0,2 sh -c 'echo "run: $RANK/$WORLD_SIZE on $ZCOLL_NODE"' | sort
		fault link down; rdma link | grep -c DOWN; fault link up
		ping node1 1 5
		fault loss 100; ping node1 2 1; fault loss 0
		fault freeze 1 2
		echo "thawed: $(ping node1 1 8)"
		fault kill 2
		echo "killed: $(ping node2 2 1)"
	fi
	meet end
	echo "survived $ZCOLL_NODE"
}

case ${1:-} in
one|three)	"play_$1"; exit ;;
esac

# ------------------------------------------------------------------ on the host

n=0
check() {
	local name=$1 text=$2 pattern=$3
	n=$((n + 1))
	grep -q -E -x -e "$pattern" <<<"$text" && { echo "ok $n $name"; return; }
	echo "not ok $n $name"
	echo "# no line '$pattern' in:"
	sed 's/^/# /' <<<"$text"
}
vm() { "$top/tools/vm/vm" --no-module --timeout 90 --results "$build/results/vm" "$@" 2>&1 && echo "exit 0"; }
us=$here/vm_test.sh

# As a kernel that dies while it boots: the machine's process is killed as soon as it is there
die_in_boot() {
	local tmp machine=
	tmp=$(mktemp -d)
	TMPDIR=$tmp vm -- echo it runs >"$tmp/log" &
	for _ in {1..1200}; do
		machine=$(pgrep -f "^qemu-system.*path=$tmp/")
		[ -z "$machine" ] || break
		sleep 0.05
	done
	[ -z "$machine" ] || kill -KILL "$machine"
	wait $!
	cat "$tmp/log"
	rm -rf "$tmp"
}

said=$(die_in_boot)
check a_machine_that_dies_in_its_boot_is_started_once_more \
	"$(grep -E -o 'once more|it runs|exit 0' <<<"$said" | paste -s -d,)" 'once more,it runs,exit 0'

said=$(vm --rdma siw:2 -- "$us" one)
check one_node_talks_to_itself_over_siw "$said" 'passed: call 192.0.2.1'
check the_second_rail_too "$said" 'passed: call 192.0.2.129'
check the_environment_names_the_meeting_place "$said" 'master: 192.0.2.1 1'
check loss_acts_on_siw "$said" '1 packets transmitted, 0 packets received.*'
check rdma_devices_are_removed "$said" 'passed: fault rdma-del'
check rdma_devices_are_made_anew "$said" 'made anew: 2'

said=$(vm --nodes 3 --rdma rxe:2 -- "$us" three)
check nodes_talk_over_rdma_on_the_second_rail "$said" 'node2\| passed: call 192.0.2.129'
check nodes_reach_each_other "$(grep -c '3 packets transmitted, 3 packets received' <<<"$said")" 2
check rsh_runs_on_the_other_node "$said" 'node0\| rsh: 1'
check rsh_gives_the_status_back "$said" 'node0\| status: 7'
check run_numbers_ranks_over_nodes "$(grep -o 'run: .*' <<<"$said" | paste -s -d,)" \
	'run: 0/3 on 0,run: 1/3 on 2,run: 2/3 on 2'
check link_down_takes_all_rails "$said" 'node0\| 2'
check link_up_brings_them_back "$said" 'node0\| 1 packets transmitted, 1 packets received.*'
check loss_loses "$said" 'node0\| 2 packets transmitted, 0 packets received.*'
check a_frozen_node_goes_on "$said" 'node0\| thawed: 1 packets transmitted, 1 packets received.*'
check a_killed_node_is_gone "$said" 'node0\| killed: 2 packets transmitted, 0 packets received.*'
check others_survive_it_and_the_run_succeeds "$(grep -E '^exit|survived' <<<"$said" | sort | paste -s -d,)" \
	'exit 0,node0\| survived 0,node1\| survived 1'
said=$(vm --nodes 2 --rdma none --on 1 -- sh -c 'exit 9'; echo "status $?")
check the_status_of_a_failed_node_is_the_runs "$said" 'status 9'

if [ "${1:-}" = --long ]; then
	said=$(vm --rdma rxe:2 -- "$us" one)
	check one_node_talks_to_itself_over_rxe "$said" 'passed: call 192.0.2.1'
	check the_second_rail_of_rxe_too "$said" 'passed: call 192.0.2.129'
	check loss_on_one_node_is_refused_for_rxe "$said" 'failed: fault loss 100'
fi
echo "1..$n"
