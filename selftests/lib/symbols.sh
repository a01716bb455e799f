#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# symbols.sh - the library exports the functions of its headers, with a version,
# and no other name; it prints nothing and has no global state
set -u
top=$(cd "$(dirname "$0")/../.." && pwd -P)
lib=${ZCOLL_BUILD:-$top/build}/lib
n=0
failed=0

# same NAME WANT GOT: a test
same() {
	n=$((n + 1))
	if [ "$2" != "$3" ]; then
		printf 'not '
		failed=1
	fi
	echo "ok $n - $1"
	[ "$2" = "$3" ] || printf '%s\n-- and should be\n%s\n' "$3" "$2" | sed 's/^/# /'
}

declared=$(grep -hEo '^[a-z].*\bzcoll_[a-z_]+\(' "$top"/include/*.h |
	   grep -Eo 'zcoll_[a-z_]+\($' | tr -d '(' | sort)
exported=$(nm -D --defined-only "$lib/libzcoll.so" | awk '$2 == "T" { print $3 }' | sort)
data=$(nm -D --defined-only "$lib/libzcoll.so" | awk '$2 !~ /[TA]/ { print $3 }')
# Constants that need relocation are no state: they lie in .data.rel.ro
state=$(size -A "$lib/libzcoll.a" | awk '$1 ~ /^\.(data|bss)$/ && $2 > 0 { print $1, $2 }')
prints=$(nm -u "$lib/libzcoll.a" |
	 awk '$2 ~ /^(__)?(v?printf|v?fprintf|puts|putchar|perror|fwrite|fputs|stdout|stderr)(_chk)?$/ { print $2 }')

same "exported: what the headers declare" \
	"$(echo "$declared" | sed 's/$/@@ZCOLL_0.1/')" "$exported"
same "exported: no data" "" "$data"
same "no global state" "" "$state"
same "nothing that prints is called" "" "$prints"
same "soname" "libzcoll.so.0" \
	"$(readelf -d "$lib/libzcoll.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')"
same "the man pages have all functions" "$declared" \
	"$(awk '/^\.F[no] / { print $2 }' "$top"/Documentation/man/*.3 | grep -F -x "$declared" | sort -u)"
echo "1..$n"
exit $failed
