"""All-reduce over all GPUs of this node, a few sizes; rank 0 prints size, time and bus bandwidth (nccl-tests' definition)."""
import os
import time

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
for size in (1 << 20, 1 << 26, 1 << 30):
    data = torch.ones(size // 4, device="cuda")
    for _ in range(5):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        dist.all_reduce(data)
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - start) / 20
    if rank == 0:
        print("all-reduce %11d bytes %9.1f us %8.1f GB/s busbw" % (size, seconds * 1e6, size / seconds / 1e9 * 2 * (world - 1) / world))
dist.destroy_process_group()
