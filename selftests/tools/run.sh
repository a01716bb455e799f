#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# run.sh - zcoll run: exit status, signals, output, environment; needs no device
# shellcheck disable=SC2016,SC2317 # texts for other shells; functions called by t
# shellcheck source=selftests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

ranks() { local n=$1; shift; "$zcoll" run -n "$n" -- "$@"; }

# gone PID: it ends soon, if it has not ended
gone() {
	local i
	for i in $(seq 100); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.05
	done
	echo "process $1 still runs"
	return 1
}

# appears FILE...: they are there soon, not empty
appear() {
	local i f
	for f; do
		for i in $(seq 200); do
			[ -s "$f" ] && continue 2
			sleep 0.05
		done
		echo "no $f"
		return 1
	done
}

# --------------------------------------------------------------- exit status

all_succeed() { run ranks 4 true; is 0 "$status" && is "" "$(cat err)"; }

first_failure() {
	run ranks 3 sh -c 'if [ $ZCOLL_RANK = 1 ]; then exit 7; fi; trap "exit 9" TERM; sleep 60 & wait'
	is 7 "$status" && said "rank 1 exited with status 7"
}

last_rank_fails() { run ranks 3 sh -c 'exit $((ZCOLL_RANK == 2 ? 5 : 0))'; is 5 "$status"; }

killed_by_signal() {
	run ranks 2 sh -c 'if [ $ZCOLL_RANK = 1 ]; then kill -SEGV $$; fi; sleep 60'
	is 139 "$status" && said "rank 1 was killed by signal 11"
}

no_such_program() {
	run ranks 5 ./no-such-program
	is 127 "$status" && is 1 "$(wc -l <err)" && said "cannot run './no-such-program': No such file"
}

not_executable() {
	echo data >data
	run ranks 3 ./data
	is 126 "$status" && is 1 "$(wc -l <err)" && said "Permission denied"
}

# ----------------------------------------------------------------- the end

others_end_soon() {
	local begin=$SECONDS
	run ranks 4 sh -c 'if [ $ZCOLL_RANK = 3 ]; then exit 1; fi; sleep 60'
	is 1 "$status" && [ $((SECONDS - begin)) -lt 4 ]
}

grace_time() {
	run "$zcoll" run -n 2 --grace 300ms -- sh -c \
		'echo $$ >pid.$ZCOLL_RANK
		if [ $ZCOLL_RANK = 1 ]; then while [ ! -s ready ]; do sleep 0.02; done; exit 4; fi
		trap "" TERM; echo >ready; while :; do sleep 0.1; done'
	is 4 "$status" && said "sending SIGKILL" && gone "$(cat pid.0)"
}

descendants_end() {
	run "$zcoll" run -n 2 --grace 1s -- sh -c \
		'if [ $ZCOLL_RANK = 0 ]; then sh -c "echo \$\$ >grandchild; sleep 300; :"; exit 0; fi
		while [ ! -s grandchild ]; do sleep 0.02; done; exit 3'
	is 3 "$status" && gone "$(cat grandchild)"
}

no_zombies() {
	run ranks 8 sh -c \
		'if [ $ZCOLL_RANK != 7 ]; then exit 0; fi; i=0
		while [ $i -lt 100 ]; do
			c=$(cat /proc/$PPID/task/$PPID/children)
			if [ "$c" = "$$ " ]; then exit 0; fi
			i=$((i + 1)); sleep 0.05
		done; echo "children: $c, should be $$" >&2; exit 1'
	is 0 "$status"
}

# ---------------------------------------------------------------- signals

# job ARG...: a job in the background that has started when this returns
job() {
	rm -f pid.*
	"$zcoll" run -n 2 "$@" &
	launcher=$!
	appear pid.0 pid.1
}

sigterm_is_passed_on() {
	job -- sh -c 'trap "echo TERM >got.%r; exit 0" TERM; echo $$ >pid.%r; while :; do sleep 0.05; done' &&
		kill -TERM "$launcher"
	wait "$launcher"
	is 143 $? && is TERM "$(cat got.0)" && is TERM "$(cat got.1)"
}

sighup_is_passed_on() {
	job -- sh -c 'trap "echo HUP >got.%r; exit 0" HUP; echo $$ >pid.%r; while :; do sleep 0.05; done' &&
		kill -HUP "$launcher"
	wait "$launcher"
	is 129 $? && is HUP "$(cat got.0)" && is HUP "$(cat got.1)"
}

second_signal_kills() {
	local begin=$SECONDS
	job --grace 60s -- sh -c 'trap "echo >got.%r" TERM; echo $$ >pid.%r; while :; do sleep 0.05; done'
	rm -f got.*
	kill -TERM "$launcher"
	appear got.0 got.1
	kill -TERM "$launcher"
	wait "$launcher"
	is 143 $? && gone "$(cat pid.0)" && gone "$(cat pid.1)" && [ $((SECONDS - begin)) -lt 20 ]
}

ranks_die_with_launcher() {
	job -- sh -c 'echo $$ >pid.%r; while :; do sleep 0.05; done'
	kill -KILL "$launcher"
	wait "$launcher"
	gone "$(cat pid.0)" && gone "$(cat pid.1)"
}

nohup_is_respected() (
	trap '' HUP
	job -- sh -c 'echo $$ >pid.%r; while [ ! -e stop ]; do sleep 0.05; done'
	kill -HUP "$launcher"
	sleep 0.2
	kill -0 "$launcher" || exit 1
	touch stop
	wait "$launcher"
	is 0 $?
)

signals_as_before() {
	grep -E '^Sig(Blk|Ign)' /proc/self/status >before
	run ranks 1 grep -E '^Sig(Blk|Ign)' /proc/self/status
	is 0 "$status" && cmp before out
}

# ------------------------------------------------------- what a rank is given

environment() {
	run ranks 3 sh -c 'echo $ZCOLL_RANK $ZCOLL_SIZE $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE'
	is "0 3 0 3 0 3,1 3 1 3 1 3,2 3 2 3 2 3," "$(sort out | tr '\n' ,)"
}

key() {
	run ranks 3 sh -c 'echo $ZCOLL_KEY'
	sort -u out >first
	is 1 "$(wc -l <first)" && grep -qE '^[0-9a-f]{32}$' first || return 1
	run ranks 1 sh -c 'echo $ZCOLL_KEY'
	! cmp -s first out
}

deadline_of_joining() {
	run "$zcoll" run -n 1 --deadline 1500ms -- sh -c 'echo $ZCOLL_JOIN_TIMEOUT'
	is 1500000000ns "$(cat out)" || return 1
	run "$zcoll" run -n 1 --deadline 10m -- sh -c 'echo $ZCOLL_JOIN_TIMEOUT'
	is 60000000000ns "$(cat out)" || return 1
	ZCOLL_JOIN_TIMEOUT=7 run "$zcoll" run -n 1 --deadline 2 -- sh -c 'echo $ZCOLL_JOIN_TIMEOUT'
	is 7 "$(cat out)"
}

deadline() {
	run "$zcoll" run -n 1 --deadline 1500ms -- sh -c 'echo $ZCOLL_DEADLINE'
	is 1500000000ns "$(cat out)"
}

expansion() {
	run ranks 2 echo %r:%n:%%:%x:% a%rb%%r
	is "0:2:%:%x:% a0b%r,1:2:%:%x:% a1b%r," "$(sort out | tr '\n' ,)"
}

program_name_expands() {
	printf '#!/bin/sh\necho one\n' >prog.0
	chmod +x prog.0
	run ranks 1 ./prog.%r
	is one "$(cat out)"
}

options_of_program() { run "$zcoll" run -n 1 echo -n --bind; is "--bind" "$(cat out)"; }

stdin_for_rank_0() {
	echo hello | run ranks 3 sh -c 'echo $ZCOLL_RANK $(cat)'
	is "0 hello,1,2," "$(sort out | tr '\n' ,)"
}

bind_to_cpus() {
	local cpus i want
	mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
	run "$zcoll" run -n 5 --bind -- sh -c 'echo %r $(sed -n "s/^Cpus_allowed_list:\t//p" /proc/self/status)'
	for i in 0 1 2 3 4; do
		want="$i ${cpus[i % ${#cpus[@]}]}"
		grep -qx "$want" out || { echo "no '$want' in:"; cat out; return 1; }
	done
}

# ----------------------------------------------------------------- --prefix

whole_lines() {
	run "$zcoll" run -n 8 --prefix -- awk -v r=%r 'BEGIN {
		for (i = 0; i < 2000; i++)
			printf "line %d of %d %s\n", i, r, substr("xxxxxxxxxxxxxxxxxxxxxxxxx", 1, i % 25) }'
	is 0 "$status" && is 16000 "$(wc -l <out)" &&
		is 16000 "$(grep -cE '^\[([0-7])\] line [0-9]+ of \1 x*$' out)"
}

order_is_kept() {
	run "$zcoll" run -n 3 --prefix -- seq 500
	is "$(seq 500 | md5sum)" "$(sed -n 's/^\[2\] //p' out | md5sum)"
}

long_lines() {
	run "$zcoll" run -n 2 --prefix -- sh -c 'head -c 200000 /dev/zero | tr "\\0" y; echo'
	is 2 "$(wc -l <out)" && is 200004 "$(head -n 1 out | wc -L)"
}

endless_line_is_split() {
	run "$zcoll" run -n 1 --prefix -- head -c 3000000 /dev/zero
	is 0 "$status" && [ "$(wc -l <out)" -ge 3 ] && is 3000000 "$(tr -cd '\0' <out | wc -c)"
}

last_line_gets_newline() { run "$zcoll" run -n 1 --prefix -- printf 'a\nb'; is "[0] a,[0] b," "$(tr '\n' , <out)"; }

errors_stay_errors() {
	run "$zcoll" run -n 2 --prefix -- sh -c 'echo out; echo err >&2'
	is "[0] out,[1] out," "$(sort out | tr '\n' ,)" && is "[0] err,[1] err," "$(sort err | tr '\n' ,)"
}

slow_reader() {
	"$zcoll" run -n 4 --prefix -- seq 20000 | { sleep 0.5; cat; } >out
	is 0 "${PIPESTATUS[0]}" && is 80000 "$(wc -l <out)"
}

reader_gone() {
	"$zcoll" run -n 2 --prefix -- yes 2>err | head -n 1 >out
	is 141 "${PIPESTATUS[0]}" && grep -qE '^\[[01]\] y$' out
}

survivor_holds_pipe() {
	local begin=$SECONDS
	run "$zcoll" run -n 1 --prefix -- sh -c 'sleep 20 & echo $! >survivor; echo done'
	kill "$(cat survivor)"
	is 0 "$status" && is "[0] done" "$(cat out)" && [ $((SECONDS - begin)) -lt 10 ]
}

# ----------------------------------------------------------------- many ranks

two_hundred() {
	run "$zcoll" run -n 200 --prefix -- sh -c 'echo I am %r'
	is 0 "$status" && is 200 "$(grep -cE '^\[([0-9]+)\] I am \1$' out)"
}

most_ranks() (
	ulimit -Sn 256
	run "$zcoll" run -n 1024 --prefix -- echo %r
	is 0 "$status" && is 1024 "$(sort -u out | wc -l)"
)

file_limit() (
	ulimit -n 100
	fails "needs 232 open files, the hard limit is 100" "$zcoll" run -n 100 --prefix -- true
)

limit_as_before() (
	ulimit -Sn 50
	run "$zcoll" run -n 20 --prefix -- sh -c 'ulimit -Sn'
	is "50" "$(sed 's/.* //' out | sort -u)"
)

t "all ranks succeed: status 0, and no message" all_succeed
t "the status is that of the first failure" first_failure
t "a failure of the last rank counts" last_rank_fails
t "a signal that ends a rank gives 128 + signal" killed_by_signal
t "a program that does not exist: 127, reported once" no_such_program
t "a file that is not executable: 126, reported once" not_executable
t "when one rank fails, the others end soon" others_end_soon
t "who ignores SIGTERM is killed after the grace time" grace_time
t "what a rank has started ends with the job" descendants_end
t "ranks that have ended leave no zombie" no_zombies
t "SIGTERM is passed on, status 143" sigterm_is_passed_on
t "SIGHUP is passed on, status 129" sighup_is_passed_on
t "the second SIGTERM kills at once" second_signal_kills
t "ranks die with a killed launcher" ranks_die_with_launcher
t "SIGHUP stays ignored under nohup" nohup_is_respected
t "ranks have the signal mask and dispositions of the caller" signals_as_before
t "rank and size are in the environment" environment
t "the key is one for all ranks, and another for each job" key
t "--deadline reaches the library" deadline
t "--deadline bounds joining, unless the user has" deadline_of_joining
t "%r, %n and %% are replaced, all else is not" expansion
t "%r is replaced in the program's name" program_name_expands
t "options after the program are its own" options_of_program
t "standard input goes to rank 0 alone" stdin_for_rank_0
t "--bind gives each rank one of the usable CPUs" bind_to_cpus
t "--prefix keeps lines whole" whole_lines
t "--prefix keeps the order of a rank's lines" order_is_kept
t "--prefix takes long lines" long_lines
t "--prefix splits a line without end" endless_line_is_split
t "--prefix ends the last line" last_line_gets_newline
t "--prefix leaves standard error apart" errors_stay_errors
t "--prefix loses nothing to a slow reader" slow_reader
t "--prefix ends the job when nobody reads" reader_gone
t "--prefix does not wait for what outlives a rank" survivor_holds_pipe
t "200 ranks" two_hundred
t "1024 ranks with --prefix raise the limit of open files" most_ranks
t "a hard limit of open files too low is told with the need" file_limit
t "ranks get the limit of open files back" limit_as_before
t "-n is required" refused "-n N is missing" "$zcoll" run -- true
t "-n 0 is refused" refused "-n 0: not a number from 1 to 1024" "$zcoll" run -n 0 true
t "-n 1025 is refused" refused "-n 1025" "$zcoll" run -n 1025 true
t "-n 4x is refused" refused "-n 4x" "$zcoll" run -n 4x true
t "a program is required" refused "which program?" "$zcoll" run -n 2
t "an unknown option is refused" refused "'--prefixx'" "$zcoll" run -n 2 --prefixx true
t "a bad grace time is refused" refused "--grace soon: not a time" "$zcoll" run -n 2 --grace soon true
t "a deadline beyond a day is refused" refused "--deadline 25h" "$zcoll" run -n 2 --deadline 25h true
tap_end
