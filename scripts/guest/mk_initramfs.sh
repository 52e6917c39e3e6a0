#!/bin/bash
# mk_initramfs.sh KROOT BINARY OUT: busybox, the kernel modules that soft-RoCE needs, the RDMA and PCI tools, topotune.
# KROOT is an unpacked linux-image package after depmod.
set -euo pipefail
kroot=$1 binary=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
version=$(ls "$kroot/lib/modules")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
lib=/usr/lib/x86_64-linux-gnu
mkdir -p "$root"/{bin,sbin,usr/bin,proc,sys,dev,tmp,run,etc,root,out} "$root/lib/modules/$version" "$root$lib/libibverbs"
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in $("$root/bin/busybox" --list); do [ "$applet" = busybox ] || ln -sf busybox "$root/bin/$applet"; done
ln -sf ../bin/busybox "$root/sbin/modprobe"  # the kernel itself asks for crypto-crc32 through this name
for module in virtio_pci virtio_net 9pnet_virtio 9p rdma_rxe ib_uverbs rdma_ucm crc32_generic crc32c_generic; do
  modprobe -d "$kroot" -S "$version" --show-depends "$module" 2>/dev/null | awk '$1 == "insmod" {print $2}' || true
done | sort -u | while read -r file; do
  name=${file#"$kroot"}
  mkdir -p "$root$(dirname "$name")"
  cp "$file" "$root$name"
done
cp "$kroot/lib/modules/$version"/modules.{builtin,order} "$root/lib/modules/$version/"
depmod -b "$root" "$version"
for program in bash ip rdma lspci setpci ibv_devinfo; do cp -L "$(PATH=$PATH:/usr/sbin:/sbin command -v $program)" "$root/usr/bin/"; done
cp -L "$binary" "$root/usr/bin/topotune"
verbs=$(dirname "$binary")/libtopotune-verbs.so
[ ! -f "$verbs" ] || cp "$verbs" "$root/usr/bin/"
mkdir -p "$root/etc/libibverbs.d"
cp "$lib"/libibverbs/librxe-rdmav*.so "$root$lib/libibverbs/"
echo "driver rxe" >"$root/etc/libibverbs.d/rxe.driver"
find "$root/usr/bin" "$root$lib" -type f | while read -r file; do ldd "$file" 2>/dev/null || true; done |
  awk '/=> \// {print $3} /^\t\/lib/ {print $1}' | sort -u | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -Ln "$library" "$root$library"
done
cp "$here/init" "$root/init"
chmod +x "$root/init"
(cd "$root" && find . -print0 | LC_ALL=C sort -z | cpio -0 -o -H newc --quiet -R 0:0) >"$out"
