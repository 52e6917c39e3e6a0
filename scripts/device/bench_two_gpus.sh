#!/bin/bash
# The measurements on a machine with two GPUs, in one call of under five minutes: everything that `bench` measures, the
# peer's numbers of the same minutes, the shapes of the TMA ring, and the cases that are not healthy. Writes at most
# eight files to the folder $1. TOPOTUNE: the binary; NVBANDWIDTH: the peer's, left out when it is not there; REFERENCE:
# reference_latency, LATENCY_TURNS: latency_turns (preset `bench`), looked for beside this script. Where NCCL is not in the
# loader's path: TOPOTUNE_NCCL_LIBRARY=its file.
# With QUICK set: only the matrix beside the peer, and six times the round trip.
# Changes no setting of a GPU and never touches NVLink multicast.
set -u
out=$1
tt=${TOPOTUNE:-build/release/topotune}
peer=${NVBANDWIDTH:-}
reference=${REFERENCE:-$(dirname "$0")/reference_latency}
turns=${LATENCY_TURNS:-$(dirname "$0")/latency_turns}
mkdir -p "$out"
log=$out/bench.txt
limit=120
. "$(dirname "$0")/lib.sh"
{
  date -u +%FT%TZ
  uname -sr
  nvidia-smi --query-gpu=index,name,driver_version,pci.bus_id,clocks.sm,temperature.gpu,compute_mode --format=csv
  "$tt" version
  "$tt" show
} >"$out/versions.txt" 2>&1

# The four modes of the two-GPU question alone: the time that counts against the peer's.
clock "$tt" bench p2p 0 1 --only matrix
[ -z "${QUICK:-}" ] && clock "$tt" bench p2p 0 1 --only matrix --json -o "$out/matrix.json"
if [ -n "$peer" ] && [ -x "$peer" ]; then
  cells="device_to_device_memcpy_write_ce device_to_device_memcpy_read_ce device_to_device_memcpy_write_sm device_to_device_memcpy_read_sm"
  # In turns, with the peer's cheapest test in its smallest size: what its own start costs.
  for turn in 1 2 3; do
    clock "$peer" -t $cells
    clock "$peer" -t 0 -b 1 -i 1
    clock "$tt" bench p2p 0 1 --only matrix
  done
  if [ -z "${QUICK:-}" ]; then
    clock "$peer" -t device_to_device_bidirectional_memcpy_write_ce device_to_device_bidirectional_memcpy_read_ce \
      host_to_device_memcpy_ce device_to_host_memcpy_ce host_to_device_bidirectional_memcpy_ce \
      device_to_host_bidirectional_memcpy_ce device_to_device_latency_sm host_to_all_memcpy_ce all_to_host_memcpy_ce \
      device_to_device_bidirectional_memcpy_write_sm device_to_device_bidirectional_memcpy_read_sm
  fi
fi
if [ -n "${QUICK:-}" ]; then
  for turn in 1 2 3 4 5 6; do clock "$tt" bench p2p --only pingpong; done
  exit
fi
# A second time after the peer, since both may change the clocks of the other.
clock "$tt" bench p2p 0 1 --only matrix
clock "$tt" bench all -v --json -o "$out/all.json"
clock "$tt" bench p2p
clock "$tt" bench host
# The same CPU for both; `bench numa` takes the first one of the node.
for turn in 1 2 3 4; do
  [ -x "$reference" ] && clock taskset -c 0 "$reference"
  clock "$tt" bench numa
done
[ -x "$turns" ] && for turn in 1 2 3; do clock "$turns"; done
for turn in 1 2 3; do clock "$tt" bench p2p --only latency,pingpong; done
clock "$tt" bench p2p --only loads
clock "$tt" bench p2p --only matrix,latency,pingpong --json -o "$out/repeat.json"
clock "$tt" bench --compare "$out/all.json" "$out/repeat.json"
clock "$tt" bench p2p --only matrix --baseline "$out/all.json"
[ -n "${TUNE:-}" ] && clock "$tt" bench p2p --only tune --time 0.01 --csv -o "$out/tune.csv"

# Not healthy.
CUDA_VISIBLE_DEVICES=0 clock "$tt" bench p2p
CUDA_VISIBLE_DEVICES= clock "$tt" bench all
clock "$tt" bench p2p 0 7
clock "$tt" bench p2p --only matrix --bytes 8G
clock timeout --preserve-status -s INT 1.2 "$tt" bench p2p
clock timeout --preserve-status -s INT 4 "$tt" bench all
if python3 -c 'import torch' 2>/dev/null; then
  # Another process holds the GPU and most of its memory.
  python3 - <<'PY' &
import time, torch
hold = [torch.empty(int(torch.cuda.mem_get_info(d)[0] * 0.99) >> 20 << 20, dtype=torch.uint8, device=d) for d in (0, 1)]
time.sleep(25)
PY
  sleep 12
  clock "$tt" bench p2p --only matrix
  wait
fi
gzip -f "$out/all.json"
ls -l "$out"
