#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# probe.sh OUT DIR COMPILER FLAG...: try which probes of DIR compile with the
# kernel's flags, and write OUT with a ZC_HAVE_ macro for each that does. A probe
# that must pass guards against a broken command line, which would otherwise look
# like a kernel that has nothing.

out=$1 dir=$2
shift 2

# Later probes see the macros of earlier ones
have=

compiles()
{
	# shellcheck disable=SC2086 # $have is a list
	"$@" $have -DMODULE -DKBUILD_MODNAME='"probe"' -DKBUILD_BASENAME='"probe"' \
		-Wno-error -c -o "$out.o" "$probe" 2> "$out.log"
}

echo "/* Made by probe.sh */" > "$out.tmp"
for probe in "$dir/CMD_H.c" "$dir/sanity.c" "$dir"/[A-Z]*.c; do
	name=${probe##*/}
	name=ZC_HAVE_${name%.c}
	if compiles "$@"; then
		case $have in *"-D$name=1"*) continue ;; esac
		have="$have -D$name=1"
		echo "#define $name 1" >> "$out.tmp"
	elif [ "$name" = ZC_HAVE_sanity ]; then
		cat "$out.log" >&2
		echo "probe.sh: nothing compiles with this kernel's flags" >&2
		exit 1
	fi
done
rm -f "$out.o" "$out.log"
mv "$out.tmp" "$out"
