# SPDX-License-Identifier: LGPL-2.1-only OR MIT
# shellcheck shell=sh
# debs.sh - Debian packages as data: found, downloaded and unpacked under the
# build folder with an apt state of our own, never installed
#
# The addresses of the archives are the host's: apt tells them, only the suite
# is replaced.  So this needs a Debian host, and says so elsewhere.

# archive LABEL: the address from which the host gets "Debian" or
# "Debian-Security"
archive() {
	# shellcheck disable=SC2016 # apt expands these
	apt-get indextargets --format '$(LABEL)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' |
		awk -F'|' -v l="$1" '$1 == l && $2 == "main" { print $3; exit }'
}

# debs_open RELEASE [SUITE...]: use RELEASE with its updates and security, and
# the given further suites; sets the apt options for the calls below
debs_open() {
	command -v apt-get >/dev/null || die "needs apt-get: kernels of Debian can only be had on a Debian host"
	_rel=$1
	shift
	debs=$ZCOLL_BUILD/apt/$_rel
	no_blanks "$debs"
	mkdir -p "$debs/lists/partial" "$debs/archives/partial"
	: >>"$debs/status"
	_main=$(archive Debian)
	_sec=$(archive Debian-Security)
	[ -n "$_main" ] || die "apt knows no archive with the label Debian: this needs a Debian host"
	_key=/usr/share/keyrings/debian-archive-keyring.gpg
	for _s in "$_rel" "$_rel-updates" "$@"; do
		echo "deb [signed-by=$_key arch=amd64] $_main $_s main"
	done >"$debs/sources.list.new"
	[ -z "$_sec" ] ||
		echo "deb [signed-by=$_key arch=amd64] $_sec $_rel-security main" >>"$debs/sources.list.new"
	mv "$debs/sources.list.new" "$debs/sources.list"
	cat >"$debs/conf" <<-EOF
	Dir::Etc::sourcelist "$debs/sources.list";
	Dir::Etc::sourceparts "-";
	Dir::State "$debs";
	Dir::State::lists "$debs/lists";
	Dir::State::status "$debs/status";
	Dir::Cache "$debs";
	Dir::Cache::archives "$debs/archives";
	APT::Architecture "amd64";
	APT::Architectures { "amd64"; };
	APT::Install-Recommends "false";
	APT::Sandbox::User "root";
	Acquire::Languages "none";
	Acquire::Retries "3";
	Debug::NoLocking "true";
	EOF
	export APT_CONFIG="$debs/conf"
	say "reading the package lists of $_rel"
	apt-get -q -q update >&2 || die "apt-get update failed for $_rel"
}

debs_close() { unset APT_CONFIG; }

# debs_names REGEX: the names of known packages that match
debs_names() { apt-cache search --names-only "^$1\$" | cut -d' ' -f1; }

# debs_needs PACKAGE REGEX: those direct dependencies whose names match
debs_needs() {
	apt-cache depends --no-recommends --no-suggests "$1" |
		sed -n 's/^ *Depends: *//p' | { grep -E -x "$2" || :; }
}

# debs_newest REGEX: the newest package whose name matches; its version is compared
debs_newest() { debs_names "$1" | sort -V | tail -n 1; }

# debs_unpack DIR PACKAGE...: download exactly these and unpack them in DIR
debs_unpack() {
	_to=$1
	shift
	_dl=$debs/$$.dl
	rm -rf "$_dl"
	mkdir -p "$_dl" "$_to"
	say "downloading $*"
	(cd "$_dl" && apt-get -q -q download "$@" >&2) || die "download failed"
	debs_unpack_files "$_to" "$_dl"/*.deb
	rm -rf "$_dl"
}

# Documentation is left out: it is many files, and nobody reads it here.
debs_unpack_files() {
	_to=$1
	shift
	mkdir -p "$_to"
	for _deb; do
		dpkg-deb --fsys-tarfile "$_deb" |
			tar -x -C "$_to" --keep-directory-symlink \
				--exclude=./usr/share/doc --exclude=./usr/share/man \
				--exclude=./usr/share/locale || die "cannot unpack $_deb"
	done
}

# debs_unpack_all DIR PACKAGE...: the same with all that they depend on
debs_unpack_all() {
	_to=$1
	shift
	say "downloading the root file system for the compiler"
	rm -f "$debs"/archives/*.deb
	apt-get -q -q -y -d install "$@" >&2 || die "download failed"
	debs_unpack_files "$_to" "$debs"/archives/*.deb
	rm -f "$debs"/archives/*.deb
}
