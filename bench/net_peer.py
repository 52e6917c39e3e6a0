#!/usr/bin/env python3
"""`bench net` beside ucx_perftest: shared memory and TCP between two processes, and TCP between two hosts made of namespaces.

Many short turns, A B and B A in alternation, so that what else the machine does falls on both alike; the same transports, sizes,
window (32 messages) and CPUs. Of each pair of turns the ratio counts: the median of the ratios with the interval in which it lies
with 95 % (bootstrap), and beside it the best turn of each, which others' load disturbs least. Latency is the median of single
messages in both programs; bandwidth and message rate are those of the whole turn.

    python3 bench/net_peer.py build/release/topotune --turns 20 --cpus 0,1 --out raw.json
"""
import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "net"))
from hosts import Hosts, NotPermitted  # noqa: E402

SIZES = (8, 4096, 65536, 1 << 20)
SECONDS = 0.1  # of one number
UNITS = {"latency": (1e6, "us"), "bandwidth": (1e-9, "GB/s"), "message": (1e9, "ns")}


class Here:
    """Two processes of this machine, over shared memory."""
    title, variables, words, addresses = "shared memory", {"UCX_TLS": "sm"}, ["--tls", "sm"], ("127.0.0.1", "127.0.0.1")

    def start(self, _, command, out):
        return subprocess.Popen(command, env=dict(os.environ, **self.variables), stdout=out, stderr=subprocess.DEVNULL, universal_newlines=True)

    def listens(self, port):
        return listens("/proc/net/tcp", port)


class Loopback(Here):
    """Two processes of this machine, over TCP."""
    title, variables, words = "TCP over lo", {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}, ["--tls", "tcp", "--devices", "lo"]


class Spaces:
    """Two network namespaces, over TCP."""
    title, variables, words, addresses = "TCP between two namespaces", {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "e0"}, ["--tls", "tcp", "--devices", "e0"], ("h1", "h2")

    def __init__(self, hosts):
        self.hosts = hosts

    def start(self, side, command, out):
        line = " ".join(["%s=%s" % v for v in self.variables.items()] + command)
        return subprocess.Popen([self.hosts.agent, self.hosts.names[side], "exec env " + line], stdout=out, stderr=subprocess.DEVNULL, universal_newlines=True)

    def listens(self, port):
        return listens("/proc/%d/net/tcp" % self.hosts.pids["h2"], port)


def listens(file, port):
    """Fields of a line: number, local address, remote address, state (0A: listens)."""
    with open(file, encoding="ascii") as f:
        fields = [line.split() for line in f.readlines()[1:]]
    return any(line[1].endswith(":%04X" % port) and line[3] == "0A" for line in fields)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pinned(cpus, side, command):
    return ["taskset", "-c", cpus[side], *command] if cpus else command


def ours(where, binary, cpus, size):
    port = free_port()
    sides = []
    for rank in (0, 1):
        command = [binary, "bench", "net", "--rank", str(rank), "--ranks", "2", "--rendezvous", "%s:%d" % (where.addresses[0], port), *where.words, "--bytes", str(size), "--time", str(SECONDS), "--json"]
        sides.append(where.start(rank, pinned(cpus, rank, command), subprocess.PIPE if rank == 0 else subprocess.DEVNULL))
    text = sides[0].communicate(timeout=60)[0]
    sides[1].wait(timeout=60)
    found = {r["name"]: r for r in json.loads(text)["results"]}
    stream = found["net.bandwidth.tag"]
    return {"latency": found["net.latency.tag"]["median"], "bandwidth": stream["median"] * 1e9, "message": 1 / stream["extra"]["messages_per_s"]}


def perftest(where, cpus, size, test, rounds, tries=3):
    port = free_port()
    command = ["ucx_perftest", "-t", test, "-s", str(size), "-n", str(rounds), "-w", str(rounds // 10 + 10), "-f", "-p", str(port)]
    # The client sends: from the side from which `bench net` sends, whose CPU has the work of both ends of a veth pair.
    server = where.start(1, pinned(cpus, 1, command), subprocess.DEVNULL)
    end = time.time() + 10
    while not where.listens(port) and time.time() < end:
        time.sleep(0.01)
    client = where.start(0, pinned(cpus, 0, [command[0], where.addresses[1], *command[1:]]), subprocess.PIPE)
    text = client.communicate(timeout=120)[0]
    if client.returncode != 0:
        server.kill()
    server.wait(timeout=60)
    lines = [[float(w) for w in line.split() if w.replace(".", "").isdigit()] for line in text.splitlines()]
    # iterations; median, average and overall us; average and overall MB/s; average and overall messages/s
    whole = [n for n in lines if len(n) >= 8]
    if not whole:  # its two sides did not meet
        if tries == 0:
            raise RuntimeError("ucx_perftest says nothing: " + text)
        return perftest(where, cpus, size, test, rounds, tries - 1)
    last = whole[-1]
    return {"latency": last[1] * 1e-6} if test == "tag_lat" else {"bandwidth": last[5] * (1 << 20), "message": 1 / last[7]}


def theirs(where, cpus, size, like):
    got = perftest(where, cpus, size, "tag_lat", int(min(max(SECONDS / (2 * like["latency"]), 300), 100000)))
    got.update(perftest(where, cpus, size, "tag_bw", int(min(max(SECONDS * like["bandwidth"] / size, 100), 300000))))
    return got


def interval(values):
    """Of the median, by drawing again; 95 %."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[1949]


def line_of(kind, size, mine, peer):
    scale, unit = UNITS[kind]
    ratios = [a / b for a, b in zip(mine, peer)]
    low, high = interval(ratios)
    best = max if kind == "bandwidth" else min
    text = "%-9s %8d B  %9.3f | %9.3f %-4s ratio %.3f [%.3f, %.3f]   best %9.3f | %9.3f  ratio %.3f" % (
        kind, size, statistics.median(mine) * scale, statistics.median(peer) * scale, unit, statistics.median(ratios), low, high,
        best(mine) * scale, best(peer) * scale, best(mine) / best(peer))
    if size == 8 and kind != "bandwidth":
        apart = [(a - b) * 1e9 for a, b in zip(mine, peer)]
        text += "   own part %.0f ns [%.0f, %.0f]" % (statistics.median(apart), *interval(apart))
    return text


def compare(where, binary, cpus, turns, until):
    began = time.time()
    raw = {size: {"topotune": [], "ucx_perftest": []} for size in SIZES}
    for turn in range(turns):
        for size in SIZES:
            pair = raw[size]
            like = pair["topotune"][-1] if pair["topotune"] else ours(where, binary, cpus, size)
            for who in ("topotune", "ucx_perftest") if turn % 2 == 0 else ("ucx_perftest", "topotune"):
                pair[who].append(ours(where, binary, cpus, size) if who == "topotune" else theirs(where, cpus, size, like))
        if time.time() - began > until:
            break
    done = len(raw[SIZES[0]]["topotune"])
    print("== %s: median of %d turns, topotune | ucx_perftest; load %s on %d CPUs, pinned to %s" % (
        where.title, done, open("/proc/loadavg", encoding="ascii").read().split()[0], os.cpu_count(), ",".join(cpus) or "none"))
    for kind in ("latency", "bandwidth", "message"):
        for size in SIZES:
            if kind != "message" or size == 8:
                print(line_of(kind, size, [t[kind] for t in raw[size]["topotune"]], [t[kind] for t in raw[size]["ucx_perftest"]]))
    return raw


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("binary")
    options.add_argument("--turns", type=int, default=20)
    options.add_argument("--seconds", type=float, default=1e9, help="no turn begins later, for each place")
    options.add_argument("--cpus", default="", help="CPUs of the two processes, such as 0,1; none: not pinned")
    options.add_argument("--only", choices=("memory", "lo", "tcp"))
    options.add_argument("--out", help="all turns, as JSON")
    asked = options.parse_args()
    binary, cpus = os.path.abspath(asked.binary), [c for c in asked.cpus.split(",") if c]
    raw = {}
    for name, place in (("memory", Here()), ("lo", Loopback())):
        if asked.only in (None, name):
            raw[name] = compare(place, binary, cpus, asked.turns, asked.seconds)
    try:
        if asked.only in (None, "tcp"):
            with Hosts(2) as hosts:
                raw["tcp"] = compare(Spaces(hosts), binary, cpus, asked.turns, asked.seconds)
    except NotPermitted as e:
        print("namespaces left out: %s" % e)
    if asked.out:
        with open(asked.out, "w", encoding="utf-8") as f:
            json.dump({"unit": {"latency": "s", "bandwidth": "B/s", "message": "s"}, "turns": raw}, f, indent=0)


if __name__ == "__main__":
    main()
