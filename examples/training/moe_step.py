#!/usr/bin/env python3
"""A mixture-of-experts layer, one expert a rank: tokens go to their experts and back by all-to-all.

    torchrun --nproc_per_node 8 moe_step.py
    topotune bench levels --train 'torchrun --nproc_per_node 8 moe_step.py'

The all-to-alls are waited for where they stand: all of their time is communication that nothing hides, as in the
plainest implementation. gloo has no all-to-all: there each rank sends its parts to the others in turn.
"""
import argparse

from step_log import Clock, StepLog, need_torch, start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=2048, help="of a rank, evenly routed")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--loader-ms", type=float, default=0, help="a data loader that takes so long")
    options = parser.parse_args()
    torch, dist = need_torch()
    rank, ranks, device, backend = start(torch, dist)
    torch.manual_seed(rank)
    expert = torch.nn.Sequential(torch.nn.Linear(options.width, 4 * options.width), torch.nn.GELU(),
                                 torch.nn.Linear(4 * options.width, options.width)).to(device)
    optimizer = torch.optim.SGD(expert.parameters(), lr=1e-3)
    tokens = max(1, options.tokens // ranks) * ranks
    clock = Clock(torch, device)
    log = StepLog("moe", "alltoall", torch, rank, ranks, backend)
    host_batch = torch.randn(tokens, options.width)

    def all_to_all(out, data):
        if backend == "nccl":
            dist.all_to_all_single(out, data)
            return
        parts, places = list(data.chunk(ranks)), list(out.chunk(ranks))
        places[rank].copy_(parts[rank])
        work = []
        for shift in range(1, ranks):
            to, source = (rank + shift) % ranks, (rank - shift) % ranks
            work += [dist.isend(parts[to].contiguous(), to), dist.irecv(places[source], source)]
        for one in work:
            one.wait()

    def load():
        import time
        time.sleep(options.loader_ms * 1e-3)
        return host_batch.to(device)

    there, back = torch.empty(tokens, options.width, device=device), torch.empty(tokens, options.width, device=device)
    for step in range(options.steps):
        batch = []
        loading = clock.time(lambda: batch.append(load()))
        dispatch = clock.time(lambda: all_to_all(there, batch[0]))
        result = []

        def compute():
            optimizer.zero_grad(set_to_none=True)
            result.append(expert(there))
            result[0].square().mean().backward()
            optimizer.step()

        computing = clock.time(compute)
        combine = clock.time(lambda: all_to_all(back, result[0].detach()))
        log.write({"step": step, "seconds": loading + dispatch + computing + combine, "compute_seconds": computing,
                   "dataloader_seconds": loading, "communication_seconds": dispatch + combine,
                   "exposed_communication_seconds": dispatch + combine,
                   "communication_bytes": 2 * tokens * options.width * 4, "communication_calls": 2})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
