#!/usr/bin/env python3
"""`bench coll` under the real launchers, and by hand with a process that dies.

Arguments: the topotune binary, the folder of the fake libraries (NCCL without GPUs), and the launcher: hand, openmpi,
mpich, torchrun, slurm. Status 77: that launcher, or the module that it needs, is not here.
"""
import json
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import time

import slurm_node

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from harness import check, free_port, skip, start  # noqa: E402

BINARY, FAKES, WHICH = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
SHORT = ["-b", "1K", "-e", "16K", "-f", "4", "--time", "0.001", "-n", "3", "--fail-on", "error", "--limit", "30"]
LONG = ["-b", "1K", "-e", "64K", "--time", "0.3", "-n", "20", "--no-log"]


def environment(**more):
    return {**harness.without("NCCL_", "CUDA_", "FAKE_", "TOPOTUNE_"), "LD_LIBRARY_PATH": FAKES, **harness.as_root(), **more}


def end(process, limit=60):
    return harness.end(process, limit)


def good(text, ranks, library):
    document = json.loads(text)
    cells = [r for r in document["results"] if r["status"] in ("ok", "noisy")]
    check("cells were measured", len(cells) >= 6, text[:3000])
    check("all elements compared", all(r["verified"] for r in cells if r["extra"].get("wrong_elements") is not None), text[:3000])
    check("%d ranks" % ranks, document["machine"]["ranks"] == str(ranks), str(document["machine"]))
    check("library " + library, document["machine"]["library"].startswith(library), str(document["machine"]))
    return document


def by_launcher(command, ranks, library, name, env=None):
    code, out, err = end(start(command, env or environment()))
    check("%s: ends well" % name, code in (0, 3), out + err)  # 3: all numbers are noisy
    check("%s: one document" % name, out.lstrip().startswith("{") and out.count('"schema"') == 1, out[:2000])
    document = good(out, ranks, library)
    print("ok   met by " + str(document["machine"]["met_by"]))
    return document


def hand(size, rank, port, *more, sizes=SHORT):
    place = ["--rendezvous", "127.0.0.1:%d" % port, "--rank", str(rank), "--ranks", str(size)]
    return start([BINARY, "bench", "coll", "all_reduce", "alltoall", *sizes, *place, *more], environment(FAKE_CUDA_GPUS=str(size), FAKE_NCCL_PATIENCE="1"))


def by_hand(folder):
    port = free_port()
    processes = [hand(3, rank, port, "--json") for rank in (2, 1, 0)]
    results = [end(p) for p in processes]
    check("all end well", [r[0] for r in results[:2]] == [0, 0] and results[2][0] in (0, 3), str(results)[:3000])
    check("only rank 0 speaks", results[0][1] == "" and results[1][1] == "", str(results[:2])[:2000])
    document = good(results[2][1], 3, "NCCL 2.28.9")
    check("the algorithm is known", any(r["extra"].get("algorithm") == "Ring" for r in document["results"]), "")

    # A rank that dies in the middle: the others end, name it, and keep what they have.
    port = free_port()
    file = os.path.join(folder, "partial.json")
    more = ("--json", "-o", file)
    processes = [hand(3, rank, port, *more, sizes=LONG) for rank in range(3)]
    time.sleep(2.5)
    processes[2].send_signal(signal.SIGKILL)
    began = time.time()
    codes = [end(p)[0] for p in processes[:2]]
    check("the survivors end soon", time.time() - began < 25, "%g s" % (time.time() - began))
    check("with an error", codes == [2, 2], str(codes))
    with open(file, encoding="utf-8") as f:
        document = json.load(f)
    failed = [r for r in document["results"] if r["status"] == "failed"]
    check("the dead rank is named", len(failed) == 1 and re.search(r"rank 2 on \S+ \(pid %d\)" % processes[2].pid, failed[0]["why"]), str(failed))
    check("partial results are kept", len(document["results"]) > 1, str(document)[:2000])

    # The one that everybody reports to dies: the next one writes.
    port = free_port()
    processes = [hand(2, rank, port, *more, sizes=LONG) for rank in range(2)]
    time.sleep(2.5)
    processes[0].send_signal(signal.SIGKILL)
    code, _, err = end(processes[1])
    check("rank 0 is named", code == 2 and "rank 0 on" in err and "ended" in err, err)
    with open(file + ".rank1", encoding="utf-8") as f:
        check("rank 1 writes what there is", len(json.load(f)["results"]) > 1, "")

    # One that hangs.
    port = free_port()
    processes = [hand(2, rank, port, "--limit", "4", sizes=LONG) for rank in range(2)]
    time.sleep(2)
    processes[1].send_signal(signal.SIGSTOP)
    code, out, err = end(processes[0], 30)
    processes[1].send_signal(signal.SIGKILL)
    end(processes[1])
    check("a hanging rank ends the wait", code == 2 and ("rank 1 on" in err + out or "did not end within" in err), out + err)

    # A full disk for the report is an error, and said.
    code, out, err = end(start([BINARY, "bench", "coll", *SHORT, "--no-log", "-o", "/dev/full"], environment()))
    check("a full disk is said", code != 0 and "cannot write /dev/full" in err and "hint:" in err, err)


def by_openmpi(_):
    if not shutil.which("mpirun.openmpi"):
        skip("no mpirun.openmpi")
    mpirun = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "-n"]
    found = by_launcher([*mpirun, "2", BINARY, "bench", "coll", *SHORT, "--json"], 2, "NCCL 2.28.9", "NCCL under mpirun")
    check("addresses by PMIx", found["machine"]["met_by"].startswith("TCP "), str(found["machine"]))
    if not os.path.exists(os.path.join(os.path.dirname(BINARY), "libtopotune-mpi.so")):
        skip("no libtopotune-mpi.so beside the program")
    command = [*mpirun, "2", BINARY, "bench", "coll", "all", "--backend", "mpi", *SHORT, "--json"]
    document = by_launcher(command, 2, "Open MPI", "MPI under mpirun")
    names = {r["name"] for r in document["results"] if r["status"] in ("ok", "noisy")}
    check("all nine", len(names) == 9, str(names))
    # Ended from outside, in order or not at all: what was measured is there. Open MPI kills all as soon as one has ended.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "x.json")
            command = [*mpirun, "2", BINARY, "bench", "coll", "all", "--backend", "mpi", *[w if w != "20" else "100000" for w in LONG], "--json", "-o", file]
            process = start(command, environment())
            harness.wait_for_results(process, file, 1)
            if number == signal.SIGKILL:
                os.kill(harness.ranks_of(process)[0], number)
            else:
                process.send_signal(number)
            end(process, 30)
            document = harness.read_report(file)
            check("%s keeps what was measured" % number.name, document["interrupted"] is True and harness.measured(document), document)
            check("and nothing else lies beside it", set(os.listdir(folder)) <= {"x.json", "x.json.rank1"}, os.listdir(folder))


def by_mpich(_):
    if not shutil.which("mpiexec.mpich"):
        skip("no mpiexec.mpich")
    mpiexec = ["mpiexec.mpich", "-n"]
    by_launcher([*mpiexec, "2", BINARY, "bench", "coll", *SHORT, "--json"], 2, "NCCL 2.28.9", "NCCL under MPICH's mpiexec")
    if not os.path.exists(os.path.join(os.path.dirname(BINARY), "libtopotune-mpich.so")):
        skip("no libtopotune-mpich.so beside the program")
    by_launcher([*mpiexec, "2", BINARY, "bench", "coll", "all_reduce", "gather", "--backend", "mpi", *SHORT, "--json"], 2, "MPICH", "MPI under MPICH's mpiexec")


def by_torchrun(_):
    """torchrun's variables, as torch.distributed.run sets them; with and without its agent's store on the port."""
    for agent in ("False", "True"):
        port = free_port()
        holder = socket.socket()
        if agent == "True":
            holder.bind(("127.0.0.1", port))
            holder.listen(1)
        processes = []
        for rank in range(2):
            env = environment(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                              MASTER_PORT=str(port), TORCHELASTIC_USE_AGENT_STORE=agent)
            processes.append(start([BINARY, "bench", "coll", *SHORT, "--json"], env))
        results = [end(p) for p in processes]
        holder.close()
        check("both end well", results[0][0] in (0, 3) and results[1][0] == 0, str(results)[:3000])
        document = good(results[0][1], 2, "NCCL 2.28.9")
        check("at torchrun's address", document["machine"]["met_by"] == "TCP 127.0.0.1:%d" % (port + (agent == "True")), str(document["machine"]))


def by_slurm(folder):
    """The job of examples/launch, under one real node: two ranks, by MPI's exchange where srun has it, and without."""
    why = slurm_node.why_not()
    if why:
        skip(why)
    os.chmod(folder, 0o755)
    cluster = slurm_node.Slurm(folder)
    try:
        if not cluster.wait_until_idle(15):
            skip("slurmd did not come up within 15 s")
        job = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "launch", "coll.sbatch")
        for mpi in ("none", "pmi2", "pmix"):
            out = os.path.join(folder, mpi + ".json")
            env = environment(SLURM_CONF=cluster.conf, TOPOTUNE=BINARY, OUT=out, BEGIN="1K", END="16K", OPS="all_reduce",
                              SRUN_OPTIONS="-n 2 --overcommit --mpi=" + mpi, OPTIONS="--time 0.001 -n 3 --fail-on error --limit 30")
            log = os.path.join(folder, mpi + ".log")
            code, said, err = end(start(["sbatch", "-W", "--output=" + log, job], env))
            text = open(log, encoding="utf-8", errors="replace").read() if os.path.exists(log) else ""
            if mpi != "none" and not os.path.exists(out) and "plugin" in (text + err).lower():
                print("skipped: this Slurm has no --mpi=%s" % mpi)
                continue
            check("sbatch with --mpi=" + mpi, code in (0, 3) and os.path.exists(out), said + err + text)
            with open(out, encoding="utf-8") as f:
                document = good(f.read(), 2, "NCCL 2.28.9")
            print("ok   met by " + document["machine"]["met_by"])
        mixed = ["bench", "mixed", "--backend", "mpi", "--scale", "0.002", "--duration", "0.3", "--limit", "30", "--fail-on", "error", "--json"]
        if os.path.exists(os.path.join(os.path.dirname(BINARY), "libtopotune-mpi.so")):
            code, said, err = end(start(["srun", "-n", "2", "--overcommit", "--mpi=pmix", BINARY, *mixed], environment(SLURM_CONF=cluster.conf)), 90)
            if "plugin" in err.lower():
                print("skipped: bench mixed over MPI: this Slurm has no --mpi=pmix")
            else:
                check("bench mixed under srun", code in (0, 3), said + err)
                document = json.loads(said)
                check("two ranks by Open MPI", document["machine"]["ranks"] == "2" and document["machine"]["library"].startswith("Open MPI"), document["machine"])
                names = {(r["name"], r["params"].get("stream")) for r in harness.measured(document)}
                check("all streams, alone and together", all((n, s) in names for n in ("mixed.alone", "mixed.together") for s in ("small", "large", "checkpoint")), names)
        env = environment(SLURM_CONF=cluster.conf)
        code, said, err = end(start(["srun", "-n", "2", "--overcommit", BINARY, "bench", "net", "--bytes", "8,4096", "--time", "0.02", "--json", "--fail-on", "error"], env))
        if "libtopotune-ucx.so is not beside" not in said + err:
            check("bench net under srun", code in (0, 3) and '"net.latency.tag"' in said, said + err)
    finally:
        cluster.stop()


def main():
    with tempfile.TemporaryDirectory() as folder:
        {"hand": by_hand, "openmpi": by_openmpi, "mpich": by_mpich, "torchrun": by_torchrun, "slurm": by_slurm}[WHICH](folder)


if __name__ == "__main__":
    main()
