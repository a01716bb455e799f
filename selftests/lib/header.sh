#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# header.sh - the public headers compile alone, in the languages of their users
set -u
top=$(cd "$(dirname "$0")/../.." && pwd -P)
n=0
failed=0

# compile NAME COMPILER FLAG...: a test
compile() {
	name=$1
	shift
	n=$((n + 1))
	if printf '#include <%s>\nint main(void) { return 0; }\n' "$header" |
	   "$@" -I"$top/include" -I"$top/include/uapi" -Wall -Wextra -Werror -fsyntax-only - 2>&1 |
	   sed 's/^/# /' | grep .; then
		printf 'not '
		failed=1
	fi
	echo "ok $n - $header compiles as $name"
}

for header in zcoll.h zcoll_comm.h zcoll_plan.h linux/zcoll.h; do
	compile "C11" "${CC:-gcc}" -x c -std=c11 -pedantic
	compile "C99" "${CC:-gcc}" -x c -std=c99 -pedantic
	compile "C++11" "${CXX:-g++}" -x c++ -std=c++11
done
echo "1..$n"
exit $failed
