#!/bin/bash
# Everything that needs real GPUs, in one call: discovery live against its own capture, the diagnosis, and the log of a
# real all-reduce with and without NVLink. Writes raw results to the folder $1. Needs the release binary; PyTorch for
# the last part. Never touches NVLink multicast.
set -u
out=$1
tt=${TOPOTUNE:-build/release/topotune}
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1
mkdir -p "$out"
say() { echo "== $*"; "$@"; echo "-- status $?"; }
{
  date -u +%FT%TZ
  uname -sr
  nvidia-smi --query-gpu=name,driver_version,pci.bus_id --format=csv
  "$tt" version
} >"$out/versions.txt" 2>&1
say "$tt" capture -o "$out/machine.capture"
say "$tt" capture --text -o "$out/machine.capture.txt"
for form in "" --json --tree; do
  "$tt" show $form >"$out/show$form.txt" 2>"$out/show$form.err"
  "$tt" show "$out/machine.capture" $form >"$out/replay$form.txt" 2>"$out/replay$form.err"
done
"$tt" show --svg "$out/show.svg"
"$tt" show --nccl-xml "$out/topo.xml"
say "$tt" check >"$out/check.txt" 2>&1
"$tt" check --json >"$out/check.json" 2>&1
"$tt" check --json "$out/machine.capture" >"$out/check-replay.json" 2>&1
nvidia-smi topo -m >"$out/nvidia-smi-topo-m.txt" 2>&1
nvidia-smi nvlink -s >"$out/nvlink-s.txt" 2>&1
"$tt" show "$out/nvidia-smi-topo-m.txt" >"$out/show-of-topo-m.txt" 2>&1
for what in show check; do
  for i in 1 2 3 4 5; do /usr/bin/env time -f "$what %e s %M KiB" "$tt" $what >/dev/null 2>>"$out/times.txt"; done
done
diff <(sed 's/"kind":"[a-z]*"//; s/"name":"[^"]*"//' "$out/show--json.txt") \
     <(sed 's/"kind":"[a-z]*"//; s/"name":"[^"]*"//' "$out/replay--json.txt") >"$out/replay.diff" && echo "replay equals live"
if "$tt" log --help >/dev/null 2>&1; then
  job="torchrun --standalone --nproc-per-node=2 scripts/device/allreduce.py"
  say "$tt" log --run -- $job >"$out/log-run-default.txt" 2>&1
  NCCL_P2P_DISABLE=1 say "$tt" log --run --ab --topology "$out/nvidia-smi-topo-m.txt" -- $job >"$out/log-run-p2p-disabled.txt" 2>&1
  NCCL_P2P_DISABLE=1 "$tt" log --run --ab --json -o "$out/log-run-p2p-disabled.json" -- $job >/dev/null 2>&1
fi
