#!/bin/bash
# Tunes NCCL on a machine with two GPUs and proves it there, in one call of about five minutes: the table within 120 s,
# both columns of one run with the plugin in place, what the profiler costs, and the model at sizes that it has not seen.
# Writes at most eight files to the folder $1. Beside this script, or in the folder BIN: topotune and both plugins.
# NVLink multicast stays off.
set -u
out=${1:?usage: tune_two_gpus.sh OUTPUT_FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
bin=${BIN:-$here}
tt=$bin/topotune
mkdir -p "$out"
log=$out/log.txt
: >"$log"
say() { echo "$*" | tee -a "$log"; }
clock() { # clock SECONDS COMMAND...: runs it, with its status and its wall time in the log
  local limit=$1 start end status
  shift
  say "\$ $*"
  start=$(date +%s.%N)
  timeout -k 5 "$limit" "$@" >>"$log" 2>&1
  status=$?
  end=$(date +%s.%N)
  say "-- status $status, $(python3 -c "print(round($end - $start, 1))" 2>/dev/null || echo '?') s"
  return $status
}
export NCCL_NVLS_ENABLE=0
export TOPOTUNE_MODULES=$bin
if [ -z "${TOPOTUNE_NCCL_LIBRARY:-}" ]; then
  found=$(python3 -c 'import nvidia.nccl, os; print(os.path.join(list(nvidia.nccl.__path__)[0], "lib", "libnccl.so.2"))' 2>/dev/null)
  [ -e "$found" ] || found=$(ldconfig -p | sed -n 's/.*libnccl\.so\.2 .*=> //p' | head -n 1)
  [ -e "$found" ] || found=$(find / -xdev -name 'libnccl.so.2' 2>/dev/null | head -n 1)
  export TOPOTUNE_NCCL_LIBRARY=$found
fi
{
  date -u +%FT%TZ
  uname -sr
  nvidia-smi --query-gpu=index,name,driver_version,pci.bus_id,clocks.sm,temperature.gpu --format=csv
  nvidia-smi topo -m
  "$tt" version
  echo "NCCL: $TOPOTUNE_NCCL_LIBRARY"
  ls -l "$bin" /dev/shm
  df /dev/shm
} >>"$log" 2>&1
table=$out/node.table
ops=all_reduce,all_gather,reduce_scatter,all_to_all,broadcast

# (a) The table, within two minutes.
clock 150 "$tt" tune --collectives $ops --sizes 1K:1G --budget 115 --out "$table" -v --json -o "$out/tune.json"
if [ ! -s "$table" ]; then
  say "no table was written; NCCL's own words:"
  NCCL_DEBUG=INFO clock 60 "$tt" tune --collectives all_reduce --sizes 1M,64M --budget 20 -v
  exit 1
fi
head -c 4000 "$table" >>"$log"

# (b) and (d) Both columns of one run, interleaved; sizes in between against the model.
clock 120 "$tt" tune --check "$table" --collectives $ops --sizes 1K:1G --held-back --pairs 31 --budget 110 --json -o "$out/check.json"
clock 90 "$tt" tune --check "$table" --collectives $ops --sizes 1K:1G --mode stream --pairs 21 --budget 80 --json -o "$out/stream.json"
clock 60 "$tt" tune --check "$table" --collectives all_reduce --sizes 1K:1G --pairs 21 --budget 50

# What the library itself says about the plugin and about its choices.
NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING,ENV NCCL_DEBUG_FILE=$out/nccl.log \
  clock 60 "$tt" tune --check "$table" --collectives all_reduce --sizes 4K,1M,64M --mode stream --pairs 5 --budget 30

# (c) The profiler's price, in one process: its events off and on, kernels timed at each 64th and never.
clock 90 "$tt" tune --overhead "$bin/libnccl-profiler-topotune.so" --collectives all_reduce,all_gather --sizes 1K:1G --pairs 41 --budget 60 --json -o "$out/overhead.json"
TOPOTUNE_PROFILER_SAMPLE=0 clock 60 "$tt" tune --overhead "$bin/libnccl-profiler-topotune.so" --collectives all_reduce --sizes 1K:1G --pairs 41 --budget 40

newest=$(ls -t /dev/shm/topotune-profile-*.ttprof 2>/dev/null | tail -n 1)
[ -n "$newest" ] && cp "$newest" "$out/rank.ttprof"
rm -f /dev/shm/topotune-profile-*.ttprof

# Not healthy: the job must run as if there were no plugin.
sed 's/^nccl .*/nccl 2.1.0/' "$table" >/tmp/foreign.table
clock 30 "$tt" tune --check /tmp/foreign.table --collectives all_reduce --sizes 1M --pairs 5
head -c 300 "$table" >/tmp/cut.table
clock 30 "$tt" tune --check /tmp/cut.table --collectives all_reduce --sizes 1M --pairs 5
NCCL_ALGO=Ring clock 30 "$tt" tune --collectives all_reduce --sizes 1M
gzip -f "$out"/*.json "$out/nccl.log" 2>/dev/null
ls -l "$out"
