# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# TAP for the shell tests of the command; to be sourced. A test is a command that
# succeeds; its output is shown when it does not. In a test, `said` finds a text in
# the output kept by `run`, and `status` is its exit status.

top=$(cd "$(dirname "$0")/../.." && pwd -P)
build=${ZCOLL_BUILD:-$top/build}
export zcoll=$build/tools/zcoll
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests=0 failed=0
cd "$work" || exit 1

echo "TAP version 13"

# t NAME COMMAND...: a test
t() {
	local name=$1 out
	shift
	tests=$((tests + 1))
	if out=$("$@" 2>&1); then
		echo "ok $tests - $name"
	else
		echo "not ok $tests - $name"
		echo "$out" | tail -n 20 | sed 's/^/# /'
		failed=$((failed + 1))
	fi
}

# run COMMAND...: keeps its status, standard output ($work/out) and error ($work/err)
run() {
	"$@" >"$work/out" 2>"$work/err"
	status=$?
}

# is WANTED GOT
is() {
	[ "$1" = "$2" ] && return
	echo "wanted '$1', got '$2'"
	cat "$work/err"
	return 1
}

# said TEXT: on standard error
said() {
	grep -qF -e "$1" "$work/err" && return
	echo "no '$1' in:"
	cat "$work/err"
	return 1
}

# refused TEXT COMMAND...: wrong usage, and the message has TEXT
refused() {
	local text=$1
	shift
	run "$@"
	is 2 "$status" && said "$text" && said "See 'zcoll help"
}

# fails TEXT COMMAND...: exit status 1, and the message has TEXT
fails() {
	local text=$1
	shift
	run "$@"
	is 1 "$status" && said "$text"
}

tap_end() {
	echo "1..$tests"
	[ $failed = 0 ]
	exit
}
