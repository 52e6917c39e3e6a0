#!/bin/bash
# What the profiler plugin costs on a machine with two GPUs, in one call of under two minutes: profiler_overhead switches
# its events off and on between short blocks of one job (small all-reduces alone, and training steps), beside the same with
# nothing switched, and with timed kernels; profiler_calls says what happens inside the plugin alone.
# Beside this script, or in the folder BIN: profiler_overhead, profiler_calls, libnccl-profiler-topotune.so. OLD: another
# build of the plugin, for profiler_calls. Writes report.txt, overhead.json.gz and kernels.json.gz to the folder $1.
# NVLink multicast stays off.
set -u
out=${1:?usage: profiler_two_gpus.sh OUTPUT_FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
bin=${BIN:-$here}
plugin=$bin/libnccl-profiler-topotune.so
mkdir -p "$out"
report=$out/report.txt
export NCCL_NVLS_ENABLE=0
. "$here/lib.sh"
find_nccl
files=${TOPOTUNE_PROFILER_DIR:-/dev/shm}
measure() { # measure SECONDS COMMAND...: runs it within that time, and clears the plugin's files
  local limit=$1 status
  shift
  echo "\$ $*" | tee -a "$report"
  timeout -k 2 "$limit" "$@" 2>&1 | tee -a "$report"
  status=${PIPESTATUS[0]}
  echo "-- status $status" | tee -a "$report"
  rm -f "$files"/topotune-profile-"$(id -u)"-*.ttprof
}
{
  date -u +%FT%TZ
  uname -sr
  grep -m 1 'model name' /proc/cpuinfo
  nvidia-smi --query-gpu=index,name,driver_version,pci.bus_id,clocks.sm,temperature.gpu --format=csv
  echo "NCCL: $TOPOTUNE_NCCL_LIBRARY"
} >"$report" 2>&1
parts=${PARTS:-calls:12 calls-null:6 step:36 step-null:16}
measure 90 "$bin/profiler_overhead" "$plugin" $parts --json "$out/overhead.json"
TOPOTUNE_PROFILER_KERNELS=1 measure 15 "$bin/profiler_overhead" "$plugin" calls:5 --json "$out/kernels.json"
[ -x "$bin/profiler_calls" ] && measure 12 "$bin/profiler_calls" "$plugin" ${OLD:-}
gzip -f "$out"/*.json
ls -l "$out"
