#!/bin/bash
# Several nodes, on a machine with one GPU, in about two minutes: two ranks of NCCL on it that call themselves two hosts (NCCL_HOSTID) and
# meet over sockets. What the tuner plugin does there with and without TOPOTUNE_TUNER_HASH and with unlike tables, and what the profiler
# plugin counts to each peer. PARTS: tuner profiler (both by default), tune: a table measured by both hosts together, checked and used, and
# traffic: every collective, mixed traffic, NCCL's log of such a job, a host that dies. Writes log.txt, the tables and nccl.log to the folder $1. Beside this script, or in the folder BIN: topotune and its plugins.
set -u
out=${1:?usage: two_nodes_one_gpu.sh OUTPUT_FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
set_up "$out"
limit=60
export NCCL_SOCKET_IFNAME=lo TOPOTUNE_TUNER_ACCEPT=machine,nccl
{ date -u +%FT%TZ; uname -sr; nvidia-smi --query-gpu=name,driver_version --format=csv; "$tt" version; echo "NCCL: $TOPOTUNE_NCCL_LIBRARY"; } >"$log" 2>&1
port=29500
run='run --keep NCCL_NVLS_ENABLE'
coll=(bench coll 0 all_reduce -b 1K -e 4M -f 16 --time 0.05 --limit 20 --fail-on error)
job() { # job "WORDS OF RANK 0" "WORDS OF RANK 1": the command ${coll[@]} behind the words, a rank a host
  port=$((port + 1))
  NCCL_HOSTID=second timeout -k 5 $limit "$tt" $2 "${coll[@]}" --rendezvous 127.0.0.1:$port --rank 1 --ranks 2 >"$out/rank1.txt" 2>&1 &
  local other=$!
  NCCL_HOSTID=first clock "$tt" $1 "${coll[@]}" --rendezvous 127.0.0.1:$port --rank 0 --ranks 2
  wait $other
  echo "-- rank 1: status $?" >>"$log"
  grep -h -e 'topotune:' -e hint "$out/rank1.txt" | head -n 5 >>"$log"
}
hash_of() { # hash_of TABLE
  "$tt" run --tuned "$1" --dry-run -- true 2>&1 | sed -n 's/.*HASH=node:\([0-9a-f]*\).*/\1/p' | head -n 1
}
tuner() {
  head=$'topotune-tuning-table 1\nmachine test\nnccl 1\n'
  # 1 KiB to under 64 KiB: Tree LL; from 1 MiB: Ring Simple with one channel. Two ranks, two nodes.
  printf '%sregion all_reduce 1024 65535 2 2 Tree LL * 1.1 1.0 1.2\nregion all_reduce 1048576 1073741824 2 2 Ring Simple 1 1.1 1.0 1.2\nend 2\n' "$head" >"$out/two.table"
  printf '%sregion all_reduce 1024 65535 2 2 Tree Simple * 1.1 1.0 1.2\nend 1\n' "$head" >"$out/other.table"
  "$tt" run --tuned "$out/two.table" --dry-run -- true >>"$log" 2>&1
  hash=$(hash_of "$out/two.table")
  echo "## default" >>"$log"
  job "" ""
  echo "## run --tuned, no hash for the job: off" >>"$log"
  job "$run --tuned $out/two.table -- $tt" "$run --tuned $out/two.table -- $tt"
  echo "## run --tuned, TOPOTUNE_TUNER_HASH=$hash for all ranks" >>"$log"
  export TOPOTUNE_TUNER_HASH=$hash
  job "$run --tuned $out/two.table -- $tt" "$run --tuned $out/two.table -- $tt"
  echo "## the same, and the second host has another table" >>"$log"
  job "$run --tuned $out/two.table -- $tt" "$run --tuned $out/other.table -- $tt"
  unset TOPOTUNE_TUNER_HASH
}

profiler() {
  # The graphs of all sizes are made between events that are recorded: NCCL must end all the same.
  for kernels in 0 1; do
    echo "## run --profiled, TOPOTUNE_PROFILER_KERNELS=$kernels" >>"$log"
    export TOPOTUNE_PROFILER_KERNELS=$kernels
    rm -f /dev/shm/topotune-profile-*.ttprof
    coll=(bench coll 0 all_reduce -b 1K -e 16M -f 4 --time 0.05 --limit 20 --fail-on error --no-log)
    job "$run --profiled -- $tt" "$run --profiled -- $tt"
    clock "$tt" log /dev/shm/topotune-profile-*.ttprof
  done
  unset TOPOTUNE_PROFILER_KERNELS
}

tune() {
  # One GPU turns between two processes every two milliseconds, which would be all that is measured; with MPS both run at once.
  limit=200
  if command -v nvidia-cuda-mps-control >/dev/null; then
    export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps CUDA_MPS_LOG_DIRECTORY=/tmp/mps
    mkdir -p /tmp/mps
    nvidia-cuda-mps-control -d >>"$log" 2>&1 && echo "MPS runs" >>"$log"
  fi
  local what=(--collectives all_reduce,all_gather,broadcast --gpus 0)
  echo "## tune" >>"$log"
  coll=(tune "${what[@]}" --sizes 4K:16M --budget 100 --out "$out/cluster.table" --json -o "$out/cluster.json")
  job "" ""
  grep -v ^raw "$out/cluster.table" >>"$log"
  echo "## both columns" >>"$log"
  coll=(tune "${what[@]}" --sizes 16K,256K,4M --budget 60 --pairs 12 --check "$out/cluster.table")
  job "" ""
  echo "## the other host has another table" >>"$log"
  sed 's/^created/# &/' "$out/cluster.table" >"$out/unlike.table"
  coll=("${what[@]}" --sizes 16K)
  job "tune --check $out/cluster.table" "tune --check $out/unlike.table"
  echo "## measured once more, and added" >>"$log"
  coll=(tune "${what[@]}" --sizes 64K:1M --budget 20 --add "$out/cluster.table" --out "$out/again.table")
  job "" ""
  echo "## used" >>"$log"
  export TOPOTUNE_TUNER_HASH=$(hash_of "$out/cluster.table")
  coll=(bench coll 0 all_reduce -b 16K -e 4M -f 16 --time 0.05 --limit 20 --fail-on error)
  NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING NCCL_DEBUG_FILE=/tmp/nccl.%p.log job "$run --tuned $out/cluster.table -- $tt" "$run --tuned $out/cluster.table -- $tt"
  cat /tmp/nccl.*.log >"$out/tuned.log"
  clock "$tt" verify --log "$out/tuned.log" --tuned "$out/cluster.table"
  unset TOPOTUNE_TUNER_HASH
  [ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ] || echo quit | nvidia-cuda-mps-control >>"$log" 2>&1
}

traffic() {
  echo "## every collective" >>"$log"
  coll=(bench coll all 0 -b 64K -e 1M -f 16 -n 5 --modes back-to-back --time 0.01 --limit 20 --fail-on error)
  job "" ""
  echo "## mixed traffic" >>"$log"
  coll=(bench mixed 0 --duration 2 --scale 0.02 --limit 20 --fail-on error)
  job "" ""
  echo "## NCCL's log of such a job" >>"$log"
  coll=(bench coll 0 all_reduce sendrecv -b 1M -e 1M -n 5 --modes back-to-back --time 0.01 --no-log --limit 20 --fail-on error)
  NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING,P2P,SHM,NVLS,COLL,BOOTSTRAP NCCL_DEBUG_FILE=/tmp/nccl.%p.log job "" ""
  cat /tmp/nccl.*.log >"$out/nccl.log"
  clock "$tt" log "$out/nccl.log"
  echo "## the second host dies" >>"$log"
  coll=(bench coll 0 all_reduce -b 1K -e 64M -f 2 --time 1 --no-log --limit 15 --fail-on error)
  (sleep 8; pkill -9 -f 'rank 1 --ranks 2') &
  job "" ""
}

for part in ${PARTS:-tuner profiler}; do "$part"; done
ls -l "$out" >>"$log"
cat "$log"
