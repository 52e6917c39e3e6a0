#!/usr/bin/env python3
"""extract_vmlinux.py BZIMAGE OUT: takes the ELF kernel out of an x86 bzImage.

QEMU starts the ELF by PVH several seconds sooner than the guest would unpack the image under emulation.
Offsets: Linux Documentation/arch/x86/boot.rst (setup_sects 0x1f1, payload_offset and payload_length 0x248).
"""
import lzma
import struct
import subprocess
import sys
import zlib


def unpack(payload):
    if payload[:6] == b"\xfd7zXZ\0":
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(payload)
    if payload[:2] == b"\x1f\x8b":
        return zlib.decompressobj(31).decompress(payload)
    if payload[:4] == b"\x28\xb5\x2f\xfd":
        return subprocess.run(["zstd", "-dcq"], input=payload[:-4], stdout=subprocess.PIPE, check=False).stdout
    sys.exit("unknown kernel compression %r" % payload[:8])


def main():
    image = open(sys.argv[1], "rb").read()
    protected = ((image[0x1F1] or 4) + 1) * 512
    offset, length = struct.unpack_from("<II", image, 0x248)
    elf = unpack(image[protected + offset:protected + offset + length])
    if elf[:4] != b"\x7fELF":
        sys.exit("no ELF kernel inside %s" % sys.argv[1])
    open(sys.argv[2], "wb").write(elf)


main()
