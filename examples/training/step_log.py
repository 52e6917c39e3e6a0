"""What a training script tells `topotune bench levels`: JSON lines, one file a rank (docs/formats/step.md)."""
import json
import os
import sys


def need_torch():
    """torch and torch.distributed; ends with status 3 (cannot run here) where they are missing."""
    try:
        import torch
        import torch.distributed as dist
    except ImportError as error:
        print("this step needs PyTorch: %s" % error, file=sys.stderr)
        sys.exit(3)
    if not dist.is_available():
        print("this PyTorch is built without torch.distributed", file=sys.stderr)
        sys.exit(3)
    return torch, dist


def start(torch, dist):
    """The process group of torchrun's (or MPI's) ranks; (rank, ranks, device, backend)."""
    rank = int(os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", 0)))
    ranks = int(os.environ.get("WORLD_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE", 1)))
    local = int(os.environ.get("LOCAL_RANK", os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", 0)))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    gpus = torch.cuda.is_available() and torch.cuda.device_count() > local
    if gpus:
        torch.cuda.set_device(local)
    backend = "nccl" if gpus else "gloo"
    dist.init_process_group(backend, rank=rank, world_size=ranks)
    return rank, ranks, torch.device("cuda", local) if gpus else torch.device("cpu"), backend


class StepLog:
    """Writes $TOPOTUNE_STEP_LOG.RANK, or to standard output of rank 0 where the variable is not set."""

    def __init__(self, kind, op, torch, rank, ranks, backend):
        name = os.environ.get("TOPOTUNE_STEP_LOG")
        self.file = open("%s.%d" % (name, rank), "w", encoding="utf-8") if name else sys.stdout if rank == 0 else None
        self.write({"schema": "topotune.step/1", "kind": kind, "op": op, "framework": "torch " + torch.__version__, "backend": backend, "rank": rank, "ranks": ranks})

    def write(self, line):
        if self.file:
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()


class Clock:
    """Seconds of a piece of work, with the device's work included."""

    def __init__(self, torch, device):
        import time
        self.now, self.torch, self.device = time.perf_counter, torch, device

    def sync(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def time(self, work):
        self.sync()
        begin = self.now()
        work()
        self.sync()
        return self.now() - begin
