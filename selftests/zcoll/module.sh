#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The module goes when nothing uses it, not before, and comes again.
#
# Runs where ZCOLL_KO names the module's file, as in the virtual machines.

hold=${OUTPUT:-.}/hold
[ -x "$hold" ] || hold=$(dirname "$0")/hold
n=0
failed=0

# check NAME COMMAND...: one test
check() {
	name=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n module.$name"
	else
		echo "not ok $n module.$name"
		failed=1
	fi
}

loaded() { grep -q '^zcoll ' /proc/modules; }
load() { insmod "$ZCOLL_KO" && [ -c /dev/zcoll ]; }
unload() { rmmod zcoll && ! loaded && [ ! -e /dev/zcoll ]; }
use() { "$hold" </dev/null >/dev/null; }

# The endpoint's process gets its input from a pipe that is closed to end it
busy_with_an_endpoint() {
	dir=$(mktemp -d)
	mkfifo "$dir/in" "$dir/out"
	"$hold" <"$dir/in" >"$dir/out" &
	exec 3>"$dir/in"
	read -r word <"$dir/out"
	[ "$word" = held ] && ! rmmod zcoll 2>/dev/null && loaded
	ret=$?
	exec 3>&-
	wait
	rm -r "$dir"
	return $ret
}

busy_with_the_device() {
	exec 3<>/dev/zcoll
	! rmmod zcoll 2>/dev/null && loaded
	ret=$?
	exec 3<&-
	return $ret
}

ten_times() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		load && use && unload || return 1
	done
}

echo "TAP version 13"
if [ -z "${ZCOLL_KO:-}" ] || ! loaded; then
	echo "1..0 # SKIP ZCOLL_KO does not name the module, or it is not loaded"
	exit 4
fi
echo "1..5"
mode=$(stat -c %a /dev/zcoll)
check stays_while_an_endpoint_is_open busy_with_an_endpoint
check stays_while_the_device_is_open busy_with_the_device
check goes_when_nothing_uses_it unload
check comes_and_goes_ten_times ten_times
check comes_back load
chmod "$mode" /dev/zcoll
exit $failed
