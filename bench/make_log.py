#!/usr/bin/env python3
"""Writes an NCCL 2.28 debug log of about N bytes: 64 ranks on 8 hosts, start lines, then collectives."""
import sys

RANKS = 64


def head(r):
    return "node%03d:%d:%d [%d] NCCL INFO " % (r // 8, 4000 + r, 4000 + r, r % 8)


def start(r):
    h, nxt = head(r), (r + 1) % RANKS
    yield h + "NCCL version 2.28.9+cuda13.0"
    yield h + "Using network IB"
    yield h + "ncclCommInitRankConfig comm 0x55%04x0 rank %d nranks %d cudaDev %d nvmlDev %d busId %x000 commId 0xabc - Init START" % (
        r, r, RANKS, r % 8, r % 8, 16 + r % 8)
    for c in range(16):
        way = "[send] via NET/IB/%d/GDRDMA" % (c % 8) if r // 8 != nxt // 8 else "via P2P/CUMEM"
        yield h + "Channel %02d/0 : %d[%d] -> %d[%d] %s" % (c, r, r % 8, nxt, nxt % 8, way)


def main():
    wanted, out, size, step = int(sys.argv[1]), sys.stdout, 0, 0
    lines = [line for r in range(RANKS) for line in start(r)]
    while lines:
        text = "\n".join(lines) + "\n"
        out.write(text)
        size += len(text)
        lines = []
        if size < wanted:
            count = 512 << step % 8
            lines = ["%sAllReduce: opCount 0 sendbuff 0x7f%04x00000 recvbuff 0x7e%04x00000 count %d datatype 9 op 0 root 0 comm 0x55%04x0 [nranks=%d] stream 0x56%04x" % (
                head(r), r, r, count, r, RANKS, r) for r in range(RANKS)]
            lines.append("%sAllReduce: %d Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}" % (head(0), count * 2))
            step += 1


if __name__ == "__main__":
    main()
