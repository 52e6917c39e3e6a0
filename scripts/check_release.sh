#!/bin/sh
# The release binary runs where it is copied: only libc, libm (and the loader), no symbol newer than
# GLIBC_2.34, under 15 MB. Built on a system with a newer C library, the symbol test says so and skips (77).
set -eu
cd "$(dirname "$0")/.."
binary=${1:-build/release/topotune}
[ -x "$binary" ] || { echo "no release binary at $binary"; exit 77; }
strip -o build/topotune.stripped "$binary"
size=$(stat -c %s build/topotune.stripped)
echo "size: $size bytes stripped, $(stat -c %s "$binary") as built"
[ "$(stat -c %s "$binary")" -lt 15000000 ] || { echo "the binary is over 15 MB"; exit 1; }
extra=$(objdump -p "$binary" | sed -n 's/ *NEEDED *//p' | grep -vE '^(libc|libm|libdl|libpthread)\.so\.[0-9]+$|^ld-linux' || true)
[ -z "$extra" ] || { echo "needs other libraries: $extra"; exit 1; }
newest=$(objdump -T "$binary" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
echo "newest symbol version: $newest"
if [ "$(printf '%s\nGLIBC_2.34\n' "$newest" | sort -V | tail -n 1)" != GLIBC_2.34 ]; then
  case $(ldd --version | head -n 1) in *2.3[0-6]*) exit 1 ;; *) echo "built with a newer C library: not judged"; exit 77 ;; esac
fi
