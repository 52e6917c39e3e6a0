#!/bin/bash
# scripts/fuzz_many.sh DIR OUT JOBS SECONDS RUNS [NAME...]: runs built fuzz targets (DIR/fuzz_NAME; seeds in
# tests/fuzz/corpus/NAME) until each has RUNS executions or SECONDS are over, JOBS processes at a time. A target's
# executions are shared out to shards that keep their finds under OUT/work, so that a second call goes on from there.
# LOADER, if set, starts the programs ("lib/ld-linux-x86-64.so.2 --library-path lib"). Prints executions per target;
# a crash is named, its input kept in OUT, and ends the script with 1.
set -u
dir=$1 out=$2 jobs=$3 seconds=$4 runs=$5
shift 5
[ $# -gt 0 ] || set -- $(cd "$dir" && ls -d fuzz_* | grep -v '\.' | sed 's/^fuzz_//')
shards=${SHARDS:-4}
export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=0:quarantine_size_mb=8}  # twice as fast
mkdir -p "$out"
export dir out seconds runs shards
end=$(($(date +%s) + seconds))
export end
shard() {
  name=$1 n=$2
  work=$out/work/$name
  log=$out/$name.$n.log
  mkdir -p "$work" "tests/fuzz/corpus/$name"
  left=$((end - $(date +%s)))
  [ "$left" -gt 0 ] || exit 0
  # shellcheck disable=SC2086
  ${LOADER:-} "$dir/fuzz_$name" -runs=$((runs / shards + 1)) -max_total_time=$left -max_len=${MAX_LEN:-1024} -timeout=10 \
    -rss_limit_mb=3000 -entropic=0 -reload=60 -print_final_stats=1 -artifact_prefix="$out/$name-" "$work" "tests/fuzz/corpus/$name" \
    >"$log" 2>&1 || echo "$name FAILED: $(grep -E 'ERROR|SUMMARY|runtime error' "$log" | head -n 1)" >>"$out/failed.txt"
}
export -f shard
rm -f "$out/failed.txt"
for n in $(seq 1 "$shards"); do for name in "$@"; do echo "$name $n"; done; done |
  xargs -P "$jobs" -L 1 bash -c 'shard "$0" "$1"'
for name in "$@"; do
  sum=$(cat "$out/$name".*.log 2>/dev/null | sed -n 's/stat::number_of_executed_units: *//p' | awk '{s+=$1} END {print s+0}')
  printf '%-32s %12d executions\n' "$name" "$sum"
done | tee "$out/executions.txt"
[ ! -e "$out/failed.txt" ] || { cat "$out/failed.txt"; exit 1; }
