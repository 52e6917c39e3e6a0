#!/bin/bash
# Spreads fuzz targets over the cores of a machine for some seconds, and says how many executions each had.
#   scripts/fuzz_spread.sh BINARIES CORPORA OUT SECONDS NAME:PROCESSES ...
# BINARIES: folder of fuzz_NAME; CORPORA: folders NAME of inputs, read only. OUT/executions.txt: a line for each target: name,
# executions, result; OUT/find-*: inputs that failed. MAX_LEN: longest input (127).
set -u
bin=${1:?}; corpora=${2:?} out=${3:?} seconds=${4:?}
shift 4
mkdir -p "$out"
export ASAN_OPTIONS=malloc_context_size=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=64:max_malloc_fill_size=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for item in "$@"; do
  name=${item%%:*}
  for ((i = 1; i <= ${item##*:}; ++i)); do
    (
      mkdir -p "$work/$name.$i"
      "$bin/fuzz_$name" -max_total_time="$seconds" -max_len="${MAX_LEN:-127}" -entropic=0 -reload=0 -timeout=25 -rss_limit_mb=3000 \
        -print_final_stats=1 -artifact_prefix="$out/find-$name-" "$work/$name.$i" "$corpora/$name" >"$work/$name.$i.log" 2>&1
      echo "$name $(sed -n 's/stat::number_of_executed_units: *//p' "$work/$name.$i.log") $?" >"$work/$name.$i.result"
      [ -s "$work/$name.$i.log" ] && tail -n 40 "$work/$name.$i.log" | grep -q 'ERROR\|runtime error' && cp "$work/$name.$i.log" "$out/$name.$i.log"
    ) &
  done
done
wait
for item in "$@"; do
  name=${item%%:*}
  cat "$work/$name".*.result | awk -v name="$name" '{n += $2} END {printf "%s %d ", name, n}' >>"$out/executions.txt"
  if ls "$out" | grep -q "^find-$name-\|^$name\..*log"; then echo FAILED; else echo clean; fi >>"$out/executions.txt"
done
