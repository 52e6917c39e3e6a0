#!/usr/bin/env python3
"""Writes an NCCL 2.28 debug log of about N bytes: start lines of every rank, then collectives.

    make_log.py BYTES [--ranks 64] [--channels 16] [--mixed]

Eight ranks a host; rings over all ranks, one line a connection. With --mixed every rank prints the next of its own sequence
of calls at its own pace, as ranks in separate files do; else all ranks print one call after another. The same arguments give
the same bytes, as fast as a pipe takes them.
"""
import argparse
import random
import sys

SIZES = [512 << i for i in range(8)]
OPS = ["AllReduce", "AllGather", "ReduceScatter"]


def head(r):
    return "node%04d:%d:%d [%d] NCCL INFO " % (r // 8, 4000 + r, 4000 + r, r % 8)


def start(r, ranks, channels):
    h, before, after = head(r), (r - 1) % ranks, (r + 1) % ranks
    yield h + "NCCL version 2.28.9+cuda13.0"
    yield h + "Using network IB"
    yield h + ("ncclCommInitRankConfig comm 0x55d0%04x0 rank %d nranks %d cudaDev %d nvmlDev %d busId %x000 commId 0xabc - Init START"
               % (r, r, ranks, r % 8, r % 8, 16 + r % 8))
    for c in range(channels):
        yield h + "Ring %02d : %d -> %d -> %d" % (c, before, r, after)
        for a, b, way in ((before, r, "receive"), (r, after, "send")):
            net = a // 8 != b // 8
            if net or way == "send":
                via = "[%s] via NET/IB/%d/GDRDMA" % (way, c % 8) if net else "via P2P/CUMEM"
                yield h + "Channel %02d/0 : %d[%d] -> %d[%d] %s" % (c, a, a % 8, b, b % 8, via)


def call(r, op, count, ranks):
    return ("%s%s: opCount 0 sendbuff 0x7f%04x000000 recvbuff 0x7e%04x000000 count %d datatype 9 op 0 root 0 comm 0x55d0%04x0 [nranks=%d] "
            "stream 0x56%08x0000") % (head(r), op, r, r, count, r, ranks, r)


def in_step(ranks):
    """One block a call: all ranks, and rank 0's choice."""
    blocks = []
    for i, count in enumerate(SIZES):
        op = OPS[i % len(OPS)]
        lines = [call(r, op, count, ranks) for r in range(ranks)]
        lines.append("%s%s: %d Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}" % (head(0), op, count * 2))
        blocks.append(("\n".join(lines) + "\n").encode())
    while True:
        yield from blocks


def at_own_pace(ranks):
    rnd, kinds = random.Random(1), len(SIZES) * len(OPS)
    lines = [[(call(r, OPS[k % len(OPS)], SIZES[k // len(OPS)], ranks) + "\n").encode() for k in range(kinds)] for r in range(ranks)]
    place = [0] * ranks
    blocks = []
    for _ in range(64):
        block = []
        for _ in range(4096):
            r = rnd.randrange(ranks)
            block.append(lines[r][place[r] % kinds])
            place[r] += 1
        blocks.append(b"".join(block))
    while True:
        yield from blocks


def main():
    p = argparse.ArgumentParser(description="Writes a synthetic NCCL 2.28 debug log.")
    p.add_argument("bytes", type=float)
    p.add_argument("--ranks", type=int, default=64)
    p.add_argument("--channels", type=int, default=16)
    p.add_argument("--mixed", action="store_true")
    a = p.parse_args()
    out, size = sys.stdout.buffer, 0
    for r in range(a.ranks):
        text = ("\n".join(start(r, a.ranks, a.channels)) + "\n").encode()
        size += out.write(text)
    for block in (at_own_pace if a.mixed else in_step)(a.ranks):
        if size >= a.bytes:
            break
        size += out.write(block)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(1)
