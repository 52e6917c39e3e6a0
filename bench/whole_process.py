#!/usr/bin/env python3
"""Whole-process times, peers interleaved in one run: start, read the input, print, end.

    whole_process.py BINARY [ROUNDS [XML...]]

Prints the median of each command in milliseconds, its peak memory, and the ratio to the peer. The inputs are the
project's own (tests/machines); lstopo (package hwloc) is the peer for hwloc XML and for the live machine.
"""
import os
import platform
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINES = os.path.join(HERE, "..", "tests", "machines")


def once(argv):
    start = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    return time.perf_counter() - start, os.waitstatus_to_exitcode(status), usage.ru_maxrss


def main():
    binary, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 41
    hwloc_xml = os.path.join(MACHINES, "guest-lstopo.xml")
    capture = os.path.join(MACHINES, "h200x2-vm.capture")
    rows = [
        ("show live", [binary, "show"], ["lstopo-no-graphics", "--of", "console", "--whole-io"]),
        ("check capture", [binary, "check", capture], None),
        ("show capture", [binary, "show", capture], None),
        ("plan capture", [binary, "plan", capture], None),
    ]
    for xml in [hwloc_xml] + sys.argv[3:]:
        for peer in "lstopo", "lstopo-no-graphics":
            name = "%s, %s" % (os.path.basename(xml)[:24], "plain" if "-" in peer else "lstopo")
            rows.append((name, [binary, "show", xml], [peer, "--of", "console", "-i", xml]))
    print("%s, %s cores, %d rounds" % (platform.platform(), os.cpu_count(), rounds))
    print("%-34s %12s %14s %12s %8s" % ("", "topotune ms", "memory MiB", "peer ms", "ratio"))
    for name, ours, peer in rows:
        mine, theirs, memory = [], [], 0
        for _ in range(rounds):
            seconds, status, rss = once(ours)
            if status not in (0, 1, 2, 3):
                sys.exit("%s: status %d" % (name, status))
            mine.append(seconds * 1e3)
            memory = max(memory, rss)
            if peer:
                seconds, status, _ = once(peer)
                if status != 0:
                    sys.exit("%s: the peer ends with status %d" % (" ".join(peer), status))
                theirs.append(seconds * 1e3)
        m = statistics.median(mine)
        line = "%-34s %12.2f %14.1f" % (name, m, memory / 1024)
        if peer:
            p = statistics.median(theirs)
            line += " %12.2f %7.1fx" % (p, p / m)
        print(line)


if __name__ == "__main__":
    main()
