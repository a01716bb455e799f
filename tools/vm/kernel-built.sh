# SPDX-License-Identifier: LGPL-2.1-only OR MIT
# shellcheck shell=sh
# kernel-built.sh - prepared kernels built from Debian's kernel source
#
# The least configuration (allnoconfig) with a fragment of configs/.  A build that
# was interrupted goes on; a fragment that changed makes the kernel anew, as far
# as make finds it necessary.

# source_tree DIR PACKAGE: the kernel source of a Debian package, at DIR/src
source_tree() {
	rm -rf "$1/src"
	debs_unpack "$1/deb" "$2"
	say "unpacking the source"
	mkdir -p "$1/src"
	tar -x -J -f "$1/deb/usr/src/$2.tar.xz" -C "$1/src" --strip-components=1 \
		--exclude='*/boot/dts/*' --exclude='*/Documentation/devicetree/*'
	rm -rf "$1/deb"
	: >"$1/src/.complete"
}

# configure DIR FRAGMENT [ARCH=um]: the least configuration with the fragment,
# which must be taken whole
configure() {
	src=$1/src o=$1/o frag=$VM_TOOLS/configs/$2
	shift 2
	mkdir -p "$o"
	make -s -C "$src" O="$o" "$@" allnoconfig >&2
	(cd "$o" && "$src/scripts/kconfig/merge_config.sh" -m -O "$o" "$o/.config" "$frag" >/dev/null)
	make -s -C "$src" O="$o" "$@" olddefconfig >&2
	while IFS= read -r l; do
		case $l in
		CONFIG_*=n) ! grep -q "^${l%=n}=" "$o/.config" ;;
		CONFIG_*) grep -q -x -F "$l" "$o/.config" ;;
		esac || say "not taken from the fragment: $l"
	done <"$frag"
	cp -f "$frag" "$o/../fragment"
}

# compile DIR [ARCH=um]: build, telling each minute how far it is
compile() {
	o=$1/o
	shift
	say "building the kernel, log in $o/build.log"
	start=$(date +%s) shown=0
	nice make -C "$o" "$@" -j"$(nproc)" all >"$o/build.log" 2>&1 &
	pid=$!
	trap 'kill $pid 2>/dev/null; exit 1' INT TERM HUP
	while sleep 1 && kill -0 $pid 2>/dev/null; do
		t=$((($(date +%s) - start) / 60))
		[ $t = $shown ] || say "$t min, $(wc -l <"$o/build.log") steps"
		shown=$t
	done
	trap - INT TERM HUP
	wait $pid || {
		tail -n 20 "$o/build.log" >&2
		die "the kernel does not build"
	}
}

# make_built NAME DIR IMAGE SOURCE-PACKAGE RELEASE-AND-SUITES [ARCH=um]
make_built() {
	frag=$1.config d=$2 image=$3 package=$4 suites=$5
	shift 5
	need gcc make flex bison bc
	if [ ! -e "$d/src/.complete" ]; then
		# shellcheck disable=SC2086 # names hold no blanks
		debs_open $suites
		source_tree "$d" "$(debs_newest "$package")"
		debs_close
	fi
	configure "$d" "$frag" "$@"
	compile "$d" "$@"
	ln -sf "o/$image" "$d/kernel"
	ln -sfn o "$d/kdir"
	cat "$d/o/include/config/kernel.release" >"$d/release"
	"$VM_TOOLS/initramfs" "$d"
}

make_debug() {
	echo qemu >"$1/kind"
	echo 1G >"$1/mem"
	make_built debug "$1" arch/x86/boot/bzImage 'linux-source-6\.1' bookworm
}

make_uml() {
	echo uml >"$1/kind"
	echo ARCH=um >"$1/kmake"
	make_built uml "$1" linux 'linux-source-[0-9.]+' "trixie trixie-backports" ARCH=um
}
