#!/bin/bash
# A virtual machine with two NUMA nodes, nested PCIe switches and four soft-RoCE devices; topotune runs in it, live, and
# what it says is compared with what the machine is. Software emulation: KVM inside other virtual machines is not to be
# relied on. About half a minute. Skips, saying why, where QEMU or the kernel
# package cannot be had. Results: build/guest/out.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/scripts/guest
work=$PWD/build/guest
binary=${1:-build/release/topotune}
skip() { echo "guest: skipped: $*"; exit 0; }
[ "$(uname -m)" = x86_64 ] || skip "not an x86-64 machine"
command -v apt-get >/dev/null || skip "no apt-get to fetch the kernel with"
[ -x "$binary" ] || { echo "guest: no binary at $binary"; exit 1; }
scripts/install_packages.sh guest || skip "packages cannot be installed"
mkdir -p "$work/out"

if [ ! -s "$work/vmlinux" ]; then
  package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-[0-9].*amd64\)$/\1/p' | head -n 1)
  [ -n "$package" ] || skip "no package linux-image-amd64 (not Debian?)"
  (cd "$work" && apt-get download -qq "$package") >"$work/download.log" 2>&1 || skip "cannot download $package"
  rm -rf "$work/kroot"
  dpkg -x "$work/$package"_*.deb "$work/kroot"
  depmod -b "$work/kroot" "$(ls "$work/kroot/lib/modules")"
  python3 "$here/extract_vmlinux.py" "$work"/kroot/boot/vmlinuz-* "$work/vmlinux.part"
  mv "$work/vmlinux.part" "$work/vmlinux"
  rm -f "$work/$package"_*.deb
fi
"$here/mk_initramfs.sh" "$work/kroot" "$binary" "$work/initramfs"

mapfile -t devices < <(grep -v '^#' "$here/topology.args" | sed 's/^\(-[a-z]*\) /\1\n/')

boot() {
  rm -rf "$work/out"
  mkdir -p "$work/out"
  cp "$here/guest.sh" "$work/out/"
  timeout 180 qemu-system-x86_64 -accel tcg,thread=multi -nodefaults -no-user-config -no-reboot -display none \
    -serial "file:$work/out/serial.log" -monitor none -kernel "$work/vmlinux" -initrd "$work/initramfs" \
    -append "console=ttyS0 quiet loglevel=4 panic=-1 oops=panic mitigations=off nokaslr no_timer_check tsc=reliable audit=0 net.ifnames=0 cryptomgr.notests random.trust_cpu=on" \
    "${devices[@]}" \
    -fsdev "local,id=fs0,path=$work/out,security_model=none" \
    -device virtio-9p-pci,fsdev=fs0,mount_tag=out,bus=pcie.0,disable-legacy=on \
    -device isa-debug-exit,iobase=0xf4,iosize=0x04 >"$work/qemu.log" 2>&1
}

# The emulated kernel now and then dies before its first process: such a boot says nothing about topotune and is
# tried again. A guest that ran and failed is not.
for attempt in 1 2 3; do
  start=$SECONDS
  status=0
  boot || status=$?
  echo "guest: boot $attempt: $((SECONDS - start)) s, status $status"
  [ ! -s "$work/out/rc" ] || break
done
if [ "$status" -ne 1 ] || [ "$(cat "$work/out/rc" 2>/dev/null)" != 0 ]; then
  tail -n 20 "$work/qemu.log" "$work/out/serial.log" "$work/out/guest.log" 2>/dev/null
  echo "guest: the run inside did not end well"
  exit 1
fi
python3 "$here/compare.py" "$work/out"
