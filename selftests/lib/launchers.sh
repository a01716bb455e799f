#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# launchers.sh - the launchers that are installed set what the library looks for
set -u
top=$(cd "$(dirname "$0")/../.." && pwd -P)
show=${ZCOLL_BUILD:-$top/build}/selftests/lib/show_env
n=0
failed=0

# two_ranks NAME TEXT: a test that TEXT is of ranks 0 and 1 of 2, with one key
two_ranks() {
	shown=$(echo "$2" | sort)
	key=${shown##* }
	case "$shown" in
	"0 2 $key
1 2 $key")
		echo "ok $n - $1" ;;
	*"built without PMIx"*)
		echo "ok $n - $1 # SKIP the library is built without PMIx" ;;
	*)
		failed=1
		echo "not ok $n - $1"
		echo "$shown" | sed 's/^/# /' ;;
	esac
}

# start LAUNCHER NAME COMMAND...: two ranks of the command, a test
start() {
	launcher=$1
	name=$2
	shift 2
	n=$((n + 1))
	if ! command -v "${launcher%% *}" >/dev/null; then
		echo "ok $n - $name # SKIP no ${launcher%% *}"
		return
	fi
	# shellcheck disable=SC2086
	two_ranks "$name" "$(timeout 60 $launcher -n 2 "$@" </dev/null 2>&1)"
}

mpich="mpiexec.mpich"
openmpi="mpiexec.openmpi --allow-run-as-root --oversubscribe"
start "$mpich" "MPICH" "$show"
start "$mpich" "MPICH, through a shell" sh -c "$show; true"
start "$openmpi" "Open MPI" "$show"
start "$openmpi" "the PMIx server of Open MPI" \
	env -u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_SIZE "$show"
echo "1..$n"
exit $failed
