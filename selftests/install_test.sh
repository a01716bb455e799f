#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# install_test.sh - `make install` into a folder, use of what is there, and
# `make uninstall`; prints TAP
set -u
top=$(cd "$(dirname "$0")/.." && pwd -P)
export ZCOLL_BUILD=${ZCOLL_BUILD:-$top/build}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/root
usr=$root/usr
lib=$usr/lib/$(gcc -print-multiarch)
kernel=$("$top/tools/vm/kernel" 6.1) || exit 1

n=0
# check NAME COMMAND...: passes if the command succeeds
check() {
	local name=$1 said
	shift
	n=$((n + 1))
	said=$("$@" 2>&1) && { echo "ok $n $name"; return; }
	echo "not ok $n $name"
	echo "$said" | tail -n 20 | sed 's/^/# /'
}

# to_stage TARGET [ARGUMENT...]: make it; further arguments are make's
to_stage() {
	make -C "$top" O="$ZCOLL_BUILD" DESTDIR="$root" PREFIX=/usr SYSCONFDIR=/etc \
		KDIR="$(readlink -f "$kernel/kdir")" "$@"
}

all_there() {
	local f
	for f in usr/bin/zcoll usr/include/zcoll.h usr/include/zcoll_comm.h usr/include/linux/zcoll.h \
		usr/share/man/man1/zcoll.1 usr/share/man/man3/libzcoll.3 usr/share/man/man4/zcoll.4 \
		usr/share/bash-completion/completions/zcoll etc/udev/rules.d/60-zcoll.rules \
		etc/modules-load.d/zcoll.conf etc/sysusers.d/zcoll.conf
	do
		[ -s "$root/$f" ] || { echo "missing: $f"; return 1; }
	done
}

module_there() {
	local ko
	ko=$(echo "$root"/lib/modules/*/extra/zcoll.ko*)
	modinfo -F vermagic "$ko" | grep -F "$(cat "$kernel/release")"
}

# flags PKG-CONFIG-ARG...: with the stage's folders
flags() {
	PKG_CONFIG_PATH=$lib/pkgconfig:$(pkg-config --variable pc_path pkg-config) \
		PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
		PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config "$@" zcoll
}

# The program is the README's example
builds() {
	local flags
	flags=$(flags --cflags --libs) || return 1
	# shellcheck disable=SC2086 # flags are words
	gcc -Wall -Wextra -Werror -o "$stage/hello" "$top/tools/examples/hello.c" $flags
}
one_soname() {
	[ "$(objdump -p "$stage/hello" | awk '$1 == "NEEDED" && /zcoll/ { print $2 }')" = libzcoll.so.0 ] &&
		LD_LIBRARY_PATH=$lib ldd "$stage/hello" | grep -F "libzcoll.so.0 => $lib/libzcoll.so.0"
}
# Our archive, and what it needs by its private libraries
static_too() {
	local flags
	flags=$(flags --static --libs-only-l --libs-only-other | sed 's/-lzcoll//') || return 1
	# shellcheck disable=SC2086 # flags are words
	gcc -Wall -I"$usr/include" -o "$stage/hello.static" "$top/tools/examples/hello.c" \
		"$lib/libzcoll.a" $flags
}

command_runs() { LD_LIBRARY_PATH=$lib "$usr/bin/zcoll" help; }

# What the module exports is the kernel's business, what the library does is ours
only_ours() {
	! nm -D --defined-only "$lib/libzcoll.so" | awk '{ print $3 }' |
		grep -v -e '^zcoll_' -e '^ZCOLL_' -e '^LIBZCOLL_'
}

nothing_left() {
	local left
	left=$(find "$root" ! -type d ! -path '*/lib/modules/*/modules.*')
	[ -z "$left" ] || { echo "left: $left"; return 1; }
}

# No kernel headers: nothing may ask for the module at boot, and the last words
# say that it is not there
without_headers() {
	local last
	last=$(to_stage install --no-print-directory KDIR= | tail -n 2) || return 1
	[ -s "$usr/bin/zcoll" ] || { echo "the command is not installed"; return 1; }
	[ ! -e "$root/lib/modules" ] || { echo "there is a module"; return 1; }
	[ ! -e "$root/etc/modules-load.d/zcoll.conf" ] || { echo "it would be loaded at boot"; return 1; }
	grep -F "All is installed but the module" <<<"$last" || { echo "last words: $last"; return 1; }
}

echo "TAP version 13"
echo "1..11"
check "without kernel headers, all but the module is installed" without_headers
check "make install fills DESTDIR" to_stage install
check "all files are where they belong" all_there
check "the module is installed for KDIR's kernel" module_there
check "a program builds with pkg-config" builds
check "it needs libzcoll by soname" one_soname
check "a program links statically" static_too
check "the installed command runs" command_runs
check "the library exports its own names only" only_ours
check "make uninstall succeeds" to_stage uninstall
check "make uninstall leaves nothing" nothing_left
