#!/bin/sh
# Builds with clang (warnings are errors) and runs clang-tidy over every source of ours; any complaint fails.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc)
cmake --preset clang >build/clang.log 2>&1 || { tail -n 20 build/clang.log; exit 1; }
cmake --build --preset clang -j "$jobs" >>build/clang.log 2>&1 || { grep -E 'error|warning' build/clang.log | head -n 40; exit 1; }
find src -name '*.cc' -print0 | sort -z |
  xargs -0 -P "$jobs" -n 4 clang-tidy -p build/clang --quiet >build/tidy.log 2>/dev/null || {
  grep -E 'error:|warning:' build/tidy.log | sort -u | head -n 40
  exit 1
}
echo "clang-tidy: $(find src -name '*.cc' | wc -l) files clean"
