#!/usr/bin/env python3
"""`topotune run` under the real launchers: alone, --per-gpu, Open MPI's mpirun, MPICH's mpiexec, Slurm's srun.

Arguments: the topotune binary and the launcher (alone, openmpi, mpich, slurm). Status 77: that launcher is not here.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import fake_node
from slurm_node import Slurm, why_not

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402
from harness import check, skip  # noqa: E402

BINARY, WHICH = os.path.abspath(sys.argv[1]), sys.argv[2]
SHOW = [sys.executable, "-c", "import os, json; print(json.dumps([os.environ.get('%s'), sorted(os.sched_getaffinity(0)), os.environ.get('NCCL_P2P_DISABLE'), os.environ.get('CUDA_DEVICE_ORDER')]))"]


def clean_environment():
    return {**harness.without("NCCL_", "CUDA_", "TOPOTUNE_"), "NCCL_P2P_DISABLE": "1", "HOME": "/nonexistent"}


def run(command, env, **more):
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60, **more)


class Node:
    """The fake machine; its node 0 has this machine's first usable CPU, node 1 its last."""

    def __init__(self, folder):
        usable = sorted(os.sched_getaffinity(0))
        self.cpus = [usable[0], usable[-1]]
        self.root = os.path.join(folder, "node")
        fake_node.make(self.root, [str(c) for c in self.cpus])
        self.report = os.path.join(folder, "report.jsonl")

    def command(self, variable, *options):
        show = SHOW[:2] + [SHOW[2] % variable]
        return [BINARY, "--sysroot", self.root, "run", "--report", self.report, *options, "--", *show]

    def expect(self, done, ranks, launcher):
        check("%s: %d ranks started" % (launcher, ranks), done.returncode == 0, done.stdout + done.stderr)
        seen = sorted(json.loads(one) for one in re.findall(r"\[\"[0-9]+\", \[[0-9, ]*\], [^\]]*\]", done.stdout))
        check("each rank once", [s[0] for s in seen] == [str(i) for i in range(ranks)], str(seen) + done.stderr)
        wanted = [[self.cpus[0 if i < 2 else 1]] for i in range(ranks)]
        check("each on its GPU's node", [s[1] for s in seen] == wanted, str(seen))
        check("the harmful variable is gone", all(s[2] is None and s[3] == "PCI_BUS_ID" for s in seen), str(seen))
        with open(self.report, encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        got = sorted(line["gpus"][0]["id"] for line in lines)
        check("the report names each GPU", got == ["GPU%d" % i for i in range(ranks)], str(lines))
        check("one line a rank is said", done.stderr.count("topotune: ") == ranks, done.stderr)
        if launcher != "--per-gpu":
            check("the launcher is known", all(line["rank"]["launcher"] == launcher for line in lines), str(lines))


def alone(node):
    done = run(node.command("X"), clean_environment())
    check("without a launcher: CPUs of all GPUs", json.loads(done.stdout)[1] == sorted(set(node.cpus)), done.stdout + done.stderr)
    os.remove(node.report)
    node.expect(run(node.command("LOCAL_RANK", "--per-gpu"), clean_environment()), 4, "--per-gpu")
    failing = run([BINARY, "--sysroot", node.root, "run", "--per-gpu", "--", "sh", "-c", "test $LOCAL_RANK != 2 || exit 5; sleep 30"], clean_environment())
    check("the first bad status ends all", failing.returncode == 5, str(failing.returncode))
    env = clean_environment()
    env.update(LOCAL_RANK="5", RANK="5", LOCAL_WORLD_SIZE="8", WORLD_SIZE="8")
    many = run(node.command("LOCAL_RANK"), env)
    check("more ranks than GPUs", many.returncode == 3 and "8 ranks on a node with 4 GPUs" in many.stderr, many.stderr)
    missing = run([BINARY, "--sysroot", node.root, "run", "--", "/nonexistent/command"], clean_environment())
    check("a command that is not there", missing.returncode == 3 and "cannot start /nonexistent/command" in missing.stderr, missing.stderr)
    overhead(node)


def overhead(node):
    def best(command):
        times = []
        for _ in range(15):
            start = time.monotonic()
            subprocess.run(command, env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            times.append(time.monotonic() - start)
        return min(times)
    added = best([BINARY, "--sysroot", node.root, "run", "-q", "--", "/bin/true"]) - best(["/bin/true"])
    print("     run adds %.1f ms" % (1000 * added))
    check("run does not wait for anything", added < 2)  # how long it takes: bench/whole_process.py


def openmpi(node):
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    version = subprocess.run([mpirun, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) if mpirun else None
    if not version or not (b"Open MPI" in version.stdout or b"OpenRTE" in version.stdout):
        skip("Open MPI is not installed")
    env = clean_environment()
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl="self,vader")
    command = [mpirun, "--oversubscribe", "-np", "4", *node.command("OMPI_COMM_WORLD_LOCAL_RANK")]
    node.expect(run(command, env), 4, "Open MPI")


def mpich(node):
    mpiexec = shutil.which("mpiexec.hydra")
    if not mpiexec:
        skip("MPICH's mpiexec.hydra is not installed")
    node.expect(run([mpiexec, "-n", "4", *node.command("MPI_LOCALRANKID")], clean_environment()), 4, "MPICH")


def slurm(node):
    why = why_not()
    if why:
        skip(why)
    with tempfile.TemporaryDirectory(prefix="topotune-slurm-") as folder:
        cluster = Slurm(folder)
        try:
            if not cluster.wait_until_idle(15):
                skip("slurmd did not come up within 15 s: " + " | ".join(open(os.path.join(folder, f), errors="replace").read()[-300:] for f in ("slurmctld.log", "slurmd.log") if os.path.exists(os.path.join(folder, f))))
            env = clean_environment()
            env["SLURM_CONF"] = cluster.conf
            node.expect(run(["srun", "-n", "4", "--overcommit", *node.command("SLURM_LOCALID")], env), 4, "Slurm")
        finally:
            cluster.stop()


def main():
    with tempfile.TemporaryDirectory(prefix="topotune-run-") as folder:
        {"alone": alone, "openmpi": openmpi, "mpich": mpich, "slurm": slurm}[WHICH](Node(folder))


if __name__ == "__main__":
    main()
