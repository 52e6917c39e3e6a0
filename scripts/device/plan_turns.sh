#!/bin/bash
# On a machine with two GPUs: an all-reduce in the default and in the planned environment, turn about, ROUNDS times (5).
#   scripts/device/plan_turns.sh topotune OUTPUT_FOLDER
set -u
tt=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") out=$2
job=$(cd "$(dirname "$0")" && pwd)/allreduce.py
export NCCL_NVLS_ENABLE=0
mkdir -p "$out"
launch="python3 -m torch.distributed.run --standalone --nproc-per-node=2"
for round in $(seq "${ROUNDS:-5}"); do
  $launch "$job" 2>/dev/null | sed "s/^/default $round /"
  $launch --no-python "$tt" run --keep NCCL_NVLS_ENABLE -- python3 "$job" 2>/dev/null | sed "s/^/planned $round /"
done | tee "$out/turns.txt"
