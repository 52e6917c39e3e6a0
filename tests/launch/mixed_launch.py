#!/usr/bin/env python3
"""`bench mixed` in several processes, `bench levels` and the reproducers, over a real MPI; and what happens when a
process dies, hangs, never comes or is of another version.

Arguments: the topotune binary and the part: openmpi, mpich, faults, hosts, levels, bottlenecks. Status 77: what the part needs
is not here.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from harness import check, ranks_of, skip, wait_for_ranks  # noqa: E402

BINARY, WHICH = os.path.abspath(sys.argv[1]), sys.argv[2]
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
MPIRUN = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader"]
MIXED = ["bench", "mixed", "--backend", "mpi", "--scale", "0.002", "--duration", "0.5", "--limit", "30", "--fail-on", "error"]
LONG = ["bench", "mixed", "--backend", "mpi", "--scale", "0.002", "--duration", "3"]


def environment(**more):
    return {**harness.without("NCCL_", "CUDA_", "TOPOTUNE_"), **harness.as_root(), **more}


def start(command, env=None):
    return harness.start(command, env or environment())


def end(process, limit=90):
    return harness.end(process, limit)


def needs_openmpi():
    if not shutil.which("mpirun.openmpi"):
        skip("no mpirun.openmpi")
    if not os.path.exists(os.path.join(os.path.dirname(BINARY), "libtopotune-mpi.so")):
        skip("no libtopotune-mpi.so beside the program")


def good_document(text, ranks):
    check("there is a document", text.lstrip().startswith("{"), text)
    document = json.loads(text)
    by = {(r["name"], r["params"].get("stream")): r for r in document["results"]}
    for stream in ("small", "large", "checkpoint"):
        alone, together = by[("mixed.alone", stream)], by[("mixed.together", stream)]
        check("%s: alone and together" % stream, alone["median"] > 0 and together["median"] > 0, alone)
        check("%s: data compared" % stream, alone["verified"] and together["verified"], alone)
        check("%s: mean and rates" % stream, together["extra"]["mean_seconds"] > 0 and together["extra"]["achieved_gbytes_per_s"] > 0, together)
        check("%s: expected beside achieved" % stream, by[("mixed.bandwidth", stream)]["expected"]["value"] > 0, by[("mixed.bandwidth", stream)])
        between = by[("mixed.interference", stream)]
        # On a crowded machine a stream may have too few operations beside the others: then that is said.
        few = between["status"] == "waived" and "fewer than three" in between["why"]
        check("%s: interference with its interval" % stream, few or between["ci95"][0] <= between["median"] <= between["ci95"][1], between)
    check("%d ranks" % ranks, document["machine"]["ranks"] == str(ranks), document["machine"])
    check("softirqs were counted", any(r["name"] == "mixed.softirqs" for r in document["results"]), sorted({r["name"] for r in document["results"]}))
    return document


def by_openmpi(folder):
    needs_openmpi()
    for ranks in (2, 4):
        code, out, err = end(start([*MPIRUN, "-n", str(ranks), BINARY, *MIXED, "--json"]))
        check("%d ranks end well" % ranks, code in (0, 3), out + err)
        document = good_document(out, ranks)
    check("they meet over TCP too", "TCP" in document["machine"]["met_by"], document["machine"])
    code, out, err = end(start([*MPIRUN, "-n", "2", BINARY, *MIXED, "--profile", "fsdp", "--checkpoint-dir", folder]))
    check("one screen", code in (0, 3) and out.startswith("mixed fsdp: 2 ranks on 1 host, Open MPI") and len(out.splitlines()) < 40, out + err)
    check("nothing is left behind", os.listdir(folder) == [], os.listdir(folder))


def by_mpich(_):
    if not shutil.which("mpiexec.mpich"):
        skip("no mpiexec.mpich")
    if not os.path.exists(os.path.join(os.path.dirname(BINARY), "libtopotune-mpich.so")):
        skip("no libtopotune-mpich.so beside the program")
    code, out, err = end(start(["mpiexec.mpich", "-n", "2", BINARY, *MIXED, "--json"]))
    check("it ends well", code in (0, 3), out + err)
    good_document(out, 2)


def faults(folder):
    needs_openmpi()
    coll = ["bench", "coll", "all_reduce", "alltoall", "broadcast", "--backend", "mpi", "-b", "1K", "-e", "16M", "-n", "20"]
    for name, words, short in (("coll", [*coll, "--time", "1"], [w if w != "16M" else "4K" for w in coll]), ("mixed", LONG, MIXED)):
        # One dies in the middle: it is named, and what was measured is kept.
        file = os.path.join(folder, name + ".json")
        process = start([*MPIRUN, "-n", "3", BINARY, *words, "--limit", "20", "--json", "-o", file])
        pids = wait_for_ranks(process, 3)
        time.sleep(8)
        os.kill(pids[1], signal.SIGKILL)
        began = time.time()
        code, out, err = end(process)
        check(name + ": the survivors end soon", time.time() - began < 25, "%g s" % (time.time() - began))
        check(name + ": with an error", code != 0, out + err)
        with open(file, encoding="utf-8") as f:
            document = json.load(f)
        failed = [r["why"] for r in document["results"] if r["status"] == "failed"]
        check(name + ": the dead rank is named", any(re.search(r"rank 1 on \S+ \(pid %d\) ended" % pids[1], why) for why in failed), str(failed) + err)
        check(name + ": partial results are kept", any(r["status"] in ("ok", "noisy") for r in document["results"]), json.dumps(document)[:3000])

        # One hangs: its wait has a limit, and it is named.
        process = start([*MPIRUN, "-n", "2", BINARY, *words, "--limit", "4", "--json"])
        pids = wait_for_ranks(process, 2)
        time.sleep(4)
        check(name + ": it runs", process.poll() is None, "" if process.poll() is None else str(end(process)))
        os.kill(pids[1], signal.SIGSTOP)
        # mpirun does not end while a child is stopped: let it go once rank 0 has spoken.
        for _ in range(300):
            if 0 not in ranks_of(process):
                break
            time.sleep(0.1)
        check(name + ": rank 0 ends although another hangs", 0 not in ranks_of(process))
        os.kill(pids[1], signal.SIGKILL)
        code, out, err = end(process)
        check(name + ": a hanging rank ends the wait", code != 0 and "did not" in out + err and ("rank 1 on" in out + err or "rank 0 on" in out + err), out + err)

        # The report's disk is full.
        code, out, err = end(start([*MPIRUN, "-n", "2", BINARY, *short, "-o", "/dev/full"]))
        check(name + ": a full disk is said", code != 0 and "cannot write /dev/full" in err, out + err)

    # One never comes.
    process = start([*MPIRUN, "-n", "1", BINARY, "bench", "mixed", "--backend", "mpi", "--limit", "2", ":", "-n", "1", "sleep", "60"])
    code, out, err = end(process, 45)
    check("a rank that never comes ends the wait", code != 0 and "rank 0 on %s: 'MPI_Init: waiting for all ranks' did not end within" % socket.gethostname() in err, out + err)

    # One is of another version: the same program with another number in it.
    other = os.path.join(folder, "other", "topotune")
    os.mkdir(os.path.dirname(other))
    with open(BINARY, "rb") as f:
        program = f.read()
    version = re.search(rb"topotune (\d+\.\d+\.\d+)\0", program)
    check("the program holds its version", version is not None)
    number = version.group(1)
    changed = program.replace(number + b"\0", b"9" + number[1:] + b"\0")
    with open(other, "wb") as f:
        f.write(changed)
    os.chmod(other, 0o755)
    env = environment(TOPOTUNE_MODULES=os.path.dirname(BINARY))
    code, out, err = end(start([*MPIRUN, "-n", "1", BINARY, *MIXED, ":", "-n", "1", other, *MIXED], env))
    check("another version is refused and named", code != 0 and re.search(r"rank 1 on \S+ \(pid \d+\) is topotune 9", out + err), out + err)

    # Interrupted, as srun passes it on to each rank: what was measured is kept. (Open MPI's mpirun drops on Ctrl-C what it has
    # not forwarded yet, whatever the program prints; a file is whole.)
    file = os.path.join(folder, "interrupted.json")
    process = start([*MPIRUN, "-n", "2", BINARY, *LONG, "--limit", "20", "--json", "-o", file])
    pids = wait_for_ranks(process, 2)
    time.sleep(6)
    for pid in pids.values():
        os.kill(pid, signal.SIGINT)
    code, out, err = end(process, 40)
    with open(file, encoding="utf-8") as f:
        document = json.load(f)
    check("an interrupt keeps what was measured", document["interrupted"] is True and any(r["name"] == "mixed.alone" and r["status"] in ("ok", "noisy") for r in document["results"]), json.dumps(document)[:3000] + err)


def over_hosts(folder):
    """Two hosts made of namespaces, the second started through an rsh agent."""
    needs_openmpi()
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "net"))
    import hosts as made  # pylint: disable=import-outside-toplevel
    try:
        with made.Hosts(2) as hosts:
            os.chmod(folder, 0o755)
            # Each host's network and name; processes and files are this machine's, as Open MPI's daemons need them.
            agent = os.path.join(hosts.folder, "mpi-agent")
            with open(agent, "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\ncase $1 in\n" + "".join("%s) pid=%d ;;\n" % one for one in hosts.pids.items()))
                f.write("esac\nshift\nexec nsenter -t $pid -n -u -- sh -c \"$*\"\n")
            os.chmod(agent, 0o755)
            # The hosts share CPUs: bound, both ranks would be on the first one.
            mpirun = "mpirun.openmpi --allow-run-as-root --bind-to none --host h1:1,h2:1 --mca plm_rsh_agent %s --mca oob_tcp_if_include e0 --mca btl self,tcp --mca btl_tcp_if_include e0 " % agent
            inside = ["nsenter", "-t", str(hosts.pids["h1"]), "-n", "-u"]
            code, out, err = end(start([*inside, *mpirun.split(), "-n", "2", BINARY, *MIXED, "--json"]))
            check("two hosts end well", code in (0, 1, 3) and out, out + err)
            document = good_document(out, 2)
            check("both hosts are there", document["machine"]["hosts"] == "h1 h2", document["machine"])
            counted = {r["params"]["host"] for r in document["results"] if r["name"] == "mixed.softirqs"}
            check("softirqs of both", counted == {"h1", "h2"}, str(counted))

            # The network goes away in the middle. mpirun itself may wait for its daemon on the other side: it is ended.
            file = os.path.join(folder, "cut.json")
            coll = ["bench", "coll", "all_reduce", "alltoall", "--backend", "mpi", "-b", "1K", "-e", "64K", "--time", "0.3", "-n", "500", "--limit", "4"]
            process = start([*inside, *mpirun.split(), "-n", "2", BINARY, *coll, "--json", "-o", file])
            harness.wait_for_results(process, file, 2)
            hosts.down("h2")
            began = time.time()
            while ranks_of(process) and time.time() - began < 40:
                time.sleep(0.1)
            took = time.time() - began
            left = ranks_of(process)
            hosts.up("h2")
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate(timeout=10)
            check("without a network rank 0 ends within its limits", not left and took < 30, "%.1f s %s %s" % (took, left, err))
            document = harness.read_report(file)
            failed = [r["why"] for r in document["results"] if r["status"] == "failed"]
            check("who waited for what is said", len(failed) == 1 and re.search(r"rank [01] on h[12]", failed[0]), str(failed) + err)
            check("partial results are kept", len(harness.measured(document)) >= 2, document)
    except made.NotPermitted as why:
        skip(str(why))


def levels(_):
    needs_openmpi()
    launch = " ".join(MPIRUN) + " -n 2"
    script = "import json, os, time\nr = os.environ['OMPI_COMM_WORLD_RANK']\nf = open(os.environ['TOPOTUNE_STEP_LOG'] + '.' + r, 'w')\nprint(json.dumps({'schema': 'topotune.step/1', 'kind': 'own', 'op': 'all_reduce', 'framework': 'none', 'backend': 'none', 'rank': int(r), 'ranks': 2}), file=f)\nfor i in range(6):\n    print(json.dumps({'step': i, 'seconds': 0.1, 'dataloader_seconds': 0.001, 'compute_seconds': 0.09, 'communication_seconds': 1e-9, 'exposed_communication_seconds': %s, 'communication_bytes': 4194304, 'communication_calls': 4}), file=f)\n"
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "step.py")
        for exposed, level, wanted in (("0.03", "profile", 1), ("0.001", "none", 0)):
            with open(file, "w", encoding="utf-8") as f:
                f.write(script % exposed)
            train = "%s -x TOPOTUNE_STEP_LOG %s %s" % (launch, sys.executable, file)
            code, out, err = end(start([BINARY, "bench", "levels", "--train", train, "--launch", launch, "--backend", "mpi", "--limit", "30"]))
            check("levels name " + level, code == wanted and "level %s:" % level in out, out + err)
            check("the collective was measured at the step's size", "GB/s bus bandwidth" in out, out)
    # The examples with PyTorch, where it is.
    if subprocess.run([sys.executable, "-c", "import torch.distributed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        train = "%s %s" % (sys.executable, os.path.join(EXAMPLES, "training", "ddp_step.py"))
        code, out, err = end(start([BINARY, "bench", "levels", "--train", train, "--launch", launch, "--backend", "mpi", "--limit", "30"]))
        check("without PyTorch the step is waived", "unknown: this step needs PyTorch" in out and code == 3, out + err)
        return
    for name in ("ddp_step.py", "moe_step.py"):
        train = "%s -x TOPOTUNE_STEP_LOG %s %s --steps 5 --width 64" % (launch, sys.executable, os.path.join(EXAMPLES, "training", name))
        code, out, err = end(start([BINARY, "bench", "levels", "--train", train, "--launch", launch, "--backend", "mpi", "--limit", "30"]))
        check(name + " is measured", code in (0, 1) and "2 step" in out and "unknown:" not in out.split("4 ports")[0], out + err)


def bottlenecks(folder):
    needs_openmpi()
    env = environment(TOPOTUNE=BINARY, MPIRUN="mpirun.openmpi --allow-run-as-root --oversubscribe", OUT=folder)
    scripts = os.path.join(EXAMPLES, "bottlenecks")
    gpus = shutil.which("nvidia-smi") is not None
    for name in sorted(os.listdir(scripts)):
        if name == "lib.sh":
            continue
        code, out, err = end(start([os.path.join(scripts, name)], env), 170)
        if code == 3:
            check(name + " says in one line why it is waived", out.startswith("waived: ") and out.count("\n") == 1, out + err)
            check(name + " runs without GPUs", gpus or name in ("shm_fallback.sh", "one_channel.sh", "wrong_numa_node.sh"), out + err)
        else:
            # How much is lost is the machine's affair, and where others take the CPUs it is nothing: then the script says so.
            none = code == 1 and "no loss of at least" in out and name != "small_buckets.sh"
            check(name + " shows the loss", (code == 0 or none) and re.search(r"good .* ms, bad .* ms: [0-9.]+ times slower", out), out + err)
            check(name + " asks the program", "$ topotune" in out, out)


def main():
    with tempfile.TemporaryDirectory() as folder:
        {"openmpi": by_openmpi, "mpich": by_mpich, "faults": faults, "hosts": over_hosts, "levels": levels, "bottlenecks": bottlenecks}[WHICH](folder)


if __name__ == "__main__":
    main()
