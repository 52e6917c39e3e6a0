#!/usr/bin/env python3
"""What a plain Python parser with regular expressions reads from an NCCL log: the yardstick of log_speed.py.

It finds versions, ranks, settings, connections, rings, collectives, choices and warnings, one `re` a kind of line, and
prints how much it found and how fast it was.
"""
import collections
import re
import sys
import time

HEAD = re.compile(r"(\S+):(\d+):(\d+) \[(\d+)\] (?:(\S+:\d+) )?NCCL (INFO|WARN) (.*)")
VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)\S*?\+cuda(\d+\.\d+)")
COMM = re.compile(r"comm (0x[0-9a-f]+) rank (\d+) nranks (\d+) cudaDev (\d+)(?: nvmlDev (\d+))? busId ([0-9a-f]+)(?: commId (0x[0-9a-f]+))?")
ENV = re.compile(r"(NCCL_\w+) set by environment to (\S+?)\.?$")
CHANNEL = re.compile(r"Channel (\d+)(?:/(\d+))? : (\d+)\[([0-9a-f]+)\] -> (\d+)\[([0-9a-f]+)\](?: \[(send|receive)\])? via (.+)")
RING = re.compile(r"Channel (\d+)/(\d+) :((?:\s+\d+)+)")
COLL = re.compile(r"(\w+): opCount ([0-9a-f]+) sendbuff (\S+) recvbuff (\S+) count (\d+) datatype (\d+) op (\d+) root (\d+) comm (0x[0-9a-f]+) "
                  r"\[nranks=(\d+)\]")
TUNING = re.compile(r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+)")


def main():
    start = time.perf_counter()
    size = 0
    edges, calls, ranks, settings = collections.defaultdict(set), collections.Counter(), {}, set()
    choices, warnings, versions, rings = collections.Counter(), collections.Counter(), set(), set()
    with open(sys.argv[1], "rb") as file:
        for raw in file:
            size += len(raw)
            line = raw.decode("utf-8", "replace").rstrip()
            head = HEAD.search(line)
            if not head:
                continue
            host, pid, _, dev, _, level, text = head.groups()
            if level == "WARN":
                warnings[text] += 1
                continue
            m = COLL.match(text)
            if m:
                calls[(host, pid, m.group(9), m.group(1), m.group(5), m.group(6))] += 1
                continue
            m = TUNING.match(text)
            if m:
                choices[m.groups()] += 1
                continue
            m = CHANNEL.match(text)
            if m:
                edges[(m.group(3), m.group(5), m.group(8))].add(m.group(1))
                continue
            m = RING.match(text)
            if m:
                rings.add(m.group(3))
                continue
            m = COMM.search(text)
            if m:
                ranks[int(m.group(2))] = (host, pid, dev, m.group(6))
                continue
            m = ENV.match(text)
            if m:
                settings.add(m.groups())
                continue
            m = VERSION.search(text)
            if m:
                versions.add(m.groups())
    seconds = time.perf_counter() - start
    sys.stderr.write("%d ranks, %d edges, %d kinds of calls, %d warnings\n" % (len(ranks), len(edges), len(calls), len(warnings)))
    print("%.1f" % (size / seconds / 1e6))


if __name__ == "__main__":
    main()
