#!/usr/bin/env python3
"""`bench net` on one machine: between two processes, and between hosts made of namespaces.

Arguments: the topotune binary and the part: local, hosts, cut, screen, pairs. Status 77: UCX or namespaces are not here.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from hosts import Hosts, NotPermitted

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from harness import check, free_port, skip  # noqa: E402

BINARY, WHICH = os.path.abspath(sys.argv[1]), sys.argv[2]


def environment():
    return harness.without("UCX_")


def run(*arguments, limit=60):
    began = time.time()
    done = subprocess.run([BINARY, "bench", "net", *arguments], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=limit)
    return done.returncode, done.stdout, done.stderr, time.time() - began


def results(text, name):
    return [r for r in json.loads(text)["results"] if r["name"] == name]


def local():
    # Shared memory: all operations, both processes here.
    code, out, err, _ = run("localhost", "localhost", "--op", "tag,am,put,get", "--bytes", "8,4096,65536", "--time", "0.05", "--json", "--fail-on", "error")
    check("four operations between two processes", code in (0, 3), out + err)
    for op in ("tag", "am", "put", "get"):
        found = results(out, "net.latency." + op)
        check("%s: three sizes, all bytes right" % op, len(found) == 3 and all(r["verified"] for r in found), found)
        check("%s: quantiles in order" % op, all(r["p1"] <= r["median"] <= r["p99"] <= r["extra"]["max_seconds"] for r in found), found)
        check("%s: bandwidth" % op, all(r["median"] > 0 for r in results(out, "net.bandwidth." + op)), out)
        check("%s: both ways" % op, all(r["median"] > 0 for r in results(out, "net.both." + op)), out)
    check("an alpha-beta model", any(m["name"] == "net.latency.tag" for m in json.loads(out)["models"]), out)

    code, out, err, _ = run("localhost", "localhost", "--tls", "nosuch", "--limit", "5")
    check("a transport that is none", code != 0 and "UCX" in out + err, out + err)
    code, out, err, _ = run("localhost", "localhost", "--tls", "tcp", "--devices", "nosuch0", "--limit", "5")
    check("a wrong interface", code != 0 and "UCX" in out + err, out + err)
    code, out, err, _ = run("onlyone")
    check("one host", code == 64 and "'onlyone', is no network" in err, err)

    # A process that is killed.
    address = "127.0.0.1:%d" % free_port()
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "x.json")
        processes = [subprocess.Popen([BINARY, "bench", "net", "--rank", str(r), "--ranks", "2", "--rendezvous", address, *LONG, "--limit", "5", "--json", "-o", file], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True) for r in range(2)]
        harness.wait_for_results(processes[0], file, 3)
        processes[1].send_signal(signal.SIGKILL)
        began = time.time()
        _, err = processes[0].communicate(timeout=30)
        processes[1].communicate()
        check("the survivor ends within its limit", time.time() - began < 15, time.time() - began)
        check("and names the other", processes[0].returncode == 2 and ("rank 1" in err or "did not answer in time" in err), err)
        check("and keeps what it has", len(harness.measured(harness.read_report(file))) >= 3, err)

        # The command that started the processes is asked to end: it says what they measured.
        process = harness.start([BINARY, "bench", "net", "localhost", "localhost", *LONG, "--json", "-o", file], environment())
        time.sleep(4)
        process.send_signal(signal.SIGTERM)
        code, out, err = harness.end(process, 30)
        document = harness.read_report(file)
        check("an interrupted command writes what was measured", code == 130 and document["interrupted"] is True, "%d %s %s %s" % (code, out, err, document))


LONG = ("--time", "0.1", "--bytes", "8,64,512,4096,8192,16384,32768,65536,131072,262144", "--op", "tag,am,put,get")
TCP = ("--tls", "tcp", "--devices", "e0")


def between_hosts():
    with Hosts(3) as hosts:
        code, out, err, _ = run("h1", "h2", "--agent", hosts.agent, *TCP, "--bytes", "8,65536", "--time", "0.1", "--json", "--fail-on", "error")
        check("two hosts by one command", code in (0, 3), out + err)
        found = results(out, "net.latency.tag")
        check("all bytes right", len(found) == 2 and all(r["verified"] for r in found), out)
        check("their names", found[0]["params"]["a"] == "h1" and found[0]["params"]["b"] == "h2", found)
        check("over TCP on e0", "tcp/e0" in found[0]["extra"]["transports"], found)
        code, out, err, _ = run("h1", "h2", "h3", "--all-pairs", "--agent", hosts.agent, *TCP, "--bytes", "256K", "--svg", os.path.join(hosts.folder, "m.svg"), "--json", "--fail-on", "error")
        check("all pairs", code in (0, 3) and len(results(out, "net.bandwidth.tag")) == 6, out + err)
        with open(os.path.join(hosts.folder, "m.svg"), encoding="utf-8") as f:
            picture = f.read()
        check("a heat map", picture.startswith("<svg") and all("%s to %s: " % p in picture for p in (("h1", "h2"), ("h3", "h1"))), picture)
        code, out, err, _ = run("h1", "h2", "--agent", hosts.agent, *TCP, "--streams", "3", "--op", "tag,am,put,get", "--bytes", "65536", "--time", "0.1", "--json", "--fail-on", "error")
        found = results(out, "net.bandwidth.am")
        check("three streams", code in (0, 3) and len(found) == 1 and found[0]["params"]["streams"] == 3 and found[0]["median"] > 0, out + err)
        code, out, err, _ = run("h1", "h9", "--agent", hosts.agent, *TCP, "--limit", "3")
        check("a host that is not there", code == 2 and "rank 1 did not come" in out + err and "no host h9" in err, out + err)
        hosts.down("h2")
        code, out, err, took = run("h1", "h2", "--agent", hosts.agent, *TCP, "--limit", "4")
        check("a host that cannot be reached", code == 2 and took < 20 and "rank 1 on h2 did not reach rank 0 at h1" in err and "firewall" in err, out + err)


def cut():
    """The network goes away in the middle: whoever is left ends within the limit, says with whom, and keeps what was measured."""
    with Hosts(3) as hosts:
        file = os.path.join(hosts.folder, "x.json")
        os.chmod(hosts.folder, 0o777)
        for name, words in (("a pair", LONG), ("a matrix", ("--all-pairs", "--bytes", "256K", "--time", "0.2"))):
            count = 2 if name == "a pair" else 3
            line = "%s bench net --rank %%d --ranks %d --rendezvous h1:29555 %s --limit 4 --json -o %s" % (BINARY, count, " ".join((*TCP, *words)), file)
            processes = [harness.start([hosts.agent, host, line % rank], environment()) for rank, host in enumerate(hosts.names[:count])]
            harness.wait_for_results(processes[0], file, 2)
            hosts.down("h2")
            began = time.time()
            done = [harness.end(p, 60) for p in processes]
            said = "".join(err for _, _, err in done)
            check("%s: all end within their limits" % name, time.time() - began < 25, "%.1f s %s" % (time.time() - began, said))
            check("%s: with an error" % name, all(code == 2 for code, _, _ in done), done)
            check("%s: the host and rank that are lost are named" % name, "rank 1 on h2" in done[0][2], said)
            document = harness.read_report(file)
            why = [r["why"] for r in document["results"] if r["status"] == "failed"]
            check("%s: in the report too" % name, len(why) == 1 and "rank 1 on h2" in why[0], document)
            check("%s: partial results are kept" % name, len(harness.measured(document)) >= 2, document)
            os.unlink(file)
            hosts.up("h2")


def screening():
    with Hosts(8) as hosts:
        hosts.limit("h5", "200mbit")
        names = [n for n in hosts.names for _ in range(2)]
        code, out, err, took = run(*names, "--screen", "--agent", hosts.agent, *TCP, "--bytes", "256K", "--time", "0.1", limit=90)
        print(out)
        check("h5 is named, and it alone", "warn: h5 is slow" in out and out.count("is slow:") == 1, out + err)
        check("a warning", code == 1, code)
        check("16 processes on 8 hosts in under 30 s (%.1f s)" % took, took < 30)


def pairs():
    """One of four hosts is slow, and then none: half of all links are those of one host."""
    with Hosts(4) as hosts:
        words = (*hosts.names, "--all-pairs", "--agent", hosts.agent, *TCP, "--bytes", "256K", "--time", "0.1")
        code, out, err, _ = run(*words, limit=120)
        check("nobody is named where all are equal", code in (0, 1, 3) and "is slow" not in out, out + err)
        hosts.limit("h3", "200mbit")
        code, out, err, _ = run(*words, limit=120)
        check("h3 is named, and it alone", code == 1 and "warn: h3 is slow" in out and out.count("is slow") == 1, out + err)


def main():
    if not os.path.exists(os.path.join(os.path.dirname(BINARY), "libtopotune-ucx.so")):
        skip("no libtopotune-ucx.so beside the program")
    try:
        {"local": local, "hosts": between_hosts, "cut": cut, "screen": screening, "pairs": pairs}[WHICH]()
    except NotPermitted as e:
        skip(str(e))


if __name__ == "__main__":
    main()
