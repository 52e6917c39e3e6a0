#!/bin/sh
# Installs the packages of scripts/packages.txt that are missing, for the purposes named (default: build).
# Says what it does; needs root or sudo only when something is missing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- build
command -v dpkg-query >/dev/null 2>&1 || {
  echo "topotune: this is not a Debian or Ubuntu system; install the packages of scripts/packages.txt by hand" >&2
  exit 0
}
has() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
missing=""
for purpose in "$@"; do
  for package in $(sed -n "s/^$purpose //p" "$here/packages.txt"); do
    if [ "$package" = libclang-rt-dev ]; then  # the sanitizer runtime carries clang's version in its name
      version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
      package="libclang-rt-${version:-14}-dev"
    fi
    has "$package" || missing="$missing $package"
  done
done
[ -n "$missing" ] || exit 0
echo "topotune: installing$missing" >&2
sudo=""
[ "$(id -u)" -eq 0 ] || sudo=sudo
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # a list of names
if ! { $sudo apt-get update -qq && $sudo apt-get install -y -qq --no-install-recommends $missing; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "topotune: apt-get failed (whole log: $log)" >&2
  exit 1
fi
rm -f "$log"
