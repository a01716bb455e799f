# SPDX-License-Identifier: LGPL-2.1-only OR MIT
# shellcheck shell=sh
# lib.sh - what the scripts of tools/vm share: places, messages, locks
#
# The checkout holds sources only; everything made goes under one build folder.
# A *prepared kernel* is a folder build/kernels/NAME with:
#   kernel        the image: a bzImage for QEMU, or the UML executable
#   kind          "qemu" or "uml"
#   release       what uname -r prints there
#   kdir          link to the tree that modules are built against
#   kmake         optional: one more argument for that make in each line
#   chroot        optional: link to a root file system that has the compiler
#   mem           optional: memory of its machines where --mem says nothing
#   modroot       optional: link to a folder with lib/modules/RELEASE
#   initramfs     optional: made by tools/vm/initramfs
#   .ready        the stamp, made last

VM_TOOLS=${VM_TOOLS:-$(cd "$(dirname "$0")" && pwd -P)}
ZCOLL_TOP=$(cd "$VM_TOOLS/../.." && pwd -P)
ZCOLL_SRC=${ZCOLL_SRC:-$ZCOLL_TOP}
ZCOLL_BUILD=${ZCOLL_BUILD:-$ZCOLL_TOP/build}
case $ZCOLL_BUILD in
/*) ;;
*) ZCOLL_BUILD=$PWD/$ZCOLL_BUILD ;;
esac

# Variables of a make that called us must not reach kbuild: O= means another
# thing there.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

me=${0##*/}
say() { echo "$me: $*" >&2; }
die() { say "$*"; exit "${fail_status:-1}"; }

# need COMMAND...: stop early, with a list, where the host lacks a tool
need() {
	_lacking=""
	for _c; do
		command -v "$_c" >/dev/null || _lacking="$_lacking $_c"
	done
	[ -z "$_lacking" ] || die "needs these commands:$_lacking (tools/vm/setup installs them on Debian)"
}

# make and apt split their arguments at blanks, so such a path cannot work
no_blanks() {
	case $1 in
	*[!A-Za-z0-9_.,/+@=~-]*) die "cannot work in a path with blanks or special characters: $1" ;;
	esac
}

# locked FILE COMMAND...: run COMMAND while no other process holds FILE
locked() {
	_lock=$1
	shift
	(
		flock -n 9 || { say "waiting for another run (${_lock##*/})"; flock 9; }
		"$@" 9>&-
	) 9>>"$_lock"
}
