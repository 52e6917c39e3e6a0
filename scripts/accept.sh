#!/bin/sh
# scripts/accept.sh SHARED: runs the acceptance program over its corpus against the release binary.
# The kinds that the program does not have the verb for yet are not run, and said.
set -eu
shared=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
kinds=topo,topoxml,hwloc
for kind in nccllog:log lint:lint system:check case:check; do
  if build/release/topotune --help | grep -q "^  *${kind#*:} "; then kinds=$kinds,${kind%:*}; else echo "not run: ${kind%:*} (no verb ${kind#*:})"; fi
done
python3 "$shared/acceptance/accept.py" --bin build/release/topotune --suite "$shared/corpus" --only "$kinds"
