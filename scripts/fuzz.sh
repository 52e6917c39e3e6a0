#!/bin/bash
# scripts/fuzz.sh SECONDS [TARGET...]: runs the libFuzzer targets (clang, ASan, UBSan), the seconds shared out among
# them; seeds are in tests/fuzz/corpus/NAME, finds stay in build/fuzz/work, so that a second call goes on from there.
# Prints executions per target; a crash is named, its input kept in build/fuzz, and makes the status 1. By environment:
#   PRESET=asan  the build that the sanitizer tests have made (default: fuzz)
#   RUNS=N       N executions a target instead of a time; SEED=N always the same ones
#   JOBS=N       processes at a time (1); SHARDS=N of one target (1), which share its executions
#   DIR=FOLDER   targets that are built already; nothing is built then
#   LOADER=...   starts the programs, on a machine without their libraries ("lib/ld-linux-x86-64.so.2 --library-path lib")
set -u
cd "$(dirname "$0")/.." || exit 1
seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET...]}
shift
preset=${PRESET:-fuzz} out=build/fuzz dir=${DIR:-} jobs=${JOBS:-1} shards=${SHARDS:-1}
mkdir -p "$out"
if [ -z "$dir" ]; then
  dir=build/$preset/tests
  cmake --preset "$preset" >"$out.log" 2>&1 || { tail -n 20 "$out.log"; exit 1; }
  cmake --build --preset "$preset" -j "$(nproc)" >>"$out.log" 2>&1 || { grep -E 'error' "$out.log" | head -n 20; exit 1; }
fi
[ $# -gt 0 ] || set -- $(cd tests/fuzz && ls fuzz_*.cc | sed 's/\.cc$//')
each=$((seconds * jobs / ($# * shards)))
[ "$each" -ge 1 ] || each=1
[ -z "${RUNS:-}" ] || each=${LIMIT:-0}  # executions end it; 0: no limit of time
export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=64:max_malloc_fill_size=0}  # 2.5 times as fast
export dir out each shards
shard() {
  name=${1#fuzz_} n=$2
  mkdir -p "$out/work/$name" "tests/fuzz/corpus/$name"
  largest=$(find "tests/fuzz/corpus/$name" -type f -printf '%s\n' | sort -n | tail -n 1)  # a file's header alone may be more
  options="-max_total_time=$each -max_len=$((${largest:-0} > 4096 ? largest : 4096))"
  [ -z "${RUNS:-}" ] || options="$options -runs=$((RUNS / shards + 1))"
  [ -z "${SEED:-}" ] || options="$options -seed=$((SEED + n - 1))"
  # shellcheck disable=SC2086
  ${LOADER:-} "$dir/fuzz_$name" $options -entropic=0 -reload=60 -timeout=10 -rss_limit_mb=3000 \
    -print_final_stats=1 -artifact_prefix="$out/$name-" "$out/work/$name" "tests/fuzz/corpus/$name" >"$out/$name.$n.log" 2>&1 ||
    echo "$name: $(grep -E 'ERROR|SUMMARY|runtime error' "$out/$name.$n.log" | head -n 1)" >>"$out/failed.txt"
}
export -f shard
rm -f "$out/failed.txt" "$out"/*.log
for n in $(seq 1 "$shards"); do for name in "$@"; do echo "$name $n"; done; done |
  xargs -P "$jobs" -L 1 bash -c 'shard "$0" "$1"'
for target in "$@"; do
  name=${target#fuzz_}
  sum=$(cat "$out/$name".*.log 2>/dev/null | sed -n 's/stat::number_of_executed_units: *//p' | awk '{s+=$1} END {print s+0}')
  verdict=clean
  [ "$sum" -gt 0 ] || verdict=FAILED  # it did not even start
  [ "$verdict" = clean ] || echo "$name: no execution" >>"$out/failed.txt"
  [ ! -e "$out/failed.txt" ] || ! grep -q "^$name:" "$out/failed.txt" || verdict=FAILED
  printf '%-32s %12s executions %s\n' "$name" "$sum" "$verdict"
done | tee "$out/executions.txt"
[ ! -e "$out/failed.txt" ] || { cat "$out/failed.txt"; exit 1; }
