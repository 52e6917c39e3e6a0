#!/bin/bash
# Collectives on a machine with two GPUs, in one call of under nine minutes: `bench coll` and nccl-tests turn about in
# the same minutes, all collectives, sizes 8 B to 1 GB, and the cases that are not healthy. Writes at most six files to
# the folder $1. TOPOTUNE: the binary; NCCL_TESTS: the folder of nccl-tests' programs, left out when it is not there;
# OPS: the collectives; BEGIN and END: the sizes; ITERS: iterations of a loop, for both. TURNS: no more than so many turns, and
# nothing else. Twenty iterations of a small collective are over in a third of a millisecond: to compare small sizes,
# ITERS=1000 and, since the host's launches vary by a third from one process to the next, GRAPH=20: CUDA graphs of them, launched
# 20 times. CHECK=0: no comparison of data in either; nccl-tests' own makes its small collectives 3 % slower from the second size on.
# GPUS: 2, or 1 (a rank that sends to itself).
# PIN="taskset -c 4-7": before each program.
#   TOPOTUNE=carry/topotune NCCL_TESTS=carry scripts/device/coll_two_gpus.sh out
# Changes no setting of a GPU. NVLink multicast stays off: NCCL_NVLS_ENABLE=0 for all that is started here.
set -u
out=$1
tt=${TOPOTUNE:-build/release/topotune}
peer=${NCCL_TESTS:-}
ops=${OPS:-all_reduce all_gather reduce_scatter broadcast reduce alltoall sendrecv gather scatter}
begin=${BEGIN:-8} end=${END:-1G} iters=${ITERS:-20} PIN=${PIN:-} GRAPH=${GRAPH:-} GPUS=${GPUS:-2} CHECK=${CHECK:-1}
here=$(cd "$(dirname "$0")" && pwd)
export NCCL_NVLS_ENABLE=0
mkdir -p "$out"
log=$out/coll.txt
limit=150
. "$here/lib.sh"
nccl_on_path
in_time() { # in_time COMMAND...: as clock, or not at all
  if [ "$SECONDS" -gt "${LIMIT:-500}" ]; then echo "left out, the time is up: $*" >>"$log"; else clock "$@"; fi
}
{
  date -u +%FT%TZ
  uname -sr
  nvidia-smi --query-gpu=index,name,driver_version,pci.bus_id,clocks.sm,temperature.gpu,compute_mode --format=csv
  echo "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}"
  "$tt" version
  "$tt" show
} >"$out/versions.txt" 2>&1

# First that it runs at all, with everything said.
if [ -z "${TURNS:-}" ]; then
  in_time "$tt" bench coll all_reduce -b 1M -e 4M -v
  in_time "$tt" bench coll all -b 1M -e 1M --modes back-to-back
fi

# Turn about, in nccl-tests' columns. Five turns of the first collective, two of the others, unless TURNS says how many.
rm -rf /tmp/coll_turns
mkdir /tmp/coll_turns
turn() { # turn OP NUMBER
  local mine=/tmp/coll_turns/$1.$2.topotune theirs=/tmp/coll_turns/$1.$2.nccl-tests
  if [ -n "$peer" ] && [ -x "$peer/$1_perf" ]; then
    $PIN timeout 100 "$peer/$1_perf" -b "$begin" -e "$end" -f 2 -g "$GPUS" -n "$iters" -w 5 -c "$CHECK" ${GRAPH:+-G $GRAPH} >"$theirs" 2>&1
    echo "-- $1 turn $2: nccl-tests status $?" >>"$log"
  fi
  local check=
  [ "$CHECK" != 0 ] || check=--no-check
  $PIN timeout 100 "$tt" bench coll "$1" $check -b "$begin" -e "$end" -f 2 -n "$iters" ${GRAPH:+-G $GRAPH} --format nccl-tests --no-log --modes back-to-back \
    --time 0.03 --fail-on error >"$mine" 2>&1
  echo "-- $1 turn $2: topotune status $?" >>"$log"
}
first=${ops%% *}
for op in $ops; do
  turns="1 2"
  [ "$op" = "$first" ] && turns="1 2 3 4 5"
  [ -n "${TURNS:-}" ] && turns=$(seq "$TURNS")
  for n in $turns; do turn "$op" "$n"; done
done
python3 "$here/compare_coll.py" /tmp/coll_turns >"$out/compare.txt" 2>&1
(cd /tmp && tar czf - coll_turns) >"$out/turns.tar.gz"
[ -n "${TURNS:-}" ] && exit

# Everything it says, with algorithms, single calls and CUDA graphs.
in_time "$tt" bench coll $ops -b 8 -e "$end" -f 4 --time 0.05 --json -o "$out/coll.json" --fail-on error
in_time "$tt" bench coll all_reduce -b 8 -e "$end" -f 4 --time 0.05 --fail-on error
for settings in NCCL_ALGO=Tree NCCL_PROTO=LL128 NCCL_P2P_DISABLE=1; do
  echo "## $settings" >>"$log"
  in_time env "$settings" "$tt" bench coll all_reduce -b 64K -e 256M -f 16 --time 0.05 --modes back-to-back
done
in_time "$tt" bench coll all_reduce -b 1M -e 64M -f 8 --max-ctas 4 --modes back-to-back
for type in bfloat16 float16 float8e4m3 float8e5m2 int8 float64; do
  in_time "$tt" bench coll all_reduce reduce_scatter -b 1M -e 1M -d $type --modes back-to-back --time 0.02 --no-log
done
for redop in prod max min avg; do
  in_time "$tt" bench coll all_reduce -b 1M -e 1M --redop $redop --modes back-to-back --time 0.02 --no-log
  in_time "$tt" bench coll all_reduce -b 1M -e 1M --redop $redop -d bfloat16 --modes back-to-back --time 0.02 --no-log
done

# Two processes, one GPU each.
pair() { # pair OPTIONS...: rank 1 in the background
  timeout 60 "$tt" bench coll "$@" --rendezvous 127.0.0.1:29411 --rank 1 --ranks 2 --limit 20 >>"$log.1" 2>&1 &
  local other=$!
  in_time "$tt" bench coll "$@" --rendezvous 127.0.0.1:29411 --rank 0 --ranks 2 --limit 20
  wait $other
  echo "-- rank 1: status $?" >>"$log"
  cat "$log.1" >>"$log"
  rm -f "$log.1"
}
pair all_reduce -b 8 -e 256M -f 4 --time 0.05
# Rank 1 is killed in the middle: rank 0 ends and keeps what it has.
timeout 60 "$tt" bench coll all_reduce -b 8 -e 1G -f 2 --time 1 --no-log --rendezvous 127.0.0.1:29412 --rank 1 --ranks 2 --limit 15 >/dev/null 2>&1 &
victim=$!
(sleep 9; kill -9 $(pgrep -P $victim) $victim) 2>/dev/null &
in_time "$tt" bench coll all_reduce -b 8 -e 1G -f 2 --time 1 --no-log --rendezvous 127.0.0.1:29412 --rank 0 --ranks 2 --limit 15

# Not healthy.
CUDA_VISIBLE_DEVICES=0 in_time "$tt" bench coll all_reduce -b 1M -e 1M --no-log
CUDA_VISIBLE_DEVICES= in_time "$tt" bench coll
in_time "$tt" bench coll 0 7
in_time env TOPOTUNE_NCCL_LIBRARY=/nowhere.so "$tt" bench coll
in_time timeout --preserve-status -s INT 6 "$tt" bench coll all -e 1G --no-log
gzip -f "$out/coll.json"
ls -l "$out"
cat "$out/compare.txt" | tail -40
