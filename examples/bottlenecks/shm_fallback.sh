#!/bin/sh
# GPUs of one node that talk through host memory although they have NVLink: NCCL_P2P_DISABLE=1. Needs two GPUs.
. "$(dirname "$0")/lib.sh"
needs_program
needs_gpus 2
echo 'export NCCL_P2P_DISABLE=1' >"$out/shm.env"
bench="bench coll all_reduce -b 64M -e 64M --place out --modes blocking --time 0.5 --limit 60 --no-log --csv --fail-on error"
# shellcheck disable=SC2086
"$topotune" $bench >"$out/shm-good.csv" 2>"$out/shm-good.err"
# shellcheck disable=SC2086
NCCL_P2P_DISABLE=1 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,P2P,SHM NCCL_DEBUG_FILE="$out/shm.log" \
  "$topotune" $bench >"$out/shm-bad.csv" 2>"$out/shm-bad.err"
compare "all-reduce of 64 MiB, host memory instead of P2P" "$(seconds "$out/shm-good.csv" 67108864)" \
  "$(seconds "$out/shm-bad.csv" 67108864)" 1.3
says "$topotune" lint "$out/shm.env"
[ ! -s "$out/shm.log" ] || says "$topotune" log "$out/shm.log"
exit "$status"
