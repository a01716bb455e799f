#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# launchers.sh - the launchers that are installed set what the library looks for
set -u
top=$(cd "$(dirname "$0")/../.." && pwd -P)
show=${ZCOLL_BUILD:-$top/build}/selftests/lib/show_env
nodes=${ZCOLL_BUILD:-$top/build}/selftests/lib/show_nodes
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

# A server that never answers must not be waited for without bound: libpmix does
n=$((n + 1))
said=$(PMIX_RANK=0 PMIX_NAMESPACE=job ZCOLL_JOIN_TIMEOUT=300ms LD_LIBRARY_PATH=${show%/*}/silent \
	timeout 20 "$show" 2>&1)
case "$said" in
*"no answer in 0.3 s"*)
	echo "ok $n - a PMIx server that is silent" ;;
*"built without PMIx"*)
	echo "ok $n - a PMIx server that is silent # SKIP the library is built without PMIx" ;;
*)
	failed=1
	echo "not ok $n - a PMIx server that is silent"
	echo "$said" | sed 's/^/# /' ;;
esac

# several NAME WANT COMMAND: a test that the sorted output of COMMAND, four ranks, is WANT.
# Ranks 0 and 1 are on one node, 2 and 3 on another; ports are shared with other jobs
several() {
	n=$((n + 1))
	launcher=${3%% *}
	if ! command -v "$launcher" >/dev/null; then
		echo "ok $n - $1 # SKIP no $launcher"
		return
	fi
	# shellcheck disable=SC2086
	got=$(ZCOLL_PORTS=20000-20031 timeout 60 $3 </dev/null 2>/dev/null | grep '^rank' |
	      sed 's/told: [^ ]*: rank/told: rank/' | sort)
	if [ "$got" = "$2" ]; then
		echo "ok $n - $1"
	elif [ "${got#*built without PMIx}" != "$got" ]; then
		echo "ok $n - $1 # SKIP the library is built without PMIx"
	else
		failed=1
		echo "not ok $n - $1"
		echo "$got" | sed 's/^/# /'
	fi
}

# A launcher that sets what torchrun does on the first of two nodes, and on the second
torch=$(mktemp)
script=$(mktemp)
trap 'rm -f "$torch" "$script"' EXIT
cat >"$torch" <<-'EOF'
	export WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((21000 + $$ % 1000))
	for RANK in 0 1 2 3; do RANK=$RANK "$@" & done
	wait
EOF
cat >"$script" <<-'EOF'
	rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RANK}}
	export ZCOLL_NODE_ID=$((rank / 2))
	exec "$@"
EOF
all="rank 0 of 4 is on node 0 of 2
rank 1 of 4 is on node 0 of 2
rank 2 of 4 is on node 1 of 2
rank 3 of 4 is on node 1 of 2"
no_device="rank 0 is told: rank 2: node 1 has no address on fabric rdma: No such device
rank 1 is told: rank 2: node 1 has no address on fabric rdma: No such device
rank 2 is told: rank 2: node 1 has no address on fabric rdma: No such device
rank 3 is told: rank 2: node 1 has no address on fabric rdma: No such device"
missing="rank 0 is told: 3 of 4 ranks joined in 1 s, missing: rank 2
rank 1 is told: 3 of 4 ranks joined in 1 s, missing: rank 2
rank 3 is told: 3 of 4 ranks joined in 1 s, missing: rank 2"
store="ZCOLL_STORE=127.0.0.1 ZCOLL_KEY=000102030405060708090a0b0c0d0e0f"
several "several nodes, Open MPI, PMIx" "$all" "$openmpi -n 4 sh $script $nodes"
several "of which one has no device" "$no_device" "$openmpi -n 4 sh $script $nodes -2"
several "or a rank does not come" "$missing" \
	"$openmpi -n 4 env ZCOLL_JOIN_TIMEOUT=1s sh $script $nodes 2"
several "several nodes, Open MPI, store" "$all" "$openmpi -n 4 env $store sh $script $nodes"
several "several nodes, MPICH, store" "$all" "$mpich -n 4 env $store sh $script $nodes"
several "several nodes, as torchrun, store" "$all" "sh $torch sh $script $nodes"
several "as torchrun, and one has no device" "$no_device" "sh $torch sh $script $nodes -2"
echo "1..$n"
exit $failed
