#!/bin/bash
# On two GPUs, in about 100 s: what two equal communicators of one process differ by, what more thread blocks alone do to
# small messages (no table in use), and what the profiler's events cost. Writes to the folder $1; beside this script, or
# in the folder BIN: topotune and the plugins. NVLink multicast stays off.
set -u
out=${1:?usage: equal_two_gpus.sh OUTPUT_FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
set_up "$out"
# One region that no size of the run meets: the second communicator follows NCCL's own choice.
head=$'topotune-tuning-table 1\nmachine 2x10de:2335\nnccl 2.28.9\n'
region='region all_reduce 64 65 2 1 Ring LL * 1.1 1.0 1.2'
printf '%s%s\nend 1\n' "$head" "$region" >/tmp/equal.table
printf '%sset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\n%s\nend 1\n' "$head" "$region" >/tmp/level.table
{ date -u +%FT%TZ; "$tt" version; nvidia-smi --query-gpu=name,driver_version --format=csv; } >"$log" 2>&1
check() { # check TABLE FILE OPTIONS...: one run, one line of JSON
  local table=$1 file=$2
  shift 2
  timeout 60 "$tt" tune --check "/tmp/$table.table" "$@" --budget 40 --json -o "$out/x.json" >>"$log" 2>&1
  { cat "$out/x.json"; echo; } >>"$out/$file"
}
for turn in 1 2 3 4; do
  for table in equal level; do
    check $table graph.jsonl --collectives all_reduce,reduce_scatter,all_gather --sizes 1K:512K
    [ $turn -le 2 ] && check $table stream.jsonl --collectives all_reduce,all_gather --sizes 1K:512K --mode stream
  done
done
for kernels in 0 1; do
  echo "== overhead, kernels timed: $kernels" >>"$log"
  TOPOTUNE_PROFILER_KERNELS=$kernels timeout 60 "$tt" tune --overhead "$bin/libnccl-profiler-topotune.so" \
    --collectives all_reduce --sizes 1K:1M --pairs 101 --budget 30 >>"$log" 2>&1
done
rm -f "$out/x.json"
gzip -f "$out"/*.jsonl
