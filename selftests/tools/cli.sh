#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# cli.sh - help, options, messages, files that are refused, completion, manual;
# needs no device
# shellcheck disable=SC2317 # functions called by t
# shellcheck source=selftests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

export ZCOLL_DEVICE=$work/no-device
unset ZCOLL_RANK ZCOLL_SIZE ZCOLL_KEY

# --------------------------------------------------------------------- help

help_lists_all() {
	run "$zcoll" help
	for sub in info run allreduce perf calibrate help; do
		grep -q "^  $sub " out || return 1
	done
	is 0 "$status"
}

help_of_each() {
	for sub in info run allreduce perf calibrate help; do
		"$zcoll" help "$sub" >one && "$zcoll" "$sub" --help >two && cmp one two &&
			grep -q "^Usage: zcoll" one || return 1
	done
}

# Each long option that getopt knows is in the help text, and the other way round
help_names_options() {
	for sub in info run allreduce perf aggregate calibrate; do
		sed -nE 's/.*\{ "([a-z_-]+)", (no|required)_argument.*/--\1/p' \
			"$top/tools/cmd_$sub.c" | sort >known
		echo "--help" >>known
		"$zcoll" help "$sub" | sed -nE 's/^ +(-.,)? *(--[a-z_-]+).*/\2/p' >told
		is "$(sort known)" "$(sort told)" || return 1
	done
}

help_fits_terminal() {
	for sub in "" info run allreduce perf aggregate calibrate help; do
		"$zcoll" help ${sub:+"$sub"}
	done >all
	[ "$(wc -L <all)" -le 88 ]
}

version() { run "$zcoll" --version; is 0 "$status" && grep -qE '^zcoll [0-9.]+ \(ABI 1\)$' out; }
no_arguments() { refused "which subcommand" "$zcoll"; }
unknown() { refused "no subcommand 'frobnicate'" "$zcoll" frobnicate && ! grep -q "did you mean" err; }
suggestion() { refused "did you mean 'allreduce'?" "$zcoll" all-reduce; }

# full_disk ARG...: nothing that is printed can be written
full_disk() {
	"$@" >/dev/full 2>err
	is 1 $? && said "cannot write standard output"
}

# --------------------------------------------------------------- the device

no_device() { fails "modprobe zcoll" "$zcoll" info; }
wrong_device() { ZCOLL_DEVICE=/dev/null fails "not the device of zcoll" "$zcoll" info; }
perf_without_device() { fails "no-device" "$zcoll" perf -b 8 -e 8; }
same_words() {
	run "$zcoll" info
	sed 's/^zcoll info: //' err >words
	run "$zcoll" perf -b 8 -e 8
	is "$(cat words)" "$(sed 's/^zcoll perf: //' err)"
}
half_environment() { ZCOLL_RANK=0 fails "ZCOLL_SIZE" "$zcoll" perf -b 8 -e 8; }

# ------------------------------------------- a rank alone, without a device

solo() { env LD_PRELOAD="$build/selftests/tools/solo.so" "$zcoll" "$@"; }

# joins NS ARG...: the longest wait for the ranks of zcoll perf
joins() {
	local ns=$1
	shift
	run solo perf -b 8 -e 8 -n 1 "$@"
	is 0 "$status" && said "joins within $ns ns"
}
joins_default() { joins 60000000000 && joins 60000000000 --deadline 0 && joins 60000000000 --deadline 1h; }
joins_deadline() { joins 1500000000 --deadline 1.5s && joins 30000000000 --deadline 500000us --deadline 0.5m; }
joins_environment() {
	export ZCOLL_RANK=0 ZCOLL_SIZE=1 ZCOLL_JOIN_TIMEOUT=5 ZCOLL_KEY=0123456789abcdef0123456789abcdef
	joins 5000000000 --deadline 9s && joins 2000000000 --deadline 2s
	local ret=$?
	unset ZCOLL_RANK ZCOLL_SIZE ZCOLL_JOIN_TIMEOUT ZCOLL_KEY
	return "$ret"
}

# ------------------------------------------------------- the modes of zcoll perf

# A value that a long option takes; none: it takes none
value_of() {
	case $1 in
	--coll) echo allreduce ;;
	--op) echo sum ;;
	--datatype) echo float ;;
	--minbytes | --maxbytes | --rotate) echo 64 ;;
	--stepfactor) echo 2 ;;
	--fabric) echo loop ;;
	--deadline | --json | --ngpus | --iters | --warmup_iters | --agg_iters | --check | \
		--stepbytes | --root | --blocking | --average) echo 1 ;;
	esac
}

# mode_takes MODE LONG_OPTION...: these it takes, and so gets as far as the device; all others
# that there are would change nothing, and it says so
mode_takes() {
	local mode=$1 option taken
	shift
	taken=" $* "
	for option in $("$zcoll" help perf | sed -nE 's/^ +(-.,)? *(--[a-z_-]+).*/\2/p'); do
		case $option in --overlap | --cost | --help) continue ;; esac
		# shellcheck disable=SC2046 # no value is no word
		run "$zcoll" perf "$mode" -b 8 "$option" $(value_of "$option")
		if [ "${taken#* "$option" }" != "$taken" ]; then
			is 1 "$status" && said "no-device" || { echo "$option"; return 1; }
		else
			is 2 "$status" && said "$mode does not take" && said "$option" || return 1
		fi
	done
}
cost_takes() {
	mode_takes --cost --coll --ngpus --minbytes --iters --warmup_iters --op --datatype \
		--reproducible --agreed --deadline --json
}
overlap_takes() {
	mode_takes --overlap --coll --ngpus --minbytes --maxbytes --stepbytes --stepfactor --iters \
		--warmup_iters --check --op --datatype --root --in-place --reproducible --agreed \
		--average --rotate --unregistered --deadline --fabric --json
}
cost_whole_elements() {
	local type size

	for type in int8:1 int16:2 half:2 float:4 double:8; do
		size=${type#*:} type=${type%:*}
		fails "no-device" "$zcoll" perf --cost -d "$type" -b $((5 * size)) &&
			refused "--cost -b 1025: must be a multiple of $size" \
				"$zcoll" perf --cost -d "$type" -b 1025 &&
			refused "--cost -b 0: must be" "$zcoll" perf --cost -d "$type" -b 0 || return 1
		[ "$size" = 1 ] || refused "--cost -b $((3 * size / 2)): must be a multiple of $size" \
			"$zcoll" perf --cost -d "$type" -b $((3 * size / 2)) || return 1
	done
}

# ----------------------------------------------------- files that are refused

# npy NAME HEADER [DATA_BYTES]: a file of version 1
npy() {
	local len=$((${#2} + 1))
	{
		printf '\x93NUMPY\x01\x00'
		# shellcheck disable=SC2059
		printf "\\x$(printf %02x $((len & 255)))\\x$(printf %02x $((len >> 8)))"
		printf '%s\n' "$2"
		head -c "${3:-0}" /dev/zero
	} >"$1"
}

# file_refused TEXT FILE [OPTION...]
file_refused() {
	local text=$1 file=$2
	shift 2
	fails "$text" "$zcoll" allreduce --op sum "$@" "$file" out.npy && [ ! -e out.npy ]
}

# accepted FILE [OPTION...]: it gets as far as the device
accepted() {
	local file=$1
	shift
	fails "no-device" "$zcoll" allreduce --op sum "$@" "$file" out.npy
}

dict() { echo "{'descr': '$1', 'fortran_order': ${3:-False}, 'shape': ${2:-(4,)}, }"; }

good_file() { npy a.npy "$(dict '<f4' '(2, 3)')" 24 && accepted a.npy; }
bf16_as_v2() { npy a.npy "$(dict '<V2')" 8 && accepted a.npy --dtype bf16; }
bf16_as_u2() { npy a.npy "$(dict '<u2')" 8 && accepted a.npy --dtype bf16; }
v2_alone() { npy a.npy "$(dict '<V2')" 8 && file_refused "say --dtype bf16" a.npy; }
big_endian() { npy a.npy "$(dict '>f4')" 16 && file_refused "big-endian type '>f4'; convert with a.astype('<f4')" a.npy; }
objects() { npy a.npy "$(dict '|O')" 9 && file_refused "Python objects" a.npy; }
complex() { npy a.npy "$(dict '<c8')" 32 && file_refused "type '<c8'; possible are" a.npy; }
truncated() { npy a.npy "$(dict '<f4')" 15 && file_refused "the file has" a.npy; }
trailing() { npy a.npy "$(dict '<f4')" 17 && file_refused "the file has" a.npy; }
other_type() { npy a.npy "$(dict '<f4')" 16 && file_refused "has type '<f4' (fp32), not int32" a.npy --dtype int32; }
raw_untyped() { head -c 16 /dev/zero >a.raw && file_refused "name its type with --dtype" a.raw; }
raw_uneven() { head -c 15 /dev/zero >a.raw && file_refused "15 bytes are not a whole number of elements of fp32" a.raw --dtype fp32; }
raw_good() { head -c 16 /dev/zero >a.raw && accepted a.raw --dtype fp32; }
no_file() { file_refused "none.npy: No such file" none.npy; }
folder() { mkdir -p dir && file_refused "dir: not a regular file" dir; }
escape_codes() { npy a.npy "$(dict $'\e[31mx')" 16 && file_refused "'?[31mx'" a.npy; }

# --------------------------------------------------------------- completion

# completed WORDS...: what the last word may become
completed() {
	(
		PATH=$build/tools:$PATH
		# shellcheck source=/dev/null
		. "$top/tools/completion/zcoll"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		_zcoll
		echo "${COMPREPLY[*]}"
	)
}

completes_subcommands() { is "run" "$(completed zcoll r)" && is "info run allreduce perf aggregate plan sim calibrate help --help --version" "$(completed zcoll "")"; }
completes_options() { is "--prefix" "$(completed zcoll run --pr)" && is "--op" "$(completed zcoll allreduce --o)" && is "-z" "$(completed zcoll perf -z)"; }
completes_values() { is "prod" "$(completed zcoll allreduce --op p)" && is "bf16" "$(completed zcoll perf -d bf)"; }
completes_programs() { completed zcoll run -n 4 -- seq | grep -qw seq; }

# ------------------------------------------------------------------- manual

manual_formats() {
	LC_ALL=C.UTF-8 groff -man -Tutf8 -ww -P-c "$top/Documentation/man/zcoll.1" >page 2>err
	is 0 $? && is "" "$(cat err)"
}
manual_names_options() {
	sed 's/\\-/-/g' "$top/Documentation/man/zcoll.1" >page
	for sub in info run allreduce perf aggregate; do
		for option in $("$zcoll" help "$sub" | sed -nE 's/^ +(-.,)? *(--[a-z_-]+).*/\2/p'); do
			grep -qF -e "$option" page || { echo "no $option"; return 1; }
		done
	done
}

t "help lists all subcommands" help_lists_all
t "help SUB and SUB --help are the same" help_of_each
t "help names the options that there are" help_names_options
t "help fits a terminal" help_fits_terminal
t "help of an unknown subcommand is refused" refused "did you mean 'perf'" "$zcoll" help pref
t "--version names the ABI" version
t "no arguments: usage" no_arguments
t "an unknown subcommand is refused" unknown
t "a misspelled subcommand gets a suggestion" suggestion
t "help of an unknown subcommand points to the list" refused "See 'zcoll help'." "$zcoll" help nonsense
t "a full disk is noticed by help" full_disk "$zcoll" help
t "a full disk is noticed by --version" full_disk "$zcoll" --version
t "a full disk is noticed by --help" full_disk "$zcoll" --help
t "a full disk is noticed by info" full_disk solo info
t "a full disk is noticed by info --json" full_disk solo info --json
t "a full disk is noticed by perf" full_disk solo perf -b 8 -e 64 -f 8 -n 1
t "a full disk is noticed by perf -g" full_disk solo perf -g 1 -b 8 -e 8 -n 1
t "perf: a JSON file on a full disk is named" fails "/dev/full: No space left" solo perf -b 8 -e 8 -n 1 --json /dev/full
t "perf: buffers that do not fit the memory are refused" fails "two buffers of 1048576 MiB for each of 1 ranks are 2097152 MiB, and" solo perf -b 1T -e 1T
t "joining waits 60 s without a deadline" joins_default
t "a deadline bounds joining" joins_deadline
t "the smaller of deadline and ZCOLL_JOIN_TIMEOUT bounds joining" joins_environment
t "info without a device says what to do" no_device
t "info on another device says so" wrong_device
t "info takes no arguments" refused "unexpected argument 'x'" "$zcoll" info x
t "perf without a device fails" perf_without_device
t "perf and info say the same of a device that cannot be used" same_words
t "a launcher's environment that is not whole is told" half_environment
t "allreduce: --op is required" refused "--op OP is missing" "$zcoll" allreduce a b
t "allreduce: an unknown operator is refused" refused "--op mean: not sum, prod, min, max or avg" "$zcoll" allreduce --op mean a b
t "allreduce: an unknown type is refused" refused "--dtype quad: not int8, uint8, int16, uint16, int32, uint32, int64, uint64, fp16, bf16, fp32 or fp64" "$zcoll" allreduce --op sum --dtype quad a b
t "allreduce: two files are required" refused "an input and an output" "$zcoll" allreduce --op sum a
t "allreduce: a bad deadline is refused" refused "--deadline 1y" "$zcoll" allreduce --op sum --deadline 1y a b
t "allreduce: a good file is taken" good_file
t "allreduce: bf16 as V2 is taken" bf16_as_v2
t "allreduce: bf16 as u2 is taken" bf16_as_u2
t "allreduce: V2 alone is refused" v2_alone
t "allreduce: big-endian is refused, with the remedy" big_endian
t "allreduce: Python objects are refused" objects
t "allreduce: complex numbers are refused" complex
t "allreduce: a file that is cut off is refused" truncated
t "allreduce: a file with more behind it is refused" trailing
t "allreduce: a type other than the file's is refused" other_type
t "allreduce: raw data needs a type" raw_untyped
t "allreduce: raw data must be whole elements" raw_uneven
t "allreduce: raw data with a type is taken" raw_good
t "allreduce: a missing file is named" no_file
t "allreduce: a folder is refused" folder
t "allreduce: codes for the terminal do not get there" escape_codes
t "perf: -b above -e is refused" refused "-b 64 is more than -e 8" "$zcoll" perf -b 64 -e 8
t "perf: -b above the default of -e says so" refused "-b 1T is more than -e 32M (the default)" "$zcoll" perf -b 1T
t "perf: an unknown unit is refused" refused "-b 8X: not a size" "$zcoll" perf -b 8X
t "perf: a size beyond the limit is refused" refused "-e 2T: not a size" "$zcoll" perf -e 2T
t "perf: no step is refused" refused "-i 0: sizes would not grow" "$zcoll" perf -i 0
t "perf: factor 1 is refused" refused "-f 1: not a number from 2" "$zcoll" perf -f 1
t "perf: no iterations are refused" refused "-n 0: not a number from 1" "$zcoll" perf -n 0
t "perf: more in flight than the ABI knows is refused" refused "-m 33: not a number from 1 to 32" "$zcoll" perf -m 33
t "perf: an unknown operator is refused" refused "-o mean: not sum, prod, min, max, avg or all" "$zcoll" perf -o mean
t "perf: an unknown type is refused" refused "-d fp8: not int8, uint8, int16, uint16, int32, uint32, int64, uint64, fp16, bf16, fp32, fp64 or all" "$zcoll" perf -d fp8
t "perf: -z 2 is refused" refused "-z 2: not a number from 0 to 1" "$zcoll" perf -z 2
t "perf: -g under a launcher is refused" refused "is one already" env ZCOLL_RANK=0 "$zcoll" perf -g 2
t "perf --cost: each option is used or refused" cost_takes
t "perf --overlap: each option is used or refused" overlap_takes
t "perf --cost: only whole elements, of at most 1 KiB" cost_whole_elements
t "perf --cost: -g under a launcher is refused" refused "is one already" env ZCOLL_RANK=0 "$zcoll" perf --cost -g 2
t "perf --overlap takes no barrier" refused "takes no barrier" "$zcoll" perf --overlap --coll barrier
t "perf --overlap takes no empty operation" refused "something to wait for" "$zcoll" perf --overlap -b 0
t "perf --cost takes one type" refused "of one type" "$zcoll" perf --cost -d all
t "completion: subcommands" completes_subcommands
t "completion: options" completes_options
t "completion: values" completes_values
t "completion: programs after run" completes_programs
t "the manual page formats without a warning" manual_formats
t "the manual page names all options" manual_names_options
tap_end
