#!/bin/sh
# scripts/make_rule_docs.sh [TOPOTUNE]: writes docs/rules/<family>.md from the rule catalogue in the program.
set -eu
program=${1:-}
cd "$(dirname "$0")/.."
mkdir -p docs/rules
"${program:-build/dev/topotune}" explain --markdown docs/rules
