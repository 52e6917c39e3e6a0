#!/bin/sh
# From a fresh clone to a diagnosis: installs what is missing, builds, runs `topotune check`.
# Arguments, if any, go to topotune instead: ./run.sh show nvidia-smi-topo.txt
# Ends with 0 once the diagnosis was shown, whatever its verdict.
set -eu
cd "$(dirname "$0")"
binary=build/release/topotune
scripts/install_packages.sh build
[ -f build/release/build.ninja ] || {
  mkdir -p build
  echo "topotune: configuring" >&2
  cmake --preset release >build/configure.log 2>&1 || { tail -n 20 build/configure.log >&2; exit 1; }
}
[ -x "$binary" ] || echo "topotune: building (a few minutes the first time)" >&2
cmake --build --preset release --target topotune >build/build.log 2>&1 || { tail -n 40 build/build.log >&2; exit 1; }
[ $# -eq 0 ] || exec "$binary" "$@"

has_nvidia_gpu() {
  for device in /sys/bus/pci/devices/*; do
    [ -r "$device/vendor" ] || continue
    read -r vendor <"$device/vendor"
    read -r class <"$device/class"
    case "$vendor $class" in "0x10de 0x0300"* | "0x10de 0x0302"*) return 0 ;; esac
  done
  return 1
}
status=0
if has_nvidia_gpu; then
  "$binary" check || status=$?
else
  echo "topotune: no NVIDIA GPU on this machine; what follows is the diagnosis of a recorded machine with two H200" >&2
  "$binary" check tests/machines/h200x2-vm.capture || status=$?
fi
# 0 to 2 are verdicts and 3 an honest "cannot tell"; anything else is a broken program.
[ "$status" -le 3 ] || exit "$status"
