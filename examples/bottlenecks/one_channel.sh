#!/bin/sh
# One channel, so one thread block a GPU, instead of as many as NCCL takes: NCCL_MAX_CTAS=1. Needs two GPUs.
. "$(dirname "$0")/lib.sh"
needs_program
needs_gpus 2
printf 'export NCCL_MIN_CTAS=1\nexport NCCL_MAX_CTAS=1\n' >"$out/channel.env"
bench="bench coll all_reduce -b 64M -e 64M --place out --modes blocking --time 0.5 --limit 60 --no-log --csv --fail-on error"
# shellcheck disable=SC2086
"$topotune" $bench >"$out/channel-good.csv" 2>"$out/channel-good.err"
# shellcheck disable=SC2086
NCCL_MIN_CTAS=1 NCCL_MAX_CTAS=1 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH NCCL_DEBUG_FILE="$out/channel.log" \
  "$topotune" $bench >"$out/channel-bad.csv" 2>"$out/channel-bad.err"
compare "all-reduce of 64 MiB, one channel" "$(seconds "$out/channel-good.csv" 67108864)" \
  "$(seconds "$out/channel-bad.csv" 67108864)" 1.3
says "$topotune" lint "$out/channel.env"
[ ! -s "$out/channel.log" ] || says "$topotune" log "$out/channel.log"
exit "$status"
