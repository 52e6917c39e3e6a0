#!/bin/sh
# One channel, so one thread block a GPU, instead of as many as NCCL takes: NCCL_MAX_CTAS=1. Needs two GPUs.
. "$(dirname "$0")/lib.sh"
needs_program
needs_gpus 2
printf 'export NCCL_MIN_CTAS=1\nexport NCCL_MAX_CTAS=1\n' >"$out/channel.env"
bench="bench coll all_reduce -b 64M -e 64M --place out --modes blocking --time 0.5 --limit 60 --no-log --csv --fail-on error"
nccl_with channel "$bench" INIT,ENV,GRAPH NCCL_MIN_CTAS=1 NCCL_MAX_CTAS=1
verdict channel "all-reduce of 64 MiB, one channel" 67108864
exit "$status"
