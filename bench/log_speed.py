#!/usr/bin/env python3
"""How fast `topotune log` reads and how much memory it needs, beside a plain Python regular-expression parser, in one run.

    log_speed.py BINARY [--bytes 200e6] [--stream 10e9] [--log FILE]

Whole processes: start, read, join, write the JSON document. Speed is bytes by seconds of processor time (user and system), the
best of three; the wall clock is printed too. The logs are made by make_log.py: calls in step, calls of ranks at their own
pace, and a stream of 4 096 ranks through a pipe, of which nothing is stored. Ends with 1 when a target is missed:
500 MB/s, 20 times the Python parser, 2 GB of memory.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MAKE, PEER = os.path.join(HERE, "make_log.py"), os.path.join(HERE, "peers", "nccl_log_regex.py")


def once(argv, stdin=None):
    """(wall seconds, processor seconds, peak bytes) of one process."""
    start = time.perf_counter()
    child = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit("%s ended with %d" % (argv[0], child.returncode))
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def ours(binary, source):
    return [binary, "log", "--json", "-o", "/dev/null", source]


def compare(binary, name, log):
    size = os.path.getsize(log)
    with open(log, "rb") as file:  # into the page cache
        while file.read(1 << 24):
            pass
    best = min((once(ours(binary, log)) for _ in range(3)), key=lambda t: t[1])
    peer = once([sys.executable, PEER, log])
    speed, theirs = size / best[1] / 1e6, size / peer[1] / 1e6
    print("%-24s %6.0f MB: topotune %6.0f MB/s (wall %.2f s, %3.0f MB of memory), Python %5.1f MB/s, ratio %.0f" % (
        name, size / 1e6, speed, best[0], best[2] / 1e6, theirs, speed / theirs), flush=True)
    return speed >= 500 and speed >= 20 * theirs


def stream(binary, size):
    maker = subprocess.Popen([sys.executable, MAKE, str(size), "--ranks", "4096"], stdout=subprocess.PIPE)
    wall, cpu, memory = once(ours(binary, "-"), maker.stdout)
    maker.stdout.close()
    maker.wait()
    print("%-24s %6.0f MB: topotune %6.0f MB/s (wall %.2f s, %3.0f MB of memory)" % (
        "4096 ranks, a stream", size / 1e6, size / cpu / 1e6, wall, memory / 1e6))
    return size / cpu >= 500e6 and memory < 2e9


def main():
    p = argparse.ArgumentParser(description="Speed and memory of topotune log.")
    p.add_argument("binary")
    p.add_argument("--bytes", type=float, default=200e6)
    p.add_argument("--stream", type=float, default=10e9, help="bytes of the stream; 0: none")
    p.add_argument("--log", help="another log to measure as well")
    a = p.parse_args()
    binary, good = os.path.abspath(a.binary), True
    for name, options in (("calls in step", []), ("calls at own pace", ["--mixed"])):
        with tempfile.NamedTemporaryFile(suffix=".log") as log:
            subprocess.run([sys.executable, MAKE, str(a.bytes)] + options, stdout=log, check=True)
            good = compare(binary, name, log.name) and good
    if a.log:
        good = compare(binary, os.path.basename(a.log)[:24], a.log) and good
    if a.stream:
        good = stream(binary, a.stream) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
