#!/bin/sh
# The whole suite: unit tests, parser goldens, recorded machines, fuzz corpus replay, command-line tests, and the
# checks of the release binary. Ends with "N passed, N failed[, N skipped]".
set -eu
cd "$(dirname "$0")"
scripts/install_packages.sh build test
mkdir -p build
preset=${1:-dev}
jobs=$(nproc 2>/dev/null || echo 2)
if ! { cmake --preset "$preset" && cmake --build --preset "$preset" -j "$jobs"; } >"build/$preset.log" 2>&1; then
  tail -n 60 "build/$preset.log"
  echo "0 passed, 1 failed"
  exit 1
fi
if [ "$preset" = dev ]; then
  if ! { cmake --preset release && cmake --build --preset release -j "$jobs" --target topotune; } >build/release.log 2>&1; then
    tail -n 60 build/release.log
    echo "0 passed, 1 failed"
    exit 1
  fi
fi
status=0
# Real MPI jobs and networks on a machine that others use too: what failed once is run once more, and both runs are in the log.
ctest --repeat until-pass:2 --test-dir "build/$preset" -j "$jobs" --output-on-failure --timeout 300 --output-junit "$PWD/build/$preset-junit.xml" \
  >"build/$preset-ctest.log" 2>&1 || status=$?
[ "$status" -eq 0 ] || { grep -vE '^ *[0-9]+/[0-9]+ Test .*Passed|^ *Start ' "build/$preset-ctest.log" | tail -n 200; }
count() { sed -n "s/.*<testsuite .*$1=\"\([0-9]*\)\".*/\1/p; s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "build/$preset-junit.xml" | head -n 1; }
total=$(count tests) failed=$(count failures) skipped=$(count skipped)
: "${total:=0}" "${failed:=0}" "${skipped:=0}"
[ "$skipped" -eq 0 ] || grep -E '\(Skipped\)|Not Run' "build/$preset-ctest.log" | sort -u | tail -n 20
passed=$((total - failed - skipped))
if [ "$skipped" -gt 0 ]; then echo "$passed passed, $failed failed, $skipped skipped"; else echo "$passed passed, $failed failed"; fi
[ "$total" -gt 0 ] && [ "$failed" -eq 0 ] && exit "$status"
exit 1
