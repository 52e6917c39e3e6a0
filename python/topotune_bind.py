"""Binds the processes that a framework forks by itself to the CPUs and memory of their GPU.

Needs nothing but Python 3.6 and Linux. `topotune run` binds whole ranks from outside; this file is for programs that
fork their ranks or loader workers themselves.

    import topotune_bind
    topotune_bind.bind(local_rank)                        # a rank, before the framework is imported

    loader = DataLoader(..., worker_init_fn=topotune_bind.worker_init(local_rank))
    pool = multiprocessing.Pool(8, initializer=topotune_bind.bind, initargs=(local_rank,))

The plan is TOPOTUNE_PLAN (a file of `topotune plan --json`); without one the CPUs come from the kernel:
/sys/bus/pci/devices/*/local_cpulist of the GPUs, in order of their PCI addresses.
"""
import ctypes
import glob
import json
import os

_MPOL_DEFAULT, _MPOL_PREFERRED = 0, 1
_SYS_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237, "ppc64le": 261}
_GPU_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
_VENDORS = ("0x10de", "0x1002")
_ROOT = os.environ.get("TOPOTUNE_SYSROOT", "")


def cpu_list(text):
    """{0, 1, 2, 8} for "0-2,8"; ValueError for anything else."""
    out = set()
    for part in text.strip().split(","):
        if not part:
            continue
        first, dash, last = part.partition("-")
        first, last = int(first), int(last if dash else first)
        if first < 0 or last < first or last >= 65536:
            raise ValueError("not a CPU list: %r" % text)
        out.update(range(first, last + 1))
    return out


def _read(path):
    try:
        with open(_ROOT + path, encoding="ascii") as f:
            return f.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _plan_bindings(path):
    with open(path, encoding="utf-8") as f:
        plan = json.load(f)
    if plan.get("schema") != "topotune.plan/1":
        raise ValueError("%s: not a topotune.plan/1 document" % path)
    return [(cpu_list(b["cpus"] or ""), b["memory_node"]) for b in plan["bindings"]]


def _kernel_bindings():
    out = []
    for folder in sorted(glob.glob(_ROOT + "/sys/bus/pci/devices/*")):
        folder = folder[len(_ROOT):]
        if _read(folder + "/class")[:6] not in _GPU_CLASSES or _read(folder + "/vendor") not in _VENDORS:
            continue
        node = _read(folder + "/numa_node")
        out.append((cpu_list(_read(folder + "/local_cpulist")), int(node) if node.isdigit() else None))
    return out


def bindings(plan=None):
    """[(set of CPUs, memory node or None), ...] by GPU number."""
    plan = plan or os.environ.get("TOPOTUNE_PLAN")
    return _plan_bindings(plan) if plan else _kernel_bindings()


def _prefer(node):
    """Pages of this process come from `node` while it has room. False where the kernel or a container forbids it."""
    number = _SYS_SET_MEMPOLICY.get(os.uname().machine)
    if number is None:
        return False
    words = (ctypes.c_ulong * 16)()
    bits = 8 * ctypes.sizeof(ctypes.c_ulong)
    if node >= 16 * bits:
        return False
    words[node // bits] = 1 << (node % bits)
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(number, _MPOL_PREFERRED, words, ctypes.c_ulong(16 * bits)) == 0


def bind(local_rank=None, plan=None):
    """Binds this process, and what it starts, to the GPU of `local_rank` (LOCAL_RANK by default).

    Returns the CPUs that the kernel reads back. A rank without a GPU is an IndexError; CPUs that a cpuset excludes
    are an OSError: nothing is changed then.
    """
    if local_rank is None:
        local_rank = int(os.environ["LOCAL_RANK"])
    known = bindings(plan)
    if not 0 <= local_rank < len(known):
        raise IndexError("local rank %d on a node with %d GPUs" % (local_rank, len(known)))
    cpus, node = known[local_rank]
    if cpus:
        os.sched_setaffinity(0, cpus)
    if node is not None:
        _prefer(node)
    return os.sched_getaffinity(0)


def worker_init(local_rank=None, plan=None):
    """A worker_init_fn: loader workers of a rank on the rank's CPUs, whatever the parent was bound to."""
    return _WorkerInit(local_rank, plan)


class _WorkerInit:  # a class, so that workers that are spawned can pickle it
    def __init__(self, local_rank, plan):
        self.local_rank, self.plan = local_rank, plan

    def __call__(self, _worker):
        bind(self.local_rank, self.plan)
