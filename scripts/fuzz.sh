#!/bin/sh
# scripts/fuzz.sh SECONDS [TARGET...]: builds the libFuzzer targets (clang, ASan, UBSan) and shares the seconds out
# among them. With RUNS=N each target runs N executions instead, with SEED=N always the same ones. Prints executions
# per target; a crash fails.
# PRESET=asan uses the build that the sanitizer tests have made.
set -eu
cd "$(dirname "$0")/.."
seconds=$1
shift
preset=${PRESET:-fuzz}
mkdir -p build/fuzz
cmake --preset "$preset" >build/fuzz.log 2>&1 || { tail -n 20 build/fuzz.log; exit 1; }
cmake --build --preset "$preset" -j "$(nproc)" >>build/fuzz.log 2>&1 || { grep -E 'error' build/fuzz.log | head -n 20; exit 1; }
[ $# -gt 0 ] || set -- $(cd tests/fuzz && ls fuzz_*.cc | sed 's/\.cc$//')
each=$((seconds / $#))
[ "$each" -ge 1 ] || each=1
bad=0
for target in "$@"; do
  name=${target#fuzz_}
  work=build/fuzz/work/$name
  mkdir -p "$work" "tests/fuzz/corpus/$name"
  limit="-max_total_time=$each"
  [ -z "${RUNS:-}" ] || limit="-runs=$RUNS"
  [ -z "${SEED:-}" ] || limit="$limit -seed=$SEED"
  log=build/fuzz/$name.log
  if build/"$preset"/tests/"$target" $limit -max_len=4096 -entropic=0 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="build/fuzz/$name-" "$work" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    printf '%-32s %12s executions clean\n' "$name" "$(sed -n 's/stat::number_of_executed_units: //p' "$log")"
  else
    bad=1
    printf '%-32s FAILED\n' "$name"
    grep -E 'ERROR|SUMMARY|Test unit written|runtime error' "$log" | head -n 8
  fi
done
exit $bad
