"""What the tests of whole jobs share: how they say what held, and an environment without other jobs' traces."""
import json
import os
import signal
import socket
import subprocess
import sys
import time

LAUNCHERS = ("OMPI_", "PMI_", "PMIX_", "MPI_", "SLURM_")
TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def check(what, good, more=""):
    print("%s %s" % ("ok  " if good else "FAIL", what))
    if not good:
        print(str(more)[:6000])
        sys.exit(1)


def without(*prefixes):
    """This process's environment without the launchers' variables and without those that begin so."""
    return {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS + prefixes) and k not in TORCHRUN}


def as_root():
    """Open MPI refuses root unless told twice."""
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(command, env):
    """In a group of its own, which `end` can end."""
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, start_new_session=True)


def end(process, limit):
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            out, err = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:  # somebody who left the group holds the pipe
            out, err = "", ""
        check("it ends within %g s" % limit, False, out + err)
    return process.returncode, out, err


def ranks_of(process):
    """{rank: pid} of a launcher's topotune children."""
    found = {}
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/environ" % name, "rb") as f:
                variables = dict(v.split(b"=", 1) for v in f.read().split(b"\0") if b"=" in v)
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == process.pid and b"OMPI_COMM_WORLD_RANK" in variables:
            found[int(variables[b"OMPI_COMM_WORLD_RANK"])] = int(name)
    return found


def wait_for_ranks(process, count):
    for _ in range(100):
        found = ranks_of(process)
        if len(found) == count:
            return found
        time.sleep(0.1)
    check("%d ranks start" % count, False, str(found))


def read_report(file):
    """The document of a report's file; None: there is none. It is whole at all times."""
    if not os.path.exists(file):
        return None
    with open(file, encoding="utf-8") as f:
        return json.load(f)


def measured(document):
    return [r for r in (document or {"results": []})["results"] if r["status"] in ("ok", "noisy")]


def wait_for_results(process, file, count, limit=60):
    """Until the report of a run that goes on holds so many results."""
    until = time.time() + limit
    while len(measured(read_report(file))) < count:
        if process.poll() is not None or time.time() > until:
            check("%d results are in the file while the run goes on" % count, False, "".join(end(process, 5)[1:]) if process.poll() is not None else str(read_report(file)))
        time.sleep(0.05)
