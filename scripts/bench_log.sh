#!/bin/sh
# How fast `topotune log` reads, beside a plain Python regular-expression parser, on one log and in one run.
# Usage: scripts/bench_log.sh [LOG]; the program is $TOPOTUNE (default build/release/topotune). Without LOG one is made.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
program=${TOPOTUNE:-$here/build/release/topotune}
log=${1:-}
if [ -z "$log" ]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  python3 "$here/bench/make_log.py" 200000000 > "$log"
fi
size=$(wc -c < "$log")
cat "$log" > /dev/null # into the page cache
best=0
for _ in 1 2 3; do
  start=$(date +%s.%N)
  "$program" log --json -o /dev/null "$log"
  end=$(date +%s.%N)
  best=$(awk -v s="$start" -v e="$end" -v n="$size" -v b="$best" 'BEGIN { r = n / (e - s) / 1e6; print (r > b ? r : b) }')
done
python=$(python3 "$here/bench/peers/nccl_log_regex.py" "$log" 2> /dev/null)
awk -v t="$best" -v p="$python" -v n="$size" 'BEGIN {
  printf "log of %.0f MB: topotune %.0f MB/s, Python %.1f MB/s, ratio %.1f\n", n / 1e6, t, p, t / p
  exit !(t >= 500 && t >= 20 * p)
}'
