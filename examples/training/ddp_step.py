#!/usr/bin/env python3
"""A data-parallel training step, measured: all of it, its computation alone, its communication alone.

    torchrun --nproc_per_node 8 ddp_step.py
    topotune bench levels --train 'torchrun --nproc_per_node 8 ddp_step.py'

Runs on NCCL where there are GPUs, else on gloo. Communication that nothing hides is the step less the same step
without communication (no_sync). Communication alone is one all-reduce a bucket, of the sizes that DDP makes of
--bucket-mb.
"""
import argparse

from step_log import Clock, StepLog, need_torch, start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--width", type=int, default=1024, help="of the hidden layers")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--bucket-mb", type=float, default=25, help="DDP's buckets")
    parser.add_argument("--loader-ms", type=float, default=0, help="a data loader that takes so long")
    options = parser.parse_args()
    torch, dist = need_torch()
    rank, ranks, device, backend = start(torch, dist)
    torch.manual_seed(1)
    layers = []
    for _ in range(options.layers):
        layers += [torch.nn.Linear(options.width, options.width), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers).to(device)
    ddp = torch.nn.parallel.DistributedDataParallel(
        model, device_ids=[device.index] if device.type == "cuda" else None, bucket_cap_mb=options.bucket_mb)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=1e-3)
    clock = Clock(torch, device)
    log = StepLog("ddp", "all_reduce", torch, rank, ranks, backend)
    gradient = sum(p.numel() for p in model.parameters()) * 4
    calls = max(1, round(gradient / (options.bucket_mb * (1 << 20))))
    buckets = [torch.zeros(max(1, gradient // 4 // calls), device=device) for _ in range(calls)]
    host_batch = torch.randn(options.batch, options.width)

    def load():
        import time
        time.sleep(options.loader_ms * 1e-3)
        return host_batch.to(device)

    def compute(batch):
        optimizer.zero_grad(set_to_none=True)
        ddp(batch).square().mean().backward()

    def without_communication(batch):
        with ddp.no_sync():
            compute(batch)

    def communicate():
        for bucket in buckets:
            dist.all_reduce(bucket)

    for step in range(options.steps):
        batch = []
        loading = clock.time(lambda: batch.append(load()))
        full = clock.time(lambda: (compute(batch[0]), optimizer.step()))
        alone = clock.time(lambda: (without_communication(batch[0]), optimizer.step()))
        communication = clock.time(communicate)
        log.write({"step": step, "seconds": loading + full, "compute_seconds": alone, "dataloader_seconds": loading,
                   "communication_seconds": communication, "exposed_communication_seconds": max(0.0, full - alone),
                   "communication_bytes": sum(b.numel() for b in buckets) * 4, "communication_calls": calls})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
