#!/bin/sh
# Collectives over the hosts of a hostfile with Open MPI, one process a GPU:
#   HOSTFILE=hostfile mpirun.sh all_reduce -e 8G
# Without GPUs: mpirun.sh all_reduce --backend mpi -e 1M
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2086
exec ${MPIRUN:-mpirun} --hostfile "${HOSTFILE:-$here/hostfile}" ${MPIRUN_OPTIONS:-} "${TOPOTUNE:-topotune}" bench coll "$@"
