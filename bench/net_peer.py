#!/usr/bin/env python3
"""`bench net` beside ucx_perftest in the same run: shared memory between two processes, and TCP between two hosts made
of namespaces. Latency of 8 bytes, 4 KiB and 64 KiB and bandwidth of 64 KiB and 1 MiB, turn about; medians of the turns.

Arguments: the topotune binary and the number of turns (3).
"""
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "net"))
from hosts import Hosts, NotPermitted  # noqa: E402

BINARY = os.path.abspath(sys.argv[1])
TURNS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
LATENCIES, BANDWIDTHS = (8, 4096, 65536), (65536, 1 << 20)
TCP = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "e0"}


def perftest(kind, size, agent=None):
    """Median seconds of one way, or bytes a second over all, by ucx_perftest's own last line."""
    rounds = {"tag_lat": 100000 if size < 32768 else 10000, "tag_bw": 20000 if size < 1 << 20 else 2000}[kind]
    if agent:
        rounds //= 10
    words = "ucx_perftest%s -t " + kind + " -s %d -n %d -w 100 -f" % (size, rounds)
    env = dict(os.environ, **(TCP if agent else {}))
    start = (lambda host, line: [agent, host, " ".join("%s=%s" % i for i in TCP.items()) + " " + line]) if agent else (lambda host, line: ["sh", "-c", line])
    server = subprocess.Popen(start("h1", words % ""), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.7)
    done = subprocess.run(start("h2", words % (" h1" if agent else " 127.0.0.1")), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=120)
    server.wait(timeout=30)
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    numbers = [[float(w) for w in line if w.replace(".", "").isdigit()] for line in lines]
    last = [n for n in numbers if len(n) >= 7][-1]
    # iterations, median, average and overall latency in us, average and overall MB/s, rates
    return last[1] * 1e-6 if kind == "tag_lat" else last[5] * (1 << 20)


def ours(agent=None):
    sizes = sorted(set(LATENCIES + BANDWIDTHS))
    where = ["h1", "h2", "--agent", agent, "--tls", "tcp", "--devices", "e0"] if agent else ["localhost", "localhost"]
    text = subprocess.run([BINARY, "bench", "net", *where, "--bytes", ",".join(map(str, sizes)), "--time", "0.3", "--json"], stdout=subprocess.PIPE, universal_newlines=True, timeout=180).stdout
    out = {}
    for r in json.loads(text)["results"]:
        if r["name"] == "net.latency.tag":
            out["tag_lat", r["params"]["bytes"]] = r["median"]
        if r["name"] == "net.bandwidth.tag":
            out["tag_bw", r["params"]["bytes"]] = r["median"] * 1e9
    return out


def compare(title, agent=None):
    asked = [("tag_lat", s) for s in LATENCIES] + [("tag_bw", s) for s in BANDWIDTHS]
    mine, theirs = {k: [] for k in asked}, {k: [] for k in asked}
    for _ in range(TURNS):
        got = ours(agent)
        for key in asked:
            mine[key].append(got[key])
            theirs[key].append(perftest(*key, agent))
    print("== %s: median of %d turns; load %s on %d CPUs" % (title, TURNS, open("/proc/loadavg").read().split()[0], os.cpu_count()))
    for key in asked:
        a, b = statistics.median(mine[key]), statistics.median(theirs[key])
        scale, unit = (1e6, "us") if key[0] == "tag_lat" else (1e-9, "GB/s")
        print("%-8s %8d B  topotune %9.3f %-4s ucx_perftest %9.3f %-4s ratio %.3f   turns %s | %s" % (
            key[0], key[1], a * scale, unit, b * scale, unit, a / b,
            " ".join("%.2f" % (v * scale) for v in mine[key]), " ".join("%.2f" % (v * scale) for v in theirs[key])))


def main():
    compare("shared memory")
    try:
        with Hosts(2) as hosts:
            compare("TCP between two namespaces", hosts.agent)
    except NotPermitted as e:
        print("namespaces left out: %s" % e)


if __name__ == "__main__":
    main()
