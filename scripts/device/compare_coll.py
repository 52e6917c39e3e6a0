#!/usr/bin/env python3
"""Sets `bench coll --format nccl-tests` beside nccl-tests of the same minutes.

The folder holds OP.N.topotune and OP.N.nccl-tests, turn about. For each collective, size and placement: the median
time of each program's turns, their ratio, how far the peer's own turns lie apart, and the ratio of the best turns: what
disturbs a launch only ever makes it longer.
"""
import glob
import os
import re
import statistics
import sys


def rows(path):
    """{(bytes, place): microseconds} and whether any data was wrong."""
    out, wrong = {}, 0
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            parts = line.split()
            if len(parts) < 13 or not parts[0].isdigit() or parts[0] == "0":
                continue
            for place, at in (("out", 5), ("in", 9)):
                if re.fullmatch(r"[0-9.e+]+", parts[at]):
                    out[(int(parts[0]), place)] = float(parts[at])
                if re.fullmatch(r"[0-9.e+]+", parts[at + 3]):
                    wrong += float(parts[at + 3]) > 0
    return out, wrong


def main():
    folder = sys.argv[1]
    ops = sorted({os.path.basename(p).split(".")[0] for p in glob.glob(os.path.join(folder, "*.*.*"))})
    far = far_best = all_ = 0
    for op in ops:
        turns = {}
        for kind in ("topotune", "nccl-tests"):
            turns[kind] = [rows(p) for p in sorted(glob.glob(os.path.join(folder, "%s.*.%s" % (op, kind))))]
        print("== %s: %d turns of topotune, %d of nccl-tests; wrong data: %d, %d" % (
            op, len(turns["topotune"]), len(turns["nccl-tests"]), sum(t[1] for t in turns["topotune"]),
            sum(t[1] for t in turns["nccl-tests"])))
        print("%12s %4s %12s %12s %7s %18s %7s" % (
            "bytes", "", "topotune us", "peer us", "ratio", "peer's own turns", "best"))
        keys = sorted({k for kind in turns.values() for t in kind for k in t[0]})
        for key in keys:
            mine = [t[0][key] for t in turns["topotune"] if key in t[0]]
            theirs = [t[0][key] for t in turns["nccl-tests"] if key in t[0]]
            if not mine or not theirs or min(theirs) == 0:  # a single rank has nothing to do in place
                print("%12d %4s %12s %12s" % (key[0], key[1], mine or "-", theirs or "-"))
                continue
            a, b = statistics.median(mine), statistics.median(theirs)
            all_ += 1
            far += abs(a / b - 1) > 0.02
            best = min(mine) / min(theirs)
            far_best += abs(best - 1) > 0.02
            print("%12d %4s %12.2f %12.2f %7.3f %8.3f to %.3f %7.3f%s" % (
                key[0], key[1], a, b, a / b, min(theirs) / b, max(theirs) / b, best,
                "  <" if abs(best - 1) > 0.02 else ""))
    print("of %d sizes %d differ by more than 2 %%, of their best turns %d" % (all_, far, far_best))


if __name__ == "__main__":
    main()
