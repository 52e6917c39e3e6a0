#!/bin/bash
# On a machine with two GPUs: what the plan says, an all-reduce as it is and with the planned environment, and the same
# with a variable from a forum post in force. Writes plan.txt to the folder $1. Needs PyTorch.
set -u
out=$1
tt=${TOPOTUNE:-build/release/topotune}
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1
mkdir -p "$out"
exec >"$out/plan.txt" 2>&1
say() { echo "\$ $*"; timeout 100 "$@"; echo "-- status $?"; }
job=scripts/device/allreduce.py
planned="torchrun --standalone --no-python --nproc-per-node=2 $tt run --keep NCCL_NVLS_ENABLE -- python3 $job"
say "$tt" plan
say "$tt" plan --json -o "$out/plan.json"
say torchrun --standalone --nproc-per-node=2 $job
say $planned
say torchrun --standalone --nproc-per-node=2 $job
say $planned
export NCCL_P2P_DISABLE=1
say "$tt" plan
say torchrun --standalone --nproc-per-node=2 $job
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,P2P,NET NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log
say $planned
cat /tmp/nccl.*.log >"$out/nccl.log"
say "$tt" verify "$out/plan.json" --log "$out/nccl.log"
