#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# probe.sh OUT DIR COMPILER FLAG...: try which probes of DIR compile with the
# kernel's flags, and write OUT with a ZC_HAVE_ macro for each that does. A probe
# that must pass guards against a broken command line, which would otherwise look
# like a kernel that has nothing.

out=$1 dir=$2
shift 2

compiles()
{
	"$@" -DMODULE -DKBUILD_MODNAME='"probe"' -DKBUILD_BASENAME='"probe"' \
		-Wno-error -c -o "$out.o" "$probe" 2> "$out.log"
}

probe=$dir/sanity.c
if ! compiles "$@"; then
	cat "$out.log" >&2
	echo "probe.sh: nothing compiles with this kernel's flags" >&2
	exit 1
fi
{
	echo "/* Made by probe.sh */"
	for probe in "$dir"/[A-Z]*.c; do
		name=${probe##*/}
		compiles "$@" && echo "#define ZC_HAVE_${name%.c} 1"
	done
} > "$out.tmp"
rm -f "$out.o" "$out.log"
mv "$out.tmp" "$out"
