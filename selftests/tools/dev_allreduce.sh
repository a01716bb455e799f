#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# dev_allreduce.sh - zcoll allreduce: arrays go in and come out, through the device
# shellcheck disable=SC2317 # functions called by t
# shellcheck source=selftests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

npytool=$build/selftests/tools/npytool

# reduce N ARG...: under zcoll run
reduce() {
	local n=$1
	shift
	run "$zcoll" run -n "$n" -- "$zcoll" allreduce "$@"
}

make_inputs() { # N DTYPE HEADER COUNT
	local r
	rm -f in.* out.*
	for ((r = 0; r < $1; r++)); do
		"$npytool" make "in.$r" "$r" "$2" "$3" "$4" || return 1
	done
}

check_outputs() { # N OP DTYPE COUNT
	local r
	for ((r = 0; r < $1; r++)); do
		"$npytool" check "out.$r" "$1" "$2" "$3" "$4" || return 1
	done
}

# same_header FILE FILE: the first 10 bytes, and the text whose length they tell
same_header() { cmp -n 60 "$1" "$2"; }

# arrays N OP DTYPE DESCR SHAPE COUNT [OPTION...]
arrays() {
	local n=$1 op=$2 dtype=$3 descr=$4 shape=$5 count=$6
	shift 6
	make_inputs "$n" "$dtype" "{'descr': '$descr', 'fortran_order': False, 'shape': $shape, }" "$count" &&
		reduce "$n" --op "$op" "$@" in.%r out.%r && is 0 "$status" && is "" "$(cat err)" &&
		check_outputs "$n" "$op" "$dtype" "$count" && same_header in.0 out.0
}

fortran() {
	make_inputs 3 fp32 "{'descr': '<f4', 'fortran_order': True, 'shape': (5, 7), }" 35 &&
		reduce 3 --op sum in.%r out.%r && is 0 "$status" &&
		check_outputs 3 sum fp32 35 && same_header in.0 out.0
}

raw() {
	make_inputs 2 int16 raw 1001 && reduce 2 --op max --dtype int16 in.%r out.%r && is 0 "$status" &&
		check_outputs 2 max int16 1001
}

alone() {
	make_inputs 1 fp64 "{'descr': '<f8', 'fortran_order': False, 'shape': (9,), }" 9 &&
		run env -u ZCOLL_RANK -u ZCOLL_SIZE -u ZCOLL_KEY "$zcoll" allreduce --op sum in.0 out.0 &&
		is 0 "$status" && cmp in.0 out.0
}

in_place() {
	make_inputs 2 fp32 raw 100 && reduce 2 --op sum --dtype fp32 in.%r in.%r && is 0 "$status" || return 1
	mv in.0 out.0
	mv in.1 out.1
	check_outputs 2 sum fp32 100
}

# Two inputs that differ: both ranks fail, and no output appears
differ() { # TEXT MAKE0 MAKE1 ARG...
	local text=$1
	rm -f in.* out.*
	eval "$npytool make in.0 0 $2 && $npytool make in.1 1 $3" || return 1
	shift 3
	reduce 2 "$@" in.%r out.%r
	is 1 "$status" && said "$text" && is "in.0 in.1" "$(echo in.* out.[01])"
}
header() { echo "\"{'descr': '<f4', 'fortran_order': $1, 'shape': $2, }\""; }
shapes_differ() {
	shopt -s nullglob
	differ "rank 0 has shape (2, 3), rank 1 has shape (3, 2)" \
		"fp32 $(header False '(2, 3)') 6" "fp32 $(header False '(3, 2)') 6" --op sum
}
orders_differ() {
	shopt -s nullglob
	differ "rank 1 has shape (2, 3) in Fortran order" \
		"fp32 $(header False '(2, 3)') 6" "fp32 $(header True '(2, 3)') 6" --op sum
}
counts_differ() {
	shopt -s nullglob
	differ "rank 0 has 6 raw elements, rank 1 has 7 raw elements" "fp32 raw 6" "fp32 raw 7" \
		--op sum --dtype fp32
}

# Types and operators are the kernel's to compare: its text names ranks and values
operators_differ() {
	make_inputs 2 fp32 raw 8 || return 1
	# shellcheck disable=SC2016
	run "$zcoll" run -n 2 -- sh -c \
		'exec "$1" allreduce --op $([ %r = 0 ] && echo sum || echo max) --dtype fp32 in.%r out.%r' sh "$zcoll"
	is 1 "$status" && said "rank" && said "sum" && said "max" && [ ! -e out.0 ] && [ ! -e out.1 ]
}

missing_input() {
	make_inputs 2 fp32 raw 8 && rm in.1 && reduce 2 --op sum --dtype fp32 in.%r out.%r
	is 1 "$status" && said "in.1: No such file" && [ ! -e out.0 ]
}

output_replaced() {
	make_inputs 2 fp32 raw 8 && echo old >out.0 && chmod 600 out.0 && echo old >real && ln -s real out.1 &&
		reduce 2 --op sum --dtype fp32 in.%r out.%r && is 0 "$status" &&
		check_outputs 2 sum fp32 8 && is "out.0 out.1" "$(echo out.*)" && [ -L out.1 ]
}

failed_output_leaves_old() {
	make_inputs 2 fp32 raw 8 && echo old >out.0 && rm in.1 &&
		reduce 2 --op sum --dtype fp32 in.%r out.%r
	is 1 "$status" && is old "$(cat out.0)" && is "out.0" "$(echo out.*)"
}

# The temporary file, out.0.XXXXXX, goes with us
signal_leaves_nothing() {
	local pid
	rm -f out.*
	head -c 64M /dev/zero >in.0
	env -u ZCOLL_RANK "$zcoll" allreduce --op sum --dtype fp32 in.0 out.0 2>err &
	pid=$!
	while kill -0 "$pid" && [ "$(echo out.*)" = 'out.*' ]; do
		sleep 0.02
	done
	kill -TERM "$pid"
	wait "$pid"
	is 143 $? && is 'out.*' "$(echo out.*)"
}

to_pipe() {
	make_inputs 1 fp32 raw 8
	env -u ZCOLL_RANK "$zcoll" allreduce --op sum --dtype fp32 in.0 /proc/self/fd/1 | cmp - in.0
}

t "1 rank, fp32" arrays 1 sum fp32 '<f4' '(7,)' 7
t "2 ranks, fp32, two dimensions" arrays 2 sum fp32 '<f4' '(13, 17)' 221
t "4 ranks, fp64" arrays 4 sum fp64 '<f8' '(1000,)' 1000
t "3 ranks, int8" arrays 3 sum int8 '|i1' '(1001,)' 1001
t "3 ranks, uint64, prod" arrays 3 prod uint64 '<u8' '(1001,)' 1001
t "3 ranks, int32, avg" arrays 3 avg int32 '<i4' '(1001,)' 1001
t "5 ranks, fp16, avg" arrays 5 avg fp16 '<f2' '(1001,)' 1001
t "3 ranks, bf16 as V2, min" arrays 3 min bf16 '<V2' '(1001,)' 1001 --dtype bf16
t "2 ranks, bf16 as u2" arrays 2 sum bf16 '<u2' '(1001,)' 1001 --dtype bf16
t "a single number" arrays 2 sum fp32 '<f4' '()' 1
t "an empty array" arrays 2 sum fp32 '<f4' '(0, 3)' 0
t "an array of many pieces" arrays 2 sum fp32 '<f4' '(1800001,)' 1800001
t "an array that ends with a piece" arrays 2 max int16 '<i2' '(2097152,)' 2097152
t "8 ranks" arrays 8 sum int32 '<i4' '(5000,)' 5000
t "Fortran order is kept" fortran
t "raw data" raw
t "without a launcher the process is the only rank" alone
t "the output may be the input" in_place
t "shapes that differ: ranks and shapes are named" shapes_differ
t "orders that differ" orders_differ
t "counts that differ" counts_differ
t "operators that differ: the kernel's text is shown" operators_differ
t "a missing input ends all ranks" missing_input
t "an older output is replaced, a link kept" output_replaced
t "a failure leaves the older output" failed_output_leaves_old
t "a signal leaves no unfinished output" signal_leaves_nothing
t "the output may be a pipe" to_pipe
tap_end
