#!/usr/bin/env python3
"""What the profiler plugin costs a training step: blocks of steps with its events off and on, in turns, in one job.

Two kinds of step on all GPUs of this machine, one process each: `ddp` (a transformer under DistributedDataParallel, a
few large all-reduces behind the backward pass) and `tensor` (many small all-reduces, each behind a small product, as
tensor parallelism has them). NCCL_PROFILER_PLUGIN names the plugin; without it the blocks are only timed, which shows
what the method itself sees. Prints one line of JSON a kind: seconds of each block, and the ratio on / off with its
95 % interval.
"""
import ctypes
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def interval(ratios):
    """Median with the order statistics that hold it in 95 % of cases (binomial, normal approximation)."""
    ratios = sorted(ratios)
    n = len(ratios)
    half = 0.98 * n**0.5
    low, high = max(0, int(n / 2 - half)), min(n - 1, int(n / 2 + half))
    return statistics.median(ratios), ratios[low], ratios[high]


def switch():
    """The function that turns the events of the loaded plugin off (1) and on (0)."""
    path = os.environ.get("NCCL_PROFILER_PLUGIN")
    if not path:
        return lambda off: None
    return ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW).topotune_profiler_pause


def ddp_step(rank):
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0)
    model = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False).to(rank, torch.bfloat16)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    data = torch.randn(8, 512, 1024, device=rank, dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(data).float().square().mean().backward()
        optimizer.step()

    return step


def tensor_step(rank):
    weights = [torch.randn(4096, 4096, device=rank, dtype=torch.bfloat16) * 0.01 for _ in range(4)]
    data = torch.randn(64, 4096, device=rank, dtype=torch.bfloat16)

    def step():
        x = data
        for i in range(64):  # 512 KiB each
            x = x @ weights[i % 4]
            dist.all_reduce(x)

    return step


def work(rank, world, blocks):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world, device_id=torch.device("cuda", rank))
    for kind, make, steps in (("ddp", ddp_step, 10), ("tensor", tensor_step, 40)):
        step = make(rank)
        for _ in range(20):
            step()
        torch.cuda.synchronize()
        pause = switch()
        times = {False: [], True: []}
        for block in range(blocks):
            for on in ((False, True) if block % 2 == 0 else (True, False)):
                pause(0 if on else 1)
                dist.barrier()
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(steps):
                    step()
                torch.cuda.synchronize()
                times[on].append((time.perf_counter() - start) / steps)
        pause(0)
        if rank == 0:
            middle, low, high = interval([b / a for a, b in zip(times[False], times[True])])
            print(json.dumps({"kind": kind, "plugin": bool(os.environ.get("NCCL_PROFILER_PLUGIN")),
                              "step_seconds": statistics.median(times[False]), "on_over_off": middle,
                              "ci95": [low, high], "off": times[False], "on": times[True]}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    count = torch.cuda.device_count()
    mp.spawn(work, args=(count, int(sys.argv[1]) if len(sys.argv) > 1 else 40), nprocs=count)
