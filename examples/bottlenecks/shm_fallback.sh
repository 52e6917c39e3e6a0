#!/bin/sh
# GPUs of one node that talk through host memory although they have NVLink: NCCL_P2P_DISABLE=1. Needs two GPUs.
. "$(dirname "$0")/lib.sh"
needs_program
needs_gpus 2
echo 'export NCCL_P2P_DISABLE=1' >"$out/shm.env"
bench="bench coll all_reduce -b 64M -e 64M --place out --modes blocking --time 0.5 --limit 60 --no-log --csv --fail-on error"
nccl_with shm "$bench" INIT,ENV,NET,GRAPH,P2P,SHM NCCL_P2P_DISABLE=1
verdict shm "all-reduce of 64 MiB, host memory instead of P2P" 67108864
exit "$status"
