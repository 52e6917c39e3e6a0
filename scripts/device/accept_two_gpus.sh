#!/bin/bash
# `bench all`, the acceptance of a node, on a machine with two GPUs, in one call of under five minutes: its time with
# collectives, and what becomes of it without NCCL, with one GPU, and when it is interrupted. Writes accept.txt and
# all.json.gz to the folder $1. TOPOTUNE: the binary; TOPOTUNE_NCCL_LIBRARY: NCCL, where the loader does not find it.
# Changes no setting of a GPU; NVLink multicast stays as the environment has it.
set -u
out=$1
tt=${TOPOTUNE:-build/release/topotune}
mkdir -p "$out"
log=$out/accept.txt
limit=150
. "$(dirname "$0")/lib.sh"
{
  date -u +%FT%TZ
  uname -sr
  nvidia-smi --query-gpu=index,name,driver_version,pci.bus_id,clocks.sm,temperature.gpu,compute_mode --format=csv
  "$tt" version
} >>"$log" 2>&1
clock "$tt" bench all -v --json -o "$out/all.json"
clock "$tt" bench all
clock "$tt" bench all --baseline "$out/all.json"
clock env TOPOTUNE_NCCL_LIBRARY=/nowhere/libnccl.so.2 "$tt" bench all --time 0.02
clock env CUDA_VISIBLE_DEVICES=0 "$tt" bench all --time 0.02
# In the middle of the collectives, about.
clock timeout --preserve-status -s INT 22 "$tt" bench all
gzip -f "$out/all.json"
