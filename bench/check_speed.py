#!/usr/bin/env python3
"""Measures lint and check as a person meets them: whole processes, wall clock and peak memory.

    bench/check_speed.py --bin build/bench/topotune [--nodes 1000] [-o measurements/check.md]

Limits: lint of a 10 000-line script 50 ms, check of an eight-GPU capture 80 ms, 1 000 captures 10 s and 1 GB.
Exit status: 0 all within their limits, 1 not.
"""
import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def script(path, lines):
    """What launch scripts are made of, variables among other commands."""
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/bash\n#SBATCH --nodes=4\n")
        for i in range(lines - 2):
            f.write(("export NCCL_DEBUG=WARN\n", "export UCX_TLS=rc,cuda\n", "# step %d\n" % i,
                     "if [ -f data/%d ]; then cp data/%d /tmp/x; fi\n" % (i, i), "srun python train.py --step %d\n" % i,
                     "export MY_VAR_%d=\"$(cat file | grep x)\"\n" % i, "echo \"done %d\" >> log.txt\n" % i)[i % 7])


def measured(argv, runs):
    """Seconds of each run, and the largest resident set in bytes."""
    times = []
    for _ in range(runs):
        start = time.monotonic()
        run = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        times.append(time.monotonic() - start)
        if run.returncode not in (0, 1, 2):
            sys.exit("%s: status %d: %s" % (argv[1], run.returncode, run.stderr.decode(errors="replace")))
    return times, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    rows, late = [], False
    with tempfile.TemporaryDirectory() as folder:
        source, one = os.path.join(folder, "train.sh"), os.path.join(folder, "one.capture")
        script(source, 10000)
        subprocess.check_call([sys.executable, os.path.join(HERE, "make_capture.py"), one])
        fleet = os.path.join(folder, "fleet")
        os.mkdir(fleet)
        with open(one, encoding="utf-8") as f:
            text = f.read()
        for n in range(options.nodes):
            with open(os.path.join(fleet, "node%04d.capture" % n), "w", encoding="utf-8") as f:
                f.write(text.replace("580.65.06", "570.86.10") if n == 7 else text)
        for name, argv, runs, limit, memory in (
                ("lint of a 10 000-line script", ["lint", source], 11, 0.050, None),
                ("check of an eight-GPU capture", ["check", one], 11, 0.080, None),
                ("check of %d captures" % options.nodes, ["check", fleet], 3, 10.0 * options.nodes / 1000, 1e9)):
            times, peak = measured([options.bin] + argv, runs)
            middle = statistics.median(times)
            good = middle < limit and (memory is None or peak < memory)
            late = late or not good
            rows.append("| %s | %.1f | %.1f-%.1f | %.0f | %.0f | %s |" % (
                name, middle * 1000, min(times) * 1000, max(times) * 1000, limit * 1000, peak / 1e6,
                "yes" if good else "NO"))
    text = "\n".join(["# Time of lint and check", "", "`bench/check_speed.py`, whole processes, on %s, %d CPUs." % (
        platform.processor() or platform.machine(), os.cpu_count() or 0), "",
        "| what | median ms | from-to ms | limit ms | peak MB so far | within |", "|---|---|---|---|---|---|"] + rows) + "\n"
    if options.output:
        with open(options.output, "w", encoding="utf-8") as f:
            f.write(text)
    print(text)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
