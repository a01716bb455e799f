# SPDX-License-Identifier: LGPL-2.1-only OR MIT
# shellcheck shell=sh
# kernel-stock.sh - prepared kernels of Debian's packages, unpacked, not installed
#
# Versions are asked from apt and never written down here, because names vanish
# from the mirrors.

# image_of DIR BZIMAGE: make DIR/kernel of it, uncompressed where that can be
image_of() {
	rm -f "$1/kernel"
	"$VM_TOOLS/vmlinux" "$1/$2" "$1/kernel" || ln -s "$2" "$1/kernel"
}

# finish_debian DIR RELEASE: links, module index, initramfs
finish_debian() {
	d=$1 kv=$2
	[ -e "$d/r/lib" ] || ln -s usr/lib "$d/r/lib"
	for f in boot/vmlinuz-"$kv" usr/lib/modules/"$kv"/vmlinuz; do
		[ ! -f "$d/r/$f" ] || image_of "$d" "r/$f"
	done
	[ -e "$d/kernel" ] || die "no image in the packages of $kv"
	depmod -b "$d/r" "$kv" || die "depmod failed for $kv"
	ln -sfn r "$d/modroot"
	echo qemu >"$d/kind"
	echo "$kv" >"$d/release"
	"$VM_TOOLS/initramfs" "$d"
}

# The links inside Debian's headers are relative; one path in the Makefile is
# not.  Without pahole a module gets no BTF, and need not.
headers_in_place() {
	d=$1 kv=$2
	sed -i "s,\([ =]\)/usr/src/,\1$d/r/usr/src/,g" "$d/r/usr/src/linux-headers-$kv/Makefile"
	ln -sfn "r/usr/src/linux-headers-$kv" "$d/kdir"
	echo CONFIG_DEBUG_INFO_BTF_MODULES= >"$d/kmake"
}

# make_bookworm DIR REGEX: a kernel whose modules the host's compiler builds
make_bookworm() {
	d=$1
	debs_open bookworm
	image=$(debs_newest "linux-image-$2-amd64")
	[ -n "$image" ] || die "the archive has no package linux-image-$2-amd64"
	kv=${image#linux-image-}
	headers=linux-headers-$kv
	# shellcheck disable=SC2046 # package names hold no blanks
	debs_unpack "$d/r" "$image" "$headers" \
		$(debs_needs "$image" "linux-(binary|modules|base)-.*") \
		$(debs_needs "$headers" "linux-(headers|kbuild)-.*")
	headers_in_place "$d" "$kv"
	finish_debian "$d" "$kv"
	debs_close
}

# make_newest DIR: the newest kernel of the backports.  Its modules need a newer
# compiler than the host's; that comes as a root file system, as dependencies
# of the headers.  binutils must be named: without "as" the build goes on, but
# without the options that it tests for.
make_newest() {
	d=$1
	debs_open trixie trixie-backports
	image=$(debs_newest 'linux-image-[0-9.]+\+deb13-amd64')
	[ -n "$image" ] || die "the archive has no newer kernel"
	kv=${image#linux-image-}
	headers=linux-headers-$kv
	files=$(debs_needs "$image" "linux-(binary|modules|base)-.*")
	# shellcheck disable=SC2086 # package names hold no blanks
	debs_unpack "$d/r" ${files:-$image}
	debs_unpack_all "$d/root" base-files dash bash coreutils sed grep mawk findutils binutils \
		make "$headers"
	for l in bin sbin lib lib64; do
		[ -e "$d/root/$l" ] || ln -s "usr/$l" "$d/root/$l"
	done
	[ -e "$d/root/usr/bin/awk" ] || ln -s mawk "$d/root/usr/bin/awk"
	ln -s "root/usr/src/$headers" "$d/kdir"
	ln -s root "$d/chroot"
	finish_debian "$d" "$kv"
	debs_close
}
