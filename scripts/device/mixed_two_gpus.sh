#!/bin/bash
# Mixed traffic, the four levels and the reproducers on a machine with two GPUs, in one call of at most LIMIT seconds
# (245). Writes raw results to the folder $1: JSON of each run, mixed.txt with all that was said, bottlenecks/.
#   TOPOTUNE=carry/topotune scripts/device/mixed_two_gpus.sh out
# Needs NCCL (also in a Python environment) and, for the levels, PyTorch. Changes no setting of a GPU; NVLink multicast
# stays off for all that is started here. Every step has a limit, and none starts when the time is up.
set -u
out=${1:?a folder for the results}
tt=${TOPOTUNE:-build/release/topotune}
tt=$(cd "$(dirname "$tt")" && pwd)/$(basename "$tt")
limit=${LIMIT:-245}
here=$(cd "$(dirname "$0")" && pwd)
examples=$here/../../examples
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1
mkdir -p "$out"
out=$(cd "$out" && pwd)
log=$out/mixed.txt
: >"$log"

python=
python3 -c 'import torch' 2>/dev/null && python=python3
. "$here/lib.sh"
nccl_on_path

# step SECONDS COMMAND...: with its status and wall time in the log; ended (then killed) after SECONDS.
step() {
  local most=$1 left=$((limit - SECONDS)) begin=$SECONDS status
  shift
  [ "$most" -gt "$left" ] && most=$left
  [ "$most" -lt 5 ] && { echo "left out, the time is up: $*" >>"$log"; return; }
  echo "\$ $*" >>"$log"
  timeout -k 5 "$most" "$@" >>"$log" 2>&1
  status=$?
  echo "-- status $status, about $((SECONDS - begin)) s of $most" >>"$log"
}

{
  date -u +%FT%TZ
  uname -sr
  nvidia-smi --query-gpu=index,name,driver_version,pci.bus_id,memory.free --format=csv
  echo "LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}"
  [ -n "$python" ] && "$python" -c 'import torch; print("torch", torch.__version__, "NCCL", torch.cuda.nccl.version())'
  timeout 20 "$tt" version
  df -h /dev/shm "$out"
  nproc
} >"$out/versions.txt" 2>&1

# Mixed traffic: one process with both GPUs, each profile; first for people, then as JSON.
step 40 "$tt" bench mixed --duration 1.5 --limit 20 --fail-on error -v
step 40 "$tt" bench mixed --duration 2 --limit 20 --fail-on error --json -o "$out/dense-ddp.json"
step 40 "$tt" bench mixed --profile fsdp --duration 1.5 --limit 20 --fail-on error --json -o "$out/fsdp.json"
step 30 "$tt" bench mixed --profile moe --duration 1.5 --limit 20 --fail-on error --json -o "$out/moe.json"

# Two processes, a GPU each.
pair() { # pair PORT OPTIONS...
  local port=$1 other
  shift
  timeout -k 5 40 "$tt" bench mixed "$@" --rendezvous "127.0.0.1:$port" --rank 1 --ranks 2 >"$log.1" 2>&1 &
  other=$!
  step 40 "$tt" bench mixed "$@" --rendezvous "127.0.0.1:$port" --rank 0 --ranks 2
  wait "$other"
  echo "-- rank 1: status $?" >>"$log"
  { echo "-- rank 1 said:"; cat "$log.1"; } >>"$log"
  rm -f "$log.1"
}
pair 29431 --duration 1 --limit 20 --fail-on error
# Checkpoints to files too, in memory.
step 30 "$tt" bench mixed --duration 1 --scale 0.2 --checkpoint-dir /dev/shm --limit 20 --fail-on error

# The four levels with PyTorch.
if [ -n "$python" ]; then
  torchrun="$python -m torch.distributed.run --standalone --nproc_per_node 2"
  step 60 "$tt" bench levels --train "$torchrun $examples/training/ddp_step.py --width 4096 --batch 256" --train-limit 45 --limit 15 --json -o "$out/levels-ddp.json"
  step 45 "$tt" bench levels --train "$torchrun $examples/training/moe_step.py --tokens 16384 --width 2048" --train-limit 35 --limit 15
  step 45 "$tt" bench levels --train "$torchrun $examples/training/ddp_step.py --width 2048 --batch 256 --loader-ms 30" --train-limit 35 --limit 15
else
  echo "no PyTorch: bench levels left out" >>"$log"
fi

# The reproducers; each says what it shows, or why not.
export TOPOTUNE=$tt OUT=$out/bottlenecks
for script in shm_fallback one_channel socket_fallback small_buckets oversubscribed_cpus wrong_numa_node; do
  step 30 "$examples/bottlenecks/$script.sh"
done

# Interrupted in the middle: what was measured is printed.
step 12 timeout --preserve-status -s INT 8 "$tt" bench mixed --duration 10 --limit 20
gzip -f "$out"/*.json 2>/dev/null
find "$out/bottlenecks" -type f -size +200k -exec gzip -f {} + 2>/dev/null
ls -l "$out"
tail -n 120 "$log"
