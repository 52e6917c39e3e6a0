#!/bin/sh
# Runs clang-tidy over every source of ours; any complaint fails. Uses the compile commands of the clang build, and its
# precompiled headers.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)
[ -f build/asan/compile_commands.json ] || cmake --preset asan >build/asan.log 2>&1 || { tail -n 20 build/asan.log; exit 1; }
cmake --build build/asan --target precompiled_cli precompiled_plain >build/asan.log 2>&1 || { tail -n 20 build/asan.log; exit 1; }
find src -name '*.cc' -print0 | sort -z |
  xargs -0 -P "$jobs" -n 4 clang-tidy -p build/asan --quiet >build/tidy.log 2>/dev/null || {
  grep -E 'error:|warning:' build/tidy.log | sort -u | head -n 40
  exit 1
}
echo "clang-tidy: $(find src -name '*.cc' | wc -l) files clean"
